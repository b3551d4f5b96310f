"""What a test sends to a student's module, to find tests whose inputs do not depend on the seed of the run."""

import hashlib
from typing import Any

from autograder.bridge.inside.server import Server
from autograder.bridge.outside.local import load
from autograder.bridge.outside.loopback import LoopbackConnection
from autograder.bridge.outside.remote import RemoteStudent
from autograder.bridge.outside.subject import RemoteSubject
from autograder.bridge.shared import wire
from autograder.grading.prepared import PreparedAssignment
from autograder.grading.suite_run import TrustedExaminee
from autograder.grading.time_limits import TaskEndedError, Watch
from autograder.suite.session import SuiteSession

SECONDS = 30.0  # of processor time, for the solution in one test
WITHOUT_INPUTS = {"seed", "find"}  # requests about the seed itself, and for a name


class _DigestingConnection(LoopbackConnection):
    """A connection that keeps a digest of all that a test sends: its requests, and its answers to callbacks."""

    def __init__(self, server: Server) -> None:
        super().__init__(server)
        self.sent = hashlib.sha256()

    def exchange(
        self, operation: str, arguments: dict[str, Any], seconds: float | None
    ) -> dict[str, Any]:
        if operation not in WITHOUT_INPUTS:
            self.sent.update(wire.dumps([operation, arguments], self.register))
        return super().exchange(operation, arguments, seconds)

    def answer_callback(self, frame: dict[str, Any]) -> dict[str, Any]:
        reply = super().answer_callback(frame)
        self.sent.update(wire.dumps(reply, self.register))
        return reply


def sent_requests(
    session: SuiteSession, prepared: PreparedAssignment, run_seed: int, watch: Watch
) -> dict[str, str]:
    """Return a digest of what each hidden test sends to the solution in a run with this seed, by the test's name."""
    name = f"requests.{prepared.solution.name}"
    module = load(prepared.solution.text, f"{name}.py", name).module
    digests = {}
    for test in prepared.tests:
        if test.hidden:
            connection = _DigestingConnection(Server(module))
            subject = RemoteSubject(connection, RemoteStudent(connection), prepared.reference)
            examinee = TrustedExaminee(subject, watch, "the requests of", SECONDS)
            (ending,) = session.examine(examinee, run_seed, [test])
            if isinstance(ending.error, TaskEndedError):
                raise ending.error
            digests[test.name] = connection.sent.hexdigest()
    return digests
