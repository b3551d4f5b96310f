"""The answers to the questions of an assignment's text; those of a part are locked until its
visible tests pass.

Right code leaves the same answers in a test as the solution or an alternative, and so opens the
lock (`locked_hints`).
"""

from autograder.selfcheck.check import CheckReport, suite_of
from autograder.selfcheck.locked_hints import LockedHints, RecordingConnection, take
from autograder.selfcheck.workspace import Work


def unlocked(work: Work, report: CheckReport) -> dict[str, list[tuple[str, str]]]:
    """Return the questions and answers of each part whose visible tests all pass, by the part's
    name.
    """
    hints = LockedHints(work.folder)
    connection = RecordingConnection(work.load().module)
    found: dict[str, list[tuple[str, str]]] = {}
    with suite_of(work.test_file) as session:
        for test in session.tests():
            if not found.get(test.part) and test.part in report.passed_parts:
                found[test.part] = hints.answers(test.name, take(session, test, connection).answers)
    return {part: answers for part, answers in found.items() if answers}
