"""A server of repositories on this machine, which speaks git's own protocol."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.autograder.waiting import wait_until


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Yield the address of a server of the repositories below a folder."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = ["daemon", "--reuseaddr", "--listen=127.0.0.1", f"--port={port}", "--export-all"]
    command = ["git", *words, f"--base-path={folder}", str(folder)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)

    def answers() -> bool:
        with socket.socket() as tried:
            return tried.connect_ex(("127.0.0.1", port)) == 0 or process.poll() is not None

    try:
        wait_until(answers)
        if process.poll() is not None:
            pytest.skip("git is installed without its daemon.")
        yield f"git://127.0.0.1:{port}"
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGTERM)
        process.communicate()
