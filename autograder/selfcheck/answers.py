"""The answers to the questions of an assignment's text; those of a part are shown once its visible tests pass."""

from autograder.records import RefusedError
from autograder.selfcheck.check import CheckReport
from autograder.selfcheck.locked_hints import LockedHints
from autograder.selfcheck.workspace import Work


def unlocked(work: Work, report: CheckReport) -> dict[str, list[tuple[str, str]]]:
    """Return the questions and answers of each part whose visible tests all pass, by the part's name.

    Raises RefusedError if an older kit built the assignment's files.
    """
    hints = LockedHints(work.folder)
    if hints.has_locked_answers:
        raise RefusedError(
            f"The hints.json in {work.folder.resolve()} comes from an older version of this kit. Get the "
            "assignment's hints.json again, and put it beside your file."
        )
    answers = {part: hints.answers(part) for part in report.by_part()}
    return {
        part: answers[part] for part in answers if part in report.passed_parts and answers[part]
    }
