"""Points and comments entered in formgrader, which count in exports as they do in nbgrader."""

import os
from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field, replace

from autograder.course.config import Assignment, Course
from autograder.extras.lms.exports import ExportRequest
from autograder.gradebook.final_scores import final_of
from autograder.gradebook.lateness import GradeKey, rescored
from autograder.nbgrader.decided_points import by_part, part_score
from autograder.records import Grade, total
from autograder.text.names import safe_name, shown
from autograder.text.wording import counted, listed

FILE_NAME = "gradebook.db"


@dataclass
class HandGrading:
    """The manual grading of one submission: automatic and final points by cell, and comments.

    `answers` are the points of all written answers, also without a person's: None while nbgrader
    waits for one.
    """

    points: dict[str, tuple[float, float]] = field(default_factory=dict)
    comments: list[str] = field(default_factory=list)
    answers: dict[str, float | None] = field(default_factory=dict)

    def added_to(self, grade: Grade) -> Grade:
        """Return the grade with these points."""
        gained = [counts - given for given, counts in self.points.values()]
        return replace(grade, score=total([grade.score, *gained]))


def with_hand_grading(request: ExportRequest) -> ExportRequest:
    """Add the points and comments of nbgrader's gradebook to the grades, if the course has one.

    Manual points for another grading than the effective one are reported as a problem and left out.
    """
    course = request.course
    if not (
        os.environ.get("NBGRADER_DB_URL") or course.database or (course.root / FILE_NAME).is_file()
    ):
        return request
    try:
        from sqlalchemy.exc import SQLAlchemyError

        from autograder.nbgrader.settings import database_url, upgrade_hint
    except ModuleNotFoundError:
        problem = "nbgrader is not installed, so its gradebook is not read: points given by hand are missing."
    else:
        try:
            names = {
                answer.name for assignment in course.assignments for answer in assignment.answers
            }
            return _merged(request, _read(database_url(course.root), names))
        except SQLAlchemyError as error:
            reason = type(error).__name__  # its message can contain the password
            problem = (
                f"nbgrader's gradebook cannot be read ({reason}): points given by hand are missing."
                f"{upgrade_hint(error)}"
            )
    return replace(request, problems=(*request.problems, problem))


def _merged(
    request: ExportRequest, by_hand_points: dict[tuple[str, str], HandGrading]
) -> ExportRequest:
    course = request.course
    grades = []
    problems = list(request.problems)
    names = []
    finals = dict(request.finals)
    comments = dict(request.comments)
    answers: dict[GradeKey, dict[str, float | None]] = {}
    with_answers = {name for (_, name), by_hand in by_hand_points.items() if by_hand.answers}
    for grade in request.grades:
        by_hand = by_hand_points.get((safe_name(grade.student), grade.assignment))
        if grade.assignment in with_answers:
            grade = replace(
                grade, max_score=grade.max_score + _points_of_answers(course.find(grade.assignment))
            )
        if by_hand and by_hand.answers and grade.status == "graded":
            answers[grade.key] = by_hand.answers
        if by_hand and by_hand.comments:
            comments[grade.key] = "\n".join(
                filter(None, (comments.get(grade.key), *by_hand.comments))
            )
        before = final_of(grade, finals).journal or grade
        if by_hand and by_hand.points:
            if any(_is_of(by_hand, graded, course) for graded in (grade, before)):
                grade = by_hand.added_to(grade)
                finals[grade.key] = rescored(course, final_of(grade, finals), grade.score)
                names.append(shown(grade.student))
            else:
                answers.pop(grade.key, None)
                problems.append(
                    f"{shown(grade.student)}, {grade.assignment}: the points that were given by hand in nbgrader are for "
                    "another grading and are left out. `autograder export --to nbgrader` takes this one there."
                )
        grades.append(grade)
    remark = f"Points given by hand in nbgrader count for {listed(names)}." if names else ""
    merged = replace(
        request,
        grades=tuple(grades),
        finals=finals,
        comments=comments,
        answers=answers,
        remark=remark,
    )
    return replace(merged, problems=(*problems, *_ungraded(merged)))


def _points_of_answers(assignment: Assignment | None) -> float:
    return sum(answer.points for answer in assignment.answers) if assignment else 0.0


def _ungraded(request: ExportRequest) -> list[str]:
    """Return one message about the written answers that wait for a person, if there are any."""
    count = 0
    whose = []
    for grade in request.wanted:
        waiting = list(request.answers.get(grade.key, {}).values()).count(None)
        if waiting and not final_of(grade, request.finals).excused:
            count += waiting
            whose.append(f"{shown(grade.student)} ({grade.assignment})")
    if not whose:
        return []
    answers = counted(count, "written answer")
    return [f"{answers} not graded yet in formgrader, and counted 0 so far: {listed(whose)}."]


def _is_of(by_hand: HandGrading, grade: Grade, course: Course) -> bool:
    assignment = course.find(grade.assignment)
    if assignment is None:
        return False
    grade = by_part(grade, assignment)
    parts = {part.name: part_score(grade.tests, part) for part in assignment.parts}
    parts |= dict.fromkeys((answer.name for answer in assignment.answers), 0.0)
    return all(
        abs(parts.get(name, 0) - given) < 1e-6 for name, (given, _) in by_hand.points.items()
    )


def _read(url: str, answers: Collection[str]) -> dict[tuple[str, str], HandGrading]:
    """Return what nbgrader's gradebook knows of each student and assignment; `answers` are the names of such cells."""
    from nbgrader import api
    from sqlalchemy import create_engine
    from sqlalchemy.orm import Session

    points_by_grade = defaultdict[tuple[str, str], HandGrading](HandGrading)
    # nbgrader's own Gradebook would add a course to the file, which is only read here
    engine = create_engine(url)
    try:
        with Session(engine) as session:
            changed = (api.Grade.manual_score.is_not(None)) | (api.Grade.extra_credit.is_not(None))
            of_answer = api.BaseCell.name.in_(answers)
            for cell in session.query(api.Grade).join(api.Grade.cell).filter(changed | of_answer):
                by_hand = points_by_grade[cell.student.id, cell.assignment.name]
                given = cell.auto_score or 0.0
                counts = (given if cell.manual_score is None else cell.manual_score) + (
                    cell.extra_credit or 0.0
                )
                if cell.manual_score is not None or cell.extra_credit is not None:
                    by_hand.points[cell.name] = given, counts
                if cell.name in answers:
                    waits = cell.needs_manual_grade and cell.name not in by_hand.points
                    by_hand.answers[cell.name] = None if waits else counts
            for cell in session.query(api.Comment).filter(api.Comment.manual_comment.is_not(None)):
                if comment := cell.manual_comment.strip():
                    points_by_grade[cell.student.id, cell.assignment.name].comments.append(comment)
    finally:
        engine.dispose()
    return points_by_grade
