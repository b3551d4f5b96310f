"""A made-up class that resembles a real one: most answers are right or nearly right, some are odd, one never ends.

Equal seeds give equal bytes. The intended answers are returned, so that grades can be compared with
them.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from autograder.authoring.answers import AnswerBook, SampleAnswer
from autograder.course.config import Course, CourseError
from autograder.gradebook.demo_marker import mark
from autograder.text.files import write_whole
from autograder.text.wording import counted

NAMES = [
    "ada", "aiko", "alan", "amara", "amir", "ana", "anouk", "arjun", "asha", "aziz", "bao",
    "ben", "bilal", "carmen", "chidi", "chloe", "dalia", "dana", "diego", "elif", "emil",
    "emmy", "enzo", "esi", "farah", "fatou", "finn", "freya", "gael", "grace", "hana", "hassan",
    "hugo", "ida", "ines", "isaac", "iva", "jamal", "jun", "kai", "kamala", "karim", "keiko",
    "kofi", "lars", "leila", "lena", "lin", "luca", "maja", "malik", "mei", "mila", "nadia",
    "nia", "noor", "olga", "omar", "otto", "pablo", "petra", "priya", "quinn", "rafa", "ravi",
    "rosa", "sami", "sara", "sofia", "tariq", "tess", "thi", "timo", "uma", "vera", "viktor",
    "wen", "yara", "yuki", "zane", "zoe",
]  # fmt: skip
_ONCE_IN_A_CLASS = ("loop", "exit", "memory")
# how often students of ability 0 and of ability 1 give each kind of answer
_WEIGHTS: dict[str, tuple[float, float]] = {
    "right": (10, 60),
    "alternative": (1, 12),
    "notebook": (6, 12),
    "both_files": (2, 2),
    "mistake": (34, 10),
    "two_mistakes": (14, 1),
    "unfinished": (14, 1),
    "stub": (6, 0),
    "crash": (4, 0.5),
    "syntax_error": (3, 0.5),
    "latin1": (0.5, 0.2),
    "nothing": (8, 0.5),
}
ANSWER_KINDS = (*_ONCE_IN_A_CLASS, *_WEIGHTS)


@dataclass(frozen=True)
class DemoStudent:
    """A made-up student: an ability from 0 to 1, and the answer to each assignment."""

    name: str
    ability: float
    answers: dict[str, SampleAnswer]


def write_demo(
    course: Course,
    output: Path,
    students: int = 30,
    seed: int = 0,
    assignments: Iterable[str] | None = None,
    tell: Callable[[str], None] = lambda step: None,
) -> list[DemoStudent]:
    """Write a class as `<student>/<assignment>/<file>` to `output`, and return its students.

    The assignments are the named ones, or for None all with a solution. In a class of thirty every
    kind of answer occurs, the endless loop once. `tell` is called with a description of each step.
    Raises CourseError if the course is broken, there is nothing to answer, or `output` is not
    empty.
    """
    chosen = [
        a for a in course.select(assignments) if assignments or course.solution_file(a).is_file()
    ]
    if not chosen:
        raise CourseError("The course has no solutions yet; a made-up class is created from them.")
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise CourseError(f"{output} already exists; remove it or choose another folder.")
    books = {}
    for a in chosen:
        tell(f"Collecting answers to {a.name}")
        books[a.name] = AnswerBook(course, a, _random(seed, a.name))
    tell(f"Writing the answers of {counted(students, 'student')}")
    class_of_students = _make(books, students, seed)
    mark(output)
    for student in class_of_students:
        for assignment, answer in student.answers.items():
            for name, content in answer.files:
                write_whole(output / student.name / assignment / name, content)
    return class_of_students


def _make(books: dict[str, AnswerBook], count: int, seed: int) -> list[DemoStudent]:
    names = _names(count, _random(seed, "names"))
    abilities = {name: round(_random(seed, name).betavariate(2.2, 1.2), 3) for name in names}
    kinds = {}
    for name in names:
        for assignment, book in books.items():
            rng = _random(seed, name, assignment)
            kinds[name, assignment] = _usual(book, abilities[name], rng)
    _add_the_rare(kinds, books, _random(seed, "rare"))
    students = []
    for name in names:
        answers = {}
        for assignment, book in books.items():
            rng = _random(seed, name, assignment, "answer")
            answers[assignment] = book.answer(kinds[name, assignment], rng)
        students.append(DemoStudent(name, abilities[name], answers))
    return students


def _usual(book: AnswerBook, ability: float, rng: random.Random) -> str:
    kinds = [kind for kind in _WEIGHTS if book.has(kind)]
    weights = [_weight(kind, ability) for kind in kinds]
    return rng.choices(kinds, weights)[0]


def _weight(kind: str, ability: float) -> float:
    at_ability_0, at_ability_1 = _WEIGHTS[kind]
    return at_ability_0 + ability * (at_ability_1 - at_ability_0)


def _add_the_rare(
    kinds: dict[tuple[str, str], str], books: dict[str, AnswerBook], rng: random.Random
) -> None:
    """Insert the kinds that occur once per class, then, if there is room, those that were not drawn."""
    slots = list(kinds)
    rng.shuffle(slots)
    for kind in ANSWER_KINDS[: len(slots) // 2]:
        counts = Counter(kinds.values())
        fitting = (slot for slot in slots if counts[kinds[slot]] > 1 and books[slot[1]].has(kind))
        if kind not in counts and (slot := next(fitting, None)):
            kinds[slot] = kind


def _names(count: int, rng: random.Random) -> list[str]:
    """Return that many different names; after the end of the list they continue as `ada2`."""
    rounds: list[str] = []
    while len(rounds) < count:
        number = len(rounds) // len(NAMES) + 1
        once = [f"{name}{number}" if number > 1 else name for name in NAMES]
        rng.shuffle(once)
        rounds += once
    return sorted(rounds[:count])


def _random(seed: int, *words: str) -> random.Random:
    """Return an independent generator per choice, so that one more student does not change the others."""
    return random.Random("/".join([str(seed), *words]))
