"""Whose turn it is: who has waited for one the longest, and strangers never in every grader for long."""

import itertools
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime

from autograder.gradebook.texts import StoredSubmission
from autograder.records import Grade

LONG_SECONDS = 10.0

Key = tuple[str, str]  # of a submission: its student and its assignment


@dataclass(eq=False)
class HandIn:
    """Work that waits, or is being graded."""

    stored: StoredSubmission
    owner: int | None = None  # the user to whom the files belong, if that tells students apart
    due: float = 0.0  # on the clock; before, it has no turn
    began: float = 0.0
    failures: int = 0
    postponed: datetime | None = None  # until when the quota lets it wait

    @property
    def student(self) -> str:
        return self.stored.submission.student

    @property
    def key(self) -> Key:
        return self.student, self.stored.submission.assignment


class Turns:
    """Chooses who is next, of those who wait in the order of their arrival.

    That is the owner of files, and of an owner's students the one, who was served least recently:
    somebody who hands in a hundred times delays nobody by more than one grade. Of each student, one
    piece of work is graded at a time.

    Strangers are the students who are not in the class list; without one, those of whom no work
    was graded within its time. While one of them takes long, none gets the last free grader, and
    after one of them took long, somebody else is next.
    """

    def __init__(self, graders: int, class_list: Collection[str], past: Iterable[Grade]) -> None:
        self._graders = graders
        self._class_list = frozenset(class_list)
        self._in_time: set[str] = set()
        self._served: dict[str, int] = {}
        self._owners: dict[int, int] = {}
        self._numbers = itertools.count(1)
        self._owes_a_turn = False
        for grade in past:
            self._served[grade.student] = next(self._numbers)
            self.ended(grade)

    def next(
        self, waiting: Iterable[HandIn], running: Collection[HandIn], now: float
    ) -> HandIn | None:
        """Return who is next; None if nobody may be."""
        busy = {hand_in.student for hand_in in running}
        ready = [
            hand_in for hand_in in waiting if hand_in.due <= now and hand_in.student not in busy
        ]
        others = [hand_in for hand_in in ready if not self._is_stranger(hand_in.student)]
        is_last = len(running) == self._graders - 1 > 0
        if is_last and any(self._is_slow(hand_in, now) for hand_in in running):
            ready = others
        if self._owes_a_turn and others:
            ready = others
        return min(ready, key=self._rank, default=None)

    def begun(self, hand_in: HandIn, now: float) -> None:
        """Note that it is this student's turn now."""
        hand_in.began = now
        number = next(self._numbers)
        self._served[hand_in.student] = number
        if hand_in.owner is not None:
            self._owners[hand_in.owner] = number
        self._owes_a_turn = self._owes_a_turn and self._is_stranger(hand_in.student)

    def stopped(self, hand_in: HandIn, now: float) -> None:
        """Note that a grader is free again."""
        self._owes_a_turn = self._owes_a_turn or self._is_slow(hand_in, now)

    def ended(self, grade: Grade) -> None:
        """Note whether a student's work was graded within its time."""
        if any(test.outcome == "timeout" for test in grade.tests):
            self._in_time.discard(grade.student)
        elif grade.status == "graded":
            self._in_time.add(grade.student)

    def _is_stranger(self, student: str) -> bool:
        return student not in (self._class_list or self._in_time)

    def _is_slow(self, hand_in: HandIn, now: float) -> bool:
        return self._is_stranger(hand_in.student) and now - hand_in.began >= LONG_SECONDS

    def _rank(self, hand_in: HandIn) -> tuple[int, int]:
        owner = 0 if hand_in.owner is None else self._owners.get(hand_in.owner, 0)
        return owner, self._served.get(hand_in.student, 0)
