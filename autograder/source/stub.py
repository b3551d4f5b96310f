"""Tell a student's work from the unchanged stub: one rule for grading, collecting, checking and packing.

A text is neither parsed nor run here, so that hostile files can be compared in a trusted process.
"""

import hashlib
import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from autograder.course.config import Assignment, Course
from autograder.course.markers import PLACEHOLDER, UNWRITTEN
from autograder.records import SourceFile
from autograder.source.text import NOTEBOOK_FUNCTIONS, cell_source, notebook_cells

_SOURCES = (".py", ".ipynb")
_GAP = re.compile(rf'"(\w+)(?:\.[\w.]*)?{re.escape(UNWRITTEN)}"')
# what editors and formatters change without changing the code
_LAYOUT = re.compile(r"""[\s'"(),\\]+""")
_IMPORT = re.compile(r"(?:import|from)[ \t]")
_NOTEBOOK_CALL = re.compile(rf"(?:{'|'.join(NOTEBOOK_FUNCTIONS)})\(")


@dataclass(frozen=True)
class ReleasedStub:
    """What identifies the files that students receive for an assignment; empty if it is unknown.

    `names` are the functions and classes to write, `digests` those of the unchanged files without
    imports and layout, `given` the names of the further files, and `answers` is the number of
    written answers that the stub asks for.
    """

    names: frozenset[str] = frozenset()
    digests: frozenset[str] = frozenset()
    given: frozenset[str] = frozenset()
    answers: int = 0

    @classmethod
    def of(cls, stem: str, texts: Mapping[str, str]) -> "ReleasedStub":
        """Create the record from the released sources of an assignment by name; others are left out."""
        sources = [
            SourceFile(name, text) for name, text in texts.items() if name.endswith(_SOURCES)
        ]
        names_of_stubs = [f"{stem}{kind}" for kind in _SOURCES]
        stubs = [file for file in sources if file.name in names_of_stubs]
        names: set[str] = set()
        for stub in stubs:
            names.update(_GAP.findall(_code(stub)))
        return cls(
            names=frozenset(names),
            digests=frozenset(_digest(_unformatted(stub)) for stub in stubs),
            given=frozenset(file.name for file in sources if file not in stubs),
            answers=max((stub.text.count(PLACEHOLDER) for stub in stubs), default=0),
        )

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> "ReleasedStub":
        """Read what `as_record` returned; raises KeyError, TypeError or ValueError."""
        texts = {name: frozenset(map(str, record[name])) for name in ("names", "digests", "given")}
        return cls(answers=int(record["answers"]), **texts)

    def as_record(self) -> dict[str, Any]:
        texts = {name: sorted(getattr(self, name)) for name in ("names", "digests", "given")}
        return {**texts, "answers": self.answers}

    def is_untouched(self, file: SourceFile) -> bool:
        """Whether a file holds nothing of a student's: neither code nor a written answer.

        Imports, quotation marks, line breaks and the like are no answers.
        """
        if not file.text.strip():
            return True
        nothing_written = file.text.count(PLACEHOLDER) >= self.answers
        return nothing_written and (not _lines(file) or _digest(_unformatted(file)) in self.digests)

    def is_answer(self, file: SourceFile) -> bool:
        """Whether a file was changed and defines at least one of the names that the stub asks for."""
        if not self.names or self.is_untouched(file):
            return False
        names = "|".join(sorted(map(re.escape, self.names)))
        pattern = rf"^[ \t]*(?:(?:async[ \t]+)?def|class)[ \t]+(?:{names})\b|^(?:{names})[ \t]*(?::[^=\n]*)?=[^=]"
        return re.search(pattern, _code(file), re.MULTILINE) is not None


UNKNOWN = ReleasedStub()


def source_files(folder: Path) -> list[Path]:
    """Return the scripts and notebooks in a folder, sorted by name."""
    return sorted(itertools.chain.from_iterable(folder.glob(f"*{kind}") for kind in _SOURCES))


def released_stub(course: Course, assignment: Assignment) -> ReleasedStub:
    """Return the record of an assignment's released files; `UNKNOWN` if nothing was built."""
    files = source_files(course.release_folder(assignment))
    return ReleasedStub.of(
        assignment.stem, {file.name: file.read_text("utf-8", "replace") for file in files}
    )


def is_same_work(first: SourceFile, other: SourceFile, with_prose: bool = False) -> bool:
    """Whether two files have the same code, apart from comments, blank lines and the notebook's own calls.

    With `with_prose`, comments and the text of a notebook are compared, too: answers can stand there.
    """
    if _lines(first) != _lines(other):
        return False
    return not with_prose or _prose(first) == _prose(other)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:20]


def _unformatted(file: SourceFile) -> str:
    """Return the code in one piece, without imports and what a formatter may change."""
    pieces = []
    is_inside_import = False
    for line in _lines(file):
        if is_inside_import or _IMPORT.match(line):
            is_inside_import = ")" not in line and (is_inside_import or "(" in line)
        else:
            pieces.append(_LAYOUT.sub("", line))
    return "".join(pieces)


@lru_cache(maxsize=16)  # the choice among a student's files asks several times
def _lines(file: SourceFile) -> tuple[str, ...]:
    """Return the lines of code without comments, blank lines and calls such as `check("part")`."""
    lines = (line.rstrip() for line in _code(file).splitlines())
    return tuple(
        line
        for line in lines
        if line and not line.lstrip().startswith("#") and not _NOTEBOOK_CALL.match(line)
    )


def _code(file: SourceFile) -> str:
    if not file.is_notebook:
        return file.text
    try:
        cells = [cell for cell in notebook_cells(file.text) if isinstance(cell, dict)]
        return "\n".join(cell_source(cell) for cell in cells if cell.get("cell_type") == "code")
    except (ValueError, RecursionError):
        return ""


def _prose(file: SourceFile) -> list[str]:
    """Return all lines of a script, or of a notebook's cells."""
    if not file.is_notebook:
        return file.text.splitlines()
    try:
        cells = [cell for cell in notebook_cells(file.text) if isinstance(cell, dict)]
        return "\n".join(map(cell_source, cells)).splitlines()
    except (ValueError, RecursionError):
        return []
