"""Functions for notebooks: `check("part")` tests a part, `hint("part")` helps with it,
`catch("part", lambda: (…))` tries an input on wrong programs, `picture("part")` draws it, and
`draw_model(model)` draws the modules of a whole model.

These use the current definitions of the notebook; `answers()`, `progress()` and `pack()` use the
saved files. During grading none of them does anything, because the grader runs the tests itself.
"""

import inspect
import os
import runpy
import subprocess
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from autograder.course.markers import CATCH, UNWRITTEN
from autograder.feedback.render import Message
from autograder.grading.differences import call_line
from autograder.records import CATCH_FILE, RefusedError
from autograder.sandbox.outside.local import LocalStudent
from autograder.sandbox.outside.trusted_process import python_command
from autograder.selfcheck.answers import unlocked_by
from autograder.selfcheck.catch import (
    WrongProgram,
    attempt,
    give_up,
    load_inputs,
    require_open,
    unlocked,
)
from autograder.selfcheck.catching import (
    about_attempt,
    about_giving_up,
    as_items,
    nothing_unlocked,
    with_letter,
)
from autograder.selfcheck.check import (
    SEED,
    CheckReport,
    Finding,
    check_student,
    check_work,
    failures,
    suite_of,
)
from autograder.selfcheck.drawing import why_not
from autograder.selfcheck.earlier_questions import Standing, next_question, switch
from autograder.selfcheck.exercise import run_checks as run_checks
from autograder.selfcheck.hints import next_hint
from autograder.selfcheck.kernel import parts_of as _parts_of
from autograder.selfcheck.kernel import this_kernel as _kernel
from autograder.selfcheck.live import add_sliders, as_image, in_notebook
from autograder.selfcheck.live import watch_training as watch_training
from autograder.selfcheck.living_cells import living_cells as _living_cells
from autograder.selfcheck.locked_hints import LockedHints
from autograder.selfcheck.model_drawing import draw_model as draw_model
from autograder.selfcheck.workspace import Text, Work, find_work, read
from autograder.source.text import cells
from autograder.text.wording import joined

_EXECUTION = "NBGRADER_EXECUTION"  # nbgrader sets it in the kernels that it starts


class NotGradedHereError(Exception):
    """nbgrader executes this notebook in an unprotected kernel, which must not produce a score."""


def _show_waiting(
    shell: Any, kind: type, error: BaseException, traceback: Any, tb_offset: int | None = None
) -> None:
    """Show a sentence in place of a traceback if a cell needs unwritten code, or a name that such a cell defines."""
    from IPython.display import display

    if str(error).endswith(UNWRITTEN):
        _kernel.waiting.append(str(error).removesuffix(UNWRITTEN))
        display(Message(f"This cell waits: `{_kernel.waiting[-1]}`{UNWRITTEN}"))
    elif isinstance(error, NameError) and _kernel.waiting and error.name not in _kernel.waiting:
        display(
            Message(
                f"This cell waits for `{error.name}`, which is defined in an unfinished cell above."
            )
        )
    else:
        shell.showtraceback((kind, error, traceback), tb_offset=tb_offset)


def _install_handler() -> None:
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if shell is not None:
        shell.set_custom_exc((NotImplementedError, NameError), _show_waiting)


def check(part: str, questions: bool | None = None) -> Any:
    """Run the visible tests of one part on the current definitions of this notebook.

    `questions=False` switches off the questions of earlier parts in all assignments here, `True`
    switches them on. Raises NotGradedHereError if nbgrader would take the result for a score.
    """
    execution = os.environ.get(_EXECUTION)
    if execution == "autograde":
        raise NotGradedHereError(
            "Grade with this course's nbgrader_config.py, or with `autograder grade`: they use the sandbox."
        )
    shown = _verdict(part)
    if execution == "validate":
        return _for_validation(shown)
    return _with_earlier_question(shown, part, questions)


def _with_earlier_question(shown: Message, part: str, questions: bool | None) -> Message:
    """Return the message with a question of an earlier part, if this part passes for the first time."""
    test_file = _kernel.test_file(part)
    if test_file is None:
        return shown
    if questions is not None:
        try:
            switch(test_file.parent, on=questions)
        except RefusedError as refusal:
            return Message(str(refusal))
    if not shown.passed:
        return shown
    failing = [other for other, seen in _kernel.seen.items() if not seen.passed]
    standing = Standing({part: _title(part)}, failing)
    module = _module(_notebook_space())
    question = next_question(
        test_file.parent, standing, lambda parts: unlocked_by(module, test_file, parts)
    )
    if question is None:
        return shown
    is_here = question.assignment == test_file.parent.resolve().name
    where = question.part if is_here else f"{question.assignment}, {question.part}"
    answer = "save the notebook, then `answers()`"
    if not is_here:
        answer = f'`answers("{question.assignment}")`'
    lines = (
        shown.foot,
        f"A question from {where}. It does not count.",
        f"→ {question.text}",
        f'The answer, after yours: {answer}. To be asked no more: `check("{part}", questions=False)`.',
    )
    return replace(shown, foot="\n".join(filter(None, lines)))


def _title(part: str) -> str:
    """Return the heading of a part in the saved notebook."""
    file = _saved_notebook()
    try:
        titles = Text(read(file), file.name).part_titles() if file else {}
    except RefusedError:
        titles = {}
    return titles.get(part) or part.replace("_", " ").capitalize()


def _verdict(part: str) -> Message:
    test_file = _kernel.test_file(part)
    if test_file is None and part == CATCH and LockedHints(_kernel.here).catch_points is not None:
        return Message(
            f"The points of this part come from {CATCH_FILE}, beside this notebook.",
            foot='`catch("part", lambda: …)` tries an input; write those that catch something there.',
        )
    if test_file is None:
        return Message(_no_test_of(part))
    findings = _findings(test_file, part)
    results = tuple(
        replace(finding.result, mistake=finding.mistake or None) for finding in findings
    )
    score = sum(result.score for result in results)
    total = sum(result.max_score for result in results)
    shown = _kernel.seen[part] = Message(
        f"{score:g} of {total:g} visible points of this part so far.", results
    )
    if shown.passed:
        shown = replace(
            shown, heading=f"All visible tests of this part pass: {score:g} of {total:g} points."
        )
    return replace(shown, foot=_progress(test_file) + _answers(test_file, shown))


def _findings(test_file: Path, part: str | None, saved: Text | None = None) -> tuple[Finding, ...]:
    space = _notebook_space()
    return check_student(
        _module(space), test_file, lambda step: step.f_globals is space, part, saved
    )


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
        saved = Text(read(work.file), work.file.name)
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


def catch(part: str, make_input: Any = None, give_up: str = "") -> Message | None:
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
    test_file = _kernel.test_file(part)
    if test_file is None:
        raise RefusedError(_no_test_of(part))
    hints = LockedHints(test_file.parent)
    require_open(hints)
    call = load_inputs(test_file.parent).call(part)
    module = sys.modules["__main__"]
    programs = _programs(hints, test_file, part)
    if letter:
        program = with_letter(letter, programs)
        paragraphs = about_giving_up(give_up(module, call, program))
        return Message(f"{program.letter}, given up", items=as_items(paragraphs))
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
        items=as_items(about_attempt(tried, "Your input", ())),
        foot="" if tried.refused else foot,
    )


def _programs(hints: LockedHints, test_file: Path, part: str) -> tuple[WrongProgram, ...]:
    """Return the programs of a part, which stay unlocked in this session; raises RefusedError."""
    if (test_file, part) not in _kernel.unlocked:
        module = sys.modules["__main__"]
        with suite_of(test_file) as session:
            passed = not any(test.part == part for test in failures(session, module))
            session.start(SEED)
            programs = unlocked(hints, session, module, part) if passed else ()
        if not programs:
            raise RefusedError(nothing_unlocked(passed))
        _kernel.unlocked[test_file, part] = programs
    return _kernel.unlocked[test_file, part]


def catch_all(file: str) -> None:
    """Try the inputs of a catch.py on the saved file beside it, as `autograder catch` does."""
    folder = Path(file).resolve().parent
    _run("catch", str(folder))


def _in_saved(finding: Finding, saved: Text) -> Finding:
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
    saved = {code.strip() for _, code in cells(file.read_text("utf-8"), file.name)}
    if not saved.issuperset(text.strip() for text in _living_cells(_notebook_space())):
        print(
            f"{file} does not hold all code of this notebook. Save the notebook there and run this cell again."
        )
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


def picture(part: str) -> Any:
    """Draw the pictures of one part from the current definitions; a message if one cannot be drawn."""
    student = LocalStudent(_module(_notebook_space()))
    for draw, choices in _pictures(part):
        _show_picture(draw, student, choices)


def _show_picture(
    draw: Callable[..., Any], student: Any, choices: Mapping[str, Sequence[Any]]
) -> None:
    """Show one picture with its caption; in a notebook with ipywidgets, sliders change its named arguments."""
    from IPython.display import Markdown, display

    def drawn(**values: Any) -> Any:
        try:
            return as_image(draw(student, **values), _caption(draw))
        except Exception as error:  # the student's unfinished code
            title = draw.__name__.replace("_", " ")
            return Message(f"The picture “{title}” cannot be drawn yet: {why_not(error)}")

    first = drawn()
    if not choices or isinstance(first, Message) or not in_notebook():
        display(first)
    else:
        shown = display(first, display_id=True)
        values = {name: inspect.signature(draw).parameters[name].default for name in choices}
        add_sliders(choices, values, lambda **chosen: shown.update(drawn(**chosen)))
    if not isinstance(first, Message):
        display(Markdown(_caption(draw)))


def earlier_work(assignment: str) -> tuple[types.ModuleType, frozenset[str]]:
    """Return the student's own module of another assignment, and its parts whose visible tests all pass.

    The assignment is looked for in this folder and those above it. Raises RefusedError if it or its
    file is not there.
    """
    work = find_work(assignment)
    return work.load().module, check_work(work).passed_parts


def _pictures(part: str) -> list[tuple[Callable[..., Any], Mapping[str, Sequence[Any]]]]:
    path = _kernel.here / "pictures.py"
    if not path.is_file():
        print(f"There is no pictures.py in {_kernel.here}. Keep the files together.")
        return []
    names = runpy.run_path(str(path))
    sliders = names.get("SLIDERS", {})
    return [(draw, sliders.get(draw, {})) for draw in names["PICTURES"].get(part, [])]


def _caption(draw: Callable[[Any], Any]) -> str:
    return " ".join((draw.__doc__ or draw.__name__.replace("_", " ")).split())


def _no_test_of(part: str) -> str:
    return f"There is no test of a part {part!r} in {_kernel.here}. Keep the files together."


def _notebook_space() -> dict[str, Any]:
    return vars(sys.modules["__main__"])


def _module(space: dict[str, Any]) -> types.ModuleType:
    module = types.ModuleType("notebook")
    vars(module).update(space)
    return module


_install_handler()
