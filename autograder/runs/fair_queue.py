"""Who is graded next: the student who has waited for a turn the longest."""

import itertools
from collections.abc import Collection, Iterable

Key = tuple[str, str]  # of a submission: its student and its assignment


class FairQueue:
    """Submissions that wait, at most one of each student and assignment.

    The student who was served least recently is next, and of this student's assignments the one
    that waits longest: somebody who hands in a hundred times delays nobody by more than one grade.
    `served` are the students of earlier gradings, in their order.
    """

    def __init__(self, served: Iterable[str] = ()) -> None:
        self._turns: dict[str, int] = {}
        self._arrivals: dict[Key, int] = {}
        self._counter = itertools.count(1)
        for student in served:
            self.serve(student)

    def __len__(self) -> int:
        return len(self._arrivals)

    def __contains__(self, key: Key) -> bool:
        return key in self._arrivals

    def put(self, key: Key) -> None:
        """Let a submission wait; one that waits already keeps its place."""
        self._arrivals.setdefault(key, next(self._counter))

    def remove(self, key: Key) -> None:
        self._arrivals.pop(key, None)

    def take(self, busy: Collection[Key] = ()) -> Key | None:
        """Remove and return the next submission, none of those that are `busy`; None if there is none."""
        free = [key for key in self._arrivals if key not in busy]
        if not free:
            return None
        chosen = min(free, key=self._rank)
        self.remove(chosen)
        return chosen

    def serve(self, student: str) -> None:
        """Note that it is the turn of this student now."""
        self._turns[student] = next(self._counter)

    def _rank(self, key: Key) -> tuple[int, int]:
        return self._turns.get(key[0], 0), self._arrivals[key]
