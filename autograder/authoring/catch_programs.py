"""The wrong programs that a part unlocks, made from the mistakes that the author chose with `catch`."""

import ast
import difflib
import textwrap
from datetime import datetime
from types import ModuleType
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from autograder.course.catches import chosen, with_letters
from autograder.course.config import Assignment, Course, CourseError
from autograder.course.definitions import Definition, comments, definitions
from autograder.course.mistakes import Mistake

if TYPE_CHECKING:
    from autograder.selfcheck.catch.game import WrongProgram

# Raise this when the same mistake makes another program, and run `autograder build`.
PROGRAMS_VERSION = 2


def programs(course: Course, assignment: Assignment) -> dict[str, list["WrongProgram"]]:
    """Return the programs of each part; raises CourseError if the solution cannot answer an author's input."""
    from autograder.selfcheck.catch.game import load_inputs
    from autograder.selfcheck.workspace import run_text

    mistakes = chosen(course, assignment)
    if not mistakes:
        return {}
    solution = course.read_solution(assignment)
    module = run_text(solution, f"{assignment.stem}.py").module
    calls = load_inputs(course.catch_file(assignment).parent)
    return {
        part: [
            _program(letter, mistake, solution, module, calls.call(part))
            for letter, mistake in of_part.items()
        ]
        for part, of_part in with_letters(mistakes).items()
    }


def _program(
    letter: str, mistake: Mistake, solution: str, module: ModuleType, call: Any
) -> "WrongProgram":
    from autograder.selfcheck.catch.game import WrongProgram, author_input, outcome

    assert mistake.catch is not None
    program = WrongProgram(
        letter=letter,
        title=mistake.title,
        hint=mistake.hint,
        story=mistake.catch.story,
        lines=wrong_lines(mistake, solution),
        definitions=_definitions(mistake),
        imports=_imports(solution),
        input=mistake.catch.input,
        expected={},
    )
    try:
        answer = outcome(module, call, author_input(program))
    except Exception as error:
        raise CourseError(
            f"The input that catches the mistake `{mistake.id}` cannot be made: {error!r}."
        ) from None
    if answer.error:
        raise CourseError(
            f"The solution refuses the input that catches the mistake `{mistake.id}`: {answer.error}"
        )
    return WrongProgram(**{**vars(program), "expected": answer.values})


def opening(course: Course) -> str:
    """Return from when on programs can be caught, in universal time; "" if that is always."""
    if not isinstance(course.catch, datetime):
        return ""
    moment = course.catch
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=ZoneInfo(course.timezone))
    return moment.astimezone(ZoneInfo("UTC")).isoformat()


def wrong_lines(mistake: Mistake, solution: str) -> tuple[str, ...]:
    """Return the lines of a mistake that are not in the solution, without comments."""
    before = _code_lines(solution)
    after = _code_lines(mistake.source)
    changes = difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    lines: list[str] = []
    for change, _, _, begin, end in changes:
        if change in ("replace", "insert"):
            lines += after[begin:end]
    return tuple(lines)


def _code_lines(text: str) -> list[str]:
    lines = text.split("\n")
    for comment in comments(text):
        row, column = comment.start
        lines[row - 1] = lines[row - 1][:column]
    return [line.strip() for line in lines if line.strip()]


def _definitions(mistake: Mistake) -> dict[str, str]:
    """Return the wrong functions, and for a wrong method its whole class: the method may need what
    the author's `__init__` keeps under a name of its own.
    """
    nodes = dict(definitions(ast.parse(mistake.source)))
    outermost = dict.fromkeys(place.partition(".")[0] for place in mistake.places)
    return {place: _text(mistake.source, nodes[place]) for place in outermost}


def _text(source: str, node: Definition) -> str:
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    return textwrap.dedent("\n".join(source.split("\n")[first - 1 : node.end_lineno]))


def _imports(solution: str) -> str:
    nodes = ast.parse(solution).body
    return "\n".join(ast.unparse(n) for n in nodes if isinstance(n, ast.Import | ast.ImportFrom))
