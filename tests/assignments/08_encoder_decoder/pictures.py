"""Pictures of encoder and decoder, drawn from the student's own code."""

import torch
import torch.nn.functional as F
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from torch import Tensor, nn

from autograder.checks import pictured

ENGLISH, FRENCH = ["I", "love", "you"], ["Je", "t'", "aime"]
PAD, BOS, EOS = 0, 1, 2
INK, QUIET, WARM = "#222222", "#B0B0B0", "#E69F00"


# -- cross-attention ----------------------------------------------------------------------------


def who_looks_where(student) -> tuple[Figure, str]:
    """A row for each French word, a column for each English one: *t'* and *aime* cross. Each row adds up to
    100. On the right the padded slot stays empty, and nothing else has changed."""
    figure = Figure(figsize=(7.4, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    weights = looks(student, slots=3, padded=0)                                 # (T, S)
    padded = looks(student, slots=4, padded=1)                                 # (T, S + 1)
    draw_looks(left, weights, ENGLISH, "The memory as it is")
    draw_looks(right, padded, [*ENGLISH, "PAD"], "With a padded slot")
    left.set_ylabel("the word that is written …")
    return figure, pictured.sentence(
        pictured.cells(weights, FRENCH, ENGLISH, 0.005),
        f"With a padded slot, {pictured.cells(padded, FRENCH, [*ENGLISH, 'PAD'], 0.005)}",
        f"The padded slot gets {pictured.span(padded[:, 3:])}",
    )


def looks(student, slots: int, padded: int) -> Tensor:
    """The attention weights: the memory's words are one-hot, so the output is the table of weights.  (T, S)"""
    cross = student.CrossAttention(4, 1).double()
    partners = torch.zeros(4, 4, dtype=torch.float64)
    partners[0, 0] = partners[2, 1] = partners[1, 2] = 6.0                     # Je–I, t'–you, aime–love
    with torch.no_grad():
        for name, parameter in cross.named_parameters():
            parameter.copy_(torch.zeros(4) if name.endswith("bias") else torch.eye(4))
        cross.query.weight.copy_(partners)
    words = torch.eye(4, dtype=torch.float64).unsqueeze(0)                     # (1, 4, 4)
    mask = torch.arange(slots).unsqueeze(0) >= slots - padded if padded else None
    return cross(words[:, :3], words[:, :slots], mask)[0, :, :slots].detach()


def draw_looks(axes: Axes, weights: Tensor, columns: list[str], title: str) -> None:
    axes.imshow(weights, cmap="Blues", vmin=0, vmax=1)
    for t, row in enumerate(weights.tolist()):
        for s, weight in enumerate(row):
            text = "·" if weight == 0 else f"{100 * weight:.0f}"
            axes.text(s, t, text, ha="center", va="center", color="white" if weight > 0.6 else INK)
    axes.set_xticks(range(len(columns)), columns)
    axes.set_yticks(range(len(FRENCH)), FRENCH)
    axes.set_xlabel("… attends to this word (percent)")
    axes.set_title(title, loc="left", fontsize=11)


# -- the decoder block --------------------------------------------------------------------------


def two_xrays(student) -> tuple[Figure, str]:
    """Left, nothing glows above the diagonal: no output reacts to a word that is written later. Right, all
    of the memory is lit from the first row on, and only the two padded slots are dark."""
    of_words, of_memory = reactions(student, T=6, S=8, C=12, padded=2)         # (T, T), (T, S)
    figure = Figure(figsize=(8.6, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    steps = range(len(of_words))
    draw_xray(left, of_words, "when written word s changes …")
    left.step([-0.5, *(s + 0.5 for s in steps)], [-0.5, *(s - 0.5 for s in steps)], color="white", lw=2)
    left.set_ylabel("… how strongly does output t react?")
    leaks = bool(of_words.triu(1).any())
    left.set_title("The future leaks!" if leaks else "Looking back", loc="left", fontsize=11)
    draw_xray(right, of_memory, "when memory word s changes …")
    right.set_xticks(range(8), [*"012345", "PAD", "PAD"])
    leaks, dark = bool(of_memory[:, -2:].any()), bool((of_memory[:, :-2] == 0).any())
    finding = "Padding leaks!" if leaks else "Parts of the memory are dark!" if dark else "Looking across"
    right.set_title(finding, loc="left", fontsize=11)
    return figure, pictured.sentence(
        f"Left, {pictured.cells(of_words, 'output', 'written word', 0, diagonal=True)}",
        f"Right, {pictured.cells(of_memory, 'output', 'memory word', 0)}",
        f"In its padded slots, {pictured.cells(of_memory[:, -2:], 'output', 'slot', 0)}",
    )


def reactions(student, T: int, S: int, C: int, padded: int) -> tuple[Tensor, Tensor]:
    """Sizes of the derivatives of each output word after each written and each memory word."""
    dice = torch.Generator().manual_seed(3)
    block = student.DecoderBlock(C, 3, 31, 0.0).double()
    block.eval()
    with torch.no_grad():
        for name, parameter in sorted(block.named_parameters()):
            fresh = torch.randn(parameter.shape, generator=dice, dtype=torch.float64) / C**0.5
            parameter.copy_(torch.ones(C) if name in NORMS else fresh)
    y = torch.randn(T, C, generator=dice, dtype=torch.float64).repeat(T * C, 1, 1).requires_grad_()
    memory = torch.randn(S, C, generator=dice, dtype=torch.float64).repeat(T * C, 1, 1).requires_grad_()
    mask = (torch.arange(S) >= S - padded).expand(T * C, S)
    each = torch.arange(T * C)                                                 # one copy for each number
    outputs = block(y, memory, mask)                                           # (T·C, T, C)
    asked = outputs[each, each // C, each % C].sum()
    gradients = torch.autograd.grad(asked, (y, memory), materialize_grads=True)
    return tuple(g.reshape(T, C, -1, C).pow(2).sum(dim=(1, 3)).sqrt() for g in gradients)


NORMS = ("norm1.weight", "norm2.weight", "norm3.weight")


def draw_xray(axes: Axes, light: Tensor, label: str) -> None:
    axes.set_facecolor("black")
    shining = light[light > 0]
    low, high = (shining.min().item(), shining.max().item()) if len(shining) else (0.1, 1.0)
    film = LogNorm(0.3 * max(low, 1e-6 * high), high)                          # the dimmest light is not black
    axes.imshow(light.masked_fill(light == 0, float("nan")), cmap="cividis", norm=film)
    axes.set_xticks(range(light.shape[1]))
    axes.set_yticks(range(light.shape[0]))
    axes.set_xlabel(label)


# -- the translator -----------------------------------------------------------------------------

LETTERS, WORD_LENGTH = 8, 5


def alignment_while_learning(student) -> tuple[Figure, str]:
    """How much the probability of each right letter falls when a source letter is covered. Nothing at first;
    at the end the anti-diagonal, since the first letter to write is the last one read."""
    torch.manual_seed(4)
    translator = student.Translator(3 + LETTERS, 32, 2, 1, 64, WORD_LENGTH + 1)
    start_afresh(translator)
    optimizer = torch.optim.Adam(translator.parameters(), lr=4e-3)
    stops, maps = (0, 15, 30, 100), []
    for step in range(stops[-1] + 1):
        if step in stops:
            maps.append(thumb_test(translator))
        learn(student, translator, optimizer)
    figure = Figure(figsize=(9, 3), layout="constrained")
    row = figure.subplots(1, len(stops))
    for axes, stop, alignment in zip(row, stops, maps):
        image = axes.imshow(alignment, cmap="Blues", vmin=0, vmax=1)
        axes.set_xticks(range(WORD_LENGTH), "words")
        axes.set_yticks(range(WORD_LENGTH), "sdrow")
        axes.set_xlabel("letter covered")
        axes.set_title(f"after {stop} steps", fontsize=10)
    row[0].set_ylabel("letter written")
    figure.colorbar(image, ax=list(row), label="lost probability", shrink=0.8)
    return figure, pictured.sentence(
        *(
            f"after {stop} steps, {pictured.cells(alignment, 'letter written', 'letter covered', 0.1)}"
            for stop, alignment in list(zip(stops, maps))[1::2]
        ),
    )


def start_afresh(module) -> None:
    """Fresh numbers that do not depend on how the module was built."""
    dice = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for name, parameter in sorted(module.named_parameters()):
            fresh = torch.randn(parameter.shape, generator=dice) / parameter.shape[-1] ** 0.5
            ones = torch.full(parameter.shape, float("norm" in name and name.endswith("weight")))
            parameter.copy_(fresh if parameter.ndim > 1 else ones)


def words(B: int) -> tuple[Tensor, Tensor]:
    """Random words, and the same backwards with an EOS.  -> (B, S), (B, S + 1)"""
    src = torch.randint(3, 3 + LETTERS, (B, WORD_LENGTH))
    return src, F.pad(src.flip(1), (0, 1), value=EOS)


def learn(student, translator, optimizer) -> None:
    src, targets = words(64)
    logits = translator(src, student.shift_right(targets, BOS))                # (B, T, V)
    loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def thumb_test(translator) -> Tensor:
    """How much the probability of the right letter t falls when letter s is covered, on average.  (S, S)"""
    src, targets = words(32)
    with torch.no_grad():
        memory = translator.encode(src)                                        # (B, S, C)
        y = F.pad(targets[:, :WORD_LENGTH], (1, 0), value=BOS)                 # (B, T)

        def of_right(covered: Tensor) -> Tensor:
            probabilities = translator.decode(y, memory, covered).softmax(dim=-1)     # (B, T, V)
            return probabilities.gather(-1, targets.unsqueeze(-1)).mean(dim=0)[:WORD_LENGTH, 0]

        nothing = torch.zeros_like(src, dtype=torch.bool)                      # (B, S)
        thumbs = [nothing.index_fill(1, torch.tensor(s), True) for s in range(WORD_LENGTH)]
        return torch.stack([of_right(nothing) - of_right(thumb) for thumb in thumbs], dim=1)


# -- greedy decoding ----------------------------------------------------------------------------

VOCABULARY = ["PAD", "BOS", "EOS", "Je", "t'", "aime", "adore", "vous"]
LIKELY = {  # what the make-believe translator finds likely after the words so far
    (): {"Je": 0.82, "t'": 0.08, "vous": 0.05},
    ("Je",): {"t'": 0.55, "vous": 0.31, "aime": 0.08},
    ("Je", "t'"): {"aime": 0.62, "adore": 0.33},
    ("Je", "t'", "aime"): {"EOS": 0.9, "Je": 0.05},
}


class MakeBelieve(nn.Module):
    """Translates one sentence only, and records what it read and the probabilities that it gave."""

    def __init__(self) -> None:
        super().__init__()
        self.steps: list[tuple[list[str], list[float]]] = []

    def encode(self, src: Tensor, src_padding_mask: Tensor | None = None) -> Tensor:
        return torch.zeros(*src.shape, 1)

    def decode(self, y: Tensor, memory: Tensor, memory_padding_mask: Tensor | None = None) -> Tensor:
        asked = [VOCABULARY[i] for i in y[0].tolist()]
        probabilities = [self.probabilities(asked[1 : t + 1]) for t in range(len(asked))]
        self.steps.append((asked, probabilities[-1]))
        return torch.tensor([probabilities]).log().expand(len(y), -1, -1)             # (B, T, V)

    def probabilities(self, so_far: list[str]) -> list[float]:
        likely = LIKELY.get(tuple(so_far), {"vous": 0.4, "Je": 0.3, "adore": 0.2})
        rest = (1 - sum(likely.values())) / (len(VOCABULARY) - len(likely))
        return [likely.get(word, rest) for word in VOCABULARY]


def step_by_step(student) -> tuple[Figure, str]:
    """Each column is one step. The orange bar is the word that was taken; in the next column the decoder
    reads it. The last word is EOS, and nothing comes after it."""
    model = MakeBelieve()
    written = student.greedy_decode(model, torch.tensor([[3, 4, 5]]), BOS, EOS, PAD, 6)[0].tolist()
    figure = Figure(figsize=(9.4, 3.6), layout="constrained")
    row = figure.subplots(1, max(len(model.steps), 1), sharey=True, squeeze=False)[0]
    for axes, (step, (asked, probabilities)) in zip(row, enumerate(model.steps)):
        taken = VOCABULARY[written[step]] if step < len(written) else None
        colors = [WARM if word == taken else QUIET for word in VOCABULARY]
        axes.barh(range(len(VOCABULARY)), probabilities, color=colors, edgecolor=INK, lw=0.6)
        axes.set_xlim(0, 1.05)
        axes.set_yticks(range(len(VOCABULARY)), VOCABULARY)
        axes.set_xlabel("probability")
        axes.set_title("the decoder reads\n" + " ".join(asked), fontsize=9, loc="left")
    row[0].invert_yaxis()
    row[0].set_ylabel("next word")
    said = " ".join(VOCABULARY[i] for i in written).replace("' ", "'")
    figure.suptitle(f"“{' '.join(ENGLISH)}” → {said}", x=0.01, ha="left", fontsize=11)
    return figure, pictured.sentence(
        f"It asks the decoder {len(model.steps)} times and writes {said}",
        f"the decoder reads last: {' '.join(model.steps[-1][0]) if model.steps else 'nothing'}",
    )


PICTURES = {
    "cross": [who_looks_where],
    "block": [two_xrays],
    "translator": [alignment_while_learning],
    "greedy": [step_by_step],
}
