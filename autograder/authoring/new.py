"""Create a working assignment: a small example in every file, and its entry in course.yml.

The author replaces the examples; until then they build, and the audit reports nothing. If there is
no course, one is created. Existing files are not changed, except for the new entry in course.yml.
"""

import json
import re
from collections.abc import Iterator
from datetime import timezone
from importlib import metadata
from pathlib import Path
from typing import Any

import yaml

from autograder.authoring.kit import FOLDER, kit
from autograder.authoring.template import filled
from autograder.course import reading
from autograder.course.config import Assignment, Course, CourseError
from autograder.course.reading import FILE_NAME, load_course
from autograder.gradebook.lateness import due_for
from autograder.installation.extensions import extensions, load_extension
from autograder.text.files import write_whole
from autograder.text.spelling import did_you_mean, one_of

ALTERNATIVE = "one_at_a_time.py"
EXAMPLES = "autograder.examples"  # the entry points of further files of an assignment
CI = {  # for the course and for students, with their templates
    "github": {
        ".github/workflows/course.yml": "github_course.yml",
        ".github/students/check.yml": "github_students.yml",
    },
    "gitlab": {
        ".gitlab-ci.yml": "gitlab_course.yml",
        ".gitlab/students/check.yml": "gitlab_students.yml",
    },
}
CI["github-course"] = {  # the class is graded there, too
    **CI["github"],
    ".github/workflows/grade.yml": "github_grade.yml",
    "scripts/grade-class": "grade_class.sh",
}
CI["gitlab-course"] = {
    **CI["gitlab"],
    ".gitlab-ci.yml": "gitlab_class.yml",
    "scripts/grade-class": "grade_class.sh",
}
_NAME = re.compile(Assignment.model_fields["name"].metadata[0].pattern)


def new(folder: Path, name: str, ci: str | None = None) -> list[Path]:
    """Write the files of a working assignment to the course at or above `folder`, or create a course there.

    A new course also gets a README, a page for students, a .gitignore, the settings of nbgrader and the
    schema of course.yml, unless they exist.
    `ci` is a key of `CI`, whose workflows install this program from its wheel in `kit/`. Returns
    the written files, course.yml last. Raises CourseError before writing anything if the name is
    invalid, a file is in the way, or course.yml has errors, and InfrastructureError if the wheel
    cannot be made.
    """
    course_file = reading.course_file(folder)
    begins = not course_file.exists()
    course = Course(
        title=_title_of(course_file.parent.name), assignments=(), root=course_file.parent
    )
    if not begins:
        course = load_course(course_file)
    _check_name(name, course)
    words = {"name": name, "course": _quoted(course.title), "heading": _title_of(name)}
    words["title"] = _quoted(words["heading"])
    words["course_id"] = re.sub(r"\W+", "-", course.title.lower()).strip("-")
    before = filled("course.yml", words) if begins else course_file.read_bytes().decode("utf-8-sig")
    after = with_entry(before, filled("entry.yml", words), course_file.name)
    files = {file: filled(template, words) for file, template in _files(course, name)}
    for extension in extensions(EXAMPLES):
        files |= load_extension(EXAMPLES, extension)(course, name)
    if ci is not None and ci not in CI:
        raise CourseError(f"--ci is {one_of(CI)}, not `{ci}`{did_you_mean(ci, CI) or '.'}")
    words["due_days"] = _due_days(course)
    workflows = {
        course.root / place: filled(template, words)
        for place, template in CI.get(ci or "", {}).items()
    }
    files |= {file: text for file, text in workflows.items() if not _holds(file, text)}
    if there := [file for file in files if file.exists()]:
        raise CourseError([f"{file} already exists; nothing was changed." for file in there])
    if begins:
        beside = {
            "README.md": filled("course_readme.md", words),
            ".gitignore": filled("gitignore"),
            "docs/students.md": filled("students_guide.md"),
            "nbgrader_config.py": filled("nbgrader_config.py", words),
            reading.SCHEMA_NAME: json.dumps(reading.course_schema(), ensure_ascii=False, indent=2)
            + "\n",
        }
        files |= {
            course.root / place: text
            for place, text in beside.items()
            if not (course.root / place).exists()
        }
    written: dict[Path, str | bytes] = {**files, **(_kit(course) if ci else {})}
    for file, content in written.items():
        write_whole(file, content)
    write_whole(course_file, after)
    load_course(course_file)
    return [*written, course_file]


def _due_days(course: Course) -> str:
    """Return lines of a workflow that run it every ten minutes on days when something is due, by the clock of UTC."""
    lines = []
    for assignment in course.assignments:
        due = due_for(course, assignment, "")
        if due is not None:
            day = due.astimezone(timezone.utc)
            lines.append(
                f'    - cron: "*/10 * {day.day} {day.month} *"  # {assignment.name} is due\n'
            )
    return "".join(lines)


def _holds(file: Path, text: str) -> bool:
    """Whether a file has this text already."""
    return file.is_file() and file.read_bytes() == text.encode()


def _kit(course: Course) -> dict[Path, bytes]:
    """Return what the workflows install: the files of `kit/` that are not there yet."""
    files = {course.root / FOLDER / name: content for name, content in kit().items()}
    return {file: content for file, content in files.items() if not file.exists()}


def _check_name(name: str, course: Course) -> None:
    names = {assignment.name for assignment in course.assignments}
    if name in names:
        raise CourseError(f"{FILE_NAME} has `{name}` already.")
    number, _, stem = name.partition("_")
    free = max((int(other.partition("_")[0]) for other in names), default=0) + 1
    if sentence := reading.unfit_stem(stem):
        raise CourseError(sentence)
    if not _NAME.match(name):
        words = re.sub(r"\W+", "_", re.sub(r"^[\W\d_]+", "", name.lower()).strip("_")) or "name"
        raise CourseError(
            f"`{name}` is not a valid name of an assignment: it must be a number, an underscore and lowercase letters, "
            f"such as `{free:02d}_{words}`."
        )
    if same := [other for other in names if int(other.partition("_")[0]) == int(number)]:
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


def _title_of(name: str) -> str:
    words = re.sub(r"^\d+_", "", name).replace("_", " ").replace("-", " ").strip()
    return words[:1].upper() + words[1:] or "A course"


def _quoted(text: str) -> str:
    """Format text as a YAML value, quoted only if necessary."""
    dumped: str = yaml.safe_dump(text, width=10_000, allow_unicode=True)
    return dumped.removesuffix("...\n").strip()


def with_entry(text: str, entry: str, label: str = FILE_NAME) -> str:
    """Insert an assignment in the order of names, and change no other byte; raises CourseError if it cannot."""
    key, value = _nodes(text)
    new = yaml.safe_load(entry)[0]
    before = _assignments(text)
    if not before and isinstance(value, yaml.SequenceNode):  # `[]`, which becomes lines
        text = text[: value.start_mark.index].rstrip(" ") + text[value.end_mark.index :]
        key, value = _nodes(text)
    ending = "\r\n" if "\r\n" in text else "\n"
    lines = text.splitlines(keepends=True)
    if not lines[-1].endswith("\n"):
        lines[-1] += ending
    line = key.start_mark.line + 1
    indent = 2
    if isinstance(value, yaml.SequenceNode):
        names = (str(old.get("name")) for old in before)
        earlier = next((n for n, name in enumerate(names) if name > new["name"]), len(before))
        line = _place(lines, value, earlier)
        indent = value.start_mark.column
    indented = [f"{' ' * indent}{row}{ending}" for row in entry.splitlines()]
    extended = "".join([*lines[:line], *indented, *lines[line:]])
    if [old for old in _assignments(extended) if old != new] != before:
        raise CourseError(f"{label} could not be extended; add this to its assignments:\n{entry}")
    return extended


def _place(lines: list[str], entries: yaml.SequenceNode, earlier: int) -> int:
    """Return the line before which a new entry belongs that follows `earlier` others."""
    if entries.flow_style:
        raise CourseError(
            "`assignments` is written in brackets; write it as lines that begin with `- `."
        )
    if earlier < len(entries.value):
        line = int(entries.value[earlier].start_mark.line)
        while lines[line - 1].lstrip().startswith("#"):
            line -= 1
        return line
    line = int(entries.end_mark.line + (entries.end_mark.column > 0))
    while not lines[line - 1].strip() or re.match(
        rf" {{0,{entries.start_mark.column}}}#", lines[line - 1]
    ):
        line -= 1  # comments that are not indented deeper than the list belong to what follows it
    return line


def _nodes(text: str) -> tuple[Any, Any]:
    """Return the key `assignments` and its value as YAML nodes; raises CourseError if it is missing."""
    top = yaml.compose(text, Loader=yaml.SafeLoader)
    for key, value in top.value if isinstance(top, yaml.MappingNode) else []:
        if key.value == "assignments":
            return key, value
    raise CourseError("There is no key `assignments`.")


def _assignments(text: str) -> list[dict[str, Any]]:
    return list((yaml.safe_load(text) or {}).get("assignments") or [])
