"""Draw pictures of a student's own code as files: `pictures/mask_who_may_attend_to_whom.png`."""

import contextlib
import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autograder.bridge.outside.local import LocalStudent
from autograder.bridge.shared.errors import MissingNameError
from autograder.feedback.gallery import NoSentenceError, PictureFunction, load_gallery
from autograder.records import RefusedError
from autograder.selfcheck.workspace import Work

FOLDER = "pictures"
NEUTRAL = "#787878"  # contrast above 4.3 : 1 with white and with JupyterLab's dark background


@dataclass(frozen=True)
class Drawing:
    """One picture: its path, its sentence and what to look for; or the reason that it cannot be drawn yet."""

    part: str
    title: str
    file: str = ""
    look_for: str = ""
    words: str = ""
    problem: str = ""


def draw_all(work: Work) -> list[Drawing]:
    """Draw the pictures of all parts beside the student's file; raises RefusedError without pictures."""
    gallery = _gallery(work.folder / "pictures.py")
    with contextlib.redirect_stdout(io.StringIO()):
        student = LocalStudent(work.load().module)
        folder = work.folder / FOLDER
        try:
            folder.mkdir(exist_ok=True)
        except OSError as error:
            raise RefusedError(f"The folder {folder} cannot be made: {error.strerror}.") from None
        drawings: list[Drawing] = []
        for functions in gallery.values():
            drawings += [_draw(function, student, folder) for function in functions]
        return drawings


def _draw(function: PictureFunction, student: Any, folder: Path) -> Drawing:
    part = function.part
    title = function.title
    file = folder / f"{part}_{function.name}.png"
    try:
        figure, words = function.drawn(student)
        figure.savefig(file, dpi=150, bbox_inches="tight")
    except Exception as error:  # the student's unfinished code
        file.unlink(missing_ok=True)  # a stale picture would show earlier code
        return Drawing(part, title, problem=why_not(error))
    return Drawing(part, title, _from_here(file), function.look_for, words)


def on_any_page(figure: Any) -> None:
    """Prepare a figure for light and dark pages: a transparent background, and grey text and lines around its axes.

    A figure with axes that are switched off keeps its background, because nothing else is behind
    their texts.
    """
    from matplotlib.colors import to_rgb
    from matplotlib.text import Text

    if not all(axes.axison for axes in figure.axes):
        return
    figure.set_facecolor("none")
    figure.draw_without_rendering()
    areas = [axes.get_window_extent() for axes in figure.axes]
    for axes in figure.axes:
        axes.tick_params(colors=NEUTRAL)
        for spine in axes.spines.values():
            spine.set_edgecolor(NEUTRAL)
    for text in figure.findobj(Text):
        box = text.get_window_extent()
        colour = to_rgb(text.get_color())
        inside = any(area.contains((box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2) for area in areas)
        if not inside and max(colour) - min(colour) < 0.1:
            text.set_color(NEUTRAL)


def why_not(error: Exception) -> str:
    """Explain to the student why a picture of unfinished code cannot be drawn."""
    is_told = isinstance(error, (NotImplementedError, MissingNameError, NoSentenceError))
    return str(error) if is_told else f"{type(error).__name__}: {error}"


def _from_here(file: Path) -> str:
    path = file.resolve()
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


def _gallery(file: Path) -> dict[str, list[PictureFunction]]:
    if not file.is_file():
        raise RefusedError(
            f"There is no pictures.py in {file.parent.resolve()}: this assignment has no pictures."
        )
    return load_gallery(file)
