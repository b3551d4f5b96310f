"""One block as the pattern, and as many deep copies of it as there are layers, as PyTorch's own encoder has them."""

import copy

import torch
from torch import nn
from torch.nn import functional as F


def layer_norm(x, gamma, beta, eps=1e-5):
    var, mean = torch.var_mean(x, dim=-1, correction=0, keepdim=True)
    return torch.addcmul(beta, (x - mean) / (var + eps).sqrt(), gamma)


class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))
        self.eps = eps

    def forward(self, x):
        return layer_norm(x, self.gamma, self.beta, self.eps)


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, activation="relu"):
        super().__init__()
        try:
            self.phi = {"relu": nn.ReLU(), "gelu": nn.GELU()}[activation]
        except KeyError:
            raise ValueError(f"no activation is called {activation}") from None
        self.linear2 = nn.Linear(d_ff, d_model)
        self.linear1 = nn.Linear(d_model, d_ff)

    def forward(self, x):
        return self.linear2(self.phi(self.linear1(x)))


class TransformerEncoderBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, dropout=0.1, activation="relu"):
        super().__init__()
        self.attention = nn.MultiheadAttention(d_model, n_heads, dropout=dropout, batch_first=True)
        self.ff = FeedForward(d_model, d_ff, activation)
        self.norm1, self.norm2 = LayerNorm(d_model), LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def listen(self, x, padding_mask, attn_mask):
        """Both masks as one, a (T, T) table for each sentence and head."""
        B, T, _ = x.shape
        deaf = torch.zeros(B, T, T, dtype=torch.bool, device=x.device)
        if padding_mask is not None:
            deaf |= padding_mask[:, None, :]
        if attn_mask is not None:
            deaf |= attn_mask
        deaf = deaf.repeat_interleave(self.attention.num_heads, dim=0)
        return self.dropout(self.attention(x, x, x, attn_mask=deaf)[0])

    def forward(self, x, padding_mask=None, attn_mask=None):
        h = self.norm1(x + self.listen(x, padding_mask, attn_mask))
        return self.norm2(h + self.dropout(self.ff(h)))


class PreNormBlock(TransformerEncoderBlock):
    def forward(self, x, padding_mask=None, attn_mask=None):
        h = x + self.listen(self.norm1(x), padding_mask, attn_mask)
        return h + self.dropout(self.ff(self.norm2(h)))


def sinusoidal_table(max_len, d_model):
    speeds = 10000.0 ** (-torch.arange(0, d_model, 2).double() / d_model)
    angles = torch.outer(torch.arange(max_len).double(), speeds)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)[:, :d_model].float()


class TransformerEncoder(nn.Module):
    def __init__(self, vocab_size, d_model=128, n_heads=4, n_layers=2, d_ff=256, max_len=64, dropout=0.1):
        super().__init__()
        pattern = TransformerEncoderBlock(d_model, n_heads, d_ff, dropout)
        self.layers = nn.ModuleList([copy.deepcopy(pattern) for _ in range(n_layers)])
        self.norm = LayerNorm(d_model)
        self.embedding = nn.Embedding(vocab_size, d_model)
        self.register_buffer("pe", sinusoidal_table(max_len, d_model))
        self.dropout = nn.Dropout(dropout)

    def forward(self, token_ids, padding_mask=None):
        T, most = token_ids.shape[-1], len(self.pe)
        if T > most:
            raise ValueError(f"max_len is {most}, the sentence has T={T} tokens")
        seats = torch.arange(T, device=token_ids.device)
        x = self.dropout(self.embedding(token_ids) + F.embedding(seats, self.pe))
        for layer in self.layers:
            x = layer(x, padding_mask=padding_mask)
        return self.norm(x)
