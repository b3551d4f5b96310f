"""Callables of a test in the student's process: each call and its backward pass is forwarded to the test's side."""

from typing import Any

import torch
from torch import nn

from autograder.bridge.shared import wire
from autograder.bridge.shared.containers import leaves, mapped


class TestCallable(nn.Module):
    """A proxy for a callable of the test, such as a fake model passed to the student's `generate`."""

    def __init__(self, server: Any, number: int, description: dict[str, Any]) -> None:
        super().__init__()
        self.__dict__.update(
            _server=server, _number=number, training=bool(description.get("training", True))
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._call([], args, kwargs)

    forward = __call__

    def train(self, mode: bool = True) -> "TestCallable":
        self.training = mode
        return self

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute; a directly assigned training mode counts as one set by `train`."""
        super().__setattr__(name, value)
        if name == "training" and "_number" in self.__dict__:
            self._call(["train"], (value,), {})

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        value = self._call(["__getattr__"], (name,), {})
        if isinstance(value, wire.Opaque):
            return lambda *args, **kwargs: self._call([name], args, kwargs)
        return value

    def _call(self, path: list[str], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        # what follows is not the doing of the student's code
        with self._server.entries.active(False):
            return CallBack(self._server, self._number, path, args, kwargs).made()


class CallBack:
    """One call of a test's callable, and its backward pass."""

    def __init__(
        self,
        server: Any,
        number: int,
        path: list[str],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> None:
        self.server = server
        self.given = (args, kwargs)
        self.question = {"callback": number, "path": path, "grad": torch.is_grad_enabled()}
        self.reply: dict[str, Any] = {}

    def made(self) -> Any:
        """Return the callable's result, with a graph to its floating-point inputs."""
        results = iter(_CalledBack.apply(self, *filter(_is_float, leaves(self.given))))  # type: ignore[no-untyped-call]
        value = self.reply["value"]
        return mapped(lambda leaf: next(results) if isinstance(leaf, torch.Tensor) else leaf, value)

    def ask(self, tensors: tuple[Any, ...]) -> tuple[Any, ...]:
        """Call the callable with these tensors as inputs, and return the tensors of its result."""
        own_tensors = iter(tensors)
        args, kwargs = mapped(
            lambda leaf: next(own_tensors) if _is_float(leaf) else leaf, self.given
        )
        self.reply = self.server.ask({**self.question, "args": args, "kwargs": kwargs})
        return tuple(leaf for leaf in leaves(self.reply["value"]) if isinstance(leaf, torch.Tensor))

    def pull_back(self, gradients: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(
            self.server.ask({"pull_back": self.reply["call"], "gradients": list(gradients)})[
                "value"
            ]
        )


class _CalledBack(torch.autograd.Function):
    """The autograd function of a call; inside it, `torch.func` also provides plain tensors."""

    @staticmethod
    def forward(call: CallBack, *tensors: torch.Tensor) -> tuple[Any, ...]:
        return call.ask(tensors)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Any, ...]) -> None:
        ctx.call = inputs[0]
        flags = ctx.call.reply["differentiable"]
        ctx.mark_non_differentiable(*[tensor for tensor, flag in zip(output, flags) if not flag])
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor | None) -> tuple[Any, ...]:
        return None, *_PulledBack.apply(ctx.call, *gradients)  # type: ignore[no-untyped-call]


class _PulledBack(torch.autograd.Function):
    @staticmethod
    def forward(call: CallBack, *gradients: torch.Tensor | None) -> tuple[Any, ...]:
        return call.pull_back(gradients)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Any, ...]) -> None:
        pass

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[Any, ...], call: CallBack, *gradients: Any
    ) -> tuple[Any, ...]:
        """Compute several gradients, as in `torch.func.jacrev`, one after another."""
        results = []
        for i in range(info.batch_size):
            unbatched = [
                g if dim is None else g.select(dim, i) for g, dim in zip(gradients, in_dims[1:])
            ]
            results.append(_PulledBack.apply(call, *unbatched))  # type: ignore[no-untyped-call]
        return tuple(
            None if gradients_of_input[0] is None else torch.stack(gradients_of_input)
            for gradients_of_input in zip(*results)
        ), 0

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[Any, ...]:
        raise RuntimeError("trying to differentiate twice through a function of the test")


def _is_float(leaf: Any) -> bool:
    return isinstance(leaf, torch.Tensor) and leaf.is_floating_point()
