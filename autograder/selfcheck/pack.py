"""Create the archive to hand in: one file with the expected name, read back as the grader reads it."""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from autograder.course.config import Assignment, Course, Part
from autograder.records import RefusedError, SourceFile, Submission
from autograder.selfcheck.locked_hints import LockedHints
from autograder.selfcheck.workspace import Work, read
from autograder.text.files import numbered, zipped


@dataclass(frozen=True)
class Packed:
    """The result of packing: the archive, the file in it, and the new name of the older archive."""

    archive: Path
    file: SourceFile
    source: str  # the name of the student's file
    older: str = ""
    unchanged: bool = False

    @property
    def size(self) -> int:
        return len(self.file.text.encode())


def pack(work: Work, folder: Path) -> Packed:
    """Write the archive to `folder` under the assignment's name; an older one there is numbered and stays.

    Raises RefusedError if the grader would refuse it.
    """
    work.require_clear()
    assignment = _assignment(work)
    name = f"{work.stem}{work.file.suffix.lower()}"
    text = read(work.file)
    if not text.strip():
        raise RefusedError(f"{work.file.name} is empty. Was it saved?")
    if work.is_untouched():
        where = work.note or "Did you save your work under another name, or in another folder?"
        raise RefusedError(
            f"{work.file.name} holds no answer of yours, so there is nothing to hand in. {where}"
        )
    data = b"".join(zipped([(f"{assignment.name}/{name}", text)]))
    archive = folder / f"{assignment.name}.zip"
    if archive.is_file() and archive.read_bytes() == data:
        submission = _as_the_grader_reads(archive, assignment, name)
        return Packed(archive, submission.files[0], work.file.name, unchanged=True)
    free = next(path for path in numbered(archive) if not path.exists())
    try:
        if free != archive:
            archive.rename(free)
        archive.write_bytes(data)
        submission = _as_the_grader_reads(archive, assignment, name)
    except (OSError, RefusedError) as error:
        _put_back(archive, free)
        if isinstance(error, OSError):
            raise RefusedError(f"{archive} cannot be written: {error.strerror}.") from None
        raise
    older = free.name if free != archive else ""
    return Packed(archive, submission.files[0], work.file.name, older)


def _put_back(archive: Path, older: Path) -> None:
    """Remove an archive that cannot be handed in; the older one gets its name again."""
    with suppress(OSError):
        if older == archive:
            archive.unlink()
        elif older.is_file():
            older.replace(archive)


def _as_the_grader_reads(archive: Path, assignment: Assignment, name: str) -> Submission:
    from autograder.submissions.find import find_submissions

    course = Course(root=archive.parent, title=assignment.title, assignments=(assignment,))
    (submission,) = find_submissions(archive, course)
    if submission.problem:
        raise RefusedError(f"The grader would refuse this: {submission.problem}")
    (file,) = submission.files
    if file.name != name or submission.assignment != assignment.name:
        raise RefusedError(f"The grader would read this as {submission.assignment}, {file.name}.")
    return submission


def _assignment(work: Work) -> Assignment:
    """Return the assignment as far as a student's folder defines it; only its name matters here."""
    # the folder may have another name than in the course
    hints = LockedHints(work.folder)
    name = hints.assignment or work.name
    if name.partition("_")[2] != work.stem:
        raise RefusedError(
            f"The folder {work.name} should have the assignment's name: a number, then _{work.stem}."
        )
    try:
        part = Part(name="all", title=work.stem, points=1.0)
        return Assignment(name=name, title=work.stem, minutes=1, parts=(part,))
    except ValidationError:
        raise RefusedError(
            f"The folder {name} should have the assignment's name, for example 03_{work.stem}."
        ) from None
