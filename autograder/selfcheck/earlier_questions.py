"""One question of an earlier part, asked again after another part passes; nobody counts it.

`.autograder/questions.json` beside the student's file remembers which parts have passed, their
questions, and when each was asked. It holds no answer: `autograder answers` unlocks these. The
questions of all assignments in the same folder take turns.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from io import StringIO
from pathlib import Path

from pydantic import AwareDatetime, BaseModel

from autograder.records import RefusedError
from autograder.selfcheck.answers import unlocked_by
from autograder.selfcheck.check import CheckReport
from autograder.selfcheck.hints import FOLDER
from autograder.selfcheck.locked_hints import LockedHints
from autograder.selfcheck.workspace import Work
from autograder.text.files import write_whole

FILE_NAME = "questions.json"
REST = timedelta(days=1)  # before a question is asked once more

Answers = Mapping[str, list[tuple[str, str]]]


class PassedPart(BaseModel):
    """A part that has passed: when, and its questions, each with the time when it was asked last."""

    title: str
    passed: AwareDatetime
    questions: dict[str, AwareDatetime | None] = {}


class Memory(BaseModel):
    """What is remembered of one assignment; `off` if the student wants no questions."""

    off: bool = False
    parts: dict[str, PassedPart] = {}


@dataclass(frozen=True)
class EarlierQuestion:
    """A question of a part that passed before."""

    text: str
    assignment: str
    part: str


@dataclass(frozen=True)
class Standing:
    """What a check says about the parts of one assignment."""

    passed: Mapping[str, str]  # the titles of the parts that pass
    failing: Collection[str] = ()
    finished: bool = False


def question_after(
    work: Work, report: CheckReport, now: datetime | None = None
) -> EarlierQuestion | None:
    """Return the question to ask after a check; None if no part is newly right, or none is left to ask."""
    parts = report.by_part()
    passed = {part: report.title(part) for part in parts if part in report.passed_parts}
    standing = Standing(passed, parts.keys() - passed.keys(), report.all_passed)

    def open_answers(parts: Collection[str]) -> Answers:
        with redirect_stdout(StringIO()):  # the student's file runs once more
            return unlocked_by(work.load().module, work.test_file, parts)

    return next_question(work.folder, standing, open_answers, now)


def next_question(
    folder: Path,
    standing: Standing,
    open_answers: Callable[[Collection[str]], Answers],
    now: datetime | None = None,
) -> EarlierQuestion | None:
    """Remember the parts that pass now, and return a question of a part that passed before.

    `open_answers` unlocks the questions and answers of parts: a question is asked only if its
    answer can be shown.
    """
    now = now or datetime.now(timezone.utc)
    hints = LockedHints(folder)
    memories = {place: _remembered(place) for place in _folders(folder)}
    is_off = not hints.asks_earlier_questions or any(memory.off for memory in memories.values())
    memory_here = memories[folder]
    new_parts = [part for part in standing.passed if part not in memory_here.parts]
    is_news = bool(new_parts) or standing.finished
    if is_off or not hints.has_answers or not is_news:
        return None
    if new_parts:
        answers = open_answers(new_parts)
        for part in new_parts:
            pairs = answers.get(part, ())
            questions = dict.fromkeys(hints.asked_again(question) for question, _ in pairs)
            title = standing.passed[part]
            memory_here.parts[part] = PassedPart(title=title, passed=now, questions=questions)
        if not _written(folder, memory_here):
            return None
    not_now = {(folder, part) for part in (*new_parts, *standing.failing)}
    return _longest_ago(memories, not_now, now)


def _longest_ago(
    memories: Mapping[Path, Memory], not_now: Collection[tuple[Path, str]], now: datetime
) -> EarlierQuestion | None:
    """Return the question that passed or was asked longest ago, and remember that it is asked."""
    waiting = []
    for folder, part, passed in _passed_parts(memories):
        for question, asked in passed.questions.items():
            is_resting = asked is not None and now - asked < REST
            if not is_resting and (folder, part) not in not_now:
                since = (asked or passed.passed, asked is not None)
                waiting.append((since, folder, part, question))
    if not waiting:
        return None
    _, folder, part, question = min(waiting, key=lambda candidate: candidate[0])
    chosen = memories[folder].parts[part]
    chosen.questions[question] = now
    if not _written(folder, memories[folder]):
        return None
    return EarlierQuestion(question, folder.resolve().name, chosen.title)


def _passed_parts(memories: Mapping[Path, Memory]) -> Iterator[tuple[Path, str, PassedPart]]:
    for folder, memory in memories.items():
        for part, passed in memory.parts.items():
            yield folder, part, passed


def switch(folder: Path, on: bool) -> None:
    """Ask earlier questions from now on, or no more, in this assignment and those beside it.

    Raises RefusedError if that cannot be remembered.
    """
    for place in _folders(folder):
        memory = _remembered(place)
        if memory.off is on and not _written(place, memory.model_copy(update={"off": not on})):
            raise RefusedError(
                f"{place / FOLDER / FILE_NAME}, which remembers the questions, cannot be written."
            )


def _folders(folder: Path) -> list[Path]:
    """Return the assignment's folder, then those beside it that remember something."""
    beside = sorted(
        file.parents[1] for file in folder.resolve().parent.glob(f"*/{FOLDER}/{FILE_NAME}")
    )
    return [folder, *(place for place in beside if place != folder.resolve())]


def _remembered(folder: Path) -> Memory:
    try:
        return Memory.model_validate_json((folder / FOLDER / FILE_NAME).read_bytes())
    except (OSError, ValueError):
        return Memory()  # there is none, or it is damaged: a new one takes its place


def _written(folder: Path, memory: Memory) -> bool:
    """Write what is remembered; False in a folder that cannot be written, where nothing is asked."""
    try:
        write_whole(folder / FOLDER / FILE_NAME, memory.model_dump_json(indent=1) + "\n")
    except OSError:
        return False
    return True
