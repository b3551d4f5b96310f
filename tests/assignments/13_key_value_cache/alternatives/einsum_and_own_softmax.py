"""Scores, softmax and blend by hand, with einsum; the mask compares two rulers."""

import torch
from torch import einsum, nn


def causal_mask(T, past=0):
    listeners = torch.arange(past, past + T)
    speakers = torch.arange(past + T)
    return speakers[None, :] <= listeners[:, None]


class CachedAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        if d_model % n_heads:
            raise ValueError(f"{d_model=} is no multiple of {n_heads=}")
        self.D = d_model // n_heads
        self.query = nn.Linear(d_model, d_model, bias=False)
        self.key = nn.Linear(d_model, d_model, bias=False)
        self.value = nn.Linear(d_model, d_model, bias=False)
        self.proj = nn.Linear(d_model, d_model, bias=False)

    def heads(self, layer, x):
        table = layer.weight.unflatten(0, (-1, self.D))  # (H, D, C)
        return einsum("btc,hdc->bhtd", x, table)  # (B, H, T, D)

    def forward(self, x, cache=None):
        if cache is None:
            nothing = x.new_zeros(x.shape[0], x.shape[2] // self.D, 0, self.D)
            cache = nothing, nothing
        q = self.heads(self.query, x)
        k = torch.cat((cache[0], self.heads(self.key, x)), dim=-2)
        v = torch.cat((cache[1], self.heads(self.value, x)), dim=-2)
        scores = einsum("bhtd,bhsd->bhts", q, k) / self.D**0.5
        hidden = ~causal_mask(x.shape[1], cache[0].shape[-2])
        weights = scores.masked_fill(hidden, -torch.inf).softmax(dim=-1)
        heard = einsum("bhts,bhsd->bthd", weights, v)
        return self.proj(heard.flatten(2)), (k, v)


def cache_bytes(n_layers, n_kv_heads, d_head, length, bytes_per_number):
    one_word = n_layers * n_kv_heads * d_head * bytes_per_number
    return (one_word + one_word) * length


class GroupedQueryAttention(nn.Module):
    def __init__(self, d_model, n_heads, n_kv_heads):
        super().__init__()
        if d_model % n_heads:
            raise ValueError(f"{d_model=} is no multiple of {n_heads=}")
        if n_heads % n_kv_heads:
            raise ValueError(f"{n_heads=} is no multiple of {n_kv_heads=}")
        self.D, self.G = d_model // n_heads, n_kv_heads
        self.query = nn.Linear(d_model, d_model, bias=False)
        self.key = nn.Linear(d_model, self.G * self.D, bias=False)
        self.value = nn.Linear(d_model, self.G * self.D, bias=False)
        self.proj = nn.Linear(d_model, d_model, bias=False)

    def forward(self, x, cache=None):
        q = self.query(x).unflatten(-1, (self.G, -1, self.D))  # (B, T, G, H / G, D)
        k = self.key(x).unflatten(-1, (self.G, self.D)).transpose(1, 2)  # (B, G, T, D)
        v = self.value(x).unflatten(-1, (self.G, self.D)).transpose(1, 2)  # (B, G, T, D)
        past = 0
        if cache is not None:
            past = cache[0].shape[-2]
            k, v = torch.cat((cache[0], k), dim=-2), torch.cat((cache[1], v), dim=-2)
        scores = einsum("btgnd,bgsd->bgnts", q, k) / self.D**0.5
        weights = scores.masked_fill(~causal_mask(x.shape[1], past), -torch.inf).softmax(dim=-1)
        heard = einsum("bgnts,bgsd->btgnd", weights, v)
        return self.proj(heard.flatten(2)), (k, v)


@torch.no_grad()
def all_endings(attention, pieces, endings):
    """Given: the caches after pieces + [ending], one for each ending."""
    cache = None
    for piece in pieces:
        _, cache = attention(piece, cache)
    return [attention(ending, cache)[1] for ending in endings]


@torch.no_grad()
def generate(model, ids, max_new_tokens):
    if max_new_tokens == 0:
        return ids
    logits, cache = model(ids)
    words = [logits[:, -1:].argmax(dim=-1)]
    while len(words) < max_new_tokens:
        logits, cache = model(words[-1], cache)
        words.append(logits[:, -1:].argmax(dim=-1))
    return torch.cat([ids, *words], dim=1)


def blockwise_attention(q, k, v, block, mask=None):
    if block <= 0:
        raise ValueError(f"{block=} is not positive")
    S = k.shape[-2]
    m = torch.full(q.shape[:-1], -torch.inf, dtype=q.dtype, device=q.device)
    weight, o = torch.zeros_like(m), torch.zeros(*q.shape[:-1], v.shape[-1], dtype=q.dtype, device=q.device)
    masks = [None] * S if mask is None else mask.expand(*mask.shape[:-1], S).split(block, dim=-1)
    for keys, values, allowed in zip(k.split(block, dim=-2), v.split(block, dim=-2), masks):
        scores = einsum("...td,...sd->...ts", q, keys) * q.shape[-1] ** -0.5
        if allowed is not None:
            scores = torch.where(allowed, scores, torch.tensor(-torch.inf, dtype=q.dtype))
        with torch.no_grad():  # a shift changes no softmax, so no gradient has to go through it
            higher = torch.maximum(m, scores.max(dim=-1).values)
            safe = torch.where(higher.isinf(), torch.zeros_like(higher), higher)
            old = (m - safe).exp()
        heights = (scores - safe[..., None]).exp()
        weight = weight * old + heights.sum(-1)
        o = o * old[..., None] + einsum("...ts,...se->...te", heights, values)
        m = higher
    least = torch.finfo(q.dtype).tiny
    return torch.where(weight[..., None] > 0, o / weight.clamp(min=least)[..., None], 0.0)


def bytes_moved(T, S, D, block, bytes_per_number):
    read_qk, write_scores, softmax, read_pv, write_out = T * D + S * D, T * S, 2 * T * S, T * S + S * D, T * D
    whole = read_qk + write_scores + softmax + read_pv + write_out
    rounds = (S + block - 1) // block
    return whole * bytes_per_number, (2 * S * D + rounds * T * (3 * D + 4)) * bytes_per_number
