"""Wrong answers, each with the exact sentence of the check that fails.

Every entry of GOLDEN is a failing call with the sentence for the student, in which «marks» enclose what the public one
leaves out, or with both sentences: the public one must not contain inputs or expected values.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from autograder import checks


def count(*size: int) -> Tensor:
    """Return a tensor 0.0, 1.0, 2.0, … of that shape."""
    return torch.arange(math.prod(size), dtype=torch.float64).reshape(size)


def changed(t: Tensor, at: tuple[int, ...], value: float) -> Tensor:
    t = t.clone()
    t[at] = value
    return t


def half(block_size: int) -> int:
    return block_size // 2


def divide(block_size: int) -> float:
    return block_size / 0


def refuse(block_size: int) -> None:
    raise ValueError("I do not like it")


def refuse_block_size(block_size: int) -> None:
    raise ValueError("block_size is too small")


def refuse_well(T: int, block_size: int) -> None:
    raise ValueError(f"T = {T} is longer than the block size.")


def add_in_place(x: Tensor) -> Tensor:
    x += 1
    return x


def blend(x: Tensor) -> Tensor:
    """Replace every position by the mean of all positions."""
    return x.mean(1, keepdim=True).expand_as(x)


def remember(x: Tensor) -> Tensor:
    return x.cumsum(1)


def ignore_padding(x: Tensor, padding: Tensor) -> Tensor:
    return x.masked_fill(padding[..., None], 0.0).cumsum(1)


class Noise(nn.Module):
    """Counts its calls, so that each call gives another result, as dropout that is always active."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        return x + self.calls


class Table(nn.Module):
    """A module with one weight and one constant, which is a buffer or not."""

    def __init__(self, registered: bool) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2, 3))
        if registered:
            self.register_buffer("pe", torch.arange(4.0)[None])
        else:
            self.pe = torch.arange(4.0)[None]


class Scale(nn.Module):
    """A module x * gamma with options for the tests of gradients."""

    def __init__(self, power: int = 1, use: bool = True) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.full((3,), 2.0, dtype=torch.float64))
        self.power, self.use = power, use

    def forward(self, x: Tensor) -> Tensor:
        return x * self.gamma**self.power if self.use else x * 2.0


class TwoHeads(nn.Module):
    """A module that scales each column by one of three weights; the third belongs to no head."""

    def __init__(self, columns: list[int]) -> None:
        super().__init__()
        self.scales = nn.Parameter(torch.ones(3, dtype=torch.float64))
        self.columns = columns

    def forward(self, x: Tensor) -> Tensor:
        return x * self.scales[self.columns]

    def touch(self, head: int) -> None:
        with torch.no_grad():
            self.scales[head] += 1.0


def heads_local(columns: list[int]) -> None:
    module = TwoHeads(columns)
    checks.heads_local(module, count(1, 2, 4) + 1, 2, touch=module.touch)


def silent(leftover: float) -> None:
    layer = nn.Linear(3, 3, bias=False).double()
    checks.silent_sublayers(
        lambda x: x + layer(x) + leftover, count(1, 2, 3), [layer.weight], lambda x: x
    )


def leak(x: Tensor) -> Tensor:
    return remember(x) + 0.5 * x.roll(-2, 1)


def nan_row(x: Tensor) -> Tensor:
    return changed(x, (0, 1, 2), math.nan)


def throw(error: Exception) -> None:
    raise error


class Invented(torch.autograd.Function):
    """Hands an output on; the gradient is 0.5, whatever comes back."""

    @staticmethod
    def forward(ctx: object, output: Tensor) -> Tensor:
        return output.clone()

    @staticmethod
    def backward(ctx: object, gradient: Tensor) -> Tensor:
        return torch.full_like(gradient, 0.5)


SOURCE = torch.arange(1.0, 9.0, dtype=torch.float64).reshape(2, 4).requires_grad_()


def leaf() -> Tensor:
    """Return an input that requires gradients, so that an output can be connected without any parameter."""
    return torch.ones(3, dtype=torch.float64, requires_grad=True)


X = count(2, 3, 4)
NONZERO = X + 1
GOLDEN = {
    "close_numbers": (
        lambda: checks.close(changed(X, (1, 2, 0), 0.1234567), X),
        (
            "The output differs first at batch 1, position 2, feature 0«: 0.1235 came back, 20 was "
            "expected». 1 of 24 numbers differs, by at most 20."
        ),
    ),
    "close_many_numbers": (
        lambda: checks.close(2 * X, X, "the weights of head 2", axes=("head", "row", "column")),
        (
            "The weights of head 2 differ first at head 0, row 0, column 1«: 2 came back, 1 was "
            "expected». Every number is 2 times what was expected."
        ),
    ),
    "close_digits": (lambda: checks.close(0.123456, 0.123400, "the loss", atol=1e-9),
                     "The loss is 0.123456; 0.1234 was expected (off by 5.6e-05).",
                     "The loss is not as expected (off by 5.6e-05)."),
    "close_call": (lambda: checks.close(2.5, 2.0, "loss([1, 2])"),
                   "loss([1, 2]) returned 2.5; 2 was expected (off by 0.5).",
                   "The result of loss(…) is not as expected (off by 0.5)."),
    "close_shape": (
        lambda: checks.close(X.transpose(1, 2), X, axes=("batch", "position", "feature")),
        "The output has shape (2, 4, 3); (2, 3, 4) (batch, position, feature) was expected.",
    ),
    "close_none": (lambda: checks.close(None, X, "attention(q, k, v)"),
                   "attention(q, k, v) returned None; a tensor of shape (2, 3, 4) was expected."),
    "close_tuple": (lambda: checks.close((X, X), X),
                    "The output is a tuple« of 2»; a tensor of shape (2, 3, 4) was expected."),
    "close_numpy": (
        lambda: checks.close(X.numpy(), X),
        "The output is a numpy array of shape (2, 3, 4); a tensor of shape (2, 3, 4) was expected.",
    ),
    "close_sparse": (lambda: checks.close(X.to_sparse(), X),
                     "The output is a sparse tensor; a tensor of shape (2, 3, 4) was expected."),
    "close_text": (
        lambda: checks.close("seven" * 100, 7.0, "the loss"),
        "The loss is the text 'sevensevensevensevensevensevensevensevensevensevensevenseven'…; a number was expected.",
        "The loss is a text; a number was expected.",
    ),
    "close_nan": (lambda: checks.close(nan_row(X), X),
                  "The output is NaN at batch 0, position 1, feature 2: 1 of 24 numbers is NaN."),
    "close_infinite": (
        lambda: checks.close((X + 1) / 0, X),
        "The output is infinite at batch 0, position 0, feature 0: 24 of 24 numbers are infinite.",
    ),
    "close_whole_numbers": (
        lambda: checks.close(X.long(), X),
        "The output holds whole numbers (torch.int64); floating-point numbers were expected.",
    ),
    "close_bool": (lambda: checks.close(True, 1.0, "the loss"),
                   "The loss is True; a number was expected.",
                   "The loss is a truth value; a number was expected."),
    "close_items": (
        lambda: checks.close((X, X + 1), (X, X), "attention(q, k, v)"),
        (
            "Item 1 of attention(q, k, v) differs first at batch 0, position 0, feature 0«: 1 came "
            "back, 0 was expected». Every number is too large by 1."
        ),
    ),
    "equal_int": (lambda: checks.equal(109519104, 109482240, "the total of count_bert(config)"),
                  "The total of count_bert(config) is 109519104; 109482240 was expected.",
                  "The total of count_bert(config) is too large."),
    "equal_id": (lambda: checks.equal(7, 4, "nearest_word(9)", is_id=True),
                 "nearest_word(9) returned 7; 4 was expected.",
                 "The result of nearest_word(…) is not the expected number."),
    "unpack_length": (
        lambda: checks.unpack([1, 2, 3], ("output", "weights"), "attention(q, k, v)"),
        "The result of attention(q, k, v) has 3 items; 2 (output, weights) were expected.",
    ),
    "equal_text": (lambda: checks.equal("abd", "abc", "decode([0, 1, 2])"),
                   "decode([0, 1, 2]) returned 'abd'; 'abc' was expected.",
                   "The result of decode(…) is not the expected text."),
    "equal_word": (lambda: checks.equal([1], [2], "labels with p = 1"),
                   "Item 0 of labels with p = 1 is 1; 2 was expected.",
                   "Item 0 of labels with p = … is not the expected number."),
    "equal_item": (
        lambda: checks.equal([(0, 1), (1, 2)], [(0, 1), (1, 0)], "skip_gram_pairs([5, 7], 1)"),
        "Item 1 of item 1 of skip_gram_pairs([5, 7], 1) is 2; 0 was expected.",
        "Item 1 of item 1 of skip_gram_pairs(…) is not the expected number.",
    ),
    "equal_list_for_tuple": (lambda: checks.equal([[0, 1]], [(0, 1)], "the pairs"),
                             "Item 0 of the pairs is a list« of 2»; a tuple was expected."),
    "equal_length": (lambda: checks.equal([1, 2], [1, 2, 3], "the ids"),
                     "The ids have 2 items; 3 were expected.",
                     "The ids have 2 items, which is too few."),
    "equal_keys": (
        lambda: checks.equal({"total": 1, 7: 2}, {"total": 1, "pooler": 2, 9: 1}, "the counts"),
        "The counts lack the keys pooler and 9 and have the unexpected key 7.",
        "The counts lack the keys pooler and … and have the unexpected key ….",
    ),
    "equal_mask": (
        lambda: checks.equal(torch.ones(2, 2).bool(), torch.ones(2, 2).tril().bool(), "the mask"),
        "The mask differs first at row 0, column 1«: True came back, False was expected». 1 of 4 entries differs.",
    ),
    "equal_ids": (
        lambda: checks.equal(torch.tensor([1, 2, 9]), torch.tensor([1, 2, 3]), "the ids"),
        "The ids differ first at index 2«: 9 came back, 3 was expected». 1 of 3 numbers differs.",
    ),
    "equal_huge": (lambda: checks.equal(10**5000, 1, "the total"),
                   "The total is a whole number of about 5000 digits; 1 was expected.",
                   "The total is too large."),
    "shape": (lambda: checks.shape(X, (2, 4, 3), axes=("batch", "position", "feature")),
              "The output has shape (2, 3, 4); (2, 4, 3) (batch, position, feature) was expected."),
    "shape_call": (lambda: checks.shape(X, (2, 4, 3), "split_heads(x, 4)"),
                   "The result of split_heads(x, 4) has shape (2, 3, 4); (2, 4, 3) was expected.",
                   "The result of split_heads(…) has shape (2, 3, 4); (2, 4, 3) was expected."),
    "shape_type": (lambda: checks.shape([1, 2], (2,), "the ids"),
                   "The ids are a list« of 2», which has no shape; (2,) was expected."),
    "dtype": (lambda: checks.dtype(X, torch.float32, "the table"),
              "The table has the number type torch.float64; torch.float32 was expected."),
    "finite": (
        lambda: checks.finite(1 / X, "the weights"),
        "The weights are infinite at batch 0, position 0, feature 0: 1 of 24 numbers is infinite.",
    ),
    "tensor": (lambda: checks.tensor((i for i in range(3)), "the answer"),
               "The answer is a generator; a tensor was expected."),
    "unpack": (
        lambda: checks.unpack(X, ("output", "weights"), "attention(q, k, v)"),
        "attention(q, k, v) returned a tensor of shape (2, 3, 4); a tuple of 2 (output, weights) was expected.",
    ),
    "between": (lambda: checks.between(0.12, 0.14, 0.16, "the share of masked words"),
                "The share of masked words is 0.12; 0.14 to 0.16 was expected.",
                "The share of masked words is 0.12, which is too small."),
    "between_type": (lambda: checks.between(None, 0.14, 0.16, "the share of masked words"),
                     "The share of masked words is None; a number was expected."),
    "rows_sum_to_one": (
        lambda: checks.rows_sum_to_one(torch.full((2, 3, 5), 0.25)),
        "In the weights, the row at batch 0, position 0 sums to 1.25; each row should sum to 1.",
        "In the weights, the row at batch 0, position 0 does not sum to one.",
    ),
    "rows_sum_to_one_negative": (
        lambda: checks.rows_sum_to_one(torch.tensor([[0.5, 0.5], [-0.5, 1.5]])),
        "The weights are negative at row 1, column 0.",
    ),
    "true": (lambda: checks.true(False, "Row 0 of norm2 should be [0, 1] for T = 9, not 'ab'."),
             "Row 0 of norm2 should be [0, 1] for T = 9, not 'ab'.",
             "Row … of norm2 should be … for T = …, not …."),
    "true_domain": (
        lambda: checks.true(
            False, "ids are whole numbers from 0 to V - 1, n is one from 2 on, not from 3 to 9."
        ),
        "ids are whole numbers from 0 to V - 1, n is one from 2 on, not from 3 to 9.",
        "ids are whole numbers from 0 to V - 1, n is one from 2 on, not from … to ….",
    ),
    "true_public": (
        lambda: checks.true(False, "Head 1 says 0.3.", public="Head 1 says something else."),
        "Head 1 says 0.3.",
        "Head 1 says something else.",
    ),
    "true_tensor": (lambda: checks.true(torch.ones(2) == 1, "Both should be one."),
                    "Both should be one."),
    "raises_returned": (
        lambda: checks.raises(ValueError, half, 9, naming=("block_size", 9)),
        "half(9) returned 4, but a ValueError that names block_size and 9 was expected.",
        "half(…) returned a whole number, but a ValueError that names block_size and its value was expected.",
    ),
    "raises_other": (
        lambda: checks.raises(ValueError, divide, 9, naming="block_size"),
        (
            'divide(9) raised a ZeroDivisionError ("division by zero"), but a ValueError that names '
            "block_size was expected."
        ),
        "divide(…) raised a ZeroDivisionError, but a ValueError that names block_size was expected.",
    ),
    "raises_unnamed": (
        lambda: checks.raises(ValueError, refuse, 9, naming=("block_size", 9)),
        (
            "refuse(9) raised a ValueError, as it should, but its message does not name block_size and "
            '9 ("I do not like it").'
        ),
        "refuse(…) raised a ValueError, as it should, but its message does not name block_size and its value.",
    ),
    "raises_without_the_value": (
        lambda: checks.raises(ValueError, refuse_block_size, 9, naming=("block_size", 9)),
        (
            "refuse_block_size(9) raised a ValueError, as it should, but its message does not name 9 "
            '("block_size is too small").'
        ),
        "refuse_block_size(…) raised a ValueError, as it should, but its message does not name the value.",
    ),
    "raises_module": (
        lambda: checks.raises(ValueError, nn.Identity(), X),
        "identity(a tensor of shape (2, 3, 4)) returned a tensor of shape (2, 3, 4), but a ValueError was expected.",
        "identity(…) returned a tensor of shape (2, 3, 4), but a ValueError was expected.",
    ),
    "input_untouched": (
        lambda: checks.input_untouched(add_in_place, X.clone()),
        "The call changed its input at batch 0, position 0, feature 0: it was 0 before and is 1 after.",
        "The call changed its input at batch 0, position 0, feature 0; an input must keep its values.",
    ),
    "input_untouched_second": (
        lambda: checks.input_untouched(
            lambda a, b: b.unsqueeze_(0), 3, X.clone(), what="Head(20, 5)"
        ),
        "Head(20, 5) changed its input number 2: its shape was (2, 3, 4) before and is (1, 2, 3, 4) after.",
        "Head(…) changed its input number 2: its shape was (2, 3, 4) before and is (1, 2, 3, 4) after.",
    ),
    "input_untouched_list": (
        lambda: checks.input_untouched(
            lambda x, ids: ids.append(7), X.clone(), [3, 5], what="mask(x, 2)"
        ),
        "mask(x, 2) changed its input number 2: it was [3, 5] before and is [3, 5, 7] after.",
        "mask(…) changed its input number 2; an input must keep its values.",
    ),
    "deterministic_in_eval": (
        lambda: checks.deterministic_in_eval(Noise(), X),
        (
            "In eval mode, two calls with the same input must agree, but their results differ first at "
            "batch 0, position 0, feature 0«: 2 in the second call, 1 in the first». 24 of 24 numbers "
            "differ, by at most 1."
        ),
    ),
    "global_randomness_untouched": (
        lambda: checks.global_randomness_untouched(torch.rand, 2, what="split(...)"),
        "split(...) changes the global random state of PyTorch: whoever draws afterwards gets other numbers.",
    ),
    "batch_invariant": (
        lambda: checks.batch_invariant(lambda x: x - x.mean(0), X),
        (
            "The result of row 0 depends on the other rows of the batch: it differs first at position "
            "0, feature 0«: 0 alone, -6 in the batch». 12 of 12 numbers differ, by at most 6."
        ),
    ),
    "batch_invariant_shape": (lambda: checks.batch_invariant(lambda x: x[0], X),
                              "The output has shape (3, 4); (2, …) was expected (batch, …)."),
    "prefix_invariant": (
        lambda: checks.prefix_invariant(blend, X),
        (
            "The output at the first position must not depend on later positions, but differs first at "
            "batch 0, position 0, feature 0«: 0 without them, 4 with them». 8 of 8 numbers differ, by "
            "at most 4."
        ),
    ),
    "prefix_invariant_shape": (
        lambda: checks.prefix_invariant(lambda x: x.mean(1), X, what="the logits"),
        "The logits have shape (2, 4); (2, 3, …) was expected (batch, position, …).",
    ),
    "causal_leak": (
        lambda: checks.causal_by_gradient(leak, NONZERO),
        "Position 0 depends on position 2: the output there must not change with that input.",
    ),
    "causal_many_leaks": (
        lambda: checks.causal_by_gradient(blend, NONZERO),
        "Position 0 depends on position 1 (and 2 more such pairs): the output there must not change with that input.",
    ),
    "causal_blind": (
        lambda: checks.causal_by_gradient(lambda x: x, NONZERO),
        "Position 1 does not depend on position 0 (and 2 more such pairs): the output there must change with that input.",
    ),
    "causal_detached": (
        lambda: checks.causal_by_gradient(lambda x: remember(x).detach(), NONZERO),
        "The output is cut off from the input: no gradient can flow back through it.",
    ),
    "causal_shape": (lambda: checks.causal_by_gradient(lambda x: x.mean(1), NONZERO),
                     "The output has shape (2, 4); (2, 3, …) was expected (batch, position, …)."),
    "padding_length": (
        lambda: checks.padding_invariant(lambda x, padding: x + x.shape[1], X, [3, 2]),
        (
            "The result of row 1 depends on its padding: it differs first at position 0, feature 0«: "
            "15 with padding, 14 without». 8 of 8 numbers differ, by at most 1."
        ),
    ),
    "gradients_invented": (
        lambda: checks.gradients_predict(lambda: Invented.apply(2 * SOURCE), SOURCE),
        "After a small step, the output differs from what the gradient says.",
    ),
    "gradients_detached": (
        lambda: checks.gradients_close(lambda x: x.detach(), lambda x: x, X),
        "The output is cut off from the input: no gradient can flow back through it.",
    ),
    "gradients_missing": (
        lambda: checks.gradients_close(lambda x, y: x, lambda x, y: x + y, X, X),
        "The gradient of input number 2 is missing: nothing in the output depends on it.",
    ),
    "parameter_gradients_unused": (
        lambda: checks.parameter_gradients_close(Scale(use=False), Scale(), leaf()),
        "The gradient of gamma is missing: nothing in the output depends on it.",
    ),
    "parameters_missing": (
        lambda: checks.parameters(Table(True), {"key.weight": (2, 3), "weight": (2, 3)}),
        "The module lacks the parameter key.weight.",
    ),
    "parameters_extra": (
        lambda: checks.parameters(nn.Linear(2, 3), {"weight": (3, 2)}, "Head(2, 3)"),
        "Head(2, 3) has the unexpected parameter bias.",
        "Head(…) has the unexpected parameter bias.",
    ),
    "parameters_shape": (lambda: checks.parameters(Table(True), {"weight": (3, 2)}),
                         "The module has a parameter weight of shape (2, 3); (3, 2) was expected."),
    "parameter_count": (lambda: checks.parameter_count(Table(True), 9),
                        "The module has 6 parameters; 9 were expected (3 too few).",
                        "The module has 6 parameters, which is too few."),
    "no_parameters": (lambda: checks.no_parameters(Table(True)),
                      "The module should have no trainable parameters, but has weight."),
    "buffers_follow": (
        lambda: checks.buffers_follow(Table(False)),
        "The module has no buffer: a constant tensor follows `.to(...)` only if it is registered as a buffer.",
    ),
    "buffers_follow_names": (lambda: checks.buffers_follow(Table(True), ("mask",)),
                             "The module has no buffer called mask."),
    "buffers_follow_holding": (
        lambda: checks.buffers_follow(Table(True), holding=torch.ones(4)),
        "The module has no buffer that holds the expected table; its buffers are pe.",
    ),
    "copy_parameters": (lambda: checks.copy_parameters(nn.Linear(2, 3), Table(True)),
                        "The module lacks the parameter bias."),
    "heads_local_leak": (
        lambda: heads_local([0, 1, 0, 1]),
        "A change of head 0 alone changes column 2 of the output; it may change only its own columns 0 to 1.",
    ),
    "heads_local_still": (
        lambda: heads_local([0, 2, 1, 1]),
        "A change of head 0 does not change column 1 of the output, one of its own columns 0 to 1.",
    ),
    "silent_sublayers": (
        lambda: silent(1.0),
        (
            "The output with silent sublayers differs first at batch 0, position 0, feature 0«: 1 came "
            "back, 0 was expected». Every number is too large by 1."
        ),
    ),
    "convex_hull_constant": (
        lambda: checks.convex_hull(lambda v: v.sum(-2, keepdim=True), X),
        (
            "When all values are the same vector, the output must be that vector, but differs first at "
            "batch 0, position 0, feature 1«: 3 came back, 1 was expected». 7 of 8 numbers differ, by "
            "at most 30."
        ),
    ),
    "convex_hull_range": (
        lambda: checks.convex_hull(lambda v: 2 * v - v.mean(-2, keepdim=True), X),
        (
            "A weighted mean lies between the smallest and the largest value; the output does not at "
            "batch 0, position 0, feature 0«: -4 came back»."
        ),
    ),
    "convex_hull_shape": (lambda: checks.convex_hull(lambda v: v.mean(-2), X),
                          "The output has shape (2, 4); (2, …, 4) was expected."),
}  # fmt: skip

# Random numbers in the sentence: every number is blanked before it is compared
ROUGH = {
    "permutation_equivariant": (
        lambda: checks.permutation_equivariant(remember, X),
        (
            "When the positions are shuffled, the output must be shuffled in the same way, but it "
            "differs first at batch …, position …, feature …«: … for the shuffled input, … in the "
            "shuffled output». … of … numbers differ, by at most …."
        ),
    ),
    "padding_content": (
        lambda: checks.padding_invariant(lambda x, padding: blend(x), X, [3, 2]),
        (
            "The result of row … depends on the contents of its padding: it differs first at position "
            "…, feature …«: … with other padding, … before». … of … numbers differ, by at most …."
        ),
    ),
    "gradients_close": (
        lambda: checks.gradients_close(lambda x: x.sum(), lambda x: 2 * x.sum(), torch.ones(2)),
        (
            "The gradient of the input differs first at index …«: … came back, … was expected». Every "
            "number is … times what was expected."
        ),
    ),
    "parameter_gradients_close": (
        lambda: checks.parameter_gradients_close(Scale(2), Scale(), torch.zeros(3).double() + 1),
        (
            "The gradient of gamma differs first at index …«: … came back, … was expected». Every "
            "number is … times what was expected."
        ),
    ),
}
