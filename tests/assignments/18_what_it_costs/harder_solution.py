"""For instructors: a solution of `given/harder.py`. Students do not receive it."""

import math


def flops_per_word(layers: int, width: int, vocab_size: int, T: int) -> int:
    return layers * (24 * width**2 + 4 * T * width) + 2 * width * vocab_size


def turning_point(width: int) -> int:
    return 6 * width


def training_days(parameters: float, words: float, cards: int, flops_a_second: float, used: float) -> float:
    return 6 * parameters * words / (cards * flops_a_second * used * 24 * 60 * 60)


def best_size(flops: float) -> tuple[float, float]:
    parameters = math.sqrt(flops / (6 * 20))
    return parameters, 20 * parameters
