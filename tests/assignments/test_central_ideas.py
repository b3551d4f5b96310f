"""Each assignment names its central idea, and exceptions from what mistakes may cost, or fail by, become fewer."""

from pathlib import Path

from autograder.course.mistakes_file import load_mistakes
from autograder.course.reading import load_course

COURSE = load_course(Path(__file__).resolve().parents[2])
EXCEPTIONS = 6


def test_each_assignment_names_one_central_idea():
    central = {
        assignment.name: [m.id for m in load_mistakes(COURSE, assignment) if m.weight == "central"]
        for assignment in COURSE.assignments
    }
    assert [name for name, ideas in central.items() if len(ideas) != 1] == []


def test_exceptions_become_fewer():
    excepted = [
        f"{assignment.name}: {mistake.id}"
        for assignment in COURSE.assignments
        for mistake in load_mistakes(COURSE, assignment)
        if mistake.exception
    ]
    assert len(excepted) == EXCEPTIONS, f"lower the figure if there are fewer: {excepted}"
