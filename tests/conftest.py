import os

import pytest
from hypothesis import HealthCheck, settings

# Before anything imports PyTorch: the test processes use all cores, and threads that wait for one keep it busy.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# No test depends on luck or load: the same examples each time, however slowly they are drawn.
settings.register_profile(
    "tests", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("tests")
os.environ["AUTOGRADER_KEY"] = "the key of the tests, which leave the user's own alone"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One process more than there are cores: many tests wait for a worker's deadline or for a sandbox to start."""
    return (os.cpu_count() or 1) + 1


# Each process takes whole files, in this order. What takes long comes first, so that no process works on it alone.
FIRST = (
    "test_attacks.py", "test_cluster.py", "test_grading.py", "test_packaging.py", "test_poisoned_folder.py",
    "test_release.py", "test_worker.py", "test_entries.py", "test_other_systems.py", "test_proxy.py",
    "test_locked_hints.py", "test_no_green_by_accident.py", "test_watch.py", "test_hostile_folder.py", "test_suite.py",
    "test_exports.py", "test_self_check.py", "test_planted_grades.py", "test_wire.py",
)  # fmt: skip


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    ranks = {name: rank for rank, name in enumerate(FIRST)}
    items.sort(key=lambda item: ranks.get(item.path.name, len(FIRST)))


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Bytes are numbered, never spelled out: an archive may contain the second in which it was made."""
    return argname if isinstance(val, bytes) else None
