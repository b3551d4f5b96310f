"""Pictures of what a model costs, drawn from the student's own code."""

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from autograder.checks import pictured

BLUE, ORANGE, GREEN, PINK, GREY = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#999999"
WEIGHTS, OPERATIONS, BW, PEAK = 14 * 10**9, 14 * 10**9, 2e12, 312e12
CACHES = {"no cache": 0, "16 million bytes each": 16 * 10**6, "64 million": 64 * 10**6, "128 million": 128 * 10**6}
COLOURS = (BLUE, GREEN, ORANGE, PINK)


def shares_by_length(student) -> tuple[Figure, str]:
    """The share of attention in a layer grows with the text, and sooner in a narrow model. Dashed: where both halves of
    a layer cost the same.
    """
    figure = Figure(figsize=(7.2, 3.8), layout="constrained")
    axes = figure.subplots()
    lengths = [2**power for power in range(4, 16)]
    for name, width, colour in (("GPT-2 small, C = 768", 768, BLUE), ("GPT-2 XL, C = 1600", 1600, ORANGE)):
        config = student.GPT2Config(n_embd=width, n_head=width // 64)
        axes.plot(lengths, [student.shares(config, T)[0] for T in lengths], "o-", color=colour, label=name)
    axes.axhline(0.5, color=GREY, linestyle="--")
    axes.set_xscale("log", base=2)
    axes.set_xticks(lengths[::2], [f"{T:,}" for T in lengths[::2]])
    axes.set(xlabel="tokens of the text", ylabel="share of attention in a layer", ylim=(0, 1))
    axes.legend(frameon=False)
    return figure, pictured.sentence(pictured.lines(axes))


def roofline(student) -> tuple[Figure, str]:
    """Words in a second, all users together: along the slope the card waits for its memory, on the flat roof it computes
    all the time. A dot marks where it turns. With a large cache for each user, the roof is never reached.
    """
    figure = Figure(figsize=(7.2, 4.4), layout="constrained")
    axes = figure.subplots()
    batches = [2**power for power in range(13)]
    turns = []
    for (name, cache), colour in zip(CACHES.items(), COLOURS):
        words = [B / seconds(student, B, cache) for B in batches]
        axes.plot(batches, words, color=colour, linewidth=2, label=name)
        turn = turning_point(student, cache)
        if turn is not None:
            turns.append(f"{pictured.number(turn)} ({name})")
            axes.plot([turn], [turn / seconds(student, turn, cache)], "o", color=colour, markersize=9)
    axes.axhline(PEAK / OPERATIONS, color=GREY, linestyle="--")
    axes.text(1, PEAK / OPERATIONS * 1.1, "all that the card can compute", fontsize=9)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=10)
    axes.set_xticks(batches[::2], [f"{B:,}" for B in batches[::2]])
    axes.set(xlabel="users in a batch", ylabel="words in a second, all together", ylim=(100, 50_000))
    axes.legend(frameon=False, loc="lower right", title="cache of each user")
    return figure, pictured.sentence(pictured.lines(axes), f"The dots are at {', '.join(turns) or 'no batch'}")


def seconds(student, B: int, cache: int) -> float:
    return student.decode_seconds(WEIGHTS, B * cache, B * OPERATIONS, BW, PEAK)


def turning_point(student, cache: int) -> int | None:
    """The student's turning point, or None where there is none."""
    try:
        return student.batch_where_it_turns(WEIGHTS, cache, OPERATIONS, BW, PEAK)
    except ValueError:
        return None


def error_by_bits(student) -> tuple[Figure, str]:
    """The typical error of a number by bits and group. Each bit less about doubles it; smaller groups are hit by fewer
    outliers.
    """
    figure = Figure(figsize=(7.2, 4.2), layout="constrained")
    axes = figure.subplots()
    x = with_outliers()
    bits = list(range(2, 9))
    for group, colour in zip((8, 32, 128, 512), COLOURS):
        errors = [typical_error(student, x, b, group) for b in bits]
        axes.plot(bits, errors, "o-", color=colour, label=f"groups of {group}: {16 / group:.3g} bits a number for scales")
    axes.set_yscale("log", base=10)
    axes.set(xlabel="bits of a number", ylabel="error (numbers have the size 1)")
    axes.legend(frameon=False)
    return figure, pictured.sentence(pictured.lines(axes))


def with_outliers() -> Tensor:
    """Numbers of the size 1, one in 200 of them thirty times as large: (8, 512)."""
    dice = torch.Generator().manual_seed(18)
    x = torch.randn(8, 512, generator=dice)
    return torch.where(torch.rand(8, 512, generator=dice) < 1 / 200, 30 * x, x)


def typical_error(student, x: Tensor, bits: int, group: int) -> float:
    """The root of the mean squared difference between numbers and what is left of them."""
    q, scale = student.quantise(x, bits, group)
    return float((student.dequantise(q, scale) - x).square().mean().sqrt())


def words_a_step(student) -> tuple[Figure, str]:
    """Left: words in one step of the target against the acceptance; lines are your formula, dots your steps. Right: how
    often each word was written at the first place, by a good and by a bad draft, beside what the target wants.
    """
    figure = Figure(figsize=(9, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    dice = torch.Generator().manual_seed(18)
    p = torch.tensor([0.4, 0.25, 0.15, 0.1, 0.06, 0.04])
    other = p.flip(0)
    draw_lines(left, student)
    for R, colour in ((1, GREEN), (4, BLUE), (8, ORANGE)):
        for mixed in (0.0, 0.3, 0.6, 1.0):
            q = (1 - mixed) * p + mixed * other
            steps = written(student, p, q, R, 150, dice)
            left.plot([float(torch.minimum(p, q).sum())], [sum(map(len, steps)) / len(steps)], "o", color=colour)
    draw_counts(right, student, p, other, dice)
    return figure, pictured.sentence(pictured.lines(left), pictured.lines(right))


def draw_lines(axes: Axes, student) -> None:
    """The student's formula for three numbers of guesses."""
    acceptance = [i / 50 for i in range(51)]
    for R, colour in ((1, GREEN), (4, BLUE), (8, ORANGE)):
        words = [student.expected_tokens(a, R) for a in acceptance]
        axes.plot(acceptance, words, color=colour, label=f"R = {R}")
    axes.set(xlabel="probability that a guess is accepted", ylabel="words in one step")
    axes.legend(frameon=False)


def draw_counts(axes: Axes, student, p: Tensor, other: Tensor, dice: torch.Generator) -> None:
    """The first words of many steps, counted, with a draft that is nearly the target and one that is not at all."""
    words = torch.arange(len(p))
    axes.bar(words, p, width=0.8, color="#DDDDDD", label="the target")
    for mixed, mark, name in ((0.2, "o", "written with a good draft"), (1.0, "x", "written with a bad draft")):
        q = (1 - mixed) * p + mixed * other
        first = torch.tensor([step[0] for step in written(student, p, q, 1, 1500, dice)])
        counts = torch.bincount(first.clamp(0, len(p) - 1), minlength=len(p))
        axes.plot(words, counts / counts.sum(), mark, color="black", markersize=8, fillstyle="none", label=name)
    axes.set(xlabel="word", ylabel="share", ylim=(0, None))
    axes.legend(frameon=False)


def written(student, p: Tensor, q: Tensor, R: int, count: int, dice: torch.Generator) -> list[list[int]]:
    """What the student's function writes in so many steps, with real dice."""
    steps = []
    for _ in range(count):
        guesses = torch.multinomial(q, R, replacement=True, generator=dice)
        uniforms = torch.rand(R + 1, generator=dice)
        steps.append(student.speculative_step(p.expand(R + 1, -1), q.expand(R, -1), guesses, uniforms))
    return steps


PICTURES = {
    "flops": [shares_by_length],
    "decode": [roofline],
    "quantise": [error_by_bits],
    "speculate": [words_a_step],
}
