"""The results of a part as text and as HTML, for a student's notebook and for nbgrader's test cells.

The HTML has inline styles and inherits the text colour, so it is readable on light and dark pages.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable

from autograder.records import TestResult
from autograder.text.wording import begun

MARKS = {"passed": "✓", "followed": "✓", "failed": "✗", "skipped": "·", "timeout": "⏱", "crashed": "✗", "decided": "✓"}
WORDS = {
    "passed": "works",
    "followed": "follows",
    "failed": "not yet",
    "skipped": "waits",
    "timeout": "too slow",
    "crashed": "crashed",
    "decided": "decided",
}
_GREEN, _RED, _GREY = "#1a7f37", "#c62828", "#5f6670"  # white text on each has a contrast above 5 : 1
_COLOURS = {"passed": _GREEN, "followed": _GREEN, "skipped": _GREY, "decided": _GREY}
_PILL = "display:inline-block;min-width:4.6em;margin-right:.6em;padding:0 .5em;border-radius:.6em;text-align:center"
_CODE = re.compile(r"`([^`\n]+)`")


def as_text(heading: str, results: Iterable[TestResult] = (), notes: Iterable[str] = (), foot: str = "") -> str:
    """Format a part for a terminal: the heading, notes, and a line per test with its message and hint."""
    lines = [heading, *notes]
    for tests in _by_cause(results):
        lines += _question(tests[0])
        for result in tests:
            lines.append(f"{MARKS[result.outcome]} {result.title}{_cost(result)}")
            lines += [f"    {line}" for line in _sentences(result)]
    return "\n".join([*lines, foot] if foot else lines)


def as_html(heading: str, results: Iterable[TestResult] = (), notes: Iterable[str] = (), foot: str = "") -> str:
    """Format a part as an HTML fragment."""
    results = tuple(results)
    done = bool(results) and all(result.outcome == "passed" for result in results)
    rows = "".join(_rows(tests) for tests in _by_cause(results))
    pieces = [f'<p style="margin:.2em 0"><strong>{prose(heading)}</strong></p>']
    pieces += [f'<p style="margin:.2em 0">{prose(note)}</p>' for note in notes]
    pieces += [f'<ul style="list-style:none;margin:.3em 0;padding:0">{rows}</ul>'] if rows else []
    pieces += [f'<p style="margin:.2em 0">{prose(foot)}</p>'] if foot else []
    edge = f"border-left:4px solid {_GREEN if done else _GREY};padding:.2em .9em;margin:.4em 0;line-height:1.5"
    return f'<div role="status" style="{edge}">{"".join(pieces)}</div>'


def prose(text: str) -> str:
    """Convert text to HTML: escaped, with `names` as code."""
    shown = "".join(c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in text)
    return _CODE.sub(r"<code>\1</code>", html.escape(shown))


def _by_cause(results: Iterable[TestResult]) -> Iterable[list[TestResult]]:
    """Return the tests that fail for one cause together, in the order of their first ones."""
    causes: dict[object, list[TestResult]] = {}
    for result in results:
        causes.setdefault(result.cause, []).append(result)
    return causes.values()


def _question(result: TestResult) -> list[str]:
    """Return the name of a known mistake and its question, for the first of the tests that it explains."""
    if not result.hint or result.is_right:
        return []
    return [f"→ {begun(result.mistake)}.", f"→ {result.hint}"] if result.mistake else [f"→ {result.hint}"]


def _cost(result: TestResult) -> str:
    return f" (−{result.max_score - result.score:g})" if result.outcome not in ("passed", "followed", "skipped") else ""


def _sentences(result: TestResult) -> list[str]:
    told = [] if result.outcome in ("passed", "skipped") else (result.message or "").split("\n")
    return [line for line in told if line]


def _rows(tests: list[TestResult]) -> str:
    asked = "<br>".join(prose(line) for line in _question(tests[0]))
    edge = f"border-left:2px solid {_RED};padding-left:.6em;margin:.4em 0"
    rows = "".join(map(_row, tests))
    return f'<li style="{edge}">{asked}<ul style="list-style:none;padding:0">{rows}</ul></li>' if asked else rows


def _row(result: TestResult) -> str:
    colour = _COLOURS.get(result.outcome, _RED)
    pill = (
        f'<span style="{_PILL};background:{colour};color:#fff">{MARKS[result.outcome]} {WORDS[result.outcome]}</span>'
    )
    told = "\n".join(_sentences(result))
    more = f'<div style="white-space:pre-wrap;margin:.1em 0 .5em 5.8em">{prose(told)}</div>' if told else ""
    return f'<li style="margin:.25em 0">{pill}{prose(result.title)}{_cost(result)}{more}</li>'
