"""torch.var_mean, one base class for both blocks, and two dropouts instead of one."""

from __future__ import annotations

import abc
import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"relu": torch.relu, "gelu": F.gelu}


def layer_norm(x: Tensor, gamma: Tensor, beta: Tensor, eps: float = 1e-5) -> Tensor:
    variance, mean = torch.var_mean(x, dim=-1, unbiased=False, keepdim=True)
    return torch.addcmul(beta, (x - mean) / (variance + eps) ** 0.5, gamma)


class LayerNorm(nn.Module):
    def __init__(self, d_model: int, eps: float = 1e-5):
        super().__init__()
        self.register_parameter("gamma", nn.Parameter(torch.full((d_model,), 1.0)))
        self.register_parameter("beta", nn.Parameter(torch.full((d_model,), 0.0)))
        self.epsilon = eps

    def forward(self, x: Tensor) -> Tensor:
        return layer_norm(x, self.gamma, self.beta, self.epsilon)

    def extra_repr(self) -> str:
        return f"{self.gamma.numel()}, eps={self.epsilon}"


class FeedForward(nn.Module):
    def __init__(self, d_model: int, d_ff: int, activation: str = "relu"):
        super().__init__()
        try:
            self.activation = ACTIVATIONS[activation]
        except KeyError:
            known = " or ".join(ACTIVATIONS)
            raise ValueError(f"activation={activation} is not known, try {known}") from None
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)

    def forward(self, x: Tensor) -> Tensor:
        return self.linear2(self.activation(self.linear1(x)))


class Block(nn.Module, abc.ABC):
    def __init__(self, d_model: int, n_heads: int, d_ff: int, dropout: float = 0.1, activation: str = "relu"):
        super().__init__()
        self.attention = nn.MultiheadAttention(d_model, n_heads, dropout=dropout, batch_first=True)
        self.ff = FeedForward(d_model, d_ff, activation)
        self.norm1, self.norm2 = LayerNorm(d_model), LayerNorm(d_model)
        self.dropout, self.dropout2 = nn.Dropout(dropout), nn.Dropout(dropout)

    def forward(
        self, x: Tensor, padding_mask: Tensor | None = None, attn_mask: Tensor | None = None
    ) -> Tensor:
        def listen(y: Tensor) -> Tensor:
            heard, _ = self.attention(y, y, y, padding_mask, need_weights=False, attn_mask=attn_mask)
            return self.dropout(heard)

        def think(y: Tensor) -> Tensor:
            return self.dropout2(self.ff(y))

        return self.wire(self.wire(x, listen, self.norm1), think, self.norm2)

    @abc.abstractmethod
    def wire(self, x: Tensor, sublayer: Callable[[Tensor], Tensor], norm: LayerNorm) -> Tensor: ...


class TransformerEncoderBlock(Block):
    def wire(self, x, sublayer, norm):
        return norm(x + sublayer(x))


class PreNormBlock(Block):
    def wire(self, x, sublayer, norm):
        return x + sublayer(norm(x))


def sinusoidal_table(max_len: int, d_model: int) -> Tensor:
    p = torch.arange(max_len).double()[:, None]
    c = torch.arange(d_model)[None, :]
    angle = p / 10000.0 ** ((c - c % 2).double() / d_model)
    return torch.where(c % 2 == 0, angle.sin(), angle.cos()).float()


class TransformerEncoder(nn.Module):
    pe: Tensor

    def __init__(
        self,
        vocab_size: int,
        d_model: int = 128,
        n_heads: int = 4,
        n_layers: int = 2,
        d_ff: int = 256,
        max_len: int = 64,
        dropout: float = 0.1,
    ):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_model, padding_idx=0)
        nn.init.normal_(self.embedding.weight, std=1 / math.sqrt(d_model))
        self.register_buffer("pe", sinusoidal_table(max_len, d_model), persistent=True)
        self.layers = nn.ModuleList()
        while len(self.layers) < n_layers:
            self.layers.append(TransformerEncoderBlock(d_model, n_heads, d_ff, dropout, "relu"))
        self.norm = LayerNorm(d_model)
        self.drop = nn.Dropout(dropout)

    def forward(self, token_ids: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        batch, length = token_ids.shape
        longest = self.pe.shape[0]
        if length > longest:
            raise ValueError(f"{length} tokens are more than max_len={longest}")
        x = self.drop(self.embedding(token_ids) + self.pe[:length].expand(batch, -1, -1))
        for layer in self.layers:
            x = layer(x, padding_mask)
        return self.norm(x)
