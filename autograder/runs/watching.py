"""Grade what is handed in as it comes, with graders that stay ready.

The journal is the only memory: whatever ends this process, the next one finds out from the journal
and the folders what is left to do.
"""

import os
import queue
import time
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Protocol

from autograder.course.digests import suite_digest
from autograder.gradebook import texts
from autograder.gradebook.journal import Journal, Reading
from autograder.gradebook.run_state import fresh_seed
from autograder.gradebook.texts import StoredSubmission
from autograder.gradebook.times import keep_times
from autograder.records import Grade, InfrastructureError, Submission
from autograder.runs.changes import Changes
from autograder.runs.fair_queue import FairQueue, Key
from autograder.runs.fence import may_pass, sentence_of
from autograder.runs.pool import GraderPool, Plan, graders, this_grader
from autograder.runs.quota import next_turn
from autograder.runs.repeated import Repeated
from autograder.submissions.settling import Settling, look_at
from autograder.text.names import shown
from autograder.version import __version__

LOOK_SECONDS = 5.0  # between two looks at everything, at least,
LOOK_SHARE = 200  # and so many times as long as a look takes
POLL_SECONDS = 0.1  # while a file is being written
NEW_FOLDER_SECONDS = 0.3  # for what was written before a new folder is watched
RETRY_SECONDS = 60.0
LONGEST_RETRY_SECONDS = 3600.0
SILENT_SECONDS = 3600.0  # before the same problem is told again

Event = Future[Grade] | frozenset[Path]


class HandIns(Protocol):
    """A folder in which students' work arrives; each of its entries can be looked at alone.

    `is_deep` says whether changes inside an entry are work, too. `trusts_stamps` says whether the
    time of hand-in stands in the work itself.
    """

    root: Path
    is_deep: bool
    trusts_stamps: bool

    def submissions(self, names: Collection[str]) -> Iterator[Submission]:
        """Yield what is complete of the work to which these entries belong; raises RefusedError."""


@dataclass(frozen=True)
class State:
    """How much is in progress."""

    waiting: int
    running: int
    postponed: int


class Listener(Protocol):
    """What becomes of hand-ins is told here; its methods raise no errors of the machine."""

    def graded(self, grade: Grade, submission: Submission) -> None:
        """A grade has been written to the journal."""

    def unchanged(self, submission: Submission) -> None:
        """The journal has had the grade of this work before."""

    def postponed(self, submission: Submission, until: datetime) -> None:
        """The quota is used up."""

    def troubled(self, problem: str) -> None:
        """Something failed that is tried again later."""

    def looked(self, state: State) -> None:
        """All that is known has been dealt with for the moment."""


def grade_anew(submission: Submission, seed: int) -> Grade:
    """Return the grade of a submission with inputs of its own; runs in a grader's process."""
    grader = this_grader()
    grader.reseed(seed)
    return grader.grade(submission)


def be_ready() -> None:
    """Load all that grading needs; runs in a grader's process."""
    this_grader()


class Watching:
    """Grades the hand-ins of a folder until it is interrupted."""

    def __init__(
        self,
        plan: Plan,
        hand_ins: HandIns,
        journal: Journal,
        listener: Listener,
        repeated: Repeated | None = None,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(timezone.utc),
    ) -> None:
        self._plan = plan
        self._hand_ins = hand_ins
        self._folder = journal.path.parent
        self._journal: Journal | None = journal
        self._listener = listener
        self._repeated = repeated
        self._clock = clock
        self._now = now
        assignments = plan.course.assignments
        self._suites = {
            assignment.name: suite_digest(plan.course, assignment) for assignment in assignments
        }
        self._quotas = {assignment.name: assignment.limits.per_hour for assignment in assignments}
        self._events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._changes = Changes(lambda paths: self._events.put(frozenset(paths)))
        self._settling = Settling(clock=clock)
        self._folders: dict[str, tuple[Path, ...]] = {}
        self._waiting: dict[Key, StoredSubmission] = {}
        self._later: dict[Key, float] = {}  # on the clock
        self._running: dict[Future[Grade], tuple[StoredSubmission, GraderPool]] = {}
        self._failures: dict[Key, int] = {}
        self._postponed: dict[Key, tuple[str, datetime]] = {}
        self._told: dict[str, float] = {}
        self._next_look = clock()
        self._next_opening = 0.0
        self._past: defaultdict[Key, deque[datetime]] = defaultdict(deque)
        self._queue = FairQueue(self._read_past(journal))
        self._pool: GraderPool

    def run(self, ready: Callable[[], None]) -> None:
        """Grade until KeyboardInterrupt, which ends it in order; `ready` is called when the graders are.

        Raises CourseError or InfrastructureError if the graders cannot start.
        """
        self.start_graders()
        try:
            for future in [self._pool.submit(be_ready) for _ in range(self._plan.jobs)]:
                future.result()
            ready()
            while True:
                self.step(self._seconds_until_due())
        except KeyboardInterrupt:
            self._finish()
        finally:
            self._changes.close()
            if self._repeated:
                self._repeated.close()
            self._pool.shutdown(wait=True, cancel_futures=True)
            if self._journal:
                self._journal.close()

    def start_graders(self) -> None:
        """Start the processes that grade; `run` does."""
        self._pool = graders(self._plan)

    def _read_past(self, journal: Journal) -> Iterator[str]:
        """Yield the student of each automatic grading, and note its time."""
        for grade in Reading(journal.path):
            if grade.graded_at:
                yield grade.student
                self._note(grade)

    def _note(self, grade: Grade) -> None:
        """Note the time of a grading for the quota; a refused submission is none."""
        quota = self._quotas.get(grade.assignment)
        if quota is None or grade.status != "graded":
            return
        try:
            moment = datetime.fromisoformat(grade.graded_at)
        except ValueError:
            return
        past = self._past[grade.key]
        past.append(moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc))
        while len(past) > quota:
            past.popleft()

    # ------------------------------------------------------------------ events

    def _seconds_until_due(self) -> float:
        due = [self._next_look, *self._later.values()]
        if self._settling.is_waiting:
            due.append(self._clock() + POLL_SECONDS)
        if self._repeated:
            due.append(self._repeated.due)
        return max(0.0, min(due) - self._clock())

    def _next_events(self, seconds: float) -> list[Event]:
        """Wait at most so long until something happens; return what has happened."""
        events: list[Event] = []
        try:
            events.append(self._events.get(timeout=seconds))
            while True:
                events.append(self._events.get_nowait())
        except queue.Empty:
            return events

    def step(self, seconds: float = 0.0) -> None:
        """Wait at most so long until something happens, and do all that it asks for or that is due."""
        changed = set[str]()
        for event in self._next_events(seconds):
            if isinstance(event, Future):
                self._ended(event)
            else:
                changed |= self._entries_of(event)
        with self._trying():
            if self._repeated:
                self._repeated.look()
        self._open_journal()
        complete = self._look(changed)
        if complete:
            self._admit(complete)
        self._wake()
        self._start()
        self._listener.looked(
            State(len(self._queue), len(self._running), len(self._waiting) - len(self._queue))
        )

    @contextmanager
    def _trying(self, entry: str = "") -> Iterator[None]:
        """Tell of an error in place of ending; where it is a fault, with the entry that met it."""
        try:
            yield
        except Exception as error:
            sentence = sentence_of(error)
            is_named = entry and not may_pass(error)
            self._tell(f"{shown(entry)}: {sentence}" if is_named else sentence)

    def _tell(self, problem: str) -> None:
        """Tell of a problem, but not all the time."""
        now = self._clock()
        if now - self._told.get(problem, -SILENT_SECONDS) >= SILENT_SECONDS:
            self._told[problem] = now
            self._listener.troubled(problem)

    # ------------------------------------------------------------------ what is handed in

    def _entries_of(self, paths: Collection[Path]) -> set[str]:
        root = self._hand_ins.root
        inside = (path.relative_to(root) for path in paths if path.is_relative_to(root))
        return {path.parts[0] for path in inside if path.parts}

    def _look(self, changed: set[str]) -> list[str]:
        """Look at the entries that changed, now and then at all; return those that are complete."""
        begun = self._clock()
        names = changed | set(self._settling.due)
        is_time_for_all = begun >= self._next_look
        if is_time_for_all:
            names |= self._everything()
        complete = []
        for name in sorted(names):
            with self._trying(name):
                if self._is_complete(name):
                    complete.append(name)
        if is_time_for_all:
            took = self._clock() - begun
            self._next_look = self._clock() + max(LOOK_SECONDS, LOOK_SHARE * took)
        if names:
            self._watch_folders()
        return complete

    def _everything(self) -> set[str]:
        """Return all entries, also those that are gone."""
        names = set(self._folders)
        with self._trying():
            names |= set(os.listdir(self._hand_ins.root))
        return names

    def _is_complete(self, name: str) -> bool:
        """Whether this entry has changed, and is complete now."""
        seen = look_at(self._hand_ins.root / name)
        self._folders[name] = seen.folders
        if not seen.stamp and not seen.folders:
            del self._folders[name]
        return self._settling.see(name, seen.stamp)

    def _watch_folders(self) -> None:
        root = self._hand_ins.root
        folders = {root} if root.is_dir() else set()
        if self._hand_ins.is_deep and folders:
            folders.update(*self._folders.values())
        if self._changes.watch(folders):
            self._next_look = min(self._next_look, self._clock() + NEW_FOLDER_SECONDS)

    def _admit(self, names: list[str]) -> None:
        """Let the work of these entries wait, unless the journal has its grade; if that fails, of each entry alone."""
        try:
            stored = self._read(names)
        except Exception:
            stored = []
            for name in names:
                stored += self._read_alone(name)
        for hand_in in stored:
            self._take_in(hand_in)

    def _read_alone(self, name: str) -> list[StoredSubmission]:
        """Store the work of one entry; one that cannot be read is tried again if that may help, else when it changes."""
        with self._trying(name):
            try:
                return self._read([name])
            except Exception as error:
                if may_pass(error):
                    self._settling.forget(name)
                raise
        return []

    def _read(self, names: list[str]) -> list[StoredSubmission]:
        """Store the work of these entries, and when it was handed in."""
        submissions = self._hand_ins.submissions(names)
        stored = texts.put(
            self._folder, (submission for submission in submissions if not _is_empty(submission))
        )
        place = self._hand_ins.root
        course = self._plan.course
        keep_times(self._folder, place, stored, self._hand_ins.trusts_stamps, course)
        return stored

    def _take_in(self, hand_in: StoredSubmission) -> None:
        key = _key(hand_in)
        running = {_key(other): other.digest for other, _ in self._running.values()}
        if self._is_known(hand_in):
            self._drop(key)
            self._listener.unchanged(hand_in.submission)
        elif running.get(key) == hand_in.digest:
            self._drop(key)
        else:
            self._waiting[key] = hand_in
            self._failures.pop(key, None)
            self._later.pop(key, None)
            self._queue.put(key)

    def _drop(self, key: Key) -> None:
        self._waiting.pop(key, None)
        self._later.pop(key, None)
        self._postponed.pop(key, None)
        self._queue.remove(key)

    def _is_known(self, hand_in: StoredSubmission) -> bool:
        """Whether the journal has the grade of this work, or its refusal for this reason."""
        if self._journal is None:
            return False
        submission = hand_in.submission
        latest = self._journal.latest.get(_key(hand_in))
        if latest and latest.status == "refused" and latest.autograder == __version__:
            same = latest.submission_sha256 == hand_in.digest
            return same and submission.problem in (None, latest.problem)
        suite = self._suites.get(submission.assignment)
        return self._journal.holds(submission, hand_in.digest, suite)

    # ------------------------------------------------------------------ grading

    def _wake(self) -> None:
        now = self._clock()
        for key in [key for key, at in self._later.items() if at <= now]:
            del self._later[key]
            self._queue.put(key)

    def _start(self) -> None:
        """Give work to each grader that is free."""
        while self._journal and len(self._running) < self._plan.jobs:
            key = self._queue.take({_key(hand_in) for hand_in, _ in self._running.values()})
            if key is None:
                return
            hand_in = self._waiting[key]
            until = next_turn(self._past[key], self._quotas.get(key[1]), self._now())
            if self._is_known(hand_in):
                self._drop(key)
                self._listener.unchanged(hand_in.submission)
            elif until is not None:
                self._postpone(hand_in, until)
            else:
                self._grade(hand_in)

    def _postpone(self, hand_in: StoredSubmission, until: datetime) -> None:
        """Let work wait until the quota has room, or a minute, after which the clock may be another."""
        key = _key(hand_in)
        left = (until - self._now()).total_seconds()
        self._later[key] = self._clock() + min(max(left, 0.0), RETRY_SECONDS)
        if self._postponed.get(key) != (hand_in.digest, until):
            self._postponed[key] = (hand_in.digest, until)
            self._listener.postponed(hand_in.submission, until)

    def _grade(self, hand_in: StoredSubmission) -> None:
        key = _key(hand_in)
        self._drop(key)
        try:
            (submission,) = texts.iterate(self._folder, [hand_in])
            future = self._pool.submit(grade_anew, submission, fresh_seed())
        except InfrastructureError as error:
            self._failed(hand_in, str(error))
        except RuntimeError:  # the pool broke
            self._replace(self._pool)
            self._failed(hand_in, "The grader died.")
        else:
            self._queue.serve(key[0])
            self._running[future] = (hand_in, self._pool)
            future.add_done_callback(self._events.put)

    def _ended(self, future: Future[Grade]) -> None:
        hand_in, pool = self._running.pop(future)
        try:
            grade = future.result()
        except BrokenProcessPool:
            self._replace(pool)
            self._failed(hand_in, "The grader died twice.")
        except Exception as error:
            self._failed(hand_in, sentence_of(error))
        else:
            self._record(grade, hand_in)

    def _record(self, grade: Grade, hand_in: StoredSubmission) -> None:
        timed = replace(grade, graded_at=self._now().isoformat(timespec="milliseconds"))
        if self._journal is None:
            self._failed(hand_in, f"{self._folder} cannot be written.")
            return
        try:
            self._journal.append(timed)
        except InfrastructureError as error:
            self._journal.close()
            self._journal = None
            self._next_opening = self._clock() + RETRY_SECONDS
            self._tell(str(error))
            self._wait_again(hand_in, RETRY_SECONDS)
            return
        self._failures.pop(_key(hand_in), None)
        self._note(timed)
        self._listener.graded(timed, hand_in.submission)

    def _open_journal(self) -> None:
        """Open the journal again after a write that failed; a line that is cut off is removed."""
        if self._journal is None and self._clock() >= self._next_opening:
            self._next_opening = self._clock() + RETRY_SECONDS
            with self._trying():
                self._journal = Journal(self._folder)

    def _failed(self, hand_in: StoredSubmission, reason: str) -> None:
        """Try a submission again after the machine has failed: at once, then ever more seldom."""
        key = _key(hand_in)
        self._failures[key] = self._failures.get(key, 0) + 1
        again = self._failures[key] - 2
        if again < 0:
            self._wait_again(hand_in, 0.0)
            return
        self._wait_again(hand_in, min(RETRY_SECONDS * 2**again, LONGEST_RETRY_SECONDS))
        self._tell(f"{key[0]}, {key[1]}: {reason}")

    def _wait_again(self, hand_in: StoredSubmission, seconds: float) -> None:
        """Let work wait once more, unless newer work of this student waits."""
        key = _key(hand_in)
        if key not in self._waiting:
            self._waiting[key] = hand_in
            self._later[key] = self._clock() + seconds

    def _replace(self, pool: GraderPool) -> None:
        """Start new graders in place of a pool that broke."""
        if pool is self._pool:
            pool.shutdown(wait=True, cancel_futures=True)
            with self._trying():
                self._pool = graders(self._plan)

    def _finish(self) -> None:
        """Let the graders finish what they have begun, and write it."""
        self._pool.shutdown(wait=True, cancel_futures=True)
        for future in list(self._running):
            if future.done() and not future.cancelled() and future.exception() is None:
                self._ended(future)
        self._listener.looked(State(0, 0, 0))


def _key(hand_in: StoredSubmission) -> Key:
    return hand_in.submission.student, hand_in.submission.assignment


def _is_empty(submission: Submission) -> bool:
    """Whether there is nothing yet but a folder."""
    place = submission.path
    if submission.files or place is None or not place.is_dir():
        return False
    return not look_at(place).stamp
