"""A call of the student's code and its reply, as records on both sides of the wall.

On the wire, each is a plain dict with the fields' names. What comes from a worker is untrusted:
`CallReply.read` takes nothing over before its type is checked.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from autograder.bridge.shared import claims

# a tensor's place among the inputs, whether it requires a gradient now, and the gradient it holds
Mark = tuple[int, bool, Tensor | None]


@dataclass(frozen=True)
class Call:
    """What the tests' side asks for.

    `target` is [handle or None, path]: the object whose attribute at the path is called, None for
    the student's module. `sync` are the changes of the modules that take part, made on the tests'
    side since the last call; `modules` are their numbers. `wanted` numbers the tensors among the
    arguments whose gradients may be asked for later, `grad` tells whether gradients are recorded.
    """

    target: list[Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    sync: list[Any]
    grad: bool
    wanted: list[int]
    modules: list[int]

    def message(self) -> dict[str, Any]:
        return dict(vars(self))


@dataclass(frozen=True)
class CallReply:
    """What a call returned and changed.

    `number` is the call's, for its backward pass; `differentiable` has a flag for each tensor of
    the `result`. Changed in place were the input tensors in `mutated` and the lists and dicts in
    `refilled` (each by its place among the inputs, with its new value) and the state of `modules`
    (by number). `generators` have the state after the call, in the order of the inputs. `marked`
    are inputs that require or hold a gradient only since the call.
    """

    number: int
    result: Any
    differentiable: list[bool]
    mutated: list[tuple[int, Tensor]]
    refilled: list[tuple[int, Any]]
    modules: list[tuple[int, dict[str, Any]]]
    generators: list[Any]
    marked: list[Mark]

    @classmethod
    def read(cls, message: Any) -> "CallReply":
        """Read a worker's message; raises TypeError or KeyError if it is malformed."""
        fields = claims.table(message)
        return cls(
            number=claims.integer(fields["call"]),
            result=fields["result"],
            differentiable=[claims.flag(flag) for flag in claims.items(fields["differentiable"])],
            mutated=list(claims.rows(fields["mutated"], int, Tensor)),
            refilled=list(claims.rows(fields["refilled"], int, object)),
            modules=list(claims.rows(fields["modules"], int, dict)),
            generators=list(claims.items(fields["generators"])),
            marked=list(claims.rows(fields.get("marked", ()), int, bool, (Tensor, type(None)))),
        )

    def message(self) -> dict[str, Any]:
        fields = {
            "call": self.number,
            "result": self.result,
            "differentiable": self.differentiable,
            "mutated": _lists(self.mutated),
            "refilled": _lists(self.refilled),
            "modules": _lists(self.modules),
            "generators": self.generators,
        }
        if self.marked:
            fields["marked"] = _lists(self.marked)
        return fields


def claimed_tensor(claim: Any) -> Tensor:
    """Return a worker's claim if it is a tensor; raises TypeError."""
    if not isinstance(claim, Tensor):
        raise TypeError("a tensor was expected")
    return claim


def _lists(rows: Sequence[tuple[Any, ...]]) -> list[list[Any]]:
    return [list(row) for row in rows]
