"""One head after the other, each with its own strip of the tables; the mask is added to the scores."""

import torch
from torch import nn


def causal_mask(T, past=0):
    return torch.cat([torch.ones(T, past), torch.ones(T, T).tril()], dim=1) == 1


class CachedAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        if n_heads < 1 or d_model // n_heads * n_heads != d_model:
            raise ValueError(f"{d_model} numbers cannot be shared by n_heads={n_heads}")
        self.query, self.key, self.value, self.proj = (
            nn.Linear(d_model, d_model, bias=False) for _ in range(4)
        )
        self.n_heads = n_heads

    def forward(self, x, cache=None):
        past = 0 if cache is None else cache[0].size(2)
        closed = torch.zeros(x.size(1), past + x.size(1), dtype=x.dtype)
        closed[~causal_mask(x.size(1), past)] = float("-inf")
        strips = zip(*(layer(x).chunk(self.n_heads, dim=-1) for layer in (self.query, self.key, self.value)))
        heard, all_keys, all_values = [], [], []
        for h, (q, k, v) in enumerate(strips):  # (B, T, D)
            if cache is not None:
                k = torch.cat([cache[0][:, h], k], dim=1)  # (B, S, D)
                v = torch.cat([cache[1][:, h], v], dim=1)  # (B, S, D)
            scores = torch.baddbmm(closed, q, k.mT, alpha=q.size(-1) ** -0.5)
            heard.append(torch.softmax(scores, -1) @ v)
            all_keys.append(k)
            all_values.append(v)
        return self.proj(torch.cat(heard, -1)), (torch.stack(all_keys, 1), torch.stack(all_values, 1))


@torch.no_grad()
def all_endings(attention, pieces, endings):
    """Given: the caches after pieces + [ending], one for each ending."""
    cache = None
    for piece in pieces:
        _, cache = attention(piece, cache)
    return [attention(ending, cache)[1] for ending in endings]


def generate(model, ids, max_new_tokens):
    def go_on(unheard, cache, left):
        if left == 0:
            return []
        logits, cache = model(unheard, cache=cache)
        word = logits[:, -1].topk(1).indices
        return [word, *go_on(word, cache, left - 1)]

    with torch.no_grad():
        return torch.cat([ids] + go_on(ids, None, max_new_tokens), dim=1)
