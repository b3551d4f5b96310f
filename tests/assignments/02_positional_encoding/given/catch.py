"""Catch the mistake: find inputs on which a wrong program differs from yours.

When a part passes its visible tests, up to four wrong programs are unlocked: A, B, C and so on. Each is your own file
with one piece of it replaced by a mistake that people really make, and each passes the same visible tests. You give
inputs; the answer says which programs differ from *your* code on them, where and by how much. A program that you have
caught tells its story.

Change the inputs below, then run `python catch.py` here, or `autograder catch 02` in the course's folder. In the
notebook: `catch("table", lambda: (6, 4))`. A part can have several inputs, in a list.

Nothing separates program B from your code? Then your code may make that mistake: `autograder catch 02 --give-up B`.
"""

import torch

# What is called with your input, in each part: once with your code as `program`, once with each wrong program. All have
# the same weights, made of fixed random numbers, so that only the code differs. There is nothing to change here.


def table(program, max_len, d_model):
    """max_len and d_model, whole numbers: the number of rows of the table, and the last two rows."""
    rows = program.positional_encoding(max_len, d_model)
    return {"the number of rows": len(rows), "the end of the table": rows[-2:]}


def module(program, x, evaluation=False, gradient=False):
    """x (B, T, C): what a SinusoidalPositionalEncoding with max_len = 8 returns, in training or in evaluation.

    gradient: the gradient of x for some loss as well.
    """
    if x.ndim != 3:
        raise ValueError("x is (B, T, C).")
    x = x.clone().requires_grad_()
    encoding = program.SinusoidalPositionalEncoding(x.shape[-1], max_len=8).to(x.dtype)
    output = encoding.train(not evaluation)(x)
    if not gradient:
        return output
    (output**2).sum().backward()
    return {"the output": output, "the gradient of x": x.grad}


def learned(program, ids, evaluation=False, gradient=False):
    """ids (B, T), each below 10: what a TokenAndPositionEmbedding with block_size = 8 returns.

    gradient: the gradients of both tables for some loss as well.
    """
    if ids.ndim != 2 or bool((ids < 0).any()) or bool((ids > 9).any()):
        raise ValueError("ids is (B, T): whole numbers from 0 to 9.")
    embedding = program.TokenAndPositionEmbedding(10, 8, 3)
    output = embedding.train(not evaluation)(ids)
    if not gradient:
        return output
    (output**2).sum().backward()
    tables = dict(embedding.named_parameters())
    return {
        "the output": output,
        "the gradient of the positions": tables["position_embedding.weight"].grad,
        "the gradient of the tokens": tables["token_embedding.weight"].grad,
    }


# Your inputs. These are the examples of the text, where it has one, and none of them catches anything.

INPUTS = {
    "table": lambda: (3, 4),
    "module": lambda: torch.full((2, 2, 4), 10.0),
    "learned": lambda: torch.tensor([[7, 7]]),
}

# The first idea that everybody has, random numbers of the usual shape. Some programs survive these, too.

RANDOM_INPUTS = {
    "table": lambda: (int(torch.randint(1, 50, ())), 4),
    "module": lambda: torch.randn(2, 3, 4),
    "learned": lambda: torch.randint(0, 10, (2, 3)),
}

if __name__ == "__main__":
    from autograder.notebook import catch_all

    catch_all(__file__)
