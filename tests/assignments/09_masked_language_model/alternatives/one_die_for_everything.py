"""One number between 0 and 1 for each word decides it all; the loss picks the asked places out."""

import torch
from torch import Tensor, nn


class Encoder(nn.Module):
    """Given. Words become vectors that know their sentence: (B, T) -> (B, T, C).

    Attributes: `token_embedding` (V, C) and `position_embedding` (max_len, C), the tables, `norm`, and `layers`.
    padding_mask (B, T), True marks padding, which nobody hears.
    """

    def __init__(
        self,
        vocab_size: int,
        d_model: int = 128,
        n_heads: int = 4,
        n_layers: int = 2,
        d_ff: int = 256,
        max_len: int = 64,
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

    def forward(self, ids: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        T, max_len = ids.shape[1], self.position_embedding.num_embeddings
        if T > max_len:
            raise ValueError(f"A sentence of {T} words is longer than max_len = {max_len}.")
        x = self.token_embedding(ids) + self.position_embedding.weight[:T]
        x = self.dropout(self.norm(x))
        for layer in self.layers:
            x = layer(x, src_key_padding_mask=padding_mask)
        return x


class MaskedLanguageModel(nn.Module):
    def __init__(self, vocab_size, d_model=128, *sizes, **named):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(vocab_size))
        self.norm = nn.LayerNorm(d_model)
        self.dense = nn.Linear(d_model, d_model)
        self.encoder = Encoder(vocab_size, d_model, *sizes, **named)

    def forward(self, ids, padding_mask=None):
        h = nn.functional.gelu(self.dense(self.encoder(ids, padding_mask)))
        return nn.functional.linear(self.norm(h), self.encoder.token_embedding.weight, self.bias)


def mask_tokens(ids, vocab_size, mask_id, special_ids, generator, p=0.15):
    if not (p >= 0 and p <= 1):
        raise ValueError(f"p: {p} is no chance at all")
    allowed = torch.ones(vocab_size, dtype=torch.bool)
    allowed[[*special_ids, mask_id]] = False
    words = allowed.nonzero().squeeze(1)

    die = torch.rand(*ids.shape, dtype=torch.float64, generator=generator)
    die = torch.where(allowed[ids], die, 2.0)
    noise = words[torch.randint(0, words.numel(), tuple(ids.shape), generator=generator)]

    labels = ids.masked_fill(die >= p, -100)
    inputs = torch.where(die < 0.1 * p, noise, ids)
    inputs = inputs.masked_fill((die >= 0.2 * p) & (die < p), mask_id)
    return inputs, labels


def masked_language_model_loss(logits, labels):
    asked = labels > -100
    right = labels[asked]
    shares = logits[asked].log_softmax(-1)
    surprise = -shares[torch.arange(len(right)), right]
    return surprise.sum() / max(len(right), 1)
