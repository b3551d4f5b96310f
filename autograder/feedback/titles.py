"""What people call the known mistakes: the titles that stand in each assignment's mistakes.yml.

A page is made from a journal, which holds ids. Where the file is gone or broken, or a mistake has left it, the
id is read as words; a report about a class does not wait for an author.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from autograder.course.config import Course

TitleOf = Callable[[str, str], str]  # of an assignment's name and a mistake's id


def in_words(mistake: str) -> str:
    """A mistake's id as people read it."""
    return mistake.replace("_", " ")


def titles_of(course: Course) -> TitleOf:
    """Tells the title of a mistake; each assignment's file is read when it is first asked for."""
    known: dict[str, dict[str, str]] = {}

    def title(name: str, mistake: str) -> str:
        if name not in known:
            assignment = course.find(name)
            known[name] = _titles(course.mistakes_file(assignment)) if assignment else {}
        return known[name].get(mistake, in_words(mistake))

    return title


def _titles(file: Path) -> dict[str, str]:
    try:
        entries = yaml.load(file.read_text("utf-8-sig"), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (OSError, UnicodeDecodeError, yaml.YAMLError):
        return {}
    return {entry["id"]: entry["title"] for entry in _records(entries) if _is_named(entry)}


def _records(entries: Any) -> list[dict[str, Any]]:
    return [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []


def _is_named(entry: dict[str, Any]) -> bool:
    return all(isinstance(entry.get(key), str) and entry[key].strip() for key in ("id", "title"))
