"""Ids that a spreadsheet has changed while it opened and saved a table, and why nobody can be found by them."""

import itertools
import re
from collections.abc import Iterable

from autograder.extras.lms.identity import Described
from autograder.text.names import shown

_POWER = re.compile(r"[0-9](?:[.,][0-9]+)?E\+[0-9]+", re.IGNORECASE)
_DECIMAL = re.compile(r"[0-9]+[.,]0+")
_MONTHS = "jan|feb|mar|mär|apr|may|mai|jun|jul|aug|sep|oct|okt|nov|dec|dez"
_DAY = re.compile(
    rf"[0-9]{{1,2}}[-. ]+(?:{_MONTHS})|(?:{_MONTHS})[-. ]+[0-9]{{2,4}}", re.IGNORECASE
)
_ERROR = re.compile(r"#[A-Z/0]+[!?]?")
_LONG = re.compile(r"[0-9]{13,}000")  # a number has fifteen digits there
_REPAIR = "Export the table again, and open it with this column as text."


def damaged_id(text: str) -> str:
    """Return the sentence about an id that looks as a spreadsheet leaves it; empty if it does not."""
    if _POWER.fullmatch(text):
        what = "is a long number that a spreadsheet has shortened"
    elif _LONG.fullmatch(text):
        what = "is a long number of which a spreadsheet has lost the last digits"
    elif _DAY.fullmatch(text):
        what = "is an id that a spreadsheet has taken for a date"
    elif _ERROR.fullmatch(text):
        what = "is what a spreadsheet writes in place of a formula that it cannot compute"
    elif _DECIMAL.fullmatch(text):
        what = "is an id that a spreadsheet has taken for a decimal number"
    else:
        return ""
    return f"{shown(text)} {what}. {_REPAIR}"


def damage_of(wanted: Described, rows: Iterable[Described]) -> str:
    """Return the sentence about an id in a table's rows that can be a wanted one, damaged; empty without one."""
    for row in rows:
        for id, text in itertools.product(wanted.ids, row.ids):
            if sentence := _damage(id.text, text.text):
                return sentence
    return ""


def _damage(id: str, text: str) -> str:
    if id != text and id.isdecimal() and text.isdecimal() and id.lstrip("0") == text.lstrip("0"):
        shorter = min(id, text, key=len)
        return f"{shown(shorter)} can be the id from which a spreadsheet has taken the zeros in front. {_REPAIR}"
    return damaged_id(text) if _can_be(id, text) else ""


def _can_be(id: str, text: str) -> bool:
    """Whether a damaged text can come from this id."""
    if not damaged_id(text):
        return False
    digits = re.sub("[^0-9]", "", text.upper().partition("E+")[0]).rstrip("0")
    if _POWER.fullmatch(text):
        length = int(text.upper().partition("E+")[2]) + 1
        return id.isdecimal() and len(id) == length and id[: len(digits) - 1] == digits[:-1]
    if _LONG.fullmatch(text) or _DECIMAL.fullmatch(text):
        return id.isdecimal() and id.startswith(digits[:15]) and len(id) <= len(text)
    return False
