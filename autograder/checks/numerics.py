"""The one form in which numbers are compared, whatever holds them: a tensor, an array, numpy's or Python's number."""

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy
import torch
from torch import Tensor

REAL = (bool, int, float, Fraction, Decimal)


def unboxed(value: Any) -> Any:
    """Return what a scalar of numpy holds, as Python's own; any other value is itself."""
    if isinstance(value, numpy.longdouble):
        return float(value)
    return value.item() if isinstance(value, numpy.generic) else value


def is_plain(tensor: Tensor) -> bool:
    """Whether this is an ordinary tensor: dense, and with numbers in memory."""
    return tensor.layout is torch.strided and not tensor.is_meta


def is_number(value: Any) -> bool:
    return isinstance(value, (*REAL, complex))


def is_table(value: Any) -> bool:
    """Whether a tensor or an array holds numbers or truth values that can be compared."""
    if isinstance(value, Tensor):
        return is_plain(value)
    return isinstance(value, numpy.ndarray) and value.dtype.kind in "biufc"


def as_tensor(value: Any) -> Tensor:
    """Return the numbers of a table, or a number, as a detached tensor; of other values, only what `float` knows."""
    if isinstance(value, Tensor):
        return value.detach().cpu()
    if isinstance(value, numpy.ndarray):
        return _of_array(value)
    if isinstance(value, (bool, complex)):
        return torch.tensor(value, dtype=torch.complex128 if isinstance(value, complex) else None)
    try:
        return torch.tensor(float(value), dtype=torch.float64)
    except OverflowError:
        return torch.tensor(math.inf if value > 0 else -math.inf, dtype=torch.float64)


def _of_array(array: numpy.ndarray[Any, Any]) -> Tensor:
    widest = {"u": "int64", "b": "bool"}
    if array.dtype.kind in "fc" and array.dtype.name not in ("float16", "float32", "complex64"):
        widest |= {"f": "float64", "c": "complex128"}
    kept = array.dtype.newbyteorder("=")
    return torch.from_numpy(numpy.array(array, dtype=widest.get(array.dtype.kind, kept), order="C"))
