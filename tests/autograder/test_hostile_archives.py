"""Archives of students: whatever they hold, a sentence refuses them, and nothing is written, followed or exhausted."""

from __future__ import annotations

import io
import os
import stat
import struct
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autograder.course.config import Course
from autograder.records import RefusedError
from autograder.submissions.files import CLASS_BYTES, STUDENT_BYTES, STUDENT_ENTRIES
from autograder.submissions.find import find_submissions
from tests.autograder.hand_ins import CODE, found, make_course, problem, write, zipped


@pytest.fixture
def course(tmp_path: Path) -> Course:
    return make_course(tmp_path)


def hand_in(tmp_path: Path, name: str, content: bytes) -> Path:
    return write(tmp_path / "class", {name: content})


def encrypted(data: bytes) -> bytes:
    changed = bytearray(data)
    for signature, offset in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        changed[data.index(signature) + offset] |= 1
    return bytes(changed)


def named_twice() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("adding.py", CODE)
        archive.writestr("adding.py", "other = 1\n")
    return buffer.getvalue()


def linked() -> bytes:
    info = zipfile.ZipInfo("adding.py")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(info, "/etc/passwd")
    return buffer.getvalue()


def declared_small() -> bytes:
    """The directory declares 40 bytes, and the data unpack to 100 MB."""
    data = bomb("adding.py", 100)
    start = data.index(b"PK\1\2")
    return data[: start + 24] + struct.pack("<L", 40) + data[start + 28 :]


def bomb(name: str, megabytes: int) -> bytes:
    buffer = io.BytesIO()
    with (
        zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open(name, "w") as entry,
    ):
        for _ in range(megabytes):
            entry.write(bytes(1 << 20))
    return buffer.getvalue()


NULL_NAME = (b"adding.pyXtxt", b"adding.py\0txt")
HOSTILE_ZIPS: dict[str, tuple[Callable[[], bytes], str]] = {
    "bzip2": (lambda: zipped({"adding.py": CODE}, zipfile.ZIP_BZIP2), "unusual way"),
    "lzma": (lambda: zipped({"adding.py": CODE}, zipfile.ZIP_LZMA), "unusual way"),
    "encrypted": (
        lambda: encrypted(zipped({"adding.py": CODE})),
        "adding.py is encrypted; pack it without a password.",
    ),
    "cut off": (lambda: zipped({"adding.py": os.urandom(3000).hex()})[:1500], "broken"),
    "lies about its size": (declared_small, "broken"),
    "a zero byte in a name": (lambda: zipped({"adding.pyXtxt": CODE}).replace(*NULL_NAME), "invalid name"),
    "one name twice": (named_twice, "archive twice"),
    "a name in other letters": (lambda: zipped({"adding.py": CODE, "Adding.py": "x"}), "different contents"),
    "a folder in other letters": (
        lambda: zipped({"01_adding/adding.py": CODE, "01_Adding/adding.py": "x"}),
        "different contents",
    ),
    "an archive inside": (lambda: zipped({"inner.zip": zipped({"adding.py": CODE})}), "archive inside an archive"),
    "the assignment's archive inside": (
        lambda: zipped({"01_adding.zip": zipped({"adding.py": CODE})}),
        "archive inside an archive",
    ),
    "a link": (linked, "a link or a device"),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("name", HOSTILE_ZIPS)
def test_a_hostile_zip_is_refused(tmp_path: Path, course: Course, name: str) -> None:
    make, sentence = HOSTILE_ZIPS[name]
    assert sentence in problem(hand_in(tmp_path, "ada.zip", make()), course)


ODD_NAMES = [
    "../adding.py", "/etc/adding.py", "a/../../adding.py", "..\\adding.py", "a//adding.py", "C:/adding.py",
]  # fmt: skip


@pytest.mark.parametrize("name", [*ODD_NAMES, "d/" * 40 + "adding.py", "n" * 2000])
def test_archive_paths_outside_of_the_folder_are_refused(
    tmp_path: Path, course: Course, name: str
) -> None:
    folder = hand_in(tmp_path, "ada.zip", zipped({name: "x = 1\n", "adding.py": CODE}))
    assert "invalid name" in problem(folder, course)


@pytest.mark.parametrize(
    "content", [b"", b"not an archive", b"PK\3\4" + bytes(30), b"\x1f\x8b\x08" + bytes(40)]
)
@pytest.mark.parametrize("ending", ["zip", "tar.gz"])
def test_broken_archives_are_refused(
    tmp_path: Path, course: Course, content: bytes, ending: str
) -> None:
    folder = hand_in(tmp_path, f"ada.{ending}", content)
    write(folder, {"ben.py": CODE})
    submissions = found(folder, course, "01_adding")
    assert submissions["ben", "01_adding"].files and submissions["ada", "01_adding"].problem
    with pytest.raises(RefusedError):  # it can be that of a whole class
        find_submissions(folder / f"ada.{ending}", course, "01_adding")


def test_archive_with_too_many_entries_is_refused(tmp_path: Path, course: Course) -> None:
    one = zipped({"x": ""})
    start = one.index(b"PK\1\2")
    entry = one[start : one.index(b"PK\5\6")]
    many = (STUDENT_BYTES - len(one)) // len(entry) - 1
    directory = entry * many
    end = struct.pack(
        "<4s4H2LH", b"PK\5\6", 0, 0, many & 0xFFFF, many & 0xFFFF, len(directory), start, 0
    )
    folder = hand_in(tmp_path, "ada.zip", one[:start] + directory + end)
    tracemalloc.start()
    assert "more than 1000 files" in problem(folder, course)
    assert tracemalloc.get_traced_memory()[1] < STUDENT_BYTES
    tracemalloc.stop()


def test_invalid_archive_of_one_student_does_not_affect_the_class(
    tmp_path: Path, course: Course
) -> None:
    files = {
        "ada/01_adding/adding.py": CODE,
        "ben/01_adding/../x.py": "x",
        "ben/01_adding/adding.py": CODE,
    }
    files |= {f"cleo/junk/{i}.txt": "" for i in range(STUDENT_ENTRIES + 1)}
    files |= {
        "dan/01_adding/adding.py": "é".encode("latin-1"),
        "eve/01_adding/adding.py": bytes(30 << 20),
    }
    archive = tmp_path / "class.zip"
    archive.write_bytes(zipped(files))
    submissions = found(archive, course, "01_adding")
    assert {student: bool(s.files) for (student, _), s in submissions.items()} == {
        "ada": True, "ben": False, "cleo": False, "dan": False, "eve": False,
    }  # fmt: skip


def test_class_archive_is_limited(tmp_path: Path, course: Course) -> None:
    archive = tmp_path / "class.zip"
    with archive.open("wb") as stream:
        stream.truncate(CLASS_BYTES + 1)
    with pytest.raises(RefusedError, match="larger than 200 MB"):
        find_submissions(archive, course, "01_adding")


def test_backslashes_and_unmarked_utf_8_in_a_zip_are_read(tmp_path: Path, course: Course) -> None:
    """Some programs of Windows write their own separator, and others write UTF-8 without saying so."""
    content = zipped(
        {r"class\ada\01_adding\adding.py": CODE, r"class\b_n\01_adding\adding.py": CODE}
    )
    content = content.replace(b"b_n", b"b\xc3\xa9")
    (tmp_path / "class.zip").write_bytes(content)
    assert list(found(tmp_path / "class.zip", course)) == [
        ("ada", "01_adding"),
        ("bé", "01_adding"),
    ]


# -- any bytes at all ---------------------------------------------------------------------------------


def check_any_bytes(folder: Path, content: bytes) -> None:
    course = make_course(folder)
    file = write(folder / "class", {"ada.zip": content}) / "ada.zip"
    tracemalloc.start()
    for path in (file, file.parent):
        try:
            submissions = list(find_submissions(path, course, "01_adding"))
        except RefusedError:
            assert path == file
            continue
        assert submissions and len({s.student for s in submissions}) == len(submissions)
        for submission in submissions:
            assert submission.assignment == "01_adding" and bool(submission.files) != bool(
                submission.problem
            )
            assert submission.student.isprintable() and "/" not in submission.student
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    file.unlink()
    assert peak < 2 * STUDENT_BYTES


@settings(max_examples=60)
@given(st.binary(max_size=2000))
def test_random_bytes_raise_no_exception(tmp_path_factory, content: bytes) -> None:
    check_any_bytes(tmp_path_factory.mktemp("random"), content)


NAMES = st.text(min_size=1, max_size=30).filter(lambda name: not name.startswith("\0"))


@settings(max_examples=20)
@given(st.lists(st.tuples(NAMES, st.binary(max_size=40)), max_size=6))
def test_any_names_in_archives_raise_no_exception(
    tmp_path_factory, files: list[tuple[str, bytes]]
) -> None:
    named = {name.encode("utf-8", "replace").decode(): content for name, content in files}
    check_any_bytes(tmp_path_factory.mktemp("names"), zipped(named))
