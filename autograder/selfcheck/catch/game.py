"""Catch the mistake: inputs on which a wrong program differs from a student's own code.

A part that passes its visible tests unlocks up to four programs, known mistakes that pass them,
too. Each is the student's own module with one function exchanged. `catch.py`, beside the student's
file, says what is called with an input. Nothing here knows the solution: the student's own code is
what the programs are compared with. Giving one up compares it, and the student's own code, with the
author's input and answer, which are locked with the program.
"""

import contextlib
import runpy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from autograder.bridge.outside.loopback import LoopbackConnection
from autograder.bridge.outside.steady import SteadyServer
from autograder.course.config import CATCH_FILE
from autograder.records import RefusedError
from autograder.selfcheck.catch.differences import (
    Outcome,
    Values,
    call_line,
    count_numbers,
    difference,
    fixed_chance,
    functions_in,
    not_taken,
    outcome_of,
    told,
)
from autograder.selfcheck.check import OwnServer, time_limit
from autograder.selfcheck.locked_hints import LockedHints, recordings
from autograder.suite.session import SuiteSession
from autograder.walls.outside.alarm import TestAlarm


@dataclass(frozen=True)
class WrongProgram:
    """A known mistake as a program to catch: its `definitions` take the place of the student's.

    `lines` are those that are wrong, `input` and `expected` the author's input and what right code
    gives back for it.
    """

    letter: str
    title: str
    hint: str
    story: str
    lines: tuple[str, ...]
    definitions: dict[str, str]
    imports: str
    input: str
    expected: Values

    def as_record(self) -> dict[str, Any]:
        expected = {name: _plain(value) for name, value in self.expected.items()}
        return {**vars(self), "expected": expected}

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> "WrongProgram":
        expected = {name: _revived(value) for name, value in record["expected"].items()}
        return cls(**{**record, "lines": tuple(record["lines"]), "expected": expected})


@dataclass(frozen=True)
class Verdict:
    """Where a program differs from the student's own code on an input; `difference` is empty if it does not."""

    program: WrongProgram
    difference: str

    @property
    def caught(self) -> bool:
        return bool(self.difference)


@dataclass(frozen=True)
class Attempt:
    """The verdicts on one input, or the sentence that refuses it.

    `agreeing` are programs that give the same answer as one another, but another than the student's
    own code.
    """

    numbers: int
    verdicts: tuple[Verdict, ...] = ()
    agreeing: tuple[WrongProgram, ...] = ()
    refused: str = ""


@dataclass(frozen=True)
class GivenUp:
    """What the author's input tells: whether it separates the program from the student's own code,
    and where the student's own answer is not the expected one.
    """

    program: WrongProgram
    difference: str
    unexpected: str

    @property
    def made(self) -> bool:
        """Whether the student's own code makes this mistake."""
        return not self.difference


@dataclass(frozen=True)
class Inputs:
    """A folder's `catch.py`: for each part, the function to call, and the inputs to try."""

    calls: Mapping[str, Callable[..., Any]]
    inputs: dict[str, list[Callable[[], Any]]]
    random: dict[str, Callable[[], Any]]

    def call(self, part: str) -> Callable[..., Any]:
        if part not in self.calls:
            raise RefusedError(f"{CATCH_FILE} does not define `{part}`; restore it as it came.")
        return self.calls[part]


def load_inputs(folder: Path) -> Inputs:
    """Run an assignment's catch.py; raises RefusedError with a sentence if it cannot be used."""
    path = folder / CATCH_FILE
    if not path.is_file():
        raise RefusedError(
            f"There is no {CATCH_FILE} in {folder.resolve()}; keep the files together."
        )
    try:
        with fixed_chance():
            names = runpy.run_path(str(path))
    except Exception as error:  # the student's own text
        line = error.lineno if isinstance(error, SyntaxError) else _line_in(error, path)
        where = f" in line {line}" if line else ""
        raise RefusedError(f"{CATCH_FILE} stops{where}: {told(error)}") from None
    inputs = names.get("INPUTS")
    if not isinstance(inputs, dict):
        raise RefusedError(f"{CATCH_FILE} has no INPUTS: a dict with an input for each part.")
    listed = {part: given if isinstance(given, list) else [given] for part, given in inputs.items()}
    return Inputs(functions_in(names), listed, names.get("RANDOM_INPUTS", {}))


def require_open(hints: LockedHints) -> None:
    """Raise RefusedError if there is nothing to catch, or not yet."""
    if not hints.parts_with_programs:
        raise RefusedError("This assignment has no mistakes to catch.")
    if hints.programs_from:
        begin = datetime.fromisoformat(hints.programs_from)
        if datetime.now(timezone.utc) < begin:
            raise RefusedError(
                f"Mistakes can be caught from {begin.astimezone():%Y-%m-%d %H:%M} on."
            )


def unlocked(
    hints: LockedHints, session: SuiteSession, module: ModuleType, part: str
) -> tuple[WrongProgram, ...]:
    """Return the wrong programs of a part, whose visible tests the module passes."""
    tests = [test for test in session.tests() if test.part == part]
    for test, recording in recordings(session, module, tests):
        if records := hints.programs(part, test, recording.answers):
            return tuple(map(WrongProgram.from_record, records))
    return ()


def attempt(
    module: ModuleType,
    call: Callable[..., Any],
    make_input: Callable[[], Any],
    programs: Sequence[WrongProgram],
) -> Attempt:
    """Try an input: which programs differ on it from the module?"""
    try:
        arguments = made(make_input)
        numbers = count_numbers(arguments)
    except TypeError as error:
        return Attempt(0, refused=f"{call_line(call)}: {told(error)}")
    except Exception as error:  # the student's own lambda
        return Attempt(0, refused=f"Your input cannot be made: {told(error)}")
    refused = not_taken(call, arguments)
    if refused:
        return Attempt(0, refused=refused)
    mine = outcome(module, call, arguments)
    if mine.error:
        return Attempt(numbers, refused=mine.error)
    outcomes = [outcome(module, call, arguments, program) for program in programs]
    verdicts = [
        Verdict(program, difference(theirs, mine, program.letter))
        for program, theirs in zip(programs, outcomes, strict=True)
    ]
    apart = [
        theirs
        for theirs, verdict in zip(outcomes, verdicts, strict=True)
        if verdict.caught and not theirs.error
    ]
    alike = [_like(theirs, programs, outcomes) for theirs in apart]
    most = max(alike, key=len, default=())
    return Attempt(numbers, tuple(verdicts), agreeing=most if len(most) > 1 else ())


def _like(
    shared: Outcome, programs: Sequence[WrongProgram], outcomes: Sequence[Outcome]
) -> tuple[WrongProgram, ...]:
    """Return the programs with this outcome."""
    return tuple(
        program
        for program, other in zip(programs, outcomes, strict=True)
        if not other.error and not difference(other, shared, program.letter)
    )


def give_up(module: ModuleType, call: Callable[..., Any], program: WrongProgram) -> GivenUp:
    """Run the author's input on a program and on the module."""
    arguments = author_input(program)
    mine = outcome(module, call, arguments)
    theirs = outcome(module, call, arguments, program)
    expected = Outcome(program.expected)
    return GivenUp(
        program,
        difference(theirs, mine, program.letter),
        difference(mine, expected, "yours", "right code"),
    )


def author_input(program: WrongProgram) -> tuple[Any, ...]:
    space: dict[str, Any] = {}
    exec("import math\nimport torch\nfrom torch import tensor\n", space)
    return made(lambda: eval(program.input, space))


def made(make_input: Callable[[], Any]) -> tuple[Any, ...]:
    """Return the arguments that a student's lambda makes, always the same for random ones."""
    value = make_input
    if callable(make_input):
        with fixed_chance():
            value = make_input()
    return value if isinstance(value, tuple) else (value,)


def outcome(
    module: ModuleType,
    call: Callable[..., Any],
    arguments: tuple[Any, ...],
    program: WrongProgram | None = None,
) -> Outcome:
    """Call the module, or a wrong program in its place, under the same conditions."""
    exchanged = in_place(module, program) if program else contextlib.nullcontext()
    connection = LoopbackConnection(_SteadyOwnServer(module))
    try:
        with exchanged, time_limit():
            return outcome_of(connection, call, arguments)
    except TestAlarm as late:
        return Outcome({}, str(late).replace("This test", "This input"))


class _SteadyOwnServer(OwnServer, SteadyServer):
    """A steady server that Ctrl-C and the alarm can interrupt."""

    every_weight = True


@contextlib.contextmanager
def in_place(module: ModuleType, program: WrongProgram) -> Iterator[None]:
    """Let a program's functions and classes take the place of the module's within this block."""
    space = vars(module)
    names = dict(space)
    exec(program.imports, names)
    for text in program.definitions.values():
        exec(compile(text, "program", "exec", dont_inherit=True), names)
    kept = {name: space[name] for name in program.definitions if name in space}
    space.update({name: names[name] for name in program.definitions})
    try:
        yield
    finally:
        for name in program.definitions:
            del space[name]
        space.update(kept)


def _plain(value: Any) -> Any:
    if isinstance(value, Tensor):
        return {"dtype": str(value.dtype).removeprefix("torch."), "numbers": value.tolist(),
                "shape": list(value.shape)}  # fmt: skip
    return value


def _revived(value: Any) -> Any:
    if isinstance(value, dict):
        dtype = getattr(torch, value["dtype"])
        return torch.tensor(value["numbers"], dtype=dtype).reshape(value["shape"])
    return value


def _line_in(error: BaseException, path: Path) -> int:
    step = error.__traceback__
    line = 0
    while step is not None:
        if step.tb_frame.f_code.co_filename == str(path):
            line = step.tb_lineno
        step = step.tb_next
    return line
