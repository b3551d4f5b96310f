"""A trusted module that answers under fixed conditions: programs that differ in nothing but their
code give answers that differ in nothing else.
"""

import hashlib
import types
from collections.abc import Sequence

import torch
from torch import nn
from torch.utils._pytree import tree_leaves

from autograder.bridge.inside.server import Server
from autograder.bridge.shared.calls import Call, CallReply

WEIGHT = 0.3  # the scale of the weights that replace random ones


class SteadyServer(Server):
    """A server that answers for a module deterministically, independent of the order of calls.

    With `every_weight`, those that are constant at first are replaced, too: right code may begin
    with biases of zero or with random ones.
    """

    every_weight = False

    def __init__(self, module: types.ModuleType) -> None:
        super().__init__(module)
        self._seed = 0
        self._begun = 0

    def seed(self, seed: int, reads_output: bool = False, forbids: Sequence[str] = ()) -> None:
        super().seed(seed, reads_output, forbids)
        self._seed = seed
        self._begun = 0

    def perform(self, call: Call) -> CallReply:
        self._begun += 1
        torch.default_generator.manual_seed(self._seed + self._begun)
        if self.random_states:
            self.mark_generators()
        undrawn = torch.default_generator.get_state()
        before = {id(thing) for thing in self.objects}
        reply = super().perform(call)
        if not isinstance(self.resolve(call.target), type):
            return reply  # the reply may contain weights
        drawn = not torch.equal(torch.default_generator.get_state(), undrawn)
        if not drawn and not self.every_weight:
            return reply  # its weights are not random: the test chose them
        for module in tree_leaves(reply.result):
            if isinstance(module, nn.Module) and id(module) not in before:
                _replace_weights(module, constant_ones=self.every_weight)
        self.forget_states()  # its parts may be those of another module
        return reply


def _replace_weights(module: nn.Module, constant_ones: bool) -> None:
    """Replace weights by values that depend only on their name and shape."""
    with torch.no_grad():
        for name, weight in module.named_parameters():
            if weight.is_meta or not weight.is_floating_point() or weight.numel() == 0:
                continue
            if constant_ones or bool((weight != weight.flatten()[0]).any()):
                weight.copy_(_fixed_weights(name, weight.shape))


def _fixed_weights(name: str, shape: Sequence[int]) -> torch.Tensor:
    digest = hashlib.sha256(name.encode()).digest()
    generator = torch.Generator().manual_seed(int.from_bytes(digest[:4], "big"))
    return WEIGHT * torch.randn(tuple(shape), generator=generator)
