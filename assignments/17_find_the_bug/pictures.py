"""Which of the suspects random inputs tell from the student's repairs, and which the student's evidence does."""

import random

import torch
from matplotlib.figure import Figure

from autograder.checks import pictured

BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#999999"
TRIES = 200


def sentences() -> tuple:
    """A batch that is padded to its longest sentence, as most are."""
    lengths = torch.randint(1, 7, (3,))  # (B,)
    return torch.randn(3, int(lengths.max()), 4), lengths


RANDOM = {  # inputs of ordinary sizes, as somebody would write them down who does not think of the suspect
    "cut_windows": lambda: (torch.randint(100, (random.randint(20, 60),)), 16),
    "smooth_targets": lambda: (torch.randint(5, (6,)), 5, random.random()),
    "row_weights": lambda: (torch.randn(4, 5),),
    "mean_in_pieces": lambda: (torch.rand(random.randint(20, 60)), 8),
    "without_padding": lambda: (torch.randn(4, 5), torch.tensor([True, True, True, random.random() < 0.5, False])),
    "drop_some": lambda: (torch.randn(4, 5), 0.1, random.random() < 0.5),
    "last_words": sentences,
    "running_loss": lambda: ([random.random() for _ in range(8)], random.random()),
    "hold_out": lambda: (random.sample(range(1000), 12), 4),
    "newest_file": lambda: (random.sample(range(1000), 4),),
}


def varied_items() -> list[int]:
    """Few or many items, all different or often the same."""
    return [random.randrange(random.choice((3, 1000))) for _ in range(random.randint(1, 20))]


def scale() -> float:
    return 10.0 ** random.randint(-2, 6)


def padded() -> tuple:
    """Some columns are real, and all scores may be small or very large."""
    columns = random.randint(1, 8)
    real = torch.rand(columns) < 0.5
    real[random.randrange(columns)] = True
    return scale() * torch.randn(random.randint(1, 8), columns), real


def scores_of_any_level() -> tuple:
    """Each row has a level of its own."""
    rows = random.randint(1, 8)
    return (scale() * torch.randn(rows, 1) + torch.randn(rows, random.randint(1, 8)),)


def longer_batch() -> tuple:
    """A batch that may be longer than its longest sentence."""
    lengths = torch.randint(1, 7, (random.randint(1, 5),))  # (B,)
    return torch.randn(len(lengths), int(lengths.max()) + random.randint(0, 3), 4), lengths


VARIED = {  # the same kinds of inputs, with other sizes, scales and repetitions each time
    "cut_windows": lambda: (torch.randint(100, (random.randint(1, 60),)), random.randint(1, 20)),
    "smooth_targets": lambda: (torch.randint(5, (random.randint(1, 9),)), 5, random.choice((0.0, random.random()))),
    "row_weights": scores_of_any_level,
    "mean_in_pieces": lambda: (scale() * torch.rand(random.randint(1, 60)), random.randint(1, 20)),
    "without_padding": padded,
    "drop_some": lambda: (torch.randn(4, random.randint(1, 9)), random.choice((0.0, 0.1, 0.9)), random.random() < 0.5),
    "last_words": longer_batch,
    "running_loss": lambda: ([scale() * random.random() for _ in range(random.randint(1, 20))], random.random()),
    "hold_out": lambda: (varied_items(), random.randint(2, 6)),
    "newest_file": lambda: ([random.randrange(10 ** random.randint(1, 6)) for _ in range(random.randint(1, 8))],),
}


def same(one, other) -> bool:
    """Whether two answers are the same; numbers that are less than 0.001 apart are."""
    if isinstance(one, torch.Tensor):
        if not isinstance(other, torch.Tensor) or one.shape != other.shape:
            return False
        return bool(((one.double() - other.double()).abs() < 1e-3).all())
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float):
        return abs(one - other) < 1e-3
    return one == other


def told_apart(function, repair, arguments: tuple) -> bool:
    """Whether two functions answer an input differently, with the same dice; those of the caller stay as they are."""
    answers = []
    for each in (function, repair):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(3)
            answers.append(each(*arguments))
    return not same(*answers)


def who_is_told_apart(student) -> tuple[Figure, str]:
    """Random inputs of one size and one scale find few of the eight; with sizes, scales and repetitions varied, all."""
    random.seed(1)
    torch.manual_seed(1)
    names = list(RANDOM)
    shares, varied_shares, notes, colours = [], [], [], []
    for name in names:
        function, repair = student.SUSPECTS[name], student.repaired(name)
        for kind, found in ((RANDOM, shares), (VARIED, varied_shares)):
            inputs = [kind[name]() for _ in range(TRIES)]
            found.append(sum(told_apart(function, repair, arguments) for arguments in inputs) / TRIES)
        note, colour = by_evidence(student, name, function, repair)
        notes.append(note)
        colours.append(colour)
    figure = Figure(figsize=(8.4, 4.4), layout="constrained")
    axes = figure.subplots()
    axes.set_yticks(range(len(names)), names)
    for found, above, colour, label in (
        (shares, -0.2, GREY, "one size, one scale, no repetition"),
        (varied_shares, 0.2, BLUE, "sizes, scales and repetitions varied"),
    ):
        rows = [row + above for row in range(len(names))]
        axes.barh(rows, [100 * share for share in found], height=0.36, color=colour, label=label)
        for row, share in zip(rows, found, strict=True):
            axes.text(100 * share + 1, row, f"{100 * share:.0f} %", va="center", fontsize=7)
    axes.legend(loc="lower left", fontsize=8, bbox_to_anchor=(-0.02, 1.0), ncols=2, frameon=False)
    for row, (note, colour) in enumerate(zip(notes, colours, strict=True)):
        axes.text(112, row, note, va="center", fontsize=9, color=colour)
    axes.text(112, -0.9, "your evidence", fontsize=9, weight="bold")
    axes.set(xlim=(0, 150), xlabel=f"of {TRIES} random inputs, those that tell the suspect from your repair, in %")
    axes.set_xticks(range(0, 101, 20))
    axes.invert_yaxis()
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return figure, pictured.sentence(
        f"Told apart, in %: {pictured.listed([100 * share for share in varied_shares], names)}",
        f"Evidence gives the same answer: {noted('✗', names, notes)}; it tells apart: {noted('✓', names, notes)}",
    )


def noted(mark: str, names: list[str], notes: list[str]) -> str:
    """The suspects whose note begins with a mark."""
    return ", ".join(name for name, note in zip(names, notes) if note.startswith(mark)) or "none"


def by_evidence(student, name: str, function, repair) -> tuple[str, str]:
    """What stands beside the bar of a suspect, and its colour."""
    try:
        arguments = student.evidence(name)
    except ValueError:
        return "none: it keeps its promise", GREY
    if told_apart(function, repair, arguments):
        return "✓ tells them apart", BLUE
    return "✗ the same answer", ORANGE


PICTURES = {"repair": [who_is_told_apart]}
