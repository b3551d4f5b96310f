"""Build `hints.json` from the mistakes: each hint is encrypted with the answers of the code with the mistake.

The file holds no test, no mistake and no readable hint; nudges, and answers to the text's questions,
stand in it as they are. The locks are rebuilt only if the solution, the mistakes, the visible tests
or `ANSWERS_VERSION` changed: near a border, two computers can choose different grids for the same
answers.
"""

import ast
import hashlib
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autograder.authoring.catch import PROGRAMS_VERSION, opening, programs
from autograder.bridge.outside.local import load
from autograder.course.config import Assignment, Course, CourseError
from autograder.course.definitions import functions
from autograder.course.mistakes import Mistake
from autograder.course.mistakes_file import load_alternatives, load_mistakes
from autograder.course.nudges import load_nudges
from autograder.course.questions import load_questions
from autograder.records import InfrastructureError
from autograder.runs.pool import end_on_ctrl_c
from autograder.source.stub import ReleasedStub
from autograder.walls.outside.trusted_process import leave_current_folder, spawning

if TYPE_CHECKING:
    from autograder.selfcheck.locked_hints import Grids, MistakeHint, Recording
    from autograder.suite.session import Test

# Raise this when the same code leaves other answers in a transcript, or the same answers another
# fingerprint, and run `autograder build`: this rebuilds every hints.json. A test fails if it has to
# be raised.
ANSWERS_VERSION = 4
OPEN = ("stub", "points", "packages", "nudges", "questions")  # names in hints.json that need no run
ABOUT = "Questions that help with known mistakes. Each is locked by the answers of code that makes the mistake."


def hints_path(course: Course, assignment: Assignment) -> Path:
    return course.release_folder(assignment) / "hints.json"


def has_hints(course: Course, assignment: Assignment) -> bool:
    """Whether there are hints, answers or nudges; raises CourseError if they cannot be used."""
    questions = load_questions(course, assignment)
    nudges = load_nudges(course, assignment)
    return bool(load_mistakes(course, assignment) or questions or nudges)


def is_current(course: Course, assignment: Assignment, text: str) -> bool:
    """Whether this hints.json was built from the current course and not edited since."""
    try:
        record = json.loads(text)
        return bool(
            record["sources"] == _sources(course, assignment) and record["seal"] == _seal(record)
        )
    except (ValueError, KeyError, TypeError):
        return False


def with_stub(
    course: Course, assignment: Assignment, text: str, released: Mapping[Path, str]
) -> str:
    """Return hints.json with what is not locked: what tells a student's work from the released stub,
    the digest of the visible tests, the points, the packages that it needs, the nudges, and the questions of
    each part with their answers.
    """
    from autograder.selfcheck.locked_hints import digest_of_tests

    stub = ReleasedStub.of(
        assignment.stem, {file.name: source for file, source in released.items()}
    )
    record = {name: value for name, value in json.loads(text).items() if name not in OPEN}
    record["stub"] = stub.as_record()
    record["points"] = assignment.points
    tests = {file.name: source for file, source in released.items()}
    record["tests_sha256"] = digest_of_tests(tests[f"test_{assignment.stem}.py"])
    packages = {module.partition(".")[0] for module in assignment.preload} - {"torch"}
    if packages:
        record["packages"] = sorted(packages)
    if nudges := load_nudges(course, assignment):
        record["nudges"] = nudges
    if questions := load_questions(course, assignment):
        record["questions"] = questions
    return _sealed(record)


def make_all(course: Course, assignments: Sequence[Assignment]) -> dict[Path, str]:
    """Return the text of each assignment's hints.json, each made in a process of its own; raises CourseError."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        texts = pool.map(lambda assignment: _make_elsewhere(course, assignment), assignments)
        return {hints_path(course, a): text for a, text in zip(assignments, texts)}


def _make_elsewhere(course: Course, assignment: Assignment) -> str:
    with ProcessPoolExecutor(1, spawning(), initializer=_begin) as process:
        try:
            return process.submit(make, course, assignment).result()
        except (CourseError, InfrastructureError):
            raise
        except Exception as error:
            raise CourseError(
                f"The hints of {assignment.name} cannot be made: {error!r}."
            ) from error


def _begin() -> None:
    end_on_ctrl_c()
    os.environ["OMP_NUM_THREADS"] = "1"
    leave_current_folder()
    sys.stdout = sys.stderr  # what a solution prints is no output of the command


def make(course: Course, assignment: Assignment) -> str:
    """Return the text of hints.json; raises CourseError if a mistake or the suite cannot be used."""
    from autograder.selfcheck.locked_hints import SCHEMA

    entries, catch = survey(course, assignment)
    record: dict[str, Any] = {
        "schema": SCHEMA,
        "about": ABOUT,
        "assignment": assignment.name,
        "sources": _sources(course, assignment),
        "tests": entries,
        **({"catch": catch} if catch else {}),
    }
    return _sealed(record)


def survey(course: Course, assignment: Assignment) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the locked hints, by test and grid, and the locked programs to catch."""
    from autograder.grading.reference import import_needed
    from autograder.selfcheck.check import suite_of

    import_needed(assignment)
    with suite_of(course.visible_test_file(assignment)) as session:
        surveyed = _Survey(course, assignment, session)
        return surveyed.locked(), surveyed.locked_programs()


class _Entries:
    """Locked records by test, grid and storage key, as hints.json has them."""

    def __init__(self) -> None:
        self.by_test: dict[str, dict[str, dict[str, str]]] = {}

    def add(self, test: str, key: tuple["Grids", bytes], records: Sequence[Any]) -> None:
        """Lock records with a fingerprint; `key` is its grids and the fingerprint."""
        from autograder.selfcheck.locked_hints import grids_as_text, lock

        grids, fingerprint = key
        index, locked = lock(fingerprint, records)
        self.by_test.setdefault(test, {}).setdefault(grids_as_text(grids), {})[index] = locked


class _Survey:
    def __init__(self, course: Course, assignment: Assignment, session: Any) -> None:
        self.mistakes = load_mistakes(course, assignment)
        self._programs = programs(course, assignment)
        alternatives = load_alternatives(course, assignment) if self._programs else ()
        self._opening = opening(course)
        self._assignment = assignment
        self._session = session
        self._parts = {test.name: test.part for test in session.tests()}
        self._solution = course.read_solution(assignment)
        self._right_texts = [self._solution, *(text for _, text in alternatives)]
        self._functions = code_of_functions(self._solution)
        self._right = {
            test: recording.answers
            for test, recording in self._recordings(self._solution, session.tests())
        }

    def locked(self) -> dict[str, Any]:
        """Return the hints, each locked with the fingerprints of the answers of its mistake."""

        hints_by_lock: dict[tuple[str, Grids, bytes], list[MistakeHint]] = {}
        for number, mistake in enumerate(self.mistakes):
            recordings = list(self._recordings(mistake.source))
            hint = self._hint(number, tuple(test for test, _ in recordings))
            for key in self._fingerprints(recordings):
                hints_by_lock.setdefault(key, []).append(hint)
        entries = _Entries()
        for test, grids, fingerprint in sorted(hints_by_lock):
            records = hints_by_lock[test, grids, fingerprint]
            entries.add(test, (grids, fingerprint), records)
        return entries.by_test

    def _fingerprints(
        self, recordings: Iterable[tuple[str, "Recording"]]
    ) -> Iterator[tuple[str, "Grids", bytes]]:
        """Yield the test, the grids and the fingerprint of each test that a mistake fails with answers of its own."""
        from autograder.selfcheck.locked_hints import salt_of, steady_fingerprint

        for test, recording in recordings:
            salt = salt_of(self._assignment.name, test)
            key = (
                steady_fingerprint(salt, recording.answers, self._right[test])
                if recording.answers
                else None
            )
            if key is not None:
                yield test, *key

    def locked_programs(self) -> dict[str, Any]:
        """Lock each part's programs once, and their key with what code that passes the part
        answers: right code, and each known mistake that the part's visible tests do not see.
        """
        from autograder.selfcheck.locked_hints import key_of, lock, salt_of, steady_fingerprint

        if not self._programs:
            return {}
        keys: dict[str, bytes] = {}
        parts: dict[str, dict[str, str]] = {}
        for part, of_part in self._programs.items():
            records = [program.as_record() for program in of_part]
            keys[part] = key_of(self._assignment.name, records)
            parts[part] = dict([lock(keys[part], records)])
        entries = _Entries()
        for test, recording in self._passing_recordings():
            salt = salt_of(self._assignment.name, f"catch/{test}")
            key = steady_fingerprint(salt, recording.answers)
            if key is not None and recording.answers:
                entries.add(test, key, [keys[self._parts[test]].hex()])
        return {
            "parts": parts,
            "keys": entries.by_test,
            **({"from": self._opening} if self._opening else {}),
        }

    def _passing_recordings(self) -> Iterator[tuple[str, "Recording"]]:
        """Yield the answers of each text in the tests of the parts with programs that it passes."""
        tests = [test for test in self._session.tests() if test.part in self._programs]
        for text in [*self._right_texts, *(mistake.source for mistake in self.mistakes)]:
            recordings = list(self._recordings(text, tests))
            failed = {self._parts[test] for test, recording in recordings if recording.failed}
            for test, recording in recordings:
                if self._parts[test] not in failed:
                    yield test, recording

    def _recordings(
        self, text: str, tests: Sequence["Test"] | None = None
    ) -> Iterator[tuple[str, "Recording"]]:
        """Return the answers of a file in these tests, by default in those that it fails."""
        from autograder.selfcheck.check import failures, time_limit
        from autograder.selfcheck.locked_hints import recordings

        name = f"{self._assignment.stem}.py"
        with time_limit():
            module = load(text, name).module
        if tests is None:
            tests = failures(self._session, module)
        return recordings(self._session, module, tests)

    def _hint(self, number: int, fails: tuple[str, ...]) -> "MistakeHint":
        from autograder.selfcheck.locked_hints import MistakeHint

        mistake = self.mistakes[number]
        place = place_of(mistake, self._functions)
        return MistakeHint(mistake.id, mistake.title, mistake.hint, place, number, fails)


def place_of(mistake: Mistake, solution: Mapping[str, str]) -> str:
    """Return the function or method of the first difference from the solution's functions; "" outside of them."""
    wrong = code_of_functions(mistake.source)
    return next((name for name, code in solution.items() if wrong.get(name) != code), "")


def code_of_functions(source: str) -> dict[str, str]:
    """Return the syntax tree of each function and method as text, by qualified name."""
    return {name: ast.dump(node) for name, node in functions(ast.parse(source))}


def _sources(course: Course, assignment: Assignment) -> str:
    digest = hashlib.sha256(f"{assignment.name}\0{ANSWERS_VERSION}".encode())
    files = [
        course.solution_file(assignment),
        course.mistakes_file(assignment),
        course.visible_test_file(assignment),
    ]
    if course.catch_file(assignment).is_file():
        digest.update(f"{PROGRAMS_VERSION}{course.catch is not False}{opening(course)}".encode())
        files += [course.catch_file(assignment), *course.alternatives(assignment)]
    for file in files:
        if file.is_file():
            digest.update(b"\0" + file.read_bytes().replace(b"\r\n", b"\n"))
    return digest.hexdigest()


def _sealed(record: dict[str, Any]) -> str:
    return json.dumps({**record, "seal": _seal(record)}, indent=1, sort_keys=True) + "\n"


def _seal(record: dict[str, Any]) -> str:
    kept = {key: value for key, value in record.items() if key != "seal"}
    return hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()
