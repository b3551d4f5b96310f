"""What programs and sites add to the name of a file: the numbers of attempts, and the words for a copy."""

import re
from collections.abc import Iterable

_ATTEMPT_OF_ADDRESS = re.compile(
    r"(?P<id>[^\s()@]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+)_(?P<rest>[0-9]+(?:_.*)?)", re.DOTALL
)
_COPY_OF = re.compile(
    r"(?:(?:copy of|kopie von|kopie van|copie de|copia de|copia di|cópia de|kopia|kopi af|kopi av) )+",
    re.IGNORECASE,
)
_COPY_BEHIND = re.compile(r"(?: - |-| )(?:copy|kopie)$| \((?:copy|kopie)\)$", re.IGNORECASE)
_NUMBER = re.compile(r"[0-9]{1,18}")


def attempt_of_address(label: str) -> tuple[str, tuple[int, ...]]:
    """Return the address before the numbers of an attempt, and these; the whole name where there is none."""
    match = _ATTEMPT_OF_ADDRESS.fullmatch(label)
    return (match["id"], numbers_in(match["rest"].split("_"))) if match else (label, ())


def without_copy(name: str) -> str:
    """Return the name of a file without what programs add to that of a copy: `bank` for `Copy of bank`."""
    return _COPY_OF.sub("", _COPY_BEHIND.sub("", name), count=1) or name


def numbers_in(pieces: Iterable[str]) -> tuple[int, ...]:
    """Return those of the pieces that are numbers."""
    return tuple(int(piece) for piece in pieces if _NUMBER.fullmatch(piece))
