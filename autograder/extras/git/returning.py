"""Return feedback: the pages of each student, on a branch of the student's repository."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import as_completed
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from autograder.course.config import Course
from autograder.extras.git.branch import BRANCH, push
from autograder.extras.git.command import Git, Limits
from autograder.extras.git.concurrency import OnProgress, held, repository_threads
from autograder.extras.git.feedback_tree import feedback_files
from autograder.extras.git.repositories import Repository, by_url, digest_of
from autograder.extras.git.store import Store
from autograder.feedback.record import PageRecords
from autograder.gradebook.final_scores import Effective
from autograder.gradebook.seals import refuse_links
from autograder.records import Grade, RefusedError
from autograder.text.names import graded_name, shown

FOLDER = "return"  # in the folder of grades
_LONG_AGO = datetime(2020, 1, 1, tzinfo=timezone.utc)


@dataclass
class Returned:
    """How many branches were pushed or stayed as they were; who has no grade; and why a repository failed."""

    pushed: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    ungraded: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def summary(self) -> str:
        """`Feedback: 3 pushed, 26 unchanged, 1 without a grade, 0 failed.`"""
        without = f"{len(self.ungraded)} without a grade"
        counts = f"{len(self.pushed)} pushed, {len(self.unchanged)} unchanged, {without}, {len(self.problems)} failed"
        return f"Feedback: {counts}."

    def as_record(self) -> dict[str, Any]:
        return {
            "pushed": self.pushed,
            "unchanged": self.unchanged,
            "ungraded": self.ungraded,
            "problems": self.problems,
        }


@dataclass(frozen=True)
class ReturnOptions:
    """The branch, and whether one that the course did not write may be replaced.

    `student_of` returns the id in the grades of a student in the table of repositories.
    """

    branch: str = BRANCH
    replace: bool = False
    student_of: Callable[[str], str] = graded_name


def return_to_git(
    repositories: Sequence[Repository],
    folder: Path,
    course: Course,
    effective: Effective,
    options: ReturnOptions,
    on_repository: OnProgress,
    limits: Limits = Limits(),  # noqa: B008
) -> Returned:
    """Push the feedback in a folder of grades to these repositories; at most one branch of each changes."""
    refuse_links(folder)
    groups = by_url(repository for repository in repositories if repository.student)
    returned = Returned(problems=[other.nobodys for other in repositories if not other.student])
    place = folder.absolute() / FOLDER
    on_repository(0, len(groups))
    with (
        held(place, "returns feedback from it") as lock,
        repository_threads(limits) as (pool, stopped),
    ):
        giving = _Giving(
            Git(place, "", limits, stopped, (lock,)),
            PageRecords(folder, course),
            effective,
            options,
        )
        every = [pool.submit(giving.give, group) for group in groups]
        for done, given in enumerate(as_completed(every), start=1):
            given.result()  # raises what ends the command
            on_repository(done, len(groups))
        for given in every:
            _count(returned, given.result())
    return returned


@dataclass(frozen=True)
class _Outcome:
    """What became of a repository: `pushed`, `unchanged`, `ungraded`, or the problem as a sentence."""

    student: str
    what: str
    problem: str = ""


@dataclass(frozen=True)
class _Giving:
    git: Git
    records: PageRecords
    effective: Effective
    options: ReturnOptions

    def give(self, group: Sequence[Repository]) -> _Outcome:
        """Push the feedback of the repositories with one address."""
        first = group[0]
        grades = self._grades(group)
        if not grades:
            return _Outcome(first.student, "ungraded")
        store = Store(
            replace(self.git, url=first.url, store=self.git.store / f"{digest_of(first.url)}.git")
        )
        try:
            files, moment = self._files(grades, alone=bool(first.assignment))
            store.prepare()
            pushed = push(store, self.options.branch, files, moment, self.options.replace)
            return _Outcome(first.student, pushed)
        except RefusedError as problem:
            problem_of_student = (
                f"{shown(first.student)}: {first.shown_url} got no feedback: {problem}"
            )
            return _Outcome(first.student, "failed", problem_of_student)
        finally:
            store.discard()

    def _files(self, grades: Sequence[Grade], alone: bool) -> tuple[Mapping[str, bytes], datetime]:
        pages = [self.records.page(grade, self.effective) for grade in grades]
        times = [page.submitted for page in pages if page.submitted]
        moments = [time if time.tzinfo else time.replace(tzinfo=timezone.utc) for time in times]
        return feedback_files(pages, alone), max(moments, default=_LONG_AGO)

    def _grades(self, group: Sequence[Repository]) -> list[Grade]:
        """Return the grades that belong into these repositories, each once."""
        grades: dict[tuple[str, str], Grade] = {}
        for repository in group:
            student = self.options.student_of(repository.student)
            for grade in self.effective.grades:
                if grade.student == student and repository.assignment in ("", grade.assignment):
                    grades[grade.key] = grade
        return list(grades.values())


def _count(returned: Returned, outcome: _Outcome) -> None:
    if outcome.what == "failed":
        returned.problems.append(outcome.problem)
        return
    places = {
        "pushed": returned.pushed,
        "unchanged": returned.unchanged,
        "ungraded": returned.ungraded,
    }
    places[outcome.what].append(outcome.student)
