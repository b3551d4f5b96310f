"""Checks that look backwards: which inputs reach which outputs, and whether gradients are the right ones.

Random numbers come from a private generator seeded with the test's seed, so a student's own draws never
change what a check does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from autograder.checks.sentences import CheckFailed, fault, several, verb
from autograder.checks.values import close, first_index, shape, tensor

LEAK = 1e-9  # as a share of the strongest gradient: above it, a position that must be silent is heard
BLIND = 1e-14  # below it, a position that should be heard is not


def private_generator() -> torch.Generator:
    """Return a generator seeded with the test's own seed, independent of other draws."""
    return torch.Generator().manual_seed(torch.initial_seed())


def fresh(*inputs: Any) -> tuple[Any, ...]:
    """The inputs with every tensor copied, so that code which changes its input spoils only a copy."""
    return tuple(value.clone() if isinstance(value, Tensor) else value for value in inputs)


def causal_by_gradient(
    function: Callable[[Tensor], Any], x: Tensor, *, allowed: Tensor | None = None, what: str = "the output"
) -> None:
    """Output t depends on input s exactly when s <= t, or where `allowed[t, s]` is True; judged by gradients.

    x is (B, T, ...), the output (B, T, ...). Tells a leak ("position 2 hears position 4") from blindness
    ("position 3 does not hear position 1").
    """
    length = x.shape[1]
    may = torch.ones(length, length, dtype=torch.bool).tril() if allowed is None else allowed
    heard = _who_hears_whom(function, x, what)
    leaks = (~may & (heard > LEAK * heard.max())).nonzero().tolist()
    if leaks:
        sentence = f"{_pairs(leaks, 'hears')}: {what} there changes with an input that it must not depend on."
        raise CheckFailed(sentence, sentence)
    blind = (may & (heard <= BLIND * heard.max())).nonzero().tolist()
    if blind:
        sentence = f"{_pairs(blind, 'does not hear')}: {what} there must depend on that input, but does not."
        raise CheckFailed(sentence, sentence)


def gradients_close(
    actual: Callable[..., Any],
    expected: Callable[..., Any],
    *inputs: Any,
    what: str = "the gradient",
    atol: float = 1e-6,
    rtol: float = 1e-5,
) -> None:
    """Both functions send the same gradient to every floating-point input, under one random cotangent.

    The outputs are not compared, only their shapes.
    """
    mine, mine_inputs = _run(actual, inputs)
    theirs, their_inputs = _run(expected, inputs)
    got, wanted = _pull_back(mine, mine_inputs, theirs, their_inputs)
    for i, (g, w) in enumerate(zip(got, wanted, strict=True)):
        name = "the input" if len(got) == 1 else f"input number {i + 1}"
        _same_gradient(g, w, f"{what} of {name}", atol, rtol)


def parameter_gradients_close(
    module: Any,
    reference: Any,
    *inputs: Any,
    what: str = "the gradient",
    atol: float = 1e-6,
    rtol: float = 1e-5,
) -> None:
    """Both modules, holding equal weights, send the same gradients to their parameters, compared by name."""
    actual, expected = dict(module.named_parameters()), dict(reference.named_parameters())
    missing = [name for name in expected if name not in actual]
    if missing:
        raise fault("the module", f"lacks {several('parameter', missing)}.")
    mine, theirs = module(*fresh(*inputs)), reference(*fresh(*inputs))
    got, wanted = _pull_back(mine, [actual[name] for name in expected], theirs, list(expected.values()))
    for name, g, w in zip(expected, got, wanted, strict=True):
        _same_gradient(g, w, f"{what} of {name}", atol, rtol)


def _who_hears_whom(function: Callable[[Tensor], Any], x: Tensor, what: str) -> Tensor:
    """A (T, T) table: how strongly output t reacts to input s."""
    length = x.shape[1]
    source = x.detach().clone().requires_grad_()
    out = function(source.clone())
    if tensor(out, what).shape[:2] != x.shape[:2]:
        wanted = f"({x.shape[0]}, {length}, …) was expected (batch, position, …)"
        raise fault(what, f"{verb(what, 'has', 'have')} shape {tuple(out.shape)}; {wanted}.")
    _still_connected(out)
    cotangent = _cotangent(out)
    rows = []
    for t in range(length):
        pull = {"retain_graph": True, "allow_unused": True}
        (gradient,) = torch.autograd.grad(out[:, t], source, cotangent[:, t], **pull)
        gradient = torch.zeros_like(source) if gradient is None else gradient
        rows.append(gradient.double().transpose(0, 1).reshape(length, -1).norm(dim=-1))
    heard = torch.stack(rows).cpu()
    if bool(heard.isnan().any()):
        t, s = first_index(heard.isnan())
        sentence = f"The gradient of {what} at position {t} is NaN for the input at position {s}."
        raise CheckFailed(sentence, sentence)
    return heard


def _pairs(pairs: list[list[int]], verb: str) -> str:
    t, s = pairs[0]
    others = len(pairs) - 1
    more = f" (and {others} more such {'pair' if others == 1 else 'pairs'})" if others else ""
    return f"Position {t} {verb} position {s}{more}"


def _run(function: Callable[..., Any], inputs: Sequence[Any]) -> tuple[Any, list[Tensor]]:
    """Call the function with copies of the inputs; return the result and the copies that take gradients."""
    floats = []
    copies = []
    for value in inputs:
        if isinstance(value, Tensor) and value.is_floating_point():
            value = value.detach().clone().requires_grad_()
            floats.append(value)
        copies.append(value)
    return function(*fresh(*copies)), floats


def _pull_back(
    mine: Any, mine_sources: list[Tensor], theirs: Tensor, their_sources: list[Tensor]
) -> tuple[Sequence[Tensor | None], Sequence[Tensor | None]]:
    """The gradients of both outputs for their sources, under one cotangent."""
    shape(mine, tuple(theirs.shape), "the output")
    _still_connected(mine)
    cotangent = _cotangent(theirs)
    got = torch.autograd.grad(mine, mine_sources, cotangent.to(mine.dtype), allow_unused=True)
    return got, torch.autograd.grad(theirs, their_sources, cotangent, allow_unused=True)


def _cotangent(like: Tensor) -> Tensor:
    return torch.randn(like.shape, generator=private_generator(), dtype=torch.float64).to(like.dtype)


def _still_connected(out: Tensor) -> None:
    if not out.requires_grad:
        raise fault("the output", "is cut off from the input: no gradient can flow back through it.")


def _same_gradient(got: Tensor | None, wanted: Tensor | None, name: str, atol: float, rtol: float) -> None:
    if got is None and (wanted is None or not bool(wanted.any())):
        return
    if got is None:
        raise fault(name, "is missing: nothing in the output depends on it.")
    close(got, torch.zeros_like(got) if wanted is None else wanted, name, atol=atol, rtol=rtol)
