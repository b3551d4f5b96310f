"""Does `check` name each known mistake as itself, at a student's home with nothing but the visible tests?

python scripts/names_at_home.py 03_masked_heads 05_encoder_block

Lists each mistake that gets another one's name, and a line for each assignment. `-v` lists what
gets no name, too. `--jobs=2` is the number of processes. The exit code is 1 if there is a wrong
name.
"""

from __future__ import annotations

import sys

from at_home import TOGETHER, Options, options, try_all

from autograder.authoring.names_at_home import NamesAtHome, name_at_home
from autograder.course.mistakes_file import load_mistakes
from autograder.course.reading import load_course


def main(given: Options) -> int:
    wrong = 0
    for name, found in try_all(given, try_some):
        wrong += report(name, found, given.verbose)
    return 1 if wrong else 0


def try_some(name: str, start: int) -> list[NamesAtHome]:
    """Try some of an assignment's mistakes. Runs in a process of the pool."""
    course = load_course()
    assignment = course.assignment(name)
    mistakes = load_mistakes(course, assignment)[start : start + TOGETHER]
    return [name_at_home(course, assignment, mistake) for mistake in mistakes]


def report(name: str, found: list[NamesAtHome], talkative: bool) -> int:
    """Print what is wrong, and a line; return the number of mistakes with a wrong name."""
    failing = [told for told in found if told.failed]
    wrong = [told for told in failing if told.wrong]
    for told in wrong:
        print(told.problem, flush=True)
    asked = [told for told in failing if told.asked and not told.named]
    silent = [told for told in failing if not told.asked]
    if talkative:
        for told in asked:
            print(f"{told.mistake} gets a question, but no name")
        for told in silent:
            print(f"{told.mistake} gets neither a name nor a question")
    named = len(failing) - len(wrong) - len(asked) - len(silent)
    print(
        f"{name:24} {len(found):4} mistakes, {len(failing):4} fail a visible test: {named:4} named, "
        f"{len(asked):3} with a question alone, {len(silent):3} without, {len(wrong):3} wrongly",
        flush=True,
    )
    return len(wrong)


if __name__ == "__main__":
    sys.exit(main(options()))
