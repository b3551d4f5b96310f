"""Locked hints: the question for a known mistake, readable only with code that makes the mistake.

Students receive no mistakes. The build runs the visible tests on each mistake, computes a
fingerprint of its answers in a test that it fails, and encrypts the mistake's hint with it. If a
student's code makes the same mistake, its answers in that test give the same fingerprint, and so
the key.

Both sides run under the same conditions: the random generator is seeded again for every call, and
randomly initialized weights are replaced by fixed ones, so neither the order of draws nor the style
of `__init__` matters.

A hint is not protected against a person who writes the mistake on purpose.
"""

import base64
import datetime
import hashlib
import json
import math
import types
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from fractions import Fraction
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch

from autograder.bridge.outside.loopback import LoopbackConnection, called_name
from autograder.bridge.outside.remote import RemoteStudent
from autograder.bridge.outside.steady import SteadyServer
from autograder.bridge.outside.subject import RemoteSubject
from autograder.bridge.outside.transcript import Answer, Transcript
from autograder.grading.naming import names
from autograder.selfcheck.handed_out import handed_out
from autograder.suite.session import Examinee, SuiteSession, Test
from autograder.text.wording import question_of
from autograder.walls.outside.alarm import alarm

SCHEMA = 3
SEED = 0
SECONDS = 5.0
GRIDS = tuple((step, phase) for step in (0.02, 0.1, 0.5) for phase in np.arange(0.0625, 1, 0.125))
GUARD = 2e-4  # minimum distance of a number from a border; platforms differ by about 1e-6
BEND = 0.1  # below, numbers are compared by difference; above, by ratio
SAMPLE = 64  # numbers sampled from each tensor
PAD = 64  # hints are padded to hide their length


@dataclass(frozen=True)
class MistakeHint:
    """A known mistake: its name, its question, the function that contains it, and the visible tests that it fails.

    Several mistakes that give equal answers become one without an `id` and a `title`, with the
    questions of all.
    """

    id: str
    title: str
    hint: str
    place: str
    order: int
    fails: tuple[str, ...] = ()


class RecordingConnection(LoopbackConnection):
    """A connection to a module in this process under fixed conditions; `visited` lists its calls."""

    def __init__(self, module: types.ModuleType) -> None:
        super().__init__(SteadyServer(module))
        self.visited: list[str] = []

    def start_test(self, seed: int) -> Transcript:
        self.visited.clear()
        return super().start_test(seed)

    def exchange(
        self, operation: str, arguments: dict[str, Any], seconds: float | None
    ) -> dict[str, Any]:
        if operation == "call":
            self.visited.append(called_name(self.server, arguments["target"]))
        return super().exchange(operation, arguments, seconds)


@dataclass(frozen=True)
class Recording:
    """The record of one test: `failed`, the answers, and the functions called, in order."""

    __test__ = False

    failed: bool
    answers: tuple[Answer, ...]
    visited: tuple[str, ...]


def recordings(
    session: SuiteSession, module: types.ModuleType, tests: Iterable[Test]
) -> Iterator[tuple[str, Recording]]:
    """Run visible tests on a module under fixed conditions, as they are asked for."""
    connection = RecordingConnection(module)
    subject = RemoteSubject(connection, RemoteStudent(connection))
    for ending in session.examine(Examinee(subject, partial(alarm, SECONDS)), SEED, tests):
        answers = tuple(ending.transcript.answers) if ending.transcript else ()
        yield ending.test.name, Recording(not ending.passed, answers, tuple(connection.visited))


_TEXTS = (
    bool,
    int,
    str,
    bytes,
    Fraction,
    Decimal,
    datetime.date,
)  # with a text that tells all of it


class _Piece:
    """A decomposed value: `form` must be equal, `numbers` may differ slightly.

    The numbers are bent, so that a step of a grid is a difference of small numbers and a ratio of
    large ones: 0.01 and 0.02 become 0.10 and 0.20, while 10 and 20 become 5.30 and 5.99.
    """

    def __init__(self, value: Any) -> None:
        self._form = hashlib.sha256()
        self._numbers: list[np.ndarray[Any, Any]] = []
        self._read(value)
        joined = np.concatenate([np.zeros(0), *self._numbers])
        self.form = self._form.digest()
        self.numbers = np.arcsinh(joined / BEND)

    def _read(self, value: Any) -> None:
        if isinstance(value, (torch.Tensor, np.ndarray)):
            self._read_table(value)
        elif isinstance(value, float | complex):
            self._note(type(value).__name__)
            self._read_floats(np.array([value]))
        elif isinstance(value, dict):
            self._note(f"dict {len(value)}")
            for key, item in value.items():
                self._note(repr(key))
                self._read(item)
        elif isinstance(value, (list, tuple)):
            self._note(f"{type(value).__name__} {len(value)}")
            for item in value:
                self._read(item)
        elif value is None or isinstance(value, _TEXTS):
            self._note(repr(value))
        else:
            self._note(str(value) if isinstance(value, torch.dtype) else type(value).__name__)

    def _read_table(self, table: torch.Tensor | np.ndarray[Any, Any]) -> None:
        self._note(f"table {table.dtype} {tuple(table.shape)}".replace("torch.", ""))
        if isinstance(table, torch.Tensor):
            if table.is_meta:
                return
            table = table.detach().cpu()
            floating = table.is_floating_point() or table.is_complex()
            table = torch.view_as_real(table) if table.is_complex() else table
            table = (table.double() if floating else table.long()).numpy()
        flat = np.asarray(table).reshape(-1)
        if flat.dtype.kind in "fc":
            self._read_floats(flat)
        else:
            self._note(repr(flat.tolist()))

    def _read_floats(self, flat: np.ndarray[Any, Any]) -> None:
        if flat.dtype.kind == "c":
            flat = np.stack([flat.real, flat.imag], axis=-1).reshape(-1)
        if len(flat) > SAMPLE:
            flat = flat[np.linspace(0, len(flat) - 1, SAMPLE).astype(int)]
        finite = np.isfinite(flat)
        self._note("".join(map(_odd_number, flat[~finite])) + "".join("01"[int(f)] for f in finite))
        self._numbers.append(np.where(finite, flat, 0.0).astype(np.float64))

    def _note(self, text: str) -> None:
        self._form.update(text.encode("utf-8", "backslashreplace") + b"\0")

    def fits(self, grid: int) -> bool:
        """Whether no number is so close to a border of this grid that another platform could round it differently.

        With the step 0.1 and the phase 0.0625, the borders of the numbers are at 0.09375, 0.19375
        and so on: 0.15 lies 0.04375 away from one and fits, 0.1938 only 0.00005 and does not.
        """
        step, phase = GRIDS[grid]
        place = (self.numbers / step + phase) % 1.0
        return bool((np.minimum(place, 1.0 - place) * step >= GUARD).all())

    def rounded(self, grid: int) -> bytes:
        step, phase = GRIDS[grid]
        rounded: bytes = np.floor(self.numbers / step + phase).astype("<i8").tobytes()
        return self.form + rounded


class Reading:
    """A decomposed answer. Gradients are read one by one, as the order of parameters does not matter."""

    def __init__(self, answer: Answer) -> None:
        self._asked = f"{answer.operation}\0{answer.target}\0".encode("utf-8", "backslashreplace")
        of_gradients = answer.operation == "backward" and isinstance(answer.value, list)
        self.pieces = [
            _Piece(value) for value in (answer.value if of_gradients else [answer.value])
        ]

    def finest_grid(self) -> int | None:
        """Return the finest grid on which all platforms round alike; None if there is no such grid."""
        grids = range(len(GRIDS))
        return next(
            (grid for grid in grids if all(piece.fits(grid) for piece in self.pieces)), None
        )

    def digest(self, grid: int) -> bytes:
        rounded = sorted(piece.rounded(grid) for piece in self.pieces)
        return hashlib.sha256(self._asked + b"\0".join(rounded)).digest()

    def exactly(self) -> bytes:
        """Return what only an answer with exactly these numbers has."""
        whole = sorted(piece.form + piece.numbers.tobytes() for piece in self.pieces)
        return self._asked + b"\0".join(whole)


Grids = tuple[int, ...]


def fingerprint(salt: str, readings: Sequence[Reading], grids: Grids) -> bytes:
    """Return the fingerprint of answers, each on its own grid."""
    digests = [reading.digest(grid) for reading, grid in zip(readings, grids)]
    return hashlib.sha256(b"".join([salt.encode(), b"\0", *digests])).digest()


def fingerprints(
    salt: str, answers: Sequence[Answer], choices: Iterable[Grids]
) -> dict[Grids, bytes]:
    """Return the fingerprint for each choice of grids that has one for each answer."""
    readings = [Reading(answer) for answer in answers]
    fitting = [grids for grids in choices if len(grids) == len(readings)]
    return {grids: fingerprint(salt, readings, grids) for grids in fitting}


def steady_fingerprint(
    salt: str, answers: Sequence[Answer], other: Sequence[Answer] | None = None
) -> tuple[Grids, bytes] | None:
    """Return the finest grid for each answer on which all platforms round alike, and the fingerprint on them.

    None if there are no such grids, or if as many of the right answers `other` differ too little on
    them to be distinguished. (If they are equal, the test failed for a reason outside the answers,
    such as the text of an error.)
    """
    readings = [Reading(answer) for answer in answers]
    finest = [reading.finest_grid() for reading in readings]
    grids = tuple(grid for grid in finest if grid is not None)
    if len(grids) < len(readings):
        return None
    steady = fingerprint(salt, readings, grids)
    right = [Reading(answer) for answer in (other or ())[: len(readings)]]
    if len(right) == len(readings) and steady == fingerprint(salt, right, grids):
        exact = [reading.exactly() for reading in readings]
        if exact != [reading.exactly() for reading in right]:
            return None
    return grids, steady


def salt_of(assignment: str, test: str) -> str:
    return f"{SCHEMA}/{assignment}/{test}"


def digest_of_tests(text: str) -> str:
    """Return the digest of a test file, whatever its line ends and the spaces at its end."""
    return hashlib.sha256("\n".join(text.splitlines()).rstrip().encode()).hexdigest()


def _odd_number(number: float) -> str:
    if math.isnan(number):
        return "n"
    return "+" if number > 0 else "-"


def key_of(assignment: str, texts: Sequence[Any]) -> bytes:
    """Return a key for records that are locked once and opened with several fingerprints."""
    text = json.dumps(texts, ensure_ascii=False, sort_keys=True)
    return hashlib.sha256(f"{SCHEMA}/{assignment}/key/{text}".encode()).digest()


def lock(fingerprint: bytes, texts: Sequence[Any]) -> tuple[str, str]:
    """Return the storage key of this fingerprint, and the records (hints, programs) encrypted with it."""
    records = [asdict(text) if isinstance(text, MistakeHint) else text for text in texts]
    text = json.dumps(records, ensure_ascii=False).encode()
    text += b" " * (-len(text) % PAD)
    return _index(fingerprint), base64.b64encode(_crossed(text, fingerprint)).decode()


def open_lock(fingerprint: bytes, locked: Mapping[str, str]) -> list[Any]:
    """Decrypt the records of this fingerprint; empty if it does not match."""
    box = locked.get(_index(fingerprint))
    return (
        []
        if box is None
        else list(json.loads(_crossed(base64.b64decode(box), fingerprint).decode()))
    )


def _index(fingerprint: bytes) -> str:
    return hashlib.sha256(b"index" + fingerprint).hexdigest()[:20]


def _crossed(text: bytes, fingerprint: bytes) -> bytes:
    stream = hashlib.shake_256(b"hint" + fingerprint).digest(len(text))
    return bytes(a ^ b for a, b in zip(text, stream))


class LockedHints:
    """The locked hints of an assignment; empty if the file is missing or unreadable."""

    def __init__(self, folder: Path) -> None:
        given = handed_out(folder)
        record = given.record
        self.packages = given.packages
        try:
            self.assignment = str(record["assignment"])
            locked = record if record["schema"] == SCHEMA else {"tests": {}}
            self._tests = dict(locked["tests"])
            self._questions = dict(record.get("questions", {}))
            self._nudges = dict(record.get("nudges", {}))
            self.points = float(record.get("points", 0))  # 0 if an older kit built the file
            self.has_locked_answers = "answers" in record  # as older kits built them
            self._programs = dict(locked.get("catch", {}))
            self._digest_of_tests = str(record.get("tests_sha256", ""))
        except (ValueError, KeyError, TypeError):  # disables hints only
            self.assignment = ""
            self._tests = {}
            self._questions = {}
            self._nudges = {}
            self.points = 0.0
            self.has_locked_answers = False
            self._programs = {}
            self._digest_of_tests = ""

    def about(self, test: str, answers: Sequence[Answer]) -> tuple[MistakeHint, ...]:
        """Return the known mistakes with exactly these answers in this test."""
        records = self._opened(self._tests.get(test, {}), test, answers)
        return tuple(
            MistakeHint(**{**record, "fails": tuple(record["fails"])}) for record in records
        )

    def nudge(self, function: str) -> str:
        """Return the author's nudge for the gap in this function, or nothing."""
        return str(self._nudges.get(function, ""))

    def is_of(self, tests: str) -> bool:
        """Whether a test file is the one that was handed out, as far as this is known."""
        return self._digest_of_tests in ("", digest_of_tests(tests))

    @property
    def has_answers(self) -> bool:
        return bool(self._questions)

    def answers(self, part: str) -> list[tuple[str, str]]:
        """Return the questions of a part with their answers."""
        return [(str(question), str(answer)) for question, answer in self._questions.get(part, ())]

    @property
    def programs_from(self) -> str:
        """From when on programs can be caught, as a moment in ISO's form; "" if that is always."""
        return str(self._programs.get("from", ""))

    @property
    def parts_with_programs(self) -> tuple[str, ...]:
        """The parts with programs to catch."""
        return tuple(self._programs.get("parts", ()))

    def programs(self, part: str, test: str, answers: Sequence[Answer]) -> list[dict[str, Any]]:
        """Return the records of a part's wrong programs, if code that passes gives these answers in this test."""
        grids = self._programs.get("keys", {}).get(test, {})
        for key in self._opened(grids, f"catch/{test}", answers):
            return open_lock(bytes.fromhex(key), self._programs["parts"].get(part, {}))
        return []

    def _opened(
        self, grids: Mapping[str, Mapping[str, str]], test: str, answers: Sequence[Answer]
    ) -> list[Any]:
        if not answers:
            return []
        locked = {_grids_in(name): boxes for name, boxes in grids.items()}
        keys = fingerprints(salt_of(self.assignment, test), answers, locked)
        records: list[Any] = []
        for choice, key in keys.items():
            records += open_lock(key, locked[choice])
        return records


def grids_as_text(grids: Grids) -> str:
    """Return the grids as the name of their boxes in the file."""
    return ",".join(map(str, grids))


def _grids_in(text: str) -> Grids:
    return tuple(int(grid) for grid in text.split(","))


def named(
    hints_of: Mapping[str, Sequence[MistakeHint]],
    parts: Mapping[str, Sequence[str]],
    missed: Collection[str],
) -> dict[str, MistakeHint]:
    """Return one hint for each failing test, by the rule of the graded page; unexplained tests are left out.

    `hints_of` are the mistakes with the student's answers in each failing test, `parts` the failing
    tests of each part, and `missed` all tests that were not passed, failing or not.
    """
    hints = set(chain.from_iterable(hints_of.values()))
    in_order = sorted(hints, key=lambda hint: hint.order)
    chosen = names(in_order, parts, missed, lambda hint, test: hint in hints_of[test])
    return {test: _one_of(equals) for test, equals in chosen.items()}


def _one_of(equals: Sequence[MistakeHint]) -> MistakeHint:
    """Return the only hint, or one without a name that stands for mistakes with equal answers."""
    first = equals[0]
    if len(equals) == 1:
        return first
    places = {hint.place for hint in equals}
    place = first.place if len(places) == 1 else ""
    question = question_of([hint.hint for hint in equals])
    return MistakeHint("", "", question, place, first.order, first.fails)
