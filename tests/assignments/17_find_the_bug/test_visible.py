"""Find the bug: the tests that come with the assignment. What they know of the ten suspects is two of them."""

import torch

from autograder import checks, task

WORDS = ("shift", "axis", "scale", "mask", "mode", "layout", "sharing", "order")
NAMES = (
    "cut_windows",
    "smooth_targets",
    "row_weights",
    "mean_in_pieces",
    "without_padding",
    "drop_some",
    "last_words",
    "running_loss",
    "hold_out",
    "newest_file",
)


TENSORS = {
    "cut_windows": (0,),
    "row_weights": (0,),
    "mean_in_pieces": (0,),
    "without_padding": (0, 1),
    "drop_some": (0,),
    "last_words": (0, 1),
}


def read(numbers):
    """A vector or table of decimal numbers, also where it was written as a list: another test says that it is one."""
    return torch.tensor(numbers, dtype=torch.float64) if isinstance(numbers, list) else numbers


def numbers_in(value):
    """How many numbers there are in an argument, or in a tuple of arguments."""
    if isinstance(value, torch.Tensor):
        return value.numel()
    if isinstance(value, (list, tuple)):
        return sum(numbers_in(part) for part in value)
    return 1


def call(name, arguments):
    """The call of a suspect, as somebody would write it down, up to a length that can be read."""
    written = [str(value.tolist() if isinstance(value, torch.Tensor) else value) for value in arguments]
    return f"{name}({', '.join(written)})"[:300]


def found(student, name):
    """The evidence against a suspect, or None if the student's code says that it keeps its promise."""
    try:
        arguments = student.evidence(name)
    except Exception as error:
        if not isinstance(error, ValueError):
            raise
        return None
    checks.true(isinstance(arguments, tuple), f"evidence({name!r}) returned something other than a tuple.")
    for number in TENSORS.get(name, ()):
        is_tensor = len(arguments) <= number or isinstance(arguments[number], torch.Tensor)
        no_tensor = f"Argument {number} of evidence({name!r}) is no tensor; {name} takes one."
        checks.true(is_tensor, no_tensor, telling="a list where a tensor is asked for")
    count = numbers_in(arguments)
    checks.true(count <= 30, f"evidence({name!r}) has {count} numbers; at most 30 are allowed.")
    return arguments


def evidence_against_pieces(student):
    """Evidence against mean_in_pieces, once it is clear that the mean of the means is another number."""
    losses, size = checks.unpack(student.evidence("mean_in_pieces"), ("losses", "size"))
    losses = checks.tensor(read(losses), "losses")
    checks.true(losses.is_floating_point() and losses.ndim == 1, "losses is no vector of decimal numbers.")
    checks.true(1 <= losses.numel() <= 29, f"losses has {losses.numel()} numbers; 1 to 29 are allowed.")
    checks.true(bool(losses.isfinite().all()), "losses has a number that is not finite.")
    checks.true(isinstance(size, int) and size >= 1, "size is no whole number from 1 on.")
    answer = torch.stack([piece.mean() for piece in losses.split(size)]).mean()
    apart = abs(float(answer - losses.mean()))
    shown = call("mean_in_pieces", (losses, size))
    checks.true(apart >= 1e-3, f"mean_in_pieces keeps its promise for this evidence: {shown} is the mean, {answer:g}.")


def evidence_against_dropout(student):
    """Evidence against drop_some, once it is clear that something is dropped that should not be."""
    x, p, training = checks.unpack(student.evidence("drop_some"), ("x", "p", "training"))
    x = checks.tensor(read(x), "x")
    checks.true(x.is_floating_point(), "x is no tensor of decimal numbers.")
    checks.true(x.numel() <= 28, f"x has {x.numel()} numbers; at most 28 are allowed beside p and training.")
    checks.true(bool(x.isfinite().all()), "x has a number that is not finite.")
    checks.true(isinstance(p, (int, float)) and 0 <= p < 1, "p is no number from 0 up to, but not including, 1.")
    answers = [x * (torch.rand(x.shape) >= p) for _ in range(20)]
    wrong = any(bool(((answer - x).abs() >= 1e-3).any()) for answer in answers)
    shown = call("drop_some", (x, p, training))
    kept = f"drop_some keeps its promise for this evidence in each of twenty calls of {shown}."
    checks.true(wrong and training is False, kept)


# Part 1: evidence


@task("evidence", 0.25)
def test_evidence_is_small(student):
    """For each of the ten, evidence is a tuple with at most 30 numbers, or a ValueError that names the suspect."""
    proofs = {name: found(student, name) for name in NAMES}
    accused = [name for name, arguments in proofs.items() if arguments is not None]
    checks.true(len(accused) == 8, f"Eight suspects break their promise; you have evidence against {len(accused)}.")
    for name in NAMES:
        if name not in accused:
            checks.raises(ValueError, student.evidence, name, naming=name)


@task("evidence", 0.5)
def test_evidence_against_mean_in_pieces(student):
    """For your evidence, `mean_in_pieces` does not return the mean."""
    evidence_against_pieces(student)


@task("evidence", 0.5)
def test_evidence_against_drop_some(student):
    """For your evidence, `drop_some` does not return what it promises."""
    evidence_against_dropout(student)


# Part 2: the verdict


@task("verdict", 0.125)
def test_verdict_on_mean_in_pieces(student):
    """What is wrong with `mean_in_pieces` has the right name, and there is evidence."""
    evidence_against_pieces(student)
    checks.equal(student.verdict("mean_in_pieces"), "scale", "the verdict on mean_in_pieces")


@task("verdict", 0.125)
def test_verdict_on_drop_some(student):
    """What is wrong with `drop_some` has the right name, and there is evidence."""
    evidence_against_dropout(student)
    checks.equal(student.verdict("drop_some"), "mode", "the verdict on drop_some")


@task("verdict", 0.25)
def test_each_word_is_used_once(student):
    """Each of the eight words is the verdict on one suspect, and two suspects keep their promise: None."""
    verdicts = [student.verdict(name) for name in NAMES]
    for word in (*WORDS, None):
        times, due = verdicts.count(word), 2 if word is None else 1
        checks.true(times == due, f"{times} of your ten verdicts are {word!r}; {due} should be.")


# Part 3: the repair


@task("repair", 0.25)
def test_mean_in_pieces_is_repaired(student):
    """The repaired `mean_in_pieces` returns the mean, whatever the size of the pieces."""
    losses = torch.randn(11, dtype=torch.float64)
    for size in (1, 3, 4, 10, 11, 20):
        mean = student.repaired("mean_in_pieces")(losses, size)
        checks.close(mean, losses.mean(), f"the mean of 11 losses in pieces of {size}", atol=1e-3, rtol=0)


@task("repair", 0.125)
def test_without_padding_is_repaired(student):
    """Padded columns have no weight in the repaired `without_padding`, however large their scores are."""
    real = torch.tensor([True, False, True])
    for large in (0.0, 1e5, 1e12):
        scores = torch.tensor([[0.0, large, 0.0], [1.0, -large, 1.0]], dtype=torch.float64)
        weights = student.repaired("without_padding")(scores, real)
        expected = torch.tensor([[0.5, 0.0, 0.5], [0.5, 0.0, 0.5]], dtype=torch.float64)
        checks.close(weights, expected, f"the weights with a score of {large:g} at a padded column", atol=1e-3)


@task("repair", 0.25)
def test_drop_some_is_repaired(student):
    """The repaired `drop_some` returns x outside of training; in training it drops some numbers and scales the others."""
    x = 1 + torch.rand(40, 50, dtype=torch.float64)
    drop = student.repaired("drop_some")
    checks.close(drop(x, 0.5, False), x, "the answer outside of training")
    for p in (0.25, 0.75):
        answer = checks.tensor(drop(x, p, True), "the answer in training")
        dropped = answer == 0
        share = dropped.double().mean().item()
        checks.between(share, p - 0.1, p + 0.1, f"the share of dropped numbers with p = {p}")
        expected = torch.where(dropped, 0.0, x / (1 - p))
        checks.close(answer, expected, f"what is kept in training with p = {p}", atol=1e-3, rtol=0)
