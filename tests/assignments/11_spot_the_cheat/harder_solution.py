"""For instructors: a solution of `given/harder.py`. Students do not receive it."""

from torch import Tensor


def induction_scores(weights: Tensor, ids: Tensor) -> Tensor:
    words = ids.tolist()
    seen: dict[int, int] = {}
    pairs = []
    for t, word in enumerate(words):
        if word in seen:
            pairs.append((t, seen[word] + 1))
        seen[word] = t
    if not pairs:
        return weights.new_zeros(len(weights))
    t, s = zip(*pairs)                                                          # the rows, the columns
    return weights[:, t, s].mean(dim=-1)                                        # (H,)


def silenced(outputs: Tensor, head: int) -> Tensor:
    quiet = outputs.clone()
    quiet[head] = 0
    return quiet
