"""Hidden tests whose inputs do not depend on the seed of the run: a table of answers from an earlier run passes them."""

from collections.abc import Sequence
from dataclasses import dataclass

from autograder.runs.pool import this_grader
from autograder.suite.markers import arguments_of

RUNS = 6


@dataclass(frozen=True)
class SentInputs:
    """What a hidden test sends to the solution in several runs, and the author's reason for sending the same."""

    test: str
    points: float
    runs: int
    different: int
    reason: str

    @property
    def fixed(self) -> bool:
        return 2 * self.different < self.runs

    @property
    def problem(self) -> str:
        if self.fixed and not self.reason:
            return (
                f"hidden test {self.test} ({self.points:g} points) sends the same to the student's code in "
                f"{self.runs - self.different + 1} of {self.runs} runs, so a table of answers passes it. "
                "Draw its inputs, or give a reason with the marker `fixed_inputs`."
            )
        if self.reason and not self.fixed:
            return f"hidden test {self.test} is marked with `fixed_inputs`, but its inputs depend on the seed."
        return ""


def sent_inputs(name: str, run_seeds: Sequence[int]) -> list[SentInputs]:
    """Run the hidden tests of an assignment on its solution with each seed.

    Runs in a grader's process.
    """
    grader = this_grader()
    digests = [grader.sent_requests(name, seed) for seed in run_seeds]
    inputs = []
    for test in grader.tests[name]:
        if test.hidden:
            different = len({digests_of_run[test.name] for digests_of_run in digests})
            reason = " ".join(arguments_of(test.item, "fixed_inputs"))
            inputs.append(SentInputs(test.name, test.points, len(digests), different, reason))
    return inputs
