"""A class of twelve for the tiny course, right, wrong and hostile in different ways; and its grades.

Two tests are added to the course: one takes a gradient, and one counts as far as the answer says, so that an answer
can make the trusted side work for as long as the student likes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from autograder.course.config import Course
from autograder.course.reading import load_course
from autograder.gradebook import texts
from autograder.gradebook.journal import Journal
from autograder.records import SourceFile, Submission
from autograder.runs.pool import Plan
from autograder.runs.run import grade_class
from tests.autograder.student_folder import FORGETS, RIGHT, SUBTRACTS
from tests.autograder.tiny_course import ALTERNATIVE, write_tiny_course

NAME = "01_adding"
CALL_SECONDS = 0.3
TEST_SECONDS = 6 * CALL_SECONDS  # what the trusted side may use in one test
MORE_TESTS = '''

@pytest.mark.part("add")
@pytest.mark.points(2)
def test_slope(student):
    """Both numbers count the same."""
    import torch

    a = torch.ones(2, requires_grad=True)
    (slope,) = torch.autograd.grad(student.add(a, a).sum(), a, create_graph=True)
    checks.close(slope, torch.full((2,), 2.0), "the slope")


@pytest.mark.part("add")
@pytest.mark.points(2)
def test_counting(student):
    """Counting as far as the sum takes as many steps."""
    steps = 0
    for _ in range(student.add(20, 5)):
        steps += 1
    checks.true(steps == 25, f"{steps} steps for add(20, 5)")
'''


def adding(body: str) -> str:
    """The right answer with another `add`."""
    return f"{RIGHT}\n\ndef add(a, b):\n    {body}\n"


COLLIDING = "import itertools\n    return dict.fromkeys(itertools.islice(itertools.product((-1, -2), repeat=12), 3800))"
TEXTS = {
    "right": RIGHT,
    "right_otherwise": ALTERNATIVE,
    "subtracts": SUBTRACTS,
    "forgets": FORGETS,
    "unfinished": "def add(a, b):\n    raise NotImplementedError('add is not written yet.')\n",
    "broken": "def add(a, b) return a + b\n",
    "endless": adding("while isinstance(a, int): pass"),
    "crashing": adding("import os; os.abort()"),
    "huge": adding("import torch; return torch.ones(2, 1 << 20)"),
    "far": adding("return 10 ** 15 if isinstance(a, int) and (a, b) == (20, 5) else a + b"),
    "colliding": adding(COLLIDING),
    "wordy": adding("raise ValueError('[' + '1' * 60_000 + '\"' * 4_000)"),
}  # fmt: skip
SAMPLE = (
    "right",
    "subtracts",
    "broken",
    "endless",
    "crashing",
    "far",
    "colliding",
)  # one of each kind


def mixed_course(folder: Path) -> Course:
    root = write_tiny_course(folder)
    rules = root / "course.yml"
    text = rules.read_text("utf-8").replace("points: 4", "points: 8")
    rules.write_text(text.replace("call_seconds: 2", f"call_seconds: {CALL_SECONDS}"), "utf-8")
    hidden = root / "tests" / "assignments" / NAME / "test_hidden.py"
    hidden.write_text(hidden.read_text("utf-8") + MORE_TESTS, "utf-8")
    return load_course(root)


def submissions(students: Iterable[str] = TEXTS) -> list[Submission]:
    return [Submission(each, NAME, (SourceFile("adding.py", TEXTS[each]),)) for each in students]


def grades(plan: Plan, handed_in: list[Submission], folder: Path) -> dict[str, dict]:
    """Each student's grade of one run, without the seconds that it took."""
    with Journal(folder) as journal:
        summary = grade_class(plan, texts.put(folder, handed_in), journal, lambda _: None)
        assert summary.failures == []
        found = {
            key[0]: json.loads(replace(g, seconds=0.0, test_seconds=()).to_json())
            for key, g in journal.latest.items()
        }
    assert set(found) == {one.student for one in handed_in}
    return found
