"""The answers to the questions of an assignment's text; those of a part are locked until its visible tests pass.

Right code leaves the same answers in a test as the solution or an alternative, and so opens the
lock (`locked_hints`).
"""

from collections.abc import Collection
from pathlib import Path
from types import ModuleType

from autograder.selfcheck.check import CheckReport, suite_of
from autograder.selfcheck.locked_hints import LockedHints, RecordingConnection, take
from autograder.selfcheck.workspace import Work


def unlocked(work: Work, report: CheckReport) -> dict[str, list[tuple[str, str]]]:
    """Return the questions and answers of each part whose visible tests all pass, by the part's name."""
    return unlocked_by(work.load().module, work.test_file, report.passed_parts)


def unlocked_by(
    module: ModuleType, test_file: Path, parts: Collection[str]
) -> dict[str, list[tuple[str, str]]]:
    """Return the questions and answers of these parts, as far as a module's own answers unlock them."""
    hints = LockedHints(test_file.parent)
    connection = RecordingConnection(module)
    answers_by_part: dict[str, list[tuple[str, str]]] = {}
    with suite_of(test_file) as session:
        for test in session.tests():
            if not answers_by_part.get(test.part) and test.part in parts:
                answers_by_part[test.part] = hints.answers(
                    test.name, take(session, test, connection).answers
                )
    return {part: answers for part, answers in answers_by_part.items() if answers}
