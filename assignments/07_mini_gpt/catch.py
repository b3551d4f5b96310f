"""Catch the mistake: find inputs on which a wrong program differs from yours.

When a part passes its visible tests, up to four wrong programs are unlocked: A, B, C and so on. Each is your own file
with one piece of it replaced by a mistake that people really make, and each passes the same visible tests. You give
inputs; the answer says which programs differ from *your* code on them, where and by how much. A program that you have
caught tells its story.

Change the inputs below, then run `python catch.py` here, or `autograder catch 07` in the course's folder. In the
notebook: `catch("loss", lambda: (logits, targets))`. A part can have several inputs, in a list.

Nothing separates program B from your code? Then your code may make that mistake: `autograder catch 07 --give-up B`.
"""

import torch

from autograder.fakes import Die

# What is called with your input, in each part: once with your code as `program`, once with each wrong program. All have
# the same weights, made of fixed random numbers, so that only the code differs. There is nothing to change here.


def loss(program, logits, targets):
    """logits (B, T, V), targets (B, T): the loss."""
    if logits.ndim != 3 or targets.shape != logits.shape[:2]:
        raise ValueError("logits is (B, T, V), targets is (B, T).")
    return program.language_model_loss(logits, targets)


def model(program, ids, targets=None, num_layers=1):
    """ids (B, T) and targets (B, T), each below 10: the logits and the loss of a model with block_size = 8."""
    for words in (ids, targets):
        if words is not None and (words.ndim != 2 or bool((words < 0).any()) or bool((words > 9).any())):
            raise ValueError("ids and targets are (B, T): whole numbers from 0 to 9.")
    network = program.TransformerLanguageModel(10, 4, block_size=8, num_heads=2, num_layers=num_layers)
    logits, its_loss = network(ids, targets)
    return {"the logits": logits, "the loss": its_loss}


def generation(program, shares, temperature=1.0, top_k=None):
    """shares, a list: which words ever come, when a die with these shares is thrown a thousand times by generate."""
    if not shares or min(shares) < 0 or abs(sum(shares) - 1) > 1e-6:
        raise ValueError("shares is a list of probabilities, which sum to 1.")
    start = torch.zeros(1000, 1, dtype=torch.long)
    dice = torch.Generator().manual_seed(7)
    written = program.generate(Die(shares), start, 1, temperature=temperature, top_k=top_k, generator=dice)
    return {"the list of words that come": written[:, -1].unique().tolist()}


# Your inputs. These are the examples of the text, where it has one, and none of them catches anything.

INPUTS = {
    "loss": lambda: (torch.zeros(1, 2, 4), torch.tensor([[0, 3]])),
    "model": [],
    "generation": [],
}

# The first idea that everybody has, random numbers of the usual shape. Some programs survive these, too.

RANDOM_INPUTS = {
    "loss": lambda: (torch.randn(2, 3, 4), torch.randint(0, 4, (2, 3))),
    "model": lambda: torch.randint(0, 10, (2, 3)),
    "generation": lambda: [0.2, 0.5, 0.3],
}

if __name__ == "__main__":
    from autograder.notebook import catch_all

    catch_all(__file__)
