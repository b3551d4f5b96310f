"""Finding submissions: every layout is read, every unusable file is refused with a sentence, and nothing
hostile is opened.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from autograder.course.config import Course
from autograder.records import InfrastructureError, RefusedError
from autograder.source.gate import FILE_BYTES
from autograder.submissions.class_folder import ClassFolder
from autograder.submissions.files import STUDENT_ENTRIES, DiskFolder
from autograder.submissions.find import find_submissions
from tests.autograder.hand_ins import (
    CODE,
    NOTEBOOK,
    TOTAL,
    found,
    make_course,
    only,
    problem,
    texts,
    write,
    zipped,
)
from tests.autograder.tiny_course import write_files


@pytest.fixture
def course(tmp_path: Path) -> Course:
    return make_course(tmp_path)


def test_watched_folder_knows_whose_a_file_is(course: Course, tmp_path: Path) -> None:
    names = ("ada - adding.py", "ben - adding.py", "cy@x.org_1_adding.py", "cy@x.org_2_adding.py")
    write_files(tmp_path / "week", dict.fromkeys(names, "x = 1\n"))
    watched = ClassFolder(tmp_path / "week", course, "01_adding")
    found = [one.student for one in watched.submissions(["ada - adding.py", names[2]])]
    assert found == ["ada", "cy@x.org"]


# -- layouts ------------------------------------------------------------------------------------------


def test_folders_by_student_and_assignment_are_found(tmp_path: Path, course: Course) -> None:
    tree = write(
        tmp_path / "submitted",
        {
            "ben/01_adding/adding.py": CODE,
            "ada/02_totals/totals.ipynb": NOTEBOOK,
            "ada/01_adding/adding.py": CODE,
            "ada/01_adding/timestamp.txt": "2026-11-20 10:00",
            "ada/01_adding/test_adding.py": "",
        },
    )
    assert texts(found(tree, course)) == {
        ("ada", "01_adding"): {"adding.py": CODE},
        ("ada", "02_totals"): {"totals.ipynb": NOTEBOOK},
        ("ben", "01_adding"): {"adding.py": CODE},
    }
    assert list(found(tree, course, "02_totals")) == [("ada", "02_totals")]


ADA = {("ada", "01_adding")}
# the files, which of them is given, and the submissions in it; None: the assignment is asked for
SHAPES: dict[str, tuple[list[str], str, set[tuple[str, str]] | None]] = {
    "the file ada/adding.py": (["ada/adding.py"], "ada/adding.py", ADA),
    "the file 01_adding/ada.py": (["01_adding/ada.py"], "01_adding/ada.py", ADA),
    "a folder of adding.py": (["ada/adding.py"], "ada", ADA),
    "a folder of 01_adding/": (["ada/01_adding/x.py", "ada/02_totals/x.py"], "ada",
                               {("ada", "01_adding"), ("ada", "02_totals")}),
    "01_adding/ of ada.py": (["01_adding/ada.py", "01_adding/ben.py"], "01_adding",
                             {("ada", "01_adding"), ("ben", "01_adding")}),
    "01_adding/ of ada/adding.py": (["01_adding/ada/adding.py"], "01_adding", ADA),
    "a folder of ada/01_adding/": (["class/ada/01_adding/adding.py"], "class", ADA),
    "a folder of ada/adding.py": (["class/ada/adding.py"], "class", ADA),
    "a folder of ada/, lost.py": (["class/ada/adding.py", "class/lost.py"], "class",
                                  {("ada", "01_adding"), ("lost", "lost.py")}),
    "a folder of lost.py": (["class/lost.py"], "class", None),
}  # fmt: skip


@pytest.mark.parametrize("files, given, submissions", SHAPES.values(), ids=SHAPES)
def test_names_tell_whose_work_it_is(tmp_path: Path, course, files, given, submissions) -> None:
    write(tmp_path, dict.fromkeys(files, CODE))
    if submissions is None:
        with pytest.raises(RefusedError, match="--assignment"):
            find_submissions(tmp_path / given, course)
    else:
        assert set(found(tmp_path / given, course)) == submissions


def test_files_named_like_students_are_found(tmp_path: Path, course: Course) -> None:
    folder = write(
        tmp_path / "class",
        {"ada.py": CODE, "ben.ipynb": NOTEBOOK, "cleo.py": CODE, "cleo.ipynb": NOTEBOOK},
    )
    write(folder, dict.fromkeys(["grades.csv", "README.md", ".hidden.py", "test_adding.py"], "x"))
    write(folder, {"test_user.py": CODE})
    submissions = texts(found(folder, course, "01_adding"))
    assert {student: sorted(files) for (student, _), files in submissions.items()} == {
        "ada": ["ada.py"], "ben": ["ben.ipynb"], "cleo": ["cleo.ipynb", "cleo.py"],
        "test_user": ["test_user.py"],
    }  # fmt: skip
    with pytest.raises(RefusedError, match="--assignment"):
        find_submissions(folder, course)


def test_archives_can_replace_folders(tmp_path: Path, course: Course) -> None:
    folder = write(
        tmp_path / "class",
        {
            "ada.zip": zipped(
                {"01_adding/adding.py": CODE, "02_totals/totals.py": TOTAL, "__MACOSX/._x.py": ""}
            ),
            "ben.zip": zipped({"ben/01_adding/adding.ipynb": NOTEBOOK}),
            "cleo/01_adding.zip": zipped({"adding.py": CODE}),
            "dan/01_adding.zip": zipped({"01_adding/adding.py": CODE}),
            "eve/adding.zip": zipped(
                {"./adding.py": CODE, "./x" * 3 + "/" + "long" * 60 + ".txt": "x"}
            ),
            "fay/homework.zip": zipped({"adding.py": CODE}),
        },
    )
    assert texts(found(folder, course)) == {
        ("ada", "01_adding"): {"adding.py": CODE},
        ("ada", "02_totals"): {"totals.py": TOTAL},
        ("ben", "01_adding"): {"adding.ipynb": NOTEBOOK},
        ("cleo", "01_adding"): {"adding.py": CODE},
        ("dan", "01_adding"): {"adding.py": CODE},
        ("eve", "01_adding"): {"adding.py": CODE},
        ("fay", "01_adding"): {"adding.py": CODE},
    }


@pytest.mark.parametrize(
    ("name", "inside", "option"),
    [
        ("ada.zip", "adding.py", None),
        ("ada.zip", "adding.py", "01_adding"),
        ("ada.zip", "my_solution.py", "01_adding"),
        ("ada.zip", "01_adding/adding.py", None),
        ("ada/01_adding.zip", "adding.py", None),
        ("ada/01_adding.zip", "01_adding/adding.py", None),
        ("01_adding/ada.zip", "adding.py", None),
    ],
)
def test_archive_of_one_student_is_read(
    tmp_path: Path, course: Course, name: str, inside: str, option: str | None
) -> None:
    write(tmp_path, {name: zipped({inside: CODE})})
    submission = only(tmp_path / name, course, option)
    assert (submission.student, submission.assignment) == ("ada", "01_adding")
    assert submission.files[0].text == CODE


def test_submissions_are_read_one_at_a_time(tmp_path: Path, course: Course) -> None:
    folder = write(tmp_path / "class", {"ada.py": CODE, "ben.py": CODE})
    submissions = find_submissions(folder, course, "01_adding")
    (folder / "ben.py").write_text("late = True\n")
    assert [s.files[0].text for s in submissions] == [CODE, "late = True\n"]


# -- wrong usage --------------------------------------------------------------------------------------


def test_wrong_usage_is_reported(tmp_path: Path, course: Course) -> None:
    write(
        tmp_path, {"solo.py": CODE, "notes.txt": "x", "empty/README.md": "x", "bad.zip": b"PK\3\4"}
    )
    cases = [
        ("nowhere", None, "There is no file or folder"),
        ("emtpy", None, "emtpy; did you mean `empty`?"),
        ("solo.py", None, "--assignment"),
        ("notes.txt", "01_adding", "a .py or .ipynb file"),
        ("empty", "01_adding", "There are no submissions"),
        ("bad.zip", None, "broken"),
        ("solo.py", "01_ading", "did you mean `01_adding`"),
    ]
    for name, option, sentence in cases:
        with pytest.raises(RefusedError, match=sentence):
            find_submissions(tmp_path / name, course, option)
    os.mkfifo(tmp_path / "pipe.py")
    with pytest.raises(RefusedError, match="pipe.py is not a folder"):
        find_submissions(tmp_path / "pipe.py", course, "01_adding")


# -- which file counts --------------------------------------------------------------------------------


@pytest.mark.parametrize("option", [None, "01_adding"])
def test_unusable_student_folders_are_refused_with_a_reason(
    tmp_path: Path, course: Course, option: str | None
) -> None:
    """Folders that begin with a dot, are empty, or contain nothing to grade."""
    folder = write(
        tmp_path / "c",
        {
            "ada/adding.py": CODE, ".cleo/adding.py": CODE, "..dots/adding.py": CODE,
            "eve/essay.pdf": "x", "x_cache/adding.py": CODE,
        },
    )  # fmt: skip
    (folder / "ben").mkdir()
    (folder / ".finn").mkdir()
    problems = {s.student: s.problem for s in find_submissions(folder, course, option)}
    assert set(problems) == {"ada", ".cleo", "..dots", "eve", "ben", ".finn", "x_cache"}
    assert problems["ada"] is None is problems["x_cache"]
    for student in (".cleo", "..dots", ".finn"):
        assert problems[student] == (
            f"The name of the folder {student} begins with a dot, like those of programs. "
            "Rename it if it is a student's, otherwise remove it."
        )
    assert problems["ben"].endswith("is empty.") and "only essay.pdf" in problems["eve"]


def test_system_files_are_not_students(tmp_path: Path, course: Course) -> None:
    names = [".git", ".earlier", "__MACOSX", ".ipynb_checkpoints", ".pytest_cache", ".Trash-1000", "._ada"]  # fmt: skip
    folder = write(
        tmp_path / "c",
        {"ada/adding.py": CODE, ".DS_Store": "x", **{f"{n}/x.py": CODE for n in names}},
    )
    assert list(found(folder, course)) == [("ada", "01_adding")]
    assert list(found(folder, course, "01_adding")) == [("ada", "01_adding")]


def test_missing_file_names_the_expected_and_the_found_files(
    tmp_path: Path, course: Course
) -> None:
    write(tmp_path, {"c/ada/01_adding/essay.pdf": "x"})
    expected = "No file adding.py or adding.ipynb was handed in; there is only essay.pdf."
    assert problem(tmp_path / "c", course, None) == expected
    (tmp_path / "e" / "ada" / "01_adding").mkdir(parents=True)
    assert problem(tmp_path / "e", course, None) == (
        "No file adding.py or adding.ipynb was handed in; 01_adding is empty."
    )


def test_unknown_assignments_are_named(tmp_path: Path, course: Course) -> None:
    write(
        tmp_path,
        {
            "c/ada/01_ading/mine.py": CODE,
            "c/ada/02_totals/totals.py": TOTAL,
            "c/ada/data/x.csv": "1",
        },
    )
    submissions = found(tmp_path / "c", course)
    assert list(submissions) == [("ada", "01_adding"), ("ada", "02_totals")], "where it is missed"
    assert submissions["ada", "01_adding"].problem == (
        "The course has no assignment `01_ading`; did you mean `01_adding`?"
    )
    assert "did you mean" in problem(tmp_path / "c", course, "01_adding")
    write(tmp_path, {"d/ada/99_zebra/zebra.py": CODE})
    assert problem(tmp_path / "d", course, None).endswith(
        "`99_zebra`; there are 01_adding, 02_totals."
    )


def test_folder_of_another_assignment_is_ignored(tmp_path: Path, course: Course) -> None:
    write(tmp_path, {"c/cai/99_nothing/x.py": CODE, "c/dan/work/02_totals/totals.py": TOTAL})
    submissions = found(tmp_path / "c", course, "01_adding")
    assert [submission.problem for submission in submissions.values()] == [
        "No file adding.py or adding.ipynb was handed in; there is only x.py in 99_nothing, "
        "which is named like another assignment.",
        "No file adding.py or adding.ipynb was handed in; there is only totals.py in 02_totals, "
        "which is named like another assignment.",
    ]
    write(tmp_path, {"d/ada/2026_homework/adding.py": CODE, "d/ben/homework/x.py": CODE})
    assert all(
        submission.files for submission in found(tmp_path / "d", course, "01_adding").values()
    )


def test_a_stray_file_does_not_stop_the_class(tmp_path: Path, course: Course) -> None:
    folder = write(
        tmp_path / "c",
        {"ada/01_adding/adding.py": CODE, "notes.py": CODE, "ada.py": CODE, "ben.zip": b""},
    )
    submissions = found(folder, course)
    assert list(submissions) == [
        ("ada", "01_adding"),
        ("ada", "ada.py"),
        ("ben", "ben"),
        ("notes", "notes.py"),
    ]
    assert submissions["ada", "01_adding"].files
    assert submissions["notes", "notes.py"].problem.startswith(
        "notes.py lies beside the students' folders"
    )
    folder = write(tmp_path / "s1", {"ada.py": CODE, "ben.py": CODE, "data/x.csv": "1"})
    with pytest.raises(
        RefusedError, match=r"the files in s1 \(ada.py and ben.py\) is unknown. Pass --assign"
    ):
        find_submissions(folder, course)


def hand_in_packed(folder: Path, content: bytes, pack: Callable[[dict], bytes] | None) -> None:
    """Hand in a file with this content, directly or in an archive."""
    if pack is None:
        write(folder, {"adding.py": content})
    else:
        write(folder, {"01_adding.zip": pack({"adding.py": content})})


# -- what is in a file --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "text"),
    [(b"", ""), (b"\xef\xbb\xbfx = 1\n", "x = 1\n"), (b"x = 1\r\ny = 2\r\n", "x = 1\r\ny = 2\r\n")],
)
@pytest.mark.parametrize("pack", [None, zipped])
def test_text_is_read_unchanged(
    tmp_path: Path, course: Course, content: bytes, text: str, pack
) -> None:
    hand_in_packed(tmp_path / "c" / "ada", content, pack)
    assert only(tmp_path / "c", course).files[0].text == text


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("x = 'é'\n".encode("latin-1"), "adding.py is not UTF-8 text (byte 6); save it as UTF-8."),
        ("x = 1\n".encode("utf-16"), "adding.py is not UTF-8 text (byte 1); save it as UTF-8."),
        (b"x = 1\n\0", "adding.py is not a text file: it contains a zero byte."),
        (b"#" * (FILE_BYTES + 1), "adding.py is larger than 4 MB."),
    ],
)
@pytest.mark.parametrize("pack", [None, zipped])
def test_file_that_is_not_text_is_refused(
    tmp_path: Path, course: Course, content: bytes, sentence: str, pack
) -> None:
    hand_in_packed(tmp_path / "c" / "ada", content, pack)
    assert problem(tmp_path / "c", course) == sentence


@pytest.mark.parametrize(
    "content", ['{"cells": [', "{}", "[]", '{"cells": 3}', "[" * 100_000, "", "text"]
)
def test_file_that_is_not_a_notebook_is_refused(
    tmp_path: Path, course: Course, content: str
) -> None:
    write(tmp_path, {"c/ada/adding.ipynb": content})
    sentence = "adding.ipynb is not a readable notebook. Was it saved completely?"
    assert problem(tmp_path / "c", course) == sentence
    write(tmp_path, {"c/ada/adding.py": CODE})
    assert (
        problem(tmp_path / "c", course)
        == f"{sentence} The submission also contains adding.py; hand in only one file."
    )


# -- links, pipes and devices -------------------------------------------------------------------------


def test_links_and_special_files_are_not_opened(tmp_path: Path, course: Course) -> None:
    secret = write(tmp_path, {"secret/adding.py": "SECRET = 1\n"}) / "secret"
    folder = write(tmp_path / "c", {"zed/adding.py": CODE})
    for student in ("ada", "ben", "cleo", "dan"):
        (folder / student).mkdir()
    (folder / "ada" / "adding.py").symlink_to(secret / "adding.py")
    os.link(secret / "adding.py", folder / "ben" / "adding.py")
    os.mkfifo(folder / "cleo" / "adding.py")
    (folder / "dan" / "01_adding").symlink_to(secret)
    (folder / "eve").symlink_to(secret)
    (folder / "fay.py").symlink_to(secret / "adding.py")
    (folder / "gus.zip").symlink_to(secret / "adding.py")
    submissions = found(folder, course, "01_adding")
    assert submissions.pop(("zed", "01_adding")).files[0].text == CODE
    assert {student for student, _ in submissions} == {"ada", "ben", "cleo", "dan", "eve", "fay", "gus"}  # fmt: skip
    assert all(submission.problem for submission in submissions.values())
    assert "pipe" in submissions["cleo", "01_adding"].problem
    assert "linked to" in submissions["ben", "01_adding"].problem


@pytest.mark.parametrize(
    ("call", "number"), [("open", errno.EMFILE), ("open", errno.EIO), ("scandir", errno.ENFILE)]
)
def test_failure_of_the_machine_refuses_nobody(
    tmp_path: Path, course: Course, monkeypatch: pytest.MonkeyPatch, call: str, number: int
) -> None:
    """Too many open files, or a disk with errors, are not the student's: a refusal would be a score of zero."""
    folder = write(tmp_path / "c", {"ada/adding.py": CODE})
    real = getattr(os, call)

    def fail(path, *arguments):
        if Path(path).name in ("ada", "adding.py"):
            raise OSError(number, os.strerror(number), str(path))
        return real(path, *arguments)

    monkeypatch.setattr(os, call, fail)
    with pytest.raises(InfrastructureError, match=re.escape(os.strerror(number))):
        found(folder, course, "01_adding")


def test_folder_with_too_many_files_is_refused(tmp_path: Path, course: Course) -> None:
    folder = write(tmp_path / "c", {f"ada/file{i}.txt": "" for i in range(STUDENT_ENTRIES + 1)})
    write(folder, {"ada/adding.py": CODE})
    assert "more than 1000 files" in problem(folder, course)


def folder_and_secret(tmp_path: Path) -> tuple[Path, Path]:
    """Write a student's folder and that of the solutions."""
    secret = write(tmp_path / "solutions", {"adding.py": "answer = 42\n"})
    inner = write(tmp_path / "submitted/ada/01_adding", {"adding.py": "answer = 0\n"})
    return inner, secret


def test_a_folder_that_becomes_a_link_while_it_is_read_leads_nowhere(tmp_path: Path) -> None:
    """A student who can still write replaces a folder with a link to the solutions, between listing and reading."""
    inner, secret = folder_and_secret(tmp_path)
    root = DiskFolder(tmp_path / "submitted")
    (student,) = root.entries()
    (assignment,) = student.entries()
    (file,) = assignment.entries()
    assert file.read() == b"answer = 0\n"
    inner.rename(tmp_path / "moved")
    inner.symlink_to(secret)
    with pytest.raises(RefusedError):
        file.read()
    with pytest.raises(RefusedError):
        assignment.entries()
