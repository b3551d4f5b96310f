"""The roster: the names and numbers of a student on course sites, and the id used in the grades."""

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from autograder.gradebook.final_scores import ClassList
from autograder.lms.sheet import Sheet, read_sheet, titles
from autograder.records import RefusedError
from autograder.text.names import safe_name, shown, student_name

Place = TypeVar("Place")
FILE_NAME = "roster.csv"  # beside course.yml
COLUMNS = titles("roster")
_TELLING = re.compile(  # columns that identify a student; `Title (123)` is an assignment of Canvas
    r"(?!.*(gro?up|\(\d+\)$)).*"
    r"(id|name|mail|login|user|student|participant|number|alias|canvas|moodle|gradescope|github)",
    re.IGNORECASE,
)
FOLDER_BYTES = 200
_PARTICIPANT = re.compile(r"[^\W\d_]+(?:/[^\W\d_]+)?\s?(\d+)")


@dataclass(frozen=True)
class Person:
    """A student: `id` names the folder and the grades; `aliases` are all texts that identify the student."""

    id: str
    name: str = ""
    aliases: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    section: str = ""


class Directory(Generic[Place]):
    """An index from identifying texts to places, which are any values; a text of several places is ambiguous.

    If names are known, a bare number is not sufficient: each site has its own numbers, and Moodle numbers groups and
    participants alike. If only numbers match, one of the names must match as well.
    """

    def __init__(self) -> None:
        self._places: dict[str, set[Place]] = {}
        self._names: dict[Place, list[str]] = {}

    def add(self, place: Place, texts: Iterable[str], names: Iterable[str] = ()) -> None:
        """Add texts for a place; `names` are the known names of its person."""
        self._names.setdefault(place, []).extend(filter(None, names))
        for text in texts:
            for form in _forms(text):
                self._places.setdefault(form, set()).add(place)

    def find(self, texts: Iterable[str], names: Sequence[str] = ()) -> Place | None:
        """Return the place that these texts identify; None if they identify none or several.

        `names` are the known names of the person to find.
        """
        fitting = [text for text in texts if len(self._named(text)) == 1]
        found = set[Place]().union(*map(self._named, fitting))
        if len(found) != 1:
            return None
        place = found.pop()
        return place if not all(map(_is_number, fitting)) or self._agree(place, names) else None

    def _agree(self, place: Place, names: Sequence[str]) -> bool:
        there, wanted = self._names[place], list(filter(None, names))
        return not there or not wanted or any(same_name(one, other) for one in wanted for other in there)

    def knows(self, texts: Iterable[str]) -> bool:
        """Whether any of these texts belongs to a place."""
        return any(self._named(text) for text in texts)

    def _named(self, text: str) -> set[Place]:
        return set[Place]().union(*(self._places.get(form, set()) for form in _forms(text)))


class Roster:
    """The students of a class; an empty roster accepts the source's ids."""

    def __init__(self, people: Iterable[Person] = ()) -> None:
        self.people = list(people)
        self._by_student = {graded_name(person.id): person for person in self.people}
        self._directory = Directory[Person]()
        self._groups: dict[str, set[str]] = {}
        for person in self.people:
            self._directory.add(person, (person.id, person.name, *person.aliases), (person.name or person.id,))
            for group in person.groups:
                self._groups.setdefault(_plain_letters(group), set()).add(_plain(group))

    def find(self, texts: Iterable[str], names: Sequence[str] = ()) -> Person | None:
        """Return the person that these texts identify. With `names`, a number alone is not sufficient."""
        return self._directory.find(texts, names)

    def members(self, group: str) -> list[Person]:
        """Return the students of this group; empty if there is no such group, or two with similar names."""
        names = self._groups.get(_plain_letters(group), set()) if _plain_letters(group) else set()
        return [p for p in self.people if len(names) == 1 and names & set(map(_plain, p.groups))]

    def class_list(self, known: Mapping[str, str]) -> ClassList:
        """Return the class by ids in the grades; `known` has the names of the students with grades."""
        people = {student: self.graded(student, name) for student, name in known.items()}
        ids = {person: student for student, person in people.items() if person}
        called = {name.casefold() for name in known.values() if name}
        listed = [person for person in self.people if person in ids or person.name.casefold() not in called]
        ids |= {person: graded_name(person.id) for person in self.people if person not in ids}
        members = {group: self.members(group) or self.members(known[group]) for group in known if not people[group]}
        return ClassList(
            names={ids[person]: person.name for person in listed},
            sections={ids[person]: person.section for person in listed if person.section},
            groups={group: tuple(ids[person] for person in persons) for group, persons in members.items() if persons},
        )

    def student_id(self, text: str, known: Mapping[str, str]) -> str:
        """Return the id in the grades that a name, a login or an address identifies; the text itself if none or several.

        `known` has the students in the grades and their names, empty if unknown.
        """
        if text in known:
            return text
        directory = Directory[str]()
        for student, name in known.items():
            person = self.graded(student, name) or Person(student)
            directory.add(student, (student, name, person.name, person.id, *person.aliases))
        return directory.find((text,)) or text

    def of_section(self, section: str) -> "Roster":
        return Roster(person for person in self.people if person.section == section)

    def why_not(self, texts: Sequence[str], names: Sequence[str] = ()) -> str:
        """Return the reason that `find` returns None, to follow a student's name in a message."""
        known = [shown(text) for text in dict.fromkeys(texts) if text]
        if not self._directory.knows(texts):
            return f"the roster has no student called {' or '.join(known)}."
        other = self.find(texts) if names else None
        if other is not None:
            return (
                f"its number is that of {shown(other.name or other.id)} in the roster, but the names differ. "
                "If this is a group, add a column `group` to the roster."
            )
        verb = "matches" if len(known) == 1 else "match"
        return f"in the roster, {' and '.join(known)} {verb} more than one student."

    def graded(self, student: str, name: str = "") -> Person | None:
        """Return the person with this id in the grades; None if the `name` differs: sites use the same numbers."""
        known = None if _is_number(student) and name else self._by_student.get(student)
        return known or self.find((student, name), (name,))


def read_roster(path: Path | None) -> Roster:
    """Read a roster from a CSV file: a column of ids, and columns with other names and numbers.

    A column `group` lists the groups of students that hand in together, `section` the section. Raises RefusedError if
    there is no column of ids or an id occurs twice.
    """
    if path is None:
        return Roster()
    sheet = read_sheet(path)
    named = sheet.column("name", "full name") is not None
    column = sheet.column(*(("student",) if named else ()), *COLUMNS["id"], *COLUMNS["other_id"])
    if column is None:
        raise RefusedError(
            f"{sheet.name} has no column with the students' ids. Call it `student`; others may hold names, "
            "email addresses and the numbers of the course site."
        )
    names = (*COLUMNS["name"], "student")
    name = sheet.column(*(title for title in names if title != sheet.header[column].casefold()))
    otherwise = sheet.column(*COLUMNS["other_id"])
    people: dict[str, Person] = {}
    for row in range(len(sheet.rows)):
        identity = sheet.cell(row, column) or sheet.cell(row, otherwise)
        if not identity:
            continue
        if identity in people:
            raise RefusedError(f"{sheet.name} has the id {identity} twice.")
        called = sheet.cell(row, name) or _first_and_last(sheet, row)
        section = sheet.cell(row, sheet.column(*COLUMNS["section"]))
        people[identity] = Person(identity, called, row_texts(sheet, row), _groups(sheet, row), section)
    return Roster(people.values())


def _groups(sheet: Sheet, row: int) -> tuple[str, ...]:
    several = sheet.cell(row, sheet.column(*COLUMNS["groups"])).split(",")
    return tuple(filter(str.strip, [sheet.cell(row, sheet.column(*COLUMNS["group"])), *several]))


def row_texts(sheet: Sheet, row: int) -> tuple[str, ...]:
    """Return all texts in a row that identify its student: names, addresses and numbers."""
    telling = (number for number, title in enumerate(sheet.header) if _TELLING.match(title))
    texts = [*(sheet.cell(row, number) for number in telling), _first_and_last(sheet, row)]
    identifier = sheet.cell(row, sheet.column("identifier", "id"))
    numbered = participant(identifier) if re.search(r"[ /]", identifier) else ""  # `S17` is a student's id
    return tuple(filter(None, [*texts, numbered]))


def row_names(sheet: Sheet, row: int) -> tuple[str, ...]:
    """Return the names in a row, with the word of Moodle's `Participant 17`; empty if that is the only one."""
    called = sheet.cell(row, sheet.column(*COLUMNS["name"])) or _first_and_last(sheet, row)
    return (called, hidden_name(sheet.cell(row, sheet.column("identifier", "id")))) if called else ()


def _first_and_last(sheet: Sheet, row: int) -> str:
    return " ".join(sheet.cell(row, sheet.column(part)) for part in COLUMNS["first_and_last"]).strip()


def participant(identifier: str) -> str:
    """Return the number in Moodle's `Participant 17` in any language; empty if there is none."""
    match = _PARTICIPANT.fullmatch(identifier)
    return match[1] if match else ""


def hidden_name(identifier: str) -> str:
    """Return the word for participants in an anonymous Moodle download: `Participant` of `Participant 17`."""
    return identifier.removesuffix(participant(identifier)).strip() if participant(identifier) else ""


def same_name(one: str, other: str) -> bool:
    """Whether two names can belong to one person: in another notation, or with additional words."""
    if set(_forms(one)) & set(_forms(other)):
        return True
    shorter, longer = sorted((_words(one), _words(other)), key=len)
    return len(shorter) > 1 and shorter <= longer


def folder_name(identity: str) -> str:
    """Return the folder of a student in `submitted/`, short enough for every file system."""
    name = safe_name(identity)
    if len(name.encode()) <= FOLDER_BYTES:
        return name
    digest = hashlib.sha256(identity.encode("utf-8", "surrogatepass")).hexdigest()
    return safe_name(f"{identity[:20]} {digest[:20]}")


def graded_name(identity: str) -> str:
    """Return the name in the grades for the folder `folder_name(identity)`."""
    return student_name(folder_name(identity))


def _forms(text: str) -> Iterator[str]:
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
    return "".join(filter(str.isalnum, _plain(text)))


def _words(text: str) -> set[str]:
    return set(re.findall(r"[^\W_]+", _plain(text)))


def _is_number(text: str) -> bool:
    """Whether the text has no letter, so it can identify different people at different sites."""
    return not any(map(str.isalpha, text))


def _letters(text: str) -> str:
    return "".join(letter for letter in text if letter.isalnum() or letter == "_")
