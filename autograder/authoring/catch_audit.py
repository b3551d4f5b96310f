"""What the audit proves about the wrong programs to catch.

Each can be caught with a small input, is not caught by the text's examples, and is found in code
that makes its mistake, but in no right code. Random numbers catch at most half of a part's.
"""

from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import TYPE_CHECKING

from autograder.authoring.catch_programs import programs
from autograder.course.catches import chosen
from autograder.course.config import Assignment, Course
from autograder.course.mistakes import Mistake, load_alternatives
from autograder.grading.reference import import_needed
from autograder.runs.pool import this_grader

if TYPE_CHECKING:
    from autograder.selfcheck.catch.game import Inputs, WrongProgram

MOST_NUMBERS = 30  # of an author's input


def problems_of(name: str) -> list[str]:
    """Return a sentence for each promise that a program to catch breaks.

    Runs in a grader's process.
    """
    grader = this_grader()
    return list(broken(grader.course, grader.course.assignment(name)))


def broken(course: Course, assignment: Assignment) -> Iterator[str]:
    """Yield a sentence for each promise that a program to catch breaks."""
    from autograder.selfcheck.catch.game import load_inputs

    import_needed(assignment)
    mistakes = chosen(course, assignment)
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
    from autograder.selfcheck.workspace import run_text

    return run_text(text, f"{assignment.stem}.py").module


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
