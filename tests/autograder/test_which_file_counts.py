"""Which file counts: one rule, and the table that every way in chooses the same and says the same.

The table multiplies where the stub lies, where the answer lies, and the door through which the
student's files come. All cells of a door are handed in at once, each by a student of its own.
"""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import tarfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from typer.testing import CliRunner

from autograder import cli
from autograder.course.config import Course
from autograder.course.reading import load_course
from autograder.extras.git.collecting import collect_from_git
from autograder.extras.git.repositories import Repository
from autograder.extras.lms.collecting import CollectOptions, CollectReport, collect
from autograder.nbgrader.inbound import SECRET, Inbound
from autograder.records import RefusedError, SourceFile, Submission
from autograder.selfcheck.pack import pack
from autograder.selfcheck.workspace import find_work
from autograder.source.stub import UNKNOWN, ReleasedStub, released_stub
from autograder.submissions.class_folder import ClassFolder
from autograder.submissions.find import find_submissions
from tests.autograder.hand_ins import zipped
from tests.autograder.student_folder import RIGHT, SUBTRACTS
from tests.autograder.student_repositories import GIT, make_repository
from tests.autograder.tiny_course import write_files

NAME = "01_adding"
HOME = f"assignments/{NAME}"

# -- the table ----------------------------------------------------------------------------------------

STUBS = {
    "none": [],
    "right folder": [f"{HOME}/adding.py"],
    "loose": ["adding.py"],
    "other folder": ["material/adding.py"],
    "twice": [f"{HOME}/adding.py", "material/adding.py"],
}
ANSWERS = {
    "right name": [f"{HOME}/adding.py"],
    "other name": [f"{HOME}/my_solution.py"],
    "other case": [f"{HOME}/ADDING.py"],
    "other folder": ["src/adding.py"],
    "other name at the top": ["adding_final.py"],
    "top": ["adding.py"],
    "a duplicate": ["src/adding (1).py"],
    "suffix in capitals": ["src/adding.PY"],
    "notebook beside": [f"{HOME}/adding.ipynb"],
    "two answers": [f"{HOME}/adding.py", f"{HOME}/draft/adding.py"],
    "two of other names": [f"{HOME}/one.py", f"{HOME}/two.py"],
    "other branch": [],
}
CELLS = {f"{stub} - {answer}": (stub, answer) for stub in STUBS for answer in ANSWERS}


@dataclass(frozen=True)
class Outcome:
    """What a door makes of a student's files: the text that counts, the notes, or the reason for a refusal.

    Without any file, the reason depends on the door, and is left out.
    """

    text: str | None = None
    notes: tuple[str, ...] = ()
    problem: str = ""

    @classmethod
    def of(cls, found: Submission, notes: tuple[str, ...] = ()) -> Outcome:
        if (found.problem or "").startswith(("No file", "Nothing was handed in")):
            return cls()
        if found.problem:
            return cls(problem=found.problem)
        (file,) = found.files
        return cls(file.text, notes or found.notes)


def notebook(*cells: str) -> str:
    code = [{"cell_type": "code", "metadata": {}, "outputs": [], "source": text} for text in cells]
    return json.dumps({"cells": code, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


def text_of(answer: str) -> str:
    return notebook(RIGHT) if answer.endswith(".ipynb") else RIGHT


def hand_in(stub: str, answer: str, released: str) -> dict[str, str]:
    """Return a student's files by their ways: those of the stub's places, and over them those with an answer."""
    files = dict.fromkeys(STUBS[stub], released)
    for path, sum_or_not in zip(ANSWERS[answer], ("a + b", "a - b")):
        files[path] = text_of(path).replace("a + b", sum_or_not)
    return files


def expected(stub: str, answer: str, released: str, below: str = "") -> Outcome:
    """Return what the rule says about a cell; `below` is the folder in which a door looks first."""
    answers = ANSWERS[answer]
    stubs = [path for path in STUBS[stub] if path not in answers]
    if all(path.startswith(below) for path in answers):
        stubs = [path for path in stubs if path.startswith(below)]
    folders = [path.split("/")[:-1] for path in (*answers, *stubs)]
    shared = len(os.path.commonprefix(folders)) if folders else 0
    ways = {path: "/".join(path.split("/")[shared:]) for path in (*answers, *stubs)}
    if len(answers) > 1:
        names = " and ".join(ways[path] for path in answers)
        return Outcome(problem=f"Found {names} with different contents; hand in only one of them.")
    if not answers:
        return Outcome(released if stubs else None)
    (path,) = answers
    if path.endswith(".ipynb"):
        stubs = []  # a stub of another kind was not passed over
    note = f"{ways[path]} counts: there is no answer in {' and '.join(ways[o] for o in stubs)}."
    return Outcome(text_of(path), (note,) if stubs else ())


@dataclass(frozen=True)
class Table:
    """The files of each cell, and a place in which a door may write."""

    course: Course
    folder: Path
    cells: Mapping[str, Mapping[str, str]]


Door = Callable[[Table], dict[str, Outcome]]


def class_folder(table: Table) -> Path:
    for cell, files in table.cells.items():
        write_files(table.folder / "class" / cell, {"README.md": "hello", **files})
    return table.folder / "class"


def found(path: Path, course: Course, assignment: str | None = NAME) -> dict[str, Outcome]:
    submissions = find_submissions(path, course, assignment)
    return {one.student: Outcome.of(one) for one in submissions if one.assignment == NAME}


def folders(table: Table) -> dict[str, Outcome]:
    return found(class_folder(table), table.course)


def folders_of_any_assignment(table: Table) -> dict[str, Outcome]:
    return found(class_folder(table), table.course, None)


def watched(table: Table) -> dict[str, Outcome]:
    folder = ClassFolder(class_folder(table), table.course, NAME)
    return {one.student: Outcome.of(one) for one in folder.submissions(table.cells)}


def zips(table: Table) -> dict[str, Outcome]:
    for cell, files in table.cells.items():
        (table.folder / f"{cell}.zip").write_bytes(zipped(dict(files)))
    return found(table.folder, table.course)


def one_zip(table: Table) -> dict[str, Outcome]:
    files = {f"{c}/{way}": text for c, files in table.cells.items() for way, text in files.items()}
    (table.folder / "class.zip").write_bytes(zipped(files))
    return found(table.folder / "class.zip", table.course)


def tars(table: Table) -> dict[str, Outcome]:
    for cell, files in table.cells.items():
        with tarfile.open(table.folder / f"{cell}.tar.gz", "w:gz") as archive:
            for way, text in files.items():
                entry = tarfile.TarInfo(f"{cell}/{way}")
                entry.size = len(text.encode())
                archive.addfile(entry, io.BytesIO(text.encode()))
    return found(table.folder, table.course)


def inbound(table: Table) -> dict[str, Outcome]:
    folder = table.folder / "inbound"
    for cell, files in table.cells.items():
        write_files(folder / f"{cell}+{NAME}+2026-11-27 10:00:00 UTC+x", {**files, SECRET: "x"})
    submissions = Inbound(folder, table.course).submissions(os.listdir(folder))
    return {one.student: Outcome.of(one) for one in submissions}


def collected(table: Table, report: CollectReport, cells: Mapping[str, str]) -> dict[str, Outcome]:
    """Return what is graded of the files that were collected, with the notes of `collect`.

    `cells` has the cell of each student in the grades.
    """
    outcomes = {}
    for one in find_submissions(report.folder, table.course):
        cell = cells[one.student]
        told = [note.partition(f" {cell}: ")[2] for note in report.notes]
        outcomes[cell] = Outcome.of(one, tuple(filter(None, told)))
    return outcomes


def from_folders(table: Table) -> dict[str, Outcome]:
    options = CollectOptions(table.folder / "submitted", table.course.assignment(NAME))
    report = collect([class_folder(table)], table.course, options)
    return collected(table, report, dict.fromkeys(table.cells) | {c: c for c in table.cells})


def from_download(table: Table, files: dict[str, str | bytes]) -> dict[str, Outcome]:
    (table.folder / "adding.zip").write_bytes(zipped(files))
    options = CollectOptions(table.folder / "submitted", table.course.assignment(NAME))
    report = collect([table.folder / "adding.zip"], table.course, options)
    return collected(table, report, {str(n): cell for n, cell in enumerate(table.cells, 1001)})


def from_canvas(table: Table) -> dict[str, Outcome]:
    """Each student uploads a zip."""
    archives = {
        f"student_{number}_{number + 4000}_work.zip": zipped(dict(files))
        for number, files in enumerate(table.cells.values(), 1001)
    }
    return from_download(table, archives)


def from_moodle(table: Table) -> dict[str, Outcome]:
    """Each student uploads a folder."""
    files = {
        f"{cell}_{number}_assignsubmission_file/{way}": text
        for number, cell in enumerate(table.cells, 1001)
        for way, text in table.cells[cell].items()
    }
    return from_download(table, files)


def from_git(table: Table, assignment: str = NAME) -> dict[str, Outcome]:
    listed = []
    for number, (cell, files) in enumerate(table.cells.items()):
        repository = make_repository(table.folder, f"r{number}", {"README.md": "hello", **files})
        if cell.endswith("other branch"):
            repository.commit({**files, f"{HOME}/adding.py": RIGHT}, branch="dev")
        listed.append(Repository(cell, repository.url, assignment))
    options = CollectOptions(table.folder / "submitted")
    report = collect_from_git(listed, table.course, options, "table.csv", lambda *_: None)
    told = [note for note in report.notes if "there are other branches: dev" in note]
    assert len(told) == len(STUBS), "one word for each"
    report.notes = [note for note in report.notes if note not in told]
    return collected(table, report, {cell: cell for cell in table.cells})


def from_git_of_any_assignment(table: Table) -> dict[str, Outcome]:
    return from_git(table, "")


def at_home(table: Table) -> Iterator[tuple[str, Path]]:
    """Yield the folder of the assignment in each student's copy of the course."""
    released = table.course.release_folder(table.course.assignment(NAME))
    for cell, files in table.cells.items():
        home = table.folder / cell / HOME
        home.mkdir(parents=True)
        for given in ("hints.json", "test_adding.py"):
            shutil.copy(released / given, home)
        write_files(table.folder / cell, files)
        yield cell, home


def checked(table: Table) -> dict[str, Outcome]:
    outcomes = {}
    for cell, folder in at_home(table):
        try:
            work = find_work(folder)
            work.require_clear()
        except RefusedError as refusal:
            is_missing = str(refusal).startswith("There is no assignment")
            outcomes[cell] = Outcome(problem="" if is_missing else str(refusal))
        else:
            notes = (work.note,) if work.note else ()
            outcomes[cell] = Outcome(work.file.read_text("utf-8"), notes)
    return outcomes


def packed(table: Table) -> dict[str, Outcome]:
    """The archive is what the grader reads, and an untouched stub is not packed."""
    outcomes = {}
    for cell, folder in at_home(table):
        try:
            archive = pack(find_work(folder), table.folder / cell).archive
        except RefusedError as refusal:
            is_missing = re.match("There is no assignment|.*holds no answer of yours", str(refusal))
            outcomes[cell] = Outcome(problem="" if is_missing else str(refusal))
        else:
            (read,) = find_submissions(archive, table.course, NAME)
            outcomes[cell] = Outcome.of(read)
    return outcomes


DOORS: list[Door] = [
    *(folders, folders_of_any_assignment, watched, zips, one_zip, tars, inbound),
    *(from_folders, from_canvas, from_moodle, from_git, from_git_of_any_assignment),
    *(checked, packed),
]


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__)
def test_every_door_chooses_the_same_and_says_the_same(
    door: Door, built_course: Path, tmp_path: Path
) -> None:
    if "git" in door.__name__ and GIT is None:
        pytest.skip("git is not installed.")
    course = load_course(built_course)
    stub = course.stub_file(course.assignment(NAME)).read_text("utf-8")
    cells = {cell: hand_in(*places, stub) for cell, places in CELLS.items()}
    outcomes = door(Table(course, tmp_path, cells))
    of_any_assignment = (folders_of_any_assignment, from_git_of_any_assignment)
    wrong = []
    for cell, places in CELLS.items():
        if door in of_any_assignment and places == ("none", "other name at the top"):
            continue  # nothing tells what the file is for
        right = expected(*places, stub, f"{HOME}/" if door in (checked, packed) else "")
        if door is packed:
            right = Outcome(None if right.text == stub else right.text, (), right.problem)
        if door is from_git_of_any_assignment and right.text == stub:
            right = Outcome()  # what nobody touched is no hand-in
        if outcomes.get(cell, Outcome()) != right:
            wrong.append((cell, outcomes.get(cell), right))
    assert not wrong


# -- how a test hands in ------------------------------------------------------------------------------


@pytest.fixture
def course(built_course: Path) -> Course:
    return load_course(built_course)


@pytest.fixture
def stub(course: Course) -> str:
    return course.stub_file(course.assignments[0]).read_text("utf-8")


def handed_in(
    course: Course, folder: Path, files: dict[str, str], place: str = f"ada/{NAME}"
) -> Submission:
    write_files(folder / "class", {f"{place}/{name}": text for name, text in files.items()})
    (submission,) = find_submissions(folder / "class", course, NAME)
    return submission


def texts(submission: Submission) -> list[str]:
    return [file.text for file in submission.files]


# -- attempts, and several students -------------------------------------------------------------------

EARLY, LATE = "early", "late"
ATTEMPTS: dict[str, tuple[dict[str, str], str]] = {
    "numbers": ({"1": EARLY, "2": LATE}, "2"),
    "numbers of two lengths": ({"9": EARLY, "10": LATE}, "10"),
    "words": ({"Attempt_1": EARLY, "Attempt_2": LATE}, "Attempt_2"),
    "versions": ({"v1": EARLY, "v2": LATE, "v3": LATE}, "v3"),
    "times": ({"2026-11-27-23-58-10": EARLY, "2026-11-28-00-03-10": LATE}, "2026-11-28-00-03-10"),
    "times without seconds": ({"20261127_2358": EARLY, "20261128_0003": LATE}, "20261128_0003"),
    "the stub first": ({"1": "stub", "2": LATE}, "2"),
    "the stub last": ({"1": EARLY, "2": "stub"}, "1"),
    "only the stub": ({"1": "stub", "2": "stub"}, "2"),
    "the site's word": ({"1": EARLY, "2": LATE, "active": "1"}, "1"),
    "the site's word, and the stub": ({"1": EARLY, "2": "stub", "active": "2"}, "1"),
    "the site's word about nothing": ({"1": EARLY, "2": LATE, "active": "7"}, "2"),
}


@pytest.mark.parametrize("below", ["", f"{NAME}/"])
@pytest.mark.parametrize("attempts, counting", ATTEMPTS.values(), ids=ATTEMPTS)
def test_the_latest_attempt_counts_or_the_one_that_the_site_names(
    course: Course, stub: str, tmp_path: Path, below: str, attempts: dict[str, str], counting: str
) -> None:
    of = {"stub": stub, EARLY: SUBTRACTS, LATE: RIGHT}
    files = {f"{below}{n}/adding.py": of[what] for n, what in attempts.items() if n != "active"}
    if "active" in attempts:
        settings = {"active_version": int(attempts["active"]), "history": []}
        files[f"{below}user_assignment_settings.json"] = json.dumps(settings)
    found = handed_in(course, tmp_path, files, "ada")
    assert (found.problem, texts(found)) == (None, [of[attempts[counting]]])
    is_told = " ".join(found.notes).startswith(f"{counting}/adding.py counts")
    assert is_told == (set(attempts.values()) != {"stub"})


SECTIONS: dict[str, list[str]] = {
    "sections": ["Section 1/ada", "Section 1/ben", "Section 2/cy", "Section 2/dan"],
    "one section": ["Section 1/ada", "Section 1/ben", "eve"],
    "with the assignment's folder": [f"Lab-B/ada/{NAME}", f"Lab-B/ben/{NAME}", f"eve/{NAME}"],
    "other words": ["Mo 10/ada", "Mo 10/ben", "Di 12/cy", "Di 12/dan", "Di 12/eve"],
    "numbers of students": ["Group A/1001", "Group A/1002"],
    "files": ["Gruppe 3/ada.py", "Gruppe 3/ben.py"],
}
STUDENTS: dict[str, list[str]] = {
    "two folders each": ["ada/src", "ada/starter", "ben/src", "ben/starter"],
    "two folders of one": ["ada/hw", "ada/backup", "ben", "cy"],
    "attempts": ["ada/1", "ada/2", "ben/1", "ben/2"],
    "assignments": [f"ada/{NAME}", f"ada/{NAME} (1)", "ben"],
    "groups": ["Group 1", "Group 2"],
    "a release": [f"ada/assignments/{NAME}", "ada/my work", f"ben/assignments/{NAME}", "ben/mine"],
}


@pytest.mark.parametrize("name", ["test_solution.py", "readme.py", "README.ipynb", "../test_it.py"])
def test_an_answer_that_is_called_like_a_test_counts_before_the_stub(
    course: Course, stub: str, tmp_path: Path, name: str
) -> None:
    found = handed_in(course, tmp_path, {"adding.py": stub, name: text_of(name)})
    assert (found.problem, texts(found)) == (None, [text_of(name)])
    assert f"{name.removeprefix('../')} counts: there is no answer in" in found.notes[0]
    beside = handed_in(course, tmp_path, {"adding.py": RIGHT, name: text_of(name)})
    assert (texts(beside), beside.notes) == ([RIGHT], ())


def test_a_folder_that_lies_too_deep_is_named(course: Course, stub: str, tmp_path: Path) -> None:
    deep = "/".join(f"f{number}" for number in range(10))
    found = handed_in(course, tmp_path, {"adding.py": stub, f"{deep}/adding.py": RIGHT})
    assert texts(found) == [stub]
    assert found.notes[0].endswith("f8 lies more than 8 folders deep.")
    alone = handed_in(course, tmp_path / "alone", {f"{deep}/adding.py": RIGHT})
    assert "f8 lies more than 8 folders deep." in (alone.problem or "")


ONE: dict[str, list[str]] = {
    "work in src": [NAME, "src"],
    "a folder of tries": [NAME, "src", "old"],
    "pictures": [NAME, "images/plot.png"],
    "the released folder": [HOME, "my work"],
    "the released folder alone": [HOME],
    "a file": [NAME, "helper.py"],
}
SEVERAL: dict[str, list[str]] = {
    "a release": [NAME, "ada", "ben"],
    "a released folder": [HOME, "ada", "ben"],
    "collected": [NAME, "ada", "collected.json"],
}


@pytest.mark.parametrize("assignment", [NAME, None])
@pytest.mark.parametrize("places", [*ONE.values(), *SEVERAL.values()], ids=[*ONE, *SEVERAL])
def test_a_folder_with_an_assignment_in_it_is_one_students(
    course: Course, stub: str, tmp_path: Path, places: list[str], assignment: str | None
) -> None:
    """Unless several others beside it hold work, as in a class beside which the release lies."""
    ways = [place if "." in place else f"{place}/adding.py" for place in places]
    files = dict.fromkeys(ways, RIGHT) | ({ways[0]: stub} if "/src" in f"/{places[-1]}" else {})
    folder = write_files(tmp_path / "class", files)
    students = {one.student for one in find_submissions(folder, course, assignment)}
    if places in ONE.values():
        (one,) = find_submissions(folder, course, assignment)
        assert (students, texts(one)) == ({"class"}, [RIGHT])
    else:
        assert "ada" in students and "class" not in students


def write_class(folder: Path, places: list[str]) -> Path:
    ways = [place if place.endswith(".py") else f"{place}/adding.py" for place in places]
    return write_files(folder / "class", dict.fromkeys(ways, RIGHT))


@pytest.mark.parametrize("places", SECTIONS.values(), ids=SECTIONS)
def test_folders_of_sections_are_not_taken_for_students(
    course: Course, tmp_path: Path, places: list[str]
) -> None:
    """They can hold equal work, so their contents do not tell; nothing is written."""
    folder = write_class(tmp_path, places)
    with pytest.raises(RefusedError, match="seems to hold the work of several students"):
        find_submissions(folder, course, NAME)
    report = collect(
        [folder], course, CollectOptions(tmp_path / "submitted", course.assignment(NAME))
    )
    assert not report.counts and "several students" in report.odd[0]


@pytest.mark.parametrize("places", STUDENTS.values(), ids=STUDENTS)
def test_several_folders_of_a_student_are_not_taken_for_students(
    course: Course, tmp_path: Path, places: list[str]
) -> None:
    submissions = list(find_submissions(write_class(tmp_path, places), course, NAME))
    assert {one.student for one in submissions} == {place.split("/")[0] for place in places}
    assert all(texts(one) == [RIGHT] for one in submissions)


# -- what counts as an answer -------------------------------------------------------------------------

UNTOUCHED = {
    "another comment": lambda stub: stub.replace("# TODO: both", "# ToDo: BOTH"),
    "line ends of Windows": lambda stub: stub.replace("\n", "\r\n"),
    "a name above": lambda stub: "# my name\n" + stub,
    "other quotes": lambda stub: stub.replace('"', "'"),
    "more imports": lambda stub: (
        "import math\nfrom torch import (\n    nn,\n    Tensor,\n)\n" + stub
    ),
    "a longer raise": lambda stub: re.sub(
        r"(NotImplementedError\()(.*)\)", r"\1\n            \2,\n        )", stub
    ),
    "longer signatures": lambda stub: re.sub(r"def (\w+)\(", r"def \1(\n    ", stub),
}


@pytest.mark.parametrize("changed", UNTOUCHED.values(), ids=UNTOUCHED)
def test_a_stub_without_a_change_of_its_code_is_untouched(
    course: Course, stub: str, tmp_path: Path, changed
) -> None:
    """Its comments may differ, or a formatter may have laid it out."""
    text = changed(stub)
    assert text != stub
    assert texts(handed_in(course, tmp_path, {"adding.py": text, "final.py": RIGHT})) == [RIGHT]


@pytest.mark.parametrize("name", ["adding.py.txt", "adding.py.bak", "my_adding.txt", "Adding.docx"])
def test_a_stub_beside_a_file_that_is_not_read_is_noted(
    course: Course, stub: str, tmp_path: Path, name: str
) -> None:
    found = handed_in(course, tmp_path, {"adding.py": stub, name: RIGHT, "notes.txt": ""})
    sentence = f"There is no answer in adding.py. {name} beside it was not read: only .py and .ipynb files are."
    assert found.notes == (sentence,)
    again = handed_in(course, tmp_path / "again", {"adding.py": RIGHT, name: RIGHT})
    assert again.notes == ()


@pytest.mark.parametrize(
    "text", ["", "\n", "# nothing yet\n", "import torch\n", "from final import *\n"]
)
def test_a_file_without_an_answer_does_not_count_beside_one(
    course: Course, tmp_path: Path, text: str
) -> None:
    assert texts(handed_in(course, tmp_path, {"adding.py": text, "final.py": RIGHT})) == [RIGHT]


def test_helpers_and_given_files_are_no_answers(course: Course, stub: str, tmp_path: Path) -> None:
    files = {
        "adding.py": stub, "helper.py": "x = 1\n", "pictures.py": RIGHT, "test_adding.py": RIGHT,
    }  # fmt: skip
    found = handed_in(course, tmp_path, files)
    assert (found.problem, texts(found)) == (None, [stub])
    assert found.notes == ("There is no answer in adding.py and helper.py.",)


def test_names_are_matched_as_whole_words() -> None:
    stub = ReleasedStub.of(
        "adding",
        {"adding.py": 'def add():\n    raise NotImplementedError("add is not written yet.")\n'},
    )
    for text in (
        "def add(a):\n",
        "async def add():\n",
        "class add:\n",
        "add = sum\n",
        "add: Adder = sum\n",
        "  def add(\n",
    ):
        assert stub.is_answer(SourceFile("x.py", text)), text
    for text in ("def added(a):\n", "print(add)\n", "add == 3\n", "# def add(a)\n", "import add\n"):
        assert not stub.is_answer(SourceFile("x.py", text)), text
    assert not UNKNOWN.is_answer(SourceFile("x.py", "def add(a): pass\n"))


def test_earlier_work_beside_the_stub_is_no_answer(
    course: Course, stub: str, tmp_path: Path
) -> None:
    """Assignments share names: `causal_mask` of one is asked for again in another."""
    first = course.assignments[0]
    two = course.model_copy(
        update={"assignments": (first, first.model_copy(update={"name": "02_totals"}))}
    )
    found = handed_in(two, tmp_path, {"adding.py": stub, "totals.py": RIGHT})
    assert (texts(found), found.notes) == ([stub], ())
    alone = handed_in(two, tmp_path / "alone", {"totals.py": RIGHT})
    end = "there is only totals.py, which has the name of another assignment."
    assert alone.problem and alone.problem.endswith(end)


def test_written_answers_are_work() -> None:
    placeholder = (
        "*Write your answer here, in place of this line. A person reads it and gives the points.*"
    )
    script = 'def add():\n    raise NotImplementedError("add is not written yet.")\n'
    stub = ReleasedStub.of("adding", {"adding.py": f"{script}# {placeholder}\n"})
    assert stub.is_untouched(SourceFile("adding.py", f"{script}# {placeholder}\n"))
    assert not stub.is_untouched(SourceFile("adding.py", f"{script}# Because of the sum.\n"))


def test_hostile_notebooks_are_no_answers(course: Course) -> None:
    stub = released_stub(course, course.assignments[0])
    deep = '{"cells": [{"cell_type": "code", "source": ' + "[" * 900 + "]" * 900 + "}]}"
    for text in (
        "{",
        "[]",
        '{"cells": [1, null]}',
        '{"cells": [{"cell_type": "code", "source": 3}]}',
        deep,
    ):
        assert not stub.is_answer(SourceFile("x.ipynb", text))


# -- a student's own folder ---------------------------------------------------------------------------


def run(*words: str) -> tuple[int, str]:
    done = CliRunner(env={"COLUMNS": "200"}).invoke(cli.app, [*words])
    return done.exit_code, done.output


def test_check_of_the_stub_names_the_file_that_holds_the_work(folder: Path) -> None:
    (folder / "mine.py").write_text(RIGHT, "utf-8")
    code, shown = run("check", "adding.py")
    assert code == 1 and "There is no answer in adding.py; your work is in mine.py." in shown
