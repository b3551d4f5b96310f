"""How long students wait with `autograder grade --watch`, and what it costs while nobody hands in.

    python -m benchmarks.watch [03_masked_heads] [--hand-ins 60] [--idle 60]

Students hand in one after another, right and wrong answers in turn, each by renaming a file into
place. The time from there to the feedback page is measured when the graders are warm; then the
processor time of all processes while nothing happens. Run it on a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from autograder.course.config import Assignment, Course
from autograder.course.mistakes_file import load_mistakes
from autograder.course.reading import load_course
from benchmarks.measure import family_cpu_seconds

WARM = 6  # hand-ins before the first that is measured
MOST_SECONDS = 300.0
POLL_SECONDS = 0.005
PROGRAM = "from autograder.cli import main; main()"


def answers(course: Course, assignment: Assignment) -> list[str]:
    """The solution, the stub, and some known mistakes."""
    mistakes = [mistake.source for mistake in load_mistakes(course, assignment)[:4]]
    stub = course.stub_file(assignment).read_text("utf-8")
    return [course.read_solution(assignment), mistakes[0], stub, *mistakes[1:]]


@contextmanager
def watching(folder: Path, assignment: Assignment) -> Iterator[None]:
    words = ["grade", str(folder / "submitted"), "--watch", "--output", str(folder / "grades")]
    command = [sys.executable, "-c", PROGRAM, *words, "--assignment", assignment.name]
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stderr is not None
        started = time.monotonic()
        said = ""
        for line in process.stderr:
            said += line
            if line.startswith("Watching "):
                break
        else:
            sys.exit(said)
        print(f"ready after {time.monotonic() - started:.1f} s")
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate()


def hand_in(folder: Path, student: str, assignment: Assignment, text: str) -> float:
    """Return the seconds from the hand-in to the page."""
    place = folder / "submitted" / student / assignment.name / f"{assignment.stem}.py"
    place.parent.mkdir(parents=True)
    draft = folder / "draft.py"
    draft.write_text(f"{text}\n# {student}\n", "utf-8")
    page = folder / "grades" / "feedback" / student / f"{assignment.name}.html"
    begun = time.monotonic()
    draft.replace(place)
    while not page.exists():
        if time.monotonic() - begun > MOST_SECONDS:
            sys.exit(f"There is no {page} after {MOST_SECONDS:g} seconds.")
        time.sleep(POLL_SECONDS)
    return time.monotonic() - begun


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("assignment", nargs="?", default="03_masked_heads")
    parser.add_argument("--hand-ins", type=int, default=60)
    parser.add_argument("--idle", type=float, default=60, help="seconds")
    options = parser.parse_args()
    course = load_course(".")
    assignment = course.assignment(options.assignment)
    texts = answers(course, assignment)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "submitted").mkdir()
        with watching(folder, assignment):
            seconds = []
            before = 0.0
            for number in range(WARM + options.hand_ins):
                if number == WARM:
                    before = family_cpu_seconds()
                text = texts[number % len(texts)]
                seconds.append(hand_in(folder, f"student{number}", assignment, text))
            each = (family_cpu_seconds() - before) / options.hand_ins
            print(f"{summary(seconds[WARM:])}; processor time of each {each:.2f} s")
            time.sleep(2)
            before = family_cpu_seconds()
            time.sleep(options.idle)
            used = (family_cpu_seconds() - before) / options.idle
            print(f"idle: {100 * used:.2f} % of a processor, over {options.idle:g} s")


def summary(seconds: list[float]) -> str:
    median = statistics.median(seconds)
    p95 = statistics.quantiles(seconds, n=20)[-1]
    return (
        f"from hand-in to page, {len(seconds)} hand-ins: "
        f"median {median:.2f} s, p95 {p95:.2f} s, most {max(seconds):.2f} s"
    )


if __name__ == "__main__":
    main()
