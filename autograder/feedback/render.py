"""The results of a part as text and as HTML, for a student's notebook and for nbgrader's test cells.

The HTML has inline styles and inherits the text colour, so it is readable on light and dark pages.
"""

import html
import re
from dataclasses import dataclass

from autograder.feedback.causes import Cause, causes_of, told
from autograder.records import TestResult

_GREEN = "#1a7f37"
_RED = "#c62828"
_AMBER = "#8a5a00"
_GREY = "#5f6670"  # contrast with white above 5 : 1
_STATES = {  # mark, word and colour
    "passed": ("✓", "works", _GREEN),
    "followed": ("✓", "follows", _GREEN),
    "unwritten": ("○", "not yet", _AMBER),
    "failed": ("✗", "fails", _RED),
    "skipped": ("·", "waits", _GREY),
    "timeout": ("⏱", "too slow", _RED),
    "crashed": ("✗", "crashed", _RED),
    "decided": ("✓", "decided", _GREY),
}
_PILL = (
    "flex:none;align-self:start;width:5.6em;margin-right:.6em;border-radius:.6em;text-align:center"
)
_CODE = re.compile(r"`([^`\n]+)`")


@dataclass(frozen=True)
class Item:
    """One item of a list: a line with a mark in front, a title that stands out, and more lines."""

    mark: str
    line: str
    title: str = ""
    below: tuple[str, ...] = ()

    def __str__(self) -> str:
        title = [self.title] if self.title else []
        return "\n".join([f"{self.mark} {self.line}", *title, *self.below])

    @property
    def as_html(self) -> str:
        """The item as HTML, the title first."""
        title = f"<strong>{prose(self.title)}</strong>" if self.title else ""
        lines = [title, prose(self.line), *map(prose, self.below)]
        shown = "".join(_paragraph(line) for line in lines if line)
        mark = f'<span style="flex:none;width:1.4em">{prose(self.mark)}</span>'
        return f'<li style="display:flex;margin:.5em 0">{mark}<div>{shown}</div></li>'


@dataclass(frozen=True)
class Message:
    """A heading, notes, a list, the results of tests by cause and a foot: text in a terminal, an
    HTML fragment in a notebook.
    """

    heading: str
    results: tuple[TestResult, ...] = ()
    notes: tuple[str, ...] = ()
    foot: str = ""
    items: tuple[Item, ...] = ()

    @property
    def passed(self) -> bool:
        return bool(self.results) and all(result.outcome == "passed" for result in self.results)

    def __repr__(self) -> str:
        lines = [self.heading, *self.notes, *map(str, self.items)]
        for cause in causes_of(self.results):
            lines += _question(cause)
            lines += _shared(cause)
            already_said = {cause.shared}
            for result in cause.tests:
                lines.append(f"{_state(result)[0]} {result.title}{_cost(result)}")
                lines += [f"    {line}" for line in _sentences(result, already_said)]
        return "\n".join([*lines, self.foot] if self.foot else lines)

    def _repr_html_(self) -> str:
        rows = "".join(item.as_html for item in self.items)
        rows += "".join(map(_rows, causes_of(self.results)))
        pieces = [
            _paragraph(f"<strong>{prose(self.heading)}</strong>"),
            *(_paragraph(prose(n)) for n in self.notes),
        ]
        pieces += (
            [f'<ul style="list-style:none;margin:.3em 0;padding:0">{rows}</ul>'] if rows else []
        )
        pieces += [_paragraph(prose(line)) for line in self.foot.split("\n") if line]
        colour = _GREEN if self.passed else _GREY
        edge = f"border-left:4px solid {colour};padding:.2em .9em;margin:.4em 0;line-height:1.5"
        return f'<div role="status" style="{edge}">{"".join(pieces)}</div>'


def prose(text: str) -> str:
    """Convert text to HTML: escaped, with `names` as code."""
    shown = "".join(
        c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in text
    )
    return _CODE.sub(r"<code>\1</code>", html.escape(shown))


def _paragraph(content: str) -> str:
    return f'<p style="margin:.2em 0">{content}</p>'


def _question(cause: Cause) -> list[str]:
    """Return the name of a known mistake and its question."""
    return [*filter(None, [cause.familiar]), f"→ {cause.question}"] if cause.question else []


def _state(result: TestResult) -> tuple[str, str, str]:
    return _STATES["unwritten" if result.is_unwritten else result.outcome]


def _cost(result: TestResult) -> str:
    return f" (−{result.lost:g})" if result.fails else ""


def _sentences(result: TestResult, already_said: set[str]) -> list[str]:
    """Return the message of a test, unless it is among those `already_said`."""
    message = told(result)
    if message in already_said:
        return []
    already_said.add(message)
    return [line for line in (*message.split("\n"), result.to_try) if line]


def _shared(cause: Cause) -> list[str]:
    """Return the message of several tests, and the input of the first."""
    if not cause.shared:
        return []
    return [line for line in (*cause.shared.split("\n"), cause.tests[0].to_try) if line]


def _rows(cause: Cause) -> str:
    already_said = {cause.shared}
    above = [*_question(cause), *_shared(cause)]
    asked = "<br>".join(map(prose, above))
    edge = f"border-left:2px solid {_RED};padding-left:.6em;margin:.4em 0"
    rows = "".join(_row(result, already_said) for result in cause.tests)
    return (
        f'<li style="{edge}">{asked}<ul style="list-style:none;padding:0">{rows}</ul></li>'
        if asked
        else rows
    )


def _row(result: TestResult, already_said: set[str]) -> str:
    mark, word, colour = _state(result)
    pill = f'<span style="{_PILL};background:{colour};color:#fff">{mark} {word}</span>'
    sentences = "\n".join(_sentences(result, already_said))
    more = (
        f'<div style="white-space:pre-wrap;margin:.1em 0 .5em">{prose(sentences)}</div>'
        if sentences
        else ""
    )
    title = f"{prose(result.title)}{_cost(result)}"
    return f'<li style="display:flex;margin:.25em 0">{pill}<div>{title}{more}</div></li>'
