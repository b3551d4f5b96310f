"""The gradebook, `grades.csv`: one row per student and assignment, for spreadsheets and other programs."""

import csv
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from types import SimpleNamespace

from autograder.gradebook.final_scores import Effective, final_of, number
from autograder.gradebook.lateness import Final
from autograder.records import Grade
from autograder.text.files import write_whole

FILE_NAME = "grades.csv"
COLUMNS = (
    "student", "assignment", "status", "score", "max_score", "problem", "final_score", "days_late", "decisions",
)  # fmt: skip
LATE_DAYS = ("late_days_taken", "late_days_left")  # in a course that has some
# in locales with a decimal comma, spreadsheets separate cells with semicolons
_JOINERS = "\u200c\u200d"
_LAST_LATIN = "\u024f"
_FORMULA = re.compile(r"(^|;\s*)(?=[=+\-@\t\r\n＝＋－＠])")


def write_gradebook(folder: Path, effective: Effective) -> Path:
    """Write `grades.csv` (RFC 4180, UTF-8) with the grades that count, one of each student and assignment.

    `score` is the score in the journal, `final_score` the score after the decisions and lateness,
    empty if excused; `days_late` is empty if unknown. A course with late days has two more columns.
    """
    has_late_days = any(final.left is not None for final in effective.finals.values())
    titles = (*COLUMNS, *LATE_DAYS) if has_late_days else COLUMNS
    rows = (
        [
            harmless(effective.originals.get(grade.student, grade.student)),
            *_row(grade, final_of(grade, effective.finals)),
        ]
        for grade in effective.grades
    )
    return write_whole(folder / FILE_NAME, csv_lines([titles], rows))


def csv_lines(*tables: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a CSV file with these rows."""
    return map(csv.writer(SimpleNamespace(write=str)).writerow, chain(*tables))


def _row(grade: Grade, final: Final) -> tuple[str, ...]:
    scores = (number((final.journal or grade).score), number(grade.max_score))
    late = f"{final.days}" if final.due and final.known else ""
    names = (harmless(grade.assignment),)
    decisions = harmless("\n".join(decision.sentence for decision in final.decisions))
    count = "" if final.excused else number(final.score)
    days = () if final.left is None else (f"{final.free}", f"{final.left}")
    return (
        *names,
        grade.status,
        *scores,
        harmless(grade.problem or ""),
        count,
        late,
        decisions,
        *days,
    )


def harmless(text: str) -> str:
    """Return the text for a cell: without characters that are not seen, and with an apostrophe before a formula.

    Control characters and those that change the direction of writing can make a cell look like
    another one.
    """
    visible = "".join(
        letter for place, letter in enumerate(text) if _is_visible(letter, text[place - 1 : place])
    )
    return _FORMULA.sub(r"\1'", visible)


def _is_visible(letter: str, before: str) -> bool:
    if letter in "\t\r\n":
        return True
    if letter in _JOINERS:  # part of the spelling of Persian and of the scripts of India
        return before > _LAST_LATIN
    return unicodedata.category(letter) not in ("Cc", "Cf")
