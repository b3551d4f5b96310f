"""The assertion vocabulary of suites: each check either returns nothing or fails with a sentence.

Example:
    >>> checks.close(student.attention(q, k, v)[0], expected, "the output")
    CheckFailed: The output differs first at batch 1, position 3, feature 0: 0.1234 came back,
    0.4567 was expected. 17 of 300 numbers differ, by at most 0.36.

A failure is a `CheckFailed`. Its `str` is the full sentence; its `public` is the sentence for tests that
stay hidden, without inputs and expected values. Rooms: `values` looks at one value that came back,
`modules` at parameters and buffers, `behaviour` at calls that are repeated with a difference, `gradients`
at what flows back, `errors` at refusals; `sentences` holds the words.

What it does not do: it runs no test, catches nothing that a student's code raises (except in `raises`),
knows nothing of points, never broadcasts, and never calls a method of a value whose type it has not seen.
"""

from autograder.checks.behaviour import (
    batch_invariant,
    convex_hull,
    deterministic_in_eval,
    heads_local,
    input_untouched,
    padding_invariant,
    permutation_equivariant,
    prefix_invariant,
    silent_sublayers,
)
from autograder.checks.errors import raises
from autograder.checks.gradients import causal_by_gradient, gradients_close, parameter_gradients_close
from autograder.checks.modules import (
    buffers_follow,
    copy_parameters,
    no_parameters,
    parameter_count,
    parameters,
    randomize,
)
from autograder.checks.sentences import CheckFailed
from autograder.checks.values import (
    between,
    close,
    dtype,
    equal,
    finite,
    rows_sum_to_one,
    shape,
    tensor,
    true,
    unpack,
)

__all__ = [
    "CheckFailed",
    "batch_invariant",
    "between",
    "buffers_follow",
    "causal_by_gradient",
    "close",
    "convex_hull",
    "copy_parameters",
    "deterministic_in_eval",
    "dtype",
    "equal",
    "finite",
    "gradients_close",
    "heads_local",
    "input_untouched",
    "no_parameters",
    "padding_invariant",
    "parameter_count",
    "parameter_gradients_close",
    "parameters",
    "permutation_equivariant",
    "prefix_invariant",
    "raises",
    "randomize",
    "rows_sum_to_one",
    "shape",
    "silent_sublayers",
    "tensor",
    "true",
    "unpack",
]
