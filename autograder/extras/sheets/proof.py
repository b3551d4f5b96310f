"""Prove the questions of an assignment: every what-if has one right option, and all options differ.

Each is asked about the solution and about every alternative, on several random inputs. An edit need
not fit an alternative, but each topic must have a what-if that does.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from autograder.course.mistakes_file import load_alternatives, mistakes_by_id
from autograder.extras.sheets.own_code import OwnCode
from autograder.extras.sheets.questions import Topic, load_question_file
from autograder.extras.sheets.what_if import OPTIONS, AskedWhatIf, Trials, first_that_fits
from autograder.records import SourceFile
from autograder.runs.pool import this_grader

SOLUTION = "the solution"


@dataclass(frozen=True)
class Proof:
    """What is wrong with the questions of an assignment, and how many were asked.

    `texts` are the solution and the alternatives; `complete` are those whose sheet has a question of
    each kind. `unclear` counts what-ifs with no right option or several, `equal` the pairs of texts
    with the same questions.
    """

    problems: tuple[str, ...] = ()
    texts: int = 0
    complete: int = 0
    asked: int = 0
    unclear: int = 0
    equal: int = 0
    pairs: int = 0

    def as_record(self) -> dict[str, int]:
        return {
            "texts": self.texts,
            "complete": self.complete,
            "asked": self.asked,
            "unclear": self.unclear,
            "equal_sheets": self.equal,
            "pairs": self.pairs,
        }


def prove_questions(name: str, seeds: Sequence[int]) -> Proof:
    """Try the questions of an assignment; one without questions has nothing to prove.

    Runs in a grader's process.
    """
    grader = this_grader()
    assignment = grader.assignment(name)
    record = load_question_file(grader.course, assignment)
    if record is None:
        return Proof()
    solution = grader.course.read_solution(assignment)
    mistakes = mistakes_by_id(grader.course, assignment)
    answers = {SOLUTION: solution}
    for label, text in load_alternatives(grader.course, assignment):
        answers[f"the alternative {label}"] = text
    problems: list[str] = []
    sheets = []
    asked = 0
    unclear = 0
    for number, (label, text) in enumerate(answers.items()):
        code = OwnCode.of(SourceFile(f"{assignment.stem}.py", text))
        with Trials(grader, assignment, code, solution, mistakes) as trials:
            for topic in record.topics:
                proof = _TopicProof(topic, trials, code, label)
                problems += proof.problems(seeds)
                asked += proof.asked
                unclear += proof.unclear
            topic = record.topics[(seeds[0] + number) % len(record.topics)]
            sheets.append(
                (topic.topic, _signature(first_that_fits(trials, topic.what_if, seeds[0] + number)))
            )
    pairs = list(itertools.combinations(sheets, 2))
    return Proof(
        problems=tuple(problems),
        texts=len(sheets),
        complete=sum(bool(signature) for _, signature in sheets),  # each topic has a what and a why
        asked=asked,
        unclear=unclear,
        equal=sum(first == second for first, second in pairs),
        pairs=len(pairs),
    )


class _TopicProof:
    """The proof of one topic for one right answer."""

    def __init__(self, topic: Topic, trials: Trials, code: OwnCode, label: str) -> None:
        self._topic = topic
        self._trials = trials
        self._code = code
        self._label = label
        self.asked = 0
        self.unclear = 0

    def problems(self, seeds: Sequence[int]) -> list[str]:
        """Return a sentence for each what-if that cannot be asked although it fits."""
        place = f"questions, topic `{self._topic.topic}`, for {self._label}"
        problems = []
        fitting = 0
        for number, what_if in enumerate(self._topic.what_if, start=1):
            if what_if.edits and self._code.changed(what_if.edits) is None:
                if self._label == SOLUTION:
                    problems.append(f"{place}: no edit of what-if {number} fits.")
                continue
            fitting += 1
            for seed in seeds:
                asked = self._trials.ask(what_if, seed)
                self.asked += 1
                if asked is None:
                    why = self._trials.reasons[-1] if self._trials.reasons else "options look alike"
                    problems.append(
                        f"{place}: what-if {number} has no {OPTIONS} options that differ ({why})."
                    )
                    break
                right = sum(option.table.looks_like(asked.right.table) for option in asked.options)
                if right != 1:
                    self.unclear += 1
                    problems.append(f"{place}: what-if {number} has {right} right options.")
                    break
        if not fitting:
            problems.append(f"{place}: no what-if fits; add one with `given`.")
        if self._label == SOLUTION and not all(map(self._code.has, self._topic.functions)):
            problems.append(f"{place}: a function whose lines are shown is missing.")
        return problems


def _signature(asked: AskedWhatIf | None) -> tuple[str, ...]:
    """Return what is the same in equal questions: the question, and the line that it is about."""
    if asked is None:
        return ()
    change = (asked.change.line.text.strip(), asked.change.new) if asked.change else ()
    return (asked.ask, *change)
