"""How far means lie apart that the student's code draws."""

import numpy as np
from matplotlib.figure import Figure

from autograder.checks.pictured import number

NUMBERS = np.array([61.2, 59.8, 60.5, 63.0, 58.9, 60.1, 61.7, 59.5])


def means(student):
    """Four hundred means of your draws. Most of them lie within half a kilogram of the line, the mean of the numbers."""
    drawn = student.resampled_means(NUMBERS, 400, np.random.default_rng(7))
    figure = Figure(figsize=(6, 2.5), layout="constrained")
    axes = figure.add_subplot()
    axes.hist(drawn, bins=20, range=(58, 63), color="#0072B2")
    axes.axvline(NUMBERS.mean(), color="#D55E00", label="the mean of the numbers")
    axes.set(xlabel="mean in kilograms", ylabel="draws")
    axes.legend()
    least, most = number(np.min(drawn)), number(np.max(drawn))
    return figure, f"The means of your draws lie between {least} and {most} kilograms."


PICTURES = {"resample": [means]}
