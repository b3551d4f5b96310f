"""One question at a time, in plain loops."""

import math

import torch
from torch import nn


def attention_layer(embed_size, num_heads):
    return nn.MultiheadAttention(embed_size, num_heads, batch_first=True)


@torch.no_grad()
def ask(model, ids):
    """The logits after every word of one text, as lists."""
    mode = model.training
    model.eval()
    logits = model(torch.tensor([ids]))[0][0]
    model.train(mode)
    return logits.tolist()


def surprise(row, word):
    top = max(row)
    return top + math.log(sum(math.exp(number - top) for number in row)) - row[word]


def honest_loss(model, data, positions):
    words = data.tolist()
    if len(positions) == 0:
        raise ValueError("positions must hold at least one place, but it is [].")
    total = 0.0
    for t in positions:
        if t <= 0 or t >= len(words):
            raise ValueError(f"There is no past or no word at {t}, one of the positions.")
        past = words[:t]
        while len(past) > model.block_size:
            past.pop(0)
        total += surprise(ask(model, past)[-1], words[t])
    return total / len(positions)


def leaks(model, T, V):
    text = [t % V for t in range(T)]
    before = ask(model, text)
    found = torch.zeros(T, T, dtype=torch.bool)
    for s in range(1, T):
        seen = [before]
        for word in range(V):
            if word != text[s]:
                seen.append(ask(model, text[:s] + [word] + text[s + 1 :]))
        for t in range(s):
            for number in range(V):
                values = [logits[t][number] for logits in seen]
                if max(values) - min(values) > 1e-4:
                    found[t, s] = True
    return found


def verdict(models):
    answer = {}
    for name in models:
        model = models[name]
        T, V = model.block_size, model.vocab_size
        table = leaks(model, T, V)
        if table.any():
            late = True
            for t in range(T - 1):
                late = late and bool(table[t, t + 1])
            answer[name] = "mask late by one" if late else "heads merged with view"
            continue
        repeats = asked = 0
        for first in range(V):
            text = [(first + 5 * t * t) % V for t in range(T)]
            for word, row in zip(text, ask(model, text)):
                repeats += row.index(max(row)) == word
                asked += 1
        answer[name] = "targets not shifted" if 2 * repeats > asked else "honest"
    return answer


def redundant_heads(mha, x, tolerance):
    if tolerance < 0:
        raise ValueError(f"A tolerance of {tolerance} is below 0.")
    weight = mha.out_proj.weight.data
    kept = weight.clone()
    whole = mha(x, x, x)[0].detach()
    D = whole.shape[-1] // mha.num_heads
    heads = []
    for h in range(mha.num_heads):
        for column in range(h * D, h * D + D):
            weight[:, column] = 0
        change = whole - mha(x, x, x)[0].detach()
        weight.copy_(kept)
        if change.pow(2).sum().sqrt().item() <= tolerance * whole.pow(2).sum().sqrt().item():
            heads.append(h)
    return heads


def head_similarity(mha, x):
    weights = mha(x, x, x, average_attn_weights=False)[1].detach()
    H = mha.num_heads
    table = torch.ones(H, H, dtype=x.dtype)
    for one in range(H):
        for two in range(H):
            a, b = weights[:, one], weights[:, two]
            table[one, two] = (a * b).sum() / (a.square().sum() * b.square().sum()).sqrt()
    return table


def overlap(train, test, n):
    if n < 1 or len(test) < n:
        raise ValueError(f"n is {n}")
    hits = total = 0
    for place in range(len(test) + 1 - n):
        total += 1
        for other in range(len(train) + 1 - n):
            if train[other : other + n] == test[place : place + n]:
                hits += 1
                break
    return hits / total


def difference(right_a, right_b, rows):
    N = len(right_a)
    drawn = []
    for row in rows.tolist():
        drawn.append(sum(int(right_a[i]) - int(right_b[i]) for i in row) / len(row))
    drawn.sort()

    def point(share):
        place = share * (len(drawn) - 1)
        below = int(place)
        above = min(below + 1, len(drawn) - 1)
        return drawn[below] + (place - below) * (drawn[above] - drawn[below])

    return (int(right_a.sum()) - int(right_b.sum())) / N, point(0.025), point(0.975)
