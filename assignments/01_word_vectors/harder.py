"""Harder, and not graded: word vectors without training (about 40 minutes, ●●○).

Skip-gram plays a guessing game many thousand times. Its result can also be computed directly: Omer Levy and Yoav
Goldberg showed (*Neural Word Embedding as Implicit Matrix Factorization*, 2014) that the game factorises a table which
one can simply count. Three steps:

1. **Count** how often each word stands near each other word: a table (V, V).
2. **Compare** each count with chance. Let p(w, c) be the share of the pair among all pairs, and p(w), p(c) the shares of
   its words. The *pointwise mutual information* ln(p(w, c) / (p(w) · p(c))) is 0 if the two meet as often as chance
   would have it, and positive if they like each other's company. Negative values, and pairs that never occur, become 0.
3. **Compress**: the singular value decomposition M = U · diag(S) · Vᵀ orders what is in the table by importance. The
   first k columns of U, each times the root of its singular value, are the word vectors.

**By hand.** The text is 0 1 0 2 and the window is 1. The pairs (centre, context) are (0, 1) twice, (1, 0) twice, (0, 2)
and (2, 0): 6 in all. Word 0 is the centre of 3 pairs, word 1 of 2, word 2 of 1. So the value of (0, 1) is
ln((2/6) / (3/6 · 2/6)) = ln 2, and that of (0, 2) is ln((1/6) / (3/6 · 1/6)) = ln 2, too: the rare word is just as
tied to its neighbour as the frequent one.

Write `counts`, `ppmi` and `vectors`, and run `python harder.py`.
Each check stops after a minute of work.
"""

import math

import torch
from torch import Tensor

from autograder import checks


def counts(ids: list[int], window: int, vocab_size: int) -> Tensor:
    """How often each word (row) has each word (column) within `window` words to its left or right: float64 (V, V)."""
    # TODO: for each position, add 1 for each neighbour                                     # (V, V)
    raise NotImplementedError("counts is not written yet.")


def ppmi(table: Tensor) -> Tensor:
    """The positive pointwise mutual information of a table of counts, (V, V) -> (V, V), in natural logarithms.

    Negative values become 0, and so do pairs that never occur, also those of a word without any pair.
    """
    # TODO: the shares of pairs, of centres and of contexts; the logarithm of their ratio; nothing below 0
    raise NotImplementedError("ppmi is not written yet.")


def vectors(table: Tensor, size: int) -> Tensor:
    """The word vectors (V, size): the first columns of U, each times the root of its singular value."""
    # TODO: a singular value decomposition, cut after `size` columns                        # (V, size)
    raise NotImplementedError("vectors is not written yet.")


def counted_by_hand() -> None:
    """In the text 0 1 0 2, words 0 and 1 meet twice and words 0 and 2 once; words 1 and 2 never do."""
    expected = torch.tensor([[0.0, 2, 1], [2, 0, 0], [1, 0, 0]], dtype=torch.float64)
    checks.close(counts([0, 1, 0, 2], 1, 3), expected, "The table of counts")


def wider_window() -> None:
    """A window of 2 counts neighbours and their neighbours, and ends at the ends of the text."""
    expected = torch.tensor([[0.0, 1, 1, 0], [1, 0, 1, 1], [1, 1, 0, 1], [0, 1, 1, 0]], dtype=torch.float64)
    checks.close(counts([0, 1, 2, 3], 2, 4), expected, "The table of counts")


def compared_by_hand() -> None:
    """Both pairs of the text 0 1 0 2 have the value ln 2, and a word that never occurs has zeros."""
    two = math.log(2)
    table = torch.tensor([[0.0, 2, 1, 0], [2, 0, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0]], dtype=torch.float64)
    expected = torch.tensor([[0, two, two, 0], [two, 0, 0, 0], [two, 0, 0, 0], [0, 0, 0, 0]], dtype=torch.float64)
    checks.close(ppmi(table), expected, "The table of values")


def rarer_than_chance() -> None:
    """A pair that meets less often than chance would have it has the value 0, not a negative one."""
    table = torch.tensor([[9.0, 1], [1, 1]], dtype=torch.float64)
    expected = (torch.tensor([[9.0 / 100, 1 / 20], [1 / 20, 1 / 4]], dtype=torch.float64) * 12).log().clamp(min=0)
    checks.close(ppmi(table), expected, "The table of values")


def all_columns() -> None:
    """With all columns, the products of the vectors with themselves are U · diag(S) · Uᵀ."""
    dice = torch.Generator().manual_seed(3)
    table = torch.randn(5, 5, generator=dice, dtype=torch.float64)
    u, s, _ = torch.linalg.svd(table)
    for size in (5, 2):
        made = vectors(table, size)
        checks.shape(made, (5, size), "The vectors")
        checks.close(made @ made.T, u[:, :size] @ torch.diag(s[:size]) @ u[:, :size].T, f"Their products, size {size},")


def neighbours() -> None:
    """In 48 small sentences, each word's nearest one is of its own kind: animals, tools, meals, places."""
    kinds = [["cat", "dog", "horse"], ["hammer", "saw", "drill"], ["bread", "soup", "rice"], ["shed", "yard", "barn"]]
    words = [word for kind in kinds for word in kind]
    ids = []
    for turn in range(48):
        first, second = (0, 2) if turn % 2 else (1, 3)
        ids += [words.index(kinds[first][turn // 2 % 3]), words.index(kinds[second][turn // 6 % 3]), 12]
    made = vectors(ppmi(counts(ids, 1, 13)), 4)[:12]
    likeness = torch.nn.functional.cosine_similarity(made[:, None], made[None], dim=-1)
    likeness.fill_diagonal_(-2)
    for word, best in enumerate(likeness.argmax(dim=-1).tolist()):
        checks.true(word // 3 == best // 3, f"The nearest word of {words[word]} is {words[best]}.")


CHECKS = [counted_by_hand, wider_window, compared_by_hand, rarer_than_chance, all_columns, neighbours]


if __name__ == "__main__":
    from autograder.notebook import run_checks

    run_checks(CHECKS)
