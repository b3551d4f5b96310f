"""Catch the mistake: find inputs on which a wrong program differs from yours.

When a part passes its visible tests, up to four wrong programs are unlocked: A, B, C and so on. Each is your own file
with one piece of it replaced by a mistake that people really make, and each passes the same visible tests. You give
inputs; the answer says which programs differ from *your* code on them, where and by how much. A program that you have
caught tells its story.

Change the inputs below, then run `python catch.py` here, or `autograder catch 08` in the course's folder. In the
notebook: `catch("cross", lambda: (y, memory))`. A part can have several inputs, in a list.

Nothing separates program B from your code? Then your code may make that mistake: `autograder catch 08 --give-up B`.
"""

import math

import torch

from autograder.fakes import Reverser

# What is called with your input, in each part: once with your code as `program`, once with each wrong program. All have
# the same weights, made of fixed random numbers, so that only the code differs. There is nothing to change here.

PAD, BOS, EOS = 0, 1, 2


def cross(program, y, memory, memory_padding_mask=None, n_heads=1, ones=False):
    """y (B, T, C), memory (B, S, C): the output of a CrossAttention.

    ones: all weights are 1 and all biases 0, as in the text.
    """
    refuse_wrong_shapes(y, memory, memory_padding_mask)
    layer = program.CrossAttention(y.shape[-1], n_heads).to(y.dtype)
    if ones:
        for name, parameter in layer.named_parameters():
            parameter.data.fill_(1.0 if name.endswith("weight") else 0.0)
    return layer(y, memory, memory_padding_mask)


def block(program, y, memory, memory_padding_mask=None, training=False, silent=False):
    """y (B, T, C), memory (B, S, C): the output of a DecoderBlock with one head and without dropout.

    silent: all three sublayers answer 0, as in the text.
    """
    refuse_wrong_shapes(y, memory, memory_padding_mask)
    layer = program.DecoderBlock(y.shape[-1], 1, 4, dropout=0.0).to(y.dtype)
    layer.train(training)
    if silent:
        for name, parameter in layer.named_parameters():
            if name.startswith(("self_attention.out_proj.", "cross_attention.proj.", "ff.2.")):
                parameter.data.zero_()
    return layer(y, memory, memory_padding_mask)


def refuse_wrong_shapes(y, memory, memory_padding_mask):
    if y.ndim != 3 or memory.ndim != 3 or y.shape[0] != memory.shape[0] or y.shape[2] != memory.shape[2]:
        raise ValueError("y is (B, T, C), memory is (B, S, C).")
    refuse_wrong_mask(memory_padding_mask, memory.shape[:2])


def refuse_wrong_mask(mask, shape):
    if mask is None:
        return
    if mask.shape != shape or mask.dtype != torch.bool:
        raise ValueError("The mask is (B, S), True marks padding.")
    if bool(mask.all(dim=1).any()):
        raise ValueError("No sentence is all padding.")


def translator(program, src, y, src_padding_mask=None):
    """src (B, S), y (B, T), ids below 10: what the two halves of a Translator of two layers return in evaluation."""
    for ids in (src, y):
        if ids.ndim != 2 or bool((ids < 0).any()) or bool((ids > 9).any()):
            raise ValueError("src is (B, S) and y is (B, T): whole numbers from 0 to 9.")
    refuse_wrong_mask(src_padding_mask, src.shape)
    model = program.Translator(10, d_model=4, n_heads=1, n_layers=2, d_ff=4, max_len=8)
    model.eval()
    memory = model.encode(src, src_padding_mask)
    if src_padding_mask is not None:
        memory = memory.masked_fill(src_padding_mask.unsqueeze(-1), 0.0)
    return {"the memory": memory, "the logits": model.decode(y, memory, src_padding_mask)}


def greedy(program, src, max_len=8):
    """src (B, S), words from 3 to 11, each row filled up with PAD = 0: what greedy_decode writes.

    The model is a fake that says each sentence backwards, then EOS = 2, and something else after that.
    """
    padding = src == PAD
    if src.ndim != 2 or bool(((src < 3) & ~padding).any()) or bool((src > 11).any()):
        raise ValueError("src is (B, S): words from 3 to 11, filled up with pad_id = 0.")
    if bool((padding[:, :-1] & ~padding[:, 1:]).any()):
        raise ValueError("src is filled up with pad_id: no word comes after a PAD.")
    if bool(padding[:, :1].any()):
        raise ValueError("Each row of src has at least one word.")
    return program.greedy_decode(Reverser(12), src, bos_id=BOS, eos_id=EOS, pad_id=PAD, max_len=max_len)


# Your inputs. These are the examples of the text, where it has one, and none of them catches anything.

one_zero = torch.tensor([[[1.0], [0.0]]])
token = torch.tensor([[[2.0, 2.0, 6.0, 6.0]]])

INPUTS = {
    "cross": lambda: (one_zero, torch.tensor([[[math.log(3)], [0.0]]]), None, 1, True),
    "block": lambda: (token, torch.zeros(1, 2, 4), None, False, True),
    "translator": [],
    "greedy": lambda: torch.tensor([[5, 6, 7]]),
}

# The first idea that everybody has, random numbers of the usual shape. Some programs survive these, too.

RANDOM_INPUTS = {
    "cross": lambda: (torch.randn(2, 3, 4), torch.randn(2, 5, 4)),
    "block": lambda: (torch.randn(2, 3, 4), torch.randn(2, 5, 4)),
    "translator": lambda: (torch.randint(0, 10, (2, 4)), torch.randint(0, 10, (2, 3))),
    "greedy": lambda: torch.randint(3, 12, (2, 4)),
}

if __name__ == "__main__":
    from autograder.notebook import catch_all

    catch_all(__file__)
