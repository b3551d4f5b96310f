"""Find grades that do not match course.yml because the course was changed after grading."""

from collections.abc import Iterable, Mapping

from autograder.course.config import Assignment, Course
from autograder.gradebook.final_scores import final_of, number
from autograder.gradebook.lateness import Final, GradeKey
from autograder.records import Grade


def differing(course: Course, grades: Iterable[Grade], finals: Mapping[GradeKey, Final] | None = None) -> list[str]:
    """Return a message for each assignment whose grades do not match course.yml, as totals would mix both."""
    found: dict[str, set[float]] = {}
    for grade in (final_of(grade, finals).journal or grade for grade in grades):
        if course.find(grade.assignment) or grade.status == "graded":
            found.setdefault(grade.assignment, set()).add(grade.max_score)
    return [sentence for name in sorted(found) if (sentence := _differs(course.find(name), name, found[name]))]


def _differs(assignment: Assignment | None, name: str, points: set[float]) -> str:
    if assignment is None:
        return (
            f"{name}: there are grades of it, but course.yml has no assignment of that name; they count as they are. "
            "If it has a new name, rename the submissions' folders, too, and grade them again."
        )
    others = " and ".join(map(number, sorted(points - {assignment.points})))
    said = f"{name}: there are grades out of {others} points, but course.yml says {number(assignment.points)}."
    return f"{said} `autograder grade` grades these again." if others else ""
