"""The submitted texts, stored beside the journal: the grader reads them from there, and pictures are drawn from them."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from autograder.course.digests import submission_digest
from autograder.records import Grade, InfrastructureError, SourceFile, Submission
from autograder.text.files import write_whole

FOLDER = "submissions"
OLD_CATCH_FILE = "catch.py"  # older runs could store one behind the module


@dataclass(frozen=True)
class StoredSubmission:
    """A stored submission: all fields except the files, and the digest that locates them."""

    submission: Submission
    digest: str


def put(folder: Path, submissions: Iterable[Submission]) -> list[StoredSubmission]:
    """Write the texts of these submissions to `folder/submissions`; an unreadable submission has none."""
    stored = []
    for submission in submissions:
        digest = submission_digest(submission)
        file = _file(folder, digest)
        if submission.files and not file.exists():
            written = [[file.name, file.text] for file in submission.files]
            write_whole(file, json.dumps(written))
        stored.append(StoredSubmission(replace(submission, files=()), digest))
    return stored


def iterate(folder: Path, put_away: Iterable[StoredSubmission]) -> Iterator[Submission]:
    """Yield the submissions with their files, read lazily; raises InfrastructureError."""
    for stored in put_away:
        yield read(folder, stored)


def read(folder: Path, stored: StoredSubmission) -> Submission:
    """Return a submission with its files; raises InfrastructureError."""
    files = _stored_files(folder, stored.digest)
    submission = replace(stored.submission, files=files)
    if submission_digest(submission) != stored.digest:
        file = _file(folder, stored.digest)
        raise InfrastructureError(f"{file} was changed or is gone. Remove it and grade again.")
    return submission


def get(folder: Path, grade: Grade) -> Submission | None:
    """Return the submission of this grade; None if its text is missing or is not the graded one."""
    files = _stored_files(folder, grade.submission_sha256)
    submission = Submission(grade.student, grade.assignment, files)
    is_whole = files and submission_digest(submission) == grade.submission_sha256
    return replace(submission, files=_of_module(files)) if is_whole else None


def files_of(folder: Path, digest: str) -> tuple[SourceFile, ...]:
    """Return the files of the module stored under the digest of a submission; empty if they are
    missing or cannot be read.
    """
    return _of_module(_stored_files(folder, digest))


def _of_module(files: tuple[SourceFile, ...]) -> tuple[SourceFile, ...]:
    return tuple(file for file in files if file.name != OLD_CATCH_FILE) or files


def _stored_files(folder: Path, digest: str) -> tuple[SourceFile, ...]:
    try:
        record = json.loads(_file(folder, digest).read_text("utf-8"))
        return tuple(SourceFile(str(name), str(text)) for name, text in record)
    except (OSError, ValueError, TypeError):
        return ()


def _file(folder: Path, digest: str) -> Path:
    return folder / FOLDER / f"{digest}.json"
