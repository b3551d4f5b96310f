"""Plain folders and archives: `<student>/<assignment>/<file>` and all other layouts of `autograder grade`."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from autograder.course.config import Assignment, Course
from autograder.extras.lms.identity import Described
from autograder.extras.lms.raw_submission import Findings, RawSubmission
from autograder.extras.lms.roster import Roster
from autograder.records import RefusedError, Submission
from autograder.submissions.below import files_below
from autograder.submissions.entries import label
from autograder.submissions.files import Entry, File, Odd
from autograder.submissions.find import find_submissions
from autograder.text.names import shown, student_name

# the end of the folder's name that `gh classroom clone student-repos` makes
CLONES = "-submissions"


def read(
    path: Path,
    course: Course,
    assignment: Assignment | None,
    originals: Mapping[str, Entry],
    roster: Roster,
) -> Findings:
    """Return the submissions at a path; raises RefusedError if its layout is not understood.

    `originals` are the entries of the students by name, of which the files are kept if they cannot
    be used. Names of sites' folders and files are read as they fit the roster; of several attempts,
    the last one counts.
    """
    findings = Findings()
    attempts: dict[tuple[Described, str], list[_Attempt]] = {}
    submissions = list(find_submissions(path, course, assignment.name if assignment else None))
    slug = _slug(path, [submission.student for submission in submissions], assignment)
    for submission in submissions:
        name = submission.assignment
        problem = submission.problem or ""
        if problem and course.find(name) is None:
            findings.odd.append(f"{shown(submission.student)}: {problem}")
            continue
        entry = originals.get(submission.student)
        called = (label(entry) if entry else submission.student).removeprefix(slug)
        files = _files(submission) if entry is None or not problem else tuple(_kept(entry, name))
        findings.notes += [f"{shown(called)}: {note}" for note in submission.notes]
        reading = roster.reading(called)
        raw = RawSubmission(
            called, files, reading.described, assignment=name, where=shown(called), problem=problem
        )
        attempts.setdefault((reading.described, name), []).append(_Attempt(reading.attempt, raw))
    for several in attempts.values():
        numbers = {attempt.numbers for attempt in several}
        if () in numbers or len(numbers) < len(several):  # two people, or one with two names
            findings.handed += [attempt.raw for attempt in several]
            continue
        newest = max(several, key=lambda attempt: attempt.numbers)
        findings.handed.append(newest.raw)
        if len(several) > 1:
            findings.notes.append(
                f"{newest.raw.where} counts, the last of {len(several)} attempts."
            )
    return findings


@dataclass(frozen=True)
class _Attempt:
    """What was handed in, and the numbers of the attempt in its name."""

    numbers: tuple[int, ...]
    raw: RawSubmission


def originals(entries: Sequence[Entry]) -> dict[str, Entry]:
    """Return the entries that can be students' by their names in the grades, also those in the only folder."""
    inside = [entry for entry in entries if not isinstance(entry, File | Odd)]
    candidates = list(entries)
    if len(entries) == 1 and inside:
        with suppress(RefusedError):
            candidates += inside[0].entries()
    return {student_name(label(entry)): entry for entry in candidates}


def _files(submission: Submission) -> tuple[File, ...]:
    return tuple(File(source.name, partial(_encoded, source.text)) for source in submission.files)


def _kept(entry: Entry, assignment: str) -> Iterator[File]:
    """Yield the files of a student that cannot be used, those for the assignment if they have a folder of its name."""
    if isinstance(entry, File):
        yield entry
    elif not isinstance(entry, Odd):
        with suppress(RefusedError):
            inside = entry.entries()
            of_assignment = [
                folder
                for folder in inside
                if not isinstance(folder, File | Odd) and folder.name == assignment
            ]
            yield from files_below(of_assignment[0] if of_assignment else entry, [])


def _slug(path: Path, students: Sequence[str], assignment: Assignment | None) -> str:
    """Return what GitHub Classroom puts before every name: the assignment's slug and a hyphen; empty without it."""
    slugs = [path.name.removesuffix(CLONES)] if path.name.endswith(CLONES) else []
    if assignment is not None and len(students) > 1:
        slugs += [name.replace("_", "-") for name in (assignment.stem, assignment.name)]
    for slug in slugs:
        if slug and all(student.startswith(f"{slug}-") for student in students):
            return f"{slug}-"
    return ""


def _encoded(text: str, limit: int) -> bytes:
    return text.encode()[: limit + 1]
