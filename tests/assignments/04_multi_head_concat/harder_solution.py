"""For instructors: a solution of `given/harder.py`. Students do not receive it."""

import torch.nn.functional as F
from torch import Tensor


def grouped_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    each = q.shape[1] // k.shape[1]
    k, v = (part.repeat_interleave(each, dim=1) for part in (k, v))             # (B, H, T, D)
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)              # (B, H, T, D)


def pooled(weight: Tensor, num_heads: int, groups: int) -> Tensor:
    C = weight.shape[1]
    return weight.reshape(groups, num_heads // groups, -1, C).mean(dim=1).reshape(-1, C)


def cache_numbers(layers: int, groups: int, head_size: int, words: int) -> int:
    return 2 * layers * groups * head_size * words
