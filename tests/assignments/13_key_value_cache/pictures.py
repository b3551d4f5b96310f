"""Pictures of attention with a cache, drawn from the student's own code."""

import time

import torch
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from torch import Tensor

from autograder.checks import pictured

BLUE, ORANGE = "#0072B2", "#D55E00"
NEW, PAST = 3, 5
MODELS = {  # layers, kept heads, numbers in a head, the longest text, its colour
    "GPT-2 small": (12, 12, 64, 1024, "#999999"),
    "Falcon 7B": (32, 1, 64, 2048, "#009E73"),
    "Llama 2 7B": (32, 32, 128, 4096, ORANGE),
    "Llama 2 70B": (80, 8, 128, 4096, "#CC79A7"),
    "Llama 3.1 8B": (32, 8, 128, 131_072, BLUE),
}


def rectangle_in_the_square(student) -> tuple[Figure, str]:
    """The rectangle on the right holds the same squares as the framed rows on the left."""
    figure = Figure(figsize=(8.4, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    draw_mask(left, student.causal_mask(PAST + NEW), f"the whole text: causal_mask({PAST + NEW})", 0)
    draw_mask(right, student.causal_mask(NEW, PAST), f"its last words: causal_mask({NEW}, {PAST})", PAST)
    edges = [-0.45, PAST + NEW - 0.55, PAST - 0.45]
    frame_x = [edges[0], edges[1], edges[1], edges[0], edges[0]]
    frame_y = [edges[2], edges[2], edges[1], edges[1], edges[2]]
    left.plot(frame_x, frame_y, color=ORANGE, linewidth=3)
    return figure, pictured.sentence(
        *(
            f"{side}, {pictured.image(axes, 'row', 'word', diagonal=True)}"
            for side, axes in (("left", left), ("right", right))
        ),
    )


def draw_mask(axes: Axes, mask: Tensor, title: str, first: int) -> None:
    """A dark square means "may attend to"; rows are the queries, numbered from the first."""
    mask = mask.detach().double()
    axes.imshow(mask, cmap="Blues", vmin=0, vmax=1.4)
    for row, line in enumerate(mask.tolist()):
        for column, allowed in enumerate(line):
            axes.text(
                column, row, {1.0: "✓", 0.0: "·"}.get(allowed, f"{allowed:.3g}"), ha="center", va="center"
            )
    if first:
        axes.axvline(first - 0.5, color="black", linewidth=2)
        axes.text(first / 2 - 0.5, -0.7, "in the cache", ha="center")
        axes.text(first + (mask.shape[1] - first) / 2 - 0.5, -0.7, "new", ha="center")
    axes.set_xticks(range(mask.shape[1]))
    axes.set_yticks(range(len(mask)), [str(first + row) for row in range(len(mask))])
    axes.set(xlabel="… attend to word s?", ylabel="may word t …")
    axes.set_title(title, loc="left", fontsize=10, pad=18 if first else 6)


def pieces_against_the_whole(student) -> tuple[Figure, str]:
    """Dark everywhere: in whatever pieces a text is read, its outputs are those of the whole text."""
    apart = differences(student, T=12)  # (T, T)
    T = len(apart)
    wrong = int((apart > 1e-6).sum() + apart.isnan().sum())
    figure = Figure(figsize=(6.4, 4.6), layout="constrained")
    axes = figure.subplots()
    film = LogNorm(1e-8, 10.0)
    image = axes.imshow(apart.clamp(1e-8, 10.0), cmap="cividis", norm=film, interpolation="nearest")
    for size in range(1, T + 1):  # a white line where one piece ends and the next begins
        for end in range(size, T, size):
            axes.plot([end - 0.5] * 2, [size - 1.5, size - 0.5], color="white", linewidth=1.5)
    axes.set_xticks(range(T))
    axes.set_yticks(range(T), [str(size) for size in range(1, T + 1)])
    axes.set(xlabel="word of the text", ylabel="words in a piece")
    found = (
        f"{wrong} of {T * T} outputs are others than in the whole text" if wrong else "Pieces and whole agree"
    )
    axes.set_title(found, loc="left", fontsize=11)
    figure.colorbar(image, ax=axes, label="difference from the whole text", extend="both")
    return figure, pictured.sentence(
        f"Of the differences, "
        f"{pictured.cells(apart, [f'pieces of {size}' for size in range(1, T + 1)], 'word', 1e-6)}",
    )


def differences(student, T: int) -> Tensor:
    """How far the output for word t is off when the text is read in pieces of each size: (T, T)."""
    dice = torch.Generator().manual_seed(5)
    attention = student.CachedAttention(20, 4).double()
    with torch.no_grad():
        for _, parameter in sorted(attention.named_parameters()):
            parameter.copy_(torch.randn(parameter.shape, generator=dice) / 3)
        text = torch.randn(1, T, 20, generator=dice).double()  # (1, T, C)
        whole, _ = attention(text)  # (1, T, C)
        rows = []
        for size in range(1, T + 1):
            outputs, cache = [], None
            for piece in text.split(size, dim=1):
                output, cache = attention(piece, cache)  # (1, size, C)
                outputs.append(output)
            rows.append((torch.cat(outputs, dim=1) - whole).abs().amax(dim=-1)[0])  # (T,)
    return torch.stack(rows)


def one_more_word(student) -> tuple[Figure, str]:
    """Without a cache the time for one more word climbs; with it, it stays low. The price is on the right.

    Both are measured live, so the lines may be a little rough; a grader's sandbox adds its own time to both.
    """
    lengths = [16, *range(128, 1025, 128)]
    with_cache, without, held = measure(student, lengths)
    figure = Figure(figsize=(9, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.plot(lengths, without, "o-", color=ORANGE, label="read everything again")
    left.plot(lengths, with_cache, "s-", color=BLUE, label="with the cache")
    left.set(xlabel="words so far", ylabel="milliseconds for one more word", ylim=(0, None))
    times = without[-1] / with_cache[-1]
    left.set_title(f"Time: after {lengths[-1]} words, {times:.0f} to 1", loc="left", fontsize=10)
    left.legend(frameon=False)
    right.plot(lengths, held, "s-", color=BLUE)
    right.set(xlabel="words so far", ylabel="kibibytes in the cache", ylim=(0, None))
    right.set_title("Memory: the cache of one layer", loc="left", fontsize=10)
    return figure, pictured.sentence(
        pictured.lines(left, "milliseconds"),
        pictured.curve(held, "the cache", lengths),
    )


def measure(student, lengths: list[int]) -> tuple[list[float], list[float], list[float]]:
    """Milliseconds for one more word with and without a cache, and the size of the cache in kibibytes."""
    attention = student.CachedAttention(32, 4)
    texts = [torch.randn(1, T + 1, 32) for T in lengths]  # (1, T + 1, C)
    with torch.no_grad():
        caches = [attention(text[:, :-1])[1] for text in texts]
        held = [sum(kept.numel() * kept.element_size() for kept in cache) / 1024 for cache in caches]
        with_cache = fastest(attention, [(text[:, -1:], cache) for text, cache in zip(texts, caches, strict=True)])
        without = fastest(attention, [(text,) for text in texts])
    return with_cache, without, held


def fastest(attention, calls: list[tuple]) -> list[float]:
    """The milliseconds of each call, the best of four rounds: whatever else goes on can only slow a call down."""
    best = [float("inf")] * len(calls)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # several would wait for one another on a busy machine
    try:
        for _ in range(4):
            for i, inputs in enumerate(calls):
                begin = time.perf_counter()
                attention(*inputs)
                best[i] = min(best[i], 1000 * (time.perf_counter() - begin))
    finally:
        torch.set_num_threads(threads)
    return best


def who_shares_with_whom(student) -> tuple[Figure, str]:
    """Six heads that ask and three that are kept: in each column, a group of two heads is filled, and nothing else."""
    moved = influence(student)  # (H, G)
    figure = Figure(figsize=(5.2, 4.4), layout="constrained")
    axes = figure.subplots()
    axes.imshow(moved > 1e-9, cmap="Blues", vmin=0, vmax=1.4)
    for asking, row in enumerate(moved.tolist()):
        for kept, change in enumerate(row):
            axes.text(kept, asking, "✓" if change > 1e-9 else "·", ha="center", va="center")
    axes.set_xticks(range(moved.shape[1]))
    axes.set_yticks(range(len(moved)))
    axes.set(xlabel="… when kept head g is another one?", ylabel="does the output of head h move …")
    axes.set_title("6 heads that ask, 3 that are kept", loc="left", fontsize=10)
    return figure, pictured.sentence(
        *(f"kept head {kept} moves the heads {pictured.places(column)}" for kept, column in enumerate(moved.T)),
    )


def influence(student) -> Tensor:
    """How far the output of each head moves when one kept head of a cache is changed: (H, G)."""
    dice = torch.Generator().manual_seed(5)
    attention = student.GroupedQueryAttention(24, 6, 3).double()
    word = torch.randn(1, 1, 24, generator=dice).double()  # (1, 1, C)
    keys, values = torch.randn(2, 1, 3, 4, 4, generator=dice).double()  # (1, G, 4, D)
    with torch.no_grad():
        for _, parameter in sorted(attention.named_parameters()):
            parameter.copy_(torch.randn(parameter.shape, generator=dice) / 3)
        attention.proj.weight.copy_(torch.eye(24))
        before, _ = attention(word, (keys, values))  # (1, 1, C)
        columns = []
        for kept in range(3):
            changed = keys.clone()
            changed[:, kept] += 1 + torch.randn(4, 4, generator=dice).double()
            after, _ = attention(word, (changed, values))  # (1, 1, C)
            columns.append((after - before).unflatten(-1, (6, 4)).abs().amax(dim=-1).flatten())  # (H,)
    return torch.stack(columns, dim=1)


def caches_of_models(student) -> tuple[Figure, str]:
    """Each model's line ends at its longest text. The same model without groups would lie as many times higher as
    several heads share one key: eight times for the largest.
    """
    figure = Figure(figsize=(7.6, 4.6), layout="constrained")
    axes = figure.subplots()
    for name, (layers, kept, numbers, longest, colour) in MODELS.items():
        lengths = [2**power for power in range(7, longest.bit_length())]
        bytes_kept = [student.cache_bytes(layers, kept, numbers, length, 2) for length in lengths]
        draw_cache(axes, lengths, bytes_kept, colour, "-", f"{name}, G = {kept}")
    lengths = [2**power for power in range(7, 13)]
    bytes_kept = [student.cache_bytes(80, 64, 128, length, 2) for length in lengths]
    draw_cache(axes, lengths, bytes_kept, "#CC79A7", ":", "Llama 2 70B, if G were 64")
    axes.axhline(24 * 2**30, color="black", linewidth=1, linestyle="--")
    axes.text(2**7, 24 * 2**30 * 1.15, "all the memory of a graphics card of 24 GiB", fontsize=8)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=10)
    axes.set(xlabel="words of one text", ylabel="cache in MiB (2 bytes for each number)")
    axes.yaxis.set_major_formatter(lambda size, _: f"{size / 2**20:,.3g}" if size < 2**20 else f"{size / 2**20:,.0f}")
    axes.set_yticks([2**20 * 10**power for power in range(6)])
    axes.minorticks_off()
    axes.set_xticks([2**power for power in range(7, 18, 2)], [f"{2**power:,}" for power in range(7, 18, 2)])
    axes.set_ylim(2**19, 2**37)
    named = [line for line in axes.get_lines() if "G" in str(line.get_label())]
    axes.legend(frameon=False, fontsize=8, loc="lower right")
    return figure, pictured.sentence(
        f"In MiB, at the longest text: "
        f"{pictured.listed([line.get_ydata()[-1] / 2**20 for line in named], [line.get_label() for line in named])}",
    )


def draw_cache(axes: Axes, lengths: list[int], sizes: list[int], colour: str, line: str, label: str) -> None:
    """One model: a line, and a dot at its longest text."""
    axes.plot(lengths, sizes, line, color=colour, linewidth=2, label=label)
    axes.plot(lengths[-1:], sizes[-1:], "o", color=colour)


def keys_by_and_by(student) -> tuple[Figure, str]:
    """The line wanders while keys are read, and ends on the dashed one, where the whole table leads as well.

    Right, the curve falls with the size of a block, and crosses the dashed line of the whole table between 64 and 128.
    """
    dice = torch.Generator().manual_seed(11)
    q, k, v = (torch.randn(size, 3, generator=dice).double() for size in (1, 64, 64))
    counts = range(4, 65, 4)
    seen = [student.blockwise_attention(q, k[:count], v[:count], 4)[0, 0].item() for count in counts]
    whole = (torch.softmax(q @ k.T / 3**0.5, dim=-1) @ v)[0, 0].item()
    figure = Figure(figsize=(9, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.plot(counts, seen, "o-", color=BLUE, markersize=4)
    left.axhline(whole, color=ORANGE, linestyle="--")
    left.text(4, whole, "the whole table", color=ORANGE, va="bottom")
    left.set(xlabel="keys that were read, in blocks of 4", ylabel="first number of the output")
    sizes = [2**power for power in range(5, 13)]
    moved = [student.bytes_moved(4096, 4096, 128, size, 2) for size in sizes]
    right.plot(sizes, [blocks / 1e6 for _, blocks in moved], "o-", color=BLUE, markersize=4)
    right.axhline(moved[0][0] / 1e6, color=ORANGE, linestyle="--")
    right.text(sizes[-1], moved[0][0] / 1e6, "the whole table", color=ORANGE, va="bottom", ha="right")
    right.set_xscale("log", base=2)
    right.set_xticks(sizes, [str(size) for size in sizes])
    right.set(xlabel="keys in a block", ylabel="megabytes moved", ylim=(0, None))
    return figure, pictured.sentence(
        pictured.curve(seen, "the output", counts),
        pictured.curve([blocks / 1e6 for _, blocks in moved], "what is moved", sizes),
    )


PICTURES = {
    "mask": [rectangle_in_the_square],
    "attention": [pieces_against_the_whole],
    "writing": [one_more_word],
    "groups": [who_shares_with_whom, caches_of_models],
    "blocks": [keys_by_and_by],
}
