"""The model of a suite: its markers `part`, `points`, `needs` and `forbids`, and what is known during a session."""

from __future__ import annotations

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
    "promise(*words): words of the stub that promise what a hidden test asserts",
)
SUITE = pytest.StashKey["Suite"]()
FIXTURES = "autograder.suite.fixtures"  # the module that defines them


class Suite:
    """What is known during a session: the run's seed, where the subjects come from, and which tests passed."""

    def __init__(self, run_seed: int) -> None:
        self.run_seed = run_seed
        self.subjects: SubjectProvider | None = None
        self.passed: dict[str, bool] = {}

    def subject(self, item: pytest.Item) -> Subject:
        if self.subjects is None:
            raise pytest.UsageError(f"{item.nodeid} has no subject: it is not part of a suite")
        return self.subjects.subject(item.path)


class SubjectProvider:
    """Finds the subject of a file of tests; a base class."""

    def subject(self, test_file: Path) -> Subject:
        raise NotImplementedError

    def close(self) -> None:
        """Stop whatever was started for the subjects."""


def is_test_of_suite(item: pytest.Item) -> bool:
    """Whether a test belongs to a part and uses the fixture `student` of suites, not one of another project."""
    definitions = fixture_definitions(item).get("student", ())
    return has_part(item) and any(each.func.__module__ == FIXTURES for each in definitions[-1:])


def fixture_definitions(item: pytest.Item) -> dict[str, Any]:
    """The definitions of each fixture that a test uses, the one that counts last; pytest has no public name for it."""
    info = getattr(item, "_fixtureinfo", None)
    return info.name2fixturedefs if info else {}


def has_part(item: pytest.Item) -> bool:
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
