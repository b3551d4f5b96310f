"""Grades the same right answers with this kit and with others, in one run on one machine, and prints what each costs.

    python -m benchmarks.compare [--students 100] [--peers 10]

Every contestant grades a small class and a larger one; what one more submission costs is the
difference between the two, divided by the difference of their sizes, so that starting up is not
counted.
"""

from __future__ import annotations

import argparse
import os
import platform
import tempfile
from dataclasses import dataclass
from pathlib import Path

from benchmarks.contestants import CONTESTANTS, Contestant
from benchmarks.measure import CommandFailed, Cost, measured
from benchmarks.plain_suite import NAME, ROOT

FEW = 1


@dataclass(frozen=True)
class Row:
    """What one more submission costs one contestant."""

    name: str
    students: int
    seconds: float
    cpu_seconds: float
    memory_mb: float


def make_class(folder: Path, students: int, name: str = NAME) -> list[Path]:
    """The solution, as so many students would hand it in; each differs in a line that does nothing."""
    stem = name.partition("_")[2]
    text = (ROOT / "solutions" / name / f"{stem}.py").read_text("utf-8")
    files = [folder / f"student{number:05}" / f"{stem}.py" for number in range(students)]
    for number, file in enumerate(files):
        file.parent.mkdir(parents=True)
        file.write_text(f"{text}\nSTUDENT = {number}\n", "utf-8")
    return files


def compete(contestant: Contestant, files: list[Path]) -> Row:
    """Raises CommandFailed when it does not grade them.

    The small class is a quarter of the large one, so that as many graders start for both.
    """
    few = max(FEW, len(files) // 4)
    less, many = cost(contestant, files[:few]), cost(contestant, files)
    more = len(files) - few
    seconds, cpu = (
        (many.seconds - less.seconds) / more,
        (many.cpu_seconds - less.cpu_seconds) / more,
    )
    return Row(contestant.name, len(files), seconds, cpu, many.memory_mb)


def cost(contestant: Contestant, files: list[Path]) -> Cost:
    with tempfile.TemporaryDirectory() as folder:
        commands = contestant.prepare(Path(folder), files)
        found = measured(commands, ROOT, {"OMP_NUM_THREADS": "1"})
        if not contestant.full_marks(Path(folder), files):
            raise CommandFailed("a right answer did not get all its points.")
        return found


def table(rows: list[Row]) -> str:
    """As Markdown; ratios against ours, the second row."""
    unit = rows[1]
    lines = [
        "| | submissions | a second | CPU each | CPU, ours = 1 | peak memory |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for row in rows:
        lines.append(
            f"| {row.name} | {row.students} | {1 / row.seconds:.1f} | {1000 * row.cpu_seconds:.0f} ms "
            f"| {row.cpu_seconds / unit.cpu_seconds:.1f} | {row.memory_mb:.0f} MB |"
        )
    return "\n".join(lines)


def main() -> None:
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument(
        "--students", type=int, default=200, help="class for the fast ones (default 200)"
    )
    options.add_argument(
        "--peers", type=int, default=10, help="class for the slow ones (default 10)"
    )
    chosen = options.parse_args()
    if min(chosen.students, chosen.peers) <= FEW:
        options.error(f"a class has more than {FEW} students")
    print(
        f"{platform.machine()}, {os.cpu_count()} processors, Python {platform.python_version()}, ",
        end="",
    )
    print(f"load {os.getloadavg()[0]:.1f} before\n", flush=True)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        files = make_class(Path(folder), max(chosen.students, chosen.peers))
        for contestant in CONTESTANTS:
            if not contestant.is_installed:
                print(f"{contestant.name} is left out: it is not installed here.", flush=True)
                continue
            try:
                rows.append(
                    compete(
                        contestant, files[: chosen.peers if contestant.slow else chosen.students]
                    )
                )
            except CommandFailed as problem:
                raise SystemExit(f"{contestant.name}: {problem}") from None
    print(table(rows))


if __name__ == "__main__":
    main()
