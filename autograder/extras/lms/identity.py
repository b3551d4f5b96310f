"""Whether two descriptions are of one person: rosters, sheets, archives and folders are compared here and nowhere else.

Letters are compared as Unicode defines them: with all their marks, in one normal form, without
case.
"""

import itertools
import re
import unicodedata
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Place = TypeVar("Place", bound=Hashable)
Key = TypeVar("Key", bound=Hashable)

_COMMA = re.compile(r"[,،，、]")
_BETWEEN_WORDS = re.compile(r"[\s._]+")


@dataclass(frozen=True)
class Id:
    """A login, an address or a number; `site` is the course site that gave it, empty if unknown."""

    text: str
    site: str = ""

    @property
    def is_number(self) -> bool:
        """Whether it has no letter, so that it can be of different people at different sites."""
        return not any(map(str.isalpha, self.text))


@dataclass(frozen=True)
class Described:
    """All that one source says of a person.

    Names are chosen by people, so they never count as ids.
    """

    ids: tuple[Id, ...] = ()
    names: tuple[str, ...] = ()

    def __or__(self, other: "Described") -> "Described":
        return Described((*self.ids, *other.ids), (*self.names, *other.names))

    @property
    def texts(self) -> list[str]:
        """Return every text once, for a message."""
        return list(dict.fromkeys(filter(None, (*(id.text for id in self.ids), *self.names))))


def anything(*texts: str) -> Described:
    """Return a description by texts that can be ids or names, such as the name of a folder; a number is no name."""
    ids = tuple(map(Id, texts))
    return Described(ids, tuple(id.text for id in ids if not id.is_number))


def plain(text: str) -> str:
    """Return the text in the form in which equal texts are equal: case, spaces and invisible characters do not count."""
    folded = unicodedata.normalize("NFD", text).casefold()
    visible = "".join(letter for letter in folded if unicodedata.category(letter) != "Cf")
    return " ".join(unicodedata.normalize("NFC", visible).split())


def letters(text: str) -> str:
    """Return the letters with their marks, the digits and the underscores, as Canvas keeps them in file names."""
    return "".join(filter(is_word_character, plain(text)))


def is_word_character(character: str) -> bool:
    """Whether this is a letter, a mark, a digit or an underscore."""
    category = unicodedata.category(character)
    return category[0] in "LM" or category in ("Nd", "Pc")


def without_punctuation(text: str) -> str:
    """Return the text with a space in place of what is no letter, mark or digit."""
    return "".join(
        letter if is_word_character(letter) and letter != "_" else " " for letter in text
    )


@dataclass(frozen=True)
class PersonName:
    """A name in reading order; `last_words` are how many words the part before a comma has, 0 without a comma."""

    words: tuple[str, ...]
    last_words: int = 0

    @property
    def reading(self) -> str:
        return " ".join(self.words)

    @property
    def sortable(self) -> list[str]:
        """Return the ways to write the last name first, in one word: Canvas's file names begin with one of them."""
        count = len(self.words)
        first_words = [count - self.last_words] if self.last_words else range(1, count)
        return ["".join((*self.words[cut:], *self.words[:cut])) for cut in first_words]

    @property
    def turned(self) -> tuple[str, ...] | None:
        """Return what a name shares with itself turned round; None if a comma tells the order, or it has one word."""
        if self.last_words or len(self.words) < 2:
            return None
        return min((*self.words[cut:], *self.words[:cut]) for cut in range(len(self.words)))


def read_name(text: str) -> PersonName:
    """Split a name into words; "Lovelace, Ada" is read as "Ada Lovelace"."""
    last, *others = _COMMA.split(plain(text))
    first_words = _words(" ".join(others))
    last_words = _words(last)
    return PersonName((*first_words, *last_words), len(last_words) if first_words else 0)


def same_name(first: str, other: str) -> bool:
    """Whether two names can belong to one person, as a number says: in another notation, or with additional words."""
    left = read_name(first)
    right = read_name(other)
    if plain(first) == plain(other) or left.reading == right.reading:
        return True
    if left.reading in right.sortable or right.reading in left.sortable:
        return True
    shorter, longer = sorted((set(left.words), set(right.words)), key=len)
    return len(shorter) > 1 and shorter <= longer


def is_turned(first: str, other: str) -> bool:
    """Whether a name is the other one turned round, and no comma tells which word is the last name."""
    left = read_name(first)
    right = read_name(other)
    return left.reading != right.reading and left.turned is not None and left.turned == right.turned


@dataclass(frozen=True)
class Match(Generic[Place]):
    """The place that a description fits; `turned` if only by a name turned round, `by_id` if an id says so."""

    place: Place
    turned: bool = False
    by_id: bool = False


@dataclass
class _Index(Generic[Place]):
    """Places by the forms of their ids and names."""

    ids: dict[str, set[tuple[Place, str]]] = field(default_factory=dict)
    exact: dict[str, set[Place]] = field(default_factory=dict)
    reading: dict[str, set[Place]] = field(default_factory=dict)
    sortable: dict[str, set[Place]] = field(default_factory=dict)
    turned: dict[tuple[str, ...], set[Place]] = field(default_factory=dict)

    def add(self, place: Place, described: Described) -> None:
        for id in described.ids:
            if plain(id.text):
                self.ids.setdefault(plain(id.text), set()).add((place, id.site))
        for text in filter(plain, described.names):
            self._add_name(place, text)

    def _add_name(self, place: Place, text: str) -> None:
        name = read_name(text)
        self.exact.setdefault(plain(text), set()).add(place)
        if not name.words:
            return
        self.reading.setdefault(name.reading, set()).add(place)
        for form in name.sortable:
            self.sortable.setdefault(form, set()).add(place)
        if name.turned is not None:
            self.turned.setdefault(name.turned, set()).add(place)

    def of_id(self, id: Id) -> set[Place]:
        """Return the places with this id; the same number at another site is another number."""
        places = self.ids.get(plain(id.text), set())
        return {place for place, site in places if not (site and id.site and site != id.site)}

    def of_name(self, text: str) -> set[Place]:
        """Return the places with exactly this name; without one, those with it as a comma tells."""
        exact = self.exact.get(plain(text), set())
        if exact:
            return exact
        name = read_name(text)
        if not name.words:
            return set()
        places = self.reading.get(name.reading, set()) | self.sortable.get(name.reading, set())
        return places.union(*(self._of_one_word(form) for form in name.sortable))

    def _of_one_word(self, form: str) -> set[Place]:
        """Return the places with a name of one word, such as Canvas's; one of several words has none without spaces."""
        return self.reading.get(form, set())


class Directory(Generic[Place]):
    """An index from descriptions of people to places, which are any values.

    Ids and names must agree on one place. A bare number is not sufficient where both names are
    known: each site has its own numbers, and Moodle numbers groups and participants alike. Then one
    of the names must agree, too.
    """

    def __init__(self, trusted_site: str = "") -> None:
        """Begin an empty index; numbers of the `trusted_site` are sufficient without a name."""
        self._trusted_site = trusted_site
        self._index = _Index[Place]()
        self._described: dict[Place, Described] = {}

    def add(self, place: Place, described: Described) -> None:
        self._index.add(place, described)
        self._described[place] = self._described.get(place, Described()) | described

    def find(self, described: Described) -> Place | None:
        """Return the place that fits, without turning any name round; None if none or several do."""
        match = self.match(described)
        return match.place if match else None

    def match(self, described: Described) -> Match[Place] | None:
        """As `find`, with how the place was found."""
        by_id = _clear(self._index.of_id(id) for id in described.ids)
        by_name = _clear(self._index.of_name(text) for text in described.names)
        places = by_id | by_name
        if len(places) != 1:
            return None
        place = next(iter(places))
        if self._contradicts(place, described):
            return None
        if not by_name and not self._is_trusted(place, described):
            return Match(place, by_id=True) if self._agrees(place, described) else None
        return Match(place, by_id=bool(by_id))

    def match_all(self, everybody: Mapping[Key, Described]) -> dict[Key, Match[Place]]:
        """Return the match of each description.

        A name is turned round only if nobody else fits its place, and it fits no other place.
        """
        matches: dict[Key, Match[Place]] = {}
        for key, described in everybody.items():
            match = self.match(described)
            if match is not None:
                matches[key] = match
        taken = {match.place for match in matches.values()}
        wanted: dict[Place, list[Key]] = {}
        for key, described in everybody.items():
            turned = self._turned(described) if key not in matches else set()
            for place in turned:
                wanted.setdefault(place, []).append(key)
            if len(turned) == 1:
                place = next(iter(turned))
                if place not in taken and not self.candidates(described):
                    matches[key] = Match(place, turned=True)
        alone = {place for place, keys in wanted.items() if len(keys) == 1}
        return {
            key: match for key, match in matches.items() if not match.turned or match.place in alone
        }

    def candidates(self, described: Described) -> set[Place]:
        """Return all places that an id or a name of the description fits."""
        by_id = [self._index.of_id(id) for id in described.ids]
        by_name = [self._index.of_name(text) for text in described.names]
        return set[Place]().union(*by_id, *by_name)

    def _turned(self, described: Described) -> set[Place]:
        forms = [read_name(text).turned for text in described.names]
        candidates = [self._index.turned.get(form, set()) for form in forms if form is not None]
        places = set[Place]().union(*candidates)
        return {place for place in places if not self._contradicts(place, described)}

    def _contradicts(self, place: Place, described: Described) -> bool:
        """Whether both know an id of the same site, and these differ: then it is somebody of the same name."""
        there = _by_site(self._described[place])
        here = _by_site(described)
        return any(there[site].isdisjoint(here[site]) for site in there.keys() & here.keys())

    def _is_trusted(self, place: Place, described: Described) -> bool:
        """Whether one of the common ids is sufficient without a name."""
        trusted_ids = {(plain(id.text), id.site) for id in self._described[place].ids}
        texts = {text for text, _ in trusted_ids}
        for id in described.ids:
            if not id.is_number and plain(id.text) in texts:
                return True
            if (
                id.site
                and id.site == self._trusted_site
                and (plain(id.text), id.site) in trusted_ids
            ):
                return True
        return False

    def _agrees(self, place: Place, described: Described) -> bool:
        there = list(filter(None, self._described[place].names))
        ids = {plain(id.text) for id in described.ids}
        here = [name for name in described.names if name and plain(name) not in ids]
        return (
            not there
            or not here
            or any(itertools.starmap(same_name, itertools.product(here, there)))
        )


def _clear(candidates: Iterable[set[Place]]) -> set[Place]:
    """Return the places of the ids or names that fit exactly one."""
    return set[Place]().union(*(places for places in candidates if len(places) == 1))


def _by_site(described: Described) -> dict[str, set[str]]:
    texts: dict[str, set[str]] = {}
    for id in described.ids:
        if id.site:
            texts.setdefault(id.site, set()).add(plain(id.text))
    return texts


def _words(text: str) -> tuple[str, ...]:
    """Split at spaces, dots and underscores, and leave out all other signs: "O'Brien" is one word."""
    kept = ("".join(filter(is_word_character, word)) for word in _BETWEEN_WORDS.split(text))
    return tuple(filter(None, kept))
