"""The pytest plugin for suites: markers, and the fixtures `student`, `reference` and `seed`.

pytest loads it in every environment that has this package. Therefore all options begin with `--autograder-`, and the
fixtures and the header exist only in sessions that collect a suite.
"""

import inspect
import secrets
from collections.abc import Generator, Iterator, Sequence
from types import FunctionType
from typing import TYPE_CHECKING, Any

import pytest

from autograder.suite.markers import (
    CAPTURING,
    FIXTURES,
    MARKERS,
    SUITE,
    Suite,
    arguments_of,
    is_test_of_suite,
    missing_needs,
    visible_first,
)

if TYPE_CHECKING:
    from autograder.proxy.subject import Subject


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("autograder")
    group.addoption(
        "--autograder-seed", metavar="N", type=int, help="seed of the random inputs, as an earlier run printed it"
    )


def pytest_configure(config: pytest.Config) -> None:
    for marker in MARKERS:
        config.addinivalue_line("markers", marker)
    run_seed = config.getoption("--autograder-seed")
    config.stash[SUITE] = Suite(secrets.randbits(31) if run_seed is None else run_seed)


def pytest_unconfigure(config: pytest.Config) -> None:
    suite = config.stash.get(SUITE, None)
    if suite is not None and suite.subjects is not None:
        suite.subjects.close()


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(collector: pytest.Collector, obj: object) -> None:
    """Register the fixtures at the first test of a suite, before pytest resolves its arguments."""
    plugins = collector.config.pluginmanager
    if plugins.has_plugin(FIXTURES) or not isinstance(obj, FunctionType):
        return
    marks = getattr(obj, "pytestmark", [])
    marked = isinstance(marks, list) and any(mark.name == "part" for mark in marks)
    if (marked or collector.get_closest_marker("part")) and "student" in inspect.signature(obj).parameters:
        plugins.import_plugin(FIXTURES)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    suite = config.stash[SUITE]
    if not any(map(is_test_of_suite, items)):
        return
    items[:] = visible_first(items)
    if suite.subjects is None:
        from autograder.suite.subjects import FilesBeside

        suite.subjects = FilesBeside()


def pytest_report_collectionfinish(config: pytest.Config, items: Sequence[pytest.Item]) -> list[str]:
    suites = any(map(is_test_of_suite, items))
    return [f"autograder: --autograder-seed {config.stash[SUITE].run_seed}"] if suites else []


def pytest_runtest_setup(item: pytest.Item) -> None:
    if not is_test_of_suite(item):
        return
    from autograder.proxy.subject import seed_of

    suite = item.config.stash[SUITE]
    missing = missing_needs(item, suite)
    if missing:
        suite.passed[item.name] = False
        pytest.skip(f"waits for `{missing[0]}`")
    reads_output = not CAPTURING.isdisjoint(getattr(item, "fixturenames", ()))
    suite.subject(item).begin(seed_of(suite.run_seed, item.name), reads_output)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: Any, request: Any) -> Generator[None, Any, Any]:
    """Let the submission share the folder of a test with `tmp_path`."""
    value = yield
    item = request.node
    if fixturedef.argname == "tmp_path" and isinstance(item, pytest.Item) and is_test_of_suite(item):
        item.config.stash[SUITE].subject(item).share(value)
    return value


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    if not is_test_of_suite(item):
        return (yield)
    suite = item.config.stash[SUITE]
    suite.passed[item.name] = False
    refuse_forbidden(item, suite.subject(item))
    result = yield
    suite.passed[item.name] = True
    return result


def refuse_forbidden(item: pytest.Item, subject: "Subject") -> None:
    """Fail a test if the submission uses a name that its marker `forbids` lists."""
    from autograder.checks import CheckFailed

    names = arguments_of(item, "forbids")
    use = subject.forbidden(names) if names else None
    if use is not None:
        sentence = (
            f"{use.place} uses `{use.name}`, which this exercise asks you to write by hand. "
            'You may compare with it below `if __name__ == "__main__":`.'
        )
        raise CheckFailed(sentence, public=sentence)
