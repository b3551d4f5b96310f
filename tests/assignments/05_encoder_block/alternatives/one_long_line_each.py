"""As short as it gets: a lambda, nn.Sequential as the feed-forward layer, masks by position."""

import torch as t
import torch.nn as n

layer_norm = lambda x, gamma, beta, eps=1e-5: gamma * (  # noqa: E731
    (d := x - x.mean(-1, True)) / (d.pow(2).mean(-1, True) + eps).sqrt()
) + beta


class LayerNorm(n.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.gamma, self.beta, self.eps = n.Parameter(t.ones(d_model)), n.Parameter(t.zeros(d_model)), eps

    def forward(self, x):
        return layer_norm(x, self.gamma, self.beta, self.eps)


class FeedForward(n.Sequential):
    def __init__(self, d_model, d_ff, activation="relu"):
        if (switch := {"relu": n.ReLU, "gelu": n.GELU}.get(activation)) is None:
            raise ValueError(f"activation {activation!r}")
        super().__init__()
        self.add_module("linear1", n.Linear(d_model, d_ff))
        self.add_module("switch", switch())
        self.add_module("linear2", n.Linear(d_ff, d_model))


class TransformerEncoderBlock(n.Module):
    def __init__(self, d_model, n_heads, d_ff, dropout=0.1, activation="relu"):
        super().__init__()
        self.attention = n.MultiheadAttention(d_model, n_heads, dropout, batch_first=True)
        self.ff, self.dropout = FeedForward(d_model, d_ff, activation), n.Dropout(dropout)
        self.norm1, self.norm2 = (LayerNorm(d_model) for _ in "12")

    def forward(self, x, padding_mask=None, attn_mask=None):
        x = self.norm1(x + self.dropout(self.attention(x, x, x, padding_mask, False, attn_mask)[0]))
        return self.norm2(x + self.dropout(self.ff(x)))


class PreNormBlock(TransformerEncoderBlock):
    def forward(self, x, padding_mask=None, attn_mask=None):
        x = x + self.dropout(self.attention(y := self.norm1(x), y, y, padding_mask, False, attn_mask)[0])
        return x + self.dropout(self.ff(self.norm2(x)))


class TransformerEncoder(n.Module):
    def __init__(self, vocab_size, d_model=128, n_heads=4, n_layers=2, d_ff=256, max_len=64, dropout=0.1):
        super().__init__()
        self.embedding, self.norm = n.Embedding(vocab_size, d_model), LayerNorm(d_model)
        self.dropout = n.Dropout(dropout)
        a = t.arange(max_len).double().outer(1e4 ** (-t.arange(0, d_model, 2).double() / d_model))
        self.register_buffer("pe", t.stack((a.sin(), a.cos()), 2).flatten(1)[:, :d_model].float())
        blocks = (TransformerEncoderBlock(d_model, n_heads, d_ff, dropout) for _ in range(n_layers))
        self.layers = n.ModuleList(blocks)

    def forward(self, token_ids, padding_mask=None):
        if (T := token_ids.shape[1]) > (longest := len(self.pe)):
            raise ValueError(f"{T=} is more than max_len={longest}")
        x = self.dropout(self.embedding(token_ids) + self.pe[:T])
        for layer in self.layers:
            x = layer(x, padding_mask)
        return self.norm(x)
