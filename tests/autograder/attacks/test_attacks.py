"""No attack raises a score, reads a secret, affects another submission or leaves anything behind.

An attack is here if it meets more than one wall. What a single wall must stop is tried at that wall: `test_walls`,
`test_seccomp`, `test_wire`, `test_worker`, `test_hostile_archives`, `test_odd_files`.

All attacks meet the strongest tier and every third one meets the others; with `ATTACKS=all` in the environment all
attacks meet all tiers. `make test` takes a sample: of each class, the first attack; in the other tiers, the first
attacks on files, network and processes.
"""

from __future__ import annotations

import ast
import os
import re
import resource
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import ModuleType

import pytest

from autograder.bridge.inside.server import Server
from autograder.walls.inside.jail import SAFE_TIERS
from tests.autograder.attacks import (
    compile_time,
    exhaustion,
    files_and_archives,
    following,
    forge_results,
    gaming,
    imports,
    monkeypatching,
    network,
    notebooks,
    processes,
    proxy_confusion,
    read_secrets,
    remembering,
    type_confusion,
    wire_frames,
)
from tests.autograder.attacks.field import HEADS, TINY, Attack, Field, open_field
from tests.autograder.sampling import sampled
from tests.autograder.test_sandbox import descendants, living
from tests.autograder.waiting import wait_until

CLASSES = (
    read_secrets, forge_results, monkeypatching, type_confusion, wire_frames, exhaustion, processes,
    files_and_archives, notebooks, imports, network, gaming, compile_time, proxy_confusion,
    remembering, following,
)  # fmt: skip
ATTACKS = [
    (module.__name__.rpartition(".")[2], attack) for module in CLASSES for attack in module.ATTACKS
]
MEGABYTES_MORE = 300  # of memory in the grader, whatever a worker sends
FIRST = {id(module.ATTACKS[0]) for module in CLASSES}
WALLS = {
    id(module.ATTACKS[0]) for module in (read_secrets, network, processes)
}  # which tiers build differently
EVERY_ATTACK = os.environ.get("ATTACKS") == "all"
WEAKER = [
    each for n, each in enumerate(ATTACKS) if EVERY_ATTACK or n % 3 == 0 or id(each[1]) in FIRST
]
STRONGEST, *OTHERS = SAFE_TIERS
CASES = [(STRONGEST, *each) for each in ATTACKS] + [
    (tier, *each) for tier in OTHERS for each in WEAKER
]


def in_sample(case: tuple[str, str, Attack]) -> bool:
    tier, _, attack = case
    return id(attack) in (FIRST if tier == STRONGEST else WALLS)


@pytest.fixture(scope="module")
def field_of(tiers, tmp_path_factory) -> Iterator[Callable[[str], Field]]:
    """Return the environment of a tier, created on first use; skip if the tier does not work."""
    before = descendants(os.getpid())
    fields: dict[str, Field] = {}
    with ExitStack() as stack:

        def of(tier: str) -> Field:
            if not tiers[tier].works:
                pytest.skip(tiers[tier].reason)
            if tier not in fields:
                fields[tier] = stack.enter_context(open_field(tier, tmp_path_factory.mktemp(tier)))
            return fields[tier]

        yield of
        own = descendants(os.getpid()) - before
    assert wait_until(lambda: not living(own)), "processes outlived the sandbox"


def peak_megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


@pytest.mark.parametrize(
    ("tier", "kind", "attack"),
    sampled(CASES, in_sample, lambda case: f"{case[0]}-{case[1]}-{case[2].name}"),
)
def test_attack(field_of, tier: str, kind: str, attack: Attack, tmp_path: Path) -> None:
    field = field_of(tier)
    idle, memory = len(living(descendants(os.getpid()))), peak_megabytes()
    outcome = field.attack(attack, tmp_path)

    assert outcome.grade.score <= field.honest[attack.course] + attack.gains
    assert attack.proves in outcome.output, "the attack never took place"
    assert "REACHED" not in outcome.output
    assert field.canary not in outcome.output and field.canary not in outcome.grade.to_json()
    assert peak_megabytes() - memory < MEGABYTES_MORE
    right = field.grade(attack.course, field.right[attack.course], "ada")
    assert right.score == right.max_score
    assert wait_until(lambda: len(living(descendants(os.getpid()))) <= idle), "a process was left"
    assert field.left_behind() == []


def test_canaries_are_planted_and_honest_scores_are_as_expected(field_of, tiers, tmp_path) -> None:
    """The canaries are in the attacked places, wrong answers lose points, and correct answers keep them."""
    field = field_of(next(tier for tier, report in tiers.items() if report.works))
    for name, points in ((TINY, 10), (HEADS, 15)):
        assert 0 < field.honest[name] < points
        assert field.grade(name, field.right[name]).score == points
    assignment = field.course.assignment(HEADS)
    hidden = field.course.hidden_test_file(assignment).read_text()
    solution = field.course.solution_file(assignment).read_text()
    assert all(field.canary in text for text in (hidden, solution))
    assert "CANARY-" in os.environ["GRADERS_TOKEN"]  # of the field that was opened last
    field.attack(Attack("says", "", f"print('REACHED {field.canary}')"), tmp_path / "nothing")
    assert any(f"REACHED {field.canary}" in text for text in field.sandbox.outputs)


INVENTED = """
class Invented(torch.autograd.Function):
    @staticmethod
    def forward(ctx, output, *sources):
        ctx.save_for_backward(*sources)
        return output.detach().clone()
    @staticmethod
    def backward(ctx, gradient):
        return None, *(torch.full_like(source, 0.5) for source in ctx.saved_tensors)
def cut_off(output, *sources):
    return {what}
"""
CUT_ATTENTION = """
right_attention = attention
def attention(q, k, v, mask=None):
    output, weights = right_attention(q, k, v, mask)
    return cut_off(output, q, k, v), weights.detach()
"""
CUT_HEAD = """
class Head(Head):
    def forward(self, x):
        return cut_off(super().forward(x), x, self.key.weight, self.query.weight, self.value.weight)
"""


@pytest.mark.parametrize(
    "cut",
    [
        pytest.param(CUT_ATTENTION, id="attention"),
        pytest.param(CUT_HEAD, id="head", marks=pytest.mark.slow),
    ],
)
def test_invented_gradients_do_not_raise_the_score(field_of, tiers, cut: str) -> None:
    """An output that is cut off from its inputs earns no more when the code claims gradients for them."""
    field = field_of(next(tier for tier, report in tiers.items() if report.works))
    honest = field.grade(HEADS, field.right[HEADS] + INVENTED.format(what="output.detach()") + cut)
    attack = field.grade(
        HEADS, field.right[HEADS] + INVENTED.format(what="Invented.apply(output, *sources)") + cut
    )
    assert honest.score < honest.max_score
    gained = [(a.name, a.score) for a, b in zip(attack.tests, honest.tests) if a.score > b.score]
    assert gained == []


@pytest.mark.parametrize(
    "kind", [forge_results.TAKEOVER, remembering.TAKEOVER], ids=["forge_results", "remembering"]
)
def test_attacks_that_take_over_a_worker_answer_loading_as_the_engine_does(kind: str) -> None:
    """Otherwise the grader would refuse the first answer, and the attack would reach nothing."""
    honest = Server(ModuleType("empty")).load("", "empty.py")
    (claimed,) = re.findall(r'"ok": (\{"errors".*?\})\}', kind)
    assert ast.literal_eval(claimed) == honest
