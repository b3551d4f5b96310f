"""Find the submissions in a file, a folder or an archive, and yield them one at a time."""

import itertools
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

from autograder.course.config import Assignment, Course, CourseError
from autograder.records import RefusedError, Submission
from autograder.submissions import take
from autograder.submissions.archives import open_archive
from autograder.submissions.files import (
    COUNTED,
    SOURCES,
    DiskFolder,
    Entry,
    File,
    Folder,
    Odd,
    disk_file,
    plain_stem,
    stem,
    suffix,
)
from autograder.submissions.labels import attempt_of_address, without_copy
from autograder.text.names import safe_name, shown, student_name
from autograder.text.spelling import closest

JOURNAL = "grades.jsonl"  # in a folder of grades
MOST_LETTERS = 200  # of a name to compare with those of the assignments
MOST_NAMES = 4  # maximum number of assignments in a message


def find_submissions(
    path: Path, course: Course, assignment: str | None = None, names: Collection[str] | None = None
) -> Iterator[Submission]:
    """Yield the submissions at `path`, ordered by student and assignment and read lazily.

    The names tell what is a student and what an assignment:

        what `path` is                  what it means
        ------------------------------  ------------------------------------------------------
        the file ada/adding.py          one submission; the file is named like its assignment
        the file 01_adding/ada.py       one submission; the folder is named like its assignment
        a folder of adding.py           one submission of the student with the folder's name
        a folder of 01_adding/          the submissions of one student, a folder for each
        01_adding/ of ada.py            a class with a file for each student
        01_adding/ of ada/adding.py     a class with a folder for each student
        a folder of ada/01_adding/      a class with a folder for each student and assignment
        a folder of ada/adding.py       a class with a file for each student and assignment
        a folder of ada/, lost.py       a class, and a file of nobody, which is refused
        a folder of lost.py             unclear without `assignment`; with it, as 01_adding/

    An archive can stand in place of each folder. With `assignment`, only that assignment is
    searched; with `names`, of a class only the work of those to whom entries with these names
    belong. An unusable submission has a `problem`; if its assignment is unknown, `assignment` is
    the name found in its place. No content of a submission raises an exception. Raises RefusedError
    if the path is missing or empty, or if the assignment cannot be determined.
    """
    try:
        wanted = course.assignment(assignment) if assignment is not None else None
        place = Path(path).resolve(strict=True)
    except FileNotFoundError:
        raise RefusedError(f"There is no file or folder {path}.") from None
    except (OSError, RuntimeError) as error:
        raise RefusedError(
            f"{path} cannot be opened: {getattr(error, 'strerror', None) or error}."
        ) from None
    except CourseError as error:
        raise RefusedError(str(error)) from None
    submissions = _Search(course, wanted, names).at(place)
    first = next(submissions, None)
    if first is None:
        if names is not None:
            return iter(())
        raise RefusedError(f"There are no submissions in {path}.")
    return itertools.chain([first], submissions)


@dataclass(frozen=True)
class _Search:
    """Find submissions in what is there, for the assignment `wanted` or for all."""

    course: Course
    wanted: Assignment | None
    names: Collection[str] | None = None
    # the assignments that were needed so far
    released: dict[str, take.Wanted] = field(default_factory=dict)

    def at(self, path: Path) -> Iterator[Submission]:
        if path.is_dir():
            # resolved: what is a link from now on was swapped
            folder = DiskFolder(path, Path(path.anchor))
            yield from self._top(folder, self._visible(folder), path.parent.name)
        elif path.is_file() and suffix(path.name) in SOURCES:
            student, assignment = self._meant(path)
            if assignment is None:
                raise RefusedError(
                    f"The assignment of {path.name} is unknown. Pass --assignment, or name the file like the assignment."
                )
            yield take.submission_of(
                student, self._released(assignment), [disk_file(path, Path(path.anchor))]
            )
        elif path.is_file() and take.is_archive(disk_file(path)):
            yield from self._archive_at(path)
        else:
            raise RefusedError(f"{path} is not a folder, a .py or .ipynb file, or a zip archive.")

    def _released(self, assignment: Assignment) -> take.Wanted:
        if assignment.name not in self.released:
            self.released[assignment.name] = take.wanted_of(self.course, assignment.name)
        return self.released[assignment.name]

    def _meant(self, path: Path) -> tuple[str, Assignment | None]:
        """Return the student and the assignment of a file that is given alone."""
        name = stem(path.name)
        folder = path.parent
        by_name = self._match(name)
        by_folder = self.course.find(folder.name)
        if by_name is None:
            return student_name(name), self.wanted or by_folder
        student = folder.parent.name if by_folder else folder.name
        return student_name(student or name), self.wanted or by_name

    def _archive_at(self, path: Path) -> Iterator[Submission]:
        student, assignment = self._meant(path)
        with open_archive(path, whole_class=True) as root:
            folder = self._without_wrapper(root)
            entries = self._visible(folder)
            if assignment and not entries:
                yield take.submission_of(student, self._released(assignment), [folder])
            yield from self._top(folder, entries, path.parent.name)

    def _top(self, folder: Folder, entries: Sequence[Entry], parent: str) -> Iterator[Submission]:
        named = self.course.find(folder.name)
        search = replace(self, wanted=self.wanted or named)
        student = student_name(parent if named and parent else folder.name)
        packed = not isinstance(folder, DiskFolder)
        if search.wanted and (
            take.is_one_file(entries, search.wanted.stem, packed)
            or (entries and all(map(search._is_stray, entries)))
        ):
            yield take.submission_of(student, self._released(search.wanted), [folder])
        elif self._is_of_one_student(entries):
            yield from self._student(student, folder)
        elif search.wanted is None and self._is_of_lost_files(entries):
            files = [entry for entry in entries if take.is_source(entry)]
            raise RefusedError(
                f"The assignment of the files in {folder.name} ({take.names(files)}) is unknown. Pass --assignment."
            )
        else:
            yield from search._class([*entries, *filter(_is_dotted, folder.entries())])

    def _visible(self, folder: Folder) -> list[Entry]:
        """Return what can be students' work, without the course's tests and folders of grades."""
        given = {f"test_{assignment.stem}.py" for assignment in self.course.assignments}
        work = [
            entry for entry in folder.entries() if take.is_work(entry) and entry.name not in given
        ]
        return [entry for entry in work if not _is_of_grades(entry)]

    def _is_of_one_student(self, entries: Sequence[Entry]) -> bool:
        """Whether all folders here are named like assignments or, without folders, a file is."""
        holders = [entry for entry in entries if not take.is_source(entry)]
        if holders:
            return all(self._match(take.label(entry)) for entry in holders)
        return self.wanted is None and any(self._match(take.label(entry)) for entry in entries)

    def _is_of_lost_files(self, entries: Sequence[Entry]) -> bool:
        """Whether there are files without a known assignment here, and no student's folder."""
        holders = [entry for entry in entries if not take.is_source(entry)]
        return len(holders) < len(entries) and not any(map(take.holds_work, holders))

    def _without_wrapper(self, root: Folder) -> Folder:
        """Return the only folder of an archive if it holds a class, else the archive itself."""
        entries = self._visible(root)
        if len(entries) != 1 or isinstance(entries[0], File | Odd):
            return root
        inner = self._visible(entries[0])
        has_folders = any(not take.is_source(entry) for entry in inner)
        has_several_names = len({take.label(entry) for entry in inner}) > 1
        is_class = has_folders or has_several_names
        return entries[0] if is_class and not self._is_of_one_student(inner) else root

    def _class(self, entries: Sequence[Entry]) -> Iterator[Submission]:
        by_student: dict[str, dict[tuple[int, ...], list[Entry]]] = {}
        label = self._label_before_stem if self._all_end_in_stem(entries) else take.label
        for entry in entries:
            student, attempt = attempt_of_address(label(entry))
            attempts = by_student.setdefault(student_name(student), {})
            attempts.setdefault(attempt, []).append(entry)
        for student, attempts in sorted(by_student.items()):
            every = itertools.chain.from_iterable(attempts.values())
            if self.names is not None and not any(entry.name in self.names for entry in every):
                continue
            newest = attempts[max(attempts)]
            note = f"{take.names(newest)} counts, the last of {len(attempts)} attempts."
            for submission in self._of_student(student, newest):
                notes = (*submission.notes, note) if len(attempts) > 1 else submission.notes
                yield replace(submission, notes=notes)

    def _of_student(self, student: str, handed_in: Sequence[Entry]) -> Iterator[Submission]:
        strays = [entry for entry in handed_in if self._is_stray(entry)]
        work = [entry for entry in handed_in if entry not in strays]
        if work:
            yield from self._work(student, work)
        for entry in strays:
            yield self._stray(student, entry)

    def _is_stray(self, entry: Entry) -> bool:
        """Whether this is a file of nobody: its name tells no assignment, or only that, such as `Copy of bank.ipynb`."""
        if not take.is_source(entry):
            return False
        return self.wanted is None or without_copy(plain_stem(entry.name)) == self.wanted.stem

    def _all_end_in_stem(self, entries: Sequence[Entry]) -> bool:
        """Whether each file here is called like a student and the module: "Ada Lovelace - adding"."""
        sources = [e for e in entries if take.is_source(e) and not self._is_stray(e)]
        return bool(sources) and all(
            self._label_before_stem(entry) != take.label(entry) for entry in sources
        )

    def _label_before_stem(self, entry: Entry) -> str:
        """Return a file's name without the module's, and without the number of a duplicate."""
        if self.wanted is None or not take.is_source(entry):
            return take.label(entry)
        name = without_copy(plain_stem(entry.name))
        before = name.removesuffix(self.wanted.stem)
        student = before.rstrip(" _-–")
        return student if student != before else take.label(entry)

    def _work(self, student: str, entries: list[Entry]) -> Iterator[Submission]:
        if _is_dotted(entries[0]):
            problem = (
                f"The name of the folder {shown(entries[0].name)} begins with a dot, like those of programs. "
                "Rename it if it is a student's, otherwise remove it."
            )
            yield self._refused(student, entries[0], problem)
        elif self.wanted and all(take.is_source(entry) for entry in entries):
            yield take.submission_of(student, self._released(self.wanted), entries)
        elif len(entries) > 1:
            yield self._refused(
                student, entries[0], f"Found {take.names(entries)}; hand in only one of them."
            )
        else:
            yield from self._holder(student, entries[0])

    def _stray(self, student: str, entry: Entry) -> Submission:
        problem = (
            f"{shown(entry.name)} lies beside the students' folders: it is not clear whose it is, and for which "
            "assignment. Move it into a student's folder, or remove it."
        )
        assignment = self.wanted.name if self.wanted else safe_name(entry.name)
        return Submission(student, assignment, problem=problem, path=entry.path)

    def _holder(self, student: str, entry: Entry) -> Iterator[Submission]:
        with ExitStack() as stack:
            try:
                folder = self._inner(stack.enter_context(take.opened(entry)))
            except RefusedError as refusal:
                yield self._refused(student, entry, str(refusal))
                return
            yield from self._student(student, folder)

    def _inner(self, folder: Folder) -> Folder:
        """Return the only folder in a student's archive, else the archive itself."""
        if isinstance(folder, DiskFolder):
            return folder
        folder.inspect()
        entries = [entry for entry in folder.entries() if take.is_work(entry)]
        if len(entries) != 1:
            return folder
        only = entries[0]
        if isinstance(only, File | Odd) or self._close(only.name):
            return folder
        return only

    def _student(self, student: str, folder: Folder) -> Iterator[Submission]:
        try:
            folder.inspect()
            entries = [
                entry
                for entry in folder.entries()
                if take.is_work(entry) and not take.is_given(entry)
            ]
        except RefusedError as refusal:
            yield self._refused(student, folder, str(refusal))
            return
        by_assignment: dict[str, list[Entry]] = {}
        strays: list[Entry] = []
        for entry in entries:
            assignment = self._match(take.label(entry))
            if assignment:
                by_assignment.setdefault(assignment.name, []).append(entry)
            else:
                strays.append(entry)
        wanted = self.wanted
        if wanted and wanted.name in by_assignment:
            yield take.submission_of(
                student, self._released(wanted), by_assignment[wanted.name], strays
            )
        elif wanted and not by_assignment:
            yield take.submission_of(student, self._released(wanted), [folder])
        elif wanted:
            misspelt = [entry for entry in strays if self._close(take.label(entry)) == wanted.name]
            for entry in misspelt[:1]:
                yield Submission(
                    student, wanted.name, problem=self._unknown(entry), path=entry.path
                )
        elif not by_assignment and len(strays) == 1 and take.is_archive(strays[0]):
            yield from self._holder(student, strays[0])
        else:
            submissions = self._all(student, by_assignment, strays)
            first = next(submissions, None)
            yield first or self._refused(student, folder, _nothing_to_grade(folder))
            yield from submissions

    def _all(
        self, student: str, by_assignment: dict[str, list[Entry]], strays: list[Entry]
    ) -> Iterator[Submission]:
        """Yield every submission of a student; a misspelt name is refused under the missing assignment's name."""
        unknown: dict[str, Entry] = {}
        for entry in strays:
            name = safe_name(take.label(entry))
            close = self._close(take.label(entry))
            if close and close not in by_assignment and close not in unknown:
                name = close
            if close or (not by_assignment and take.holds_work(entry)):
                unknown[name] = entry
        for name in sorted({*by_assignment, *unknown}):
            if name in by_assignment:
                wanted = self._released(self.course.assignment(name))
                yield take.submission_of(student, wanted, by_assignment[name], strays)
            else:
                entry = unknown[name]
                yield Submission(student, name, problem=self._unknown(entry), path=entry.path)

    def _refused(self, student: str, entry: Entry, problem: str) -> Submission:
        assignment = self.wanted or self._match(take.label(entry))
        name = assignment.name if assignment else safe_name(take.label(entry))
        return Submission(student, name, problem=problem, path=entry.path)

    def _unknown(self, entry: Entry) -> str:
        close = self._close(take.label(entry))
        names = [assignment.name for assignment in self.course.assignments]
        all_names = ", ".join(names)
        if len(names) > MOST_NAMES:
            all_names = f"{len(names)}, from {names[0]} to {names[-1]}"
        hint = f"; did you mean `{close}`?" if close else f"; there are {all_names}."
        return f"The course has no assignment `{shown(take.label(entry))}`{hint}"

    def _match(self, name: str) -> Assignment | None:
        """Return the assignment with this name, or the only one whose module has it; a number suffix is ignored."""
        named = self.course.find(name)
        if named:
            return named
        of_module = [a for a in self.course.assignments if a.stem == name]
        if len(of_module) == 1:
            return of_module[0]
        without_number = COUNTED.sub("", name)
        return None if without_number == name else self._match(without_number)

    def _close(self, name: str) -> str | None:
        """Return the assignment whose name, or that of its module, is nearly this one."""
        names = {key: a.name for a in self.course.assignments for key in (a.name, a.stem)}
        near = closest(name[:MOST_LETTERS], names)
        return names[near] if near else None


def _nothing_to_grade(folder: Folder) -> str:
    entries = folder.entries()
    there = f"there is only {take.names(entries)}" if entries else "it is empty"
    return f"Nothing in the folder {shown(folder.name)} can be graded: {there}."


def _is_of_grades(entry: Entry) -> bool:
    """Whether this is a folder that an earlier run wrote among the students' folders."""
    if isinstance(entry, File | Odd):
        return False
    try:
        return JOURNAL in {inner.name for inner in entry.entries()} and not take.holds_work(entry)
    except RefusedError:
        return False


def _is_dotted(entry: Entry) -> bool:
    """Whether this is a folder with a leading dot that can be a student's."""
    return (
        entry.name.startswith(".")
        and not isinstance(entry, File | Odd)
        and not take.is_furniture(entry.name)
    )
