"""Cross-entropy on batches, a comparison with the unchanged text, and heads whose notes are worked out by hand."""

import torch
import torch.nn.functional as F
from torch import nn


def attention_layer(embed_size, num_heads):
    return nn.MultiheadAttention(embed_size, num_heads, batch_first=True)


class asking:
    """In eval mode without gradients, and afterwards as before."""

    def __init__(self, model):
        self.model = model

    def __enter__(self):
        self.was_training, self.grad = self.model.training, torch.is_grad_enabled()
        self.model.eval()
        torch.set_grad_enabled(False)
        return lambda ids: self.model(ids)[0]

    def __exit__(self, *error):
        torch.set_grad_enabled(self.grad)
        self.model.train(self.was_training)


def honest_loss(model, data, positions):
    wrong = [t for t in positions if t < 1 or t > len(data) - 1]
    if wrong or not positions:
        raise ValueError(
            f"positions = {positions} should be from 1 to {len(data) - 1}, and at least one of them."
        )
    guesses = []
    with asking(model) as ask:
        for t in positions:
            guesses.append(ask(data[None, :t][:, -model.block_size :])[:, -1])
    return F.cross_entropy(torch.cat(guesses), data[positions]).item()


def leaks(model, T, V):
    text = torch.zeros(1, T, dtype=torch.long)
    table = torch.zeros(T, T, dtype=torch.bool)
    with asking(model) as ask:
        for s in range(T):
            changed = text.repeat(V, 1)
            changed[:, s] = torch.arange(V)
            logits = ask(changed)
            for t in range(s):
                table[t, s] = bool((logits[:, t, None] - logits[None, :, t]).abs().max() > 1e-4)
    return table


def verdict(models):
    def judge(model):
        T, V = model.block_size, model.vocab_size
        future = leaks(model, T, V)
        if future.any():
            steps = [future.diagonal(d).unique().numel() for d in range(1, T)]
            return "mask late by one" if max(steps) == 1 else "heads merged with view"
        with asking(model) as ask:
            ids = torch.stack([torch.randperm(V).repeat(T)[:T] for _ in range(40)])
            said = ask(ids).topk(1).indices[..., 0]
        return "targets not shifted" if (said == ids).sum() * 2 > ids.numel() else "honest"

    return {name: judge(model) for name, model in models.items()}


def redundant_heads(mha, x, tolerance):
    if not tolerance >= 0:
        raise ValueError(f"{tolerance=} may not be negative")
    B, T, C = x.shape
    H = mha.num_heads
    D = C // H
    with torch.no_grad():
        q, k, v = F.linear(x, mha.in_proj_weight, mha.in_proj_bias).view(B, T, 3, H, D).permute(2, 0, 3, 1, 4)
        shares = (q @ k.mT / D**0.5).softmax(-1)
        said = torch.einsum("bhtd,chd->hbtc", shares @ v, mha.out_proj.weight.view(C, H, D))
        whole = said.sum(0) + mha.out_proj.bias
        size = torch.linalg.vector_norm(said.flatten(1), dim=1)
        return torch.nonzero(size <= tolerance * torch.linalg.vector_norm(whole)).flatten().tolist()


def head_similarity(mha, x):
    B, T, C = x.shape
    H = mha.num_heads
    with torch.no_grad():
        q, k, _ = F.linear(x, mha.in_proj_weight, mha.in_proj_bias).view(B, T, 3, H, C // H).permute(2, 3, 0, 1, 4)
        shares = (q @ k.mT / (C // H) ** 0.5).softmax(-1).reshape(H, -1)
        return F.cosine_similarity(shares[:, None], shares[None], dim=-1)


def overlap(train, test, n):
    if n < 1 or n > len(test):
        raise ValueError(f"n is {n}, and the test text has {len(test)} words")
    known = set(zip(*(train[shift:] for shift in range(n))))
    found = [gram in known for gram in zip(*(test[shift:] for shift in range(n)))]
    return found.count(True) / len(found)


def difference(right_a, right_b, rows):
    a, b = right_a.to(torch.float64), right_b.to(torch.float64)
    drawn = a[rows].mean(-1) - b[rows].mean(-1)
    return (a.mean() - b.mean()).item(), drawn.quantile(0.025).item(), drawn.quantile(0.975).item()
