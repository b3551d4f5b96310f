"""Whether failing_tests.json, the record of the tests that each mistake fails, is out of date."""

import ast
from collections.abc import Iterator

from autograder.authoring.released import suite_text
from autograder.course.config import Assignment, Course
from autograder.course.mistakes_file import load_mistakes, recorded_failing_tests


def stale_record(course: Course, assignment: Assignment) -> list[str]:
    """Return a sentence if the record names other mistakes or tests than the suite has; an
    assignment without a record has none that is stale.
    """
    record = recorded_failing_tests(course, assignment)
    if not record:
        return []
    mistakes = {mistake.id for mistake in load_mistakes(course, assignment)}
    recorded = set[str]().union(*record.values())
    tests = set(_test_names(course, assignment))
    reasons = [f"the mistake `{name}` is not in it" for name in sorted(mistakes - set(record))]
    reasons += [f"there is no mistake `{name}` any more" for name in sorted(set(record) - mistakes)]
    reasons += [
        f"there is no test `{name}` any more"
        for name in sorted(recorded)
        if name.partition("[")[0] not in tests
    ]
    if not reasons:
        return []
    label = course.label(course.failing_tests_file(assignment))
    return [
        f"{label} is out of date: {'; '.join(reasons)}. "
        f"Write it anew: autograder audit {assignment.name} --only mistake --record"
    ]


def _test_names(course: Course, assignment: Assignment) -> Iterator[str]:
    for file in (course.visible_test_file(assignment), course.hidden_test_file(assignment)):
        tree = ast.parse(suite_text(course, file) if file.is_file() else "")
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                yield node.name
