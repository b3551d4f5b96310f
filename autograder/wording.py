"""Numbers and lists of names as sentences have them."""

from __future__ import annotations

from collections.abc import Sequence

LISTED = 8


def counted(number: int, thing: str) -> str:
    """`1 score` or `12 scores`."""
    return f"{number} {thing}{'' if number == 1 else 's'}"


def counted_are(number: int, thing: str) -> str:
    """`1 score is` or `12 scores are`."""
    return f"{counted(number, thing)} {'is' if number == 1 else 'are'}"


def listed(names: Sequence[str], between: str = ", ") -> str:
    """The first names, and how many more there are."""
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return between.join(names[:LISTED]) + more
