"""From mistakes to `hints.json`: each hint locked by the answers of the code that makes the mistake.

The file holds no test, no mistake and no readable hint. It is made again only when the solution, the mistakes, the
visible tests or the engine's way of answering changed: near a border, two computers might choose different grids for
the same answers.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autograder.authoring.mistakes import Mistake, load_mistakes
from autograder.course import Assignment, Course, CourseError, load_course

if TYPE_CHECKING:
    from autograder.clues import Testimony

ANSWERING = (
    "clues.py",
    "sandbox/worker.py",
    "student/connection.py",
    "student/graphs.py",
    "student/remote.py",
    "student/transcript.py",
)
SECONDS = 300
FOUND = 1
ABOUT = (
    "Questions that help with known mistakes. Each is locked by the answers of code that makes the mistake."
)


@dataclass(frozen=True)
class Coverage:
    """How one mistake meets the visible tests: those it fails, and those of them that have a clue about it."""

    mistake: str
    failed: tuple[str, ...]
    clued: tuple[str, ...]


def clues_file(course: Course, assignment: Assignment) -> Path:
    return course.release_folder(assignment) / "hints.json"


def has_clues(course: Course, assignment: Assignment) -> bool:
    """Whether there are mistakes to give hints about; raises MistakesError when they cannot be used."""
    return course.mistakes_file(assignment).is_file() and bool(load_mistakes(course, assignment))


def is_current(course: Course, assignment: Assignment, text: str) -> bool:
    """Whether this hints.json was made from what the course holds now, and nobody changed it since."""
    try:
        record = json.loads(text)
        return record["sources"] == _sources(course, assignment) and record["seal"] == _seal(record)
    except (ValueError, KeyError, TypeError):
        return False


def make_all(course: Course, assignments: Sequence[Assignment]) -> dict[Path, str]:
    """The text of each assignment's hints.json; several processes run the mistakes.

    Raises CourseError when a mistake or a suite cannot be used.
    """
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        texts = pool.map(lambda assignment: _make_elsewhere(course, assignment), assignments)
        return {clues_file(course, a): text for a, text in zip(assignments, texts)}


def _make_elsewhere(course: Course, assignment: Assignment) -> str:
    command = [sys.executable, "-m", __name__, str(course.root), assignment.name]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONIOENCODING": "utf-8"}
    try:
        done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8",
                              env=environment, timeout=SECONDS)  # fmt: skip
    except subprocess.TimeoutExpired:
        raise CourseError(
            f"The mistakes of {assignment.name} do not finish within {SECONDS} seconds."
        ) from None
    if done.returncode == FOUND:
        raise CourseError(done.stderr.strip().splitlines())
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise CourseError(
            f"The hints of {assignment.name} cannot be made: Python stopped with exit code {done.returncode} ({last})."
        )
    return done.stdout


def make(course: Course, assignment: Assignment) -> str:
    """The text of hints.json; raises CourseError when a mistake or the suite cannot be used."""
    entries, _ = survey(course, assignment)
    record: dict[str, Any] = {
        "schema": 1,
        "about": ABOUT,
        "assignment": assignment.name,
        "sources": _sources(course, assignment),
        "tests": entries,
    }
    record["seal"] = _seal(record)
    return json.dumps(record, indent=1, sort_keys=True) + "\n"


def survey(course: Course, assignment: Assignment) -> tuple[dict[str, Any], tuple[Coverage, ...]]:
    """The locked clues by test and grid, and how each mistake is covered."""
    from autograder.self_check import suite_of
    from autograder.stage import import_needed

    import_needed(assignment)
    with suite_of(course.visible_test_file(assignment)) as session:
        found = _Survey(course, assignment, session)
        coverage = tuple(found.cover(number) for number in range(len(found.mistakes)))
        return found.locked(), coverage


class _Survey:
    """Mistakes take the visible tests; `_keys` gathers which of them leave which fingerprint."""

    def __init__(self, course: Course, assignment: Assignment, session: Any) -> None:
        self.mistakes = load_mistakes(course, assignment)
        self._assignment, self._session = assignment, session
        self._solution = course.solution_file(assignment).read_text("utf-8-sig")
        self._right = {test: told.answers for test, told in self._testimonies(self._solution, every=True)}
        self._keys: dict[tuple[str, int, bytes], list[int]] = {}

    def cover(self, number: int) -> Coverage:
        """Let one mistake take the tests that it fails."""
        from autograder.clues import salt_of, steady_fingerprint

        failed, clued = [], []
        for test, told in self._testimonies(self.mistakes[number].source):
            failed.append(test)
            salt = salt_of(self._assignment.name, test)
            key = steady_fingerprint(salt, told.answers, self._right[test]) if told.answers else None
            if key is not None:
                clued.append(test)
                self._keys.setdefault((test, *key), []).append(number)
        return Coverage(self.mistakes[number].id, tuple(failed), tuple(clued))

    def locked(self) -> dict[str, Any]:
        from autograder.clues import lock

        entries: dict[str, dict[str, dict[str, str]]] = {}
        for (test, grid, fingerprint), numbers in sorted(self._keys.items()):
            index, text = lock(fingerprint, [self._clue(number) for number in numbers])
            entries.setdefault(test, {}).setdefault(str(grid), {})[index] = text
        return entries

    def _testimonies(self, text: str, every: bool = False) -> Iterator[tuple[str, Testimony]]:
        """What a file answers in the tests that it fails, or in all of them."""
        from autograder.clues import Witness, take
        from autograder.scene import uses_in
        from autograder.self_check import SEED, failures
        from autograder.work import run_text

        name = f"{self._assignment.stem}.py"
        module, uses = run_text(text, name).module, uses_in(text, name)
        tests = self._session.tests() if every else failures(self._session, module, uses)
        witness = Witness(module)
        self._session.start(SEED)
        for test in tests:
            yield test.name, take(self._session, test, witness, uses)

    def _clue(self, number: int) -> Any:
        from autograder.clues import Clue

        mistake = self.mistakes[number]
        return Clue(mistake.id, mistake.title, mistake.hint, place_of(mistake, self._solution), number)


def place_of(mistake: Mistake, solution: str) -> str:
    """The function or method in which a mistake first differs from the solution; empty when it is in none."""
    right = {name: ast.dump(node) for name, node in functions_of(ast.parse(solution))}
    wrong = {name: ast.dump(node) for name, node in functions_of(ast.parse(mistake.source))}
    return next((name for name, code in right.items() if wrong.get(name) != code), "")


def functions_of(tree: ast.AST, around: Sequence[str] = ()) -> Iterator[tuple[str, ast.AST]]:
    """The functions of a module and the methods of its classes, by their qualified names."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef):
            yield from functions_of(node, (*around, node.name))
        elif isinstance(node, ast.FunctionDef):
            yield ".".join((*around, node.name)), node


def _sources(course: Course, assignment: Assignment) -> str:
    digest = hashlib.sha256(f"{assignment.name}\0{_way_of_answering()}".encode())
    for file in (
        course.solution_file(assignment),
        course.mistakes_file(assignment),
        course.visible_test_file(assignment),
    ):
        digest.update(b"\0" + file.read_bytes().replace(b"\r\n", b"\n"))
    return digest.hexdigest()


@cache
def _way_of_answering() -> str:
    """A digest of the engine's code that gives, carries and records answers; comments and layout do not count."""
    digest = hashlib.sha256()
    for name in ANSWERING:
        text = resources.files("autograder").joinpath(name).read_text("utf-8")
        lines = (line.strip() for line in text.splitlines())
        digest.update("\n".join(line for line in lines if line and not line.startswith("#")).encode())
    return digest.hexdigest()


def _seal(record: dict[str, Any]) -> str:
    kept = {key: value for key, value in record.items() if key != "seal"}
    return hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()


def main(folder: str, name: str) -> int:
    """Print one assignment's hints.json: how `make_all` keeps what a solution does out of its own process."""
    try:
        with contextlib.redirect_stdout(sys.stderr):
            course = load_course(folder)
            text = make(course, course.assignment(name))
    except CourseError as error:
        print(error, file=sys.stderr)
        return FOUND
    print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
