"""The code that runs in Dask's workers: a plugin with the graders of a worker, and the task that grades a chunk.

Dask runs tasks in threads, in which a test's time limit would not work; so each grader is a
separate process.
"""

import asyncio
import socket
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from distributed import Worker, WorkerPlugin, get_worker

from autograder.extras.cluster.bundle import Bundle
from autograder.extras.cluster.grader_process import GraderDiedError, GraderProcess
from autograder.records import InfrastructureError, Submission

LEAVING_SECONDS = 120  # before the end of its lifetime, a worker begins no other submission
DIED_TWICE = "the grader died twice."
FIRST = 0  # in place of a thread, for the grader that none has used


class Graders(WorkerPlugin):
    """The graders of a worker, one for each of its threads, each started when it is first needed."""

    def __init__(self, bundle: Bundle, topic: str) -> None:
        self.bundle = bundle
        self.topic = topic

    def setup(self, worker: Worker) -> None:
        self._worker = worker
        self._graders: dict[int, GraderProcess] = {}  # by thread
        self.closed = False
        self._ends_at = (
            time.monotonic() + worker.lifetime - LEAVING_SECONDS
            if worker.lifetime
            else float("inf")
        )
        self._starting = asyncio.ensure_future(asyncio.to_thread(self._report))

    async def teardown(self, worker: Worker) -> None:
        """End all graders; the coordinator has their submissions graded elsewhere."""
        with suppress(Exception):
            self.tell(left=True)
        self.closed = True
        for grader in list(self._graders.values()):
            await asyncio.to_thread(grader.close)

    @property
    def is_leaving(self) -> bool:
        return self.closed or time.monotonic() > self._ends_at

    def tell(self, **facts: Any) -> None:
        self._worker.log_event(self.topic, {"worker": self._worker.address, **facts})

    def start(self) -> GraderProcess:
        """Start a grader; raises InfrastructureError if its grades could differ from the coordinator's."""
        return GraderProcess(self.bundle, self._worker.local_directory)

    def grade(self, submission: Submission) -> tuple[str, str]:
        """Grade with this thread's grader; if it dies, grade once more with a new one."""
        for _ in range(2):
            with suppress(GraderDiedError):
                return self._grader().grade(submission)
            if self.closed:
                break
        return "failed", DIED_TWICE

    def _grader(self) -> GraderProcess:
        thread = threading.get_ident()
        grader = self._graders.pop(thread, None) or self._graders.pop(FIRST, None)
        if grader is not None and not grader.is_alive:
            grader.close()
            grader = None
        self._graders[thread] = grader or self._started()
        return self._graders[thread]

    def _started(self) -> GraderProcess:
        grader = self.start()
        if self.closed:
            grader.close()
            raise InfrastructureError("The worker is ending.")
        return grader

    def _report(self) -> None:
        """Start a grader and report whether this worker can grade; until then it receives no submissions."""
        try:
            self._graders[FIRST] = self._started()
            self.tell(ready=self._worker.state.nthreads)
        except Exception as error:
            problem = str(error) if isinstance(error, InfrastructureError) else repr(error)
            self.tell(refused=problem, host=socket.gethostname())


def grade_chunk(topic: str, chunk: int, submissions: Sequence[Submission]) -> None:
    """Grade a chunk in a thread of a worker; reports each result with the submission's place in the chunk."""
    graders: Graders = get_worker().plugins[topic]
    graders.tell(chunk=chunk, began=True)
    for place, submission in enumerate(submissions):
        if graders.is_leaving:
            graders.tell(chunk=chunk, left=True)
            return
        try:
            kind, text = graders.grade(submission)
        except InfrastructureError as error:
            kind = "failed"
            text = str(error)
        if graders.closed:
            return
        graders.tell(chunk=chunk, place=place, kind=kind, text=text)
    graders.tell(chunk=chunk, ended=True)
