"""Loops: each new word looks through exactly the cards that it may see, so no mask is needed in the layer."""

import math

import torch
from torch import nn


def causal_mask(T, past=0):
    rows = [[s <= past + t for s in range(past + T)] for t in range(T)]
    return torch.tensor(rows)


class CachedAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        if d_model % n_heads != 0:
            raise ValueError("d_model must be a multiple of n_heads, not %d for %d" % (d_model, n_heads))
        self.n_heads = n_heads
        self.head_size = d_model // n_heads
        for name in ("query", "key", "value", "proj"):
            setattr(self, name, nn.Linear(d_model, d_model, bias=False))

    def forward(self, x, cache=None):
        answers = []
        for t in range(x.shape[1]):
            answer, cache = self.one_word(x[:, t], cache)
            answers.append(answer)
        return torch.stack(answers, dim=1), cache

    def one_word(self, word, cache):
        shape = (word.shape[0], self.n_heads, 1, self.head_size)
        query = self.query(word).view(shape)
        key = self.key(word).view(shape)
        value = self.value(word).view(shape)
        if cache is None:
            keys, values = key, value
        else:
            keys, values = torch.cat([cache[0], key], 2), torch.cat([cache[1], value], 2)
        scores = (query * keys).sum(dim=-1, keepdim=True) / math.sqrt(self.head_size)
        shares = torch.softmax(scores, dim=2)
        heard = (shares * values).sum(dim=2)
        return self.proj(heard.reshape(word.shape)), (keys, values)


def cache_bytes(n_layers, n_kv_heads, d_head, length, bytes_per_number):
    return math.prod([2, n_layers, n_kv_heads, d_head, length, bytes_per_number])


class GroupedQueryAttention(nn.Module):
    def __init__(self, d_model, n_heads, n_kv_heads):
        super().__init__()
        if d_model % n_heads != 0:
            raise ValueError("d_model must be a multiple of n_heads, not %d for %d" % (d_model, n_heads))
        if n_heads % n_kv_heads != 0:
            raise ValueError("n_heads must be a multiple of n_kv_heads, not %d for %d" % (n_heads, n_kv_heads))
        self.n_kv_heads = n_kv_heads
        self.head_size = d_model // n_heads
        for name in ("query", "proj"):
            setattr(self, name, nn.Linear(d_model, d_model, bias=False))
        for name in ("key", "value"):
            setattr(self, name, nn.Linear(d_model, n_kv_heads * self.head_size, bias=False))

    def forward(self, x, cache=None):
        answers = []
        for t in range(x.shape[1]):
            answer, cache = self.one_word(x[:, t], cache)
            answers.append(answer)
        return torch.stack(answers, dim=1), cache

    def one_word(self, word, cache):
        queries = self.query(word).view(word.shape[0], self.n_kv_heads, -1, self.head_size)  # (B, G, H / G, D)
        keys = self.key(word).view(word.shape[0], self.n_kv_heads, 1, self.head_size)
        values = self.value(word).view(word.shape[0], self.n_kv_heads, 1, self.head_size)
        if cache is not None:
            keys, values = torch.cat([cache[0], keys], 2), torch.cat([cache[1], values], 2)
        scores = queries @ keys.transpose(2, 3) / math.sqrt(self.head_size)
        heard = torch.softmax(scores, dim=-1) @ values
        return self.proj(heard.reshape(word.shape)), (keys, values)


@torch.no_grad()
def all_endings(attention, pieces, endings):
    """Given: the caches after pieces + [ending], one for each ending."""
    cache = None
    for piece in pieces:
        _, cache = attention(piece, cache)
    return [attention(ending, cache)[1] for ending in endings]


def generate(model, ids, max_new_tokens):
    text, cache, begin = ids.clone(), None, 0
    with torch.no_grad():
        for _ in range(max_new_tokens):
            logits, cache = model(text[:, begin:], cache)
            begin = text.shape[1]
            best = logits[:, -1, :].max(dim=-1).indices
            text = torch.cat((text, best.unsqueeze(1)), dim=1)
    return text


def blockwise_attention(q, k, v, block, mask=None):
    """By recursion: the part of the first keys, and then one block more."""
    if block < 1:
        raise ValueError(f"a block of {block} keys")
    top, weight, mixture = read(q, k, v, block, mask, k.shape[-2])
    return mixture / weight.masked_fill(weight == 0, 1)


def read(q, k, v, block, mask, stop):
    if stop <= 0:
        nothing = q.new_zeros(q.shape[:-1]).unsqueeze(-1)
        return nothing - math.inf, nothing, nothing * v.new_zeros(v.shape[-1])
    begin = (stop - 1) // block * block
    top, weight, mixture = read(q, k, v, block, mask, begin)
    scores = torch.matmul(q, k[..., begin:stop, :].transpose(-2, -1)) / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~(mask[..., begin:stop] if mask.shape[-1] != 1 else mask), -math.inf)
    new_top = torch.maximum(top, scores.amax(-1, True).detach())
    known = torch.nan_to_num(new_top, neginf=0.0)
    parts = torch.exp(scores - known)
    before = torch.exp(top - known)
    return new_top, before * weight + parts.sum(-1, True), before * mixture + parts @ v[..., begin:stop, :]


def bytes_moved(T, S, D, block, bytes_per_number):
    whole = 2 * T * D + 2 * S * D + 4 * T * S
    blocks = 2 * S * D + -(-S // block) * (3 * T * D + 4 * T)
    return tuple(bytes_per_number * numbers for numbers in (whole, blocks))
