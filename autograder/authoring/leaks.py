"""Check that released files contain no line of a solution, no hidden test and no mistake."""

import ast
import builtins
import json
import keyword
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from autograder.authoring.promises import promises
from autograder.authoring.released import files_below, released
from autograder.course.config import Assignment, Course
from autograder.course.definitions import comments
from autograder.course.document import Document, lines_inside, load_document

_SECRET_LENGTH = 12  # characters without spaces; shorter lines are too common to be a leak


def leaks(
    course: Course, assignment: Assignment, texts: dict[Path, str] | None = None
) -> list[str]:
    """Return the leaks in the released files of an assignment, one sentence per leak.

    Checked are the files as a build would write them, and the files on disk, extra ones included. A
    hidden test's name is a leak at any place. A line between the markers of a gap is a leak if its
    code, without comments and spaces, occurs within any released line. Common lines are exempt:
    those with fewer than twelve characters of code (`return x`, `else:`, `)`), those with fewer
    than two names that are neither Python's nor imported (`raise ValueError(`, `with
    torch.no_grad():`, `self.size = size`), and those that also occur in the author's given code
    outside all gaps.
    """
    return gives_away(
        course,
        assignment,
        _released_texts(course, assignment, texts or released(course, assignment)),
    )


def gives_away(
    course: Course, assignment: Assignment, texts: Iterable[tuple[str, str]]
) -> list[str]:
    """Return the leaks in named texts of an assignment, as defined by `leaks`."""
    document = load_document(course, assignment)
    secrets = _secrets(document)
    hidden = promises(course, assignment)
    sentences: dict[str, None] = {}
    for label, text in texts:
        shown = _shown(text, label.endswith(".ipynb"))
        for secret, line in secrets.items():
            if secret in shown:
                code = document.text.split("\n")[line - 1].strip()
                sentences[f"{label} gives away line {line} of {document.label}: {code}"] = None
        for answer in assignment.answers:
            if answer.rubric and answer.rubric in text:
                sentences[f"{label} contains the rubric of the written answer `{answer.name}`."] = (
                    None
                )
        for name in hidden:
            if name in words_of(text):
                sentences[f"{label} names the hidden test `{name}`."] = None
    return list(sentences)


def _secrets(document: Document) -> dict[str, int]:
    """Return the code of the gaps without spaces, with its line numbers; common lines are exempt."""
    code = _code_lines(document.text)
    inside = lines_inside(document.gaps)
    given = [_squeezed(text) for line, text in code.items() if line not in inside]
    imports = [
        n for n in ast.parse(document.text).body if isinstance(n, ast.Import | ast.ImportFrom)
    ]
    imported = {alias.asname or alias.name for node in imports for alias in node.names}
    common = {"self", *keyword.kwlist, *dir(builtins), *imported}
    secrets: dict[str, int] = {}
    for line in sorted(inside & set(code)):
        text = _squeezed(code[line])
        names = set(re.findall(r"[^\W\d]\w*", code[line])) - common
        if (
            len(text) >= _SECRET_LENGTH
            and len(names) >= 2
            and not any(text in other for other in given)
        ):
            secrets.setdefault(text, line)
    return secrets


def _code_lines(text: str) -> dict[int, str]:
    """Return the code of each line, without comments, docstrings and empty lines."""
    lines = text.split("\n")
    for comment in comments(text):
        row, column = comment.start
        lines[row - 1] = lines[row - 1][:column]
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            lines[node.lineno - 1 : node.end_lineno] = [""] * len(
                lines[node.lineno - 1 : node.end_lineno]
            )
    return {number: line for number, line in enumerate(lines, start=1) if line.strip()}


def _squeezed(line: str) -> str:
    return "".join(line.split()).replace("'", '"')


def _released_texts(
    course: Course, assignment: Assignment, texts: dict[Path, str]
) -> Iterator[tuple[str, str]]:
    folder = course.release_folder(assignment)
    for file, text in texts.items():
        if file.parent == folder:
            yield course.label(file), text
    for file in files_below(folder):
        text = file.read_bytes().decode("utf-8", errors="replace")
        if text != texts.get(file):
            yield course.label(file), text


@lru_cache(maxsize=1024)
def words_of(text: str) -> frozenset[str]:
    """Return the names and words of a text, in which many names are searched."""
    return frozenset(re.findall(r"\w+", text))


@lru_cache(maxsize=1024)
def _shown(text: str, is_notebook: bool) -> str:
    """Return the lines that a reader sees, without spaces: those of the file, or of all strings in a notebook.

    A release compares its files, those in the wheel included, with each assignment.
    """
    strings = [text]
    if is_notebook:
        with suppress(ValueError):
            strings = list(_walk(json.loads(text)))
    lines = "\n".join(strings).splitlines()
    return "\n".join(map(_squeezed, lines))


def _walk(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _walk(item)
