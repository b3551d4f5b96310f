# %% [markdown]
# # Measurements
#
# A scale shows another weight each time you step on it. What do a hundred such numbers say together, and how
# much of it is luck?

# %%
from __future__ import annotations

import numpy as np

# %% [markdown]
# ## Part 1 · Many numbers in three
#
# The **mean** is where the numbers balance, the **median** stands in their middle, and the **spread** says how
# far they lie from the mean: the root of the squared distances, added up and shared among one less than there
# are numbers,
#
# $$s = \sqrt{\frac{(x_1 - \bar{x})^2 + \dots + (x_n - \bar{x})^2}{n - 1}}.$$
#
# Fewer than two numbers have no spread, and are refused.


# %%
def summary(numbers: np.ndarray) -> dict[str, float]:
    """The keys mean, median and spread; fewer than two numbers raise a ValueError that names them."""
    # TODO: refuse fewer than two numbers, then return the three in a dictionary
    ### BEGIN SOLUTION
    if len(numbers) < 2:
        raise ValueError("numbers must hold at least two numbers.")
    distances = numbers - numbers.mean()
    spread = np.sqrt((distances**2).sum() / (len(numbers) - 1))
    return {
        "mean": float(numbers.mean()),
        "median": float(np.median(numbers)),
        "spread": float(spread),
    }
    ### END SOLUTION


# %% part="summary"

# %% [markdown]
# ## Part 2 · Columns that can be compared
#
# Who is more unusual, a person of 2.05 metres or one of 120 kilograms? Subtract from each column of a table its
# mean, and divide by its spread: now all columns are in the same unit. The table that is handed over stays as
# it is.


# %%
def standardise(table: np.ndarray) -> np.ndarray:
    """A new table in which each column has mean 0 and spread 1."""
    # TODO: subtract the mean of each column and divide by its spread, with one less than there are rows
    ### BEGIN SOLUTION
    means = table.mean(axis=0)
    spreads = table.std(axis=0, ddof=1)
    return (table - means) / spreads
    ### END SOLUTION


# %% part="standard"

# %% [markdown]
# ## Part 3 · How sure is a mean
#
# Had we measured again, the mean would be another one. We cannot, but we can draw from our own numbers, each
# time as many as there are and with repetition: the means of many such draws spread as much as the mean itself
# (the *bootstrap*).
#
# All draws come from one call of the generator: `generator.integers(n, size=(times, n))` gives the positions of
# each draw in a row.


# %%
def resampled_means(numbers: np.ndarray, times: int, generator: np.random.Generator) -> np.ndarray:
    """The means of so many draws."""
    # TODO: draw the positions of all draws, look up their numbers, and return the mean of each row
    ### BEGIN SOLUTION
    positions = generator.integers(len(numbers), size=(times, len(numbers)))
    return numbers[positions].mean(axis=1)
    ### END SOLUTION


# %% part="resample"

# %% picture="resample"
