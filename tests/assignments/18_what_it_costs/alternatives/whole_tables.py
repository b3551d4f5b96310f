"""No loops where a table will do: views, searchsorted, and the first refusal found at once."""

import math
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class GPT2Config:
    vocab_size: int = 50257
    n_positions: int = 1024
    n_embd: int = 768
    n_layer: int = 12
    n_head: int = 12


def forward_flops(config, T):
    weights = 12 * config.n_layer * config.n_embd**2 + config.n_embd * config.vocab_size
    return 2 * T * (weights + 2 * config.n_layer * config.n_embd * T)


def shares(config, T):
    attention, feed_forward = 2 * config.n_embd + T, 4 * config.n_embd  # in units of 4TC
    return attention / (attention + feed_forward), feed_forward / (attention + feed_forward)


def training_flops(parameters, tokens):
    return 3 * (2 * parameters * tokens)


def decode_seconds(bytes_of_weights, bytes_of_cache, flops, bw, peak):
    return max(bytes_of_weights / bw + bytes_of_cache / bw, flops / peak)


def batch_where_it_turns(bytes_of_weights, bytes_of_cache, flops, bw, peak):
    gained = flops / peak - bytes_of_cache / bw
    if not gained > 0:
        raise ValueError(f"no batch is large enough: bytes_of_cache is {bytes_of_cache}")
    return max(1, math.ceil(bytes_of_weights / bw / gained))


def quantise(x, bits, group):
    if bits not in range(2, 9):
        raise ValueError(f"bits is {bits}")
    if x.size(1) % group > 0:
        raise ValueError(f"group is {group}")
    groups = x.unflatten(1, (-1, group))
    largest = torch.maximum(groups.amax(dim=2), -groups.amin(dim=2))
    scale = (largest / (2 ** (bits - 1) - 1)).masked_fill(largest == 0, 1.0)
    return groups.div(scale.unsqueeze(2)).add(0.5).floor().flatten(1).to(torch.int8), scale


def dequantise(q, scale):
    groups = q.unflatten(1, (scale.size(1), -1)).to(scale.dtype)
    return groups.mul(scale.unsqueeze(2)).flatten(1)


def quantised_matmul(x, q, scale):
    rows = q.T.unflatten(0, (scale.size(1), -1))  # (K // G, G, M), still int8
    pieces = x.unflatten(-1, (scale.size(1), -1)).unbind(dim=-2)
    return sum((part @ whole.to(x.dtype)) * scale[:, g] for g, (part, whole) in enumerate(zip(pieces, rows)))


def speculative_step(p, q, guesses, uniforms):
    R = guesses.numel()
    places = torch.arange(R)
    agreed = uniforms[:R] < p[places, guesses] / q[places, guesses]
    kept = int(agreed.long().cumprod(dim=0).sum())
    probabilities = p[kept]
    if kept < R:
        left = torch.relu(p[kept] - q[kept])
        if left.any():
            probabilities = left / left.sum()
    sums = probabilities.cumsum(dim=0)
    word = int(torch.searchsorted(sums, uniforms[R:], right=True))
    last = int(probabilities.nonzero().max())
    return guesses[:kept].tolist() + [min(word, last)]


def expected_tokens(a, R):
    if not (0 <= a <= 1):
        raise ValueError(f"a is {a}")
    if a == 1:
        return float(R + 1)
    return (1 - a ** (R + 1)) / (1 - a)
