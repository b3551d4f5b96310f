"""What the instructor's and the author's looks at a class show in a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from autograder.comparing import Change, Comparison, TestChange
from autograder.feedback.gradebook import number
from autograder.records import Grade
from autograder.similarity import Pair, Similar

COLOURS = {"down": "red", "removed": "red", "up": "green", "added": "green", "same": "yellow"}
COUNTED = {
    "down": "go down",
    "removed": "are only in the old grades",
    "up": "go up",
    "added": "are only in the new grades",
    "same": "keep their score with other results",
    "unchanged": "are unchanged",
}


def show_comparison(console: Console, comparison: Comparison) -> None:
    """A block for each submission that changed, the reasons below it, then the counts."""
    for line in comparison_lines(comparison):
        console.print(line)


def comparison_lines(comparison: Comparison) -> Iterator[Table | str]:
    """The table of what changed, then sentences."""
    if comparison.changes:
        yield _changes(comparison.changes)
    counts = [f"{count} {COUNTED[kind]}" for kind, count in comparison.counts.items() if count]
    yield f"{', '.join(counts)}."
    if comparison.other_seeds:
        yield (
            f"[yellow]The runs drew different inputs (seeds {_seeds(comparison.seeds_before)} and "
            f"{_seeds(comparison.seeds_after)}): a test may end differently without any change of the suite.[/] "
            f"`autograder grade --regrade --seed {comparison.seeds_before[-1]}` repeats the old ones."
        )
    others = sum(change.other_submission for change in comparison.changes)
    if others:
        yield f"[yellow]{others} of them handed in something else in between.[/]"


def _seeds(seeds: Sequence[int]) -> str:
    return ", ".join(map(str, seeds))


def _changes(changes: Iterable[Change]) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("student", no_wrap=True)
    table.add_column("assignment", no_wrap=True)
    table.add_column("before", justify="right", no_wrap=True)
    table.add_column("after", justify="right", no_wrap=True)
    table.add_column("what changed", ratio=1)
    for change in changes:
        colour = COLOURS[change.kind]
        table.add_row(
            escape(change.student),
            escape(change.assignment),
            _score(change.before),
            f"[{colour}]{_score(change.after)}[/]",
            "\n".join(_reasons(change)),
        )
    return table


def _score(grade: Grade | None) -> str:
    if grade is None:
        return "–"
    return "refused" if grade.status == "refused" else f"{number(grade.score)} / {number(grade.max_score)}"


def _reasons(change: Change) -> Iterator[str]:
    for grade, when in ((change.before, "before"), (change.after, "now")):
        if grade is not None and grade.problem:
            yield f"{when}: {escape(grade.problem)}"
    if change.other_submission:
        yield "[yellow]another text was graded[/]"
    yield from map(_reason, change.tests)


def _reason(test: TestChange) -> str:
    before, after = test.before or "not there", test.after or "not there"
    how = f"{before} → {after}" if before != after else f"{after}, other points"
    points = f" ({_points(test.score_before)} → {_points(test.score_after)})"
    message = f"\n  [dim]{escape(test.message)}[/]" if test.message else ""
    return f"{escape(test.title)}: [bold]{how}[/]{points}{message}"


def _points(score: float | None) -> str:
    return "–" if score is None else number(score)


# ---------------------------------------------------------------------- submissions that are alike


PASSAGES = 4  # of a pair, the longest; the page has them all
SHOWN_WORDS = 5


def show_similar(console: Console, found: Similar) -> None:
    """The pairs, the lines that both have, and that this is no verdict."""
    if found.pairs:
        console.print(_pairs(found.pairs))
    else:
        console.print("No pair stands out.")
    console.print(
        f"{len(found.codes)} submissions compared, {len(found.empty)} with nothing of their own. "
        "For a person to look at; not a verdict: short answers are alike by nature."
    )


def _pairs(pairs: Iterable[Pair]) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("likeness", justify="right", no_wrap=True)
    table.add_column("in common", justify="right", no_wrap=True)
    table.add_column("students")
    table.add_column("lines that both have", ratio=1)
    for pair in pairs:
        students = f"{escape(pair.one)}, {escape(pair.other)}"
        table.add_row(f"{pair.likeness:.0%}", f"{pair.common:.0%}", students, "\n".join(_shared(pair)))
    return table


def _shared(pair: Pair) -> Iterator[str]:
    longest = sorted(pair.passages, key=lambda passage: -passage.length)[:PASSAGES]
    yield ", ".join(f"{_span(p.one)} = {_span(p.other)}" for p in sorted(longest, key=lambda p: p.one))
    if len(pair.passages) > PASSAGES:
        yield f"[dim]and {len(pair.passages) - PASSAGES} shorter ones[/]"
    if pair.words:
        yield f"[yellow]only these two write {escape(', '.join(pair.words[:SHOWN_WORDS]))}[/]"


def _span(lines: tuple[int, int]) -> str:
    return f"{lines[0]}–{lines[1]}" if lines[0] != lines[1] else f"{lines[0]}"
