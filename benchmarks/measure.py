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

from autograder.sandbox.libc import check, libc

SAMPLE_SECONDS = 0.25
PR_SET_CHILD_SUBREAPER = 36


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
    """Run commands one after another in `folder`. Raises CommandFailed when one does not end with 0."""
    sampler = _Sampler()
    _adopt_orphans()
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
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
            raise CommandFailed(f"{' '.join(command)} ended with {process.returncode}:\n{output[-2000:]}")
    seconds = time.monotonic() - started
    _wait_for_orphans()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Cost(seconds, cpu, sampler.peak_mb)


def _adopt_orphans() -> None:
    """Processes whose parents have ended become this one's children, and what they cost is counted, too."""
    check(libc().prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), "adopting orphans")


def _wait_for_orphans() -> None:
    while True:
        try:
            os.wait()
        except ChildProcessError:
            return


class _Sampler:
    """Looks now and then at how much memory a process and its descendants hold, shared pages counted once."""

    def __init__(self) -> None:
        self.peak_mb = 0.0

    def watching(self, pid: int) -> _Watch:
        return _Watch(self, pid)


class _Watch:
    def __init__(self, sampler: _Sampler, pid: int) -> None:
        self._sampler, self._pid, self._over = sampler, pid, threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(SAMPLE_SECONDS):
            megabytes = sum(map(_proportional_mb, _descendants(self._pid)))
            self._sampler.peak_mb = max(self._sampler.peak_mb, megabytes)


def _descendants(pid: int) -> list[int]:
    found, waiting = [], [pid]
    while waiting:
        found.append(waiting.pop())
        try:
            for task in Path(f"/proc/{found[-1]}/task").iterdir():
                waiting += map(int, (task / "children").read_text().split())
        except OSError:  # it ended meanwhile
            continue
    return found


def _proportional_mb(pid: int) -> float:
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) / 1024
    except OSError:
        pass  # it ended meanwhile, or belongs to somebody else
    return 0.0
