"""As short as it goes."""

import torch
import torch.nn.functional as F
from torch import nn


class CrossAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.query, self.key, self.value, self.proj = (nn.Linear(d_model, d_model) for _ in range(4))
        if d_model % n_heads > 0:
            raise ValueError(f"{d_model=} is not a multiple of {n_heads=}")
        self.cut = lambda x: torch.stack(x.chunk(n_heads, -1), 1)

    def forward(self, y, memory, memory_padding_mask=None):
        mask = None if memory_padding_mask is None else (memory_padding_mask == 0)[:, None, None]
        out = F.scaled_dot_product_attention(*map(self.cut, (self.query(y), self.key(memory), self.value(memory))), mask)
        return self.proj(torch.cat(out.unbind(1), -1))


class DecoderBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, dropout=0.1):
        super().__init__()
        self.self_attention = nn.MultiheadAttention(d_model, n_heads, dropout=dropout, batch_first=True)
        self.ff = nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model))
        self.cross_attention, self.dropout = CrossAttention(d_model, n_heads), nn.Dropout(dropout)
        self.norm1, self.norm2, self.norm3 = [nn.LayerNorm(d_model) for _ in range(3)]

    def forward(self, y, memory, memory_padding_mask=None):
        late = ~torch.tril(torch.ones(y.shape[1], y.shape[1])).bool()
        y = self.norm1(y + self.dropout(self.self_attention(y, y, y, attn_mask=late)[0]))
        y = self.norm2(y + self.dropout(self.cross_attention(y, memory, memory_padding_mask)))
        return self.norm3(y + self.dropout(self.ff(y)))


def shift_right(targets, bos_id):
    return torch.hstack([targets.new_full((targets.shape[0], 1), bos_id), targets])[:, :-1]


class Translator(nn.Module):
    def __init__(self, vocab_size, d_model, n_heads, n_layers, d_ff, max_len, dropout=0.0):
        super().__init__()
        self.token_embedding = nn.Embedding(vocab_size, d_model)
        self.position_embedding = nn.Embedding(max_len, d_model)
        self.encoder = nn.ModuleList(
            nn.TransformerEncoderLayer(d_model, n_heads, d_ff, dropout, batch_first=True)
            for _ in range(n_layers)
        )
        self.decoder = nn.ModuleList([DecoderBlock(d_model, n_heads, d_ff, dropout) for _ in self.encoder])
        self.head = nn.Linear(d_model, vocab_size)

    def embed(self, ids):
        T, max_len = ids.shape[1], self.position_embedding.num_embeddings
        if T > max_len:
            raise ValueError(f"A sentence of {T} words is longer than max_len = {max_len}.")
        return self.token_embedding(ids) + self.position_embedding.weight[:T]

    def encode(self, src, src_padding_mask=None, layers=None):
        layers = list(self.encoder) if layers is None else layers
        *below, last = layers or [None]
        return last(self.encode(src, src_padding_mask, below), None, src_padding_mask) if last else self.embed(src)

    def decode(self, y, memory, memory_padding_mask=None):
        from functools import reduce

        return self.head(reduce(lambda x, block: block(x, memory, memory_padding_mask), self.decoder, self.embed(y)))

    def forward(self, src, y, src_padding_mask=None):
        return self.decode(y, self.encode(src, src_padding_mask), src_padding_mask)


def greedy_decode(model, src, bos_id, eos_id, pad_id, max_len):
    if max_len < 1:
        raise ValueError(f"{max_len=}: at least 1")
    mode, _ = model.training, model.eval()
    torch_was_learning = torch.is_grad_enabled()
    torch.set_grad_enabled(False)
    mask = src == pad_id
    memory, said = model.encode(src, mask), torch.full((src.shape[0], 1), bos_id)
    while said.shape[1] <= max_len and not (said == eos_id).any(1).all():
        said = torch.cat([said, model.decode(said, memory, mask)[:, -1].topk(1).indices], 1)
    torch.set_grad_enabled(torch_was_learning)
    model.train(mode)
    over = ((said == eos_id).cumsum(1) - (said == eos_id).int()) > 0
    return said.masked_fill(over, pad_id)[:, 1:]
