"""Everything is a matrix product: lookups by one-hot rows, averages by a table of counts, log_softmax by hand."""

from __future__ import annotations

import torch
from torch import Tensor


class CharTokenizer:
    def __init__(self, text: str):
        self.itos = dict(enumerate(sorted(frozenset(text))))
        self.stoi = {c: i for i, c in self.itos.items()}

    @property
    def vocab_size(self) -> int:
        return len(self.itos)

    def encode(self, text: str) -> list[int]:
        try:
            return [self.stoi[c] for c in text]
        except KeyError as error:
            raise ValueError(f"cannot encode {error.args[0]!r}") from None

    def decode(self, ids: list[int]) -> str:
        unknown = [i for i in ids if i not in self.itos]
        if unknown:
            raise ValueError(f"cannot decode {unknown}")
        return "".join(map(self.itos.__getitem__, ids))


def one_hot(ids: Tensor, vocab_size: int) -> Tensor:
    return torch.eye(vocab_size)[ids]


def embed(ids: Tensor, table: Tensor) -> Tensor:
    V = table.size(0)
    rows = one_hot(ids.reshape(-1), V).to(table.dtype)
    return (rows @ table).reshape(*ids.shape, -1)


def skip_gram_pairs(ids: list[int], window: int) -> list[tuple[int, int]]:
    return [
        (centre, context)
        for i, centre in enumerate(ids)
        for j, context in enumerate(ids)
        if 0 < abs(i - j) <= window
    ]


def cbow_examples(ids: list[int], window: int) -> list[tuple[list[int], int]]:
    return [
        ([context for j, context in enumerate(ids) if 0 < abs(i - j) <= window], centre)
        for i, centre in enumerate(ids)
    ]


def surprise(scores: Tensor, targets: Tensor) -> Tensor:
    log_shares = scores - scores.logsumexp(dim=-1, keepdim=True)
    lamps = one_hot(targets, scores.size(-1)).to(scores.dtype)
    return -(lamps * log_shares).sum() / len(targets)


def skip_gram_loss(centre_table: Tensor, context_table: Tensor, pairs: Tensor) -> Tensor:
    every_score = centre_table @ context_table.T
    return surprise(every_score[pairs.T[0]], pairs.T[1])


def cbow_loss(context_table: Tensor, centre_table: Tensor, examples: list[tuple[list[int], int]]) -> Tensor:
    V = context_table.size(0)
    counts = torch.zeros(len(examples), V, dtype=context_table.dtype)
    for row, (contexts, _) in enumerate(examples):
        for context in contexts:
            counts[row, context] += 1
    shares = counts / counts.sum(dim=1, keepdim=True)
    targets = torch.tensor([centre for _, centre in examples])
    return surprise(shares @ context_table @ centre_table.T, targets)


def cosines(table: Tensor, v: Tensor) -> Tensor:
    return (table @ v) / (table.norm(dim=1) * v.norm())


def nearest(token_id: int, table: Tensor, k: int) -> list[int]:
    similar = cosines(table, table[token_id])
    similar[token_id] = -2.0
    return similar.topk(k).indices.tolist()


def analogy(a: int, b: int, c: int, table: Tensor) -> int:
    similar = cosines(table, table[b] + table[c] - table[a])
    similar = similar.index_fill(0, torch.tensor([a, b, c]), -2.0)
    return similar.argmax().item()
