"""The texts that were graded, kept beside the journal: graded from there, and pictures drawn from them later.

A class is read once and need not be held in memory. `submissions/<digest>.json` holds one submission's files; the
digest is the one in its grade, so a text that was handed in again later is never taken for the one that was graded.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from autograder.course.digests import submission_digest
from autograder.records import Grade, InfrastructureError, SourceFile, Submission
from autograder.text.files import write_whole

FOLDER = "submissions"


@dataclass(frozen=True)
class StoredSubmission:
    """A submission whose text was put away: all of it but the files, and the digest by which they are found."""

    submission: Submission
    digest: str


def put(folder: Path, submissions: Iterable[Submission]) -> list[StoredSubmission]:
    """Write the texts of these submissions into `folder/submissions`; one that could not be read has none."""
    return [_put_away(folder, submission) for submission in submissions]


def iterate(folder: Path, put_away: Iterable[StoredSubmission]) -> Iterator[Submission]:
    """The submissions with their files, each read when it is its turn; raises InfrastructureError."""
    for one in put_away:
        submission = one.submission
        if submission_digest(submission) != one.digest:
            submission = replace(submission, files=_files(folder, one.digest))
        if submission_digest(submission) != one.digest:
            file = _file(folder, one.digest)
            raise InfrastructureError(f"{file} was changed or is gone. Remove it and grade again.")
        yield submission


def get(folder: Path, grade: Grade) -> Submission | None:
    """The submission that got this grade; None when its text is not kept, or is not what was graded."""
    submission = Submission(grade.student, grade.assignment, _files(folder, grade.submission_sha256))
    is_whole = submission.files and submission_digest(submission) == grade.submission_sha256
    return submission if is_whole else None


def names_of(folder: Path, grade: Grade) -> tuple[str, ...]:
    """What the files were called that got this grade; nothing when they are not kept."""
    return tuple(file.name for file in _files(folder, grade.submission_sha256))


def _put_away(folder: Path, submission: Submission) -> StoredSubmission:
    digest = submission_digest(submission)
    file = _file(folder, digest)
    if submission.files and not file.exists():
        write_whole(file, json.dumps([[source.name, source.text] for source in submission.files]))
    return StoredSubmission(replace(submission, files=()), digest)


def _files(folder: Path, digest: str) -> tuple[SourceFile, ...]:
    """What is kept under a digest, as it is there now; nothing when it cannot be read."""
    try:
        record = json.loads(_file(folder, digest).read_text("utf-8"))
        return tuple(SourceFile(str(name), str(text)) for name, text in record)
    except (OSError, ValueError, TypeError):
        return ()


def _file(folder: Path, digest: str) -> Path:
    return folder / FOLDER / f"{digest}.json"
