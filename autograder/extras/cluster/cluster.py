"""A run on many machines: `graded` hands out chunks of submissions to the workers of a Dask cluster.

Dask starts workers and transports messages; this module assigns submissions to workers and handles
dead workers (see docs/cluster.md). A submission may be graded more than once on the cluster, but
its grade is returned once.
"""

import asyncio
import itertools
import queue
import time
import uuid
from collections import defaultdict, deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from distributed import Client, Future, KilledWorker

from autograder.extras.cluster.bundle import Bundle
from autograder.extras.cluster.cluster_address import RUNNING, connect
from autograder.extras.cluster.cluster_worker import DIED_TWICE, Graders, grade_chunk
from autograder.records import CourseError, Grade, InfrastructureError, Submission
from autograder.runs.failures import Name, failure_sentences
from autograder.runs.pool import Plan

LARGEST_CHUNK = 32
SMALLEST_CHUNK = 2
AHEAD = 2  # chunks for each grader: one in work and one that waits
POLL_SECONDS = 1.0
SILENT_SECONDS = 900.0  # more than any submission takes
START_SECONDS = 300.0  # for a running cluster's first worker

RUN_AGAIN = "The grades so far are kept; run the same command again to continue."


@dataclass
class _Chunk:
    number: int
    submissions: list[Submission]
    worker: str
    future: Future
    arrived: int = 0
    began: bool = False


@dataclass
class _Worker:
    graders: int
    chunks: set[int] = field(default_factory=set)
    heard: float = field(default_factory=time.monotonic)

    @property
    def room(self) -> float:
        """The number of further chunks for each of its graders."""
        return AHEAD - len(self.chunks) / self.graders


def graded(
    plan: Plan,
    submissions: Iterator[Submission],
    address: str,
    failures: list[str],
    notes: list[str],
) -> Iterator[Grade]:
    """Yield the grades of all submissions as they arrive; `failures` receives those that could not be graded.

    `notes` receives a sentence for each machine that took no part. Raises CourseError, or
    InfrastructureError if the connection to the cluster is lost or none of its machines can grade.
    """
    first = next(submissions, None)
    if first is None:
        return
    bundle = Bundle.of(plan)
    topic = f"autograder-{uuid.uuid4().hex}"
    with connect(address) as client:
        run = Coordinator(client, topic, itertools.chain([first], submissions))
        client.subscribe_topic(topic, lambda event: run.events.put(event[1]))
        try:
            client.register_plugin(Graders(bundle, topic), name=topic)
            yield from run.grades(patient=not address.startswith(RUNNING))
        except ImportError as error:
            raise InfrastructureError(
                f"A machine of the cluster has no autograder as here: {error}."
            ) from None
        except (OSError, asyncio.TimeoutError) as error:
            raise InfrastructureError(
                f"The connection to the cluster was lost ({error}). {RUN_AGAIN}"
            ) from None
        finally:
            failures += failure_sentences(run.failed)
            notes += run.refused.values()
            with suppress(OSError, asyncio.TimeoutError):
                run.cancel()
                client.unregister_worker_plugin(topic)


class Coordinator:
    """Assigns the submissions of a run to workers; `failed` holds those that could not be graded, `refused` the machines.

    `grades` does the whole run: it hands out chunks, handles each event, and checks the workers.
    """

    def __init__(self, client: Client, topic: str, submissions: Iterator[Submission]) -> None:
        self.events: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self.failed: dict[Name, str] = {}
        self.refused: dict[str, str] = {}
        self._client = client
        self._topic = topic
        self._submissions = submissions
        self._workers: dict[str, _Worker] = {}
        self._chunks: dict[int, _Chunk] = {}
        self._count = 0
        self._again: deque[list[Submission]] = deque()
        self._gathered: defaultdict[str, list[Submission]] = defaultdict(list)  # by assignment
        self._deaths: set[Name] = set()
        # what may arrive twice, and counts at the end of the run
        self._repeated: dict[Name, Grade | None] = {}
        self._started = self._checked = time.monotonic()

    def grades(self, patient: bool) -> Iterator[Grade]:
        while self.hand_out() or self._chunks:
            with suppress(queue.Empty):
                yield from self.handle(self.events.get(timeout=POLL_SECONDS))
            if time.monotonic() - self._checked > POLL_SECONDS:
                self.check_workers(patient)
        yield from self.held()

    def held(self) -> Iterator[Grade]:
        """Yield the grades of repeated submissions, of which no other arrived with different scores."""
        return (
            grade for name, grade in self._repeated.items() if grade and name not in self.failed
        )

    def cancel(self) -> None:
        self._client.cancel([chunk.future for chunk in self._chunks.values()])

    def hand_out(self) -> bool:
        """Hand out chunks as long as workers have room; False if there are no submissions left."""
        while True:
            free = max(self._workers.items(), key=lambda item: item[1].room, default=None)
            if free is None or free[1].room <= 0:
                return True
            chunk = self._again.popleft() if self._again else self._next()
            if not chunk:
                return False
            self._send(chunk, *free)

    def _next(self) -> list[Submission]:
        """Return the next submissions of one assignment: few at first, so that all graders have work in a small class."""
        graders = sum(worker.graders for worker in self._workers.values())
        size = min(LARGEST_CHUNK, SMALLEST_CHUNK + self._count // graders)
        for submission in self._submissions:
            gathered = self._gathered[submission.assignment]
            gathered.append(submission)
            if len(gathered) >= size:
                return self._gathered.pop(submission.assignment)
        return self._gathered.pop(next(iter(self._gathered)), []) if self._gathered else []

    def _send(self, submissions: list[Submission], address: str, worker: _Worker) -> None:
        self._count += 1
        number = self._count
        future = self._client.submit(
            grade_chunk,
            self._topic,
            number,
            submissions,
            key=f"{self._topic}-{number}",
            workers=[address],
            pure=False,
        )
        future.add_done_callback(lambda done: self.events.put({"chunk": number, "done": done}))
        self._chunks[number] = _Chunk(number, submissions, address, future)
        worker.chunks.add(number)

    def handle(self, event: dict[str, Any]) -> Iterator[Grade]:
        """Handle what a worker or a task has reported, and yield its grade if it is new; raises
        CourseError if the course cannot be graded, OSError or InfrastructureError if Dask gave up.
        """
        address = event.get("worker", "")
        if address in self._workers:
            self._workers[address].heard = time.monotonic()
        if event.get("kind") == "course":
            raise CourseError(event["text"].split("\n"))
        if event.get("kind") == "grade":
            yield from self._counted(Grade.from_json(event["text"]))
        if "chunk" in event:
            self._follow(event)
        elif "ready" in event:
            self._workers[address] = _Worker(event["ready"])
        elif "refused" in event:
            self.refused[address] = f"{event['host']} ({address}) took no part: {event['refused']}"
        if "left" in event:
            self._lose(address, died=False)

    def _counted(self, grade: Grade) -> Iterator[Grade]:
        before = self._repeated.get(grade.key)
        if grade.key not in self._repeated:
            yield grade
        elif before is None:
            self.failed.pop(grade.key, None)
            self._repeated[grade.key] = grade
        elif _scores(before) != _scores(grade):
            self.failed[grade.key] = (
                f"two graders gave it {before.score:g} and {grade.score:g} points; neither counts."
            )

    def _follow(self, event: dict[str, Any]) -> None:
        """Keep track of a chunk; one that was given up is not followed."""
        chunk = self._chunks.get(event["chunk"])
        if chunk is None:
            return
        if "began" in event:
            chunk.began = True
        elif "kind" in event:
            if event["kind"] == "failed":
                self._fail(chunk.submissions[event["place"]], event["text"])
            chunk.arrived = event["place"] + 1
        elif "ended" in event:
            self._forget(chunk)
        elif "done" in event:
            self._check(chunk, event["done"])

    def _check(self, chunk: _Chunk, future: Future) -> None:
        """Handle a task that ended before all of its chunk was graded."""
        if future.status == "finished":
            self._repeat(chunk, died=False)
        elif future.status != "error":
            raise OSError(f"the cluster has {future.status} a task")
        # `check_workers` will find that this worker is gone
        elif not isinstance(future.exception(), KilledWorker):
            raise InfrastructureError(
                f"{chunk.worker} could not grade: {future.exception()!r}. {RUN_AGAIN}"
            )

    def _repeat(self, chunk: _Chunk, died: bool) -> None:
        """Grade the rest of a chunk elsewhere; the submission in work when a grader died is graded alone, and once."""
        self._forget(chunk)
        chunk.future.cancel()
        rest = chunk.submissions[chunk.arrived :]
        for submission in rest:
            self._repeated.setdefault(_name(submission))
        if died and chunk.began and rest:
            suspect = rest.pop(0)
            if _name(suspect) in self._deaths:
                self._fail(suspect, DIED_TWICE)
            else:
                self._deaths.add(_name(suspect))
                self._again.append([suspect])
        if rest:
            self._again.append(rest)

    def _fail(self, submission: Submission, why: str) -> None:
        if not self._repeated.get(_name(submission)):
            self.failed.setdefault(_name(submission), why)

    def _forget(self, chunk: _Chunk) -> None:
        del self._chunks[chunk.number]
        if chunk.worker in self._workers:
            self._workers[chunk.worker].chunks.discard(chunk.number)

    def _lose(self, address: str, died: bool) -> None:
        worker = self._workers.pop(address, None)
        for number in sorted(worker.chunks) if worker else ():
            self._repeat(self._chunks[number], died)

    def check_workers(self, patient: bool) -> None:
        """Find workers that are gone or no longer answer; raises InfrastructureError if no machine can grade."""
        now = self._checked = time.monotonic()
        present = self._client.nthreads()
        for address, worker in list(self._workers.items()):
            if address not in present:
                self._lose(address, died=True)
            elif worker.chunks and now - worker.heard > SILENT_SECONDS:
                self._lose(address, died=False)
                self.refused[address] = (
                    f"{address} does not answer any more; its submissions are graded elsewhere."
                )
        if self._workers:
            return
        if present and self.refused.keys() >= present.keys():
            raise InfrastructureError(
                "\n".join(["No machine of the cluster can grade.", *self.refused.values()])
            )
        if not present and not patient and now - self._started > START_SECONDS:
            raise InfrastructureError(
                f"The cluster has no workers. Start some: dask worker ADDRESS. {RUN_AGAIN}"
            )


def _scores(grade: Grade) -> tuple[object, ...]:
    return grade.status, grade.score, [(test.name, test.score) for test in grade.tests]


def _name(submission: Submission) -> Name:
    return submission.student, submission.assignment
