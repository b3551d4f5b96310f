"""Functions for notebooks: `check("part")` tests a part, `picture("part")` draws the student's own code.

Both use the current definitions of the notebook. During grading they do nothing, because the grader runs the tests
itself.
"""

from __future__ import annotations

import ast
import importlib.util
import io
import linecache
import os
import re
import sys
import types
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autograder.records import TestResult
from autograder.selfcheck import render as verdict

_EXECUTION = "NBGRADER_EXECUTION"  # nbgrader sets it in the kernels that it starts
_UNWRITTEN = " is not written yet."
_seen: dict[str, Verdict] = {}  # the latest verdict of each part in this session
_waiting: list[str] = []  # unwritten names that executed cells need


class NotGradedHereError(Exception):
    """nbgrader executes this notebook in an unprotected kernel, which must not produce a score."""


@dataclass(frozen=True)
class Verdict:
    """The results of a part: shown as text in a terminal and as HTML in a notebook."""

    part: str
    results: tuple[TestResult, ...] = ()
    problem: str = ""
    progress: str = ""

    @property
    def passed(self) -> bool:
        return bool(self.results) and all(result.outcome == "passed" for result in self.results)

    def __repr__(self) -> str:
        return verdict.as_text(self._heading(), self.results, foot=self.progress)

    def _repr_html_(self) -> str:
        return verdict.as_html(self._heading(), self.results, foot=self.progress)

    def _heading(self) -> str:
        if self.problem:
            return self.problem
        score = sum(result.score for result in self.results)
        total = sum(result.max_score for result in self.results)
        if self.passed:
            return f"All visible tests of this part pass: {score:g} of {total:g} points."
        return f"{score:g} of {total:g} visible points of this part so far."


def _show_waiting(shell: Any, kind: type, error: BaseException, traceback: Any, tb_offset: int | None = None) -> None:
    """Show a sentence in place of a traceback if a cell needs unwritten code, or a name that such a cell defines."""
    from IPython.display import display

    if str(error).endswith(_UNWRITTEN):
        _waiting.append(str(error).removesuffix(_UNWRITTEN))
        display(Sentence(f"This cell waits: `{_waiting[-1]}`{_UNWRITTEN}"))
    elif isinstance(error, NameError) and _waiting and error.name not in _waiting:
        display(Sentence(f"This cell waits for `{error.name}`, which is defined in an unfinished cell above."))
    else:
        shell.showtraceback((kind, error, traceback), tb_offset=tb_offset)


def _install_handler() -> None:
    """Install the handler that shows unfinished work as a sentence in this notebook."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if shell is not None:
        shell.set_custom_exc((NotImplementedError, NameError), _show_waiting)


@dataclass(frozen=True)
class Sentence:
    """One sentence, as text and as HTML."""

    text: str

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return verdict.as_html(self.text)


def check(part: str) -> Any:
    """Run the visible tests of one part on the current definitions of this notebook.

    Raises NotGradedHereError if nbgrader would take the result for a score.
    """
    execution = os.environ.get(_EXECUTION)
    if execution == "autograde":
        raise NotGradedHereError(
            "Grade with this course's nbgrader_config.py, or with `autograder grade`: they use the sandbox."
        )
    shown = _verdict(part)
    return _for_validation(shown) if execution == "validate" else shown


def _verdict(part: str) -> Verdict:
    test_file = _test_file(part)
    if test_file is None:
        here = Path.cwd()
        return Verdict(part, problem=f"There is no test of a part {part!r} in {here}. Keep the files together.")
    from autograder.proxy.subject import uses_in
    from autograder.selfcheck.check import check_student

    space = _notebook_space()
    uses = uses_in(_living_text(space), "notebook.py", test_file.read_text("utf-8"))
    results = check_student(_module(space), uses, test_file, lambda step: step.f_globals is space, part)
    _seen[part] = Verdict(part, results)
    return Verdict(part, results, progress=_progress(test_file) + _answers(test_file, _seen[part]))


def _for_validation(shown: Verdict) -> float | None:
    """Return the value for `nbgrader validate`: a score below the maximum if a test fails."""
    from IPython.display import display

    display(shown)
    return None if shown.passed else 0.0


def _progress(test_file: Path) -> str:
    """Return the results of all parts checked in this session; empty if the assignment has only one."""
    parts = list(dict.fromkeys(re.findall(r'part\("(\w+)"\)', test_file.read_text("utf-8"))))
    if len(parts) < 2:
        return ""
    return "Parts: " + " · ".join(f"{part.replace('_', ' ')} {_state(part)}" for part in parts)


def _answers(test_file: Path, shown: Verdict) -> str:
    from autograder.selfcheck.locked_hints import LockedHints

    told = f" `autograder answers {test_file.parent.name}` answers the questions of the text."
    return told if shown.passed and LockedHints(test_file.parent).has_answers else ""


def _state(part: str) -> str:
    seen = _seen.get(part)
    if seen is None:
        return "–"
    return "✓" if seen.passed else f"{sum(r.outcome == 'passed' for r in seen.results)}/{len(seen.results)}"


def picture(part: str) -> Any:
    """Draw the pictures of one part from the current definitions; a message if one cannot be drawn."""
    from IPython.display import display

    from autograder.proxy.local import LocalStudent
    from autograder.selfcheck.drawing import why_not

    student = LocalStudent(_module(_notebook_space()))
    for draw in _pictures(part):
        try:
            display(_image(draw(student), _caption(draw)))
        except Exception as error:  # the student's unfinished code
            title = draw.__name__.replace("_", " ")
            display(Sentence(f"The picture “{title}” cannot be drawn yet: {why_not(error)}"))
        else:
            print(_caption(draw))


def earlier_work(assignment: str) -> tuple[types.ModuleType, frozenset[str]]:
    """Return the student's own module of another assignment, and its parts whose visible tests all pass.

    The assignment is looked for in this folder and those above it. Raises RefusedError if it or its file is not there.
    """
    from autograder.selfcheck.check import check_work
    from autograder.selfcheck.workspace import find_work, label_of, read, run_text

    work = find_work(assignment)
    return run_text(read(work.file), label_of(work.file)).module, check_work(work).passed_parts


def _image(figure: Any, caption: str) -> Any:
    """Return a figure as an image with an alternative text; any other value unchanged."""
    if not hasattr(figure, "savefig"):
        return figure
    from IPython.display import Image

    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=110, bbox_inches="tight")
    return Image(data=file.getvalue(), alt=caption)


def _pictures(part: str) -> list[Callable[[Any], Any]]:
    path = Path("pictures.py")
    if not path.is_file():
        print(f"There is no pictures.py in {Path.cwd()}. Keep the files together.")
        return []
    spec = importlib.util.spec_from_file_location("pictures", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    drawings: list[Callable[[Any], Any]] = module.PICTURES.get(part, [])
    return drawings


def _caption(draw: Callable[[Any], Any]) -> str:
    return " ".join((draw.__doc__ or draw.__name__.replace("_", " ")).split())


def _test_file(part: str) -> Path | None:
    """Return the test file in this folder with tests of the part."""
    for path in sorted(Path.cwd().glob("test_*.py")):
        if f'part("{part}")' in path.read_text("utf-8"):
            return path
    return None


def _notebook_space() -> dict[str, Any]:
    """Return the namespace of the notebook."""
    return vars(sys.modules["__main__"])


def _module(space: dict[str, Any]) -> types.ModuleType:
    module = types.ModuleType("notebook")
    vars(module).update(space)
    return module


def _living_text(space: dict[str, Any]) -> str:
    """Return all imports executed so far, and the text of the cells with current definitions."""
    imports = [text for cell in space.get("In", []) for text in _imports(cell)]
    cells = {_cell_of(value) for name, value in list(space.items()) if not name.startswith("_")}
    return "\n".join([*imports, *("".join(linecache.getlines(cell)) for cell in sorted(filter(None, cells)))])


def _imports(cell: str) -> list[str]:
    try:
        tree = ast.parse(cell)
    except SyntaxError:
        return []
    return [ast.unparse(node) for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom))]


def _cell_of(value: Any) -> str | None:
    """Return the file name under which IPython stores the cell that defined a function or class."""
    if isinstance(value, type) and value.__module__ == "__main__":
        functions = (item for item in vars(value).values() if isinstance(item, types.FunctionType))
        value = next(functions, None)
    if isinstance(value, types.FunctionType) and value.__module__ == "__main__":
        return value.__code__.co_filename
    return None


_install_handler()
