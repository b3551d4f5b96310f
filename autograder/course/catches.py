"""The mistakes that the author chose with `catch`: those that a part unlocks as programs to catch."""

import string

from autograder.course.config import Assignment, Course, CourseError
from autograder.course.mistakes import Mistake, load_mistakes, parts_of_mistakes

MOST = 4  # programs of a part


def chosen(course: Course, assignment: Assignment) -> dict[str, list[Mistake]]:
    """Return the mistakes to catch in each part; none where course.yml switches catching off.

    Raises CourseError if a part has too many, or there is no catch.py.
    """
    if course.catch is False:
        return {}
    solution = course.read_solution(assignment)
    mistakes: dict[str, list[Mistake]] = {part.name: [] for part in assignment.parts}
    with_catch = [mistake for mistake in load_mistakes(course, assignment) if mistake.catch]
    for mistake, part in parts_of_mistakes(with_catch, solution):
        mistakes[part].append(mistake)
    mistakes = {part: of_part for part, of_part in mistakes.items() if of_part}
    label = course.label(course.mistakes_file(assignment))
    problems = [
        f"{label}: the part `{part}` has {len(of_part)} mistakes to catch; {MOST} are the most."
        for part, of_part in mistakes.items()
        if len(of_part) > MOST
    ]
    if mistakes and not course.catch_file(assignment).is_file():
        file = course.label(course.catch_file(assignment))
        problems.append(f"{label} has mistakes to catch, but there is no {file}.")
    if problems:
        raise CourseError(problems)
    return mistakes


def with_letters(mistakes: dict[str, list[Mistake]]) -> dict[str, dict[str, Mistake]]:
    """Return the mistakes of each part by the letters of their programs, which students see."""
    letters = iter(string.ascii_uppercase)
    return {
        part: {next(letters): mistake for mistake in of_part} for part, of_part in mistakes.items()
    }
