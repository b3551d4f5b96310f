"""The pytest plugin that suites are written for: markers `part`, `points`, `needs`, `forbids`, and the fixtures
`student`, `reference` and `seed`.

With plain pytest, a suite in a course's `tests/assignments/` runs against the reference, or, with
`--submission FILE`, against that file in the sandbox; a released test file runs against the student's file beside
it. The grader puts the students on the stage itself (see `autograder.suite.session`).
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from autograder.proxy.subject import Subject

MARKERS = (
    "part(name): the part of the assignment that the test belongs to",
    "points(number): what the test is worth",
    "needs(*tests): tests that must have passed before this one makes sense",
    "forbids(*names): dotted names that a submission must not use, such as torch.nn.LayerNorm",
)
SUITE = pytest.StashKey["Suite"]()


class Suite:
    """What the plugin knows during a session: the run's seed, who is tested, and which tests passed."""

    def __init__(self, run_seed: int) -> None:
        self.run_seed = run_seed
        self.subjects: SubjectProvider | None = None
        self.passed: dict[str, bool] = {}

    def subject(self, item: pytest.Item) -> Subject:
        if self.subjects is None:
            raise pytest.UsageError("nobody is on the stage: this test is not part of a suite")
        return self.subjects.subject(item.path)


class SubjectProvider:
    """Decides who is tested by a file of tests. The default: the reference, or the file beside the tests."""

    def subject(self, test_file: Path) -> Subject:
        raise NotImplementedError

    def close(self) -> None:
        """Let go of whatever was started for the scenes."""


def is_test_of_suite(item: pytest.Item) -> bool:
    return item.get_closest_marker("part") is not None


def points_of(item: pytest.Item) -> float:
    marker = item.get_closest_marker("points")
    return float(marker.args[0]) if marker else 0.0


def part_of(item: pytest.Item) -> str:
    marker = item.get_closest_marker("part")
    return str(marker.args[0]) if marker else ""


def title_of(item: pytest.Item) -> str:
    """The sentence that students read: the first paragraph of the test's docstring on one line."""
    text = (getattr(item.obj, "__doc__", None) or item.name).strip()  # type: ignore[attr-defined]
    return " ".join(text.split("\n\n")[0].split())


def needs_of(item: pytest.Item) -> list[str]:
    return [str(name) for marker in item.iter_markers("needs") for name in marker.args]


def forbidden_by(item: pytest.Item) -> list[str]:
    return [str(name) for marker in item.iter_markers("forbids") for name in marker.args]


def visible_first(items: list[pytest.Item]) -> list[pytest.Item]:
    """The items with each folder's hidden tests behind its visible ones, since hidden tests may need those."""
    folders = {
        folder: place for place, folder in reversed(list(enumerate(item.path.parent for item in items)))
    }
    return sorted(items, key=lambda item: (folders[item.path.parent], item.path.name == "test_hidden.py"))


def missing_needs(item: pytest.Item, suite: Suite) -> list[str]:
    """The needed tests that did not pass. A need that was not run at all (say, with -k) does not hold a test up."""
    return [name for name in needs_of(item) if suite.passed.get(name, True) is False]


# ---------------------------------------------------------------------- fixtures


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
    from autograder.proxy.subject import seed_of

    return seed_of(request.config.stash[SUITE].run_seed, request.node.name)


# ---------------------------------------------------------------------- hooks


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("autograder")
    group.addoption(
        "--submission", metavar="FILE", help="test this file instead of the reference, in the sandbox"
    )
    group.addoption("--run-seed", metavar="N", type=int, help="repeat a run: the seed that it printed")
    group.addoption("--unsafe", action="store_true", help="allow --submission without a sandbox around it")


def pytest_configure(config: pytest.Config) -> None:
    for marker in MARKERS:
        config.addinivalue_line("markers", marker)
    run_seed = config.getoption("--run-seed")
    config.stash[SUITE] = Suite(secrets.randbits(31) if run_seed is None else run_seed)


def pytest_report_header(config: pytest.Config) -> str:
    return f"autograder: --run-seed {config.stash[SUITE].run_seed}"


def pytest_unconfigure(config: pytest.Config) -> None:
    suite = config.stash.get(SUITE, None)
    if suite is not None and suite.subjects is not None:
        suite.subjects.close()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    suite = config.stash[SUITE]
    if not any(map(is_test_of_suite, items)):
        return
    items[:] = visible_first(items)
    if suite.subjects is not None:
        return
    from autograder.suite.subjects import CourseSubjects

    submission = config.getoption("--submission")
    subjects = CourseSubjects(Path(submission) if submission else None, unsafe=config.getoption("--unsafe"))
    suite.subjects = subjects
    if submission:
        chosen = [item for item in items if is_test_of_suite(item) and subjects.is_for(item.path)]
        if not chosen:
            names = sorted(
                {f"{item.path.parent.name.partition('_')[2]}.py" for item in items if is_test_of_suite(item)}
            )
            raise pytest.UsageError(
                f"{Path(submission).name} belongs to none of these tests; they are for {', '.join(names)}."
            )
        config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
        items[:] = chosen


def pytest_runtest_setup(item: pytest.Item) -> None:
    if not is_test_of_suite(item):
        return
    from autograder.proxy.subject import seed_of

    suite = item.config.stash[SUITE]
    missing = missing_needs(item, suite)
    if missing:
        suite.passed[item.name] = False
        pytest.skip(f"waits for `{missing[0]}`")
    suite.subject(item).begin(seed_of(suite.run_seed, item.name))


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


def refuse_forbidden(item: pytest.Item, subject: Subject) -> None:
    """Fail a test whose `forbids` names something that the submission uses."""
    from autograder.checks import CheckFailed

    names = forbidden_by(item)
    use = subject.forbidden(names) if names else None
    if use is not None:
        sentence = f"Line {use.line} uses `{use.name}`, which this exercise asks you to write by hand."
        raise CheckFailed(sentence, public=sentence)
