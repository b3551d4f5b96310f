"""The results of a part as text and as HTML, for a student's notebook and for nbgrader's test cells.

The HTML has inline styles and inherits the text colour, so it is readable on light and dark pages.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable

from autograder.records import TestResult

TitleOf = Callable[[str], str]
_GREEN, _RED, _AMBER, _GREY = "#1a7f37", "#c62828", "#8a5a00", "#5f6670"  # contrast with white above 5 : 1
_STATES = {  # mark, word and colour
    "passed": ("✓", "works", _GREEN),
    "followed": ("✓", "follows", _GREEN),
    "unwritten": ("○", "not yet", _AMBER),
    "failed": ("✗", "fails", _RED),
    "skipped": ("·", "waits", _GREY),
    "timeout": ("⏱", "too slow", _RED),
    "crashed": ("✗", "crashed", _RED),
}
_UNWRITTEN = re.compile(r"(`[\w.]+`|This part) is not written yet\b")
_PILL = "flex:none;align-self:start;width:5.6em;margin-right:.6em;border-radius:.6em;text-align:center"
_CODE = re.compile(r"`([^`\n]+)`")


def is_unwritten(result: TestResult) -> bool:
    """Whether a test failed because the student's code for it is still to be written."""
    return result.outcome == "failed" and _UNWRITTEN.match(result.message or "") is not None


def as_text(
    heading: str, results: Iterable[TestResult] = (), notes: Iterable[str] = (), foot: str = "", title_of: TitleOf = str
) -> str:
    """Format a part for a terminal: the heading, notes, and a line per test with its message and hint.

    `title_of` returns the title of a mistake by its id.
    """
    lines = [heading, *notes]
    asked: set[str] = set()
    for result in results:
        lines.append(f"{_state(result)[0]} {result.title}")
        lines += [f"    {line}" for line in _sentences(result, asked, title_of)]
    return "\n".join([*lines, foot] if foot else lines)


def as_html(
    heading: str, results: Iterable[TestResult] = (), notes: Iterable[str] = (), foot: str = "", title_of: TitleOf = str
) -> str:
    """Format a part as an HTML fragment, with the content of `as_text`."""
    results = tuple(results)
    done = bool(results) and all(result.outcome == "passed" for result in results)
    asked: set[str] = set()
    rows = "".join(_row(result, asked, title_of) for result in results)
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


def _state(result: TestResult) -> tuple[str, str, str]:
    return _STATES["unwritten" if is_unwritten(result) else result.outcome]


def _sentences(result: TestResult, asked: set[str], title_of: TitleOf) -> list[str]:
    """Return the messages of a test; `asked` holds the messages and clues already shown, which are not repeated."""
    message = "" if result.outcome in ("passed", "skipped") else result.message or ""
    told = ["for the same reason as above"] if message in asked else message.split("\n")
    familiar = f"This looks familiar: {title_of(result.mistake)}." if result.mistake else ""
    hint = f"→ {result.hint}" if result.hint else ""
    if not result.is_right and familiar + hint not in asked:
        told += [familiar, hint]
    asked.update(filter(None, (message, familiar + hint)))
    return [line for line in told if line]


def _row(result: TestResult, asked: set[str], title_of: TitleOf) -> str:
    mark, word, colour = _state(result)
    pill = f'<span style="{_PILL};background:{colour};color:#fff">{mark} {word}</span>'
    told = "\n".join(_sentences(result, asked, title_of))
    more = f'<div style="white-space:pre-wrap;margin:.1em 0 .5em">{prose(told)}</div>' if told else ""
    return f'<li style="display:flex;margin:.25em 0">{pill}<div>{prose(result.title)}{more}</div></li>'
