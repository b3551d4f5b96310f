"""The sentences that explain failures, and the data that they must not contain."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import torch

from autograder import checks
from autograder.bridge.shared.errors import (
    Frame,
    MissingNameError,
    RemoteException,
    StudentCrashedError,
    StudentTimeoutError,
    missing_name,
    student_raised,
)
from autograder.checks import CheckFailed
from autograder.failures.explain import clean, explain, names_in_cells_without_code
from autograder.records import SourceFile
from autograder.walls.outside.alarm import TestAlarm

SECRET = "the input was 0.8414709"
LATE = "Your code gave no answer within 5 seconds."
ENDED = "Your code ended the process that ran it (exit code 1)."
MISSING = "There is no `attention` in the submission."


SOFTMAX = "weights = torch.softmax(scores, -1)"
LINE = "raise ValueError(str(x))"
FRAME = Frame("heads.py", 12, "Head.forward", LINE)


def raised(kind="ValueError", text=SECRET, frames=(FRAME,)):
    return student_raised(RemoteException(kind, (kind, "Exception"), text, frames))


@pytest.mark.parametrize(
    "error, message",
    [
        (raised(), f"Your code raised a ValueError: {SECRET} (line 12).\n    {LINE}"),
        (raised("IndexError", ""), f"Your code raised an IndexError (line 12).\n    {LINE}"),
        (
            raised("NotImplementedError", "x", [replace(FRAME, code="raise NotImplementedError")]),
            "`Head.forward` is not written yet (line 12).",
        ),
        (
            raised("NotImplementedError", "no softmax of Long", [replace(FRAME, code=SOFTMAX)]),
            f"Your code raised a NotImplementedError: no softmax of Long (line 12).\n    {SOFTMAX}",
        ),
        (raised("TypeError", "One.", frames=()), "Your code raised a TypeError: One."),
        (MissingNameError(MISSING), MISSING),
    ],
)
def test_visible_sentences(error, message):
    found = explain(error, full=True)
    assert (found.outcome, found.message) == ("failed", message)


@pytest.mark.parametrize(
    "error, outcome, message",
    [
        (StudentTimeoutError(LATE), "timeout", LATE),
        (TestAlarm(), "timeout", "This test took too long."),
        (StudentCrashedError(ENDED), "crashed", ENDED),
    ],
)
def test_outcomes_that_are_no_failure(error, outcome, message):
    found = explain(error, full=True)
    assert (found.outcome, found.message) == (outcome, message)


def test_hidden_failure_shows_exception_type_and_own_line_without_its_message():
    file = SourceFile("heads.py", "\n" * 11 + "    raise ValueError(str(x))\n")
    found = explain(raised(), full=False, file=file)
    assert found.message == "Your code raised a ValueError (line 12).\n    raise ValueError(str(x))"


def test_hidden_failure_shows_no_line_or_name_outside_of_the_submission():
    file = SourceFile("heads.py", "x = 1\n" * 20)
    found = explain(raised("Secret_0_8414709"), full=False, file=file)
    assert found.message == "Your code raised an Exception (line 12).\n    x = 1"


def test_line_of_a_notebook_names_the_cell():
    frame = Frame("heads.ipynb cell 4", 2, "Head.forward", "x.nothing")
    file = SourceFile("heads.ipynb", '{"cells": [{"source": ["a\\n", "x.nothing"]}]}')
    found = explain(raised("AttributeError", "no", frames=(frame,)), full=False, file=file)
    assert found.message.startswith("Your code raised an AttributeError (line 2 of cell 4).")


STUB_LINE = 'raise NotImplementedError("head is not written yet.")'
LEFTOVER = f"def head(x: int) -> int:\n    # TODO: double it\n    y = 2 * x\n\n    {STUB_LINE}\n"


@pytest.mark.parametrize("full", [True, False])
def test_a_line_of_the_stub_below_finished_code_is_not_called_unwritten(full):
    frame = Frame("heads.py", 5, "head", STUB_LINE, before="y = 2 * x")
    file = SourceFile("heads.py", LEFTOVER)
    found = explain(raised("NotImplementedError", frames=(frame,)), full=full, file=file)
    left = f"`head` still has the line `{STUB_LINE}` (in line 5): delete it."
    assert found.message == f"Below your code, {left}"


@pytest.mark.parametrize(
    "before", ["# TODO: double it", "def head(x):", '"""Twice as much."""', ""]
)
def test_an_untouched_gap_is_not_written_yet(before):
    frame = Frame("heads.py", 5, "head", STUB_LINE, before=before)
    found = explain(raised("NotImplementedError", frames=(frame,)), full=True)
    assert found.message == "`head` is not written yet (line 5)."


ABOVE = f"def head(x: int) -> int:\n    # TODO: double it\n    {STUB_LINE}\n    # twice\n\n    return 2 * x\n"


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("form", ["py", "ipynb"])
def test_a_line_of_the_stub_above_finished_code_is_to_be_deleted(full, form):
    name, place, text = "heads.py", "Line 3", ABOVE
    if form == "ipynb":
        name, place = "heads.ipynb cell 1", "Line 3 of cell 1"
        text = json.dumps({"cells": [{"cell_type": "code", "source": ABOVE}]})
    frame = Frame(name, 3, "head", STUB_LINE, before="# TODO: double it", below="return 2 * x")
    file = SourceFile(f"heads.{form}", text)
    found = explain(raised("NotImplementedError", frames=(frame,)), full=full, file=file)
    assert found.message == f"{place} stops `head` before your code: delete it.\n    {STUB_LINE}"


HEAD = "def head(x):\n    return 2 * x\n"
NO_CODE = "and is no code cell, but a"
OTHER_CELLS = {
    "markdown": ([("markdown", HEAD)], f"Cell 1 defines `head` {NO_CODE} Markdown cell: its code does not run."),
    "raw": ([("code", "x = 1"), ("raw", HEAD)], f"Cell 2 defines `head` {NO_CODE} raw cell: its code does not run."),
    "a class": ([("raw", "class head:\n    pass")], f"Cell 1 defines `head` {NO_CODE} raw"),
    "a value": ([("raw", "head: int = 3")], f"Cell 1 defines `head` {NO_CODE} raw"),
    "below another magic": ([("code", f"%%writefile a.py\n{HEAD}")], "below `%%writefile`: its code does not run."),
    "below a timing": ([("code", f"%%time\n{HEAD}")], ""),
    "in a code cell, too": ([("markdown", HEAD), ("code", HEAD)], ""),
    "prose": ([("markdown", "Write `head` first; a def of head follows: head == 3")], ""),
}  # fmt: skip


@pytest.mark.parametrize("case", OTHER_CELLS)
def test_code_in_a_cell_that_does_not_run_is_named(case):
    cells, sentence = OTHER_CELLS[case]
    text = json.dumps({"cells": [{"cell_type": kind, "source": code} for kind, code in cells]})
    file = SourceFile("heads.ipynb", text)
    flags = list(names_in_cells_without_code(["head", "other"], file))
    assert len(flags) == bool(sentence) and sentence in "".join(flags)
    found = explain(missing_name("head"), full=False, file=file)
    assert sentence in found.message and found.message.startswith("There is no `head`")


NOTHING = CheckFailed("The output is None; a tensor was expected.")
WITHOUT_RETURN = "class Head:\n    def forward(\n        self, x: int\n    ) -> int:\n        y = 2 * x  # return it\n"


@pytest.mark.parametrize("full", [True, False])
def test_a_forgotten_return_is_said_as_such(full):
    notebook = json.dumps({"cells": [{"cell_type": "code", "source": WITHOUT_RETURN}]})
    for name, text in (("heads.py", WITHOUT_RETURN), ("heads.ipynb", notebook)):
        file = SourceFile(name, text)
        found = explain(NOTHING, full=full, file=file)
        assert found.message == f"{NOTHING} `Head.forward` has no `return`."
    error = TypeError("unsupported operand type(s) for +: 'NoneType' and 'int'")
    assert explain(error, full=full, file=file).message.endswith(
        "(TypeError). `Head.forward` has no `return`."
    )


@pytest.mark.parametrize(
    "text",
    [
        "def head(x: int) -> int:\n    if x:\n        return 2 * x\n",
        "def head(x: int) -> None:\n    x.clear()\n",
        "def head(x):\n    print(x)\n",
        f"def head(x: int) -> int:\n    {STUB_LINE}\n",
    ],
)
def test_no_return_is_missed_where_none_need_be(text):
    assert explain(NOTHING, full=True, file=SourceFile("heads.py", text)).message == str(NOTHING)


def test_the_shapes_of_the_line_that_raised_are_shown_unless_the_test_is_hidden():
    frame = Frame("heads.py", 1, "head", "q @ k", shapes="q is (3, 4), k is (5, 4)")
    error = raised("RuntimeError", "mat1 and mat2", frames=(frame,))
    found = explain(error, full=True).message
    assert found == (
        "Your code raised a RuntimeError: mat1 and mat2 (line 1).\n    q @ k\n    where q is (3, 4), k is (5, 4)"
    )
    assert "where" not in explain(error, full=False, file=SourceFile("heads.py", "q @ k\n")).message


COARSE = " Your code computes in {}, which keeps three digits; this test needs more."
NUMBERS = torch.tensor([0.7, -1.3, 2.1], dtype=torch.float64)


def failure_of(check, *arguments):
    with pytest.raises(CheckFailed) as caught:
        check(*arguments)
    return caught.value


def sum_in_bfloat16(x):
    return (x.bfloat16() * 0.1).to(x.dtype).sum()


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("x = x.to(torch.bfloat16)", "bfloat16"),
        ("x = x.bfloat16()", "bfloat16"),
        ("with torch.autocast('cpu', dtype=torch.bfloat16):", "bfloat16"),
        ("@torch.amp.autocast('cpu')", "bfloat16"),
        ("x = x.half()", "float16"),
        ("with autocast('cpu', torch.float16):", "float16"),
    ],
)
def test_number_type_with_few_digits_is_named_where_it_explains_the_difference(full, line, kind):
    file = SourceFile("heads.py", f"{line}\n")
    x = NUMBERS.clone().requires_grad_()
    for error in (
        failure_of(checks.close, NUMBERS.bfloat16().double(), NUMBERS),
        failure_of(checks.close, 0.7506, 0.75, "the loss"),
        failure_of(checks.rows_sum_to_one, torch.tensor([[0.5, 0.499]])),
        failure_of(checks.gradients_predict, lambda: sum_in_bfloat16(x), x),
    ):
        sentence = str(error) if full else error.public
        assert explain(error, full=full, file=file).message == sentence + COARSE.format(kind)


@pytest.mark.parametrize("came", [1.1 * NUMBERS, NUMBERS + 0.2, NUMBERS * float("nan"), -NUMBERS])
def test_number_type_is_not_named_where_the_difference_is_larger(came):
    error = failure_of(checks.close, came, NUMBERS)
    file = SourceFile("heads.py", "x.bfloat16()")
    assert explain(error, full=True, file=file).message == str(error)


class Head(torch.nn.Module):
    """A student's layer whose parts have other names than the test needs."""


@pytest.mark.parametrize("full", [False, True])
def test_missing_attribute_is_named(full):
    file = SourceFile("heads.py", "class Head(nn.Module):\n    pass\n")
    with pytest.raises(AttributeError) as caught:
        Head().value  # noqa: B018
    named = explain(caught.value, full=full, file=file).message
    assert named == "Your Head has no `value`; this test needs it."
    elsewhere = SourceFile("heads.py", "class Tail(nn.Module):\n    pass\n")
    assert "could not work with" in explain(caught.value, full=full, file=elsewhere).message


def test_control_characters_and_workflow_commands_are_made_harmless():
    text = clean("\x1b[2J::set-output name=x::1\r\n  ::error::you\nfine \u202e text", 200)
    assert "\x1b" not in text and "\r" not in text and "\u202e" not in text
    assert not any(line.lstrip().startswith("::") for line in text.splitlines())
    assert "fine" in text


def test_a_hidden_check_tells_its_public_sentence_alone() -> None:
    with pytest.raises(checks.CheckFailed) as failed:
        checks.close(2.0, 1.0, "loss([4711])")
    said = [explain(failed.value, full=full, file=None).message for full in (True, False)]
    assert said == [str(failed.value), failed.value.public] and "4711" not in said[1]
