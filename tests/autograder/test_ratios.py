"""The ratio that guards the speed: what is compared, and when it fails. Nothing is measured here."""

from __future__ import annotations

import pytest

from benchmarks.ratios import Pair, judged

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
