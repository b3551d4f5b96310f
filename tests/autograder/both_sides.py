"""A student's text behind the protocol: in this process, and in a worker."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

from autograder.course.config import Limits
from autograder.sandbox.inside.server import Server
from autograder.sandbox.outside.connection import Connection
from autograder.sandbox.outside.launcher import Sandbox
from autograder.sandbox.outside.loopback import LoopbackConnection
from autograder.sandbox.outside.worker_connection import WorkerConnection

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
