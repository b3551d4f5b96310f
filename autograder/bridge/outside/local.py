"""A module in this process, for a student's own checks and for the reference; it isolates nothing."""

import sys
import time
import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autograder.bridge.shared.errors import RemoteException, missing_name, told_exception

if TYPE_CHECKING:
    from autograder.bridge.inside.entries import Place


@dataclass(frozen=True)
class Loaded:
    """A module as far as it ran, what failed on the way, and the processor time that it took.

    `absent` are the modules that it imports and that are not there, each with the line and the name
    of its cell.
    """

    module: types.ModuleType
    failures: tuple[RemoteException, ...] = ()
    absent: tuple[tuple[str, int, str], ...] = ()
    seconds: float = 0.0

    @property
    def problem(self) -> str:
        """What went wrong first; empty for a text that runs."""
        for failure in self.failures:
            return f"{failure.type}: {failure.text}"
        for name, line, _ in self.absent:
            return f"there is no module `{name}` (line {line})"
        return ""


class LocalStudent:
    """A student's module that raises MissingNameError for missing names; `failures` occurred while it was loaded."""

    def __init__(self, module: types.ModuleType, failures: Sequence[RemoteException] = ()) -> None:
        self._module = module
        self._failures = failures

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            return getattr(self._module, name)
        except AttributeError:
            raise missing_name(name, self._failures) from None


@contextmanager
def recording(
    student: LocalStudent, names: Sequence[str], test_file: Path, places: "dict[str, Place]"
) -> Iterator[None]:
    """Add to `places` which of these names a module enters while a test in this process runs."""
    # imports PyTorch, which `--help` has no need of
    from autograder.bridge.inside.entries import Entries

    module = student._module
    entries = Entries(names, from_file(module.__file__ or ""), str(test_file))
    try:
        with entries.install(module), entries.active():
            yield
    finally:
        places.update(entries.found)


def load(text: str, filename: str, name: str = "", seconds: float | None = None) -> Loaded:
    """Run a text as a worker does: a notebook's `check(...)` cells do nothing, a statement that fails stops itself.

    `name` is the module's, if it is not the file's. With `seconds` of processor time, a statement
    that takes longer is stopped. Raises ValueError for a notebook that cannot be read.
    """
    from autograder.bridge.inside.server import Server

    server = Server(types.ModuleType(name or Path(filename).stem))
    notebook = sys.modules.get("autograder.notebook")
    begun = time.process_time()
    try:
        answer = server.load(text, filename, limit=seconds)
    finally:
        sys.modules.pop("autograder.notebook", None)
        if notebook is not None:
            sys.modules["autograder.notebook"] = notebook
    failures = tuple(map(told_exception, answer["errors"]))
    if any(failure.type == "KeyboardInterrupt" for failure in failures):
        raise KeyboardInterrupt
    absent = tuple((missing, line, piece) for missing, line, piece in answer["absent"])
    seconds_taken = time.process_time() - begun
    return Loaded(server.module, failures, absent, seconds_taken)


def load_whole(text: str, filename: str, name: str) -> types.ModuleType:
    """Run a trusted script, such as a known mistake: compiled as a whole, which takes a quarter of the time.

    If a statement fails after all, the others count, as in `load`.
    """
    from autograder.bridge.inside.server import Server

    server = Server(types.ModuleType(name))
    try:
        server.run_whole(text, filename)
    except (Exception, SystemExit):
        return load(text, filename, name).module
    return server.module


def from_file(filename: str) -> Callable[[types.FrameType], bool]:
    """Return a function that decides whether a traceback frame is in that file."""
    return lambda step: step.f_code.co_filename.startswith(filename)
