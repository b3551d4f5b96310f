"""Pictures of masked heads, drawn from the student's own code."""

import torch
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from torch import Tensor

from autograder.checks import pictured

WORDS = ["the", "cat", "sat", "because", "it", "was", "tired"]

# What each word asks for and what it can be found by: (a being, a deed, a link, a filler).
ASKS = [[6, 0, 0, 1], [3, 0, 0, 2], [6, 1, 0, 0], [1, 5, 1, 0], [7, 0, 0, 0], [4, 3, 0, 0], [6, 2, 0, 0]]
FOUND_BY = [
    [0, 0, 0, 1],
    [1, 0, 0, 0],
    [0, 1, 0, 0],
    [0, 0, 1, 0],
    [0.6, 0, 0, 0.2],
    [0, 0.7, 0, 0],
    [0.2, 0, 0, 0],
]


def who_may_attend_to_whom(student) -> tuple[Figure, str]:
    """Row by row one more word is allowed: the dark squares form a triangle that includes the diagonal."""
    mask = student.causal_mask(len(WORDS)).detach().double()  # (T, T)
    figure = Figure(figsize=(5, 4.4), layout="constrained")
    axes = figure.subplots()
    axes.imshow(mask, cmap="Blues", vmin=0, vmax=1.4)
    name_the_words(axes, "may this word (query) …", "… attend to this one (key)?")
    for query, row in enumerate(mask.tolist()):
        for key, allowed in enumerate(row):
            sign = {1.0: "✓", 0.0: "·"}.get(allowed, f"{allowed:.3g}")
            axes.text(key, query, sign, ha="center", va="center")
    axes.set_title("Which word may attend to which", loc="left")
    return figure, pictured.sentence(pictured.cells(mask, WORDS, WORDS, diagonal=True))


def who_attends_to_whom(student) -> tuple[Figure, str]:
    """Without the mask, *the* attends to *cat*, which comes later; with it, *the* attends to itself alone.

    *it* finds *cat* in both. Each row adds up to 100; a dot is a weight of exactly zero.
    """
    questions, keys = torch.tensor(ASKS).double(), torch.tensor(FOUND_BY).double()  # (T, 4), (T, 4)
    values = torch.eye(len(WORDS)).double()  # (T, T)
    _, free = student.attention(questions, keys, values)  # (T, T)
    _, causal = student.attention(questions, keys, values, student.causal_mask(len(WORDS)))  # (T, T)
    figure = Figure(figsize=(8.6, 4.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    draw_weights(left, free, "Without a mask: weights in percent")
    draw_weights(right, causal, "With the causal mask")
    right.set_ylabel("")
    return figure, pictured.sentence(
        f"Without a mask, {pictured.cells(free, WORDS, WORDS, diagonal=True)}",
        f"With the causal mask, {pictured.cells(causal, WORDS, WORDS, diagonal=True)}",
    )


def why_divide(student) -> tuple[Figure, str]:
    """Longer vectors, larger scores: undivided, one key soon takes all the weight, and the gradient is gone.

    Divided by √D, both lines stay level: 16 keys share the weight as they do for short vectors. Random queries and keys.
    """
    widths = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]
    figure = Figure(figsize=(8.6, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    for divided, colour in ((False, "#d55e00"), (True, "#0072b2")):
        largest, slope = zip(*(saturation(student, D, divided) for D in widths))
        left.plot(widths, largest, "o-", color=colour)
        right.plot(widths, slope, "o-", color=colour)
        name, shift = ("your attention", 10) if divided else ("the same without √D", -70)
        left.annotate(
            name, (widths[-1], largest[-1]), (0, shift), textcoords="offset points", ha="right", color=colour
        )
    for axes, title in ((left, "The largest weight of a query"), (right, "How strongly weights react to scores")):
        axes.set_xscale("log", base=2)
        axes.set_xlabel("numbers in a key, D")
        axes.set_title(title, loc="left", fontsize=11)
        axes.set_ylim(0)
    left.set_ylim(0, 1.05)
    return figure, pictured.sentence(
        *(
            pictured.curve(line.get_ydata(), f"{what}, {who},")
            for axes, what in ((left, "the largest weight"), (right, "the reaction"))
            for line, who in zip(axes.get_lines(), ("undivided", "of your attention"))
        ),
    )


def one_query(student, D: int = 64) -> tuple[Figure, str]:
    """One query and 16 keys at random: with √D the weight is spread, without it one key takes nearly all of it.

    In a notebook with ipywidgets, a slider changes D: the left stays as it is, and the right one sharpens.
    """
    figure = Figure(figsize=(8.6, 3.2), layout="constrained")
    dice = torch.Generator().manual_seed(5)
    q, k = torch.randn(1, D, generator=dice).double(), torch.randn(16, D, generator=dice).double()  # (1, D), (16, D)
    for axes, divided in zip(figure.subplots(1, 2, sharey=True), (True, False)):
        _, weights = student.attention(q * (1 if divided else D**0.5), k, torch.eye(16).double())  # (1, 16)
        axes.bar(range(16), weights.detach()[0], color="#0072b2" if divided else "#d55e00")
        name = "Your attention" if divided else "The same without √D"
        axes.set_title(f"{name}, D = {D}: largest weight {weights.max().item():.2f}", loc="left", fontsize=11)
        axes.set(xlabel="key", ylim=(0, 1.05))
    return figure, pictured.sentence(
        *(
            f"{axes.get_title(loc='left').split(':')[0]}: the largest weight is at "
            f"{pictured.largest(pictured.bars(axes), 'key')}"
            for axes in figure.axes
        ),
    )


def saturation(student, D: int, divided: bool) -> tuple[float, float]:
    """The mean largest weight among 16 keys, and the mean size of a weight's gradient with respect to its score."""
    dice = torch.Generator().manual_seed(D)
    q = torch.randn(200, D, generator=dice, dtype=torch.float64) * (1 if divided else D**0.5)
    k = torch.randn(16, D, generator=dice, dtype=torch.float64)
    _, weights = student.attention(q, k, torch.eye(16, dtype=torch.float64))  # (200, 16)
    weights = weights.detach()
    return weights.max(dim=-1).values.mean().item(), (weights * (1 - weights)).mean().item()


def draw_weights(axes: Axes, weights: Tensor, title: str) -> None:
    weights = weights.detach().cpu()
    axes.imshow(weights, cmap="Blues", vmin=0, vmax=1)
    name_the_words(axes, "this word (query) …", "… attends to this one (key)")
    for query, row in enumerate(weights.tolist()):
        for key, weight in enumerate(row):
            percent = "·" if weight == 0 else "<1" if 0 < weight < 0.005 else f"{100 * weight:.0f}"
            shade = "white" if weight > 0.6 else "black"
            axes.text(key, query, percent, ha="center", va="center", color=shade, fontsize=9)
    axes.set_title(title, loc="left", fontsize=11)


def name_the_words(axes: Axes, rows: str, columns: str) -> None:
    places = range(len(WORDS))
    axes.set_xticks(places, WORDS, rotation=45, ha="right", rotation_mode="anchor")
    axes.set_yticks(places, WORDS)
    axes.set_xlabel(columns)
    axes.set_ylabel(rows)


def gradient_xray(student) -> tuple[Figure, str]:
    """Everything above the diagonal is black: no output reacts to a later word. A leak glows in a frame.

    On and below the diagonal every cell is lit: each output reacts to its own word and its whole past.
    """
    light = reaction(student, T=8, C=12, D=5)  # (T, T)
    T = len(light)
    leaks = [(t, s) for t in range(T) for s in range(T) if s > t and light[t, s] > 0]
    blind = [(t, s) for t in range(T) for s in range(T) if s <= t and light[t, s] == 0]
    broken = light.isnan().nonzero().tolist()

    figure = Figure(figsize=(6, 4.8), layout="constrained")
    axes = figure.subplots()
    axes.set_facecolor("black")
    shining = light[light > 0]
    brightest = shining.max().item() if len(shining) else 1.0
    dimmest = max(shining.min().item(), 1e-6 * brightest) if len(shining) else 0.1
    film = LogNorm(0.3 * dimmest, brightest)  # so that even the dimmest light is not black
    image = axes.imshow(light.masked_fill(light == 0, float("nan")), cmap="cividis", norm=film)
    axes.step([-0.5, *(s + 0.5 for s in range(T))], [-0.5, *(s - 0.5 for s in range(T))], color="white", lw=2)
    frame(axes, leaks, "--")
    frame(axes, blind, ":")
    for t, s in broken:
        axes.text(s, t, "NaN", ha="center", va="center", color="white", fontsize=9)
    axes.set_xticks(range(T))
    axes.set_yticks(range(T))
    axes.set_xlabel("when word s changes …")
    axes.set_ylabel("… how strongly does output t react?")
    axes.set_title(finding(leaks, blind, broken), loc="left", fontsize=11)
    figure.colorbar(image, ax=axes, label="‖∂y_t / ∂x_s‖  (black: exactly zero)")
    return figure, pictured.sentence(pictured.cells(light, "output", "word", from_=0, diagonal=True))


def reaction(student, T: int, C: int, D: int) -> Tensor:
    """How strongly output t reacts to word s: the size of the matrix of all ∂y[t, d] / ∂x[s, c].  (T, T)"""
    dice = torch.Generator().manual_seed(3)
    head = student.Head(C, D, T).double()
    head.eval()
    with torch.no_grad():
        for layer in (head.key, head.query, head.value):
            layer.weight.copy_(torch.randn(D, C, generator=dice, dtype=torch.float64) / C**0.5)
    sentence = torch.randn(T, C, generator=dice, dtype=torch.float64)
    copies = sentence.repeat(T * D, 1, 1).requires_grad_()  # one copy for each number of the output
    outputs = head(copies)  # (T·D, T, D)
    each = torch.arange(T * D)
    asked = outputs[each, each // D, each % D].sum()
    (gradient,) = torch.autograd.grad(asked, copies)  # (T·D, T, C)
    return gradient.reshape(T, D, T, C).pow(2).sum(dim=(1, 3)).sqrt()


def frame(axes: Axes, cells: list[tuple[int, int]], style: str) -> None:
    for t, s in cells:
        x, y = [s - 0.4, s + 0.4, s + 0.4, s - 0.4, s - 0.4], [t - 0.4, t - 0.4, t + 0.4, t + 0.4, t - 0.4]
        axes.plot(x, y, color="orangered", ls=style, lw=2)


def finding(leaks: list, blind: list, broken: list) -> str:
    if broken:
        return f"Not a number: {len(broken)} of the gradients are broken"
    if leaks:
        return f"The future leaks: light above the diagonal ({len(leaks)} cells)"
    if blind:
        return f"The past does not arrive everywhere ({len(blind)} cells are dark)"
    return "Your head's X-ray is the causal mask"


PICTURES = {
    "mask": [who_may_attend_to_whom],
    "attention": [who_attends_to_whom, why_divide, one_query],
    "head": [gradient_xray],
}
SLIDERS = {one_query: {"D": (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)}}
