"""Harder, and not graded: attention that never writes its table down (about 45 minutes, ●●●).

A cache saves work; this saves memory. For T queries and S keys, ordinary attention writes down a table of T × S
weights. With 100,000 words that is ten billion numbers for each head. FlashAttention (Tri Dao and others, 2022)
reads the keys in *tiles* of a few at a time and never holds more than T × tile scores. So can you.

The difficulty is the softmax: its sum runs over all keys, and you see them tile by tile. Keep three things for each
query while the tiles go by:

    m    the largest score so far               begins at -inf
    l    the sum of e^(score - m) so far        begins at 0
    o    the sum of e^(score - m) · value       begins at 0

When a tile brings a larger score, m grows, and what is in l and o was computed with the old m: multiply both by
e^(old m - new m) before you add the tile. In the end, o / l is the output. This is called the *online softmax*.

**One number by hand.** Scores ln 1, ln 3 | ln 6, in tiles of two, with the values 10, 20 | 30. After the first tile,
m = ln 3, l = 1/3 + 1 = 4/3 and o = 10/3 + 20 = 70/3. The second tile has m = ln 6, so both are halved: l = 2/3 and
o = 35/3. It adds 1 and 30: l = 5/3, o = 125/3. The output is 25, as it should be: (1·10 + 3·20 + 6·30) / 10.

Write `tiled_attention`, and run `python harder.py`.
Each check stops after a minute of work.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from autograder import checks


def tiled_attention(q: Tensor, k: Tensor, v: Tensor, tile: int) -> Tensor:
    """Attention without a mask, reading `tile` keys and values at a time; the last tile may be shorter.

    q (..., T, D), k (..., S, D), v (..., S, E) -> (..., T, E). Scores are divided by √D.
    No tensor in between is larger than the outputs, the inputs, or (..., T, tile).
    """
    # TODO: m, l and o for every query                                          # (..., T, 1), (..., T, 1), (..., T, E)
    # TODO: for each tile: its scores, the new m, the old l and o brought to it, and what the tile adds
    raise NotImplementedError("tiled_attention is not written yet.")


def of_some_size(T: int, S: int, scale: float = 1.0) -> tuple[Tensor, Tensor, Tensor]:
    dice = torch.Generator().manual_seed(13)
    sizes = ((2, T, 5), (2, S, 5), (2, S, 3))
    q, k, v = (torch.randn(size, generator=dice, dtype=torch.float64) for size in sizes)
    return scale * q, k, v


def by_hand() -> None:
    """Scores ln 1, ln 3, ln 6 and values 10, 20, 30 give 25."""
    q, k = torch.ones(1, 1, dtype=torch.float64), torch.tensor([[1.0], [3.0], [6.0]], dtype=torch.float64).log()
    v = torch.tensor([[10.0], [20.0], [30.0]], dtype=torch.float64)
    checks.close(tiled_attention(q, k, v, 2), torch.tensor([[25.0]], dtype=torch.float64), "The output")


def equal_to_pytorch() -> None:
    """Whatever the tile, the output is that of PyTorch's attention."""
    q, k, v = of_some_size(7, 11)
    for tile in (1, 2, 4, 11, 50):
        expected = F.scaled_dot_product_attention(q, k, v)
        checks.close(tiled_attention(q, k, v, tile), expected, f"The output for tiles of {tile}")


def large_scores() -> None:
    """Scores of some thousands overflow nowhere, whether the largest comes first or last."""
    q, k, v = of_some_size(7, 11, scale=3000.0)
    for order in (1, -1):
        keys, values = (k, v) if order == 1 else (k.flip(-2), v.flip(-2))
        expected = F.scaled_dot_product_attention(q, keys, values)
        checks.close(tiled_attention(q, keys, values, 3), expected, "The output for large scores")


class _Sizes(TorchDispatchMode):
    """Remembers the largest tensor that is made while it is active."""

    def __init__(self) -> None:
        super().__init__()
        self.largest: tuple[int, ...] = ()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        for made in result if isinstance(result, (tuple, list)) else (result,):
            if isinstance(made, Tensor) and made.numel() > math.prod(self.largest):
                self.largest = tuple(made.shape)
        return result


def no_table() -> None:
    """The table of all scores is never written down."""
    q, k, v = of_some_size(40, 60)
    with _Sizes() as sizes:
        tiled_attention(q, k, v, 4)
    most = max(q.numel(), k.numel(), v.numel())
    assert math.prod(sizes.largest) <= most, (
        f"For 40 queries, 60 keys and tiles of 4, a tensor of shape {sizes.largest} is made; none needs more than "
        f"{most} numbers."
    )


CHECKS = [by_hand, equal_to_pytorch, large_scores, no_table]


if __name__ == "__main__":
    from autograder.notebook import run_checks

    run_checks(CHECKS)
