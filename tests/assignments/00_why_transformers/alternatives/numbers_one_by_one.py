"""Loops down to single numbers, one sentence after another; every position is a leaf of its own."""

import torch


def unit(x, h, W_xh, W_hh, b, j):
    total = b[j]
    for c in range(len(x)):
        total = total + x[c] * W_xh[c][j]
    for k in range(len(h)):
        total = total + h[k] * W_hh[k][j]
    return total.tanh()


def rnn_step(x, h, W_xh, W_hh, b):
    rows = []
    for i in range(x.size(0)):
        rows.append(torch.stack([unit(x[i], h[i], W_xh, W_hh, b, j) for j in range(b.numel())]))
    return torch.stack(rows)


def rnn(xs, h0, W_xh, W_hh, b):
    state = h0
    states = h0.new_zeros((xs.size(0), 0, h0.size(1)))
    for t in range(xs.size(1)):
        state = rnn_step(xs[:, t, :], state, W_xh, W_hh, b)
        states = torch.cat((states, state.unsqueeze(1)), dim=1)
    return [states, state]


def gradient_reach(last_of, xs):
    words = [xs[:, t].clone().detach() for t in range(xs.shape[1])]
    for word in words:
        word.requires_grad = True
    last_of(torch.stack(words, 1)).sum().backward()
    return torch.tensor([word.grad.pow(2).sum().item() ** 0.5 for word in words], dtype=xs.dtype)


def sequential_steps(T, num_layers, kind):
    if kind not in ("rnn", "attention"):
        raise ValueError("kind=%r is not known" % kind)
    done = 0
    reached = {}
    for layer in range(num_layers):
        for word in range(T):
            below = reached.get((layer - 1, word), 0)
            before = reached.get((layer, word - 1), 0) if kind == "rnn" else 0
            reached[layer, word] = 1 + max(below, before)
            done = max(done, reached[layer, word])
    return done
