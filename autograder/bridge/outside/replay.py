"""The replay cache: recorded exchanges between tests and students' code, so that none is computed twice.

All students of a run get the same inputs, so the next request of a test depends on the replies
alone, byte for byte. A test whose replies are all those of a submission that passed it passes
without running. Requests are sent one at a time, as a test sends them, so student code cannot see
later requests in advance.
"""

import hashlib
import re
import socket
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from autograder.bridge.inside.entries import Place
from autograder.bridge.shared import wire
from autograder.walls.outside.deadline import Deadline

MAX_BYTES = 64 << 20  # limit of all cached requests and nodes
NODE_BYTES = 512  # approximate size of a node without its frames
WITH_ERROR = re.compile(rb'\{"!table":\{"id":\d+,"error":')  # how the header of such a reply begins
# what stands at the end of a reply with forbidden names: each with its file and line
ENTERED = re.compile(rb',"entered":\[(?:\["[^"]*","(?:[^"\\]|\\.)*",\d+\],?)+\](?=\}\}\Z)')
MOST_KEPT = 8 << 20  # bytes of the requests of one test that are kept beside the cache
Reply = tuple[bytearray, bytearray]


@dataclass(frozen=True)
class Request:
    """A frame from the test.

    `seconds` is the time limit of its reply; None if it answers a callback.
    """

    frame: bytes
    called: str = ""
    seconds: float | None = None


@dataclass
class Node:
    """A state of a test: the requests that it sends next, and the node for each known reply.

    `entered` are the forbidden names that ran in a test which ended here.
    """

    requests: tuple[Request, ...] = ()
    replies: "dict[bytes, Node]" = field(default_factory=dict)
    passed: bool = False
    entered: Mapping[str, Place] = field(default_factory=dict)


class Exchange(NamedTuple):
    """What a test sent before a reply or a question, and the digest of what a test can see of that."""

    frames: tuple[bytes, ...]
    seen: bytes


class ReplayCache:
    """The known exchanges of a run, by test. Above `max_bytes`, all are dropped."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        # tests that sent different requests after equal replies
        self.nondeterministic: set[str] = set()
        self.forget()

    def forget(self) -> None:
        """Drop all exchanges, for example for other inputs."""
        self._first: dict[str, Node] = {}
        self._frames: dict[bytes, bytes] = {}
        self._bytes = 0

    def first_node(self, test: str) -> Node | None:
        """Return a test's first node; None for a nondeterministic test."""
        return None if test in self.nondeterministic else self._first.setdefault(test, Node())

    def next_node(self, node: Node, requests: list[Request], reply: Reply) -> Node:
        """Return the node after these requests and this reply, creating it if necessary."""
        if not node.requests:
            node.requests = tuple(self._cached(request) for request in requests)
        digest = _digest(*reply)
        if digest not in node.replies:
            self._bytes += NODE_BYTES
            node.replies[digest] = Node()
        if self._bytes > self._max_bytes:
            self.forget()
        return node.replies[digest]

    def _cached(self, request: Request) -> Request:
        if request.frame not in self._frames:
            self._bytes += len(request.frame)
            self._frames[request.frame] = request.frame
        return Request(self._frames[request.frame], request.called, request.seconds)


class ReplaySocket:
    """A wrapper of a worker's socket that records its traffic in a `ReplayCache`, and replays known requests."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._cache: ReplayCache | None = None
        self._node: Node | None = None
        self._requests: list[Request] = []  # since the last reply
        self._sent_ahead: deque[bytes] = deque()
        self._received_ahead: deque[Reply | Exception] = deque()
        self._mismatch = False
        self._exchanges: list[Exchange] = []  # of the present test
        self._kept_bytes = 0

    @property
    def exchanges(self) -> Sequence[Exchange]:
        """All exchanges of this test, or none if they take too much room."""
        return tuple(self._exchanges) if self._kept_bytes <= MOST_KEPT else ()

    def begin(self) -> None:
        """Begin a test."""
        self._exchanges.clear()
        self._kept_bytes = 0
        self._requests.clear()

    @property
    def diverged(self) -> bool:
        """Whether a test sent a different request than before, or stopped before the last reply."""
        return self._mismatch or bool(self._sent_ahead or self._received_ahead)

    def disable(self) -> None:
        """Stop recording and replaying."""
        self._cache = self._node = None
        self._requests.clear()

    def replay(
        self,
        cache: ReplayCache,
        test: str,
        deadline_of: Callable[[str, float, float], Deadline],
        until: float,
    ) -> Node | None:
        """Replay a test as far as it is known, at most `until`; return its last node if it is passed.

        Otherwise the test has to run; it then receives the recorded replies first.
        """
        node = cache.first_node(test)
        self._cache = cache
        self._node = node
        deadline: wire.Deadline = until
        while node is not None and node.requests and not node.passed:
            try:
                for request in node.requests:
                    self._sent_ahead.append(request.frame)
                    if request.seconds is not None:
                        deadline = deadline_of(request.called, request.seconds, until)
                wire.send_frame(
                    self._socket, b"".join([request.frame for request in node.requests]), deadline
                )
                reply = wire.receive_frame(self._socket, deadline)
            except (TimeoutError, EOFError, OSError, wire.WireError) as error:
                self._received_ahead.append(error)
                return None
            self._received_ahead.append(reply)
            node = node.replies.get(_digest(*reply))
        if node is None or not node.passed:
            return None
        self._sent_ahead.clear()
        self._received_ahead.clear()
        return node

    def mark_passed(self, entered: Mapping[str, Place]) -> None:
        """Record that a submission with these replies passes the test, and what ran in it."""
        if self._node is not None and not self._requests:
            self._node.passed = True
            self._node.entered = dict(entered)

    def send(self, request: Request, deadline: wire.Deadline) -> None:
        """Send a frame unless it was already sent; raises as `wire.send_frame`, ConnectionError on divergence."""
        self._requests.append(request)
        if not self._sent_ahead:
            wire.send_frame(self._socket, request.frame, deadline)
        elif self._sent_ahead.popleft() != request.frame:
            self._mismatch = True
            raise ConnectionError("the test sent another request before")

    def receive(self, deadline: wire.Deadline) -> Reply:
        """Receive a frame; raises as `wire.receive_frame`."""
        reply = (
            self._received_ahead.popleft()
            if self._received_ahead
            else wire.receive_frame(self._socket, deadline)
        )
        if isinstance(reply, Exception):
            raise reply
        if self._cache is not None and self._node is not None:
            self._node = self._cache.next_node(self._node, self._requests, reply)
        self._keep(reply)
        self._requests.clear()
        return reply

    def _keep(self, reply: Reply) -> None:
        frames = tuple(request.frame for request in self._requests)
        self._kept_bytes += sum(map(len, frames))
        if self._kept_bytes <= MOST_KEPT:
            self._exchanges.append(Exchange(frames, digest_of_seen(*reply)))


def digest_of_seen(header: bytes | bytearray, data: bytes | bytearray) -> bytes:
    """Return the digest of a reply without what differs between texts with the same answers: the lines
    where an exception was raised or a forbidden name was met.
    """
    if WITH_ERROR.match(header):
        header = header.partition(b',"frames":')[0]
    else:
        header = ENTERED.sub(b"", header)
    return _digest(header, data)


def _digest(header: bytes | bytearray, data: bytes | bytearray) -> bytes:
    digest = hashlib.blake2b(len(header).to_bytes(4, "big"), digest_size=16)
    digest.update(header)
    digest.update(data)
    return digest.digest()
