"""Code that all commands share: exit codes, shared options, error handling, and commands made of functions."""

import inspect
import json
import os
import platform
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import nullcontext, redirect_stdout
from functools import wraps
from operator import getitem
from pathlib import Path
from types import GenericAlias, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import typer
from typer.core import TyperArgument, TyperCommand, TyperOption

from autograder.cli.interrupts import STOPPED, exit_code, raised_as_exceptions
from autograder.cli.verbosity import QUIET, VERBOSE
from autograder.installation.distribution import warning_about_namesake
from autograder.options import AnyPath, AsJson, Quiet, QuietBesideJson, Steps, Verbose, path_option
from autograder.records import MACHINE, CourseError, InfrastructureError, RefusedError
from autograder.text.consoles import encoding_of
from autograder.version import __version__

DONE = 0
FOUND = 1
USAGE = 2
INFRASTRUCTURE = 3


class Interrupted(KeyboardInterrupt):
    """An interruption with a sentence of its own, in place of the one about finished work."""


def say(*sentences: str) -> None:
    """Print messages to stderr, each in a line of its own."""
    from rich.console import Console

    console = Console(stderr=True, highlight=False, soft_wrap=True)
    for sentence in sentences:
        console.print(sentence, markup=False)


def show(as_json: bool, record: Callable[[], Any], screen: Callable[[], object]) -> None:
    """Print a record as JSON for machines, or show a screen to people; only what is needed is called."""
    if as_json:
        print(json.dumps(record(), ensure_ascii=encoding_of(sys.stdout).lower() != "utf-8"))
    else:
        screen()


class Call:
    """What a person typed: the options of one or more functions, and whether the answer is for machines."""

    def __init__(self, options: dict[str, Any], as_json: bool) -> None:
        self.options = options
        self.as_json = as_json

    def __call__(self, function: Callable[..., Any], **further: Any) -> Any:
        """Return what the function answers to those of the options that it has, with its progress bars."""
        from autograder.cli.console import progress

        parameters = inspect.signature(function).parameters
        given = {name: value for name, value in self.options.items() if name in parameters}
        given |= further
        marked = {name: _marks(parameter, Steps) for name, parameter in parameters.items()}
        bars = {name: marks[0].name for name, marks in marked.items() if marks}
        if not bars:
            return function(**given)
        with progress(quiet=self.as_json) as steps:
            callbacks = {name: steps(title) for name, title in bars.items()}
            return function(**given, **callbacks)

    def show(self, record: Callable[[], Any], screen: Callable[[], object]) -> None:
        """Print the record as JSON if that was asked for, otherwise show the screen."""
        show(self.as_json, record, screen)


class ApiCommand:
    """A command made of `functions` whose parameters declare its options; a screen shows their answer.

    The screen receives a `Call`, and the options that it declares itself. The help is the first
    paragraph of the screen's docstring or of the first function's.
    """

    def __init__(self, functions: Sequence[Callable[..., Any]], screen: Callable[..., int]) -> None:
        self.functions = functions
        self._screen = screen
        self.__name__ = screen.__name__
        self.__module__ = screen.__module__
        self.__doc__ = inspect.getdoc(screen) or inspect.getdoc(functions[0])
        of_screen = list(inspect.signature(screen).parameters.values())[1:]
        self._own = [parameter.name for parameter in of_screen]
        declared: dict[str, inspect.Parameter] = {}
        for function in functions:
            for name, parameter in inspect.signature(function).parameters.items():
                if _marks(parameter, _Declaration):
                    declared.setdefault(name, _on_the_command_line(parameter))
        parameters = [*declared.values(), *of_screen, _shared("as_json")]
        kind = inspect.Parameter.KEYWORD_ONLY
        self.__signature__ = inspect.Signature(
            [parameter.replace(kind=kind) for parameter in parameters]
        )

    def __call__(self, *, as_json: bool = False, **options: Any) -> int:
        of_screen = {name: options.pop(name) for name in self._own}
        return self._screen(Call(options, as_json), **of_screen)


def command_of(*functions: Callable[..., Any]) -> Callable[[Callable[..., int]], ApiCommand]:
    """Decorate a screen: the result is the command of these functions."""
    return lambda screen: ApiCommand(functions, screen)


_Declaration = (typer.models.OptionInfo, typer.models.ArgumentInfo)
_COURSE = Annotated[Path, path_option("--course", help="The course's folder or course.yml.")]
_SHARED = {"as_json": AsJson, "course_path": _COURSE, "quiet": Quiet, "verbose": Verbose}


def _shared(name: str, annotation: Any = None) -> inspect.Parameter:
    annotation = annotation or _SHARED[name]
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=False, annotation=annotation)


def _marks(parameter: inspect.Parameter, kinds: Any) -> list[Any]:
    """Return what of these kinds the annotation of a parameter carries."""
    metadata = getattr(parameter.annotation, "__metadata__", ())
    return [mark for mark in metadata if isinstance(mark, kinds)]


def _on_the_command_line(parameter: inspect.Parameter) -> inspect.Parameter:
    """Return the parameter with the type that a command line can give: a path for anything that names one."""
    kind = parameter.annotation.__origin__
    metadata = parameter.annotation.__metadata__
    kinds = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
    wanted: Any = kind
    default = parameter.default
    if set(get_args(AnyPath)) <= set(kinds):
        wanted = Path | None if type(None) in kinds else Path
        default = Path(default) if isinstance(default, str) else default
    elif get_origin(kind) is Sequence:
        wanted = GenericAlias(list, get_args(kind))
        default = default if default is inspect.Parameter.empty else list(default)
    annotation: Any = getitem(Annotated, (wanted, *metadata))
    return parameter.replace(annotation=annotation, default=default)


def report_errors(command: Callable[..., int | None]) -> Callable[..., None]:
    """Decorate a command so that errors a user can fix print a message and set an exit code.

    CourseError and RefusedError exit with 2; InfrastructureError, MemoryError and an OSError of the
    machine with 3; an interruption with 130 or 143. All others are defects with a traceback. The
    options --quiet and --verbose are added, and the one for JSON is declared.
    """

    @wraps(command)
    def wrapped(*args: Any, quiet: bool = False, verbose: bool = False, **kwargs: Any) -> None:
        QUIET.set(quiet)
        VERBOSE.set(verbose)
        begun = time.monotonic()
        if warning := warning_about_namesake():
            say(warning)
        try:
            silent = quiet and not kwargs.get("as_json")
            with (
                raised_as_exceptions(),
                open(os.devnull, "w") as nowhere,
                redirect_stdout(nowhere) if silent else nullcontext(),
            ):
                code = command(*args, **kwargs)
        except (CourseError, RefusedError, InfrastructureError) as error:
            say(str(error))
            code = INFRASTRUCTURE if isinstance(error, InfrastructureError) else USAGE
            if verbose:
                traceback.print_exc()
        except OSError as error:
            if error.filename is None and error.errno not in MACHINE:
                raise  # a defect of the program
            say(f"{error.filename or 'Writing failed'}: {error.strerror}.")
            code = INFRASTRUCTURE
        except MemoryError:
            say(
                "There is not enough memory on this machine. Free some, or use fewer graders with --jobs 1."
            )
            code = INFRASTRUCTURE
        except KeyboardInterrupt as stopped:
            first = () if isinstance(stopped, Interrupted) else (STOPPED,)
            say(" ".join((*first, *map(str, stopped.args))))
            code = exit_code()
        if verbose:
            say(
                f"autograder {__version__}, Python {platform.python_version()}: {time.monotonic() - begun:.1f} s"
            )
        raise typer.Exit(code or DONE)

    signature = inspect.signature(command, eval_str=True)
    parameters = [
        parameter.replace(annotation=_SHARED.get(parameter.name, parameter.annotation))
        for parameter in signature.parameters.values()
    ]
    quiet = QuietBesideJson if "as_json" in signature.parameters else Quiet
    parameters += [_shared("quiet", quiet), _shared("verbose")]
    wrapped.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return wrapped


class PlainHelp:
    """Help that names the values of options, and says nothing of the types of arguments and switches."""

    def get_params(self, ctx: Any) -> list[Any]:
        parameters: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for parameter in parameters:
            if isinstance(parameter, TyperArgument):
                parameter.display_type_rich = lambda ctx: None  # type: ignore[method-assign]
            elif isinstance(parameter, TyperOption) and parameter.is_flag:
                parameter.metavar = ""
        return parameters


class Command(PlainHelp, TyperCommand):
    """A command."""
