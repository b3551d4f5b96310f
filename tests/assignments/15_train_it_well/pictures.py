"""Pictures of a training run, drawn from the student's own code."""

import math
import sysconfig
import textwrap
from pathlib import Path

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from autograder.checks import pictured

BLUE, ORANGE, GREEN, GREY = "#0072b2", "#d55e00", "#009e73", "#8c8c8c"
DARK = "#9a4300"  # ORANGE, dark enough to be read
FILES = ("argparse", "calendar", "configparser", "difflib", "inspect", "shutil", "textwrap", "zipfile")
GALLERY = (0, 30, 100, 500)


def library(student) -> Tensor:
    """The ids of a few files of Python's standard library."""
    folder = Path(sysconfig.get_path("stdlib"))
    text = "\n".join((folder / f"{name}.py").read_text("utf-8", errors="ignore") for name in FILES)
    alphabet = student.ALPHABET
    place = {character: i for i, character in enumerate(alphabet)}
    return torch.tensor([place[character] for character in text.expandtabs(4) if character in place])


def first_loss(student) -> tuple[Figure, str]:
    """Before its first step a model should know nothing: its loss is ln V, the dashed line, and all tokens are alike.

    PyTorch's defaults make it confidently wrong: on the right, one token takes nearly all of the probability.
    """
    data, V, T = library(student)[:20_000], len(student.ALPHABET), 32
    figure = Figure(figsize=(8.6, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(2, 3))
    with torch.random.fork_rng():
        torch.manual_seed(15)
        model = student.LanguageModel(V, 96, 4, 2, T)
        before = first_guesses(model, data, T)
        student.init_weights(model)
        after = first_guesses(model, data, T)
    for row, (loss, guess, color, name) in enumerate(
        ((*before, ORANGE, "PyTorch's defaults"), (*after, BLUE, "your init_weights"))
    ):
        left.bar([row], [loss], color=color, width=0.6)
        left.text(row, max(loss, math.log(V)) + 0.8, f"{loss:.2f}", ha="center", va="bottom")
        right.plot(range(1, V + 1), guess.sort(descending=True).values, color=color, lw=2, label=name)
    left.axhline(math.log(V), color="black", ls="--", lw=1.2)
    left.set_xticks([0, 1], ["PyTorch's\ndefaults", "your\ninit_weights"])
    left.set_ylim(0, 1.15 * max(before[0], after[0], math.log(V)))
    left.set_title(f"The first loss; dashed: ln {V} = {math.log(V):.3f}", loc="left", fontsize=10)
    right.axhline(1 / V, color="black", ls="--", lw=1.2)
    right.set(xscale="log", yscale="log", ylim=(1e-6, 2), xlabel="tokens, the likeliest first")
    right.set_title(f"The first guess of one token; dashed: 1/{V}", loc="left", fontsize=10)
    right.legend(frameon=False, loc="lower left")
    return figure, pictured.sentence(
        *(
            f"{name}: loss {pictured.number(loss)}, the likeliest token has {pictured.number(guess.max())}"
            for name, (loss, guess) in (("PyTorch's defaults", before), ("your init_weights", after))
        ),
    )


def first_guesses(model, data: Tensor, T: int) -> tuple[float, Tensor]:
    """The loss on pieces of a text, and the probabilities after one of them: (V,)."""
    pieces = data[: len(data) // (T + 1) * (T + 1)].reshape(-1, T + 1)[::10]
    with torch.no_grad():
        logits, loss = model(pieces[:, :-1], pieces[:, 1:])
    return float(loss), logits[0, -1].double().softmax(dim=-1)


def schedule(student) -> tuple[Figure, str]:
    """On the left a whole run: straight up, then half a cosine down. On the right the example of the text.

    Each dot should sit in its ring. A curve that is one step late misses them all.
    """
    figure = Figure(figsize=(8.6, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    steps = range(215)
    curves = ((20, 0.0, BLUE, "warmup=20"), (0, 0.2, GREEN, "warmup=0, floor=0.2"))
    for warmup, floor, color, name in curves:
        rates = [student.learning_rate(step, warmup, 200, 1.0, floor) for step in steps]
        left.plot(steps, rates, color=color, lw=2, label=name)
    left.axvspan(0, 19, color=BLUE, alpha=0.08, lw=0)
    left.axvline(199, color=GREY, ls=":", lw=1.2)
    left.set(xlabel="step", ylabel="learning rate / peak", ylim=(0, 1.08))
    left.set_title("A run of 200 steps, and a few beyond its end", loc="left", fontsize=10)
    left.legend(frameon=False)
    rings = [0.002, 0.004, 0.006, 0.008, 0.00683, 0.004, 0.00117, 0.0, 0.0]
    dots = [student.learning_rate(step, 4, 8, 0.008) for step in range(len(rings))]
    right.plot(range(len(dots)), dots, "o-", color=BLUE, ms=6, lw=1)
    right.plot(range(len(rings)), rings, "o", mfc="none", mec=ORANGE, mew=1.8, ms=13)
    right.set(xlabel="step", ylim=(-0.0006, 0.0092))
    right.set_title("warmup=4, total=8, peak=0.008", loc="left", fontsize=10)
    return figure, pictured.sentence(pictured.lines(left), f"The dots: {pictured.listed(dots)}")


def arrows_on_a_leash(student) -> tuple[Figure, str]:
    """Each arrow is a gradient of two numbers. The long ones are cut off at the circle and keep their direction.

    The short ones stay. An arrow that turns has been clipped number by number.
    """
    figure = Figure(figsize=(4.6, 4.6), layout="constrained")
    axes = figure.subplots()
    turn = torch.linspace(0, 2 * math.pi, 200)
    axes.plot(turn.cos(), turn.sin(), color=GREY, lw=1.2)
    lengths, turned = [], []
    for i in range(14):
        angle, length = 2 * math.pi * i / 14 + 0.1, (0.6, 1.6, 2.4, 0.8, 2.0)[i % 5]
        x, y = length * math.cos(angle), length * math.sin(angle)
        knobs = student.Knobs(torch.zeros(1), torch.zeros(1))
        knobs.set_gradients(torch.tensor([x]), torch.tensor([y]))
        student.clip_gradients(knobs.knobs, 1.0)
        after_x, after_y = (float(gradient) for gradient in knobs.gradients())
        lengths.append(math.hypot(after_x, after_y))
        turned.append(abs(math.remainder(math.atan2(after_y, after_x) - angle, 2 * math.pi)))
        axes.plot([0, x], [0, y], color=ORANGE, lw=1.2, ls=":")
        axes.plot([0, after_x], [0, after_y], color=BLUE, lw=2)
        axes.plot([after_x], [after_y], "o", color=BLUE, ms=5)
    axes.plot([], [], color=ORANGE, ls=":", label="before")
    axes.plot([], [], "o-", color=BLUE, label="after your clip_gradients(…, 1)")
    axes.set(xlim=(-2.6, 2.6), ylim=(-2.6, 2.6), aspect="equal", xlabel="first number", ylabel="second number")
    axes.legend(frameon=False, loc="upper left", fontsize=9)
    return figure, pictured.sentence(
        f"The arrows end {pictured.span(lengths)} from the middle",
        f"{sum(turn > 0.01 for turn in turned)} of {len(turned)} turn, by at most {pictured.number(max(turned))}",
    )


def two_ways_down_a_valley(student) -> tuple[Figure, str]:
    """The valley is a hundred times as steep across as along. Plain descent, near its largest safe rate, crawls along it.

    Your AdamW divides every gradient by its own usual size, so that both directions are alike to it.
    """
    steps, start = 40, (-4.0, 0.9)
    steepness = torch.tensor([1.0, 100.0])
    plain, here = [start], torch.tensor(start)
    for _ in range(steps):
        here = here - 0.018 * steepness * here
        plain.append(tuple(here.tolist()))
    knobs = student.Knobs(torch.tensor(start))
    optimiser = student.AdamW(knobs.knobs, lr=0.3, betas=(0.7, 0.99), weight_decay=0.0)
    path = [start]
    for _ in range(steps):
        knobs.set_gradients(steepness * knobs.values()[0])
        optimiser.step()
        path.append(tuple(knobs.values()[0].tolist()))
    figure = Figure(figsize=(8.2, 3.4), layout="constrained")
    axes = figure.subplots()
    x, y = torch.meshgrid(torch.linspace(-4.6, 1.6, 120), torch.linspace(-1.2, 1.2, 120), indexing="xy")
    height = (x.square() + 100 * y.square()) / 2
    axes.contour(x, y, height.sqrt(), levels=12, colors=GREY, linewidths=0.7, alpha=0.7)
    axes.plot(*zip(*plain), "o-", color=ORANGE, ms=3, lw=1, label=f"plain descent: {steps} steps")
    axes.plot(*zip(*path), "o-", color=BLUE, ms=3.5, lw=1.4, label=f"your AdamW: {steps} steps")
    axes.plot([0], [0], "*", color="black", ms=12)
    axes.set(xlim=(-4.6, 1.6), ylim=(-1.2, 1.2), xlabel="along the valley", ylabel="across")
    axes.legend(loc="lower left", fontsize=9)
    return figure, pictured.sentence(
        f"Your AdamW is at {pictured.listed(path[1])} after a step and at {pictured.listed(path[-1])} in the end",
        pictured.curve([across for _, across in path], "across, it"),
    )


def nucleus(student) -> tuple[Figure, str]:
    """The same p keeps few tokens where the model is sure and many where it is not. A fixed top_k could not do both."""
    figure = Figure(figsize=(8.6, 3.2), layout="constrained")
    for axes, (name, slope) in zip(
        figure.subplots(1, 3, sharey=True), (("sure", 1.8), ("in two minds", 0.6), ("unsure", 0.12))
    ):
        logits = -slope * torch.arange(20.0)
        draw_nucleus(axes, student, logits, name)
    figure.axes[0].set_ylabel("probability")
    return figure, pictured.sentence(*(axes.get_title() for axes in figure.axes))


def draw_nucleus(axes: Axes, student, logits: Tensor, name: str, p: float = 0.9) -> None:
    mixed = torch.randperm(len(logits), generator=torch.Generator().manual_seed(5))
    kept = student.top_p(logits[mixed], p)[mixed.argsort()]
    stays = kept.isfinite().tolist()
    probabilities = logits.softmax(dim=-1).tolist()
    colors = [BLUE if stay else "#d0d0d0" for stay in stays]
    axes.bar(range(1, len(stays) + 1), probabilities, color=colors)
    held = sum(probability for probability, stay in zip(probabilities, stays) if stay)
    axes.set_title(f"{name}: {sum(stays)} of {len(stays)} stay, {held:.1%}", fontsize=10)
    axes.set_xlabel(f"tokens, p = {p:g}")


def learning_curve_and_gallery(student) -> tuple[Figure, str]:
    """The curve falls from step to step: from uniform to unigram to bigram, and below that line only context leads.

    Drawn is your own run, if the notebook has one; otherwise a small model trained for this picture. The dots are
    the samples below.
    """
    run = getattr(student, "RUN", None)
    if not isinstance(run, dict) or not run.get("samples"):
        run = small_run(student)
    losses, samples = run["losses"], run["samples"]
    figure = Figure(figsize=(9, 6.4), layout="constrained")
    axes, below = figure.subplots(2, 1, height_ratios=(3, 2.6))
    draw_curve(axes, losses, run["data"], len(student.ALPHABET))
    smooth = means(losses)
    for step in samples:
        axes.plot([max(step, 1)], [smooth[max(step - 1, 0)]], "o", color=BLUE, ms=8)
    draw_gallery(below, samples)
    return figure, pictured.sentence(
        pictured.curve(smooth, "the loss"),
        f"After {max(samples)} steps it writes: {samples[max(samples)][:60]}",
    )


def draw_curve(axes: Axes, losses: list[float], data: Tensor, V: int) -> None:
    steps = range(1, len(losses) + 1)
    axes.plot(steps, losses, color=BLUE, alpha=0.25, lw=1)
    axes.plot(steps, means(losses), color=BLUE, lw=2)
    lines = {
        f"uniform: ln {V} = {math.log(V):.2f}": math.log(V),
        "unigram: how frequent is each character?": unigram_loss(data, V),
        "bigram: which character follows which?": bigram_loss(data, V),
    }
    for words, height in lines.items():
        axes.axhline(height, color=ORANGE, ls="--", lw=1.2)
        above = words.startswith("uniform")
        axes.text(1.05, height + (0.05 if above else -0.05), words, color=DARK, va="bottom" if above else "top")
    axes.text(1.05, bigram_loss(data, V) - 0.45, "below: context", color=DARK, va="top")
    axes.set(xscale="log", xlim=(1, len(losses) * 1.1), ylim=(0.9, max(5.0, losses[0] + 0.2)))
    axes.set(xlabel="step (the axis is logarithmic)", ylabel="loss")
    axes.set_title("The steps of a loss curve", loc="left", fontsize=11)


def draw_gallery(axes: Axes, samples: dict[int, str]) -> None:
    axes.axis("off")
    shown = list(samples)
    chosen = shown if len(shown) <= 4 else [shown[0], shown[1], shown[len(shown) // 2], shown[-1]]
    for row, step in enumerate(chosen):
        top = 1 - row / len(chosen)
        text = " ".join(samples[step].replace("\n", " ⏎ ").split())
        lines = textwrap.wrap(text, 88)[:2]
        axes.text(0, top, f"{step:,} steps", va="top", fontsize=10, color=DARK)
        axes.text(0.12, top, "\n".join(lines), va="top", fontsize=9, family="monospace", parse_math=False)


def small_run(student) -> dict:
    """A small model on a few files of the standard library, a few steps at a time."""
    data = library(student)
    with torch.random.fork_rng():
        torch.manual_seed(15)
        model = student.LanguageModel(len(student.ALPHABET), 64, 4, 2, 32, modern=True)
        student.init_weights(model)
    trainer = student.Trainer(model, data, GALLERY[-1], batch_size=32, peak=6e-3)
    losses: list[float] = []
    samples = {0: student.write(model, "def ", 150)}
    for step in GALLERY[1:]:
        while len(losses) < step:
            losses += trainer.run(10)
        samples[step] = student.write(model, "def ", 150)
    return {"losses": losses, "samples": samples, "data": data}


def means(losses: list[float]) -> list[float]:
    """Each loss with its neighbours; at the beginning, where the curve is steep, with few of them."""
    widths = [min(i // 4, 20) for i in range(len(losses))]
    pieces = [losses[max(0, i - width) : i + width + 1] for i, width in enumerate(widths)]
    return [sum(piece) / len(piece) for piece in pieces]


def unigram_loss(data: Tensor, V: int) -> float:
    """The loss of knowing only how frequent each character is."""
    shares = torch.bincount(data, minlength=V).double() / len(data)
    return -(shares * shares.clamp(min=1e-12).log()).sum().item()


def bigram_loss(data: Tensor, V: int) -> float:
    """The loss of knowing how often each character follows each other one."""
    pairs = torch.bincount(data[:-1] * V + data[1:], minlength=V * V).reshape(V, V).double()
    shares = pairs / pairs.sum(dim=1, keepdim=True).clamp(min=1)
    return -(pairs * shares.clamp(min=1e-12).log()).sum().item() / pairs.sum().item()


PICTURES = {
    "init": [first_loss],
    "schedule": [schedule],
    "clipping": [arrows_on_a_leash],
    "adamw": [two_ways_down_a_valley],
    "writing": [nucleus],
    "modern": [learning_curve_and_gallery],
}
