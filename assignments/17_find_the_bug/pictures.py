"""Which of the suspects random inputs tell from the student's repairs, and which the student's evidence does."""

import random

import torch
from matplotlib.figure import Figure

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
    """Whether two functions answer an input differently, with the same dice."""
    answers = []
    for each in (function, repair):
        torch.manual_seed(3)
        answers.append(each(*arguments))
    return not same(*answers)


def who_is_told_apart(student) -> Figure:
    """Two bars are long, the others short or empty: random inputs find two of eight. Your evidence should find all."""
    random.seed(1)
    torch.manual_seed(1)
    names = list(RANDOM)
    shares, notes, colours = [], [], []
    for name in names:
        function, repair = student.SUSPECTS[name], student.repaired(name)
        inputs = [RANDOM[name]() for _ in range(TRIES)]
        shares.append(sum(told_apart(function, repair, arguments) for arguments in inputs) / TRIES)
        note, colour = by_evidence(student, name, function, repair)
        notes.append(note)
        colours.append(colour)
    figure = Figure(figsize=(8.4, 4.4), layout="constrained")
    axes = figure.subplots()
    axes.barh(names, [100 * share for share in shares], color=BLUE)
    for row, (share, note, colour) in enumerate(zip(shares, notes, colours, strict=True)):
        axes.text(100 * share + 1, row, f"{100 * share:.0f} %", va="center", fontsize=8)
        axes.text(112, row, note, va="center", fontsize=9, color=colour)
    axes.text(112, -0.9, "your evidence", fontsize=9, weight="bold")
    axes.set(xlim=(0, 150), xlabel=f"of {TRIES} random inputs, those that tell the suspect from your repair, in %")
    axes.set_xticks(range(0, 101, 20))
    axes.invert_yaxis()
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return figure


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
