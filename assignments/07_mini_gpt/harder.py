"""Harder, and not graded: beam search (about 45 minutes, ●●●).

Part 5 ended with a question: the most likely text is not found by taking the most likely word every time. **Beam
search** comes nearer to it. It keeps not one text but the `width` best ones, the *beams*. In each step, each beam is
continued by every word of the vocabulary; of all these texts, the `width` most likely ones are kept. The probability
of a text is the product of the probabilities of its words, so its logarithm is a sum, and sums are what you add up:
a product of a hundred probabilities would soon be zero.

**By hand.** There are three words, 0 to 2. After 0 come 1 (probability 0.6) and 2 (0.4). After 1 come 0 (0.35), 1 (0.35)
and 2 (0.3); after 2 comes 0 (0.9), or 1 or 2 (0.05 each). Greedily, 0 is followed by 1, and the best text of three
words that begins in this way, 0 1 0, has the probability 0.6 · 0.35 = 0.21. With two beams, 0 2 is kept as well, and
0 2 0 with 0.4 · 0.9 = 0.36 wins.

All beams go through the model in one batch. In the first step there is only one beam; if you begin with `width` copies
of it, all beams stay the same for ever.

Write `beam_search`, and run `python harder.py`.
Each check stops after a minute of work. Then try it on your trained model: what is the most likely text like, in
comparison with a drawn one?
"""

import itertools
import math

import torch
from torch import Tensor, nn

from autograder import checks


def beam_search(model: nn.Module, ids: Tensor, steps: int, width: int) -> tuple[Tensor, float]:
    """The most likely continuation of ids that beam search finds, and the logarithm of its probability.

    model: `model(ids (B, T))` returns logits (B, T, V) and a loss (None); it takes at most `model.block_size` words and
    gets the last ones. It is in eval mode. ids: (1, T). width may be larger than V.
    Returns the text (1, T + steps), ids included, and the sum of ln p of its new words, a plain number. The model is
    called once a step, without gradients.
    """
    # TODO: one beam and its score                                                          # (1, T), (1,)
    # TODO: as often as asked: the score of each beam with each next word                   # (beams, V)
    # TODO: ... the best `width` of them: which beam was continued, and by which word?      # (≤ width,)
    # TODO: the best beam
    raise NotImplementedError("beam_search is not written yet.")


class Table(nn.Module):
    """A language model whose next word depends on the last word only, by a table of probabilities (V, V)."""

    def __init__(self, table: Tensor, block_size: int = 8) -> None:
        super().__init__()
        self.table, self.block_size, self.calls = table.double(), block_size, 0

    def forward(self, ids: Tensor) -> tuple[Tensor, None]:
        if ids.shape[1] > self.block_size:
            raise ValueError(f"The model got {ids.shape[1]} words, but it takes block_size = {self.block_size}.")
        self.calls += 1
        return self.table[ids].log() + ids[..., None], None                     # (B, T, V), not yet normalised


THREE = Table(torch.tensor([[0.0, 0.6, 0.4], [0.35, 0.35, 0.3], [0.9, 0.05, 0.05]]))


def found(model: Table, beginning: list[int], steps: int, width: int) -> tuple[list[int], float]:
    ids = torch.tensor([beginning])
    text, score = checks.unpack(beam_search(model, ids, steps, width), ["the text", "its score"])
    checks.shape(text, (1, len(beginning) + steps), "The text")
    return text[0].tolist(), score


def true_score(model: Table, text: list[int], begin: int) -> float:
    return sum(math.log(model.table[a, b]) for a, b in itertools.pairwise(text[begin - 1 :]))


def by_hand() -> None:
    """Two beams find the text 0 2 0 with a probability of 0.36; a single beam ends with 0.21."""
    text, score = found(THREE, [0], 2, 2)
    checks.equal(text, [0, 2, 0], "The text of two beams")
    checks.true(abs(score - math.log(0.36)) < 1e-6, f"Its score is {score:.4f}; ln 0.36 = -1.0217 was expected.")
    text, score = found(THREE, [0], 2, 1)
    checks.equal(text[:2], [0, 1], "The beginning of the greedy text")
    checks.true(abs(score - math.log(0.21)) < 1e-6, f"Its score is {score:.4f}; ln 0.21 = -1.5606 was expected.")


def some_table(seed: int, V: int) -> Table:
    dice = torch.Generator().manual_seed(seed)
    return Table((2 * torch.randn(V, V, generator=dice, dtype=torch.float64)).softmax(dim=-1))


def as_good_as_trying_all() -> None:
    """With enough beams, nothing is more likely than what is found."""
    for seed in range(6):
        model = some_table(seed, 4)
        text, score = found(model, [seed % 4, 1], 4, 64)
        best = max(true_score(model, [1, *rest], 1) for rest in itertools.product(range(4), repeat=4))
        checks.true(abs(score - best) < 1e-6, f"The best text has the score {best:.4f}, but {score:.4f} was found.")
        checks.true(abs(true_score(model, text, 2) - score) < 1e-6, "The score is not that of the text.")


def keeps_the_beginning() -> None:
    """The text begins with the words passed in, also when they are more than the context window takes."""
    text, _ = found(some_table(3, 5), [0, 1, 2, 3, 4, 0, 1, 2, 3, 4], 5, 3)
    checks.equal(text[:10], [0, 1, 2, 3, 4, 0, 1, 2, 3, 4], "The beginning of the text")


def beams_are_kept() -> None:
    """Of two beams, both can come from the same one: with 3 beams, the score is the one computed step by step."""
    for seed in range(8):
        model = some_table(seed, 6)
        beams = [([0], 0.0)]
        for _ in range(5):
            longer = [([*text, w], s + math.log(model.table[text[-1], w])) for text, s in beams for w in range(6)]
            beams = sorted(longer, key=lambda beam: -beam[1])[:3]
        text, score = found(model, [0], 5, 3)
        checks.equal(text, beams[0][0], "The text of three beams")


def one_batch() -> None:
    """The model is called once a step, for all beams together."""
    model = some_table(1, 5)
    found(model, [2], 4, 3)
    checks.equal(model.calls, 4, "The number of calls for 4 steps")


CHECKS = [by_hand, as_good_as_trying_all, keeps_the_beginning, beams_are_kept, one_batch]


if __name__ == "__main__":
    from autograder.notebook import run_checks

    run_checks(CHECKS)
