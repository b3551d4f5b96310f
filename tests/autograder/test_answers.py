"""The answers to the questions of the text: one for each question, shown once the part passes."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from autograder.course.config import Assignment, CourseError
from autograder.course.mistakes_file import load_mistakes
from autograder.course.questions import load_questions
from autograder.course.reading import load_course
from autograder.records import RefusedError
from autograder.selfcheck.answers import Card, unlocked
from autograder.selfcheck.check import check_work
from autograder.selfcheck.workspace import find_work
from tests.autograder.tiny_course import write_tiny_course

ROOT = Path(__file__).resolve().parents[2]
COURSE = load_course(ROOT)
HEADS = COURSE.assignment("03_masked_heads")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of *Masked heads* as students receive it."""
    return shutil.copytree(COURSE.release_folder(HEADS), tmp_path / HEADS.name)


def opened(folder: Path, text: str) -> list[Card]:
    (folder / "masked_heads.py").write_text(text, "utf-8")
    work = find_work(folder / "masked_heads.py")
    return unlocked(work, check_work(work))


@pytest.mark.parametrize("assignment", COURSE.assignments, ids=lambda assignment: assignment.name)
def test_every_question_has_an_answer(assignment: Assignment) -> None:
    prose = re.sub(r"\s*\n# ?", " ", COURSE.solution_file(assignment).read_text("utf-8"))
    marks = "To think about|Think about it|One last question|One question to take along"
    asked = len(re.findall(rf"(?:{marks})\b", prose))
    pairs = [pair for pairs in load_questions(COURSE, assignment).values() for pair in pairs]
    assert len(pairs) == asked > 0
    for question, answer in pairs:
        assert "?" in question
        assert 20 < len(answer) < 700 and "\n" not in answer


def test_files_of_an_older_kit_say_what_to_get_and_their_hints_still_open(folder: Path) -> None:
    """An older kit locked answers and nudges; mistakes and programs are locked as they were."""
    solution = COURSE.read_solution(HEADS)
    hints = folder / "hints.json"
    record = json.loads(hints.read_text("utf-8"))
    locked = {"0": {"e85d58c0a6a7f10b2c3d": "c2VhbGVk"}}
    record |= {"answers": {"test_a": locked}, "nudges": locked["0"]}
    del record["questions"]
    hints.write_text(json.dumps(record), "utf-8")
    with pytest.raises(RefusedError, match=r"Get the assignment's hints\.json again"):
        opened(folder, solution)
    mistake = next(
        m for m in load_mistakes(COURSE, HEADS) if m.id == "keys_and_values_swapped_in_the_head"
    )
    (folder / "masked_heads.py").write_text(mistake.source, "utf-8")
    report = check_work(find_work(folder / "masked_heads.py"))
    assert mistake.title in {finding.mistake for finding in report.findings}


def test_a_question_without_an_answer_is_an_error_of_the_course(tmp_path: Path) -> None:
    course = load_course(write_tiny_course(tmp_path / "course"))
    assignment = course.assignments[0]
    file = course.answers_file(assignment)
    assert load_questions(course, assignment) == {}
    part = assignment.parts[-1].name
    file.write_text(f"{part}:\n  - Nobody asked.\n", "utf-8")
    sentence = rf"answers\.yml, line 1: the part `{part}` has 0 questions .* 1 answer here"
    with pytest.raises(CourseError, match=sentence):
        load_questions(course, assignment)
    with course.solution_file(assignment).open("a", encoding="utf-8") as solution:
        solution.write("\n# %% [markdown]\n# **To think about.** Who\n# asks?\n#\n# The end.\n")
    asked = [("To think about. Who asks?", "Nobody asked.")]
    assert load_questions(course, assignment) == {part: asked}
    file.write_text(f"{part}: yes\n", "utf-8")
    with pytest.raises(CourseError, match="must be a list"):
        load_questions(course, assignment)


def test_an_answer_of_before_with_other_words_for_its_question_is_a_sentence(
    tmp_path: Path,
) -> None:
    course = load_course(write_tiny_course(tmp_path / "course"))
    assignment = course.assignments[0]
    file = course.answers_file(assignment)
    file.write_text("total:\n  - answer: Yes.\n    again: Does it?\n", "utf-8")
    with pytest.raises(CourseError, match=r"answers\.yml, line 2: .* must be text, not a block of"):
        load_questions(course, assignment)
