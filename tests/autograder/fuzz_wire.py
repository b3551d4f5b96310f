"""Fuzz the wire format: valid frames are mutated, in bytes, lengths, JSON values and tags.

Each must be decoded or refused with a WireError, and decoded values must round-trip.
"""

from __future__ import annotations

import collections
import datetime
import json
import random
import traceback
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import torch

from autograder.bridge.shared import wire

TAGS = [*wire.TAGS, "!none", "!", "tuple", "!tensor "]
ODD: list[Any] = [
    None, True, -1, 0, 1, 2**26, 2**31, 2**53, 2**63 - 1, 2**63, -(2**63), 10**30, 0.5, -0.0, float("nan"),
    float("inf"), "", "a", "\ud800", "float32", "uint8", "bool", "bfloat16", [], {}, [[]], {"!tuple": []},
    {"!tensor": ["uint8", 1]}, {"!opaque": "x"}, {"!table": {"a": 1}}, {"!dict": [[1, 2], [1, 3]]}, {"!dict": [[[], 1]]},
]  # fmt: skip


def samples() -> list[Any]:
    """Return encodable values of every kind."""
    tensors = [torch.arange(n).to(dtype) for n, dtype in enumerate(wire.TORCH_DTYPES.values())]
    return [
        None, True, 7, -1.5, float("nan"), "text", "ä" * 20_000, b"bytes", (1, (2, [3, {"a": (None,)}])), tensors,
        torch.empty(2, 0, 3), torch.tensor(3.0), torch.empty(7, 5, device="meta"), torch.bfloat16,
        np.arange(6.0).reshape(2, 3), np.array(True), np.float32(2), torch.Generator().manual_seed(1),
        1 << 90, 1j, Fraction(1, 3), Decimal("0.1"), datetime.date(2026, 1, 1), datetime.datetime(2026, 1, 1),
        random.Random(1), np.random.default_rng(1), np.arange(3, dtype="uint32"),
        {1: "a", None: [torch.ones(3)], (1, "b"): {}}, wire.Opaque("generator"), wire.Handle(3, {"kind": "object"}),
        wire.CallableHandle(1, {"training": True}), [[[[]]]], list(range(100)),
    ]  # fmt: skip


def split(frame: bytes) -> tuple[bytes, bytes]:
    """Return the header and the data of a frame."""
    length, _ = wire.LENGTHS.unpack_from(frame)
    start = wire.LENGTHS.size
    return frame[start : start + length], frame[start + length :]


def flip_bytes(header: bytes, data: bytes, chance: random.Random) -> tuple[bytes, bytes]:
    mutable = bytearray(header)
    for _ in range(chance.randint(1, 4)):
        if mutable:
            mutable[chance.randrange(len(mutable))] = chance.choice(
                b'[]{}",:!0123456789eE-\\\x00\xff'
            )
    return bytes(mutable), data


def cut_or_double(header: bytes, data: bytes, chance: random.Random) -> tuple[bytes, bytes]:
    at, to = sorted((chance.randint(0, len(header)), chance.randint(0, len(header))))
    return header[:at] + header[at:to] * chance.choice((0, 2, 3)) + header[to:], data


def change_data(header: bytes, data: bytes, chance: random.Random) -> tuple[bytes, bytes]:
    noise = chance.randbytes(chance.randint(0, 64))
    at = chance.randint(0, len(data))
    return header, chance.choice(
        (data[:at], data + noise, data[:at] + noise + data[at + len(noise) :], noise)
    )


def change_values(header: bytes, data: bytes, chance: random.Random) -> tuple[bytes, bytes]:
    return json.dumps(_changed(json.loads(header), chance)).encode(), data


def wrap(header: bytes, data: bytes, chance: random.Random) -> tuple[bytes, bytes]:
    times = chance.choice((1, 5, 39, 41, 90, 2000, 60_000))
    before, after = chance.choice(
        (
            (b"[", b"]"),
            (b'{"!tuple":[', b"]}"),
            (b'{"!dict":[[1,', b"]]}"),
            (b'{"!table":{"a":', b"}}"),
            (b'{"!handle":[1,', b"]}"),
        )
    )
    return before * times + header + after * times, data


def _changed(value: Any, chance: random.Random) -> Any:
    if chance.random() < 0.15:
        return chance.choice(ODD)
    if isinstance(value, list):
        items = [_changed(item, chance) for item in value]
        return items if chance.random() < 0.9 else items * 2
    if isinstance(value, dict):
        return {
            (chance.choice(TAGS) if chance.random() < 0.1 else tag): _changed(item, chance)
            for tag, item in value.items()
        }
    return value


MUTATIONS: tuple[Callable[[bytes, bytes, random.Random], tuple[bytes, bytes]], ...] = (
    flip_bytes, cut_or_double, change_data, change_values, wrap,
)  # fmt: skip


def outcome(header: bytes, data: bytes, max_text: int = wire.MAX_TEXT) -> str:
    """Return `read` or `refused`; any exception other than WireError is raised."""
    try:
        value = wire.loads(bytearray(header), bytearray(data), max_text)
    except wire.WireError:
        return "refused"
    wire.parse(wire.dumps(value), wire.MAX_DATA)
    return "read"


def fuzz(frames: int, seed: int) -> tuple[collections.Counter, list[str]]:
    """Return counts of outcomes by mutation, and tracebacks of unexpected exceptions."""
    chance = random.Random(seed)
    valid = [split(wire.dumps(value)) for value in samples()]
    counts: collections.Counter = collections.Counter()
    failures = []
    for _ in range(frames):
        header, data = chance.choice(valid)
        mutation = chance.choice(MUTATIONS)
        header, data = mutation(header, data, chance)
        if chance.random() < 0.3:
            header, data = flip_bytes(header, data, chance)
        try:
            counts[mutation.__name__, outcome(header, data)] += 1
        except Exception:
            counts[mutation.__name__, "FAILED"] += 1
            failures.append(f"{header[:300]!r} + {data[:100]!r}\n{traceback.format_exc()[-500:]}")
    return counts, failures
