"""Classroom 50: `result.json`, which its runner reads after `autograder.py` has run in a student's checkout.

The runner's environment variables identify the student. Its points are integers, so all points are
multiplied by a common factor. It marks lateness itself, so the raw scores are exported.
"""

import json
import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timezone
from fractions import Fraction
from pathlib import Path
from typing import Any

from autograder.extras.lms.exports import Exported, Exporter, ExportRequest
from autograder.records import Grade, RefusedError
from autograder.text.names import safe_name
from autograder.text.wording import counted_are

SCHEMA = "classroom50/result/v1"
FILE_NAME = "result.json"
FOLDER = "classroom50"
FINEST = 1000  # the maximum factor


class Classroom50Export(Exporter):
    """Results for the runner of Classroom 50."""

    is_for_students = True

    def export(self, request: ExportRequest) -> Exported:
        """Write `result.json`, or a folder of them for several grades.

        Raises RefusedError if there is no grade.
        """
        grades = request.wanted
        if not grades:
            raise RefusedError("There are no grades to export.")
        alone = len(grades) == 1
        place = request.output or Path(FILE_NAME if alone else FOLDER)
        for grade in grades:
            record = result(request, grade, os.environ if alone else {})
            data = (
                json.dumps(record, ensure_ascii=False, indent=2 if alone else None) + "\n"
            ).encode()
            path = (
                place if alone else place / safe_name(grade.student) / grade.assignment / FILE_NAME
            )
            replace(request, output=path, written=[]).write(FILE_NAME, data, mark=SCHEMA.encode())
        request.written.append(place)
        if alone and os.environ.get("SUBMISSION_TAG"):
            return Exported(f"The result is in {place}.")
        sentence = "Without a runner of Classroom 50 around, commit and release are not known."
        return Exported(f"{counted_are(len(grades), 'result')} in {place}. {sentence}")


def result(request: ExportRequest, grade: Grade, runner: Mapping[str, str]) -> dict[str, Any]:
    """Return the record of one grade; `runner` are the environment variables of the runner."""
    now = datetime.now(timezone.utc)
    tests = _tests(grade, scale(test.max_score for test in grade.tests))
    collected = request.collected.get(grade.key)
    commit = runner.get("COMMIT_URL", "")
    return {
        "schema": SCHEMA,
        "classroom": runner.get("CLASSROOM", ""),
        "assignment": runner.get("ASSIGNMENT") or grade.assignment,
        "assignment_type": runner.get("ASSIGNMENT_TYPE") or "individual",
        "owner": runner.get("OWNER") or runner.get("USERNAME") or grade.student,
        "submission": runner.get("SUBMISSION_TAG", ""),
        "commit": commit,
        "release": runner.get("RELEASE_URL", ""),
        "review": runner.get("REVIEW_URL") or commit,
        "datetime": _utc(collected.moment if collected and collected.moment else now),
        "graded_at": _utc(now),
        "score": sum(test["score"] for test in tests),
        "max-score": sum(test["max-score"] for test in tests),
        "tests": tests,
    }


def scale(points: Iterable[float]) -> int:
    """Return the smallest factor that makes all these points integers."""
    return math.lcm(1, *(Fraction(p).limit_denominator(FINEST).denominator for p in set(points)))


def _tests(grade: Grade, times: int) -> list[dict[str, Any]]:
    if grade.status == "refused":
        most = math.ceil(grade.max_score)
        return [_test("The submission can be graded.", False, 0, most, message=grade.problem)]
    scaled = (
        (test, round(test.score * times), round(test.max_score * times)) for test in grade.tests
    )
    return [
        _test(
            test.title, test.is_right, *points, part=test.part, message=test.message, hint=test.hint
        )
        for test, *points in scaled
    ]


def _test(name: str, passed: bool, score: int, most: int, **further: str | None) -> dict[str, Any]:
    given = {key: value for key, value in further.items() if value}
    return {"test-name": name, "passed": passed, "score": score, "max-score": most, **given}


def _utc(moment: datetime) -> str:
    return moment.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
