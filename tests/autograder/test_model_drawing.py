"""The drawing of a model: what stands in its boxes, and that they do not overlap."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import pytest
import torch
from torch import nn

from autograder.bridge.outside.local import load
from autograder.course.reading import load_course
from autograder.notebook import draw_model
from autograder.selfcheck.model_drawing import ModelDrawing

SVG = "{http://www.w3.org/2000/svg}"


class Rectangle(NamedTuple):
    left: float
    top: float
    right: float
    bottom: float


class Head(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.query = nn.Linear(6, 3, bias=False)
        self.dropout = nn.Dropout(0.1)


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.heads = nn.ModuleList([Head() for _ in range(2)])
        self.norm = nn.LayerNorm(6)


class Model(nn.Module):
    def __init__(self, layers: int = 3) -> None:
        super().__init__()
        self.word = nn.Embedding(11, 6)
        self.layers = nn.ModuleList([Layer() for _ in range(layers)])
        self.fc = nn.Linear(6, 11)
        self.scale = nn.Parameter(torch.ones(2, 7))


def rows(drawing: ModelDrawing) -> list[str]:
    """The text of each row from top to bottom: the name, the class, how often, and the number."""
    tree = ElementTree.fromstring(drawing.svg)
    for title in tree.iter(f"{SVG}title"):
        title.text = ""
    shown: dict[float, str] = {}
    for text in tree.iter(f"{SVG}text"):
        base = float(text.get("y", ""))
        words = " ".join("".join(text.itertext()).split())
        shown[base] = f"{shown.get(base, '')} {words}".strip()
    return [shown[base] for base in sorted(shown)]


def boxes(drawing: ModelDrawing) -> list[Rectangle]:
    tree = ElementTree.fromstring(drawing.svg)
    found = []
    for rect in tree.iter(f"{SVG}rect"):
        if "box" in rect.get("class", "").split():
            left = float(rect.get("x", ""))
            top = float(rect.get("y", ""))
            right = left + float(rect.get("width", ""))
            found.append(Rectangle(left, top, right, top + float(rect.get("height", ""))))
    return found


def test_every_module_has_a_row_with_its_name_class_and_number() -> None:
    model = Model()
    drawing = draw_model(model)
    assert rows(drawing)[:11] == [
        "Model 301 parameters", "output", "fc Linear 77 = 11 × 6 + 11", "layers Layer × 3 144 = 3 × 48",
        "norm LayerNorm 12 = 6 + 6", "heads Head × 2 36 = 2 × 18", "dropout Dropout 0",
        "query Linear 18 = 3 × 6", "word Embedding 66 = 11 × 6", "scale Parameter 14 = 2 × 7", "input",
    ]  # fmt: skip
    assert drawing.parameters == sum(parameter.numel() for parameter in model.parameters()) == 301


def test_only_equal_neighbours_in_a_list_are_drawn_once() -> None:
    linear = [nn.Linear(4, 4), nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 5), nn.Linear(4, 4)]
    assert rows(draw_model(nn.Sequential(*linear)))[2:6] == [
        "4 Linear 20 = 4 × 4 + 4", "3 Linear 25 = 5 × 4 + 5", "2 ReLU 0",
        "0–1 Linear × 2 40 = 2 × 20",
    ]  # fmt: skip
    block = nn.TransformerEncoderLayer(4, 2, 8)  # norm1 and norm2 are equal, but have names
    shown = rows(draw_model(block))
    assert "norm1 LayerNorm 8 = 4 + 4" in shown
    assert "norm2 LayerNorm 8 = 4 + 4" in shown


def test_equal_blocks_with_other_modules_inside_are_not_drawn_as_one() -> None:
    relu = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    gelu = nn.Sequential(nn.Linear(2, 2), nn.GELU())
    assert not any(
        "×" in row and "Sequential" in row for row in rows(draw_model(relu.append(gelu)))
    )
    lists = nn.ModuleList([relu[:2], gelu])
    assert [row for row in rows(draw_model(lists)) if "Sequential" in row] == [
        "1 Sequential 6",
        "0 Sequential 6",
    ]


def test_shared_weights_count_once_and_are_noted() -> None:
    model = Model()
    model.fc.weight = model.word.weight
    model.out = nn.Linear(6, 11, bias=False)
    model.out.weight = model.word.weight
    drawing = draw_model(model)
    assert rows(drawing)[0] == f"Model {301 - 66} parameters"
    assert rows(drawing)[2:4] == [
        "out Linear weight is word.weight",
        "fc Linear 11 and weight is word.weight",
    ]


def test_hostile_names_are_escaped() -> None:
    kind = type('<script>&"]]>\x07', (nn.Linear,), {})
    model = nn.Module()
    model.add_module("<b> &amp; \x1b\ud800", kind(2, 3))
    drawing = draw_model(model)
    assert rows(drawing)[2] == '<b> &amp; �� <script>&"]]>� 9 = 3 × 2 + 3'
    assert "<script>" not in drawing.svg


def test_deeper_modules_are_not_drawn_but_counted() -> None:
    model = nn.Module()
    model.one = nn.Module()
    model.one.two = nn.Module()
    model.one.two.three = nn.Module()
    model.one.two.three.four = nn.Linear(2, 2)
    shown = rows(draw_model(model))
    assert shown[:6] == [
        "Module 6 parameters", "output", "one Module 6", "two Module 6", "three Module … 6 = 2 × 2 + 2",
        "input",
    ]  # fmt: skip
    assert shown[-1] == "“…”: there are more modules inside."
    assert "“…”" not in " ".join(rows(draw_model(model.one)))


@pytest.mark.parametrize(
    ("model", "row"),
    [
        (nn.ReLU(), "ReLU 0"),
        (nn.Linear(2, 3), "Linear 9 = 3 × 2 + 3"),
        (nn.Module(), "Module 0"),
        (nn.ModuleList(), "ModuleList 0"),
        (nn.MultiheadAttention(4, 2), "MultiheadAttention 80 = 12 × 4 + 12 + 4 × 4 + 4"),
    ],
)
def test_a_model_without_modules_is_one_box(model: nn.Module, row: str) -> None:
    drawing = draw_model(model)
    assert rows(drawing)[2] == row
    assert len(boxes(drawing)) == 1


@pytest.mark.parametrize(
    ("name", "kind", "sizes"),
    [
        ("05_encoder_block", "TransformerEncoder", (50, 16, 2, 3, 32)),
        ("07_mini_gpt", "TransformerLanguageModel", (31, 16, 8, 2, 3)),
        ("08_encoder_decoder", "Translator", (20, 16, 2, 3, 32, 9)),
        ("09_masked_language_model", "MaskedLanguageModel", (50, 16, 2, 3, 32)),
    ],
)
def test_the_models_of_the_course_are_drawn(name: str, kind: str, sizes: tuple[int, ...]) -> None:
    course = load_course(Path(__file__).parents[2])
    solution = course.solution_file(course.assignment(name))
    model = getattr(load(solution.read_text("utf-8"), "solution.py").module, kind)(*sizes)
    drawing = draw_model(model)
    total = sum(parameter.numel() for parameter in model.parameters())
    shown = rows(drawing)
    assert shown[0] == f"{kind} {total:,} parameters"
    assert any("× 3" in row for row in shown)
    for attribute, _ in model.named_children():
        assert any(row.startswith(f"{attribute} ") for row in shown)
