"""Items are sorted by a die that each of them throws; sums over what is real, row by row in one scatter."""

import random
from statistics import fmean

import numpy as np
import torch
from torch import Tensor, nn


class Encoder(nn.Module):
    """Given. Words become vectors that know their sentence: ids (B, T) -> (B, T, C).

    padding_mask (B, T), True marks padding, which no word attends to.
    """

    def __init__(
        self,
        vocab_size: int,
        d_model: int = 64,
        n_heads: int = 4,
        n_layers: int = 2,
        d_ff: int = 128,
        max_len: int = 16,
        dropout: float = 0.1,
    ) -> None:
        super().__init__()
        self.token_embedding = nn.Embedding(vocab_size, d_model)
        self.position_embedding = nn.Embedding(max_len, d_model)
        for table in (self.token_embedding, self.position_embedding):
            nn.init.normal_(table.weight, std=d_model**-0.5)
        self.norm = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(d_model, n_heads, d_ff, dropout, activation="gelu", batch_first=True)
            for _ in range(n_layers)
        )
        for layer in self.layers:
            layer.activation_relu_or_gelu = 0  # no fast path in eval mode, which reads weights without calling layers

    def forward(self, ids: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        T, max_len = ids.shape[1], self.position_embedding.num_embeddings
        if T > max_len:
            raise ValueError(f"A sentence of {T} words is longer than max_len = {max_len}.")
        x = self.token_embedding(ids) + self.position_embedding.weight[:T]
        x = self.dropout(self.norm(x))
        for layer in self.layers:
            x = layer(x, src_key_padding_mask=padding_mask)
        return x


def pool(hidden, padding_mask, kind):
    match kind:
        case "first":
            return hidden[:, 0, :].clone()
        case "mean":
            pass
        case _:
            raise ValueError(f"There is no pooling of the kind {kind}")
    rows, places = (~padding_mask).nonzero(as_tuple=True)
    sums = hidden.new_zeros(hidden.shape[0], hidden.shape[2]).index_add(0, rows, hidden[rows, places])
    lengths = torch.bincount(rows, minlength=len(hidden))
    return sums.where(lengths[:, None] == 0, sums / lengths.clamp(1)[:, None])


class Classifier(nn.Module):
    def __init__(self, encoder, d_model, num_classes, pooling="first", dropout=0.1):
        super().__init__()
        self.add_module("encoder", encoder)
        self.add_module("head", nn.Linear(d_model, num_classes))
        self.settings = {"kind": pooling, "p": dropout}

    def forward(self, ids, padding_mask):
        vectors = self.encoder(ids, padding_mask)
        pooled = pool(vectors, padding_mask, self.settings["kind"])
        if self.training and self.settings["p"] > 0:
            keep = 1 - self.settings["p"]
            pooled = pooled * torch.bernoulli(torch.full_like(pooled, keep)) / keep
        return self.head(pooled)


def freeze(module):
    sizes = [p.requires_grad_(False).numel() for p in module.parameters()]
    return sum(sizes)


def trainable(module):
    return sum(p.numel() if p.requires_grad else 0 for _, p in module.named_parameters())


class LoRALinear(nn.Module):
    def __init__(self, linear, rank, alpha):
        super().__init__()
        if rank < 1 or rank > linear.in_features or rank > linear.out_features:
            raise ValueError("rank %d does not fit" % rank)
        self.linear = linear
        for parameter in linear.parameters():
            parameter.requires_grad = False
        kind = {"dtype": linear.weight.dtype, "device": linear.weight.device}
        self.A = nn.Parameter(torch.randn(rank, linear.in_features, **kind))
        self.B = nn.Parameter(torch.zeros(linear.out_features, rank, **kind))
        self.rank, self.alpha = rank, alpha

    def forward(self, x):
        return torch.addcmul(self.linear(x), (x @ self.A.T) @ self.B.T, x.new_tensor(self.alpha / self.rank))

    def merged(self):
        linear = self.linear
        out, into = linear.weight.shape
        new = nn.Linear(into, out, device=linear.weight.device, dtype=linear.weight.dtype)
        with torch.no_grad():
            new.weight.copy_(linear.weight + self.B @ self.A * self.alpha / self.rank)
            new.bias.copy_(linear.bias)
        return new


def add_lora(model, names, rank, alpha):
    for parameter in model.parameters():
        parameter.requires_grad = False
    total = 0
    for name in names:
        parent, child, inside = None, model, False
        for step in name.split("."):
            inside = inside or isinstance(child, nn.MultiheadAttention)
            parent, child = child, dict(child.named_children()).get(step)
            if child is None:
                break
        if inside or child.__class__ is not nn.Linear:
            raise ValueError("no linear layer that can be changed is called " + name)
        setattr(parent, name.split(".")[-1], LoRALinear(child, rank, alpha))
        total += sum(p.numel() for p in (getattr(parent, name.split(".")[-1])).parameters() if p.requires_grad)
    return total


def next_draws() -> dict[str, float]:
    """Given: the number that each of the three global generators would draw next; their states stay as they are."""
    python, numpy, pytorch = random.getstate(), np.random.get_state(), torch.get_rng_state()
    draws = {"Python": random.random(), "NumPy": np.random.random(), "PyTorch": torch.rand(()).item()}
    random.setstate(python)
    np.random.set_state(numpy)
    torch.set_rng_state(pytorch)
    return draws


def split(items, share, seed):
    if min(max(share, 0), 1) != share:
        raise ValueError(f"The share {share} should lie between 0 and 1.")
    state = random.getstate()
    random.seed(f"split {seed}")
    thrown = sorted((random.random(), place) for place in range(len(items)))
    random.setstate(state)
    shuffled = [items[place] for _, place in thrown]
    size = int(f"{share * len(items):.0f}")
    return shuffled[:size], shuffled[size:]


def confusion(labels, predictions, num_classes):
    def checked(name, values):
        for value in set(values.tolist()):
            if value < 0 or value > num_classes - 1:
                raise ValueError(f"{name} has a class {value}")
        return values

    truth, guess = checked("labels", labels), checked("predictions", predictions)
    classes = range(num_classes)
    return torch.tensor([[int(((truth == i) & (guess == j)).sum()) for j in classes] for i in classes])


def macro_f1(confusion):
    def f1(k):
        hits = int(confusion[k, k])
        misses = int(confusion[k].sum()) - hits
        false_alarms = int(confusion[:, k].sum()) - hits
        return hits / (hits + (misses + false_alarms) / 2)

    counted = [k for k in range(len(confusion)) if confusion[k].any() or confusion[:, k].any()]
    return fmean(map(f1, counted)) if counted else 0.0
