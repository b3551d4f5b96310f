"""Harder, and not graded: find an induction head (about 30 minutes, ●●○).

*Mr Dursley … Mr*: what comes next? A model that has seen the pair once can copy it: look for the place where the
present word stood before, go **one step on**, and attend to the word there. A head that does this is called an
*induction head* (Olsson and others, *In-context Learning and Induction Heads*, 2022). It is the simplest way in which
a Transformer learns from its own context, and it needs two layers: a head of the first layer tells each word which word
came before it, and the induction head of the second layer asks for that.

How would you find one among 144 heads? Feed the model random words, and the same words once more. Then nothing but
copying can help, and you know where each head ought to look. For each word that has been there before, take the latest
such place, and read the attention weight on the word *after* it. The mean of these weights is the head's score: 1 for a
perfect induction head, nearly 0 for most others.

**By hand.** The ids are 5 3 8 5 3. The word at position 3 is 5 and stood at 0, so it should attend to 1; the word at
position 4 is 3 and stood at 1, so it should attend to 2. A head whose weights there are 0.9 and 0.5 scores 0.7. The
other positions have no earlier place and do not count.

Write `induction_scores` and `silenced`, and run `python harder.py`.
Each check stops after a minute of work.
"""

import torch
from torch import Tensor

from autograder import checks


def induction_scores(weights: Tensor, ids: Tensor) -> Tensor:
    """How much of an induction head each head is: a score between 0 and 1.

    weights (H, T, T): row t of a head holds the attention weights of word t, all keys of a row together 1.
    ids (T,): the words. Returns (H,), in the number type of the weights; zeros if no word occurs twice.
    """
    # TODO: the positions whose word has been there before, and for each the position after the latest such place
    # TODO: the mean of the weights from the former to the latter                           # (H,)
    raise NotImplementedError("induction_scores is not written yet.")


def silenced(outputs: Tensor, head: int) -> Tensor:
    """The outputs of all heads, side by side, with those of one head replaced by zeros (an *ablation*).

    outputs (H, T, D): what each head says, before the output projection. Returns (H, T, D); outputs keep their values.
    """
    # TODO: a copy in which this head says nothing                                          # (H, T, D)
    raise NotImplementedError("silenced is not written yet.")


def by_hand() -> None:
    """The words 5 3 8 5 3 and weights of 0.9 and 0.5 in the right places score 0.7."""
    weights = torch.zeros(1, 5, 5, dtype=torch.float64)
    weights[0, 3, 1], weights[0, 3, 0] = 0.9, 0.1
    weights[0, 4, 2], weights[0, 4, 4] = 0.5, 0.5
    weights[0, :3, 0] = 1.0
    expected = torch.tensor([0.7], dtype=torch.float64)
    checks.close(induction_scores(weights, torch.tensor([5, 3, 8, 5, 3])), expected, "The score")


def heads_apart() -> None:
    """An induction head scores 1; one that looks at the word before, or at the same word, scores 0."""
    ids = torch.tensor([4, 7, 1, 9, 4, 7, 1, 9])
    weights = torch.zeros(3, 8, 8, dtype=torch.float64)
    for t in range(8):
        weights[0, t, t - 3 if t >= 4 else 0] = 1.0  # the word after the earlier place
        weights[1, t, max(t - 1, 0)] = 1.0  # the word before
        weights[2, t, t - 4 if t >= 4 else t] = 1.0  # the earlier place itself
    expected = torch.tensor([1.0, 0.0, 0.0], dtype=torch.float64)
    checks.close(induction_scores(weights, ids), expected, "The scores")


def latest_place() -> None:
    """Of several earlier places, the latest one counts."""
    weights = torch.zeros(1, 5, 5, dtype=torch.float64)
    weights[0, 2, 1], weights[0, 4, 3] = 1.0, 1.0
    expected = torch.ones(1, dtype=torch.float64)
    checks.close(induction_scores(weights, torch.tensor([6, 2, 6, 0, 6])), expected, "The score")


def nothing_twice() -> None:
    """If no word occurs twice, the scores are zeros, not NaN."""
    weights = torch.full((2, 3, 3), 1 / 3)
    checks.close(induction_scores(weights, torch.tensor([2, 0, 1])), torch.zeros(2), "The scores")


def ablation() -> None:
    """A silenced head says zeros; the others, and the tensor passed in, stay as they are."""
    outputs = torch.arange(24.0).reshape(3, 4, 2) + 1
    quiet = silenced(outputs, 1)
    assert bool((outputs == torch.arange(24.0).reshape(3, 4, 2) + 1).all()), "The outputs passed in have changed."
    checks.close(quiet[1], torch.zeros(4, 2), "What head 1 says")
    checks.close(quiet[[0, 2]], outputs[[0, 2]], "What heads 0 and 2 say")


CHECKS = [by_hand, heads_apart, latest_place, nothing_twice, ablation]


if __name__ == "__main__":
    from autograder.notebook import run_checks

    run_checks(CHECKS)
