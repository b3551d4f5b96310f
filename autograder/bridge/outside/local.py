"""A module in this process, for a student's own checks and for the reference; it isolates nothing."""

import linecache
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autograder.bridge.shared.errors import describe_error, missing_name
from autograder.source import text as source

if TYPE_CHECKING:
    from autograder.bridge.inside.entries import Place


class LocalStudent:
    """A student's module that raises MissingNameError for missing names."""

    def __init__(self, module: types.ModuleType, load_error: BaseException | None = None) -> None:
        self._module = module
        self.load_error = load_error

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            return getattr(self._module, name)
        except AttributeError:
            is_of_student = from_file(getattr(self._module, "__file__", None) or "")
            stopped = [
                describe_error(error, is_of_student) for error in (self.load_error,) if error
            ]
            raise missing_name(name, stopped) from self.load_error


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


def load_text(text: str, filename: str, name: str) -> LocalStudent:
    """Run a module's text; an error is kept in `load_error`, with the names before it."""
    module = types.ModuleType(name)
    module.__file__ = filename
    sys.modules[name] = module
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    for cell_name, code in source.cells(text, filename):
        try:
            exec(compile(code, cell_name, "exec"), module.__dict__)
        except (Exception, SystemExit) as error:
            return LocalStudent(module, error)
    return LocalStudent(module)


def load_file(path: Path, name: str | None = None) -> LocalStudent:
    """As `load_text`, for a file; raises OSError or UnicodeDecodeError if it cannot be read."""
    return load_text(path.read_text("utf-8-sig"), str(path), name or path.stem)


def from_file(filename: str) -> Callable[[types.FrameType], bool]:
    """Return a function that decides whether a traceback frame is in that file."""
    return lambda step: step.f_code.co_filename.startswith(filename)
