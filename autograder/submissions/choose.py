"""Choose the files of one assignment from a student's tree of files and folders: the one rule of every way in.

An unchanged stub never counts in place of work, whatever the work's name, letter case and
folder. Where the site says which attempt counts, that one does. Two different answers are
a refusal that names both, and what was passed over is named in a note.
"""

import itertools
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from enum import IntEnum
from pathlib import Path

from autograder.course.config import Assignment, Course
from autograder.records import RefusedError, SourceFile, Submission
from autograder.source.stub import UNKNOWN, ReleasedStub, is_same_work, released_stub
from autograder.submissions import files
from autograder.submissions.entries import (
    DEPTH,
    LISTED,
    is_archive,
    is_environment,
    is_given,
    is_source,
    is_work,
    label,
    names,
    opened,
)
from autograder.submissions.files import (
    COUNTED,
    SOURCES,
    Entry,
    File,
    Folder,
    Odd,
    plain_stem,
    stem,
    suffix,
)
from autograder.text.names import shown
from autograder.text.wording import joined

COMPARED = 10  # maximum number of files of one kind to compare
READ = 50  # maximum number of files with other names that are read in search of an answer
ENTRIES = 20_000  # maximum number of files and folders to look at

NOTE = "NOT_COLLECTED.txt"  # in it, `collect` notes why files that it kept cannot be used
NOTE_BYTES = 2_000

ANOTHER = "There is another answer in"  # so a note begins

SETTINGS = "user_assignment_settings.json"  # in it, Submitty says which attempt counts
SETTINGS_BYTES = 1 << 20
MOST_ATTEMPTS = 1000  # a folder with a larger number is rather a student's

_ATTEMPT = re.compile(
    r"(?:attempt|version|submission|upload|versuch|abgabe|try|v)?[ ._#-]*(\d{1,9})"
)
_MOMENT = re.compile(
    r"\d{4}[-_.]?\d\d[-_.]?\d\d(?:[ t_-]{1,3}\d\d[-_.:h]?\d\d(?:[-_.:m]?\d\d)?)?[sz]?"
)
_NUMBERED = re.compile(r"\d{2,}_[A-Za-z]\w*")  # the pattern of an assignment's folder


class NothingThereError(RefusedError):
    """No file can be meant for the assignment."""


@dataclass(frozen=True)
class Wanted:
    """The assignment whose files are chosen, and its stub as students received it.

    `others` are the names of other assignments and of their modules. Their files are earlier work
    beside this one.
    """

    name: str
    stem: str
    stub: ReleasedStub = UNKNOWN
    others: frozenset[str] = frozenset()

    @property
    def expected(self) -> str:
        return " or ".join(f"{self.stem}{kind}" for kind in SOURCES)

    def is_called(self, name: str) -> bool:
        """Whether a file's name is the module's or the assignment's, in any case, with or without a number."""
        return _is_spelt(name, (self.stem, self.name))

    def is_of_another(self, name: str) -> bool:
        """Whether a file has the name of another assignment's module."""
        return bool(self.stub.names) and _is_spelt(name, self.others)


def wanted_of(course: Course, name: str) -> Wanted:
    """Return the assignment with that name and its released stub; raises CourseError if there is none."""
    assignment = course.assignment(name)
    others = {other.name for other in course.assignments}
    others |= {other.stem for other in course.assignments}
    others -= {assignment.name, assignment.stem}
    stub = released_stub(course, assignment)
    return Wanted(name, assignment.stem, stub, frozenset(others))


def assignment_called(name: str, course: Course) -> Assignment | None:
    """Return the assignment with this name, or the only one whose module has it; a number suffix is ignored."""
    named = course.find(name)
    if named:
        return named
    of_module = [a for a in course.assignments if a.stem == name]
    if len(of_module) == 1:
        return of_module[0]
    without_number = COUNTED.sub("", name)
    return None if without_number == name else assignment_called(without_number, course)


def assignments_in(tree: "Tree", course: Course) -> list[str]:
    """Return the assignments for which a student's tree has a folder, an archive or a file of that name.

    Within the folder of one assignment, a file of another is earlier work and stands for nothing.
    """
    claimed = {assignment_called(label(entry), course) for entry in tree.entries if is_work(entry)}
    for leaf in tree.leaves:
        if is_work(leaf.entry) and not is_given(leaf.entry):
            owners = [assignment_called(folder, course) for folder in leaf.folders]
            owner = next(filter(None, reversed(owners)), None)
            claimed.add(owner or _assignment_spelt(label(leaf.entry), course))
    return sorted(assignment.name for assignment in claimed if assignment)


def _assignment_spelt(name: str, course: Course) -> Assignment | None:
    """Return the assignment that is called so, also in other letters."""
    exact = assignment_called(name, course)
    if exact:
        return exact
    spelt = [a for a in course.assignments if _is_spelt(name, (a.stem, a.name))]
    return spelt[0] if len(spelt) == 1 else None


@dataclass(frozen=True)
class Chosen:
    """The files that count, their `paths` in the tree, and notes about the choice for the instructor.

    `has_work` says that one of them holds something of the student's own, `has_answer` that it
    defines a name that the stub asks for.
    """

    files: tuple[SourceFile, ...]
    paths: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    has_work: bool = False
    has_answer: bool = False


def choose(tree: "Tree", wanted: Wanted) -> Chosen:
    """Return the files of an assignment in a student's tree, of which files are read only where it matters.

    Raises RefusedError if there is none, if different ones could be meant, or if the one that is
    meant cannot be read.
    """
    hand_in = _HandIn(tree, wanted)
    with ExitStack() as archives:
        chosen = hand_in.choice()
        closed = hand_in.archives_to_open(chosen)
        if closed:
            hand_in.look_into(closed, archives)
            chosen = hand_in.choice()
        if chosen is None:
            raise hand_in.why_nothing()
        return chosen


def submission_of(student: str, wanted: Wanted, entries: Sequence[Entry]) -> Submission:
    """Return what `choose` finds in a student's folder, or among the student's files, as a submission."""
    path = entries[0].path
    try:
        tree = Tree.of(entries)
    except RefusedError as refusal:
        return Submission(student, wanted.name, problem=str(refusal), path=path)
    return submission_in(student, wanted, tree, path)


def submission_in(student: str, wanted: Wanted, tree: "Tree", path: Path | None) -> Submission:
    """Return what `choose` finds in a tree as a submission, which has a problem if it cannot be used."""
    try:
        chosen = choose(tree, wanted)
    except RefusedError as refusal:
        return Submission(student, wanted.name, problem=str(refusal), path=path)
    return Submission(student, wanted.name, chosen.files, path=path, notes=chosen.notes)


@dataclass(frozen=True)
class Leaf:
    """A file in a tree, and how many later attempts there are of it."""

    path: str
    entry: File | Odd
    age: int = 0

    @property
    def folders(self) -> list[str]:
        return self.path.split("/")[:-1]


@dataclass(frozen=True)
class Tree:
    """All files that a student handed in, listed once and not read; `problems` are folders that cannot be.

    If they `are_named`, the `entries` are the student's files for the assignment, whatever their
    names. `name` is that of their folder.
    """

    entries: Sequence[Entry]
    leaves: Sequence[Leaf]
    name: str = ""
    are_named: bool = False
    problems: Sequence[str] = ()

    @classmethod
    def of(cls, entries: Sequence[Entry]) -> "Tree":
        """List a student's folder, or files that are the student's; raises RefusedError if that is impossible."""
        if len(entries) == 1 and not isinstance(entries[0], File | Odd):
            entries[0].inspect()
            return cls.below(entries[0])
        return cls(entries, list(_leaves(entries, [])), are_named=True)

    @classmethod
    def below(cls, folder: Folder) -> "Tree":
        """List a folder, however large it is; raises RefusedError."""
        problems: list[str] = []
        entries = folder.entries()
        leaves = list(_leaves(entries, problems))
        return cls(entries, leaves, folder.name, problems=problems)

    @property
    def without_archives(self) -> "Tree":
        """The same without archives, where they are opened later or are not the student's work."""
        return replace(self, leaves=[leaf for leaf in self.leaves if not is_archive(leaf.entry)])


def _leaves(entries: Sequence[Entry], problems: list[str], way: str = "") -> Iterator[Leaf]:
    """Yield the files below these entries, the nearest first; `problems` receives what cannot be read."""
    waiting: list[tuple[str, int, int, Sequence[Entry]]] = [(way, 0, 0, entries)]
    looked_at = 0
    for way, depth, age, here in waiting:
        later = _later_attempts(here)
        for entry in here:
            looked_at += 1
            if looked_at > ENTRIES:
                raise RefusedError(f"There are more than {ENTRIES} files. {files.ONLY_THE_FILE}")
            if isinstance(entry, File | Odd):
                yield Leaf(f"{way}{entry.name}", entry, age)
            elif is_work(entry):
                if depth > DEPTH:
                    problems.append(f"{shown(entry.name)} lies more than {DEPTH} folders deep.")
                    continue
                try:
                    inside = entry.entries()
                except RefusedError as refusal:
                    problems.append(str(refusal))
                    continue
                if not is_environment(inside):
                    place = (f"{way}{entry.name}/", depth + 1, age + later.get(entry.name, 0))
                    waiting.append((*place, inside))


def _later_attempts(entries: Sequence[Entry]) -> dict[str, int]:
    """Return how many attempts there are after each folder that is one of several.

    The site's own word counts, or else the numbers or the times in the names.
    """
    folders = [entry.name for entry in entries if not isinstance(entry, File | Odd)]
    moments = {name: _digits(name) for name in folders if _MOMENT.fullmatch(name.lower())}
    matches = {name: _ATTEMPT.fullmatch(name.lower()) for name in folders if name not in moments}
    all_numbers = {name: int(match[1]) for name, match in matches.items() if match}
    numbers = {name: number for name, number in all_numbers.items() if number < MOST_ATTEMPTS}
    active = _active_attempt(entries)
    if active == 0:
        raise RefusedError(f"The student took the hand-in back: in {SETTINGS}, no attempt counts.")
    latest_first = sorted(numbers, key=lambda name: (numbers[name] != active, -numbers[name]))
    if not numbers:
        latest_first = sorted(moments, key=lambda name: moments[name], reverse=True)
    return {name: later for later, name in enumerate(latest_first)}


def has_attempts(entries: Sequence[Entry]) -> bool:
    """Whether there are several folders here that are named like attempts of one student."""
    return len(_later_attempts(entries)) > 1


def _digits(name: str) -> str:
    return "".join(letter for letter in name if letter.isdecimal())


def _active_attempt(entries: Sequence[Entry]) -> int | None:
    """Return the attempt that counts at Submitty; None if it does not say so."""
    for entry in entries:
        if entry.name == SETTINGS and isinstance(entry, File):
            with suppress(RefusedError, ValueError, RecursionError):
                settings = json.loads(entry.read(SETTINGS_BYTES))
                active = settings.get("active_version") if isinstance(settings, dict) else None
                return active if isinstance(active, int) else None
    return None


class _Tier(IntEnum):
    """What a file can be for the assignment, the surest first."""

    CALLED = 0  # like the module
    OTHER = 1
    MISPLACED = 2  # called like the module, in the folder of another assignment
    UNLIKELY = 3  # called like a test or a readme: it counts if it holds the only answer


@dataclass(frozen=True)
class _Text:
    """A file that was read."""

    leaf: Leaf
    file: SourceFile

    @property
    def is_notebook(self) -> bool:
        return self.file.is_notebook


@dataclass
class _HandIn:
    """A student's tree, and what can be work for the assignment in it."""

    tree: Tree
    wanted: Wanted
    problems: list[str] = field(default_factory=list)
    by_rank: dict[tuple[int, _Tier], list[Leaf]] = field(default_factory=dict)
    archives: list[Leaf] = field(default_factory=list)
    odd: list[Leaf] = field(default_factory=list)  # such as a link in place of a folder
    unread: list[Leaf] = field(default_factory=list)  # such as bank.py.txt
    texts: dict[str, SourceFile] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.problems += self.tree.problems
        self._sort(self.tree.leaves)

    def _sort(self, leaves: Iterable[Leaf]) -> None:
        for leaf in leaves:
            tier = self._tier(leaf)
            if tier is not None:
                self.by_rank.setdefault((leaf.age, tier), []).append(leaf)
            elif self._is_in_another_folder(leaf):
                continue
            elif leaf.entry.name == NOTE and isinstance(leaf.entry, File):
                note = leaf.entry.read(NOTE_BYTES).decode("utf-8", "replace")
                raise RefusedError("".join(letter for letter in note if letter.isprintable()))
            elif is_archive(leaf.entry) and is_work(leaf.entry):
                self.archives.append(leaf)
            elif isinstance(leaf.entry, Odd) and is_work(leaf.entry) and not is_source(leaf.entry):
                self.odd.append(leaf)
            elif not is_work(leaf.entry) and self.wanted.stem in leaf.entry.name.lower():
                self.unread.append(leaf)
        for same in self.by_rank.values():
            same.sort(key=self._place)

    def _tier(self, leaf: Leaf) -> _Tier | None:
        """Return what a source can be for the assignment; None if it cannot be the student's work for it."""
        name = leaf.entry.name
        is_named = self.tree.are_named and not leaf.folders
        if not is_source(leaf.entry):
            return None
        if not is_named and not _is_own(leaf.entry, self.wanted):
            return self._tier_of_given(leaf)
        if is_named or self.wanted.is_called(name):
            return _Tier.MISPLACED if self._owner(leaf) in self.wanted.others else _Tier.CALLED
        if self._is_in_another_folder(leaf) or self.wanted.is_of_another(name):
            return None
        return _Tier.OTHER

    def _tier_of_given(self, leaf: Leaf) -> _Tier | None:
        """Return what a file can be whose name is that of a given one; None if it was given, or is hidden."""
        name = leaf.entry.name
        is_given_here = name in self.wanted.stub.given or name.lower() == "pictures.py"
        if is_given_here or name.startswith(".") or self._is_in_another_folder(leaf):
            return None
        return _Tier.UNLIKELY if self.wanted.stub.names else None

    def _owner(self, leaf: Leaf) -> str:
        """Return the last folder on the way to a file that is named like an assignment; empty without one."""
        for folder in reversed(leaf.folders):
            plain = COUNTED.sub("", folder)
            for name in (folder, plain):
                if name in (self.wanted.name, self.wanted.stem, *self.wanted.others):
                    return name
            if _NUMBERED.fullmatch(folder):
                return folder
        return ""

    def _is_in_another_folder(self, leaf: Leaf) -> bool:
        return self._owner(leaf) not in ("", self.wanted.name, self.wanted.stem)

    def _place(self, leaf: Leaf) -> tuple[bool, bool, int, bool, str]:
        """Order the files that can be meant: that with the exact name in the right folder comes first."""
        is_exact = stem(leaf.entry.name) == self.wanted.stem
        is_at_home = self.wanted.name in leaf.folders[-1:]
        is_notebook = suffix(leaf.path) == ".ipynb"
        return not is_exact, not is_at_home, len(leaf.folders), is_notebook, leaf.path

    # -- reading --------------------------------------------------------------------------------------

    def _read(self, leaf: Leaf) -> _Text:
        if leaf.path not in self.texts:
            if not isinstance(leaf.entry, File):
                raise RefusedError(
                    f"{shown(leaf.entry.name)} is {leaf.entry.what}, not a file; hand in the file itself."
                )
            self.texts[leaf.path] = files.read_source(leaf.entry)
        return _Text(leaf, self.texts[leaf.path])

    def _all_of(self, rank: tuple[int, _Tier]) -> list[_Text]:
        """Read all files of a rank; raises RefusedError if one cannot be read, or there are too many of a kind."""
        leaves = self.by_rank.get(rank, [])
        for kind in SOURCES:
            same = [leaf for leaf in leaves if suffix(leaf.path) == kind]
            if len(same) > COMPARED:
                raise RefusedError(self._not_clear(same))
            for leaf in same:
                try:
                    self._read(leaf)
                except RefusedError as refusal:
                    further = [other for other in self._sources() if other not in same]
                    also = self._named(further) if further else ""
                    too = f" The submission also contains {also}; hand in only one file."
                    raise RefusedError(f"{refusal}{too if also else ''}") from None
        return [self._read(leaf) for leaf in leaves]

    def _answers_of(self, rank: tuple[int, _Tier], most: int = READ) -> list[_Text]:
        """Return the answers among the first files of a rank, without those that cannot be read."""
        answers = []
        left = files.STUDENT_BYTES
        for leaf in self.by_rank[rank][:most]:
            with suppress(RefusedError):
                text = self._read(leaf)
                left -= len(text.file.text)
                if self.wanted.stub.is_answer(text.file):
                    answers.append(text)
                else:
                    del self.texts[leaf.path]
            if left < 0:
                break
        return answers

    def _sources(self) -> list[Leaf]:
        likely = [rank for rank in sorted(self.by_rank) if rank[1] is not _Tier.UNLIKELY]
        return list(itertools.chain.from_iterable(self.by_rank[rank] for rank in likely))

    # -- choosing -------------------------------------------------------------------------------------

    def choice(self) -> Chosen | None:
        """Return the answer if there is one, or else what was changed, or else the stub; None without any file."""
        return self._answer() or self._without_answer()

    def _answer(self) -> Chosen | None:
        stub = self.wanted.stub
        if not stub.names:
            return None
        for rank in sorted(self.by_rank):
            age, tier = rank
            if tier in (_Tier.OTHER, _Tier.UNLIKELY):
                answers = self._answers_of(rank)
            else:
                answers = [text for text in self._all_of(rank) if stub.is_answer(text.file)]
            if answers:
                kinds = {text.is_notebook for text in answers}
                changed = [
                    text
                    for text in self._all_of((age, _Tier.CALLED))
                    if text.is_notebook not in kinds and self._is_changed(text)
                ]  # its prose may count
                taken = self._one_of_each_kind([*answers, *changed])
                return self._chosen(taken, self._notes(taken, rank), has_answer=True)
        return None

    def _without_answer(self) -> Chosen | None:
        """Return a file that was changed, or the stub, or without a file of the module's name the only other one."""
        for tier in (_Tier.CALLED, _Tier.MISPLACED):
            called = [self._all_of(rank) for rank in sorted(self.by_rank) if rank[1] is tier]
            for texts in called:
                changed = [text for text in texts if self._is_changed(text)]
                if changed:
                    return self._chosen(self._one_of_each_kind(changed), self._no_answer(changed))
            if called:
                stubs = list(itertools.chain.from_iterable(called))
                kinds = {text.is_notebook: text for text in reversed(stubs)}
                taken = [kinds[kind] for kind in sorted(kinds)]
                return self._chosen(taken, self._no_answer(taken))
            if tier is _Tier.CALLED and any(rank[1] is _Tier.OTHER for rank in self.by_rank):
                age = min(age for age, tier in self.by_rank if tier is _Tier.OTHER)
                others = self._all_of((age, _Tier.OTHER))
                return self._chosen(self._one_of_each_kind(others), [])
        return None

    def _one_of_each_kind(self, texts: Sequence[_Text]) -> list[_Text]:
        """Return the first file of each kind; raises RefusedError if another one of its kind differs."""
        taken = []
        for is_notebook in (False, True):
            same = [text for text in texts if text.is_notebook == is_notebook]
            if any(not self._is_same(same[0], other) for other in same[1:]):
                raise RefusedError(self._not_clear([text.leaf for text in same]))
            taken += same[:1]
        return taken

    def _is_changed(self, text: _Text) -> bool:
        """Whether a file holds something of the student's own, as far as the stub is known."""
        if not self.wanted.stub.digests:
            return bool(text.file.text.strip())
        return not self.wanted.stub.is_untouched(text.file)

    def _is_same(self, first: _Text, other: _Text) -> bool:
        return is_same_work(first.file, other.file, with_prose=bool(self.wanted.stub.answers))

    def _chosen(
        self, taken: Sequence[_Text], notes: Iterable[str], has_answer: bool = False
    ) -> Chosen:
        return Chosen(
            tuple(text.file for text in taken),
            tuple(text.leaf.path for text in taken),
            tuple(notes),
            any(self._is_changed(text) for text in taken),
            has_answer,
        )

    # -- sentences ------------------------------------------------------------------------------------

    def _notes(self, taken: Sequence[_Text], rank: tuple[int, _Tier]) -> Iterator[str]:
        """Yield what an instructor should know about the choice among several files."""
        kinds = {text.is_notebook for text in taken}
        without: list[Leaf] = []
        further: list[_Text] = []
        for other in sorted(self.by_rank):
            if other >= rank and other[1] is not _Tier.UNLIKELY:
                further += self._answers_of(other, COMPARED)
            if other[1] is _Tier.CALLED:
                without += [
                    leaf
                    for leaf in self.by_rank[other][:COMPARED]
                    if (rank[1] is not _Tier.CALLED or (suffix(leaf.path) == ".ipynb") in kinds)
                    and not self._is_answer(leaf)
                ]
        without = [leaf for leaf in without if leaf not in [text.leaf for text in taken]]
        further = [
            text for text in further if not any(self._is_same(text, other) for other in taken)
        ]
        counting = self._named([text.leaf for text in taken])
        sentences = [f"{counting} counts."]
        if without:
            sentences = [f"{counting} counts: there is no answer in {self._named(without)}."]
        if further:
            sentences.append(f"{ANOTHER} {self._named([text.leaf for text in further])}.")
        if without or further:
            yield " ".join(sentences)

    def _is_answer(self, leaf: Leaf) -> bool:
        with suppress(RefusedError):
            return self.wanted.stub.is_answer(self._read(leaf).file)
        return False

    def _no_answer(self, taken: Sequence[_Text]) -> Iterator[str]:
        others = [leaf for leaf in self._sources() if leaf.age == 0]
        others = [leaf for leaf in others if not self.wanted.is_called(leaf.entry.name)]
        if self.wanted.stub.names and (others or self.unread or self.problems):
            places = [text.leaf for text in taken]
            sentence = f"There is no answer in {self._named([*places, *others])}."
            if self.unread:
                sentence += (
                    f" {self._named(self.unread)} beside it was not read: "
                    "only .py and .ipynb files are."
                )
            if self.problems:
                sentence += f" {self.problems[0]}"
            if len(others) > READ:
                sentence += f" Of the others, only the first {READ} were read."
            yield sentence

    def _not_clear(self, leaves: Sequence[Leaf]) -> str:
        return f"Found {self._named(leaves)} with different contents; hand in only one of them."

    def _named(self, leaves: Sequence[Leaf]) -> str:
        """Format the ways to these files for a message, without the folders that all files share."""
        considered = (*self._sources(), *self.unread, *self.archives, *leaves)
        shared = len(_common([leaf.folders for leaf in considered]))
        ways = ["/".join(leaf.path.split("/")[shared:]) for leaf in leaves]
        return joined([shown(way) for way in ways], LISTED)

    # -- archives, and nothing ------------------------------------------------------------------------

    def archives_to_open(self, chosen: Chosen | None) -> list[Leaf]:
        """Return the archives in which an answer can be: all without one, and else those that are named like it.

        An archive beside an answer is what `pack` made of it. Raises RefusedError if it is not known
        what is an answer, and a file of another name or an archive can be meant.
        """
        if chosen is None or not self.archives:
            return self.archives
        if not self.wanted.stub.names:
            exact = {f"{self.wanted.stem}{kind}" for kind in SOURCES}
            if not exact.issuperset(path.rpartition("/")[2] for path in chosen.paths):
                both = [*self._sources(), *self.archives]
                raise RefusedError(
                    f"Found {self._named(both)}; {self.wanted.expected} is expected."
                )
        elif not chosen.has_answer:
            return self.archives
        places = {path.rpartition("/")[0] for path in chosen.paths}
        return [
            leaf
            for leaf in self.archives
            if self.wanted.is_called(leaf.entry.name) and leaf.path.rpartition("/")[0] not in places
        ]

    def look_into(self, archives: Sequence[Leaf], stack: ExitStack) -> None:
        """Add what is in these archives; `problems` receives what cannot be read."""
        for leaf in list(archives[:COMPARED]):
            try:
                folder = stack.enter_context(opened(leaf.entry))
                folder.inspect()
                self.archives.remove(leaf)
                self._sort(_leaves(folder.entries(), self.problems, f"{leaf.path}/"))
            except RefusedError as refusal:
                self.problems.append(str(refusal))

    def why_nothing(self) -> RefusedError:
        """Return the reason that there is no file: what cannot be read, or what is there instead."""
        if self.problems:
            return RefusedError(self.problems[0])
        for leaf in self.odd:
            if isinstance(leaf.entry, Odd):
                name = shown(leaf.entry.name)
                return RefusedError(f"{name} is {leaf.entry.what}; hand in the file itself.")
        folder, entries = self._innermost()
        what = f"{shown(folder)} is empty" if not entries else f"there is only {names(entries)}"
        another = ""
        if _NUMBERED.fullmatch(folder) and folder != self.wanted.name:
            another = f" in {shown(folder)}, which is named like another assignment"
        elif entries and all(self.wanted.is_of_another(entry.name) for entry in entries):
            another = ", which has the name of another assignment"
        return NothingThereError(f"No file {self.wanted.expected} was handed in; {what}{another}.")

    def _innermost(self) -> tuple[str, Sequence[Entry]]:
        """Return the name and the entries of the folder for the assignment, or of the only one."""
        name = self.tree.name
        entries = self.tree.entries
        for _ in range(DEPTH):
            inner = [entry for entry in entries if not isinstance(entry, File | Odd)]
            inner = [folder for folder in inner if is_work(folder)]
            called = [folder for folder in inner if self.wanted.is_called(folder.name)]
            if not called and len(inner) != 1:
                break
            folder = (called or inner)[0]
            name = folder.name
            entries = _listed(folder)
        return name, entries


def _listed(folder: Folder) -> list[Entry]:
    try:
        return folder.entries()
    except RefusedError:
        return []


def _is_own(entry: Entry, wanted: Wanted) -> bool:
    """Whether a source can be written by the student: it was not given."""
    return is_work(entry) and not is_given(entry) and entry.name not in wanted.stub.given


def _is_spelt(name: str, spellings: Iterable[str]) -> bool:
    plain = {stem(name).casefold(), plain_stem(name).casefold(), COUNTED.sub("", name).casefold()}
    return any(spelling.casefold() in plain for spelling in spellings)


def _common(ways: Sequence[Sequence[str]]) -> list[str]:
    """Return the folders with which all these ways begin."""
    shared = []
    for step in zip(*ways):
        if len(set(step)) > 1:
            break
        shared.append(step[0])
    return shared
