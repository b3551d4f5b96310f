"""A course of another subject, as its author wrote it, from the build to the grades of a class.

It is about strings and dictionaries, arrays with a plot, and objects with exceptions. No sentence of
any command or page may come from the course about Transformers that lies beside the engine.
"""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from autograder.cli import app
from autograder.course.document import load_document
from autograder.course.mistakes_file import load_mistakes
from autograder.course.reading import load_course
from tests.autograder.at_hand import build_at_hand
from tests.second_course import FOLDER, OF_TRANSFORMERS

SUBJECTS = ("01_words", "02_measurements", "03_queues")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory, grader_at_hand: None) -> Path:
    """The course, built."""
    root = shutil.copytree(FOLDER, tmp_path_factory.mktemp("second") / "course")
    build_at_hand(load_course(root))
    return root


def run(root: Path, *words: str) -> Result:
    result = CliRunner(env={"COLUMNS": "200"}).invoke(app, [*words, "--course", str(root)])
    said = result.stdout + result.stderr
    assert not OF_TRANSFORMERS.search(said), said
    return result


class VisibleText(HTMLParser):
    """What a reader of a page sees."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.text = ""
        self._within = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self._within = tag
        self.text += " ".join(text or "" for name, text in attributes if name in ("alt", "title"))

    def handle_data(self, data: str) -> None:
        if self._within not in ("style", "script"):
            self.text += data


def read(folder: Path) -> Iterator[tuple[str, str]]:
    """The readable texts in a folder, but not the engine's wheel and its installer."""
    for file in sorted(folder.rglob("*")):
        if file.is_file() and file.suffix in (
            ".md",
            ".py",
            ".txt",
            ".json",
            ".html",
            ".ipynb",
            ".csv",
        ):
            text = file.read_text("utf-8")
            yield str(file), VisibleText(text).text if file.suffix == ".html" else text


def hand_in(root: Path) -> dict[str, str]:
    """A class: each known mistake, and the solutions; return which student made which mistake."""
    course = load_course(root)
    mistakes = {}
    for assignment in course.assignments:
        works = {"ada": load_document(course, assignment).text}
        for number, mistake in enumerate(load_mistakes(course, assignment)):
            works[f"s{number}"] = mistake.source
            mistakes[f"s{number}/{assignment.name}"] = mistake.id
        for student, text in works.items():
            folder = root / "submitted" / student / assignment.name
            folder.mkdir(parents=True)
            (folder / f"{assignment.stem}.py").write_text(text, "utf-8")
    return mistakes


@pytest.mark.parametrize(
    "name", [*(pytest.param(name, marks=pytest.mark.slow) for name in SUBJECTS[:2]), SUBJECTS[2]]
)
def test_audit_finds_the_course_fair(root: Path, name: str) -> None:
    done = run(root, "audit", name, "--no-mutants", "--seeds", "2", "--json")
    assert done.exit_code == 0, done.output
    (audit,) = json.loads(done.stdout)
    assert audit["problems"] == [] and audit["mistakes_named"] == audit["mistakes_caught"]


def test_class_is_graded_and_each_mistake_is_named(root: Path) -> None:
    mistakes = hand_in(root)
    graded = run(
        root, "grade", str(root / "submitted"), "-o", str(root / "grades"), "--pictures", "-j", "1"
    )
    assert graded.exit_code == 0, graded.output
    for line in (root / "grades/grades.jsonl").read_text("utf-8").splitlines():
        grade = json.loads(line)
        named = {test.get("mistake") for test in grade["tests"]} - {None}
        mistake = mistakes.get(f"{grade['student']}/{grade['assignment']}")
        assert named == ({mistake} if mistake else set())
        assert (grade["score"] == 10) == (mistake is None)
    for name, text in read(root / "grades"):
        assert not OF_TRANSFORMERS.search(text), name
    picture = (root / "grades/feedback/s3/02_measurements.html").read_text("utf-8")
    assert "data:image/png" in picture and "Four hundred means" in picture


def test_release_holds_what_students_need_and_check_speaks_of_their_course(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = tmp_path / "engine-0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("autograder/__init__.py", "")
    students = tmp_path / "students"
    done = run(root, "release", "--output", str(students), "--wheel", str(wheel))
    assert done.exit_code == 0, done.output
    for name, text in read(students):
        if not name.endswith("install.py"):
            assert not OF_TRANSFORMERS.search(text), name
    monkeypatch.chdir(students)
    for name in SUBJECTS:
        checked = CliRunner().invoke(app, ["check", f"assignments/{name}"])
        assert checked.exit_code == 1 and "is not written yet" in checked.stdout
        assert not OF_TRANSFORMERS.search(checked.output)
