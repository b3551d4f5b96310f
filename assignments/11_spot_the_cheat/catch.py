"""Catch the mistake: find inputs on which a wrong program differs from yours.

When a part passes its visible tests, up to four wrong programs are unlocked: A, B, C and so on. Each is your own file
with one piece of it replaced by a mistake that people really make, and each passes the same visible tests. You give
inputs; the answer says which programs differ from *your* code on them, where and by how much. A program that you have
caught tells its story.

Change the inputs below, then run `python catch.py` here, or `autograder catch 11` in the course's folder. In the
notebook: `catch("leaks", lambda: heard)`. A part can have several inputs, in a list.

Nothing separates program B from your code? Then your code may make that mistake: `autograder catch 11 --give-up B`.
"""

import torch
from torch.nn import functional as F

from autograder.fakes import LanguageModel

# What is called with your input, in each part: once with your code as `program`, once with each wrong program. All get
# the same models, made of fixed random numbers, so that only the code differs. There is nothing to change here.


class Hearsay(LanguageModel):
    """Its logits are a weighted sum of random vectors, one for each word and position.

    heard (T, T): the weights, a row for each output. only: the single word that is heard before it is spoken, or None.
    repeats: what is added to the logit of the word just read, a number for each word.
    """

    def __init__(self, vocab_size, heard, only=None, repeats=None):
        super().__init__(vocab_size, len(heard))
        self.heard, self.only, self.repeats = heard, only, repeats
        self.voices = torch.randn(len(heard), vocab_size, vocab_size)

    def logits(self, ids):
        T = ids.shape[1]
        past, future = self.heard[:T, :T].tril(), self.heard[:T, :T].triu(1)
        said = self.voices[torch.arange(T), ids]  # (B, T, V)
        early = said if self.only is None else self.voices.abs()[:, 0] * (ids == self.only).unsqueeze(-1)
        logits = torch.einsum("ts,bsv->btv", past, said) + torch.einsum("ts,bsv->btv", future, early)
        if self.repeats is not None:
            logits = logits + self.repeats[ids].unsqueeze(-1) * F.one_hot(ids, self.vocab_size)
        return logits


def honest(program, data, positions, block_size=8, margin=1.0):
    """data (L,), words below 5, and a list of positions: the honest loss of a model that takes block_size words.

    margin: how much more the model expects the word that it has just read than any other.
    """
    if data.ndim != 1 or bool((data < 0).any()) or bool((data > 4).any()):
        raise ValueError("data is (L,): whole numbers from 0 to 4.")
    model = Hearsay(5, torch.ones(block_size, block_size).tril(), repeats=torch.full((5,), margin))
    return program.honest_loss(model, data, positions)


def leaks(program, heard, only=None, V=3, loudness=0.0):
    """heard (T, T): the leak map of a model of 4 words, of which V are used, where output t hears word s so loudly.

    only: the single word that is heard before it is spoken. loudness: what is added to all logits.
    """
    if heard.ndim != 2 or heard.shape[0] != heard.shape[1] or not heard.is_floating_point():
        raise ValueError("heard is (T, T), of numbers with a point.")
    if not 1 <= V <= 4:
        raise ValueError("V is from 1 to 4, the number of words that the model knows.")
    model = Hearsay(4, heard, only)
    model.voices += loudness
    return {"the list of all leaks": program.leaks(model, len(heard), V).nonzero().tolist()}


def verdict(program, late=0, heads=0, repeats=(0.0, 0.0, 0.0, 0.0, 0.0), block_size=8):
    """The verdict about a model of 5 words.

    late: how many words ahead it sees. heads: how many heads are merged with view, 0 for none. repeats: what is added
    to the logit of each word when it was the last one read; 50 if it is always repeated, -50 if it never is.
    """
    if len(repeats) != 5:
        raise ValueError("repeats is a list of five numbers.")
    if block_size < max(8, 2 * heads) or heads == 1:
        raise ValueError("block_size is at least 8 and at least twice the number of heads, of which there are 2 or more.")
    heard = torch.ones(block_size, block_size).tril(late)
    if heads:
        last = torch.arange(block_size * heads).remainder(block_size).reshape(block_size, heads).amax(dim=1)
        heard = ((torch.arange(block_size) <= last[:, None]) | torch.eye(block_size).bool()).float()
    model = Hearsay(5, heard, repeats=torch.tensor(repeats))
    return {"the verdict": program.verdict({"A": model})["A"]}


def heads(program, loudness, tolerance, bias=0.0):
    """loudness, a number for each head, and a tolerance: the redundant heads of a layer whose heads are so loud."""
    if len(loudness) < 1:
        raise ValueError("loudness has a number for each head.")
    H = len(loudness)
    layer = program.attention_layer(2 * H, H)
    for name, parameter in layer.named_parameters():
        if name == "in_proj_weight":
            parameter.data.copy_(torch.eye(2 * H).repeat(3, 1))
        elif name == "out_proj.weight":
            parameter.data.copy_(torch.tensor(loudness).repeat_interleave(2) * torch.eye(2 * H))
        else:
            parameter.data.fill_(bias if name == "out_proj.bias" else 0.0)
    words = torch.tensor([[1.0, 2.0], [2.0, 1.0]]).repeat(1, H)  # (T, C)
    return {"the redundant heads": program.redundant_heads(layer, words.unsqueeze(0), tolerance)}


# Your inputs. These are the examples of the text, where it has one, and none of them catches anything.

late_by_one = torch.ones(4, 4).tril(1)

INPUTS = {
    "honest": lambda: (torch.tensor([0, 1, 2, 3]), [1, 2, 3]),
    "leaks": lambda: late_by_one,
    "verdict": lambda: 1,
    "heads": lambda: ([0.0, 1.0], 0.0),
}

# The first idea that everybody has, random numbers of the usual shape. Some programs survive these, too.

RANDOM_INPUTS = {
    "honest": lambda: (torch.randint(0, 5, (6,)), [1, 3, 5]),
    "leaks": lambda: torch.randn(4, 4),
    "verdict": lambda: (0, 0, torch.randn(5).tolist()),
    "heads": lambda: (torch.rand(3).tolist(), 0.1),
}

if __name__ == "__main__":
    from autograder.notebook import catch_all

    catch_all(__file__)
