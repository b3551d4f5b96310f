"""Small hand-ins, written and packed, and what the search for submissions makes of them."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

from autograder.course.config import Assignment, Course, Part
from autograder.records import Submission
from autograder.submissions.find import find_submissions

CODE = "def add(a, b):\n    return a + b\n"
TOTAL = "class Total: pass\n"
NOTEBOOK = '{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}\n'


def make_course(root: Path) -> Course:
    parts = (Part(name="all", title="All of it", points=10),)
    names = ("01_adding", "02_totals")
    assignments = tuple(Assignment(name=n, title=n, minutes=5, parts=parts) for n in names)
    return Course(root=root, title="Tiny", assignments=assignments)


def write(folder: Path, files: dict[str, str | bytes]) -> Path:
    for name, content in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)
    return folder


def zipped(files: dict[str, str | bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def found(
    path: Path, course: Course, assignment: str | None = None
) -> dict[tuple[str, str], Submission]:
    """Return the submissions by student and assignment, after checking that each pair occurs once, in order."""
    submissions = list(find_submissions(path, course, assignment))
    keys = [(s.student, s.assignment) for s in submissions]
    assert keys == sorted(set(keys))
    for submission in submissions:
        assert bool(submission.files) != bool(submission.problem)
    return dict(zip(keys, submissions, strict=True))


def texts(submissions: dict[tuple[str, str], Submission]) -> dict[tuple[str, str], dict[str, str]]:
    return {key: {file.name: file.text for file in s.files} for key, s in submissions.items()}


def problem(path: Path, course: Course, assignment: str | None = "01_adding") -> str:
    """Return the problem of the only submission."""
    (submission,) = find_submissions(path, course, assignment)
    assert not submission.files and submission.problem
    assert submission.problem.isprintable() and submission.problem.endswith((".", "?"))
    return submission.problem


def only(path: Path, course: Course, assignment: str | None = "01_adding") -> Submission:
    (submission,) = find_submissions(path, course, assignment)
    assert submission.problem is None
    return submission
