"""Small tables of what an encoder block gives on fresh inputs, for questions about a student's own code."""

import torch
from torch import Tensor


def normed(student, dice, scale=1.0, shift=0.0, gamma=1.0, beta=0.0, loud=False) -> Tensor:
    """`layer_norm` of three tokens: a row for each token. “Now”, gamma is 1 and beta is 0."""
    x = torch.randn(3, 4, generator=dice).double() * 2 + 3  # (T, C)
    if loud:
        x[0] = 10 * x[0]
    ones = torch.ones(4).double()  # (C,)
    return student.layer_norm(scale * x + shift, gamma * ones, beta * ones, 1e-5)  # (T, C)


def expanded(student, dice, first: float = 1, second: float = 1, zeroed: int = -1) -> Tensor:
    """The output of the feed-forward layer for three tokens, with `linear1` = [I, −I] and `linear2` = [I, I]: it is
    the size of each number, |x|."""
    layer = student.FeedForward(4, 8, "relu").double()
    eye = torch.eye(4).double()
    layer.linear1.weight.copy_(first * torch.cat([eye, -eye]))  # (8, 4)
    layer.linear2.weight.copy_(second * torch.cat([eye, eye], dim=1))  # (4, 8)
    layer.linear1.bias.zero_()
    layer.linear2.bias.zero_()
    x = torch.randn(3, 4, generator=dice).double() * 2  # (T, C)
    if zeroed >= 0:
        x[zeroed] = 0
    return layer(x)  # (T, C)


def quiet_block(student, dice, kind="TransformerEncoderBlock", scale=1.0, shift=0.0, gamma=1.0) -> Tensor:
    """What a block makes of three tokens while attention and the feed-forward layer answer only zeros: a row for each
    token."""
    block = getattr(student, kind)(4, 1, 8, dropout=0.0).double().eval()
    block.attention.out_proj.weight.zero_()
    block.attention.out_proj.bias.zero_()
    block.ff.linear2.weight.zero_()
    block.ff.linear2.bias.zero_()
    block.norm1.gamma.fill_(gamma)
    x = torch.randn(1, 3, 4, generator=dice).double() * 2 + 1  # (B, T, C)
    return block(scale * x + shift)[0]  # (T, C)


def quiet_pre_norm(student, dice, scale=1.0, shift=0.0, kind="PreNormBlock", gamma=1.0) -> Tensor:
    """What a pre-norm block makes of three tokens while attention and the feed-forward layer answer only zeros: a row for
    each token."""
    return quiet_block(student, dice, kind, scale, shift, gamma)


def moved(student, dice, changed: int = 1, padded: int = 1, T: int = 5) -> Tensor:
    """How far the vector of each token moves, the first one on the left; 0 is exactly as before. “Now”, the token at
    place 1 becomes another one, and the last place is padding."""
    sizes = {"d_model": 4, "n_heads": 1, "n_layers": 1, "d_ff": 8, "max_len": T, "dropout": 0.0}
    encoder = student.TransformerEncoder(9, **sizes).double().eval()
    encoder.embedding.weight.copy_(torch.randn(9, 4, generator=dice).double() * 2)
    before = torch.randint(1, 5, (1, T), generator=dice)  # (B, T)
    after = before.clone()
    after[0, changed] = 7
    padding = (torch.arange(T) >= T - padded)[None]  # (B, T)
    return (encoder(after, padding) - encoder(before, padding)).norm(dim=-1)  # (B, T)
