"""Pictures of many heads, drawn from the student's own code."""

import torch
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from torch import Tensor, nn

from autograder.checks import pictured

WORDS = ["the", "cat", "sat", "on", "a", "mat"]
COLOURS = ["#0072B2", "#E69F00", "#009E73", "#CC79A7"]  # one for each head
PALE = "#ECECEC"
JOBS = ["the word before", "the word itself", "the first word", "all alike"]


def whose_columns_are_whose(student) -> tuple[Figure, str]:
    """Touch one head at a time and see which output columns move: four blocks, stepping down like stairs.

    Two colours in one column, or a block torn apart, mean that the outputs were not concatenated in order.
    """
    draw = torch.Generator().manual_seed(4)
    mha = with_random_weights(student.MultiHeadAttention(12, 4, len(WORDS)), draw)
    with torch.no_grad():
        mha.proj.weight.copy_(torch.eye(12))
        sentence = torch.randn(1, len(WORDS), 12, generator=draw)
        moved = []
        for h in range(4):
            values = mha.get_parameter(f"heads.{h}.value.weight")
            kept, quiet = values.clone(), mha(sentence)
            values.copy_(kept + torch.randn(kept.shape, generator=draw))
            moved.append((mha(sentence) - quiet).abs().amax(dim=(0, 1)) > 1e-6)
            values.copy_(kept)
    figure = Figure(figsize=(6.6, 3.0), layout="constrained")
    axes = figure.subplots()
    for h, columns in enumerate(moved):
        for column, moves in enumerate(columns.tolist()):
            paint_cell(axes, column, h, COLOURS[h] if moves else PALE, str(h) if moves else "")
    frame(axes, len(moved[0]), 4)
    axes.set_xticks(range(len(moved[0])))
    axes.set_yticks(range(4), [f"head {h}" for h in range(4)])
    axes.set_xlabel("output column before the projection mixes them")
    axes.set_ylabel("touched")
    axes.set_title("Which columns move when one head changes", loc="left", fontsize=11)
    return figure, pictured.sentence(
        *(f"head {h} moves the columns {pictured.places(columns)}" for h, columns in enumerate(moved)),
    )


def follow_one_word(student) -> tuple[Figure, str]:
    """Follow *cat*: split_heads gives every head one strip of it, 0 to 3, 4 to 7 and 8 to 11, all in line 1.

    On the right the same sheet is cut by `view` alone. The shapes agree, but *cat* lands in other lines, and
    head 2 sees nothing of it.
    """
    sheet = torch.tensor([[[100.0 * word + feature for feature in range(12)] for word in range(5)]])
    cut = student.split_heads(sheet, 3)
    figure = Figure(figsize=(8.4, 4.4), layout="constrained")
    top, bottom = figure.subfigures(2, 1)
    draw_tables(top, list(sheet), "The sheet: one word a line, twelve features", WORDS[:5], blank=True)
    left, right = bottom.subfigures(1, 2)
    draw_tables(left, list(cut[0]), "Your split_heads")
    draw_tables(right, list(sheet.view(1, 3, 5, 4)[0]), "Wrong: view alone, for comparison")
    return figure, pictured.sentence(*(f"head {h}: {where_cat_is(table)}" for h, table in enumerate(cut[0])))


def where_cat_is(table: Tensor) -> str:
    """The lines and the features in which a table holds numbers of word 1."""
    seen = [(line, value - 100) for line, row in enumerate(table.tolist()) for value in row if 100 <= value < 200]
    if not seen:
        return "nothing of cat"
    lines, features = zip(*seen)
    return f"cat in lines {pictured.listed(sorted(set(lines)))} with features {pictured.listed(features)}"


def glue_one_word(student) -> tuple[Figure, str]:
    """Follow *cat* back: merge_heads puts its strips into one line again, 0 to 11 from left to right.

    On the right the same strips are glued by `view` alone: *cat* is scattered over three lines.
    """
    strips = [[[100.0 * word + 4 * h + d for d in range(4)] for word in range(5)] for h in range(3)]
    heads = torch.tensor([strips])  # (1, 3, 5, 4)
    glued = student.merge_heads(heads)
    figure = Figure(figsize=(8.4, 4.4), layout="constrained")
    top, bottom = figure.subfigures(2, 1)
    draw_tables(top, list(heads[0]), "Three heads, each with its strip of every word", WORDS[:5], blank=True)
    left, right = bottom.subfigures(1, 2)
    draw_tables(left, list(glued), "Your merge_heads")
    draw_tables(right, list(heads.view(1, 5, 12)), "Wrong: view alone, for comparison")
    return figure, pictured.sentence(*(f"merged: {where_cat_is(table)}" for table in glued))


def four_heads_four_jobs(student) -> tuple[Figure, str]:
    """Four heads with four jobs: head 0 attends to the word before, 1 to the word itself, 2 to the first word,
    3 to everything that is allowed, alike.

    Above the diagonal everything is zero (a dot): the mask is causal. Each row sums to 100. If jobs appear under
    the wrong head, or a map is scrambled, look at the order of rows in W_qkv and at split_heads.
    """
    T = len(WORDS)
    fused = student.FusedMultiHeadAttention(4 * T, 4)
    allowed = torch.ones(T, T, dtype=torch.bool).tril()
    with torch.no_grad():
        fused.W_qkv.weight.copy_(tables_for_four_jobs(T))
        fused.W_out.weight.copy_(torch.eye(4 * T))
        name_tags = torch.eye(T, 4 * T)[None]  # feature t of word t is 1: its name tag
        attended = fused(name_tags, allowed)[0]  # the values are name tags: each output shows its weights
    figure = Figure(figsize=(8.6, 3.4), layout="constrained")
    figure.suptitle("What each head attends to, in percent", x=0.01, ha="left", fontsize=11)
    for h, axes in enumerate(figure.subplots(1, 4, sharey=True)):
        weights = attended[:, h * T : (h + 1) * T]
        fade = torch.tensor(to_rgb(COLOURS[h]))
        for asker, row in enumerate(weights.tolist()):
            for speaker, share in enumerate(row):
                strength = min(max(share, 0.0), 1.0)
                percent = "·" if share == 0 else "" if abs(share) < 0.005 else f"{100 * share:.0f}"
                paint_cell(axes, speaker, asker, tuple((1 - strength * (1 - fade)).tolist()), percent, size=8)
        frame(axes, T, T)
        axes.set_xticks(range(T), WORDS, rotation=60)
        axes.set_yticks(range(T), WORDS)
        axes.set_xlabel("attends to")
        axes.set_title(f"head {h}: {JOBS[h]}", fontsize=9)
        if h == 0:
            axes.set_ylabel("this word …")
    return figure, pictured.sentence(
        *(
            f"head {h}: {pictured.cells(attended[:, h * T : (h + 1) * T], WORDS, WORDS, 0.005, diagonal=True)}"
            for h in range(4)
        ),
    )


def one_answer_in_two_spellings(student) -> tuple[Figure, str]:
    """After fuse, the two upper tables are the same, and the lowest one, their difference, stays dark.

    Differences of about 0.0000001 are rounding. Anything bright means that some table did not find its place.
    """
    draw = torch.Generator().manual_seed(11)
    per_head = with_random_weights(student.MultiHeadAttention(12, 4, len(WORDS), bias=False), draw)
    fused = with_random_weights(student.FusedMultiHeadAttention(12, 4), draw)
    student.fuse(per_head, fused)
    allowed = torch.ones(len(WORDS), len(WORDS), dtype=torch.bool).tril()
    with torch.no_grad():
        sentence = torch.randn(1, len(WORDS), 12, generator=draw)
        first, second = per_head(sentence)[0], fused(sentence, allowed)[0]
    apart = (first - second).abs()
    limit = float(torch.cat([first, second]).abs().max())
    figure = Figure(figsize=(6.2, 5.8), layout="constrained")
    panels = figure.subplots(3, 1, sharex=True)
    for axes, table, title in zip(panels, (first, second), ("heads side by side", "all in one matrix"), strict=False):
        image = axes.imshow(table.numpy(), cmap="cividis", vmin=-limit, vmax=limit, aspect="auto")
        axes.set_title(title, loc="left", fontsize=11)
    figure.colorbar(image, ax=list(panels[:2]), label="output")
    image = panels[2].imshow(apart.clamp(min=1e-7).numpy(), cmap="inferno", norm=LogNorm(1e-7, 10.0), aspect="auto")
    panels[2].set_title(f"difference, at most {float(apart.max()):.1g}", loc="left", fontsize=11)
    figure.colorbar(image, ax=panels[2], label="difference")
    for axes in panels:
        axes.set_yticks(range(len(WORDS)), WORDS)
    panels[2].set_xticks(range(12))
    panels[2].set_xlabel("feature")
    return figure, pictured.sentence(
        f"The outputs are {pictured.span(first)} and {pictured.span(second)}",
        f"Of their differences, {pictured.cells(apart, WORDS, 'feature', from_=1e-5)}",
    )


def with_random_weights(module: nn.Module, draw: torch.Generator) -> nn.Module:
    """The same numbers at every drawing, in whatever order the layers were made."""
    with torch.no_grad():
        for _, parameter in sorted(module.named_parameters()):
            parameter.copy_(torch.randn(parameter.shape, generator=draw) / 2)
    return module


def tables_for_four_jobs(T: int) -> Tensor:
    """Rows for queries, keys and values of four heads that read name tags: (12·T, 4·T)."""
    loud = 9.0 * T**0.5  # so that the wanted word gets nearly all the attention
    me = torch.eye(T)
    wanted = [loud * torch.roll(me, -1, 0), loud * me, torch.zeros(T, T), torch.zeros(T, T)]
    wanted[0][T - 1] = 0.0  # nobody comes before the first word
    wanted[2][0] = loud
    rows = torch.zeros(3, 4, T, 4 * T)
    for h, query in enumerate(wanted):
        rows[0, h, :, :T], rows[1, h, :, :T], rows[2, h, :, :T] = query, me, me
    return rows.flatten(0, 2)


def draw_tables(area, tables: list[Tensor], title: str, names=None, blank: bool = False) -> None:
    """Tables side by side; the numbers of word 1 are coloured and show which feature they are."""
    area.suptitle(title, x=0.02, ha="left", fontsize=10)
    widths = [1.0] * len(tables) + [0.6 * len(tables)] * blank
    panels = area.subplots(1, len(widths), squeeze=False, width_ratios=widths)[0]
    for number, (axes, table) in enumerate(zip(panels, tables, strict=False)):
        for line, row in enumerate(table.tolist()):
            for place, value in enumerate(row):
                word, feature = divmod(round(value), 100)
                colour = COLOURS[feature // 4 % 3] if word == 1 else PALE
                paint_cell(axes, place, line, colour, str(feature) if word == 1 else "", size=8)
        frame(axes, table.shape[1], table.shape[0])
        axes.set_xticks([])
        axes.set_yticks(range(table.shape[0]), names or range(table.shape[0]), fontsize=8)
        if len(tables) > 1:
            axes.set_xlabel(f"head {number}", fontsize=8)
    for axes in panels[len(tables) :]:
        axes.axis("off")


def paint_cell(axes: Axes, x: int, y: int, colour, text: str, size: int = 9) -> None:
    axes.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, facecolor=colour, edgecolor="white"))
    light = sum(part * share for part, share in zip(to_rgb(colour), (0.3, 0.59, 0.11), strict=True))
    axes.text(x, y, text, ha="center", va="center", fontsize=size, color="black" if light > 0.5 else "white")


def frame(axes: Axes, columns: int, lines: int) -> None:
    axes.set_xlim(-0.5, columns - 0.5)
    axes.set_ylim(lines - 0.5, -0.5)
    axes.tick_params(length=0)


PICTURES = {
    "heads": [whose_columns_are_whose],
    "reshape": [follow_one_word, glue_one_word],
    "fused": [four_heads_four_jobs],
    "proof": [one_answer_in_two_spellings],
}
