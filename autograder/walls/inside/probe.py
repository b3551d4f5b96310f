"""A look at five boundaries from inside a worker, before anything is graded: no attempt may succeed.

No attempt does harm where a boundary is missing. Every boundary is tried at length by the tests.
"""

import importlib.util
import json
import os
import socket
from collections.abc import Callable, Sequence
from functools import partial

PACKAGES = ("torch", "numpy", "IPython")
NO_PROCESS = 1 << 30  # above the largest id that Linux gives


def run(channel: socket.socket) -> None:
    """Answer a line with a folder of the machine by the boundaries that are open, and stay until the grader hangs up.

    Anybody may read the file `hidden` in that folder, and write into it. The answer also names
    those of the `PACKAGES` that cannot be read.
    """
    with channel.makefile("rb") as reader:
        folder = json.loads(reader.readline())
        unreadable = [name for name in PACKAGES if not _succeeds(partial(_read_package, name))]
        answer = {"opened": _opened(folder), "unreadable": unreadable}
        channel.sendall(json.dumps(answer).encode() + b"\n")
        reader.readline()


def _opened(folder: str) -> list[str]:
    boundaries: dict[str, Sequence[Callable[[], object]]] = {
        "read a hidden file": [partial(_read, f"{folder}/hidden")],
        "write outside its own folder": [partial(_write, f"{folder}/probe")],
        "open a network socket": [socket.socket],
        "start a program": [_fork],
        "reach another process": [_list_processes, partial(os.kill, NO_PROCESS, 0)],
    }
    return [name for name, attempts in boundaries.items() if any(map(_succeeds, attempts))]


def _succeeds(attempt: Callable[[], object]) -> bool:
    try:
        attempt()
    except ProcessLookupError:  # there is no such process, but a signal would have been sent
        return True
    except (OSError, ValueError):
        return False
    return True


def _read(path: str) -> None:
    with open(path, "rb") as file:
        file.read(1)


def _write(path: str) -> None:
    with open(path, "wb"):
        os.unlink(path)


def _read_package(name: str) -> None:
    spec = importlib.util.find_spec(name)
    _read(spec.origin or "" if spec else "")


def _fork() -> None:
    """Start a process that ends at once; to run another program, one has to be started, too."""
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)


def _list_processes() -> None:
    min(map(int, filter(str.isdigit, os.listdir("/proc"))))  # it may be an empty folder
