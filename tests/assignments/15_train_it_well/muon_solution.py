"""For instructors: a solution of `given/muon.py`. Students do not receive it."""

from collections.abc import Iterable

import torch
from torch import Tensor, nn

A, B, C = 3.4445, -4.7750, 2.0315


def orthogonalised(G: Tensor, iterations: int = 5) -> Tensor:
    if G.shape[0] > G.shape[1]:
        return orthogonalised(G.T, iterations).T
    X = G / G.norm().clamp(min=1e-30)                                           # (min, max)
    for _ in range(iterations):
        square = X @ X.T                                                        # (min, min)
        X = A * X + (B * square + C * square @ square) @ X
    return X


class Muon:
    def __init__(self, parameters: Iterable[nn.Parameter], lr: float = 0.02, momentum: float = 0.95) -> None:
        self.parameters, self.lr, self.momentum = list(parameters), lr, momentum
        self.averages = [torch.zeros_like(weight) for weight in self.parameters]

    @torch.no_grad()
    def step(self) -> None:
        for weight, average in zip(self.parameters, self.averages):
            if weight.grad is None:
                continue
            average.mul_(self.momentum).add_(weight.grad)
            ahead = orthogonalised(weight.grad + self.momentum * average)
            weight -= self.lr * max(1, weight.shape[0] / weight.shape[1]) ** 0.5 * ahead
