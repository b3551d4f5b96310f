"""Plain loops, one product, one group and one word at a time."""

from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class GPT2Config:
    vocab_size: int = 50257
    n_positions: int = 1024
    n_embd: int = 768
    n_layer: int = 12
    n_head: int = 12


def product(rows, inner, columns):
    return 2 * rows * inner * columns


def attention_of(C, T):
    projections = sum(product(T, C, C) for _ in range(4))
    return projections + product(T, C, T) + product(T, T, C)


def feed_forward_of(C, T):
    return product(T, C, 4 * C) + product(T, 4 * C, C)


def forward_flops(config, T):
    total = 0
    for _ in range(config.n_layer):
        total += attention_of(config.n_embd, T) + feed_forward_of(config.n_embd, T)
    return total + product(T, config.n_embd, config.vocab_size)


def shares(config, T):
    attention = attention_of(config.n_embd, T)
    share = attention / (attention + feed_forward_of(config.n_embd, T))
    return [share, 1 - share]


def training_flops(parameters, tokens):
    there = 2 * parameters * tokens
    back = 2 * there
    return there + back


def decode_seconds(bytes_of_weights, bytes_of_cache, flops, bw, peak):
    moving, computing = (bytes_of_weights + bytes_of_cache) / bw, flops / peak
    return computing if computing > moving else moving


def batch_where_it_turns(bytes_of_weights, bytes_of_cache, flops, bw, peak):
    if flops / peak <= bytes_of_cache / bw:
        raise ValueError(f"bytes_of_cache={bytes_of_cache} is too much for any batch")
    low, high = 0, 1

    def turned(B):
        return B * flops / peak >= (bytes_of_weights + B * bytes_of_cache) / bw

    while not turned(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if turned(middle) else (middle, high)
    return high


def quantise(x, bits, group):
    rows, columns = x.shape
    if bits < 2 or bits > 8:
        raise ValueError(f"{bits=} is too few or too many")
    if columns % group:
        raise ValueError(f"{group=} leaves a rest of {columns} columns")
    q = torch.zeros(rows, columns, dtype=torch.int8)
    scale = torch.ones(rows, columns // group, dtype=x.dtype)
    for m in range(rows):
        for g in range(columns // group):
            numbers = x[m, g * group : (g + 1) * group]
            largest = numbers.abs().max()
            if largest > 0:
                scale[m, g] = largest / (2 ** (bits - 1) - 1)
            q[m, g * group : (g + 1) * group] = torch.round(numbers / scale[m, g])
    return q, scale


def dequantise(q, scale):
    group = q.shape[1] // scale.shape[1]
    columns = [q[:, k].to(scale.dtype) * scale[:, k // group] for k in range(q.shape[1])]
    return torch.stack(columns, dim=1)


def quantised_matmul(x, q, scale):
    products = []
    for m in range(len(q)):
        row = dequantise(q[m : m + 1], scale[m : m + 1])[0]
        products.append((x * row).sum(dim=-1))
    return torch.stack(products, dim=-1)


def draw(probabilities, uniform):
    total = 0.0
    for word, probability in enumerate(probabilities):
        total = total + probability
        if total > uniform:
            return word
    return max(word for word, probability in enumerate(probabilities) if probability > 0)


def speculative_step(p, q, guesses, uniforms):
    words = []
    for wanted, told, guess, uniform in zip(p, q, guesses.tolist(), uniforms):
        if uniform < wanted[guess] / told[guess]:
            words.append(guess)
            continue
        rest = [max(float(a) - float(b), 0.0) for a, b in zip(wanted, told)]
        whole = sum(rest)
        rest = [number / whole for number in rest] if whole else wanted.tolist()
        return [*words, draw(rest, float(uniforms[-1]))]
    return [*words, draw(p[-1].tolist(), float(uniforms[-1]))]


def expected_tokens(a, R):
    if a < 0 or a > 1:
        raise ValueError(f"{a=} is no probability")
    words, reached = 0.0, 1.0
    for _ in range(1 + R):
        words += reached
        reached *= a
    return words
