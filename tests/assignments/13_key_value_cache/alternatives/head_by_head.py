"""One head after the other, each with its own strip of the tables; the mask is added to the scores."""

import torch
from torch import nn


def causal_mask(T, past=0):
    return torch.cat([torch.ones(T, past), torch.ones(T, T).tril()], dim=1) == 1


class CachedAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        if n_heads < 1 or d_model // n_heads * n_heads != d_model:
            raise ValueError(f"d_model {d_model} cannot be shared by n_heads={n_heads}")
        self.query, self.key, self.value, self.proj = (
            nn.Linear(d_model, d_model, bias=False) for _ in range(4)
        )
        self.n_heads = n_heads

    def forward(self, x, cache=None):
        past = 0 if cache is None else cache[0].size(2)
        closed = torch.zeros(x.size(1), past + x.size(1), dtype=x.dtype)
        closed[~causal_mask(x.size(1), past)] = float("-inf")
        strips = zip(*(layer(x).chunk(self.n_heads, dim=-1) for layer in (self.query, self.key, self.value)))
        heard, all_keys, all_values = [], [], []
        for h, (q, k, v) in enumerate(strips):  # (B, T, D)
            if cache is not None:
                k = torch.cat([cache[0][:, h], k], dim=1)  # (B, S, D)
                v = torch.cat([cache[1][:, h], v], dim=1)  # (B, S, D)
            scores = torch.baddbmm(closed, q, k.mT, alpha=q.size(-1) ** -0.5)
            heard.append(torch.softmax(scores, -1) @ v)
            all_keys.append(k)
            all_values.append(v)
        return self.proj(torch.cat(heard, -1)), (torch.stack(all_keys, 1), torch.stack(all_values, 1))


def cache_bytes(n_layers, n_kv_heads, d_head, length, bytes_per_number):
    total = 0
    for _ in ("keys", "values"):
        total += n_layers * n_kv_heads * d_head * length * bytes_per_number
    return total


class GroupedQueryAttention(nn.Module):
    def __init__(self, d_model, n_heads, n_kv_heads):
        super().__init__()
        if d_model // n_heads * n_heads != d_model:
            raise ValueError(f"d_model {d_model} cannot be shared by n_heads={n_heads}")
        if n_heads // n_kv_heads * n_kv_heads != n_heads:
            raise ValueError(f"n_heads {n_heads} cannot be shared by n_kv_heads={n_kv_heads}")
        self.n_heads, self.n_kv_heads = n_heads, n_kv_heads
        width = d_model // n_heads * n_kv_heads
        self.query, self.proj = (nn.Linear(d_model, d_model, bias=False) for _ in range(2))
        self.key, self.value = (nn.Linear(d_model, width, bias=False) for _ in range(2))

    def forward(self, x, cache=None):
        keys = torch.stack(self.key(x).chunk(self.n_kv_heads, dim=-1), 1)
        values = torch.stack(self.value(x).chunk(self.n_kv_heads, dim=-1), 1)
        if cache is not None:
            keys, values = torch.cat([cache[0], keys], 2), torch.cat([cache[1], values], 2)
        mask = causal_mask(x.size(1), keys.size(2) - x.size(1))
        heard = []
        for h, q in enumerate(self.query(x).chunk(self.n_heads, dim=-1)):  # (B, T, D)
            g = h * self.n_kv_heads // self.n_heads
            scores = (q @ keys[:, g].mT * q.size(-1) ** -0.5).masked_fill(~mask, float("-inf"))
            heard.append(torch.softmax(scores, -1) @ values[:, g])
        return self.proj(torch.cat(heard, -1)), (keys, values)


@torch.no_grad()
def all_endings(attention, pieces, endings):
    """Given: the caches after pieces + [ending], one for each ending."""
    cache = None
    for piece in pieces:
        _, cache = attention(piece, cache)
    return [attention(ending, cache)[1] for ending in endings]


def generate(model, ids, max_new_tokens):
    def go_on(unheard, cache, left):
        if left == 0:
            return []
        logits, cache = model(unheard, cache=cache)
        word = logits[:, -1].topk(1).indices
        return [word, *go_on(word, cache, left - 1)]

    with torch.no_grad():
        return torch.cat([ids] + go_on(ids, None, max_new_tokens), dim=1)


NEVER = -1e30


def blockwise_attention(q, k, v, block, mask=None):
    """The largest score begins at a very small number, so no difference of infinities ever occurs."""
    if block < 1:
        raise ValueError("cannot read in blocks of " + str(block))
    q = q / q.shape[-1] ** 0.5
    best = torch.full_like(q[..., :1], NEVER)
    weight = torch.zeros_like(best)
    total = torch.zeros_like(best).repeat_interleave(v.shape[-1], dim=-1)
    start = 0
    while start < k.shape[-2]:
        stop = min(start + block, k.shape[-2])
        scores = q @ k[..., start:stop, :].mT
        if mask is not None:
            forbidden = ~(mask if mask.shape[-1] == 1 else mask[..., start:stop])
            scores = scores.masked_fill(forbidden, float("-inf"))
        new = torch.maximum(best, scores.amax(-1, keepdim=True))
        exps = torch.exp(scores - new)
        factor = torch.exp(best - new)
        weight = factor * weight + exps.sum(-1, keepdim=True)
        total = factor * total + exps @ v[..., start:stop, :]
        best, start = new, stop
    return total / torch.where(weight == 0, torch.ones_like(weight), weight)


def bytes_moved(T, S, D, block, bytes_per_number):
    numbers = 0
    for _ in range(0, S, block):
        numbers += T * D  # queries
        numbers += 2 * (T * D + T + T)  # what is kept, there and back
    return (2 * T * D + 2 * S * D + 4 * T * S) * bytes_per_number, (numbers + 2 * S * D) * bytes_per_number
