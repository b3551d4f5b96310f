"""Points and comments entered in formgrader, which count in every export as they do in nbgrader."""

import os
from collections import defaultdict
from dataclasses import dataclass, field, replace

from autograder.course.config import Assignment, Course
from autograder.gradebook.final_scores import final_of, is_answer
from autograder.gradebook.lateness import rescored
from autograder.lms.exports import ExportRequest
from autograder.records import Grade, TestResult
from autograder.text.names import safe_name, shown
from autograder.text.wording import listed

FILE_NAME = "gradebook.db"


@dataclass
class HandGrading:
    """The manual grading of one submission: automatic and final points by part, and comments."""

    points: dict[str, tuple[float, float]] = field(default_factory=dict)
    comments: list[str] = field(default_factory=list)

    def added_to(self, grade: Grade) -> Grade:
        """Return the grade with these points. A written answer that was decided in decisions.yml keeps its points."""
        points, tests, answers = 0.0, list[TestResult](), {test.name for test in grade.tests if is_answer(test)}
        for test in grade.tests:
            if test.outcome == "waiting" and test.name in self.points:
                test = replace(test, outcome="decided", score=self.points[test.name][1])
                points += test.score
            tests.append(test)
        points += sum(counts - given for name, (given, counts) in self.points.items() if name not in answers)
        return replace(grade, score=grade.score + points, tests=tuple(tests))


def by_part(grade: Grade, assignment: Assignment) -> Grade:
    """Return the grade with points that were decided for the whole submission assigned to its parts.

    nbgrader has points for parts only. Points given fill the parts in their order, points taken empty them.
    """
    whole = sum(test.score for test in grade.tests if not test.part)
    tests = [test for test in grade.tests if test.part]
    for part in assignment.parts:
        score = sum(test.score for test in tests if test.part == part.name)
        points = min(whole, part.points - score) if whole > 0 else max(whole, -score)
        if points:
            title = "; ".join(test.title for test in grade.tests if not test.part)
            tests.append(TestResult("decision", part.name, title, "decided", points, 0.0, hidden=False))
            whole -= points
    return replace(grade, tests=tuple(tests))


def with_hand_grading(request: ExportRequest) -> ExportRequest:
    """Add the points and comments of nbgrader's gradebook to the grades, if the course has one.

    Manual points for another grading than the effective one are reported as a problem and left out.
    """
    course = request.course
    if not (os.environ.get("NBGRADER_DB_URL") or course.database or (course.root / FILE_NAME).is_file()):
        return request
    try:
        from sqlalchemy.exc import SQLAlchemyError

        from autograder.lms.nbgrader.settings import database_url
    except ModuleNotFoundError:
        problem = "nbgrader is not installed, so its gradebook is not read: points given by hand are missing."
    else:
        try:
            return _merged(request, _read(database_url(course.root)))
        except SQLAlchemyError as error:
            reason = type(error).__name__  # its message can contain the password
            problem = f"nbgrader's gradebook cannot be read ({reason}): points given by hand are missing."
    return replace(request, problems=(*request.problems, problem))


def _merged(request: ExportRequest, found: dict[tuple[str, str], HandGrading]) -> ExportRequest:
    course = request.course
    grades, problems, names = [], list(request.problems), []
    finals, comments = dict(request.finals), dict(request.comments)
    for grade in request.grades:
        by_hand = found.get((safe_name(grade.student), grade.assignment))
        if by_hand and by_hand.comments:
            comments[grade.key] = "\n".join(filter(None, (comments.get(grade.key), *by_hand.comments)))
        before = final_of(grade, finals).journal or grade
        if by_hand and by_hand.points and not any(_is_of(by_hand, one, course) for one in (grade, before)):
            problems.append(
                f"{shown(grade.student)}, {grade.assignment}: the points that were given by hand in nbgrader are for "
                "another grading and are left out. `autograder export --to nbgrader` takes this one there."
            )
        elif by_hand and by_hand.points:
            grade = by_hand.added_to(grade)
            finals[grade.key] = rescored(course, final_of(grade, finals), grade.score)
            names.append(shown(grade.student))
        grades.append(grade)
    remark = f"Points given by hand in nbgrader count for {listed(names)}." if names else ""
    return replace(
        request, grades=tuple(grades), finals=finals, problems=tuple(problems), comments=comments, remark=remark
    )


def _is_of(by_hand: HandGrading, grade: Grade, course: Course) -> bool:
    from autograder.lms.nbgrader.graded_notebook import part_score

    assignment = course.find(grade.assignment)
    if assignment is None:
        return False
    grade = by_part(grade, assignment)
    parts = {part.name: part_score(grade, part) for part in assignment.parts}
    parts |= dict.fromkeys((answer.name for answer in assignment.answers), 0.0)
    return all(abs(parts.get(name, 0) - given) < 1e-6 for name, (given, _) in by_hand.points.items())


def _read(url: str) -> dict[tuple[str, str], HandGrading]:
    from nbgrader import api
    from sqlalchemy import create_engine
    from sqlalchemy.orm import Session

    found = defaultdict[tuple[str, str], HandGrading](HandGrading)
    # nbgrader's own Gradebook would add a course to the file, which is only read here
    engine = create_engine(url)
    try:
        with Session(engine) as session:
            changed = (api.Grade.manual_score.is_not(None)) | (api.Grade.extra_credit.is_not(None))
            for cell in session.query(api.Grade).filter(changed):
                given = cell.auto_score or 0.0
                counts = (given if cell.manual_score is None else cell.manual_score) + (cell.extra_credit or 0.0)
                found[cell.student.id, cell.assignment.name].points[cell.name] = given, counts
            for cell in session.query(api.Comment).filter(api.Comment.manual_comment.is_not(None)):
                if comment := cell.manual_comment.strip():
                    found[cell.student.id, cell.assignment.name].comments.append(comment)
    finally:
        engine.dispose()
    return found
