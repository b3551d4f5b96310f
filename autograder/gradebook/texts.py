"""The submitted texts, stored beside the journal: the grader reads them from there, and pictures are drawn from them."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from autograder.course.digests import submission_digest
from autograder.records import CATCH_FILE, Grade, InfrastructureError, SourceFile, Submission
from autograder.text.files import write_whole

FOLDER = "submissions"


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
            written = [[file.name, file.text] for file in submission.all_files]
            write_whole(file, json.dumps(written))
        stored.append(StoredSubmission(replace(submission, files=(), catch=None), digest))
    return stored


def iterate(folder: Path, put_away: Iterable[StoredSubmission]) -> Iterator[Submission]:
    """Yield the submissions with their files, read lazily; raises InfrastructureError."""
    for stored in put_away:
        submission = _with_files(stored.submission, folder, stored.digest)
        if submission_digest(submission) != stored.digest:
            file = _file(folder, stored.digest)
            raise InfrastructureError(f"{file} was changed or is gone. Remove it and grade again.")
        yield submission


def get(folder: Path, grade: Grade) -> Submission | None:
    """Return the submission of this grade; None if its text is missing or is not the graded one."""
    empty = Submission(grade.student, grade.assignment)
    submission = _with_files(empty, folder, grade.submission_sha256)
    is_whole = submission.files and submission_digest(submission) == grade.submission_sha256
    return submission if is_whole else None


def files_of(folder: Path, digest: str) -> tuple[SourceFile, ...]:
    """Return the files of the module stored under the digest of a submission; empty if they are
    missing or cannot be read.
    """
    return tuple(file for file in _all_files(folder, digest) if file.name != CATCH_FILE)


def _with_files(submission: Submission, folder: Path, digest: str) -> Submission:
    files = _all_files(folder, digest)
    catch = next((file for file in files if file.name == CATCH_FILE), None)
    return replace(submission, files=tuple(file for file in files if file != catch), catch=catch)


def _all_files(folder: Path, digest: str) -> tuple[SourceFile, ...]:
    try:
        record = json.loads(_file(folder, digest).read_text("utf-8"))
        return tuple(SourceFile(str(name), str(text)) for name, text in record)
    except (OSError, ValueError, TypeError):
        return ()


def _file(folder: Path, digest: str) -> Path:
    return folder / FOLDER / f"{digest}.json"
