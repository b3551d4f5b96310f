"""The submissions of a run that the machine failed, and why."""

from collections import defaultdict
from collections.abc import Mapping

from autograder.course.config import Course
from autograder.grading.reference import MissingModuleError
from autograder.records import InfrastructureError, Submission
from autograder.text.wording import LISTED, joined
from autograder.walls.outside.unavailable import SandboxImportError, SandboxUnavailableError

Name = tuple[str, str]  # of a submission: its student and its assignment


def failure_sentences(reasons: Mapping[Name, str]) -> list[str]:
    """Return a sentence for each submission that was not graded; one for all of an assignment with the same reason."""
    students: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for (student, assignment), reason in sorted(reasons.items()):
        students[assignment, reason].append(student)
    return [
        _failure_sentence(assignment, reason, names)
        for (assignment, reason), names in students.items()
    ]


def _failure_sentence(assignment: str, reason: str, students: list[str]) -> str:
    if len(students) == 1:
        return f"{students[0]}, {assignment}: {reason}"
    return f"{len(students)} submissions of {assignment} ({joined(students, LISTED)}): {reason}"


class Failures:
    """The reasons why submissions were not graded; each submission is tried twice.

    A module that cannot be imported for an assignment (`preload` in course.yml) fails all of its
    submissions.
    """

    def __init__(self, course: Course) -> None:
        self.reasons: dict[Name, str] = {}
        self._preloads = {assignment.name: assignment.preload for assignment in course.assignments}
        self._tried: set[Name] = set()
        self._blocked: dict[str, str] = {}

    def blocks(self, submission: Submission) -> bool:
        """Whether the submission cannot be graded because a module of its assignment is missing; it is recorded."""
        reason = self._blocked.get(submission.assignment)
        if reason is None or submission.problem:
            return False
        self.reasons[submission.student, submission.assignment] = reason
        return True

    def allow_another(self, submission: Submission, problem: InfrastructureError) -> bool:
        """Whether the submission may be tried again after a failure; if not, it is recorded.

        Raises the failure if it is one of the sandbox, without which nothing can be graded.
        """
        name = submission.student, submission.assignment
        if self._is_of_the_assignment(problem, submission.assignment):
            self._blocked[submission.assignment] = str(problem)
        elif isinstance(problem, SandboxUnavailableError):
            raise problem
        elif name not in self._tried:
            self._tried.add(name)
            return True
        self.reasons[name] = str(problem)
        return False

    def _is_of_the_assignment(self, problem: InfrastructureError, assignment: str) -> bool:
        if isinstance(problem, SandboxImportError):
            return problem.module in self._preloads.get(assignment, ())
        return isinstance(problem, MissingModuleError)
