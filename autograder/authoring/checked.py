"""Remember which assignments were found up to date, so that those that did not change are not derived again.

The record lies in `build/` and can be deleted at any time. One remembered assignment, drawn at
random, is derived again in each check: a digest that overlooks a source would be noticed before
long.
"""

import hashlib
import json
import random
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from autograder.authoring.released import files_below
from autograder.course.config import Assignment, Course
from autograder.text.files import add_files, write_whole

RECORD = Path("build") / "checked.json"
ENGINE = Path(__file__).resolve().parents[1]
# With other versions, the same sources may give other files, or stubs that cannot be imported.
PACKAGES = ("jupytext", "nbformat", "torch", "numpy")


@dataclass(frozen=True)
class Due:
    """The assignments to check, by name with their digests: those that changed since they were
    found up to date, and one that was drawn.
    """

    changed: dict[str, str]
    drawn: dict[str, str]

    @property
    def digests(self) -> dict[str, str]:
        return {**self.changed, **self.drawn}


def due(course: Course, assignments: Sequence[Assignment]) -> Due:
    """Return the assignments that changed since they were found up to date, and one of the others."""
    digests = digests_of(course, assignments)
    remembered = _remembered(course)
    unchanged = [name for name, digest in digests.items() if remembered.get(name) == digest]
    drawn = random.sample(unchanged, min(1, len(unchanged)))
    return Due(
        {name: digest for name, digest in digests.items() if name not in unchanged},
        {name: digests[name] for name in drawn},
    )


def remember(course: Course, digests: Mapping[str, str]) -> None:
    """Record that these assignments are up to date, as they were when their digests were taken."""
    record = {**_remembered(course), **digests}
    names = {assignment.name for assignment in course.assignments}
    kept = {name: digest for name, digest in sorted(record.items()) if name in names}
    try:
        write_whole(course.root / RECORD, json.dumps(kept, indent=1) + "\n")
    except OSError:
        return  # in a folder that cannot be written, everything is derived each time


def _remembered(course: Course) -> dict[str, str]:
    try:
        record = json.loads((course.root / RECORD).read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}


def digests_of(course: Course, assignments: Sequence[Assignment]) -> dict[str, str]:
    """Return a digest of all that an assignment's released files are derived from or compared with."""
    versions = [sys.version, *map(_version, PACKAGES)]
    common = hashlib.sha256("\0".join([course.model_dump_json(), *versions]).encode())
    add_files(common, ENGINE)
    digests = {}
    for assignment in assignments:
        digest = common.copy()
        digest.update(assignment.model_dump_json().encode())
        for module in assignment.preload:
            digest.update(f"\0{_version(module.partition('.')[0])}".encode())
        add_files(digest, course.solution_folder(assignment))
        add_files(digest, course.suite_folder(assignment))
        add_files(digest, course.release_folder(assignment))
        for file in files_below(course.release_folder(assignment)):
            # no stray file is overlooked
            digest.update(f"{file.name}\0".encode("utf-8", "surrogateescape"))
        digests[assignment.name] = digest.hexdigest()
    return digests


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""
