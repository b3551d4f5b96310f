"""The pages and the table of automatic grading, written as the grades arrive."""

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from zoneinfo import ZoneInfo

from autograder.course.config import Course
from autograder.feedback.class_report import write_class_report
from autograder.feedback.html import StudentPages
from autograder.feedback.pages import feedback_path
from autograder.feedback.status_page import Recent, Status, write_status
from autograder.feedback.titles import titles_of
from autograder.gradebook.final_scores import ClassOf, Effective, what_counts
from autograder.gradebook.journal import Reading
from autograder.gradebook.lateness import GradeKey
from autograder.gradebook.table import write_gradebook
from autograder.records import Grade, Submission
from autograder.runs.fence import may_pass, told
from autograder.runs.watching import State

MOST_RECENT = 20
CLASS_SHARE = (
    10  # the table and the report of a class are written again after so many times as long
)
RETRY_SECONDS = 30.0
STATUS_SECONDS = 15.0
TROUBLED_SECONDS = 600.0  # after a problem
SILENT_SECONDS = 3600.0  # before the same problem is told again
CLOCK = "%H:%M:%S"

Publish = Callable[[Submission, Path], None]


def postponement(course: Course, submission: Submission, until: datetime) -> str:
    """Return the sentence about a hand-in that has to wait for the quota."""
    quota = course.assignment(submission.assignment).limits.per_hour or 0
    times = "once" if quota == 1 else f"{quota} times"
    return (
        f"Work for {submission.assignment} was graded {times} within an hour, as often as this course allows. "
        f"The newest version that is handed in until {_clock_time(course, until)} is graded then."
    )


def _clock_time(course: Course, moment: datetime) -> str:
    return moment.astimezone(ZoneInfo(course.timezone)).strftime(CLOCK)


class LivePages:
    """Listens to automatic grading and writes what students and instructors read.

    A student's page is written at once. So are the table and the report of the class, unless they
    take longer than a tenth of the time: then somewhat later. `publish` passes a page on, as to
    nbgrader's exchange. `tell` receives the problems, `tell_postponed` the sentences of the quota.
    What cannot be written is tried again.
    """

    def __init__(
        self,
        folder: Path,
        course: Course,
        class_of: ClassOf,
        tell: Callable[[str], None],
        on_grade: Callable[[Grade], None],
        on_postponed: Callable[[str], None],
        publish: Publish | None = None,
    ) -> None:
        self._folder = folder
        self._course = course
        self._class_of = class_of
        self._tell = tell
        self._on_grade = on_grade
        self._on_postponed = on_postponed
        self._publish = publish
        self._history = [
            replace(grade, test_seconds=()) for grade in Reading(folder / "grades.jsonl")
        ]
        self._title_of = titles_of(course)  # reads the files of mistakes once
        self._behind: set[str] = set()  # students
        self._unpublished: dict[GradeKey, Submission] = {}
        self._notices: dict[GradeKey, str] = {}
        self._is_class_behind = False
        self._next_class = 0.0
        self._next_try = 0.0
        self._next_status = 0.0
        self._again: set[str] = set()  # students whose pages failed
        self._again_at = 0.0
        self._told: dict[str, float] = {}
        self._troubled_until = 0.0
        self._since = self._time()
        self._graded = 0
        self._recent: deque[Recent] = deque(maxlen=MOST_RECENT)
        self._state = State(0, 0, 0)

    def write_all(self) -> None:
        """Write everything; what was interrupted is made up for.

        Raises what the table and the report of a class raise.
        """
        if self._history:
            self._behind.update(grade.student for grade in self._history)
            effective = self._effective()
            self._write_students(effective)
            try:
                self._write_class(effective)
            except Exception as error:
                if may_pass(error):
                    raise
                self.troubled_by(error)

    def end(self) -> None:
        """Write what is still behind, and that grading has ended."""
        self._next_try = 0.0
        self._next_class = 0.0
        self._write("stopped")

    # ------------------------------------------------------------------ the listener

    def graded(self, grade: Grade, submission: Submission) -> None:
        self._history.append(replace(grade, test_seconds=()))
        self._notices.pop(grade.key, None)
        self._behind.add(grade.student)
        self._is_class_behind = True
        self._graded += 1
        self._unpublished[grade.key] = submission
        self._note(submission, "graded" if grade.status == "graded" else "cannot be graded")
        self._on_grade(grade)

    def unchanged(self, submission: Submission) -> None:
        key = submission.student, submission.assignment
        if self._notices.pop(key, None):
            self._behind.add(submission.student)
        self._unpublished[key] = submission

    def postponed(self, submission: Submission, until: datetime) -> None:
        sentence = postponement(self._course, submission, until)
        key = submission.student, submission.assignment
        self._notices[key] = sentence
        self._behind.add(submission.student)
        self._unpublished[key] = submission
        self._note(submission, "waits for the next hour")
        self._on_postponed(f"{submission.student}: {sentence}")

    def troubled(self, problem: str, kind: str = "") -> None:
        """Tell of a problem, but not all the time; a full disk is one problem, whatever is written."""
        now = time.monotonic()
        self._troubled_until = now + TROUBLED_SECONDS
        if now - self._told.get(kind or problem, -SILENT_SECONDS) >= SILENT_SECONDS:
            self._told[kind or problem] = now
            self._tell(problem)

    def troubled_by(self, error: Exception, student: str = "") -> None:
        """Tell of an error; of a fault, with the student whose name or work met it."""
        kind = str(error.strerror) if isinstance(error, OSError) else ""
        self.troubled(told(error, student), kind)

    def looked(self, state: State) -> None:
        is_new = state != self._state
        self._state = state
        if is_new or self._is_anything_due():
            self._write("running")

    # ------------------------------------------------------------------ writing

    def _is_anything_due(self) -> bool:
        now = time.monotonic()
        if now >= self._next_status:
            return True
        if now < self._next_try:
            return False
        is_class_due = self._is_class_behind and now >= self._next_class
        is_again_due = bool(self._again) and now >= self._again_at
        return bool(self._behind) or bool(self._unpublished) or is_class_due or is_again_due

    def _write(self, state: str) -> None:
        if time.monotonic() >= self._next_try:
            with self._trying(self._postpone):
                self._write_pages()
        with self._trying(self._postpone):
            self._write_status(state)

    @contextmanager
    def _trying(self, postpone: Callable[[], None], student: str = "") -> Iterator[None]:
        """Tell an error once in place of ending, and try later: the names and contents of a class are in all pages."""
        try:
            yield
        except Exception as error:
            postpone()
            self.troubled_by(error, student)

    def _postpone(self) -> None:
        self._next_try = time.monotonic() + RETRY_SECONDS

    def _postpone_class(self) -> None:
        self._next_class = time.monotonic() + RETRY_SECONDS

    def _postpone_student(self, student: str) -> None:
        self._again.add(student)
        self._again_at = time.monotonic() + RETRY_SECONDS

    def _write_pages(self) -> None:
        if time.monotonic() >= self._again_at:
            self._behind |= self._again
            self._again.clear()
        is_class_due = self._is_class_behind and time.monotonic() >= self._next_class
        if self._behind or is_class_due:
            effective = self._effective()
            self._write_students(effective)
            if is_class_due:
                with self._trying(self._postpone_class):
                    self._write_class(effective)
        self._publish_pages()

    def _effective(self) -> Effective:
        return what_counts(self._folder, self._course, self._history, self._class_of)

    def _write_students(self, effective: Effective) -> None:
        wanted = set(self._behind)
        for student in self._behind:
            wanted.update(effective.people.groups.get(student, ()))
        pages = StudentPages(self._folder, self._course, self._title_of)
        for student_grades in effective.by_student():
            student = student_grades.grades[0].student
            if student in wanted:
                with self._trying(partial(self._postpone_student, student), student):
                    pages.write(student_grades, self._notices)
        self._behind.clear()

    def _write_class(self, effective: Effective) -> None:
        begun = time.monotonic()
        write_gradebook(self._folder, effective)
        write_class_report(self._folder, self._course, effective)
        self._is_class_behind = False
        now = time.monotonic()
        self._next_class = now + CLASS_SHARE * (now - begun)

    def _publish_pages(self) -> None:
        """Pass pages on; one that fails for other reasons than the machine's waits for the next grade."""
        for key, submission in list(self._unpublished.items()):
            try:
                if self._publish is not None:
                    self._publish(submission, self._folder / feedback_path(submission))
            except Exception as error:
                if may_pass(error):
                    raise
                self.troubled_by(error, submission.student)
            del self._unpublished[key]

    def _write_status(self, state: str) -> None:
        self._next_status = time.monotonic() + STATUS_SECONDS
        status = Status(
            title=self._course.title,
            state=state,
            since=self._since,
            at=self._time(),
            graded=self._graded,
            waiting=self._state.waiting,
            running=self._state.running,
            postponed=self._state.postponed,
            troubled=time.monotonic() < self._troubled_until,
            recent=tuple(self._recent),
        )
        write_status(self._folder, status)

    def _note(self, submission: Submission, result: str) -> None:
        assignment = self._course.find(submission.assignment)
        title = assignment.title if assignment else "another assignment"
        self._recent.appendleft(Recent(self._time(), title, result))

    def _time(self) -> str:
        return datetime.now(ZoneInfo(self._course.timezone)).strftime(CLOCK)
