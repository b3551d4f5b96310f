"""Treemaps: where do the parameters live? Every tile's area is a number of parameters."""

from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from autograder.checks import pictured

# Okabe and Ito's colours: all different for colour-blind eyes, and from dark to light in grey.
COLOURS = {
    "words": "#0072B2",
    "positions": "#D55E00",
    "attention": "#E69F00",
    "feed-forward": "#8FCBF0",
    "the rest": "#BBBBBB",
}
INK = {"words": "white", "positions": "white"}


# ---- geometry: rectangles are (x, y, width, height) -------------------------------------------------


def squarified(sizes, box):
    """One rectangle for each of `sizes`, as square as possible, filling `box`; areas follow the sizes.

    Tiles are laid in rows along the box's shorter side. A row takes one more tile as long as that
    makes its longest tile less slim; then the row is closed and the rest of the box is filled alike.
    """
    order = sorted(range(len(sizes)), key=lambda i: -sizes[i])
    scale = box[2] * box[3] / sum(sizes)
    areas = [sizes[i] * scale for i in order]
    tiles = []
    while areas:
        side = min(box[2], box[3])
        n = 1
        while n < len(areas) and slimmest(areas[: n + 1], side) <= slimmest(areas[:n], side):
            n += 1
        row, box = row_of(areas[:n], box)
        tiles += row
        areas = areas[n:]
    return [tile for _, tile in sorted(zip(order, tiles, strict=True))]


def slimmest(areas, side):
    """How slim the slimmest tile is when these areas share one row along `side`; 1 is a square."""
    thickness = sum(areas) / side
    lengths = [area / thickness for area in areas]
    return max(max(length / thickness, thickness / length) for length in lengths)


def row_of(areas, box):
    """The tiles of one row along the shorter side of the box, and the box that is left."""
    x, y, width, height = box
    upright = height <= width
    thickness = sum(areas) / (height if upright else width)
    tiles, start = [], 0.0
    for area in areas:
        length = area / thickness
        tiles.append((x, y + start, thickness, length) if upright else (x + start, y, length, thickness))
        start += length
    if upright:
        return tiles, (x + thickness, y, width - thickness, height)
    return tiles, (x, y + thickness, width, height - thickness)


# ---- drawing --------------------------------------------------------------------------------------


def short(number):
    """23440896 -> '23.4 M', 590592 -> '0.59 M', 1536 -> '1,536'."""
    if number >= 1e7:
        return f"{number / 1e6:.1f} M"
    return f"{number / 1e6:.2f} M" if number >= 1e5 else f"{number:,}"


def draw_tile(axes, box, kind, label="", size=8):
    """One tile in its kind's colour, with a label in the middle; in a slim tile the label stands upright."""
    x, y, width, height = box
    colour = COLOURS[kind]
    axes.add_patch(Rectangle((x, y), width, height, facecolor=colour, edgecolor="white", linewidth=0.8))
    axes.text(
        x + width / 2, y + height / 2, label,
        ha="center", va="center", rotation=90 if width < 0.3 else 0,
        fontsize=size, color=INK.get(kind, "black"), linespacing=1.2,
    )


def draw_layers(axes, box, attention, feed_forward, layers):
    """All layers in one box, in reading order; each is split into attention and feed-forward."""
    boxes = squarified([attention + feed_forward] * layers, box)
    for number, layer in enumerate(sorted(boxes, key=lambda tile: (-round(tile[1], 6), tile[0])), start=1):
        first, second = squarified([attention, feed_forward], layer)
        draw_tile(axes, first, "attention", short(attention), size=6)
        draw_tile(axes, second, "feed-forward", f"layer {number}\n{short(feed_forward)}", size=6)
        x, y, width, height = layer
        axes.add_patch(Rectangle((x, y), width, height, fill=False, edgecolor="black", linewidth=0.7))


def empty_axes(figure, box, width, height):
    axes = figure.add_axes(box)
    axes.set_xlim(0, width)
    axes.set_ylim(0, height)
    axes.set_aspect("equal")
    axes.axis("off")
    return axes


def add_legend(figure, kinds):
    handles = [Patch(facecolor=COLOURS[kind], edgecolor="black", linewidth=0.5, label=kind) for kind in kinds]
    figure.legend(handles=handles, loc="lower center", ncols=len(handles), frameon=False, fontsize=8)


def where_bert_lives(student):
    """BERT-base as a floor plan: twelve layers, each two thirds feed-forward, fill most of it; one
    fifth is the table of words. Pooler and positions are small, all the rest is too small to see."""
    config = student.BertConfig()
    counts = student.count_bert(config)
    rest = counts["token_type_embeddings"] + counts["embedding_layer_norm"]
    rooms = {
        "encoder": counts["encoder"],
        "words": counts["word_embeddings"],
        "pooler": counts["pooler"],
        "positions": counts["position_embeddings"],
        "rest": rest,
    }
    rooms = {room: number for room, number in rooms.items() if number > 0}
    boxes = dict(zip(rooms, squarified(list(rooms.values()), (0, 0, 6, 3.4)), strict=True))

    figure = Figure(figsize=(6.4, 4.4))
    axes = empty_axes(figure, (0.03, 0.1, 0.94, 0.8), 6, 3.4)
    for room, box in boxes.items():
        if room == "encoder":
            draw_layers(axes, box, counts["attention"], counts["feed_forward"], config.num_hidden_layers)
        elif room == "words":
            label = f"table of words\n{config.vocab_size:,} × {config.hidden_size}\n{short(rooms[room])}"
            draw_tile(axes, box, "words", label)
        else:
            draw_tile(axes, box, "positions" if room == "positions" else "the rest")
    point_at(axes, boxes, rooms)
    figure.suptitle(title_of(counts["total"], sum(rooms.values())), fontsize=10, y=0.985)
    add_legend(figure, COLOURS)
    return figure, pictured.sentence(
        f"Your total is {short(counts['total'])}",
        ", ".join(f"{room} {short(size)}" for room, size in rooms.items()),
        f"In a layer, attention has {short(counts['attention'])} "
        f"and the feed-forward part {short(counts['feed_forward'])}",
    )


def title_of(total, drawn):
    """The total as the list says it, and a second look when the tiles add up to something else."""
    title = f"Where BERT-base keeps its {total:,} parameters"
    return title if total == drawn else f"{title}\n(but the entries of the list add up to {drawn:,})"


def point_at(axes, boxes, rooms):
    """Names for the rooms that are too small to be written into: one line above the plan, with threads."""
    small = sorted({"positions", "pooler", "rest"} & set(boxes), key=lambda room: boxes[room][0])
    for step, room in enumerate(small):
        x, y, width, height = boxes[room]
        axes.annotate(
            f"{room} {short(rooms[room])}",
            xy=(x + width / 2, y + height / 2),
            xytext=(6 - 1.05 * (len(small) - 1 - step), 3.5),
            ha="right", va="bottom", fontsize=6.5, annotation_clip=False,
            arrowprops={"arrowstyle": "-", "linewidth": 0.6, "shrinkA": 0, "shrinkB": 0},
        )


GPT2_SIZES = {
    "small": {"n_layer": 12, "n_head": 12, "n_embd": 768},
    "medium": {"n_layer": 24, "n_head": 16, "n_embd": 1024},
    "large": {"n_layer": 36, "n_head": 20, "n_embd": 1280},
    "XL": {"n_layer": 48, "n_head": 25, "n_embd": 1600},
}


def where_the_gpt2s_live(student):
    """The four GPT-2s on one scale: from small to XL the table of words shrinks from a third of the whole
    to a twentieth, and in every size the feed-forward parts are twice as big as attention."""
    configs = {name: student.GPT2Config(**sizes) for name, sizes in GPT2_SIZES.items()}
    lists = {name: student.count_gpt2(config) for name, config in configs.items()}
    largest = max(counts["total"] for counts in lists.values())

    figure = Figure(figsize=(7.6, 4.2))
    axes = empty_axes(figure, (0.02, 0.1, 0.96, 0.84), 7.4, 3.4)
    x = 0.0
    for name, counts in lists.items():
        side = 2.85 * (counts["total"] / largest) ** 0.5
        draw_gpt2(axes, (x, 0, side, side), counts, configs[name].n_layer)
        axes.text(x, side + 0.06, f"{name}\n{short(counts['total'])}", fontsize=9, va="bottom")
        x += side + 0.12
    figure.suptitle("Four sizes of GPT-2, drawn on one scale", fontsize=10, x=0.02, ha="left", y=0.96)
    add_legend(figure, [kind for kind in COLOURS if kind != "the rest"])
    return figure, pictured.sentence(
        *(
            f"{name}: {short(counts['total'])}, of which {short(counts['token_embeddings'])} words, "
            f"{short(counts['position_embeddings'])} positions; "
            f"in a block, {short(counts['attention'])} attention "
            f"and {short(counts['feed_forward'])} feed-forward"
            for name, counts in list(lists.items())[::3]
        ),
    )


def draw_gpt2(axes, box, counts, layers):
    """One GPT-2 as a square: its tables, and the same sublayer of all blocks together."""
    rooms = {
        "feed-forward": layers * counts["feed_forward"],
        "attention": layers * counts["attention"],
        "words": counts["token_embeddings"],
        "positions": counts["position_embeddings"],
    }
    rooms = {kind: number for kind, number in rooms.items() if number > 0}
    everything = sum(rooms.values())
    for kind, tile in zip(rooms, squarified(list(rooms.values()), box), strict=True):
        share = rooms[kind] / everything
        has_room = min(tile[2], tile[3]) > 0.12
        draw_tile(axes, tile, kind, f"{share:.0%}" if has_room else "")


PICTURES = {"bert": [where_bert_lives], "gpt2": [where_the_gpt2s_live]}
