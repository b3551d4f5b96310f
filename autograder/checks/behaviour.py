"""Checks that call a function or a module repeatedly with changed inputs, and compare the results."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from autograder.bridge.outside.remote_call import RemoteFunction, mirror_input_mutation
from autograder.bridge.shared.containers import mapped
from autograder.bridge.shared.random_states import random_states
from autograder.checks.gradients import fresh, private_generator, starts_like
from autograder.checks.numerics import is_table
from autograder.checks.sentences import actor, fault, number, place, show, some, subject, verb
from autograder.checks.values import close, finite, first_difference, first_index, shape, tensor
from autograder.failures.failed_check import CheckFailed, without_inputs

Function = Callable[..., Any]


def input_untouched(function: Function, *inputs: Any, what: str = "the call") -> Any:
    """Check that `function(*inputs)` changes no tensor, array, list or dict among its inputs; return its answer."""
    before = mapped(_copied, list(inputs))
    with mirror_input_mutation():
        answer = function(*inputs)
    for i, (now, then) in enumerate(zip(inputs, before, strict=True)):
        which = "its input" if len(inputs) == 1 else f"its input number {i + 1}"
        if is_table(then):
            _same_numbers(now, then, which, what)
        elif not _same_contents(now, then):
            raise _changed(
                what, f"changed {which}", f"it was {show(then)} before and is {show(now)} after."
            )
    return answer


def _copied(leaf: Any) -> Any:
    if isinstance(leaf, Tensor):
        return leaf.detach().clone()
    return leaf.copy() if is_table(leaf) else leaf


def _same_numbers(now: Any, then: Any, which: str, what: str) -> None:
    if now.shape != then.shape:
        shapes = f"its shape was {tuple(then.shape)} before and is {tuple(now.shape)} after"
        raise fault(what, f"changed {which}: {shapes}.", actor)
    if gap := first_difference(now, then, atol=0.0, rtol=0.0):
        start = f"changed {which}" + (f" at {gap.where}" if gap.where else "")
        raise _changed(what, start, f"it was {gap.expected} before and is {gap.came} after.")


def _changed(what: str, start: str, end: str) -> CheckFailed:
    return fault(what, f"{start}: {end}", actor, f"{start}; an input must keep its values.")


def _same_contents(now: Any, then: Any) -> bool:
    """Whether containers have the same contents as before; of other values, only numbers and text are compared."""
    if isinstance(then, (list, tuple, dict)) and not isinstance(now, type(then)):
        return False
    if isinstance(then, (list, tuple)):
        return len(now) == len(then) and all(map(_same_contents, now, then))
    if isinstance(then, dict):
        return list(now) == list(then) and all(_same_contents(now[key], then[key]) for key in then)
    if is_table(then):
        kept = type(now) is type(then) and (now.shape, now.dtype) == (then.shape, then.dtype)
        return kept and first_difference(now, then, atol=0.0, rtol=0.0) is None
    return now is then or (
        isinstance(then, (bool, int, float, str)) and type(now) is type(then) and now == then
    )


def global_randomness_untouched(function: Function, *inputs: Any, what: str = "the call") -> None:
    """Check that `function(*inputs)` leaves the global random states of Python, NumPy and PyTorch as they were.

    `function` is a student's own, `student.split`, as the states are those of the student's side.
    """
    if isinstance(function, RemoteFunction):
        moved = function.moved_generators(*inputs)
    else:
        before = random_states()
        function(*inputs)
        now = random_states()
        moved = [name for name, state in before.items() if state != now[name]]
    if moved:
        end = f"changes the global random state of {some(moved)}: whoever draws afterwards gets other numbers."
        raise fault(what, end, actor)


def deterministic_in_eval(module: Any, *inputs: Any, what: str = "the output") -> None:
    """Check that two calls with the same input agree exactly in eval mode; the mode is restored."""
    was_training = module.training
    module.eval()
    try:
        first_call, second_call = (_tensors(module(*fresh(*inputs)), what) for _ in range(2))
    finally:
        module.train(was_training)
    for first, second in zip(first_call, second_call, strict=False):
        shape(second, tuple(first.shape), f"{what} of the second call")
        start = "In eval mode, two calls with the same input must agree, but their results differ"
        _agree(second, first, start, "in the second call", "in the first", atol=0.0, rtol=0.0)


def batch_invariant(
    function: Function, x: Tensor, *, atol: float = 1e-6, what: str = "the output"
) -> None:
    """Check that the output of each row of a batch (B, ...) equals the output of that row alone."""
    together = _numbers(function(x.clone()), what)
    starts_like(together, x, 1, what)
    for row in range(x.shape[0]):
        name = f"{what} for one row alone"
        alone = _numbers(function(x[row : row + 1].clone()), name)
        shape(alone, (1, *together.shape[1:]), name)
        start = f"The result of row {row} depends on the other rows of the batch: it differs"
        _agree(
            alone[0],
            together[row],
            start,
            "alone",
            "in the batch",
            atol=atol,
            axes=_without_batch(together),
        )


def prefix_invariant(
    function: Function, x: Tensor, *, atol: float = 1e-6, what: str = "the output"
) -> None:
    """Check that f(x[:, :t]) == f(x)[:, :t] for every t: later positions do not affect earlier outputs."""
    full = _numbers(function(x.clone()), what)
    starts_like(full, x, 2, what)
    for t in range(1, x.shape[1]):
        words = "the first position" if t == 1 else f"the first {t} positions"
        name = f"{what} for {words} alone"
        short = _numbers(function(x[:, :t].clone()), name)
        shape(short, (x.shape[0], t, *full.shape[2:]), name)
        start = f"{subject(what)} at {words} must not depend on later positions, but {verb(what, 'differs', 'differ')}"
        _agree(short, full[:, :t], start, "without them", "with them", atol=atol)


def permutation_equivariant(
    function: Function, x: Tensor, *, atol: float = 1e-6, what: str = "the output"
) -> None:
    """Check that a permutation of the positions (dimension 1) only permutes the output in the same way."""
    length = x.shape[1]
    order = torch.randperm(length, generator=private_generator())
    if torch.equal(order, torch.arange(length)):
        order = order.roll(1)
    straight = _numbers(function(x.clone()), what)
    starts_like(straight, x, 2, what)
    shuffled = _numbers(function(x[:, order].clone()), what)
    shape(shuffled, tuple(straight.shape), f"{what} after shuffling")
    start = (
        f"When the positions are shuffled, {what} must be shuffled in the same way, but it differs"
    )
    _agree(
        shuffled,
        straight[:, order],
        start,
        "for the shuffled input",
        "in the shuffled output",
        atol=atol,
    )


def padding_invariant(
    function: Function,
    x: Tensor,
    lengths: Sequence[int],
    *,
    atol: float = 1e-6,
    what: str = "the output",
) -> None:
    """Check that the contents of padding do not affect the output, and that it equals the output without padding.

    Calls function(x, padding_mask) with x (B, T, ...), floats or ids, and padding_mask (B, T),
    which is True at position lengths[b] of row b and after it. Outputs at padding are not compared.
    """
    padding = torch.arange(x.shape[1]) >= torch.tensor(list(lengths))[:, None]
    first = tensor(function(x.clone(), padding.clone()), what)
    other = tensor(function(_repad(x, padding), padding.clone()), what)
    starts_like(first, x, 2, what)
    shape(other, tuple(first.shape), what)
    axes = _without_batch(first)
    for row, length in enumerate(lengths):
        finite(first[row, :length], f"{what} for row {row} of the batch", axes=axes)
        start = f"The result of row {row} depends on the contents of its padding: it differs"
        _agree(
            other[row, :length],
            first[row, :length],
            start,
            "with other padding",
            "before",
            atol=atol,
            axes=axes,
        )
    for row, length in enumerate(lengths):
        alone = tensor(
            function(x[row : row + 1, :length].clone(), padding[row : row + 1, :length]), what
        )
        shape(alone, (1, length, *first.shape[2:]), f"{what} for one row without its padding")
        start = f"The result of row {row} depends on its padding: it differs"
        _agree(
            first[row, :length], alone[0], start, "with padding", "without", atol=atol, axes=axes
        )


def heads_local(
    module: Function,
    x: Any,
    num_heads: int,
    touch: Callable[[int], Any],
    *,
    what: str = "the output",
) -> None:
    """Check that a change of head h changes columns h*D to (h+1)*D - 1 of the output's last axis, and no others.

    `touch(h)` changes only the weights of head h, in place, and need not restore them. A projection
    after the heads would mix the columns: set it to the identity first.

    Example: `heads_local(mha, x, 4, touch=lambda h: checks.randomize(mha.heads[h].value))`
    """
    before = _numbers(module(*fresh(x)), what)
    width = before.shape[-1] // num_heads
    for head in range(num_heads):
        touch(head)
        after = _numbers(module(*fresh(x)), what)
        shape(after, tuple(before.shape), what)
        moved = (after - before).abs().reshape(-1, before.shape[-1]).amax(
            0
        ) > 1e-9 * before.abs().max()
        columns_of_head = torch.zeros_like(moved)
        columns_of_head[head * width : (head + 1) * width] = True
        columns = f"columns {head * width} to {(head + 1) * width - 1}"
        if bool((odd := moved & ~columns_of_head).any()):
            start = f"A change of head {head} alone changes column {first_index(odd)[0]} of"
            raise _alike(f"{start} {what}; it may change only its own {columns}.")
        if bool((still := columns_of_head & ~moved).any()):
            start = f"A change of head {head} does not change column {first_index(still)[0]} of"
            raise _alike(f"{start} {what}, one of its own {columns}.")
        before = after


def silent_sublayers(
    module: Function,
    x: Any,
    silence: Sequence[Tensor],
    expected: Function,
    *,
    what: str = "the output with silent sublayers",
    atol: float = 1e-6,
) -> None:
    """Check that module(x) equals expected(x) while the parameters in `silence` are zero; they are restored.

    Example: `silent_sublayers(block, x, [block.ff.linear2.weight, block.ff.linear2.bias], lambda x:
    x)`
    """
    before = [parameter.detach().clone() for parameter in silence]
    try:
        _fill(silence, [torch.zeros_like(values) for values in before])
        got = module(*fresh(x))
        wanted = expected(*fresh(x))
    finally:
        _fill(silence, before)
    close(got, wanted, what, atol=atol)


def convex_hull(
    function: Function, values: Tensor, *, atol: float = 1e-6, what: str = "the output"
) -> None:
    """Check that the outputs (..., T, E) of function(values) are weighted means of the values (..., S, E).

    If all values are the same vector, every output must be that vector. For other values, each
    feature of an output must lie between the smallest and the largest value of that feature.

    Example: `convex_hull(lambda v: student.attention(q, k, v)[0], v)`
    """
    same = values.detach()[..., :1, :].expand_as(values).contiguous()
    out = _mean_of(values, function(same.clone()), what)
    start = f"When all values are the same vector, {what} must be that vector, but differs"
    _agree(out, same[..., :1, :].expand(out.shape), start, "came back", "was expected", atol=atol)
    out = _mean_of(values, function(values.clone()), what)
    low = values.detach().amin(-2, keepdim=True)
    high = values.detach().amax(-2, keepdim=True)
    if bool((outside := (out < low - atol) | (out > high + atol)).any()):
        at = first_index(outside)
        start = f"A weighted mean lies between the smallest and the largest value; {what} does not at {place(at)}"
        raise CheckFailed(
            f"{start}: {number(out[at].item())} came back.", f"{without_inputs(start)}."
        )


def _agree(ours: Tensor, theirs: Tensor, start: str, came: str, expected: str, **how: Any) -> None:
    """Fail if two answers of the student's own code differ, with a sentence that begins with `start`."""
    if gap := first_difference(ours, theirs, **how):
        where = f" first at {gap.where}" if gap.where else ""
        full = f"{start}{where}: {gap.came} {came}, {gap.expected} {expected}. {gap.extent}."
        raise CheckFailed(full, f"{without_inputs(start)}{where}. {gap.extent}.")


def _alike(sentence: str) -> CheckFailed:
    return CheckFailed(sentence, without_inputs(sentence))


def _numbers(value: Any, what: str) -> Tensor:
    """Return the result as a tensor; fails if it is another value or contains NaN."""
    got = tensor(value, what)
    finite(got, what)
    return got


def _tensors(value: Any, what: str) -> list[Tensor]:
    if isinstance(value, (tuple, list)):
        return [item.detach() for item in value if isinstance(item, Tensor)]
    return [tensor(value, what)]


def _without_batch(whole: Tensor) -> tuple[str, ...] | None:
    return {2: ("position",), 3: ("position", "feature")}.get(whole.ndim)


def _repad(x: Tensor, padding: Tensor) -> Tensor:
    other = x.detach().clone()
    if x.is_floating_point():
        noise = torch.randn(x.shape, generator=private_generator(), dtype=torch.float64)
        other[padding] = (3 * noise[padding]).to(x.dtype)
        return other
    ids = x.unique()
    if len(ids) < 2:
        raise ValueError("padding_invariant needs at least two different ids in x")
    step = int(torch.randint(1, len(ids), (), generator=private_generator()))
    other[padding] = ids[(torch.searchsorted(ids, x[padding]) + step) % len(ids)]
    return other


def _fill(tensors: Sequence[Tensor], values: Sequence[Tensor]) -> None:
    with torch.no_grad():
        for old, new in zip(tensors, values, strict=True):
            old.copy_(new)


def _mean_of(values: Tensor, result: Any, what: str) -> Tensor:
    """Return the result as a tensor; fails unless it has the shape of means of the values."""
    out = _numbers(result, what)
    lead = values.shape[:-2]
    width = values.shape[-1]
    if out.ndim != values.ndim or out.shape[:-2] != lead or out.shape[-1] != width:
        wanted = ", ".join(str(size) for size in (*lead, "…", width))
        raise fault(
            what, f"{verb(what, 'has', 'have')} shape {tuple(out.shape)}; ({wanted}) was expected."
        )
    return out
