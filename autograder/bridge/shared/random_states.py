"""The states of the global random generators, on either side of the wall."""

import hashlib
import random
from collections.abc import Callable

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


def seed_all(seed: int) -> None:
    """Seed the libraries' global generators."""
    # torch.manual_seed formats a stack for each accelerator, and queries it
    torch.default_generator.manual_seed(seed)
    np.random.seed(seed % 2**32)
    random.seed(seed)


def way_back() -> Callable[[], None]:
    """Return a function that sets the libraries' global states to what they are now."""
    of_python = random.getstate()
    of_numpy = np.random.get_state()
    of_torch = torch.default_generator.get_state()

    def go_back() -> None:
        random.setstate(of_python)
        np.random.set_state(of_numpy)
        torch.default_generator.set_state(of_torch)

    return go_back


def _digest(state: bytes) -> str:
    return hashlib.sha256(state).hexdigest()
