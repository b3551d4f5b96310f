"""The launcher's side of a fork server: a sandboxed process that imports PyTorch once and forks the workers."""

import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from typing import BinaryIO

from autograder.walls.inside import scratch
from autograder.walls.inside.imports import IMPORTING
from autograder.walls.outside.command import COMMANDS, Layout, import_failed, unavailable
from autograder.walls.outside.trusted_process import is_root
from autograder.walls.outside.unavailable import SandboxUnavailableError
from autograder.walls.outside.worker_process import (
    BRIEF_SECONDS,
    END_SECONDS,
    WorkerProcess,
    receive,
)

START_SECONDS = 300  # a first import of PyTorch from a slow disk takes minutes
COMPLAINT_LINES = 6
Modules = tuple[str, ...]


class ForkServerGoneError(Exception):
    """The fork server has ended or does not reply."""


class ForkServer:
    """One fork server: its process, its control socket, and the file with its output."""

    def __init__(self, tier: str, layout: Layout, entry: str, warm: bool, modules: Modules) -> None:
        self.tier = tier
        self.note = ""
        self._scratch = ""  # with the folders of its workers, if they have no disks of their own
        self.ready = False
        self.modules: frozenset[str] = frozenset()  # all that it has imported when it is ready
        self.control, theirs = socket.socketpair()
        self.complaints = tempfile.TemporaryFile()  # noqa: SIM115  (closed by `close`)
        options = {"tier": tier, "entry": entry, "warm": warm, "preload": modules}
        options["control"] = theirs.fileno()
        try:
            command, environment = COMMANDS[tier](layout, options)
            self.process = subprocess.Popen(
                command,
                env=environment,
                cwd="/",
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=self.complaints,
                stderr=self.complaints,
                start_new_session=True,
            )
        except OSError as error:
            raise unavailable(tier, f"{error}.") from None
        finally:
            theirs.close()

    def wait_until_ready(self) -> None:
        """Wait until workers can be forked; raises SandboxUnavailableError if the fork server fails to start."""
        if self.ready:
            return
        answer = receive(self.control, START_SECONDS, end=b"\n") or b""
        if not answer.endswith(b"\n"):
            raise self._failure()
        report = json.loads(answer)
        if "problem" in report:
            raise import_failed(self.tier, **report["problem"])
        self.note = report["note"]
        self.modules = frozenset(report["modules"])
        self._scratch = report["scratch"]
        self.ready = True

    def spawn(self, limits: dict[str, float]) -> WorkerProcess:
        """Fork a worker with these limits; raises ForkServerGoneError if the fork server has ended."""
        data, their_data = socket.socketpair()
        status, their_status = socket.socketpair()
        output = _output_file()
        request = json.dumps({"limits": limits}).encode() + b"\n"
        descriptors = [their_data.fileno(), output.fileno(), their_status.fileno()]
        try:
            self.control.settimeout(START_SECONDS)
            socket.send_fds(self.control, [request], descriptors)
            if self.control.recv(1) != b"\n":
                raise ConnectionError("it has hung up")
        except OSError:
            for end in (data, status, output):
                end.close()
            raise ForkServerGoneError from None
        finally:
            their_data.close()
            their_status.close()
        return WorkerProcess(data, output, status)

    def _failure(self) -> SandboxUnavailableError:
        """Return the reason why it has not started: an import that ended it, or the tier itself."""
        words = self.last_words()
        self.process.kill()
        lines = self._output()
        if lines and lines[-1].startswith(f"{IMPORTING} "):
            return import_failed(self.tier, lines[-1].removeprefix(f"{IMPORTING} "), words)
        return unavailable(self.tier, words)

    def last_words(self) -> str:
        """Return how the fork server ended and the end of its output, as the reason of its failure."""
        try:
            ending = _ending(self.process.wait(BRIEF_SECONDS))
        except subprocess.TimeoutExpired:
            ending = "It does not answer."
        words = [line for line in self._output() if not line.startswith(f"{IMPORTING} ")]
        if not words:
            return ending
        return f"{ending} Its last words: " + "\n".join(words[-COMPLAINT_LINES:])

    def _output(self) -> list[str]:
        self.complaints.seek(0)
        text = self.complaints.read()[-4096:].decode("utf-8", "replace")
        return [line for line in text.splitlines() if line.strip()]

    def close(self) -> None:
        """Close the control socket, which ends the fork server; kill it if it does not end."""
        self.control.close()
        try:
            self.process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.complaints.close()
        if self._scratch and os.path.isdir(self._scratch):  # it was killed
            _remove(self._scratch)


def _remove(folder: str) -> None:
    """Remove the folder of the workers of a fork server that was killed."""
    # root may list all folders; a link that a process makes meanwhile leads nowhere
    if is_root():
        shutil.rmtree(folder, ignore_errors=True)
    else:
        scratch.remove_folder(folder)


def _ending(code: int) -> str:
    """Describe an exit code; above 128 it stands for a signal, as in a shell."""
    number = -code if code < 0 else code - 128
    if number in {member.value for member in signal.Signals}:
        return f"It ended by {signal.Signals(number).name}."
    return f"It ended with exit code {code}."


def _output_file() -> BinaryIO:
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("output"), "rb", buffering=0)
    return tempfile.TemporaryFile(buffering=0)
