"""The terminal's tables of similar submissions."""

from collections.abc import Iterable, Iterator

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Column, Table

from autograder.cli.tables import numbers
from autograder.extras.similar.similar import CourseAnswer, Similar
from autograder.extras.similar.similarity import Pair
from autograder.text.wording import listed

PASSAGES = 4  # maximum number of passages shown for a pair, longest first
SHOWN_WORDS = 5


def show_similar(console: Console, similar: Similar) -> None:
    """Print the pairs and the lines they share, and who has an answer of the course's; likeness is no verdict."""
    console.print(_pairs(similar.pairs) if similar.pairs else "No pair is unusually alike.")
    if similar.course_answers:
        console.print(_course_answers(similar.course_answers))
    console.print(
        f"{len(similar.codes)} submissions compared, {len(similar.empty)} without code of their own. "
        "Likeness is not a verdict: short answers are naturally alike."
    )
    if similar.too_long:
        console.print(
            f"[yellow]Not compared, because their code is too long:[/] {escape(listed(similar.too_long))}."
        )


def _pairs(pairs: Iterable[Pair]) -> Table:
    columns = (
        numbers("likeness"),
        numbers("in common"),
        "students",
        Column("shared lines", ratio=1),
    )
    table = Table(*columns, box=box.SIMPLE_HEAD)
    for pair in pairs:
        students = f"{escape(pair.one)}, {escape(pair.other)}"
        table.add_row(
            f"{pair.likeness:.0%}", f"{pair.common:.0%}", students, "\n".join(_shared(pair))
        )
    return table


def _course_answers(matches: Iterable[CourseAnswer]) -> Table:
    columns = (
        numbers("contains"),
        "student",
        "of the course's own answers",
        numbers("and its words"),
    )
    table = Table(*columns, box=box.SIMPLE_HEAD)
    for match in matches:
        words = f"{len(match.words)} of {match.of_words}"
        table.add_row(f"{match.share:.0%}", escape(match.student), escape(match.answer), words)
    return table


def _shared(pair: Pair) -> Iterator[str]:
    longest = sorted(pair.passages, key=lambda passage: -passage.length)[:PASSAGES]
    yield ", ".join(
        f"{_span(p.one)} = {_span(p.other)}" for p in sorted(longest, key=lambda p: p.one)
    )
    if len(pair.passages) > PASSAGES:
        yield f"[dim]and {len(pair.passages) - PASSAGES} shorter ones[/]"
    if pair.words:
        yield f"[yellow]only these two write {escape(', '.join(pair.words[:SHOWN_WORDS]))}[/]"


def _span(lines: tuple[int, int]) -> str:
    return f"{lines[0]}–{lines[1]}" if lines[0] != lines[1] else f"{lines[0]}"
