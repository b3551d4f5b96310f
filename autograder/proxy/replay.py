"""What a test and a student's code say to each other, kept so that it is not worked out twice.

All students of a run meet the same inputs, so what a test says next depends on the answers alone. Where an answer
was heard before, byte for byte, the next question is known and asked at once; when a whole test went by like that,
and a student passed it with these answers, it is passed, and the test's own code need not run. At the first answer
that nobody gave before the test runs after all, and what was said and heard already is not said again.

Questions are sent one at a time, as a test sends them: nobody can look ahead at what will be asked.
"""

from __future__ import annotations

import hashlib
import socket
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from autograder.protocol import wire
from autograder.proxy.deadline import Patience

MAX_BYTES = 64 << 20  # of all that is kept
TURN_BYTES = 512  # what a turn takes beside its frames, about
Heard = tuple[bytearray, bytearray]


@dataclass(frozen=True)
class Said:
    """A frame from the test. `seconds` is how long its answer may take; None when it answers a call back."""

    frame: bytes
    called: str = ""
    seconds: float | None = None


@dataclass
class Turn:
    """A moment in a test: what it says there, and where each answer that was heard leads."""

    said: tuple[Said, ...] = ()
    answers: dict[bytes, Turn] = field(default_factory=dict)
    passed: bool = False


class Conversations:
    """The known conversations of a run, by the test's name. When they take too much room they are all forgotten."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._distrusted: set[str] = set()
        self.forget()

    def forget(self) -> None:
        """Begin anew: other inputs, other conversations."""
        self._first: dict[str, Turn] = {}
        self._frames: dict[bytes, bytes] = {}
        self._bytes = 0

    def first_turn(self, test: str) -> Turn | None:
        """Where every conversation of a test begins; None when the test does not repeat itself."""
        return None if test in self._distrusted else self._first.setdefault(test, Turn())

    def distrust(self, test: str) -> None:
        """This test said something else though it had heard the same: it is always run."""
        self._distrusted.add(test)

    def next_turn(self, turn: Turn, said: list[Said], heard: Heard) -> Turn:
        """The turn after what was said at this one, and heard; made when it is new."""
        if not turn.said:
            turn.said = tuple(self._kept(each) for each in said)
        answer = _digest(heard)
        if answer not in turn.answers:
            self._bytes += TURN_BYTES
            turn.answers[answer] = Turn()
        if self._bytes > self._max_bytes:
            self.forget()
        return turn.answers[answer]

    def _kept(self, said: Said) -> Said:
        if said.frame not in self._frames:
            self._bytes += len(said.frame)
            self._frames[said.frame] = said.frame
        return Said(self._frames[said.frame], said.called, said.seconds)


class Line:
    """A worker's socket in the middle of a conversation."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._known: Conversations | None = None
        self._turn: Turn | None = None
        self._said: list[Said] = []  # since the last answer
        self._said_ahead: deque[bytes] = deque()
        self._heard_ahead: deque[Heard | Exception] = deque()
        self._strayed = False

    @property
    def lost(self) -> bool:
        """Whether a test did not repeat itself: it said something else, or did not listen to the end."""
        return self._strayed or bool(self._said_ahead or self._heard_ahead)

    def keep_nothing(self) -> None:
        """What comes next belongs to no conversation that is kept."""
        self._known = self._turn = None
        self._said.clear()

    def recite(
        self, known: Conversations, test: str, patience: Callable[[str, float, float], Patience], until: float
    ) -> bool:
        """Go through a test as far as its questions are known, at most `until`; True when it is passed.

        If not, the test is to be run: it will meet the answers that have come.
        """
        turn = known.first_turn(test)
        self._known, self._turn = known, turn
        self._said.clear()
        deadline: wire.Deadline = until
        while turn is not None and turn.said and not turn.passed:
            try:
                for said in turn.said:
                    self._said_ahead.append(said.frame)
                    if said.seconds is not None:
                        deadline = patience(said.called, said.seconds, until)
                wire.send_frame(self._socket, b"".join([said.frame for said in turn.said]), deadline)
                heard = wire.receive_frame(self._socket, deadline)
            except (TimeoutError, EOFError, OSError, wire.WireError) as error:
                self._heard_ahead.append(error)
                return False
            self._heard_ahead.append(heard)
            turn = turn.answers.get(_digest(heard))
        if turn is None or not turn.passed:
            return False
        self._said_ahead.clear()
        self._heard_ahead.clear()
        return True

    def passed(self) -> None:
        """The test that has run is passed by whoever gives these answers."""
        if self._turn is not None and not self._said:
            self._turn.passed = True

    def say(self, said: Said, deadline: wire.Deadline) -> None:
        """Send a frame; raises as `wire.send_frame`."""
        self._said.append(said)
        if not self._said_ahead:
            wire.send_frame(self._socket, said.frame, deadline)
        elif self._said_ahead.popleft() != said.frame:
            self._strayed = True
            raise ConnectionError("the test said something else before")

    def hear(self, deadline: wire.Deadline) -> Heard:
        """Receive a frame; raises as `wire.receive_frame`."""
        heard = (
            self._heard_ahead.popleft() if self._heard_ahead else wire.receive_frame(self._socket, deadline)
        )
        if isinstance(heard, Exception):
            raise heard
        if self._known is not None and self._turn is not None:
            self._turn = self._known.next_turn(self._turn, self._said, heard)
            self._said.clear()
        return heard


def _digest(heard: Heard) -> bytes:
    header, data = heard
    digest = hashlib.blake2b(len(header).to_bytes(4, "big"), digest_size=16)
    digest.update(header)
    digest.update(data)
    return digest.digest()
