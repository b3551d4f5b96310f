"""What somebody else put into the folder of grades is not believed, and nothing is written through a link in it."""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

import autograder
from autograder import api
from autograder.gradebook.journal import FILE_NAME as JOURNAL
from autograder.gradebook.owner_key import VARIABLE, key_file, owner_key
from autograder.gradebook.run_state import FILE_NAME as RUN
from autograder.gradebook.seals import FILE_NAME as SEALS
from autograder.gradebook.seals import check_owner, refuse_links, seal
from autograder.records import RefusedError
from tests.autograder.student_folder import RIGHT, SUBTRACTS
from tests.autograder.tiny_course import write_files, write_tiny_course

NAME = "01_adding"


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory, grader_at_hand: None) -> Path:
    """A folder with a course, the work of two students, and their grades."""
    root = tmp_path_factory.mktemp("planted")
    write_tiny_course(root / "course")
    class_files = {
        f"{student}/{NAME}/adding.py": text
        for student, text in {"ada": RIGHT, "ben": SUBTRACTS}.items()
    }
    write_files(root / "submitted", class_files)
    api.grade(root / "submitted", root / "course", root / "grades", jobs=1)
    return root


@pytest.fixture
def room(graded: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(graded, tmp_path / "room"))


def grade(room: Path, **options: bool) -> api.Run:
    return api.grade(room / "submitted", room / "course", room / "grades", jobs=1, **options)


def raise_scores(room: Path) -> None:
    """Write full marks for everybody into the journal."""
    journal = room / "grades" / JOURNAL
    records = [json.loads(line) for line in journal.read_text("utf-8").splitlines()]
    lines = [
        json.dumps({**record, "score": record["max_score"], "tests": []}) for record in records
    ]
    journal.write_text("".join(f"{line}\n" for line in lines), "utf-8")


def test_own_grades_are_continued(room: Path) -> None:
    """Also where the folder was moved, and after damaged and incomplete lines."""
    with (room / "grades" / JOURNAL).open("a") as journal:
        journal.write('not json\n{"schema": 2, "student": "ada", "sco')
    run = grade(room)
    assert (run.summary.unchanged, run.summary.graded) == (2, 0)


def test_changed_grades_are_refused_and_can_be_accepted(room: Path) -> None:
    raise_scores(room)
    with pytest.raises(
        RefusedError, match=r"grades\.jsonl is not sealed with your key .*--trust-grades"
    ):
        grade(room)
    assert not (room / "grades" / RUN).exists()
    assert {g.score for g in grade(room, trust_grades=True).grades} == {10.0}
    assert grade(room).summary.unchanged == 2, "they are sealed now"


def test_a_line_that_only_the_journal_sees_is_refused(room: Path) -> None:
    """Python's text files also end lines at a carriage return."""
    journal = room / "grades" / JOURNAL
    first = journal.read_bytes().splitlines()[0]
    with journal.open("ab") as opened:
        opened.write(b"damaged\r" + first.replace(b"ada", b"eve").replace(b"ben", b"eve") + b"\n")
    with pytest.raises(RefusedError, match="is not sealed"):
        grade(room)


def forget_all_seals(grades: Path) -> None:
    (grades / SEALS).unlink()


def make_up_seals(grades: Path) -> None:
    (grades / SEALS).write_text("0" * 32 + "\n")


def leave_only_pictures(grades: Path) -> None:
    for entry in grades.iterdir():
        shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    (grades / "pictures").mkdir()
    make_up_seals(grades)


def plant_a_seed(grades: Path) -> None:
    (grades / RUN).write_text('{"schema": 1, "seed": 42}\n')


def plant_names(grades: Path) -> None:
    (grades / "names.json").write_text(
        '{"schema": 1, "names": {"ada": "Mallory"}, "originals": {}}\n'
    )


def plant_times(grades: Path) -> None:
    (grades / "times.json").write_text('{"schema": 1, "times": [], "late": []}\n')


def plant_a_suite(grades: Path) -> None:
    (file,) = (grades / "suites").iterdir()
    file.write_text(file.read_text().replace('"max_score": ', '"max_score": 1'))


PLANTED = [
    forget_all_seals, make_up_seals, leave_only_pictures, plant_a_seed, plant_names, plant_times,
    plant_a_suite,
]  # fmt: skip


@pytest.mark.parametrize("plant", PLANTED)
def test_a_planted_folder_is_refused(room: Path, plant: Callable[[Path], None]) -> None:
    plant(room / "grades")
    with pytest.raises(RefusedError, match="may have been written by somebody else"):
        grade(room)


def test_grades_of_another_user_are_refused(room: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "the key of another person")
    with pytest.raises(RefusedError, match=f"your key \\({VARIABLE}\\)"):
        grade(room)


@pytest.mark.parametrize(
    "name",
    ["", JOURNAL, RUN, SEALS, "feedback", "feedback/ada", "suites", "submissions", "index.html"],
)
def test_nothing_is_written_through_a_link(room: Path, name: str) -> None:
    outside = room / "outside"
    place = room / "grades" / name
    if place.exists():
        place.rename(outside)
    place.symlink_to(outside)
    before = sorted(outside.rglob("*")) if outside.is_dir() else outside.exists()
    with pytest.raises(RefusedError, match="is a link"):
        grade(room, trust_grades=True)
    if name not in (JOURNAL, SEALS, RUN):
        with pytest.raises(RefusedError, match="is a link"):
            api.report(room / "grades", room / "course", jobs=1)
    assert (sorted(outside.rglob("*")) if outside.is_dir() else outside.exists()) == before


def test_link_in_place_of_anything_that_lies_among_the_grades_is_refused(room: Path) -> None:
    """What a run made is looked up in its folder, and names that no run has made so far are no exception."""
    grades = room / "grades"
    (grades / "return").mkdir()
    (grades / "return/precious.git").mkdir()
    made = [path for path in grades.rglob("*") if path.name != ".lock"]
    assert {"students", "feedback", "submissions", JOURNAL} <= {path.name for path in made}
    for path in made:
        moved = path.rename(room / "moved")
        path.symlink_to(moved)
        with pytest.raises(RefusedError, match="is a link"):
            refuse_links(grades)
        path.unlink()
        moved.rename(path)
    refuse_links(grades)


@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_grades_and_work_are_made_for_their_owner_alone(room: Path, umask: int) -> None:
    """A folder that exists keeps its mode, and what is written there is as open as it is."""
    shared = room / "shared"
    shared.mkdir()
    shared.chmod(0o2770)
    before = os.umask(umask)
    try:
        for place in ("new/grades", "shared"):
            api.grade(room / "submitted", room / "course", room / place, jobs=1)
        autograder.collect([room / "submitted"], room / "course", room / "work", source="folders")
    finally:
        os.umask(before)
    for place in (room / "new", room / "work"):
        assert stat.S_IMODE(place.stat().st_mode) == 0o700
        for path in place.rglob("*"):
            mode = stat.S_IMODE(path.stat().st_mode)
            assert mode == (0o700 if path.is_dir() else 0o600), path
    assert stat.S_IMODE(shared.stat().st_mode) == 0o2770
    assert stat.S_IMODE((shared / JOURNAL).stat().st_mode) == 0o660 & ~umask


# -- where the output folder lies -----------------------------------------------------------------------------------


def refuses(submissions: Path, output: Path, course: Path, assignment: str | None = None) -> bool:
    """Whether the output folder is refused; nothing is graded, because there is not yet a folder for the lock."""
    try:
        api.grade(submissions, course, output, assignment=assignment, jobs=1)
    except RefusedError as refusal:
        assert "among the files of a student" in str(
            refusal
        ) or "is the folder of the submissions" in str(refusal)
        assert not (output / JOURNAL).exists()
        return True
    return False


@pytest.mark.parametrize(
    ("submissions", "output"),
    [
        ("submitted", "submitted"),
        ("submitted", "submitted/ada"),
        ("submitted", "submitted/ada/grades"),
        ("submitted", f"submitted/ada/{NAME}/grades"),
        ("submitted/ada", "submitted/ada/grades"),
        (f"submitted/ada/{NAME}", f"submitted/ada/{NAME}/grades"),
        (f"submitted/ada/{NAME}/adding.py", f"submitted/ada/{NAME}/grades"),
        (f"submitted/ada/{NAME}/adding.py", f"submitted/ada/{NAME}/deeper/grades"),
    ],
)
def test_an_output_folder_among_the_files_of_a_student_is_refused(
    room: Path, submissions: str, output: str
) -> None:
    assert refuses(room / submissions, room / output, room / "course")
    (room / "by_link").symlink_to((room / output).parent)
    assert refuses(room / submissions, room / "by_link" / Path(output).name, room / "course")


# -- the owner's key ------------------------------------------------------------------------------------------------


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for the state of this user's programs, without a key in the environment."""
    monkeypatch.delenv(VARIABLE)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


def test_the_key_is_made_once_and_for_its_owner_alone(state: Path) -> None:
    made = owner_key()
    file = state / "autograder" / "key"
    assert (made.source, made.problem, key_file()) == (str(file), "", file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600 and len(made.key) == 64
    assert owner_key() == made
    assert [each.name for each in file.parent.iterdir()] == ["key"]


def test_a_key_that_others_can_read_is_refused(state: Path) -> None:
    owner_key()
    (state / "autograder" / "key").chmod(0o640)
    with pytest.raises(RefusedError, match="chmod 600"):
        owner_key()


@pytest.mark.parametrize(
    ("key", "sentence"),
    [("secret", "fewer than 16"), ("a" * 64, "fewer than 8"), ("passwordpassword", "fewer than 8")],
)
def test_a_weak_key_is_refused(monkeypatch: pytest.MonkeyPatch, key: str, sentence: str) -> None:
    monkeypatch.setenv(VARIABLE, key)
    with pytest.raises(RefusedError, match=sentence):
        owner_key()


def test_report_and_export_say_what_grade_refuses(room: Path) -> None:
    before = api.report(room / "grades", room / "course", jobs=1).differences
    raise_scores(room)
    said = api.report(room / "grades", room / "course", jobs=1).differences
    assert len(said) == len(before) + 1 and "was changed by somebody else" in said[-1]
    exported = autograder.export("csv", room / "grades", room / "course", output=room / "out.csv")
    assert any("was changed by somebody else" in line for line in exported.problems)


def test_a_line_nested_too_deeply_is_not_passed_over(room: Path) -> None:
    """Whether one can be read depends on who reads it."""
    with (room / "grades" / JOURNAL).open("a") as journal:
        journal.write('{"a":' + "[" * 100_000 + "]" * 100_000 + "}\n")
    with pytest.raises(RefusedError, match="is not sealed"):
        grade(room)


@pytest.mark.parametrize("left", ["", "0123"])
def test_run_killed_while_it_wrote_its_first_seal_does_not_lock_the_folder(
    tmp_path: Path, left: str
) -> None:
    (tmp_path / "seals.txt").write_text(left)
    check_owner(tmp_path)
    seal(tmp_path, "run.json", b"{}")
    (tmp_path / "run.json").write_text("{}")
    check_owner(tmp_path)


@pytest.mark.parametrize("beside", ["", "index.html"])
def test_seal_of_somebody_else_is_refused(tmp_path: Path, beside: str) -> None:
    """A whole line, or an unfinished one beside something that counts."""
    (tmp_path / "seals.txt").write_text("0123" if beside else "0123\n")
    if beside:
        (tmp_path / beside).write_text("")
    with pytest.raises(RefusedError, match="no seal of your key"):
        check_owner(tmp_path)
