"""The chosen words are shuffled and cut into three piles: masks, random words, and words that stay."""

import torch
from torch import Tensor, einsum, nn


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
    if p != min(max(p, 0), 1):
        raise ValueError(f"{p = } is not a chance")
    special = torch.zeros(vocab_size, dtype=torch.bool).index_fill(
        0, torch.tensor([*special_ids, mask_id]), True
    )
    words = torch.arange(vocab_size)[~special]

    inputs, labels = ids.flatten().clone(), torch.full((ids.numel(),), -100)
    candidates = (~special[inputs]).nonzero().flatten()
    candidates = candidates[torch.empty(len(candidates)).uniform_(generator=generator) < p]
    labels[candidates] = inputs[candidates]

    pile = candidates[torch.randperm(len(candidates), generator=generator)]
    n = len(pile)
    masked, other = pile[: round(0.8 * n)], pile[round(0.8 * n) : round(0.9 * n)]
    inputs[masked] = mask_id
    inputs[other] = words[torch.randint(len(words), (len(other),), generator=generator)]
    return inputs.view(ids.shape), labels.view(ids.shape)


def masked_language_model_loss(logits, labels):
    asked = labels.ne(-100)
    right = torch.zeros_like(logits).scatter(-1, labels.where(asked, 0)[..., None], 1.0) * asked[..., None]
    best = logits.detach().amax(-1, keepdim=True)
    shares = logits - best - (logits - best).exp().sum(-1, keepdim=True).log()
    return -(right * shares).sum() / asked.sum().clamp_min(1)


class MaskedLanguageModel(nn.Module):
    def __init__(self, vocab_size, d_model=128, n_heads=4, n_layers=2, d_ff=256, max_len=64, dropout=0.1):
        super().__init__()
        self.encoder = Encoder(vocab_size, d_model, n_heads, n_layers, d_ff, max_len, dropout)
        self.dense, self.norm = nn.Linear(d_model, d_model), nn.LayerNorm(d_model)
        self.register_parameter("bias", nn.Parameter(torch.zeros(vocab_size)))

    def forward(self, ids, padding_mask=None):
        h = einsum("btc,dc->btd", self.encoder(ids, padding_mask), self.dense.weight) + self.dense.bias
        h = self.norm(0.5 * h * (1 + torch.erf(h / 2**0.5)))
        return einsum("btc,vc->btv", h, self.encoder.token_embedding.weight) + self.bias
