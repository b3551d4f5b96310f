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
NAME_COLUMNS = ("name", "full name", "vollständiger name", "student name", "student")
FIRST_AND_LAST = ("first name", "last name")
GROUP_COLUMNS = ("group", "group name", "group_name", "gruppe")
GROUPS_COLUMNS = ("groups", "gruppen")  # several in one cell, with commas
_TELLING = re.compile(  # columns that tell who somebody is; `Title (123)` is an assignment of Canvas
    r"(?!.*(gro?up|\(\d+\)$)).*"
    r"(id|name|mail|login|user|student|participant|number|alias|canvas|moodle|gradescope|github)",
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
    groups: tuple[str, ...] = ()


class Directory:
    """Finds a place by the texts that belong to it; a text that belongs to several places tells nothing.

    A bare number is not enough where names are known: every site counts for itself, and Moodle numbers groups like
    participants. If only numbers fit, one of the names has to fit, too.
    """

    def __init__(self) -> None:
        self._places: dict[str, set[int]] = {}
        self._names: dict[int, list[str]] = {}

    def add(self, place: int, texts: Iterable[str], names: Iterable[str] = ()) -> None:
        """`names` are the ones of the person at this place, if they are known."""
        self._names.setdefault(place, []).extend(filter(None, names))
        for text in texts:
            for form in _forms(text):
                self._places.setdefault(form, set()).add(place)

    def find(self, texts: Iterable[str], names: Sequence[str] = ()) -> int | None:
        """The place that these texts mean; none when they mean different ones, as one number can at two sites.

        `names` are those of the person who is looked for, if they are known.
        """
        fitting = [text for text in texts if len(self._named(text)) == 1]
        found = set[int]().union(*map(self._named, fitting))
        if len(found) != 1:
            return None
        place = found.pop()
        return place if not all(map(_is_number, fitting)) or self._agree(place, names) else None

    def _agree(self, place: int, names: Sequence[str]) -> bool:
        """Whether one of the names is that of the place; also when one side has no name."""
        there, wanted = self._names[place], list(filter(None, names))
        return not there or not wanted or any(same_name(one, other) for one in wanted for other in there)

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
        self._groups: dict[str, set[str]] = {}
        for place, person in enumerate(self.people):
            texts = (person.id, person.name, *person.aliases)
            self._directory.add(place, texts, (person.name or person.id,))
            for group in person.groups:
                self._groups.setdefault(_plain_letters(group), set()).add(_plain(group))

    def find(self, texts: Iterable[str], names: Sequence[str] = ()) -> Person | None:
        """Whom these texts mean. With `names`, a number alone is not believed: it may be that of a group."""
        place = self._directory.find(texts, names)
        return None if place is None else self.people[place]

    def members(self, group: str) -> list[Person]:
        """The students in the group of this name; none when there is no such group, or two of nearly that name."""
        names = self._groups.get(_plain_letters(group), set()) if _plain_letters(group) else set()
        return [p for p in self.people if len(names) == 1 and names & set(map(_plain, p.groups))]

    def why_not(self, texts: Sequence[str], names: Sequence[str] = ()) -> str:
        """Why `find` finds nobody, to be read behind a student's name."""
        known = [shown(text) for text in dict.fromkeys(texts) if text]
        if not self._directory.knows(texts):
            return f"nobody in the roster is called {' or '.join(known)}."
        other = self.find(texts) if names else None
        if other is not None:
            return (
                f"its number is that of {shown(other.name or other.id)} in the roster, but the names differ. "
                "If this is a group, add a column `group` to the roster."
            )
        return f"in the roster, {' and '.join(known)} {_mean(len(known))} not just one student."

    def graded(self, student: str, name: str = "") -> Person | None:
        """Whom grades call so; `name` is what is known of the student besides, so that one number at two sites
        means nobody."""
        known = None if _is_number(student) and name else self._by_student.get(student)
        return known or self.find((student, name), (name,))


def read_roster(path: Path | None) -> Roster:
    """The roster in a CSV file: a column with ids, and in the others whatever names and numbers a student has.

    A column `group` says whose work is handed in together. Raises CollectError when there is no column with ids, or one
    id twice.
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
    otherwise = sheet.column(*ID_COLUMNS[-3:])
    people: dict[str, Person] = {}
    for row in range(len(sheet.rows)):
        identity = sheet.cell(row, column) or sheet.cell(row, otherwise)
        if not identity:
            continue
        if identity in people:
            raise CollectError(f"{sheet.name} has the id {identity} twice.")
        called = sheet.cell(row, name) or _first_and_last(sheet, row)
        people[identity] = Person(identity, called, row_texts(sheet, row), _groups(sheet, row))
    return Roster(people.values())


def _groups(sheet: Sheet, row: int) -> tuple[str, ...]:
    several = sheet.cell(row, sheet.column(*GROUPS_COLUMNS)).split(",")
    return tuple(filter(str.strip, [sheet.cell(row, sheet.column(*GROUP_COLUMNS)), *several]))


def row_texts(sheet: Sheet, row: int) -> tuple[str, ...]:
    """All that a row of a table says of who its student is: names, addresses and numbers."""
    telling = (number for number, title in enumerate(sheet.header) if _TELLING.match(title))
    texts = [*(sheet.cell(row, number) for number in telling), _first_and_last(sheet, row)]
    identifier = sheet.cell(row, sheet.column("identifier", "id"))
    numbered = participant(identifier) if re.search(r"[ /]", identifier) else ""  # `S17` is somebody's own id
    return tuple(filter(None, [*texts, numbered]))


def row_names(sheet: Sheet, row: int) -> tuple[str, ...]:
    """The names in a row, with the word of Moodle's `Participant 17`; nothing when there is none but that."""
    called = sheet.cell(row, sheet.column(*NAME_COLUMNS[:-1])) or _first_and_last(sheet, row)
    return (called, hidden_name(sheet.cell(row, sheet.column("identifier", "id")))) if called else ()


def _first_and_last(sheet: Sheet, row: int) -> str:
    return " ".join(sheet.cell(row, sheet.column(part)) for part in FIRST_AND_LAST).strip()


def participant(identifier: str) -> str:
    """The number in Moodle's `Participant 17`, in whatever language; empty when this is none."""
    match = _PARTICIPANT.fullmatch(identifier)
    return match[1] if match else ""


def hidden_name(identifier: str) -> str:
    """What everybody is called in an anonymous download of Moodle: `Participant` of `Participant 17`."""
    return identifier.removesuffix(participant(identifier)).strip() if participant(identifier) else ""


def same_name(one: str, other: str) -> bool:
    """Whether two names can be those of one person: written differently, or one has further words."""
    if set(_forms(one)) & set(_forms(other)):
        return True
    shorter, longer = sorted((_words(one), _words(other)), key=len)
    return len(shorter) > 1 and shorter <= longer


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
    plain = _plain(text)
    if not plain:
        return
    yield plain
    if "@" in plain or _is_number(plain):
        return
    last, comma, first = plain.partition(",")
    words = [*first.split(), *last.split()] if comma else plain.split()
    yield _letters("".join(words))
    yield _letters(last + first if comma else "".join([words[-1], *words[:-1]]))


def _plain(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).casefold().split())


def _plain_letters(text: str) -> str:
    """A group's name as every site writes it: Canvas leaves out spaces, Moodle underscores."""
    return "".join(filter(str.isalnum, _plain(text)))


def _words(text: str) -> set[str]:
    return set(re.findall(r"[^\W_]+", _plain(text)))


def _is_number(text: str) -> bool:
    """Whether there is no letter in it: such a text can mean different people at different sites."""
    return not any(map(str.isalpha, text))


def _mean(number: int) -> str:
    return "means" if number == 1 else "mean"


def _letters(text: str) -> str:
    return "".join(letter for letter in text if letter.isalnum() or letter == "_")
