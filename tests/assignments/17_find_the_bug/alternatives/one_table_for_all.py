"""One table with evidence, word and repair of each; each repair changes one line of the suspect."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

SUSPECTS: dict[str, Callable] = {}


def suspect(function: Callable) -> Callable:
    """Add a function to SUSPECTS under its own name."""
    SUSPECTS[function.__name__] = function
    return function


@suspect
def cut_windows(ids: Tensor, size: int) -> list[tuple[Tensor, Tensor]]:
    """Cut a text (L,) into pairs (x, y) of `size` words each; y holds the word that follows each word of x.

    The first window begins at word 0, the next at word `size`, and so on, as long as each word of x has a word after it
    in the text. What is left at the end is left out. L >= 1, size >= 1.
    """
    targets = ids.roll(-1)                                                              # (L,)
    pairs = []
    for begin in range(0, len(ids) - size + 1, size):
        pairs.append((ids[begin : begin + size], targets[begin : begin + size]))
    return pairs


@suspect
def smooth_targets(targets: Tensor, num_classes: int, amount: float) -> Tensor:
    """Soft targets (N, K) for the right classes (N,): `amount` of each row is spread evenly over all K classes.

    The right class is one of the K, and gets the rest as well. Each row adds up to 1. 0 <= amount <= 1.
    """
    soft = torch.full((len(targets), num_classes), amount / num_classes)                # (N, K)
    soft[torch.arange(len(targets)), targets] += 1 - amount
    return soft


@suspect
def row_weights(scores: Tensor) -> Tensor:
    """The softmax of each row of scores (T, S), however large or small the scores are. T >= 1, S >= 1."""
    heights = torch.exp(scores - scores.max())                                          # (T, S)
    return heights / heights.sum(dim=-1, keepdim=True)


@suspect
def mean_in_pieces(losses: Tensor, size: int) -> Tensor:
    """The mean of all losses (N,), computed from pieces of `size`; the last may be shorter. N >= 1, size >= 1."""
    pieces = losses.split(size)
    total = torch.zeros((), dtype=losses.dtype)                                         # ()
    for piece in pieces:
        total = total + piece.mean() / len(pieces)
    return total


@suspect
def without_padding(scores: Tensor, real: Tensor) -> Tensor:
    """The softmax of each row of scores (T, S) over the real columns alone; all others get the weight 0.

    real: booleans (S,), at least one of which is True. Whatever stands at the other columns has no influence.
    """
    penalty = (~real).to(scores.dtype) * -10_000.0                                      # (S,)
    return (scores + penalty).softmax(dim=-1)


@suspect
def drop_some(x: Tensor, p: float, training: bool) -> Tensor:
    """Dropout for x of any shape. 0 <= p < 1.

    In training each number becomes 0 with probability p, and is divided by 1 - p otherwise. Outside of training the
    answer is x.
    """
    kept = torch.rand(x.shape) >= p
    if training:
        return x * kept / (1 - p)
    return x * kept


@suspect
def last_words(hidden: Tensor, lengths: Tensor) -> Tensor:
    """The vector of the last word of each sentence: hidden (B, T, C), lengths (B,) -> (B, C).

    Sentence b has the words 0 to lengths[b] - 1, and padding behind them. lengths are whole numbers from 1 to T.
    """
    words = hidden.flatten(0, 1)                                                        # (B·T, C)
    begins = torch.arange(len(lengths)) * lengths.max()                                 # (B,)
    return words[begins + lengths - 1]


@suspect
def running_loss(losses: list[float], decay: float) -> float:
    """A weighted mean of the losses: the last one has the weight 1, the one before it `decay`, then decay², and so on.

    There is at least one loss. 0 <= decay < 1.
    """
    average = 0.0
    for loss in losses:
        average = decay * average + (1 - decay) * loss
    return average / (1 - decay ** len(losses))


@suspect
def hold_out(items: list[int], every: int) -> tuple[list[int], list[int]]:
    """Divide items into two lists, for training and for the test. every >= 2.

    The different items are numbered 0, 1, 2, … in the order in which they first appear; equal items have the same number.
    Items whose number is a multiple of `every` are for the test, all others for training. So no item of the test is known
    from training. Each list holds its items in their order, as often as they appear.
    """
    training, test = [], []
    for number, item in enumerate(items):
        if number % every == 0:
            test.append(item)
        else:
            training.append(item)
    return training, test


@suspect
def newest_file(steps: list[int]) -> str:
    """The name of the file with the most steps, such as "step-300.pt". steps: at least one number, each 0 or more."""
    names = [f"step-{step}.pt" for step in steps]
    return sorted(names)[-1]


def _windows(ids, size):
    targets = ids.roll(-1)
    pairs = []
    for begin in range(0, len(ids) - size, size):
        pairs.append((ids[begin : begin + size], targets[begin : begin + size]))
    return pairs


def _weights(scores):
    logarithms = scores - scores.logsumexp(dim=-1, keepdim=True)
    return logarithms.exp()


def _mean(losses, size):
    pieces = losses.split(size)
    total = torch.zeros((), dtype=losses.dtype)
    for piece in pieces:
        total = total + piece.mean() * len(piece) / len(losses)
    return total


def _columns(scores, real):
    penalty = torch.where(real, 0.0, -torch.inf).to(scores.dtype)
    return (scores + penalty).softmax(dim=-1)


def _drop(x, p, training):
    kept = torch.rand(x.shape) >= p
    if training:
        return x * kept / (1 - p)
    return x.clone()


def _last(hidden, lengths):
    words = hidden.flatten(0, 1)
    begins = torch.arange(len(lengths)) * hidden.shape[1]
    return words[begins + lengths - 1]


def _divide(items, every):
    training, test, numbers = [], [], {}
    for item in items:
        number = numbers.setdefault(item, len(numbers))
        if number % every == 0:
            test.append(item)
        else:
            training.append(item)
    return training, test


def _newest(steps):
    names = [f"step-{step}.pt" for step in sorted(steps)]
    return names[-1]


ALL = {
    "cut_windows": ((torch.tensor([8, 9]), 1), "shift", _windows),
    "row_weights": ((torch.tensor([[900.0], [1.0]]),), "axis", _weights),
    "mean_in_pieces": ((torch.tensor([1.0, 2.0, 4.0, 8.0, 32.0]), 3), "scale", _mean),
    "without_padding": ((torch.tensor([[-1e5, 1.0]]), torch.tensor([True, False])), "mask", _columns),
    "drop_some": ((torch.tensor([5.0]), 0.99, False), "mode", _drop),
    "last_words": ((torch.tensor([[[1.0], [2.0]], [[3.0], [4.0]]]), torch.tensor([1, 1])), "layout", _last),
    "hold_out": (([3, 4, 4], 2), "sharing", _divide),
    "newest_file": (([2, 10],), "order", _newest),
}
ALL["cut_windows"] = ((torch.tensor([8, 9, 8, 7]), 2), "shift", _windows)


def evidence(name):
    try:
        return ALL[name][0]
    except KeyError:
        raise ValueError(f"there is no evidence against {name}") from None


def verdict(name):
    return ALL[name][1] if name in ALL else None


def repaired(name):
    return ALL[name][2] if name in ALL else SUSPECTS[name]
