"""Notes for a person: what did not load, what the sandbox refused, which forbidden names stand there."""

import re
from collections.abc import Iterable, Iterator

from autograder.failures.explain import clean, names_in_cells_without_code
from autograder.grading.prepared import PreparedAssignment
from autograder.grading.workers import LoadedSubmission
from autograder.walls.inside.tried import NETWORK, PROGRAM

_DEFINED = re.compile(r"^(?:async def|def|class) (\w+)", re.MULTILINE)
MOST_FLAGS = 20  # notes of one kind for a person
LONGEST_FLAG = 300  # characters
TRIED = {
    NETWORK: "It tried to open a network connection, which is refused.",
    PROGRAM: "It tried to start a program or another process, which is refused.",
}


def notes_of(prepared: PreparedAssignment, loaded: LoadedSubmission) -> tuple[str, ...]:
    """Return notes for a person: what did not load, what the sandbox refused, and what the text says
    about forbidden names that did not run.
    """
    names = _DEFINED.findall(prepared.solution.text)
    return (
        *limited_notes(loaded.problems_of_loading),
        *limited_notes(names_in_cells_without_code(names, loaded.file)),
        *(TRIED[kind] for kind in loaded.budget.tried),
        *limited_notes(_looked_up(prepared, loaded)),
        *limited_notes(_named(prepared, loaded)),
    )


def limited_notes(notes: Iterable[str]) -> list[str]:
    """Return the notes of one kind that are shown: each once, and with a remark in place of those that are too many."""
    different = list(dict.fromkeys(clean(note, LONGEST_FLAG) for note in notes))
    more = len(different) - MOST_FLAGS
    return [
        *different[:MOST_FLAGS],
        *([f"There are {more} more notes of this kind."] if more > 0 else []),
    ]


def _looked_up(prepared: PreparedAssignment, loaded: LoadedSubmission) -> Iterator[str]:
    for use in loaded.names.looked_up:
        if use.name not in prepared.usual_names:
            yield f"{use.place} looks names up while it runs (`{use.name}`): forbidden ones could hide there."


def _named(prepared: PreparedAssignment, loaded: LoadedSubmission) -> Iterator[str]:
    """Yield a note about each forbidden name in the text that no test saw running."""
    for use in loaded.names.used:
        forbidden = {name for name in prepared.forbidden if _is_among(use.name, name)}
        if forbidden and not forbidden & loaded.entered and use.name not in prepared.usual_names:
            yield f"{use.place} names `{use.name}`, which some tests forbid; it did not run in any of them."


def _is_among(used: str, forbidden: str) -> bool:
    """Whether a used name is a forbidden one: `torch.nn.modules.normalization.LayerNorm` is `torch.nn.LayerNorm`.

    A forbidden name without a dot includes all names below it: `torch.fft` uses `torch`. Of a
    dotted one, the root and the last component have to match.
    """
    if "." not in forbidden:
        return used == forbidden or used.startswith(f"{forbidden}.")
    root = forbidden.split(".")[0]
    last = forbidden.rsplit(".", 1)[1]
    parts = used.split(".")
    return parts[0] == root and last in parts[1:]
