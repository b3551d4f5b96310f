"""Grades solutions and wrong answers with Gradescope's archive, under the limits of Gradescope's smallest container.

python scripts/gradescope_rehearsal.py                      every assignment, and five wrong answers
python scripts/gradescope_rehearsal.py 03_masked_heads      its solution and its first known mistake
python scripts/gradescope_rehearsal.py --memory 512         as if the container had 512 MB
python scripts/gradescope_rehearsal.py --memory 400 --silent     and as if it did not tell its limit beforehand

Each submission is graded by `run_autograder` from the archive, with this Python in place of the one
that `setup.sh` installs. While the processes use more memory than the container has, the largest of
them is killed, as the kernel does. The exit code is 1 if a submission does not fit, a solution
loses points, or a wrong answer is not named.

The memory is what the kernel could not take back: the private memory of all processes, shared pages
once, and the mapped files of the process that maps the most. The seconds on Gradescope are the
processor time, divided by the share of a processor that the container has.
"""

from __future__ import annotations

import argparse
import ctypes
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autograder.course.config import Assignment, Course
from autograder.course.mistakes import Mistake
from autograder.course.mistakes_file import load_mistakes
from autograder.course.reading import load_course
from autograder.extras.lms.exports.gradescope import PROGRAMS, files
from autograder.text.files import zipped

MEMORY_MB = 768
PROCESSORS = 0.5
SECONDS = 600
WRONG_ANSWERS = 5
PAUSE_SECONDS = 0.03
PR_SET_CHILD_SUBREAPER = 36

Results = dict[str, Any]


@dataclass(frozen=True)
class Container:
    """The limits of a container, by Gradescope's smallest one unless told otherwise."""

    memory_mb: int = MEMORY_MB
    processors: float = PROCESSORS
    seconds: int = SECONDS
    tells_its_limit: bool = True


@dataclass(frozen=True)
class Use:
    """What grading one submission took."""

    exit_code: int
    output: str
    processor_seconds: float
    peak_mb: float

    def seconds_in(self, container: Container) -> float:
        return self.processor_seconds / container.processors

    def fits(self, container: Container) -> bool:
        return (
            self.peak_mb <= container.memory_mb and self.seconds_in(container) <= container.seconds
        )


def main() -> int:
    """Rehearse, print the table, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("assignments", nargs="*")
    parser.add_argument("--memory", type=int, default=MEMORY_MB, help="of the container, in MB")
    parser.add_argument("--processors", type=float, default=PROCESSORS)
    parser.add_argument(
        "--silent", action="store_true", help="the container does not tell its limit of memory"
    )
    options = parser.parse_args()
    container = Container(options.memory, options.processors, tells_its_limit=not options.silent)
    course = load_course()
    assignments = list(course.select(options.assignments or None))
    adopt_orphans()
    print(f"{'submission':58} {'points':>9} {'processor':>9} {'peak MB':>8} {'seconds':>8}")
    problems = 0
    for number, assignment in enumerate(assignments):
        with Rehearsal(course, assignment, container) as rehearsal:
            problems += rehearsal.solution()
            if number < WRONG_ANSWERS:
                problems += rehearsal.mistake(load_mistakes(course, assignment)[0])
    limits = f"{container.memory_mb} MB, {container.processors:g} processors, {container.seconds} seconds"
    print(
        f"{problems} of them do not fit {limits}, or are graded wrongly."
        if problems
        else f"All fit: {limits}."
    )
    return 1 if problems else 0


class Rehearsal:
    """The unpacked archive of one assignment; a context manager."""

    def __init__(self, course: Course, assignment: Assignment, container: Container) -> None:
        self.course, self.assignment, self.container = course, assignment, container
        self._folder = tempfile.TemporaryDirectory(prefix="gradescope-")
        self.root = Path(self._folder.name)
        archive = b"".join(zipped(files(course, assignment, "visible").items(), PROGRAMS))
        with zipfile.ZipFile(io.BytesIO(archive)) as packed:
            packed.extractall(self.root / "source")
        self.program = self.root / "run_autograder"
        self.program.write_bytes((self.root / "source" / "run_autograder").read_bytes())
        self.program.chmod(0o755)

    def __enter__(self) -> Rehearsal:
        return self

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()

    def solution(self) -> bool:
        """Grade the solution; return whether there is a problem."""
        use, results = self._grade(self.course.read_solution(self.assignment))
        is_right = results.get("score") == self.assignment.points
        self._print(self.assignment.name, use, results, "" if is_right else "not full marks")
        return not (is_right and use.fits(self.container))

    def mistake(self, mistake: Mistake) -> bool:
        """Grade a known mistake; return whether there is a problem."""
        use, results = self._grade(mistake.source)
        hint = " ".join(mistake.hint.split())
        outputs = [" ".join(test["output"].split()) for test in results.get("tests", ())]
        is_named = any(hint in output for output in outputs)
        self._print(f"  {mistake.id}", use, results, "named" if is_named else "not named")
        return not (is_named and use.fits(self.container))

    def _grade(self, text: str) -> tuple[Use, Results]:
        results = self.root / "results" / "results.json"
        results.unlink(missing_ok=True)
        submitted = self.root / "submission" / f"{self.assignment.stem}.py"
        submitted.parent.mkdir(exist_ok=True)
        submitted.write_text(text, "utf-8")
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        environment.update(AUTOGRADER_ROOT=str(self.root), AUTOGRADER_PYTHON=sys.executable)
        group = ControlGroup(self.root / "control_group", self.container)
        environment["AUTOGRADER_CONTROL_GROUP"] = str(group.folder)
        use = watched([str(self.program)], environment, group)
        return use, json.loads(results.read_text("utf-8")) if results.is_file() else {}

    def _print(self, name: str, use: Use, results: Results, remark: str) -> None:
        points = f"{results['score']:g}/{self.assignment.points:g}" if results else "none"
        seconds = use.seconds_in(self.container)
        fits = "" if use.fits(self.container) else "does not fit"
        figures = f"{use.processor_seconds:9.1f} {use.peak_mb:8.0f} {seconds:8.0f}"
        print(f"{name:58} {points:>9} {figures}  {remark} {fits}".rstrip(), flush=True)
        if not results:
            print(use.output, flush=True)


def adopt_orphans() -> None:
    """Let processes whose parents have ended become children of this one, so that they are found and killed."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


class ControlGroup:
    """What a container's control group does with its memory, and the files in which it tells so."""

    def __init__(self, folder: Path, container: Container) -> None:
        self.folder, self.limit = folder, container.memory_mb
        self.kills = 0
        self.peak_mb = 0.0
        folder.mkdir(exist_ok=True)
        told = str(self.limit << 20) if container.tells_its_limit else "max"
        (folder / "memory.max").write_text(f"{told}\n", "utf-8")
        self._tell_kills()

    def look(self) -> None:
        """Measure the memory of all processes; if it is too much, kill the largest."""
        found = {pid: ProcessMemory.of(pid) for pid in descendants(os.getpid())}
        processes = {pid: memory for pid, memory in found.items() if memory is not None}
        used = together(processes.values())
        self.peak_mb = max(self.peak_mb, used)
        if used > self.limit:
            self.kills += 1
            self._tell_kills()
            with suppress(ProcessLookupError):
                os.kill(max(processes, key=lambda pid: processes[pid].resident), signal.SIGKILL)

    def _tell_kills(self) -> None:
        (self.folder / "memory.events").write_text(f"oom 0\noom_kill {self.kills}\n", "utf-8")


def watched(command: list[str], environment: dict[str, str], group: ControlGroup) -> Use:
    """Run a command to its end under the control group."""
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, env=environment, stdout=output, stderr=output)
        while os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            group.look()
            time.sleep(PAUSE_SECONDS)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        text = output.read().decode("utf-8", "replace")
    return Use(process.returncode, text, usage.ru_utime + usage.ru_stime, group.peak_mb)


def descendants(root: int) -> Iterator[int]:
    """Yield the children of a process, and their children."""
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            parent = (folder / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()[1]
            children.setdefault(int(parent), []).append(int(folder.name))
    waiting = children.get(root, [])
    while waiting:
        pid = waiting.pop()
        yield pid
        waiting += children.get(pid, [])


@dataclass(frozen=True)
class ProcessMemory:
    """The memory of one process in kilobytes: all of it, its share of what is private, and its mapped files."""

    resident: int
    private: int
    mapped_files: int

    @classmethod
    def of(cls, pid: int) -> ProcessMemory | None:
        """Return the memory of a process; None if it has ended."""
        try:
            status = read_rows(Path(f"/proc/{pid}/status"))
            # without the rights to see more: what is shared, too
            private = status["RssAnon"] + status["RssShmem"]
            with suppress(PermissionError):
                shares = read_rows(Path(f"/proc/{pid}/smaps_rollup"))
                private = shares["Pss_Anon"] + shares["Pss_Shmem"]
            return cls(status["VmRSS"], private, status["RssFile"])
        except (OSError, KeyError):
            return None


def together(processes: Collection[ProcessMemory]) -> float:
    """Return the megabytes that these processes use together."""
    mapped_files = max((process.mapped_files for process in processes), default=0)
    return (sum(process.private for process in processes) + mapped_files) / 1024


def read_rows(path: Path) -> dict[str, int]:
    """Return the rows of a file of the kernel that are in kilobytes."""
    rows = [line.split() for line in path.read_text("utf-8", "replace").splitlines()]
    return {row[0].rstrip(":"): int(row[1]) for row in rows if row[2:] == ["kB"]}


if __name__ == "__main__":
    sys.exit(main())
