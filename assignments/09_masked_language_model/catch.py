"""Catch the mistake: find inputs on which a wrong program differs from yours.

When a part passes its visible tests, up to four wrong programs are unlocked: A, B, C and so on. Each is your own file
with one piece of it replaced by a mistake that people really make, and each passes the same visible tests. You give
inputs; the answer says which programs differ from *your* code on them, where and by how much. A program that you have
caught tells its story.

Change the inputs below, then run `python catch.py` here, or `autograder catch 09` in the course's folder. In the
notebook: `catch("loss", lambda: (logits, labels))`. A part can have several inputs, in a list.

Nothing separates program B from your code? Then your code may make that mistake: `autograder catch 09 --give-up B`.
"""

import torch

# What is called with your input, in each part: once with your code as `program`, once with each wrong program. All have
# the same weights, made of fixed random numbers, so that only the code differs. There is nothing to change here.


def corruption(program, ids, p=0.15, times=1):
    """ids (B, T), each below 10, of which 0 to 3 are special: which words stand where one was chosen, in many draws.

    From 5,000 chosen words on, also the shares of masks, other words and words that stayed, to the nearest 5 in 100.
    """
    if ids.ndim != 2 or bool((ids < 0).any()) or bool((ids > 9).any()):
        raise ValueError("ids is (B, T): whole numbers from 0 to 9.")
    dice = torch.Generator().manual_seed(7)
    ids = ids.repeat(times, 1)
    inputs, labels = program.mask_tokens(ids.clone(), 10, 3, [0, 1, 2, 3], dice, p)
    chosen = labels != -100
    found = {"the list of words at chosen places": inputs[chosen].unique().tolist()}
    if chosen.sum() >= 5_000:
        masked, same = (inputs == 3)[chosen], (inputs == ids)[chosen]
        for name, hits in (("masks", masked), ("other words", ~masked & ~same), ("words that stayed", same)):
            found[f"the share of {name}"] = 5 * round(20 * hits.double().mean().item())
    return found


def loss(program, logits, labels, gradient=False):
    """logits (B, T, V), labels (B, T), -100 where a position does not count: the loss.

    gradient: the gradient of the logits as well.
    """
    if logits.ndim != 3 or labels.shape != logits.shape[:2]:
        raise ValueError("logits is (B, T, V), labels is (B, T).")
    if bool(((labels < 0) & (labels != -100)).any()) or bool((labels >= logits.shape[-1]).any()):
        raise ValueError("A label is the id of a word, or -100.")
    logits = logits.clone().requires_grad_()
    output = program.masked_language_model_loss(logits, labels)
    if not gradient:
        return output
    output.backward()
    return {"the loss": output, "the gradient of the logits": logits.grad}


def model(program, ids, padding_mask=None, training=False):
    """ids (B, T), each below 10: the logits of a model without dropout, 0 where it is padding."""
    if ids.ndim != 2 or bool((ids < 0).any()) or bool((ids > 9).any()):
        raise ValueError("ids is (B, T): whole numbers from 0 to 9.")
    if padding_mask is not None and (padding_mask.shape != ids.shape or padding_mask.dtype != torch.bool):
        raise ValueError("padding_mask is (B, T), True marks padding.")
    if padding_mask is not None and bool(padding_mask.all(dim=1).any()):
        raise ValueError("No sentence is all padding.")
    network = program.MaskedLanguageModel(10, 4, n_heads=1, n_layers=1, d_ff=4, max_len=8, dropout=0.0)
    output = network.train(training)(ids, padding_mask)
    if padding_mask is not None:
        output = output.masked_fill(padding_mask.unsqueeze(-1), 0.0)
    return output


# Your inputs. These are the examples of the text, where it has one, and none of them catches anything.

INPUTS = {
    "corruption": lambda: (torch.tensor([[1, 7, 5, 2]]), 0.0),
    "loss": lambda: (torch.zeros(2, 2, 4), torch.tensor([[3, -100], [0, -100]])),
    "model": [],
}

# The first idea that everybody has, random numbers of the usual shape. Some programs survive these, too.

RANDOM_INPUTS = {
    "corruption": lambda: torch.randint(4, 10, (2, 3)),
    "loss": lambda: (torch.randn(2, 3, 4), torch.randint(0, 4, (2, 3))),
    "model": lambda: torch.randint(4, 10, (2, 3)),
}

if __name__ == "__main__":
    from autograder.notebook import catch_all

    catch_all(__file__)
