"""What the name of a folder or a file says of a student, in the notations of the sites that made it.

| site | a folder or a file of student `ada42` |
|---|---|
| Sakai | `Lovelace, Ada(ada42)` |
| Ed | `Ada Lovelace (ada@school.example)` |
| ILIAS | `Lovelace_Ada_ada42_1001` |
| VPL in Moodle | `Ada Lovelace ada42` |
| Artemis | `ada42-participation-101` |
| Autolab | `ada@school.example_2_bank.py`, the second attempt |
| PrairieLearn | `ada@school.example_1_bank_1_3_bank.py`: also its numbers grow with each attempt |

Students choose names, and logins can hold every sign between them. So a name has several readings,
and only a roster tells which of them is meant.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from autograder.extras.lms.identity import Described, Id, plain, read_name
from autograder.submissions.labels import numbers_in

MOST_PIECES = 12  # of a name; one with more has no further reading
_IN_BRACKETS = re.compile(r"(?P<name>[^()]*[^()\s])\s*\((?P<id>[^()\s]+)\)")
_PARTICIPATION = re.compile(r"(?P<id>.+)-participation-[0-9]+", re.DOTALL)
_NUMBER = re.compile(r"[0-9]{1,18}")
_GERMAN = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss", "ø": "o", "ł": "l", "đ": "d"})


@dataclass(frozen=True)
class Reading:
    """Whose a name can be, and the numbers of the attempt, if it has them."""

    described: Described
    attempt: tuple[int, ...] = ()


def readings(label: str) -> Iterator[Reading]:
    """Yield the ways to read a name that hold an id; the name as a whole is none of them."""
    if match := _IN_BRACKETS.fullmatch(label):
        yield Reading(Described((Id(match["id"]),), (match["name"],)))
    if match := _PARTICIPATION.fullmatch(label):
        yield Reading(Described((Id(match["id"]),)))
    pieces = label.split("_")
    if len(pieces) <= MOST_PIECES:
        yield from _with_number_behind(pieces)
        yield from _attempts(pieces)
    words = label.split()
    if 1 < len(words) <= MOST_PIECES:
        yield Reading(Described((Id(words[-1]),), (" ".join(words[:-1]),)))


def can_be_one(names: Iterable[str], others: Iterable[str]) -> bool:
    """Whether names of two sources can be of one person: one is missing, or they share a word, also without its marks."""
    first = set[str]().union(*map(_forms, names))
    second = set[str]().union(*map(_forms, others))
    return not first or not second or not first.isdisjoint(second)


def _with_number_behind(pieces: list[str]) -> Iterator[Reading]:
    """Yield the readings of ILIAS: last name, first name, login and the site's number."""
    if len(pieces) < 4 or not _NUMBER.fullmatch(pieces[-1]):
        return
    for place in range(2, len(pieces) - 1):
        name = " ".join(pieces[:place])
        yield Reading(Described((Id("_".join(pieces[place:-1])),), (name,)))


def _attempts(pieces: list[str]) -> Iterator[Reading]:
    """Yield the readings in which a number of an attempt follows the student's id."""
    for place in range(1, len(pieces)):
        if _NUMBER.fullmatch(pieces[place]):
            described = Described((Id("_".join(pieces[:place])),))
            yield Reading(described, numbers_in(pieces[place:]))


def _forms(name: str) -> set[str]:
    """Return the words of a name, as they are and as sites write them in plain letters."""
    words = set(read_name(name).words)
    for word in list(words):
        for form in (word, plain(word).translate(_GERMAN)):
            decomposed = unicodedata.normalize("NFD", form)
            words.add("".join(c for c in decomposed if not unicodedata.combining(c)))
    return words
