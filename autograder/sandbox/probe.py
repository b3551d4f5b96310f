"""A worker's test of its own isolation; answers with one JSON object."""

from __future__ import annotations

import importlib.util
import json
import os
import socket

from autograder.sandbox.trials import fork_with, successes

PACKAGES = ("torch", "numpy", "IPython")


def report_isolation(channel: socket.socket) -> None:
    """Read the path of a file that must be hidden; report failed boundaries and missing features."""
    hidden = channel.recv(4096).decode()
    attempts = {
        "read a file of this machine": lambda: os.close(os.open(hidden, os.O_RDONLY)),
        "open a network socket": lambda: socket.socket().close(),
        "start a process": lambda: fork_with(os.fork),
        "write outside its own folder": lambda: os.open("/usr/probe", os.O_WRONLY | os.O_CREAT),
        "stop another process": lambda: os.kill(os.getpid() + 1, 0),
    }
    facts = {"succeeded": successes(attempts), "unreadable": [name for name in PACKAGES if not _is_readable(name)]}
    channel.sendall(json.dumps(facts).encode())


def _is_readable(package: str) -> bool:
    spec = importlib.util.find_spec(package)
    return spec is not None and spec.origin is not None and os.access(spec.origin, os.R_OK)
