"""Decoded values are checked for their type before they are turned into text or iterated: a count, not a time."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch

from autograder.bridge.outside.connection import Connection
from autograder.bridge.outside.mirror import RemoteModule
from autograder.bridge.outside.remote_call import call
from autograder.bridge.shared import wire
from autograder.bridge.shared.errors import StudentCrashedError, told_exception
from autograder.grading.notes import LONGEST_FLAG, MOST_FLAGS, limited_notes

COSTLY = torch.zeros(6, 6)
ERROR: dict[str, Any] = {"type": "ValueError", "bases": ["ValueError"], "text": "no", "frames": []}
FRAME = ["adding.py", 3, "add", "return a", "", "", "", 0]
REPLY: dict[str, Any] = {
    "call": 1, "result": torch.ones(2), "differentiable": [True], "mutated": [], "refilled": [], "modules": [],
    "generators": [],
}  # fmt: skip
WITHOUT_WEIGHTS: dict[str, Any] = {"kind": "module", "parameters": [], "buffers": []}
MODULE = {**WITHOUT_WEIGHTS, "modules": [["", "Head", True, ""]]}


@pytest.fixture(autouse=True)
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was done with a tensor that takes long: turned into text, or iterated over."""
    done: list[str] = []
    texts, rows = torch.Tensor.__repr__, torch.Tensor.__iter__
    monkeypatch.setattr(
        torch.Tensor,
        "__repr__",
        lambda tensor, **more: done.append("repr") or texts(tensor, **more),
    )
    monkeypatch.setattr(
        torch.Tensor, "__iter__", lambda tensor: done.append("iter") or rows(tensor)
    )
    monkeypatch.setattr(torch.Tensor, "__str__", torch.Tensor.__repr__, raising=False)
    return done


class Replies(Connection):
    """A connection to a worker that always answers the same."""

    def __init__(self, reply: dict[str, Any]) -> None:
        super().__init__()
        self.reply = reply

    def exchange(
        self, operation: str, arguments: dict[str, Any], seconds: float | None
    ) -> dict[str, Any]:
        return self.reply


@pytest.mark.parametrize("field", ERROR)
@pytest.mark.parametrize("value", [COSTLY, [COSTLY] * 20, {"a": COSTLY}])
def test_field_of_an_exception_is_not_turned_into_text_before_its_type_is_known(
    read: list[str], field: str, value: Any
) -> None:
    with pytest.raises(TypeError):
        told_exception({**ERROR, field: value})
    assert read == []


@pytest.mark.parametrize("number", range(len(FRAME)))
def test_field_of_a_frame_is_not_turned_into_text_before_its_type_is_known(
    read: list[str], number: int
) -> None:
    frame = [*FRAME[:number], COSTLY, *FRAME[number + 1 :]]
    with pytest.raises(TypeError):
        told_exception({**ERROR, "frames": [frame]})
    assert read == []
    assert told_exception({**ERROR, "frames": [FRAME]}).frames[0].line == 3


@pytest.mark.parametrize("field", sorted(REPLY.keys() - {"result"}))
@pytest.mark.parametrize("value", [COSTLY, [COSTLY], [[COSTLY, COSTLY]], {"a": COSTLY}])
def test_field_of_a_reply_is_checked_before_it_is_read(
    read: list[str], field: str, value: Any
) -> None:
    if field == "generators" and isinstance(value, list):
        pytest.skip("no more of them are read than were sent")
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(StudentCrashedError):
        call(Replies({"ok": {**REPLY, field: value}}), [None, ["f"]], (x,), {})
    assert read == []


@pytest.mark.parametrize("field", ["parameters", "buffers", "modules"])
@pytest.mark.parametrize("value", [COSTLY, [COSTLY], [["w", COSTLY, COSTLY]], [[COSTLY] * 4]])
def test_description_of_a_module_is_checked_before_it_is_read(
    read: list[str], field: str, value: Any
) -> None:
    with pytest.raises(StudentCrashedError):
        RemoteModule(Replies({}), wire.Handle(0, {**MODULE, field: value}))
    assert read == []


QUESTION: dict[str, Any] = {"callback": 0, "path": [], "grad": True, "args": (), "kwargs": {}}


@pytest.mark.parametrize(
    "question",
    [
        *({**QUESTION, field: COSTLY} for field in QUESTION),
        {**QUESTION, "path": [COSTLY]},
        {**QUESTION, "path": ["__getattr__"], "args": (COSTLY,)},
        {**QUESTION, "args": (COSTLY,)},
        {"pull_back": COSTLY, "gradients": []},
        {"pull_back": 1, "gradients": COSTLY},
    ],
)
def test_question_of_the_student_s_code_is_checked_before_it_is_read(
    read: list[str], question: dict
) -> None:
    connection = Replies({})
    table: dict[Any, int] = {}
    connection.register(lambda key=None: table[key])  # a KeyError quotes its key
    assert "error" in connection.answer_callback(question)
    assert read == []


def same_hash(count: int) -> list[tuple[int, ...]]:
    """Tuples of -1 and -2, whose hashes are equal: all of one length have one hash."""
    return [tuple(-1 - (number >> bit & 1) for bit in range(10)) for number in range(count)]


@pytest.mark.parametrize("kind", ["!set", "!frozenset", "!dict"])
def test_many_keys_with_one_hash_are_refused(kind: str) -> None:
    def decoded(keys: list[tuple[int, ...]]) -> Any:
        listed = [{"!tuple": list(key)} for key in keys]
        content: list[Any] = [[key, 0] for key in listed] if kind == "!dict" else listed
        return wire.loads(json.dumps({kind: content}).encode(), b"")

    assert len({hash(key) for key in same_hash(900)}) == 1
    assert len(decoded(same_hash(wire.MAX_SAME_HASH))) == wire.MAX_SAME_HASH
    with pytest.raises(wire.WireError, match="the same hash"):
        decoded(same_hash(900))


def test_notes_of_one_kind_are_limited_in_number_and_length() -> None:
    """Thousands of look-ups must not fill the report; other kinds of notes are counted apart."""
    look_ups = (f"line {number} looks up `{'a' * 1000}`" for number in range(12_000))
    notes = limited_notes(look_ups)
    assert len(notes) == MOST_FLAGS + 1
    assert max(map(len, notes)) <= LONGEST_FLAG + 2
    assert notes[-1] == f"There are {12_000 - MOST_FLAGS} more notes of this kind."


# ------------------------------------------------------------------ gradients that a worker tells
