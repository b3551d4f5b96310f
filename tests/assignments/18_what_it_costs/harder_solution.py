"""For instructors: a solution of `given/harder.py`. Students do not receive it."""

import math


def training_days(parameters: float, tokens: float, cards: int, flops_a_second: float, used: float) -> float:
    return 6 * parameters * tokens / (cards * flops_a_second * used * 24 * 60 * 60)


def best_size(flops: float) -> tuple[float, float]:
    parameters = math.sqrt(flops / (6 * 20))
    return parameters, 20 * parameters
