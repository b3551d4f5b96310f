"""The fixtures of suites. The plugin registers them with the first test of a suite, so other projects keep theirs."""

from __future__ import annotations

from typing import Any

import pytest

from autograder.proxy.subject import seed_of
from autograder.suite.markers import SUITE


@pytest.fixture
def student(request: pytest.FixtureRequest) -> Any:
    """The module under test: functions and classes of a student's file, wherever it runs."""
    return request.config.stash[SUITE].subject(request.node).student


@pytest.fixture
def reference(request: pytest.FixtureRequest) -> Any:
    """The solution, in this process. Only hidden tests may use it: students do not have it."""
    found = request.config.stash[SUITE].subject(request.node).reference
    if found is None:
        raise pytest.UsageError("there is no solution here: visible tests must do without `reference`")
    return found


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """This test's seed in this run; torch, numpy and random have been seeded with it already."""
    return seed_of(request.config.stash[SUITE].run_seed, request.node.name)
