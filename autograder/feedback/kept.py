"""The texts that were graded, kept beside the journal so that pictures can be drawn from them later.

`submissions/<digest>.json` holds one submission's files; the digest is the one in its grade, so a text that was
handed in again later is never taken for the one that was graded.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from autograder.digests import submission_digest
from autograder.records import Grade, SourceFile, Submission
from autograder.writing import write_whole

FOLDER = "submissions"


def keep(folder: Path, submissions: Iterable[Submission]) -> None:
    """Write the texts of these submissions into `folder/submissions`; one that could not be read has none."""
    for submission in submissions:
        if not submission.files:
            continue
        file = _file(folder, submission_digest(submission))
        if not file.exists():
            write_whole(file, json.dumps([[source.name, source.text] for source in submission.files]))


def kept(folder: Path, grade: Grade) -> Submission | None:
    """The submission that got this grade; None when its text is not kept, or is not what was graded."""
    try:
        record = json.loads(_file(folder, grade.submission_sha256).read_text("utf-8"))
        files = tuple(SourceFile(str(name), str(text)) for name, text in record)
    except (OSError, ValueError, TypeError):
        return None
    submission = Submission(grade.student, grade.assignment, files)
    return submission if submission_digest(submission) == grade.submission_sha256 else None


def _file(folder: Path, digest: str) -> Path:
    return folder / FOLDER / f"{digest}.json"
