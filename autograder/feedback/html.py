"""Pages for students: what works, what does not yet, and one question that points the way.

A page shows nothing that its grade does not hold. It needs no script, no network and no other file.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from autograder.course import Assignment
from autograder.feedback.gradebook import number
from autograder.feedback.statistics import share
from autograder.records import Grade, InfrastructureError, TestResult

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

TEMPLATES = Path(__file__).parent / "templates"
WORDS = (
    (1.0, "Complete. Everything that was tested works."),
    (0.8, "Nearly there. Only a little is left."),
    (0.5, "Well on the way. More than half works."),
    (0.0, "A start. Some of it works; take what is left one thing at a time."),
)
NOTHING_YET = "Nothing passes yet. Begin with the first thing below; much of the rest may wait for it."
STATES = {"failed": "not yet", "timeout": "took too long", "crashed": "crashed"}
_CODE = re.compile(r"`([^`\n]+)`")
_UNSAFE = re.compile(r"[^\w.@+-]")


@dataclass
class Failure:
    """Tests of one part that ended in the same way: told once."""

    state: str
    message: str
    mistake: str | None
    hint: str | None
    titles: list[str] = field(default_factory=list)
    hint_is_new: bool = False


@dataclass
class PartPage:
    """What a page says of one part."""

    title: str
    score: float
    max_score: float
    works: list[str]
    failures: list[Failure]
    waiting: dict[str, list[str]]


def write_feedback(folder: Path, grade: Grade, assignment: Assignment | None) -> Path:
    """Write the page of one grade and return its path: `feedback/<student>/<assignment>.html` in `folder`.

    `assignment` gives the titles; it is None for a submission to an assignment that the course does not have.
    Raises InfrastructureError when jinja2 is missing.
    """
    path = folder / feedback_path(grade)
    path.parent.mkdir(parents=True, exist_ok=True)
    page = render(
        "feedback.html.j2",
        grade=grade,
        title=assignment.title if assignment else grade.assignment,
        word=word(grade),
        parts=_parts(grade, assignment),
    )
    path.write_text(page, encoding="utf-8", errors="replace")
    return path


def feedback_path(grade: Grade) -> PurePosixPath:
    """Where the page of a grade is, below the folder of the report."""
    return PurePosixPath("feedback", _safe_name(grade.student), f"{_safe_name(grade.assignment)}.html")


def word(grade: Grade) -> str:
    """The score in words: warm, and not warmer than the truth."""
    reached = share(grade.score, grade.max_score)
    if reached <= 0:
        return NOTHING_YET
    return next(sentence for least, sentence in WORDS if reached >= least - 1e-9)


def mistake_title(mistake: str) -> str:
    """A mistake's id as people read it."""
    return mistake.replace("_", " ")


def render(template: str, **values: Any) -> str:
    """The page that a template gives; every value is escaped. Raises InfrastructureError without jinja2."""
    return _environment().get_template(template).render(**values)


def prose(text: str) -> Markup:
    """A message as HTML: escaped, `names` as code, indented lines as code of their own."""
    from markupsafe import Markup

    return Markup("\n").join(_line(line) for line in text.split("\n"))


def _line(line: str) -> Markup:
    from markupsafe import Markup, escape

    if line.startswith("    "):
        return Markup('<code class="line">{}</code>').format(line[4:])
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(line))))


@lru_cache(maxsize=1)
def _environment() -> Environment:
    try:
        import jinja2
    except ModuleNotFoundError:
        raise InfrastructureError(
            "The HTML pages need jinja2. Install it with: pip install 'autograder[report]'"
        ) from None
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_printable,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(number=number, prose=prose, mistake_title=mistake_title)
    environment.globals["script"] = _raw("report.js")
    environment.globals["style"] = _raw("style.css")
    return environment


def _raw(name: str) -> Markup:
    """A file of ours that goes into a page as it is."""
    from markupsafe import Markup

    return Markup((TEMPLATES / name).read_text(encoding="utf-8"))


def _printable(value: Any) -> Any:
    """Text without characters that hide or turn around what stands beside them; other values as they are."""
    if not isinstance(value, str):
        return value
    if value.isprintable():
        return value
    shown = "".join(c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in value)
    return value.__class__(shown)


def _parts(grade: Grade, assignment: Assignment | None) -> list[PartPage]:
    titles = {part.name: part.title for part in assignment.parts} if assignment else {}
    found = {test.part: mistake_title(test.part) for test in grade.tests}
    order = [name for name in titles if name in found] + [name for name in found if name not in titles]
    parts, asked = [], set[str]()
    for name in order:
        tests = [test for test in grade.tests if test.part == name]
        parts.append(_part(titles.get(name, found[name]), tests, asked))
    return parts


def _part(title: str, tests: list[TestResult], asked: set[str]) -> PartPage:
    waiting: dict[str, list[str]] = {}
    failures: dict[tuple[str | None, ...], Failure] = {}
    for test in tests:
        if test.outcome == "skipped":
            waiting.setdefault(test.message or "This was not tested.", []).append(test.title)
        elif test.outcome != "passed":
            failure = Failure(STATES[test.outcome], test.message or "", test.mistake, test.hint)
            key = (test.outcome, test.message, test.mistake, test.hint)
            failures.setdefault(key, failure).titles.append(test.title)
    for failure in failures.values():
        failure.hint_is_new = bool(failure.hint) and failure.hint not in asked
        asked.add(failure.hint or "")
    return PartPage(
        title=title,
        score=sum(test.score for test in tests),
        max_score=sum(test.max_score for test in tests),
        works=[test.title for test in tests if test.outcome == "passed"],
        failures=list(failures.values()),
        waiting=waiting,
    )


def _safe_name(name: str) -> str:
    """A name for files and folders: the name itself when it is harmless, else with a digest that keeps it unique."""
    plain = unicodedata.normalize("NFC", name)
    safe = _UNSAFE.sub("_", plain).lstrip(".")[:80]
    if safe and safe == name == name.casefold():
        return safe
    digest = hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:8]
    return f"{safe or 'student'}-{digest}"
