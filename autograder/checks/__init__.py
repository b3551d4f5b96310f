"""Assertions for suites, whose failures are sentences for students.

Example:
    >>> checks.close(student.attention(q, k, v)[0], expected, "the output")
    CheckFailed: The output differs first at batch 1, position 3, feature 0: 0.1234 came back,
    0.4567 was expected. 17 of 300 numbers differ, by at most 0.36.

A failed check raises `CheckFailed`. Its `str` is the full sentence; its `public` is the sentence
for hidden tests, without inputs and expected values. Exceptions of the student's code pass through
every check except `raises`. Random numbers come from a private generator with the test's seed. No
check broadcasts, and none calls a method of a value before its type is known.
"""

from autograder.checks.behaviour import (
    batch_invariant,
    convex_hull,
    deterministic_in_eval,
    global_randomness_untouched,
    heads_local,
    input_untouched,
    padding_invariant,
    permutation_equivariant,
    prefix_invariant,
    silent_sublayers,
)
from autograder.checks.errors import raises
from autograder.checks.gradients import (
    causal_by_gradient,
    gradients_close,
    gradients_predict,
    parameter_gradients_close,
)
from autograder.checks.modules import (
    buffers_follow,
    copy_parameters,
    no_parameters,
    parameter_count,
    parameters,
    randomize,
)
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
from autograder.failures.failed_check import CheckFailed

__all__ = [
    "CheckFailed", "batch_invariant", "between", "buffers_follow", "causal_by_gradient", "close", "convex_hull",
    "copy_parameters", "deterministic_in_eval", "dtype", "equal", "finite", "global_randomness_untouched",
    "gradients_close", "gradients_predict", "heads_local", "input_untouched", "no_parameters", "padding_invariant",
    "parameter_count", "parameter_gradients_close", "parameters", "permutation_equivariant", "prefix_invariant",
    "raises", "randomize", "rows_sum_to_one", "shape", "silent_sublayers", "tensor", "true", "unpack",
]  # fmt: skip
