"""Checks of what a function or a module does when it is called, and called again a little differently.

What the student's code raises passes through untouched, except in `raises`. Random numbers come from a
private generator seeded with the test's seed, so a student's own draws never change what a check does.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from autograder.checks.sentences import CheckFailed, cut, kind, number, place, show, subject, without_inputs
from autograder.checks.values import Difference, first_difference, first_index, shape, tensor
from autograder.records import InfrastructureError
from autograder.student.errors import StudentError, StudentRaised

Function = Callable[..., Any]
Naming = str | int | float | tuple[str | int | float, ...] | None


def raises(
    exception: type[Exception],
    function: Function,
    *args: Any,
    naming: Naming = None,
    what: str | None = None,
    **kwargs: Any,
) -> None:
    """Calling the function raises that exception, with one of the words or values of `naming` in its message.

    `what` describes the call in the sentence; left out, it is made of the function's name and arguments.
    """
    call = what or _call(function, args, kwargs)
    words = () if naming is None else naming if isinstance(naming, tuple) else (naming,)
    try:
        result = function(*args, **kwargs)
    except (InfrastructureError, CheckFailed):
        raise
    except NotImplementedError:
        raise
    except StudentError as error:
        if not isinstance(error, StudentRaised):
            raise
        _judge_error(error, exception, words, call, args, kwargs)
    except Exception as error:
        _judge_error(error, exception, words, call, args, kwargs)
    else:
        wanted, public = _wanted_error(exception, words, args, kwargs)
        raise CheckFailed(
            f"{call} returned {show(result, 80)}, but {wanted} was expected.",
            f"{without_inputs(call)} returned {kind(result)}, but {public} was expected.",
        )


def input_untouched(function: Function, *tensors: Tensor, what: str = "the call") -> None:
    """Calls function(*tensors); afterwards the tensors hold what they held before."""
    before = [t.detach().clone() for t in tensors]
    function(*tensors)
    for i, (now, then) in enumerate(zip(tensors, before)):
        which = "its input" if len(tensors) == 1 else f"its input number {i + 1}"
        if now.shape != then.shape:
            end = f"changed {which}: its shape was {tuple(then.shape)} before and is {tuple(now.shape)} after."
            raise CheckFailed(f"{subject(what)} {end}", f"{subject(without_inputs(what))} {end}")
        gap = first_difference(now, then, atol=0.0, rtol=0.0)
        if gap is not None:
            start = f"changed {which}" + (f" at {gap.where}" if gap.where else "")
            raise CheckFailed(
                f"{subject(what)} {start}: it was {gap.expected} before and is {gap.came} after.",
                f"{subject(without_inputs(what))} {start}. An input must keep its values.",
            )


def deterministic_in_eval(module: Any, *inputs: Any, what: str = "the output") -> None:
    """In eval mode two calls with the same input agree exactly; the mode is restored."""
    was_training = module.training
    module.eval()
    try:
        first, second = _tensors(module(*inputs), what), _tensors(module(*inputs), what)
    finally:
        module.train(was_training)
    for one, two in zip(first, second):
        shape(two, tuple(one.shape), f"{what} of the second call")
        gap = first_difference(two, one, atol=0.0, rtol=0.0)
        if gap is not None:
            raise _gap("In eval mode two calls with the same input must agree, but they differ", gap)


def batch_invariant(function: Function, x: Tensor, *, atol: float = 1e-6, what: str = "the output") -> None:
    """Each row of the batch gets the answer that it gets alone."""
    together = _answer(function(x), x.shape[:1], what, ("batch",))
    for row in range(x.shape[0]):
        alone = tensor(function(x[row : row + 1].clone()), f"{what} for one row alone")
        shape(alone, (1, *together.shape[1:]), f"{what} for one row alone")
        gap = first_difference(alone[0], together[row], atol=atol, axes=_inner(together, 1))
        if gap is not None:
            raise _gap(f"Row {row} of the batch gets another answer alone than among the others: they differ", gap)


def prefix_invariant(function: Function, x: Tensor, *, atol: float = 1e-6, what: str = "the output") -> None:
    """Cutting the future off changes nothing: f(x[:, :t]) == f(x)[:, :t] for every t."""
    full = _answer(function(x), x.shape[:2], what, ("batch", "position"))
    for t in range(1, x.shape[1]):
        words = "the first position" if t == 1 else f"the first {t} positions"
        name = f"{what} for {words} alone"
        short = tensor(function(x[:, :t].clone()), name)
        shape(short, (x.shape[0], t, *full.shape[2:]), name)
        gap = first_difference(short, full[:, :t], atol=atol)
        if gap is not None:
            start = f"Given {words} alone, {what} must be the same as in the whole sequence, but it differs"
            raise _gap(start, gap)


def permutation_equivariant(
    function: Function, x: Tensor, *, atol: float = 1e-6, what: str = "the output"
) -> None:
    """Shuffling the positions (dimension 1) going in shuffles the output the same way and changes nothing else."""
    length = x.shape[1]
    order = torch.randperm(length, generator=_generator())
    if torch.equal(order, torch.arange(length)):
        order = order.roll(1)
    straight = _answer(function(x), x.shape[:2], what, ("batch", "position"))
    shuffled = tensor(function(x[:, order].clone()), what)
    shape(shuffled, tuple(straight.shape), f"{what} after shuffling")
    gap = first_difference(shuffled, straight[:, order], atol=atol)
    if gap is not None:
        start = f"When the positions are shuffled going in, {what} must come out in the same new order and with "
        raise _gap(start + "the same numbers, but it differs", gap)


def causal_by_gradient(
    function: Function, x: Tensor, *, allowed: Tensor | None = None, what: str = "the output"
) -> None:
    """Output t depends on input s exactly when s <= t (or where `allowed[t, s]` is True), judged by gradients.

    Tells a leak ("position 2 hears position 4") from blindness ("position 3 does not hear position 1").
    """
    length = x.shape[1]
    may = torch.ones(length, length).tril().bool() if allowed is None else allowed
    heard = _who_hears_whom(function, x, what)
    largest = heard.max()
    leaks = (~may & (heard > 1e-9 * largest)).nonzero().tolist()
    if leaks:
        pairs = _pairs(leaks, "hears")
        raise CheckFailed(f"{pairs}: {what} there changes with an input that it must not depend on.")
    blind = (may & (heard <= 1e-14 * largest)).nonzero().tolist()
    if blind:
        pairs = _pairs(blind, "does not hear")
        raise CheckFailed(f"{pairs}: {what} there must depend on that input, too, but its gradient is zero.")


def padding_invariant(
    function: Function, x: Tensor, lengths: Sequence[int], *, atol: float = 1e-6, what: str = "the output"
) -> None:
    """What stands in the padding is irrelevant, and a padded row gets the answer it gets unpadded.

    Calls function(x, padding_mask), x of shape (B, T, ...) with floats or ids and padding_mask (B, T),
    True where row b is beyond lengths[b]. Only real positions are compared.
    """
    padding = torch.arange(x.shape[1]) >= torch.tensor(list(lengths))[:, None]
    first = _answer(function(x, padding), x.shape[:2], what, ("batch", "position"))
    other = _answer(function(_other_padding(x, padding), padding), x.shape[:2], what, ("batch", "position"))
    for row, length in enumerate(lengths):
        _real_numbers(first[row, :length], row, what)
        gap = first_difference(other[row, :length], first[row, :length], atol=atol, axes=_inner(first, 1))
        if gap is not None:
            raise _gap(f"Row {row} of the batch changes when only its padding holds something else: it differs", gap)
    for row, length in enumerate(lengths):
        alone = tensor(function(x[row : row + 1, :length].clone(), padding[row : row + 1, :length]), what)
        shape(alone, (1, length, *first.shape[2:]), f"{what} for one row without its padding")
        gap = first_difference(first[row, :length], alone[0], atol=atol, axes=_inner(first, 1))
        if gap is not None:
            raise _gap(f"Row {row} of the batch gets another answer padded than without padding: they differ", gap)


def gradients_close(
    actual: Function,
    expected: Function,
    *inputs: Any,
    what: str = "the gradient",
    atol: float = 1e-6,
    rtol: float = 1e-5,
) -> None:
    """Both functions send the same gradient back to every floating-point input, under one random cotangent."""
    mine, mine_inputs = _with_history(actual, inputs)
    theirs, their_inputs = _with_history(expected, inputs)
    shape(mine, tuple(theirs.shape), "the output")
    _still_connected(mine)
    cotangent = _cotangent(theirs)
    got = torch.autograd.grad(mine, mine_inputs, cotangent.to(mine.dtype), allow_unused=True)
    wanted = torch.autograd.grad(theirs, their_inputs, cotangent, allow_unused=True)
    for i, (g, w) in enumerate(zip(got, wanted)):
        name = f"{what} of the input" if len(got) == 1 else f"{what} of input number {i + 1}"
        _same_gradient(g, w, name, atol, rtol)


def parameter_gradients_close(
    module: Any, reference: Any, *inputs: Any, what: str = "the gradient", atol: float = 1e-6, rtol: float = 1e-5
) -> None:
    """Both modules, holding equal weights, send the same gradients to their parameters, compared by name."""
    mine, theirs = tensor_with_history(module(*inputs)), tensor_with_history(reference(*inputs))
    shape(mine, tuple(theirs.shape), "the output")
    _still_connected(mine)
    actual, expected = dict(module.named_parameters()), dict(reference.named_parameters())
    missing = [name for name in expected if name not in actual]
    if missing:
        raise CheckFailed(f"The module lacks the parameter {missing[0]}.")
    cotangent = _cotangent(theirs)
    chosen = [actual[name] for name in expected]
    got = torch.autograd.grad(mine, chosen, cotangent.to(mine.dtype), allow_unused=True)
    wanted = torch.autograd.grad(theirs, list(expected.values()), cotangent, allow_unused=True)
    for name, g, w in zip(expected, got, wanted):
        _same_gradient(g, w, f"{what} of {name}", atol, rtol)


def heads_local(
    module: Function, x: Any, num_heads: int, touch: Callable[[int], None], *, what: str = "the output"
) -> None:
    """Touching head h alone moves exactly its own columns h*D ... (h+1)*D of the output's last axis.

    `touch(h)` changes only head h's weights, in place; changes add up from head to head. The output must
    not be mixed afterwards: put the identity into a projection first.
    """
    before = tensor(module(x), what)
    width = before.shape[-1] // num_heads
    for head in range(num_heads):
        touch(head)
        after = tensor(module(x), what)
        shape(after, tuple(before.shape), what)
        moved = (after != before).reshape(-1, before.shape[-1]).any(0)
        own = torch.zeros_like(moved)
        own[head * width : (head + 1) * width] = True
        columns = f"columns {head * width} to {(head + 1) * width - 1}"
        if bool((moved & ~own).any()):
            odd = first_index(moved & ~own)[0]
            raise CheckFailed(
                f"Touching only head {head} moves column {odd} of {what}; only its own {columns} may move.",
                f"Touching only head {head} moves column {odd} of {what}; only its own {columns} may move.",
            )
        if bool((own & ~moved).any()):
            still = first_index(own & ~moved)[0]
            end = f"Touching head {head} does not move column {still} of {what}, one of its own {columns}."
            raise CheckFailed(end, end)
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
    """With the parameters in `silence` set to zero, module(x) equals expected(x); they are restored afterwards."""
    before = [p.detach().clone() for p in silence]
    try:
        with torch.no_grad():
            for parameter in silence:
                parameter.zero_()
        got = tensor(module(x), what)
        wanted = tensor(expected(x), what)
    finally:
        with torch.no_grad():
            for parameter, values in zip(silence, before):
                parameter.copy_(values)
    shape(got, tuple(wanted.shape), what)
    gap = first_difference(got, wanted, atol=atol)
    if gap is not None:
        raise gap.failure(what)


def convex_hull(
    function: Function, values: Tensor, *, atol: float = 1e-6, what: str = "the output"
) -> None:
    """Outputs are weighted means of the values (..., S, E): function(values) has shape (..., T, E).

    When every value is the same vector, every output is that vector; and no output leaves the range that
    the values span, feature by feature.
    """
    same = values[..., :1, :].expand_as(values).contiguous()
    out = tensor(function(same), what)
    _spans(out, values, what)
    gap = first_difference(out, same[..., :1, :].detach().expand(out.shape), atol=atol)
    if gap is not None:
        raise _gap(f"When all values are one and the same vector, {what} must be that vector, but it differs", gap)
    out = tensor(function(values), what)
    _spans(out, values, what)
    low, high = values.detach().amin(-2, keepdim=True), values.detach().amax(-2, keepdim=True)
    outside = ~((out >= low - atol) & (out <= high + atol))
    if bool(outside.any()):
        at = first_index(outside)
        start = f"A weighted mean stays between the smallest and the largest value, but {what} does not at {place(at)}"
        raise CheckFailed(f"{start}: {number(out[at].item())} came back.", f"{start}.")


def tensor_with_history(value: Any, what: str = "the output") -> Tensor:
    """The tensor that came back, still connected to what it was made of."""
    tensor(value, what)
    return value


def _judge_error(
    error: Exception,
    exception: type[Exception],
    words: tuple[Any, ...],
    call: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> None:
    wanted, public = _wanted_error(exception, words, args, kwargs)
    name = error.remote.type if isinstance(error, StudentRaised) else type(error).__name__
    name, message = cut(name, 60), _message(error)
    if not isinstance(error, exception):
        raise CheckFailed(
            f"{call} raised {_article(name)} ({message}), but {wanted} was expected.",
            f"{without_inputs(call)} raised {_article(name)}, but {public} was expected.",
        ) from error
    if words and not any(_mentions(str(error), word) for word in words):
        hidden = _public_words(words, args, kwargs)
        raise CheckFailed(
            f"{call} raised {_article(name)}, as it should, but its message ({message}) does not name "
            f"{_either(words)}.",
            f"{without_inputs(call)} raised {_article(name)}, as it should, but its message does not name {hidden}.",
        ) from error


def _wanted_error(
    exception: type[Exception], words: tuple[Any, ...], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[str, str]:
    start = _article(exception.__name__)
    if not words:
        return start, start
    return f"{start} that names {_either(words)}", f"{start} that names {_public_words(words, args, kwargs)}"


def _public_words(words: tuple[Any, ...], args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """Only names of arguments; a word that is (part of) an input stays hidden."""
    texts = [value for value in (*args, *kwargs.values()) if isinstance(value, str)]
    names = [w for w in words if isinstance(w, str) and w.isidentifier() and not any(w in text for text in texts)]
    return _either(tuple(names)) if names else "what is wrong"


def _either(words: tuple[Any, ...]) -> str:
    return " or ".join(str(word) for word in words)


def _mentions(message: str, word: str | int | float) -> bool:
    text = str(word)
    if not text.replace("_", "").isalnum():
        return text in message
    pattern = re.escape(text).replace("_", "[ _]")
    flags = re.IGNORECASE if len(text) > 1 else 0
    return re.search(rf"(?<!\w){pattern}(?!\w)", message[:10_000], flags) is not None


def _message(error: Exception) -> str:
    text = cut(str(error))
    return f'"{text}"' if text else "without a message"


def _article(name: str) -> str:
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


def _call(function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    shown = [_argument(value) for value in args] + [f"{key}={_argument(value)}" for key, value in kwargs.items()]
    return f"{_name(function)}({', '.join(shown)})"


def _name(function: Function) -> str:
    if isinstance(function, nn.Module):
        return str(function._get_name())
    name = inspect.getattr_static(function, "__name__", None) or getattr(function, "__name__", None)
    return name if isinstance(name, str) and name.isidentifier() else "the call"


def _argument(value: Any) -> str:
    return kind(value) if isinstance(value, (Tensor, nn.Module)) else show(value, 60)


def _gap(start: str, gap: Difference) -> CheckFailed:
    where = f" first at {gap.where}" if gap.where else ""
    extent = gap.extent[:1].upper() + gap.extent[1:]
    return CheckFailed(
        f"{start}{where}: {gap.came} against {gap.expected}. {extent}.", f"{without_inputs(start)}{where}. {extent}."
    )


def _generator() -> torch.Generator:
    return torch.Generator().manual_seed(torch.initial_seed())


def _cotangent(like: Tensor) -> Tensor:
    return torch.randn(like.shape, generator=_generator(), dtype=torch.float64).to(like.dtype)


def _tensors(value: Any, what: str) -> list[Tensor]:
    if isinstance(value, (tuple, list)):
        return [item.detach() for item in value if isinstance(item, Tensor)]
    return [tensor(value, what)]


def _answer(value: Any, start: Sequence[int], what: str, axes: tuple[str, ...]) -> Tensor:
    """The tensor that came back; its first dimensions must be those of the input."""
    got = tensor(value, what)
    if tuple(got.shape[: len(start)]) != tuple(start):
        wanted = ", ".join(str(size) for size in start)
        end = f"has shape {tuple(got.shape)}; ({wanted}, …) was expected ({', '.join(axes)}, …)."
        raise CheckFailed(f"{subject(what)} {end}", f"{subject(without_inputs(what))} {end}")
    return got


def _inner(whole: Tensor, dropped: int) -> tuple[str, ...] | None:
    """Names of the axes that are left of (batch, position, feature) when the first ones are fixed."""
    return ("batch", "position", "feature")[dropped:] if whole.ndim == 3 else None


def _who_hears_whom(function: Function, x: Tensor, what: str) -> Tensor:
    """A (T, T) table: how strongly output t reacts to input s."""
    source = x.detach().clone().requires_grad_()
    out = tensor_with_history(function(source), what)
    _answer(out, x.shape[:2], what, ("batch", "position"))
    _still_connected(out)
    cotangent = _cotangent(out)
    rows = []
    for t in range(x.shape[1]):
        (gradient,) = torch.autograd.grad(out[:, t], source, cotangent[:, t], retain_graph=True, allow_unused=True)
        gradient = torch.zeros_like(source) if gradient is None else gradient
        rows.append(gradient.double().transpose(0, 1).reshape(x.shape[1], -1).norm(dim=-1))
    heard = torch.stack(rows).detach().cpu()
    if bool(heard.isnan().any()):
        t, s = first_index(heard.isnan())
        raise CheckFailed(*[f"The gradient of position {t} of {what} is NaN with respect to input position {s}."] * 2)
    return heard


def _pairs(pairs: list[list[int]], verb: str) -> str:
    t, s = pairs[0]
    more = f" (and {len(pairs) - 1} more such pairs)" if len(pairs) > 2 else ""
    more = " (and one more such pair)" if len(pairs) == 2 else more
    return f"Position {t} {verb} position {s}{more}"


def _other_padding(x: Tensor, padding: Tensor) -> Tensor:
    """The same tensor with other content where padding is True."""
    other = x.detach().clone()
    if x.is_floating_point():
        noise = torch.randn(x.shape, generator=_generator(), dtype=torch.float64)
        other[padding] = (3 * noise[padding]).to(x.dtype)
        return other
    ids = x.unique()
    if len(ids) < 2:
        raise ValueError("padding_invariant needs at least two different ids in x")
    step = int(torch.randint(1, len(ids), (), generator=_generator()))
    other[padding] = ids[(torch.searchsorted(ids, x[padding]) + step) % len(ids)]
    return other


def _real_numbers(part: Tensor, row: int, what: str) -> None:
    if bool(part.isnan().any()):
        where = place((row, *first_index(part.isnan())))
        raise CheckFailed(*[f"{subject(what)} is NaN at {where}, which is no padding."] * 2)


def _with_history(function: Function, inputs: Sequence[Any]) -> tuple[Tensor, list[Tensor]]:
    copies = [
        value.detach().clone().requires_grad_() if isinstance(value, Tensor) and value.is_floating_point() else value
        for value in inputs
    ]
    floats = [value for value in copies if isinstance(value, Tensor) and value.is_floating_point()]
    return tensor_with_history(function(*copies)), floats


def _still_connected(out: Tensor) -> None:
    if not out.requires_grad:
        raise CheckFailed("The output is cut off from the input: no gradient can flow back through it.")


def _same_gradient(got: Tensor | None, wanted: Tensor | None, name: str, atol: float, rtol: float) -> None:
    if got is None and wanted is None:
        return
    if got is None and wanted is not None and bool(wanted.any()):
        end = f"{name} is missing: nothing in the output depends on it."
        raise CheckFailed(end[:1].upper() + end[1:])
    like = wanted if got is None else got
    assert like is not None
    mine = torch.zeros_like(like) if got is None else got
    theirs = torch.zeros_like(like) if wanted is None else wanted
    if bool((mine.isnan() & ~theirs.isnan()).any()):
        raise CheckFailed(*[f"{subject(name)} is NaN at {place(first_index(mine.isnan()))}."] * 2)
    gap = first_difference(mine, theirs, atol=atol, rtol=rtol)
    if gap is not None:
        raise gap.failure(name)


def _spans(out: Tensor, values: Tensor, what: str) -> None:
    wanted = (*values.shape[:-2], "…", values.shape[-1])
    if out.ndim != values.ndim or out.shape[:-2] != values.shape[:-2] or out.shape[-1] != values.shape[-1]:
        shown = ", ".join(str(size) for size in wanted)
        end = f"has shape {tuple(out.shape)}; ({shown}) was expected."
        raise CheckFailed(f"{subject(what)} {end}", f"{subject(without_inputs(what))} {end}")
