"""Shares by gather, leaks from pairs of neighbouring words, and heads that have nothing to say."""

from itertools import product

import torch
from torch import nn
from torch.func import functional_call


def attention_layer(embed_size, num_heads):
    return nn.MultiheadAttention(embed_size, num_heads, batch_first=True)


def in_eval_mode(function):
    def asked(model, *evidence):
        mode, _ = model.training, model.eval()
        with torch.no_grad():
            result = function(model, *evidence)
        model.train(mode)
        return result

    return asked


@in_eval_mode
def guess_after(model, past):
    return torch.softmax(model(past.view(1, -1))[0].double(), dim=2)[0, -1]


def honest_loss(model, data, positions):
    if not positions or any(not 0 < t < data.numel() for t in positions):
        raise ValueError(f"cannot ask at positions {positions} of a text of {data.numel()} words")
    pasts = (data.narrow(0, max(t - model.block_size, 0), min(t, model.block_size)) for t in positions)
    shares = torch.stack([guess_after(model, past)[data[t]] for past, t in zip(pasts, positions)])
    return -shares.log().mean().item()


@in_eval_mode
def leaks(model, T, V):
    places = list(product(range(T), range(V)))
    texts = torch.full((len(places) + 1, T), V // 2)
    for row, (s, word) in enumerate(places):
        texts[row, s] = word
    parts = torch.cat([model(part)[0] for part in texts.split(50)])
    moved = torch.zeros(T, T, dtype=torch.bool)
    for row, (s, _) in enumerate(places):
        moved[:, s] |= (parts[row] - parts[-1]).abs().gt(1e-4).any(dim=-1)
    return moved & (torch.arange(T)[:, None] < torch.arange(T))


@in_eval_mode
def repeats(model):
    words = torch.arange(model.vocab_size).repeat(model.block_size)
    words = words[torch.randperm(len(words))].view(-1, model.block_size)
    said = model(words)[0]
    own = said.gather(2, words[..., None])
    return (said >= own).sum(-1).eq(1).double().mean().item() > 0.5


def verdict(models):
    court = {}
    for name, model in sorted(models.items()):
        T = model.block_size
        ahead = leaks(model, T, model.vocab_size)
        distances = [[d for d in range(1, T - t) if ahead[t, t + d]] for t in range(T)]
        if not any(distances):
            court[name] = ("honest", "targets not shifted")[repeats(model)]
        elif all(here == [d for d in distances[0] if d < T - t] for t, here in enumerate(distances)):
            court[name] = "mask late by one"
        else:
            court[name] = "heads merged with view"
    return court


def redundant_heads(mha, x, tolerance):
    if tolerance < 0.0:
        raise ValueError("tolerance: " + str(tolerance))
    C, D = mha.embed_dim, mha.head_dim
    own = {name: p.detach().clone() for name, p in mha.named_parameters()}

    def heard(weights):
        with torch.no_grad():
            return functional_call(mha, weights, (x, x, x))[0]

    def without(head):
        silent = {name: p.clone() for name, p in own.items()}
        first = 2 * C + head * D
        silent["in_proj_weight"][first : first + D] = 0
        silent["in_proj_bias"][first : first + D] = 0
        return heard(silent)

    whole = heard(own)
    changes = [torch.dist(whole, without(head)) / whole.norm() for head in range(mha.num_heads)]
    return [head for head, change in enumerate(changes) if change <= tolerance]


def head_similarity(mha, x):
    with torch.no_grad():
        _, weights = mha(x, x, x, need_weights=True, average_attn_weights=False)
    rows = torch.stack([weights[:, head].reshape(-1) for head in range(mha.num_heads)])
    rows = rows / rows.norm(dim=1, keepdim=True)
    return torch.einsum("iw,jw->ij", rows, rows)


def overlap(train, test, n):
    if n <= 0 or n > len(test):
        raise ValueError(f"A test text of {len(test)} words has no n-grams for n={n}.")
    if n > len(train):
        return 0.0
    grams, asked = torch.tensor(train).unfold(0, n, 1), torch.tensor(test).unfold(0, n, 1)
    return (asked[:, None] == grams[None]).all(dim=-1).any(dim=1).double().mean().item()


def difference(right_a, right_b, rows):
    gains = right_a.int() - right_b.int()
    drawn = gains[rows].double().mean(dim=1)
    return float(gains.double().mean()), *(float(torch.quantile(drawn, share)) for share in (0.025, 0.975))
