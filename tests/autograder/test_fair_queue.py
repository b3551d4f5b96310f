"""Automatic grading is fair: whose turn it is, and how often somebody may hand in."""

from __future__ import annotations

import random
from datetime import datetime, timedelta, timezone

import pytest

from autograder.runs.fair_queue import FairQueue
from autograder.runs.quota import next_turn

NOON = datetime(2026, 11, 27, 12, tzinfo=timezone.utc)


def grade_next(queue: FairQueue) -> tuple[str, str] | None:
    key = queue.take()
    if key is not None:
        queue.serve(key[0])
    return key


def test_student_who_was_served_least_recently_is_next() -> None:
    queue = FairQueue(["ada", "bob", "cleo", "ada"])
    for student in ("ada", "bob", "cleo", "dora"):
        queue.put((student, "01"))
    assert [grade_next(queue) for _ in range(5)] == [
        ("dora", "01"), ("bob", "01"), ("cleo", "01"), ("ada", "01"), None,
    ]  # fmt: skip


def test_of_one_student_the_assignment_that_waits_longest_is_next() -> None:
    queue = FairQueue()
    for assignment in ("02", "01", "03"):
        queue.put(("ada", assignment))
    queue.put(("ada", "02"))  # again: it keeps its place
    assert [grade_next(queue) for _ in range(3)] == [("ada", "02"), ("ada", "01"), ("ada", "03")]


def test_what_is_being_graded_is_not_taken_a_second_time() -> None:
    queue = FairQueue()
    queue.put(("ada", "01"))
    assert queue.take(busy={("ada", "01")}) is None
    assert queue.take() == ("ada", "01") and len(queue) == 0


@pytest.mark.parametrize("seed", range(20))
def test_a_hundred_hand_ins_of_one_student_delay_nobody_by_more_than_one_grade(seed: int) -> None:
    """Each of the others hands in at a random moment, and then sees at most one grade of the flood."""
    chance = random.Random(seed)
    queue = FairQueue(chance.choices(["flood", "ada", "bob", "cleo"], k=chance.randrange(9)))
    for number in range(100):
        queue.put(("flood", f"{number:02}"))
    waits = {student: chance.randrange(90) for student in ("ada", "bob", "cleo")}
    since: dict[str, int] = {}
    for turn in range(103):
        for student, begins in waits.items():
            if turn == begins:
                queue.put((student, "01"))
                since[student] = 0
        key = grade_next(queue)
        assert key is not None
        if key[0] == "flood":
            since = {student: seen + 1 for student, seen in since.items()}
            assert max(since.values(), default=0) <= 1
        else:
            del since[key[0]]


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
