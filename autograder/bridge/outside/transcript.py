"""The transcript of a test: the answers of a student's code, recorded for comparison with known mistakes.

Two transcripts are equal if all answers are: values, gradients, exceptions by type and by messages
of Python or PyTorch, and parameters of new modules by name and shape (their random values do not
matter).
"""

import cmath
import hashlib
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from autograder.bridge.outside.replay import Exchange
from autograder.bridge.shared import claims
from autograder.bridge.shared.containers import mapped
from autograder.bridge.shared.errors import MIRRORED, StudentError, StudentRaisedError
from autograder.bridge.shared.wire import Handle, as_bytes

_INSIDE = ("call", "generators")  # in the reply to a call: its number, and the random state
MOST_NUMBERS = 1 << 14  # larger tensors and arrays are sampled at a fixed stride
MOST_TEXT = 1 << 10  # longer texts are stored as a digest
MOST_BYTES = 64 << 20  # of transcripts that are kept whole
OBJECT_BYTES = 64  # roughly what a small object of Python takes
RELATIVE = 1e-5
ABSOLUTE = 1e-7


@dataclass(frozen=True)
class Answer:
    """One answer: the `operation` and `target` of the request, and the returned `value`.

    `buffers` are the shapes of the buffers of new modules.
    """

    operation: str
    target: str
    value: Any
    buffers: tuple[tuple[int, ...], ...] = ()


class Transcript:
    """The answers of one test, in order.

    `exchanges` are what the test sent and the digests of the replies, if they are to be repeated.
    """

    def __init__(self, answers: Iterable[Answer] = ()) -> None:
        self.answers = list(answers)
        self.exchanges: Sequence[Exchange] = ()

    def record(self, operation: str, arguments: dict[str, Any], value: Any) -> None:
        if operation == "call":  # the numbers of its objects vary
            changes = claims.rows(claims.table(value)["modules"], int, dict)
            value = {**value, "modules": [_by_name(change) for _, change in changes]}
        self.add(
            Answer(
                operation, _target(arguments), _outside(value), tuple(sorted(_buffers_in(value)))
            )
        )

    def record_error(self, operation: str, arguments: dict[str, Any], error: StudentError) -> None:
        bases = error.remote.bases if isinstance(error, StudentRaisedError) else ()
        builtin = (base for base in bases if base in MIRRORED and base in type(error).__name__)
        kind = next(builtin, type(error).__name__)
        self.add(Answer(operation, _target(arguments), ("raised", kind, _words_of_library(error))))

    def record_beside(self, kind: str, value: Any) -> None:
        """Record printed text, which came with an answer."""
        self.add(Answer(kind, "", _outside(value)))

    def add(self, answer: Answer) -> None:
        self.answers.append(answer)

    @property
    def is_shortened(self) -> bool:
        """Whether digests stand in place of the answers."""
        return any(isinstance(answer.value, Digest) for answer in self.answers)

    def same_as(self, other: "Transcript") -> bool:
        return len(self.answers) == len(other.answers) and self.begins_like(other)

    def begins_like(self, other: "Transcript", known: int = 0) -> bool:
        """Whether the first answers equal those of `other`; the first `known` are known to be equal."""
        return self.equal_answers(other, known) == len(other.answers)

    def equal_answers(self, other: "Transcript", known: int = 0) -> int:
        """The number of answers before the first that is different."""
        pairs = enumerate(zip(self.answers[known:], other.answers[known:]), known)
        end = min(len(self.answers), len(other.answers))
        return next((number for number, pair in pairs if not _same_answer(*pair)), end)


@dataclass(frozen=True)
class Digest:
    """What is left of an answer for which there is no room: another one is the same only to the last bit."""

    sha256: bytes

    @classmethod
    def of(cls, value: Any) -> "Digest":
        if isinstance(value, Digest):
            return value
        text = repr(mapped(_in_short, value)).encode("utf-8", "backslashreplace")
        return cls(hashlib.sha256(text).digest())


class KeptTranscripts:
    """Transcripts that are kept for a comparison.

    When they take too much room, the oldest become digests.
    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._bytes = 0
        self._whole: deque[tuple[Transcript, int]] = deque()

    def add(self, transcript: Transcript) -> None:
        size = sum(_bytes_of(answer.value) for answer in transcript.answers)
        self._whole.append((transcript, size))
        self._bytes += size
        while self._bytes > self._most_bytes:
            oldest, size = self._whole.popleft()
            oldest.answers = [
                replace(answer, value=Digest.of(answer.value)) for answer in oldest.answers
            ]
            self._bytes -= size


def _bytes_of(value: Any) -> int:
    if isinstance(value, torch.Tensor | np.ndarray):
        return OBJECT_BYTES + value.nbytes
    if isinstance(value, dict):
        return OBJECT_BYTES + sum(_bytes_of(key) + _bytes_of(item) for key, item in value.items())
    if isinstance(value, list | tuple | set | frozenset):
        return OBJECT_BYTES + sum(map(_bytes_of, value))
    return OBJECT_BYTES + (len(value) if isinstance(value, str | bytes) else 0)


def _in_short(leaf: Any) -> Any:
    """Return what tells a tensor, an array or a set from others of its kind; another leaf is itself."""
    if isinstance(leaf, torch.Tensor):
        numbers = b"" if leaf.is_meta else as_bytes(leaf).numpy().tobytes()
        return (
            "tensor",
            leaf.dtype,
            tuple(leaf.shape),
            leaf.device,
            hashlib.sha256(numbers).digest(),
        )
    if isinstance(leaf, np.ndarray):
        return "array", leaf.dtype, leaf.shape, hashlib.sha256(leaf.tobytes()).digest()
    return (type(leaf), sorted(leaf, key=repr)) if isinstance(leaf, set | frozenset) else leaf


def _target(arguments: dict[str, Any]) -> str:
    target = arguments.get("target")
    return ".".join(target[1]) if target else ""


def _words_of_library(error: StudentError) -> str:
    """Return the message of Python or PyTorch; "" for that of the student's own `raise` or `assert`."""
    if not isinstance(error, StudentRaisedError) or not error.remote.frames:
        return ""
    raised_by_hand = error.remote.frames[-1].code.startswith(("raise", "assert"))
    return "" if raised_by_hand else error.remote.text[:300]


def _buffers_in(value: Any) -> Iterator[tuple[int, ...]]:
    if isinstance(value, Handle):
        value = value.description if isinstance(value.description, dict) else {}
        for _, buffer, _ in claims.rows(value.get("buffers", ()), object, object, object):
            if isinstance(buffer, torch.Tensor):
                yield tuple(size for size in buffer.shape if size != 1)
    elif isinstance(value, dict | list | tuple):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _buffers_in(item)


def _outside(value: Any) -> Any:
    """Return the observable value: objects are reduced to the names and shapes of their parameters."""
    if isinstance(value, Handle):
        return _outside_of_object(value.description)
    if isinstance(value, torch.Tensor):  # copied, as the test may change what it received
        if value.numel() <= MOST_NUMBERS:
            return value.detach().clone()
        return tuple(value.shape), value.flatten()[:: value.numel() // MOST_NUMBERS + 1].clone()
    if isinstance(value, np.ndarray):
        if value.size <= MOST_NUMBERS:
            return value.copy()
        return value.shape, value.ravel()[:: value.size // MOST_NUMBERS + 1].copy()
    if isinstance(value, (str, bytes)) and len(value) > MOST_TEXT:
        raw = value.encode("utf-8", "replace") if isinstance(value, str) else value
        return type(value).__name__, len(value), hashlib.sha256(raw).hexdigest()
    if isinstance(value, dict):
        return {key: _outside(item) for key, item in value.items() if key not in _INSIDE}
    if isinstance(value, (list, tuple)):
        return type(value)(_outside(item) for item in value)
    return value


def _by_name(change: dict[str, Any]) -> dict[str, Any]:
    if "description" in change:
        return {"description": _outside_of_object(change["description"])}
    return {kind: _sorted_by_name(parts) for kind, parts in change.items()}


def _sorted_by_name(parts: Any) -> dict[str, Any]:
    return {name: parts[name] for name in sorted(map(claims.text, claims.table(parts)))}


def _outside_of_object(description: Any) -> Any:
    if not isinstance(description, dict) or description.get("kind") != "module":
        return "an object"
    parameters = sorted(
        (name, tuple(value.shape) if isinstance(value, torch.Tensor) else value, requires_grad)
        for name, value, requires_grad in claims.rows(
            description["parameters"], str, (str, torch.Tensor), bool
        )
    )
    buffers = list(claims.rows(description["buffers"], str, (str, torch.Tensor), bool))
    return {"parameters": parameters, "has buffers": bool(buffers)}


def _same_answer(a: Answer, b: Answer) -> bool:
    if (a.operation, a.target, a.buffers) != (b.operation, b.target, b.buffers):
        return False
    if isinstance(a.value, Digest) or isinstance(b.value, Digest):
        return Digest.of(a.value) == Digest.of(b.value)
    return (
        _same_in_any_order(a.value, b.value)
        if a.operation == "backward"
        else _same(a.value, b.value)
    )


def _same_in_any_order(ours: Any, theirs: Any) -> bool:
    """Whether gradients are equal in any order, as the order of parameters does not matter."""
    if type(ours) is not list or type(theirs) is not list or len(ours) != len(theirs):
        return _same(ours, theirs)
    unmatched = list(theirs)
    for gradient in ours:
        place = next((i for i, other in enumerate(unmatched) if _same(gradient, other)), None)
        if place is None:
            return False
        del unmatched[place]
    return True


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        return _same_tensor(a, b)
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return (
            a.shape == b.shape
            and a.dtype == b.dtype
            and np.allclose(a, b, RELATIVE, ABSOLUTE, equal_nan=True)
        )
    if type(a) is not type(b):
        return False
    if isinstance(a, float | complex):
        return cmath.isclose(a, b, rel_tol=RELATIVE, abs_tol=ABSOLUTE) or (a != a and b != b)
    if isinstance(a, dict):
        return list(a) == list(b) and all(_same(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(_same, a, b))
    return bool(a == b)


def _same_tensor(a: torch.Tensor, b: torch.Tensor) -> bool:
    if a.shape != b.shape or a.dtype != b.dtype or a.device != b.device:
        return False
    if a.is_meta:
        return True
    if not (a.is_floating_point() or a.is_complex()):
        return torch.equal(a, b)
    return torch.allclose(a, b, RELATIVE, ABSOLUTE, equal_nan=True)
