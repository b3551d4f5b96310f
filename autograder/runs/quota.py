"""The quota of automatic gradings: `limits: {per_hour: 4}` in course.yml."""

from collections.abc import Iterable
from datetime import datetime, timedelta

HOUR = timedelta(hours=1)


def next_turn(past: Iterable[datetime], per_hour: int | None, now: datetime) -> datetime | None:
    """Return when the next grading is allowed after these; None if it is now, or without a quota.

    A time in the future does not count: the clock was set back since.
    """
    recent = sorted(moment for moment in past if now - HOUR < moment <= now)
    if per_hour is None or len(recent) < per_hour:
        return None
    return recent[-per_hour] + HOUR
