"""What each known mistake costs, and how much of it outside the part that it edits, as a table.

python scripts/lost_points.py 03_masked_heads 05_encoder_block

A line for each assignment: the mean loss and the share of it outside the edited part, without
follow-through marks and with those of course.yml. `-v` lists every mistake; `--every=5` tries each
fifth only. `--parity` grades each mistake once more with `follow_through: 0` and lists what has
fewer points with follow-through marks than without.
"""

from __future__ import annotations

import difflib
import sys

from autograder.course.markers import parts_of_lines
from autograder.course.mistakes_file import load_mistakes
from autograder.course.reading import load_course
from autograder.grading.preparation import open_grader
from autograder.records import SourceFile, Submission
from autograder.walls.outside.launcher import Sandbox

SEED = 7


def main(names: list[str]) -> None:
    course = load_course()
    for assignment in course.select(names or None):
        text = course.read_solution(assignment)
        solution, parts = text.splitlines(), parts_of_lines(text)
        rows = {0.0: [0.0, 0.0], course.follow_through: [0.0, 0.0]}
        every = next(
            (int(each.partition("=")[2]) for each in sys.argv if each.startswith("--every=")), 1
        )
        mistakes = load_mistakes(course, assignment)[::every]
        grader = open_grader(course, Sandbox(hidden=course.hidden_folders), SEED, [assignment.name])
        without = course.model_copy(update={"follow_through": 0.0})
        plain = "--parity" in sys.argv and open_grader(
            without, Sandbox(hidden=course.hidden_folders), SEED, [assignment.name]
        )
        for mistake in mistakes:
            lines = mistake.source.splitlines()
            matcher = difflib.SequenceMatcher(None, solution, lines, autojunk=False)
            edited = {
                parts[min(begin, len(parts) - 1)]
                for tag, begin, *_ in matcher.get_opcodes()
                if tag != "equal"
            }
            edited.add(mistake.part or "")
            file = SourceFile(f"{assignment.stem}.py", mistake.source)
            grade = grader.grade(Submission("nobody", assignment.name, (file,)))
            if plain:
                alone = plain.grade(Submission("nobody", assignment.name, (file,)))
                lower = [
                    one.name
                    for one, other in zip(grade.tests, alone.tests)
                    if one.score < other.score
                ]
                if lower or grade.score < alone.score:
                    print(
                        f"{mistake.id}: {grade.score:g}, without follow-through {alone.score:g}",
                        *lower,
                        flush=True,
                    )
            for share, row in rows.items():
                for test in grade.tests:
                    followed = test.outcome == "followed"
                    lost = test.max_score * (1 - share) if followed else test.max_score - test.score
                    row[0] += lost
                    row[1] += lost if test.part not in edited else 0.0
            if "-v" in sys.argv:
                outside = [
                    (test.name, test.outcome, test.message)
                    for test in grade.tests
                    if test.part not in edited and test.score < test.max_score
                ]
                print(mistake.id, edited, f"{grade.score:g}", *outside, sep="\n    ")
        grader.close()
        if plain:
            plain.close()
        whole = assignment.points * len(mistakes)
        told = [
            f"{lost / whole:6.1%} {outside / max(lost, 1e-9):6.1%}"
            for lost, outside in rows.values()
        ]
        print(f"{assignment.name:24} {len(mistakes):4} mistakes   {'   '.join(told)}", flush=True)


if __name__ == "__main__":
    main([name for name in sys.argv[1:] if not name.startswith("-")])
