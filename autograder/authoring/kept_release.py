"""Keep the files of the last release in `build/`, under a digest of all that they were made from.

The archive can be deleted at any time. The release looks for leaks in it again with one assignment,
drawn at random: a digest that overlooks a source would be noticed before long.
"""

import hashlib
import itertools
import shutil
import sys
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from autograder.authoring.checked import digests_of
from autograder.authoring.kit import add_sources
from autograder.course.config import Assignment, Course
from autograder.text.files import write_whole, zipped

FOLDER = Path("build") / "release"


def release_digest(
    course: Course,
    assignments: Sequence[Assignment],
    wheel: Path | None,
    others: Mapping[str, bytes],
) -> str:
    """Return the digest of all that the files of a release are made from; `others` are files of the
    course that it takes as they are.
    """
    digest = hashlib.sha256()
    for name, digest_of_file in digests_of(course, assignments).items():
        digest.update(f"{name}\0{digest_of_file}\0".encode())
    add_sources(digest, wheel)
    for name, content in others.items():
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    digest.update("\0".join(_installed()).encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def _installed() -> list[str]:
    """Return the folders of installed packages, which tell the package of a module that an assignment preloads."""
    folders = [Path(place) for place in sys.path if Path(place).is_dir()]
    packages = itertools.chain.from_iterable(folder.glob("*.dist-info") for folder in folders)
    return sorted(package.name for package in packages)


def kept_files(course: Course, digest: str) -> dict[str, bytes] | None:
    """Return the files of the release that was kept under this digest; None if there is none."""
    try:
        with zipfile.ZipFile(course.root / FOLDER / f"{digest}.zip") as archive:
            return {name: archive.read(name) for name in archive.namelist()}
    except (OSError, zipfile.BadZipFile, ValueError, EOFError):
        return None


def keep(course: Course, digest: str, files: Mapping[str, bytes]) -> None:
    """Keep these files in place of those of earlier releases."""
    folder = course.root / FOLDER
    try:
        shutil.rmtree(folder, ignore_errors=True)
        write_whole(folder / f"{digest}.zip", zipped(sorted(files.items())))
    except OSError:
        return  # in a folder that cannot be written, a release is made anew each time
