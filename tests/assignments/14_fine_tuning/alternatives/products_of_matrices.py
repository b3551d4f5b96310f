"""Everything is a product: a mask that averages, one-hot rows for the matrix, precision and recall for F1."""

import copy
import random

import numpy as np
import torch
import torch.nn.functional as F
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


def pool(hidden: Tensor, padding_mask: Tensor, kind: str) -> Tensor:
    B, T, _ = hidden.shape
    real = (~padding_mask).to(hidden.dtype)
    if kind == "first":
        weights = F.one_hot(torch.zeros(B, dtype=torch.long), T).to(hidden.dtype)
        hidden = torch.where(weights[..., None] > 0, hidden, 0.0)
    elif kind == "mean":
        weights = real / real.sum(dim=1, keepdim=True).clamp(min=1e-9)
        hidden = torch.where(padding_mask.unsqueeze(-1), torch.zeros_like(hidden), hidden)
    else:
        raise ValueError(f"{kind=} should be one of first, mean")
    return (weights.unsqueeze(1) @ hidden).squeeze(1)


class Classifier(nn.Module):
    def __init__(
        self, encoder: nn.Module, d_model: int, num_classes: int, pooling: str = "first", dropout: float = 0.1
    ):
        super().__init__()
        self.encoder, self.pooling, self.p = encoder, pooling, dropout
        self.head = nn.Linear(in_features=d_model, out_features=num_classes, bias=True)

    def forward(self, ids: Tensor, padding_mask: Tensor) -> Tensor:
        pooled = pool(self.encoder(ids, padding_mask=padding_mask), padding_mask, kind=self.pooling)
        pooled = F.dropout(pooled, self.p, training=self.training)
        return pooled @ self.head.weight.T + self.head.bias


def freeze(module: nn.Module) -> int:
    for parameter in module.parameters():
        parameter.requires_grad_(False)
    return sum(map(torch.numel, module.parameters()))


def trainable(module: nn.Module) -> int:
    return sum(p.nelement() * p.requires_grad for p in module.parameters())


class LoRALinear(nn.Module):
    def __init__(self, linear: nn.Linear, rank: int, alpha: float) -> None:
        super().__init__()
        if rank <= 0 or rank > min(linear.in_features, linear.out_features):
            raise ValueError(f"rank: {rank}")
        self.linear = linear
        self.linear.weight.requires_grad = False
        if self.linear.bias is not None:
            self.linear.bias.requires_grad = False
        self.s = alpha / rank
        self.A = nn.Parameter(torch.rand_like(linear.weight)[:rank].clone() - 0.5)
        self.B = nn.Parameter(torch.zeros_like(linear.weight)[:, :rank].clone())

    def forward(self, x: Tensor) -> Tensor:
        small = self.A @ x.unsqueeze(-1)
        return self.linear(x) + (self.B @ small).squeeze(-1) * self.s

    def merged(self) -> nn.Linear:
        one = copy.deepcopy(self).linear
        one.weight.data = one.weight.data + self.s * (self.B.data @ self.A.data)
        return one


def add_lora(model: nn.Module, names: list[str], rank: int, alpha: float) -> int:
    freeze(model)
    found = []
    for parent_name, parent in list(model.named_modules()):
        for child_name, child in list(parent.named_children()):
            name = f"{parent_name}.{child_name}".lstrip(".")
            if name in names and type(child) is nn.Linear and not isinstance(parent, nn.MultiheadAttention):
                found.append((name, parent, child_name, child))
    missing = [name for name in names if name not in [name for name, *_ in found]]
    if missing:
        raise ValueError(f"no linear layers for LoRA: {', '.join(missing)}")
    for _, parent, child_name, child in found:
        parent.register_module(child_name, LoRALinear(child, rank, alpha))
    return sum(rank * sum(child.weight.shape) for *_, child in found)


def next_draws() -> dict[str, float]:
    """Given: the number that each of the three global generators would draw next; their states stay as they are."""
    python, numpy, pytorch = random.getstate(), np.random.get_state(), torch.get_rng_state()
    draws = {"Python": random.random(), "NumPy": np.random.random(), "PyTorch": torch.rand(()).item()}
    random.setstate(python)
    np.random.set_state(numpy)
    torch.set_rng_state(pytorch)
    return draws


def split(items: list, share: float, seed: int) -> tuple[list, list]:
    if not (share >= 0 and share <= 1):
        raise ValueError(f"{share=} is not between 0 and 1")
    with torch.random.fork_rng(devices=[]):  # PyTorch's state is put back at the end
        torch.manual_seed(seed)
        order = torch.randperm(len(items)).tolist()
    size = int(share * len(items) + 0.5)
    return [items[i] for i in order[:size]], [items[i] for i in order[size:]]


def confusion(labels: Tensor, predictions: Tensor, num_classes: int) -> Tensor:
    for name, values in {"labels": labels, "predictions": predictions}.items():
        if values.numel() and not 0 <= values.min() <= values.max() < num_classes:
            raise ValueError(f"{name}: {values.tolist()} go beyond {num_classes} classes")
    truth, guess = F.one_hot(labels, num_classes), F.one_hot(predictions, num_classes)
    return truth.T @ guess


def macro_f1(confusion: Tensor) -> float:
    table = confusion.double()
    right = table.diag()
    precision = right / table.sum(0).clamp(min=1)
    recall = right / table.sum(1).clamp(min=1)
    f1 = 2 * precision * recall / (precision + recall).clamp(min=1e-12)
    counts = (table.sum(0) + table.sum(1)) != 0
    return float(f1[counts].mean()) if counts.any() else 0.0
