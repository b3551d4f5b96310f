"""For instructors: a solution of `given/harder.py`. Students do not receive it."""

import copy

import torch
from torch import Tensor, nn


class LoRA(nn.Module):
    def __init__(self, linear: nn.Linear, rank: int, alpha: float) -> None:
        super().__init__()
        self.linear, self.scale = linear.requires_grad_(False), alpha / rank
        self.A = nn.Parameter(torch.randn(rank, linear.in_features).to(linear.weight) / rank)
        self.B = nn.Parameter(linear.weight.new_zeros(linear.out_features, rank))

    def forward(self, x: Tensor) -> Tensor:
        return self.linear(x) + self.scale * (x @ self.A.T @ self.B.T)          # (..., out)

    def merged(self) -> nn.Linear:
        one = copy.deepcopy(self.linear)
        with torch.no_grad():
            one.weight += self.scale * self.B @ self.A
        return one


def with_lora(model: nn.Module, rank: int, alpha: float) -> int:
    model.requires_grad_(False)
    for module in list(model.modules()):
        for name, child in module.named_children():
            if type(child) is nn.Linear:
                setattr(module, name, LoRA(child, rank, alpha))
    return sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)
