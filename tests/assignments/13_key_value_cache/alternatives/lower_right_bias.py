"""PyTorch knows the rectangle, too: causal_lower_right. The cache goes out as a list."""

import math

import torch
from torch import nn
from torch.nn.attention.bias import causal_lower_right
from torch.nn.functional import scaled_dot_product_attention


def causal_mask(T, past=0):
    mask = torch.full((T, past + T), True)
    above = torch.triu_indices(T, past + T, offset=past + 1)
    mask[above[0], above[1]] = False
    return mask


class CachedAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        whole, rest = divmod(d_model, n_heads)
        if rest:
            raise ValueError(f"n_heads={n_heads} leaves a remainder of {rest} in d_model={d_model}")
        self.shape = (n_heads, whole)
        self.proj = nn.Linear(d_model, d_model, bias=False)
        self.value = nn.Linear(d_model, d_model, bias=False)
        self.key = nn.Linear(d_model, d_model, bias=False)
        self.query = nn.Linear(d_model, d_model, bias=False)

    def forward(self, x, cache=None):
        B, T, C = x.shape
        table = torch.cat([self.query.weight, self.key.weight, self.value.weight])
        q, k, v = (x @ table.T).view(B, T, 3, *self.shape).permute(2, 0, 3, 1, 4).unbind(0)
        if cache is not None:
            k, v = (torch.cat(pair, dim=-2) for pair in zip(cache, (k, v)))
        bias = causal_lower_right(T, k.shape[-2])
        heard = scaled_dot_product_attention(q, k, v, attn_mask=bias)
        return self.proj(heard.permute(0, 2, 1, 3).reshape(B, T, C)), [k, v]


def cache_bytes(n_layers, n_kv_heads, d_head, length, bytes_per_number):
    kept = torch.empty(2, n_layers, n_kv_heads, length, d_head, bytes_per_number, dtype=torch.uint8, device="meta")
    return kept.numel()


class GroupedQueryAttention(CachedAttention):
    """The layer above with two narrower layers; index_select lends the heads."""

    def __init__(self, d_model, n_heads, n_kv_heads):
        super().__init__(d_model, n_heads)
        group, rest = divmod(n_heads, n_kv_heads)
        if rest:
            raise ValueError(f"n_kv_heads={n_kv_heads} leaves a remainder of {rest} in n_heads={n_heads}")
        self.kept = n_kv_heads
        self.register_buffer("lender", torch.arange(n_heads) // group)
        self.key = nn.Linear(d_model, n_kv_heads * self.shape[1], bias=False)
        self.value = nn.Linear(d_model, n_kv_heads * self.shape[1], bias=False)

    def forward(self, x, cache=None):
        B, T, C = x.shape
        q = self.query(x).view(B, T, *self.shape).transpose(1, 2)
        k, v = (layer(x).view(B, T, self.kept, -1).transpose(1, 2) for layer in (self.key, self.value))
        if cache is not None:
            k, v = (torch.cat(pair, dim=-2) for pair in zip(cache, (k, v)))
        wide_k, wide_v = k.index_select(1, self.lender), v.index_select(1, self.lender)
        heard = scaled_dot_product_attention(q, wide_k, wide_v, attn_mask=causal_lower_right(T, k.shape[-2]))
        return self.proj(heard.permute(0, 2, 1, 3).reshape(B, T, C)), [k, v]


@torch.no_grad()
def all_endings(attention, pieces, endings):
    """Given: the caches after pieces + [ending], one for each ending."""
    cache = None
    for piece in pieces:
        _, cache = attention(piece, cache)
    return [attention(ending, cache)[1] for ending in endings]


@torch.inference_mode()
def generate(model, ids, max_new_tokens):
    length = ids.shape[1]
    text = torch.nn.functional.pad(ids, (0, max_new_tokens))
    cache, new = None, slice(0, length)
    for place in range(length, length + max_new_tokens):
        logits, cache = model(text[:, new], cache)
        text[:, place] = torch.argmax(logits[:, -1], dim=1)
        new = slice(place, place + 1)
    return text


def blockwise_attention(q, k, v, block, mask=None):
    """One column of ones beside the values: the sum of the weights is carried along as one more value."""
    if not block >= 1:
        raise ValueError(f"block={block}")
    E = v.shape[-1]
    m = q.new_tensor(float("-inf")).expand(*q.shape[:-1], 1)
    carried = q.new_zeros(*q.shape[:-1], E + 1)
    for begin in range(0, k.shape[-2], block):
        end = begin + block
        s = (q / math.sqrt(q.shape[-1])) @ k[..., begin:end, :].transpose(-1, -2)
        if mask is not None:
            part = mask[..., begin:end] if mask.shape[-1] > 1 else mask
            s = s.masked_fill(part.logical_not(), float("-inf"))
        top = torch.cat([m, s.detach()], dim=-1).max(dim=-1, keepdim=True)[0]
        shift = top.clamp(min=torch.finfo(q.dtype).min)
        values = v[..., begin:end, :]
        with_ones = torch.cat([values, torch.ones_like(values[..., :1])], dim=-1)
        carried = carried * (m - shift).exp() + (s - shift).exp() @ with_ones
        m = top
    o, weight = carried.split([E, 1], dim=-1)
    return o / (weight + (weight == 0))


def bytes_moved(T, S, D, block, bytes_per_number):
    blocks, rest = divmod(S, block)
    if rest:
        blocks += 1
    naive = (2 * (T + S) * D + 4 * T * S) * bytes_per_number
    return naive, bytes_per_number * (2 * S * D + blocks * (3 * T * D + 4 * T))
