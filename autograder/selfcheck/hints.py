"""Hints in steps, never code; the steps shown are stored in `.autograder/steps.json` beside the student's file."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from autograder.records import RefusedError
from autograder.selfcheck.check import CheckReport, Finding
from autograder.selfcheck.workspace import Work, read
from autograder.source.places import CodeLocation, StudentText

FOLDER = ".autograder"
FILE_NAME = "steps.json"

HelpStep = tuple[str, str]  # its kind, and its text


@dataclass(frozen=True)
class Hint:
    """The newest step about a test, and the number of steps."""

    title: str
    kind: str
    text: str
    number: int
    of: int
    again: bool = False


def next_hint(work: Work, report: CheckReport, start_over: bool = False) -> Hint | None:
    """Return the next step about the file's error or the first failing test; None if all tests pass."""
    title, key, steps = _about(work, report)
    if not steps:
        return None
    memory = work.folder / FOLDER / FILE_NAME
    shown = {} if start_over else _remembered(memory)
    number = min(shown.get(key, 0) + 1, len(steps))
    again = shown.get(key, 0) >= len(steps)
    _remember(memory, {**shown, key: number})
    return Hint(title, *steps[number - 1], number, len(steps), again)


def _about(work: Work, report: CheckReport) -> tuple[str, str, list[HelpStep]]:
    """Return the title, the storage key and all steps of the current problem; no steps if all tests pass."""
    finding = report.next
    if report.problem or (report.failures and finding is None):
        title = (
            "Your file stops before its end." if report.problem else "A line of your file fails."
        )
        says = report.problem or "\n".join(report.failures)
        steps = [("What Python says", says)]
        steps += [("Where to look", report.stopped_at)] if report.stopped_at else []
        return title, _key(report.file, says), steps
    if finding is None:
        return "", "", []
    result = finding.result
    key = _key(result.name, f"{result.message}{result.hint}")
    return f"“{result.title}”", key, steps_for(finding, StudentText(read(work.file), report.file))


def steps_for(finding: Finding, text: StudentText) -> list[HelpStep]:
    """Return all steps of help for a failure that do not reveal the answer."""
    finds = (
        []
        if finding.unwritten
        else [f"What it found: {finding.result.sentence}", finding.result.to_try]
    )
    looks_at = "\n".join(filter(None, (finding.details, *finds)))
    steps = [("What the test looks at", looks_at)] if looks_at else []
    if finding.result.hint:
        steps.append(("A question", finding.result.hint))
    if finding.nudge:
        steps.append(("A question", finding.nudge))
    if finding.place is not None:
        steps.append(("Where to look", _where(finding.place, text)))
        if section := text.section(finding.place.function):
            place, heading = section
            steps.append(("Read again", f"“{heading}” ({place})"))
    return steps or [("What the test looks at", finding.result.sentence)]


def _where(place: CodeLocation, text: StudentText) -> str:
    name = f", in `{place.function}`" if place.function else ""
    todos = [f"It asks for: {todo} ({where})" for where, todo in text.todos(place.function)]
    return "\n".join([f"{place}{name}", *todos])


def _key(name: str, words: str) -> str:
    """Return the key of a failure; another message about the same test is another failure."""
    return f"{name} {hashlib.sha256(words.encode()).hexdigest()[:8]}"


def _remembered(memory: Path) -> dict[str, int]:
    try:
        return {
            str(key): int(value) for key, value in json.loads(memory.read_text("utf-8")).items()
        }
    except (OSError, ValueError, AttributeError, TypeError):
        return {}  # without a record, the hints start again


def _remember(memory: Path, shown: dict[str, int]) -> None:
    try:
        memory.parent.mkdir(exist_ok=True)
        memory.write_text(json.dumps(shown, indent=1) + "\n", "utf-8")
    except OSError as error:
        raise RefusedError(
            f"{memory}, which remembers the hints, cannot be written: {error.strerror}."
        ) from None
