"""How often does `check` name a known mistake also in another right answer, where the text of its edit occurs once?

python scripts/mistakes_on_alternatives.py 03_masked_heads 05_encoder_block

Lists each alternative with a mistake that gets another one's name, and a line for each assignment:
of the mistakes that fail a visible test, the share that is named or led to by a question, for all
and for ideas alone. `-v` lists what keeps all points of the visible tests, too. The exit code is 1 if
there is a wrong name.
"""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Iterator
from dataclasses import replace

import yaml

from autograder.authoring.names_at_home import name_at_home
from autograder.course.config import Assignment, Course, CourseError, load_course
from autograder.course.mistakes import Mistake, load_alternatives, mistakes_by_id


def main(names: list[str], talkative: bool) -> int:
    course = load_course()
    wrong = 0
    for assignment in course.select(names or None):
        wrong += try_all(course, assignment, talkative)
    return 1 if wrong else 0


def try_all(course: Course, assignment: Assignment, talkative: bool) -> int:
    """Print what is wrong in an assignment, and a line; return the number of wrong names."""
    tried = 0
    wrong = 0
    asked_of_all = list[bool]()
    asked_of_ideas = list[bool]()
    for alternative, mistake in mistaken(course, assignment):
        told = name_at_home(course, assignment, mistake)
        tried += 1
        if told.wrong:
            wrong += 1
            print(f"{alternative}: {told.problem}", flush=True)
        if told.failed:
            asked_of_all.append(told.asked)
            if mistake.weight in ("idea", "central"):
                asked_of_ideas.append(told.asked)
        elif talkative:
            print(f"{alternative}: {mistake.id} passes all visible tests", flush=True)
    counts = f"{tried:4} tried, {share(asked_of_all)} asked about, ideas {share(asked_of_ideas)}, {wrong:3} wrongly named"
    print(f"{assignment.name:24} {counts}", flush=True)
    return wrong


def share(asked: list[bool]) -> str:
    """Return `12 of 15 (80 %)`."""
    percent = f" ({sum(asked) / len(asked):.0%})" if asked else ""
    return f"{sum(asked):3} of {len(asked):3}{percent}"


def mistaken(course: Course, assignment: Assignment) -> Iterator[tuple[str, Mistake]]:
    """Yield each alternative's name with each mistake that can be made in it, as the alternative with the mistake."""
    entries = yaml.safe_load(course.read(course.mistakes_file(assignment), CourseError))
    mistakes = mistakes_by_id(course, assignment)
    for name, text in load_alternatives(course, assignment):
        for entry in entries:
            source = with_edits(text, entry.get("edits") or [entry])
            if source is not None:
                yield name, replace(mistakes[entry["id"]], source=source)


def with_edits(text: str, edits: list[dict[str, str]]) -> str | None:
    """Return the alternative with the edits of a mistake; None if their texts are not there once, or give no Python."""
    for edit in edits:
        if text.count(edit["replace"]) != 1:
            return None
        text = text.replace(edit["replace"], edit["with"])
    try:
        ast.parse(text)
    except SyntaxError:
        return None
    return text


if __name__ == "__main__":
    os.environ["OMP_NUM_THREADS"] = "1"
    sys.exit(main([name for name in sys.argv[1:] if not name.startswith("-")], "-v" in sys.argv))
