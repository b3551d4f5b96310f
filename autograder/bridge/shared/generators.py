"""Random generators that a test hands over: their state travels, and the test's own one catches up after the call."""

import random
from collections.abc import Iterable
from typing import Any

import numpy as np
import torch


def is_generator(value: Any) -> bool:
    """Whether this is a generator of PyTorch, NumPy or Python whose state can travel."""
    if isinstance(value, np.random.Generator):  # `numpy.random.default_rng` makes one of this kind
        return type(value.bit_generator) is np.random.PCG64
    if isinstance(value, torch.Generator):
        return value.device.type == "cpu"
    return type(value) is random.Random


def take_states(values: Iterable[Any], advanced: Iterable[Any]) -> None:
    """Bring the generators among the values to the states of others; raises TypeError for one of another kind."""
    for generator, other in zip(filter(is_generator, values), advanced):
        _take_state(generator, other)


def _take_state(generator: Any, advanced: Any) -> None:
    if type(generator) is not type(advanced):
        raise TypeError("a generator of the same kind was expected")
    if isinstance(generator, torch.Generator):
        generator.set_state(advanced.get_state())
    elif isinstance(generator, random.Random):
        generator.setstate(advanced.getstate())
    else:
        generator.bit_generator.state = advanced.bit_generator.state


def state_of(generator: "np.random.Generator | random.Random") -> list[Any]:
    """Return the state of a generator of NumPy or Python as whole numbers, and None or a number at the end."""
    if isinstance(generator, random.Random):
        _, numbers, next_gauss = generator.getstate()
        return [*numbers, next_gauss]
    state: dict[str, Any] = dict(generator.bit_generator.state)
    return [*state["state"].values(), state["has_uint32"], state["uinteger"]]


def of_numpy(state: list[Any]) -> np.random.Generator:
    """Return the generator with this state; raises an exception of any kind if it is none."""
    number, increment, has_half, half = state
    pcg = np.random.PCG64(0)
    pcg.state = {
        "bit_generator": "PCG64",
        "state": {"state": number, "inc": increment},
        "has_uint32": has_half,
        "uinteger": half,
    }
    return np.random.Generator(pcg)


def of_python(state: list[Any]) -> random.Random:
    """As `of_numpy`, for Python's own generator."""
    *numbers, next_gauss = state
    if not (next_gauss is None or type(next_gauss) is float):
        raise TypeError("the next number was expected")
    generator = random.Random(0)
    generator.setstate((random.Random.VERSION, tuple(numbers), next_gauss))
    return generator
