"""The wrong programs to catch: which mistakes they are, how they are made, and what the audit proves.

The author chooses them with `catch` in mistakes.yml. Each can be caught with a small input, is not
caught by the text's examples, and is found in code that makes its mistake, but in no right code.
Random numbers catch at most half of a part's.
"""

import ast
import difflib
import string
import textwrap
from collections.abc import Iterator, Sequence
from datetime import datetime
from types import ModuleType
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from autograder.bridge.outside.local import load
from autograder.course.config import Assignment, Course, CourseError
from autograder.course.definitions import Definition, comments, definitions
from autograder.course.mistakes import Mistake
from autograder.course.mistakes_file import load_alternatives, load_mistakes, parts_of_mistakes

if TYPE_CHECKING:
    from autograder.selfcheck.catch.game import Inputs, WrongProgram

MOST = 4  # programs of a part
MOST_NUMBERS = 30  # of an author's input
# Raise this when the same mistake makes another program, and run `autograder build`.
PROGRAMS_VERSION = 2


def _chosen(course: Course, assignment: Assignment) -> dict[str, list[Mistake]]:
    """Return the mistakes to catch in each part; none where course.yml switches catching off.

    Raises CourseError if a part has too many, or there is no catch.py.
    """
    if course.catch is False:
        return {}
    solution = course.read_solution(assignment)
    mistakes: dict[str, list[Mistake]] = {part.name: [] for part in assignment.parts}
    with_catch = [mistake for mistake in load_mistakes(course, assignment) if mistake.program]
    for mistake, part in parts_of_mistakes(with_catch, solution):
        mistakes[part].append(mistake)
    mistakes = {part: of_part for part, of_part in mistakes.items() if of_part}
    label = course.label(course.mistakes_file(assignment))
    problems = [
        f"{label}: the part `{part}` has {len(of_part)} mistakes to catch; {MOST} are the most."
        for part, of_part in mistakes.items()
        if len(of_part) > MOST
    ]
    if mistakes and not course.catch_file(assignment).is_file():
        file = course.label(course.catch_file(assignment))
        problems.append(f"{label} has mistakes to catch, but there is no {file}.")
    if problems:
        raise CourseError(problems)
    return mistakes


def _with_letters(mistakes: dict[str, list[Mistake]]) -> dict[str, dict[str, Mistake]]:
    """Return the mistakes of each part by the letters of their programs, which students see."""
    letters = iter(string.ascii_uppercase)
    return {
        part: {next(letters): mistake for mistake in of_part} for part, of_part in mistakes.items()
    }


def programs(course: Course, assignment: Assignment) -> dict[str, list["WrongProgram"]]:
    """Return the programs of each part; raises CourseError if the solution cannot answer an author's input."""
    from autograder.selfcheck.catch.game import load_inputs

    mistakes = _chosen(course, assignment)
    if not mistakes:
        return {}
    solution = course.read_solution(assignment)
    module = load(solution, f"{assignment.stem}.py").module
    calls = load_inputs(course.catch_file(assignment).parent)
    return {
        part: [
            _program(letter, mistake, solution, module, calls.call(part))
            for letter, mistake in of_part.items()
        ]
        for part, of_part in _with_letters(mistakes).items()
    }


def _program(
    letter: str, mistake: Mistake, solution: str, module: ModuleType, call: Any
) -> "WrongProgram":
    from autograder.selfcheck.catch.game import WrongProgram, author_input, outcome

    assert mistake.program is not None
    program = WrongProgram(
        letter=letter,
        title=mistake.title,
        hint=mistake.hint,
        story=mistake.program.story,
        lines=_wrong_lines(mistake, solution),
        definitions=_definitions(mistake),
        imports=_imports(solution),
        input=mistake.program.input,
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


def _wrong_lines(mistake: Mistake, solution: str) -> tuple[str, ...]:
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


def problems_of(name: str) -> list[str]:
    """Return a sentence for each promise that a program to catch breaks.

    Runs in a grader's process.
    """
    from autograder.runs.pool import this_grader

    grader = this_grader()
    return list(broken(grader.course, grader.course.assignment(name)))


def broken(course: Course, assignment: Assignment) -> Iterator[str]:
    """Yield a sentence for each promise that a program to catch breaks."""
    from autograder.grading.reference import import_needed
    from autograder.selfcheck.catch.game import load_inputs

    import_needed(assignment)
    mistakes = _chosen(course, assignment)
    if not mistakes:
        return
    inputs = load_inputs(course.catch_file(assignment).parent)
    solution = _loaded(assignment, course.read_solution(assignment))
    right = {"the solution": solution}
    for name, text in load_alternatives(course, assignment):
        right[f"the alternative {name}"] = _loaded(assignment, text)
    for part, of_part in programs(course, assignment).items():
        yield from _too_easy(part, of_part, solution, inputs)
        for program, mistake in zip(of_part, mistakes[part], strict=True):
            yield from _of_program(part, program, mistake, right, inputs)
            yield from _unnoticed(part, program, mistake, assignment, inputs)


def _loaded(assignment: Assignment, text: str) -> ModuleType:
    return load(text, f"{assignment.stem}.py").module


def _of_program(
    part: str,
    program: "WrongProgram",
    mistake: Mistake,
    right: dict[str, ModuleType],
    inputs: "Inputs",
) -> Iterator[str]:
    """Yield what is wrong with the author's input, for any right code."""
    from autograder.selfcheck.catch.differences import count_numbers
    from autograder.selfcheck.catch.game import author_input, give_up

    numbers = count_numbers(author_input(program))
    if numbers > MOST_NUMBERS:
        yield f"the input that catches {mistake.id} has {numbers} numbers; {MOST_NUMBERS} are the most."
    for name, module in right.items():
        given = give_up(module, inputs.call(part), program)
        if given.made:
            yield f"the input that catches {mistake.id} does not separate it from {name}."
        if given.unexpected:
            yield f"with the input that catches {mistake.id}, {name} is not right: {given.unexpected}"


def _unnoticed(
    part: str, program: "WrongProgram", mistake: Mistake, assignment: Assignment, inputs: "Inputs"
) -> Iterator[str]:
    """Yield a sentence if code with the mistake is not told so when its program is given up."""
    from autograder.selfcheck.catch.game import give_up

    given = give_up(_loaded(assignment, mistake.source), inputs.call(part), program)
    if not given.made:
        yield f"code with the mistake {mistake.id} is not told so: {given.difference}"
    if not given.unexpected:
        yield f"with the input that catches {mistake.id}, code with the mistake is right."


def _too_easy(
    part: str, of_part: Sequence["WrongProgram"], solution: ModuleType, inputs: "Inputs"
) -> Iterator[str]:
    """Yield what the text's examples catch, and that random numbers catch more than half."""
    from autograder.selfcheck.catch.game import attempt

    call = inputs.call(part)
    for number, example in enumerate(inputs.inputs.get(part, ()), start=1):
        tried = attempt(solution, call, example, of_part)
        if tried.refused:
            yield f"example {number} of the part {part} in catch.py is refused: {tried.refused}"
        for verdict in tried.verdicts:
            if verdict.caught:
                yield f"the text's example catches “{verdict.program.title}” in the part {part}."
    if part not in inputs.random:
        yield f"RANDOM_INPUTS of catch.py has no input for the part {part}."
        return
    tried = attempt(solution, call, inputs.random[part], of_part)
    caught = [verdict.program.title for verdict in tried.verdicts if verdict.caught]
    if tried.refused:
        yield f"the random input of the part {part} in catch.py is refused: {tried.refused}"
    if len(caught) > len(of_part) / 2:
        yield (
            f"random numbers catch {len(caught)} of {len(of_part)} programs of the part {part}, more "
            f"than half: {', '.join(caught)}."
        )
