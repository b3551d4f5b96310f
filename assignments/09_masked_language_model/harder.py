"""Harder, and not graded: what a gap filler can say about whole sentences (about 40 minutes, ●●○).

A GPT gives each text a probability: the product of the probabilities of its words. BERT has nothing of the kind, since
it sees both sides of each gap. But there is a substitute. Hide one word, and read off ln p of the hidden word; do so for
each word of the sentence in turn; add up. This sum is the **pseudo-log-likelihood** (Julian Salazar and others, *Masked
Language Model Scoring*, 2020). It is not the logarithm of a probability, but it tells good sentences from bad ones well
enough to choose among translations.

And a gap filler can write. If a sentence has several gaps, filling all of them at once goes wrong: in *[MASK] [MASK] is
the capital*, *New* and *York* are both likely, and so are *San* and *Francisco*, but *New Francisco* is not. So fill
**one gap at a time**, the one of which the model is surest, and look again.

**By hand.** Sentence 1 2, two masked copies: [MASK] 2 and 1 [MASK]. If the model gives the 1 in the first copy 1/4 and
the 2 in the second 1/2, the sum is ln 1/4 + ln 1/2 = ln 1/8 = -2.079.

The model is any function of ids (B, T) that returns logits (B, T, V), such as yours of Part 3 in eval mode.

Write `pseudo_log_likelihood` and `fill`, and run `python harder.py`.
Each check stops after a minute of work.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from autograder import checks

Model = Callable[[Tensor], Tensor]
MASK = 0


def pseudo_log_likelihood(model: Model, ids: Tensor, mask_id: int) -> float:
    """The sum of ln p(word) over the words of ids (T,), each hidden alone. The model is called once, for all copies."""
    # TODO: T copies of the sentence, copy t with a gap at t                                # (T, T)
    # TODO: what does copy t say about the word at t?                                       # (T,)
    raise NotImplementedError("pseudo_log_likelihood is not written yet.")


def fill(model: Model, ids: Tensor, mask_id: int) -> Tensor:
    """The sentence ids (T,) with all gaps filled, one at a time: (T,). ids keep their values.

    Each time, of all gaps and all words but mask_id itself, take the gap and the word with the highest probability.
    """
    # TODO: as long as there are gaps: the probabilities at each gap, without the word mask_id    # (gaps, V)
    # TODO: ... the largest of all; fill this one gap
    raise NotImplementedError("fill is not written yet.")


class Pairs:
    """A model that knows which words follow each other: after n comes n + 1 (of 1 to 6, after 6 comes 1).

    A gap beside a known word gets the right word with probability `sure`, the others share the rest; a gap without a
    known neighbour gets its place + 1 with a little more than the rest. MASK itself gets 1/3 everywhere before that.
    """

    def __init__(self, sure: float = 0.8) -> None:
        self.sure, self.calls = sure, 0

    def __call__(self, ids: Tensor) -> Tensor:
        self.calls += 1
        B, T = ids.shape
        logits = torch.zeros(B, T, 7, dtype=torch.float64)
        for b in range(B):
            for t in range(T):
                right, sure = t % 6 + 1, 0.3
                if t > 0 and ids[b, t - 1] != MASK:
                    right, sure = int(ids[b, t - 1]) % 6 + 1, self.sure
                elif t + 1 < T and ids[b, t + 1] != MASK:
                    right, sure = (int(ids[b, t + 1]) + 4) % 6 + 1, self.sure - 0.1
                logits[b, t, 1:] = math.log((1 - sure) / 5)
                logits[b, t, right] = math.log(sure)
                logits[b, t, MASK] = math.log(0.5)                              # a third of all
        return logits


def score_by_hand() -> None:
    """If the hidden words get 1/4 and 1/2, the sum is ln 1/8."""

    def model(ids: Tensor) -> Tensor:
        logits = torch.full((*ids.shape, 4), -9.0, dtype=torch.float64)
        logits[0, 0] = torch.tensor([0.0, 1, 1, 2], dtype=torch.float64).log()  # the first copy, its gap
        logits[1, 1] = torch.tensor([1.0, 0, 2, 1], dtype=torch.float64).log()
        return logits

    score = pseudo_log_likelihood(model, torch.tensor([1, 2]), MASK)
    checks.true(abs(score - math.log(1 / 8)) < 1e-6, f"The sum is {score:.4f}; ln 1/8 = -2.0794 was expected.")


def each_word_is_hidden_alone() -> None:
    """The model sees each word hidden once, alone, in one call, and ids stay as they are."""
    seen: list[Tensor] = []

    def model(ids: Tensor) -> Tensor:
        seen.append(ids.clone())
        return torch.zeros(*ids.shape, 7)

    ids = torch.tensor([3, 1, 4, 5])
    pseudo_log_likelihood(model, ids, MASK)
    expected = torch.tensor([[0, 1, 4, 5], [3, 0, 4, 5], [3, 1, 0, 5], [3, 1, 4, 0]])
    checks.equal(len(seen), 1, "The number of calls")
    checks.equal(seen[0], expected, "What the model was asked")
    checks.equal(ids, torch.tensor([3, 1, 4, 5]), "The sentence afterwards")


def better_sentence() -> None:
    """To a model that likes to count, 2 3 4 5 is a better sentence than 2 3 5 4."""
    right, wrong = (pseudo_log_likelihood(Pairs(), torch.tensor(ids), MASK) for ids in ([2, 3, 4, 5], [2, 3, 5, 4]))
    checks.true(right > wrong, f"2 3 4 5 has {right:.3f}, and 2 3 5 4 has {wrong:.3f}.")


def one_gap_at_a_time() -> None:
    """Four gaps after a 5 and a gap before it become 4 5 6 1 2 3: each filled gap makes its neighbour sure."""
    ids = torch.tensor([0, 5, 0, 0, 0, 0])
    checks.equal(fill(Pairs(), ids, MASK), torch.tensor([4, 5, 6, 1, 2, 3]), "The filled sentence")
    checks.equal(ids, torch.tensor([0, 5, 0, 0, 0, 0]), "The sentence passed in, afterwards,")


def surest_first() -> None:
    """Of two gaps, the surer one is filled first, although it comes later."""
    asked: list[list[int]] = []
    model = Pairs()

    def listening(ids: Tensor) -> Tensor:
        asked.append(ids.reshape(-1).tolist())
        return model(ids)

    fill(listening, torch.tensor([0, 3, 0]), MASK)
    checks.equal(asked[:2], [[0, 3, 0], [0, 3, 4]], "What the model was asked, first and second,")


def no_gap_is_filled_with_a_gap() -> None:
    """Where [MASK] itself is the likeliest word, the likeliest other word is taken."""
    checks.equal(fill(Pairs(0.4), torch.tensor([2, 0]), MASK), torch.tensor([2, 3]), "The filled sentence")


def nothing_to_fill() -> None:
    """A sentence without gaps comes back as it is, and the other words of one with gaps do."""
    checks.equal(fill(Pairs(), torch.tensor([2, 6, 1]), MASK), torch.tensor([2, 6, 1]), "The sentence")


CHECKS = [
    score_by_hand, each_word_is_hidden_alone, better_sentence, one_gap_at_a_time, surest_first,
    no_gap_is_filled_with_a_gap, nothing_to_fill,
]


if __name__ == "__main__":
    from autograder.notebook import run_checks

    run_checks(CHECKS)
