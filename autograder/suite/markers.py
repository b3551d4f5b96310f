"""The model of a suite: its markers `part`, `points`, `needs` and `forbids`, and the state of a session."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from autograder.bridge.outside.subject import Subject

MARKERS = (
    "part(name): the part of the assignment that the test belongs to",
    "points(number): the points of the test",
    "needs(*tests): skip the test if one of these tests failed",
    "forbids(*names): fail the test if one of these dotted names, such as torch.nn.LayerNorm, runs in its calls",
    "promise(*words): words of the stub that promise what the hidden test asserts",
    "fixed_inputs(reason): why the inputs of the hidden test cannot be drawn from the seed of the run",
)
SUITE = pytest.StashKey["Suite"]()
FIXTURES = "autograder.suite.fixtures"  # the module that defines them
# pytest's fixtures with which a test reads printed text
CAPTURING = frozenset({"capsys", "capsysbinary"})


class Suite:
    """The state of a session: the run's seed, the provider of subjects, and the outcome of each test by name."""

    def __init__(self, run_seed: int) -> None:
        self.run_seed = run_seed
        self.subjects: SubjectProvider | None = None
        self.passed: dict[str, bool] = {}

    def missing(self, needs: Iterable[str]) -> str | None:
        """Return the first of these tests that failed or was skipped; one that was not selected does not count."""
        return next((name for name in needs if not self.passed.get(name, True)), None)

    def subject(self, item: pytest.Item) -> "Subject":
        if self.subjects is None:
            raise pytest.UsageError(f"{item.nodeid} has no subject: it is not part of a suite")
        return self.subjects.subject(item.path)


class SubjectProvider:
    """Base class: provides the subject of a test file.

    `forbidden` are all names that the session's tests forbid.
    """

    forbidden: Sequence[str] = ()

    def subject(self, test_file: Path) -> "Subject":
        raise NotImplementedError

    def close(self) -> None:
        """Release the resources of all subjects, such as worker processes."""


def is_test_of_suite(item: pytest.Item) -> bool:
    """Whether a test belongs to a part and uses the fixture `student` of suites, not another project's."""
    part = item.get_closest_marker("part")
    definitions = fixture_definitions(item).get("student", ())
    return part is not None and any(
        definition.func.__module__ == FIXTURES for definition in definitions[-1:]
    )


def fixture_definitions(item: pytest.Item) -> dict[str, Any]:
    """Return the definitions of each fixture of a test, the effective one last; pytest has no public API for it."""
    info = getattr(item, "_fixtureinfo", None)
    return info.name2fixturedefs if info else {}


def title_of(item: pytest.Item) -> str:
    """Return the test's title for students: the first paragraph of its docstring, on one line."""
    text = (getattr(item.obj, "__doc__", None) or item.name).strip()  # type: ignore[attr-defined]
    return " ".join(text.split("\n\n")[0].split())


def place_of(item: pytest.Item) -> str:
    """Return the file and the line of a test, as an author looks for it."""
    file, line, _ = item.location
    return file if line is None else f"{file}, line {line + 1}"


def arguments_of(item: pytest.Item, marker: str) -> list[str]:
    """Return the arguments of all of a test's markers of that name, the nearest first."""
    return [str(name) for marks in item.iter_markers(marker) for name in marks.args]


def visible_first(items: list[pytest.Item]) -> list[pytest.Item]:
    """Return the items with each folder's visible tests before its hidden ones, which may need them."""
    folders: dict[Path, int] = {}
    for item in items:
        folders.setdefault(item.path.parent, len(folders))

    def place(item: pytest.Item) -> tuple[int, bool]:
        return folders[item.path.parent], item.path.name == "test_hidden.py"

    return sorted(items, key=place)
