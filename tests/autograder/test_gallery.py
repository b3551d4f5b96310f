"""A picture function returns a figure and a sentence about what it drew; no value of a student's breaks the sentence."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch
from matplotlib.figure import Figure

from autograder.checks import pictured
from autograder.feedback.gallery import LONGEST, NoSentenceError, PictureFunction, load_gallery

NESTED: list[Any] = []
NESTED.append(NESTED)
VALUES: dict[str, Any] = {
    "nan": math.nan,
    "infinite": torch.full((3, 3), -math.inf),
    "huge": 10**5000,
    "huge numbers": [10**400, -(10**400), 1e300],
    "empty": torch.zeros(0),
    "empty table": torch.zeros(0, 4),
    "three dimensions": torch.ones(2, 3, 4),
    "many": torch.arange(1_000_000.0),
    "wide": torch.ones(1000, 1000),
    "gradient": torch.ones(2, 2, requires_grad=True),
    "truth": torch.eye(3) > 0,
    "complex": torch.ones(3, dtype=torch.complex64),
    "sparse": torch.eye(3).to_sparse(),
    "meta": torch.ones(3, device="meta"),
    "half": torch.ones(3, 3, dtype=torch.bfloat16),
    "array": numpy.eye(3),
    "objects": numpy.array([None, "a"], dtype=object),
    "text": "\x1b[31mred",
    "nothing": None,
    "ragged": [[1.0], [2.0, 3.0], 4.0],
    "nested": NESTED,
    "no numbers": [object(), {}, "a"],
    "mixed": [math.nan, 1, True, numpy.float32(3), torch.tensor(4.0)],
}
WORDINGS: dict[str, Callable[[Any], str]] = {
    "number": pictured.number,
    "listed": lambda values: pictured.listed(values, ["a", "b"]),
    "curve": lambda values: pictured.curve(values, "the loss"),
    "curve by places": lambda values: pictured.curve([1, 2], "it", values),
    "largest": pictured.largest,
    "cells": lambda values: pictured.cells(values, "row", ["a"], diagonal=True),
    "span": pictured.span,
    "places": pictured.places,
}


@pytest.mark.parametrize("wording", WORDINGS)
@pytest.mark.parametrize("value", VALUES)
def test_every_value_has_words(wording: str, value: str) -> None:
    words = WORDINGS[wording](VALUES[value])
    assert words and words.isprintable() and len(words) < 160


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (pictured.number(-0.0), "0"),
        (pictured.number(-2), "−2"),
        (pictured.number(1e-9), "about 0"),
        (pictured.number(2048), "2,048"),
        (pictured.listed([1, 2.5], ["a"]), "a: 1, place 1: 2.5"),
        (pictured.curve([3, 1, 2], "loss"), "loss goes from 3 to 2, lowest at 1 (1)"),
        (pictured.curve([1, math.nan]), "goes from 1 to not a number; 1 of 2 are not numbers"),
        (pictured.curve([]), "has no numbers"),
        (pictured.span([2, -1]), "−1 to 2"),
        (pictured.places([0, 1, 1]), "1, 2"),
        (pictured.largest([1, 5], "key"), "key 1 (5)"),
        (
            pictured.cells(torch.ones(2, 2), "row", ["a", "b"], diagonal=True),
            "4 of 4 cells are lit, 1 of them above the diagonal; the brightest: row 0, a (1)",
        ),
        (pictured.cells(torch.zeros(1, 2)), "0 of 2 cells are lit"),
        (pictured.sentence("a is 1", "", "b."), "A is 1. B."),
    ],
)  # fmt: skip
def test_words_of_numbers(words: str, expected: str) -> None:
    assert words == expected


def test_words_of_axes() -> None:
    figure = Figure()
    lines, bars, image = figure.subplots(1, 3)
    lines.plot([1, 2, 4], label="loss: yours")
    lines.plot([0, 1], [5, 5], label="a line of the axes' own")
    lines.axhline(3)
    bars.bar(["a", "b"], [1, 2])
    image.imshow(torch.tensor([[0.0, math.nan], [0.5, 1.0]]))
    assert pictured.lines(lines, "left") == "left: loss goes from 1 to 4"
    assert pictured.bars(bars) == [1, 2]
    assert pictured.image(image) == "2 of 4 cells are lit; the brightest: row 1, column 1 (1)"


@pytest.mark.parametrize(
    "result", [Figure(), (Figure(), ""), (Figure(), " \n"), (Figure(), None), (1, 2, 3), None]
)
def test_picture_function_without_a_sentence_is_refused(result: object) -> None:
    def curve(student: object) -> object:
        return result

    with pytest.raises(NoSentenceError, match="`curve` in pictures.py returns no sentence"):
        PictureFunction("part", curve, {}).drawn(None)


def test_sentence_is_one_short_printable_line() -> None:
    def curve(student: object) -> tuple[Figure, str]:
        return Figure(), "It says:\n\x1b[31m" + "wide " * 1000

    _, words = PictureFunction("part", curve, {}).drawn(None)
    assert words.startswith("It says: [31mwide wide") and words.isprintable()
    assert len(words) == LONGEST and words.endswith("…")


def test_gallery_has_titles_captions_and_sliders(tmp_path: Path) -> None:
    file = tmp_path / "pictures.py"
    file.write_text(
        'def a_b(student, n=1):\n    """Look\n    here."""\n\ndef c(student): ...\n\n'
        'PICTURES = {"one": [a_b], "two": [c]}\nSLIDERS = {a_b: {"n": (1, 2)}}\n'
    )
    gallery = load_gallery(file)
    (first,), (second,) = gallery["one"], gallery["two"]
    assert (first.title, first.look_for, first.choices) == ("a b", "Look here.", {"n": (1, 2)})
    assert (second.title, second.look_for, second.choices) == ("c", "c", {})
