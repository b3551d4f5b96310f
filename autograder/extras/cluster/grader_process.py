"""A grader as a subprocess: `python -m autograder.extras.cluster.grader_process DESCRIPTOR FOLDER`.

When the other end of its connection closes, or after a while without submissions, it removes its
folder and ends. It first finishes the submission that it is grading.
"""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from autograder.extras.cluster.bundle import Bundle
from autograder.records import CourseError, InfrastructureError, RefusedError, Submission
from autograder.runs.pool import be_ready, call_in_fork, grade_one, prepare_process
from autograder.walls.outside.launcher import require_tier
from autograder.walls.outside.trusted_process import module_command

IDLE_SECONDS = 600
START_SECONDS = 300


class GraderDiedError(Exception):
    """The process ended before it replied."""


class GraderProcess:
    """A grader in a subprocess of this process; raises InfrastructureError if it cannot grade."""

    def __init__(self, bundle: Bundle, scratch: str) -> None:
        # readable for this user alone
        self._folder = tempfile.mkdtemp(prefix="grader-", dir=scratch)
        self._socket, theirs = socket.socketpair()
        with theirs:
            command = module_command(__name__, str(theirs.fileno()), self._folder)
            # in a session of its own, it does not hear Ctrl-C: it ends when this process closes the
            # connection
            self._process = subprocess.Popen(
                command,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        self._connection = Connection(self._socket.fileno())
        try:
            problem = str(self._ask(bundle, START_SECONDS))
        except GraderDiedError:
            problem = f"Its grader did not start (exit code {self._process.returncode})."
        if problem:
            self.close()
            raise InfrastructureError(problem)

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def grade(self, submission: Submission) -> tuple[str, str]:
        """Return `("grade", line)`, `("failed", sentence)` or `("course", sentence)`; raises GraderDiedError."""
        answer: tuple[str, str] = self._ask(submission)
        return answer

    def close(self) -> None:
        """End the process, even while another thread waits for its reply, and remove its folder."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._process.kill()
        self._process.wait()
        self._connection.close()
        self._socket.detach()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _ask(self, question: Bundle | Submission, seconds: float | None = None) -> Any:
        with suppress(EOFError, OSError):
            self._connection.send(question)
            if self._connection.poll(seconds):
                return self._connection.recv()
        self.close()
        raise GraderDiedError


def main(descriptor: int, folder: Path) -> None:
    os.set_inheritable(descriptor, False)
    connection = Connection(descriptor)
    # otherwise the other end would not see this process end
    os.register_at_fork(after_in_child=connection.close)
    try:
        connection.send(_prepare(connection.recv(), folder))
        while connection.poll(IDLE_SECONDS):
            connection.send(_graded(connection.recv()))
    except (EOFError, OSError):
        pass
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os._exit(0)


def _prepare(bundle: Bundle, folder: Path) -> str:
    try:
        plan = bundle.unpack(folder)
        require_tier(plan.tier, plan.course.min_tier)
        prepare_process(plan, str(folder))
        be_ready()
        call_in_fork(os.getpid)
    except (CourseError, RefusedError, InfrastructureError) as error:
        return str(error)
    return ""


def _graded(submission: Submission) -> tuple[str, str]:
    problem = ""
    for _ in range(2):
        try:
            return "grade", call_in_fork(grade_one, submission).to_json()
        except CourseError as error:
            return "course", str(error)
        except InfrastructureError as error:
            problem = str(error)
    return "failed", problem


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
