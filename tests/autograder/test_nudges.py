"""The author's nudges for gaps: read, written to the released file, and shown where no mistake is known."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from autograder.course.config import Assignment, CourseError
from autograder.course.document import Document, load_document
from autograder.course.mistakes_file import load_mistakes
from autograder.course.nudges import load_nudges
from autograder.course.reading import load_course
from autograder.selfcheck.check import check_target
from autograder.selfcheck.hints import next_hint
from autograder.selfcheck.locked_hints import LockedHints
from autograder.selfcheck.workspace import find_work
from tests.autograder.at_hand import build_at_hand
from tests.autograder.sampling import thinned
from tests.autograder.student_folder import RIGHT, SUBTRACTS, copy_of, write_answer
from tests.autograder.tiny_course import SOLUTION, write_tiny_course

ROOT = Path(__file__).resolve().parents[2]
COURSE = load_course(ROOT)
NUDGE = "What happens to two heaps that are put together?"
ALL_STEPS = 9  # more than there are


@pytest.fixture(scope="module")
def nudged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    course = load_course(write_tiny_course(tmp_path_factory.mktemp("nudges")))
    course.nudges_file(course.assignments[0]).write_text(f"add: {NUDGE}\n", "utf-8")
    build_at_hand(course)
    return course.root / "assignments"


@pytest.fixture
def folder(nudged: Path, tmp_path: Path) -> Path:
    return copy_of(nudged, tmp_path)


def steps_about(folder: Path) -> list[tuple[str, str]]:
    report = check_target(folder)
    found = [next_hint(find_work(folder), report) for _ in range(ALL_STEPS)]
    return list(dict.fromkeys((hint.kind, hint.text) for hint in found if hint is not None))


@pytest.mark.parametrize(
    "answer",
    [
        RIGHT.replace("a + b", "a * b + 40"),
        RIGHT.replace("a + b", "a + b.nothing"),
        SOLUTION.replace("    ### BEGIN SOLUTION\n", "    raise NotImplementedError\n", 1).replace(
            "### END SOLUTION", ""
        ),
    ],
    ids=["wrong", "raises", "unwritten"],
)
def test_nudge_is_shown_where_no_mistake_is_known(folder: Path, answer: str) -> None:
    write_answer(folder, answer)
    assert ("A question", NUDGE) in steps_about(folder)


def test_known_mistake_has_its_own_question_and_no_nudge(folder: Path) -> None:
    write_answer(folder, SUBTRACTS)
    questions = [text for kind, text in steps_about(folder) if kind == "A question"]
    assert len(questions) == 1 and NUDGE not in questions


def test_gap_without_a_nudge_has_none(folder: Path) -> None:
    write_answer(folder, RIGHT.replace("self.value = self.value + number", "self.value = 40"))
    steps = steps_about(folder)
    assert steps and NUDGE not in str(steps)
    assert (
        LockedHints(folder).nudge("add") == NUDGE and LockedHints(folder).nudge("Total.push") == ""
    )


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("ad: Which?\n", r"nudges\.yml, line 1: the stub has no gap in `ad`.*`add`"),
        ("add: ''\n", r"nudges\.yml, line 1: the nudge of `add` is empty"),
        ("- Which?\n", r"nudges\.yml, line 1"),
    ],
)
def test_nudge_that_nobody_would_see_is_an_error_of_the_course(
    tmp_path: Path, text: str, sentence: str
) -> None:
    course = load_course(write_tiny_course(tmp_path))
    assert load_nudges(course, course.assignments[0]) == {}
    course.nudges_file(course.assignments[0]).write_text(text, "utf-8")
    with pytest.raises(CourseError, match=sentence):
        load_nudges(course, course.assignments[0])


def code_of_gap(document: Document, function: str) -> list[str]:
    lines = [line for gap in document.gaps if gap.function == function for line in gap.lines]
    return [line.partition("  #")[0].strip() for line in lines]


@pytest.mark.parametrize("assignment", thinned(COURSE.assignments, 5), ids=lambda each: each.name)
def test_each_gap_of_the_course_has_a_nudge_that_asks_and_does_not_answer(
    assignment: Assignment,
) -> None:
    document = load_document(COURSE, assignment)
    nudges = load_nudges(COURSE, assignment)
    assert list(nudges) == list(dict.fromkeys(gap.function for gap in document.gaps))
    hints = {mistake.hint for mistake in load_mistakes(COURSE, assignment)}
    for function, nudge in nudges.items():
        assert nudge.endswith(("?", ".")) and len(nudge) <= 220 and nudge not in hints, function
        squeezed = re.sub(r"\s+", "", nudge)
        for line in code_of_gap(document, function):
            value = re.sub(r"\s+", "", re.sub(r"^(return\b|[\w., ]+=(?!=))", "", line))
            assert value.isidentifier() or len(value) < 6 or value not in squeezed, (function, line)
    released = json.loads((COURSE.release_folder(assignment) / "hints.json").read_text("utf-8"))
    assert released["nudges"] == nudges
