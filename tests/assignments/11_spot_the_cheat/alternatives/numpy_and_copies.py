"""Evidence in numpy, silent copies of the layer, and a verdict from how far each place hears."""

import copy

import numpy as np
import torch
from torch import nn


def attention_layer(embed_size, num_heads):
    return nn.MultiheadAttention(embed_size, num_heads, batch_first=True)


def listen(model, ids):
    mode = model.training
    try:
        model.eval()
        with torch.inference_mode():
            logits, _ = model(torch.as_tensor(ids, dtype=torch.long))
        return logits.numpy().astype(np.float64)
    finally:
        model.train(mode)


def honest_loss(model, data, positions):
    L = data.shape[0]
    if len(positions) < 1 or min(positions) < 1 or max(positions) >= L:
        raise ValueError(f"all positions must be in 1 … {L - 1}, got {positions}")
    words, losses = data.numpy(), []
    by_length = {}
    for t in positions:
        by_length.setdefault(min(t, model.block_size), []).append(t)
    for length, places in by_length.items():
        pasts = np.stack([words[t - length : t] for t in places])
        last = listen(model, pasts)[:, -1]
        last = last - last.max(axis=1, keepdims=True)
        share = np.exp(last) / np.exp(last).sum(axis=1, keepdims=True)
        losses += [-np.log(max(p[words[t]], 1e-300)) for p, t in zip(share, places)]
    return float(np.mean(losses))


def leaks(model, T, V):
    rng = np.random.default_rng(0)
    base = rng.integers(0, V, T)
    rows = np.empty((T, T), dtype=bool)
    for s in range(T):
        texts = np.tile(base, (V, 1))
        texts[:, s] = np.arange(V)
        rows[:, s] = np.ptp(listen(model, texts), axis=0).max(axis=-1) > 1e-4
    return torch.from_numpy(np.triu(rows, 1))


def verdict(models):
    return {name: kind(model) for name, model in models.items()}


def kind(model):
    T, V = model.block_size, model.vocab_size
    ahead = leaks(model, T, V).numpy()
    reach = [max((s - t for s in range(T) if ahead[t, s]), default=0) for t in range(T)]
    if max(reach) == 0:
        ids = np.random.randint(0, V, (50, T))
        return "targets not shifted" if np.mean(listen(model, ids).argmax(-1) == ids) > 0.5 else "honest"
    steady = all(reach[t] == min(reach[0], T - 1 - t) for t in range(T))
    return "mask late by one" if steady else "heads merged with view"


def redundant_heads(mha, x, tolerance):
    if tolerance < 0:
        raise ValueError(f"tolerance={tolerance}")
    with torch.no_grad():
        whole = mha(x, x, x, need_weights=False)[0].numpy()
        found = []
        for head in range(mha.num_heads):
            other = copy.deepcopy(mha)
            columns = torch.arange(mha.embed_dim) // mha.head_dim == head
            other.out_proj.weight[:, columns] = 0
            rest = other(x, x, x, need_weights=False)[0].numpy()
            if np.linalg.norm(whole - rest) <= tolerance * np.linalg.norm(whole):
                found.append(head)
    return found


def head_similarity(mha, x):
    with torch.no_grad():
        weights = mha(x, x, x, average_attn_weights=False)[1].numpy()
    flat = np.moveaxis(weights, 1, 0).reshape(mha.num_heads, -1)
    products = flat @ flat.T
    lengths = np.sqrt(np.diag(products))
    return torch.from_numpy(products / np.outer(lengths, lengths))


def overlap(train, test, n):
    if not 0 < n < len(test) + 1:
        raise ValueError(f"{n=}")
    if len(train) < n:
        return 0.0
    seen = {window.tobytes() for window in np.lib.stride_tricks.sliding_window_view(np.array(train), n)}
    windows = np.lib.stride_tricks.sliding_window_view(np.array(test), n)
    return float(np.mean([window.tobytes() in seen for window in windows]))


def difference(right_a, right_b, rows):
    gains = right_a.numpy().astype(float) - right_b.numpy()
    low, high = np.quantile(gains[rows.numpy()].mean(axis=1), [0.025, 0.975])
    return float(gains.mean()), float(low), float(high)
