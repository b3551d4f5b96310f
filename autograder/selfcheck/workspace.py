"""A student's folder, without course.yml: the student's file, and its tests."""

import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from autograder.bridge.outside.local import Loaded, load
from autograder.course.markers import UNWRITTEN
from autograder.records import RefusedError, SourceFile
from autograder.selfcheck.handed_out import FILE_NAME, handed_out
from autograder.source.places import StudentText
from autograder.submissions.choose import ANOTHER, Chosen, NothingThereError, Tree, Wanted, choose
from autograder.submissions.entries import is_given, is_source, is_work, label
from autograder.submissions.files import SOURCES, DiskFolder, disk_file, read_source
from autograder.text.spelling import did_you_mean
from autograder.text.wording import LISTED, joined

SAME_TIME = 5.0  # seconds between the times of files unpacked together
FOLDERS_UP = 2  # from an assignment's folder to the course's


@dataclass(frozen=True)
class Work:
    """One assignment in a student's folder: the file and the tests beside it. `other` is the second file.

    `note` is a sentence about the choice among several files, and `problem` the reason that none
    can be chosen.
    """

    file: Path
    test_file: Path
    other: Path | None = None
    note: str = ""
    problem: str = ""

    @property
    def folder(self) -> Path:
        return self.test_file.parent

    def is_untouched(self) -> bool:
        """Whether the file holds nothing but what the student received; raises RefusedError if it cannot be read."""
        return handed_out(self.folder).stub.is_untouched(_source(self.file))

    def require_clear(self) -> None:
        """Raise RefusedError if it is not clear which file counts."""
        if self.problem:
            raise RefusedError(self.problem)

    def text(self) -> StudentText:
        """Read the student's file; raises RefusedError if it cannot be read, or if it is not clear which one counts."""
        self.require_clear()
        text = read(self.file)
        return StudentText(text, _label_of(self.file))

    def load(self, seconds: float | None = None) -> Loaded:
        """Run the student's file as the grader does; raises RefusedError if it cannot be read."""
        text = self.text()
        return load(text.text, text.name, seconds=seconds)

    @property
    def stem(self) -> str:
        """The name of the module that the tests import."""
        return self.test_file.stem.removeprefix("test_")

    @property
    def name(self) -> str:
        """The assignment's name in commands: the name of its folder."""
        return self.folder.resolve().name


def find_work(target: str | Path = ".") -> Work:
    """Find the assignment by a path or a name; raises RefusedError if there is none."""
    works = find_works(target)
    if len(works) == 1:
        return works[0]
    names = ", ".join(work.name for work in works)
    raise RefusedError(f"There are several assignments here: {names}. Say which one you mean.")


def find_works(target: str | Path = ".") -> list[Work]:
    """Find the assignments in a course's folder, or a single one.

    Raises RefusedError if there is none.
    """
    path = Path(target)
    if target == "":
        raise RefusedError(
            "The name of the assignment is empty. Name an assignment, its folder, or your file."
        )
    if path.is_file():
        return [_work_of_file(path)]
    if not path.is_dir():
        return [_named(str(target))]
    if works := _works_in(path):
        return works
    if stem := _stem_without_tests(path):
        raise RefusedError(
            f"There is no test_{stem}.py in {path.resolve()}: unpack the test file again."
        )
    raise RefusedError(
        f"There is no assignment in {path.resolve()}. Go to an assignment's folder, or name your file."
    )


def _stem_without_tests(folder: Path) -> str:
    """Return the stem of an assignment's stub in a folder without its tests; nothing if there is none."""
    if _test_files(folder) or not (folder / FILE_NAME).is_file():
        return ""
    given = handed_out(folder).stub.given
    entries = [entry for entry in DiskFolder(folder).entries() if entry.name not in given]
    sources = [entry for entry in entries if is_source(entry) and not is_given(entry)]
    stems = {label(entry) for entry in sources if is_work(entry)}
    by_folder = folder.resolve().name.partition("_")[2]
    return by_folder if by_folder in stems else next(iter(sorted(stems)), "")


def _work_of_file(path: Path) -> Work:
    if path.suffix not in SOURCES:
        raise RefusedError(f"{path} is neither a .py file nor a notebook.")
    tests = _test_files(path.parent)
    named_like_it = [test for test in tests if test.stem == f"test_{path.stem}"]
    if path in tests:
        raise RefusedError(
            f"{path.name} holds the tests. Name your own file, {path.name.removeprefix('test_')}."
        )
    if not named_like_it and len(tests) != 1:
        raise RefusedError(
            f"There is no test_{path.stem}.py beside {path.name}: the tests belong in the same folder."
        )
    test = (named_like_it or tests)[0]
    return Work(path, test, note=_answer_elsewhere(path, test))


def _answer_elsewhere(path: Path, test: Path) -> str:
    """Return a sentence if a file that was named holds no answer, and another one does."""
    wanted = _wanted(test)
    try:
        _, chosen = _choice(path.parent, wanted)
        if chosen.has_answer and not wanted.stub.is_answer(_source(path)):
            return f"There is no answer in {path.name}; your work is in {joined(chosen.paths, LISTED)}."
    except RefusedError:
        pass  # it is said when the file is read
    return ""


def _works_in(folder: Path) -> list[Work]:
    """Return the folder's own assignment, or else those of the folders in it, or of those in `assignments`."""
    for places in ([folder], folder.glob("*"), folder.glob("assignments/*")):
        works = [_work_in(place) for place in sorted(places)]
        works_here = [work for work in works if work]
        if works_here:
            return works_here
    return []


def _work_in(folder: Path) -> Work | None:
    works = map(_chosen, _test_files(folder))
    return next(filter(None, works), None)


def _chosen(test: Path) -> Work | None:
    """Return the files that count by the grader's rule, beside the tests or else in the folder of the course."""
    wanted = _wanted(test)
    try:
        root, chosen = _choice(test.parent, wanted)
    except NothingThereError:
        return None
    except RefusedError as refusal:
        called = [test.parent / f"{wanted.stem}{kind}" for kind in SOURCES]
        file = next((file for file in called if file.is_file()), called[0])
        return Work(file, test, problem=str(refusal))
    files = [root / path for path in chosen.paths]
    if not chosen.has_answer and not any(wanted.is_called(file.name) for file in files):
        return None
    if chosen.has_answer:
        files = [file for file in files if wanted.stub.is_answer(_source(file))]
    if len(files) == 2:
        files = _further_first(*files)
    other = files[1] if len(files) == 2 else None
    note = " ".join(chosen.notes)
    if ANOTHER in note:
        note = f"{note} To check that one, name it."
    elif not note and other is not None and UNWRITTEN not in read(other):
        note = f"{other.name} is complete, too. To check that one, name it."
    return Work(files[0], test, other, note=note)


def _choice(folder: Path, wanted: Wanted) -> tuple[Path, Chosen]:
    """Return what counts, and the folder in which it lies: the assignment's, or the course's if only an answer is there.

    Archives are those that `pack` made. Raises RefusedError.
    """
    here: Chosen | None = None
    with suppress(NothingThereError):
        here = choose(Tree.below(DiskFolder(folder)).without_archives, wanted)
        if here.has_work:
            return folder, here
    course = _course_around(folder, wanted)
    if course is not None:
        with suppress(NothingThereError):
            around = choose(Tree.below(DiskFolder(course)).without_archives, wanted)
            if around.has_answer:
                return course, around
    if here is None:
        raise NothingThereError(f"There is no {wanted.expected} in {folder}.")
    return folder, here


def _wanted(test: Path) -> Wanted:
    """Return the assignment to which a test file belongs, as far as a student's folders tell."""
    here = test.parent.resolve()
    others = set[str]()
    for other in here.parent.glob("*/test_*.py"):
        if other.parent != here:
            others |= {other.parent.name, other.stem.removeprefix("test_")}
    stem = test.stem.removeprefix("test_")
    return Wanted(here.name, stem, handed_out(here).stub, frozenset(others - {here.name, stem}))


def _course_around(folder: Path, wanted: Wanted) -> Path | None:
    """Return the student's folder of the whole course; None for a single assignment, and for the author."""
    parent = folder.resolve().parent
    course = parent.parent if parent.name == "assignments" else parent
    is_course = parent.name == "assignments" or wanted.others
    return course if is_course and not (course / "course.yml").exists() else None


def _source(file: Path) -> SourceFile:
    return SourceFile(file.name, read(file))


def _further_first(script: Path, notebook: Path) -> list[Path]:
    """The file with fewer gaps first; of equals the script, unless the notebook was saved later."""
    gaps = [read(file).count(UNWRITTEN) for file in (script, notebook)]
    later = notebook.stat().st_mtime - script.stat().st_mtime > SAME_TIME
    return [notebook, script] if (gaps[1], not later) < (gaps[0], later) else [script, notebook]


def _test_files(folder: Path) -> list[Path]:
    return sorted(folder.glob("test_*.py"))


def _named(name: str) -> Work:
    """Return the assignment with that name, or with that part of a name, in this folder or those above it."""
    here = Path.cwd()
    for folder in (here, *here.parents[:FOLDERS_UP]):
        works = _works_in(folder)
        exact = [work for work in works if work.name == name]
        meant = exact or [work for work in works if name in _short_names(work)]
        if len(meant) == 1:
            return meant[0]
        if len(works) > 1:
            names = [work.name for work in works]
            raise RefusedError(
                f"There is no assignment {name!r}{did_you_mean(name, names) or '; there are ' + ', '.join(names) + '.'}"
            )
    raise RefusedError(f"There is no file, folder or assignment {name!r} here.")


def _short_names(work: Work) -> tuple[str, ...]:
    number = work.name.partition("_")[0]
    return work.stem, f"{work.stem}.py", number, number.lstrip("0")


def read(file: Path) -> str:
    """Return the text of a student's file; raises RefusedError if it cannot be read."""
    entry = disk_file(file)
    return read_source(entry).text


def _label_of(file: Path) -> str:
    """Return the name under which a file's code runs; characters that tracebacks cannot show are replaced."""
    return re.sub(r"[^\w.-]", "_", file.name)
