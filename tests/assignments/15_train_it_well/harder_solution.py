"""For instructors: a solution of `given/harder.py`. Students do not receive it."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Expert(nn.Module):
    def __init__(self, d_model: int, d_ff: int) -> None:
        super().__init__()
        self.up = nn.Linear(d_model, d_ff)
        self.down = nn.Linear(d_ff, d_model)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(torch.relu(self.up(x)))                                # (..., C)


def route(scores: Tensor, k: int) -> tuple[Tensor, Tensor]:
    weights, chosen = scores.softmax(dim=-1).topk(k, dim=-1)                    # (N, k), (N, k)
    return weights, chosen


def balance_loss(scores: Tensor, chosen: Tensor) -> Tensor:
    E = scores.shape[-1]
    f = F.one_hot(chosen, E).to(scores.dtype).mean(dim=(0, 1))                  # (E,)
    P = scores.softmax(dim=-1).mean(dim=0)                                      # (E,)
    return E * (f * P).sum()


class MixtureOfExperts(nn.Module):
    def __init__(self, d_model: int, d_ff: int, num_experts: int, k: int) -> None:
        super().__init__()
        self.router = nn.Linear(d_model, num_experts, bias=False)
        self.experts = nn.ModuleList(Expert(d_model, d_ff) for _ in range(num_experts))
        self.k = k

    def forward(self, x: Tensor) -> Tensor:
        tokens = x.reshape(-1, x.shape[-1])                                     # (N, C)
        scores = self.router(tokens)                                            # (N, E)
        weights, chosen = route(scores, self.k)                                 # (N, k), (N, k)
        self.balance = balance_loss(scores, chosen)
        y = torch.zeros_like(tokens)                                            # (N, C)
        for number, expert in enumerate(self.experts):
            rows, places = torch.where(chosen == number)                        # (n,), (n,)
            if len(rows):
                weighted = weights[rows, places, None] * expert(tokens[rows])   # (n, C)
                y = y.index_add(0, rows, weighted)
        return y.reshape(x.shape)
