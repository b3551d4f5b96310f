"""Pictures of positions, drawn from the student's own code."""

import math

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor, nn

from autograder.checks import pictured

SENTENCE = ["dog", "bites", "man", "and", "runs"]
SHUFFLED = [2, 1, 0, 4, 3]
CLOCKS = {0: 1.0, 4: 0.316228, 8: 0.1, 12: 0.0316228}  # the first column of a clock: radians a step


def heatmap_of_the_table(student) -> tuple[Figure, str]:
    """On the left the columns flicker; to the right they turn slower and slower, until they hardly move."""
    table = student.positional_encoding(60, 64)  # (60, 64)
    figure = Figure(figsize=(6.4, 5), layout="constrained")
    axes = figure.subplots()
    values = table.detach()
    image = axes.imshow(values, cmap="cividis", vmin=-1, vmax=1, aspect="auto", interpolation="nearest")
    axes.set(xlabel="column", ylabel="position", xticks=range(0, 64, 8))
    axes.set_title("60 positions, 64 columns", loc="left")
    figure.colorbar(image, ax=axes, label="value", ticks=[-1, 0, 1])
    return figure, pictured.sentence(
        f"Position 0 begins with {pictured.listed(values[0, :4])}, position 1 with {pictured.listed(values[1, :4])}",
        *(
            f"column {column} is {pictured.span(values[:, column])} "
            f"and changes its sign {turns(values[:, column])} times"
            for column in (0, 15, 31, 63)
        ),
    )


def turns(column: Tensor) -> int:
    """How often the numbers of a column change their sign."""
    return int((column[1:] * column[:-1] < 0).sum())


def clock_hands(student) -> tuple[Figure, str]:
    """Every point lies in its ring, position 0 at twelve; time runs clockwise, slower on every clock."""
    table = student.positional_encoding(13, 32).detach()  # (13, 32)
    figure = Figure(figsize=(9, 3.1), layout="constrained")
    for (column, speed), axes in zip(CLOCKS.items(), figure.subplots(1, 4), strict=True):
        draw_clock(axes, table[:, column], table[:, column + 1], speed)
        axes.set_title(f"columns {column} and {column + 1}")
    figure.suptitle("Positions 0 to 12 on four clocks (across: first column, up: second)", fontsize=11)
    return figure, pictured.sentence(
        *(
            f"Clock {clock}: position 12 is at {pictured.listed(table[12, column : column + 2])}, "
            f"{off(table, column, speed)} from its ring"
            for clock, (column, speed) in enumerate(CLOCKS.items(), 1)
        ),
    )


def off(table: Tensor, column: int, speed: float) -> str:
    """How far the last point of a clock is from its ring."""
    turn = speed * (len(table) - 1)
    return pictured.number(math.dist(table[-1, column : column + 2].tolist(), (math.sin(turn), math.cos(turn))))


def draw_clock(axes: Axes, across: Tensor, up: Tensor, speed: float) -> None:
    """One clock: a dot for each position, a hand for the last one, a ring where each dot belongs."""
    turn = torch.linspace(0, 2 * math.pi, 200)
    axes.plot(turn.cos(), turn.sin(), color="0.75", linewidth=1)
    hours = speed * torch.arange(len(up))
    axes.plot(hours.sin(), hours.cos(), "o", color="0.35", markersize=10, fillstyle="none")
    axes.plot([0, across[-1]], [0, up[-1]], color="#D55E00", linewidth=2)
    axes.plot(across, up, "o", color="#0072B2", markersize=5)
    labelled: list[tuple[float, float]] = []
    for position, place in enumerate(zip(across.tolist(), up.tolist(), strict=True)):
        if all(math.dist(place, other) > 0.25 for other in labelled):
            axes.text(1.3 * place[0], 1.3 * place[1], str(position), ha="center", va="center", fontsize=7)
            labelled.append(place)
    axes.set(xlim=(-1.45, 1.45), ylim=(-1.45, 1.45), xticks=[-1, 0, 1], yticks=[-1, 0, 1], aspect="equal")


def ridge_of_similarity(student) -> tuple[Figure, str]:
    """A bright ridge runs down the diagonal; each position has the same hill, as only the distance counts."""
    table = student.positional_encoding(60, 64).detach()  # (60, 64)
    products = table @ table.T  # (60, 60)
    figure = Figure(figsize=(9, 3.9), layout="constrained")
    figure.get_layout_engine().set(wspace=0.08)
    left, right = figure.subplots(1, 2)
    draw_products(left, products, "position q", "position p")
    left.set_title("PE[p] · PE[q]", loc="left")
    for position, style in [(15, "-"), (30, "--"), (45, ":")]:
        right.plot(products[position], style, color="black", label=f"p = {position}")
    right.set(xlabel="position q", ylabel="PE[p] · PE[q]")
    right.set_title("Three rows of it", loc="left")
    right.margins(y=0.15)
    right.legend(loc="upper center", ncols=3, frameon=False)
    return figure, pictured.sentence(f"The products are {pictured.span(products)}", pictured.lines(right))


def draw_products(axes: Axes, products: Tensor, across: str, down: str) -> None:
    image = axes.imshow(products, cmap="cividis", interpolation="nearest")
    axes.set(xlabel=across, ylabel=down)
    axes.figure.colorbar(image, ax=axes, shrink=0.85)


def what_the_module_adds(student) -> tuple[Figure, str]:
    """Output minus input: in both sentences the first rows of the table, whatever the words were."""
    module = student.SinusoidalPositionalEncoding(d_model=16, max_len=20)
    words = torch.randn(2, 9, 16, generator=torch.Generator().manual_seed(2))  # (B, T, C)
    output = module(words.clone()).detach()  # (B, T, C)
    panels = {
        "a sentence": words[0],
        "… after the module": output[0],
        "what was added": output[0] - words[0],
        "… to another sentence": output[1] - words[1],
    }
    figure = Figure(figsize=(9, 3), layout="constrained")
    for axes, (title, values) in zip(figure.subplots(1, 4, sharey=True), panels.items(), strict=True):
        image = axes.imshow(values, cmap="cividis", vmin=-2, vmax=2, aspect="auto", interpolation="nearest")
        axes.set_title(title, loc="left", fontsize=10)
        axes.set_xlabel("feature")
        axes.label_outer()
    figure.axes[0].set_ylabel("position")
    figure.colorbar(image, ax=figure.axes, label="value")
    return figure, pictured.sentence(
        f"The module adds to a sentence: {pictured.cells(panels['what was added'], 'position', 'feature', from_=1e-6)}",
        f"What it adds to another sentence is up to "
        f"{pictured.number((output[0] - words[0] - output[1] + words[1]).abs().max())} apart",
    )


def shuffle_experiment(student) -> tuple[Figure, str]:
    """Without positions no word notices the shuffle; with them every word's output changes.

    Each bar is the distance between a word's output of attention in the first order and in the second.
    """
    module = student.SinusoidalPositionalEncoding(d_model=8, max_len=16)
    words = torch.randn(1, len(SENTENCE), 8, generator=torch.Generator().manual_seed(5))  # (1, T, C)
    without = distance_after_shuffle(words, lambda x: x)
    with_them = distance_after_shuffle(words, module)
    figure = Figure(figsize=(6.4, 3.8), layout="constrained")
    axes = figure.subplots()
    places = torch.arange(len(SENTENCE))
    axes.bar(places - 0.2, without, 0.36, color="white", edgecolor="black", label="without positions")
    axes.bar(places + 0.2, with_them, 0.36, color="#0072B2", edgecolor="black", label="with your positions")
    for bars in axes.containers:
        axes.bar_label(bars, fmt="%.2f", fontsize=8, padding=2)
    second = " ".join(SENTENCE[place] for place in SHUFFLED)
    axes.set(xticks=places, xticklabels=SENTENCE, ylabel="distance of the two outputs")
    axes.set_title(f"“{' '.join(SENTENCE)}” against “{second}”", loc="left", fontsize=10)
    axes.set_ylim(0, max(1.0, 1.3 * float(torch.stack([without, with_them]).max())))
    axes.legend(loc="upper right", ncols=2, frameon=False)
    return figure, pictured.sentence(
        f"Without positions the outputs move by {pictured.span(without)}",
        f"with yours: {pictured.listed(with_them, SENTENCE)}",
    )


def distance_after_shuffle(words: Tensor, add_positions) -> Tensor:
    """How far each word's output moves when the sentence is shuffled and the outputs are put back: (T,)."""
    shuffle = torch.tensor(SHUFFLED)
    x = add_positions(words.clone()).detach()  # (1, T, C)
    y = add_positions(words[:, shuffle].clone()).detach()  # (1, T, C)
    straight = nn.functional.scaled_dot_product_attention(x, x, x)  # (1, T, C)
    mixed = nn.functional.scaled_dot_product_attention(y, y, y)  # (1, T, C)
    return (mixed[:, shuffle.argsort()] - straight).norm(dim=-1)[0]


def learned_before_and_after(student) -> tuple[Figure, str]:
    """Before training, a position resembles only itself; after it, neighbours are alike and a ridge appears."""
    module = student.TokenAndPositionEmbedding(vocab_size=7, block_size=24, embed_size=16)
    start_small(module)
    before = similarity_of_positions(module)
    train_to_find_the_position(module, steps=60)
    after = similarity_of_positions(module)
    figure = Figure(figsize=(9, 3.9), layout="constrained")
    moments = {"before training": before, "after 60 steps": after}
    for axes, (moment, products) in zip(figure.subplots(1, 2), moments.items(), strict=True):
        image = axes.imshow(products, cmap="cividis", vmin=-1, vmax=1, interpolation="nearest")
        axes.set(xlabel="position", ylabel="position")
        axes.set_title(f"How alike are two positions? {moment.capitalize()}", loc="left", fontsize=10)
    figure.colorbar(image, ax=figure.axes, label="cosine", ticks=[-1, 0, 1])
    return figure, pictured.sentence(
        *(
            f"{moment}: cosines of neighbours are {pictured.span(products.diagonal(1))}, "
            f"of all {pictured.span(products)}"
            for moment, products in moments.items()
        ),
    )


def start_small(module: nn.Module) -> None:
    """The same random start for everybody, so that two pictures can be compared."""
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for weights in module.parameters():
            weights.copy_(0.3 * torch.randn(weights.shape, generator=generator))


def similarity_of_positions(module: nn.Module) -> Tensor:
    positions = module.position_embedding.weight.detach()  # (block_size, C)
    return nn.functional.cosine_similarity(positions[:, None], positions[None], dim=-1)


def train_to_find_the_position(module: nn.Module, steps: int) -> None:
    """Guess from each output at which position it was made; one position beside the truth is nearly right."""
    generator = torch.Generator().manual_seed(4)
    block_size, width = module.position_embedding.weight.shape
    guess = (0.3 * torch.randn(width, block_size, generator=generator)).requires_grad_()
    positions = torch.arange(block_size)
    near = torch.softmax(-((positions[:, None] - positions) ** 2) / 8.0, dim=-1)  # (T, T)
    optimiser = torch.optim.Adam([*module.parameters(), guess], lr=0.05)
    for _ in range(steps):
        ids = torch.randint(7, (8, block_size), generator=generator)  # (B, T)
        chances = (module(ids) @ guess).log_softmax(dim=-1)  # (B, T, T)
        loss = -(near * chances).sum(dim=-1).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()


PICTURES = {
    "table": [heatmap_of_the_table, clock_hands, ridge_of_similarity],
    "module": [what_the_module_adds, shuffle_experiment],
    "learned": [learned_before_and_after],
}
