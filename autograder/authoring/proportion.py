"""What a known mistake may cost, by its weight, and by what an idea must fail."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from autograder.checks.sentences import is_about_form
from autograder.course.mistakes import Weight

SLIP_LIMIT = 0.2  # of the assignment's points
FORM_LIMIT = 1 / 3  # of the points of the part that it is about
IDEA_LIMIT = 1 / 3
CENTRAL_LIMIT = 0.8


@dataclass(frozen=True)
class Cost:
    """What a mistake costs: points of the assignment, and of the part that it is about; and its failures' sentences."""

    lost: float
    of_all: float
    lost_in_part: float
    of_part: float
    part: str
    failures: Sequence[str]


def out_of_proportion(name: str, weight: Weight | None, cost: Cost) -> Iterable[str]:
    """Yield a sentence for each rule that a mistake of this weight breaks."""
    start = f"mistake {name} costs {cost.lost:g} of {cost.of_all:g} points"
    in_part = f"mistake {name} costs {cost.lost_in_part:g} of the {cost.of_part:g} points of its part `{cost.part}`"
    if weight == "slip" and cost.lost > SLIP_LIMIT * cost.of_all:
        yield f"{start}; a slip may cost {SLIP_LIMIT:.0%}."
    if weight == "form" and cost.lost > FORM_LIMIT * cost.of_part + 1e-9:
        yield (
            f"{start}; a slip of form may cost a third of the {cost.of_part:g} points of its part `{cost.part}`."
        )
    if weight == "idea" and cost.lost < IDEA_LIMIT * cost.of_part - 1e-9:
        yield f"{start}; an idea costs at least a third of the {cost.of_part:g} points of its part `{cost.part}`."
    if weight == "central" and cost.lost_in_part < CENTRAL_LIMIT * cost.of_part - 1e-9:
        yield f"{in_part}; the central idea costs at least {CENTRAL_LIMIT:.0%}."
    if weight in ("idea", "central") and cost.failures and all(map(is_about_form, cost.failures)):
        yield (
            f"mistake {name} is an idea, but fails by shapes and types alone: {cost.failures[0]} "
            "Is the edit what it says? If the form is the idea, say so: `exception`."
        )
