"""Which known mistakes pass all visible tests, and which of them does `catch` find at home?

python scripts/caught_at_home.py 05_encoder_block 08_encoder_decoder

A mistake is found if giving up one of the programs that its code unlocks says that the code is
wrong: that it makes this mistake, or that its answer is not the right one. Prints a line for each
assignment, in Markdown; `-v` lists the ideas that are not found. The released files are used, as
at a student's home. `--jobs=2` is the number of processes.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from at_home import TOGETHER, Options, options, try_all

from autograder.course.config import CATCH_FILE, Assignment, Course
from autograder.course.mistakes import Mistake
from autograder.course.mistakes_file import load_mistakes
from autograder.course.reading import load_course
from autograder.grading.reference import import_needed
from autograder.suite.session import SuiteSession


@dataclass(frozen=True)
class AtHome:
    """What a student can find out about a mistake alone."""

    mistake: str
    idea: bool
    passes: bool
    named: bool = False
    found: bool = False

    @property
    def is_open(self) -> bool:
        """Whether it is an idea that passes and that nothing finds."""
        return self.idea and self.passes and not self.found


def main(given: Options) -> None:
    print("| assignment | known mistakes | pass visible tests | ideas | pass visible tests |"
          " found by `catch`, all | found, ideas | named, ideas | ideas not found |")  # fmt: skip
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|")
    everything: list[AtHome] = []
    for name, tried in try_all(given, try_some):
        everything += tried
        print(line(name, tried), flush=True)
        if given.verbose:
            unknown = [mistake.mistake for mistake in tried if mistake.is_open]
            print("    not found: ", ", ".join(unknown), file=sys.stderr)
    print(line("all", everything))


def try_some(name: str, start: int) -> list[AtHome]:
    """Try some of an assignment's mistakes. Runs in a process of the pool."""
    course = load_course()
    assignment = course.assignment(name)
    import_needed(assignment)
    folder = course.release_folder(assignment)
    session = SuiteSession([folder / f"test_{assignment.stem}.py"], folder)
    mistakes = load_mistakes(course, assignment)[start : start + TOGETHER]
    return [at_home(course, assignment, session, mistake) for mistake in mistakes]


def at_home(
    course: Course, assignment: Assignment, session: SuiteSession, mistake: Mistake
) -> AtHome:
    from autograder.bridge.outside.local import load
    from autograder.selfcheck.catch.game import give_up, load_inputs, unlocked
    from autograder.selfcheck.check import failures
    from autograder.selfcheck.locked_hints import LockedHints

    folder = course.release_folder(assignment)
    module = load(mistake.source, f"{assignment.stem}.py").module
    idea = mistake.weight == "idea"
    if failures(session, module):
        return AtHome(mistake.id, idea, passes=False)
    if not (folder / CATCH_FILE).is_file():
        return AtHome(mistake.id, idea, passes=True)
    inputs = load_inputs(folder)
    hints = LockedHints(folder)
    given = [
        give_up(module, inputs.call(part), program)
        for part in hints.parts_with_programs
        for program in unlocked(hints, session, module, part)
    ]
    named = any(each.made and each.program.title == mistake.title for each in given)
    found = any(each.made or each.unexpected for each in given)
    return AtHome(mistake.id, idea, True, named, found)


def line(name: str, tried: Sequence[AtHome]) -> str:
    """Return the line of a table."""
    passing = [each for each in tried if each.passes]
    ideas = [each for each in passing if each.idea]
    counts = [
        len(tried),
        len(passing),
        sum(each.idea for each in tried),
        len(ideas),
        sum(each.found for each in passing),
        sum(each.found for each in ideas),
        sum(each.named for each in ideas),
        sum(not each.found for each in ideas),
    ]
    return f"| {name} | {' | '.join(map(str, counts))} |"


if __name__ == "__main__":
    main(options())
