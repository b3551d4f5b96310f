"""Pictures of attention with a cache, drawn from the student's own code."""

import time

import torch
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from torch import Tensor

BLUE, ORANGE = "#0072B2", "#D55E00"
NEW, PAST = 3, 5


def rectangle_in_the_square(student) -> Figure:
    """The rectangle on the right holds the same squares as the framed rows on the left."""
    figure = Figure(figsize=(8.4, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    draw_mask(left, student.causal_mask(PAST + NEW), f"the whole text: causal_mask({PAST + NEW})", 0)
    draw_mask(right, student.causal_mask(NEW, PAST), f"its last words: causal_mask({NEW}, {PAST})", PAST)
    edges = [-0.45, PAST + NEW - 0.55, PAST - 0.45]
    frame_x = [edges[0], edges[1], edges[1], edges[0], edges[0]]
    frame_y = [edges[2], edges[2], edges[1], edges[1], edges[2]]
    left.plot(frame_x, frame_y, color=ORANGE, linewidth=3)
    return figure


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


def pieces_against_the_whole(student) -> Figure:
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
    return figure


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


def one_more_word(student) -> Figure:
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
    return figure


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


PICTURES = {
    "mask": [rectangle_in_the_square],
    "attention": [pieces_against_the_whole],
    "writing": [one_more_word],
}
