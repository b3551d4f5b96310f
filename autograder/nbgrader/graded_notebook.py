"""A submission as a notebook for human readers: the student's cells, not run, and the course's own test cells."""

import hashlib
import itertools
import re
from collections.abc import Container, Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import nbformat
from nbformat import NotebookNode

from autograder.bridge.shared.errors import BELOW_MAIN, TAKES_TOO_LONG
from autograder.course.config import Assignment, Part
from autograder.feedback.objections import HEADING
from autograder.feedback.pictures import Picture
from autograder.feedback.record import PageRecord, PartRecord
from autograder.feedback.render import Message
from autograder.nbgrader.decided_points import part_score
from autograder.records import SourceFile
from autograder.source.text import cell_source, notebook_cells

MOST_CELLS = 1000  # maximum number of a student's cells to show
MOST_LETTERS = 200_000  # maximum length of a cell's text
KEY = "autograder"  # the key of a cell's notes in its metadata

_KINDS = ("code", "markdown", "raw")
# the start of a tag, of a link and of what a link can lead to, an address that becomes one, or an
# active formula
_ACTIVE = re.compile(
    r"(?<=<)(?=[A-Za-z/!?])|(?<=\])(?=[:(])|(?<=:)(?=//)|(?<=\\)(?=(?:href|require|style|class|cssId)\b)"
)
_ATTACHED = re.compile(r"\(attachment:([A-Za-z0-9_.%-]+)\)")
_NOT_SHOWN = "The rest is not shown here; all of it was graded."


@dataclass
class _Cell:
    """One cell of the submission; `grade_id` is an unverified claim of the student's file."""

    kind: str
    source: str
    grade_id: str | None = None
    tagged: bool = False
    attachments: dict[str, Any] = field(default_factory=dict)

    @property
    def test_of(self) -> str | None:
        """The part whose unchanged test this is, judged by its code; None if it is none."""
        match = re.fullmatch(r"check\([\"'](\w+)[\"']\)", self.source.strip())
        return match[1] if match else None


def submitted_notebook(
    assignment: Assignment,
    release: NotebookNode,
    files: Sequence[SourceFile],
    problem: str | None = None,
) -> NotebookNode:
    """Return the submission with the test cells of `release`, below the `problem` of files that cannot be read."""
    notes = [problem] if problem else []
    cells = next((_of_notebook(file.text) for file in reversed(files) if file.is_notebook), [])
    has_tests = bool(cells)
    for file in files:
        if not file.is_notebook:
            cells += [cell for cell in _of_script(file.text) if not (has_tests and cell.test_of)]
    if len(cells) > MOST_CELLS:
        notes.append(f"There are {len(cells)} cells. {_NOT_SHOWN}")
    return _Restorer(assignment, release, notes, has_tests).restore(cells[:MOST_CELLS])


def show_grade(notebook: NotebookNode, assignment: Assignment, page: PageRecord) -> None:
    """Write feedback and the part's score as a plain float to each test cell, where nbgrader reads them.

    Pictures go to the student's own cells `picture("part")`; without such a cell, to the part's
    test cell.
    """
    records = {part.name: PartRecord(part.name, part.title) for part in assignment.parts}
    records |= {part.name: part for part in page.parts}
    left = {part.name: records[part.name].pictures for part in assignment.parts}
    for cell in notebook.cells:
        asked = (
            re.fullmatch(r"picture\([\"'](\w+)[\"']\)", cell.source.strip())
            if cell.cell_type == "code"
            else None
        )
        if asked and asked[1] in left:
            cell.outputs = _picture_outputs(left.pop(asked[1]))
    for cell in notebook.cells:
        name = cell.metadata.get("nbgrader", {}).get("grade_id")
        part = next((part for part in assignment.parts if part.name == name), None)
        if cell.cell_type == "code" and part is not None:
            cell.execution_count = None
            notes = cell.metadata.pop(KEY, {}).get("notes", [])
            feedback, score = _outputs(part, records[part.name], page, notes)
            drawn = _picture_outputs(left.get(part.name, ()))
            said = _objection_outputs(page) if part is assignment.parts[-1] else ()
            cell.outputs = [feedback, *drawn, *said, score]


def _picture_outputs(pictures: Iterable[Picture]) -> list[NotebookNode]:
    outputs = []
    for picture in pictures:
        if picture.image:
            described = f"{picture.title}: {picture.words}"
            image = {"image/png": picture.image, "text/plain": described}
            metadata = {"image/png": {"alt": described}}
            look_for = dict.fromkeys(("text/markdown", "text/plain"), picture.look_for)
            outputs.append(nbformat.v4.new_output("display_data", image, metadata=metadata))
            outputs.append(nbformat.v4.new_output("display_data", look_for))
        elif picture.problem:
            sentence = f"The picture “{picture.title}” cannot be drawn: {picture.problem}"
            outputs.append(_message(Message(sentence)))
    return outputs


def _objection_outputs(page: PageRecord) -> list[NotebookNode]:
    if not page.objection:
        return []
    return [_message(Message(HEADING, notes=(page.how_to_object,), foot=page.objection))]


def _message(message: Message) -> NotebookNode:
    shown = {"text/html": message._repr_html_(), "text/plain": repr(message)}
    return nbformat.v4.new_output("display_data", shown)


def _outputs(
    part: Part, record: PartRecord, page: PageRecord, notes: list[str]
) -> list[NotebookNode]:
    score = part_score(record.tests, part)
    if page.problem:
        notes = [*(note for note in notes if note != page.problem), f"Not graded: {page.problem}"]
    notes = [*notes, *page.loading]
    if any(note.endswith(TAKES_TOO_LONG) for note in notes):
        notes.append(BELOW_MAIN)
    shown = Message(
        f"{part.title}: {score:g} of {part.points:g} points", record.tests, tuple(notes)
    )
    number = nbformat.v4.new_output(
        "execute_result", {"text/plain": repr(score)}, execution_count=None
    )
    return [_message(shown), number]


def _of_notebook(text: str) -> list[_Cell]:
    try:
        return [_read(cell) for cell in notebook_cells(text) if isinstance(cell, dict)]
    except ValueError:
        return [_Cell("markdown", _indented(text))]


def _read(cell: dict[str, Any]) -> _Cell:
    kind = cell.get("cell_type")
    metadata = _dict(cell.get("metadata"))
    grade_id = _dict(metadata.get("nbgrader")).get("grade_id")
    return _Cell(
        kind if kind in _KINDS else "raw",
        cell_source(cell),
        grade_id if isinstance(grade_id, str) else None,
        bool(metadata.get("tags")),
        _pictures(cell.get("attachments")),
    )


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _pictures(attachments: Any) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for name, bundle in _dict(attachments).items():
        data = _dict(bundle)
        if kinds := {
            kind: data[kind] for kind in ("image/png", "image/jpeg") if _is_base64(data.get(kind))
        }:
            kept[_readable(name)] = kinds
    return kept


def _is_base64(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch(r"[A-Za-z0-9+/=\s]*", value) is not None


def _of_script(text: str) -> list[_Cell]:
    cells = []
    for block in re.split(r"(?m)^(?=# ?%%)", text):
        header, _, body = block.partition("\n") if re.match(r"# ?%%", block) else ("", "", block)
        if "[markdown]" in header:
            prose = "\n".join(re.sub(r"^# ?", "", line) for line in body.split("\n"))
            answer = re.search(r'answer="(\w+)"', header)
            cells.append(_Cell("markdown", prose.strip("\n"), answer and answer[1]))
        elif body.strip():
            only_comments = all(line.startswith("#") for line in body.strip().split("\n"))
            part = re.search(r'part="(\w+)"', header) if only_comments else None
            cells.append(
                _Cell("code", f'check("{part[1]}")' if part else body.strip("\n"), part and part[1])
            )
    return cells


class _Restorer:
    def __init__(
        self, assignment: Assignment, release: NotebookNode, notes: list[str], has_tests: bool
    ) -> None:
        self.has_tests = has_tests  # a .py has no test cells, so none can be missing
        self.parts = {part.name: part for part in assignment.parts}
        self.graded = assignment.points_in_nbgrader.keys()
        self.official = {
            cell.metadata.nbgrader.grade_id: cell
            for cell in release.cells
            if "nbgrader" in cell.metadata
        }
        self.prose = {cell.source for cell in release.cells if cell.cell_type == "markdown"}
        self.release = release
        self.notes: dict[str, list[str]] = {name: [] for name in self.parts}
        self.notes[next(iter(self.parts))] += notes
        self.cells: list[NotebookNode] = []

    def restore(self, handed_in: list[_Cell]) -> NotebookNode:
        homes = self._homes(handed_in)
        for index, cell in enumerate(handed_in):
            self._place(cell, homes.get(index))
        for name in self.official:
            if name in self.graded and name not in self._names():
                self._bring_back(name)
        self._note_moved()
        for index, (shown, name) in enumerate(zip(self.cells, self._names())):
            shown["id"] = hashlib.sha256(f"{index}".encode()).hexdigest()[:12]
            if notes := self.notes.get(name):
                shown.metadata[KEY] = {"notes": notes}
        restored = nbformat.v4.new_notebook(cells=self.cells, metadata=self.release.metadata)
        restored.nbformat_minor = 5
        return restored

    def _names(self) -> list[str]:
        """Return the name of each cell so far; empty for a cell that is the student's own."""
        return [cell.metadata.get("nbgrader", {}).get("grade_id", "") for cell in self.cells]

    def _homes(self, handed_in: list[_Cell]) -> dict[int, str]:
        """Map the student's cells to official ones: the first with the id, or else the first with the same code."""
        homes: dict[int, str] = {}
        for name in self.official:
            claims = [i for i, cell in enumerate(handed_in) if cell.grade_id == name]
            looks = [
                i for i, cell in enumerate(handed_in) if i not in homes and self._looks(cell, name)
            ]
            usable = [
                i
                for i in claims
                if i not in homes and (name in self.graded or handed_in[i].kind == "code")
            ]
            if usable or looks:
                homes[(usable or looks)[0]] = name
            if name in self.parts and len({*claims, *looks}) > 1:
                self.notes[name].append(
                    f"This test cell was there {len({*claims, *looks})} times. It counts once."
                )
        return homes

    def _looks(self, cell: _Cell, name: str) -> bool:
        if cell.kind != "code" or (cell.grade_id in self.official and cell.grade_id != name):
            return False
        if name in self.graded:
            return cell.test_of == name
        written = re.escape(name.removeprefix("write-"))
        return re.search(rf"(?m)^(class|def|async def) {written}\b", cell.source) is not None

    def _place(self, cell: _Cell, home: str | None) -> None:
        if home in self.parts:
            self._compare(cell, home)
            self.cells.append(deepcopy(self.official[home]))
        elif cell.test_of in self.parts and cell.kind == "code":
            return  # a copy of a test cell adds nothing
        else:
            if home in self.graded:
                cell.kind = "markdown"
            shown = _plain(cell, self.prose)
            if home is not None:
                shown.metadata["nbgrader"] = NotebookNode(self.official[home].metadata.nbgrader)
                shown.metadata["deletable"] = False
            self.cells.append(shown)

    def _compare(self, cell: _Cell, name: str) -> None:
        notes = self.notes[name]
        official = self.official[name]
        changed = cell.source.strip() != official.source.strip()
        if cell.kind != "code":
            notes.append(f"This test cell had become a {cell.kind} cell. It is code again.")
        elif changed:
            notes.append("This test cell had been changed. Its former text stands above it.")
        if changed:
            self.cells.append(_plain(cell, self.prose))
        if cell.tagged:
            notes.append("This test cell had tags. They change nothing.")

    def _bring_back(self, name: str) -> None:
        if self.has_tests and name in self.parts:
            self.notes[name].append("This test cell was missing. It counts all the same.")
        before = set(itertools.takewhile(lambda other: other != name, self.official))
        names = self._names()
        places = [index for index, other in enumerate(names) if other in before]
        self.cells.insert(places[-1] + 1 if places else len(names), deepcopy(self.official[name]))

    def _note_moved(self) -> None:
        order = list(self.official)
        furthest = -1
        for name in filter(self.parts.__contains__, self._names()):
            if order.index(name) < furthest:
                self.notes[name].append("This test cell had been moved. It counts all the same.")
            furthest = max(furthest, order.index(name))


def _plain(cell: _Cell, prose: set[str]) -> NotebookNode:
    """Return a cell reduced to its text; HTML and links in a student's prose are disabled."""
    source = _readable(cell.source[:MOST_LETTERS])
    if len(cell.source) > MOST_LETTERS:
        source += f"\n# {_NOT_SHOWN}"
    if cell.kind == "code":
        return nbformat.v4.new_code_cell(source)
    if cell.kind == "raw":
        return nbformat.v4.new_markdown_cell(_indented(source))
    if source not in prose:
        source = _disabled(source, cell.attachments)
    shown = nbformat.v4.new_markdown_cell(source)
    if cell.attachments:
        shown["attachments"] = cell.attachments
    return shown


def _disabled(source: str, attachments: Container[str]) -> str:
    """Return prose without active parts, other than the pictures that are attached: nbconvert stops at a missing one."""

    def split(match: re.Match[str]) -> str:
        attached = _ATTACHED.match(source, match.end())
        return "" if attached and attached[1] in attachments else "\N{ZERO WIDTH SPACE}"

    return _ACTIVE.sub(split, source)


def _indented(text: str) -> str:
    """Return a text as a block of code in Markdown: whatever a reader takes for the end of a line ends one."""
    return "\n".join(f"    {line}" for line in _readable(text[:MOST_LETTERS]).splitlines())


def _readable(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")
