"""Pictures of preferences, drawn from the student's own code."""

import math

import torch
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from torch import Tensor

from autograder.checks import pictured

BLUE, ORANGE, GREY, INK = "#0072B2", "#D55E00", "#8C8C8C", "#333333"
CARD = ("my", "soup", "was", "very", "cold", "/", "sorry", "the", "next", "soup", "is", "on", "us", "[END]")
WHERE = 6  # the answer begins here


# ---------------------------------------------------------------- part 1


def who_is_asked(student) -> tuple[Figure, str]:
    """How much the answer's log-probability depends on each position's logits, by gradient; framed: the answer.

    The dark fields begin one place before the answer and end one place before its end.
    """
    T, V = len(CARD), 9
    ids = torch.arange(T)[None] % V
    answer = (torch.arange(T) >= WHERE)[None]
    dice = torch.Generator().manual_seed(16)
    logits = torch.randn(1, T, V, generator=dice).requires_grad_()
    found = student.answer_log_probs(logits, ids, answer)
    (gradient,) = torch.autograd.grad(found.sum(), logits)
    weight = gradient[0].norm(dim=-1)  # (T,)
    figure = Figure(figsize=(9, 2.3), layout="constrained")
    axes = figure.subplots()
    axes.imshow(weight[None], cmap="Blues", vmin=0, vmax=1.5, aspect="auto", extent=(-0.5, T - 0.5, 0, 1))
    for t, word in enumerate(CARD):
        belongs = t >= WHERE
        axes.text(t, 1.35, word, ha="center", va="center", fontsize=9.5, color=ORANGE if belongs else INK)
        if belongs:
            frame = {"fill": False, "ec": ORANGE, "lw": 1.4, "clip_on": False}
            axes.add_patch(Rectangle((t - 0.47, 1.08), 0.94, 0.55, **frame))
    axes.set(xlim=(-0.5, T - 0.5), ylim=(0, 1.75), yticks=[], xlabel="position of the logits")
    axes.set_xticks(range(T))
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    return figure, pictured.sentence(
        f"Lit are the positions {pictured.places(weight)}, the most {pictured.largest(weight, 'position')}",
    )


# ---------------------------------------------------------------- part 2


def loss_and_slope(student) -> tuple[Figure, str]:
    """The loss of a comparison, and its slope: flat where the judge is right by far, and -1 where it is wrong by far."""
    gaps = torch.linspace(-8, 8, 161, dtype=torch.float64)
    losses, slopes = [], []
    for gap in gaps:
        chosen = gap[None].clone().requires_grad_()
        loss = student.bradley_terry_loss(chosen, torch.zeros(1, dtype=torch.float64))
        (slope,) = torch.autograd.grad(loss, chosen)
        losses.append(loss.item())
        slopes.append(slope.item())
    figure = Figure(figsize=(6.4, 3.8), layout="constrained")
    axes = figure.subplots()
    axes.axhline(0, color=GREY, lw=0.8)
    axes.axvline(0, color=GREY, lw=0.8)
    axes.plot(gaps, losses, color=BLUE, lw=2, label="loss")
    axes.plot(gaps, slopes, "--", color=ORANGE, lw=2, label="slope")
    axes.plot([0], [math.log(2)], "o", color=BLUE, ms=6)
    axes.annotate("ln 2", (0, math.log(2)), (0.4, 1.2), fontsize=10)
    axes.set(xlabel="score of the chosen answer less that of the rejected one")
    axes.legend(frameon=False)
    return figure, pictured.sentence(pictured.lines(axes))


# ---------------------------------------------------------------- part 3


def margins_before_and_after(student) -> tuple[Figure, str]:
    """The margins of 200 pairs before and after sixty steps with your loss; in twenty, the wrong answer was chosen.

    Before, all are 0. Afterwards the twenty lie on the left: they are outvoted.
    """
    dice = torch.Generator().manual_seed(3)
    count, words, turned = 200, 40, 20
    taste = torch.randn(words, generator=dice)
    first, second = (torch.rand(count, words, generator=dice) < 0.15 for _ in range(2))
    better = first.float() @ taste > second.float() @ taste
    chosen = torch.where(better[:, None], first, second).float()  # (count, words)
    rejected = torch.where(better[:, None], second, first).float()
    chosen[:turned], rejected[:turned] = rejected[:turned].clone(), chosen[:turned].clone()
    reference = 0.5 * torch.randn(words, generator=dice) - 2
    policy = reference.clone().requires_grad_()
    optimizer = torch.optim.Adam([policy], lr=0.1)
    seen = []
    for _ in range(61):
        loss, margins = student.dpo_loss(
            chosen @ policy, rejected @ policy, chosen @ reference, rejected @ reference, beta=0.3
        )
        seen.append(margins.detach())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    figure = Figure(figsize=(6.8, 3.8), layout="constrained")
    axes = figure.subplots()
    reach = max(1.0, seen[-1].abs().max().item() * 1.05)
    bins = torch.linspace(-reach, reach, 41).tolist()
    axes.axvline(0, color=GREY, lw=4, alpha=0.6, label="before: all 200 at 0" if not seen[0].any() else "0")
    if seen[0].any():
        axes.hist(seen[0], bins=bins, color=GREY, alpha=0.6, label="before")
    axes.hist(seen[-1][turned:], bins=bins, color=BLUE, label="after, 180 pairs")
    axes.hist(seen[-1][:turned], bins=bins, color=ORANGE, alpha=0.85, hatch="//", ec="white", label="after, the 20")
    axes.set(xlabel="margin", ylabel="pairs")
    axes.legend(frameon=False, loc="upper left", fontsize=9)
    return figure, pictured.sentence(
        f"Before, the margins are {pictured.span(seen[0])}",
        f"Afterwards {pictured.span(seen[-1][turned:])}, and those of the 20 {pictured.span(seen[-1][:turned])}",
    )


# ---------------------------------------------------------------- part 4


def groups_made_comparable(student) -> tuple[Figure, str]:
    """Six prompts, eight answers each: as the judge sees them, and as advantages. All groups come to one height.

    The last group is one of equals.
    """
    dice = torch.Generator().manual_seed(5)
    levels = torch.tensor([2.0, 9.0, 5.0, -3.0, 7.0, 4.0])[:, None]
    spreads = torch.tensor([2.0, 0.3, 1.0, 0.6, 3.0, 0.0])[:, None]
    rewards = levels + spreads * torch.randn(6, 8, generator=dice)
    figure = Figure(figsize=(8.6, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    advantages = student.group_advantages(rewards.clone())
    for axes, table, title in (
        (left, rewards, "Rewards"),
        (right, advantages, "Your advantages"),
    ):
        for g, row in enumerate(table):
            axes.plot([g] * len(row), row.detach(), "o", color=BLUE, ms=7, alpha=0.5, mew=0)
            axes.plot([g - 0.3, g + 0.3], [row.mean().item()] * 2, color=ORANGE, lw=2)
        axes.axhline(0, color=GREY, lw=0.8, zorder=0)
        axes.set_title(title + "; the bar is the mean", loc="left", fontsize=11)
        axes.set(xlabel="prompt", xticks=range(6))
    return figure, pictured.sentence(
        f"Your advantages are, by prompt: {'; '.join(pictured.span(row) for row in advantages)}",
    )


# ---------------------------------------------------------------- part 5


def flat_on_one_side(student) -> tuple[Figure, str]:
    """The objective against the ratio, for a good and for a bad answer; thin: without the cut.

    It is flat on the right for A > 0, and on the left for A < 0.
    """
    ratios = torch.linspace(0.4, 1.6, 121, dtype=torch.float64)
    figure = Figure(figsize=(8.6, 3.4), layout="constrained")
    for axes, advantage, color in zip(figure.subplots(1, 2), (1.0, -1.0), (BLUE, ORANGE)):
        A = torch.tensor([advantage], dtype=torch.float64)
        old = torch.tensor([-3.0], dtype=torch.float64)
        objective = [-student.clipped_loss(old + ratio.log(), old, A).item() for ratio in ratios]
        axes.plot(ratios, advantage * ratios, color=GREY, lw=1, ls=":")
        axes.plot(ratios, objective, color=color, lw=2.5)
        axes.plot([1], [advantage], "o", color=INK, ms=5)
        for edge in (0.8, 1.2):
            axes.axvline(edge, color=GREY, lw=0.8, ls="--")
        axes.set_title(f"A = {'1' if advantage > 0 else '−1'}", loc="left", fontsize=11)
        axes.set(xlabel="ratio", ylabel="objective")
    return figure, pictured.sentence(
        *(
            pictured.curve(axes.get_lines()[1].get_ydata(), f"for {axes.get_title(loc='left')} it", ratios)
            for axes in figure.axes
        ),
    )


# ---------------------------------------------------------------- part 6


REWARDS = (0.0, 0.5, 1.0, 1.5, 2.0, 8.0)
SHARES = (0.3, 0.25, 0.2, 0.15, 0.097, 0.003)
LEASHES = (0.0, 0.3, 1.0, 1.5, 2.0, 3.0, 10.0)


def trained_on_a_leash(student, leash: float, steps: int = 250, count: int = 128) -> Tensor:
    """The probabilities of the six answers after a training with the student's losses: (6,)."""
    reference = torch.tensor(SHARES).log()
    rewards = torch.tensor(REWARDS)
    policy = reference.clone().requires_grad_()
    optimizer = torch.optim.Adam([policy], lr=0.05)
    dice = torch.Generator().manual_seed(8)
    for _ in range(steps):
        old = policy.detach().log_softmax(dim=0)
        tried = torch.multinomial(old.exp(), count, replacement=True, generator=dice)  # (N,)
        advantages = (rewards[tried] - rewards[tried].mean()) / 2
        ours = policy.log_softmax(dim=0)[tried]
        loss = student.clipped_loss(ours, old[tried], advantages)
        if leash:
            loss = loss + leash * student.kl_penalty(ours, reference[tried])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return policy.detach().softmax(dim=0)


def reward_against_divergence(student) -> tuple[Figure, str]:
    """Mean reward against the divergence from the reference; each dot is a training with a leash of another length.

    The looser the leash, the more reward. On the right, what the policies without a leash and with one write.
    """
    found = [trained_on_a_leash(student, leash) for leash in LEASHES]
    shares = torch.tensor(SHARES)
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    gained = [(p * torch.tensor(REWARDS)).sum().item() for p in found]
    distances = [(p * (p.clamp(min=1e-12) / shares).log()).sum().item() for p in found]
    left.plot(distances, gained, "-", color=GREY, lw=1, zorder=0)
    for leash, x, y in zip(LEASHES, distances, gained):
        color = BLUE if leash else ORANGE
        left.plot([x], [y], "o" if leash else "X", color=color, ms=8)
        left.annotate(f"{leash:g}", (x, y), (6, -11), textcoords="offset points", fontsize=9, color=INK)
    left.set(xlabel="divergence from the reference", ylabel="mean reward")
    left.set_title("Beside each dot: the weight of the penalty", loc="left", fontsize=11)
    left.margins(0.12)
    width = 0.27
    picked = LEASHES.index(2.0)
    for shift, (p, color, hatch, label) in enumerate(
        ((shares, GREY, "", "reference"), (found[picked], BLUE, "", "2"), (found[0], ORANGE, "//", "0, no leash"))
    ):
        places = [a + (shift - 1) * width for a in range(6)]
        right.bar(places, p, width, color=color, hatch=hatch, ec="white", label=label)
    right.set_xticks(range(6), [f"{r:g}" for r in REWARDS])
    right.set(xlabel="answer, by its reward", ylabel="probability")
    right.legend(frameon=False, fontsize=9, loc="upper left")
    return figure, pictured.sentence(
        f"The reward by weight: {pictured.listed(gained, [f'{leash:g}' for leash in LEASHES])}",
        f"The divergence: {pictured.listed(distances, [f'{leash:g}' for leash in LEASHES])}",
    )


# ---------------------------------------------------------------- part 6


def who_still_learns(student) -> tuple[Figure, str]:
    """Left, every bar beyond nine tokens is gone: the whole answer is cut. Right, they get shorter, and none is cut."""
    gain, lengths = 0.02, range(1, 25)
    figure = Figure(figsize=(8.6, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    for axes, name in ((left, "one ratio for the answer"), (right, "a ratio for each token")):
        slopes = []
        for length in lengths:
            tokens = torch.full((1, length), gain, dtype=torch.float64, requires_grad=True)
            old, A = torch.zeros(1, length, dtype=torch.float64), torch.ones(1, dtype=torch.float64)
            if axes is left:
                loss = student.clipped_loss(tokens.sum(dim=1), old.sum(dim=1), A)
            else:
                loss = student.token_clipped_loss(tokens, old, A, torch.ones(1, length, dtype=torch.bool))
            loss.backward()
            slopes.append(-tokens.grad[0, 0].item())
        axes.bar(lengths, slopes, color=BLUE if axes is left else ORANGE)
        axes.set_title(name, loc="left", fontsize=11)
        axes.set(xlabel="tokens of the answer, each 2 % likelier", ylabel="how hard each is pulled on", ylim=(0, 1.4))
    return figure, pictured.sentence(
        *(
            pictured.curve(pictured.bars(axes), f"with {axes.get_title(loc='left')}, the pull", lengths)
            for axes in figure.axes
        ),
    )


PICTURES = {
    "answers": [who_is_asked],
    "comparisons": [loss_and_slope],
    "dpo": [margins_before_and_after],
    "advantages": [groups_made_comparable],
    "clipping": [flat_on_one_side],
    "tokens": [who_still_learns],
    "kl": [reward_against_divergence],
}
