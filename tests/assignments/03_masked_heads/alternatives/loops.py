"""One listener and one speaker at a time, with the softmax written out."""

import numpy as np
import torch
from torch import nn


def causal_mask(T):
    return torch.from_numpy(np.tri(T, dtype=bool))


def dot(a, b):
    return sum(a[d] * b[d] for d in range(len(a)))


def listen(question, keys, values, allowed):
    """One listener: question (D,), keys (S, D), values (S, E), allowed: a list of S booleans."""
    heard = [s for s in range(len(keys)) if allowed[s]]
    shares = [question.new_zeros(())] * len(keys)
    blend = values.new_zeros(values.shape[-1])
    if heard:
        scores = [dot(question, keys[s]) / len(question) ** 0.5 for s in heard]
        highest = max(score.item() for score in scores)
        parts = [torch.exp(score - highest) for score in scores]
        total = sum(parts)
        for s, part in zip(heard, parts):
            shares[s] = part / total
            blend = blend + shares[s] * values[s]
    return blend, torch.stack(shares)


def attention(q, k, v, mask=None):
    leading = q.shape[:-2]
    T, S = q.shape[-2], k.shape[-2]
    if mask is None:
        mask = torch.tensor(True)
    tables = mask.expand(*leading, T, S).reshape(-1, T, S)
    listeners, speakers, says = (x.reshape(-1, *x.shape[-2:]) for x in (q, k, v))
    blends, weights = [], []
    for questions, keys, values, table in zip(listeners, speakers, says, tables):
        for t in range(T):
            blend, shares = listen(questions[t], keys, values, table[t].tolist())
            blends.append(blend)
            weights.append(shares)
    return torch.stack(blends).reshape(*leading, T, -1), torch.stack(weights).reshape(*leading, T, S)


class Head(nn.Module):
    def __init__(self, embed_size, head_size, block_size):
        super().__init__()
        self.query = nn.Linear(embed_size, head_size, bias=False)
        self.key = nn.Linear(embed_size, head_size, bias=False)
        self.value = nn.Linear(embed_size, head_size, bias=False)
        self.register_buffer("table", causal_mask(block_size))

    def forward(self, x):
        length = x.size(1)
        if length > len(self.table):
            raise ValueError(f"block_size is {len(self.table)}, but the sentence has {length} words")
        sentences = []
        for sentence in x:
            words = []
            for t in range(length):
                past = sentence[: t + 1]
                question = self.query(sentence[t])
                blend, _ = listen(question, self.key(past), self.value(past), self.table[t, : t + 1].tolist())
                words.append(blend)
            sentences.append(torch.stack(words))
        return torch.stack(sentences)
