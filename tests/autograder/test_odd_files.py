"""Files that are not what they are called get a sentence about what they are; odd files that can be read are read."""

from __future__ import annotations

import gzip
import io
import json
import os
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from autograder.course.config import Course
from autograder.records import RefusedError
from autograder.selfcheck.check import check_target
from autograder.source.file_kinds import MOST_BRACKETS, source_text
from autograder.source.gate import FILE_BYTES
from autograder.submissions import files
from autograder.submissions.find import find_submissions
from tests.autograder.student_folder import RIGHT, copy_of


def notebook(*cells: str, output: str = "") -> bytes:
    made = [
        {
            "cell_type": "code",
            "source": cell,
            "outputs": [{"output_type": "stream", "text": output}] if output else [],
        }
        for cell in cells
    ]
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": made}).encode()


def zipped(names: dict[str, str]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, text in names.items():
            archive.writestr(name, text)
    return packed.getvalue()


CONFLICT = "x = 1\n<<<<<<< HEAD\ny = 1\n=======\ny = 2\n>>>>>>> other\n"
ODD = [
    ("a.py", b"%PDF-1.7\n%\xe2\xe3", "a.py is a PDF document, not Python text."),
    ("a.py", zipped({"a.py": "x = 1"}), "a.py is a zip archive, not Python text."),
    ("a.py", zipped({"[Content_Types].xml": "", "word/document.xml": ""}), "a document of Word or another office"),
    ("a.py", b"\x89PNG\r\n\x1a\n", "a.py is a picture"),
    ("a.py", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "a.py is a document of Word"),
    ("a.py", b"<!DOCTYPE html>\n<html></html>", "a.py is a web page"),
    ("a.py", notebook("x = 1"), "a.py is a notebook, not Python: rename it to a.ipynb."),
    ("a.py", CONFLICT.encode(), "a.py holds the marks of a merge conflict (line 2)"),
    ("a.py", b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n", "a.py is a pointer of Git LFS"),
    ("a.ipynb", b"\n <!doctype HTML><html></html>", "a.ipynb is a web page"),
    (
        "a.ipynb",
        b'{\n <<<<<<< HEAD\n"cells": [],\n=======\n"cells": [1]\n>>>>>>> b\n}',
        "marks of a merge conflict (line 2)",
    ),
    ("a.ipynb", b"%PDF-1.4", "a.ipynb is a PDF document, not a notebook."),
    ("a.ipynb", RIGHT.encode(), "a.ipynb is Python text, not a notebook: rename it to a.py."),
    ("a.ipynb", notebook("x = 1")[:-9], "a.ipynb is not a readable notebook. Was it saved completely?"),
    ]  # fmt: skip


@pytest.mark.parametrize(("name", "data", "sentence"), ODD)
def test_a_file_that_is_something_else_is_named(name: str, data: bytes, sentence: str) -> None:
    with pytest.raises(RefusedError) as refused:
        source_text(name, data)
    assert sentence in str(refused.value)


READ = [
    ("a.py", "# coding: latin-1\nx = 'é'\n".encode("latin-1"), "x = 'é'"),
    ("a.py", "#!/usr/bin/python\n# -*- coding: cp1252 -*-\nx = '€'\n".encode("cp1252"), "x = '€'"),
    ("a.py", "# vim: set fileencoding=iso-8859-15 :\nx = '€'\n".encode("iso-8859-15"), "x = '€'"),
    ("a.py", "# coding: latin-1\nx = 'é'\n".encode(), "x = 'é'"),
    ("a.py", b'x = """\n=======\n"""\ny = 3 << 2\n', "======="),
    ("a.py", b'x = """\n<html>\n"""\n', "<html>"),
    ("a.py", b"{}\n", "{}"),
    ("a.py", b"{1: 2}[1]\nx = '<<<<<<<'\n", "<<<<<<<"),
    ("a.ipynb", notebook("<<<<<<< HEAD\n=======\n>>>>>>> x"), "<<<<<<<"),
]


@pytest.mark.parametrize(("name", "data", "part"), READ)
def test_an_odd_text_that_can_be_read_is_read(name: str, data: bytes, part: str) -> None:
    assert part in source_text(name, data)


@pytest.mark.parametrize(
    "coding", ["rot13", "zlib", "utf-7", "idna", "no-such", "\N{SNOWMAN}", "utf-16"]
)
def test_other_codings_are_not_followed(coding: str) -> None:
    with pytest.raises(RefusedError, match="not UTF-8"):
        source_text("a.py", f"# coding: {coding}\n".encode() + b"x = '\xe9'\n")


def test_a_notebook_that_is_large_by_its_outputs_is_read(
    tmp_path: Path, course: Course, released: Path
) -> None:
    large = notebook(RIGHT, output="x" * (FILE_BYTES + 1))
    text = source_text("a.ipynb", large)
    assert len(text) < 10_000 and json.loads(text)["cells"][0]["source"] == RIGHT
    folder = tmp_path / "class" / "ada"
    folder.mkdir(parents=True)
    (folder / "adding.ipynb").write_bytes(large)
    (submission,) = find_submissions(folder.parent, course, "01_adding")
    assert submission.problem is None and submission.files[0].text == text
    own = copy_of(released, tmp_path)
    (own / "adding.py").unlink()
    (own / "adding.ipynb").write_bytes(large)
    assert check_target(own).all_passed


def replaced_by_a_link(file: Path) -> None:
    file.symlink_to(file.rename(file.with_suffix(".txt")))


def linked_to(file: Path) -> None:
    os.link(file, file.with_suffix(".txt"))


def too_long(file: Path) -> None:
    file.write_text(f"{RIGHT}\n# {'x' * FILE_BYTES}\n")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (replaced_by_a_link, "adding.py cannot be opened: it is a link."),
        (linked_to, "adding.py is linked to from elsewhere"),
        (too_long, "adding.py is larger than 4 MB."),
    ],
)
def test_a_file_named_at_home_is_read_as_the_grader_reads_it(
    change: Callable[[Path], None], sentence: str, tmp_path: Path, released: Path
) -> None:
    own = copy_of(released, tmp_path) / "adding.py"
    own.write_text(RIGHT)
    change(own)
    with pytest.raises(RefusedError, match=sentence):
        check_target(own)


def test_a_sentence_about_a_long_name_keeps_its_ending(tmp_path: Path) -> None:
    file = tmp_path / f"{'a' * 80}.ipynb"
    file.write_text(RIGHT)
    with pytest.raises(RefusedError, match=r"a…\.ipynb is Python text, .* rename it to a+…\.py\."):
        files.read_source(files.disk_file(file))


@pytest.mark.parametrize(
    "data",
    [
        notebook("# " + "x" * (FILE_BYTES + 1)),
        notebook("x", output="[" * (MOST_BRACKETS + 1) + "x" * FILE_BYTES),
        b"[" + b"[]," * (FILE_BYTES // 2) + b"1]",
    ],
)
def test_a_notebook_that_is_large_otherwise_is_refused(data: bytes) -> None:
    with pytest.raises(RefusedError, match="is larger than 4 MB. Clear the notebook's outputs"):
        source_text("a.ipynb", data)


def tarball(names: dict[str, bytes], mode: str = "w:gz", **changes: object) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode=mode) as archive:
        for name, data in names.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            for key, value in changes.items():
                setattr(info, key, value)
            archive.addfile(info, io.BytesIO(data))
    return packed.getvalue()


def problem_of(tmp_path: Path, course: Course, name: str, data: bytes) -> str:
    folder = tmp_path / "class"
    folder.mkdir()
    (folder / name).write_bytes(data)
    (folder / "ben.py").write_text(RIGHT)
    by_student = {each.student: each for each in find_submissions(folder, course, "01_adding")}
    assert by_student["ben"].files
    ada = by_student["ada"]
    assert bool(ada.files) != bool(ada.problem)
    assert not ada.files or ada.files[0].text == RIGHT
    return ada.problem or ""


@pytest.mark.parametrize(
    ("ending", "mode"), [("tar.gz", "w:gz"), ("tgz", "w:gz"), ("tar", "w"), ("tar.gz", "w")]
)
@pytest.mark.parametrize("way", ["", "./", "./01_adding/", "01_adding/"])
def test_a_tar_is_read(tmp_path: Path, course: Course, ending: str, mode: str, way: str) -> None:
    names = {f"{way}adding.py": RIGHT.encode(), f"{way}._adding.py": b"\0\5\x16\7"}
    assert problem_of(tmp_path, course, f"ada.{ending}", tarball(names, mode)) == ""


TARS = {
    "way up": (lambda: tarball({"../adding.py": RIGHT.encode()}), "invalid name"),
    "from the root": (lambda: tarball({"/etc/adding.py": RIGHT.encode()}), "invalid name"),
    "a link": (lambda: tarball({"adding.py": b""}, type=tarfile.SYMTYPE, linkname="/etc/passwd"), "a link or a device"),
    "a hard link": (
        lambda: tarball({"adding.py": b""}, type=tarfile.LNKTYPE, linkname="/etc/passwd"),
        "a link or a device",
    ),
    "a device": (lambda: tarball({"adding.py": b""}, type=tarfile.CHRTYPE), "a link or a device"),
    "a bomb": (lambda: tarball({"adding.py": bytes(files.STUDENT_BYTES + (8 << 20))}), "holds more than"),
    "too large": (lambda: tarball({"adding.py": b"#" * (FILE_BYTES + 1)}), "larger than 4 MB"),
    "too many": (
        lambda: tarball({f"{n}.py": b"" for n in range(files.STUDENT_ENTRIES + 1)}),
        "holds more than 1000 files",
    ),
    "cut off": (lambda: tarball({"adding.py": os.urandom(5000)})[:3000], "broken"),
    "cut off, plain": (lambda: tarball({"adding.py": b"#" * 5000}, "w")[:3000], "broken"),
    "no tar": (lambda: gzip.compress(b"x" * 100, mtime=0), "broken"),
}  # fmt: skip


@pytest.mark.parametrize("name", TARS)
def test_a_hostile_tar_costs_only_itself(tmp_path: Path, course: Course, name: str) -> None:
    make, sentence = TARS[name]
    assert sentence in problem_of(tmp_path, course, "ada.tar.gz", make())
