"""The commands for students: check, watch, hint, answers, catch, progress and pack."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from autograder.cli.base import DONE, FOUND, Interrupted, say, show
from autograder.cli.console import console
from autograder.cli.console import progress as console_progress
from autograder.cli.verbosity import QUIET
from autograder.options import Target, argument, flag, path_option, value
from autograder.records import RefusedError
from autograder.selfcheck.workspace import Work, find_work, find_works

if TYPE_CHECKING:
    from autograder.selfcheck.check import CheckReport


def check(
    target: Target = ".",
    picture: Annotated[
        bool, flag("--picture", "-p", help="Draw what your code does, into `pictures/`.")
    ] = False,
    as_json: bool = False,
) -> int:
    """Run the visible tests on your code, and explain each failure."""
    from autograder.selfcheck.drawing import draw_all
    from autograder.selfcheck.screens import check_screen

    works = find_works(target)
    if len(works) > 1:
        return _check_all(target, as_json)
    report = _checked(works[0])
    drawings = draw_all(works[0]) if picture and not as_json else ()
    show(as_json, report.as_record, lambda: console.print(check_screen(report, drawings)))
    return DONE if report.all_passed else FOUND


def _checked(work: Work) -> "CheckReport":
    """Return the report of a student's file; in a terminal, a line says at once that the tests run."""
    from autograder.selfcheck.check import check_work

    if sys.stderr.isatty() and not QUIET.get():
        say(f"Checking {work.file.name} …")
    with _interrupted(f"Stopped. {work.file.name} was not checked to its end."):
        return check_work(work)


@contextmanager
def _interrupted(sentence: str) -> Iterator[None]:
    """Say this when the block is interrupted: of a check, nothing is kept."""
    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted(sentence) from None


def _check_all(target: str, as_json: bool) -> int:
    from autograder.selfcheck.progress import standings
    from autograder.selfcheck.screens import progress_screen

    with _interrupted("Stopped."), console_progress(quiet=as_json, transient=True) as steps:
        all_standings = standings(target, steps("Checking"))
    reports = [standing.report for standing in all_standings]
    records = (report.as_record() for report in reports if report)
    show(as_json, lambda: list(records), lambda: console.print(progress_screen(all_standings)))
    return DONE if all(report and report.all_passed for report in reports) else FOUND


def watch(target: Target = ".") -> int:
    """Check your code again after every save; keys show hints, pictures and answers, catch mistakes and pack."""
    from autograder.selfcheck.watch import watch as watching

    try:
        watching(target, console)
    except KeyboardInterrupt:
        console.print()
    return DONE


def hint(
    target: Target = ".",
    again: Annotated[bool, flag("--again", help="Start again with the first step.")] = False,
) -> int:
    """Show one step of help with the first failing test, never code; call it again for the next step."""
    from autograder.selfcheck.hints import next_hint
    from autograder.selfcheck.screens import hint_screen

    work = find_work(target)
    next_step = next_hint(work, _checked(work), start_over=again)
    console.print(hint_screen(next_step, f"autograder hint {work.name}"))
    return DONE


def answers(target: Target = ".") -> int:
    """Ask the questions of the parts that pass their visible tests, and show the answers.

    In a terminal, an answer waits for Enter.
    """
    from autograder.selfcheck.answers import unlocked
    from autograder.selfcheck.screens import answer_screen, no_answers_screen, question_screen

    work = find_work(target)
    cards = unlocked(work, _checked(work))
    if not cards:
        console.print(no_answers_screen())
    for card in cards:
        console.print(question_screen(card))
        if sys.stdin.isatty():
            with _interrupted("Stopped."):
                console.input("[dim]Enter shows the answer.[/]")
        console.print(answer_screen(card))
        console.print()
    return DONE


def catch(
    target: Target = ".",
    part: Annotated[
        str | None, value("--part", metavar="NAME", help="Try the inputs of this part only.")
    ] = None,
    give_up: Annotated[
        str | None,
        value(
            "--give-up",
            metavar="LETTER",
            help="Run the author's input for this program, and see what it says about your code.",
        ),
    ] = None,
) -> int:
    """Find inputs, in catch.py, on which wrong programs differ from your code."""
    from autograder.selfcheck.catch.told import (
        about_giving_up,
        catch_with_file,
        give_up_with_file,
        summary,
    )
    from autograder.selfcheck.screens import items_screen

    work = find_work(target)
    report = _checked(work)
    if give_up is None:
        results = catch_with_file(work, report, part)
        lines, command = summary(results, f"autograder catch {work.name}")
        console.print(items_screen([(r.title, r.items) for r in results], lines, command))
        return DONE
    given = give_up_with_file(work, report, give_up)
    console.print(items_screen([("", about_giving_up(given))]))
    return FOUND if given.made or given.unexpected else DONE


def progress(
    folder: Annotated[
        str, argument(metavar="FOLDER", help="The folder with your assignments.")
    ] = ".",
    as_json: bool = False,
) -> int:
    """Show your results in the whole course."""
    _check_all(folder, as_json)
    return DONE


def pack(
    target: Target = ".",
    output: Annotated[
        Path, path_option("--output", "-o", help="The folder for the archive.")
    ] = Path("."),
) -> int:
    """Create the archive to hand in, and read it back as the grader will."""
    from autograder.selfcheck import pack as packing
    from autograder.selfcheck.screens import packed_screen

    if not output.is_dir():
        raise RefusedError(f"There is no folder {output}.")
    work = find_work(target)
    console.print(packed_screen(packing.pack(work, output), _checked(work)))
    return DONE
