import os

import pytest

# Before anything imports PyTorch: the test processes use all cores, and threads that wait for one keep it busy.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["AUTOGRADER_KEY"] = "the key of the tests, which leave the user's own alone"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One process more than there are cores: many tests wait for a worker's deadline or for a sandbox to start."""
    return (os.cpu_count() or 1) + 1


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Bytes are numbered, never spelled out: an archive may contain the second in which it was made."""
    return argname if isinstance(val, bytes) else None
