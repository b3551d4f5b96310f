"""A student's file that uses most of what PyTorch offers; the proxy must behave as this module does."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

CONSTANT = {"lr": 0.1, "dims": (1, 2)}


class Net(nn.Module):
    def __init__(self, d, p=0.5, tie=False):
        super().__init__()
        self.a, self.b = nn.Linear(d, d), nn.Linear(d, d)
        self.parts = nn.ModuleList(nn.Linear(d, d) for _ in range(3))
        self.dropout = nn.Dropout(p)
        self.register_buffer("table", torch.arange(d, dtype=torch.float32))
        self.plain = torch.ones(d)
        self.count = 0
        if tie:
            self.b.weight = self.a.weight

    def forward(self, x, scale=1.0):
        self.count += 1
        self.hidden = self.a(x).tanh()
        return self.b(self.dropout(self.hidden)) * scale + self.table.to(x.dtype)

    def two(self, x):
        return {"y": self(x), "aux": (x.sum(), 3, "s", None)}

    @property
    def width(self):
        return self.a.in_features


@dataclass(frozen=True)
class Config:
    width: int = 7
    heads: int = 2

    def __post_init__(self):
        if self.width < 1:
            raise ValueError(f"width must be at least 1, not {self.width}")

    def size(self, factor=1):
        return self.width * factor


class Bag:
    kind = "bag"

    def __init__(self, items):
        self.items = list(items)

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        return self.items[index]


def product(x, y):
    return x * y


def without_gradient(x):
    return x.detach() * 2


def in_place(x):
    x += 1
    return x * 2


def boom(x):
    raise ValueError("my message")


def returns_module(d):
    return nn.Linear(2, d)


def returns_generator():
    yield 1


def loss_of(net, x):
    return net(x).square().mean()


def copy_weights(source, target):
    target.a.weight.data.copy_(source.a.weight)


def train(net, x, steps):
    optimiser = torch.optim.SGD(net.parameters(), lr=0.1)
    losses = []
    for _ in range(steps):
        optimiser.zero_grad()
        loss = loss_of(net, x)
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    return losses


def generate(model, ids, steps):
    was_training = model.training
    model.eval()
    with torch.no_grad():
        for _ in range(steps):
            logits = model(ids)
            ids = torch.cat([ids, logits[:, -1:].argmax(-1)], dim=1)
    model.train(was_training)
    return ids


def draw(n, generator):
    return torch.randn(n, generator=generator)


def counts(config):
    return {"width": config.width, "total": np.int64(config.size(3))}


def twice(function, x):
    return function(function(x))


def array(n):
    return np.arange(n, dtype=np.float32)


def dtype_of(x):
    return x.dtype


class Shared(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.first = nn.Linear(d, d)
        self.layers = nn.ModuleList([self.first] * 3)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.first(x)
