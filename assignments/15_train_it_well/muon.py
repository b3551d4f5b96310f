"""Harder, and not graded: Muon (about 45 minutes, ●●●).

AdamW treats a matrix as a bag of numbers. *Muon* (Keller Jordan and others, 2024) treats it as a matrix. Write the
averaged gradient G as U · diag(S) · Vᵀ, its singular value decomposition. A few directions have large singular values
and get almost the whole step. Muon sets all of them to about 1: the step is U Vᵀ, in which rare directions count as much
as frequent ones. It set records for training a small GPT-2, and large models have been trained with it since.

A singular value decomposition would be far too slow. But a matrix can be made nearly orthogonal by products alone, with
the **Newton–Schulz iteration**. Divide G by its Frobenius norm, so that no singular value exceeds 1. Then, five times,

    X ← a X + b (X Xᵀ) X + c (X Xᵀ)² X        with a = 3.4445, b = -4.7750, c = 2.0315

Each singular value s becomes a s + b s³ + c s⁵ (why?), and U and V stay. These numbers are chosen to push small values up
quickly: in the end all lie between about 0.7 and 1.2, and that is good enough. If G has more rows than columns, work with
its transpose: X Xᵀ is then the smaller of the two products.

**By hand.** A matrix of one number, G = 5, is divided by its norm: X = 1. One iteration gives 3.4445 - 4.7750 + 2.0315 =
0.701. So it makes no difference how large a gradient is, only where it points.

**One step** for a weight W (out, in) with the gradient G:

    M ← momentum · M + G                                M begins at 0
    O = the orthogonalised G + momentum · M             a look ahead, called Nesterov momentum
    W ← W - lr · √max(1, out/in) · O

Muon is for the matrices within the blocks. Embeddings, the last layer, norms and biases stay with AdamW.

Write `orthogonalised` and `Muon`, and run `python muon.py`.
Each check stops after a minute of work. Then give the matrices of your model's blocks to it.
"""

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from autograder import checks

A, B, C = 3.4445, -4.7750, 2.0315


def orthogonalised(G: Tensor, iterations: int = 5) -> Tensor:
    """Nearly U Vᵀ of a matrix G (n, m), by Newton–Schulz: (n, m). A matrix of zeros stays zero. G keeps its values."""
    # TODO: the smaller side first; the norm                                      # (min, max)
    # TODO: the iterations, each with products of matrices alone
    raise NotImplementedError("orthogonalised is not written yet.")


class Muon:
    """The optimiser for matrices: `step()`, and `lr`, which may be set between steps.

    parameters: any iterable of matrices (n, m). One without a gradient is passed over.
    """

    def __init__(self, parameters: Iterable[nn.Parameter], lr: float = 0.02, momentum: float = 0.95) -> None:
        # TODO: remember what is needed; an M for each matrix
        raise NotImplementedError("Muon is not written yet.")

    def step(self) -> None:
        # TODO: the three lines above for each matrix that has a gradient, without autograd
        raise NotImplementedError("Muon.step is not written yet.")


def some_matrix(n: int, m: int, seed: int = 0) -> Tensor:
    return torch.randn(n, m, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def one_number() -> None:
    """A matrix of the number 5 becomes 0.701 after one iteration, and so does one of 0.05."""
    for number in (5.0, 0.05):
        G = torch.tensor([[number]], dtype=torch.float64)
        checks.close(orthogonalised(G, 1), torch.tensor([[0.701]], dtype=torch.float64), f"[[{number}]], orthogonalised,")


def on_the_diagonal() -> None:
    """The singular values 0.6 and 0.8 each go through the polynomial, once and twice."""
    values = torch.tensor([0.6, 0.8], dtype=torch.float64)
    for iterations in (1, 2):
        values = A * values + B * values**3 + C * values**5
        got = orthogonalised(torch.diag(torch.tensor([0.6, 0.8], dtype=torch.float64)), iterations)
        checks.close(got, torch.diag(values), f"The matrix after {iterations} iterations")


def nearly_orthogonal() -> None:
    """Square, wide or tall, after five iterations all singular values lie between 0.6 and 1.3."""
    for n, m in ((12, 12), (5, 40), (40, 5)):
        spread = torch.logspace(-1, 1, min(n, m), dtype=torch.float64)
        u, _, v = torch.linalg.svd(some_matrix(n, m), full_matrices=False)
        got = orthogonalised(u @ torch.diag(spread) @ v)
        checks.shape(got, (n, m), "The matrix")
        sizes = torch.linalg.svdvals(got).tolist()
        checks.between(min(sizes), 0.6, 1.0, f"The smallest singular value of a matrix of {n} × {m}")
        checks.between(max(sizes), 0.7, 1.3, f"The largest singular value of a matrix of {n} × {m}")
        along = u.T @ got @ v.T
        checks.close(along - torch.diag(along.diag()), torch.zeros_like(along), "What lies in other directions")


def either_side() -> None:
    """The transpose of a matrix gives the transposed result, and a matrix of zeros stays zero."""
    G = some_matrix(7, 3)
    checks.close(orthogonalised(G.T), orthogonalised(G).T, "The transpose, orthogonalised,")
    checks.close(orthogonalised(torch.zeros(3, 4)), torch.zeros(3, 4), "A matrix of zeros, orthogonalised,")


def two_steps() -> None:
    """Two steps with the momentum 0.9 are the three lines, one after the other, and the third step has another lr."""
    start, gradients = some_matrix(6, 3, 1), [some_matrix(6, 3, seed) for seed in (2, 3, 4)]
    weight, idle = nn.Parameter(start.clone()), nn.Parameter(torch.ones(2, 2))
    optimiser = Muon(iter([weight, idle]), lr=0.1, momentum=0.9)
    expected, average = start.clone(), torch.zeros_like(start)
    for number, gradient in enumerate(gradients):
        optimiser.lr = 0.1 if number < 2 else 0.03
        weight.grad = gradient.clone()
        optimiser.step()
        average = 0.9 * average + gradient
        expected = expected - optimiser.lr * 2**0.5 * orthogonalised(gradient + 0.9 * average)
        checks.close(weight.detach(), expected, f"The weight after {number + 1} steps")
        checks.close(weight.grad, gradient, "The gradient after the step")
    checks.close(idle.detach(), torch.ones(2, 2), "The matrix without a gradient")


def wide_matrices() -> None:
    """For a wide matrix, the factor is 1, never less."""
    weight = nn.Parameter(torch.zeros(3, 12, dtype=torch.float64))
    weight.grad = some_matrix(3, 12)
    Muon([weight], lr=1.0, momentum=0.5).step()
    checks.close(weight.detach(), -orthogonalised(weight.grad), "The weight after a step from 0")


CHECKS = [one_number, on_the_diagonal, nearly_orthogonal, either_side, two_steps, wide_matrices]


if __name__ == "__main__":
    from autograder.notebook import run_checks

    run_checks(CHECKS)
