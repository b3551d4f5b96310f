"""The roster: the names and numbers of a student on course sites, and the id used in the grades."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from autograder.course.config import Course
from autograder.extras.lms import canvas_columns, moodle_columns, roster_columns
from autograder.extras.lms.damaged_ids import damage_of, damaged_id
from autograder.extras.lms.identity import (
    Described,
    Directory,
    Id,
    Match,
    anything,
    letters,
    plain,
    same_name,
)
from autograder.extras.lms.labels import Reading, can_be_one, readings
from autograder.extras.lms.sheet import Sheet, read_sheet
from autograder.gradebook.demo_marker import MARK
from autograder.gradebook.final_scores import ClassList
from autograder.records import RefusedError
from autograder.text.names import graded_name, shown

FILE_NAME = "roster.csv"  # beside course.yml
SITES = ("canvas", "moodle", "gradescope", "github")
TRUSTED_SITE = "canvas"  # its numbers are of one person in every course
# `Title (123)` is an assignment of Canvas
_NOT_TELLING = re.compile(
    r"gro?up|gruppe|\(\d+\)$|number of|assignment|repository|starter", re.IGNORECASE
)
# a column about somebody else than the student
_OTHER_PEOPLE = re.compile(
    r"tut[oe]u?r|teach|lectur|instruct|supervis|advis[eo]r|mentor|coach|prof\b|profess?or|\bt\.?a\b|assistant|"
    r"grader|marker|examiner|examinator|reviewer|parent|guardian|mother|father|emergency|partner|\bpeer|buddy|team.?mate|"
    r"betreu|dozent|lehr|eltern|enseign|encadr|docent",
    re.IGNORECASE,
)
_LOGIN = re.compile(r"user ?_?name|login|file ?name", re.IGNORECASE)
_NAME = re.compile(r"name", re.IGNORECASE)
_EITHER = re.compile(r"student|alias|participant", re.IGNORECASE)
# "midterm" and "paid" hold an "id", too
_ID = re.compile(
    r"mail|login|user|number|canvas|moodle|gradescope|github|identi|"
    r"(?:(?<![^\W_])|user|student|net|sis|u|(?-i:(?<=[a-zA-Z])(?=ID)))ids?(?![^\W\d_])",
    re.IGNORECASE,
)
_PARTICIPANT = re.compile(r"(?P<word>(?=\D*[^\W\d_])\D*(?<!\s))(?P<gap>\s*)(?P<number>\d+)")
_BETWEEN_SECTIONS = re.compile(r",? (?:and|und|et|y|e|en|och|og|i|ja) |[,;] ?")


_PARTICIPANT_WORDS = frozenset(map(plain, moodle_columns.PARTICIPANT))
_FIRST_OR_LAST = frozenset(map(plain, (*roster_columns.FIRST, *roster_columns.LAST)))
_NAMES = frozenset(map(plain, moodle_columns.NAME))
_IDS = frozenset(
    map(plain, (*moodle_columns.ID_NUMBER, *moodle_columns.EMAIL, *moodle_columns.USERNAME))
)


@dataclass(frozen=True)
class Person:
    """A student: `id` names the folder and the grades, `described` is all that identifies the student."""

    id: str
    name: str = ""
    described: Described = Described()
    groups: tuple[str, ...] = ()
    sections: tuple[str, ...] = ()

    @property
    def identity(self) -> Described:
        """All that identifies the student; a student without a name is called by the id."""
        names = tuple(filter(None, (self.name, *self.described.names)))
        return Described((Id(self.id), *self.described.ids), names or (self.id,))


class Roster:
    """The students of a class; an empty roster accepts the source's ids."""

    def __init__(self, people: Iterable[Person] = ()) -> None:
        self.people = list(people)
        self._by_student = {graded_name(person.id): person for person in self.people}
        self._directory = Directory[Person](TRUSTED_SITE)
        self._groups: dict[str, set[str]] = {}
        for person in self.people:
            self._directory.add(person, person.identity)
            for group in person.groups:
                self._groups.setdefault(letters(group), set()).add(plain(group))

    def find(self, described: Described) -> Person | None:
        """Return the person that fits the description; None if nobody or several do."""
        return self._directory.find(described)

    def reading(self, label: str) -> Reading:
        """Return what the name of a folder or a file says of a student, in the notation that fits one person.

        If nobody fits the name as a whole, and several people fit its parts, it describes all of them.
        """
        whole = Reading(anything(label))
        if self._directory.candidates(whole.described):
            return whole
        fitting: dict[Person, Reading] = {}
        for reading in readings(label):
            match = self._directory.match(reading.described)
            if (
                match
                and match.by_id
                and can_be_one(reading.described.names, _names_of(match.place))
            ):
                fitting.setdefault(match.place, reading)
        if len(fitting) == 1:
            return next(iter(fitting.values()))
        described = whole.described
        for reading in fitting.values():
            described |= reading.described
        return Reading(described)

    def match_all(self, everybody: Mapping[int, Described]) -> dict[int, Match[Person]]:
        """Return the person for each description, also by a name turned round if only one fits on either side."""
        return self._directory.match_all(everybody)

    def members(self, group: str) -> list[Person]:
        """Return the students of this group; empty if there is no such group, or two with similar names."""
        names = self._groups.get(letters(group), set()) if letters(group) else set()
        if len(names) != 1:
            return []
        return [person for person in self.people if names & set(map(plain, person.groups))]

    def class_list(self, names: Mapping[str, str]) -> ClassList:
        """Return the class by ids in the grades; `names` has the names of the students with grades."""
        people = {student: self.graded(student, name) for student, name in names.items()}
        with_grades = {person: student for student, person in people.items() if person}
        ids = {person: graded_name(person.id) for person in self.people} | with_grades
        groups = {}
        for student, name in names.items():
            members = [] if people[student] else self.members(student) or self.members(name)
            if members:
                groups[student] = tuple(ids[member] for member in members)
        in_grades = {plain(name) for name in names.values() if name}
        students: dict[str, str] = {}
        sections: dict[str, tuple[str, ...]] = {}
        originals: dict[str, str] = {}
        for person in self.people:
            if person not in with_grades and plain(person.name) in in_grades:
                continue  # somebody of this name has grades under another id
            student = ids[person]
            students[student] = person.name
            if person.sections:
                sections[student] = person.sections
            if graded_name(person.id) == student != person.id:
                originals[student] = person.id
        return ClassList(students, sections, groups, originals)

    def student_id(self, text: str, names: Mapping[str, str], originals: Mapping[str, str]) -> str:
        """Return the id in the grades that a name, a login or an address identifies; the text itself if none or several.

        `names` has the students in the grades and their names, empty if unknown; `originals` the
        ids that were changed for a folder's name.
        """
        if text in names:
            return text
        directory = Directory[str]()
        for student, name in names.items():
            person = self.graded(student, name) or Person(student)
            directory.add(
                student,
                person.identity
                | anything(student, originals.get(student, ""))
                | Described((), (name,)),
            )
        return directory.find(anything(text)) or text

    def of_section(self, section: str) -> "Roster":
        return Roster(person for person in self.people if section in person.sections)

    def why_not(self, described: Described) -> str:
        """Return the reason that nobody fits, to follow a student's name in a message."""
        texts = list(map(shown, described.texts))
        candidates = self._directory.candidates(described)
        if not candidates:
            damage = damage_of(described, (person.identity for person in self.people))
            reason = f" {damage}" if damage else ""
            return f"the roster has no student called {' or '.join(texts)}.{reason}"
        if len(candidates) > 1:
            listed = ", ".join(sorted(shown(person.name or person.id) for person in candidates))
            verb = "matches" if len(texts) == 1 else "match"
            return f"in the roster, {' and '.join(texts)} {verb} more than one student: {listed}."
        other = next(iter(candidates))
        if self._directory.find(Described(described.ids)) == other:
            return (
                f"its number is that of {shown(other.name or other.id)} in the roster, but the names differ. "
                "If this is a group, add a column `group` to the roster."
            )
        return f"in the roster, {shown(other.name or other.id)} has another number."

    def graded(self, student: str, name: str = "") -> Person | None:
        """Return the person with this id in the grades; None if the `name` differs: sites use the same numbers."""
        person = None if Id(student).is_number and name else self._by_student.get(student)
        if person:
            return person
        described = Described((Id(student),), (name,)) if name else self.reading(student).described
        return self.find(described)


def read_roster(path: Path | None) -> Roster:
    """Read a roster from a CSV file: a column of ids, and columns with other names and numbers.

    A column `group` lists the groups of students that hand in together, `section` the section.
    A student in several rows, such as one for each section, is one person. Raises RefusedError if
    there is no column of ids or two people have one id.
    """
    if path is None:
        return Roster()
    sheet = read_sheet(path)
    named = sheet.column("name", *moodle_columns.NAME) is not None or _has_first_and_last(sheet)
    column = sheet.column(
        *(("student",) if named else ()),
        *roster_columns.ID,
        *roster_columns.OTHER_ID,
        *moodle_columns.EMAIL,
    )
    if column is None:
        raise RefusedError(
            f"{sheet.name} has no column with the students' ids. Call it `student`; others may hold names, "
            "email addresses and the numbers of the course site."
        )
    names = (*roster_columns.NAME, *moodle_columns.NAME, "student")
    titles_of_names = [title for title in names if plain(title) != plain(sheet.header[column])]
    people: dict[str, Person] = {}
    for row in range(len(sheet.rows)):
        identity = sheet.cell(row, column) or sheet.first_filled(
            row, *roster_columns.OTHER_ID, *moodle_columns.EMAIL
        )
        if not identity:
            continue
        called = first_and_last(sheet, row) or sheet.first_filled(row, *titles_of_names)
        person = Person(
            identity,
            called,
            row_description(sheet, row),
            _groups(sheet, row),
            _sections(sheet, row),
        )
        people[identity] = _united(people.get(identity), person, sheet.name)
    return Roster(people.values())


def _united(before: Person | None, again: Person, table: str) -> Person:
    """Return one person for two rows; raises RefusedError if two people have one id."""
    if before is None:
        return again
    if before.name and again.name and not same_name(before.name, again.name):
        whose = f"{shown(before.name)} and {shown(again.name)}"
        damage = damaged_id(again.id)
        reason = f" {damage}" if damage else ""
        raise RefusedError(f"{table} has the id {shown(again.id)} twice, of {whose}.{reason}")
    return Person(
        before.id,
        before.name or again.name,
        before.described | again.described,
        tuple(dict.fromkeys((*before.groups, *again.groups))),
        tuple(dict.fromkeys((*before.sections, *again.sections))),
    )


def _groups(sheet: Sheet, row: int) -> tuple[str, ...]:
    several = sheet.first_filled(row, *roster_columns.GROUPS).split(",")
    return tuple(filter(str.strip, [sheet.first_filled(row, *roster_columns.GROUP), *several]))


def _sections(sheet: Sheet, row: int) -> tuple[str, ...]:
    """Return the sections in a cell, where Canvas writes several as a sentence: `A, B, and C`."""
    cell = sheet.first_filled(row, *roster_columns.SECTION)
    if not cell:
        return ()
    pieces = filter(None, map(str.strip, _BETWEEN_SECTIONS.split(cell)))
    return tuple(dict.fromkeys((cell, *pieces)))


def _names_of(person: Person) -> tuple[str, ...]:
    return tuple(filter(None, (person.name, *person.described.names)))


def row_description(sheet: Sheet, row: int) -> Described:
    """Return all that identifies the student of a row: addresses, numbers, logins and names."""
    description = Described()
    number_column = canvas_number(sheet)
    for column, title in enumerate(sheet.header):
        cell = sheet.cell(row, column)
        if cell and not _is_of_first_or_last(sheet, title):
            description |= _description(title, cell, column == number_column)
    last, first = _last_and_first(sheet, row)
    if first or last:
        description |= Described((), (f"{last}, {first}" if last and first else last or first,))
    identifier = sheet.cell(row, sheet.column(*moodle_columns.ID))
    number = participant(identifier)
    return description | Described((Id(number, "moodle"),)) if number else description


def _description(title: str, cell: str, is_canvas_number: bool) -> Described:
    """Return what a cell says of a student, as the title of its column tells."""
    if is_canvas_number:
        return Described((Id(cell, "canvas"),))
    if _NOT_TELLING.search(title) or _OTHER_PEOPLE.search(title.replace("_", " ")):
        return Described()
    if plain(title) in _NAMES or (_NAME.search(title) and not _LOGIN.search(title)):
        return Described((), (cell,))
    site = next((site for site in SITES if site in title.casefold()), "")
    if _ID.search(title) or plain(title) in _IDS:
        return Described((Id(cell, site),))
    return anything(cell) if _EITHER.search(title) else Described()


def canvas_number(sheet: Sheet) -> int | None:
    """Return the column of Canvas's numbers, if this is a gradebook of Canvas."""
    is_gradebook = sheet.column(*canvas_columns.NAME, *canvas_columns.LAST) is not None
    is_gradebook = (
        is_gradebook and sheet.column(*canvas_columns.ID, *roster_columns.SECTION) is not None
    )
    return sheet.column(*canvas_columns.NUMBER) if is_gradebook else None


def _has_first_and_last(sheet: Sheet) -> bool:
    columns = {sheet.column(*roster_columns.FIRST), sheet.column(*roster_columns.LAST)}
    return None not in columns and len(columns) > 1


def _is_of_first_or_last(sheet: Sheet, title: str) -> bool:
    """Whether this column has a part of a name only: "Nome" is a first name beside "Cognome", else a full name."""
    return plain(title) in _FIRST_OR_LAST and _has_first_and_last(sheet)


def _last_and_first(sheet: Sheet, row: int) -> tuple[str, str]:
    if not _has_first_and_last(sheet):
        return "", ""
    return sheet.cell(row, sheet.column(*roster_columns.LAST)), sheet.cell(
        row, sheet.column(*roster_columns.FIRST)
    )


def first_and_last(sheet: Sheet, row: int) -> str:
    last, first = _last_and_first(sheet, row)
    return f"{first} {last}".strip()


def participant(identifier: str) -> str:
    """Return the number in Moodle's `Participant 17` in any language; empty if there is none.

    Without a gap, as in German, the word must be one of Moodle's: `S17` is a student's id.
    """
    match = _PARTICIPANT.fullmatch(identifier)
    if match is None or not (match["gap"] or plain(match["word"]) in _PARTICIPANT_WORDS):
        return ""
    return match["number"]


def hidden_name(identifier: str) -> str:
    """Return the word for participants in an anonymous Moodle download: `Participant` of `Participant 17`."""
    return (
        identifier.removesuffix(participant(identifier)).strip() if participant(identifier) else ""
    )


def is_participant_word(text: str) -> bool:
    """Whether this is Moodle's word for a participant in one of its languages, which stands in place of a name."""
    return plain(text) in _PARTICIPANT_WORDS


def roster_of(course: Course, roster: Path | None = None, grades: Path | None = None) -> Roster:
    """Read this roster, or the one beside course.yml if there is one; a made-up class has none."""
    beside = course.root / FILE_NAME
    is_made_up = grades is not None and (grades / MARK).exists()
    return read_roster(roster or (beside if beside.is_file() and not is_made_up else None))
