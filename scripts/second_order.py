"""Two small changes of a solution at once: is there a second change that hides the first from the tests?

python scripts/second_order.py 03_masked_heads --pairs=100

Draws pairs of mutants, none of them in equivalent_mutants.yml, and lists the pairs that pass every
test. A pair that survives is a gap of the suite, or right in another way. The draw depends on
nothing but `--seed`.
"""

from __future__ import annotations

import ast
import random
import sys

from autograder.authoring.audit import MUTANT_SECONDS
from autograder.authoring.mutants import load_equivalent_mutants, mutants
from autograder.course.reading import load_course
from autograder.grading.preparation import open_grader
from autograder.walls.outside.launcher import Sandbox


def main(names: list[str], pairs: int, seed: int) -> int:
    course, survivors = load_course(), 0
    for assignment in course.select(names or None):
        chosen, solution = random.Random(seed), course.read_solution(assignment)
        every, right = list(mutants(solution)), meaning(solution)
        listed = load_equivalent_mutants(course, assignment, {mutant.id for mutant in every})
        grader = open_grader(course, Sandbox(hidden=course.hidden_folders), seed, [assignment.name])
        firsts = [mutant for mutant in every if mutant.id not in listed]
        tried = left = 0
        for first in chosen.sample(firsts, min(pairs, len(firsts))):
            seconds = [
                m
                for m in mutants(first.source)
                if m.id not in listed and meaning(m.source) != right
            ]
            second = chosen.choice(seconds)
            tried += 1
            if not any(
                grader.first_failure(assignment.name, second.source, s, MUTANT_SECONDS)
                for s in (seed, seed + 1)
            ):
                left += 1
                print(
                    f"{first.id} ({first.description})\n    with {second.id} ({second.description})",
                    flush=True,
                )
        grader.close()
        survivors += left
        print(f"{assignment.name:24} {tried - left} of {tried} pairs fail a test", flush=True)
    return 1 if survivors else 0


def meaning(text: str) -> str:
    """Return the code without its layout: a second change can undo the first."""
    return ast.dump(ast.parse(text))


def option(name: str, default: int) -> int:
    return next(
        (int(each.partition("=")[2]) for each in sys.argv if each.startswith(f"--{name}=")), default
    )


if __name__ == "__main__":
    sys.exit(
        main(
            [name for name in sys.argv[1:] if not name.startswith("-")],
            option("pairs", 100),
            option("seed", 1),
        )
    )
