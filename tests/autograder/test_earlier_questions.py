"""One question back: asked once when another part passes, the one that waited longest, with its answer under the lock."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Collection
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from autograder import notebook
from autograder.authoring.hints_file import with_stub
from autograder.cli import app
from autograder.course.config import Course, CourseError, load_course
from autograder.course.questions import load_questions, load_rewordings
from autograder.selfcheck.earlier_questions import FILE_NAME, REST, Standing, next_question
from autograder.selfcheck.hints import FOLDER
from autograder.selfcheck.kernel import this_kernel
from autograder.selfcheck.workspace import run_text

ROOT = Path(__file__).resolve().parents[2]
COURSE = load_course(ROOT)
HEADS = "03_masked_heads"
BLOCK = "05_encoder_block"
MONDAY = datetime(2026, 10, 5, 9, tzinfo=timezone.utc)
ASKED = re.compile(r"A question from (.+?)\. It does not count\.")


def written_up_to(name: str, parts: int) -> str:
    """Return the solution with gaps behind its first parts."""
    lines = []
    passed = 0
    is_left_out = False
    for line in COURSE.read_solution(COURSE.assignment(name)).split("\n"):
        passed += line.startswith("# %% part=")
        if "### END SOLUTION" in line:
            is_left_out = False
        elif "### BEGIN SOLUTION" in line and passed >= parts:
            is_left_out = True
            lines.append(line.replace("### BEGIN SOLUTION", "raise NotImplementedError"))
        elif not is_left_out:
            lines.append(line)
    return "\n".join(lines)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A student's folder with two assignments as students receive them, as the working directory."""
    for name in (HEADS, BLOCK):
        shutil.copytree(COURSE.release_folder(COURSE.assignment(name)), tmp_path / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(home: Path, name: str, parts: int) -> None:
    stem = COURSE.assignment(name).stem
    (home / name / f"{stem}.py").write_text(written_up_to(name, parts), "utf-8")


def said(*words: str, codes: tuple[int, ...] = (0, 1)) -> str:
    """What a command says, in one line: the console has the width that it had when it was made."""
    done = CliRunner().invoke(app, words)
    assert done.exit_code in codes, done.output
    return " ".join(done.output.split())


def check(*arguments: str) -> str:
    return said("check", *arguments)


def memory_of(home: Path, name: str) -> Path:
    return home / name / FOLDER / FILE_NAME


# -- which question ---------------------------------------------------------------------------------
class Student:
    """Passes parts of assignments without code; each part has one question, which bears its name."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.opened: list[str] = []

    def passes(
        self, name: str, *parts: str, at: datetime, finished: bool = False, failing: Any = ()
    ) -> str | None:
        """Return the question that is asked when these parts pass."""

        def open_answers(new_parts: Collection[str]) -> dict[str, list[tuple[str, str]]]:
            self.opened += new_parts
            return {part: [(f"To think about. {part}?", "An answer.")] for part in new_parts}

        standing = Standing(dict.fromkeys(parts, "A part"), failing, finished)
        question = next_question(self.home / name, standing, open_answers, at)
        return question.text if question else None


@pytest.fixture
def student(home: Path) -> Student:
    return Student(home)


def test_the_part_just_passed_is_not_asked_about(student: Student) -> None:
    assert student.passes(HEADS, "mask", at=MONDAY) is None
    assert student.passes(HEADS, "mask", "attention", at=MONDAY) == "Mask?"


def test_the_question_that_waited_longest_comes_first_across_assignments(student: Student) -> None:
    hours = [MONDAY + timedelta(hours=hour) for hour in range(6)]
    student.passes(BLOCK, "layer_norm", at=hours[0])
    assert student.passes(HEADS, "mask", at=hours[1]) == "Layer_norm?"
    assert student.passes(HEADS, "mask", "attention", at=hours[2]) == "Mask?"
    tuesday = MONDAY + timedelta(days=1, hours=8)
    assert student.passes(BLOCK, "layer_norm", "feed_forward", at=tuesday) == "Layer_norm?"
    late = tuesday + timedelta(minutes=5)
    assert student.passes(BLOCK, "layer_norm", "feed_forward", "encoder", at=late) == "Attention?"


def test_a_question_rests_before_it_is_asked_once_more(student: Student) -> None:
    student.passes(HEADS, "mask", at=MONDAY)
    parts = ("mask", "attention")
    assert student.passes(HEADS, *parts, at=MONDAY, finished=True) == "Mask?"
    assert student.passes(HEADS, *parts, at=MONDAY, finished=True) == "Attention?"
    assert student.passes(HEADS, *parts, at=MONDAY, finished=True) is None
    assert student.passes(HEADS, *parts, at=MONDAY + REST, finished=True) == "Mask?"


def test_without_news_nothing_is_asked_and_nothing_runs(student: Student) -> None:
    student.passes(HEADS, "mask", at=MONDAY)
    student.passes(HEADS, "mask", "attention", at=MONDAY)
    assert student.opened == ["mask", "attention"]
    assert student.passes(HEADS, "mask", "attention", at=MONDAY + 3 * REST) is None
    assert student.opened == ["mask", "attention"]


def test_a_part_that_fails_now_is_not_asked_about(student: Student) -> None:
    student.passes(HEADS, "mask", at=MONDAY)
    assert student.passes(HEADS, "attention", at=MONDAY, failing=["mask"]) is None


@pytest.mark.parametrize(
    "damage",
    ["", "{", "[]", '{"parts": 3}', '{"parts": {"mask": {"title": "x", "passed": "yesterday"}}}',
     '{"parts": {"mask": {"title": "x", "passed": "2026-10-05T09:00:00"}}}', "\0\xff"],
)  # fmt: skip
def test_a_damaged_memory_is_begun_anew(student: Student, damage: str) -> None:
    student.passes(HEADS, "mask", at=MONDAY)
    memory = memory_of(student.home, HEADS)
    memory.write_text(damage, "latin-1")
    assert student.passes(HEADS, "mask", at=MONDAY) is None
    assert student.passes(HEADS, "mask", "attention", at=MONDAY) == "Mask?"
    memory_of(student.home, BLOCK).parent.mkdir()
    memory_of(student.home, BLOCK).write_text(damage, "latin-1")
    assert student.passes(HEADS, "mask", "attention", "head", at=MONDAY) == "Attention?"


def test_a_folder_in_place_of_the_memory_asks_nothing(student: Student) -> None:
    memory_of(student.home, HEADS).mkdir(parents=True)
    assert student.passes(HEADS, "mask", at=MONDAY) is None
    assert student.passes(HEADS, "mask", "attention", at=MONDAY) is None


def test_an_assignment_without_questions_asks_nothing(student: Student) -> None:
    file = student.home / HEADS / "hints.json"
    record = json.loads(file.read_text("utf-8"))
    del record["answers"]
    file.write_text(json.dumps(record), "utf-8")
    student.passes(HEADS, "mask", at=MONDAY)
    assert student.passes(HEADS, "mask", "attention", at=MONDAY, finished=True) is None
    assert not memory_of(student.home, HEADS).exists()


# -- in a terminal ----------------------------------------------------------------------------------
def test_check_asks_after_a_part_passes_and_the_answer_opens(home: Path) -> None:
    write(home, HEADS, 1)
    assert not ASKED.search(check(HEADS))
    write(home, HEADS, 2)
    told = check(HEADS)
    assert ASKED.findall(told) == ["Part 1 · The causal mask"]
    assert "A sentence of 4 words has 10 ticks." in told and "To think about" not in told
    assert told.index("points of the visible tests so far") < told.index("A question from")
    assert not ASKED.search(check(HEADS))  # nothing new
    write(home, BLOCK, 1)
    told = check(BLOCK)
    (where,) = ASKED.findall(told)
    assert where.startswith(f"{HEADS}, Part 2")
    command = re.search(r"autograder (answers \w+) +shows the answer", told)
    assert command is not None
    answered = said(*command[1].split())
    assert "The mean of the values." in answered


def test_the_memory_holds_no_answer_and_what_the_file_prints_stays_in_its_place(home: Path) -> None:
    write(home, HEADS, 2)
    file = home / HEADS / "masked_heads.py"
    file.write_text(file.read_text("utf-8") + '\nprint("I was here.")\n', "utf-8")
    assert check(HEADS).count("I was here.") == 1
    memory = memory_of(home, HEADS).read_text("utf-8")
    assert "10 ticks" in memory
    for pairs in load_questions(COURSE, COURSE.assignment(HEADS)).values():
        for _, answer in pairs:
            assert answer[:20] not in memory


@pytest.mark.slow
def test_a_student_can_switch_it_off_for_all_assignments_and_on_again(home: Path) -> None:
    write(home, HEADS, 1)
    check(HEADS)
    write(home, HEADS, 2)
    assert not ASKED.search(check(HEADS, "--no-questions"))
    write(home, BLOCK, 1)
    assert not ASKED.search(check(BLOCK))
    assert ASKED.search(check(BLOCK, "--questions"))


def test_json_asks_nothing_and_remembers_nothing(home: Path) -> None:
    write(home, HEADS, 2)
    assert json.loads(check(HEADS, "--json"))["assignment"] == HEADS
    assert not memory_of(home, HEADS).exists()


@pytest.mark.skipif(os.name == "nt" or os.getuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_a_sentence(home: Path) -> None:
    (home / HEADS).chmod(0o500)
    assert "cannot be written" in said("check", HEADS, "--no-questions", codes=(2,))


# -- in a notebook ----------------------------------------------------------------------------------
@pytest.fixture
def kernel(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(this_kernel, "folder", home / HEADS)
    monkeypatch.setattr(this_kernel, "seen", {})
    written = run_text(written_up_to(HEADS, 3), "masked_heads.py").module
    monkeypatch.setitem(sys.modules, "__main__", written)
    return home


def test_a_notebook_asks_when_another_part_passes(kernel: Path) -> None:
    assert not ASKED.search(repr(notebook.check("mask")))
    told = notebook.check("attention")
    assert ASKED.findall(repr(told)) == ["Part 1 · The causal mask"]
    assert "A sentence of 4 words has 10 ticks." in told._repr_html_()
    assert "`answers()`" in repr(told)
    assert not ASKED.search(repr(notebook.check("attention")))
    assert not ASKED.search(repr(notebook.check("head", questions=False)))


def test_validation_by_nbgrader_asks_nothing(kernel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NBGRADER_EXECUTION", "validate")
    notebook.check("mask")
    assert not memory_of(kernel, HEADS).exists()


# -- the course -------------------------------------------------------------------------------------
@pytest.mark.slow
def test_a_course_can_switch_it_off(home: Path) -> None:
    quiet = COURSE.model_copy(update={"earlier_questions": False})
    for name in (HEADS, BLOCK):
        file = home / name / "hints.json"
        assignment = COURSE.assignment(name)
        file.write_text(with_stub(quiet, assignment, file.read_text("utf-8"), {}), "utf-8")
    write(home, HEADS, 1)
    check(HEADS)
    write(home, HEADS, 2)
    assert not ASKED.search(check(HEADS))
    assert not memory_of(home, HEADS).exists()


def answers_say(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """Let the answers.yml of *Masked heads* have this text."""
    file = COURSE.answers_file(COURSE.assignment(HEADS))

    def read(course: Course, path: Path, problem: Any, missing: str = "") -> str:
        return text if path == file else path.read_text("utf-8")

    monkeypatch.setattr(Course, "read", read)


def test_a_question_that_leans_on_its_text_is_asked_in_other_words(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assignment = COURSE.assignment(HEADS)
    file = COURSE.answers_file(assignment)
    answers = yaml.safe_load(file.read_text("utf-8"))
    question = load_questions(COURSE, assignment)["mask"][0][0]
    again = "How many ticks has a mask of 100 words?"
    answers["mask"] = [{"answer": answers["mask"][0], "again": again}]
    reworded = yaml.safe_dump(answers, allow_unicode=True)

    answers_say(monkeypatch, reworded)
    assert load_rewordings(COURSE, assignment) == {question: again}
    hints = home / HEADS / "hints.json"
    hints.write_text(with_stub(COURSE, assignment, hints.read_text("utf-8"), {}), "utf-8")
    monkeypatch.undo()
    monkeypatch.chdir(home)
    write(home, HEADS, 1)
    check(HEADS)
    write(home, HEADS, 2)
    assert again in check(HEADS)


def test_an_unknown_key_of_an_answer_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    assignment = COURSE.assignment(HEADS)
    wrong = "mask:\n  - {answr: Some words., again: Which?}\n"
    answers_say(monkeypatch, wrong)
    with pytest.raises(CourseError, match=r"answers\.yml, line 2: .*`answr`.*`answer`"):
        load_rewordings(COURSE, assignment)


@pytest.mark.parametrize("assignment", COURSE.assignments, ids=lambda assignment: assignment.name)
def test_no_answer_of_any_question_stands_in_what_students_receive(assignment: Any) -> None:
    texts = [
        file.read_text("utf-8")
        for file in COURSE.release_folder(assignment).iterdir()
        if file.suffix in {".py", ".ipynb", ".json", ".md"}
    ]
    assert len(texts) >= 4
    for pairs in load_questions(COURSE, assignment).values():
        for _, answer in pairs:
            assert not [text for text in texts if answer[:30] in text or answer[-30:] in text]
