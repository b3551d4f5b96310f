"""Terminal output of the commands: progress bars, tables and messages."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Column, Table
from rich.text import Text

from autograder.cli.verbosity import QUIET
from autograder.source.python_versions import dotted, for_students, present
from autograder.text.wording import counted

if TYPE_CHECKING:
    from autograder.authoring.audit import Audit
    from autograder.walls.outside.doctor import TierReport

console = Console(highlight=False)


class _Rate(ProgressColumn):
    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text(f"{speed:.1f}/s" if speed else "")


Step = Callable[[int, int], None]  # called with the number done and the total


@contextmanager
def progress(quiet: bool, transient: bool = False) -> Iterator[Callable[[str], Step]]:
    """Show a progress bar for each step of a long command; without a terminal, print a line from time to time.

    Yields a function from the name of a step to its callback `step(done, total)`; the first call
    shows its bar.
    """
    screen = Console(stderr=True, quiet=quiet or QUIET.get())
    if not screen.is_terminal:
        yield lambda name: (lambda done, total: None) if transient else _lines(screen, name)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        _Rate(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=screen, transient=transient) as bars:
        yield lambda name: _bar(bars, name)


def _bar(bars: Progress, name: str) -> Step:
    task = bars.add_task(name, total=None, visible=False)
    return lambda done, total: bars.update(task, completed=done, total=total, visible=True)


def _lines(screen: Console, name: str) -> Step:
    """Print a line after each further tenth, and at the end."""
    printed = -1

    def step(done: int, total: int) -> None:
        nonlocal printed
        tenth = 10 * done // max(total, 1)
        if tenth > printed:
            printed = tenth
            screen.print(f"{name}: {done} of {total}", highlight=False)

    return step


def show_tiers(reports: Sequence["TierReport"]) -> None:
    """Print which sandbox tiers work on this machine."""
    for report in reports:
        verdict = "[green]works[/]" if report.works else "[red]does not work[/]"
        console.print(f"[bold]{report.tier}[/] {verdict}: {escape(report.reason)}", soft_wrap=True)
        if report.hint:
            console.print(f"  [dim]{escape(report.hint)}[/]", soft_wrap=True)
        for problem in report.problems:
            console.print(f"  [red]{escape(problem)}[/]", soft_wrap=True)
    console.print(_python_for_students(), soft_wrap=True)


def _python_for_students() -> str:
    return f"Submissions are run with Python {dotted(present())}: students should use {for_students()}."


COLUMNS = ("stub", "trivial", "right", "caught", "named", "others", "mutants")
LEGEND = (
    "trivial: what the best answer that computes nothing earns. right: the solution. "
    "caught, named: known mistakes. others: alternatives. "
    "mutants: small changes of the solution for which a test fails"
)
LEGEND_OF_MORE = "; + mutants listed as equivalent in equivalent_mutants.yml"


def show_audit(audits: Sequence["Audit"]) -> None:
    """Print the table of an audit, then one line for each problem."""
    columns = (Column(name, justify="right", no_wrap=True) for name in COLUMNS)
    table = Table(
        "assignment",
        *columns,
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        collapse_padding=True,
    )
    shares = [audit.shares() for audit in audits]
    for audit, shares_of_audit in zip(audits, shares):
        table.add_row(audit.assignment, *(_share(*share) for share in shares_of_audit))
    console.print(table)
    more = LEGEND_OF_MORE if any("+" in mutants for *_, (mutants, _) in shares) else ""
    console.print(f"[dim]{LEGEND}{more}.[/]")
    for audit in audits:
        if len(audits) == 1:
            _show_points(audit)
        if audit.carried.sentence:
            console.print(
                f"[dim]{audit.assignment}: {escape(audit.carried.sentence)}[/]", soft_wrap=True
            )
        for problem in audit.problems:
            console.print(f"[red]{audit.assignment}[/]: {escape(problem)}", soft_wrap=True)
    if not any(audit.problems for audit in audits):
        console.print("[green]The audit found no problem.[/]")


def _show_points(audit: "Audit") -> None:
    for title, rows in (
        ("trivial answer", [(f.case.name, "", f"{f.score:g}") for f in audit.of("trivial")]),
        ("mistake", [(f.case.name, f.case.weight or "", f"-{f.loss:g}") for f in audit.losses()]),
    ):
        table = Table(
            title, "weight", "points", box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False
        )
        for row in rows:
            table.add_row(*row)
        if rows:
            console.print(table)
    if audit.unpromised:
        console.print(
            f"[dim]{counted(audit.unpromised, 'hidden test')} without a promise of the stub.[/]"
        )


def _share(text: str, good: bool) -> str:
    if text == "0/0":
        return "[dim]–[/]"
    text = text.replace(" + ", "+")
    return f"[green]{text}[/]" if good else f"[red]{text}[/]"
