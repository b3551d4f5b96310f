"""Pictures of Spot the cheat, drawn from the student's own code."""

import random

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor, nn
from torch.nn import functional as F

from autograder.checks import pictured

WORDS = ["the", "cat", "dog", "sees", "hears", "a", "bird", "and", "."]
V, T, HEADS = len(WORDS), 8, 2
KINDS = ("honest", "mask late by one", "heads merged with view", "targets not shifted")
GREY, ORANGE, BLUE = "#B0B0B0", "#D55E00", "#0072B2"


class Counter(nn.Module):
    """A model that was counted instead of trained: it knows how often each word follows each other one.

    That is all that an honest one predicts. One that sees the next word predicts that word, and has learned the less
    the more often it saw it: with a late mask nothing, with a wrong merge half. One that was trained to repeat repeats.
    """

    def __init__(self, pairs: Tensor, kind: str) -> None:
        super().__init__()
        self.vocab_size, self.block_size, self.kind = V, T, kind
        self.pairs = (pairs / pairs.sum(dim=1, keepdim=True)).log()  # (V, V)

    def forward(self, ids: Tensor, targets: Tensor | None = None) -> tuple[Tensor, None]:
        length = ids.shape[1]
        if self.kind == "targets not shifted":
            return 5.0 * F.one_hot(ids, V), None
        learned = {"mask late by one": 0.0, "heads merged with view": 0.5}.get(self.kind, 1.0)
        logits = learned * self.pairs[ids]  # (B, T, V)
        table = visible(self.kind, length).triu(1).float()  # (T, T)
        seen = table @ F.one_hot(ids, V).float()  # (B, T, V), words from the future
        near = F.pad(table.diagonal(1), (0, 1))[:, None]  # (T, 1), sees the very next
        next_word = F.pad(F.one_hot(ids[:, 1:], V), (0, 0, 0, 1))  # (B, T, V)
        return logits + 0.1 * seen + 6.0 * near * next_word, None


def visible(kind: str, length: int) -> Tensor:
    """Which words each output can see in a model of that kind: (T, T)."""
    past = torch.ones(length, length, dtype=torch.bool).tril()
    if kind == "mask late by one":
        return torch.ones_like(past).tril(1)
    if kind == "heads merged with view":
        last = torch.arange(length * HEADS).remainder(length).reshape(length, HEADS).amax(dim=1)
        return (torch.arange(length) <= last[:, None]) | torch.eye(length, dtype=torch.bool)
    return past


def throw_ids(sentences: int, seed: int) -> Tensor:
    """A text such as *the cat sees a bird .*, as ids: (L,)."""
    dice, words = random.Random(seed), []
    for _ in range(sentences):
        who, whom = (f"{dice.choice(('the', 'a'))} {dice.choice(('cat', 'dog', 'bird'))}" for _ in range(2))
        words += f"{who} {dice.choice(('sees', 'hears'))} {whom} {dice.choice(('.', '.', 'and'))}".split()
    return torch.tensor([WORDS.index(word) for word in words])


def four_models() -> dict[str, Counter]:
    data = throw_ids(400, seed=1)
    pairs = 0.05 + torch.bincount(data[:-1] * V + data[1:], minlength=V * V).reshape(V, V).float()
    return {kind: Counter(pairs, kind) for kind in KINDS}


def reported_loss(model: Counter, pieces: Tensor) -> float:
    """What the model's author reports: all places at once, and with their own targets."""
    ids, right = pieces[:, :-1], pieces[:, 1:]
    logits, _ = model(ids)
    targets = ids if model.kind == "targets not shifted" else right
    return F.cross_entropy(logits.float().transpose(1, 2), targets).item()


def reported_and_honest(student) -> tuple[Figure, str]:
    """The smaller the reported loss, the larger the honest one: the worst bug looks best. Only for the honest model are
    both bars the same."""
    pieces = throw_ids(60, seed=2).unfold(0, T + 1, T + 1)[:24]  # (24, T + 1)
    rows = []
    for kind, model in four_models().items():
        losses = [float(student.honest_loss(model, piece, list(range(1, T + 1)))) for piece in pieces]
        rows.append((reported_loss(model, pieces), sum(losses) / len(losses), kind))
    rows.sort()
    figure = Figure(figsize=(7.2, 4), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    places = range(len(rows))
    draw_bars(left, [row[0] for row in rows], GREY, "", "reported")
    draw_bars(right, [row[1] for row in rows], ORANGE, "//", "honest, measured by your code")
    left.set_yticks(places, [row[2] for row in rows])
    left.invert_yaxis()
    return figure, pictured.sentence(
        f"Reported: {pictured.listed([row[0] for row in rows], [row[2] for row in rows])}",
        f"Honest, by your code: {pictured.listed([row[1] for row in rows], [row[2] for row in rows])}",
    )


def draw_bars(axes: Axes, losses: list[float], color: str, hatch: str, title: str) -> None:
    axes.barh(range(len(losses)), losses, color=color, hatch=hatch, edgecolor="white")
    for place, loss in enumerate(losses):
        axes.text(loss + 0.02 * max(losses), place, f"{loss:.2f}", va="center")
    axes.set_xlim(0, 1.2 * max(losses))
    axes.set_xlabel("loss")
    axes.set_title(title, loc="left", fontsize=11)


def four_leak_maps(student) -> tuple[Figure, str]:
    """Two maps stay empty. A late mask lights up one even diagonal, heads merged with view leak in leaps. A cell with a
    cross is a mistake of your map's: a leak that is not there, or one that it does not see."""
    seen = []
    figure = Figure(figsize=(9, 3), layout="constrained")
    for axes, (kind, model) in zip(figure.subplots(1, 4, sharey=True), four_models().items()):
        found = torch.as_tensor(student.leaks(model, T, V)).bool()
        draw_map(axes, found, visible(kind, T).triu(1))
        crosses = len(axes.get_lines()[0].get_xdata())
        seen.append(f"{kind}: {int(found.sum())} of {found.numel()} cells are lit, {crosses} crossed out")
        axes.set_title(kind, loc="left", fontsize=10)
    figure.axes[0].set_ylabel("output after word …")
    return figure, pictured.sentence(*seen)


def draw_map(axes: Axes, found: Tensor, truth: Tensor) -> None:
    """The leaks that were found, in orange; the allowed part in grey; what is wrong, crossed out."""
    size = len(truth)
    allowed = torch.ones(size, size).tril()
    film = torch.tensor([[1.0, 1.0, 1.0], [0.88, 0.88, 0.88], [0.84, 0.37, 0.0]])
    axes.imshow(film[torch.where(found, 2, allowed.long())])
    wrong = (found != truth).nonzero().T
    axes.plot(wrong[1], wrong[0], "x", color="black", ms=8)
    axes.set_xticks(range(size))
    axes.set_yticks(range(size))
    axes.set_xlabel("… depends on word")


def one_silent_at_a_time(student) -> tuple[Figure, str]:
    """How large a tolerance it takes until your code calls a head redundant. Each bar should end at its ring: there the
    head was set up to contribute, relative to the whole."""
    layer, x, shares = choir(student, torch.tensor([0.5, 0.12, 0.3, 0.04, 0.9, 0.2]))
    tolerances = torch.linspace(0, 1, 101).tolist()
    lists = [student.redundant_heads(layer, x, tolerance) for tolerance in tolerances]
    figure = Figure(figsize=(6, 3.6), layout="constrained")
    axes = figure.subplots()
    for head, share in enumerate(shares):
        needed = [tolerance for tolerance, found in zip(tolerances, lists) if head in found]
        axes.barh(head, min(needed, default=1.0), color=BLUE if needed else GREY, alpha=0.8)
        axes.plot(share, head, "o", ms=10, mfc="none", mec=ORANGE, mew=2)
    axes.plot([], [], "o", ms=10, mfc="none", mec=ORANGE, mew=2, lw=0, label="as it was set up")
    axes.legend(frameon=False)
    axes.set_yticks(range(len(shares)), [f"head {head}" for head in range(len(shares))])
    axes.set_xlim(0, 1.02)
    axes.set_xlabel("smallest tolerance with which it is redundant")
    axes.set_title("How much is each head missed?", loc="left", fontsize=11)
    return figure, pictured.sentence(
        f"The bars end: {pictured.listed([patch.get_width() for patch in axes.patches], 'head')}",
    )


def choir(student, loudness: Tensor) -> tuple[nn.MultiheadAttention, Tensor, list[float]]:
    """A layer whose heads all have the same output, each scaled by its loudness and written to columns of its own."""
    torch.manual_seed(3)
    H, D = len(loudness), 4
    layer = student.attention_layer(H * D, H)
    with torch.no_grad():
        layer.in_proj_bias.zero_()
        layer.out_proj.bias.zero_()
        layer.in_proj_weight.copy_(
            torch.randn(3, 1, D, H * D).expand(3, H, D, H * D).reshape(3 * H * D, H * D)
        )
        layer.out_proj.weight.copy_(torch.diag(loudness.repeat_interleave(D))[torch.randperm(H * D)])
    return layer, torch.randn(3, 7, H * D), (loudness / loudness.norm()).tolist()


def tests_and_luck(student) -> tuple[Figure, str]:
    """Left, the text with a copied passage stays above 0 when n grows. Right, the interval shrinks, and leaves 0 behind.

    With few questions, the better model may even look worse.
    """
    dice = torch.Generator().manual_seed(6)
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    train = torch.randint(20, (3000,), generator=dice).tolist()
    new = torch.randint(20, (400,), generator=dice).tolist()
    copied = new[:340] + train[1000:1060]
    for test, color, style, name in ((copied, ORANGE, "o-", "with a copied passage"), (new, BLUE, "s--", "new")):
        left.plot(range(1, 11), [student.overlap(train, test, n) for n in range(1, 11)], style, color=color, label=name)
    left.set(xlabel="n", ylabel="overlap with the training text", ylim=(-0.03, 1.03))
    left.legend(frameon=False)
    counts = [50, 100, 200, 400, 800, 1600, 3200, 6400]
    luck = torch.rand(counts[-1], generator=dice)
    right_a, right_b = luck < 0.8, (luck < 0.75) | (luck > 0.98)  # 80 and 77 %
    seen = []
    for place, count in enumerate(counts):
        rows = torch.randint(count, (400, count), generator=dice)
        middle, low, high = student.difference(right_a[:count], right_b[:count], rows)
        right.plot([place, place], [100 * low, 100 * high], color=BLUE, lw=4, alpha=0.6)
        right.plot(place, 100 * middle, "o", color=ORANGE)
        found = (pictured.number(100 * value) for value in (middle, low, high))
        seen.append("{} questions: a is better by {} points, between {} and {}".format(count, *found))
    right.axhline(0, color=GREY, lw=1)
    right.set_xticks(range(len(counts)), [str(count) for count in counts])
    right.set(xlabel="questions", ylabel="a better than b, in points")
    return figure, pictured.sentence(pictured.lines(left), *seen[::7])


PICTURES = {
    "honest": [reported_and_honest],
    "leaks": [four_leak_maps],
    "heads": [one_silent_at_a_time],
    "evaluation": [tests_and_luck],
}
