"""Catch the mistake: find inputs on which a wrong program differs from yours.

When a part passes its visible tests, up to four wrong programs are unlocked: A, B, C and so on. Each is your own file
with one piece of it replaced by a mistake that people really make, and each passes the same visible tests. You give
inputs; the answer says which programs differ from *your* code on them, where and by how much. A program that you have
caught tells its story.

Change the inputs below, then run `python catch.py` here, or `autograder catch 03` in the course's folder. In the
notebook: `catch("attention", lambda: (q, k, v, mask))`. A part can have several inputs, in a list.

Nothing separates program B from your code? Then your code may make that mistake: `autograder catch 03 --give-up B`.
"""

import math

import torch

# What is called with your input, in each part: once with your code as `program`, once with each wrong program. All have
# the same weights, made of fixed random numbers, so that only the code differs. There is nothing to change here.


def attention(program, q, k, v, mask=None, gradient=False):
    """q (..., T, D), k (..., S, D), v (..., S, E), mask of booleans: the output and the weights.

    gradient: the gradient of q for some loss as well.
    """
    if q.shape[-1] != k.shape[-1] or k.shape[:-1] != v.shape[:-1]:
        raise ValueError("q is (..., T, D), k is (..., S, D), v is (..., S, E).")
    if mask is not None and mask.dtype != torch.bool:
        raise ValueError("mask is a table of booleans, True where t may attend to s.")
    q = q.clone().requires_grad_()
    output, weights = program.attention(q, k, v, mask)
    values = {"the output": output, "the weights": weights}
    if gradient:
        (output**2).sum().backward()
        values["the gradient of q"] = q.grad
    return values


def head(program, x, head_size=None, gradient=False):
    """x (B, T, C): the output of a Head with block_size = 8; head_size is C if nothing is said.

    gradient: the gradient of x for some loss as well.
    """
    if x.ndim != 3:
        raise ValueError("x is (B, T, C).")
    x = x.clone().requires_grad_()
    output = program.Head(x.shape[-1], head_size or x.shape[-1], 8).to(x.dtype)(x)
    if not gradient:
        return output
    (output**2).sum().backward()
    return {"the output": output, "the gradient of x": x.grad}


# Your inputs. These are the examples of the text, where it has one, and none of them catches anything.

query = torch.tensor([[2 * math.log(3), 0.0, 0.0, 0.0]])
keys = torch.tensor([[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]])
values = torch.tensor([[10.0, 8.0, 0.0], [20.0, 0.0, 4.0]])

INPUTS = {
    "attention": lambda: (query, keys, values),
    "head": [],
}

# The first idea that everybody has, random numbers of the usual shape. Some programs survive these, too.

RANDOM_INPUTS = {
    "attention": lambda: (torch.randn(2, 3, 4), torch.randn(2, 3, 4), torch.randn(2, 3, 4)),
    "head": lambda: torch.randn(2, 3, 4),
}

if __name__ == "__main__":
    from autograder.notebook import catch_all

    catch_all(__file__)
