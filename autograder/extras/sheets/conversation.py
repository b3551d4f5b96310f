"""A sheet for a conversation of five minutes: three linked questions about a student's own code.

The same submission and seed give the same sheet. It has no points of its own and says nothing about
where the code comes from: what it is worth is what the two people say to each other.
"""

import hashlib
import itertools
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from autograder.course.mistakes import Mistake
from autograder.course.mistakes_file import mistakes_by_id
from autograder.extras.sheets.own_code import MANY_LINES, CodeLine, OwnCode, function_of, short_line
from autograder.extras.sheets.questions import (
    Question,
    QuestionFile,
    Topic,
    load_question_file,
    notes_of,
)
from autograder.extras.sheets.what_if import AskedWhatIf, Trials, first_that_fits
from autograder.feedback.causes import causes_of
from autograder.gradebook import texts
from autograder.records import Grade, RefusedError, TestResult
from autograder.runs.pool import this_grader

# for a question about the gap that grading named
GAP_POINTS = (
    "does not find the line",
    "finds the line and says what it does",
    "also says why, and what should happen instead",
)
UNWRITTEN_FUNCTION = (
    "What should come out of it for the smallest input that you can think of, and what would your "
    "first line be?"
)
UNWRITTEN_CLASS = "What will its methods need to find in `self`, and what would your first line be?"
UNWRITTEN_POINTS = (
    "has no idea yet what is needed",
    "says what is needed, or at least its shape",
    "also says in words how to begin",
)
WHAT_IF_POINTS = (
    "guesses, or gives no reason",
    "the right option or a sound reason, but not both",
    "both, and why it is none of the others",
)
ON_PAPER = (
    "Change one line of your code in your mind: which one, and what would come out differently?"
)
ON_PAPER_ANSWER = (
    "No question with pictures fits this code. Take what the student proposes, and ask for the first "
    "number that would differ."
)


@dataclass(frozen=True)
class Asked:
    """A question on a sheet, with what the examiner needs for it."""

    ask: str
    answer: str
    points: Sequence[str]


@dataclass(frozen=True)
class Sheet:
    """The sheet of one student; without questions, `problem` says why."""

    student: str
    topic: str = ""
    part: str = ""
    code: tuple[tuple[CodeLine, ...], ...] = ()
    what: Asked | None = None
    why: Asked | None = None
    what_if: Asked | None = None
    pictures: AskedWhatIf | None = None
    follow_up: str = ""
    about_a_gap: bool = False
    problem: str = ""

    @property
    def is_long(self) -> bool:
        """Whether the code needs smaller letters, so that the sheet stays one page."""
        return sum(len(block) for block in self.code) > MANY_LINES

    def questions(self) -> tuple[object, ...]:
        """Return all that is asked, without the student's name and lines."""
        asked = (self.what, self.why, self.what_if)
        tables = [option.table for option in self.pictures.options] if self.pictures else []
        return (*(question.ask for question in asked if question), *tables)


@dataclass(frozen=True)
class SheetJob:
    """The grade that a sheet is about, the folder with its text, and the seed of its choices."""

    folder: Path
    grade: Grade
    seed: int


def prepare_sheet(job: SheetJob) -> Sheet:
    """Return the sheet of one grade. Runs in a grader's process."""
    grader = this_grader()
    grade = job.grade
    assignment = grader.assignment(grade.assignment)
    submission = texts.get(job.folder, grade)
    if submission is None:
        return Sheet(grade.student, problem="The graded text is not stored: grade it again.")
    try:
        file = grader.choose(assignment, submission)
    except RefusedError as refusal:
        return Sheet(grade.student, problem=str(refusal))
    code = OwnCode.of(file)
    if not code.is_readable:
        return Sheet(
            grade.student, problem="Python cannot read the file, so there are no lines to show."
        )
    course = course_questions(assignment.name)
    chosen = int.from_bytes(
        hashlib.sha256(
            f"{grade.submission_sha256}\0{assignment.name}\0{job.seed}".encode()
        ).digest()[:6],
        "big",
    )
    with Trials(grader, assignment, code, course.solution, course.mistakes) as trials:
        return _Writer(grade, code, course, trials, chosen).sheet()


@dataclass(frozen=True)
class CourseQuestions:
    """What the course knows for the sheets of one assignment."""

    file: QuestionFile
    solution: str
    mistakes: Mapping[str, Mistake]


@cache
def course_questions(name: str) -> CourseQuestions:
    """Return what this grader's course knows for the sheets of an assignment; it is read once."""
    grader = this_grader()
    assignment = grader.assignment(name)
    record = load_question_file(grader.course, assignment)
    assert record is not None, "sheets are made only for assignments with questions"
    mistakes = mistakes_by_id(grader.course, assignment)
    return CourseQuestions(record, grader.course.read_solution(assignment), mistakes)


class _Writer:
    """Chooses the questions of one sheet."""

    def __init__(
        self, grade: Grade, code: OwnCode, course: CourseQuestions, trials: Trials, seed: int
    ) -> None:
        self._grade = grade
        self._code = code
        self._course = course
        self._trials = trials
        self._seed = seed

    def sheet(self) -> Sheet:
        lost = _lost(self._grade)
        topics = self._in_order(lost[0].part if lost else "")
        topic = topics[0]
        asked = None
        for candidate in topics:
            asked = first_that_fits(self._trials, candidate.what_if, self._seed)
            if asked is not None:
                topic = topic if lost else candidate
                break
        what = _asked(topic.what)
        functions = list(topic.functions)
        if lost:
            what, place = self._about_the_gap(lost)
            functions = [*([place] if place else []), *functions]
        return Sheet(
            self._grade.student,
            topic.topic,
            topic.part,
            self._lines(functions, asked),
            what,
            _asked(topic.why),
            _asked_what_if(asked),
            asked,
            topic.follow_up,
            bool(lost),
        )

    def _in_order(self, part: str) -> list[Topic]:
        """Return the topics, those of this part first, the others in an order of this sheet's own."""
        topics = list(self._course.file.topics)
        random.Random(self._seed).shuffle(topics)
        return sorted(topics, key=lambda topic: topic.part != part)

    def _lines(
        self, functions: Sequence[str], asked: AskedWhatIf | None
    ) -> tuple[tuple[CodeLine, ...], ...]:
        """Return the lines of the questions' functions in the order of the file.

        The line of a change is among them, even if it is elsewhere.
        """
        blocks = [tuple(block) for block in self._code.lines_of(dict.fromkeys(functions))]
        shown = {line.place for line in itertools.chain.from_iterable(blocks)}
        if asked and asked.change and asked.change.line.place not in shown:
            blocks.append((short_line(asked.change.line),))
        return tuple(sorted(blocks, key=lambda block: (block[0].cell, block[0].number)))

    def _about_the_gap(self, lost: Sequence[TestResult]) -> tuple[Asked, str]:
        """Return the first question about work that lost points, and the function it is about."""
        first = lost[0]
        if first.is_unwritten:
            is_class = ".__init__`" in first.sentence
            question = UNWRITTEN_CLASS if is_class else UNWRITTEN_FUNCTION
            answer = "Any beginning is a good one here. Find out where the student got stuck."
            return Asked(f"{first.sentence} {question}", answer, UNWRITTEN_POINTS), ""
        seen = (
            f"One test says: {first.sentence}"
            if first.message
            else f"One test does not pass: {first.title}"
        )
        question = first.hint or "Which of your lines decides that, and what does it do now?"
        ask = f"{seen}\n{question} Point at the line that this is about."
        mistake = self._course.mistakes.get(first.mistake or "")
        if mistake is None:
            answer = f"No known mistake has these answers. The test: {first.title}"
            return Asked(ask, answer, GAP_POINTS), ""
        note = notes_of(self._course.file).get(mistake.id)
        answer = f"What grading recognised: {mistake.title}." + (f" {note.good}" if note else "")
        return Asked(ask, answer, GAP_POINTS), function_of(self._course.solution, mistake.source)


def _lost(grade: Grade) -> list[TestResult]:
    """Return the tests of the cause that the first question is about; empty for full marks.

    A gap that grading could name comes before the others, then what cost most.
    """
    causes = [list(cause.tests) for cause in causes_of(test for test in grade.tests if test.fails)]
    return max(
        causes,
        key=lambda tests: (bool(tests[0].mistake), sum(test.lost for test in tests)),
        default=[],
    )


def _asked(question: Question) -> Asked:
    return Asked(question.ask, question.answer, question.points)


def _asked_what_if(asked: AskedWhatIf | None) -> Asked:
    if asked is None:
        return Asked(ON_PAPER, ON_PAPER_ANSWER, WHAT_IF_POINTS)
    return Asked(asked.ask, asked.answer, WHAT_IF_POINTS)
