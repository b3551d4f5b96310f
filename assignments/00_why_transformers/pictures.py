"""Two pictures: how far gradients reach, and which steps wait for which, drawn with the student's own code."""

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor
from torch.nn import functional as F

from autograder.checks import pictured

BLUE, ORANGE, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#8B3E8B"
H = 32  # numbers in a word vector and in a hidden state
WORDS = ["the", "cat", "sat", "on", "the", "mat"]


def reach_over_distance(student) -> tuple[Figure, str]:
    """Three recurrent networks give straight lines, two down and one up: powers of a number. Attention's line is flat.

    Where a falling line is above it, the words are near and the recurrent network depends on them more.
    """
    T = 61
    dice = torch.Generator().manual_seed(0)
    turn, _ = torch.linalg.qr(normal(H, H, dice=dice))  # (H, H)
    as_pytorch_starts = (2 * torch.rand(H, H, generator=dice, dtype=torch.float64) - 1) / H**0.5  # (H, H)
    xs = 1e-4 * normal(1, T, H, dice=dice)  # (1, T, H): words so small that tanh bends nothing
    figure = Figure(figsize=(8.4, 4.6), layout="constrained")
    axes = figure.subplots()
    networks = (
        ("RNN, factor 1.1 a step: explodes", 1.1 * turn, ORANGE, "--"),
        ("RNN, factor 0.9 a step: vanishes", 0.9 * turn, BLUE, "-."),
        ("RNN with PyTorch's initial weights", as_pytorch_starts, PURPLE, ":"),
    )
    for name, W_hh, color, style in networks:
        last_of = last_state(student, W_hh)
        draw_reach(axes, student.gradient_reach(last_of, xs), name, color, style)
    draw_reach(axes, student.gradient_reach(attention_last, xs), "attention", GREEN, "-")
    axes.set_yscale("log")
    axes.set(xlabel="distance from the last word", ylabel="reach (gradient norm, log scale)")
    axes.set_title("What is left of the gradient on its way back", loc="left")
    axes.grid(color="0.9")
    axes.legend(frameon=False)
    return figure, pictured.sentence(pictured.lines(axes))


def normal(*sizes: int, dice: torch.Generator) -> Tensor:
    return torch.randn(*sizes, generator=dice, dtype=torch.float64)


def last_state(student, W_hh: Tensor):
    """The last state of the student's network as a function of the words: (1, T, H) -> (1, H)."""
    unit, silence = torch.eye(len(W_hh), dtype=torch.float64), torch.zeros(1, len(W_hh), dtype=torch.float64)
    return lambda xs: student.rnn(xs, silence, unit, W_hh, silence[0])[1]


def attention_last(xs: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(xs[:, -1:], xs, xs)[:, 0]  # (B, C)


def draw_reach(axes: Axes, reach: Tensor, name: str, color: str, style: str) -> None:
    by_distance = reach.detach().double().flip(0)  # (T,)
    axes.plot(by_distance / H**0.5, style, color=color, linewidth=2.2, label=name)


def computation_graphs(student) -> tuple[Figure, str]:
    """On the left the last circle waits for a chain of others, from corner to corner; on the right each row waits for the
    row below, and for nothing else.
    """
    T, layers = len(WORDS), 3
    figure = Figure(figsize=(10.5, 4.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    counts = []
    for axes, kind, title in ((left, "rnn", "recurrent layers"), (right, "attention", "layers of attention")):
        draw_graph(axes, kind, T, layers)
        count = student.sequential_steps(T, layers, kind)
        counts.append(count)
        needed = moment(kind, T - 1, layers - 1)
        axes.set_title(f"{title}: {needed} steps, and you count {count}", loc="left", fontsize=11)
    return figure, pictured.sentence(
        f"You count {pictured.listed(counts[:1])} steps for the recurrent layers, "
        f"{pictured.listed(counts[1:])} for attention",
    )


def moment(kind: str, word: int, layer: int) -> int:
    """The step in which this circle's work can be done at the earliest."""
    return word + layer + 1 if kind == "rnn" else layer + 1


def draw_graph(axes: Axes, kind: str, T: int, layers: int) -> None:
    """Circles for steps, row by row from the words up, and a line for each result that one of them needs."""
    shades = [BLUE, "#3A8FC4", "#7FB8DA", "#BFDCEC", "#F2D9A8", "#E8B25C", "#D98C2B", ORANGE]
    for layer in range(layers):
        for word in range(T):
            below = [word] if kind == "rnn" else range(T)
            for other in below:
                axes.plot([other, word], [layer, layer + 1], color="0.78", linewidth=1, zorder=1)
            if kind == "rnn" and word > 0:
                axes.plot([word - 1, word], [layer + 1] * 2, color="0.45", linewidth=2, zorder=1)
            step = moment(kind, word, layer)
            axes.scatter(word, layer + 1, s=430, color=shades[step - 1], edgecolors="0.3", zorder=2)
            dark = step in (1, 2, 8)
            ink = "white" if dark else "black"
            axes.text(word, layer + 1, str(step), ha="center", va="center", color=ink, zorder=3)
    for word, text in enumerate(WORDS):
        axes.text(word, -0.12, text, ha="center", va="top")
    axes.set_yticks(range(1, layers + 1), [f"layer {layer}" for layer in range(1, layers + 1)])
    axes.set_xticks([])
    axes.set(xlim=(-0.6, T - 0.4), ylim=(-0.5, layers + 0.5))
    for side in axes.spines.values():
        side.set_visible(False)
    axes.tick_params(length=0)


PICTURES = {"reach": [reach_over_distance], "steps": [computation_graphs]}
