"""Titles of the known mistakes, from each assignment's mistakes.yml."""

from collections.abc import Callable, Collection
from dataclasses import replace
from functools import cache
from pathlib import Path

import yaml

from autograder.course.config import Assignment, Course
from autograder.records import Grade
from autograder.text.yaml_loader import LOADER, check_shape

TitleOf = Callable[[str, str], str]  # called with an assignment's name and a mistake's id


def in_words(mistake: str) -> str:
    """Return a mistake's id as readable words."""
    return mistake.replace("_", " ")


def parts_in_order(assignment: Assignment | None, names: Collection[str]) -> dict[str, str]:
    """Return the titles of these parts by name, in the order of the course; others follow with their names in words."""
    titles = {}
    if assignment:
        titles = {part.name: part.title for part in assignment.decided_parts if part.name in names}
    return titles | {name: in_words(name) for name in names if name not in titles}


def titles_of(course: Course) -> TitleOf:
    """Return a function that looks up a mistake's title; each assignment's file is read on first use."""

    @cache
    def titles(name: str) -> dict[str, str]:
        assignment = course.find(name)
        return _titles(course.mistakes_file(assignment)) if assignment else {}

    return lambda name, mistake: titles(name).get(mistake, in_words(mistake))


def with_titles(grade: Grade, title_of: TitleOf | None) -> Grade:
    """Return the grade with the title of each known mistake in place of its id."""
    if not any(test.mistake for test in grade.tests):
        return grade
    title_of = title_of or (lambda _, mistake: in_words(mistake))
    tests = (
        replace(t, mistake=title_of(grade.assignment, t.mistake)) if t.mistake else t
        for t in grade.tests
    )
    return replace(grade, tests=tuple(tests))


_UNREADABLE = (
    *(OSError, ValueError, TypeError, LookupError, AttributeError),
    *(RecursionError, yaml.YAMLError),
)


def _titles(file: Path) -> dict[str, str]:
    """Return the titles in a mistakes.yml; an invalid file has none, and does not prevent a report."""
    try:
        text = file.read_text("utf-8-sig")
        check_shape(text)
        entries = yaml.load(text, LOADER)
        titles = {entry["id"]: str(entry.get("title") or "").strip() for entry in entries}
    except _UNREADABLE:
        return {}
    return {mistake: title for mistake, title in titles.items() if title}
