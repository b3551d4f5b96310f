"""Search the built site for what must not be released, with the search of a release."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

from autograder.authoring.kit import FOLDER as KIT
from autograder.authoring.release import leaks
from autograder.course.config import Course


class _Text(HTMLParser):
    """The text of a page, as a reader copies it."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.pieces: list[str] = []

    def handle_data(self, data: str) -> None:
        self.pieces.append(data)


def text_of(page: str) -> str:
    """Return the text of an HTML page without its tags."""
    reader = _Text()
    reader.feed(page)
    return "".join(reader.pieces)


def leaks_of(course: Course, site: Path) -> list[str]:
    """Return a sentence for each line of a solution, hidden test or mistake on a page of the site.

    The page of an assignment is searched as its released files are, any other page as a guide in
    the kit.
    """
    files: dict[str, bytes] = {}
    for file in sorted(site.rglob("*.html")):
        name = file.relative_to(site).with_suffix("").as_posix()
        is_assignment = name.startswith("assignments/") and course.find(file.stem) is not None
        label = f"{name}/page" if is_assignment else f"{KIT}/site:{name}.md"
        files[label] = text_of(file.read_text("utf-8")).encode()
    return list(leaks(course, course.assignments, files))
