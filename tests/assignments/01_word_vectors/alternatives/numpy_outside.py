"""NumPy where nothing is learned, torch where it is; a namedtuple is not needed, a dict is enough."""

import numpy as np
import torch
import torch.nn as nn


class CharTokenizer:
    def __init__(self, text):
        self.chars, _ = np.unique(list(text), return_inverse=True)
        self.vocab_size = int(self.chars.size)

    def encode(self, text):
        letters = self.chars.tolist()
        out = []
        for c in text:
            if c not in letters:
                raise ValueError(f"{c} is unknown, I know {''.join(letters)!r}")
            out.append(int(np.searchsorted(self.chars, c)))
        return out

    def decode(self, ids):
        bad = [i for i in ids if not (-1 < i < self.vocab_size)]
        if bad:
            raise ValueError(f"ids {bad[0]} (and maybe others) unknown")
        return "".join(self.chars[list(ids)].tolist()) if len(ids) else ""


def one_hot(ids, vocab_size):
    return torch.from_numpy((ids.numpy()[:, None] == np.arange(vocab_size)).astype(np.float32))


def embed(ids, table):
    return torch.take_along_dim(table, ids.reshape(-1, 1), dim=0).reshape(list(ids.shape) + [table.shape[1]])


def contexts_of(ids, i, window):
    places = np.arange(len(ids))
    near = (np.abs(places - i) <= window) & (places != i)
    return [ids[j] for j in places[near]]


def skip_gram_pairs(ids, window):
    return [(ids[i], o) for i in range(len(ids)) for o in contexts_of(ids, i, window)]


def cbow_examples(ids, window):
    return [(contexts_of(ids, i, window), ids[i]) for i in range(len(ids))]


def skip_gram_loss(centre_table, context_table, pairs):
    logits = nn.functional.linear(centre_table[pairs[..., 0]], context_table)
    return nn.CrossEntropyLoss()(logits, pairs[..., 1])


def cbow_loss(context_table, centre_table, examples):
    losses = []
    for contexts, centre in examples:
        clue = torch.index_select(context_table, 0, torch.tensor(contexts)).mean(0, keepdim=True)
        losses.append(nn.CrossEntropyLoss()(clue @ centre_table.T, torch.tensor([centre])))
    return torch.stack(losses).mean()


def nearest(token_id, table, k):
    t = table.detach().numpy()
    unit = t / np.linalg.norm(t, axis=1, keepdims=True)
    order = np.argsort(-(unit @ unit[token_id]), kind="stable")
    return order[order != token_id][:k].tolist()


def analogy(a, b, c, table):
    t = table.detach().numpy()
    goal = t[b] + (t[c] - t[a])
    similarity = t @ goal / np.linalg.norm(t, axis=1)
    for word in (a, b, c):
        similarity[word] = -np.inf
    return int(np.argmax(similarity))
