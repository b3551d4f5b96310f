"""Automatic grading is fair: whose turn it is, and how often somebody may hand in."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable
from datetime import datetime, timedelta, timezone

import pytest

from autograder.gradebook.texts import StoredSubmission
from autograder.records import Grade, Submission, TestResult
from autograder.runs.quota import next_turn
from autograder.runs.turns import LONG_SECONDS, HandIn, Turns

NOON = datetime(2026, 11, 27, 12, tzinfo=timezone.utc)
LATE = TestResult("test_add", "add", "It adds.", "timeout", 0, 1)


def hand_in(student: str, assignment: str = "01", owner: int | None = None) -> HandIn:
    return HandIn(StoredSubmission(Submission(student, assignment), "digest"), owner)


def graded(student: str, *tests: TestResult) -> Grade:
    return Grade(student, "01", "graded", 1.0, 1.0, tests)


class Class:
    """Work that waits for a number of graders, each of which takes its time; `order` is that of the turns."""

    def __init__(
        self, graders: int = 1, class_list: Collection[str] = (), past: Iterable[Grade] = ()
    ) -> None:
        self.now = 0.0
        self.waiting: list[HandIn] = []
        self.order: list[str] = []
        self._graders = graders
        self._turns = Turns(graders, class_list, past)
        self._running: dict[HandIn, float] = {}

    def step(self, seconds: float = 0.0) -> None:
        """Begin what may begin, and end what ends first; work of an `endless` student takes a minute."""
        while len(self._running) < self._graders:
            chosen = self._turns.next(self.waiting, self._running, self.now)
            if chosen is None:
                break
            self.waiting.remove(chosen)
            self._turns.begun(chosen, self.now)
            self.order.append(chosen.student)
            is_endless = chosen.student.startswith("endless")
            self._running[chosen] = self.now + (60.0 if is_endless else 0.1)
        first = min(self._running, key=lambda each: self._running[each], default=None)
        if first is not None:
            self.now = self._running.pop(first)
            self._turns.stopped(first, self.now)
            is_endless = first.student.startswith("endless")
            self._turns.ended(graded(first.student, *([LATE] if is_endless else [])))

    def turns(self) -> list[str]:
        """Let all work have its turn; return whose turns these were."""
        while self.waiting or self._running:
            self.step()
        return self.order


def test_student_who_was_served_least_recently_is_next() -> None:
    room = Class(past=map(graded, ("ada", "bob", "cleo", "ada")))
    room.waiting = [hand_in(student) for student in ("ada", "bob", "cleo", "dora")]
    assert room.turns() == ["dora", "bob", "cleo", "ada"]


def test_of_one_student_the_assignment_that_waits_longest_is_next() -> None:
    turns = Turns(2, (), ())
    waiting = [hand_in("ada", assignment) for assignment in ("02", "01")]
    first = turns.next(waiting, (), 0.0)
    assert first is waiting[0]
    assert turns.next(waiting[1:], [first], 0.0) is None, "one at a time"


def test_work_that_is_not_due_has_no_turn() -> None:
    later = hand_in("ada")
    later.due = 5.0
    turns = Turns(1, (), ())
    assert turns.next([later], (), 4.0) is None
    assert turns.next([later], (), 5.0) is later


@pytest.mark.parametrize("seed", range(20))
def test_a_hundred_hand_ins_of_one_owner_delay_nobody_by_more_than_one_grade(seed: int) -> None:
    """Each of the others hands in at a random moment, and then sees at most one grade of the flood.

    The flood has one name, or as many as there are hand-ins.
    """
    chance = random.Random(seed)
    past = chance.choices(["flood", "ada", "bob", "cleo"], k=chance.randrange(9))
    room = Class(past=map(graded, past))
    names = ["flood"] * 100 if seed % 2 else [f"flood{number}" for number in range(100)]
    room.waiting = [hand_in(name, f"{n:02}", owner=1000) for n, name in enumerate(names)]
    begins = {student: chance.randrange(90) for student in ("ada", "bob", "cleo")}
    for turn in range(103):
        for owner, student in enumerate(begins):
            if turn == begins[student]:
                room.waiting.append(hand_in(student, owner=owner))
        room.step()
    for student, turn in begins.items():
        between = room.order[turn : room.order.index(student)]
        assert sum(name.startswith("flood") for name in between) <= 1


HONEST = ("ada", "bob", "cleo")


@pytest.mark.parametrize("is_listed", [True, False])
@pytest.mark.parametrize("graders", [1, 2, 4])
def test_new_names_with_endless_work_leave_turns_to_the_others(
    graders: int, is_listed: bool
) -> None:
    """The others are in the class list, or, without one, were graded before; the new names came first."""
    room = Class(graders, HONEST) if is_listed else Class(graders, past=map(graded, HONEST))
    room.waiting = [hand_in(f"endless{number}") for number in range(20)]
    room.step()  # all graders have begun, and one of them has ended
    begun = len(room.order)
    room.waiting += [hand_in(student) for student in HONEST]
    after = room.turns()[begun:]
    last = max(map(after.index, HONEST))
    assert last + 1 - len(HONEST) <= max(graders - 1, len(HONEST) - 1)
    assert len(after) == 20 + 3 - graders


def test_new_names_use_all_graders_while_they_take_no_time() -> None:
    turns = Turns(2, ["ada"], ())
    first, second = hand_in("new"), hand_in("newer")
    turns.begun(first, 0.0)
    assert turns.next([second], [first], LONG_SECONDS - 0.1) is second
    assert turns.next([second], [first], LONG_SECONDS) is None
    assert turns.next([second, hand_in("ada")], [first], LONG_SECONDS).student == "ada"


def test_somebody_whose_work_took_too_long_is_no_stranger_after_work_in_time() -> None:
    turns = Turns(2, (), [graded("ada"), graded("bob", LATE)])
    slow = hand_in("new")
    turns.begun(slow, 0.0)
    bob = hand_in("bob")
    assert turns.next([bob], [slow], 60.0) is None
    turns.ended(graded("bob"))
    assert turns.next([bob], [slow], 60.0) is bob


@pytest.mark.parametrize(
    ("minutes_ago", "per_hour", "expected"),
    [
        ([], 1, None),
        ([59], None, None),
        ([59, 30, 10], 4, None),
        ([59, 30, 10], 3, 1),
        ([59, 30, 10], 2, 30),
        ([60, 30], 2, None),
        ([30, -90], 2, None),  # the clock was set back
    ],
)
def test_quota(minutes_ago: list[int], per_hour: int | None, expected: int | None) -> None:
    past = [NOON - timedelta(minutes=minutes) for minutes in minutes_ago]
    allowed = next_turn(past, per_hour, NOON)
    assert allowed == (None if expected is None else NOON + timedelta(minutes=expected))
