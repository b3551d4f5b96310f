"""Dates and times as people and programs write them: one reader for all of them, with one meaning in every Python."""

import re
from datetime import date, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

# before and after them, the same moment can be in no year of another zone
FIRST_YEAR = 1970
LAST_YEAR = 8999
_DAY = r"(?P<day>[0-9]{4}-[0-9]{2}-[0-9]{2})"
_CLOCK = r"(?P<clock>[0-9]{2}:[0-9]{2}(?::[0-9]{2})?)(?:\.(?P<fraction>[0-9]{1,9}))?"
_WRITTEN = re.compile(rf"{_DAY}(?:[T ]{_CLOCK}(?: ?(?P<zone>Z|UTC|[+-][0-9]{{2}}:?[0-9]{{2}}))?)?")
_NAMED = re.compile(rf"(?P<local>{_DAY}[T ]{_CLOCK}) (?P<zone>[A-Za-z][A-Za-z0-9_+/-]*)")
# zones that have the names of their two times; others are known by the zone of the course
_ZONES_OF_NAMES = ("CET", "EET", "WET", "EST5EDT", "CST6CDT", "MST7MDT", "PST8PDT")
_MONTHS = (1, 7)  # one with winter time and one with summer time


def read_date_or_time(text: str) -> date | datetime:
    """Read `2026-11-27`, a date, or `2026-11-27 23:59`, a time; raises ValueError for any other text.

    A time can have seconds with a fraction, and behind it `Z`, `UTC` or an offset such as `+01:00`,
    without which it is naive.
    """
    match = _WRITTEN.fullmatch(" ".join(text.split()))
    if match is None:
        raise ValueError(f"no date or time: {text}")
    day = date.fromisoformat(match["day"])
    if not FIRST_YEAR <= day.year <= LAST_YEAR:
        raise ValueError(f"no year that can be meant: {text}")
    if match["clock"] is None:
        return day
    if match["fraction"] and len(match["clock"]) == len("23:59"):
        raise ValueError(f"a fraction of a minute: {text}")
    hour, minute, second = map(int, f"{match['clock']}:00".split(":")[:3])
    fraction = int((match["fraction"] or "0")[:6].ljust(6, "0"))
    return datetime(
        day.year, day.month, day.day, hour, minute, second, fraction, _offset(match["zone"])
    )


def read_time(text: str) -> datetime:
    """As `read_date_or_time`; a date alone is the beginning of that day."""
    moment = read_date_or_time(text)
    return moment if isinstance(moment, datetime) else datetime.combine(moment, datetime.min.time())


def read_named_time(text: str, zone: tzinfo = timezone.utc) -> datetime:
    """Read a time as nbgrader writes it, also with the name of a zone behind it, such as `CEST` or `Europe/Berlin`.

    A short name is that of `zone` if it has such a time. Without a name or an offset, the time is
    universal. Raises ValueError if it is no time or the zone is unknown.
    """
    plain = " ".join(text.split())
    match = _NAMED.fullmatch(plain)
    if match is None or match["zone"] in ("Z", "UTC"):
        moment = read_time(plain)
        return moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)
    local = read_time(match["local"])
    name = match["zone"]
    candidates = [zone, *map(ZoneInfo, _ZONES_OF_NAMES)]
    offsets = (_offset_called(name, local, candidate) for candidate in candidates)
    offset = next((offset for offset in offsets if offset is not None), None)
    if offset is not None:
        return local.replace(tzinfo=timezone(offset))
    try:
        return local.replace(tzinfo=ZoneInfo(name))
    except (KeyError, OSError) as error:  # a zone that is unknown, and the name of a group of zones
        raise ValueError(f"no time zone: {name}") from error


def instant(moment: datetime, zone: tzinfo = timezone.utc) -> datetime:
    """Return a moment in universal time, in which two moments can be compared; one without an offset is of `zone`."""
    whole = moment if moment.tzinfo else moment.replace(tzinfo=zone)
    return whole.astimezone(timezone.utc)


def _offset(written: str | None) -> tzinfo | None:
    if written is None:
        return None
    if written in ("Z", "UTC"):
        return timezone.utc
    hours = int(written[1:3])
    minutes = int(written[-2:])
    if hours > 14 or minutes > 59:
        raise ValueError(f"no offset: {written}")
    size = timedelta(hours=hours, minutes=minutes)
    return timezone(-size if written[0] == "-" else size)


def _offset_called(name: str, local: datetime, zone: tzinfo) -> timedelta | None:
    """Return the offset of a zone's time with this name; None if the zone has none in that year."""
    at_the_time = [local.replace(tzinfo=zone, fold=fold) for fold in (0, 1)]
    of_the_year = [datetime(local.year, month, 1, tzinfo=zone) for month in _MONTHS]
    for moment in (*at_the_time, *of_the_year):
        if moment.tzname() == name:
            return moment.utcoffset()
    return None
