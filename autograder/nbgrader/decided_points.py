"""Points that an instructor decided for a whole submission, as nbgrader can hold them."""

from collections.abc import Iterable
from dataclasses import replace

from autograder.course.config import Assignment, Part
from autograder.records import Grade, TestResult, total


def part_score(tests: Iterable[TestResult], part: Part) -> float:
    """Return the points for one part, between 0 and the part's points."""
    score = total(test.score for test in tests if test.part == part.name)
    return float(min(max(score, 0.0), part.points))


def by_part(grade: Grade, assignment: Assignment) -> Grade:
    """Return the grade with points that were decided for the whole submission assigned to its parts.

    nbgrader has points for parts only. Points given fill the parts in their order, points taken
    empty them.
    """
    whole = total(test.score for test in grade.tests if not test.part)
    tests = [test for test in grade.tests if test.part]
    for part in assignment.parts:
        score = total(test.score for test in tests if test.part == part.name)
        points = min(whole, part.points - score) if whole > 0 else max(whole, -score)
        if points:
            title = "; ".join(test.title for test in grade.tests if not test.part)
            tests.append(
                TestResult("decision", part.name, title, "decided", points, 0.0, hidden=False)
            )
            whole -= points
    return replace(grade, tests=tuple(tests))
