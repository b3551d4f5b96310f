"""A generator of NumPy's shuffles places, an index that accumulates fills the matrix, small classes pool."""

import copy
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


class First(nn.Module):
    def forward(self, hidden, padding_mask):
        return hidden.select(1, 0)


class Mean(nn.Module):
    def forward(self, hidden, padding_mask):
        kept = torch.zeros_like(hidden)
        kept[~padding_mask] = hidden[~padding_mask]
        lengths = padding_mask.logical_not().sum(dim=1)
        lengths[lengths == 0] = 1
        return torch.einsum("btc,b->bc", kept, 1 / lengths.to(hidden.dtype))


POOLERS = {"first": First(), "mean": Mean()}


def pool(hidden, padding_mask, kind):
    if kind not in POOLERS:
        raise ValueError(f"kind is {kind!r}; try one of {list(POOLERS)}")
    return POOLERS[kind](hidden, padding_mask)


class Classifier(nn.Module):
    def __init__(self, encoder, d_model, num_classes, pooling="first", dropout=0.1):
        super().__init__()
        self.encoder = encoder
        self.pool = POOLERS[pooling]
        self.head = nn.Linear(d_model, num_classes)
        self.before_head = nn.Sequential(nn.Dropout(dropout))

    def forward(self, ids, padding_mask):
        hidden = self.encoder(ids, padding_mask)
        return self.head(self.before_head(self.pool(hidden, padding_mask)))


def count(parameters):
    return int(np.sum([p.numel() for p in parameters], dtype=np.int64))


def freeze(module):
    for part in module.modules():
        for parameter in part.parameters(recurse=False):
            parameter.requires_grad_(requires_grad=False)
    return count(module.parameters())


def trainable(module):
    return count(filter(lambda p: p.requires_grad, module.parameters()))


class LoRALinear(nn.Module):
    def __init__(self, linear, rank, alpha):
        super().__init__()
        if not 0 < rank <= min(linear.weight.shape):
            raise ValueError(f"the rank must be from 1 to {min(linear.weight.shape)}, not {rank}")
        freeze(linear)
        self.linear, self.rank, self.alpha = linear, rank, alpha
        dice = np.random.default_rng(0)
        start = torch.tensor(dice.normal(size=(rank, linear.in_features)))
        self.A = nn.Parameter(start.to(linear.weight))
        self.B = nn.Parameter(torch.zeros(linear.out_features, rank).to(linear.weight))

    def forward(self, x):
        return self.linear(x) + torch.einsum("...i,ri,or->...o", x, self.A, self.B) * (self.alpha / self.rank)

    def merged(self):
        delta = torch.einsum("ri,or->oi", self.A, self.B) * (self.alpha / self.rank)
        new = copy.copy(nn.Linear(1, 1))
        new.in_features, new.out_features = self.linear.in_features, self.linear.out_features
        new.weight = nn.Parameter((self.linear.weight + delta).detach())
        new.bias = nn.Parameter(self.linear.bias.detach().clone())
        return new


def add_lora(model, names, rank, alpha):
    known = {name: module for name, module in model.named_modules()}
    for name in names:
        parts = name.split(".")
        inside = [known[".".join(parts[:end])] for end in range(len(parts)) if ".".join(parts[:end]) in known]
        if name not in known or type(known[name]) is not nn.Linear:
            raise ValueError(f"{name!r} is no plain linear layer")
        if nn.MultiheadAttention in map(type, inside):
            raise ValueError(f"{name!r} belongs to an attention")
    model.requires_grad_(False)
    new = [LoRALinear(known[name], rank, alpha) for name in names]
    for name, layer in zip(names, new):
        model.set_submodule(name, layer) if hasattr(model, "set_submodule") else put(model, name, layer)
    return sum(layer.A.numel() + layer.B.numel() for layer in new)


def put(model, name, layer):
    *path, last = name.split(".")
    for step in path:
        model = getattr(model, step)
    setattr(model, last, layer)


def next_draws() -> dict[str, float]:
    """Given: the number that each of the three global generators would draw next; their states stay as they are."""
    python, numpy, pytorch = random.getstate(), np.random.get_state(), torch.get_rng_state()
    draws = {"Python": random.random(), "NumPy": np.random.random(), "PyTorch": torch.rand(()).item()}
    random.setstate(python)
    np.random.set_state(numpy)
    torch.set_rng_state(pytorch)
    return draws


def split(items, share, seed):
    if share < 0.0 or share > 1.0:
        raise ValueError("share = {} is not a share".format(share))
    places = np.random.default_rng(seed).permutation(len(items))
    first, second = np.split(places, [int(np.rint(share * len(items)))])
    return [items[i] for i in first], [items[i] for i in second]


def confusion(labels, predictions, num_classes):
    for name, values in [("labels", labels), ("predictions", predictions)]:
        wrong = [value for value in values.tolist() if value not in range(num_classes)]
        if wrong:
            raise ValueError(f"{wrong[0]} is in {name}")
    table = torch.zeros((num_classes, num_classes), dtype=torch.int64)
    ones = torch.ones_like(labels, dtype=torch.int64)
    return table.index_put_((labels, predictions), ones, accumulate=True)


def macro_f1(confusion):
    table = confusion.numpy().astype(float)
    right, occurs, guessed = np.diag(table), table.sum(axis=1), table.sum(axis=0)
    wrong = occurs + guessed - 2 * right
    with np.errstate(invalid="ignore"):
        scores = 2 * right / (2 * right + wrong)
    scores = scores[~np.isnan(scores)]
    return float(scores.mean()) if scores.size else 0.0
