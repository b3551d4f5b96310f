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
import hashlib
import json
import math
import re
import types
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from autograder.course.markers import QUESTION_LEADS
from autograder.sandbox.outside.alarm import alarm
from autograder.sandbox.outside.loopback import LoopbackConnection
from autograder.sandbox.outside.remote import RemoteStudent
from autograder.sandbox.outside.steady import SteadyServer
from autograder.sandbox.outside.subject import RemoteSubject
from autograder.sandbox.outside.transcript import Answer, Transcript
from autograder.suite.evidence import evidence
from autograder.suite.session import SuiteSession, Test
from autograder.text.wording import question_of

FILE_NAME = "hints.json"
SCHEMA = 2
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
            handle, path = arguments["target"]
            owner = [] if handle is None else [type(self.server.objects[handle.number]).__name__]
            self.visited.append(".".join([*owner, *(path or ["forward"])]))
        return super().exchange(operation, arguments, seconds)


@dataclass(frozen=True)
class Recording:
    """The record of one test: `failed`, the answers, and the functions called, in order."""

    __test__ = False

    failed: bool
    answers: tuple[Answer, ...]
    visited: tuple[str, ...]


def take(session: SuiteSession, test: Test, connection: RecordingConnection) -> Recording:
    """Run one visible test on a module under fixed conditions."""
    subject = RemoteSubject(connection, RemoteStudent(connection))
    error = session.run(test, subject, partial(alarm, SECONDS))
    answers = evidence(error, connection.transcript).answers
    return Recording(error is not None, tuple(answers), tuple(connection.visited))


class Reading:
    """Decomposed answers: `form` must be equal, `numbers` may differ slightly.

    The numbers are bent, so that a step of a grid is a difference of small numbers and a ratio of
    large ones: 0.01 and 0.02 become 0.10 and 0.20, while 10 and 20 become 5.30 and 5.99.
    """

    def __init__(self, answers: Iterable[Answer]) -> None:
        self._form = hashlib.sha256()
        self._numbers: list[np.ndarray[Any, Any]] = []
        for answer in answers:
            self._read((answer.operation, answer.target, answer.value))
        joined = np.concatenate([np.zeros(0), *self._numbers])
        self.form = self._form.digest()
        self.numbers = np.arcsinh(joined / BEND)

    def _read(self, value: Any) -> None:
        if isinstance(value, (torch.Tensor, np.ndarray)):
            self._read_table(value)
        elif isinstance(value, float):
            self._note("float")
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
        elif value is None or isinstance(value, (bool, int, str, bytes)):
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

    def fingerprint(self, salt: str, grid: int) -> bytes:
        step, phase = GRIDS[grid]
        rounded = np.floor(self.numbers / step + phase).astype("<i8").tobytes()
        return hashlib.sha256(salt.encode() + b"\0" + self.form + rounded).digest()


def fingerprints(salt: str, answers: Sequence[Answer], grids: Iterable[int]) -> dict[int, bytes]:
    """Return the fingerprint on each of these grids."""
    reading = Reading(answers)
    return {grid: reading.fingerprint(salt, grid) for grid in grids}


def steady_fingerprint(
    salt: str, answers: Sequence[Answer], other: Sequence[Answer] | None = None
) -> tuple[int, bytes] | None:
    """Return the finest grid on which all platforms round alike, and the fingerprint on it.

    None if there is no such grid, or if the right answers `other` differ too little on it to be
    distinguished. (If they are equal, the test failed for a reason outside the answers, such as the
    text of an error.)
    """
    reading = Reading(answers)
    right = Reading(other or ())
    grid = next((number for number in range(len(GRIDS)) if reading.fits(number)), None)
    if grid is None:
        return None
    fingerprint = reading.fingerprint(salt, grid)
    alike = other is not None and fingerprint == right.fingerprint(salt, grid)
    if alike and not np.array_equal(reading.numbers, right.numbers):
        return None
    return grid, fingerprint


def salt_of(assignment: str, test: str) -> str:
    return f"{SCHEMA}/{assignment}/{test}"


def nudge_key(assignment: str, function: str) -> bytes:
    """Return the key of a nudge, which has no answers to be locked with: it only does not stand in clear."""
    return hashlib.sha256(f"{SCHEMA}/{assignment}/nudge/{function}".encode()).digest()


def _odd_number(number: float) -> str:
    if math.isnan(number):
        return "n"
    return "+" if number > 0 else "-"


def key_of(assignment: str, texts: Sequence[Any]) -> bytes:
    """Return a key for records that are locked once and opened with several fingerprints."""
    text = json.dumps(texts, ensure_ascii=False, sort_keys=True)
    return hashlib.sha256(f"{SCHEMA}/{assignment}/key/{text}".encode()).digest()


def lock(fingerprint: bytes, texts: Sequence[Any]) -> tuple[str, str]:
    """Return the storage key of this fingerprint, and the records (hints, questions and answers,
    nudges, programs) encrypted with it.
    """
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
        try:
            record = json.loads((folder / FILE_NAME).read_text("utf-8"))
            self.assignment = str(record["assignment"])
            locked = record if record["schema"] == SCHEMA else {"tests": {}}
            self._tests = dict(locked["tests"])
            self._answers = dict(locked.get("answers", {}))
            self._nudges = dict(locked.get("nudges", {}))
            self._catch = dict(locked.get("catch", {}))
            self.asks_earlier_questions = bool(record.get("earlier_questions", True))
            self._rewordings = dict(record.get("asked_again_as", {}))
            self.catch_points = record.get("catch_points")
        except (OSError, ValueError, KeyError, TypeError):  # disables hints only
            self.assignment = ""
            self._tests = {}
            self._answers = {}
            self._nudges = {}
            self._catch = {}
            self.asks_earlier_questions = False
            self._rewordings = {}
            self.catch_points = None

    def about(self, test: str, answers: Sequence[Answer]) -> tuple[MistakeHint, ...]:
        """Return the known mistakes with exactly these answers in this test."""
        records = self._opened(self._tests.get(test, {}), test, answers)
        return tuple(
            MistakeHint(**{**record, "fails": tuple(record["fails"])}) for record in records
        )

    def nudge(self, function: str) -> str:
        """Return the author's nudge for the gap in this function, or nothing."""
        nudges = open_lock(nudge_key(self.assignment, function), self._nudges)
        return str(nudges[0]) if nudges else ""

    @property
    def has_answers(self) -> bool:
        return bool(self._answers)

    def answers(self, test: str, answers: Sequence[Answer]) -> list[tuple[str, str]]:
        """Return the questions of the test's part with their answers, if right code gives these answers in this test."""
        return [
            (question, answer)
            for question, answer in self._opened(self._answers.get(test, {}), test, answers)
        ]

    def asked_again(self, question: str) -> str:
        """Return a question in words that stand alone, without the lead that it has in the text."""
        words = str(self._rewordings.get(question, "")) or question
        words = re.sub(rf"^({QUESTION_LEADS})[.:]? ", "", words)
        return words[:1].upper() + words[1:]

    @property
    def catches_from(self) -> str:
        """From when on programs can be caught, as a moment in ISO's form; "" if that is always."""
        return str(self._catch.get("from", ""))

    @property
    def parts_to_catch(self) -> tuple[str, ...]:
        """The parts with programs to catch."""
        return tuple(self._catch.get("parts", ()))

    def programs(self, part: str, test: str, answers: Sequence[Answer]) -> list[dict[str, Any]]:
        """Return the records of a part's wrong programs, if code that passes gives these answers in this test."""
        grids = self._catch.get("keys", {}).get(test, {})
        for key in self._opened(grids, f"catch/{test}", answers):
            return open_lock(bytes.fromhex(key), self._catch["parts"].get(part, {}))
        return []

    def _opened(
        self, grids: Mapping[str, Mapping[str, str]], test: str, answers: Sequence[Answer]
    ) -> list[Any]:
        if not answers:
            return []
        keys = fingerprints(salt_of(self.assignment, test), answers, map(int, grids))
        records: list[Any] = []
        for grid, key in keys.items():
            records += open_lock(key, grids[str(grid)])
        return records


def choose(
    hints_of: Mapping[str, Sequence[MistakeHint]], failed: Collection[str], passed: Collection[str]
) -> dict[str, MistakeHint]:
    """Choose one hint for each test that failed; tests whose answers are no known mistake's are left out.

    A mistake that fails a test that passed is not the one. Mistakes that fail just the tests that
    failed are preferred, then those that explain most of them. If several remain, no name is given.
    """
    possible: dict[str, list[MistakeHint]] = {}
    frequency: Counter[str] = Counter()
    for test, hints in hints_of.items():
        possible[test] = [hint for hint in hints if set(hint.fails).isdisjoint(passed)]
        frequency.update(hint.id for hint in possible[test])

    def rank(hint: MistakeHint) -> tuple[bool, int]:
        return set(failed) <= set(hint.fails), frequency[hint.id]

    chosen = {}
    for test, hints in possible.items():
        best = max(map(rank, hints), default=None)
        if best is not None:
            chosen[test] = _one_of([hint for hint in hints if rank(hint) == best])
    return chosen


def _one_of(equals: Sequence[MistakeHint]) -> MistakeHint:
    """Return the only hint, or one without a name that stands for mistakes with equal answers."""
    in_order = sorted(equals, key=lambda hint: hint.order)
    first = in_order[0]
    if len({hint.title for hint in equals}) == 1:
        return first
    places = {hint.place for hint in equals}
    place = first.place if len(places) == 1 else ""
    return MistakeHint(
        "", "", question_of([hint.hint for hint in in_order]), place, first.order, first.fails
    )
