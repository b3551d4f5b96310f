"""The page of similar submissions: each pair side by side, with shared lines marked."""

from collections.abc import Iterable
from pathlib import Path

from autograder.extras.similar.similar import Similar
from autograder.extras.similar.similarity import MOST_WORDS
from autograder.extras.similar.tokens import Code
from autograder.feedback.pages import write_page
from autograder.text.files import check_file, marked

TEMPLATES = Path(__file__).parent / "templates"

MARK = "<title>Alike · ".encode()  # identifies a page written by an earlier run


def check_room(path: Path) -> None:
    """Raise RefusedError if the path holds a file that is not such a page, or cannot be written."""
    check_file(path, "`similar`", marked(MARK))


def write_alike(path: Path, title: str, similar: Similar) -> Path:
    """Write the page to `path`; raises RefusedError as `check_room`, InfrastructureError without jinja2."""
    check_room(path)
    pairs = []
    for pair in similar.pairs:
        first_lines = _lines(similar.codes[pair.one], (passage.one for passage in pair.passages))
        other = _lines(similar.codes[pair.other], (passage.other for passage in pair.passages))
        pairs.append((pair, ((pair.one, first_lines), (pair.other, other))))
    numbers = {"submissions": len(similar.codes), "most_words": MOST_WORDS}
    answers = similar.course_answers
    return write_page(
        path,
        "similar.html.j2",
        TEMPLATES,
        title=title,
        pairs=pairs,
        course_answers=answers,
        **numbers,
    )


def _lines(code: Code, passages: Iterable[tuple[int, int]]) -> list[tuple[int, str, bool]]:
    """Return each line of a student's code with its number and whether the other submission shares it."""
    both = {line for first, last in passages for line in range(first, last + 1)} & set(code.lines)
    return [
        (number, row, number in both) for number, row in enumerate(code.text.splitlines(), start=1)
    ]
