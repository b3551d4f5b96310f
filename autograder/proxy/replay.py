"""The replay cache: what tests and students' code said to each other, so that no exchange is computed twice.

All students of a run get the same inputs, so the next request of a test depends on the replies alone. Where a reply
was seen before, byte for byte, the next request is known and sent at once. If a whole test can be replayed like that,
and a submission passed it with these replies, the test is passed and its code does not run. At the first reply that
was never seen before, the test runs, and what was exchanged already is not exchanged again.

Requests are sent one at a time, as a test sends them, so student code cannot see later requests in advance.
"""

from __future__ import annotations

import hashlib
import socket
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from autograder.protocol import wire
from autograder.proxy.deadline import Deadline

MAX_BYTES = 64 << 20  # of all cached requests and nodes
NODE_BYTES = 512  # roughly what a node takes beside its frames
Reply = tuple[bytearray, bytearray]


@dataclass(frozen=True)
class Request:
    """A frame from the test. `seconds` is how long its reply may take; None when it answers a callback."""

    frame: bytes
    called: str = ""
    seconds: float | None = None


@dataclass
class Node:
    """A point in a test: the requests that it sends there, and the node that each known reply leads to."""

    requests: tuple[Request, ...] = ()
    replies: dict[bytes, Node] = field(default_factory=dict)
    passed: bool = False


class ReplayCache:
    """The known exchanges of a run, by test. When they take more than `max_bytes`, all are dropped."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._nondeterministic: set[str] = set()
        self.forget()

    def forget(self) -> None:
        """Drop everything, as for other inputs."""
        self._first: dict[str, Node] = {}
        self._frames: dict[bytes, bytes] = {}
        self._bytes = 0

    def first_node(self, test: str) -> Node | None:
        """The node where a test begins; None for a nondeterministic test."""
        return None if test in self._nondeterministic else self._first.setdefault(test, Node())

    def mark_nondeterministic(self, test: str) -> None:
        """Never replay this test: it sent another request after the same replies."""
        self._nondeterministic.add(test)

    def next_node(self, node: Node, requests: list[Request], reply: Reply) -> Node:
        """The node after these requests and this reply; created when it is new."""
        if not node.requests:
            node.requests = tuple(self._cached(each) for each in requests)
        digest = _digest(reply)
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
    """A worker's socket that records what passes through it in a `ReplayCache`, and replays what is known."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._cache: ReplayCache | None = None
        self._node: Node | None = None
        self._requests: list[Request] = []  # since the last reply
        self._sent_ahead: deque[bytes] = deque()
        self._received_ahead: deque[Reply | Exception] = deque()
        self._mismatch = False

    @property
    def diverged(self) -> bool:
        """Whether a test sent another request than before, or stopped before it had received every reply."""
        return self._mismatch or bool(self._sent_ahead or self._received_ahead)

    def disable(self) -> None:
        """Neither record nor replay what follows."""
        self._cache = self._node = None
        self._requests.clear()

    def replay(
        self,
        cache: ReplayCache,
        test: str,
        deadline_of: Callable[[str, float, float], Deadline],
        until: float,
    ) -> bool:
        """Replay a test as far as it is known, at most `until`; True when it is passed.

        If it is not, the test has to run; it then receives the replies that have already come.
        """
        node = cache.first_node(test)
        self._cache, self._node = cache, node
        self._requests.clear()
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
                return False
            self._received_ahead.append(reply)
            node = node.replies.get(_digest(reply))
        if node is None or not node.passed:
            return False
        self._sent_ahead.clear()
        self._received_ahead.clear()
        return True

    def mark_passed(self) -> None:
        """Remember that a submission with these replies passes the test."""
        if self._node is not None and not self._requests:
            self._node.passed = True

    def send(self, request: Request, deadline: wire.Deadline) -> None:
        """Send a frame, unless it was sent ahead; raises as `wire.send_frame`, and ConnectionError on divergence."""
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
            self._requests.clear()
        return reply


def _digest(reply: Reply) -> bytes:
    header, data = reply
    digest = hashlib.blake2b(len(header).to_bytes(4, "big"), digest_size=16)
    digest.update(header)
    digest.update(data)
    return digest.digest()
