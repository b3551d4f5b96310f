"""Numbers as people write them in tables and options: digits, and nothing that only Python reads."""

import re

_WHOLE = re.compile(r"[+-]?[0-9]{1,100}")
_NUMBER = re.compile(r"[+-]?[0-9]{1,100}(?:[.,][0-9]{1,100})?")


def read_whole(text: str) -> int | None:
    """Return a whole number; None for any other text, such as `1_000`, `٣` or `1e3`."""
    plain = text.strip()
    return int(plain) if _WHOLE.fullmatch(plain) else None


def read_number(text: str) -> float | None:
    """Return a number with a decimal point or comma; None for any other text, such as `nan`, `1_000` or `1e3`."""
    plain = text.strip()
    return float(plain.replace(",", ".")) if _NUMBER.fullmatch(plain) else None
