"""What a worker tries in order to find out whether its walls hold; it answers one JSON object."""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Callable


def confess(channel: socket.socket) -> None:
    """Reads the path of a file that must be hidden; says which walls did not hold, and a few facts."""
    hidden = channel.recv(4096).decode()
    attempts: dict[str, Callable[[], object]] = {
        "read a file of this machine": lambda: os.close(os.open(hidden, os.O_RDONLY)),
        "open a network socket": lambda: socket.socket().close(),
        "start a process": _fork,
        "write outside its own folder": lambda: os.open("/usr/probe", os.O_WRONLY | os.O_CREAT),
        "stop another process": lambda: os.kill(os.getpid() + 1, 0),
    }
    succeeded = [what for what, attempt in attempts.items() if _succeeds(attempt)]
    facts = {"succeeded": succeeded, "isolated": bool(sys.flags.isolated), "variables": sorted(os.environ)}
    channel.sendall(json.dumps(facts).encode())


def _succeeds(attempt: Callable[[], object]) -> bool:
    try:
        attempt()
    except PermissionError:
        return False
    except OSError as error:
        return not isinstance(error, (FileNotFoundError, NotADirectoryError)) and error.errno is None
    return True


def _fork() -> None:
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
