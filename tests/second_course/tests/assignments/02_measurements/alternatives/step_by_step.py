"""With loops in place of arrays."""

import statistics

import numpy as np


def summary(numbers):
    if numbers.size <= 1:
        raise ValueError("too few numbers")
    values = [float(number) for number in numbers]
    return {
        "spread": statistics.stdev(values),
        "mean": statistics.fmean(values),
        "median": statistics.median(values),
    }


def standardise(table):
    columns = []
    for column in table.T:
        values = summary(column)
        columns.append([(number - values["mean"]) / values["spread"] for number in column])
    return np.array(columns).T


def resampled_means(numbers, times, generator):
    draws = generator.integers(0, len(numbers), size=(times, len(numbers)))
    return np.array([np.mean([numbers[place] for place in draw]) for draw in draws])
