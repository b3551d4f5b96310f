"""Measurements that are drawn anew."""

import numpy as np

from autograder import checks, task


@task(
    "summary",
    2,
    needs="test_summary_of_four_numbers",
    promise="shared among one less than there are numbers",
)
def test_summary_of_any_numbers(student, reference, seed):
    """Mean, median and spread are right for an odd count of numbers, too."""
    numbers = np.random.default_rng(seed).normal(60, 10, size=11)
    checks.close(student.summary(numbers), reference.summary(numbers), "the summary")


@task("summary", 1, promise="fewer than two numbers raise a ValueError")
def test_one_number_is_refused(student, seed):
    """One number alone raises a ValueError that names the argument."""
    one = np.random.default_rng(seed).normal(size=1)
    checks.raises(ValueError, student.summary, one, naming="numbers")


@task("standard", 1, needs="test_two_columns", promise="each column has mean 0 and spread 1")
def test_any_table(student, reference, seed):
    """Each column has the mean 0 and the spread 1, whatever its unit."""
    table = np.random.default_rng(seed).normal((1.7, 70, 30), (0.1, 12, 9), size=(8, 3))
    checks.close(student.standardise(table), reference.standardise(table), "the standardised table")


@task("standard", 1, promise="The table that is handed over stays as it is.")
def test_table_stays_as_it_is(student, seed):
    """The table that is handed over stays as it is."""
    table = np.random.default_rng(seed).normal(size=(5, 2))
    checks.input_untouched(student.standardise, table)


@task("resample", 2, promise="The means of so many draws.")
def test_means_of_any_draws(student, reference, seed):
    """The means are those of the drawn rows."""
    numbers = np.random.default_rng(seed).normal(60, 10, size=9)
    mine = student.resampled_means(numbers, 6, np.random.default_rng(seed + 1))
    checks.shape(mine, (6,), "the means")
    checks.close(
        mine, reference.resampled_means(numbers, 6, np.random.default_rng(seed + 1)), "the means"
    )
