"""Catch the mistake: find inputs on which a wrong program differs from yours.

When a part passes its visible tests, up to four wrong programs are unlocked: A, B, C and so on. Each is your own file
with one piece of it replaced by a mistake that people really make, and each passes the same visible tests. You give
inputs; the answer says which programs differ from *your* code on them, where and by how much. A program that you have
caught tells its story.

Change the inputs below, then run `python catch.py` here, or `autograder catch 04` in the course's folder. In the
notebook: `catch("fused", lambda: (x, mask))`. A part can have several inputs, in a list.

Nothing separates program B from your code? Then your code may make that mistake: `autograder catch 04 --give-up B`.
"""

import torch

# What is called with your input, in each part: once with your code as `program`, once with each wrong program. All have
# the same weights, made of fixed random numbers, so that only the code differs. There is nothing to change here.


def heads(program, x, num_heads=2, evaluation=False, gradient=False):
    """x (B, T, C): the output of a MultiHeadAttention with block_size = 8, in training or in evaluation.

    gradient: the gradient of x for some loss as well.
    """
    refuse_wrong_shape(x)
    x = x.clone().requires_grad_()
    layer = program.MultiHeadAttention(x.shape[-1], num_heads, 8).to(x.dtype).train(not evaluation)
    return output_and_gradient(layer(x), x, gradient)


def reshape(program, x, num_heads=2):
    """x (B, T, C): what is left of it after split_heads, and after merge_heads."""
    refuse_wrong_shape(x)
    strips = program.split_heads(x, num_heads)
    return {"split": strips, "split and merged": program.merge_heads(strips)}


def fused(program, x, mask=None, n_heads=2, evaluation=False, gradient=False):
    """x (B, T, C), mask of booleans: the output of a FusedMultiHeadAttention, in training or in evaluation.

    gradient: the gradient of x for some loss as well.
    """
    refuse_wrong_shape(x)
    if mask is not None and mask.dtype != torch.bool:
        raise ValueError("mask holds booleans that broadcast to (B, H, T, T), True where attending is allowed.")
    x = x.clone().requires_grad_()
    layer = program.FusedMultiHeadAttention(x.shape[-1], n_heads).to(x.dtype).train(not evaluation)
    return output_and_gradient(layer(x, mask), x, gradient)


def proof(program, x, bias=False, n_heads=2, later=False):
    """x (B, T, C): what both forms return after fuse, the second under a causal mask.

    later: what they return when afterwards the first one's `proj` has got other numbers.
    """
    refuse_wrong_shape(x)
    _, T, C = x.shape
    per_head = program.MultiHeadAttention(C, n_heads, 8, bias=bias).to(x.dtype)
    second = program.FusedMultiHeadAttention(C, n_heads).to(x.dtype)
    program.fuse(per_head, second)
    if later:
        per_head.proj.weight.data += 1
    causal = torch.ones(T, T, dtype=torch.bool).tril()
    return {"the form with heads": per_head(x), "the fused form": second(x, causal)}


def refuse_wrong_shape(x):
    if x.ndim != 3:
        raise ValueError("x is (B, T, C).")


def output_and_gradient(output, x, gradient):
    if not gradient:
        return output
    (output**2).sum().backward()
    return {"the output": output, "the gradient of x": x.grad}


# Your inputs. These are the examples of the text, where it has one, and none of them catches anything.

counted = torch.tensor([[[10.0, 11, 12, 13, 14, 15], [20.0, 21, 22, 23, 24, 25]]])

INPUTS = {
    "heads": [],
    "reshape": lambda: (torch.cat([counted, counted]), 3),
    "fused": [],
    "proof": [],
}

# The first idea that everybody has, random numbers of the usual shape. Some programs survive these, too.

RANDOM_INPUTS = {
    "heads": lambda: torch.randn(2, 3, 4),
    "reshape": lambda: torch.randn(2, 3, 4),
    "fused": lambda: torch.randn(2, 3, 4),
    "proof": lambda: torch.randn(2, 3, 4),
}

if __name__ == "__main__":
    from autograder.notebook import catch_all

    catch_all(__file__)
