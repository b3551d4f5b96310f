"""Catch the mistake: find inputs on which a wrong program differs from yours.

When a part passes its visible tests, up to four wrong programs are unlocked: A, B, C and so on. Each is your own file
with one piece of it replaced by a mistake that people really make, and each passes the same visible tests. You give
inputs; the answer says which programs differ from *your* code on them, where and by how much. A program that you have
caught tells its story.

Change the inputs below, then run `python catch.py` here, or `autograder catch 05` in the course's folder. In the
notebook: `catch("layer_norm", lambda: (x, gamma, beta))`. A part can have several inputs, in a list.

Nothing separates program B from your code? Then your code may make that mistake: `autograder catch 05 --give-up B`.
"""

import torch

# What is called with your input, in each part: once with your code as `program`, once with each wrong program. All have
# the same weights, made of fixed random numbers, so that only the code differs. There is nothing to change here.


def layer_norm(program, x, gamma, beta, eps=1e-5, gradient=False):
    """x (..., C), gamma (C,), beta (C,): the output; with gradient, the gradient of x for some loss as well."""
    if gamma.shape != x.shape[-1:] or beta.shape != x.shape[-1:]:
        raise ValueError("x is (..., C), gamma and beta are (C,).")
    if not gradient:
        return program.layer_norm(x, gamma, beta, eps)
    x = x.clone().requires_grad_()
    output = program.layer_norm(x, gamma, beta, eps)
    ups_and_downs = torch.arange(output.numel()).remainder(3).to(output.dtype).reshape(output.shape)
    (output * ups_and_downs).sum().backward()
    return {"the output": output, "the gradient of x": x.grad}


def feed_forward(program, x, activation="relu"):
    """x (..., C): the output of a FeedForward(C, 4, activation)."""
    layer = program.FeedForward(x.shape[-1], 4, activation)
    return layer.to(x.dtype)(x)


def post_norm(program, x, padding_mask=None, attn_mask=None, silent=False):
    """x (B, T, C): the output of a TransformerEncoderBlock with one head in evaluation, 0 where it is padding.

    silent: both sublayers answer 0, as in the text.
    """
    return _block(program.TransformerEncoderBlock, x, padding_mask, attn_mask, silent)


def pre_norm(program, x, padding_mask=None, attn_mask=None, silent=False):
    """x (B, T, C): the output of a PreNormBlock with one head in evaluation, 0 where it is padding.

    silent: both sublayers answer 0, as in the text.
    """
    return _block(program.PreNormBlock, x, padding_mask, attn_mask, silent)


def _block(make, x, padding_mask, attn_mask, silent):
    if x.ndim != 3:
        raise ValueError("x is (B, T, C).")
    B, T, C = x.shape
    if padding_mask is not None and (padding_mask.shape != (B, T) or padding_mask.dtype != torch.bool):
        raise ValueError("padding_mask is (B, T), True marks padding.")
    if padding_mask is not None and bool(padding_mask.all(dim=1).any()):
        raise ValueError("No sentence is all padding.")
    if attn_mask is not None and (attn_mask.shape != (T, T) or attn_mask.dtype != torch.bool):
        raise ValueError("attn_mask is (T, T), True in row t and column s: token t may not attend to token s.")
    block = make(C, 1, 4, dropout=0.0).to(x.dtype)
    block.eval()
    if silent:
        for name, parameter in block.named_parameters():
            if name.startswith(("attention.out_proj.", "ff.linear2.")):
                parameter.data.zero_()
    output = block(x, padding_mask=padding_mask, attn_mask=attn_mask)
    if padding_mask is not None:
        output = output.masked_fill(padding_mask.unsqueeze(-1), 0.0)
    return output


def encoder(program, token_ids, padding_mask=None):
    """token_ids (B, T), each below 10: what a TransformerEncoder of two layers returns, 0 where it is padding."""
    if token_ids.ndim != 2 or bool((token_ids < 0).any()) or bool((token_ids > 9).any()):
        raise ValueError("token_ids is (B, T): whole numbers from 0 to 9.")
    if padding_mask is not None and (padding_mask.shape != token_ids.shape or padding_mask.dtype != torch.bool):
        raise ValueError("padding_mask is (B, T), True marks padding.")
    if padding_mask is not None and bool(padding_mask.all(dim=1).any()):
        raise ValueError("No sentence is all padding.")
    model = program.TransformerEncoder(10, d_model=4, n_heads=1, n_layers=2, d_ff=4, max_len=8, dropout=0.0)
    model.eval()
    output = model(token_ids, padding_mask=padding_mask)
    if padding_mask is not None:
        output = output.masked_fill(padding_mask.unsqueeze(-1), 0.0)
    return output


# Your inputs. These are the examples of the text, where it has one, and none of them catches anything.

token = torch.tensor([2.0, 2.0, 6.0, 6.0])

INPUTS = {
    "layer_norm": lambda: (token, torch.full((4,), 10.0), torch.ones(4), 0.0),
    "feed_forward": lambda: token,
    "post_norm": lambda: (token.reshape(1, 1, 4), None, None, True),
    "pre_norm": lambda: (token.reshape(1, 1, 4), None, None, True),
    "encoder": [],
}

# The first idea that everybody has, random numbers of the usual shape. Some programs survive these, too.

RANDOM_INPUTS = {
    "layer_norm": lambda: (torch.randn(2, 3, 4), torch.randn(4), torch.randn(4)),
    "feed_forward": lambda: torch.randn(2, 3, 4),
    "post_norm": lambda: torch.randn(2, 3, 4),
    "pre_norm": lambda: torch.randn(2, 3, 4),
    "encoder": lambda: torch.randint(0, 10, (2, 3)),
}

if __name__ == "__main__":
    from autograder.notebook import catch_all

    catch_all(__file__)
