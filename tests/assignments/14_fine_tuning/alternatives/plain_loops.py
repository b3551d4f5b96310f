"""Sentence by sentence and example by example, as with a pencil."""

import random

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
    if kind not in ("first", "mean"):
        raise ValueError("unknown kind: %s" % kind)
    rows = []
    for vectors, padding in zip(hidden, padding_mask):
        if kind == "first":
            rows.append(vectors[0])
            continue
        real = [vector for vector, gone in zip(vectors, padding.tolist()) if not gone]
        rows.append(sum(real) / len(real) if real else hidden.new_zeros(hidden.shape[-1]))
    return torch.stack(rows)


class Classifier(nn.Module):
    def __init__(self, encoder, d_model, num_classes, pooling="first", dropout=0.1):
        super().__init__()
        self.head = nn.Linear(d_model, num_classes)
        self.encoder = encoder
        self.drop = nn.Dropout(dropout)
        self.kind = pooling

    def forward(self, ids, padding_mask):
        return self.head(self.drop(pool(self.encoder(ids, padding_mask), padding_mask, self.kind)))


def freeze(module):
    total = 0
    for parameter in module.parameters():
        parameter.requires_grad = False
        total += parameter.numel()
    return total


def trainable(module):
    total = 0
    for parameter in module.parameters():
        if parameter.requires_grad:
            total += parameter.numel()
    return total


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
        asked = torch.nn.functional.linear(x, self.A)
        said = torch.nn.functional.linear(asked, self.B)
        return self.linear(x) + said * self.alpha / self.rank

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
        total += rank * (child.in_features + child.out_features)
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
    if share < 0 or share > 1:
        raise ValueError(f"share is {share}")
    dice = random.Random(seed)
    rest, first = list(items), []
    for _ in range(round(share * len(items))):
        first.append(rest.pop(dice.randrange(len(rest))))
    second = []
    while rest:
        second.append(rest.pop(dice.randrange(len(rest))))
    return first, second


def confusion(labels, predictions, num_classes):
    table = [[0] * num_classes for _ in range(num_classes)]
    for label, prediction in zip(labels.tolist(), predictions.tolist()):
        if not 0 <= label < num_classes:
            raise ValueError(f"{label} in labels is no class")
        if not 0 <= prediction < num_classes:
            raise ValueError(f"{prediction} in predictions is no class")
        table[label][prediction] += 1
    return torch.tensor(table, dtype=torch.long)


def macro_f1(confusion):
    table = confusion.tolist()
    scores = []
    for k, row in enumerate(table):
        right = row[k]
        occurs = sum(row)
        guessed = sum(other[k] for other in table)
        if occurs + guessed > 0:
            scores.append(2 * right / (occurs + guessed))
    return sum(scores) / len(scores) if scores else 0.0
