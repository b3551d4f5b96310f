"""Catch the mistake: inputs on which a wrong program differs from a student's own code.

A part that passes its visible tests unlocks up to four programs, known mistakes that pass them,
too. Each is the student's own module with one function exchanged. `catch.py`, beside the student's
file, says what is called with an input. Nothing here knows the solution: the student's own code is
what the programs are compared with. Giving one up compares it, and the student's own code, with the
author's input and answer, which are locked with the program.
"""

import contextlib
import inspect
import runpy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from autograder.checks.explain import clean
from autograder.checks.sentences import kind, show, verb
from autograder.checks.values import first_difference
from autograder.records import RefusedError
from autograder.sandbox.outside.alarm import TestAlarm
from autograder.sandbox.outside.remote import RemoteStudent
from autograder.sandbox.shared.errors import StudentRaisedError
from autograder.selfcheck.check import OwnServer, time_limit
from autograder.selfcheck.locked_hints import LockedHints, RecordingConnection, SteadyServer, take
from autograder.suite.session import SuiteSession

FILE_NAME = "catch.py"
SEED = 0
ATOL = 1e-5  # two right answers may add in another order
RTOL = 1e-4
LONGEST = 500  # letters of an error

Values = dict[str, Any]  # what a call gives back, by the name of each


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
class Outcome:
    """What a program gave back for an input, or the `error` that stopped it."""

    values: Values
    error: str = ""


@dataclass(frozen=True)
class Verdict:
    """Where a program differs from the student's own code on an input; `difference` is empty if it
    does not.
    """

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
            raise RefusedError(f"{FILE_NAME} does not define `{part}`; restore it as it came.")
        return self.calls[part]


def load_inputs(folder: Path) -> Inputs:
    """Run an assignment's catch.py; raises RefusedError with a sentence if it cannot be used."""
    path = folder / FILE_NAME
    if not path.is_file():
        raise RefusedError(
            f"There is no {FILE_NAME} in {folder.resolve()}; keep the files together."
        )
    try:
        names = runpy.run_path(str(path))
    except Exception as error:  # the student's own text
        line = error.lineno if isinstance(error, SyntaxError) else _line_in(error, path)
        where = f" in line {line}" if line else ""
        raise RefusedError(f"{FILE_NAME} stops{where}: {_told(error)}") from None
    inputs = names.get("INPUTS")
    if not isinstance(inputs, dict):
        raise RefusedError(f"{FILE_NAME} has no INPUTS: a dict with an input for each part.")
    calls = {name: value for name, value in names.items() if isinstance(value, FunctionType)}
    listed = {part: given if isinstance(given, list) else [given] for part, given in inputs.items()}
    return Inputs(calls, listed, names.get("RANDOM_INPUTS", {}))


def require_open(hints: LockedHints) -> None:
    """Raise RefusedError if there is nothing to catch, or not yet."""
    if not hints.parts_to_catch:
        raise RefusedError("This assignment has no mistakes to catch.")
    if hints.catches_from:
        begin = datetime.fromisoformat(hints.catches_from)
        if datetime.now(timezone.utc) < begin:
            raise RefusedError(
                f"Mistakes can be caught from {begin.astimezone():%Y-%m-%d %H:%M} on."
            )


def unlocked(
    hints: LockedHints, session: SuiteSession, module: ModuleType, part: str
) -> tuple[WrongProgram, ...]:
    """Return the wrong programs of a part, whose visible tests the module passes."""
    connection = RecordingConnection(module)
    for test in session.tests():
        if test.part == part:
            recording = take(session, test, connection)
            if records := hints.programs(part, test.name, recording.answers):
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
        inspect.signature(call).bind(module, *arguments)
    except TypeError as error:
        return Attempt(0, refused=f"{call_line(call)}: {_told(error)}")
    except Exception as error:  # the student's own lambda
        return Attempt(0, refused=f"Your input cannot be made: {_told(error)}")
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
        with _fixed_chance():
            value = make_input()
    return value if isinstance(value, tuple) else (value,)


def count_numbers(arguments: Any) -> int:
    """Return how many numbers an input has."""
    leaves = tree_leaves(arguments)
    sizes = [leaf.numel() if isinstance(leaf, Tensor) else 1 for leaf in leaves if leaf is not None]
    return sum(sizes)


def outcome(
    module: ModuleType,
    call: Callable[..., Any],
    arguments: tuple[Any, ...],
    program: WrongProgram | None = None,
) -> Outcome:
    """Call the module, or a wrong program in its place, under the same conditions."""
    connection = RecordingConnection(module)
    connection.server = _SteadyOwnServer(module)
    connection.server.exchange = connection._answer_question
    exchanged = in_place(module, program) if program else contextlib.nullcontext()
    try:
        with exchanged, _fixed_chance(), time_limit():
            connection.start_test(SEED)
            given = call(RemoteStudent(connection), *arguments)
    except TestAlarm as late:
        return Outcome({}, str(late).replace("This test", "This input"))
    except StudentRaisedError as error:
        return Outcome({}, _with_type(error.remote.type, clean(error.remote.text, LONGEST)))
    except Exception as error:  # what a student's code gave back fits nothing
        return Outcome({}, _told(error))
    values = given if isinstance(given, dict) else {"the output": given}
    return Outcome({name: _detached(value) for name, value in values.items()})


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


def difference(theirs: Outcome, mine: Outcome, letter: str, whose: str = "yours") -> str:
    """Return where a program differs from another and by how much; empty if it does not."""
    if theirs.error:
        return "" if mine.error else f"{letter} stops: {theirs.error}"
    for name, value in mine.values.items():
        sentence = _apart(name, theirs.values.get(name), value, letter, whose)
        if sentence:
            return f"{name} {sentence}"
    return ""


def _apart(name: str, theirs: Any, mine: Any, letter: str, whose: str) -> str:
    if isinstance(mine, Tensor) and isinstance(theirs, Tensor):
        return _tensors_apart(name, theirs, mine, letter, whose)
    if isinstance(mine, float) and isinstance(theirs, float):
        return _tensors_apart(name, torch.tensor(theirs), torch.tensor(mine), letter, whose)
    if type(mine) is type(theirs) and mine == theirs:
        return ""
    values = f"{whose} is {_shown(mine)}, {letter} is {_shown(theirs)}"
    return f"{verb(name, 'differs', 'differ')}: {values}."


def _tensors_apart(name: str, theirs: Tensor, mine: Tensor, letter: str, whose: str) -> str:
    if theirs.shape != mine.shape:
        shapes = (
            f"{whose} is of shape {tuple(mine.shape)}, {letter} is of shape {tuple(theirs.shape)}"
        )
        return f"{verb(name, 'has', 'have')} another shape: {shapes}."
    if theirs.dtype != mine.dtype:
        types = f"{mine.dtype} from {whose}, {theirs.dtype} from {letter}"
        return f"{verb(name, 'has', 'have')} another number type: {types}."
    apart = first_difference(theirs, mine, atol=ATOL, rtol=RTOL)
    if apart is None:
        return ""
    where = f" first at {apart.where}" if apart.several else ""
    numbers = f"{apart.expected} from {whose}, {apart.came} from {letter}"
    extent = f" ({apart.extent})" if apart.several and apart.extent else ""
    return f"{verb(name, 'differs', 'differ')}{where}: {numbers}{extent}."


def _shown(value: Any) -> str:
    return kind(value) if isinstance(value, Tensor) else show(value)


def _detached(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.detach().cpu()
    if isinstance(value, (list, tuple)):
        return [_detached(item) for item in value]
    return value


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


@contextlib.contextmanager
def _fixed_chance() -> Iterator[None]:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        yield


def call_line(call: Callable[..., Any]) -> str:
    """Return what an input consists of, as the arguments of a call."""
    signature = inspect.signature(call)
    parameters = list(signature.parameters.values())[1:]  # behind the program
    return f"An input of this part is {signature.replace(parameters=parameters)}"


def _line_in(error: BaseException, path: Path) -> int:
    step = error.__traceback__
    line = 0
    while step is not None:
        if step.tb_frame.f_code.co_filename == str(path):
            line = step.tb_lineno
        step = step.tb_next
    return line


def _told(error: BaseException) -> str:
    text = clean(str(error), LONGEST)
    return (
        text if isinstance(error, ValueError) and text else _with_type(type(error).__name__, text)
    )


def _with_type(name: str, text: str) -> str:
    return f"{name}: {text}" if text else name
