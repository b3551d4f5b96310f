"""Functions for notebooks: `check("part")` tests a part, `hint("part")` helps with it,
`catch("part", lambda: (…))` tries an input on wrong programs, `picture("part")` draws it, and
`draw_model(model)` draws the modules of a whole model.

These use the current definitions of the notebook; `answers()`, `progress()` and `pack()` use the
saved files. During grading none of them does anything, because the grader runs the tests itself.
"""

import inspect
import os
import re
import subprocess
import sys
import types
from dataclasses import replace
from pathlib import Path
from typing import Any

from autograder.bridge.outside.local import LocalStudent
from autograder.bridge.shared.errors import describe_error
from autograder.course.markers import UNWRITTEN
from autograder.failures.explain import stops_before_code
from autograder.feedback.gallery import PictureFunction, load_gallery
from autograder.feedback.render import Message
from autograder.records import RefusedError
from autograder.selfcheck.catch.differences import call_line
from autograder.selfcheck.catch.game import (
    WrongProgram,
    attempt,
    give_up,
    load_inputs,
    require_open,
    unlocked,
)
from autograder.selfcheck.catch.told import (
    about_attempt,
    about_giving_up,
    nothing_unlocked,
    with_letter,
    with_marked_code,
)
from autograder.selfcheck.check import (
    CheckReport,
    Finding,
    check_student,
    check_work,
    failures,
    suite_of,
)
from autograder.selfcheck.drawing import why_not
from autograder.selfcheck.exercise import run_checks as run_checks
from autograder.selfcheck.hints import next_hint
from autograder.selfcheck.kernel import parts_of as _parts_of
from autograder.selfcheck.kernel import this_kernel as _kernel
from autograder.selfcheck.live import add_sliders, as_image, in_notebook
from autograder.selfcheck.live import watch_training as watch_training
from autograder.selfcheck.living_cells import cell_to_run
from autograder.selfcheck.living_cells import living_cells as _living_cells
from autograder.selfcheck.locked_hints import LockedHints
from autograder.selfcheck.model_drawing import draw_model as draw_model
from autograder.selfcheck.workspace import Work, find_work, read
from autograder.source.places import StudentText
from autograder.source.text import cells
from autograder.text.spelling import did_you_mean
from autograder.text.wording import joined
from autograder.walls.outside.trusted_process import python_command

_UNKNOWN = re.compile(
    r"There is no `(\w+)` in your file\.|Your code raised a NameError: name '(\w+)' is not defined"
)
_EXECUTION = "NBGRADER_EXECUTION"  # nbgrader sets it in the kernels that it starts
_unlocked_by_part: dict[tuple[Path, str], tuple[WrongProgram, ...]] = {}


class NotGradedHereError(Exception):
    """nbgrader executes this notebook in an unprotected kernel, which must not produce a score."""


def _show_waiting(
    shell: Any, kind: type, error: BaseException, traceback: Any, tb_offset: int | None = None
) -> None:
    """Show a sentence in place of a traceback if a cell needs unwritten code, or a name that such a cell defines."""
    from IPython.display import display

    if str(error).endswith(UNWRITTEN):
        _kernel.waiting.append(str(error).removesuffix(UNWRITTEN))
        frames = describe_error(error, lambda step: step.f_globals is _notebook_space()).frames
        waits = f"`{_kernel.waiting[-1]}`{UNWRITTEN}"
        if frames and frames[-1].below:
            waits = stops_before_code(frames[-1])
        display(Message(f"This cell waits: {waits}"))
    elif isinstance(error, NameError) and _kernel.waiting and error.name not in _kernel.waiting:
        display(
            Message(
                f"This cell waits for `{error.name}`, which is defined in an unfinished cell above."
            )
        )
    elif isinstance(error, NameError) and (cell := _cell_above(error.name or "")):
        display(Message(f"`{error.name}` is not defined: run {cell} first."))
    else:
        shell.showtraceback((kind, error, traceback), tb_offset=tb_offset)


def _install_handler() -> None:
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if shell is not None:
        shell.set_custom_exc((NotImplementedError, NameError), _show_waiting)


def check(part: str = "") -> Any:
    """Run the visible tests of one part, or of all, on the current definitions of this notebook.

    Raises NotGradedHereError if nbgrader would take the result for a score.
    """
    execution = os.environ.get(_EXECUTION)
    if execution == "autograde":
        raise NotGradedHereError(
            "Grade with this course's nbgrader_config.py, or with `autograder grade`: they use the sandbox."
        )
    shown = _verdict(part)
    if execution == "validate":
        return _for_validation(shown)
    return shown


def _verdict(part: str) -> Message:
    test_file = _kernel.test_file(part)
    if test_file is None:
        return Message(_no_test_of(part))
    findings = _findings(test_file, part or None)
    results = tuple(
        replace(finding.result, mistake=finding.mistake or None) for finding in findings
    )
    score = sum(result.score for result in results)
    total = sum(result.max_score for result in results)
    of_what = " of this part" if part else ""
    shown = Message(f"{score:g} of {total:g} visible points{of_what} so far.", results)
    if part:
        _kernel.seen[part] = shown
    if shown.passed:
        shown = replace(
            shown, heading=f"All visible tests{of_what} pass: {score:g} of {total:g} points."
        )
    return replace(shown, foot=_progress(test_file) + _answers(test_file, shown))


def _findings(
    test_file: Path, part: str | None, saved: StudentText | None = None
) -> tuple[Finding, ...]:
    space = _notebook_space()
    findings = check_student(
        _module(space), test_file, lambda step: step.f_globals is space, part, saved
    )
    return tuple(map(_with_cell_to_run, findings))


def _with_cell_to_run(finding: Finding) -> Finding:
    """Return the finding about a name that this kernel does not know with the cell that has to run first."""
    match = _UNKNOWN.match(finding.result.message or "")
    if match is None:
        return finding
    name = match[1] or match[2]
    cell = cell_to_run(name, _saved_cells()) or ("its cell" if match[1] else "")
    if not cell:
        return finding
    message = f"`{name}` is not defined: run {cell} first."
    return replace(finding, result=replace(finding.result, message=message))


def _cell_above(name: str) -> str:
    """Return the words for another cell of the saved notebook that binds a name; nothing if none does."""
    running = [*_notebook_space().get("In", ()), ""][-2:-1]
    others = [code for code in _saved_cells() if code.strip() not in map(str.strip, running)]
    return cell_to_run(name, others)


def _saved_cells() -> list[str]:
    """Return the code cells of the saved notebook; none if it cannot be read."""
    file = _saved_notebook()
    try:
        return [code for _, code in cells(read(file), file.name)] if file else []
    except (RefusedError, ValueError):
        return []


def open_assignment(name: str) -> None:
    """Find the folder with the assignment's tests and pictures, in or near the notebook's; say so if there is none."""
    _kernel.open_assignment(name)
    if _kernel.folder is None:
        here = Path.cwd()
        print(
            f"The tests of {name} are not in {here}. Unpack the archive of the course there and run this cell again, "
            f"or open the notebook in the archive's folder assignments/{name}."
        )


def hint(part: str = "", again: bool = False) -> Message:
    """Show one step of help with the first failing test of a part, or of the assignment; call it again for the next.

    `again` starts with the first step.
    """
    test_file = _kernel.test_file(part)
    if test_file is None:
        return Message(_no_test_of(part))
    work = Work(test_file.with_name(f"{test_file.stem.removeprefix('test_')}.ipynb"), test_file)
    try:
        saved = StudentText(read(work.file), work.file.name)
        findings = tuple(
            _in_saved(finding, saved) for finding in _findings(test_file, part or None, saved)
        )
        next_step = next_hint(
            work, CheckReport(work.file.name, work.name, findings, {}), start_over=again
        )
    except RefusedError as refusal:
        return Message(str(refusal))
    if next_step is None:
        return Message("Every visible test passes: no hint is needed.")
    more = "The next step: run this cell again." if next_step.number < next_step.of else ""
    if next_step.again:
        more = "That was the last step. From the first: `again=True`, as in `hint(again=True)`."
    kind = f"Hint {next_step.number} of {next_step.of} · {next_step.kind}"
    return Message(next_step.title, notes=(kind, *next_step.text.split("\n")), foot=more)


def catch(part: str = "", make_input: Any = None, give_up: str = "") -> Message | None:
    """Tell on which wrong programs of a part an input differs from the current definitions of this
    notebook; with `give_up="B"`, what the author's input for program B tells.
    """
    if os.environ.get(_EXECUTION):
        return None
    try:
        return _caught(part, make_input, give_up)
    except RefusedError as refusal:
        return Message(str(refusal))


def _caught(part: str, make_input: Any, letter: str) -> Message:
    test_file = _kernel.test_file(part) if part else None
    if test_file is None:
        raise RefusedError(_no_test_of(part))
    hints = LockedHints(test_file.parent)
    require_open(hints)
    call = load_inputs(test_file.parent).call(part)
    module = sys.modules["__main__"]
    programs = _programs(hints, test_file, part)
    if letter:
        program = with_letter(letter, programs)
        items = about_giving_up(give_up(module, call, program))
        return Message(f"{program.letter}, given up", items=with_marked_code(items))
    if make_input is None:
        letters = joined([program.letter for program in programs], len(programs))
        return Message(
            f"Unlocked: {letters}. Find an input on which they differ from your code.",
            notes=(f"{call_line(call)}.", " ".join((call.__doc__ or "").split())),
            foot=f'Try one: `catch("{part}", lambda: …)`',
        )
    tried = attempt(module, call, make_input, programs)
    waiting = [verdict.program.letter for verdict in tried.verdicts if not verdict.caught]
    next_letter = [*waiting, programs[0].letter][0]
    foot = (
        f"If nothing separates program {next_letter} from your code, your code may make that mistake: "
        f'`catch("{part}", give_up="{next_letter}")`'
    )
    return Message(
        f"Catch the mistake: {part.replace('_', ' ')}",
        items=with_marked_code(about_attempt(tried, "Your input", ())),
        foot="" if tried.refused else foot,
    )


def _programs(hints: LockedHints, test_file: Path, part: str) -> tuple[WrongProgram, ...]:
    """Return the programs of a part, which stay unlocked in this session; raises RefusedError."""
    if (test_file, part) not in _unlocked_by_part:
        module = sys.modules["__main__"]
        with suite_of(test_file) as session:
            passed = not any(test.part == part for test in failures(session, module))
            programs = unlocked(hints, session, module, part) if passed else ()
        if not programs:
            raise RefusedError(nothing_unlocked(passed))
        _unlocked_by_part[test_file, part] = programs
    return _unlocked_by_part[test_file, part]


def catch_all(file: str) -> None:
    """Try the inputs of a catch.py on the saved file beside it, as `autograder catch` does."""
    folder = Path(file).resolve().parent
    _run("catch", str(folder))


def _in_saved(finding: Finding, saved: StudentText) -> Finding:
    """Return the finding with its place in the saved notebook: a line of a traceback is known by its function alone."""
    if finding.place is None or finding.place.cell is not None:
        return finding
    functions = saved.functions()
    called = finding.place.function
    names = (name for name in functions if name == called or name.endswith(f".{called}"))
    return replace(finding, place=functions.get(next(names, "")) if called else None)


def progress() -> None:
    """Show the results in the whole course, from the saved files, as `autograder progress` does."""
    _run("progress", ".")


def pack() -> None:
    """Create the archive to hand in from the saved notebook, as `autograder pack` does."""
    file = _saved_notebook()
    if file is None:
        print(
            f"There is no notebook of the assignment in {_kernel.here} that could be packed. Keep the files together."
        )
        return
    saved = {code.strip() for code in _saved_cells()}
    if not saved.issuperset(text.strip() for text in _living_cells(_notebook_space())):
        print(
            f"{file} does not hold all code of this notebook. Save the notebook there and run this cell again."
        )
        return
    if Work(file, file.with_name(f"test_{file.stem}.py")).is_untouched():
        print(f"{file} holds no answer yet: save the notebook first, and run this cell again.")
        return
    _run("pack", file.name)


def answers(assignment: str = "") -> None:
    """Show the answers to the questions of the parts that pass their visible tests, as `autograder answers` does.

    The parts are those of the saved notebook, or of another assignment's saved file.
    """
    if assignment:
        _run("answers", assignment)
        return
    file = _saved_notebook()
    if file is None:
        print(f"There is no notebook of the assignment in {_kernel.here}. Keep the files together.")
        return
    _run("answers", file.name)


def _saved_notebook() -> Path | None:
    test_file = _kernel.test_file("")
    file = test_file and test_file.with_name(f"{test_file.stem.removeprefix('test_')}.ipynb")
    return file if file is not None and file.is_file() else None


def _run(*words: str) -> None:
    """Print the output of a command about the saved files, which runs in a process of its own."""
    program = python_command("from autograder.cli import main; main()", *words)
    environment = {**os.environ, "COLUMNS": "88", "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(program, cwd=_kernel.here, env=environment, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8")  # fmt: skip
    print(done.stdout)


def _for_validation(shown: Message) -> float | None:
    """Return the value for `nbgrader validate`: a score below the maximum if a test fails."""
    from IPython.display import display

    display(shown)
    return None if shown.passed else 0.0


def _progress(test_file: Path) -> str:
    parts = _parts_of(test_file)
    if len(parts) < 2:
        return ""
    return "Parts: " + " · ".join(f"{part.replace('_', ' ')} {_state(part)}" for part in parts)


def _answers(test_file: Path, shown: Message) -> str:
    hint = " Save the notebook, and `answers()` answers the questions of the text."
    return hint if shown.passed and LockedHints(test_file.parent).has_answers else ""


def _state(part: str) -> str:
    seen = _kernel.seen.get(part)
    if seen is None:
        return "–"
    return (
        "✓"
        if seen.passed
        else f"{sum(r.outcome == 'passed' for r in seen.results)}/{len(seen.results)}"
    )


def picture(part: str = "") -> Any:
    """Draw the pictures of one part from the current definitions; a message if one cannot be drawn."""
    student = LocalStudent(_module(_notebook_space()))
    for function in _pictures(part):
        _show_picture(function, student)


def _show_picture(function: PictureFunction, student: Any) -> None:
    """Show one picture with its caption; in a notebook with ipywidgets, sliders change its named arguments."""
    from IPython.display import Markdown, display

    def drawn(**values: Any) -> Any:
        try:
            return as_image(*function.drawn(student, **values))
        except Exception as error:  # the student's unfinished code
            return Message(f"The picture “{function.title}” cannot be drawn yet: {why_not(error)}")

    choices = function.choices
    first = drawn()
    if not choices or isinstance(first, Message) or not in_notebook():
        display(first)
    else:
        shown = display(first, display_id=True)
        values = {
            name: inspect.signature(function.draw).parameters[name].default for name in choices
        }
        add_sliders(choices, values, lambda **chosen: shown.update(drawn(**chosen)))
    if not isinstance(first, Message):
        display(Markdown(function.look_for))


def earlier_work(assignment: str) -> tuple[types.ModuleType, frozenset[str]]:
    """Return the student's own module of another assignment, and its parts whose visible tests all pass.

    The assignment is looked for in this folder and those above it. Raises RefusedError if it or its
    file is not there.
    """
    work = find_work(assignment)
    return work.load().module, check_work(work).passed_parts


def _pictures(part: str) -> list[PictureFunction]:
    path = _kernel.here / "pictures.py"
    if not path.is_file():
        print(f"There is no pictures.py in {_kernel.here}. Keep the files together.")
        return []
    gallery = load_gallery(path)
    if part not in gallery:
        print(_no_test_of(part) if part not in _parts_of_here() else f"{part} has no picture.")
    return gallery.get(part, [])


def _parts_of_here() -> list[str]:
    test_file = _kernel.test_file("")
    return _parts_of(test_file) if test_file else []


def _no_test_of(part: Any) -> str:
    """Return the sentence about a part that no test is about, with those that there are."""
    test_file = _kernel.test_file("")
    if test_file is None:
        return f"There are no tests in {_kernel.here}. Keep the files together."
    parts = _parts_of(test_file)
    listed = joined([f'"{name}"' for name in parts], len(parts))
    if not isinstance(part, str):
        return f"The name of a part stands in quotes: {listed}."
    if not part:
        return f"Name a part: {listed}."
    return f"There is no part {part!r}{did_you_mean(part, parts) or '.'} The parts: {listed}."


def _notebook_space() -> dict[str, Any]:
    return vars(sys.modules["__main__"])


def _module(space: dict[str, Any]) -> types.ModuleType:
    module = types.ModuleType("notebook")
    vars(module).update(space)
    return module


_install_handler()
