"""Create a working assignment: a small example in every file, and its entry in course.yml.

The author replaces the examples; until then they build, and the audit reports nothing. If there is no course, one is
created. Existing files are not changed, except for the new entry in course.yml.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import yaml

from autograder.authoring.template import filled
from autograder.course.config import FILE_NAME, Assignment, Course, CourseError, load_course, unfit_stem
from autograder.text.files import write_whole

ALTERNATIVE = "one_at_a_time.py"
_NAME = re.compile(Assignment.model_fields["name"].metadata[0].pattern)


def new(folder: Path, name: str, title: str | None = None) -> list[Path]:
    """Write the files of a working assignment to the course at or above `folder`, or create a course there.

    Returns the written files, course.yml last. Raises CourseError before writing anything if the name is invalid, a file
    is in the way, or course.yml has errors.
    """
    course_file = _course_file(folder)
    begins = not course_file.exists()
    course = Course(title=_title_of(course_file.parent.name), assignments=(), root=course_file.parent)
    if not begins:
        course = load_course(course_file)
    _check_name(name, course)
    words = {"name": name, "course": _quoted(course.title), "heading": title or _title_of(name)}
    words["title"] = _quoted(words["heading"])
    before = filled("course.yml", words) if begins else course_file.read_bytes().decode("utf-8-sig")
    after = with_entry(before, filled("entry.yml", words), course_file.name)
    files = {file: filled(template, words) for file, template in _files(course, name)}
    _check_room(files)
    for file, text in files.items():
        write_whole(file, text)
    write_whole(course_file, after)
    load_course(course_file)
    return [*files, course_file]


def _course_file(folder: Path) -> Path:
    folder = folder.absolute()
    if folder.suffix in (".yml", ".yaml"):
        return folder
    above = (place / FILE_NAME for place in (folder, *folder.parents))
    return next((file for file in above if file.is_file()), folder / FILE_NAME)


def _check_name(name: str, course: Course) -> None:
    known = {assignment.name for assignment in course.assignments}
    if name in known:
        raise CourseError(f"{FILE_NAME} has `{name}` already.")
    number, _, stem = name.partition("_")
    free = max((int(other.partition("_")[0]) for other in known), default=0) + 1
    if sentence := unfit_stem(stem):
        raise CourseError(sentence)
    if not _NAME.match(name):
        words = re.sub(r"\W+", "_", re.sub(r"^[\W\d_]+", "", name.lower()).strip("_")) or "name"
        raise CourseError(
            f"`{name}` is not a valid name of an assignment: it must be a number, an underscore and lowercase letters, "
            f"such as `{free:02d}_{words}`."
        )
    same = [other for other in known if int(other.partition("_")[0]) == int(number)]
    if same:
        raise CourseError(
            f"{number} is the number of `{same[0]}`, and tables show only numbers; {free:02d} is free."
        )
    if stem in (installed := metadata.packages_distributions()):
        raise CourseError(
            f"`{stem}` is a module of the package {installed[stem][0]}, which is installed here; "
            f"a student's {stem}.py would hide it. Choose another name."
        )


def _files(course: Course, name: str) -> Iterator[tuple[Path, str]]:
    assignment = Assignment.model_construct(name=name)
    yield course.solution_file(assignment), "solution.py"
    yield course.visible_test_file(assignment), "test_visible.py"
    yield course.hidden_test_file(assignment), "test_hidden.py"
    yield course.mistakes_file(assignment), "mistakes.yml"
    yield course.suite_folder(assignment) / "alternatives" / ALTERNATIVE, "alternative.py"
    yield course.pictures_file(assignment), "pictures.py"


def _check_room(files: dict[Path, str]) -> None:
    there = [file for file in files if file.exists()]
    if there:
        raise CourseError([f"{file} already exists; nothing was changed." for file in there])


def _title_of(name: str) -> str:
    words = re.sub(r"^\d+_", "", name).replace("_", " ").replace("-", " ").strip()
    return words[:1].upper() + words[1:] or "A course"


def _quoted(text: str) -> str:
    """Format text as a YAML value, quoted only if necessary."""
    dumped: str = yaml.safe_dump(text, width=10_000, allow_unicode=True)
    return dumped.removesuffix("...\n").strip()


# ---------------------------------------------------------------------- a new entry in course.yml


def with_entry(text: str, entry: str, label: str = FILE_NAME) -> str:
    """Insert an assignment in a course.yml in the order of the names; all other bytes stay unchanged.

    Raises CourseError if the list of assignments cannot be extended line by line.
    """
    name = yaml.safe_load(entry)[0]["name"]
    text = _opened(text)
    ending = "\r\n" if "\r\n" in text else "\n"
    lines = text.splitlines(keepends=True)
    if not lines[-1].endswith("\n"):
        lines[-1] += ending
    line, indent = _place(text, lines, name)
    own = [f"{' ' * indent}{row}{ending}" for row in entry.splitlines()]
    extended = "".join([*lines[:line], *own, *lines[line:]])
    if sorted(_names(extended)) != sorted([*_names(text), name]):
        raise CourseError(f"{label} could not be extended; add this to its assignments:\n{entry}")
    return extended


def _opened(text: str) -> str:
    """Rewrite `assignments: []` so that lines can follow."""
    value = _assignments(text)[1]
    if isinstance(value, yaml.SequenceNode) and value.flow_style and not value.value:
        return text[: value.start_mark.index].rstrip(" ") + text[value.end_mark.index :]
    return text


def _assignments(text: str) -> tuple[Any, Any]:
    """Return the key `assignments` and its value as YAML nodes; raises CourseError if it is missing."""
    top = yaml.compose(text, Loader=yaml.SafeLoader)
    for key, value in top.value if isinstance(top, yaml.MappingNode) else []:
        if key.value == "assignments":
            return key, value
    raise CourseError("There is no key `assignments`.")


def _place(text: str, lines: list[str], name: str) -> tuple[int, int]:
    """Return the line before which the entry belongs, and its indentation."""
    key, value = _assignments(text)
    if not isinstance(value, yaml.SequenceNode):
        return key.start_mark.line + 1, 2
    if value.flow_style:
        raise CourseError("`assignments` is written in brackets; write it as lines that begin with `- `.")
    indent: int = value.start_mark.column
    for item in value.value:
        if dict(_pairs(item)).get("name", "") > name:
            return _above_comments(lines, item.start_mark.line), indent
    return _below_comments(lines, _last_line(value) + 1, indent), indent


def _pairs(item: Any) -> Iterator[tuple[str, str]]:
    return ((key.value, value.value) for key, value in item.value if isinstance(value, yaml.ScalarNode))


def _last_line(node: Any) -> int:
    """Return the last line of a node; its end mark is the beginning of the next node."""
    if isinstance(node, yaml.ScalarNode) or node.flow_style:
        end = node.end_mark
        return int(end.line - (1 if end.column == 0 and end.line > node.start_mark.line else 0))
    inner = [part for pair in node.value for part in (pair if isinstance(pair, tuple) else (pair,))]
    return max(map(_last_line, inner))


def _above_comments(lines: list[str], line: int) -> int:
    while line > 0 and lines[line - 1].lstrip().startswith("#"):
        line -= 1
    return line


def _below_comments(lines: list[str], line: int, indent: int) -> int:
    """Skip comments that are indented deeper than the list, which belong to its last entry."""
    while (
        line < len(lines)
        and lines[line].startswith(" " * (indent + 1))
        and lines[line].lstrip().startswith("#")
    ):
        line += 1
    return line


def _names(text: str) -> list[str]:
    found = (yaml.safe_load(text) or {}).get("assignments") or []
    return [str(assignment.get("name")) for assignment in found]
