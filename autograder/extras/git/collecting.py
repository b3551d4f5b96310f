"""Collect from repositories: look at all heads, fetch those that changed, and store the work as from an archive."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import as_completed
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

from autograder.course.config import Course
from autograder.extras.git.branch import BRANCH
from autograder.extras.git.command import Git, Limits
from autograder.extras.git.concurrency import OnProgress, held, repository_threads
from autograder.extras.git.repositories import Repository, by_url, digest_of
from autograder.extras.git.seen import Seen, Sightings
from autograder.extras.git.store import Head, NotHandedInError, Store
from autograder.extras.git.work import BranchWork, Commit, FetchError
from autograder.extras.lms.collecting import Collecting, CollectOptions, CollectReport
from autograder.extras.lms.identity import anything
from autograder.extras.lms.raw_submission import Findings, RawSubmission
from autograder.gradebook.seals import refuse_links
from autograder.records import RefusedError
from autograder.submissions.choose import Wanted, wanted_of
from autograder.submissions.hand_in import released_contents
from autograder.text.files import remove_drafts
from autograder.text.names import safe_name, shown, student_name
from autograder.text.wording import joined

LISTED = 4  # maximum number of names in a message
SEEN = "seen"  # the folder with the times of hand-in, beside that of the stores


@dataclass
class GitReport(CollectReport):
    """The result of collecting from repositories: also how many there are, were fetched, and could not be read."""

    repositories: int = 0
    fetched: int = 0
    failed: int = 0

    @property
    def summary(self) -> str:
        """`30 repositories: 3 fetched, 26 unchanged, 1 failed. 29 submissions of 29 students: …`"""
        unchanged = self.repositories - self.fetched - self.failed
        failed = f", {self.failed} failed" if self.failed else ""
        are = "repository" if self.repositories == 1 else "repositories"
        return f"{self.repositories} {are}: {self.fetched} fetched, {unchanged} unchanged{failed}. {super().summary}"

    def as_record(self) -> dict[str, Any]:
        counts = {"repositories": self.repositories, "fetched": self.fetched, "failed": self.failed}
        return {**counts, **super().as_record()}


@dataclass(frozen=True)
class _Fetched:
    """What was found of the repositories with one address: their submissions, or the reasons that there are none."""

    handed: list[RawSubmission] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    fetched: bool = False


def _now() -> datetime:
    return datetime.now(timezone.utc)


def stores_of(submitted: Path) -> Path:
    """Return the folder of the stores and of the times of hand-in, beside the folder of submissions."""
    place = submitted.absolute()
    return place.with_name(f"{place.name}-git")


def collect_from_git(
    repositories: Sequence[Repository],
    course: Course,
    options: CollectOptions,
    label: str,
    on_repository: OnProgress,
    limits: Limits = Limits(),  # noqa: B008
    clock: Callable[[], datetime] = _now,
) -> GitReport:
    """Collect the work in these repositories; `label` names their table in messages.

    A repository that cannot be read is a sentence in the report, and all others are collected.
    """
    groups = by_url(repository for repository in repositories if repository.student)
    report = GitReport(options.output, repositories=len(groups))
    report.odd += [f"{label}: {other.nobodys}" for other in repositories if not other.student]
    folder = stores_of(options.output)
    refuse_links(folder)
    on_repository(0, len(groups))
    with (
        held(folder, "collects into it") as lock,
        closing(Collecting(Path(label), course, options, report)) as collecting,
        repository_threads(limits) as (pool, stopped),
    ):
        remove_drafts(folder / SEEN)
        remove_drafts(options.output)
        sightings = Sightings(folder / SEEN)
        wanted = {a.name: wanted_of(course, a.name) for a in course.assignments}
        look = partial(_Look, folder, course, wanted, sightings, limits, stopped, lock, clock)
        looks = [pool.submit(look(group).result) for group in groups]
        for done, finished in enumerate(as_completed(looks), start=1):
            fetched = finished.result()
            report.fetched += fetched.fetched
            report.failed += bool(fetched.problems)
            collecting.receive(Findings(fetched.handed, fetched.problems, fetched.notes))
            on_repository(done, len(groups))
        report.notes.sort()
        report.odd.sort()
    return report


@dataclass(frozen=True)
class _Look:
    """A look at the repositories with one address."""

    folder: Path
    course: Course
    wanted: Mapping[str, Wanted]
    sightings: Sightings
    limits: Limits
    stopped: Event
    lock: int
    clock: Callable[[], datetime]
    group: Sequence[Repository]

    def result(self) -> _Fetched:
        first = self.group[0]
        address = digest_of(first.url)
        git = Git(
            self.folder / "stores" / f"{safe_name(first.student)}-{address}.git",
            first.url,
            self.limits,
            self.stopped,
            (self.lock,),
        )
        store = Store(git)
        handed = list[RawSubmission]()
        notes = list[str]()
        problems = list[str]()
        fetched = False
        for repository in self.group:
            try:
                store.prepare()
                seen = self.sightings.of(safe_name(repository.student), address)
                head, came = self._head(store, seen, repository)
                fetched = fetched or came
                commit = Commit(store, head.commit, self.course, repository.path)
                works = commit.works(self.wanted, repository.assignment)
                seen.note_work(head.commit, {work.assignment: self._digest(work) for work in works})
                handed += _submissions(seen, head, repository, works)
                notes += [
                    f"{shown(repository.student)}: {note}"
                    for note in _notes(repository, head, commit, works)
                ]
            except NotHandedInError as reason:
                notes.append(
                    f"{shown(repository.student)} has handed in nothing at {repository.shown_url}: {reason}"
                )
            except (RefusedError, FetchError) as problem:
                store.discard()
                problems.append(
                    f"{shown(repository.student)}: {repository.shown_url} was not collected: {problem}"
                )
        return _Fetched(handed, notes, problems, fetched)

    def _head(self, store: Store, seen: Seen, repository: Repository) -> tuple[Head, bool]:
        """Return the head that counts, and whether it was fetched just now."""
        now = self.clock()
        head = store.head(repository.branch)
        seen.note(head.ref, head.commit, now)
        if store.commit_of(head.ref) == head.commit:
            return head, False
        commit = store.fetch(head)
        seen.note(head.ref, commit, self.clock())  # pushed since
        return replace(head, commit=commit), True

    def _digest(self, work: BranchWork) -> str:
        released = released_contents(self.course, self.course.assignment(work.assignment))
        return work.digest(released)


def _submissions(
    seen: Seen, head: Head, repository: Repository, works: Sequence[BranchWork]
) -> list[RawSubmission]:
    return [
        RawSubmission(
            repository.student,
            work.files,
            anything(repository.student),
            assignment=work.assignment,
            submitted_at=seen.handed_in(head.commit, work.assignment),
            where=student_name(repository.student),
            problem=work.problem,
        )
        for work in works
    ]


def _notes(
    repository: Repository, head: Head, commit: Commit, works: Sequence[BranchWork]
) -> Iterator[str]:
    """Yield what was passed over in a repository: files, and branches."""
    for work in works:
        yield from work.notes
    if any(work.is_own for work in works):
        return
    strange = commit.strange()
    if strange and not repository.assignment:
        yield (
            f"{joined([shown(path) for path in strange], LISTED)} is not named like an assignment; "
            "name the assignment with --assignment."
        )
    others = [name for name in head.other_branches if name != BRANCH]
    if others:
        branch = head.ref.removeprefix("refs/heads/")
        yield (
            f"{shown(branch)} at {repository.shown_url} holds no work of the student's own, but there "
            f"are other branches: {joined([shown(name) for name in others], LISTED)}. If one of them "
            "is the hand-in, name it with --branch or in the column `branch`."
        )
