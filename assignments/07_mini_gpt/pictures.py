"""Pictures of the mini GPT, drawn from the student's own code."""

import math
import textwrap

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor, nn

from autograder.checks import pictured
from autograder.fakes import Die

BLUE, ORANGE, GREY = "#0072b2", "#d55e00", "#8c8c8c"
STEPS = (0, 100, 1000)
SHARES = [0.45, 0.25, 0.15, 0.1, 0.05]
WORDS = ["sea", "bird", "boat", "lamp", "moon"]


def windows_on_the_text(student) -> tuple[Figure, str]:
    """Each row is one window: filled squares are what the model reads, and every answer stands one step later.

    So the answers, in frames, cover the filled squares except the first and end one step beyond them. The rows
    begin at random places, now and then two at the same one.
    """
    text = student.TEXT[:26]
    T, B = 6, 7
    x, y = student.get_batch(torch.arange(len(text)), T, B, torch.Generator().manual_seed(8))
    figure = Figure(figsize=(8, 3.6), layout="constrained")
    axes = figure.subplots()
    for row, (seen, answers) in enumerate(zip(x.tolist(), y.tolist())):
        axes.bar(seen, 0.62, bottom=row - 0.31, width=1.0, color=BLUE, alpha=0.3, edgecolor="white")
        for place in answers:
            axes.plot(*box(place, row, 0.42, 0.4), color=ORANGE, lw=1.6)
        for place in sorted({*seen, *answers}):
            letter = text[place] if 0 <= place < len(text) else "?"
            axes.text(place, row, "␣" if letter == " " else letter, ha="center", va="center", fontsize=11)
    axes.plot([], [], color=BLUE, alpha=0.3, lw=9, label="x: what is read")
    axes.plot([], [], color=ORANGE, marker="s", mfc="none", ms=9, lw=0, label="y: the answers")
    axes.legend(loc="upper left", bbox_to_anchor=(0, -0.16), ncol=2, frameon=False)
    axes.set_xticks(range(len(text)), [" " if letter == "\n" else letter for letter in text])
    axes.set_yticks(range(B))
    axes.set_ylim(B - 0.4, -0.6)
    axes.set_xlabel("the text")
    axes.set_ylabel("row of the batch")
    axes.set_title("Where the windows lie", loc="left", fontsize=11)
    return figure, pictured.sentence(
        *(
            f"row {row} reads {pictured.span(seen)} and its answers are {pictured.span(answers)}"
            for row, (seen, answers) in enumerate(zip(x[:4].tolist(), y[:4].tolist()))
        ),
    )


def box(x: float, y: float, width: float, height: float) -> tuple[list[float], list[float]]:
    """The corners of a frame around a point, as a line."""
    left, right, low, high = x - width, x + width, y - height, y + height
    return [left, right, right, left, left], [low, low, high, high, low]


def price_of_a_guess(student) -> tuple[Figure, str]:
    """The surer of the right word, the cheaper: from nothing at a probability of 1 upwards without end.

    The curve passes through ln 2 at one half. The dot is a model that knows nothing: probability 1/V, loss ln V.
    """
    V = len(student.ALPHABET)
    shares = torch.linspace(0.004, 1, 250, dtype=torch.float64)
    losses = [
        float(student.language_model_loss(logits_of(share, V), torch.tensor([[3]]))) for share in shares
    ]
    nothing = float(student.language_model_loss(torch.zeros(1, 1, V), torch.tensor([[3]])))
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    axes.plot(shares, losses, color=BLUE, lw=2)
    axes.plot([1 / V], [nothing], "o", color=ORANGE, ms=9)
    note = f"knows nothing: {nothing:.3f}\n(ln {V} = {math.log(V):.3f})"
    axes.annotate(
        note, (1 / V, nothing), (0.14, nothing), va="center", arrowprops={"arrowstyle": "-", "color": GREY}
    )
    axes.axhline(math.log(2), color=GREY, ls=":", lw=1)
    axes.axvline(0.5, color=GREY, ls=":", lw=1)
    axes.text(0.98, math.log(2) + 0.08, "ln 2", color="#555555", ha="right")
    axes.set_ylim(0, 6)
    axes.set_xlim(0, 1.01)
    axes.set_xlabel("probability of the right word")
    axes.set_ylabel("loss")
    axes.set_title("What a guess costs", loc="left", fontsize=11)
    return figure, pictured.sentence(
        pictured.curve(losses, "the loss", shares),
        f"At the dot it is {pictured.number(nothing)}",
    )


def logits_of(share: Tensor, V: int) -> Tensor:
    """Logits whose softmax gives word 3 this probability, and the others the rest in equal parts: (1, 1, V)."""
    rest = ((1 - share) / (V - 1)).clamp(min=1e-12)
    logits = rest.log().expand(V).clone()
    logits[3] = share.log()
    return logits[None, None]


def ripples(student) -> tuple[Figure, str]:
    """Change one character, and see where the logits move: everything above the diagonal stays black.

    Below it, every cell is lit: a model that sees less than its whole past wastes what it has read.
    """
    light = reaction(student, T=8)  # (T, T)
    T = len(light)
    leaks = [(t, s) for t in range(T) for s in range(T) if s > t and light[t, s] > 0]
    blind = [(t, s) for t in range(T) for s in range(T) if s <= t and light[t, s] == 0]
    figure = Figure(figsize=(6, 4.8), layout="constrained")
    axes = figure.subplots()
    axes.set_facecolor("black")
    film = light.sqrt().masked_fill(light == 0, math.nan)  # the root, so that faint light is seen as well
    image = axes.imshow(film, cmap="cividis", vmin=0, vmax=light.max().item() ** 0.5 or 1.0)
    axes.step([-0.5, *(s + 0.5 for s in range(T))], [-0.5, *(s - 0.5 for s in range(T))], color="white", lw=2)
    for cells, style in ((leaks, "--"), (blind, ":")):
        for t, s in cells:
            axes.plot(*box(s, t, 0.4, 0.4), color="orangered", ls=style, lw=2)
    axes.set_xticks(range(T))
    axes.set_yticks(range(T))
    axes.set_xlabel("when character s changes …")
    axes.set_ylabel("… how far do the logits after character t move?")
    axes.set_title(finding(leaks, blind), loc="left", fontsize=11)
    figure.colorbar(image, ax=axes, label="square root of the largest move (black: none)")
    return figure, pictured.sentence(pictured.cells(light, "after character", "character", from_=0, diagonal=True))


def reaction(student, T: int) -> Tensor:
    """How far the logits after word t move when word s becomes another one: (T, T)."""
    V = 11
    model = untrained(student, V, embed_size=16, block_size=T, num_heads=2, num_layers=2).double()
    model.eval()
    words = torch.arange(T) % V
    changed = words.repeat(T + 1, 1)  # (T + 1, T), the last row stays as it is
    changed[torch.arange(T), torch.arange(T)] = V - 1
    with torch.no_grad():
        logits, _ = model(changed)  # (T + 1, T, V)
    moved = (logits[:-1] - logits[-1]).abs().amax(-1).T  # (T, T)
    return moved.masked_fill(moved < 1e-12, 0.0)


def untrained(student, *sizes: int, **named: int):
    """A model of the student's with weights of our own, the same for everybody."""
    dice = torch.Generator().manual_seed(5)
    model = student.TransformerLanguageModel(*sizes, **named)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            fresh = torch.randn(parameter.shape, generator=dice)
            norm = ".ln" in f".{name}" and name.endswith("weight")
            parameter.copy_(1 + 0.1 * fresh if norm else fresh / max(parameter.shape[-1], 4) ** 0.5)
    return model


def finding(leaks: list, blind: list) -> str:
    if leaks:
        return f"The future leaks: light above the diagonal ({len(leaks)} cells)"
    if blind:
        return f"Some of the past is not seen ({len(blind)} cells are dark)"
    return "No word sees the future, and each sees its whole past"


def apprentice(student):
    """A model before its training, a generator for its batches, and the text that it will read."""
    torch.manual_seed(11)
    sizes = {"embed_size": 48, "block_size": 24, "num_heads": 4, "num_layers": 2}
    model = student.TransformerLanguageModel(len(student.ALPHABET), **sizes)
    return model, torch.Generator().manual_seed(11), student.encode(student.TEXT)


def learning_curve(student) -> tuple[Figure, str]:
    """The curve goes down its steps: from ln V, knowing nothing, past the unigram line to the bigram line and below.

    Below the last line the model uses more than the last character: attention has begun to pay.
    """
    model, dice, data = apprentice(student)
    losses = student.train(model, data, 400, 12, 3e-3, dice)
    calm = [sum(losses[max(0, i - 19) : i + 1]) / min(20, i + 1) for i in range(len(losses))]
    figure = Figure(figsize=(6.4, 4), layout="constrained")
    axes = figure.subplots()
    axes.plot(losses, color=BLUE, alpha=0.25, lw=1, label="each batch")
    axes.plot(calm, color=BLUE, lw=2, label="mean of the last 20")
    V = len(student.ALPHABET)
    lines = {
        f"ln {V}: knows nothing": math.log(V),
        "unigram line: knows how frequent each character is": unigram_loss(data, V),
        "bigram line: knows the last character": bigram_loss(data, V),
    }
    for words, height in lines.items():
        axes.axhline(height, color=ORANGE, ls="--", lw=1.4)
        axes.text(len(losses) - 1, height + 0.04, words, ha="right", color="#9a4300")
    axes.set_ylim(0, max(4.0, max(losses)))
    axes.set_xlabel("step of training")
    axes.set_ylabel("loss")
    axes.set_title("How surprised the model is", loc="left", fontsize=11)
    axes.legend(loc="lower left", frameon=False)
    return figure, pictured.sentence(pictured.curve(calm, "your loss"))


def unigram_loss(data: Tensor, V: int) -> float:
    """The loss of a model that knows how often each character occurs in this text, and nothing else."""
    shares = torch.bincount(data, minlength=V).double() / len(data)
    return -(shares * shares.clamp(min=1e-12).log()).sum().item()


def bigram_loss(data: Tensor, V: int) -> float:
    """The loss of a model that knows how often each character follows each other one in this text."""
    pairs = torch.bincount(data[:-1] * V + data[1:], minlength=V * V).reshape(V, V).double()
    shares = pairs / pairs.sum(dim=1, keepdim=True).clamp(min=1)
    surprise = -(pairs * shares.clamp(min=1e-12).log()).sum()
    return (surprise / pairs.sum()).item()


def where_heads_look(student) -> tuple[Figure, str]:
    """After 300 steps the heads differ: a line beside the diagonal looks one place back, a column keeps to one place.

    Each square is one head of one layer; its rows show where each character looks. Above the diagonal, all is white.
    """
    model, dice, data = apprentice(student)
    student.train(model, data, 300, 12, 3e-3, dice)
    text = "the word light looked ar"
    maps = attention_maps(model, student.encode(text)[None])  # (N, H, T, T)
    figure = Figure(figsize=(10, 5.4), layout="constrained")
    letters = ["␣" if letter == " " else letter for letter in text]
    for layer, row in enumerate(figure.subplots(*maps.shape[:2], squeeze=False)):
        for head, axes in enumerate(row):
            axes.imshow(maps[layer, head], cmap="Blues", vmin=0, vmax=1)
            axes.set_xticks(range(len(text)), letters, fontsize=6)
            axes.set_yticks(range(len(text)), letters, fontsize=6)
            axes.set_title(f"layer {layer}, head {head}", loc="left", fontsize=10)
    return figure, pictured.sentence(
        f"Weights above one half, by layer and head: {pictured.listed((maps > 0.5).sum(dim=(2, 3)))}",
        f"Above the diagonal the weights add up to {pictured.number(maps.triu(1).sum())}",
    )


def attention_maps(model, ids: Tensor) -> Tensor:
    """The attention weights of a model for a text (1, T), by layer and head: (N, H, T, T)."""
    model.eval()
    with torch.no_grad():
        hidden = nn.Transformer.generate_square_subsequent_mask(ids.shape[1])
        x = model.token_embed(ids) + model.pos_embed(torch.arange(ids.shape[1]))
        maps = []
        for block in model.blocks.children():
            normed = block.ln1(x)
            maps.append(block.attention(normed, normed, normed, attn_mask=hidden, average_attn_weights=False)[1][0])
            x = block(x)
    return torch.stack(maps)


def first_words(student) -> tuple[Figure, str]:
    """The same beginning, continued after 0, 100 and 1,000 steps: first noise, then syllables, then words.

    Much of the last text is learned by heart. The number is the mean loss of the steps just before.
    """
    model, dice, data = apprentice(student)
    figure = Figure(figsize=(8, 3.4), layout="constrained")
    axes = figure.subplots()
    axes.axis("off")
    done, losses, seen = 0, [], []
    for row, steps in enumerate(STEPS):
        losses += student.train(model, data, steps - done, 12, 3e-3, dice)
        done = steps
        start = student.encode("the word ")[None]
        written = student.generate(model, start, 150, 0.8, None, torch.Generator().manual_seed(2))
        loss = f"loss {sum(losses[-50:]) / len(losses[-50:]):.2f}" if losses else "knows nothing"
        text = " ".join(student.decode(written[0]).split())
        seen.append(f"after {steps:,} steps, {loss}, it writes: {text[:60]}")
        top = 1 - row / len(STEPS)
        axes.text(0, top, f"after {steps:,} steps\n{loss}", va="top", fontsize=11, color="#9a4300")
        axes.text(0.25, top, "\n".join(textwrap.wrap(text, 58)), va="top", fontsize=10.5, family="monospace")
    axes.set_title("What the model writes", loc="left", fontsize=11)
    return figure, pictured.sentence(*seen)


def skyline(student) -> tuple[Figure, str]:
    """Next words by temperature: low makes the tallest tower taller, high flattens the city, none changes the order.

    The lines are what the probabilities should be; the bars are 4,000 words drawn by your own code.
    """
    figure = Figure(figsize=(8.4, 3.4), layout="constrained")
    for axes, temperature in zip(figure.subplots(1, 4, sharey=True), (0.25, 0.5, 1.0, 2.0)):
        draw_city(axes, student, temperature)
    figure.axes[0].set_ylabel("share of the words drawn")
    return figure, pictured.sentence(
        *(f"{axes.get_title()}: {pictured.listed(pictured.bars(axes), WORDS)}" for axes in figure.axes),
    )


def one_city(student, temperature: float = 1.0, top_k: int = 3) -> tuple[Figure, str]:
    """With top_k = 3 only the three tallest towers are left, and grow: together they still hold all probability.

    In a notebook with ipywidgets, two sliders change the temperature and top_k.
    """
    figure = Figure(figsize=(5, 3.4), layout="constrained")
    axes = figure.subplots()
    draw_city(axes, student, temperature, top_k)
    axes.set_title(f"temperature {temperature:g}, top_k = {top_k}", fontsize=11)
    axes.set_ylabel("share of the words drawn")
    return figure, pictured.sentence(f"{axes.get_title()}: {pictured.listed(pictured.bars(axes), WORDS)}")


def draw_city(axes: Axes, student, temperature: float, top_k: int = len(WORDS)) -> None:
    die, rows = Die(SHARES), 4_000
    start, dice = torch.zeros(rows, 1, dtype=torch.long), torch.Generator().manual_seed(1)
    written = student.generate(die, start, 1, temperature=temperature, top_k=top_k, generator=dice)
    drawn = torch.bincount(written[:, -1], minlength=len(WORDS)) / rows
    expected = torch.tensor(SHARES).double() ** (1 / temperature)
    expected[top_k:] = 0  # the words stand in the order of their probabilities
    expected = expected / expected.sum()
    axes.bar(WORDS, drawn, color=BLUE, alpha=0.75)
    for place, height in enumerate(expected.tolist()):
        axes.plot([place - 0.45, place + 0.45], [height, height], color=ORANGE, lw=2.2)
    axes.set_ylim(0, 1)
    axes.tick_params(axis="x", rotation=45)
    axes.set_title(f"temperature {temperature:g}", fontsize=11)


PICTURES = {
    "batches": [windows_on_the_text],
    "loss": [price_of_a_guess],
    "model": [ripples],
    "training": [learning_curve, where_heads_look],
    "generation": [first_words, skyline, one_city],
}
SLIDERS = {one_city: {"temperature": (0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0), "top_k": (1, 2, 3, 4, 5)}}
