"""Catch the mistake: find inputs on which a wrong program differs from yours.

When a part passes its visible tests, up to four wrong programs are unlocked: A, B, C and so on. Each is your own file
with one piece of it replaced by a mistake that people really make, and each passes the same visible tests. You give
inputs; the answer says which programs differ from *your* code on them, where and by how much. A program that you have
caught tells its story.

Change the inputs below, then run `python catch.py` here, or `autograder catch 18` in the course's folder. In the
notebook: `catch("speculate", lambda: (p, q, guesses, uniforms))`. A part can have several inputs, in a list.

Nothing separates program B from your code? Then your code may make that mistake: `autograder catch 18 --give-up B`.
"""

import torch

# What is called with your input: once with your code as `program`, once with each wrong program. There is nothing to
# change here.


def speculate(program, p, q, guesses, uniforms):
    """p (R + 1, V), q (R, V), guesses (R,), uniforms (R + 1,): the words of the step."""
    drafted = len(guesses)
    if q.ndim != 2 or len(q) != drafted or p.shape != (drafted + 1, q.shape[1]) or uniforms.shape != (drafted + 1,):
        raise ValueError("The shapes are p (R + 1, V), q (R, V), guesses (R,) and uniforms (R + 1,).")
    for name, table in (("p", p), ("q", q)):
        if bool((table < 0).any()) or bool(((table.sum(dim=-1) - 1).abs() > 1e-3).any()):
            raise ValueError(f"Each row of {name} is made of probabilities, which sum to 1, or nearly.")
    if bool((guesses < 0).any()) or bool((guesses >= q.shape[1]).any()):
        raise ValueError("The guesses are ids from 0 to V - 1.")
    if bool((q[torch.arange(drafted), guesses] <= 0).any()):
        raise ValueError("The draft has drawn its guesses: each has a probability above 0 in q.")
    if bool((uniforms < 0).any()) or bool((uniforms >= 1).any()):
        raise ValueError("Uniforms are numbers from 0 up to but not including 1.")
    return {"the list of words": program.speculative_step(p, q, guesses, uniforms)}


# Your inputs. These are the examples of the text, where it has one, and none of them catches anything.

target = torch.tensor([[0.5, 0.3, 0.2], [0.1, 0.6, 0.3]])
draft = torch.tensor([[0.2, 0.5, 0.3]])

INPUTS = {
    "speculate": lambda: (target, draft, torch.tensor([1]), torch.tensor([0.65, 0.5])),
}

# The first idea that everybody has, random numbers of the usual shape. Some programs survive these, too.

RANDOM_INPUTS = {
    "speculate": lambda: (
        torch.rand(3, 4).softmax(dim=-1), torch.rand(2, 4).softmax(dim=-1), torch.randint(0, 4, (2,)), torch.rand(3),
    ),
}

if __name__ == "__main__":
    from autograder.notebook import catch_all

    catch_all(__file__)
