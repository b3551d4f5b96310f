"""Build the students' files in `assignments/NAME/` from the solutions; they are never edited by hand.

`build` writes; `check` reports files that are stale, left over or reveal secrets. Equal sources
give equal bytes on every machine.
"""

import difflib
import json
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

from autograder.authoring.checked import due, remember
from autograder.authoring.hints_file import has_hints, hints_path, is_current, make_all, with_stub
from autograder.authoring.leaks import leaks
from autograder.authoring.minutes import other_minutes
from autograder.authoring.promises import broken_promises, other_titles
from autograder.authoring.recorded_tests import stale_record
from autograder.authoring.released import files_below, is_by_the_way, released
from autograder.authoring.template import filled
from autograder.course.config import Assignment, Course, CourseError
from autograder.course.document import load_document
from autograder.grading.preparation import check_suites
from autograder.text.files import write_whole

_IMPORT_SECONDS = 120


def build(course: Course, names: Iterable[str] | None = None) -> list[Path]:
    """Write and return the files of these assignments (all for None); raises CourseError before it writes anything."""
    assignments = course.select(names)
    texts = _texts(course, assignments)
    with_hints = [a for a in assignments if has_hints(course, a)]
    hints_made = make_all(course, [a for a in with_hints if not _made(course, a)])
    for assignment in with_hints:
        path = hints_path(course, assignment)
        text = with_stub(
            course,
            assignment,
            hints_made.get(path) or path.read_text("utf-8"),
            _released(course, assignment, texts),
        )
        if path in hints_made or text != path.read_text("utf-8"):
            texts[path] = text
    for file, text in texts.items():
        write_whole(file, text)
    return sorted({*texts, *(hints_path(course, a) for a in with_hints)})


def check(course: Course, names: Iterable[str] | None = None) -> list[str]:
    """Return the problems of the released files of the named assignments (all for None); empty if there are none.

    Stale files are reported as unified diffs. Files that no build writes, leaks (see `leaks`),
    promises that the stub does not make, minutes that the formula does not give, a record of
    failing tests that is out of date, stubs that cannot be imported, and gaps without their TODO or
    NotImplementedError are reported as sentences. Raises CourseError like `build`. Assignments that
    did not change since they had no problem are left out, but for one that is derived again (see
    `checked`).
    """
    to_check = due(course, course.select(names))
    assignments = course.select(to_check.digests)
    texts = _texts(course, assignments)
    differences = [_stale(course, file, text) for file, text in texts.items()]
    problems = [difference for difference in differences if difference]
    with_hints = [a for a in assignments if has_hints(course, a)]
    problems += [_stale_hints(course, a) for a in with_hints if not _is_whole(course, a, texts)]
    built = {*texts, *(hints_path(course, a) for a in with_hints)}
    problems += _left_over(course, assignments, built, everything=names is None)
    for assignment in assignments:
        problems += leaks(course, assignment, texts)
        problems += broken_promises(course, assignment)
        problems += other_titles(course, assignment)
        problems += other_minutes(course, assignment)
        problems += stale_record(course, assignment)
        problems += _unwritten_gaps(course, assignment)
    changed = [a for a in assignments if a.name in to_check.changed]
    problems += _import_problems(course, map(course.stub_file, changed), texts)
    if not problems:
        remember(course, to_check.digests)
    return problems


def _texts(course: Course, assignments: Collection[Assignment]) -> dict[Path, str]:
    """Return every released file with its text.

    Raises CourseError with the problems of all assignments, and of their suites as grading does.
    """
    texts: dict[Path, str] = {}
    problems: list[str] = []
    for assignment in assignments:
        try:
            texts |= released(course, assignment)
        except CourseError as error:
            problems += error.problems
    if problems:
        raise CourseError(problems)
    if assignments:
        check_suites(course, assignments)
    return texts


def _made(course: Course, assignment: Assignment) -> bool:
    """Whether the locked hints are up to date; creating them runs every mistake."""
    file = hints_path(course, assignment)
    return file.is_file() and is_current(
        course, assignment, file.read_bytes().decode("utf-8", "replace")
    )


def _is_whole(course: Course, assignment: Assignment, texts: Mapping[Path, str]) -> bool:
    """Whether the locked hints are up to date, with what tells work from the stub."""
    if not _made(course, assignment):
        return False
    text = hints_path(course, assignment).read_text("utf-8")
    return with_stub(course, assignment, text, _released(course, assignment, texts)) == text


def _released(course: Course, assignment: Assignment, texts: Mapping[Path, str]) -> dict[Path, str]:
    folder = course.release_folder(assignment)
    return {file: text for file, text in texts.items() if file.parent == folder}


def _stale_hints(course: Course, assignment: Assignment) -> str:
    file = hints_path(course, assignment)
    what = (
        "was made from other mistakes, tests, solution or engine"
        if file.is_file()
        else "is missing"
    )
    return f"{course.label(file)} {what}; run `autograder build {assignment.name}`."


def _stale(course: Course, file: Path, text: str) -> str | None:
    label = course.label(file)
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
    """Return files that no build writes and, for the whole course, folders without an assignment."""
    left_over: list[Path] = []
    for assignment in assignments:
        files = files_below(course.release_folder(assignment))
        left_over += [file for file in files if file not in built]
    if everything:
        names = {a.name for a in course.assignments}
        folder = course.root / "assignments"
        entries = sorted(folder.iterdir()) if folder.is_dir() else []
        entries = [entry for entry in entries if entry.name not in {*names, "README.md"}]
        left_over += [
            entry for entry in entries if not is_by_the_way(entry.relative_to(folder), names)
        ]
    return [f"{course.label(file)} is not written by the build; remove it." for file in left_over]


def _unwritten_gaps(course: Course, assignment: Assignment) -> Iterator[str]:
    """Yield gaps that the stub on disk does not leave to the student."""
    file = course.stub_file(assignment)
    if not file.is_file():
        return
    shown = {
        line.strip() for line in file.read_text(encoding="utf-8", errors="replace").splitlines()
    }
    for gap in load_document(course, assignment).gaps:
        if gap.stub_line.strip() not in shown:
            yield f"{course.label(file)}: the gap of `{gap.function}` has no NotImplementedError."
        if not shown.issuperset(gap.todo):
            yield f"{course.label(file)}: the gap of `{gap.function}` has no TODO."


def _import_problems(course: Course, stubs: Iterable[Path], texts: dict[Path, str]) -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        labels: dict[str, str] = {}
        for stub in stubs:
            copy = Path(folder) / stub.parent.name / stub.name
            copy.parent.mkdir()
            copy.write_text(texts[stub], encoding="utf-8")
            for file, text in texts.items():
                if file.parent == stub.parent and file.suffix == ".py" and file != stub:
                    copy.with_name(file.name).write_text(text, encoding="utf-8")
            labels[str(copy)] = course.label(stub)
        if not labels:
            return []
        command = [sys.executable, "-I", "-c", filled("import_stubs.py"), *labels]
        try:
            process = subprocess.run(
                command, cwd=folder, capture_output=True, text=True, timeout=_IMPORT_SECONDS
            )
            problems_by_file = json.loads(process.stdout)
        except subprocess.TimeoutExpired:
            return [f"The stubs cannot be imported within {_IMPORT_SECONDS} seconds."]
        except ValueError:
            return [
                f"The stubs cannot be imported: Python stopped with exit code {process.returncode}."
            ]
    return [
        f"{labels[copy]} cannot be imported: {error}" for copy, error in problems_by_file.items()
    ]
