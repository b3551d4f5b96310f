"""The pytest plugin `autograder`: tests the reference of a course, or one submission, with a suite of that course.

It brings the plugin for suites along; `-p no:autograder` switches both off.

pytest tests/assignments/03_masked_heads                                          the reference
pytest tests/assignments/03_masked_heads --autograder-submission masked_heads.py  that file, in the sandbox
"""

from collections.abc import Generator
from pathlib import Path

import pytest

from autograder.suite.markers import SUITE, is_test_of_suite

pytest_plugins = ("autograder.suite.plugin",)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("autograder")
    group.addoption(
        "--autograder-submission",
        metavar="FILE",
        help="test this file with its suite instead of the reference, in the sandbox",
    )
    group.addoption(
        "--autograder-unsafe",
        action="store_true",
        help="test --autograder-submission without a sandbox",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    tests = [item for item in items if is_test_of_suite(item)]
    if not tests or config.stash[SUITE].subjects is not None:
        return
    from autograder.grading.course_subjects import CourseSubjects

    submission = config.getoption("--autograder-submission")
    unsafe = config.getoption("--autograder-unsafe")
    config.stash[SUITE].subjects = CourseSubjects(Path(submission) if submission else None, unsafe)
    if submission:
        stems = {item: item.path.parent.name.partition("_")[2] for item in tests}
        chosen = [item for item in tests if stems[item] == Path(submission).stem]
        if not chosen:
            names = sorted({f"{stem}.py" for stem in stems.values()})
            raise pytest.UsageError(
                f"{Path(submission).name} belongs to none of these tests; they are for {', '.join(names)}."
            )
        config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
        items[:] = chosen


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show a submission's messages and printed text without characters that command the terminal."""
    report = yield
    if item.config.getoption("--autograder-submission") and is_test_of_suite(item):
        from autograder.failures.explain import clean

        report.sections = [(title, clean(text, len(text))) for title, text in report.sections]
        if report.failed:
            report.longrepr = clean(report.longreprtext, len(report.longreprtext))
    return report
