"""Every number in the prose is what the reference computes, and the cells that print do what the prose says of them.

Not a part of the graded suite.
"""

import importlib.util
import math
import re
import runpy
from pathlib import Path

import pytest
import torch
from torch.nn import functional as F

ROOT = Path(__file__).resolve().parents[3]
SOLUTION = ROOT / "solutions" / "00_why_transformers" / "why_transformers.py"
TEXT = SOLUTION.read_text("utf-8")
PROSE = " ".join(" ".join(line.removeprefix("# ") for line in TEXT.splitlines()).split())


@pytest.fixture(scope="module")
def recurrent():
    """The solution, as a module of its own."""
    spec = importlib.util.spec_from_file_location("solution_of_why_transformers", SOLUTION)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def says(*sentences):
    for sentence in sentences:
        assert sentence in PROSE, sentence


def grouped(number):
    return f"{number:,}".replace(",", "{,}")


def test_one_step(recurrent):
    x, h = torch.tensor([[1.0]]), torch.tensor([[1.0, 0.0]])
    W_xh, W_hh, b = torch.tensor([[0.2, 0.0]]), torch.tensor([[0.0, 0.4], [0.2, 0.0]]), torch.tensor([0.0, 0.1])
    assert torch.equal(x @ W_xh, torch.tensor([[0.2, 0.0]]))
    assert torch.equal(h @ W_hh, torch.tensor([[0.0, 0.4]]))
    first, second = recurrent.rnn_step(x, h, W_xh, W_hh, b)[0].tolist()
    assert (first, second) == pytest.approx((math.tanh(0.2), math.tanh(0.5)))
    says(
        r"W_{xh} = \begin{pmatrix} 0.2 & 0 \end{pmatrix}",
        r"W_{hh} = \begin{pmatrix} 0 & 0.4 \\ 0.2 & 0 \end{pmatrix}",
        r"b = \begin{pmatrix} 0 & 0.1 \end{pmatrix}",
        r"The word contributes $(0.2,\ 0)$, the old state $(0,\ 0.4)$, the bias $(0,\ 0.1)$",
        rf"$(\tanh 0.2,\ \tanh 0.5) = ({first:.4f},\ {second:.4f})$",
        f"give [[{first:.4f}, {second:.4f}]].",
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_thousand_is_too_much_for_the_textbook_formula(dtype):
    z = torch.tensor(1000.0, dtype=dtype)
    assert z.tanh() == 1 and z.exp().isinf()
    assert ((z.exp() - (-z).exp()) / (z.exp() + (-z).exp())).isnan()
    says(r"$\tanh 1000$ is 1.", "$e^{1000}$ fits neither a `float32` nor a `float64`")


def test_the_trace_of_the_first_word(recurrent):
    xs = torch.tensor([1.0, 0.0, 0.0]).reshape(1, 3, 1)
    one, half, zero = torch.tensor([[1.0]]), torch.tensor([[0.5]]), torch.tensor([[0.0]])
    outputs, _ = recurrent.rnn(xs, zero, one, half, zero[0])
    a, b, c = outputs.flatten().tolist()
    assert b < a / 2 and c < b / 2
    says(
        rf"$\tanh 1 = {a:.4f}$, then $\tanh(0.5 \cdot {a:.4f}) = {b:.4f}$, then $\tanh(0.5 \cdot {b:.4f}) = {c:.4f}$",
        "the trace of the first one shrinks to less than half",
        f"give the outputs {a:.4f}, {b:.4f}, {c:.4f}.",
    )


def test_the_bottleneck():
    says(rf"50 words is $50 \cdot 512 = {grouped(50 * 512)}$ numbers, and a state has 512")


def test_powers():
    says(
        f"| 0.9 | $0.9^{{50}} = {0.9**50:.4f}$ |",
        f"| 1.1 | $1.1^{{50}} = {1.1**50:.0f}$ |",
        f"$0.99^{{50}} = {0.99**50:.3f}$ of it arrives, where $0.9^{{50}}$ was {0.9**50:.4f}",
        rf"$1/\sqrt 3 = {3**-0.5:.3f}$, and $0.577^{{50}}$ is about $10^{{{math.log10(0.577**50):.0f}}}$",
    )


def test_the_reach_worked_by_hand(recurrent):
    def reach(B):
        one, zero = torch.ones(1, 1), torch.zeros(B, 1)
        return recurrent.gradient_reach(
            lambda xs: recurrent.rnn(xs, zero, one, 0.9 * one, zero[0])[1], torch.zeros(B, 4, 1)
        )

    numbers = reach(1).tolist()
    assert reach(2).tolist() == pytest.approx([math.sqrt(2) * number for number in numbers])
    shown = r",\ ".join(f"{number:.4g}" for number in numbers)
    says(f"$({shown})$", f"[{', '.join(f'{number:.4f}' for number in numbers)}]", r"it is $\sqrt 2$ times as large")


def test_pytorch_starts_with_a_matrix_that_shrinks():
    torch.manual_seed(0)
    bound = next(p for name, p in torch.nn.RNN(3, 400).named_parameters() if name == "weight_hh_l0").detach()
    assert bound.abs().max() == pytest.approx(400**-0.5, rel=1e-3)
    radius = torch.linalg.eigvals(bound).abs().max().item()
    assert radius == pytest.approx(3**-0.5, rel=0.1)
    says(r"drawn evenly from $-1/\sqrt H$ to $1/\sqrt H$")


def test_attention_shares_alike(recurrent):
    T, C = 51, 32
    xs = 1e-4 * torch.randn(1, T, C, dtype=torch.float64)
    reach = recurrent.gradient_reach(recurrent.attention_last, xs) / C**0.5
    assert reach.tolist() == pytest.approx([1 / T] * T, rel=1e-4)
    says(f"Among {T} words that all match equally well, each one gets $1/{T} = {1 / T:.4f}$")


def test_steps_that_wait(recurrent):
    count = recurrent.sequential_steps
    assert (count(5, 3, "rnn"), count(5, 3, "attention")) == (7, 3)
    says(
        "For $T = 5$ words and $L = 3$ layers it is 7 steps against 3",
        f"for 1,000 words and 6 layers, {count(1000, 6, 'rnn'):,} against {count(1000, 6, 'attention')}",
        "5 words and 3 layers take 7 steps with \"rnn\" and 3 with \"attention\"",
    )


def test_scores():
    says(
        f"For 10 words that is {10**2}, for 1,000 words it is {1000**2:,}",
        rf"$512^2 \cdot 12 \cdot 12 = {grouped(512**2 * 12 * 12)}$ scores",
    )
    q = k = torch.randn(1, 10, 3)
    assert (q @ k.transpose(1, 2)).numel() == 100


def test_short_texts_are_cheaper_for_attention():
    T, H = 50, 512
    says(f"for $T = {T}$ and $H = {H}$ it is {T * T * H:,} multiplications against {T * H * H:,}")
    assert T * T * H < T * H * H


def test_the_demonstration_shows_what_the_prose_says(capsys):
    runpy.run_path(str(SOLUTION), run_name="__main__")
    lines = capsys.readouterr().out.splitlines()
    assert re.findall(r"\d+", lines[0]) == ["0", "10", "25", "50"]
    table = {line[:34].strip(): [float(number) for number in line[34:].split()] for line in lines[1:5]}
    vanishing, exploding = table["RNN, W_hh = 0.9 x a rotation"], table["RNN, W_hh = 1.1 x a rotation"]
    distances = (0, 10, 25, 50)
    assert vanishing == pytest.approx([0.9**distance for distance in distances], rel=0.05)
    assert exploding == pytest.approx([1.1**distance for distance in distances], rel=0.05)
    assert 1e-13 < table["RNN, W_hh = PyTorch's start"][-1] < 1e-11
    assert table["attention"] == pytest.approx([1 / 51] * 4, rel=0.05)
    assert lines[5:] == []


def test_attention_does_not_notice_the_order(recurrent):
    xs = torch.randn(1, 6, 4)
    swapped = xs[:, [1, 0, 2, 3, 4, 5]]
    torch.testing.assert_close(recurrent.attention_last(swapped), recurrent.attention_last(xs))
    weights = torch.randn(4, 5), torch.randn(5, 5), torch.randn(5)
    h0 = torch.zeros(1, 5)
    assert not torch.allclose(recurrent.rnn(swapped, h0, *weights)[1], recurrent.rnn(xs, h0, *weights)[1])
    assert F.scaled_dot_product_attention(xs, xs, xs).shape == xs.shape
    says("attention by itself does not notice")
