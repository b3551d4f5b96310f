"""The lines of the journal, schema 2: what all grades by one suite have in common stands once in `suites/`.

`suites/<suite_sha256>.json` holds the name, part, title and maximum of each test, in order, and
whether it is hidden. A line of the journal lists only the tests that were not passed with full
points. If the tests of a grade are not those of this file, as after an update of the engine that
names them otherwise, its line lists all of them, with all facts.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import asdict, fields, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from autograder.gradebook.seals import seal
from autograder.records import Grade, TestResult, is_amount
from autograder.text.files import write_whole

FOLDER = "suites"
SCHEMA = 2
COMMON = ("name", "part", "title", "max_score", "hidden")
OWN = ("outcome", "score", "message", "hint", "mistake")
OPTIONAL = ("full_message", "to_try")
DIGEST = re.compile(r"[0-9a-f]{64}")

Tests = tuple[TestResult, ...]


class SuiteMissingError(ValueError):
    """The suite of a line cannot be read; `file` is where it belongs."""

    def __init__(self, file: Path) -> None:
        super().__init__(f"{file} is missing or cannot be read")
        self.file = file


class Suites:
    """Converts grades to lines and back; grades read here share equal results of tests."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / FOLDER
        self._passed: dict[str, Tests] = {}  # by suite_sha256

    def to_line(self, grade: Grade) -> str:
        """Return the line of a grade; writes the file of its suite first if there is none.

        Raises OSError.
        """
        passed = self._stored(grade)
        if passed is None:
            tests = [asdict(test) for test in grade.tests]
        else:
            tests = [
                _differences(test) for test, right in zip(grade.tests, passed) if test != right
            ]
        record = {field.name: getattr(grade, field.name) for field in fields(grade)}
        if not grade.graded_at:
            del record["graded_at"]
        return json.dumps(
            {"schema": SCHEMA, **record, "tests": tests}, ensure_ascii=False, separators=(",", ":")
        )

    def to_grade(self, line: str) -> Grade:
        """Parse a line; raises ValueError if it is invalid, SuiteMissingError without its suite."""
        try:
            record = json.loads(line)
            if record["schema"] != SCHEMA:
                raise ValueError("not a line of a journal: it has another schema")
            tests = record["tests"]
            if tests and "max_score" in tests[0]:
                return Grade.from_record(record)
            suite = str(record["suite_sha256"])
            passed = self._read(suite) if suite else ()
            return Grade.from_record(
                {**record, "tests": ()}, _with(passed, tests) if tests else passed
            )
        except (TypeError, KeyError, AttributeError, RecursionError) as error:
            raise ValueError(f"not a line of a journal: {error}") from None

    def _stored(self, grade: Grade) -> Tests | None:
        suite = grade.suite_sha256
        if not suite and not grade.tests:
            return ()
        if not grade.tests or not DIGEST.fullmatch(suite):
            return None
        passed = tuple(_passed(*(getattr(test, name) for name in COMMON)) for test in grade.tests)
        try:
            stored = self._read(suite)
        except SuiteMissingError:
            stored = None
        if stored is None:
            tests = [_facts(test, COMMON) for test in passed]
            record = {"schema": SCHEMA, "assignment": grade.assignment, "tests": tests}
            text = (json.dumps(record, ensure_ascii=False, indent=1) + "\n").encode(
                "utf-8", "replace"
            )
            seal(self._folder.parent, f"{FOLDER}/{self._file(suite).name}", text)
            write_whole(self._file(suite), text)
            self._passed[suite] = stored = passed
        return stored if stored == passed else None

    def _read(self, suite: str) -> Tests:
        if suite not in self._passed:
            try:
                tests = json.loads(self._file(suite).read_text("utf-8"))["tests"]
                if not all(is_amount(test["max_score"]) for test in tests):
                    raise ValueError("a maximum is not a number of points")
                self._passed[suite] = tuple(
                    _passed(*(test[name] for name in COMMON)) for test in tests
                )
            except (OSError, ValueError, TypeError, KeyError):
                raise SuiteMissingError(self._file(suite)) from None
        return self._passed[suite]

    def _file(self, suite: str) -> Path:
        return self._folder / f"{suite if DIGEST.fullmatch(suite) else 'unknown'}.json"


@lru_cache(maxsize=10_000)
def _passed(name: str, part: str, title: str, max_score: float, hidden: bool) -> TestResult:
    return TestResult(name, part, title, "passed", max_score, max_score, hidden=bool(hidden))


def _facts(test: TestResult, names: Iterable[str]) -> dict[str, Any]:
    return {name: getattr(test, name) for name in names}


def _differences(test: TestResult) -> dict[str, Any]:
    facts = _facts(test, ("name", *OWN))
    return facts | {name: value for name, value in _facts(test, OPTIONAL).items() if value}


def _with(passed: Tests, tests: Iterable[dict[str, Any]]) -> Tests:
    differing = {}
    for test in tests:
        differing[test["name"]] = (*(test[name] for name in OWN), *map(test.get, OPTIONAL))
    results = []
    for right in passed:
        values = differing.pop(right.name, None)
        results.append(right if values is None else _changed(right, *values))
    if differing:
        raise ValueError(f"the suite has no test {next(iter(differing))}")
    return tuple(results)


@lru_cache(maxsize=50_000, typed=True)
def _changed(right: TestResult, *values: Any) -> TestResult:
    return replace(right, **dict(zip((*OWN, *OPTIONAL), values)))
