"""Numbers that can be computed by hand."""

import numpy as np

from autograder import checks, task


@task("summary", 1)
def test_summary_of_four_numbers(student):
    """2, 4, 4 and 10 have the mean 5, the median 4 and a spread of the root of 12."""
    result = student.summary(np.array([2.0, 4.0, 4.0, 10.0]))
    checks.close(result, {"mean": 5.0, "median": 4.0, "spread": 12**0.5}, "summary([2, 4, 4, 10])")


@task("standard", 1)
def test_two_columns(student):
    """A column of 1, 2 and 3 becomes -1, 0 and 1, and so does one of 10, 20 and 30."""
    table = np.array([[1.0, 10.0], [2.0, 20.0], [3.0, 30.0]])
    wanted = np.array([[-1.0, -1.0], [0.0, 0.0], [1.0, 1.0]])
    checks.close(student.standardise(table), wanted, "the standardised table")


@task("resample", 1)
def test_equal_numbers_have_equal_means(student):
    """Whatever is drawn from 3, 3 and 3, its mean is 3."""
    means = student.resampled_means(np.full(3, 3.0), 5, np.random.default_rng(0))
    checks.close(means, np.full(5, 3.0), "the means")
