"""Harder, and not graded: layer norm, backwards (about 45 minutes, ●●●).

`backward()` knows the gradient of your layer norm because PyTorch follows each of its small steps. The layers that run
on graphics cards cannot afford that: somebody derived the gradient on paper and wrote it down in one formula. Derive it
yourself. Let x̂ be the normed token, (x - mean) / σ with σ = √(variance + eps), and y = γ · x̂ + β. What comes from above
is u = ∂loss/∂y, as large as y. Then

    ∂loss/∂β = the sum of u over all tokens
    ∂loss/∂γ = the sum of u · x̂ over all tokens
    ∂loss/∂x = (g - mean(g) - x̂ · mean(g · x̂)) / σ        with g = u · γ, both means over the C numbers of a token

The two subtracted terms are there because x moves the mean and σ as well. They also say what a layer norm cannot feel:
a token that is shifted as a whole or stretched as a whole has the same y (almost, because of eps), so the gradient has
no part in these two directions. And note the division by σ: a stream that has grown ten times as large gets a tenth of
the gradient. This is why the gradients of post-norm and pre-norm differ so much at the beginning of training (Xiong and
others, *On Layer Normalization in the Transformer Architecture*, 2020).

**By hand.** The token is (2, 2, 6, 6), so the mean is 4, σ is 2 without eps, and x̂ is (-1, -1, 1, 1). Let γ be ones and
u be (1, 0, 0, 0). Then mean(g) = 1/4, mean(g · x̂) = -1/4, and the gradient is (1 - 1/4 - 1/4, -1/4 - 1/4, 0, 0) / 2 =
(0.25, -0.25, 0, 0).

Write `layer_norm_backward` without autograd, and run `python harder.py`.
Each check stops after a minute of work.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from autograder import checks


def layer_norm_backward(u: Tensor, x: Tensor, gamma: Tensor, eps: float = 1e-5) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of layer norm with respect to x, gamma and beta: (..., C), (C,) and (C,).

    u and x are (..., C) with any leading shape, u the gradient of the loss with respect to the output. The variance is
    biased, eps stands inside the root.
    """
    # TODO: the mean, σ and x̂ of each token                                       # (..., 1), (..., 1), (..., C)
    # TODO: the three formulas
    raise NotImplementedError("layer_norm_backward is not written yet.")


NAMES = ("the gradient of x", "the gradient of gamma", "the gradient of beta")


def some_token(*leading: int) -> tuple[Tensor, Tensor, Tensor]:
    dice = torch.Generator().manual_seed(5)
    u, x = (torch.randn(*leading, 7, generator=dice, dtype=torch.float64) for _ in range(2))
    return u, 3 * x + 1, torch.rand(7, generator=dice, dtype=torch.float64) + 0.5


def by_hand() -> None:
    """The token (2, 2, 6, 6) with the gradient (1, 0, 0, 0) from above gets (0.25, -0.25, 0, 0)."""
    u, x, one = (torch.tensor(row, dtype=torch.float64) for row in ([1.0, 0, 0, 0], [2.0, 2, 6, 6], [1.0] * 4))
    got = checks.unpack(layer_norm_backward(u, x, one, eps=0.0), NAMES)
    expected = ([0.25, -0.25, 0, 0], [-1.0, 0, 0, 0], [1.0, 0, 0, 0])
    for name, ours, right in zip(NAMES, got, expected):
        checks.close(ours, torch.tensor(right, dtype=torch.float64), name)


def equal_to_autograd() -> None:
    """For one token, a text, and a batch of texts, all three are what PyTorch finds by following each step."""
    for leading in ((), (5,), (3, 5)):
        u, x, gamma = some_token(*leading)
        inputs = [x.requires_grad_(), gamma.requires_grad_(), torch.zeros(7, dtype=torch.float64, requires_grad=True)]
        expected = torch.autograd.grad(F.layer_norm(x, (7,), *inputs[1:], eps=0.1), inputs, u)
        with torch.no_grad():
            got = checks.unpack(layer_norm_backward(u, x.detach(), gamma.detach(), eps=0.1), NAMES)
        for name, ours, right in zip(NAMES, got, expected):
            checks.close(ours, right, f"{name} for tokens of shape {(*leading, 7)}")


def two_blind_directions() -> None:
    """Without eps, the gradient of x has no part along (1, …, 1), and none along the token itself."""
    u, x, gamma = some_token(5)
    gradient = layer_norm_backward(u, x, gamma, eps=0.0)[0]
    nothing = torch.zeros(5, dtype=torch.float64)
    checks.close(gradient.sum(dim=-1), nothing, "Its part along (1, …, 1)", atol=1e-9)
    checks.close((gradient * x).sum(dim=-1), nothing, "Its part along the token", atol=1e-9)


def larger_stream() -> None:
    """A stream ten times as large gets a tenth of the gradient."""
    u, x, gamma = some_token(5)
    small, large = (layer_norm_backward(u, scale * x, gamma, eps=0.0)[0] for scale in (1, 10))
    checks.close(10 * large, small, "Ten times the gradient of the larger stream")


CHECKS = [by_hand, equal_to_autograd, two_blind_directions, larger_stream]


if __name__ == "__main__":
    from autograder.notebook import run_checks

    run_checks(CHECKS)
