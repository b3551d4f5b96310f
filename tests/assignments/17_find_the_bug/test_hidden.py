"""Find the bug: the tests that only graders see. The suspects that are run here are those of the solution."""

import random

import torch

from autograder import checks, task


def numbers_in(value):
    """How many numbers there are in an argument, or in a tuple of arguments."""
    if isinstance(value, torch.Tensor):
        return value.numel()
    if isinstance(value, (list, tuple)):
        return sum(numbers_in(part) for part in value)
    return 1


def whole(value, least):
    """A whole number that is not too small, and no True or False."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def decimals(value, axes):
    """A tensor of decimal numbers that are finite, with so many axes, none of them empty."""
    if not isinstance(value, torch.Tensor) or not value.is_floating_point() or value.ndim != axes:
        return False
    return value.numel() > 0 and bool(value.isfinite().all())


def whole_numbers(value, least):
    """A list of whole numbers that are not too small."""
    return isinstance(value, list) and all(whole(number, least) for number in value)


def integers(value):
    """A vector of whole numbers."""
    if not isinstance(value, torch.Tensor) or value.ndim != 1 or value.numel() == 0:
        return False
    return value.dtype in (torch.int64, torch.int32)


def fair_columns(scores, real):
    if not decimals(scores, 2) or not isinstance(real, torch.Tensor) or real.dtype != torch.bool:
        return False
    return real.shape == scores.shape[1:] and bool(real.any())


def fair_sentences(hidden, lengths):
    if not decimals(hidden, 3) or not integers(lengths) or len(lengths) != len(hidden):
        return False
    return 1 <= int(lengths.min()) and int(lengths.max()) <= hidden.shape[1]


FAIR = {
    "cut_windows": lambda ids, size: integers(ids) and whole(size, 1),
    "row_weights": lambda scores: decimals(scores, 2),
    "without_padding": fair_columns,
    "last_words": fair_sentences,
    "hold_out": lambda items, every: isinstance(items, list) and whole(every, 2),
    "newest_file": lambda steps: whole_numbers(steps, 0) and len(steps) > 0,
}

ALLOWED = {
    "cut_windows": "ids is a vector of whole numbers, and size a whole number from 1 on",
    "row_weights": "scores is a table of decimal numbers, all of them finite",
    "without_padding": "scores is a table of decimal numbers, all finite, and real has a boolean for each column, one of "
    "them True",
    "last_words": "hidden (B, T, C) has finite decimal numbers, and lengths B whole numbers from 1 to T",
    "hold_out": "items is a list, and every a whole number from 2 on",
    "newest_file": "steps is a list of whole numbers from 0 on, and not empty",
}


FLOATS, WHOLES, TRUTHS = torch.float64, torch.int64, torch.bool
TENSORS = {  # the arguments that are tensors, with their kind of numbers
    "cut_windows": (WHOLES,),
    "row_weights": (FLOATS,),
    "mean_in_pieces": (FLOATS,),
    "without_padding": (FLOATS, TRUTHS),
    "drop_some": (FLOATS,),
    "last_words": (FLOATS, WHOLES),
}


def read(name, arguments):
    """The evidence, with a list read as the tensor that it stands for: a visible test says once that it is a list."""
    kinds = TENSORS.get(name, ())
    told = list(arguments) if isinstance(arguments, (list, tuple)) else [arguments]
    for i, (value, kind) in enumerate(zip(told, kinds)):
        if isinstance(value, (list, tuple)):
            try:
                told[i] = torch.tensor(value, dtype=kind)
            except (TypeError, ValueError, RuntimeError):
                continue
    return tuple(told)


def written(values):
    """Values as somebody would write them down, up to a length that can be read."""
    return ", ".join(str(value.tolist() if isinstance(value, torch.Tensor) else value) for value in values)[:300]


def same(one, other):
    """Whether two answers of a suspect are the same; numbers that are less than 0.001 apart are."""
    if isinstance(one, torch.Tensor):
        if not isinstance(other, torch.Tensor) or one.shape != other.shape:
            return False
        return bool(((one.double() - other.double()).abs() < 1e-3).all())
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    return one == other


def proven(student, reference, name):
    """There is evidence against a suspect: a fair input on which its answer is not the promised one."""
    arguments = read(name, student.evidence(name))
    too_large = "The evidence has more than 30 numbers."
    checks.true(numbers_in(arguments) <= 30, too_large, public=too_large)
    expected = reference.SUSPECTS[name].__code__.co_argcount
    checks.true(
        len(arguments) == expected, f"The evidence has {len(arguments)} arguments, and {name} takes {expected}."
    )
    call = f"{name}({written(arguments)})"
    not_fair = f"The evidence, {call}, is not what {name} allows: {ALLOWED[name]}."
    checks.true(FAIR[name](*arguments), not_fair, public=not_fair)
    answer, promised = reference.SUSPECTS[name](*arguments), reference.repaired(name)(*arguments)
    kept = f"For this evidence, {name} keeps its promise: {call} returns {written([answer])}, as it should."
    checks.true(not same(answer, promised), kept, public=kept)


def agrees(student, reference, name, cases):
    """The repaired function gives the promised answer to each tuple of arguments, and leaves them as they are."""
    ours, theirs = reference.repaired(name), student.repaired(name)
    for arguments in cases:
        expected, answer = ours(*arguments), theirs(*arguments)
        sentence = f"The repaired {name} breaks its promise for one of many fair inputs"
        shown, came, due = written(arguments), written([answer]), written([expected])
        full = f"{sentence}: {shown}. {came} came back, and {due} was promised."
        checks.true(same(expected, answer), full, public=f"{sentence}.")
    checks.input_untouched(theirs, *cases[0], what=f"the repaired {name}")


def keeps_number_type(student, name, *arguments):
    """The answer has the number type of the tensor that came in."""
    for dtype in (torch.float32, torch.float64):
        answer = student.repaired(name)(arguments[0].to(dtype), *arguments[1:])
        checks.dtype(answer, dtype, f"the answer of the repaired {name}")


# Part 1: evidence


@task("evidence", 0.5,
      fixed_inputs="A suspect has one name, and the question is about its name alone.",
      promise="Arguments for which the suspect of this name breaks its promise.")
def test_evidence_on_cut_windows(student, reference):
    """What you say of `cut_windows` is right: evidence if it breaks its promise, a ValueError if it keeps it."""
    proven(student, reference, "cut_windows")


@task("evidence", 0.25,
      fixed_inputs="A suspect has one name, and the question is about its name alone.",
      promise="Raises ValueError that names the suspect if it keeps its promise.")
def test_evidence_on_smooth_targets(student):
    """What you say of `smooth_targets` is right: evidence if it breaks its promise, a ValueError if it keeps it."""
    checks.raises(ValueError, student.evidence, "smooth_targets", naming="smooth_targets")


@task("evidence", 0.5,
      fixed_inputs="A suspect has one name, and the question is about its name alone.",
      promise="Arguments for which the suspect of this name breaks its promise.")
def test_evidence_on_row_weights(student, reference):
    """What you say of `row_weights` is right: evidence if it breaks its promise, a ValueError if it keeps it."""
    proven(student, reference, "row_weights")


@task("evidence", 0.5,
      fixed_inputs="A suspect has one name, and the question is about its name alone.",
      promise="Arguments for which the suspect of this name breaks its promise.")
def test_evidence_on_without_padding(student, reference):
    """What you say of `without_padding` is right: evidence if it breaks its promise, a ValueError if it keeps it."""
    proven(student, reference, "without_padding")


@task("evidence", 0.5,
      fixed_inputs="A suspect has one name, and the question is about its name alone.",
      promise="Arguments for which the suspect of this name breaks its promise.")
def test_evidence_on_last_words(student, reference):
    """What you say of `last_words` is right: evidence if it breaks its promise, a ValueError if it keeps it."""
    proven(student, reference, "last_words")


@task("evidence", 0.25,
      fixed_inputs="A suspect has one name, and the question is about its name alone.",
      promise="Raises ValueError that names the suspect if it keeps its promise.")
def test_evidence_on_running_loss(student):
    """What you say of `running_loss` is right: evidence if it breaks its promise, a ValueError if it keeps it."""
    checks.raises(ValueError, student.evidence, "running_loss", naming="running_loss")


@task("evidence", 0.5,
      fixed_inputs="A suspect has one name, and the question is about its name alone.",
      promise="Arguments for which the suspect of this name breaks its promise.")
def test_evidence_on_hold_out(student, reference):
    """What you say of `hold_out` is right: evidence if it breaks its promise, a ValueError if it keeps it."""
    proven(student, reference, "hold_out")


@task("evidence", 0.5,
      fixed_inputs="A suspect has one name, and the question is about its name alone.",
      promise="Arguments for which the suspect of this name breaks its promise.")
def test_evidence_on_newest_file(student, reference):
    """What you say of `newest_file` is right: evidence if it breaks its promise, a ValueError if it keeps it."""
    proven(student, reference, "newest_file")


# Part 2: the verdict


@task("verdict", 0.25,
      fixed_inputs="A suspect has one name, and the question is about its name alone.",
      promise=(
          "one of the eight words, or None if it keeps its promise.",
          "A verdict counts only together with the evidence of Part 1",
      ))
def test_verdict_on_cut_windows(student, reference):
    """The verdict on `cut_windows` is right, and Part 1 is, too."""
    proven(student, reference, "cut_windows")
    checks.true(student.verdict("cut_windows") == "shift", "The verdict on cut_windows is a different one.")


@task("verdict", 0.125,
      fixed_inputs="A suspect has one name, and the question is about its name alone.",
      promise=(
          "one of the eight words, or None if it keeps its promise.",
          "A verdict counts only together with the evidence of Part 1",
      ))
def test_verdict_on_smooth_targets(student):
    """The verdict on `smooth_targets` is right, and Part 1 is, too."""
    checks.raises(ValueError, student.evidence, "smooth_targets", naming="smooth_targets")
    checks.true(student.verdict("smooth_targets") is None, "The verdict on smooth_targets is a different one.")


@task("verdict", 0.25,
      fixed_inputs="A suspect has one name, and the question is about its name alone.",
      promise=(
          "one of the eight words, or None if it keeps its promise.",
          "A verdict counts only together with the evidence of Part 1",
      ))
def test_verdict_on_row_weights(student, reference):
    """The verdict on `row_weights` is right, and Part 1 is, too."""
    proven(student, reference, "row_weights")
    checks.true(student.verdict("row_weights") == "axis", "The verdict on row_weights is a different one.")


@task("verdict", 0.25,
      fixed_inputs="A suspect has one name, and the question is about its name alone.",
      promise=(
          "one of the eight words, or None if it keeps its promise.",
          "A verdict counts only together with the evidence of Part 1",
      ))
def test_verdict_on_without_padding(student, reference):
    """The verdict on `without_padding` is right, and Part 1 is, too."""
    proven(student, reference, "without_padding")
    checks.true(student.verdict("without_padding") == "mask", "The verdict on without_padding is a different one.")


@task("verdict", 0.25,
      fixed_inputs="A suspect has one name, and the question is about its name alone.",
      promise=(
          "one of the eight words, or None if it keeps its promise.",
          "A verdict counts only together with the evidence of Part 1",
      ))
def test_verdict_on_last_words(student, reference):
    """The verdict on `last_words` is right, and Part 1 is, too."""
    proven(student, reference, "last_words")
    checks.true(student.verdict("last_words") == "layout", "The verdict on last_words is a different one.")


@task("verdict", 0.125,
      fixed_inputs="A suspect has one name, and the question is about its name alone.",
      promise=(
          "one of the eight words, or None if it keeps its promise.",
          "A verdict counts only together with the evidence of Part 1",
      ))
def test_verdict_on_running_loss(student):
    """The verdict on `running_loss` is right, and Part 1 is, too."""
    checks.raises(ValueError, student.evidence, "running_loss", naming="running_loss")
    checks.true(student.verdict("running_loss") is None, "The verdict on running_loss is a different one.")


@task("verdict", 0.25,
      fixed_inputs="A suspect has one name, and the question is about its name alone.",
      promise=(
          "one of the eight words, or None if it keeps its promise.",
          "A verdict counts only together with the evidence of Part 1",
      ))
def test_verdict_on_hold_out(student, reference):
    """The verdict on `hold_out` is right, and Part 1 is, too."""
    proven(student, reference, "hold_out")
    checks.true(student.verdict("hold_out") == "sharing", "The verdict on hold_out is a different one.")


@task("verdict", 0.25,
      fixed_inputs="A suspect has one name, and the question is about its name alone.",
      promise=(
          "one of the eight words, or None if it keeps its promise.",
          "A verdict counts only together with the evidence of Part 1",
      ))
def test_verdict_on_newest_file(student, reference):
    """The verdict on `newest_file` is right, and Part 1 is, too."""
    proven(student, reference, "newest_file")
    checks.true(student.verdict("newest_file") == "order", "The verdict on newest_file is a different one.")


# Part 3: the repair


@task("repair", 0.375, promise=(
    "keeps the suspect's promise on every fair input.",
    "as long as each word of x has a word after it",
))
def test_repair_of_cut_windows(student, reference):
    """The repaired `cut_windows` keeps the promise, also where the given function does not."""
    cases = [(torch.randint(50, (length,)), size) for length, size in ((12, 3), (12, 4), (13, 4), (14, 4), (15, 4))]
    cases += [(torch.randint(50, (length,)), size) for length, size in ((1, 1), (5, 1), (6, 5), (6, 6), (6, 7))]
    cases.append((torch.randint(50, (random.randint(20, 40),)), random.randint(2, 6)))
    agrees(student, reference, "cut_windows", cases)


@task("repair", 0.125, promise=(
    "keeps the suspect's promise on every fair input.",
    "For a suspect that keeps its promise: the suspect itself.",
))
def test_repair_of_smooth_targets(student, reference):
    """The repaired `smooth_targets` keeps the promise, also where the given function does not."""
    cases = [(torch.randint(5, (6,)), 5, random.random()), (torch.tensor([1]), 2, 0.0), (torch.tensor([0, 0]), 3, 1.0)]
    agrees(student, reference, "smooth_targets", cases)


@task("repair", 0.375, promise=(
    "keeps the suspect's promise on every fair input.",
    "The softmax of each row of scores (T, S), however large or small the scores are.",
))
def test_repair_of_row_weights(student, reference):
    """The repaired `row_weights` keeps the promise, also where the given function does not."""
    scores = torch.randn(4, 5, dtype=torch.float64)
    levels = torch.tensor([[0.0], [1000.0], [-5000.0], [1e6]], dtype=torch.float64)
    cases = [(scores,), (scores + levels,), (scores - 1e5,), (300 * scores,), (scores[:1] + 900,), (scores[:, :1],)]
    agrees(student, reference, "row_weights", cases)
    keeps_number_type(student, "row_weights", scores)


@task("repair", 0.25, promise=(
    "keeps the suspect's promise on every fair input.",
    "Whatever stands at the other columns has no influence.",
))
def test_repair_of_without_padding(student, reference):
    """The repaired `without_padding` keeps the promise, also where the given function does not."""
    scores, real = torch.randn(4, 5, dtype=torch.float64), torch.tensor([True, False, True, True, False])
    cases = [(scores + 1e9 * far * ~real, real) for far in (0, 1e-5, 1, 1e6, -1)]
    cases += [(scores + 1e9, real), (scores, ~real), (scores, torch.ones(5, dtype=torch.bool))]
    agrees(student, reference, "without_padding", cases)
    keeps_number_type(student, "without_padding", scores, real)


@task("repair", 0.375, promise=(
    "keeps the suspect's promise on every fair input.",
    "Sentence b has the words 0 to lengths[b] - 1, and padding behind them.",
))
def test_repair_of_last_words(student, reference):
    """The repaired `last_words` keeps the promise, also where the given function does not."""
    hidden = torch.randn(4, 6, 3, dtype=torch.float64)
    lengths = [torch.tensor(some) for some in ([6, 2, 5, 1], [4, 4, 4, 4], [1, 2, 3, 4], [5, 1, 1, 2], [1, 1, 1, 1])]
    lengths.append(torch.randint(1, 5, (4,)))
    agrees(student, reference, "last_words", [(hidden, some) for some in lengths])
    keeps_number_type(student, "last_words", hidden, lengths[0])


@task("repair", 0.125, promise=(
    "keeps the suspect's promise on every fair input.",
    "For a suspect that keeps its promise: the suspect itself.",
))
def test_repair_of_running_loss(student, reference):
    """The repaired `running_loss` keeps the promise, also where the given function does not."""
    losses = [random.random() for _ in range(7)]
    for decay in (0.0, 0.5, 0.9):
        for count in (1, 2, 7):
            expected = reference.running_loss(losses[:count], decay)
            checks.close(
                student.repaired("running_loss")(losses[:count], decay), expected, "the running loss", atol=1e-3, rtol=0
            )


@task("repair", 0.375, promise=(
    "keeps the suspect's promise on every fair input.",
    "So no item of the test is known from training.",
    "Each list holds its items in their order",
))
def test_repair_of_hold_out(student, reference):
    """The repaired `hold_out` keeps the promise, also where the given function does not."""
    cases = [([random.randrange(6) for _ in range(20)], every) for every in (2, 3, 4)]
    cases += [(random.sample(range(100), 9), 3), ([], 2), ([7, 7, 7], 2), ([5, 5, 8, 5], 2), ([3, 1, 3, 2, 1], 3)]
    agrees(student, reference, "hold_out", cases)


@task("repair", 0.375, promise=(
    "keeps the suspect's promise on every fair input.",
    "The name of the file with the most steps",
))
def test_repair_of_newest_file(student, reference):
    """The repaired `newest_file` keeps the promise, also where the given function does not."""
    cases = [([10, 9, 8],), ([9, 10],), ([100, 99, 1000],), ([0],), ([0, 0],), ([5, 400, 30],)]
    cases += [([random.randrange(10**random.randint(1, 6)) for _ in range(6)],) for _ in range(8)]
    agrees(student, reference, "newest_file", cases)
