"""The quota of automatic gradings: `limits: {per_hour: 4}` in course.yml."""

from collections import deque
from collections.abc import Iterable
from datetime import datetime, timedelta, timezone

from autograder.course.config import Course
from autograder.records import Grade

HOUR = timedelta(hours=1)


class Quotas:
    """The times of automatic gradings in a journal, as far as a quota needs them."""

    def __init__(self, course: Course, past: Iterable[Grade]) -> None:
        self._per_hour = {
            assignment.name: assignment.limits.per_hour for assignment in course.assignments
        }
        self._times: dict[tuple[str, str], deque[datetime]] = {}
        for grade in past:
            self.note(grade)

    def note(self, grade: Grade) -> None:
        """Count a grading; a refused submission is none."""
        quota = self._per_hour.get(grade.assignment)
        if quota is None or grade.status != "graded":
            return
        try:
            moment = datetime.fromisoformat(grade.graded_at)
        except ValueError:
            return
        times = self._times.setdefault(grade.key, deque(maxlen=quota))
        times.append(moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc))

    def next_turn(self, key: tuple[str, str], now: datetime) -> datetime | None:
        """Return when a student's work for an assignment may be graded again; None if it may be now."""
        return next_turn(self._times.get(key, ()), self._per_hour.get(key[1]), now)


def next_turn(past: Iterable[datetime], per_hour: int | None, now: datetime) -> datetime | None:
    """Return when the next grading is allowed after these; None if it is now, or without a quota.

    A time in the future does not count: the clock was set back since.
    """
    recent = sorted(moment for moment in past if now - HOUR < moment <= now)
    if per_hour is None or len(recent) < per_hour:
        return None
    return recent[-per_hour] + HOUR
