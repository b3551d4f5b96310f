"""From solutions to what students receive: `assignments/NAME/` is built, never written by hand.

`build` writes; `check` says what is stale, left over or gives something away. The same sources give the
same bytes on every machine.
"""

from __future__ import annotations

import ast
import builtins
import difflib
import hashlib
import io
import json
import keyword
import re
import subprocess
import sys
import tempfile
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import jupytext
import nbformat
from nbformat import NotebookNode

from autograder.authoring.hints_file import has_hints, hints_path, is_current, make_all
from autograder.course.config import Assignment, Course, CourseError
from autograder.course.document import BEGIN, PERCENT, UNWRITTEN, Document, load_document

SETUP = "from autograder.notebook import check, picture"

_CACHES = ("__pycache__", ".ipynb_checkpoints", ".pytest_cache")
_DEMONSTRATION = 'if __name__ == "__main__":'
_SECRET_LENGTH = 12
_IMPORT_SECONDS = 120
_IMPORT_STUBS = """
import json, pathlib, runpy, sys
sys.stdout, answer = sys.stderr, sys.stdout
problems = {}
for file in sys.argv[1:]:
    try:
        runpy.run_path(file, run_name=pathlib.Path(file).stem)
    except BaseException as error:
        problems[file] = f"{type(error).__name__}: {error}"
json.dump(problems, answer)
"""


def build(course: Course, names: Iterable[str] | None = None) -> list[Path]:
    """Writes what students receive of the named assignments (all for None); returns the files, sorted.

    Raises CourseError, having written nothing, when a document or a file of a suite is wrong or missing.
    """
    assignments = course.select(names)
    texts = _texts(course, assignments)
    texts |= make_all(course, [a for a in assignments if has_hints(course, a) and not _made(course, a)])
    for file, text in texts.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode("utf-8"))
    return sorted({*texts, *(hints_path(course, a) for a in assignments if has_hints(course, a))})


def check(course: Course, names: Iterable[str] | None = None) -> list[str]:
    """What is wrong with the released files of the named assignments (all for None); nothing when empty.

    Stale files come as unified diffs; files that no build writes, leaks (see `leaks`), stubs that
    cannot be imported and gaps without their TODO or NotImplementedError come as sentences. Raises
    CourseError like `build`.
    """
    assignments = course.select(names)
    texts = _texts(course, assignments)
    problems = [diff for file, text in texts.items() if (diff := _stale(course, file, text))]
    with_hints = [a for a in assignments if has_hints(course, a)]
    problems += [_stale_hints(course, a) for a in with_hints if not _made(course, a)]
    built = {*texts, *(hints_path(course, a) for a in with_hints)}
    problems += _left_over(course, assignments, built, everything=names is None)
    for assignment in assignments:
        problems += leaks(course, assignment, texts)
        problems += _unwritten_gaps(course, assignment)
    return problems + _import_problems(course, map(course.stub_file, assignments), texts)


def to_notebook(assignment: Assignment, text: str) -> NotebookNode:
    """A document (a stub or a solution) as a notebook with nbgrader's metadata and fixed cell ids.

    Cells in which students write may be edited but not deleted; each part has one locked test cell;
    prose and given code carry no nbgrader metadata.
    """
    cells = [nbformat.v4.new_code_cell(SETUP)]
    for cell in jupytext.reads(text, PERCENT).cells:
        cells.append(_notebook_cell(assignment, cell))
    keys = [cell.metadata.get("nbgrader", {}).get("grade_id", str(i)) for i, cell in enumerate(cells)]
    for cell, key in zip(cells, keys, strict=True):
        cell["id"] = hashlib.sha256(f"{assignment.name}/{key}".encode()).hexdigest()[:12]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    notebook = nbformat.v4.new_notebook(
        cells=cells, metadata={"kernelspec": kernel, "language_info": {"name": "python"}}
    )
    notebook.nbformat_minor = 5
    nbformat.validate(notebook)
    return notebook


def _texts(course: Course, assignments: Iterable[Assignment]) -> dict[Path, str]:
    """Every released file and its text; raises CourseError with the problems of all assignments."""
    texts: dict[Path, str] = {}
    problems: list[str] = []
    for assignment in assignments:
        try:
            texts |= released(course, assignment)
        except CourseError as error:
            problems += error.problems
    if problems:
        raise CourseError(problems)
    return texts


def released(course: Course, assignment: Assignment) -> dict[Path, str]:
    """Every file that students receive of an assignment and its text; raises CourseError like `build`."""
    document = load_document(course, assignment)
    texts = {
        course.stub_file(assignment): document.stub,
        course.notebook_file(assignment): nbformat.writes(to_notebook(assignment, document.stub)).rstrip()
        + "\n",
        course.released_test_file(assignment): _suite_text(course, course.visible_test_file(assignment)),
    }
    if course.pictures_file(assignment).exists():
        texts[course.released_pictures_file(assignment)] = _suite_text(
            course, course.pictures_file(assignment)
        )
    elif any(cell.kind == "picture" for cell in document.cells):
        missing = _relative(course, course.pictures_file(assignment))
        raise CourseError(f"{document.label} has a cell for a picture, but there is no {missing}.")
    return texts


def _suite_text(course: Course, file: Path) -> str:
    label = _relative(course, file)
    try:
        text = file.read_text(encoding="utf-8")
        ast.parse(text)
    except FileNotFoundError:
        raise CourseError(f"{label} is missing; students receive it.") from None
    except UnicodeDecodeError as error:
        raise CourseError(f"{label} is not UTF-8 text (byte {error.start + 1}).") from None
    except SyntaxError as error:
        raise CourseError(f"{label}, line {error.lineno}: this is not Python: {error.msg}.") from None
    return text.rstrip() + "\n"


# -- the notebook ---------------------------------------------------------------------------------


def _notebook_cell(assignment: Assignment, cell: NotebookNode) -> NotebookNode:
    part, picture = cell.metadata.get("part"), cell.metadata.get("picture")
    if part is not None:
        return _test_cell(part, assignment.part(part).points)
    if picture is not None:
        return nbformat.v4.new_code_cell(f'picture("{picture}")')
    new = {
        "markdown": nbformat.v4.new_markdown_cell,
        "code": nbformat.v4.new_code_cell,
        "raw": nbformat.v4.new_raw_cell,
    }[cell.cell_type]
    tags = [*cell.metadata.get("tags", []), *_may_fail(cell)]
    written = new(cell.source, metadata={"tags": tags} if tags else {})
    function = _first_gap(cell.source) if cell.cell_type == "code" else None
    if function:
        written.metadata["deletable"] = False
        _add_nbgrader(written, f"write-{function}", grade=False)
    return written


def _may_fail(cell: NotebookNode) -> list[str]:
    """The tag that lets a notebook go on after a demonstration of what may not be written yet."""
    return ["raises-exception"] if cell.cell_type == "code" and _DEMONSTRATION in cell.source else []


def _first_gap(source: str) -> str | None:
    """The outermost name around the cell's first gap, in a stub or in a solution."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            code = ast.get_source_segment(source, node) or ""
            if UNWRITTEN in code or BEGIN in code:
                return node.name
    return None


def _test_cell(part: str, points: float) -> NotebookNode:
    cell = nbformat.v4.new_code_cell(f'check("{part}")', metadata={"deletable": False, "editable": False})
    _add_nbgrader(cell, part, grade=True, points=int(points) if points == int(points) else points)
    return cell


def _add_nbgrader(cell: NotebookNode, grade_id: str, grade: bool, points: float | None = None) -> None:
    metadata: dict[str, Any] = {
        "cell_type": cell.cell_type,
        "checksum": _checksum(cell, grade_id, grade, points),
        "grade": grade,
        "grade_id": grade_id,
        "locked": grade,
        "schema_version": 3,
        "solution": not grade,
        "task": False,
    }
    if points is not None:
        metadata["points"] = points
    cell.metadata["nbgrader"] = NotebookNode(metadata)


def _checksum(cell: NotebookNode, grade_id: str, grade: bool, points: float | None) -> str:
    """nbgrader's own checksum: an unchanged solution cell is recognised as "no response"."""
    facts = [cell.source, cell.cell_type, grade, not grade, grade, grade_id]
    facts += [] if points is None else [float(points)]
    return hashlib.md5("".join(map(str, facts)).encode(), usedforsecurity=False).hexdigest()


# -- clues ----------------------------------------------------------------------------------------


def _made(course: Course, assignment: Assignment) -> bool:
    """Whether the locked hints need not be made anew; that runs every mistake."""
    file = hints_path(course, assignment)
    return file.is_file() and is_current(course, assignment, file.read_bytes().decode("utf-8", "replace"))


def _stale_hints(course: Course, assignment: Assignment) -> str:
    file = hints_path(course, assignment)
    what = "was made from other mistakes, tests, solution or engine" if file.is_file() else "is missing"
    return f"{_relative(course, file)} {what}; run `autograder build {assignment.name}`."


# -- what may be wrong ----------------------------------------------------------------------------


def _relative(course: Course, file: Path) -> str:
    return file.relative_to(course.root).as_posix()


def _stale(course: Course, file: Path, text: str) -> str | None:
    label = _relative(course, file)
    try:
        current = file.read_bytes().decode("utf-8", errors="replace")
    except FileNotFoundError:
        return f"{label} is missing; run `autograder build`."
    diff = difflib.unified_diff(
        current.splitlines(keepends=True),
        text.splitlines(keepends=True),
        f"{label} (as it is)",
        f"{label} (as built)",
    )
    return "".join(diff) or None


def _left_over(
    course: Course, assignments: Iterable[Assignment], built: set[Path], everything: bool
) -> list[str]:
    """Files that no build writes, and, when the whole course is checked, folders of no assignment."""
    found = [file for a in assignments for file in _files(course.release_folder(a)) if file not in built]
    if everything:
        known = {a.name for a in course.assignments}
        folder = course.root / "assignments"
        entries = sorted(folder.iterdir()) if folder.is_dir() else []
        found += [e for e in entries if e.name not in {*known, "README.md", *_CACHES}]
    return [f"{_relative(course, file)} is not written by the build; remove it." for file in found]


def _files(folder: Path) -> list[Path]:
    files = (file for file in folder.rglob("*") if file.is_file() or file.is_symlink())
    return sorted(file for file in files if not set(_CACHES) & set(file.relative_to(folder).parts))


def _unwritten_gaps(course: Course, assignment: Assignment) -> Iterator[str]:
    """Gaps that the stub on disk does not leave to the student."""
    file = course.stub_file(assignment)
    if not file.is_file():
        return
    shown = {line.strip() for line in file.read_text(encoding="utf-8", errors="replace").splitlines()}
    for gap in load_document(course, assignment).gaps:
        if gap.stub_line.strip() not in shown:
            yield f"{_relative(course, file)}: the gap of `{gap.function}` has no NotImplementedError."
        if not shown.issuperset(gap.todo):
            yield f"{_relative(course, file)}: the gap of `{gap.function}` has lost its TODO."


def _import_problems(course: Course, stubs: Iterable[Path], texts: dict[Path, str]) -> list[str]:
    """Imports the stubs as built, all in one other process, and says which of them cannot be imported."""
    with tempfile.TemporaryDirectory() as folder:
        labels: dict[str, str] = {}
        for stub in stubs:
            copy = Path(folder) / stub.parent.name / stub.name
            copy.parent.mkdir()
            copy.write_text(texts[stub], encoding="utf-8")
            labels[str(copy)] = _relative(course, stub)
        command = [sys.executable, "-I", "-c", _IMPORT_STUBS, *labels]
        try:
            process = subprocess.run(
                command, cwd=folder, capture_output=True, text=True, timeout=_IMPORT_SECONDS
            )
            found = json.loads(process.stdout)
        except subprocess.TimeoutExpired:
            return [f"The stubs cannot be imported within {_IMPORT_SECONDS} seconds."]
        except ValueError:
            return [f"The stubs cannot be imported: Python stopped with exit code {process.returncode}."]
    return [f"{labels[copy]} cannot be imported: {error}" for copy, error in found.items()]


# -- leaks ----------------------------------------------------------------------------------------


def leaks(course: Course, assignment: Assignment, texts: dict[Path, str] | None = None) -> list[str]:
    """What the released files of an assignment give away, one sentence a leak.

    Looked at: the files as they would be built now and as they are on disk, extra files, too.

    A hidden test's name is a leak wherever it stands. A line between the markers of a gap is a leak when
    its code, without comment and spaces, is found within any released line. Lines that could stand
    anywhere are left out: those with fewer than twelve characters of code (`return x`, `else:`, `)`),
    those with fewer than two names that are neither Python's nor an imported one (`raise ValueError(`,
    `with torch.no_grad():`, `self.size = size`), and those that the author's given code has, too, outside every gap.
    """
    shown = _released_texts(course, assignment, texts or released(course, assignment))
    return gives_away(course, assignment, shown)


def gives_away(course: Course, assignment: Assignment, texts: Iterable[tuple[str, str]]) -> list[str]:
    """What texts, each with its name, give away of an assignment; `leaks` says what counts as that."""
    document = load_document(course, assignment)
    secrets = _secrets(document)
    hidden = [re.compile(rf"\b{name}\b") for name in _hidden_tests(course, assignment)]
    found: dict[str, None] = {}
    for label, text in texts:
        shown = [_squeezed(line) for line in _strings(label, text)]
        for secret, line in secrets.items():
            if any(secret in other for other in shown):
                code = document.text.split("\n")[line - 1].strip()
                found[f"{label} gives away line {line} of {document.label}: {code}"] = None
        for name in hidden:
            if match := name.search(text):
                found[f"{label} names the hidden test `{match[0]}`."] = None
    return list(found)


def _secrets(document: Document) -> dict[str, int]:
    """The code of the gaps, squeezed, with its line numbers; without what could stand anywhere."""
    code = _code_lines(document.text)
    inside = {line for gap in document.gaps for line in range(gap.begin, gap.end + 1)}
    given = [_squeezed(text) for line, text in code.items() if line not in inside]
    common = {"self", *keyword.kwlist, *dir(builtins), *_imported_names(document)}
    secrets: dict[str, int] = {}
    for line in sorted(inside & set(code)):
        text = _squeezed(code[line])
        names = set(re.findall(r"[^\W\d]\w*", code[line])) - common
        if len(text) >= _SECRET_LENGTH and len(names) >= 2 and not any(text in other for other in given):
            secrets.setdefault(text, line)
    return secrets


def _code_lines(text: str) -> dict[int, str]:
    """The code of each line; comments, docstrings and lines without code left out."""
    lines = text.split("\n")
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            lines[node.lineno - 1 : node.end_lineno] = [""] * len(lines[node.lineno - 1 : node.end_lineno])
    return {number: line for number, line in enumerate(lines, start=1) if line.strip()}


def _imported_names(document: Document) -> Iterator[str]:
    for node in ast.parse(document.text).body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                yield alias.asname or alias.name


def _squeezed(line: str) -> str:
    return "".join(line.split()).replace("'", '"')


def _hidden_tests(course: Course, assignment: Assignment) -> list[str]:
    file = course.hidden_test_file(assignment)
    if not file.is_file():
        return []
    tree = ast.parse(_suite_text(course, file))
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    return [function.name for function in functions if function.name.startswith("test_")]


def _released_texts(
    course: Course, assignment: Assignment, texts: dict[Path, str]
) -> Iterator[tuple[str, str]]:
    folder = course.release_folder(assignment)
    for file, text in texts.items():
        if file.parent == folder:
            yield _relative(course, file), text
    for file in _files(folder):
        text = file.read_bytes().decode("utf-8", errors="replace")
        if text != texts.get(file):
            yield _relative(course, file), text


def _strings(label: str, text: str) -> list[str]:
    """The lines a reader sees: those of the file, or of all strings inside a notebook."""
    if not label.endswith(".ipynb"):
        return text.splitlines()
    try:
        return [line for string in _walk(json.loads(text)) for line in string.splitlines()]
    except ValueError:
        return text.splitlines()


def _walk(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _walk(item)
