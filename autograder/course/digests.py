"""Digests of all inputs of a grade: the submission's text and the suite.

Equal digests give equal grades.
"""

import hashlib
from collections.abc import Iterable
from typing import Any

from autograder.course.config import Assignment, Course
from autograder.records import Submission

# what people look at does not change a grade
FOR_PEOPLE = ("pictures.py", "questions.py")


def submission_digest(submission: Submission) -> str:
    """Return the SHA-256 of all files of a submission."""
    digest = hashlib.sha256()
    for file in submission.files:
        digest.update(f"{file.name}\0{len(file.text)}\0".encode("utf-8", "replace"))
        digest.update(file.text.encode("utf-8", "replace"))
    return digest.hexdigest()


def suite_digest(course: Course, assignment: Assignment) -> str:
    """Return the SHA-256 of a grade's inputs: tests, solution, mistakes, stub and the assignment's record.

    Due dates and the points of a conversation are not included: they affect the final score only,
    and need no new grading. Nor are the quota, and what the audit alone reads.
    """
    no_input: dict[str, Any] = {"due": True, "conversation": True, "limits": {"per_hour"}}
    no_input["share_for_refusals"] = True
    record = assignment.model_dump_json(exclude=no_input)
    digest = hashlib.sha256(f"{record}{course.feedback.graded}{course.follow_through}".encode())
    tests = [
        file for file in course.suite_folder(assignment).glob("*.py") if file.name not in FOR_PEOPLE
    ]
    others = [course.mistakes_file(assignment), course.failing_tests_file(assignment)]
    others += [course.solution_file(assignment), course.stub_file(assignment)]
    for file in [*sorted(tests), *others]:
        if file.exists():
            digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


def suite_digests(course: Course, names: Iterable[str] | None = None) -> dict[str, str]:
    """Return the digests of the suites of these assignments, by default of all, by name."""
    return {chosen.name: suite_digest(course, chosen) for chosen in course.select(names)}
