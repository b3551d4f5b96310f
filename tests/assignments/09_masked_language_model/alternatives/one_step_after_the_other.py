"""Copies that are filled place by place, the rest of the rest with its own chance, and a tied linear layer."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor


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
    def __init__(self, vocab_size, d_model=128, n_heads=4, n_layers=2, d_ff=256, max_len=64, dropout=0.1):
        super().__init__()
        self.encoder = Encoder(vocab_size, d_model, n_heads, n_layers, d_ff, max_len, dropout)
        self.dense = nn.Linear(d_model, d_model)
        self.activation = nn.GELU()
        self.norm = nn.LayerNorm(d_model)
        self.decoder = nn.Linear(d_model, vocab_size)
        self.decoder.weight = self.encoder.token_embedding.weight
        self.decoder.bias = self.bias = nn.Parameter(torch.zeros(vocab_size))

    def forward(self, ids, padding_mask=None):
        hidden = self.encoder(ids, padding_mask=padding_mask)
        return self.decoder(self.norm(self.activation(self.dense(hidden))))


def mask_tokens(ids, vocab_size, mask_id, special_ids, generator, p=0.15):
    if p < 0.0 or p > 1.0:
        raise ValueError(f"p={p}")
    inputs, labels = ids.clone(), ids.clone()

    chances = torch.full(ids.shape, float(p))
    for special in set(special_ids) | {mask_id}:
        chances[ids == special] = 0.0
    chosen = torch.bernoulli(chances, generator=generator).bool()
    labels[~chosen] = -100

    masked = torch.bernoulli(torch.full(ids.shape, 0.8), generator=generator).bool() & chosen
    inputs[masked] = mask_id

    half_of_the_rest = torch.bernoulli(torch.full(ids.shape, 0.5), generator=generator).bool()
    replaced = half_of_the_rest & chosen & ~masked
    weights = torch.ones(vocab_size)
    weights[list(special_ids)] = 0.0
    weights[mask_id] = 0.0
    count = int(replaced.sum())
    if count:
        inputs[replaced] = torch.multinomial(weights, count, replacement=True, generator=generator)
    return inputs, labels


def masked_language_model_loss(logits, labels):
    loss = F.cross_entropy(logits.permute(0, 2, 1), labels, ignore_index=-100)
    return torch.where((labels == -100).all(), 0.0, loss)
