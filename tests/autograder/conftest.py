"""Shared fixtures that are slow to create, once per test process.

Everything is imported on first use, so that tests which need none of it start at once.
"""

from __future__ import annotations

import shutil
import sys
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.autograder.tiny_course import write_tiny_course

if TYPE_CHECKING:
    from autograder.course.config import Course
    from autograder.walls.outside.doctor import TierReport
    from autograder.walls.outside.launcher import Sandbox


@pytest.fixture(scope="session")
def tiers() -> dict[str, TierReport]:
    """What the doctor says of each tier: one may be missing here, but none has an open boundary."""
    from autograder.walls.outside import doctor

    reports = {report.tier: report for report in doctor.examine()}
    assert not [each.reason for each in reports.values() if "A worker was able to" in each.reason]
    return reports


@pytest.fixture(scope="session")
def sandbox() -> Iterator[Sandbox]:
    """A warm sandbox of the best tier. Graders cannot close it; no test may kill its fork server."""
    from autograder.walls.outside.launcher import Sandbox

    class SharedSandbox(Sandbox):
        def close(self) -> None:
            return

    shared = SharedSandbox("best")
    yield shared
    Sandbox.close(shared)


@pytest.fixture(scope="module")
def grader_at_hand(sandbox: Sandbox) -> Iterator[None]:
    """Let the runs of a module grade in this process and in the warm sandbox; for tests of what surrounds a grade."""
    from tests.autograder.at_hand import graders_at_hand

    with graders_at_hand(sandbox):
        yield


@pytest.fixture(scope="session")
def course(tmp_path_factory: pytest.TempPathFactory) -> Course:
    """The tiny course as its author wrote it; a test that changes it writes another one."""
    from autograder.course.reading import load_course

    return load_course(write_tiny_course(tmp_path_factory.mktemp("written") / "course"))


@pytest.fixture
def packed(tmp_path: Path) -> Callable[[str, Mapping[str, str | bytes]], Path]:
    """Return a function that writes a zip with these files."""

    def pack(name: str, files: Mapping[str, str | bytes]) -> Path:
        with zipfile.ZipFile(tmp_path / name, "w", zipfile.ZIP_DEFLATED) as archive:
            for inner, data in files.items():
                archive.writestr(inner, data)
        return tmp_path / name

    return pack


@pytest.fixture(scope="session")
def built_course(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The root of the tiny course, built; a test that changes it must copy it first."""
    from autograder.course.reading import load_course
    from tests.autograder.at_hand import build_at_hand

    root = write_tiny_course(tmp_path_factory.mktemp("built") / "course")
    build_at_hand(load_course(root))
    return root


@pytest.fixture(scope="session")
def released(built_course: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The released files of the tiny course with pictures, and the course from which they were built."""
    from tests.autograder.student_folder import release

    return release(shutil.copytree(built_course, tmp_path_factory.mktemp("released") / "course"))


@pytest.fixture(autouse=True)
def notebook_functions() -> Iterator[None]:
    """Put back `autograder.notebook`, which a submission that is loaded in this process replaces by a silent one."""
    name = "autograder.notebook"
    before = sys.modules.get(name)
    yield
    if before is None:
        sys.modules.pop(name, None)
    elif sys.modules.get(name) is not before:
        sys.modules[name] = before


@pytest.fixture
def folder(released: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A student's folder of the assignment, as the working directory."""
    from tests.autograder.student_folder import copy_of

    folder = copy_of(released, tmp_path)
    monkeypatch.chdir(folder)
    return folder
