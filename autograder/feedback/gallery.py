"""The functions of a `pictures.py`: each draws a student's code, and returns the figure and a sentence about it."""

import runpy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LONGEST = 400


class NoSentenceError(Exception):
    """A picture function did not return a figure and a sentence."""


@dataclass(frozen=True)
class PictureFunction:
    """One function of `PICTURES`, and the values that sliders offer for its named arguments."""

    part: str
    draw: Callable[..., Any]
    choices: Mapping[str, Sequence[Any]]

    @property
    def name(self) -> str:
        return self.draw.__name__

    @property
    def title(self) -> str:
        return self.name.replace("_", " ")

    @property
    def look_for(self) -> str:
        """What its docstring says to look for."""
        return " ".join((self.draw.__doc__ or self.title).split())

    def drawn(self, student: Any, **values: Any) -> tuple[Any, str]:
        """Draw a student's code; return the figure and its sentence. Raises NoSentenceError, and what the code raises."""
        result = self.draw(student, **values)
        if isinstance(result, tuple) and len(result) == 2 and isinstance(result[1], str):
            sentence = _one_line(result[1])
            if sentence:
                return result[0], sentence
        raise NoSentenceError(
            f"`{self.name}` in pictures.py returns no sentence about its picture: `return figure, sentence`."
        )


def load_gallery(file: Path) -> dict[str, list[PictureFunction]]:
    """Return the picture functions of a file, by part."""
    names = runpy.run_path(str(file))
    sliders = names.get("SLIDERS", {})
    return {
        part: [PictureFunction(part, draw, sliders.get(draw, {})) for draw in draws]
        for part, draws in names["PICTURES"].items()
    }


def _one_line(sentence: str) -> str:
    """Return a sentence without line breaks and hidden characters, at most `LONGEST` characters long."""
    shown = "".join(c if c.isprintable() else " " for c in sentence)
    line = " ".join(shown.split())
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…"
