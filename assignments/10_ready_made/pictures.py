"""Pictures of ready-made parts beside those by hand, drawn from the student's own code."""

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from autograder.checks import pictured

BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#999999"
B, T, S, C, H, FF = 2, 8, 6, 12, 3, 24
WORDS = ["the", "moon", "told", "a", "story", "of", "the", "sea"]
SENTENCE = "the counting sun counted words, and the moon listened"
GERMAN = "die zählende Sonne zählte Wörter, und der Mond hörte zu"
TEXT = """\
the sun came in and counted the words on the floor, and the words listened to the sun. the moon came in and told
the words a story about the sea, and the words listened to the moon. the sun counted, the moon told, and the words
on the floor listened, and listened, and knew a story about the moon and the sea and the counting sun.
"""


def filled(module, dice: torch.Generator):
    """The module with fixed numbers everywhere, in float64 and eval mode."""
    module.double()
    module.eval()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=dice, dtype=torch.float64) / C**0.5)
    return module


def numbers(dice: torch.Generator, *shape: int) -> Tensor:
    return torch.randn(*shape, generator=dice, dtype=torch.float64)


def compare(axes: Axes, by_hand: Tensor, ready_made: Tensor, title: str) -> None:
    """Every number as a dot: by hand from left to right, ready-made from bottom to top."""
    across, up = by_hand.detach().flatten().double(), ready_made.detach().flatten().double()
    apart = (across - up).abs().max().item()
    ends = [min(across.min(), up.min()).item(), max(across.max(), up.max()).item()]
    axes.plot(ends, ends, color=GREY, lw=1, zorder=1)
    same = apart < 1e-9
    axes.scatter(across, up, s=9, color=BLUE if same else ORANGE, marker="o" if same else "x", zorder=2)
    verdict = "the same" if same else f"up to {apart:.2g} apart"
    axes.set_title(f"{title}: {verdict}", loc="left", fontsize=10)
    axes.set_xlabel("by hand")
    axes.set_ylabel("ready-made")


def both_attentions(student) -> tuple[Figure, str]:
    """All dots lie on the line: each number of PyTorch's output is the number that attention by hand gives.

    Left, without a mask; right, with a causal mask.
    """
    dice = torch.Generator().manual_seed(1)
    fused = filled(student.FusedMultiHeadAttention(C, H), dice)
    layer, x = student.to_torch_attention(fused), numbers(dice, B, T, C)
    blocked = torch.ones(T, T, dtype=torch.bool).triu(1)
    figure = Figure(figsize=(8, 3.9), layout="constrained")
    free, causal = figure.subplots(1, 2)
    compare(free, fused(x), layer(x, x, x)[0], "No mask")
    compare(causal, fused(x, ~blocked), layer(x, x, x, attn_mask=blocked)[0], "The past only")
    return figure, pictured.sentence(*(axes.get_title(loc="left") for axes in figure.axes))


def four_blocks(student) -> tuple[Figure, str]:
    """All dots lie on the line in all four panels. The axes of pre-norm reach further: its stream may grow."""
    figure = Figure(figsize=(8, 7), layout="constrained")
    wirings = (("TransformerEncoderBlock", "Post-norm"), ("PreNormBlock", "Pre-norm"))
    for row, (name, wiring) in zip(figure.subplots(2, 2), wirings):
        for axes, activation in zip(row, ("relu", "gelu")):
            dice = torch.Generator().manual_seed(2)
            block = filled(getattr(student, name)(C, H, FF, activation=activation, eps=1e-3), dice)
            layer, x = student.to_torch_encoder_layer(block), numbers(dice, B, T, C)
            layer.eval()
            compare(axes, block(x), layer(x), f"{wiring}, {activation}")
    return figure, pictured.sentence(*(axes.get_title(loc="left") for axes in figure.axes))


def who_hides_the_future(student) -> tuple[Figure, str]:
    """Left, with tgt_mask, nothing above the diagonal is lit. Right, without it, the future shines in."""
    dice = torch.Generator().manual_seed(3)
    layer = student.to_torch_decoder_layer(filled(student.DecoderBlock(C, H, FF), dice))
    layer.eval()
    y, memory = numbers(dice, T, C), numbers(dice, 1, S, C)
    hidden = torch.ones(T, T, dtype=torch.bool).triu(1)
    figure = Figure(figsize=(8.4, 4.6), layout="constrained")
    with_mask, without = figure.subplots(1, 2)
    draw_reaction(with_mask, reaction(lambda y, m: layer(y, m, tgt_mask=hidden), y, memory), "With tgt_mask")
    draw_reaction(without, reaction(layer, y, memory), "Without")
    return figure, pictured.sentence(
        *(
            f"{axes.get_title(loc='left')}, {pictured.image(axes, WORDS, WORDS, diagonal=True)}"
            for axes in figure.axes
        ),
    )


def reaction(layer, y: Tensor, memory: Tensor) -> Tensor:
    """How strongly output t moves when word s is nudged.  (T, T)"""
    nudged = y.repeat(T, 1, 1)  # (T, T, C)
    nudged[range(T), range(T)] += 0.1
    with torch.no_grad():
        moved = layer(nudged, memory.expand(T, -1, -1)) - layer(y.unsqueeze(0), memory)
    return moved.norm(dim=-1).T  # row t, column s


def draw_reaction(axes: Axes, light: Tensor, title: str) -> None:
    dark = light < 1e-9
    axes.set_facecolor("black")
    axes.imshow(light.masked_fill(dark, float("nan")), cmap="cividis", vmin=0)
    axes.step([-0.5, *(s + 0.5 for s in range(T))], [-0.5, *(s - 0.5 for s in range(T))], color="white", lw=2)
    leaks = int((~dark).triu(1).sum())
    axes.set_title(f"{title}: {leaks} leaks" if leaks else f"{title}: no leak", loc="left", fontsize=10)
    axes.set_xticks(range(T), WORDS, rotation=45, ha="right", rotation_mode="anchor")
    axes.set_yticks(range(T), WORDS)
    axes.set_xlabel("when this word changes …")
    axes.set_ylabel("… how does this output react?")


def turned_weights_and_twins(student) -> tuple[Figure, str]:
    """The standing weight is the lying one, turned over its diagonal. Each blue bar has a hatched twin of its height."""
    dice = torch.Generator().manual_seed(4)
    model = filled(student.TransformerLanguageModel(10, C, T, H, num_layers=1), dice)
    gpt2 = student.to_hugging_face_gpt2(model)
    gpt2.eval()
    figure = Figure(figsize=(10, 3.8), layout="constrained")
    ours, theirs, bars = figure.subplots(1, 3, width_ratios=[1.7, 0.7, 1.8])
    weight = model.blocks[0].ff[2].weight.detach()  # (C, 4C)
    turned = gpt2.transformer.h[0].mlp.c_proj.weight.detach()  # (4C, C)
    reach = weight.abs().max()
    ours.imshow(weight, cmap="PuOr", vmin=-reach, vmax=reach)
    ours.set(title="by hand: nn.Linear", xlabel="in", ylabel="out")
    theirs.imshow(turned, cmap="PuOr", vmin=-reach, vmax=reach)
    theirs.set(title="GPT-2: Conv1D", xlabel="out", ylabel="in")
    ids = torch.tensor([[3, 1, 4, 1, 5]])
    with torch.no_grad():
        pair = model(ids)[0, -1].softmax(0), gpt2(ids, use_cache=False)["logits"][0, -1].softmax(0)
    for shift, probabilities, color, name in zip((-0.2, 0.2), pair, (BLUE, ORANGE), ("by hand", "GPT-2")):
        hatch = None if color == BLUE else "///"
        bars.bar(
            torch.arange(10) + shift, probabilities, 0.4, color=color, label=name, hatch=hatch, edgecolor="white"
        )
    bars.set(title="the next word after 3 1 4 1 5", xlabel="word", ylabel="probability")
    bars.set_xticks(range(10))
    bars.legend(frameon=False)
    return figure, pictured.sentence(
        f"Of the first weight, {pictured.image(ours, 'out', 'in')}",
        f"Of the second, {pictured.image(theirs, 'in', 'out')}",
        f"The likeliest: {pictured.largest(pair[0], 'word')} by hand, {pictured.largest(pair[1], 'word')} in GPT-2",
    )


def tokens_for_a_hundred_letters(student, merges: int = 80) -> tuple[Figure, str]:
    """The English curve begins at 100, where every letter is a token, and falls to about 20. The German one hardly falls.

    It begins above 100, because ä and ö are two bytes. Below, the English sentence is cut with all the merges: frequent
    words are one token, with the space before them.
    """
    learned = student.train_bpe(TEXT, merges)
    counts = range(len(learned) + 1)
    figure = Figure(figsize=(8.4, 4.6), layout="constrained")
    axes = figure.subplots()
    for sentence, color, style, name in ((SENTENCE, BLUE, "-", "English"), (GERMAN, ORANGE, "--", "German")):
        lengths = [100 * len(student.encode(sentence, learned[:count])) / len(sentence) for count in counts]
        axes.plot(counts, lengths, color=color, ls=style, lw=2, label=name)
        axes.annotate(f" {lengths[-1]:.0f}", (counts[-1], lengths[-1]), va="center", color=color)
    cut = "|".join(student.decode([token]).replace(" ", "␣") for token in student.encode(SENTENCE, learned))
    axes.set(xlabel=f"merges\n\n{cut}", ylabel="tokens for a hundred letters", ylim=(0, None))
    axes.set_title("What training on an English text does to two languages", loc="left")
    axes.legend(frameon=False)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return figure, pictured.sentence(pictured.lines(axes), f"With all merges: {cut}")


PICTURES = {
    "attention": [both_attentions],
    "encoder": [four_blocks],
    "decoder": [who_hides_the_future],
    "gpt2": [turned_weights_and_twins],
    "bpe": [tokens_for_a_hundred_letters],
}
SLIDERS = {tokens_for_a_hundred_letters: {"merges": (20, 40, 80)}}
