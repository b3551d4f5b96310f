"""A student's file that uses most of PyTorch's features; the proxy must behave as this module does."""

from dataclasses import dataclass
from typing import NamedTuple

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


def refill(ids, book, *others):
    """Change a list, a list in a dict, and a dict in a tuple."""
    ids.append(len(ids))
    book["ids"].sort()
    for other in others:
        other[0].clear()


def boom(x):
    raise ValueError("my message")


def returns_module(d):
    return nn.Linear(2, d)


def returns_generator():
    yield 1


def loss_of(net, x):
    return net(x).square().mean()


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


def slope(function, x, extra=None):
    """Return the gradient of the test's function at x."""
    x = x.detach().clone().requires_grad_()
    whole = sum(
        part.sum() for part in parts_of(function(x) if extra is None else function(x, extra=extra))
    )
    whole.backward()
    return x.grad


def slope_by_transform(function, x):
    return torch.func.grad(lambda x: function(x).sum())(x)


def slope_by_jacobian(function, x):
    return torch.func.jacrev(lambda x: function(x).sum())(x)


def slope_twice(function, x):
    x = x.detach().clone().requires_grad_()
    out = function(x).sum()
    return [torch.autograd.grad(out, x, retain_graph=True)[0] for _ in range(2)]


def curvature(function, x):
    x = x.detach().clone().requires_grad_()
    (slope,) = torch.autograd.grad(function(x).square().sum(), x, create_graph=True)
    return torch.autograd.grad(slope.sum(), x)


def parts_of(value):
    return [part for part in value.values()] if isinstance(value, dict) else [value]


def leave_marks(x, y):
    """Set requires_grad on two inputs; the first also gets a gradient."""
    x.requires_grad_()
    y.requires_grad_()
    (x * x).sum().backward()


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


class OwnMethods(nn.Module):
    """A module with own methods that have PyTorch's names."""

    def __init__(self, d):
        super().__init__()
        self.linear = nn.Linear(d, d)
        self.register_buffer("cache", torch.zeros(d), persistent=False)

    def forward(self, x):
        return self.linear(x)

    def train(self, mode=True):
        self.told = mode
        return super().train(mode)

    def load_state_dict(self, state):
        raise RuntimeError("not this one")

    def state_dict(self):
        return "mine"

    def parameters(self):
        return "mine"

    named_parameters = named_buffers = named_modules = buffers = parameters


class Restless(nn.Module):
    """Replaces, adds, ties and removes parameters while it is called."""

    def __init__(self, d):
        super().__init__()
        self.d = d
        self.weight = nn.Parameter(torch.ones(d))
        self.old = nn.Parameter(torch.ones(2))
        self.inner = nn.Sequential(nn.Linear(d, d), nn.Linear(d, d))

    def forward(self, x):
        return x * self.weight

    def replace(self, x):
        self.weight = nn.Parameter(torch.full((self.d,), 3.0))
        return self(x)

    def grow(self):
        self.weight = nn.Parameter(torch.full((self.d + 1,), 2.0))
        self.new = nn.Parameter(torch.zeros(3))
        self.inner.add_module("2", nn.Linear(self.d, self.d, bias=False))

    def shrink(self):
        del self.old, self.inner[1]

    def freeze(self):
        self.weight.requires_grad_(False)

    def tie(self):
        self.inner[1].weight = self.inner[0].weight


class Lists(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.layers = [nn.Linear(d, d), nn.Linear(d, d)]
        self.tensors = [torch.ones(d), torch.zeros(d)]
        self.named = nn.ModuleDict({"layer-1": nn.Linear(d, 2), "zwei 2": nn.Linear(d, 3)})

    @property
    def broken(self):
        raise ZeroDivisionError("no")


class TooLong(ValueError):
    pass


class Unspeakable(ValueError):
    def __str__(self):
        raise SystemExit(3)


def fail_with(name):
    import pytest

    raise {
        "KeyError": KeyError("key"),
        "IndexError": IndexError("index"),
        "TooLong": TooLong("too long by 3"),
        "Unspeakable": Unspeakable(),
        "SystemExit": SystemExit(0),
        "KeyboardInterrupt": KeyboardInterrupt(),
        "skip": pytest.skip.Exception("skipped"),
        "GeneratorExit": GeneratorExit(),
        "StopIteration": StopIteration(1),
        "UnicodeDecodeError": UnicodeDecodeError("utf-8", b"x", 0, 1, "odd"),
    }[name]


def several(x, net=None):
    y = x * 2
    return [y, {"sum": y.sum(), "tuple": (y[0], x), "count": 3}], y.long()


def returns(kind):
    return {
        "generator": (i for i in range(3)),
        "set": {1, 2},
        "class": Net,
        "module": torch,
        "lambda": lambda x: x + 1,
        "method": [].append,
        "deep": deep(100_000),
        "many": [0] * 100_000,
        "long": "x" * 100_000,
        "big": torch.zeros(20_000_000),
        "huge": torch.zeros(1).expand(10**12),
    }[kind]


def deep(n):
    x = []
    for _ in range(n):
        x = [x]
    return x


def keywords(a, /, b=2, *args, c=3, **kwargs):
    return [a, b, list(args), c, kwargs]


def both(first, second, x):
    return first(x) + second(x)


def ask(model, name):
    return [hasattr(model, name), getattr(model, name, "absent"), isinstance(model, nn.Module)]


def tell(function, thing):
    return function(thing)


def caught(function):
    try:
        function()
    except (KeyError, AttributeError) as error:
        return type(error).__name__


def version(text):
    from packaging.version import (
        Version,
    )  # a library's class, small and always there: pytest needs it

    return Version(text)


def is_newer(version, than):
    return version > type(version)(than)


class Pair(NamedTuple):
    """Two numbers."""

    first: int
    second: int

    def total(self):
        return self.first + self.second
