"""A student's text behind the protocol: in this process, and in a worker."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

from autograder.bridge.inside.server import Server
from autograder.bridge.outside.connection import Connection
from autograder.bridge.outside.loopback import LoopbackConnection
from autograder.bridge.outside.worker_connection import WorkerConnection
from autograder.course.config import Limits
from autograder.walls.outside.launcher import Sandbox

SIDES = ("loopback", "worker")


@contextmanager
def connected(side: str, sandbox: Sandbox, text: str, filename: str) -> Iterator[Connection]:
    """Load the text on this side, and begin a test."""
    connection: Connection
    if side == "loopback":
        connection = LoopbackConnection(Server(ModuleType("submission")))
    else:
        connection = WorkerConnection(sandbox.spawn(Limits()), Limits().call_seconds)
    try:
        assert connection.request("load", text=text, filename=filename)["errors"] == []
        connection.start_test(3)
        yield connection
    finally:
        connection.close()
