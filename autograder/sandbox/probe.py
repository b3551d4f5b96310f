"""A worker's test of its own isolation; answers with one JSON object."""

from __future__ import annotations

import importlib.util
import json
import os
import socket
from collections.abc import Callable

PACKAGES = ("torch", "numpy", "IPython")


def report_isolation(channel: socket.socket) -> None:
    """Read the path of a file that must be hidden; report failed boundaries and missing features."""
    hidden = channel.recv(4096).decode()
    attempts: dict[str, Callable[[], object]] = {
        "read a file of this machine": lambda: os.close(os.open(hidden, os.O_RDONLY)),
        "open a network socket": lambda: socket.socket().close(),
        "start a process": _fork,
        "write outside its own folder": lambda: os.open("/usr/probe", os.O_WRONLY | os.O_CREAT),
        "stop another process": lambda: os.kill(os.getpid() + 1, 0),
    }
    succeeded = [what for what, attempt in attempts.items() if _succeeds(attempt)]
    facts = {"succeeded": succeeded, "unreadable": [name for name in PACKAGES if not _is_readable(name)]}
    channel.sendall(json.dumps(facts).encode())


def _succeeds(attempt: Callable[[], object]) -> bool:
    try:
        attempt()
    except ProcessLookupError:  # no such process, but the signal would have been allowed
        return True
    except OSError:
        return False
    return True


def _is_readable(package: str) -> bool:
    spec = importlib.util.find_spec(package)
    return spec is not None and spec.origin is not None and os.access(spec.origin, os.R_OK)


def _fork() -> None:
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
