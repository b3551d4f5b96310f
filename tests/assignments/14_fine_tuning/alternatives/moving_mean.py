"""A mean that moves from one vector to the next, a head with dropout inside, and a counter of pairs."""

import random
from collections import Counter
from random import Random

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
    if kind == "first":
        return torch.index_select(hidden, 1, torch.tensor([0])).flatten(1)
    if kind != "mean":
        raise ValueError("kind", kind)
    mean = torch.zeros_like(hidden[:, 0])
    seen = torch.zeros(len(hidden), 1, dtype=hidden.dtype)
    for t in range(hidden.shape[1]):
        real = ~padding_mask[:, t, None]
        seen = seen + real
        step = hidden[:, t].masked_fill(~real, 0) - mean.masked_fill(~real, 0)
        mean = mean + step / seen.clamp(min=1)
    return mean


class Head(nn.Linear):
    """A linear layer with some dropout before it."""

    def __init__(self, width, num_classes, dropout):
        super().__init__(width, num_classes)
        self.thin = nn.Dropout(dropout)

    def forward(self, x):
        return super().forward(self.thin(x))


class Classifier(nn.Module):
    def __init__(self, encoder, d_model, num_classes, pooling="first", dropout=0.1):
        super().__init__()
        self.encoder = encoder
        self.head = Head(d_model, num_classes, dropout)
        self.pool = lambda hidden, mask: pool(hidden, mask, pooling)

    def forward(self, ids, padding_mask):
        return self.head(self.pool(self.encoder(ids, padding_mask), padding_mask))


def freeze(module):
    everything = list(module.parameters())
    while everything and any(p.requires_grad for p in everything):
        next(p for p in everything if p.requires_grad).requires_grad = False
    return sum(p.numel() for p in everything)


def trainable(module):
    return sum(len(p.flatten()) for p in module.parameters() if p.requires_grad)


class LoRALinear(nn.Module):
    def __init__(self, linear, rank, alpha):
        super().__init__()
        out, into = linear.weight.shape
        if rank not in range(1, min(out, into) + 1):
            raise ValueError(f"{rank=} for a matrix of {out} by {into}")
        self.linear = linear.requires_grad_(False)
        self.A = nn.Parameter(linear.weight.new_empty(rank, into))
        self.B = nn.Parameter(linear.weight.new_zeros(out, rank))
        nn.init.kaiming_uniform_(self.A)
        self.register_buffer("factor", torch.tensor(alpha / rank, dtype=torch.float64))

    def forward(self, x):
        return self.linear(x) + self.factor.to(x.dtype) * ((x @ self.A.mT) @ self.B.mT)

    @torch.no_grad()
    def merged(self):
        new = nn.Linear(self.linear.in_features, self.linear.out_features).to(self.linear.weight)
        new.load_state_dict(self.linear.state_dict())
        new.weight.add_((self.B @ self.A) * self.factor.to(self.A.dtype))
        return new


def add_lora(model, names, rank, alpha):
    for name in names:
        steps = name.split(".")
        above = [".".join(steps[:n]) for n in range(len(steps))]
        try:
            layer = model.get_submodule(name)
        except AttributeError:
            raise ValueError(f"there is no module {name}") from None
        if any(isinstance(model.get_submodule(place), nn.MultiheadAttention) for place in above):
            raise ValueError(f"{name} is part of an attention")
        if type(layer) is not nn.Linear:
            raise ValueError(f"{name} is a {type(layer).__name__}")
        setattr(model.get_submodule(above[-1]), steps[-1], LoRALinear(layer, rank, alpha))
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name in {f"{new}.{matrix}" for new in names for matrix in "AB"})
    return trainable(model)


def next_draws() -> dict[str, float]:
    """Given: the number that each of the three global generators would draw next; their states stay as they are."""
    python, numpy, pytorch = random.getstate(), np.random.get_state(), torch.get_rng_state()
    draws = {"Python": random.random(), "NumPy": np.random.random(), "PyTorch": torch.rand(()).item()}
    random.setstate(python)
    np.random.set_state(numpy)
    torch.set_rng_state(pytorch)
    return draws


def split(items, share, seed):
    if share not in (0, 1) and not 0 < share < 1:
        raise ValueError(f"share must not be {share}")
    mixed = Random(seed).sample(items, k=len(items))
    end = round(len(items) * share)
    return mixed[0:end], mixed[end:]


def confusion(labels, predictions, num_classes):
    pairs = Counter(zip(labels.tolist(), predictions.tolist()))
    for truth, guess in pairs:
        for name, value in (("labels", truth), ("predictions", guess)):
            if value < 0 or value >= num_classes:
                raise ValueError(f"class {value} of {name}")
    table = torch.zeros(num_classes, num_classes, dtype=torch.int64)
    for (truth, guess), often in pairs.items():
        table[truth, guess] = often
    return table


def macro_f1(confusion):
    occurs, guessed = confusion.sum(1).tolist(), confusion.sum(0).tolist()
    scores = []
    for k, right in enumerate(confusion.diagonal().tolist()):
        if not occurs[k] and not guessed[k]:
            continue
        if right == 0:
            scores.append(0.0)
            continue
        precision, recall = right / guessed[k], right / occurs[k]
        scores.append(2 / (1 / precision + 1 / recall))
    return sum(scores) / max(len(scores), 1)
