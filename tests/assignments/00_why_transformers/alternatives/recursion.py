"""A sentence is a shorter sentence and one more word; tanh by a sigmoid; the vector-Jacobian product of a functional."""

import torch
from torch.autograd.functional import vjp


def rnn_step(x, h, W_xh, W_hh, b):
    z = torch.matmul(x, W_xh) + torch.matmul(h, W_hh) + b[None, :]
    return 2 * torch.sigmoid(2 * z) - 1


def rnn(xs, h0, W_xh, W_hh, b):
    if xs.shape[1] == 0:
        return h0[:, None, :][:, :0], h0
    earlier, before = rnn(xs[:, :-1], h0, W_xh, W_hh, b)
    last = rnn_step(xs[:, -1], before, W_xh, W_hh, b)
    return torch.cat([earlier, last[:, None]], dim=1), last


def gradient_reach(last_of, xs):
    _, gradient = vjp(lambda words: last_of(words).sum().reshape(1), xs, torch.ones(1, dtype=xs.dtype))
    return torch.stack([torch.linalg.norm(gradient[:, t]) for t in range(xs.shape[1])])


def sequential_steps(T, num_layers, kind):
    if kind == "rnn":
        if T == 1 or num_layers == 1:
            return max(T, num_layers)
        return 1 + sequential_steps(T, num_layers - 1, kind)
    if kind == "attention":
        return sum(1 for _ in range(num_layers))
    raise ValueError(f"the kind {kind!r} is neither 'rnn' nor 'attention'")
