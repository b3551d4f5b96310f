"""Remember which assignments were found up to date, so that those that did not change are not
derived again.

The record lies in `build/` and can be deleted at any time. One remembered assignment, drawn at
random, is derived again in each check: a digest that overlooks a source would be noticed before
long.
"""

import hashlib
import json
import random
import sys
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path

from autograder.authoring.released import files_below
from autograder.course.config import Assignment, Course
from autograder.text.files import add_files, write_whole

RECORD = Path("build") / "checked.json"
ENGINE = Path(__file__).resolve().parents[1]
WRITERS = ("jupytext", "nbformat")  # with other versions, the same sources may give other files


def needs_check(course: Course, assignments: Sequence[Assignment]) -> dict[str, str]:
    """Return the assignments that changed since they were found up to date, and one of the others,
    with digests.
    """
    digests = _digests(course, assignments)
    remembered = _remembered(course)
    unchanged = [name for name, digest in digests.items() if remembered.get(name) == digest]
    drawn = random.sample(unchanged, min(1, len(unchanged)))
    return {
        name: digest for name, digest in digests.items() if name in drawn or name not in unchanged
    }


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


def _digests(course: Course, assignments: Sequence[Assignment]) -> dict[str, str]:
    """Return a digest of all that an assignment's released files are derived from or compared with."""
    versions = [sys.version, *(metadata.version(package) for package in WRITERS)]
    common = hashlib.sha256("\0".join([course.model_dump_json(), *versions]).encode())
    add_files(common, ENGINE)
    digests = {}
    for assignment in assignments:
        digest = common.copy()
        digest.update(assignment.model_dump_json().encode())
        add_files(digest, course.solution_folder(assignment))
        add_files(digest, course.suite_folder(assignment))
        add_files(digest, course.release_folder(assignment))
        for file in files_below(course.release_folder(assignment)):
            # no stray file is overlooked
            digest.update(f"{file.name}\0".encode("utf-8", "surrogateescape"))
        digests[assignment.name] = digest.hexdigest()
    return digests
