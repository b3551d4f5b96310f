"""Run git on one repository within limits of time and size, and say in a sentence why it failed."""

import os
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event

from autograder.extras.git.environment import environment
from autograder.records import InfrastructureError, RefusedError
from autograder.source.gate import MEGABYTE

GIT = "git"
_BLOCK = 512  # bytes, the unit of `ulimit -f`
_LOOK_EVERY = 0.05  # seconds
_KILOBYTE = 1024  # bytes, the unit of `ulimit -v`
# macOS has no limit of memory, and says so
_LIMITED = """ulimit -c 0
ulimit -f "$1"
ulimit -t "$2"
ulimit -v "$3" 2>/dev/null
shift 3
exec "$@"
"""
_REASON_BYTES = 20_000
_PASSWORD = re.compile(r"//[^/@\s]*@")
_TOO_LARGE = ("signal 25", "File too large", "write error")
_CUT_OFF = "invalid index-pack output"  # also after the end of index-pack at a file's largest size
_TOO_SLOW = "signal 24"
_NO_MEMORY = ("Out of memory", "out of memory", "Cannot allocate memory")
_REDIRECTED = re.compile(r"returned error: 30[12378]\b")
_SAID = re.compile(r"^(?:remote: )?(?:fatal|error): (.+)$", re.MULTILINE | re.IGNORECASE)


@dataclass(frozen=True)
class Limits:
    """The limits of one repository: what it sends and what is stored of it, its files, and the
    seconds and the memory of each step.
    """

    bytes: int = 100 * MEGABYTE
    files: int = 20_000
    seconds: float = 120
    memory: int = 1_000 * MEGABYTE
    at_once: int = 8  # repositories


@dataclass(frozen=True)
class Git:
    """Git with one bare store and one repository; `inherited` are open files that its processes hold, such as a lock.

    `stopped` is set when the command ends early; then its processes are ended, too.
    """

    store: Path
    url: str
    limits: Limits
    stopped: Event
    inherited: tuple[int, ...] = ()

    def run(self, *words: str, given: bytes = b"", most: int | None = None) -> bytes:
        """Return what git prints, at most `most` bytes of it; raises RefusedError with the reason if git fails."""
        most = self.limits.bytes if most is None else most
        with (
            tempfile.TemporaryFile() as output,
            tempfile.TemporaryFile() as input_file,
            tempfile.TemporaryFile() as reason,
        ):
            input_file.write(given)
            input_file.seek(0)
            process = self._start(
                words, most, (input_file.fileno(), output.fileno(), reason.fileno())
            )
            ended = self._wait(process)
            reason.seek(0)
            problem = reason.read(_REASON_BYTES).decode("utf-8", "replace")
            if ended or process.returncode:
                raise RefusedError(ended or self._why(process.returncode, problem))
            output.seek(0)
            return output.read()

    def _start(
        self, words: Sequence[str], most: int, streams: tuple[int, int, int]
    ) -> "subprocess.Popen[bytes]":
        input_file, output, reason = streams
        blocks = -(-most // _BLOCK)
        seconds = max(1, round(self.limits.seconds))
        memory = self.limits.memory // _KILOBYTE
        limited = ["/bin/sh", "-c", _LIMITED, "sh", str(blocks), str(seconds), str(memory)]
        try:
            return subprocess.Popen(
                [*limited, GIT, f"--git-dir={self.store}", *words],
                stdin=input_file,
                stdout=output,
                stderr=reason,
                cwd=self.store.parent,
                env=environment(self.url, str(self.store)),
                start_new_session=True,
                pass_fds=self.inherited,
            )
        except FileNotFoundError:
            raise InfrastructureError(
                "The shell /bin/sh is missing, with which git is limited."
            ) from None

    def _wait(self, process: "subprocess.Popen[bytes]") -> str:
        """Wait for the end; return the reason if the process had to be ended, else an empty text."""
        until = time.monotonic() + self.limits.seconds
        try:
            while True:
                try:
                    process.wait(_LOOK_EVERY)
                    return ""
                except subprocess.TimeoutExpired:
                    pass
                if self.stopped.is_set():
                    return "it was not finished, because the command was ended."
                if time.monotonic() > until:
                    return self._too_slow
                if size_of(self.store) > self.limits.bytes:
                    return self._too_large
        finally:
            _end(process)

    def _why(self, code: int, problem: str) -> str:
        if code == 127 and "git" in problem:
            raise InfrastructureError(
                "Repositories need the program git, version 2.31 or later. Install it."
            )
        if (
            -code == signal.SIGXFSZ
            or code == 128 + signal.SIGXFSZ
            or any(word in problem for word in _TOO_LARGE)
        ):
            return self._too_large
        if _CUT_OFF in problem and size_of(self.store) >= self.limits.bytes - _BLOCK:
            return self._too_large
        if -code == signal.SIGXCPU or code == 128 + signal.SIGXCPU or _TOO_SLOW in problem:
            return self._too_slow
        if any(words in problem for words in _NO_MEMORY):
            return f"reading it takes more than {self.limits.memory // MEGABYTE} MB of memory."
        if _REDIRECTED.search(problem):
            return (
                "it leads to another address, and none is followed. If the repository was renamed, put the "
                "address that its forge shows now into the table."
            )
        lines = _SAID.findall(problem) or problem.strip().splitlines()[-1:] or [f"exit code {code}"]
        said = "".join(
            c if c.isprintable() else "\N{REPLACEMENT CHARACTER}"
            for c in without_password(lines[0])
        )
        return f"git says: {said[:200].rstrip('. ')}."

    @property
    def _too_large(self) -> str:
        size = self.limits.bytes
        return f"it sends more than {f'{size // MEGABYTE} MB' if size >= MEGABYTE else f'{size} bytes'}."

    @property
    def _too_slow(self) -> str:
        return f"it was not read within {self.limits.seconds:g} seconds."


def without_password(text: str) -> str:
    """Return a text with the addresses in it, but without their users and passwords."""
    return _PASSWORD.sub("//", text)


def size_of(folder: Path) -> int:
    """Return the bytes of all files below a folder, in which files come and go."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(place, name)).st_size
            except FileNotFoundError:
                continue
    return total


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End the process and all that it started; one that has ended leaves nothing."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
