"""course.yml: valid files are loaded, and every error is reported as a readable sentence."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from autograder.course.config import Course, CourseError
from autograder.course.reading import SCHEMA_NAME, course_schema, load_course
from tests.autograder.tiny_course import COURSE, write_tiny_course

ROOT = Path(__file__).parents[2]

WRONG = """\
titel: 5
title: 2024
feedback: hint
limits: {call_seconds: -1, memory: 4, file_mb: 1.5, processes: true}
assignments:
  - name: 3_masked
    minuts: 75
    parts:
      - {name: mask, title: M, points: -3}
      - {name: mask, title: , points: ten}
      - 7
  - name: 03_class
    title: A
    title: B
    minutes: .inf
    limits: {call_seconds: .nan}
    parts: []
  - nothing
"""

SENTENCES = """\
course.yml, line 1: `titel` is not a setting of the course; did you mean `title`?
course.yml, line 2: `title` of the course must be text, not 2024 (put it in quotes).
course.yml, line 3: `feedback` of the course must be `visible`, `parts`, `hints` or `full`, or a block \
of these, not the text "hint"; did you mean `hints`?
course.yml, line 4: `call_seconds` of `limits` must be greater than 0, not -1.
course.yml, line 4: `file_mb` of `limits` must be a whole number, not 1.5.
course.yml, line 4: `processes` of `limits` must be a whole number, not true.
course.yml, line 4: `memory` is not a setting of `limits`; did you mean `memory_mb`?
course.yml, line 6: `name` of the assignment `3_masked` must be a number, an underscore and small letters, \
such as `03_masked_heads`, not the text "3_masked".
course.yml, line 6: the assignment `3_masked` has no `title`.
course.yml, line 7: `minuts` is not a setting of the assignment `3_masked`; did you mean `minutes`?
course.yml, line 9: `points` of the part `mask` of `3_masked` must be greater than 0, not -3.
course.yml, line 10: `title` of the part `mask` of `3_masked` is empty.
course.yml, line 10: `points` of the part `mask` of `3_masked` must be a number, not the text "ten".
course.yml, line 10: the part `mask` is there already, in line 9.
course.yml, line 11: part 3 of `3_masked` must be a block of `name: value` lines, not 7.
course.yml, line 12: `class` is a word of Python and cannot name a module.
course.yml, line 14: `title` is there twice, first in line 13.
course.yml, line 15: `minutes` of the assignment `03_class` must be a whole number, not inf.
course.yml, line 16: `call_seconds` of `limits` of the assignment `03_class` must be an ordinary \
number, not nan.
course.yml, line 17: `parts` of the assignment `03_class` must not be an empty list.
course.yml, line 18: assignment 3 must be a block of `name: value` lines, not the text "nothing".
"""


def problems_of(folder: Path, text: str | bytes) -> str:
    file = folder / "course.yml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(CourseError) as caught:
        load_course(folder)
    return str(caught.value)


@pytest.fixture
def course(tmp_path: Path) -> Course:
    return load_course(write_tiny_course(tmp_path))


# twelve lines that stand for nine to the twelfth items
ALIASES = "title: &a0 [x]\n" + "".join(
    f"k{n}: &a{n} [{','.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 13)
)


def test_all_errors_are_reported_at_once(tmp_path: Path) -> None:
    assert problems_of(tmp_path, WRONG) == SENTENCES.rstrip("\n")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", ", line 1: the file is empty; it should describe the course."),
        ("# nothing yet\n", ", line 1: the file is empty; it should describe the course."),
        ("title: a: b\n", ", line 1: this is not valid YAML: mapping values are not allowed here."),
        ("title: T\nassignments: [\n", ", line 3: this is not valid YAML: "),
        ("title: T\n\x07", ", line 2: this is not valid YAML: there is a control character."),
        ("- a\n", ", line 1: the course must be a block of `name: value` lines, not a list."),
        ("hello\n", ", line 1: the course must be a block of `name: value` lines, not the text"),
        ("title: T\n", ", line 1: the course has no `assignments`."),
        ("title: T\nassignments: 3\n", ", line 2: `assignments` of the course must be a list"),
        ("title: !thing T\n", ", line 1: `T` cannot be read as YAML's `!thing`"),
        ("title: 2026-13-77\n", ", line 1: `2026-13-77` cannot be read as YAML's"),
        ("title: &a T\nassignments: &b [*b]\n", ", line 2: this block contains itself"),
        (b"title: \xff\n", " is not UTF-8 text (byte 8); save it as UTF-8."),
        ("title: " + "[" * 1000, ", line 1: the lines are nested too deeply to be read."),
        ("title: " + "[" * 100_000, ", line 1: the lines are nested too deeply to be read."),
        (ALIASES, ", line 1: the lines repeat each other by aliases (`*name`); write them out."),
    ],
)
def test_unreadable_course_yml_is_reported(
    tmp_path: Path, text: str | bytes, sentence: str
) -> None:
    assert f"course.yml{sentence}" in problems_of(tmp_path, text)


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        (
            "    minutes: 10\n",
            "    minutes: 10\n    catch_points: 2\n",
            "`catch_points` is no longer a setting of the assignment `01_adding`. Remove it: "
            "`autograder catch` works without points. For points that a person gives, write "
            "`conversation`.",
        ),
        ("title:", "min_tier: host-network\ntitle:",
         '`min_tier` of the course names a sandbox that is gone: write "landlock".'),
    ],
)  # fmt: skip
def test_setting_of_before_says_what_to_do(
    tmp_path: Path, old: str, new: str, sentence: str
) -> None:
    assert old in COURSE
    assert problems_of(tmp_path, COURSE.replace(old, new, 1)).partition(": ")[2] == sentence


def test_duplicate_assignment_names_the_first_line(tmp_path: Path) -> None:
    again = COURSE + COURSE[COURSE.index("  - name") :]
    assert problems_of(tmp_path, again) == (
        "course.yml, line 11: the assignment `01_adding` is there already, in line 5."
    )


WEIRD = ["", "3", "-1", "x", "[]", "{}", "[1, {a: b}]", "!!python/none x", "*a", "2026-01-01"]


@pytest.mark.parametrize("value", WEIRD)
def test_any_wrong_value_is_a_course_error(tmp_path: Path, value: str) -> None:
    file = tmp_path / "course.yml"
    lines = COURSE.splitlines()
    refused = 0
    for number, line in enumerate(lines):
        changed = [*lines[:number], f"{line.partition(':')[0]}: {value}", *lines[number + 1 :]]
        file.write_text("\n".join(changed))
        try:
            load_course(file)
        except CourseError as error:
            refused += 1
            assert all(problem.startswith("course.yml, line ") for problem in error.problems)
    assert refused >= 3


def test_valid_course_is_loaded(course: Course, tmp_path: Path) -> None:
    assignment = course.assignment("01_adding")
    assert (course.title, course.feedback.after_due) == ("A tiny course", "hints")
    assert (assignment.stem, assignment.points, assignment.minutes) == ("adding", 10, 10)
    assert [part.name for part in assignment.parts] == ["add", "total"]
    assert course.solution_file(assignment) == tmp_path / "solutions/01_adding/adding.py"
    assert course.notebook_file(assignment) == tmp_path / "assignments/01_adding/adding.ipynb"
    assert course.hidden_test_file(assignment).parent == tmp_path / "tests/assignments/01_adding"
    assert [file.name for file in course.alternatives(assignment)] == ["with_sum.py"]


def test_assignment_overrides_single_limits(tmp_path: Path) -> None:
    own = "    minutes: 10\n    limits: {load_seconds: 7, memory_mb: 512}\n"
    (tmp_path / "course.yml").write_text(COURSE.replace("    minutes: 10\n", own))
    limits = load_course(tmp_path).assignments[0].limits
    assert (limits.load_seconds, limits.memory_mb) == (7, 512)
    assert (limits.call_seconds, limits.cpu_seconds) == (2, 30)


def test_course_is_found_in_parent_folders(course: Course) -> None:
    below = course.solution_file(course.assignments[0])
    assert load_course(below).root == load_course(below.parent).root == course.root


def test_unknown_names_are_reported(course: Course) -> None:
    with pytest.raises(CourseError) as caught:
        course.assignment("01_ading")
    assert str(caught.value) == "The course has no assignment `01_ading`; did you mean `01_adding`?"
    with pytest.raises(CourseError, match="no assignment `01`; did you mean `01_adding`"):
        course.assignment("01")
    with pytest.raises(CourseError) as caught:
        course.assignments[0].part("zebra")
    assert str(caught.value) == "01_adding has no part `zebra`; it has `add` or `total`."


def test_preload_accepts_only_module_names(tmp_path: Path) -> None:
    preload = "    preload: [scipy.stats, {}]\n    parts:"
    text = COURSE.replace("    parts:", preload.format("numpy"), 1)
    (tmp_path / "course.yml").write_text(text)
    assert load_course(tmp_path).assignments[0].preload == ("scipy.stats", "numpy")
    sentence = 'must be the name of a module such as `scipy.stats`, not the text "my module".'
    assert problems_of(tmp_path, text.replace("numpy", "my module")).endswith(sentence)


@pytest.mark.parametrize(
    "stem", ["random", "json", "torch", "numpy", "pytest", "yaml", "autograder", "pictures"]
)
def test_assignment_name_that_hides_a_module_is_refused(tmp_path: Path, stem: str) -> None:
    """A student's folder comes first on the import path: torch would import a student's `random`."""
    said = problems_of(tmp_path, COURSE.replace("01_adding", f"01_{stem}"))
    assert said.startswith(f"course.yml, line 5: `{stem}` is ")
    assert said.endswith(f", which a student's {stem}.py would hide; choose another name.")


def test_schema_file_is_up_to_date() -> None:
    file = ROOT / SCHEMA_NAME
    assert json.loads(file.read_text()) == course_schema(), "write course_schema() into it again"
    first = (ROOT / "course.yml").read_text().partition("\n")[0]
    assert first == f"# yaml-language-server: $schema={SCHEMA_NAME}"


def test_reading_of_course_yml_loads_no_heavy_libraries() -> None:
    heavy = ("torch", "numpy", "jupytext")
    code = f"import sys, autograder.course.reading; print([m for m in {heavy} if m in sys.modules])"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert (process.stdout.strip(), process.stderr) == ("[]", "")
