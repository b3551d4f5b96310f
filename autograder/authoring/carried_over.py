"""Known mistakes in other right answers than the solution: does `check` ask about them there, too?

A mistake is carried over to an alternative in which the text of its edit occurs once, in the same
function. A whole statement has to be a whole one there, too: `return n` is another edit in `return n + 1`.
"""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from textwrap import dedent

import yaml

from autograder.authoring.names_at_home import NamesAtHome, name_at_home
from autograder.course.config import Assignment, Course, CourseError
from autograder.course.definitions import definitions
from autograder.course.mistakes import Mistake
from autograder.course.mistakes_file import load_alternatives, mistakes_by_id
from autograder.runs.pool import this_grader
from autograder.text.wording import counted

MOST = 60  # of an assignment; evenly spread over all of them
IDEAS = ("idea", "central")


@dataclass(frozen=True)
class CarriedOver:
    """Of the mistakes that fail a visible test of an alternative: how many `check` asks about, and a sentence
    about each that it calls by another's name.
    """

    failed: int = 0
    asked: int = 0
    failed_ideas: int = 0
    asked_ideas: int = 0
    wrong_names: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """What the audit prints; empty if no mistake could be carried over."""
        if not self.failed:
            return ""
        all_of_them = f"{self.asked} of {self.failed}"
        ideas = f"{self.asked_ideas} of {self.failed_ideas} ideas"
        wrong = counted(len(self.wrong_names), "wrong name")
        return (
            f"In alternatives, `check` asks about {all_of_them} known mistakes that fail a visible test, {ideas}; "
            f"it gives {wrong}."
        )


def carried_over(name: str) -> CarriedOver:
    """Try an assignment's mistakes on its alternatives. Runs in a grader's process."""
    course = this_grader().course
    assignment = course.assignment(name)
    tries = list(mistaken(course, assignment))
    step = max(1, -(-len(tries) // MOST))
    named = [
        (alternative, mistake, name_at_home(course, assignment, mistake))
        for alternative, mistake in tries[::step]
    ]
    return _summary(named)


def _summary(named: Sequence[tuple[str, Mistake, NamesAtHome]]) -> CarriedOver:
    failing = [(mistake, names) for _, mistake, names in named if names.failed]
    ideas = [names for mistake, names in failing if mistake.weight in IDEAS]
    return CarriedOver(
        failed=len(failing),
        asked=sum(names.asked for _, names in failing),
        failed_ideas=len(ideas),
        asked_ideas=sum(names.asked for names in ideas),
        wrong_names=tuple(
            f"alternative {name}: {names.problem}" for name, _, names in named if names.wrong
        ),
    )


def mistaken(course: Course, assignment: Assignment) -> Iterator[tuple[str, Mistake]]:
    """Yield each alternative's name with each mistake that can be made in it, as the alternative with the mistake."""
    if not course.mistakes_file(assignment).exists():
        return
    entries = yaml.safe_load(course.read(course.mistakes_file(assignment), CourseError))
    mistakes = mistakes_by_id(course, assignment)
    for name, text in load_alternatives(course, assignment):
        for entry in entries or ():
            source = with_edits(text, entry.get("edits") or [entry])
            if source is not None:
                yield name, replace(mistakes[entry["id"]], source=source)


def with_edits(text: str, edits: Sequence[dict[str, str]]) -> str | None:
    """Return the alternative with the edits of a mistake; None if they cannot be made, or give no Python."""
    for edit in edits:
        if not _can_be_made(text, edit):
            return None
        text = text.replace(edit["replace"], edit["with"])
    return text if _parsed(text) is not None else None


def _can_be_made(text: str, edit: dict[str, str]) -> bool:
    before, old, after = text.partition(edit["replace"])
    tree = _parsed(text)
    if not old or old in after or tree is None:
        return False
    first = before.count("\n") + 1
    in_places = [
        definition.lineno <= first <= (definition.end_lineno or first)
        for name, definition in definitions(tree)
        if name == edit.get("in")
    ]
    is_whole = not after.partition("\n")[0].partition("#")[0].strip()
    return any(in_places) and (is_whole or not _is_statement(old))


def _is_statement(text: str) -> bool:
    tree = _parsed(dedent(text))
    return tree is not None and any(not isinstance(node, ast.Expr) for node in tree.body)


def _parsed(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except SyntaxError:
        return None
