"""A connection to a trusted module in this process, such as a known mistake, using the frames of the wire format."""

import random
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.random.mtrand import get_bit_generator, set_bit_generator

from autograder.bridge.inside.entries import Entries
from autograder.bridge.inside.server import Server, answer, unsendable
from autograder.bridge.outside.connection import Connection, too_much_to_send
from autograder.bridge.shared import wire


def called_name(server: Server, target: Sequence[Any]) -> str:
    """Return the function that a request calls, such as `add` or `Total.push`."""
    handle, path = target
    owner = [] if handle is None else [type(server.objects[handle.number]).__name__]
    return ".".join([*owner, *(path or ["forward"])])


class LoopbackConnection(Connection):
    """A connection to a server in this process, for a trusted module with its own random state.

    If it `records`, a test fails for forbidden names as in grading.
    """

    def __init__(self, server: Server, records: bool = False) -> None:
        super().__init__()
        self.server = server
        self._records = records
        server.exchange = self._answer_question
        torch_state, _, python_state = _random_state()
        self._other_random_numbers = torch_state, np.random.MT19937(), python_state

    @contextmanager
    def recording(self, names: Sequence[str]) -> Iterator[None]:
        """As for any connection; the module, or the notebook that it shows, may hold the names already."""
        if not (self._records and names):
            yield
            return
        entries = Entries(names)
        if self.server.words is not None:
            entries.expect(self.server.words)
        entries.begin(names)
        self.server.entries = entries
        with entries.install(self.server.module, sys.modules["__main__"]):
            yield

    def exchange(
        self, operation: str, arguments: dict[str, Any], seconds: float | None
    ) -> dict[str, Any]:
        try:
            arguments = _travelled(arguments, self.register, wire.MAX_DATA)
        except wire.WireError as error:
            raise too_much_to_send(error) from None
        with self._sides_changed():
            reply = answer(self.server, operation, arguments)
        try:
            return _travelled(reply, self.server.register, wire.MAX_TEXT)
        except wire.WireError as error:
            return {"error": unsendable(error)}

    def _answer_question(self, question: dict[str, Any]) -> dict[str, Any]:
        frame = _travelled(question, self.server.register, wire.MAX_TEXT)
        with self._sides_changed():
            reply = self.answer_callback(frame)
        try:
            return _travelled(reply, self.register, wire.MAX_DATA)
        except wire.WireError as error:
            return self.refused(error)

    @contextmanager
    def _sides_changed(self) -> Iterator[None]:
        """Switch the random state: the module's inside a request, the test's inside a callback."""
        self._change_sides()
        try:
            yield
        finally:
            self._change_sides()

    def _change_sides(self) -> None:
        here = _random_state()
        torch_state, bit_generator, python_state = self._other_random_numbers
        torch.default_generator.set_state(torch_state)
        set_bit_generator(bit_generator)
        random.setstate(python_state)
        self._other_random_numbers = here


def _travelled(value: dict[str, Any], register: wire.Register, max_text: int) -> dict[str, Any]:
    received: dict[str, Any] = wire.parse(wire.dumps(value, register, max_text), max_text)
    return received


def _random_state() -> tuple[torch.Tensor, Any, Any]:
    """Return the random state of PyTorch, NumPy and Python; NumPy's is its generator, which is swapped as a whole."""
    return torch.default_generator.get_state(), get_bit_generator(), random.getstate()
