"""The people of a class: an extension reads the roster; without one, the ids in the grades are enough."""

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from autograder.course.config import Course
from autograder.gradebook.demo_marker import MARK
from autograder.gradebook.final_scores import ClassList
from autograder.installation.extensions import extensions, load_extension

EXTENSIONS = "autograder.people"
ROSTER = "roster"  # the name of the entry point


class People(Protocol):
    """The students of a class, as far as somebody knows them."""

    def class_list(self, names: Mapping[str, str]) -> ClassList:
        """Return the class by ids in the grades; `names` has the names of the students with grades."""
        ...

    def student_id(self, text: str, names: Mapping[str, str], originals: Mapping[str, str]) -> str:
        """Return the id in the grades that a name, a login or an address identifies; the text itself otherwise."""
        ...


class Unknown:
    """A class of which nothing is known but the ids in its grades."""

    def class_list(self, names: Mapping[str, str]) -> ClassList:
        return ClassList()

    def student_id(self, text: str, names: Mapping[str, str], originals: Mapping[str, str]) -> str:
        return text


def people_of(course: Course, grades: Path | None = None) -> People:
    """Return the people of the course's roster; a made-up class in the folder of `grades` has none."""
    is_made_up = grades is not None and (grades / MARK).exists()
    if is_made_up or ROSTER not in extensions(EXTENSIONS):
        return Unknown()
    people: People = load_extension(EXTENSIONS, ROSTER)(course)
    return people
