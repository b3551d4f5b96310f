"""The pytest plugin for suites: markers, and the fixtures `student`, `reference` and `seed`.

pytest loads it in every environment that has this package, as `autograder.grading.pytest_plugin` asks for
it. Therefore all options begin with `--autograder-`, and the fixtures and the header exist only in
sessions that collect a suite.
"""

import inspect
import secrets
from collections.abc import Iterator, Sequence
from types import FunctionType
from typing import TYPE_CHECKING

import pytest

from autograder.suite import markers
from autograder.suite.markers import FIXTURES, SUITE, Suite, is_test_of_suite

if TYPE_CHECKING:
    from autograder.bridge.outside.subject import Subject


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("autograder")
    group.addoption(
        "--autograder-seed",
        metavar="N",
        type=int,
        help="seed of the random inputs, as an earlier run printed it",
    )


def pytest_configure(config: pytest.Config) -> None:
    for marker in markers.MARKERS:
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
    if (marked or collector.get_closest_marker("part")) and "student" in inspect.signature(
        obj
    ).parameters:
        plugins.import_plugin(FIXTURES)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    suite = config.stash[SUITE]
    if not any(map(is_test_of_suite, items)):
        return
    items[:] = markers.visible_first(items)
    if suite.subjects is None:
        from autograder.suite.subjects import FilesBeside

        suite.subjects = FilesBeside()
    forbidden = set[str]()
    for item in items:
        forbidden.update(markers.arguments_of(item, "forbids"))
    suite.subjects.forbidden = sorted(forbidden)


def pytest_report_collectionfinish(
    config: pytest.Config, items: Sequence[pytest.Item]
) -> list[str]:
    suites = any(map(is_test_of_suite, items))
    return [f"autograder: --autograder-seed {config.stash[SUITE].run_seed}"] if suites else []


def pytest_runtest_setup(item: pytest.Item) -> None:
    if not is_test_of_suite(item):
        return
    from autograder.bridge.outside.connection import seed_of

    suite = item.config.stash[SUITE]
    missing = suite.missing(markers.arguments_of(item, "needs"))
    if missing:
        suite.passed[item.name] = False
        pytest.skip(f"waits for `{missing}`")
    reads_output = not markers.CAPTURING.isdisjoint(getattr(item, "fixturenames", ()))
    forbids = markers.arguments_of(item, "forbids")
    suite.subject(item).begin(seed_of(suite.run_seed, item.name), reads_output, forbids)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    if not is_test_of_suite(item):
        return (yield)
    suite = item.config.stash[SUITE]
    subject = suite.subject(item)
    names = markers.arguments_of(item, "forbids")
    suite.passed[item.name] = False
    try:
        with subject.recording(names, item.path):
            result = yield
    except AssertionError:
        # the more useful sentence: what is forbidden need not be put right
        refuse_forbidden(names, subject)
        raise
    refuse_forbidden(names, subject)
    suite.passed[item.name] = True
    return result


def refuse_forbidden(names: Sequence[str], subject: "Subject") -> None:
    """Fail a test in whose calls the submission entered one of the names that its marker `forbids` lists."""
    from autograder.bridge.inside.entries import most_numbers
    from autograder.failures.failed_check import CheckFailed

    use = subject.use_of(names)
    if use is None:
        return
    limit = most_numbers(use.name)
    ran = f"`{use.name}`" if "." in use.name else f"code of `{use.name}`"
    telling = ""
    sentence = (
        f"{use.place} ran {ran} in this test, and this exercise asks you to do it by hand. "
        "Compare with it in a cell or function of its own, which your answer does not call."
    )
    if limit is not None:
        telling = f"a tensor of more than {limit} numbers"  # its answers are those of right code
        sentence = (
            f"{use.place} made a tensor of more than {limit} numbers in this test, and this exercise "
            "asks you to do without one, also for a moment."
        )
    raise CheckFailed(sentence, public=sentence, telling=telling)
