"""What a command costs: time, processor time and memory, its own and that of all processes it starts."""

from __future__ import annotations

import os
import resource
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

SAMPLE_SECONDS = 0.25
TICKS = os.sysconf("SC_CLK_TCK")


class CommandFailed(Exception):
    """A command of the comparison did not do its work; says what it printed last."""


@dataclass(frozen=True)
class Cost:
    """Seconds on the clock, seconds of processors, and the most megabytes that all processes held together."""

    seconds: float
    cpu_seconds: float
    memory_mb: float


def measured(
    commands: Sequence[Sequence[str]], folder: Path, environment: Mapping[str, str] | None = None
) -> Cost:
    """Run commands one after another in `folder`.

    Raises CommandFailed when one does not end with 0.
    """
    sampler = _Sampler()
    started = time.monotonic()
    for command in commands:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        with sampler.watching(process.pid):
            output, _ = process.communicate()
        if process.returncode:
            raise CommandFailed(
                f"{' '.join(command)} ended with {process.returncode}:\n{output[-2000:]}"
            )
    seconds = time.monotonic() - started
    return Cost(seconds, sampler.cpu_seconds, sampler.peak_mb)


class _Sampler:
    """Looks now and then at what a process and its descendants hold and have used, shared pages counted once.

    Processor time is looked at, too, because what dies in a sandbox with its whole family is
    nobody's child at the end.
    """

    def __init__(self) -> None:
        self.peak_mb = self.cpu_seconds = 0.0
        self._before = _waited_seconds()

    def watching(self, pid: int) -> _Watch:
        return _Watch(self, pid)

    def look(self, family: Sequence[int]) -> None:
        used = _waited_seconds() - self._before + sum(map(_cpu_seconds, family))
        self.cpu_seconds = max(self.cpu_seconds, used)
        self.peak_mb = max(self.peak_mb, sum(map(proportional_mb, family)))


class _Watch:
    def __init__(self, sampler: _Sampler, pid: int) -> None:
        self._sampler, self._pid, self._over = sampler, pid, threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self._sampler.look(())

    def _look(self) -> None:
        while not self._over.wait(SAMPLE_SECONDS):
            self._sampler.look(descendants(self._pid))


def descendants(pid: int) -> list[int]:
    found, waiting = [], [pid]
    while waiting:
        found.append(waiting.pop())
        try:
            for task in Path(f"/proc/{found[-1]}/task").iterdir():
                waiting += map(int, (task / "children").read_text().split())
        except OSError:  # it ended meanwhile
            continue
    return found


def family_cpu_seconds() -> float:
    """What this process, its descendants and those that they have waited for have used so far."""
    return sum(map(_cpu_seconds, descendants(os.getpid())))


def _waited_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _cpu_seconds(pid: int) -> float:
    """What a process, and those it has waited for, have used."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0  # it ended meanwhile
    return sum(map(int, fields[11:15])) / TICKS


def proportional_mb(pid: int) -> float:
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) / 1024
    except OSError:
        pass  # it ended meanwhile, or belongs to somebody else
    return 0.0
