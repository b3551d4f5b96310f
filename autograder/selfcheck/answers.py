"""The answers to the questions of an assignment's text; those of a part are shown once its visible tests pass."""

from dataclasses import dataclass

from autograder.records import RefusedError
from autograder.selfcheck.check import CheckReport
from autograder.selfcheck.locked_hints import LockedHints
from autograder.selfcheck.workspace import Work


@dataclass(frozen=True)
class Card:
    """A question of the text and its answer, with the title of its part."""

    title: str
    question: str
    answer: str


def unlocked(work: Work, report: CheckReport) -> list[Card]:
    """Return the questions and answers of the parts whose visible tests all pass.

    Raises RefusedError if an older kit built the assignment's files.
    """
    hints = LockedHints(work.folder)
    if hints.has_locked_answers:
        raise RefusedError(
            f"The hints.json in {work.folder.resolve()} comes from an older version of this kit. Get the "
            "assignment's hints.json again, and put it beside your file."
        )
    cards: list[Card] = []
    for part in report.by_part():
        if part in report.passed_parts:
            title = report.title(part)
            pairs = hints.answers(part)
            cards += [Card(title, question, answer.strip()) for question, answer in pairs]
    return cards
