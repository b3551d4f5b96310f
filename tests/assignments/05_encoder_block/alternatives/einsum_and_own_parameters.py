"""Einstein sums, linear maps with parameters registered by hand, attention written out."""

import math

import torch
import torch.nn.functional as F
from torch import einsum, nn


def layer_norm(x, gamma, beta, eps=1e-5):
    width = gamma.shape[0]
    average = x.new_full((width,), 1 / width)                                     # (C,)
    x = x - einsum("...c,c->...", x, average).unsqueeze(-1)
    spread = (einsum("...c,...c,c->...", x, x, average) + eps).sqrt()
    return einsum("...c,c->...c", x / spread.unsqueeze(-1), gamma) + beta


class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.gamma = nn.Parameter(torch.zeros(d_model) + 1)
        self.beta = nn.Parameter(torch.ones(d_model) - 1)
        self.register_buffer("eps", torch.tensor(eps, dtype=torch.float64), persistent=False)

    def forward(self, x):
        return layer_norm(x, self.gamma, self.beta, self.eps.item())


class Weights(nn.Module):
    def __init__(self, rows, columns):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(rows, columns) / math.sqrt(columns))
        self.bias = nn.Parameter(torch.zeros(rows))


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, activation="relu"):
        super().__init__()
        if activation not in {"relu", "gelu"}:
            raise ValueError(f"unknown activation {activation!r}")
        self.name = activation
        self.linear1 = Weights(d_ff, d_model)
        self.linear2 = Weights(d_model, d_ff)

    def switch(self, z):
        if self.name == "relu":
            return z * (z > 0)
        return z * 0.5 * (1 + torch.erf(z / math.sqrt(2)))

    def forward(self, x):
        hidden = self.switch(F.linear(x, self.linear1.weight, self.linear1.bias))
        return einsum("...f,cf->...c", hidden, self.linear2.weight) + self.linear2.bias


def attend(layer, x, padding_mask, attn_mask, training):
    """Self-attention written out with the weights of an nn.MultiheadAttention."""
    B, T, C = x.shape
    H = layer.num_heads
    qkv = F.linear(x, layer.in_proj_weight, layer.in_proj_bias)                   # (B, T, 3C)
    q, k, v = qkv.view(B, T, 3, H, C // H).permute(2, 0, 3, 1, 4)                 # (B, H, T, D) each
    scores = einsum("bhtd,bhsd->bhts", q, k) / math.sqrt(C // H)                  # (B, H, T, T)
    if padding_mask is not None:
        scores = scores.masked_fill(padding_mask[:, None, None, :], float("-inf"))
    if attn_mask is not None:
        scores = scores.masked_fill(attn_mask, float("-inf"))
    weights = F.dropout(scores.softmax(-1), layer.dropout, training)
    mixed = einsum("bhts,bhsd->bthd", weights, v).reshape(B, T, C)
    return F.linear(mixed, layer.out_proj.weight, layer.out_proj.bias)


class TransformerEncoderBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, dropout=0.1, activation="relu"):
        super().__init__()
        self.attention = nn.MultiheadAttention(d_model, n_heads, dropout=dropout, batch_first=True)
        self.ff = FeedForward(d_model, d_ff, activation)
        self.norm1 = LayerNorm(d_model)
        self.norm2 = LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def drop(self, x):
        return F.dropout(x, self.dropout.p, self.training)

    def listen(self, x, padding_mask, attn_mask):
        return self.drop(attend(self.attention, x, padding_mask, attn_mask, self.training))

    def forward(self, x, padding_mask=None, attn_mask=None):
        x = self.norm1(torch.add(x, self.listen(x, padding_mask, attn_mask)))
        return self.norm2(torch.add(x, self.drop(self.ff(x))))


class PreNormBlock(TransformerEncoderBlock):
    def forward(self, x, padding_mask=None, attn_mask=None):
        x = torch.add(x, self.listen(self.norm1(x), padding_mask, attn_mask))
        return torch.add(x, self.drop(self.ff(self.norm2(x))))


class TransformerEncoder(nn.Module):
    def __init__(self, vocab_size, d_model=128, n_heads=4, n_layers=2, d_ff=256, max_len=64, dropout=0.1):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_model)
        rates = 10000.0 ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
        angles = einsum("p,i->pi", torch.arange(max_len, dtype=torch.float64), rates)
        table = torch.stack([angles.sin(), angles.cos()], -1).reshape(max_len, -1)[:, :d_model]
        self.register_buffer("pe", table.float())
        blocks = {str(n): TransformerEncoderBlock(d_model, n_heads, d_ff, dropout) for n in range(n_layers)}
        self.layers = nn.ModuleList(blocks.values())
        self.norm = LayerNorm(d_model)
        self.p = dropout

    def forward(self, token_ids, padding_mask=None):
        T = token_ids.shape[1]
        if not len(self.pe) >= T:
            raise ValueError(f"T = {T} > max_len = {len(self.pe)}")
        x = F.embedding(token_ids, self.embedding.weight) + self.pe.narrow(0, 0, T)
        x = F.dropout(x, self.p, training=self.training)
        for layer in self.layers:
            x = layer(x, padding_mask, None)
        return self.norm(x)
