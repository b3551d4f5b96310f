"""Catch the mistake: find inputs on which a wrong program differs from yours.

When a part passes its visible tests, up to four wrong programs are unlocked: A, B, C and so on. Each is your own file
with one piece of it replaced by a mistake that people really make, and each passes the same visible tests. You give
inputs; the answer says which programs differ from *your* code on them, where and by how much. A program that you have
caught tells its story.

Change the inputs below, then run `python catch.py` here, or `autograder catch 13` in the course's folder. In the
notebook: `catch("attention", lambda: (x, [2, 1]))`. A part can have several inputs, in a list.

Nothing separates program B from your code? Then your code may make that mistake: `autograder catch 13 --give-up B`.
"""

import torch
from torch import nn

# What is called with your input, in each part: once with your code as `program`, once with each wrong program. All have
# the same weights, made of fixed random numbers, so that only the code differs. There is nothing to change here.


def mask(program, T, past=0):
    """T and past: the mask, as a list of rows."""
    if T < 1 or past < 0:
        raise ValueError("T is at least 1, and past at least 0.")
    return program.causal_mask(T, past)


def attention(program, x, pieces=None, n_heads=1, training=False, gradient=False):
    """x (B, T, C), read in pieces of these lengths: the output of a CachedAttention and its cache.

    gradient: the gradient of x for some loss as well.
    """
    return read(lambda: program.CachedAttention(x.shape[-1], n_heads), x, pieces, training, gradient)


def groups(program, x, pieces=None, n_heads=2, n_kv_heads=1, training=False, gradient=False):
    """x (B, T, C), read in pieces of these lengths: the output of a GroupedQueryAttention and its cache.

    gradient: the gradient of x for some loss as well.
    """
    make = program.GroupedQueryAttention
    return read(lambda: make(x.shape[-1], n_heads, n_kv_heads), x, pieces, training, gradient)


def read(make, x, pieces, training, gradient):
    if x.ndim != 3:
        raise ValueError("x is (B, T, C).")
    pieces = [x.shape[1]] if pieces is None else pieces
    if sum(pieces) != x.shape[1] or min(pieces) < 1:
        raise ValueError("pieces are whole numbers from 1 on, which add up to T.")
    layer = make().to(x.dtype)
    layer.train(training)
    x = x.clone().requires_grad_()
    outputs, cache = [], None
    for piece in x.split(pieces, dim=1):
        output, cache = layer(piece, cache)
        outputs.append(output)
    output = torch.cat(outputs, dim=1)
    found = {"the output": output, "the list of keys": cache[0], "the list of values": cache[1]}
    if gradient:
        ups_and_downs = torch.arange(output.numel()).remainder(3).to(output.dtype).reshape(output.shape)
        (output * ups_and_downs).sum().backward()
        found["the gradient of x"] = x.grad
    return found


class LastDigit(nn.Module):
    """Predicts the last digit of the sum of all words so far. Its cache is that sum."""

    def forward(self, ids, cache=None):
        sums = ids.cumsum(dim=1) + (0 if cache is None else cache)  # (B, T)
        return nn.functional.one_hot(sums % 10, 10).float(), sums[:, -1:]


def writing(program, ids, max_new_tokens=3, training=False):
    """ids (B, T), digits: what generate writes with the model of the text, and the model's mode afterwards."""
    if ids.ndim != 2 or ids.shape[1] < 1 or bool((ids < 0).any()) or bool((ids > 9).any()):
        raise ValueError("ids is (B, T): digits from 0 to 9, at least one in each row.")
    model = LastDigit()
    model.train(training)
    text = program.generate(model, ids, max_new_tokens)
    return {"the text": text, "the mode of the model": "training" if model.training else "eval"}


def blocks(program, q, k, v, block, mask=None):
    """q (T, D), k (S, D), v (S, E), the size of a block, and a mask: the output of blockwise_attention."""
    if block < 1 or q.ndim < 2 or k.shape[-2] != v.shape[-2] or q.shape[-1] != k.shape[-1]:
        raise ValueError("block is at least 1, q is (..., T, D), k (..., S, D) and v (..., S, E).")
    return program.blockwise_attention(q, k, v, block, mask)


# Your inputs. These are the examples of the text, where it has one, and none of them catches anything.

INPUTS = {
    "mask": lambda: (3, 2),
    "attention": [],
    "writing": lambda: torch.tensor([[1, 2, 3]]),
    "groups": [],
    "blocks": lambda: (torch.ones(1, 1), torch.tensor([[1.0], [3.0], [6.0]]).log(), torch.tensor([[1.0], [2], [3]]), 2),
}

# The first idea that everybody has, random numbers of the usual shape. Some programs survive these, too.

RANDOM_INPUTS = {
    "mask": lambda: (int(torch.randint(1, 9, ())), int(torch.randint(0, 9, ()))),
    "attention": lambda: torch.randn(2, 3, 4),
    "writing": lambda: torch.randint(0, 10, (2, 5)),
    "groups": lambda: torch.randn(2, 3, 4),
    "blocks": lambda: (*torch.randn(3, 5, 4), 2, torch.rand(5, 5) < 0.7),
}

if __name__ == "__main__":
    from autograder.notebook import catch_all

    catch_all(__file__)
