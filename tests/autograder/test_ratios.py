"""The ratio that guards the speed: what is compared, and when it fails. Nothing is measured here."""

from __future__ import annotations

import pytest

from benchmarks.ratios import Pair, judged, read, table, write

RIGHT, WRONG = ("03_masked_heads", "right"), ("03_masked_heads", "mistakes")
RECORDED = {RIGHT: 4.0, WRONG: 20.0}


@pytest.mark.parametrize(
    ("ratios", "measured", "too_much"),
    [
        ((4.0, 20.0), 2, []),
        ((5.9, 29.0), 2, []),
        ((2.0, 10.0), 2, []),
        ((6.1, 20.0, 4.0), 3, []),  # the repeat counts if it is lower
        ((6.1, 20.0, 6.2), 3, [RIGHT]),
        ((6.1, 31.0, 4.0, 32.0), 4, [WRONG]),
    ],
)
def test_a_ratio_fails_only_if_it_is_too_large_twice(ratios, measured, too_much):
    left = list(ratios)
    pairs, failed = judged([RIGHT, WRONG], lambda kind: Pair(10.0, 10.0 * left.pop(0)), RECORDED)
    assert failed == too_much
    assert len(ratios) - len(left) == measured
    assert pairs.keys() == RECORDED.keys()


def test_a_kind_without_a_record_fails_nothing():
    assert judged([RIGHT], lambda kind: Pair(10.0, 1000.0), {})[1] == []


def test_a_record_holds_the_commit_and_is_read_as_it_was_written(tmp_path):
    file = tmp_path / "ratios.json"
    assert read(file) == ("", {})
    write(file, {RIGHT: Pair(10.0, 40.0), WRONG: Pair(10.0, 200.0)}, "abcdef01")
    assert read(file) == ("abcdef01", RECORDED)


def test_a_figure_of_the_grader_stands_beside_its_floor():
    line = table({RIGHT: Pair(12.0, 48.0)}, RECORDED, "abcdef01").splitlines()[-1]
    assert line == "| 03_masked_heads | right | 12 ms | 48 ms | 4.0 | 4.0 |"
