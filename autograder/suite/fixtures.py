"""The fixtures of suites, registered with the first collected test of a suite: other projects keep their own."""

from typing import Any

import pytest

from autograder.bridge.outside.connection import seed_of
from autograder.suite.markers import SUITE


@pytest.fixture
def student(request: pytest.FixtureRequest) -> Any:
    """Return the module under test: the functions and classes of a student's file, in this process or in a worker."""
    return request.config.stash[SUITE].subject(request.node).student


@pytest.fixture
def reference(request: pytest.FixtureRequest) -> Any:
    """Return the solution, in this process.

    Only hidden tests may use it, because students do not have it.
    """
    subject = request.config.stash[SUITE].subject(request.node).reference
    if subject is None:
        raise pytest.UsageError("there is no solution here: visible tests cannot use `reference`")
    return subject


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """Return this test's seed in this run; torch, numpy and random are seeded with it before the test."""
    return seed_of(request.config.stash[SUITE].run_seed, request.node.name)
