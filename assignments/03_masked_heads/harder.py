"""Harder, and not graded: windows and distances (about 40 minutes, ●●○).

The causal mask lets each word attend to everything before it. Two other rules are in use today.

**A window.** Each word attends to itself and to the `width - 1` words before it, and no further: for long texts, this
saves almost all of the work. Is the rest of the text lost? No: the word at the edge of your window has looked into a
window of its own, one layer below. *Mistral 7B* (2023) has a width of 4,096 and 32 layers, and a word of its last
layer can know about some 131,000 words. How far does information travel through a given mask? Position t knows of s
after N layers if there is a path of N steps from t to s, each allowed by the mask. A word keeps what it knows, so you
may take the diagonal for granted.

**A penalty.** ALiBi (*Train Short, Test Long*, 2021) has no vectors for positions. It lowers each score by the distance
times a slope: head h of H (counted from 1) has the slope 2^(-8h/H), so some heads are short-sighted and others are not.

**By hand.** With T = 4 and width 2, the rows of the mask have 1, 2, 2 and 2 ticks. After two layers, word 3 knows of
words 1, 2 and 3: one further back. With 8 heads, the first one has the slope 1/2, and its word 2 gets the penalties
-1, -1/2 and 0. If all its scores are equal, its weights are 0.186, 0.307 and 0.506.

Write `window_mask`, `reach` and `alibi`, and run `python harder.py`.
Each check stops after a minute of work.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from autograder import checks


def window_mask(T: int, width: int) -> Tensor:
    """True where attention is allowed: to the word itself and to the width - 1 words before it. BoolTensor (T, T)."""
    # TODO: the distance of each pair of positions, and which distances are allowed         # (T, T)
    raise NotImplementedError("window_mask is not written yet.")


def reach(mask: Tensor, layers: int) -> Tensor:
    """Row t is True at each word that position t can know about after so many layers (>= 1). Bool (T, T) -> (T, T).

    Each layer attends as the mask allows and adds its output to what a position knew before.
    """
    # TODO: follow the paths, layer by layer                                                # (T, T)
    raise NotImplementedError("reach is not written yet.")


def alibi(T: int, num_heads: int) -> Tensor:
    """What is added to the scores of each head: float32 (H, T, T), -inf where a word would attend to a later one."""
    # TODO: the slopes; the distances; and no look ahead                                    # (H, 1, 1), (T, T)
    raise NotImplementedError("alibi is not written yet.")


def ticks_by_hand() -> None:
    """A window of two words in a text of four has 1, 2, 2 and 2 ticks."""
    expected = torch.tensor([[1, 0, 0, 0], [1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1]]).bool()
    checks.equal(window_mask(4, 2), expected, "window_mask(4, 2)")


def widest_and_narrowest() -> None:
    """A window of one word is the diagonal; one that is wider than the text forbids only the future."""
    checks.equal(window_mask(5, 1), torch.eye(5).bool(), "window_mask(5, 1)")
    checks.equal(window_mask(5, 9).sum(dim=1), torch.arange(1, 6), "The number of ticks in each row")


def paths() -> None:
    """Through N windows of width w, each word knows of (w - 1) · N words before it, if there are so many."""
    for width, layers in ((2, 1), (2, 2), (3, 2), (4, 5)):
        known = reach(window_mask(20, width), layers)
        checks.dtype(known, torch.bool, "The reach")
        expected = torch.arange(20).clamp(max=(width - 1) * layers) + 1
        checks.equal(known.sum(dim=1), expected, f"The words known after {layers} layers of width {width}")


def keeps_what_it_knows() -> None:
    """A mask without a diagonal forgets nothing: what a position knew is still there after the next layer."""
    before = torch.zeros(4, 4, dtype=torch.bool)
    before[[1, 2, 3], [0, 1, 2]] = True                                         # each word attends to the one before
    expected = torch.tensor([[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [0, 1, 1, 1]]).bool()
    checks.equal(reach(before, 2), expected, "The reach after two layers")


def slopes_by_hand() -> None:
    """The first of eight heads lowers the scores of word 2 by 1 and 1/2, and its weights are 0.186, 0.307, 0.506."""
    row = alibi(4, 8)[0, 2]
    checks.close(row, torch.tensor([-1, -0.5, 0, -torch.inf]), "Row 2 of head 0")
    checks.close(row.softmax(dim=-1)[:3], torch.tensor([0.186, 0.307, 0.506]), "Its weights", atol=1e-3)


def slopes() -> None:
    """The slopes of two, four and eight heads end at 1/256."""
    for heads, first in ((2, 1 / 16), (4, 1 / 4), (8, 1 / 2)):
        bias = alibi(3, heads)
        checks.shape(bias, (heads, 3, 3), "The penalties")
        ends = torch.tensor([-first, -1 / 256])
        checks.close(bias[[0, -1], 1, 0], ends, f"The first and the last slope of {heads} heads")


def works_in_attention() -> None:
    """Added to the scores, it keeps the future out and prefers what is near."""
    x = torch.zeros(1, 4, 6, 5)
    values = torch.eye(6).expand(1, 4, 6, 6)
    weights = F.scaled_dot_product_attention(x, x, values, attn_mask=alibi(6, 4))
    checks.rows_sum_to_one(weights, "The weights")
    growing = bool((weights.diff(dim=-1)[0, :, 5] > 0).all())
    checks.true(growing, "The weights of the last word do not grow with nearness.")
    checks.true(not weights.triu(1).any(), "A word attends to a later one.")


CHECKS = [ticks_by_hand, widest_and_narrowest, paths, keeps_what_it_knows, slopes_by_hand, slopes, works_in_attention]


if __name__ == "__main__":
    from autograder.notebook import run_checks

    run_checks(CHECKS)
