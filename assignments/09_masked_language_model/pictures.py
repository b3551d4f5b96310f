"""Pictures of the masked language model, drawn from the student's own code."""

import textwrap

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle
from torch import Tensor

from autograder.checks import pictured

INK, QUIET = "#333333", "#f2f2f2"
COLORS = {  # what can happen to a word: readable in grey, each with its own lightness and hatching
    "not chosen": (QUIET, ""),
    "became [MASK]": ("#0072b2", ""),
    "became another word": ("#d55e00", "//"),
    "stayed, but is chosen": ("#f0e442", ""),
    "special": ("#bbbbbb", ".."),
}
FATES = list(COLORS)[1:4]
ROWS_ON_TAPE, LESSONS = 8, 140
QUESTIONS = ["the cat sat on the [MASK]", "the [MASK] barked at the cat", "the boat sailed [MASK] the sea"]


def fates(student, ids: Tensor, inputs: Tensor, labels: Tensor) -> list[list[str]]:
    """For each word of a text, what happened to it."""
    special = torch.isin(ids, torch.tensor(student.SPECIAL))

    def fate(chosen: bool, came: int, was: int, sign: bool) -> str:
        if not chosen:
            return "special" if sign and came == was else "not chosen"
        if came == was:
            return "stayed, but is chosen"
        return "became [MASK]" if came == student.MASK else "became another word"

    rows = zip((labels != -100).tolist(), inputs.tolist(), ids.tolist(), special.tolist())
    return [[fate(*word) for word in zip(*row)] for row in rows]


def disguised(student, ids: Tensor, seed: int) -> tuple[Tensor, Tensor]:
    """The two tables of the student's function, for the course's small vocabulary."""
    dice = torch.Generator().manual_seed(seed)
    return student.mask_tokens(ids.clone(), len(student.WORDS), student.MASK, student.SPECIAL, dice)


def tape(student) -> tuple[Figure, str]:
    """Above, what the model sees of eight sentences: about one ordinary word in seven is coloured, most of them blue.

    Where a word was changed, the original stands small beneath it. No grey word is ever coloured. Below, the
    count over the whole text, a hundred times: 15 % are chosen, and the three bars reach the three lines.
    """
    figure = Figure(figsize=(9, 6.4), layout="constrained")
    strip, chosen, bars = figure.subplot_mosaic(
        [["tape", "tape"], ["chosen", "fates"]], height_ratios=[3, 1.4], width_ratios=[1, 2]
    ).values()
    changed = draw_tape(strip, student)
    draw_counts(chosen, bars, student)
    return figure, pictured.sentence(
        f"Words of the sentences above: {changed}",
        f"Of the whole text, {pictured.listed(pictured.bars(chosen))} % are chosen; of these, "
        f"{pictured.listed(pictured.bars(bars), FATES)}",
    )


def draw_tape(axes: Axes, student) -> str:
    """The sentences, a box for each word; returns how often each fate is seen."""
    text = student.TEXT.splitlines()
    ids = student.encode(text[:: len(text) // ROWS_ON_TAPE][:ROWS_ON_TAPE])
    inputs, labels = disguised(student, ids, 4)
    words = student.WORDS
    all_fates = fates(student, ids, inputs, labels)
    for row, happened in enumerate(all_fates):
        for place, fate in enumerate(happened):
            color, hatch = COLORS[fate]
            box = Rectangle((place, row), 0.94, 0.86, facecolor=color, edgecolor="white", hatch=hatch, lw=0)
            axes.add_patch(box)
            seen, was = inputs[row, place].item(), ids[row, place].item()
            dark = fate in ("became [MASK]", "became another word")
            ink = "white" if dark else "#4d4d4d" if fate == "special" else INK
            changed = seen != was
            word = words[seen] if 0 <= seen < len(words) else f"{seen}?"
            plate = {"facecolor": color, "edgecolor": "none", "pad": 1.2}
            place_of_word = (place + 0.47, row + (0.28 if changed else 0.43))
            axes.text(*place_of_word, word, ha="center", va="center", color=ink, fontsize=8.5, bbox=plate)
            if changed:
                below = (place + 0.47, row + 0.66)
                axes.text(
                    *below,
                    words[was],
                    ha="center",
                    va="center",
                    color=ink,
                    fontsize=7,
                    style="italic",
                    bbox=plate,
                )
    axes.set(xlim=(0, ids.shape[1]), ylim=(len(ids), 0))
    axes.axis("off")
    axes.set_title("What the model sees", loc="left", fontsize=11)
    keys = [Patch(facecolor=color, hatch=hatch, label=fate) for fate, (color, hatch) in COLORS.items()]
    axes.legend(handles=keys, ncols=5, frameon=False, fontsize=8.5, loc="upper left", bbox_to_anchor=(0, 0.0))
    happened = [fate for row in all_fates for fate in row]
    return pictured.listed([happened.count(fate) for fate in FATES], FATES)


def draw_counts(left: Axes, right: Axes, student) -> None:
    ids = student.encode(student.TEXT.splitlines()).repeat(100, 1)
    inputs, labels = disguised(student, ids, 5)
    ordinary, asked = ~torch.isin(ids, torch.tensor(student.SPECIAL)), labels != -100
    same, masked = inputs == ids, inputs == student.MASK
    share = 100 * asked.sum().item() / ordinary.sum().item()
    draw_bar(left, "chosen", share, INK, "", 15)
    left.set(ylim=(0, 30), ylabel="% of the ordinary words", xlim=(-1.2, 1.2))
    kinds = [asked & masked, asked & ~masked & ~same, asked & same]
    for fate, kind in zip(FATES, kinds):
        percent = 100 * kind.sum().item() / max(asked.sum().item(), 1)
        draw_bar(right, fate, percent, *COLORS[fate], 80 if fate == FATES[0] else 10)
    right.set(ylim=(0, 100), ylabel="% of the chosen words")
    left.set_title(f"Counted on {ordinary.sum().item():,} words", loc="left", fontsize=11)


def draw_bar(axes: Axes, name: str, percent: float, color: str, hatch: str, expected: float) -> None:
    (bar,) = axes.bar([name], [percent], 0.7, color=color, hatch=hatch, edgecolor="white")
    middle = bar.get_x() + bar.get_width() / 2
    axes.plot([middle - 0.45, middle + 0.45], [expected, expected], color="black", lw=1.4, ls="--")
    axes.text(middle, max(percent, expected), f"{percent:.1f} %", ha="center", va="bottom", fontsize=9.5)


def who_is_corrected(student) -> tuple[Figure, str]:
    """How strongly the loss pulls at the logits of each position: only the four framed ones light up, all four alike.

    The logits are all zeros, so every chosen position is equally wrong. The row without a frame stays dark.
    """
    B, T, V = 4, 8, 11
    labels = torch.full((B, T), -100)
    for row, place, word in ((0, 2, 5), (0, 6, 0), (1, 1, 7), (3, 4, 2)):
        labels[row, place] = word
    logits = torch.zeros(B, T, V, requires_grad=True)
    student.masked_language_model_loss(logits, labels).backward()
    pull = torch.zeros(B, T) if logits.grad is None else logits.grad.norm(dim=-1)
    figure = Figure(figsize=(6.2, 3.4), layout="constrained")
    axes = figure.subplots()
    axes.set_facecolor("red")  # shines through where the gradient is NaN
    image = axes.imshow(pull, cmap="cividis", vmin=0, vmax=pull.nan_to_num().max().item() or 1.0)
    for row, place in (labels != -100).nonzero().tolist():
        axes.add_patch(
            Rectangle((place - 0.47, row - 0.47), 0.94, 0.94, fill=False, edgecolor="#d55e00", lw=2.5)
        )
    axes.set_xticks(range(T))
    axes.set_yticks(range(B))
    axes.set(xlabel="position", ylabel="row of the batch")
    axes.set_title("Where does the loss correct? (framed: chosen)", loc="left", fontsize=11)
    figure.colorbar(image, ax=axes, label="length of the gradient", shrink=0.85)
    return figure, pictured.sentence(pictured.cells(pull, "row", "position"))


def start_afresh(module) -> None:
    """Fresh numbers that do not depend on how the module was built."""
    dice = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for name, parameter in sorted(module.named_parameters()):
            fresh = torch.randn(parameter.shape, generator=dice) / parameter.shape[-1] ** 0.5
            ones = torch.full(parameter.shape, float("norm" in name and name.endswith("weight")))
            parameter.copy_(fresh if parameter.ndim > 1 else ones)


def both_sides(student) -> tuple[Figure, str]:
    """How far the logits at each position move when one word is replaced: light on both sides of the diagonal.

    Only the two columns at the end are dark: there is padding, which gets no attention.
    """
    T, real, V = 8, 6, 13
    model = student.MaskedLanguageModel(V, 16, 2, 2, 24, T, 0.0).double()
    start_afresh(model)
    model.eval()
    words = (3 * torch.arange(T)) % (V - 1)
    changed = words.repeat(T + 1, 1)  # (T + 1, T), the last stays as it is
    changed[torch.arange(T), torch.arange(T)] = V - 1
    padding = (torch.arange(T) >= real).expand(T + 1, T)  # (T + 1, T)
    with torch.no_grad():
        logits = model(changed, padding)  # (T + 1, T, V)
    moved = (logits[:-1] - logits[-1]).abs().amax(dim=-1).T[:real]  # (real, T)
    moved = moved.masked_fill(moved < 1e-12, 0.0)
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    axes.set_facecolor("black")
    film = moved.sqrt().masked_fill(moved == 0, float("nan"))
    image = axes.imshow(film, cmap="cividis", vmin=0, vmax=moved.max().item() ** 0.5 or 1.0)
    axes.set_xticks(range(T), [*range(real), *["PAD"] * (T - real)])
    axes.set_yticks(range(real))
    axes.set(xlabel="when this word changes …", ylabel="… how far does the answer here move?")
    axes.set_title(finding(moved, real), loc="left", fontsize=11)
    figure.colorbar(image, ax=axes, label="square root of the move (black: none)", shrink=0.85)
    return figure, pictured.sentence(
        pictured.cells(moved, "answer", "word", 0),
        f"In the columns of the padding, {pictured.cells(moved[:, real:], 'answer', 'padding', 0)}",
    )


def finding(moved: Tensor, real: int) -> str:
    deaf, padding = int((moved[:, :real] == 0).sum()), int((moved[:, real:] > 0).sum())
    if deaf:
        return f"Not every word sees both sides ({deaf} cells are dark)"
    return "The padding is not ignored" if padding else "Every word sees both sides"


def best_guesses(student) -> tuple[Figure, str]:
    """The five likeliest words for each gap, after a short training: the longest bars should make sense in the sentence.

    In the middle everything that helps stands to the right of the gap.
    """
    model = trained(student)
    seen = []
    figure = Figure(figsize=(9, 3), layout="constrained")
    for axes, question in zip(figure.subplots(1, len(QUESTIONS)), QUESTIONS):
        ids = student.encode([question])  # (1, T)
        place = ids[0].tolist().index(student.MASK)
        with torch.no_grad():
            probabilities = model(ids)[0, place].softmax(dim=-1)  # (V,)
        best = probabilities.topk(5)
        words = [student.WORDS[i] for i in best.indices.tolist()]
        seen.append(f"{question}: {pictured.listed(100 * best.values[:2], [f'{word}, in %' for word in words])}")
        bars = axes.barh(words, best.values, color="#0072b2")
        axes.bar_label(
            bars, [f"{100 * p:.0f} %" for p in best.values.tolist()], padding=3, fontsize=9
        )
        axes.invert_yaxis()
        axes.set(xlim=(0, 1.2), xticks=(0, 0.5, 1), xlabel="probability")
        axes.set_title("\n".join(textwrap.wrap(question.replace("[MASK]", "▢"), 28)), loc="left", fontsize=10)
    return figure, pictured.sentence(*seen)


def trained(student):
    """A small model after a few lessons on the course's sentences, made with the student's three parts."""
    ids = student.encode(student.TEXT.splitlines())  # (B, T)
    model = student.MaskedLanguageModel(len(student.WORDS), 48, 4, 1, 96, 16, 0.0)
    start_afresh(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    for step in range(LESSONS):
        inputs, labels = disguised(student, ids, step)  # (B, T), (B, T)
        loss = student.masked_language_model_loss(model(inputs, ids == student.PAD), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    return model


PICTURES = {
    "corruption": [tape],
    "loss": [who_is_corrected],
    "model": [both_sides, best_guesses],
}
