"""Functions built on each other: an analogy is the nearest row of a longer table, CBOW calls the skip-gram loss."""

import itertools

import torch
from torch.nn.functional import cosine_similarity, cross_entropy


class CharTokenizer:
    def __init__(self, text: str) -> None:
        distinct = sorted(dict.fromkeys(text))
        self.vocab_size, self.forward, self.backward = len(distinct), dict(zip(distinct, itertools.count())), distinct

    def encode(self, text: str) -> list:
        return [self._number(character) for character in text]

    def _number(self, character: str) -> int:
        number = self.forward.get(character)
        if number is None:
            raise ValueError(f"Never seen: '{character}'")
        return number

    def decode(self, ids: list) -> str:
        if any(number not in self.forward.values() for number in ids):
            raise ValueError(f"There is an id without a character in {ids}")
        return str().join(self.backward[number] for number in ids)


def one_hot(ids, vocab_size):
    return torch.eq(ids.unsqueeze(-1), torch.arange(vocab_size)).float()


def embed(ids, table):
    return table[ids, :]


def cbow_examples(ids, window):
    return [(ids[max(i - window, 0) : i] + ids[i + 1 : i + 1 + window], word) for i, word in enumerate(ids)]


def skip_gram_pairs(ids, window):
    return [(word, other) for others, word in cbow_examples(ids, window) for other in others]


def skip_gram_loss(centre_table, context_table, pairs):
    return cross_entropy(torch.matmul(centre_table, context_table.mT)[pairs[:, 0]], pairs[:, 1], reduction="mean")


def cbow_loss(context_table, centre_table, examples):
    contexts, centres = zip(*examples)
    averages = torch.stack([embed(torch.tensor(some), context_table).mean(-2) for some in contexts])
    places = torch.arange(len(centres))
    return skip_gram_loss(averages, centre_table, torch.stack([places, torch.tensor(centres)], dim=-1))


def nearest(token_id, table, k):
    similarity = cosine_similarity(table, table[token_id : token_id + 1])
    order = torch.argsort(similarity, descending=True)
    return order[order != token_id][:k].tolist()


def analogy(a, b, c, table):
    longer = torch.cat([table, (table[b] - table[a] + table[c]).unsqueeze(0)])
    V = len(table)
    return [word for word in nearest(V, longer, V) if word not in (a, b, c)][0]
