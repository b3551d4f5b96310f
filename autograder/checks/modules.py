"""Checks of a module's parameters and buffers, and functions that assign weights."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from autograder.checks.sentences import actor, fault, several, some, wrong_type


def parameters(
    module: Any, expected: Mapping[str, Sequence[int]], what: str = "the module"
) -> None:
    """Check that the module has exactly these parameters, by name and shape: {"key.weight": (5, 20)}."""
    _compare_shapes(module, {name: tuple(size) for name, size in expected.items()}, what)


def parameter_count(module: Any, n: int, what: str = "the module") -> None:
    """Check that the module has `n` trainable numbers in total; a parameter shared by two layers counts once."""
    if (count := sum(p.numel() for p in _module(module, what).parameters())) != n:
        has = f"has {count} parameters"
        word = "many" if count > n else "few"
        end = f"{has}; {n} were expected ({abs(count - n)} too {word})."
        raise fault(what, end, actor, f"{has}, which is too {word}.")


def no_parameters(module: Any, what: str = "the module") -> None:
    """Check that the module has no trainable parameters."""
    if names := [name for name, _ in _module(module, what).named_parameters()]:
        raise fault(what, f"should have no trainable parameters, but has {some(names)}.", actor)


def buffers_follow(
    module: Any,
    names: Sequence[str] = (),
    what: str = "the module",
    *,
    holding: Tensor | None = None,
) -> None:
    """Check that the module registers its constants as buffers, which follow `.to(...)`.

    The module must have at least one buffer and those in `names`. With `holding`, one buffer must
    contain exactly these values in this order, in any shape. The module is converted to float64,
    and the buffers must follow.
    """
    buffers = dict(_module(module, what).named_buffers())
    missing = [name for name in names if name not in buffers]
    end = None
    if missing:
        end = f"has no buffer called {some(missing)}."
    elif not buffers:
        end = "has no buffer: a constant tensor follows `.to(...)` only if it is registered as a buffer."
    elif holding is not None and not any(_holds(b, holding) for b in buffers.values()):
        end = f"has no buffer that holds the expected table; its buffers are {some(list(buffers))}."
    else:
        floats = [(name, b) for name, b in module.double().named_buffers() if b.is_floating_point()]
        stuck = [name for name, buffer in floats if buffer.dtype is not torch.float64]
        end = (
            f"was turned into float64, but {several('buffer', stuck)} stayed behind."
            if stuck
            else None
        )
    if end:
        raise fault(what, end, actor)


def randomize(module: nn.Module, scale: float = 0.3) -> nn.Module:
    """Fill every parameter, including gamma and beta, with normal random numbers in place; return the module.

    Parameters are filled in the order of their names, so the order of their construction does not
    matter.
    """
    with torch.no_grad():
        for _, parameter in sorted(_module(module, "the module").named_parameters()):
            parameter.copy_(torch.randn(parameter.shape, dtype=torch.float64) * scale)
    return module


def copy_parameters(source: nn.Module, target: Any, what: str = "the module") -> Any:
    """Copy all parameters from source to target by name, in place; return target.

    Fails if a parameter of target is missing, unexpected, or of another shape, and names it.
    """
    weights = dict(source.named_parameters())
    _compare_shapes(target, {name: tuple(p.shape) for name, p in weights.items()}, what)
    with torch.no_grad():
        for name, parameter in target.named_parameters():
            parameter.copy_(weights[name])
    return target


def _module(value: Any, what: str) -> nn.Module:
    if isinstance(value, nn.Module):
        return value
    raise wrong_type(value, "a module (an nn.Module)", what)


def _compare_shapes(module: Any, expected: dict[str, tuple[int, ...]], what: str) -> None:
    actual = {name: tuple(p.shape) for name, p in _module(module, what).named_parameters()}
    missing = [name for name in expected if name not in actual]
    extra = [name for name in actual if name not in expected]
    faults = [f"lacks {several('parameter', missing)}"] if missing else []
    faults += [f"has {several('unexpected parameter', extra)}"] if extra else []
    wrong = (name for name in expected if name in actual and actual[name] != expected[name])
    if not faults and (name := next(wrong, None)):
        faults = [f"has a parameter {name} of shape {actual[name]}; {expected[name]} was expected"]
    if faults:
        failure = fault(what, f"{' and '.join(faults)}.", actor)
        if extra and not missing:
            failure.telling = f"unexpected parameters: {sorted(actual[name] for name in extra)}"
        raise failure


def _holds(buffer: Tensor, table: Tensor) -> bool:
    mine = buffer.detach().reshape(-1).double()
    theirs = table.detach().reshape(-1).double()
    return mine.shape == theirs.shape and torch.allclose(mine, theirs, atol=1e-5)
