"""Harder, and not graded: heads that share their keys (about 35 minutes, ●●○).

While a model writes, it keeps the keys and values of all words so far, for each head of each layer. In a large model
this *cache* fills more memory than anything else. So newer models let several heads share one pair of key and value:
*grouped-query attention* (Joshua Ainslie and others, 2023). There are still H heads that ask, but only G groups that
answer; head h belongs to group h // (H / G). With G = H it is the attention that you know, with G = 1 all heads share
one key and one value (*multi-query attention*, Noam Shazeer, 2019).

A model that has been trained with H heads can be converted: the weights of a group's key are the *mean* of the weights
of its heads' keys, and the same for values. A little more training then repairs most of what is lost.

**By hand.** With 4 heads and 2 groups, heads 0 and 1 belong to group 0, heads 2 and 3 to group 1. If the four heads are
one number wide and their key weights are the rows 1, 3, 10 and 20, the groups get 2 and 15. And the memory: Llama 2 in
its largest size has 80 layers, 64 heads of width 128, and 8 groups. For 4,096 words its cache holds
2 · 80 · 8 · 128 · 4096 = 671,088,640 numbers. Without groups it would be eight times as many. Assignment 13 has the
whole layer, with its cache.

Write `grouped_attention`, `pooled` and `cache_numbers`, and run `python harder.py`.
Each check stops after a minute of work.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from autograder import checks


def grouped_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Causal attention in which several heads share a key and a value.

    q (B, H, T, D), k and v (B, G, T, D), H a multiple of G -> (B, H, T, D). Scores are divided by √D. A head must not
    wait for another: no loop over heads.
    """
    # TODO: bring the keys and values to the heads, or the heads to the groups              # (B, H, T, D)
    # TODO: attention; F.scaled_dot_product_attention may do this part, without its enable_gqa
    raise NotImplementedError("grouped_attention is not written yet.")


def pooled(weight: Tensor, num_heads: int, groups: int) -> Tensor:
    """The weight of `groups` keys made of those of num_heads keys: (H · D, C) -> (G · D, C), the mean of each group.

    The rows of weight stand head by head, as in `W_qkv`.
    """
    # TODO: take the rows apart into groups, heads of a group, and numbers of a head; average     # (G, H / G, D, C)
    raise NotImplementedError("pooled is not written yet.")


def cache_numbers(layers: int, groups: int, head_size: int, words: int) -> int:
    """How many numbers a cache of keys and values holds."""
    # TODO: one product
    raise NotImplementedError("cache_numbers is not written yet.")


def some_parts(H: int, G: int) -> tuple[Tensor, Tensor, Tensor]:
    dice = torch.Generator().manual_seed(10 * H + G)
    return tuple(torch.randn(2, n, 7, 5, generator=dice, dtype=torch.float64) for n in (H, G, G))


def shared_by_hand() -> None:
    """With 4 heads and 2 groups, the first word of heads 0 and 1 gets the value of group 0, heads 2 and 3 that of 1."""
    q, k, v = some_parts(4, 2)
    got = grouped_attention(q, k, v)
    checks.shape(got, (2, 4, 7, 5), "The output")
    checks.close(got[:, :, 0], v[:, [0, 0, 1, 1], 0], "The output of the first word")


def equal_to_pytorch() -> None:
    """Whatever the number of groups, it is PyTorch's own grouped attention; with G = H, ordinary attention."""
    for H, G in ((4, 2), (6, 3), (6, 1), (6, 2), (3, 3)):
        q, k, v = some_parts(H, G)
        expected = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        checks.close(grouped_attention(q, k, v), expected, f"The output for {H} heads in {G} groups")


def pooled_by_hand() -> None:
    """The rows 1, 3, 10 and 20 of four heads become 2 and 15."""
    weight = torch.tensor([[1.0], [3.0], [10.0], [20.0]])
    checks.close(pooled(weight, 4, 2), torch.tensor([[2.0], [15.0]]), "The pooled weight")


def pooled_rows_stay_apart() -> None:
    """Averaged are equal rows of different heads, never two rows of one head."""
    weight = torch.arange(12.0)[:, None] * torch.tensor([1.0, 100.0])           # 4 heads of width 3, C = 2
    expected = torch.tensor([1.5, 2.5, 3.5, 7.5, 8.5, 9.5])[:, None] * torch.tensor([1.0, 100.0])
    checks.close(pooled(weight, 4, 2), expected, "The pooled weight")


def nothing_lost() -> None:
    """If the heads of a group had equal keys and values, the grouped model gives the same output as before."""
    dice = torch.Generator().manual_seed(5)
    first, second = torch.randn(2, 3, 8, generator=dice, dtype=torch.float64)   # keys of width 3, C = 8
    x = torch.randn(2, 7, 8, generator=dice, dtype=torch.float64)
    q = torch.randn(2, 4, 7, 3, generator=dice, dtype=torch.float64)
    before = torch.stack([x @ rows.T for rows in (first, first, second, second)], dim=1)    # 4 heads in pairs of twins
    weight = pooled(torch.cat([first, first, second, second]), 4, 2)
    k = torch.stack([x @ rows.T for rows in weight.split(3)], dim=1)
    expected = F.scaled_dot_product_attention(q, before, before, is_causal=True)
    checks.close(grouped_attention(q, k, k), expected, "The output of the converted model")


def memory() -> None:
    """The cache of the largest Llama 2 holds 671,088,640 numbers for 4,096 words."""
    checks.equal(cache_numbers(80, 8, 128, 4096), 671_088_640, "cache_numbers(80, 8, 128, 4096)")
    checks.equal(cache_numbers(3, 2, 5, 7), 420, "cache_numbers(3, 2, 5, 7)")


CHECKS = [shared_by_hand, equal_to_pytorch, pooled_by_hand, pooled_rows_stay_apart, nothing_lost, memory]


if __name__ == "__main__":
    from autograder.notebook import run_checks

    run_checks(CHECKS)
