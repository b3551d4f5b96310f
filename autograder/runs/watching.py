"""`grade` in a loop: what is handed in is graded as it comes, with graders that stay ready.

The journal is the only memory: whatever ends this process, the next one finds out from the journal
and the folders what is left to do.
"""

import os
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Protocol

from autograder.course.digests import suite_digests
from autograder.gradebook import texts
from autograder.gradebook.journal import Journal, Reading
from autograder.gradebook.run_state import fresh_seed
from autograder.gradebook.texts import StoredSubmission
from autograder.gradebook.times import keep_times
from autograder.records import Grade, InfrastructureError, Submission
from autograder.runs.arrivals import Arrivals, HandIns
from autograder.runs.fence import may_pass, sentence_of, told
from autograder.runs.pool import Plan, this_grader
from autograder.runs.quota import Quotas
from autograder.runs.run import Graders
from autograder.runs.turns import HandIn, Key, Turns
from autograder.submissions.settling import look_at
from autograder.text.names import shown
from autograder.version import __version__

RETRY_SECONDS = 60.0
LONGEST_RETRY_SECONDS = 3600.0


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


class Watching:
    """Grades the hand-ins of a folder until it is interrupted."""

    def __init__(
        self,
        plan: Plan,
        hand_ins: HandIns,
        journal: Journal,
        listener: Listener,
        class_list: Collection[str] = (),
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(timezone.utc),
    ) -> None:
        course = plan.course
        past = [replace(grade, test_seconds=()) for grade in Reading(journal.path)]
        past = [
            grade for grade in past if grade.graded_at
        ]  # what was graded without `--watch` is no turn
        self._plan = plan
        self._hand_ins = hand_ins
        self._folder = journal.path.parent
        self._journal = journal
        self._pauses_until = 0.0  # on the clock, after a write to the journal failed
        self._listener = listener
        self._clock = clock
        self._now = now
        self._suites = suite_digests(course)
        self._arrivals = Arrivals(hand_ins, self._tell, clock)
        self._waiting: dict[Key, HandIn] = {}
        self._graders: Graders[HandIn] = Graders(plan)
        self._turns = Turns(plan.jobs, class_list, past)
        self._quotas = Quotas(course, past)

    def run(self, ready: Callable[[], None]) -> None:
        """Grade until KeyboardInterrupt, which ends it in order; `ready` is called when the graders are.

        Raises CourseError or InfrastructureError if the graders cannot start.
        """
        try:
            self._graders.warm_up()
            ready()
            while True:
                self.step(self._arrivals.seconds_until_due)
        except KeyboardInterrupt:
            for hand_in, result in self._graders.close():
                if isinstance(result, Grade):
                    self._ended(hand_in, result)
            self._listener.looked(State(0, 0, 0))
        finally:
            self._arrivals.close()
            self._graders.close()

    def step(self, seconds: float = 0.0) -> None:
        """Wait at most so long until something happens, and do all that it asks for or that is due."""
        changed = self._arrivals.wait(seconds)
        for hand_in, result in self._graders.ended(0):
            self._ended(hand_in, result)
        complete = self._arrivals.complete(changed)
        if complete:
            self._admit(complete)
        self._start()
        running = len(self._graders.running)
        ready = sum(hand_in.due <= self._clock() for hand_in in self._waiting.values())
        self._listener.looked(State(ready, running, len(self._waiting) - ready))

    def _tell(self, entry: str, error: Exception) -> None:
        """Tell of an error in place of ending."""
        self._listener.troubled(told(error, shown(entry)))

    def _admit(self, names: list[str]) -> None:
        """Let the work of these entries wait, unless the journal has its grade; if that fails, of each entry alone."""
        try:
            stored = self._read(names)
        except Exception:
            stored = []
            for name in names:
                stored += self._read_alone(name)
        for submission in stored:
            self._await_turn(submission)

    def _read_alone(self, name: str) -> list[StoredSubmission]:
        """Store the work of one entry; one that cannot be read is tried again if that may help, else when it changes."""
        try:
            return self._read([name])
        except Exception as error:
            if may_pass(error):
                self._arrivals.forget(name)
            self._tell(name, error)
            return []

    def _read(self, names: list[str]) -> list[StoredSubmission]:
        """Store the work of these entries, and when it was handed in."""
        place = self._hand_ins
        submissions = (
            submission for submission in place.submissions(names) if not _is_empty(submission)
        )
        stored = texts.put(self._folder, submissions)
        keep_times(self._folder, place.root, stored, place.trusts_stamps, self._plan.course)
        return stored

    def _await_turn(self, stored: StoredSubmission) -> None:
        """Let work wait; newer work takes the place of what waits already."""
        hand_in = HandIn(stored, _owner(stored.submission.path))
        if self._is_known(stored):
            self._waiting.pop(hand_in.key, None)
            self._listener.unchanged(stored.submission)
            return
        waiting = self._waiting.get(hand_in.key)
        if waiting is None or waiting.stored.digest != stored.digest:
            self._waiting[hand_in.key] = hand_in

    def _is_known(self, stored: StoredSubmission) -> bool:
        """Whether the journal has the grade of this work, or its refusal for this reason."""
        submission = stored.submission
        latest = self._journal.latest.get((submission.student, submission.assignment))
        if latest and latest.status == "refused" and latest.autograder == __version__:
            same = latest.submission_sha256 == stored.digest
            return same and submission.problem in (None, latest.problem)
        suite = self._suites.get(submission.assignment)
        return self._journal.holds(submission, stored.digest, suite)

    # ------------------------------------------------------------------ grading

    def _start(self) -> None:
        """Give work to each grader that is free."""
        while self._clock() >= self._pauses_until:
            running = self._graders.running
            if len(running) >= self._plan.jobs:
                return
            now = self._clock()
            hand_in = self._turns.next(self._waiting.values(), running, now)
            if hand_in is None:
                return
            until = self._quotas.next_turn(hand_in.key, self._now())
            if self._is_known(hand_in.stored):
                del self._waiting[hand_in.key]
                self._listener.unchanged(hand_in.stored.submission)
            elif until is not None:
                self._postpone(hand_in, until)
            else:
                self._grade(hand_in)

    def _postpone(self, hand_in: HandIn, until: datetime) -> None:
        """Let work wait until the quota has room, or a minute, after which the clock may be another."""
        left = (until - self._now()).total_seconds()
        hand_in.due = self._clock() + min(max(left, 0.0), RETRY_SECONDS)
        if hand_in.postponed != until:
            hand_in.postponed = until
            self._listener.postponed(hand_in.stored.submission, until)

    def _grade(self, hand_in: HandIn) -> None:
        del self._waiting[hand_in.key]
        self._turns.begun(hand_in, self._clock())
        try:
            submission = texts.read(self._folder, hand_in.stored)
            future = self._graders.begin(hand_in, grade_anew, submission, fresh_seed())
        except Exception as error:
            self._ended(hand_in, error)
        else:
            future.add_done_callback(lambda _: self._arrivals.wake())

    def _ended(self, hand_in: HandIn, result: Grade | Exception) -> None:
        self._turns.stopped(hand_in, self._clock())
        if isinstance(result, Exception):
            self._failed(hand_in, sentence_of(result))
            return
        grade = replace(result, graded_at=self._now().isoformat(timespec="milliseconds"))
        try:
            self._journal.append(grade)
        except InfrastructureError as error:
            self._pauses_until = self._clock() + RETRY_SECONDS
            self._listener.troubled(str(error))
            self._wait_again(hand_in, RETRY_SECONDS)
            return
        self._turns.ended(grade)
        self._quotas.note(grade)
        self._listener.graded(grade, hand_in.stored.submission)

    def _failed(self, hand_in: HandIn, reason: str) -> None:
        """Try a submission again after the machine has failed: at once, then ever more seldom."""
        hand_in.failures += 1
        again = hand_in.failures - 2
        if again < 0:
            self._wait_again(hand_in, 0.0)
            return
        self._wait_again(hand_in, min(RETRY_SECONDS * 2**again, LONGEST_RETRY_SECONDS))
        student, assignment = hand_in.key
        self._listener.troubled(f"{student}, {assignment}: {reason}")

    def _wait_again(self, hand_in: HandIn, seconds: float) -> None:
        """Let work wait once more, unless newer work of this student waits."""
        hand_in.due = self._clock() + seconds
        self._waiting.setdefault(hand_in.key, hand_in)


def _is_empty(submission: Submission) -> bool:
    """Whether there is nothing yet but a folder."""
    place = submission.path
    if submission.files or place is None or not place.is_dir():
        return False
    return not look_at(place).stamp


def _owner(place: Path | None) -> int | None:
    """Return the user to whom work belongs; None for those who copy the work of all: root, and the user who grades."""
    try:
        user = place.lstat().st_uid if place else 0
    except OSError:
        return None
    return None if user in (0, os.geteuid()) else user
