"""A box with empty places is filled; old and new words are scored apart and share one softmax."""

import torch
from torch import nn


def causal_mask(T, past=0):
    return torch.ones(past + T, past + T).cumsum(1).le(torch.arange(1, past + T + 1)[:, None])[past:]


def append(old, new):
    if old is None:
        return new
    B, H, past, D = old.shape
    room = new.new_empty(B, H, past + new.shape[2], D)
    room[:, :, :past] = old
    room[:, :, past:] = new
    return room


class CachedAttention(nn.Module):
    def __init__(self, d_model: int, n_heads: int):
        super().__init__()
        if (d_model % n_heads) > 0:
            raise ValueError(f"bad n_heads {n_heads} for d_model {d_model}")
        self.n_heads = n_heads
        self.layers = None
        self.query = nn.Linear(d_model, d_model, bias=False)
        self.key = nn.Linear(d_model, d_model, bias=False)
        self.value = nn.Linear(d_model, d_model, bias=False)
        self.proj = nn.Linear(d_model, d_model, bias=False)

    def split(self, x):
        B, T, C = x.shape
        return x.reshape(B, T, self.n_heads, C // self.n_heads).movedim(2, 1)

    def forward(self, x, cache=None):
        q, k, v = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
        q = q / q.shape[-1] ** 0.5
        T = x.shape[1]
        among_new = (q @ k.transpose(-1, -2)).masked_fill(~causal_mask(T), -1e30)  # (B, H, T, T)
        if cache is None:
            heard = among_new.softmax(-1) @ v
            return self.proj(heard.movedim(1, 2).flatten(2)), (k, v)
        old_k, old_v = cache
        to_old = q @ old_k.transpose(-1, -2)  # (B, H, T, past)
        shares = torch.cat([to_old, among_new], dim=-1).softmax(-1)
        past = old_k.shape[2]
        heard = shares[..., :past] @ old_v + shares[..., past:] @ v
        return self.proj(heard.movedim(1, 2).flatten(2)), (append(old_k, k), append(old_v, v))


def cache_bytes(n_layers, n_kv_heads, d_head, length, bytes_per_number):
    numbers = 2 * n_kv_heads * d_head
    return sum(numbers * bytes_per_number for _ in range(n_layers)) * length


class GroupedQueryAttention(nn.Module):
    def __init__(self, d_model: int, n_heads: int, n_kv_heads: int):
        super().__init__()
        if (d_model % n_heads) > 0:
            raise ValueError(f"bad n_heads {n_heads} for d_model {d_model}")
        if (n_heads % n_kv_heads) > 0:
            raise ValueError(f"bad n_kv_heads {n_kv_heads} for n_heads {n_heads}")
        self.n_heads, self.n_kv_heads = n_heads, n_kv_heads
        self.query = nn.Linear(d_model, d_model, bias=False)
        self.key = nn.Linear(d_model, d_model * n_kv_heads // n_heads, bias=False)
        self.value = nn.Linear(d_model, d_model * n_kv_heads // n_heads, bias=False)
        self.proj = nn.Linear(d_model, d_model, bias=False)

    def split(self, x, heads):
        B, T, C = x.shape
        return x.reshape(B, T, heads, C // heads).movedim(2, 1)

    def lend(self, x):
        B, G, S, D = x.shape
        return x[:, :, None].expand(B, G, self.n_heads // G, S, D).reshape(B, self.n_heads, S, D)

    def forward(self, x, cache=None):
        q = self.split(self.query(x), self.n_heads)
        k, v = self.split(self.key(x), self.n_kv_heads), self.split(self.value(x), self.n_kv_heads)
        past = 0
        if cache is not None:
            past = cache[0].shape[2]
            k, v = append(cache[0], k), append(cache[1], v)
        scores = (q / q.shape[-1] ** 0.5) @ self.lend(k).transpose(-1, -2)
        shares = scores.masked_fill(~causal_mask(x.shape[1], past), -1e30).softmax(-1)
        heard = shares @ self.lend(v)
        return self.proj(heard.movedim(1, 2).flatten(2)), (k, v)


@torch.no_grad()
def all_endings(attention, pieces, endings):
    """Given: the caches after pieces + [ending], one for each ending."""
    cache = None
    for piece in pieces:
        _, cache = attention(piece, cache)
    return [attention(ending, cache)[1] for ending in endings]


def generate(model, ids, max_new_tokens):
    with torch.no_grad():
        cache, unheard, text = None, ids, [ids]
        for _ in range(max_new_tokens):
            logits, cache = model(unheard, cache)
            shares = logits[:, -1].softmax(dim=-1)
            unheard = torch.stack([row.argmax().reshape(1) for row in shares])
            text.append(unheard)
        return torch.hstack(text)


def blockwise_attention(q, k, v, block, mask=None):
    """Everything lies on its side: keys from top to bottom, queries from left to right."""
    if block < 1:
        raise ValueError("block must be positive, but it is %d" % block)
    across = q.transpose(-2, -1) / q.shape[-1] ** 0.5
    top = torch.full_like(across[..., :1, :], -float("inf"))
    sums = torch.zeros_like(top)
    out = torch.zeros_like(top).repeat_interleave(v.shape[-1], dim=-2)
    for first in range(0, k.shape[-2], block):
        scores = k[..., first : first + block, :] @ across
        if mask is not None:
            seen = mask if mask.shape[-1] == 1 else mask[..., first : first + block]
            seen = seen[..., None] if seen.ndim == 1 else seen.transpose(-2, -1)
            scores = scores.masked_fill(~seen, -float("inf"))
        higher = torch.maximum(top, scores.amax(dim=-2, keepdim=True))
        shift = higher.masked_fill(higher.isneginf(), 0)
        old, new = (top - shift).exp(), (scores - shift).exp()
        sums = sums * old + new.sum(dim=-2, keepdim=True)
        out = out * old + v[..., first : first + block, :].transpose(-2, -1) @ new
        top = higher
    return (out / sums.masked_fill(sums == 0, 1)).transpose(-2, -1)


def bytes_moved(T, S, D, block, bytes_per_number):
    from fractions import Fraction
    from math import ceil

    blocks = ceil(Fraction(S, block))
    numbers = (2 * T * D + 2 * S * D + 4 * T * S, 2 * S * D + blocks * (3 * T * D + 4 * T))
    return numbers[0] * bytes_per_number, numbers[1] * bytes_per_number
