"""Pictures of fine-tuning, drawn from the student's own code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import torch
import torch.nn.functional as F
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from torch import Tensor, nn

from autograder.checks import pictured

COLORS = (
    "#0072B2",
    "#D55E00",
    "#F0E442",
)  # praise, complaint, question: each with its own lightness and marker
MARKERS = ("o", "^", "s")
INK = "#333333"
SIZES = {"d_model": 32, "n_heads": 4, "n_layers": 2, "d_ff": 64, "max_len": 16, "dropout": 0.1}
LESSONS, EPOCHS = 220, 10
LORA_LAYERS = [f"layers.{layer}.linear{which}" for layer in range(2) for which in (1, 2)]


# ---------------------------------------------------------------- a short pre-training, and a short fine-tuning


class Twin(nn.Module):
    """The given encoder once more, with the same names of parameters, for pre-training it here."""

    def __init__(self, vocab_size: int) -> None:
        super().__init__()
        C, dropout = SIZES["d_model"], SIZES["dropout"]
        self.token_embedding = nn.Embedding(vocab_size, C)
        self.position_embedding = nn.Embedding(SIZES["max_len"], C)
        for table in (self.token_embedding, self.position_embedding):
            nn.init.normal_(table.weight, std=C**-0.5)
        self.norm = nn.LayerNorm(C)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(C, SIZES["n_heads"], SIZES["d_ff"], dropout, "gelu", batch_first=True)
            for _ in range(SIZES["n_layers"])
        )

    def forward(self, ids: Tensor, padding_mask: Tensor) -> Tensor:
        x = self.token_embedding(ids) + self.position_embedding.weight[: ids.shape[1]]  # (B, T, C)
        x = F.dropout(self.norm(x), SIZES["dropout"], self.training)
        for layer in self.layers:
            x = layer(x, src_key_padding_mask=padding_mask)
        return x


@contextmanager
def alone(seed: int) -> Iterator[None]:
    """Random numbers of its own, and one thread: matrices this small are slower with two."""
    threads = torch.get_num_threads()
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(threads)


def pretrained(student) -> dict[str, Tensor]:
    """The weights of an encoder after a short pre-training on the kitchen's notes."""
    ids = student.encode(student.kitchen_notes())  # (notes, T)
    asked = [*student.DISHES, *sum(student.TEMPERATURES.values(), [])]
    words = tuple(student.WORDS.index(word) for word in asked)
    return _pretrained(tuple(map(tuple, ids.tolist())), words, len(student.WORDS), student.PAD, student.MASK)


@lru_cache(maxsize=2)
def _pretrained(rows: tuple, asked: tuple, vocab_size: int, pad: int, mask: int) -> dict[str, Tensor]:
    """Dishes and temperatures, whose ids are `asked`, are hidden more often than other words: so it is done sooner."""
    ids, words = torch.tensor(rows), torch.tensor(asked)
    with alone(7):
        twin, guess = Twin(vocab_size), nn.Linear(SIZES["d_model"], vocab_size)
        optimizer = torch.optim.Adam([*twin.parameters(), *guess.parameters()], lr=5e-3)
        for _ in range(LESSONS):
            batch = ids[torch.randint(len(ids), (64,))]  # (B, T)
            place = torch.multinomial((batch > mask) + 3.0 * torch.isin(batch, words), 1)  # (B, 1)
            vectors = twin(batch.scatter(1, place, mask), batch == pad)  # (B, T, C)
            logits = guess(vectors[torch.arange(64), place[:, 0]])  # (B, V)
            loss = F.cross_entropy(logits, batch.gather(1, place)[:, 0])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return twin.state_dict()


def some_cards(student) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Ids and classes of labelled cards about every second dish, and of held-out cards about the others."""
    pairs = []
    for start, step in ((0, 5), (1, 3)):
        chosen = student.cards(student.DISHES[start::2])[::step]
        pairs.append((student.encode([text for text, _ in chosen]), torch.tensor([k for _, k in chosen])))
    return tuple(pairs)


def a_classifier(student, weights: dict[str, Tensor]) -> Any:
    """The student's classifier with mean pooling, its encoder with these weights and a head of small random ones."""
    encoder = student.Encoder(len(student.WORDS), **SIZES)
    model = student.Classifier(encoder, SIZES["d_model"], 3, pooling="mean", dropout=0.1)
    dice = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for name, parameter in model.encoder.named_parameters():
            parameter.copy_(weights[name])
        model.head.weight.copy_(0.1 * torch.randn(model.head.weight.shape, generator=dice))
        model.head.bias.zero_()
    return model


def taught(model: Any, ids: Tensor, labels: Tensor, pad: int, epochs: int, lr: float) -> Iterator[int]:
    """Trains the model in place; yields the number of each epoch when it is over."""
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=lr)
    for epoch in range(1, epochs + 1):
        model.train()
        for chosen in torch.randperm(len(ids)).split(24):
            loss = F.cross_entropy(model(ids[chosen], ids[chosen] == pad), labels[chosen])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        yield epoch


# ---------------------------------------------------------------- part 1


def what_each_position_contributes(student) -> tuple[Figure, str]:
    """How much each position contributes to the pooled vector: with "first" only one, with "mean" all real ones alike.

    Dotted frames mark padding, which contributes nothing to "mean"; in the last row there is nothing else.
    """
    lengths = torch.tensor([8, 6, 3, 1, 0])
    B, T, C = len(lengths), 8, 5
    padding = torch.arange(T).expand(B, T) >= lengths[:, None]  # (B, T)
    figure = Figure(figsize=(9, 3.4), layout="constrained")
    for axes, kind in zip(figure.subplots(1, 2), ("first", "mean")):
        dice = torch.Generator().manual_seed(3)
        hidden = torch.randn(B, T, C, generator=dice).requires_grad_()  # (B, T, C)
        (gradient,) = torch.autograd.grad(student.pool(hidden, padding, kind).sum(), hidden)
        part = gradient.mean(dim=-1)  # (B, T)
        axes.set_facecolor("red")  # shines through where the gradient is NaN
        axes.imshow(part, cmap="Blues", vmin=0, vmax=1.3)
        for row, place in padding.nonzero().tolist():
            box = Rectangle((place - 0.45, row - 0.45), 0.9, 0.9, fill=False, ec="#D55E00", lw=1.2, ls=":")
            axes.add_patch(box)
        for row, line in enumerate(part.tolist()):
            for place, value in enumerate(line):
                shown = "NaN" if value != value else f"{value:.3g}" if value else "·"
                shade = "white" if value > 0.6 else INK
                axes.text(place, row, shown, ha="center", va="center", color=shade, fontsize=8.5)
        axes.set_xticks(range(T), ["CLS", *range(1, T)])
        axes.set_yticks(range(B), [f"{n} of {T}" for n in lengths.tolist()])
        axes.set(xlabel="position (dotted: padding)", ylabel="real positions")
        axes.set_title(f'Contributions with "{kind}"', loc="left", fontsize=11)
    return figure, pictured.sentence(
        *(
            f"{kind}: {pictured.image(axes, 'row', 'position')}; "
            f"in row 2, {pictured.listed(axes.get_images()[0].get_array()[2])}"
            for kind, axes in zip(("first", "mean"), figure.axes)
        ),
    )


# ---------------------------------------------------------------- part 2


def pooled_vectors(student) -> tuple[Figure, str]:
    """The pooled vectors of held-out cards in two dimensions: on the right, three groups should have formed.

    Each mark is a card about a dish without a labelled card. On the left, the encoder is as pre-training left it.
    """
    (ids, labels), (held_out, classes) = some_cards(student)
    model, pad = a_classifier(student, pretrained(student)), student.PAD
    model.eval()
    before = flattened(vectors_of(student, model, held_out, pad))
    with alone(5):
        for _ in taught(model, ids, labels, pad, EPOCHS, 3e-3):
            pass
    after = flattened(vectors_of(student, model, held_out, pad))
    figure = Figure(figsize=(9, 4.2), layout="constrained")
    titles = ("Before: as pre-training left them", "After fine-tuning")
    for axes, points, title in zip(figure.subplots(1, 2), (before, after), titles):
        for k, (color, marker) in enumerate(zip(COLORS, MARKERS)):
            mine = points[classes == k]
            axes.scatter(mine[:, 0], mine[:, 1], s=26, c=color, marker=marker, ec=INK, lw=0.4)
        axes.set(xticks=[], yticks=[], xlabel="first direction", ylabel="second direction")
        axes.set_title(title, loc="left", fontsize=11)
    name_the_classes(figure, student)
    return figure, pictured.sentence(
        *(
            f"{title.split(':')[0]}, the groups' middles are at {middles(points, classes)}"
            for title, points in zip(titles, (before, after))
        ),
    )


def middles(points: Tensor, classes: Tensor) -> str:
    """Where the middle of each class is."""
    return " and ".join(pictured.listed(points[classes == k].mean(dim=0)) for k in range(3))


def name_the_classes(figure: Figure, student) -> None:
    """The legend of all pictures with one colour and marker for each class."""
    keys = [
        Line2D([], [], ls="", marker=marker, ms=8, mfc=color, mec=INK, label=name)
        for name, color, marker in zip(student.CLASSES, COLORS, MARKERS)
    ]
    figure.legend(handles=keys, ncols=3, frameon=False, loc="outside lower center", fontsize=9)


def vectors_of(student, model, ids: Tensor, pad: int) -> Tensor:
    """What the pooling makes of the encoder's vectors: (N, C)."""
    with torch.no_grad():
        return student.pool(model.encoder(ids, ids == pad), ids == pad, "mean").detach()


def flattened(vectors: Tensor) -> Tensor:
    """The two directions in which vectors (N, C) differ most: (N, 2)."""
    centred = (vectors - vectors.mean(dim=0)).double()
    _, _, directions = torch.linalg.svd(centred, full_matrices=False)
    return centred @ directions[:2].T


# ---------------------------------------------------------------- part 3


def frozen_and_not(student) -> tuple[Figure, str]:
    """Accuracy on dishes without a labelled card: the fine-tuned encoder and LoRA should leave the frozen one far behind.

    LoRA trains one number in twelve. The dashed line is a model that spots every question and tosses a coin for the rest.
    """
    (ids, labels), (held_out, classes) = some_cards(student)
    weights, pad = pretrained(student), student.PAD
    figure = Figure(figsize=(6.4, 4), layout="constrained")
    axes = figure.subplots()
    kinds = (
        ("frozen", 3e-2, "s--", COLORS[0]),
        ("LoRA", 2e-2, "^-.", "#009E73"),
        ("not frozen", 3e-3, "o-", COLORS[1]),
    )
    for name, lr, style, color in kinds:
        model = a_classifier(student, weights)
        if name == "frozen":
            student.freeze(model.encoder)
        if name == "LoRA":
            with alone(4):
                student.add_lora(model.encoder, LORA_LAYERS, 4, 8.0)
        curve = []
        with alone(5):
            for _ in taught(model, ids, labels, pad, EPOCHS, lr):
                with torch.no_grad():
                    guesses = model(held_out, held_out == pad).argmax(dim=-1)
                curve.append(100 * (guesses == classes).double().mean().item())
        label = f"{name}: {student.trainable(model):,} numbers learn"
        axes.plot(range(1, EPOCHS + 1), curve, style, color=color, lw=2, ms=5, label=label)
    axes.axhline(75, color="#777777", ls="--", lw=1)
    axes.set(xlabel="epoch", ylabel="accuracy in %", ylim=(40, 103))
    axes.set_title("Held-out dishes, epoch by epoch", loc="left", fontsize=11)
    axes.legend(frameon=False, loc="lower right")
    return figure, pictured.sentence(
        pictured.lines(axes),
        *(str(label) for label in axes.get_legend_handles_labels()[1]),
    )


# ---------------------------------------------------------------- part 4


def counted(cards: list[tuple[str, int]]) -> list[int]:
    """How many cards there are of each class."""
    return [sum(label == k for _, label in cards) for k in range(3)]


def where_the_cards_go(student) -> tuple[Figure, str]:
    """Thirty cards that come sorted by class, and your two lists: 24 and 6 cards, with the colours mixed in both."""
    cards = [(f"card {i}", 0 if i < 8 else 1 if i < 16 else 2) for i in range(30)]
    first, second = student.split(list(cards), 0.8, 3)
    figure = Figure(figsize=(9, 2.6), layout="constrained")
    axes = figure.subplots()
    rows = (("as they come", cards), ("first list", first), ("second list", second))
    for height, (_, row) in enumerate(rows):
        for place, (_, label) in enumerate(row):
            axes.add_patch(Rectangle((place, height + 0.1), 0.9, 0.8, fc=COLORS[label], ec=INK, lw=0.5))
            mark = {"marker": MARKERS[label], "ms": 4, "mfc": "white", "mec": INK, "mew": 0.5}
            axes.add_line(Line2D([place + 0.45], [height + 0.5], **mark))
        axes.text(len(row) + 0.4, height + 0.5, str(len(row)), va="center", fontsize=10)
    axes.set(xlim=(-0.2, 32.5), ylim=(3, 0), xticks=[])
    axes.set_yticks([0.5, 1.5, 2.5], [name for name, _ in rows])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    name_the_classes(figure, student)
    return figure, pictured.sentence(
        *(
            f"{name}: {len(row)} cards, "
            f"{pictured.listed(counted(row), student.CLASSES)}; "
            f"the first is {row[0][0] if row else 'none'}"
            for name, row in rows[1:]
        ),
    )


# ---------------------------------------------------------------- part 5


def what_is_taken_for_what(student) -> tuple[Figure, str]:
    """Your matrix for a linear layer on a frozen encoder: correct guesses lie on the diagonal.

    Each row adds up to how often its class occurs: 96 praise, 96 complaints, 192 questions.
    """
    (ids, labels), (held_out, classes) = some_cards(student)
    guesses = first_guesses(pretrained(student), ids, labels, held_out, student.PAD)
    table = student.confusion(classes, guesses, 3)
    score = student.macro_f1(table)
    figure = Figure(figsize=(5.6, 4.2), layout="constrained")
    axes = figure.subplots()
    image = axes.imshow(table.double(), cmap="Blues", vmin=0)
    draw_cells(axes, table)
    axes.set_xticks(range(3), student.CLASSES)
    axes.set_yticks(range(3), student.CLASSES)
    axes.set(xlabel="guess", ylabel="truth")
    accuracy = 100 * (guesses == classes).double().mean().item()
    axes.set_title(f"accuracy {accuracy:.0f} %, macro F1 {score:.3f}", loc="left", fontsize=11)
    figure.colorbar(image, ax=axes, label="cards", shrink=0.85)
    return figure, pictured.sentence(
        pictured.cells(table, student.CLASSES, student.CLASSES),
        f"On the diagonal: {pictured.listed(table.diagonal())}",
        axes.get_title(loc="left"),
    )


def draw_cells(axes: Axes, table: Tensor) -> None:
    brightest = max(table.max().item(), 1)
    for truth, row in enumerate(table.tolist()):
        for guess, count in enumerate(row):
            shade = "white" if count > 0.6 * brightest else INK
            axes.text(guess, truth, f"{count:g}", ha="center", va="center", color=shade, fontsize=12)


def first_guesses(
    weights: dict[str, Tensor], ids: Tensor, labels: Tensor, held_out: Tensor, pad: int
) -> Tensor:
    """What a linear layer on a frozen encoder guesses after a little training: (N,)."""
    with alone(6):
        twin, head = Twin(len(weights["token_embedding.weight"])), nn.Linear(SIZES["d_model"], 3)
        twin.load_state_dict(weights)
        twin.eval()
        with torch.no_grad():
            known, unknown = (mean_of(twin(x, x == pad), x != pad) for x in (ids, held_out))
        optimizer = torch.optim.Adam(head.parameters(), lr=2e-2)
        for _ in range(100):
            loss = F.cross_entropy(head(known), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return head(unknown).argmax(dim=-1)


def mean_of(vectors: Tensor, real: Tensor) -> Tensor:
    shares = real.double() / real.sum(dim=1, keepdim=True)  # (N, T)
    return torch.einsum("ntc,nt->nc", vectors, shares.to(vectors.dtype))


PICTURES = {
    "pooling": [what_each_position_contributes],
    "classifier": [pooled_vectors],
    "lora": [frozen_and_not],
    "split": [where_the_cards_go],
    "scores": [what_is_taken_for_what],
}
