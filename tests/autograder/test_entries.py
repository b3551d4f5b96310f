"""Forbidden functions that a submission enters by roads that its text does not show are flagged, with the line."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from pathlib import Path

import pytest
from torch import nn

from autograder.course.config import load_course
from autograder.grading.grader import Grader
from autograder.protocol.entries import record_entries
from autograder.records import SourceFile, Submission
from autograder.source.text import names_used

ROOT = Path(__file__).parents[2]
HEADS = "03_masked_heads"
READY = "torch.nn.functional.scaled_dot_product_attention"
ROADS = {
    "a table of modules": (READY, "sys.modules['torch.nn.' + 'functional'].scaled_dot_product_attention(q, k, v)"),
    "a pickled name": (READY, "pickle.loads(b'ctorch.nn.functional\\nscaled_dot_product_attention\\n.')(q, k, v)"),
    "a format": (
        READY,
        "string.Formatter().get_field('0.scaled_dot_product_attention', [torch.nn.functional], {})[0](q, k, v)",
    ),
    "a part of a layer": ("torch.nn.MultiheadAttention", "torch.nn.TransformerEncoderLayer(4, 1, 4).self_attn"),
    "a list of modules": (READY, "[torch.nn.functional][0].scaled_dot_product_attention(q, k, v)"),
}
HIDING = """

import pickle, string, sys
before = attention


def attention(q, k, v, mask=None):
    {road}
    return before(q, k, v, mask)
"""

UNFOLLOWED = [  # what the search in the text does not follow
    "n = None\nfor i in range(2):\n    if i:\n        n.LayerNorm(3)\n    import torch.nn as n",
    "def f():\n    global n\n    from torch import nn as n\ndef g():\n    return n.LayerNorm(3)\nf()\ng()",
    "class A: pass\nA.n = nn\nA.n.LayerNorm(3)",
    "nn.__dict__['LayerNorm'](3)",
    "vars(nn)['LayerNorm'](3)",
    "import sys\nsys.modules['torch.nn'].LayerNorm(3)",
]


@pytest.mark.parametrize("text", UNFOLLOWED, ids=range(len(UNFOLLOWED)))
def test_roads_that_the_text_hides_are_recorded_while_the_code_runs(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nn.LayerNorm, "__init__", nn.LayerNorm.__init__)  # as it is again after the test
    entries = record_entries(["torch.nn.LayerNorm"])
    text = f"import torch\nfrom torch import nn\n{text}"
    assert "torch.nn.LayerNorm" not in {name for name, *_ in names_used(text, "net.py")["uses"]}
    exec(compile(text, "net.py", "exec"), {})
    line = 1 + next(number for number, each in enumerate(text.split("\n")) if "(3)" in each)
    assert entries == {"torch.nn.LayerNorm": (line, 0)}


@pytest.fixture
def ready_made(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    module = types.ModuleType("ready_made")
    module.function = lambda number: number + 1
    module.Class = type("Class", (), {"__init__": lambda self, number: setattr(self, "number", number)})
    monkeypatch.setitem(sys.modules, "ready_made", module)
    return module


def test_what_is_entered_is_recorded_with_the_first_line(ready_made: types.ModuleType) -> None:
    function = ready_made.function
    entries = record_entries(["ready_made.function", "ready_made.Class", "ready_made.nothing", "away.function"])
    code = "import ready_made as r\nmade = r.Class(3)\nnumber = r.function(made.number)\nr.function(7)"
    space: dict = {}
    exec(compile(code, "adding.ipynb cell 2", "exec"), space)
    assert space["number"] == 4 and isinstance(space["made"], ready_made.Class)
    assert entries == {"ready_made.Class": (2, 2), "ready_made.function": (3, 2)}
    assert ready_made.function is not function


def test_a_place_outside_of_the_submission_is_unknown(ready_made: types.ModuleType) -> None:
    entries = record_entries(["ready_made.function"])
    ready_made.function(1)
    assert entries == {"ready_made.function": (0, 0)}


@pytest.fixture(scope="module")
def grader(sandbox) -> Iterator[Grader]:
    grader = Grader(load_course(ROOT), sandbox, 7, [HEADS])
    yield grader
    grader.close()


def flags(grader: Grader, text: str) -> tuple[str, ...]:
    return grader.grade(Submission("ada", HEADS, (SourceFile("masked_heads.py", text),))).flags


def test_roads_to_forbidden_names_are_flagged(grader: Grader) -> None:
    solution = (ROOT / "solutions" / HEADS / "masked_heads.py").read_text("utf-8")
    assert flags(grader, solution) == ()
    for road, (name, code) in ROADS.items():
        text = solution + HIDING.format(road=code)
        line = text[: text.index(code)].count("\n") + 1
        ran = [flag for flag in flags(grader, text) if "ran `" in flag]
        assert any(flag.startswith(f"Line {line} ran `{name}`") for flag in ran), (road, ran)


def test_what_the_text_shows_is_not_flagged_as_well(grader: Grader) -> None:
    """The tests that forbid it have failed already, with a sentence."""
    solution = (ROOT / "solutions" / HEADS / "masked_heads.py").read_text("utf-8")
    plain = "torch.nn.functional.scaled_dot_product_attention(q, k, v)"
    assert not any(READY in flag for flag in flags(grader, solution + HIDING.format(road=plain)))


LONG = """

F = torch.nn.functional{chain}


def attention(q, k, v, mask=None):
    mask = torch.ones(1, dtype=torch.bool) if mask is None else mask
    weights = F.scaled_dot_product_attention(q, k, torch.eye(k.shape[-2]).expand(*k.shape[:-1], -1), attn_mask=mask)
    return weights @ v, weights
"""


def test_a_long_chain_of_names_is_compared_as_a_whole_or_flagged(grader: Grader) -> None:
    solution = (ROOT / "solutions" / HEADS / "masked_heads.py").read_text("utf-8")
    grades = {}
    for times in (20, 200):
        text = solution + LONG.format(chain=".torch.nn.functional" * times)
        grades[times] = grader.grade(Submission("ada", HEADS, (SourceFile("masked_heads.py", text),)))
    assert any("scaled_dot_product_attention" in (test.message or "") for test in grades[20].tests)
    assert grades[20].score < grades[20].max_score
    assert any("looks names up" in flag and "functional.torch" in flag for flag in grades[200].flags)
