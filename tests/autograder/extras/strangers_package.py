"""A package of somebody else, which adds to the kit what docs/exports.md links to."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from autograder.installation.extensions import extensions

EXAMPLES = Path(__file__).parents[3] / "docs/examples"


def example_of_the_docs(name: str) -> str:
    """Return a program that docs/exports.md links to."""
    return (EXAMPLES / name).read_text("utf-8")


@contextmanager
def installed_package(folder: Path, module: str, text: str, entry_points: str) -> Iterator[None]:
    """Install a package and take it back: no other test finds its names or its imported module."""
    write_package(folder, module, text, entry_points)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        extensions.cache_clear()
        try:
            yield
        finally:
            sys.modules.pop(module, None)
            extensions.cache_clear()


def write_package(folder: Path, module: str, text: str, entry_points: str) -> None:
    """Write a package as pip leaves it: a module, and the names that it registers."""
    information = folder / f"{module}-1.0.dist-info"
    information.mkdir(parents=True)
    (folder / f"{module}.py").write_text(text)
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text(entry_points)
