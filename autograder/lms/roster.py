"""Who is who: the names and numbers by which course sites know a student, and the one that grades carry."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from autograder.lms.sheet import Sheet, read_sheet
from autograder.submissions.collected import CollectError
from autograder.text.names import safe_name, shown, student_name

# The first of these columns is the student's id; Canvas's, Gradescope's and Moodle's own tables can be rosters.
ID_COLUMNS = (
    "sis login id",
    "sis user id",
    "id number",
    "sid",
    "student id",
    "username",
    "login",
    "id",
    "student",
    "email address",
    "email",
    "identifier",
)
NAME_COLUMNS = ("name", "full name", "student name", "student")
FIRST_AND_LAST = ("first name", "last name")
_TELLING = re.compile(  # columns that tell who somebody is; `Title (123)` is an assignment of Canvas
    r"(id|name|mail|login|user|student|participant|number|alias|canvas|moodle|gradescope|github)(?!.*\(\d+\)$)",
    re.IGNORECASE,
)
FOLDER_BYTES = 200
_PARTICIPANT = re.compile(r"[^\W\d_]+(?:/[^\W\d_]+)?\s?(\d+)")


@dataclass(frozen=True)
class Person:
    """A student: `id` names the folder and the grades; `aliases` are all the texts that mean this student."""

    id: str
    name: str = ""
    aliases: tuple[str, ...] = ()


class Directory:
    """Finds a place by the texts that belong to it; a text that belongs to several places tells nothing."""

    def __init__(self) -> None:
        self._places: dict[str, set[int]] = {}

    def add(self, place: int, texts: Iterable[str]) -> None:
        for text in texts:
            for form in _forms(text):
                self._places.setdefault(form, set()).add(place)

    def find(self, texts: Iterable[str]) -> int | None:
        """The place that these texts mean; none when they mean different ones, as one number can at two sites."""
        found: set[int] = set()
        for text in texts:
            places = self._named(text)
            if len(places) == 1:
                found |= places
        return found.pop() if len(found) == 1 else None

    def knows(self, texts: Iterable[str]) -> bool:
        """Whether any of these texts belongs to any place."""
        return any(self._named(text) for text in texts)

    def _named(self, text: str) -> set[int]:
        return set().union(*(self._places.get(form, set()) for form in _forms(text)))


class Roster:
    """The students of a class; without a file, everybody is who the source says."""

    def __init__(self, people: Iterable[Person] = ()) -> None:
        self.people = list(people)
        self._by_student = {graded_name(person.id): person for person in self.people}
        self._directory = Directory()
        for place, person in enumerate(self.people):
            self._directory.add(place, (person.id, person.name, *person.aliases))

    def find(self, texts: Iterable[str]) -> Person | None:
        place = self._directory.find(texts)
        return None if place is None else self.people[place]

    def why_not(self, texts: Sequence[str]) -> str:
        """Why `find` finds nobody, to be read behind a student's name."""
        known = [shown(text) for text in dict.fromkeys(texts) if text]
        if not self._directory.knows(texts):
            return f"nobody in the roster is called {' or '.join(known)}."
        return f"in the roster, {' and '.join(known)} {_mean(len(known))} not just one student."

    def graded(self, student: str, name: str = "") -> Person | None:
        """Whom grades call so; `name` is what is known of the student besides, so that one number at two sites
        means nobody."""
        return self._by_student.get(student) or self.find((student, name))


def read_roster(path: Path | None) -> Roster:
    """The roster in a CSV file: a column with ids, and in the others whatever names and numbers a student has.

    Raises CollectError when there is no column with ids, or one id twice.
    """
    if path is None:
        return Roster()
    sheet = read_sheet(path)
    named = sheet.column("name", "full name") is not None
    column = sheet.column(*(("student",) if named else ()), *ID_COLUMNS)
    if column is None:
        raise CollectError(
            f"{sheet.name} has no column with the students' ids. Call it `student`; others may hold names, "
            "email addresses and the numbers of the course site."
        )
    name = sheet.column(*(title for title in NAME_COLUMNS if title != sheet.header[column].casefold()))
    people: dict[str, Person] = {}
    for row in range(len(sheet.rows)):
        identity = sheet.cell(row, column)
        if not identity:
            continue
        if identity in people:
            raise CollectError(f"{sheet.name} has the id {identity} twice.")
        spelled = _first_and_last(sheet, row)
        people[identity] = Person(identity, sheet.cell(row, name) or spelled, row_texts(sheet, row))
    return Roster(people.values())


def row_texts(sheet: Sheet, row: int) -> tuple[str, ...]:
    """All that a row of a table says of who its student is: names, addresses and numbers."""
    telling = (number for number, title in enumerate(sheet.header) if _TELLING.search(title))
    texts = [*(sheet.cell(row, number) for number in telling), _first_and_last(sheet, row)]
    identifier = sheet.cell(row, sheet.column("identifier", "id"))
    numbered = participant(identifier) if re.search(r"[ /]", identifier) else ""  # `S17` is somebody's own id
    return tuple(filter(None, [*texts, numbered]))


def _first_and_last(sheet: Sheet, row: int) -> str:
    return " ".join(sheet.cell(row, sheet.column(part)) for part in FIRST_AND_LAST).strip()


def participant(identifier: str) -> str:
    """The number in Moodle's `Participant 17`, in whatever language; empty when this is none."""
    match = _PARTICIPANT.fullmatch(identifier)
    return match[1] if match else ""


def folder_name(identity: str) -> str:
    """The folder of a student in `submitted/`, short enough for every file system."""
    name = safe_name(identity)
    if len(name.encode()) <= FOLDER_BYTES:
        return name
    digest = hashlib.sha256(identity.encode("utf-8", "surrogatepass")).hexdigest()
    return safe_name(f"{identity[:20]} {digest[:20]}")


def graded_name(identity: str) -> str:
    """What grades will call the student whose folder is `folder_name(identity)`."""
    return student_name(folder_name(identity))


def _forms(text: str) -> Iterator[str]:
    """How the same text may be written elsewhere: other capitals, last name first, letters alone."""
    plain = " ".join(unicodedata.normalize("NFC", text).casefold().split())
    if not plain:
        return
    yield plain
    if "@" in plain or not any(map(str.isalpha, plain)):
        return
    last, comma, first = plain.partition(",")
    words = [*first.split(), *last.split()] if comma else plain.split()
    yield _letters("".join(words))
    yield _letters(last + first if comma else "".join([words[-1], *words[:-1]]))


def _mean(number: int) -> str:
    return "means" if number == 1 else "mean"


def _letters(text: str) -> str:
    return "".join(letter for letter in text if letter.isalnum() or letter == "_")
