"""Positions are measured one at a time, each with a forward pass of its own; in training and in chunks."""

from functools import reduce

import torch


def rnn_step(x, h, W_xh, W_hh, b):
    from_word, from_memory = torch.mm(x, W_xh), torch.mm(h, W_hh)
    return torch.tanh_(from_word + from_memory + b.expand_as(from_memory))


def rnn(xs, h0, W_xh, W_hh, b):
    def read(so_far, x):
        return so_far + [rnn_step(x, so_far[-1], W_xh, W_hh, b)]

    states = reduce(read, [x.squeeze(1) for x in xs.split(1, dim=1)] if xs.size(1) else [], [h0])
    outputs = torch.cat([h.unsqueeze(1) for h in states], dim=1)[:, 1:]
    return outputs, states[-1]


def gradient_reach(last_of, xs):
    sizes = []
    for t in range(xs.shape[1]):
        here = xs[:, t : t + 1].detach().clone().requires_grad_()
        whole = torch.cat((xs[:, :t].detach(), here, xs[:, t + 1 :].detach()), dim=1)
        (gradient,) = torch.autograd.grad(last_of(whole).sum(), here)
        sizes.append(gradient.flatten().norm(p=2))
    return torch.hstack(sizes)


def sequential_steps(T, num_layers, kind):
    counts = (("rnn", lambda: T + (num_layers - 1)), ("attention", lambda: num_layers))
    for name, count in counts:
        if name == kind:
            return count()
    raise ValueError(f"There is no kind {kind!r}.")
