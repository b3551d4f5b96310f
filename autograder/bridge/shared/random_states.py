"""The states of the global random generators, on either side of the wall."""

import hashlib
import random

import numpy as np
import torch


def random_states() -> dict[str, str]:
    """Return a digest of each library's global state, by the library's name."""
    _, numbers, *position = np.random.get_state()
    return {
        "Python": _digest(repr(random.getstate()).encode()),
        "NumPy": _digest(np.asarray(numbers).tobytes() + repr(position).encode()),
        "PyTorch": _digest(torch.default_generator.get_state().numpy().tobytes()),
    }


def _digest(state: bytes) -> str:
    return hashlib.sha256(state).hexdigest()
