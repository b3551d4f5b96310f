"""Grades for other people's tools: each exporter turns the grades of a class into what one tool reads.

An exporter is a module with one function, `export(request)`; `EXPORTERS` lists them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from autograder.records import Grade

if TYPE_CHECKING:
    from autograder.course import Course

EXPORTERS = {"nbgrader": "autograder.exports.nbgrader"}


@dataclass(frozen=True)
class Request:
    """What to export: the latest grades of a class, and where its submissions are when a tool wants them, too."""

    course: Course
    grades: tuple[Grade, ...]
    submissions: Path | None = None


@dataclass
class Exported:
    """What became of an export: a sentence about what is there now, and one about each thing that is not."""

    summary: str
    problems: list[str] = field(default_factory=list)


def export(tool: str, request: Request) -> Exported:
    """Export to a tool of `EXPORTERS`; raises InfrastructureError when what the tool needs is not installed."""
    exported: Exported = import_module(EXPORTERS[tool]).export(request)
    return exported
