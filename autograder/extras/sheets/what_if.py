"""The options of a what-if question: the right one is found by running the student's own code, with
the change; the wrong ones by running it with others, and known mistakes.

Everything runs in the sandbox, on the same small fresh inputs. A question is given up if its
options would look alike: then another one is asked.
"""

import hashlib
import random
import runpy
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import torch

from autograder.bridge.outside.local import LocalStudent, load
from autograder.course.config import Assignment
from autograder.course.mistakes import Mistake
from autograder.extras.sheets.own_code import Change, OwnCode, hunks_of
from autograder.extras.sheets.questions import WhatIf, shown_by_file
from autograder.extras.sheets.tables import SmallTable, table_of
from autograder.grading.grader import Grader
from autograder.grading.workers import LoadedSubmission
from autograder.records import InfrastructureError, SourceFile

OPTIONS = 4
LETTERS = "ABCD"
DRAWS = 4  # of inputs, until all options differ
SECONDS = 5.0  # of processor time here for one option, and of waiting for the worker
UNCHANGED = "the code as it is now"
RIGHT = "right: found by running this code with the change"

Show = Callable[..., Any]


@dataclass(frozen=True)
class Option:
    """One of the options; `origin` says, for the examiner, where it comes from."""

    letter: str
    table: SmallTable
    origin: str
    is_right: bool


@dataclass(frozen=True)
class AskedWhatIf:
    """A what-if question with its options, and the change that it is about, if it is one of code.

    `now` is what the code gives without the change, on the same inputs.
    """

    ask: str
    caption: str
    answer: str
    now: SmallTable
    options: tuple[Option, ...]
    change: Change | None = None

    @property
    def right(self) -> Option:
        return next(option for option in self.options if option.is_right)


class Trials(AbstractContextManager["Trials"]):
    """Runs one student's code, and changes of it, on small inputs in the sandbox.

    Used in a grader's process, and closed at the end. `mistakes` are the course's, by id; where the
    student's text does not have their lines, they run as the course wrote them.
    """

    def __init__(
        self,
        grader: Grader,
        assignment: Assignment,
        code: OwnCode,
        solution: str,
        mistakes: Mapping[str, Mistake],
    ) -> None:
        self._grader = grader
        self._assignment = assignment
        self._code = code
        self._solution = solution
        self._mistakes = mistakes
        self._shows = _shows_of(shown_by_file(grader.course, assignment))
        self._tables: dict[tuple[str, str, str, int], SmallTable | None] = {}
        self._sources = frozenset(mistake.source for mistake in mistakes.values())
        self._loaded: dict[str, LoadedSubmission] = {}
        self.reasons: list[str] = []  # why some code gave no table

    def ask(self, what_if: WhatIf, seed: int) -> AskedWhatIf | None:
        """Return the question with its options, or None if it does not fit this code.

        It does not fit if the code has no place for the edit, if the changed code does not run, if
        fewer than four options differ visibly, or if the edit has no effect: where another line is
        wrong, the author's answer would not be about this code.
        """
        change = self._code.changed(what_if.edits)
        if what_if.edits and change is None:
            return None
        for draw in range(DRAWS):
            now = self._table(self._code.text, what_if.show, {}, seed + draw)
            options = self._options(what_if, change, seed + draw)
            right = [option.table for option in options if option.is_right]
            has_no_effect = change is not None and now is not None and right == [now]
            if now is not None and options and not has_no_effect:
                caption = _caption(self._shows[what_if.show])
                return AskedWhatIf(what_if.ask, caption, what_if.answer, now, options, change)
        return None

    def _options(self, what_if: WhatIf, change: Change | None, seed: int) -> tuple[Option, ...]:
        show = what_if.show
        given = dict(what_if.given)
        text = change.text if change else self._code.text
        right = self._table(text, show, given, seed)
        if right is None:
            return ()
        rng = random.Random(seed)
        chosen = [(right, RIGHT)]
        for origin, wrong_text, arguments in self._wrong(what_if, rng):
            table = self._table(wrong_text, show, arguments, seed)
            if table is not None and not any(table.looks_like(other) for other, _ in chosen):
                chosen.append((table, origin))
            if len(chosen) == OPTIONS:
                rng.shuffle(chosen)
                return tuple(
                    Option(letter, shown, origin, origin == RIGHT)
                    for letter, (shown, origin) in zip(LETTERS, chosen)
                )
        return ()

    def _wrong(
        self, what_if: WhatIf, rng: random.Random
    ) -> Iterator[tuple[str, str, dict[str, Any]]]:
        """Yield the origin, the text and the arguments of wrong options, in an order by chance."""
        given = dict(what_if.given)
        others: list[tuple[str, str, dict[str, Any]]] = [(UNCHANGED, self._code.text, {})]
        for arguments in what_if.others:
            shown = ", ".join(f"{name} = {value}" for name, value in arguments.items())
            others.append((f"the same code with {shown}", self._code.text, dict(arguments)))
        for name in what_if.mistakes:
            mistake = self._mistakes[name]
            others.append((f"known mistake: {mistake.title}", self._with_mistake(mistake), given))
        rng.shuffle(others)
        yield from others

    def _with_mistake(self, mistake: Mistake) -> str:
        """Return the student's code with a known mistake where its lines are found, else the course's own."""
        change = self._code.with_lines(hunks_of(self._solution, mistake.source))
        return change.text if change else mistake.source

    def _table(
        self, text: str, show: str, arguments: Mapping[str, Any], seed: int
    ) -> SmallTable | None:
        """Return what a text gives, or None if it gives no table."""
        key = (text, show, repr(sorted(arguments.items())), seed)
        if key not in self._tables:
            self._tables[key] = self._run(text, self._shows[show], arguments, seed)
        return self._tables[key]

    def _run(
        self, text: str, show: Show, arguments: Mapping[str, Any], seed: int
    ) -> SmallTable | None:
        task = hashlib.sha256(f"{show.__name__}{seed}{arguments}{text}".encode()).hexdigest()
        try:
            with self._grader.watch.limit(task, SECONDS), torch.no_grad():
                dice = torch.Generator().manual_seed(seed)
                if text in self._sources:
                    torch.manual_seed(seed)
                    return table_of(
                        show(_course_module(self._assignment.stem, text), dice, **arguments)
                    )
                subject = self._submission(text).subject()
                with subject.connection.ending_at(time.monotonic() + SECONDS):
                    subject.begin(seed)
                    return table_of(show(subject.student, dice, **arguments))
        except InfrastructureError:
            raise
        except Exception as error:  # it stops, takes too long, or answers with something else
            self.reasons.append(f"{show.__name__}: {type(error).__name__}: {error}"[:300])
            return None

    def _submission(self, text: str) -> LoadedSubmission:
        """Return a text of the student's in a worker of its own, the same one for each question."""
        if text not in self._loaded:
            file = SourceFile(f"{self._assignment.stem}.py", text)
            self._loaded[text] = self._grader.load(self._assignment, file)
        return self._loaded[text]

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the workers."""
        for loaded in self._loaded.values():
            loaded.close()
        self._loaded.clear()


@lru_cache(maxsize=200)
def _course_module(stem: str, text: str) -> LocalStudent:
    """Return a text of the course's own, loaded in this process: it is trusted as the solution is."""
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    loaded = load(text, f"{stem}.py", f"mistake_{stem}_{digest}")
    return LocalStudent(loaded.module, loaded.failures)


@cache
def _shows_of(file: Path) -> dict[str, Show]:
    names = runpy.run_path(str(file))
    return {name: value for name, value in names.items() if callable(value)}


def _caption(show: Show) -> str:
    return " ".join((show.__doc__ or "").split())


def first_that_fits(trials: Trials, what_ifs: Sequence[WhatIf], seed: int) -> AskedWhatIf | None:
    """Return the first question, in an order that the seed determines, that fits the code.

    Those about a line of the student's come before those about inputs.
    """
    order = random.Random(seed).sample(list(what_ifs), len(what_ifs))
    for what_if in sorted(order, key=lambda what_if: not what_if.edits):
        asked = trials.ask(what_if, seed)
        if asked is not None:
            return asked
    return None
