"""How many grades a second the coordinator of a cluster can take: `python -m benchmarks.cluster_load`.

The graders are simulated: each sleeps for 64 milliseconds and returns a grade of 29 tests, without
PyTorch and without a sandbox. Scheduler, workers, chunks, events and the journal are real.
"""

from __future__ import annotations

import argparse
import logging
import resource
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from distributed import Client, LocalCluster
from distributed.security import Security

from autograder.extras.cluster.cluster import Coordinator
from autograder.extras.cluster.cluster_worker import Graders
from autograder.gradebook.journal import Journal
from autograder.records import Grade, SourceFile, Submission, TestResult

SECONDS = 0.064
TEXT = "x = 1\n" * 1000
TESTS = tuple(
    TestResult(f"test_number_{n}_of_the_suite", "part", f"Title of test {n}.", "passed", 1.0, 1.0)
    for n in range(29)
)


class SimulatedGrader:
    is_alive = True

    def grade(self, submission: Submission) -> tuple[str, str]:
        time.sleep(SECONDS)
        grade = Grade(
            submission.student,
            submission.assignment,
            "graded",
            29.0,
            29.0,
            TESTS,
            suite_sha256="5" * 64,
        )
        return "grade", grade.to_json()

    def close(self) -> None:
        return


class SimulatedGraders(Graders):
    def start(self) -> Any:
        return SimulatedGrader()


def submissions(count: int) -> Iterator[Submission]:
    for number in range(count):
        yield Submission(f"s{number:07}", "03_masked_heads", (SourceFile("masked_heads.py", TEXT),))


def megabytes() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--grades", type=int, default=20_000)
    parser.add_argument("--graders", type=int, default=64)
    parser.add_argument(
        "--processes", type=int, default=4, help="Dask workers, which share the graders as threads"
    )
    options = parser.parse_args()
    local = LocalCluster(
        n_workers=options.processes,
        threads_per_worker=options.graders // options.processes,
        security=Security.temporary(),
        protocol="tls://",
        host="127.0.0.1",
        dashboard_address=None,
        memory_limit=0,
        silence_logs=logging.CRITICAL,
    )
    output = tempfile.TemporaryDirectory()
    with local, Client(local) as client, output as folder, Journal(Path(folder)) as journal:
        run = Coordinator(client, "load", submissions(options.grades))
        client.subscribe_topic("load", lambda event: run.events.put(event[1]))
        client.register_plugin(SimulatedGraders(None, "load"), name="load")  # type: ignore[arg-type]
        started, processor = time.monotonic(), time.process_time()
        for number, grade in enumerate(run.grades(patient=False), start=1):
            journal.append(grade)
            if number % (options.grades // 5) == 0:
                print(
                    f"{number} grades, {time.monotonic() - started:.1f} s, {megabytes():.0f} MB",
                    flush=True,
                )
        seconds = time.monotonic() - started
        client.unregister_worker_plugin("load")
    efficiency = options.grades * SECONDS / (seconds * options.graders)
    print(
        f"{options.grades / seconds:.0f} grades a second, {efficiency:.0%} of {options.graders} graders"
    )
    print(
        f"processor time of the coordinator and the scheduler: {time.process_time() - processor:.1f} s"
    )


if __name__ == "__main__":
    main()
