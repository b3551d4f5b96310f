"""Prove the questions for conversations about the solution and every alternative, and print a row for each assignment.

    python scripts/questions_for_conversations.py 03_masked_heads 12_rotary_positions

Without names, all assignments with a questions.yml. The exit code is 1 if a question has no right option or several, if
a sheet lacks a kind of question, or if more than 40 % of the pairs of right answers have the same questions.
"""

import sys

from rich.console import Console
from rich.table import Table

from autograder.course.config import Assignment, Course
from autograder.course.reading import load_course
from autograder.extras.sheets.proof import Proof, prove_questions
from autograder.extras.sheets.questions import questions_file
from autograder.runs.pool import Plan, graders

SEEDS = (11, 12)
MOST_EQUAL = 0.4


def proof_of(course: Course, assignment: Assignment) -> Proof:
    """Ask all questions of one assignment in a grader's process."""
    pool = graders(Plan(course, SEEDS[0], jobs=1, names=(assignment.name,)))
    try:
        return pool.submit(prove_questions, assignment.name, SEEDS).result()
    finally:
        pool.shutdown(wait=True)


def main(names: list[str]) -> int:
    course = load_course()
    chosen = [a for a in course.select(names or None) if questions_file(course, a).is_file()]
    table = Table(
        "assignment",
        "right answers",
        "with all three kinds",
        "what-ifs",
        "not one right",
        "equal sheets",
    )
    is_right = True
    problems: list[str] = []
    for assignment in chosen:
        proof = proof_of(course, assignment)
        share = proof.equal / max(1, proof.pairs)
        table.add_row(
            assignment.name,
            str(proof.texts),
            str(proof.complete),
            str(proof.asked),
            str(proof.unclear),
            f"{share:.0%}",
        )
        is_whole = proof.complete == proof.texts and not proof.unclear
        is_right = is_right and is_whole and share <= MOST_EQUAL and not proof.problems
        problems += proof.problems
    console = Console()
    console.print(table)
    for problem in problems:
        console.print(problem, markup=False)
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
