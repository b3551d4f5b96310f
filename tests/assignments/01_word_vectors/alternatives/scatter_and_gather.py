"""scatter, gather, index_select, padding with a mask; topk one larger than needed."""

import torch
from torch.nn import functional as F


class CharTokenizer:
    __slots__ = ("_letters", "_numbers", "vocab_size")

    def __init__(self, text):
        self._letters = "".join(sorted(set(text)))
        self._numbers = {}
        for letter in self._letters:
            self._numbers[letter] = len(self._numbers)
        self.vocab_size = len(self._letters)

    def encode(self, text):
        for letter in set(text) - self._numbers.keys():
            raise ValueError(f"no id for {letter!r}")
        return list(map(self._numbers.get, text))

    def decode(self, ids):
        ids = list(ids)
        for i in ids:
            if i not in range(self.vocab_size):
                raise ValueError(f"{i} is not an id of this vocabulary of size {self.vocab_size}")
        return "".join([self._letters[i] for i in ids])


def one_hot(ids, vocab_size):
    return torch.zeros(ids.numel(), vocab_size).scatter_(1, ids.unsqueeze(1), 1.0)


def embed(ids, table):
    flat = table.index_select(0, ids.flatten())
    return flat.view(ids.size() + (table.size(1),))


def skip_gram_pairs(ids, window):
    pairs = []
    for contexts, centre in cbow_examples(ids, window):
        pairs.extend((centre, context) for context in contexts)
    return pairs


def cbow_examples(ids, window):
    missing = object()
    padded = [missing] * window + list(ids) + [missing] * window
    examples = []
    for i in range(len(ids)):
        around = padded[i : i + 2 * window + 1]
        centre = around.pop(window)
        examples.append(([word for word in around if word is not missing], centre))
    return examples


def skip_gram_loss(centre_table, context_table, pairs):
    centre, context = pairs.unbind(dim=1)
    scores = torch.einsum("pc,vc->pv", centre_table[centre], context_table)
    log_shares = F.log_softmax(scores, dim=1)
    return log_shares.gather(1, context[:, None]).neg().mean()


def cbow_loss(context_table, centre_table, examples):
    longest = max(len(contexts) for contexts, _ in examples)
    padded = torch.tensor([contexts + [0] * (longest - len(contexts)) for contexts, _ in examples])
    lengths = torch.tensor([[len(contexts)] for contexts, _ in examples])
    real = (torch.arange(longest) < lengths).to(context_table.dtype).unsqueeze(-1)
    averages = (context_table[padded] * real).sum(dim=1) / lengths
    targets = torch.tensor([centre for _, centre in examples])
    return F.nll_loss(F.log_softmax(averages @ centre_table.t(), dim=-1), targets)


def nearest(token_id, table, k):
    similarity = F.cosine_similarity(table[token_id].unsqueeze(0), table)
    similarity = torch.where(torch.arange(len(table)) == token_id, -torch.inf, similarity)
    return [int(i) for i in torch.topk(similarity, k)[1]]


def analogy(a, b, c, table):
    goal = torch.tensor([-1, 1, 1]).to(table) @ table[[a, b, c]]
    order = F.cosine_similarity(goal.unsqueeze(0), table).sort(descending=True).indices
    return next(int(i) for i in order if int(i) not in {a, b, c})
