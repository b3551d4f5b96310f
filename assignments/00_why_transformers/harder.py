"""Harder, and not graded: an LSTM by hand (about 30 minutes, ●●○).

At each step, the network of Part 1 sends its whole state through a matrix and a tanh. A gradient on its way back meets
them at each step again, and fades. The LSTM (Sepp Hochreiter and Jürgen Schmidhuber, 1997) keeps a second state, the
*cell* c, which is only multiplied number by number:

    i, f, o     three *gates* between 0 and 1: a sigmoid of x @ W_x + h @ W_h + b           (B, H) each
    g           what could be written into the cell: a tanh of the same kind of sum         (B, H)
    c' = f · c + i · g              f says what stays in the cell, i what is written into it
    h' = o · tanh(c')               o says what is shown

Where f is near 1, the cell stays as it is, and a gradient passes almost unchanged.

**By hand.** Let H be 1, let the sums of the three gates be 0 and that of g be ln 3. Then i = f = o = 1/2 and
g = tanh(ln 3) = 0.8. A cell of 2 becomes c' = 0.5 · 2 + 0.5 · 0.8 = 1.4, and h' = 0.5 · tanh 1.4 = 0.4427.

**How long does it remember?** If f is always 0.9, then 0.9^50, about half a per cent, is left after 50 steps. For half
of it to be left, f must be 0.5^(1/50) = 0.9862, and the sum of the forget gate must be ln(f / (1 - f)) = 4.27. This is
why the bias of the forget gate is often set to a positive number before training.

Write `lstm_step`, `lstm` and `forget_bias`, and run `python harder.py`.
Each check stops after a minute of work.
"""

import torch
from torch import Tensor, nn

from autograder import checks


def lstm_step(x: Tensor, h: Tensor, c: Tensor, W_x: Tensor, W_h: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """One step of an LSTM: the new h and the new c, both (B, H).

    x (B, C), h and c (B, H), W_x (C, 4H), W_h (H, 4H), b (4H,). The four blocks of H columns belong, in PyTorch's order,
    to i, f, g and o.
    """
    # TODO: one sum for all four, cut into blocks; three sigmoids and a tanh                # (B, 4H), 4 times (B, H)
    # TODO: the new cell, and what is shown of it                                           # (B, H), (B, H)
    raise NotImplementedError("lstm_step is not written yet.")


def lstm(xs: Tensor, W_x: Tensor, W_h: Tensor, b: Tensor) -> Tensor:
    """A whole text, xs (B, T, C), word by word from h = c = 0: the h of each step, (B, T, H)."""
    # TODO: T steps, each with the states of the one before
    raise NotImplementedError("lstm is not written yet.")


def forget_bias(share: float, steps: int) -> float:
    """The sum of a forget gate at which this share of a cell (between 0 and 1) is left after so many steps."""
    # TODO: the f whose power is the share, and the number whose sigmoid it is
    raise NotImplementedError("forget_bias is not written yet.")


def some_cell() -> tuple[nn.LSTMCell, tuple[Tensor, Tensor, Tensor]]:
    """A cell of PyTorch's for C = 5 and H = 7 with random weights, and its weights as `lstm_step` takes them."""
    torch.manual_seed(1)
    cell = nn.LSTMCell(5, 7).double()
    return cell, (cell.weight_ih.T.detach(), cell.weight_hh.T.detach(), (cell.bias_ih + cell.bias_hh).detach())


def by_hand() -> None:
    """Three gates of 1/2 and a candidate of 0.8 turn a cell of 2 into 1.4, and show 0.4427 of it."""
    one, c = torch.zeros(1, 1, dtype=torch.float64), torch.full((1, 1), 2.0, dtype=torch.float64)
    sums = torch.tensor([0.0, 0.0, 3.0, 0.0], dtype=torch.float64)
    sums[2] = sums[2].log()
    h, c = checks.unpack(lstm_step(one, one, c, one.repeat(1, 4), one.repeat(1, 4), sums), ["h", "c"])
    checks.close(c, torch.full((1, 1), 1.4, dtype=torch.float64), "The new cell")
    checks.close(h, torch.full((1, 1), 0.4427, dtype=torch.float64), "What is shown", atol=5e-5)


def equal_to_pytorch() -> None:
    """One step is that of PyTorch's LSTM cell."""
    cell, weights = some_cell()
    x, h, c = (torch.randn(3, n, dtype=torch.float64) for n in (5, 7, 7))
    got = checks.unpack(lstm_step(x, h, c, *weights), ["h", "c"])
    for name, ours, theirs in zip(("h", "c"), got, cell(x, (h, c))):
        checks.close(ours, theirs.detach(), f"The new {name}")


def whole_text() -> None:
    """A text of six words gives the six states that PyTorch's LSTM gives."""
    cell, weights = some_cell()
    whole = nn.LSTM(5, 7, batch_first=True).double()
    whole.load_state_dict({f"{name}_l0": number for name, number in cell.state_dict().items()})
    xs = torch.randn(3, 6, 5, dtype=torch.float64)
    checks.close(lstm(xs, *weights), whole(xs)[0].detach(), "The states")


def half_is_left() -> None:
    """With `forget_bias(0.5, 50)`, half of the cell, and half of its gradient, is left after 50 steps."""
    c = torch.ones(1, 1, dtype=torch.float64, requires_grad=True)
    state, h, nothing = c, torch.zeros(1, 1, dtype=torch.float64), torch.zeros(1, 4, dtype=torch.float64)
    b = torch.tensor([0.0, forget_bias(0.5, 50), 0.0, 0.0], dtype=torch.float64)
    for _ in range(50):
        h, state = lstm_step(torch.zeros_like(h), h, state, nothing, nothing, b)
    (gradient,) = torch.autograd.grad(state.sum(), c)
    checks.close(state.detach(), torch.full_like(state, 0.5), "The cell after 50 steps")
    checks.close(gradient, torch.full_like(state, 0.5), "The gradient over 50 steps")


CHECKS = [by_hand, equal_to_pytorch, whole_text, half_is_left]


if __name__ == "__main__":
    from autograder.notebook import run_checks

    run_checks(CHECKS)
