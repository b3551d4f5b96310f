"""Harder, and not graded: fine-tuning with few numbers (about 40 minutes, ●●○).

You have trained everything, or only the head. Most large models are fine-tuned in a third way: **LoRA** (Edward Hu and
others, *Low-Rank Adaptation of Large Language Models*, 2021). The weight W of a linear layer, (out, in), stays frozen.
Beside it, two thin matrices are trained, A (r, in) and B (out, r), and what they say is added:

    output = W x + bias + alpha/r · B A x

The *rank* r is small, 8 for example. Before training, B is zero, so the model begins as what it was; A is random,
because two zeros would never leave each other. After training, W + alpha/r · B A is one ordinary matrix again, and the
model is as fast as before. For the next task, keep the same W and train another A and B: a few megabytes a task.

**By hand.** A layer of BERT with 768 inputs and outputs has 768 · 768 + 768 = 590,592 numbers. With r = 8, A and B have
8 · 768 + 768 · 8 = 12,288, one in 48. And a product: for A = (1 2), B = (3), r = 1, alpha = 2 and x = (10, 100), A x is
210, B A x is 630, and 1,260 is added to the output.

Write `LoRA` and `with_lora`, and run `python harder.py`.
Each check stops after a minute of work. Then put it into the encoder of this assignment: is it nearer to
the frozen run or to the one that trains everything?
"""

import torch
from torch import Tensor, nn

from autograder import checks


class LoRA(nn.Module):
    """A linear layer (frozen) and the two thin matrices beside it: (..., in) -> (..., out).

    `linear` is the layer passed in, `A` (rank, in) and `B` (out, rank) are parameters in its number type; `scale` is
    alpha / rank.
    """

    def __init__(self, linear: nn.Linear, rank: int, alpha: float) -> None:
        super().__init__()
        # TODO: the attributes above; linear is frozen, A random, B zero
        raise NotImplementedError("LoRA is not written yet.")

    def forward(self, x: Tensor) -> Tensor:
        # TODO: the layer's output, and what A and B add; never build the matrix B A            # (..., out)
        raise NotImplementedError("LoRA.forward is not written yet.")

    def merged(self) -> nn.Linear:
        """A new, ordinary linear layer that gives the same output; `linear` stays as it is."""
        # TODO: a copy of the layer, and B A added to its weight
        raise NotImplementedError("LoRA.merged is not written yet.")


def with_lora(model: nn.Module, rank: int, alpha: float) -> int:
    """Freeze a model, and put a LoRA in the place of each nn.Linear in it, at any depth, in place.

    Returns how many numbers are trained now. The model itself is no nn.Linear.
    """
    # TODO: freeze everything; replace the linear layers among the children of each module; count
    raise NotImplementedError("with_lora is not written yet.")


def some_layer(bias: bool = True) -> tuple[nn.Linear, Tensor]:
    torch.manual_seed(4)
    return nn.Linear(6, 5, bias=bias).double(), torch.randn(2, 3, 6, dtype=torch.float64)


def set_numbers(layer: LoRA) -> None:
    """As after training: neither A nor B is zero."""
    dice = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for number in (layer.A, layer.B):
            number.copy_(torch.randn(number.shape, generator=dice, dtype=number.dtype))


def by_hand() -> None:
    """For A = (1 2), B = (3), rank 1 and alpha 2, the input (10, 100) adds 1,260; rank 4 and alpha 2 scale by 1/2."""
    layer = LoRA(nn.Linear(2, 1), 1, 2.0)
    checks.parameters(layer, {"A": (1, 2), "B": (1, 1), "linear.weight": (1, 2), "linear.bias": (1,)}, "the layer")
    with torch.no_grad():
        layer.linear.weight.zero_()
        layer.linear.bias.zero_()
        layer.A.copy_(torch.tensor([[1.0, 2.0]]))
        layer.B.fill_(3.0)
    checks.close(layer(torch.tensor([10.0, 100.0])).detach(), torch.tensor([1260.0]), "The output")
    checks.equal(float(LoRA(nn.Linear(2, 1), 4, 2.0).scale), 0.5, "The scale of rank 4 and alpha 2")


def begins_as_it_was() -> None:
    """Before training, the output is that of the layer alone, and A is not zero."""
    for bias in (True, False):
        linear, x = some_layer(bias)
        before = linear(x).detach()
        layer = LoRA(linear, 3, 8.0)
        checks.close(layer(x).detach(), before, "The output before training")
        checks.true(bool(layer.A.any()), "A is zero; then the gradient of B is zero, too.")


def who_is_trained() -> None:
    """Only A and B are trained, and the first gradient reaches B."""
    linear, x = some_layer()
    layer = LoRA(linear, 3, 8.0)
    trained = sorted(name for name, parameter in layer.named_parameters() if parameter.requires_grad)
    checks.equal(trained, ["A", "B"], "The parameters that are trained")
    layer(x).square().sum().backward()
    checks.true(layer.B.grad is not None and bool(layer.B.grad.any()), "No gradient reaches B.")


def merged_again() -> None:
    """The merged layer is an ordinary one with the same output, and the frozen layer stays as it was."""
    for bias in (True, False):
        linear, x = some_layer(bias)
        before = linear.weight.detach().clone()
        layer = LoRA(linear, 3, 7.0)
        set_numbers(layer)
        one = layer.merged()
        checks.true(type(one) is nn.Linear, f"merged() returns {type(one).__name__}; an nn.Linear was expected.")
        checks.close(one(x).detach(), layer(x).detach(), "The output of the merged layer")
        checks.close(linear.weight.detach(), before, "The weight of the frozen layer")


def a_whole_model() -> None:
    """In a model of two linear layers and a norm, at any depth, both become LoRAs; the output stays as it was."""
    torch.manual_seed(4)
    model = nn.Sequential(nn.Embedding(9, 6), nn.Sequential(nn.LayerNorm(6), nn.Linear(6, 8)), nn.GELU(), nn.Linear(8, 3))
    ids = torch.tensor([[1, 2, 3]])
    before = model(ids).detach()
    count = with_lora(model, 2, 4.0)
    checks.equal(count, 2 * (6 + 8) + 2 * (8 + 3), "with_lora(model, 2, 4.0)")
    checks.close(model(ids).detach(), before, "The output of the model")
    trained = sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)
    checks.equal(trained, count, "The numbers that are trained")


def it_learns() -> None:
    """A change of rank 2 is learned by a LoRA of rank 2, and the frozen weight takes no part in it."""
    linear, _ = some_layer()
    dice = torch.Generator().manual_seed(6)
    u, v = (torch.randn(n, 2, generator=dice, dtype=torch.float64) for n in (5, 6))
    target = (linear.weight + u @ v.T).detach()
    layer, x = LoRA(linear, 2, 2.0), torch.eye(6, dtype=torch.float64)
    optimiser = torch.optim.Adam([layer.A, layer.B], lr=0.05)
    for _ in range(600):
        loss = (layer(x) - linear.bias - target.T).square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    checks.true(loss.item() < 1e-4, f"After 600 steps the mean square of the differences is still {loss.item():.3g}.")


CHECKS = [by_hand, begins_as_it_was, who_is_trained, merged_again, a_whole_model, it_learns]


if __name__ == "__main__":
    from autograder.notebook import run_checks

    run_checks(CHECKS)
