"""Harder, and not graded: a longer text than in training (about 35 minutes, ●●○).

A model that was trained on 4,096 words fails at 8,000, although its hands can turn on for ever. Why? Hand i of D/2 turns
by ω_i = base^(-2i/D) radians a position, so it needs a **wavelength** of 2π / ω_i positions for a full turn. A fast hand
has pointed everywhere in training. A hand whose wavelength is longer than the training texts has never finished its
first turn; in a longer text it points where the model has never seen it point.

Three remedies, all without or with very little new training:

- **Position interpolation** (Chen and others, 2023): multiply *all* ω by 1/factor, so that position 8,000 looks like
  4,000. Now even neighbours, which only the fast hands tell apart, are closer together than they ever were.
- **A larger base** ("NTK-aware" scaling, 2023): choose it so that the slowest hand becomes slower by exactly the factor
  while the fastest stays as it is. The slowest is i = D/2 - 1, and the new base is base · factor^(D / (D - 2)).
- **By parts** (the idea of *YaRN*, Peng and others, 2023): hands that have finished a turn stay as they are; all others
  become slower by the factor.

**By hand.** For D = 4 and base 10,000 the hands turn by 1 and by 0.01, with the wavelengths 6.28 and 628.3. In texts of
100 words the second has not finished its turn. To read 800 words, the factor is 8, the larger base is
10,000 · 8^(4/2) = 640,000, and the second hand turns by 640,000^(-1/2) = 0.00125, which is 0.01 / 8. By parts, the two
hands turn by 1 and 0.00125 as well. The difference shows when there are more hands.

Write the four functions, and run `python harder.py`.
Each check stops after a minute of work.
"""

import math

import torch
from torch import Tensor

from autograder import checks


def speeds(D: int, base: float = 10000.0) -> Tensor:
    """The ω of each hand, the fastest first: float64 (D/2,)."""
    # TODO: one power for each hand                                               # (D/2,)
    raise NotImplementedError("speeds is not written yet.")


def unfinished(D: int, trained: int, base: float = 10000.0) -> int:
    """How many hands have a wavelength of more than `trained` positions."""
    # TODO: compare the wavelengths
    raise NotImplementedError("unfinished is not written yet.")


def larger_base(D: int, factor: float, base: float = 10000.0) -> float:
    """The base with which the slowest hand is slower by the factor, and the fastest as fast as before (D > 2)."""
    # TODO: one power
    raise NotImplementedError("larger_base is not written yet.")


def by_parts(D: int, trained: int, factor: float, base: float = 10000.0) -> Tensor:
    """The ω of each hand when the unfinished ones, and only these, are slower by the factor: float64 (D/2,)."""
    # TODO: some of the speeds, divided                                           # (D/2,)
    raise NotImplementedError("by_parts is not written yet.")


def numbers(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def speeds_by_hand() -> None:
    """For D = 4 the hands turn by 1 and by 0.01; with the base 256 and D = 8, each is a quarter of the one before."""
    checks.close(speeds(4), numbers(1.0, 0.01), "speeds(4)")
    checks.close(speeds(8, 256.0), numbers(1, 1 / 4, 1 / 16, 1 / 64), "speeds(8, 256.0)")


def waiting_hands() -> None:
    """The slower of two hands needs 628.3 positions; of Llama 2's 64 hands, 18 never finish a turn in 4,096 words."""
    counted = [unfinished(4, trained) for trained in (5, 100, 628, 629)]
    checks.equal(counted, [2, 1, 1, 0], "The unfinished hands for D = 4 in 5, 100, 628 and 629 words")
    checks.equal(unfinished(128, 4096), 18, "unfinished(128, 4096)")


def base_by_hand() -> None:
    """To read eight times as far with D = 4, the base is 640,000."""
    checks.true(abs(larger_base(4, 8.0) - 640_000) < 1e-3, f"The base is {larger_base(4, 8.0)}.")


def slowest_and_fastest() -> None:
    """With the larger base, the fastest hand is as fast as before, and the slowest is slower by exactly the factor."""
    for D, factor, base in ((8, 2.0, 10000.0), (128, 16.0, 10000.0), (6, 4.0, 500.0)):
        change = speeds(D, base) / speeds(D, larger_base(D, factor, base))
        checks.close(change[[0, -1]], numbers(1.0, factor), f"The change of the fastest and the slowest for D = {D}")


def parts() -> None:
    """By parts, each hand is either as it was or slower by the factor, and as many are slower as were unfinished."""
    for D, trained, factor in ((8, 64, 2.0), (128, 4096, 4.0), (16, 1, 8.0)):
        change = speeds(D) / by_parts(D, trained, factor)
        waiting = unfinished(D, trained)
        expected = torch.ones(D // 2, dtype=torch.float64)
        expected[D // 2 - waiting :] = factor
        checks.close(change, expected, f"By which the hands are slower for D = {D} and {trained} words")


def nothing_new() -> None:
    """By parts, no unfinished hand points further in the longer text than it did in training."""
    omega, longer = speeds(64), by_parts(64, 1000, 4.0)
    waiting = 2 * math.pi / omega > 1000
    checks.close((4000 * longer)[waiting], (1000 * omega)[waiting], "The angles at the end of the longer text")


CHECKS = [speeds_by_hand, waiting_hands, base_by_hand, slowest_and_fastest, parts, nothing_new]


if __name__ == "__main__":
    from autograder.notebook import run_checks

    run_checks(CHECKS)
