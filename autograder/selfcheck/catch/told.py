"""What `catch` tells, as sentences: for a terminal and for a notebook."""

import itertools
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from types import ModuleType

from autograder.feedback.render import Item
from autograder.records import RefusedError
from autograder.selfcheck.catch.game import (
    Attempt,
    GivenUp,
    Inputs,
    WrongProgram,
    attempt,
    give_up,
    load_inputs,
    require_open,
    unlocked,
)
from autograder.selfcheck.check import CheckReport, suite_of
from autograder.selfcheck.locked_hints import LockedHints
from autograder.selfcheck.workspace import Work
from autograder.text.spelling import one_of
from autograder.text.wording import begun, counted, joined

MOST = 26  # letters in a sentence


@dataclass(frozen=True)
class PartCaught:
    """What the inputs of one part caught."""

    part: str
    title: str
    caught: tuple[str, ...]
    waiting: tuple[str, ...]
    items: tuple[Item, ...]


def catch_with_file(work: Work, report: CheckReport, only: str | None = None) -> list[PartCaught]:
    """Try the inputs of an assignment's catch.py on the student's saved file.

    Raises RefusedError if there is nothing to catch, or catch.py cannot be used.
    """
    hints = LockedHints(work.folder)
    require_open(hints)
    inputs = load_inputs(work.folder)
    parts = sorted(_parts(hints, only), key=list(report.by_part()).index)
    module = work.load().module
    results = []
    with suite_of(work.test_file) as session:
        for part in parts:
            if part not in report.passed_parts:
                results.append(_locked(part, report.title(part)))
                continue
            programs = unlocked(hints, session, module, part)
            results.append(_tried(module, inputs, part, report.title(part), programs))
    return results


def give_up_with_file(work: Work, report: CheckReport, letter: str) -> GivenUp:
    """Run the author's input of a program on the student's saved file; raises RefusedError."""
    hints = LockedHints(work.folder)
    require_open(hints)
    inputs = load_inputs(work.folder)
    module = work.load().module
    with suite_of(work.test_file) as session:
        programs = {
            part: unlocked(hints, session, module, part)
            for part in hints.parts_with_programs
            if part in report.passed_parts
        }
    program = with_letter(letter, itertools.chain.from_iterable(programs.values()))
    part = next(
        name
        for name, of_part in programs.items()
        if program.letter in [other.letter for other in of_part]
    )
    return give_up(module, inputs.call(part), program)


def with_letter(letter: str, programs: Iterable[WrongProgram]) -> WrongProgram:
    """Return the program with this letter, also in lower case; raises RefusedError."""
    by_letter = {program.letter: program for program in programs}
    if letter.upper() not in by_letter:
        there = (
            f"there are {joined(sorted(by_letter), MOST)}" if by_letter else "none is unlocked yet"
        )
        raise RefusedError(f"There is no program {letter!r} here: {there}.")
    return by_letter[letter.upper()]


def _parts(hints: LockedHints, only: str | None) -> tuple[str, ...]:
    if only is None:
        return hints.parts_with_programs
    if only not in hints.parts_with_programs:
        raise RefusedError(
            f"There is nothing to catch in a part {only!r}; there is in {one_of(hints.parts_with_programs)}."
        )
    return (only,)


def _locked(part: str, title: str) -> PartCaught:
    return PartCaught(part, title, (), (), (Item("○", nothing_unlocked(passed=False)),))


def nothing_unlocked(passed: bool) -> str:
    """Return the reason that a part has no programs yet."""
    if passed:
        return "Your code passes, but with answers of its own that unlock nothing."
    return "Locked until the visible tests of this part pass."


def _tried(
    module: ModuleType, inputs: Inputs, part: str, title: str, programs: Sequence[WrongProgram]
) -> PartCaught:
    """Try all inputs of a part; a program is told about at the first input that catches it."""
    caught: set[str] = set()
    items: list[Item] = []
    if not programs:
        items = [Item("○", nothing_unlocked(passed=True))]
    given = inputs.inputs.get(part, []) if programs else []
    for number, make_input in enumerate(given, start=1):
        tried = attempt(module, inputs.call(part), make_input, programs)
        of_several = f" {number}" if len(given) > 1 else ""
        items += about_attempt(tried, f"Input{of_several}", caught)
        caught.update(verdict.program.letter for verdict in tried.verdicts if verdict.caught)
    if programs and not given:
        items = [Item("·", f"INPUTS has no input for this part yet; {_open(programs)} wait.")]
    letters = [program.letter for program in programs]
    waiting = tuple(letter for letter in letters if letter not in caught)
    return PartCaught(part, title, tuple(sorted(caught)), waiting, tuple(items))


def about_attempt(tried: Attempt, name: str, caught_before: Collection[str]) -> list[Item]:
    """Tell about one input; programs that were `caught_before` are left out."""
    if tried.refused:
        return [Item("✗", f"{name} is refused: {tried.refused}")]
    items = [
        Item("✓", f"{v.program.letter} is caught: {v.difference}", *_told(v.program))
        for v in tried.verdicts
        if v.caught and v.program.letter not in caught_before
    ]
    if tried.agreeing:
        items.append(
            Item("?", f"{_open(tried.agreeing)} agree with one another here, and not with you. Are they "
                 "wrong in the same way, or is it your code?")
        )  # fmt: skip
    same = [
        v.program for v in tried.verdicts if not v.caught and v.program.letter not in caught_before
    ]
    if same:
        verb = "answers" if len(same) == 1 else "answer"
        size = counted(tried.numbers, "number")
        items.append(Item("·", f"{name} ({size}): {_open(same)} {verb} like your code."))
    return items


def _open(programs: Sequence[WrongProgram]) -> str:
    return joined([program.letter for program in programs], MOST)


def _told(program: WrongProgram) -> tuple[str, tuple[str, ...]]:
    """Return the title, and below it the wrong lines and why people write them."""
    return _title(program), (*(f"    {line}" for line in program.lines), program.story)


def _title(program: WrongProgram) -> str:
    return f"{begun(program.title)}."


def about_giving_up(given: GivenUp) -> list[Item]:
    """Tell what the author's input says about the program and about the student's own code."""
    program = given.program
    shown = Item("·", f"The author's input for {program.letter}: {program.input}")
    if given.made:
        verdict = Item(
            "✗", f"{program.letter} answers like your code: your code makes this mistake, or one with the same "
            "effect.",
            _title(program),
            (f"→ {program.hint}",),
        )  # fmt: skip
        return [shown, verdict]
    separates = Item("✓", f"It catches {program.letter}: {given.difference}", *_told(program))
    if not given.unexpected:
        return [shown, separates]
    wrong = Item(
        "✗",
        f"But your own answer is not the right one: {given.unexpected}",
        below=(
            "Your code makes another mistake, which the visible tests do not see. Read this part's text again.",
        ),
    )
    return [shown, separates, wrong]


ANOTHER_INPUT = (
    "What does the part promise that none of your inputs tries yet? Change one thing at a time: a size, a sign, "
    "equal numbers or very large ones, a mask or a flag.",
    "Nothing separates a program from your code? Then it may make that mistake:",
)


def summary(results: Sequence[PartCaught], command: str) -> tuple[tuple[str, ...], str]:
    """Return how many of the unlocked programs were caught and what to try next, as lines, and the
    command for a program that nothing separates; empty if there is none.
    """
    caught = sum(len(result.caught) for result in results)
    waiting = list(itertools.chain.from_iterable(result.waiting for result in results))
    if not caught + len(waiting):
        return (), ""
    counts = f"{caught} of {counted(caught + len(waiting), 'unlocked program')} caught."
    if not waiting:
        return (counts,), ""
    return (counts, *ANOTHER_INPUT), f"{command} --give-up {waiting[0]}"


def with_marked_code(items: Iterable[Item]) -> tuple[Item, ...]:
    """Return the items as a notebook shows them: lines of code are marked as code."""
    return tuple(replace(item, below=tuple(map(_marked, item.below))) for item in items)


def _marked(line: str) -> str:
    return f"`{line.strip()}`" if line.startswith("    ") else line
