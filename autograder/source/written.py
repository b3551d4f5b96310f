"""The written answers in a submission's text, which is read and never run."""

import re
from collections.abc import Iterable, Iterator

from autograder.course.config import Assignment
from autograder.course.markers import PLACEHOLDER
from autograder.records import SourceFile
from autograder.source.text import cell_source, notebook_cells

MOST_LETTERS = 20_000
_BLOCK = re.compile(r'(?ms)^# ?%% (?:\[markdown\] )?answer="(\w+)"[^\n]*\n(.*?)(?=^# ?%%|\Z)')


def written_answers(assignment: Assignment, files: Iterable[SourceFile]) -> dict[str, str]:
    """Return the text of each written answer by its name, empty if nothing is written; a notebook's comes first."""
    found = {answer.name: "" for answer in assignment.answers}
    for file in sorted(files, key=lambda file: file.is_notebook) if found else ():
        for name, text in _in_notebook(file.text) if file.is_notebook else _in_script(file.text):
            if name in found and (written := text.replace(PLACEHOLDER, "").strip()):
                found[name] = written[:MOST_LETTERS]
    return found


def _in_notebook(text: str) -> Iterator[tuple[str, str]]:
    try:
        cells = [cell for cell in notebook_cells(text) if isinstance(cell, dict)]
    except ValueError:
        return
    for cell in reversed(cells):  # of two copies the first counts
        metadata = cell.get("metadata")
        claimed = metadata.get("nbgrader") if isinstance(metadata, dict) else None
        if isinstance(claimed, dict):
            yield str(claimed.get("grade_id")), cell_source(cell)


def _in_script(text: str) -> Iterator[tuple[str, str]]:
    for name, body in reversed(_BLOCK.findall(text)):
        yield name, "\n".join(re.sub("^# ?", "", line) for line in body.split("\n"))
