"""Each word draws its fate from a hat: small functions with one task each."""

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy


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


IGNORE = -100
UNTOUCHED, MASKED, REPLACED, KEPT = range(4)


def draw_fates(asked, p, generator):
    hat = torch.tensor([1 - p, 0.8 * p, 0.1 * p, 0.1 * p])
    fates = torch.multinomial(hat, asked.numel(), replacement=True, generator=generator)
    return fates.reshape(asked.shape) * asked


def mask_tokens(ids, vocab_size, mask_id, special_ids, generator, p=0.15):
    if p < 0 or p > 1:
        raise ValueError(f"p should be in [0, 1], not {p}")
    special = torch.tensor(sorted({mask_id, *special_ids}))
    ordinary = torch.tensor(sorted(set(range(vocab_size)) - set(special.tolist())))
    fates = draw_fates(torch.isin(ids, special, invert=True), p, generator)
    picks = (torch.rand(ids.shape, generator=generator) * len(ordinary)).long().clamp(max=len(ordinary) - 1)

    inputs = ids.clone()
    inputs[fates == MASKED] = mask_id
    inputs[fates == REPLACED] = ordinary[picks][fates == REPLACED]
    labels = torch.full_like(ids, IGNORE)
    labels[fates > UNTOUCHED] = ids[fates > UNTOUCHED]
    return inputs, labels


def masked_language_model_loss(logits, labels):
    each = cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=IGNORE, reduction="none")
    asked = int((labels != IGNORE).sum())
    return each.sum() / asked if asked else 0.0 * logits.sum()


class WayOut(nn.Sequential):
    """dense, GELU, norm, in a row."""


class MaskedLanguageModel(nn.Module):
    def __init__(self, vocab_size, d_model=128, n_heads=4, n_layers=2, d_ff=256, max_len=64, dropout=0.1):
        super().__init__()
        self.encoder = Encoder(vocab_size, d_model, n_heads, n_layers, d_ff, max_len, dropout)
        self.dense = nn.Linear(d_model, d_model)
        self.norm = nn.LayerNorm(d_model, eps=1e-5)
        self.bias = nn.Parameter(torch.zeros(vocab_size))

    def forward(self, ids, padding_mask=None):
        vectors = self.encoder(ids, padding_mask).flatten(0, 1)
        out = WayOut(self.dense, nn.GELU(), self.norm)(vectors)
        return torch.addmm(self.bias, out, self.encoder.token_embedding.weight.t()).unflatten(
            0, tuple(ids.shape)
        )
