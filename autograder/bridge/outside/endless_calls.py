"""Calls of a submission that never end: each name pays its time limit once."""

from collections import Counter

from autograder.bridge.shared.errors import StudentTimeoutError
from autograder.walls.outside.deadline import DeadlineExceededError

# share of the time limit for a name that timed out once, twice, more often
SHARE_LEFT = (0.1, 0.05, 0.025)
# right code needs less of its time limit (scripts/time_left.py)
SHARE_OF_RIGHT_CODE = 1 / 3


class EndlessCalls:
    """The calls of a submission that ended at their deadline, which shorten the deadlines of later ones.

    `most` is the share of its time limit that a call has at most.
    """

    def __init__(self, most: float = 1.0) -> None:
        self.times = Counter[str]()  # by the called name
        self._most = most

    def for_cured_code(self) -> "EndlessCalls":
        """Return new ones for the same submission with parts of the solution, which may call what never ended."""
        return EndlessCalls(SHARE_OF_RIGHT_CODE if self.times else 1.0)

    def share_left(self, name: str) -> float:
        """Return the share of its time limit that a call has; loading, which has no name, has all of it.

        Others, which may call what timed out, have what right code needs, and half of it for each
        further name that timed out.
        """
        if not name:
            return 1.0
        times = self.times[name]
        if times:
            return SHARE_LEFT[min(times, len(SHARE_LEFT)) - 1]
        if not self.times:
            return self._most
        return max(SHARE_LEFT[0], SHARE_OF_RIGHT_CODE * 0.5 ** (len(self.times) - 1))

    def too_late(self, name: str, late: DeadlineExceededError) -> StudentTimeoutError:
        """Count a call that was not answered in time, unless the machine may be to blame; return its error."""
        if late.limit == "test":  # many calls, each of them in time
            return StudentTimeoutError("This test took too long.", starved=True)
        again = ", as in an earlier test" if self.times[name] else ""
        if name and not late.starved:
            self.times[name] += 1
        counted = "of processor time" if late.limit == "processor" else "on the clock"
        sentence = f"Your code gave no answer within {late.seconds:g} seconds {counted}{again}."
        return StudentTimeoutError(sentence, late.starved)
