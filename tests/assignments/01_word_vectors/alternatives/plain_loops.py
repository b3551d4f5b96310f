"""Loops and plain Python wherever they will do; one pair, one word at a time."""

import math

import torch


class CharTokenizer:
    def __init__(self, text):
        self.alphabet = []
        for character in text:
            if character not in self.alphabet:
                self.alphabet.append(character)
        self.alphabet.sort()
        self.vocab_size = len(self.alphabet)

    def encode(self, text):
        ids = []
        for character in text:
            if character not in self.alphabet:
                raise ValueError("unknown character: " + character)
            ids.append(self.alphabet.index(character))
        return ids

    def decode(self, ids):
        text = ""
        for i in ids:
            if i < 0 or i >= len(self.alphabet):
                raise ValueError("unknown id: " + str(i))
            text += self.alphabet[i]
        return text


def one_hot(ids, vocab_size):
    rows = []
    for i in ids.tolist():
        row = [0.0] * vocab_size
        row[i] = 1.0
        rows.append(row)
    return torch.tensor(rows)


def embed(ids, table):
    if ids.dim() == 0:
        return table[ids.item()]
    return torch.stack([embed(i, table) for i in ids])


def skip_gram_pairs(ids, window):
    pairs = []
    for i in range(len(ids)):
        for j in range(len(ids)):
            if i != j and abs(i - j) <= window:
                pairs.append((ids[i], ids[j]))
    return pairs


def cbow_examples(ids, window):
    examples = []
    for i in range(len(ids)):
        contexts = []
        for j in range(len(ids)):
            if i != j and abs(i - j) <= window:
                contexts.append(ids[j])
        examples.append((contexts, ids[i]))
    return examples


def cost(clue, table, answer):
    scores = torch.stack([(clue * row).sum() for row in table])
    highest = scores.max().detach()
    return torch.log(torch.exp(scores - highest).sum()) + highest - scores[answer]


def skip_gram_loss(centre_table, context_table, pairs):
    total = 0.0
    for centre, context in pairs.tolist():
        total = total + cost(centre_table[centre], context_table, context)
    return total / len(pairs)


def cbow_loss(context_table, centre_table, examples):
    total = 0.0
    for contexts, centre in examples:
        clue = 0.0
        for context in contexts:
            clue = clue + context_table[context]
        total = total + cost(clue / len(contexts), centre_table, centre)
    return total / len(examples)


def cosine(u, v):
    u, v = u.tolist(), v.tolist()
    product = sum(x * y for x, y in zip(u, v))
    return product / math.sqrt(sum(x * x for x in u)) / math.sqrt(sum(y * y for y in v))


def nearest(token_id, table, k):
    others = [i for i in range(len(table)) if i != token_id]
    others.sort(key=lambda i: cosine(table[i], table[token_id]), reverse=True)
    return others[:k]


def analogy(a, b, c, table):
    goal = table[b] - table[a] + table[c]
    best, best_cosine = None, -2.0
    for i in range(len(table)):
        if i not in (a, b, c) and cosine(table[i], goal) > best_cosine:
            best, best_cosine = i, cosine(table[i], goal)
    return best
