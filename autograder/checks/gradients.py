"""Checks of gradients: which inputs an output depends on, and whether the gradients are correct."""

from collections.abc import Callable, Sequence
from itertools import compress
from typing import Any

import torch
from torch import Tensor

from autograder.checks.sentences import fault, several, verb
from autograder.checks.values import close, first_index, shape, tensor
from autograder.failures.failed_check import CheckFailed

PULLS = 4  # random cotangents, so that no invented gradient fits all of them
ATTEMPTS = 3  # a small step can cross a kink, such as that of a ReLU, where there is no slope
LEAK = 1e-9  # of the largest gradient; a larger one is a dependence
BLIND = 1e-14  # of the largest gradient; a smaller one is no dependence


def private_generator() -> torch.Generator:
    """Return a generator seeded with the test's own seed, independent of other draws."""
    return torch.Generator().manual_seed(torch.initial_seed())


def fresh(*inputs: Any) -> tuple[Any, ...]:
    """Return the inputs with copies of all tensors, to protect the originals from in-place changes."""
    return tuple(value.clone() if isinstance(value, Tensor) else value for value in inputs)


def starts_like(got: Tensor, x: Tensor, rank: int, what: str) -> None:
    """Check that the first `rank` dimensions of the result are those of the input."""
    if got.shape[:rank] != x.shape[:rank]:
        wanted = ", ".join(str(size) for size in x.shape[:rank])
        names = ", ".join(("batch", "position")[:rank])
        end = f"{verb(what, 'has', 'have')} shape {tuple(got.shape)}; ({wanted}, …) was expected ({names}, …)."
        raise fault(what, end)


def causal_by_gradient(
    function: Callable[[Tensor], Any],
    x: Tensor,
    *,
    allowed: Tensor | None = None,
    what: str = "the output",
) -> None:
    """Check by gradients that output t depends on input s if and only if s <= t, or `allowed[t, s]` is True.

    x and the output have shape (B, T, ...), `allowed` has shape (T, T). The failure names the first
    pair with a forbidden or a missing dependence, forbidden ones first. The student's process tells
    the gradients, so the outputs must also change with a small step of all inputs as they say.
    """
    length = x.shape[1]
    may = torch.ones(length, length, dtype=torch.bool).tril() if allowed is None else allowed
    source = x.detach().clone().requires_grad_()
    gradients, cotangent = _gradients_by_position(function, source, what)
    norms = _norms_by_position(gradients, what)
    if leaks := (~may & (norms > LEAK * norms.max())).nonzero().tolist():
        sentence = f"{_pairs(leaks, 'depends on')}: {what} there must not change with that input."
        raise CheckFailed(sentence, sentence)
    if blind := (may & (norms <= BLIND * norms.max())).nonzero().tolist():
        sentence = (
            f"{_pairs(blind, 'does not depend on')}: {what} there must change with that input."
        )
        raise CheckFailed(sentence, sentence)
    positions = [cotangent * _one_position(cotangent, t) for t in range(length)]
    claims = [[gradient] for gradient in gradients]
    _predicts(lambda: function(source.clone()), [source], claims, positions, what)


def gradients_predict(
    function: Callable[[], Any],
    *sources: Tensor,
    cotangent: Tensor | None = None,
    what: str = "the output",
) -> Sequence[Tensor]:
    """Check that function() changes with a small step of the sources as their gradients say.

    The student's process tells the gradients; where only their presence is tested, invented ones
    would do. `function` is deterministic and uses the sources, which require gradients, are changed
    in place and are restored. Return the gradients under `cotangent`, by default the first of a few
    random ones; a test that compares gradients need not ask for them again.
    """
    output = function()
    _still_connected(output)
    generator = private_generator()
    if cotangent is None:
        cotangents = [_random_like(output, generator) for _ in range(PULLS)]
    else:
        shape(output, tuple(cotangent.shape), what)
        cotangents = [cotangent]
    claims = []
    for pull in cotangents:
        gradients = torch.autograd.grad(output, sources, pull, allow_unused=True, retain_graph=True)
        claims.append(
            [
                _zeros_for_none(gradient, source)
                for gradient, source in zip(gradients, sources, strict=True)
            ]
        )
    _predicts(function, sources, claims, cotangents, what)
    return claims[0]


def gradients_close(
    actual: Callable[..., Any],
    expected: Callable[..., Any],
    *inputs: Any,
    what: str = "the gradient",
    atol: float = 1e-6,
    rtol: float = 1e-5,
) -> None:
    """Check that both functions have the same vector-Jacobian product for every floating-point input.

    The cotangent is random and the same for both. Of the outputs, only the shapes are compared.
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
    """Check that two modules with equal weights give their parameters the same gradients, compared by name."""
    actual = dict(module.named_parameters())
    expected = dict(reference.named_parameters())
    if missing := [name for name in expected if name not in actual]:
        raise fault("the module", f"lacks {several('parameter', missing)}.")
    mine = module(*fresh(*inputs))
    theirs = reference(*fresh(*inputs))
    got, wanted = _pull_back(
        mine, [actual[name] for name in expected], theirs, list(expected.values())
    )
    for name, g, w in zip(expected, got, wanted, strict=True):
        _same_gradient(g, w, f"{what} of {name}", atol, rtol)


def _gradients_by_position(
    function: Callable[[Tensor], Any], source: Tensor, what: str
) -> tuple[list[Tensor], Tensor]:
    """Return the gradient of the output at each position for the source, and the cotangent of all of them."""
    out = function(source.clone())
    starts_like(tensor(out, what), source, 2, what)
    _still_connected(out)
    cotangent = _cotangent(out)
    gradients = []
    for t in range(source.shape[1]):
        pull = {"retain_graph": True, "allow_unused": True}
        (gradient,) = torch.autograd.grad(out[:, t], source, cotangent[:, t], **pull)
        gradients.append(_zeros_for_none(gradient, source))
    return gradients, cotangent


def _norms_by_position(gradients: list[Tensor], what: str) -> Tensor:
    """Return a (T, T) table: the norm of the gradient of output t with respect to input s."""
    length = len(gradients)
    rows = [
        gradient.double().transpose(0, 1).reshape(length, -1).norm(dim=-1) for gradient in gradients
    ]
    norms = torch.stack(rows).cpu()
    if bool(norms.isnan().any()):
        t, s = first_index(norms.isnan())
        sentence = f"The gradient of {what} at position {t} is NaN for the input at position {s}."
        raise CheckFailed(sentence, sentence)
    return norms


def _one_position(like: Tensor, t: int) -> Tensor:
    """Return a tensor that broadcasts to `like`: 1 at position t and 0 at the others."""
    positions = torch.arange(like.shape[1], device=like.device) == t
    return positions.to(like.dtype).reshape(1, -1, *[1] * (like.ndim - 2))


def _zeros_for_none(gradient: Tensor | None, source: Tensor) -> Tensor:
    return torch.zeros_like(source) if gradient is None else gradient.detach()


def _predicts(
    function: Callable[[], Any],
    sources: Sequence[Tensor],
    claims: Sequence[Sequence[Tensor]],
    cotangents: Sequence[Tensor],
    what: str,
) -> None:
    """Check each claim, a gradient for each source, under its cotangent: in one of a few random small steps, all fit."""
    epsilon = max(torch.finfo(numbers.dtype).eps for numbers in (*sources, *cotangents))
    generator = torch.Generator().manual_seed(torch.initial_seed() + 1)  # unlike the cotangent
    for _ in range(ATTEMPTS):
        directions = [_random_like(source, generator) for source in sources]
        slope, noise = _slope(function, sources, directions, epsilon, what)
        if all(
            _fits(claim, directions, cotangent, slope, noise, epsilon)
            for claim, cotangent in zip(claims, cotangents)
        ):
            return
    sentence = (
        f"After a small step, {what} {verb(what, 'differs', 'differ')} from what the gradient says."
    )
    raise CheckFailed(sentence, sentence, could_be_rounding=True)


def _slope(
    function: Callable[[], Any],
    sources: Sequence[Tensor],
    directions: Sequence[Tensor],
    epsilon: float,
    what: str,
) -> tuple[Tensor, float]:
    """Return the derivative of the output along the directions, by a step to each side, and its rounding error."""
    step = epsilon**0.43
    starts = [source.detach().clone() for source in sources]
    ends = []
    try:
        with torch.no_grad():
            for side in (step, -step):
                for source, start, direction in zip(sources, starts, directions):
                    source.copy_(start + side * direction)
                ends.append(tensor(function(), what).double())
    finally:
        with torch.no_grad():
            for source, start in zip(sources, starts):
                source.copy_(start)
    ahead, behind = ends
    shape(behind, tuple(ahead.shape), what)
    return (ahead - behind) / (2 * step), 8 * epsilon / step * ahead.norm().item()


def _fits(
    claim: Sequence[Tensor],
    directions: Sequence[Tensor],
    cotangent: Tensor,
    slope: Tensor,
    noise: float,
    epsilon: float,
) -> bool:
    said = sum(
        (gradient.double() * direction.double()).sum().item()
        for gradient, direction in zip(claim, directions)
    )
    pull = cotangent.double().cpu()
    seen = (pull * slope).sum().item()
    tolerance: float = pull.norm().item() * (20 * epsilon**0.43 * slope.norm().item() + noise)
    return bool(abs(said - seen) <= tolerance)


def _pairs(pairs: list[list[int]], verb: str) -> str:
    t, s = pairs[0]
    first = f"Position {t} {verb} position {s}"
    others = len(pairs) - 1
    if others == 0:
        return first
    noun = "pair" if others == 1 else "pairs"
    return f"{first} (and {others} more such {noun})"


def _run(function: Callable[..., Any], inputs: Sequence[Any]) -> tuple[Any, list[Tensor]]:
    floats = [isinstance(value, Tensor) and value.is_floating_point() for value in inputs]
    copies = [
        v.detach().clone().requires_grad_() if is_float else v
        for v, is_float in zip(inputs, floats)
    ]
    return function(*fresh(*copies)), list(compress(copies, floats))


def _pull_back(
    mine: Any, mine_sources: list[Tensor], theirs: Tensor, their_sources: list[Tensor]
) -> tuple[Sequence[Tensor | None], Sequence[Tensor | None]]:
    """Return the gradients of both outputs for their sources, with the same cotangent."""
    shape(mine, tuple(theirs.shape), "the output")
    _still_connected(mine)
    cotangent = _cotangent(theirs)
    got = torch.autograd.grad(mine, mine_sources, cotangent.to(mine.dtype), allow_unused=True)
    return got, torch.autograd.grad(theirs, their_sources, cotangent, allow_unused=True)


def _cotangent(like: Tensor) -> Tensor:
    return _random_like(like, private_generator())


def _random_like(like: Tensor, generator: torch.Generator) -> Tensor:
    return torch.randn(like.shape, generator=generator, dtype=torch.float64).to(like.dtype)


def _still_connected(out: Tensor) -> None:
    if not out.requires_grad:
        raise fault(
            "the output", "is cut off from the input: no gradient can flow back through it."
        )


def _same_gradient(
    got: Tensor | None, wanted: Tensor | None, name: str, atol: float, rtol: float
) -> None:
    if got is None and (wanted is None or not bool(wanted.any())):
        return
    if got is None:
        raise fault(name, "is missing: nothing in the output depends on it.")
    close(got, torch.zeros_like(got) if wanted is None else wanted, name, atol=atol, rtol=rtol)
