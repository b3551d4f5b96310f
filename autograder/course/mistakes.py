"""Known mistakes, as records. `mistakes_file` reads them from a mistakes.yml."""

from dataclasses import dataclass
from typing import Literal

Weight = Literal["form", "slip", "idea", "central"]


@dataclass(frozen=True)
class Program:
    """What makes a mistake one of the wrong programs to catch: an `input` that separates it from right
    answers, as an expression, and the `story` of why people write it.
    """

    input: str
    story: str


@dataclass(frozen=True)
class Mistake:
    """A known mistake; `source` is the whole solution with the mistake in it.

    A slip of `form` and any other `slip` should cost little, a missing `idea` the part that it is
    about, and the `central` idea of an assignment nearly all of its part; nothing is checked without
    a `weight`, or with an `exception`, the reason why it costs something else. `fails` are the tests
    that it did not pass when an audit recorded them; None if none did. `places` are the functions and
    classes that its edits change.
    """

    id: str
    title: str
    hint: str
    source: str
    weight: Weight | None = None
    exception: str = ""
    part: str | None = None
    fails: frozenset[str] | None = None
    places: tuple[str, ...] = ()
    program: Program | None = None
