"""A connection to a trusted module in this process, such as a known mistake, using the frames of the wire format."""

import random
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
import torch
from numpy.random.mtrand import get_bit_generator, set_bit_generator

from autograder.bridge.inside.entries import Entries
from autograder.bridge.inside.server import Server, answer, reply_frame, unsendable
from autograder.bridge.outside.connection import Connection, too_much_to_send
from autograder.bridge.outside.replay import Exchange, digest_of_seen
from autograder.bridge.outside.transcript import Transcript
from autograder.bridge.shared import wire
from autograder.bridge.shared.errors import StudentError


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
        self.asked_more = False
        self._recorded: deque[Exchange] = deque()  # those that are to be repeated
        # the digest of the reply or question that comes next; empty unless requests are repeated
        self._seen = b""
        torch_state, _, python_state = _random_state()
        self._other_random_numbers = torch_state, np.random.MT19937(), python_state

    @contextmanager
    def recording(self, names: Sequence[str]) -> Iterator[None]:
        """As for any connection; the module, or the notebook that it shows, may hold the names already."""
        if not (self._records and names):
            yield
            return
        entries = Entries(names)
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
        return _received(self._reply(0, operation, arguments))

    def _reply(self, number: int, operation: str, arguments: dict[str, Any]) -> bytes:
        """Return the frame that a worker would send."""
        with self._sides_changed():
            reply = answer(self.server, operation, arguments)
        return reply_frame(self.server, number, reply)

    def repeat(self, exchanges: Iterable[Exchange], transcript: Transcript) -> bool:
        """Send what a test has sent to another module, without running it, and record the answers in `transcript`.

        Return whether all that the test sees of the replies is the same, byte for byte: then it would
        end in the same way. Nothing is sent after another reply, because the test might send something
        else. If the module `asked_more` of the test than the other one, the answers mean nothing.
        """
        self._begin(transcript)
        self.reads_output = False
        self.server.entries = Entries()
        self.asked_more = False
        self._recorded = deque(exchanges)
        try:
            return all(self._is_repeated(frame) for frame in self._recorded_frames())
        finally:
            self._seen = b""

    def _recorded_frames(self) -> Iterator[bytes]:
        while self._recorded:
            frames, self._seen = self._recorded.popleft()
            yield from frames

    def _is_repeated(self, frame: bytes) -> bool:
        """Send one request; return whether the reply is the recorded one, as far as a test sees it."""
        number, operation, arguments = wire.parse(frame, wire.MAX_DATA)
        if operation == wire.RETURN:  # the answer to a question that this module does not ask
            return False
        reply = self._reply(number, operation, arguments)
        with suppress(StudentError):
            self.answered(operation, arguments, lambda: _received(reply))
        return not number or digest_of_seen(*wire.header_and_data(reply)) == self._seen

    def _recorded_answer(self, question: dict[str, Any]) -> dict[str, Any] | None:
        """Return what the test answered to the same question; None if it was not asked that."""
        frame = wire.dumps(question, self.server.register, wire.MAX_TEXT)
        if digest_of_seen(*wire.header_and_data(frame)) != self._seen or not self._recorded:
            return None
        frames, seen = self._recorded[0]
        _, operation, reply = wire.parse(frames[-1], wire.MAX_DATA)
        if operation != wire.RETURN:
            return None
        self._recorded.popleft()
        self._seen = seen
        recorded: dict[str, Any] = reply
        return recorded

    def _answer_question(self, question: dict[str, Any]) -> dict[str, Any]:
        if self._seen:
            recorded = self._recorded_answer(question)
            if recorded is not None:
                return recorded
            self.asked_more = True
            return {"error": "The test does not run.", "type": "AttributeError"}
        frame = _travelled(question, self.server.register, wire.MAX_TEXT)
        with self._sides_changed():
            reply = self.answer_callback(frame)
        try:
            return _travelled(reply, self.register, wire.MAX_DATA)
        except wire.WireError as error:
            return self.refused(question, error)

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


def _received(reply: bytes) -> dict[str, Any]:
    try:
        received: dict[str, Any] = wire.parse(reply)
    except wire.WireError as error:
        return {"error": unsendable(error)}
    return received


def _random_state() -> tuple[torch.Tensor, Any, Any]:
    """Return the random state of PyTorch, NumPy and Python; NumPy's is its generator, which is swapped as a whole."""
    return torch.default_generator.get_state(), get_bit_generator(), random.getstate()
