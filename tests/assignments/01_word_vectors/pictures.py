"""Pictures of word vectors, drawn from the student's own functions."""

import math

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from autograder.checks import pictured

BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "0.55"

# Eight people: what is said about each of them, and in which words.
PEOPLE = {
    "king": "his crown throne castle old he",
    "queen": "her crown throne castle old she",
    "prince": "his crown throne castle young he",
    "princess": "her crown throne castle young she",
    "man": "his hat bench cottage old he",
    "woman": "her hat bench cottage old she",
    "boy": "his hat bench cottage young he",
    "girl": "her hat bench cottage young she",
}
STEPS = ["king", "man", "woman", "queen"]
EDGES = [
    *[("king", "man"), ("queen", "woman"), ("prince", "boy"), ("princess", "girl")],  # royal or not
    *[("king", "prince"), ("queen", "princess"), ("man", "boy"), ("woman", "girl")],  # old or young
    *[("king", "queen"), ("prince", "princess"), ("man", "woman"), ("boy", "girl")],  # male or female
]


def lookup_as_product(student) -> tuple[Figure, str]:
    """A single 1 in the one-hot row selects exactly one row of the table."""
    words = ["cat", "dog", "mat", "sat", "the"]
    word = 1
    table = torch.randn(len(words), 4, generator=torch.Generator().manual_seed(8))  # (V, C)
    lamp = student.one_hot(torch.tensor([word]), len(words)).detach()  # (1, V)
    fetched = student.embed(torch.tensor([word]), table).detach()  # (1, C)
    figure = Figure(figsize=(9, 3), layout="constrained")
    left, middle, right = figure.subplots(1, 3, width_ratios=[len(words), 4, 4])
    draw_numbers(left, lamp, f"one-hot row of “{words[word]}”", "Blues", 0)
    left.set_xticks(range(len(words)), words)
    draw_numbers(middle, table, "× table", "PuOr", 2)
    middle.set_yticks(range(len(words)), words)
    frame_row(middle, word, table.shape[1])
    draw_numbers(right, fetched, "= vector of the word", "PuOr", 2)
    frame_row(right, 0, fetched.shape[-1])
    return figure, pictured.sentence(
        f"In the one-hot row, {pictured.cells(lamp, 'row', words)}",
        f"The vector of the word: {pictured.listed(fetched)}",
    )


def draw_numbers(axes: Axes, values: Tensor, title: str, cmap: str, digits: int) -> None:
    low = 0.0 if digits == 0 else -2.5
    axes.imshow(values, cmap=cmap, vmin=low, vmax=1.0 if digits == 0 else 2.5, interpolation="nearest")
    for row, column in torch.cartesian_prod(*(torch.arange(n) for n in values.shape)).tolist():
        value = float(values[row, column])
        dark = value > 0.5 if digits == 0 else abs(value) > 1.6
        text = f"{value:.{digits}f}"
        axes.text(column, row, text, ha="center", va="center", fontsize=8, color="white" if dark else "black")
    axes.set(xticks=[], yticks=[])
    axes.set_title(title, loc="left", fontsize=10)


def frame_row(axes: Axes, row: int, width: int) -> None:
    x, y = (
        [-0.5, width - 0.5, width - 0.5, -0.5, -0.5],
        [row - 0.5, row - 0.5, row + 0.5, row + 0.5, row - 0.5],
    )
    axes.plot(x, y, color=ORANGE, linewidth=3, clip_on=False)


def who_is_whose_context(student) -> tuple[Figure, str]:
    """A band on both sides of an empty diagonal, as wide as the window, and narrower only at the ends."""
    words = ["she", "poured", "the", "tea", "into", "her", "cup"]
    figure = Figure(figsize=(9, 4.2), layout="constrained")
    for axes, window in zip(figure.subplots(1, 3, sharey=True), (1, 2, 4), strict=True):
        table = torch.zeros(len(words), len(words))  # (T, T)
        for centre, context in student.skip_gram_pairs(list(range(len(words))), window):
            table[centre, context] += 1
        axes.imshow(table, cmap="Blues", vmin=0, vmax=1.4, interpolation="nearest")
        axes.set_xticks(range(len(words)), words, rotation=60)
        axes.set_yticks(range(len(words)), words)
        axes.set_title(f"window={window}: {int(table.sum())} pairs", loc="left", fontsize=10)
        axes.set_xlabel("context")
    figure.axes[0].set_ylabel("centre")
    return figure, pictured.sentence(
        *(
            f"{axes.get_title(loc='left')}, {pictured.image(axes, words, words, diagonal=True)}"
            for axes in figure.axes
        ),
    )


def loss_of_the_game(student) -> tuple[Figure, str]:
    """The loss begins near ln V, falls quickly, and comes to rest far above 0."""
    words, _, _, losses = play(student)
    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    axes = figure.subplots()
    axes.plot(losses, color=BLUE, linewidth=2, label="your loss")
    axes.axhline(
        math.log(len(words)),
        color=ORANGE,
        ls="--",
        label=f"ln V = ln {len(words)}: a model that knows nothing",
    )
    axes.set(xlabel="step", ylabel="loss", ylim=(0, None))
    axes.set_title("Skip-gram on 40 short sentences", loc="left", fontsize=10)
    axes.legend(frameon=False, loc="lower left")
    return figure, pictured.sentence(pictured.curve(losses, "your loss"))


def words_before_and_after(student) -> tuple[Figure, str]:
    """After the game, the eight people are the corners of a box, and king - man + woman ends close to queen."""
    words, before, after, _ = play(student)
    seen = []
    figure = Figure(figsize=(9, 4.4), layout="constrained")
    for axes, (moment, table) in zip(
        figure.subplots(1, 2), {"before": before, "after": after}.items(), strict=True
    ):
        number = {word: i for i, word in enumerate(words)}
        answer = words[student.analogy(number["man"], number["king"], number["woman"], table)]
        goal, queen = draw_people(axes, number, table)
        seen.append((moment, answer, f"the star is {pictured.number(math.dist(goal, queen))} from queen"))
        title = f"{moment.capitalize()} the game: king − man + woman = {answer}"
        axes.set_title(title, loc="left", fontsize=10)
    return figure, pictured.sentence(
        *(f"{moment} the game, king − man + woman is {answer}; {where}" for moment, answer, where in seen),
    )


def draw_people(axes: Axes, number: dict, table: Tensor) -> tuple[list[float], list[float]]:
    """The eight people, a line between any two that differ in one respect, and the step of the analogy.

    Of the three directions in which they differ most, one is drawn to the right, one upwards, and one diagonally,
    as in a drawing of a cube. What is parallel stays parallel. Returns where the star of the analogy and the queen are.
    """
    people = table[[number[name] for name in PEOPLE]]  # (8, C)
    middle = people.mean(dim=0)
    _, _, directions = torch.linalg.svd(people - middle)
    paper = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.45, 0.35]])  # (3, 2)
    flat = (people - middle) @ directions[:3].T @ paper  # (8, 2)
    place = dict(zip(PEOPLE, flat.tolist(), strict=True))
    for one, other in EDGES:
        axes.plot(*zip(place[one], place[other], strict=True), color="0.8", linewidth=1, zorder=0)
    for name, (x, y) in place.items():
        asked = name in STEPS
        axes.plot(x, y, "o", color=BLUE if asked else GREY, markersize=7 if asked else 4)
        weight = "bold" if asked else "normal"
        axes.annotate(name, (x, y), xytext=(6, 5), textcoords="offset points", fontsize=9, weight=weight)
    goal = draw_walk(axes, *(torch.tensor(place[name]) for name in STEPS[:3]))
    axes.margins(0.2)
    axes.set(xlabel="first direction (the third is drawn diagonally)", ylabel="second direction")
    return goal, place["queen"]


def draw_walk(axes: Axes, king: Tensor, man: Tensor, woman: Tensor) -> list[float]:
    """From man to woman, and the same step from king; returns where it ends."""
    goal = king - man + woman
    for start, end, style in ((man, woman, "--"), (king, goal, "-")):
        arrow = {"arrowstyle": "->", "color": ORANGE, "lw": 2, "ls": style}
        axes.annotate("", xy=end.tolist(), xytext=start.tolist(), arrowprops=arrow)
    axes.plot(*goal.tolist(), "*", color=ORANGE, markersize=13, zorder=3)
    return goal.tolist()


def play(student, width: int = 16, steps: int = 80) -> tuple[list, Tensor, Tensor, list]:
    """The guessing game with the student's pairs and loss: words, vectors before and after, losses."""
    sentences = [sentence for name in PEOPLE for sentence in sentences_about(name)]
    words = list(dict.fromkeys(word for sentence in sentences for word in sentence))
    number = {word: i for i, word in enumerate(words)}
    texts = [[number[word] for word in sentence] for sentence in sentences]
    pairs = torch.tensor([list(pair) for ids in texts for pair in student.skip_gram_pairs(ids, 4)])  # (P, 2)
    dice = torch.Generator().manual_seed(1)
    centres, contexts = (0.3 * torch.randn(len(words), width, generator=dice) for _ in range(2))  # (V, C)
    before, losses = centres.clone(), []
    optimiser = torch.optim.Adam([centres.requires_grad_(), contexts.requires_grad_()], lr=0.05)
    for _ in range(steps):
        loss = student.skip_gram_loss(centres, contexts, pairs)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    return words, before, centres.detach(), losses


def sentences_about(name: str) -> list[list[str]]:
    his, crown, throne, castle, old, he = PEOPLE[name].split()
    return [
        ["the", name, "wears", his, crown],
        ["the", name, "sits", "on", his, throne],
        ["the", name, "lives", "in", his, castle],
        ["the", old, name, "sings", "and", he, "dances"],
        [he, "is", "the", old, name],
    ]


PICTURES = {
    "lookup": [lookup_as_product],
    "examples": [who_is_whose_context],
    "loss": [loss_of_the_game],
    "neighbours": [words_before_and_after],
}
