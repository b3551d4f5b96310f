"""Models that need no training: their answers are known before they are asked, so they prove the code around them.

`Successor` counts, `Die` and `Coin` always offer the same shares, `Reverser` says its source backwards and is
never sure of itself. Hand one to a function that writes, samples or decodes, and look at what it recorded:

    >>> fake = Successor(vocab_size=11, block_size=4)
    >>> generate(fake, torch.tensor([[7, 8]]), max_new_tokens=3)     # tensor([[7, 8, 9, 10, 0]])
    >>> fake.context_lengths, any(fake.modes), any(fake.grads)       # ([2, 3, 4], False, False)

Each is an `nn.Module` without parameters: `eval()`, `train()` and `training` work as usual. What they do not do:
learn, draw random numbers, or judge.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

NEVER = -1e6  # a logit that no temperature in use makes likely, and that is still a number


@dataclass(frozen=True)
class Call:
    """One call of a fake: the ids it was shown (B, T), whether it was training, whether gradients were kept."""

    ids: Tensor
    training: bool
    grad: bool


class LanguageModel(nn.Module):
    """What the fakes of a language model share: `model(ids, targets=None) -> (logits, loss or None)`.

    `block_size` is the longest context; a longer one is a ValueError, as from a real model.
    """

    def __init__(self, vocab_size: int, block_size: int) -> None:
        super().__init__()
        self.vocab_size = vocab_size
        self.block_size = block_size
        self.calls: list[Call] = []

    def forward(self, ids: Tensor, targets: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        """ids (B, T) -> logits (B, T, V) and, with targets (B, T), their mean cross-entropy."""
        self.calls.append(Call(ids.detach().clone(), self.training, torch.is_grad_enabled()))
        if ids.shape[1] > self.block_size:
            raise ValueError(f"the context has T = {ids.shape[1]} words, but block_size = {self.block_size}")
        logits = self.logits(ids)  # (B, T, V)
        if targets is None:
            return logits, None
        right = logits.log_softmax(dim=-1).gather(-1, targets.unsqueeze(-1))  # (B, T, 1)
        return logits, -right.mean()

    def logits(self, ids: Tensor) -> Tensor:
        """What the model says after each word: (B, T) -> (B, T, V)."""
        raise NotImplementedError

    @property
    def context_lengths(self) -> list[int]:
        """How many words each call showed."""
        return [call.ids.shape[1] for call in self.calls]

    @property
    def modes(self) -> list[bool]:
        """For each call, whether the model was in training mode."""
        return [call.training for call in self.calls]

    @property
    def grads(self) -> list[bool]:
        """For each call, whether gradients were kept."""
        return [call.grad for call in self.calls]


class Successor(LanguageModel):
    """After word n it says n + 1, and 0 after the last word of the vocabulary.

    The right word's logit stands `margin` above all others: 50 leaves chance no room, 0 leaves only chance.
    """

    def __init__(self, vocab_size: int, block_size: int = 8, margin: float = 50.0) -> None:
        super().__init__(vocab_size, block_size)
        self.margin = margin

    def logits(self, ids: Tensor) -> Tensor:
        return self.margin * F.one_hot((ids + 1) % self.vocab_size, self.vocab_size).float()  # (B, T, V)


class Die(LanguageModel):
    """After any word, word v has the share `shares[v]`; a share of 0 is never rolled, at any temperature.

    Example: Die([0.5, 0.0, 0.3, 0.2]) speaks of words 0, 2 and 3 only.
    """

    def __init__(self, shares: Sequence[float], block_size: int = 8) -> None:
        super().__init__(len(shares), block_size)
        self.shares = tuple(shares)

    def logits(self, ids: Tensor) -> Tensor:
        row = torch.tensor([math.log(share) if share > 0 else NEVER for share in self.shares])  # (V,)
        return row.expand(*ids.shape, -1).clone()  # (B, T, V)


class Coin(Die):
    """After any word it says `heads` with the given share and `tails` with the rest, and nothing else."""

    def __init__(
        self, vocab_size: int = 2, heads: int = 1, tails: int = 0, share: float = 0.8, block_size: int = 8
    ) -> None:
        shares = [0.0] * vocab_size
        shares[heads], shares[tails] = share, 1 - share
        super().__init__(shares, block_size)
        self.heads, self.tails = heads, tails


class Reverser(nn.Module):
    """A translator that says its source backwards, then EOS, and is never sure.

    Before the end the right word wins by `margin`, and the second choice is EOS; EOS itself wins by twice
    that. So only the largest logit of the right place leads through. What it says after its EOS is babble:
    the sentence once more. It depends on its masks as real models do: an encoder that hears PAD mistakes
    every word, a decoder that hears PAD repeats it. Whoever does not begin with BOS hears nothing but BOS.

    Example: with bos 1, eos 2, pad 0, the source 5 6 7 0 and y = BOS 7 6, the last place says 5.
    """

    def __init__(
        self, vocab_size: int, bos_id: int = 1, eos_id: int = 2, pad_id: int = 0, margin: float = 0.05
    ) -> None:
        super().__init__()
        self.vocab_size = vocab_size
        self.bos_id, self.eos_id, self.pad_id = bos_id, eos_id, pad_id
        self.margin = margin
        self.encodings: list[Call] = []
        self.decodings: list[Call] = []

    def encode(self, src: Tensor, src_padding_mask: Tensor | None = None) -> Tensor:
        """src (B, S), mask (B, S) with True where padding stands -> memory (B, S, V): the words, one-hot."""
        self.encodings.append(Call(src.detach().clone(), self.training, torch.is_grad_enabled()))
        hidden = torch.zeros_like(src, dtype=torch.bool) if src_padding_mask is None else src_padding_mask
        noise = ((src == self.pad_id) & ~hidden).sum(dim=1, keepdim=True)  # (B, 1), PADs that were heard
        words = torch.where(src == self.pad_id, src, (src + noise) % self.vocab_size)  # (B, S)
        return F.one_hot(words, self.vocab_size).float()  # (B, S, V)

    def decode(self, y: Tensor, memory: Tensor, memory_padding_mask: Tensor | None = None) -> Tensor:
        """y (B, T), BOS and what was said; memory (B, S, V), mask (B, S) -> logits (B, T, V)."""
        self.decodings.append(Call(y.detach().clone(), self.training, torch.is_grad_enabled()))
        hidden = memory.new_zeros(memory.shape[:2]) if memory_padding_mask is None else memory_padding_mask
        rows = [
            self._row(heard.tolist(), words[~silent.bool()].argmax(dim=-1).tolist())
            for heard, words, silent in zip(y, memory, hidden)
        ]
        return torch.stack(rows)  # (B, T, V)

    def forward(self, src: Tensor, y: Tensor, src_padding_mask: Tensor | None = None) -> Tensor:
        """Both in one go: (B, S) and (B, T) -> (B, T, V)."""
        return self.decode(y, self.encode(src, src_padding_mask), src_padding_mask)

    @property
    def encoder_calls(self) -> int:
        """How often the encoder ran."""
        return len(self.encodings)

    @property
    def context_lengths(self) -> list[int]:
        """How many words each call of `decode` showed."""
        return [call.ids.shape[1] for call in self.decodings]

    @property
    def modes(self) -> list[bool]:
        """For each call of `encode` and `decode`, whether the model was in training mode."""
        return [call.training for call in (*self.encodings, *self.decodings)]

    @property
    def grads(self) -> list[bool]:
        """For each call of `encode` and `decode`, whether gradients were kept."""
        return [call.grad for call in (*self.encodings, *self.decodings)]

    def _row(self, heard: list[int], words: list[int]) -> Tensor:
        """The logits of one sentence, (T, V)."""
        sentence = [*reversed(words), self.eos_id]
        lost = not heard or heard[0] != self.bos_id
        said = [self.bos_id if lost else self._said(sentence, t) for t in range(len(heard))]
        return torch.stack([self._logits(word, t) for t, word in enumerate(said)])

    def _said(self, sentence: list[int], t: int) -> int:
        if t < len(sentence):
            return sentence[t]
        babble = sentence[:-1] or [self.bos_id]
        return babble[(t - len(sentence)) % len(babble)]

    def _logits(self, word: int, t: int) -> Tensor:
        """The word at 0, EOS as the second choice, the others below in an order that changes with t."""
        steps = 2 + (torch.arange(self.vocab_size) + t) % 5
        steps[self.eos_id] = 1
        steps[word] = 0
        return -self.margin * steps.float()  # (V,)
