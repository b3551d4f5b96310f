"""What a text that was written in a notebook asks of IPython: its shell, its `display`, and its names for earlier cells.

A stand-in has the signature of what it stands for, and answers with a value of the same kind:
nothing is run, shown or asked, and what a program would have printed is empty.
"""

import io
import os
import types
from collections.abc import Callable
from functools import cached_property
from typing import Any

from autograder.source.magics import plain_cell

_NAMES = {"--out": "", "--err": ""}  # options of `%%bash` that name what it printed


class Shell:
    """The shell during grading, with the student's module as its namespace.

    Magics that run Python code do not come here (see `autograder.source.magics`).
    """

    ast_node_interactivity = "last_expr"
    execution_count = 1

    def __init__(self, user_ns: dict[str, Any]) -> None:
        self.user_ns = user_ns
        self.events = Events()
        self.input_transformers_cleanup: list[Any] = []
        self.input_transformers_post: list[Any] = []

    @cached_property
    def config(self) -> Any:
        from traitlets.config import Config

        return Config()

    @cached_property
    def display_formatter(self) -> Any:
        from IPython.core.formatters import DisplayFormatter

        return DisplayFormatter()

    def run_line_magic(self, magic_name: str, line: str, _stack_depth: int = 1) -> Any:
        magic = _LINE_MAGICS.get(magic_name)
        return magic(self, line.strip()) if magic else None

    def run_cell_magic(self, magic_name: str, line: str, cell: str) -> Any:
        words = line.replace("=", " ").split()
        for option, name in zip(words, words[1:]):
            if option in _NAMES:
                self.user_ns[name] = _NAMES[option]

    def magic(self, arg_s: str) -> Any:
        name, _, line = arg_s.lstrip("%").partition(" ")
        return self.run_line_magic(name, line)

    def system(self, cmd: str) -> None:
        self.user_ns["_exit_code"] = 0

    def getoutput(self, cmd: str, split: bool = True, depth: int = 0) -> Any:
        from IPython.utils.text import LSString, SList

        return SList() if split else LSString()

    def captured(self) -> Any:
        """Return what `%%capture` keeps: output, of which there is none here."""
        from IPython.utils.capture import CapturedIO

        return CapturedIO(io.StringIO(), io.StringIO(), [])

    def ev(self, expr: str) -> Any:
        return eval(expr, self.user_ns)

    def ex(self, cmd: str) -> None:
        exec(cmd, self.user_ns)

    def run_cell(
        self,
        raw_cell: str,
        store_history: bool = False,
        silent: bool = False,
        shell_futures: bool = True,
        cell_id: Any = None,
    ) -> Any:
        from IPython.core.interactiveshell import ExecutionInfo, ExecutionResult

        result = ExecutionResult(
            ExecutionInfo(raw_cell, store_history, silent, shell_futures, cell_id)
        )
        try:
            exec(plain_cell(raw_cell), self.user_ns)
        except Exception as error:
            result.error_in_exec = error
        return result

    def push(self, variables: Any, interactive: bool = True) -> None:
        self.user_ns.update(variables)

    def set_next_input(self, s: str, replace: bool = False) -> None:
        """Do nothing: there is no next cell to fill."""

    def register_magic_function(
        self, func: Any, magic_kind: str = "line", magic_name: str | None = None
    ) -> None:
        """Do nothing: magics are not run."""

    def register_magics(self, *magic_objects: Any) -> None:
        """Do nothing: magics are not run."""

    def set_custom_exc(self, exc_tuple: Any, handler: Any) -> None:
        """Do nothing: errors are not shown here."""

    def showtraceback(
        self,
        exc_tuple: Any = None,
        filename: Any = None,
        tb_offset: Any = None,
        exception_only: bool = False,
        running_compiled_code: bool = False,
    ) -> None:
        """Do nothing: errors are not shown here."""

    def enable_gui(self, gui: Any = None) -> None:
        """Do nothing: there is no window."""

    def enable_matplotlib(self, gui: Any = None) -> tuple[str, str]:
        return "inline", "agg"


class Events:
    """The events of a shell, which never happen."""

    def register(self, event: str, function: Callable[..., Any]) -> None:
        """Do nothing."""

    unregister = register

    def trigger(self, event: str, *args: Any, **kwargs: Any) -> None:
        """Do nothing."""


def _environment(shell: Shell, line: str) -> Any:
    """Return the environment, a variable of it, or set one, as `%env` does."""
    name, _, value = line.replace("=", " ", 1).partition(" ")
    if value.strip():
        os.environ[name] = value.strip()
        return None
    return os.environ.get(name) if name else dict(os.environ)


def _timing(shell: Shell, line: str) -> Any:
    from IPython.core.magics.execution import TimeitResult

    return TimeitResult(1, 1, 0.0, 0.0, [0.0], 0.0, 3) if "-o" in line.split() else None


_LINE_MAGICS: dict[str, Callable[[Shell, str], Any]] = {
    "env": _environment,
    "set_env": _environment,
    "pwd": lambda shell, line: os.getcwd(),
    "sx": lambda shell, line: shell.getoutput(line),
    "system": lambda shell, line: shell.getoutput(line),
    "timeit": _timing,
    "who_ls": lambda shell, line: sorted(name for name in shell.user_ns if name[:1] != "_"),
}


def display(
    *objs: Any,
    include: Any = None,
    exclude: Any = None,
    metadata: Any = None,
    transient: Any = None,
    display_id: Any = None,
    raw: bool = False,
    clear: bool = False,
    **kwargs: Any,
) -> Any:
    """Show nothing; return a handle where one is asked for."""
    if not display_id:
        return None
    from IPython.display import DisplayHandle

    return DisplayHandle(display_id if isinstance(display_id, str) else None)


def clear_output(wait: bool = False) -> None:
    """Clear nothing: nothing was shown."""


class History:
    """The names of a notebook for its cells and their values: `In`, `Out`, `_`, `__`, `_1`."""

    def __init__(self, space: dict[str, Any]) -> None:
        self._space = space
        self._cells = [""]
        self._values: dict[int, Any] = {}
        self._latest: list[Any] = ["", "", ""]
        space.update(In=self._cells, Out=self._values, _ih=self._cells, _oh=self._values)
        space.update(_dh=[os.getcwd()], _exit_code=0, _i="", _ii="", _iii="", _="", __="", ___="")

    def begin(self, cell: str) -> None:
        space = self._space
        space.update(_iii=space.get("_ii"), _ii=space.get("_i"), _i=self._cells[-1])
        self._cells.append(cell)
        space[f"_i{len(self._cells) - 1}"] = cell

    def end(self, value: Any) -> None:
        """Keep the value of a cell, unless it has none; `_` stays what the student's own code made it."""
        if value is None or self._cells[-1].rstrip().endswith(";"):
            return
        number = len(self._cells) - 1
        self._values[number] = self._space[f"_{number}"] = value
        names = ("_", "__", "___")
        is_set = any(self._space.get(name) is not old for name, old in zip(names, self._latest))
        self._latest = [value, *self._latest[:2]]
        if not is_set:
            self._space.update(zip(names, self._latest))


class Nothing:
    """What the functions of `autograder.notebook` answer during grading: a message without content."""

    heading = ""
    foot = ""
    results = notes = items = ()
    passed = False

    def __repr__(self) -> str:
        return ""


def silent_notebook() -> types.ModuleType:
    """Return a replacement for `autograder.notebook` with functions that do nothing."""
    module = types.ModuleType("autograder.notebook")
    module.__dict__.update(
        _NOTEBOOK_FUNCTIONS, NotGradedHereError=type("NotGradedHereError", (Exception,), {})
    )
    return module


def check(part: str = "") -> Any:
    return Nothing()


def hint(part: str = "", again: bool = False) -> Any:
    return Nothing()


def try_input(part: str = "", make_input: Any = None, give_up: str = "") -> Any:
    return None


def try_file(file: str) -> None: ...


def answers(assignment: str = "") -> None: ...


def open_assignment(name: str) -> None: ...


def pack() -> None: ...


def progress() -> None: ...


def picture(part: str = "") -> Any: ...


def draw_model(model: Any, file: Any = None) -> Any:
    return Nothing()


def earlier_work(assignment: str) -> tuple[types.ModuleType, frozenset[str]]:
    return types.ModuleType(assignment), frozenset()


def watch_training(
    steps: int, title: str = "training", measure: str = "loss", step: str = "step"
) -> Callable[[int, float], None]:
    def watch(done: int, value: float) -> None: ...

    return watch


_NOTEBOOK_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "answers": answers,
    "catch": try_input,
    "catch_all": try_file,
    "check": check,
    "draw_model": draw_model,
    "earlier_work": earlier_work,
    "hint": hint,
    "open_assignment": open_assignment,
    "pack": pack,
    "picture": picture,
    "progress": progress,
    "watch_training": watch_training,
}
