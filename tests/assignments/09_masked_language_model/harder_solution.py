"""For instructors: a solution of `given/harder.py`. Students do not receive it."""

from collections.abc import Callable

import torch
from torch import Tensor

Model = Callable[[Tensor], Tensor]


@torch.no_grad()
def pseudo_log_likelihood(model: Model, ids: Tensor, mask_id: int) -> float:
    each = torch.arange(len(ids))                                               # (T,)
    copies = ids.repeat(len(ids), 1)                                            # (T, T)
    copies[each, each] = mask_id
    return model(copies).log_softmax(dim=-1)[each, each, ids].sum().item()


@torch.no_grad()
def fill(model: Model, ids: Tensor, mask_id: int) -> Tensor:
    ids = ids.clone()
    while (gaps := (ids == mask_id).nonzero()[:, 0]).numel():                   # (gaps,)
        probabilities = model(ids[None])[0, gaps].softmax(dim=-1)               # (gaps, V)
        probabilities[:, mask_id] = 0
        gap, word = divmod(probabilities.argmax().item(), probabilities.shape[1])
        ids[gaps[gap]] = word
    return ids
