"""Pictures of turning, drawn from the student's own function."""

import math

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from autograder.checks import pictured

BLUE, ORANGE = "#0072B2", "#D55E00"


def hands_of_one_vector(student, position: int = 7) -> tuple[Figure, str]:
    """Every tip stays on its circle and walks counter-clockwise from 0, more slowly on every clock."""
    positions, D = position + 1, 8
    hands = torch.tensor([1.0, 0.0]).repeat(D // 2)  # (D,): every hand points to the right
    tips = student.rope(hands.repeat(positions, 1), base=30.0).detach()  # (T, D)
    figure = Figure(figsize=(9, 3.1), layout="constrained")
    for pair, axes in enumerate(figure.subplots(1, D // 2)):
        draw_clock(axes, tips[:, 2 * pair], tips[:, 2 * pair + 1])
        axes.set_title(f"numbers {2 * pair} and {2 * pair + 1}")
    figure.suptitle(
        f"One vector at positions 0 to {position} (base 30, so that all hands are seen to move)", fontsize=11
    )
    return figure, pictured.sentence(
        *(
            f"Numbers {pair} and {pair + 1}: position 1 is at "
            f"{pictured.listed(tips[min(1, position), pair : pair + 2])}, "
            f"the last at {pictured.listed(tips[-1, pair : pair + 2])}"
            for pair in range(0, D, 2)
        ),
    )


def draw_clock(axes: Axes, across: Tensor, up: Tensor) -> None:
    """One clock: a dot for each position with its number, and the hand at the last one."""
    turn = torch.linspace(0, 2 * math.pi, 200)
    axes.plot(turn.cos(), turn.sin(), color="0.75", linewidth=1)
    axes.plot([0, across[-1]], [0, up[-1]], color=ORANGE, linewidth=2)
    axes.plot(across, up, "o", color=BLUE, markersize=5)
    last = None
    for position, (x, y) in enumerate(zip(across.tolist(), up.tolist(), strict=True)):
        if last is None or math.dist((x, y), last) > 0.2:
            axes.text(1.22 * x, 1.22 * y, str(position), ha="center", va="center", fontsize=8)
            last = (x, y)
    axes.set(xlim=(-1.5, 1.5), ylim=(-1.5, 1.5), xticks=[-1, 0, 1], yticks=[-1, 0, 1], aspect="equal")


def scores_by_distance(student) -> tuple[Figure, str]:
    """Stripes along the diagonal, and three curves that lie on each other: only the distance counts."""
    T, D = 40, 16
    dice = torch.Generator().manual_seed(4)
    words = torch.randn(2, 1, D, generator=dice)  # (2, 1, D)
    query, key = words[0], words[0] + 0.7 * words[1]  # somewhat alike
    q, k = student.rope(query.repeat(T, 1)).detach(), student.rope(key.repeat(T, 1)).detach()  # (T, D)
    table = q @ k.T  # (T, T)
    figure = Figure(figsize=(9, 3.9), layout="constrained")
    left, right = figure.subplots(1, 2)
    image = left.imshow(table, cmap="cividis", interpolation="nearest")
    left.set(xlabel="position n of the key", ylabel="position m of the query")
    left.set_title("Score of one query and one key", loc="left", fontsize=10)
    figure.colorbar(image, ax=left, shrink=0.85)
    styles = {8: ("-", 5, "0.75"), 20: ("--", 2, BLUE), 32: (":", 2.5, "black")}
    for position, (style, width, color) in styles.items():
        distance = torch.arange(T) - position
        right.plot(distance, table[position], style, lw=width, color=color, label=f"m = {position}")
    right.set(xlabel="distance n − m", ylabel="score")
    right.set_title("Three rows of it, by distance", loc="left", fontsize=10)
    right.margins(y=0.25)
    right.legend(loc="upper center", ncols=3, frameon=False)
    return figure, pictured.sentence(pictured.lines(right))


def who_turns_with_whom(student) -> tuple[Figure, str]:
    """Blocks of two along the diagonal for neighbours; three stripes, half a width apart, for halves."""
    figure = Figure(figsize=(9, 4.2), layout="constrained")
    names = {True: "interleaved=True", False: "interleaved=False"}
    for axes, (interleaved, name) in zip(figure.subplots(1, 2), names.items(), strict=True):
        draw_partners(axes, reactions(student, 8, interleaved))
        axes.set_title(name, loc="left")
    return figure, pictured.sentence(
        *(
            f"{axes.get_title(loc='left')}: {pictured.image(axes, 'result', 'input', diagonal=True)}"
            for axes in figure.axes
        ),
    )


def reactions(student, D: int, interleaved: bool) -> Tensor:
    """How strongly number j of the result reacts to number i of the input, at position 1: (D, D)."""
    unit = torch.eye(D).unsqueeze(1).repeat(1, 2, 1)  # (D, 2, D): one number is 1, at positions 0 and 1
    return student.rope(unit, base=20.0, interleaved=interleaved).detach()[:, 1].T.abs()


def draw_partners(axes: Axes, table: Tensor) -> None:
    D = len(table)
    axes.imshow(table, cmap="Blues", vmin=0, vmax=1, interpolation="nearest")
    for j in range(D):
        for i in range(D):
            if table[j, i] > 1e-6:
                color = "white" if table[j, i] > 0.6 else "black"
                text = f"{table[j, i]:.2f}"
                axes.text(i, j, text, ha="center", va="center", fontsize=8, color=color)
    axes.set(
        xticks=range(D), yticks=range(D), xlabel="number i of the input", ylabel="number j of the result"
    )


PICTURES = {
    "rotation": [hands_of_one_vector],
    "distance": [scores_by_distance],
    "halves": [who_turns_with_whom],
}
SLIDERS = {hands_of_one_vector: {"position": range(40)}}
