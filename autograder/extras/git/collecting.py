"""Collect from repositories: look at all heads, fetch those that changed, and store the work as from an archive."""

from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import as_completed
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

from autograder.course.config import Course
from autograder.extras.git.command import Git, Limits
from autograder.extras.git.concurrency import OnProgress, held, repository_threads
from autograder.extras.git.repositories import Repository, by_url, digest_of
from autograder.extras.git.seen import Seen, Sightings
from autograder.extras.git.store import NotHandedInError, Store, TreeEntry
from autograder.extras.git.work import Work, released_blobs, work_in
from autograder.extras.lms.collecting import Collecting, CollectOptions, CollectReport
from autograder.extras.lms.identity import anything
from autograder.extras.lms.raw_submission import Findings, RawSubmission
from autograder.gradebook.seals import refuse_links
from autograder.records import RefusedError
from autograder.source.gate import FILE_BYTES, too_large
from autograder.submissions.files import NOTEBOOK_BYTES, File, suffix
from autograder.submissions.hand_in import content_digest, released_contents, work_among
from autograder.text.files import remove_drafts
from autograder.text.names import safe_name, shown, student_name

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
        released = released_blobs(course)
        look = partial(_Look, folder, course, released, sightings, limits, stopped, lock, clock)
        looks = [pool.submit(look(group).result) for group in groups]
        for done, finished in enumerate(as_completed(looks), start=1):
            fetched = finished.result()
            report.fetched += fetched.fetched
            report.failed += bool(fetched.problems)
            collecting.take(Findings(fetched.handed, fetched.problems, fetched.notes))
            on_repository(done, len(groups))
        report.notes.sort()
        report.odd.sort()
    return report


@dataclass(frozen=True)
class _Look:
    """A look at the repositories with one address."""

    folder: Path
    course: Course
    released: Mapping[str, Collection[str]]
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
                commit, came = self._head(store, seen, repository)
                fetched = fetched or came
                works = self._work(store, commit, repository)
                handed += self._submissions(store, seen, commit, repository, works)
                notes += [
                    f"{shown(repository.student)}: {work.note}" for work in works if work.note
                ]
            except NotHandedInError as reason:
                notes.append(
                    f"{shown(repository.student)} has handed in nothing at {repository.shown_url}: {reason}"
                )
            except RefusedError as problem:
                store.discard()
                problems.append(
                    f"{shown(repository.student)}: {repository.shown_url} was not collected: {problem}"
                )
        return _Fetched(handed, notes, problems, fetched)

    def _head(self, store: Store, seen: Seen, repository: Repository) -> tuple[str, bool]:
        """Return the commit that counts, and whether it was fetched just now."""
        now = self.clock()
        head = store.head(repository.branch)
        seen.note(head.ref, head.commit, now)
        if store.commit_of(head.ref) == head.commit:
            return head.commit, False
        commit = store.fetch(head)
        seen.note(head.ref, commit, self.clock())  # pushed since
        return commit, True

    def _work(self, store: Store, commit: str, repository: Repository) -> list[Work]:
        assignment = (
            self.course.assignment(repository.assignment) if repository.assignment else None
        )
        return work_in(store.tree(commit), self.course, assignment, repository.path, self.released)

    def _submissions(
        self, store: Store, seen: Seen, commit: str, repository: Repository, works: Sequence[Work]
    ) -> list[RawSubmission]:
        entries = [entry for work in works for entry in work.entries]
        sizes = store.sizes({entry.oid for entry in entries})
        small = {entry.oid for entry in entries if sizes[entry.oid] <= _limit(entry)}
        contents = store.contents({oid: sizes[oid] for oid in small})
        seen.note_work(commit, {work.assignment: self._digest(work, contents) for work in works})
        return [
            RawSubmission(
                repository.student,
                tuple(_file(entry, contents.get(entry.oid)) for entry in work.entries),
                anything(repository.student),
                assignment=work.assignment,
                submitted_at=seen.handed_in(commit, work.assignment),
                where=student_name(repository.student),
                problem=work.problem,
            )
            for work in works
        ]

    def _digest(self, work: Work, contents: Mapping[str, bytes]) -> str:
        """Return a digest that changes when a student's own files do, whatever these are called."""
        whole = (
            content_digest(contents[entry.oid]) if entry.oid in contents else entry.oid
            for entry in work.entries
        )
        released = released_contents(self.course, self.course.assignment(work.assignment))
        facts = [*sorted(work_among(whole, released)), work.problem]
        return content_digest("\n".join(facts).encode("utf-8", "surrogateescape"))


def _file(entry: TreeEntry, content: bytes | None) -> File:
    """Return a file of a commit; reading it raises RefusedError if it is too large, and so was not read."""
    name = entry.path.rpartition("/")[2]

    def load(limit: int) -> bytes:
        if content is None:
            raise RefusedError(too_large(name, _limit(entry)))
        return content[: limit + 1]

    return File(name, load)


def _limit(entry: TreeEntry) -> int:
    return NOTEBOOK_BYTES if suffix(entry.path) == ".ipynb" else FILE_BYTES
