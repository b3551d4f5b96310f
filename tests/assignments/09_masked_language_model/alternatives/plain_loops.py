"""Word by word, as one would do it with a pencil."""

import torch
import torch.nn.functional as F
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


def mask_tokens(ids, vocab_size, mask_id, special_ids, generator, p=0.15):
    if p < 0:
        raise ValueError("p = %r is less than nothing" % p)
    if p > 1:
        raise ValueError("p = %r is more than always" % p)
    special = set(special_ids)
    special.add(mask_id)
    ordinary = [word for word in range(vocab_size) if word not in special]
    dice = iter(torch.rand(3 * ids.numel(), generator=generator).tolist())

    inputs, labels = [], []
    for row in ids.tolist():
        seen, asked = [], []
        for word in row:
            if word in special or next(dice) >= p:
                seen.append(word)
                asked.append(-100)
                continue
            asked.append(word)
            fate = next(dice)
            if fate < 0.8:
                seen.append(mask_id)
            elif fate < 0.9:
                seen.append(ordinary[int(next(dice) * len(ordinary))])
            else:
                seen.append(word)
        inputs.append(seen)
        labels.append(asked)
    return torch.tensor(inputs), torch.tensor(labels)


def masked_language_model_loss(logits, labels):
    total, asked = logits.sum() * 0, 0
    for b in range(labels.size(0)):
        for t in range(labels.size(1)):
            if labels[b, t] != -100:
                total = total + torch.logsumexp(logits[b, t], dim=0) - logits[b, t, labels[b, t]]
                asked += 1
    if asked == 0:
        return total
    return total / asked


class MaskedLanguageModel(nn.Module):
    def __init__(self, vocab_size, d_model=128, n_heads=4, n_layers=2, d_ff=256, max_len=64, dropout=0.1):
        super().__init__()
        self.encoder = Encoder(vocab_size, d_model, n_heads, n_layers, d_ff, max_len, dropout)
        self.dense = nn.Linear(d_model, d_model)
        self.norm = nn.LayerNorm(d_model)
        self.bias = nn.Parameter(torch.randn(vocab_size) * 0)

    def forward(self, ids, padding_mask=None):
        vectors = self.encoder(ids, padding_mask)
        places = []
        for t in range(ids.size(1)):
            thought = self.norm(F.gelu(self.dense(vectors[:, t])))
            places.append(thought.matmul(self.encoder.token_embedding.weight.t()) + self.bias)
        return torch.stack(places, dim=1)
