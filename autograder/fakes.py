"""Fake models with known outputs and no training, to test the code that uses a model.

`Successor` counts, `Die` and `Coin` return the same distribution for every input, and `Reverser`
outputs its source backwards with a small margin. Pass one to a function that generates, samples or
decodes, and inspect its records:

    >>> fake = Successor(vocab_size=11, block_size=4)
    >>> generate(fake, torch.tensor([[7, 8]]), max_new_tokens=3)     # tensor([[7, 8, 9, 10, 0]])
    >>> fake.context_lengths, any(fake.modes), any(fake.grads)       # ([2, 3, 4], False, False)

Each is an `nn.Module` without parameters: `eval()`, `train()` and `training` work as usual. The
fakes do not learn, draw random numbers or check anything.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

NEVER = -1e6  # a finite logit that is improbable at every practical temperature


@dataclass(frozen=True)
class Call:
    """One call of a fake: its input ids (B, T), the training mode, and whether gradients were enabled."""

    ids: Tensor
    training: bool
    grad: bool


class Fake(nn.Module):
    """Base class of the fakes: a module without parameters that records each call, of an encoder or a decoder."""

    def __init__(self) -> None:
        super().__init__()
        self.encodings: list[Call] = []
        self.decodings: list[Call] = []

    def _record(self, calls: list[Call], ids: Tensor) -> None:
        calls.append(Call(ids.detach().clone(), self.training, torch.is_grad_enabled()))

    @property
    def context_lengths(self) -> list[int]:
        """The context length of each call of the decoder."""
        return [call.ids.shape[1] for call in self.decodings]

    @property
    def modes(self) -> list[bool]:
        """For each call, whether the model was in training mode."""
        return [call.training for call in (*self.encodings, *self.decodings)]

    @property
    def grads(self) -> list[bool]:
        """For each call, whether gradients were enabled."""
        return [call.grad for call in (*self.encodings, *self.decodings)]


class LanguageModel(Fake):
    """Base class of fake language models: `model(ids, targets=None) -> (logits, loss or None)`.

    `block_size` is the maximum context length; a longer context raises ValueError, as in a real
    model.
    """

    def __init__(self, vocab_size: int, block_size: int) -> None:
        super().__init__()
        self.vocab_size = vocab_size
        self.block_size = block_size
        self.calls = self.decodings  # a language model is a decoder alone

    def forward(self, ids: Tensor, targets: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        """Map ids (B, T) to logits (B, T, V) and, with targets (B, T), their mean cross-entropy."""
        self._record(self.calls, ids)
        if ids.shape[1] > self.block_size:
            raise ValueError(
                f"the context has T = {ids.shape[1]} words, but block_size = {self.block_size}"
            )
        logits = self.logits(ids)  # (B, T, V)
        if targets is None:
            return logits, None
        right = logits.log_softmax(dim=-1).gather(-1, targets.unsqueeze(-1))  # (B, T, 1)
        return logits, -right.mean()

    def logits(self, ids: Tensor) -> Tensor:
        """Return the logits after each token: (B, T) -> (B, T, V)."""
        raise NotImplementedError


class Successor(LanguageModel):
    """A language model that predicts token n + 1 after token n, and 0 after the last token of the vocabulary.

    The logit of the predicted token exceeds all others by `margin`: with 50 it is practically
    certain, with 0 all tokens are equally likely.
    """

    def __init__(self, vocab_size: int, block_size: int = 8, margin: float = 50.0) -> None:
        super().__init__(vocab_size, block_size)
        self.margin = margin

    def logits(self, ids: Tensor) -> Tensor:
        # (B, T, V)
        return self.margin * F.one_hot((ids + 1) % self.vocab_size, self.vocab_size).float()


class Die(LanguageModel):
    """A language model that gives token v the probability `shares[v]` after any token.

    A token with probability 0 is never drawn, at any temperature. Example: Die([0.5, 0.0, 0.3,
    0.2]) yields only tokens 0, 2 and 3.
    """

    def __init__(self, shares: Sequence[float], block_size: int = 8) -> None:
        super().__init__(len(shares), block_size)
        self.shares = tuple(shares)

    def logits(self, ids: Tensor) -> Tensor:
        # (V,)
        row = torch.tensor([math.log(share) if share > 0 else NEVER for share in self.shares])
        return row.expand(*ids.shape, -1).clone()  # (B, T, V)


class Coin(Die):
    """A language model that yields `heads` with the given probability and otherwise `tails`, after any token."""

    def __init__(
        self,
        vocab_size: int = 2,
        heads: int = 1,
        tails: int = 0,
        share: float = 0.8,
        block_size: int = 8,
    ) -> None:
        shares = [0.0] * vocab_size
        shares[heads] = share
        shares[tails] = 1 - share
        super().__init__(shares, block_size)
        self.heads = heads
        self.tails = tails


class Reverser(Fake):
    """A translation model that outputs its source backwards, then EOS, with a small margin.

    Before the end the correct token leads by `margin`, with EOS second; EOS itself leads by twice
    that. So only the argmax at the correct position decodes the sentence. After EOS the output is
    arbitrary: the sentence once more. The output depends on the masks as in a real model: if the
    encoder attends to PAD, every token is wrong; if the decoder attends to PAD, it repeats PAD. If
    `y` does not begin with BOS, the output is always BOS.

    Example: with bos 1, eos 2, pad 0, the source 5 6 7 0 and y = BOS 7 6, the last position
    predicts 5.
    """

    def __init__(
        self,
        vocab_size: int,
        bos_id: int = 1,
        eos_id: int = 2,
        pad_id: int = 0,
        margin: float = 0.05,
    ) -> None:
        super().__init__()
        self.vocab_size = vocab_size
        self.bos_id = bos_id
        self.eos_id = eos_id
        self.pad_id = pad_id
        self.margin = margin

    def encode(self, src: Tensor, src_padding_mask: Tensor | None = None) -> Tensor:
        """Map src (B, S) and a mask (B, S), True at padding, to memory (B, S, V): one-hot tokens."""
        self._record(self.encodings, src)
        hidden = (
            torch.zeros_like(src, dtype=torch.bool)
            if src_padding_mask is None
            else src_padding_mask
        )
        shift = ((src == self.pad_id) & ~hidden).sum(dim=1, keepdim=True)  # (B, 1), unmasked PADs
        tokens = torch.where(src == self.pad_id, src, (src + shift) % self.vocab_size)  # (B, S)
        return F.one_hot(tokens, self.vocab_size).float()  # (B, S, V)

    def decode(
        self, y: Tensor, memory: Tensor, memory_padding_mask: Tensor | None = None
    ) -> Tensor:
        """Map y (B, T), BOS and the previous output, memory (B, S, V) and mask (B, S) to logits (B, T, V)."""
        self._record(self.decodings, y)
        hidden = (
            memory.new_zeros(memory.shape[:2])
            if memory_padding_mask is None
            else memory_padding_mask
        )
        rows = [
            self._row(output.tolist(), tokens[~padding.bool()].argmax(dim=-1).tolist())
            for output, tokens, padding in zip(y, memory, hidden)
        ]
        return torch.stack(rows)  # (B, T, V)

    def forward(self, src: Tensor, y: Tensor, src_padding_mask: Tensor | None = None) -> Tensor:
        """Encode and decode: (B, S) and (B, T) -> (B, T, V)."""
        return self.decode(y, self.encode(src, src_padding_mask), src_padding_mask)

    @property
    def encoder_calls(self) -> int:
        """The number of encoder calls."""
        return len(self.encodings)

    def _row(self, output: list[int], source: list[int]) -> Tensor:
        """Return the logits of one sentence, (T, V)."""
        sentence = [*reversed(source), self.eos_id]
        begun = bool(output) and output[0] == self.bos_id
        tokens = [self._token(sentence, t) if begun else self.bos_id for t in range(len(output))]
        return torch.stack([self._logits(token, t) for t, token in enumerate(tokens)])

    def _token(self, sentence: list[int], t: int) -> int:
        if t < len(sentence):
            return sentence[t]
        after_eos = sentence[:-1] or [self.bos_id]
        return after_eos[(t - len(sentence)) % len(after_eos)]

    def _logits(self, word: int, t: int) -> Tensor:
        """Return the logits of `word` as 0, EOS second, the others below in an order that depends on t."""
        steps = 2 + (torch.arange(self.vocab_size) + t) % 5
        steps[self.eos_id] = 1
        steps[word] = 0
        return -self.margin * steps.float()  # (V,)
