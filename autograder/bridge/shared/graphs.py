"""Autograd graphs that one side of the sandbox stores for the other's backward pass; no second derivatives."""

from collections.abc import Sequence

import torch
from torch import Tensor

MAX_GRAPHS = 256  # per test


class Graphs(dict[int, tuple[list[Tensor], list[Tensor]]]):
    """Results and the inputs that they depend on, by number. The oldest entries are dropped."""

    def keep(self, number: int, outputs: list[Tensor], sources: list[Tensor]) -> None:
        self[number] = (outputs, sources)
        if len(self) > MAX_GRAPHS:
            self.pop(next(iter(self)))

    def pull_back(self, number: int, gradients: Sequence[Tensor | None]) -> list[Tensor | None]:
        """Return the vector-Jacobian product of an earlier call: a gradient or None for each source."""
        if number not in self:
            raise RuntimeError("too many calls lie between a forward and its backward pass")
        outputs, sources = self[number]
        pairs = [(o, g) for o, g in zip(outputs, gradients) if g is not None and o.requires_grad]
        active = [source for source in sources if source.requires_grad]
        if not active:
            return [None] * len(sources)
        options = {"retain_graph": True, "allow_unused": True}
        results = iter(
            torch.autograd.grad([o for o, _ in pairs], active, [g for _, g in pairs], **options)
        )
        return [next(results) if source.requires_grad else None for source in sources]
