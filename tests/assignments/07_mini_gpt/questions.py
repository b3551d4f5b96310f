"""Small tables of what a language model gives on fresh inputs, for questions about a student's own code."""

import torch
from torch import Tensor

from autograder.fakes import Die


def windows(student, dice, block_size: int = 4, begin: int = 0) -> Tensor:
    """A window of x above the window of y that belongs to it, cut out of a text of five words."""
    text = torch.randperm(90, generator=dice)[:5] + 10  # (L,)
    text = text[begin : begin + block_size + 1]
    x, y = student.get_batch(text, block_size, 1, torch.Generator().manual_seed(1))
    return torch.cat([x, y])  # (2, T)


def losses(student, dice, right: int = 0, shift: float = 0, sharp: float = 1) -> Tensor:
    """The loss of a model for four words, for each of four right answers. “Now”, the right one has the largest logit in
    the first column, the second largest in the second, and so on."""
    logits = torch.randn(4, generator=dice).double().mul(2).sort(descending=True).values  # (V,)
    order = logits.roll(-right)
    logits = (sharp * order + shift).expand(1, 2, 4).clone()  # (B, T, V)
    return torch.stack([student.language_model_loss(logits, torch.full((1, 2), word)) for word in range(4)])  # (4,)


def changes(student, dice, word: int = 2, layers: int = 1, T: int = 5) -> Tensor:
    """How far the logits at each place move, the first one on the left; 0 is exactly as before. “Now”, the word at place
    2, counted from 0, becomes another one."""
    model = student.TransformerLanguageModel(9, embed_size=8, block_size=T, num_heads=2, num_layers=layers)
    model = model.double().eval()
    before = torch.randint(0, 8, (1, T), generator=dice)  # (B, T)
    after = before.clone()
    after[0, word] = 8
    moved = model(after)[0] - model(before)[0]  # (B, T, V)
    return moved.norm(dim=-1)  # (B, T)


def drawn(student, dice, temperature: float = 1.0, top_k: int = 0) -> Tensor:
    """How often each of four words is drawn, of 1. The model says the same probabilities after each word."""
    order = [0.5, 0.28, 0.16, 0.06]
    turn = int(torch.randint(4, (1,), generator=dice))
    model = Die(order[turn:] + order[:turn])
    start = torch.zeros(3000, 1, dtype=torch.long)  # (B, 1)
    seed = int(torch.randint(1000, (1,), generator=dice))
    generator = torch.Generator().manual_seed(seed)
    written = student.generate(model, start, 1, temperature, top_k or None, generator)  # (B, 2)
    return torch.bincount(written[:, 1], minlength=4).double() / 3000  # (4,)
