"""The released files: the stub, the notebook, and the proof that neither contains a solution."""

from __future__ import annotations

import shutil
from pathlib import Path

import nbformat
import pytest
from typer.testing import CliRunner

from autograder.authoring.build import build, check
from autograder.authoring.leaks import leaks
from autograder.authoring.minutes import other_minutes
from autograder.authoring.release import release
from autograder.authoring.released import released
from autograder.cli import app
from autograder.course.config import Assignment, Course, CourseError
from autograder.course.document import load_document
from autograder.course.reading import load_course
from tests.autograder.tiny_course import SOLUTION, VISIBLE, write_tiny_course

ADD_STUB = '''\
# %%
def add(a: int, b: int) -> int:
    """The sum of two whole numbers: add(2, 3) is 5."""
    # TODO: both numbers together
    raise NotImplementedError("add is not written yet.")


# %% part="add"
# Written? `autograder check 01_adding` shows how you are doing.

# %% [markdown]
'''
PUSH_STUB = """\
        # TODO: refuse a negative number, then remember and return the new sum
        raise NotImplementedError("Total.push is not written yet.")


# %% part="total"
# Written? `autograder check 01_adding` shows how you are doing.
"""
LABEL = "solutions/01_adding/adding.py"


@pytest.fixture
def course(tmp_path: Path) -> Course:
    """A course without mistakes, so that building its hints runs nothing (see test_locked_hints)."""
    course = load_course(write_tiny_course(tmp_path / "course"))
    course.mistakes_file(course.assignments[0]).unlink()
    return course


@pytest.fixture
def adding(course: Course) -> Assignment:
    return course.assignment("01_adding")


def rewrite_solution(course: Course, old: str, new: str) -> None:
    rewrite(course.solution_file(course.assignment("01_adding")), old, new)


def rewrite(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


def document_problems(course: Course, old: str, new: str) -> str:
    adding = course.assignments[0]
    rewrite_solution(course, old, new)
    with pytest.raises(CourseError) as caught:
        load_document(course, adding)
    return str(caught.value)


# -- building ---------------------------------------------------------------------------------------


def test_build_writes_the_released_files(course: Course, adding: Assignment) -> None:
    written = build(course)
    assert [file.name for file in written] == ["adding.ipynb", "adding.py", "test_adding.py"]
    assert course.stub_file(adding).with_name("test_adding.py").read_text() == VISIBLE
    assert check(course) == []


def test_stub_differs_from_the_solution_only_in_the_gaps(
    course: Course, adding: Assignment
) -> None:
    build(course)
    stub = course.stub_file(adding).read_text()
    assert ADD_STUB in stub
    assert stub.endswith(PUSH_STUB)
    assert stub.startswith(SOLUTION[: SOLUTION.index("    ### BEGIN")])


def test_notebook_has_one_locked_test_cell_per_part(course: Course, adding: Assignment) -> None:
    build(course)
    notebook = nbformat.read(course.notebook_file(adding), as_version=4)
    nbformat.validate(notebook)
    title, set_up = notebook.cells[:2]
    assert title.cell_type == "markdown"
    assert set_up.source.endswith('else:\n    open_assignment("01_adding")')
    graded = [cell for cell in notebook.cells if cell.metadata.get("nbgrader", {}).get("grade")]
    cells = [(c.source, c.metadata.nbgrader.grade_id, c.metadata.nbgrader.points) for c in graded]
    assert cells == [('check("add")', "add", 4), ('check("total")', "total", 6)]
    assert all(c.metadata.nbgrader.locked and not c.metadata.nbgrader.solution for c in graded)
    written = [cell for cell in notebook.cells if cell.metadata.get("nbgrader", {}).get("solution")]
    assert [c.metadata.nbgrader.grade_id for c in written] == ["write-add", "write-Total"]
    assert all("NotImplementedError" in c.source for c in written)
    assert not any(c.metadata.nbgrader.locked for c in written)
    assert all(not cell.metadata for cell in notebook.cells if cell not in graded + written)


def test_a_cell_can_be_folded_in_the_notebook(course: Course, adding: Assignment) -> None:
    rewrite_solution(
        course, '# %% part="add"\n', '# %% tags=["hide-input"]\nGIVEN = 1\n\n# %% part="add"\n'
    )
    build(course)
    notebook = nbformat.read(course.notebook_file(adding), as_version=4)
    folded = [cell.source for cell in notebook.cells if "jupyter" in cell.metadata]
    assert folded == ["GIVEN = 1"]
    assert all(c.metadata.jupyter.source_hidden for c in notebook.cells if c.source in folded)


@pytest.mark.parametrize(("dots", "number"), [("●○○", 1), ("●●○", 2), ("●●●", 3)])
def test_difficulty_is_also_said_in_words(course: Course, dots: str, number: int) -> None:
    told = f"20 minutes, {dots}"
    rewrite_solution(course, "# So far", f"# Not graded; {told}. Go on.\n# So far")
    stub = load_document(course, course.assignments[0]).stub
    assert f"# Not graded; {told} (difficulty {number} of 3). Go on.\n" in stub


@pytest.mark.parametrize(("told", "wrong"), [(4, False), (7, True)])
def test_minutes_of_parts_are_those_of_the_formula(
    course: Course, adding: Assignment, told: int, wrong: bool
) -> None:
    heading = "# ## Part 1 · Two numbers\n"
    rewrite_solution(course, heading, f"{heading}#\n# About {told} minutes, ●○○\n")
    counted = "18 words, 1 TODOs, 2 lines to write and 1 runs make 4."
    of_part = f"{LABEL}: Part 1 · Two numbers says {told} minutes; {counted}"
    assert other_minutes(course, adding) == [of_part] * wrong
    longer = adding.model_copy(update={"minutes": 20})
    told_of_all = other_minutes(course, longer)[-1]
    assert told_of_all.startswith("01_adding: course.yml says 20 minutes; ")
    assert told_of_all.endswith(" make 10.")


def test_minutes_of_a_text_whose_parts_say_none_are_the_authors(
    course: Course, adding: Assignment
) -> None:
    assert other_minutes(course, adding) == []


def test_pictures_are_copied_and_each_has_a_cell(course: Course, adding: Assignment) -> None:
    rewrite_solution(course, '# %% part="add"\n', '# %% part="add"\n\n# %% picture="add"\n')
    with pytest.raises(CourseError, match=r"no tests/assignments/01_adding/pictures\.py"):
        build(course)
    course.pictures_file(adding).write_text("PICTURES = {}\n")
    assert course.stub_file(adding).with_name("pictures.py") in build(course)
    notebook = nbformat.read(course.notebook_file(adding), as_version=4)
    assert 'picture("add")' in [cell.source for cell in notebook.cells]
    assert '# %% picture="add"\n# The notebook draws' in course.stub_file(adding).read_text()
    assert check(course) == []


def test_build_is_reproducible_in_another_folder(course: Course, tmp_path: Path) -> None:
    first = {file.name: file.read_bytes() for file in build(course)}
    second = {file.name: file.read_bytes() for file in build(course)}
    other = load_course(write_tiny_course(tmp_path / "elsewhere"))
    other.mistakes_file(other.assignments[0]).unlink()
    assert first == second == {file.name: file.read_bytes() for file in build(other)}


def test_assignment_without_a_solution_is_reported(course: Course, adding: Assignment) -> None:
    course.solution_file(adding).unlink()
    with pytest.raises(CourseError) as caught:
        build(course)
    assert str(caught.value) == f"01_adding has no solution yet: {LABEL} is missing."
    assert not course.release_folder(adding).exists()


# -- checking ---------------------------------------------------------------------------------------


def test_check_reports_stale_files_as_diffs(course: Course, adding: Assignment) -> None:
    build(course)
    rewrite(course.stub_file(adding), "Two numbers", "Too numbers")
    (problem,) = check(course)
    assert problem.startswith("--- assignments/01_adding/adding.py (as it is)\n+++ ")
    assert "-# ## Part 1 · Too numbers\n+# ## Part 1 · Two numbers\n" in problem


def test_check_reports_that_files_are_up_to_date(course: Course) -> None:
    files = len(build(course))
    words = ["build", "--course", str(course.root)]
    folder = course.stub_file(course.assignments[0]).parent
    assert CliRunner().invoke(app, words).stdout == f"{folder}: {files} files\n"
    words.append("--check")
    done = CliRunner().invoke(app, words)
    told = "The students' files are up to date: 1 assignment.\n"
    assert (done.exit_code, done.stdout) == (0, told)
    course.stub_file(course.assignments[0]).write_text("x = 1\n", "utf-8")
    done = CliRunner().invoke(app, words)
    assert (done.exit_code, done.stdout) == (1, "")


def test_check_reports_a_stub_that_cannot_be_imported(course: Course) -> None:
    rewrite_solution(course, "STEP = 1", "import no_such_module_anywhere")
    build(course)
    assert check(course) == [
        "assignments/01_adding/adding.py cannot be imported: "
        "ModuleNotFoundError: No module named 'no_such_module_anywhere'"
    ]


@pytest.mark.parametrize(
    ("file", "old", "new", "problem"),
    [
        (
            "course.yml",
            "points: 4",
            "points: 9",
            "tests/assignments/01_adding: the tests of part `add` add up to 4 points; course.yml says 9.",
        ),
        (
            "tests/assignments/01_adding/test_hidden.py",
            '"test_two_and',
            '"test_one_and',
            "tests/assignments/01_adding/test_hidden.py, line 10: test_any_two_numbers needs "
            "test_one_and_three_are_five, which is not defined before it.",
        ),
        (
            "tests/assignments/01_adding/test_visible.py",
            "import pytest",
            "import no_such_module_anywhere",
            "tests/assignments/01_adding/test_visible.py, line 3 cannot be collected: "
            "ModuleNotFoundError: No module named 'no_such_module_anywhere'",
        ),
    ],
)
def test_a_suite_that_grading_refuses_is_not_released(
    course: Course, tmp_path: Path, file: str, old: str, new: str, problem: str
) -> None:
    build(course)
    assert check(course) == []
    rewrite(course.root / file, old, new)
    course = load_course(course.root)
    for gate in (build, check, lambda c: release(c, tmp_path / "students")):
        with pytest.raises(CourseError) as caught:
            gate(course)
        assert caught.value.problems == (problem,)
    assert not (tmp_path / "students").exists()


def test_check_reports_a_gap_without_todo_or_error(course: Course, adding: Assignment) -> None:
    build(course)
    rewrite(
        course.stub_file(adding),
        '    raise NotImplementedError("add is not written yet.")',
        "    return 0",
    )
    rewrite(
        course.stub_file(adding), "        # TODO: refuse a negative number, then", "        # then"
    )
    assert check(course)[1:] == [
        "assignments/01_adding/adding.py: the gap of `add` has no NotImplementedError.",
        "assignments/01_adding/adding.py: the gap of `Total.push` has no TODO.",
    ]


# -- leaks ------------------------------------------------------------------------------------------

SECRET = "self.value = self.value + number"
GIVEN_AWAY = f"gives away line 42 of {LABEL}: {SECRET}"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("# ## Part 2 · A running total", f"# ## Part 2 · A running total\n# Write `{SECRET}`."),
        ("then remember and return the new sum", f"then {SECRET}"),
        ("below zero is a ValueError.", f"below zero is a ValueError. {SECRET.replace(' ', '')}"),
    ],
    ids=["prose", "todo", "docstring"],
)
def test_solution_line_in_the_document_is_a_leak(
    course: Course, adding: Assignment, old: str, new: str
) -> None:
    rewrite_solution(course, old, new)
    found = "\n".join(leaks(course, adding))
    assert "assignments/01_adding/adding.py gives away line 4" in found
    assert "assignments/01_adding/adding.ipynb gives away line 4" in found
    assert SECRET in found


@pytest.mark.parametrize("name", ["visible", "pictures"])
def test_solution_line_in_a_file_of_the_suite_is_a_leak(
    course: Course, adding: Assignment, name: str
) -> None:
    file = course.visible_test_file(adding) if name == "visible" else course.pictures_file(adding)
    released = "test_adding.py" if name == "visible" else "pictures.py"
    with file.open("a") as stream:
        stream.write(f"\n\ndef answer(self, number):\n    {SECRET}  # so it is\n")
    assert leaks(course, adding) == [f"assignments/01_adding/{released} {GIVEN_AWAY}"]


@pytest.mark.parametrize("line", ["return self.value", "raise ValueError(", "if number < 0:"])
def test_common_lines_are_not_leaks(course: Course, adding: Assignment, line: str) -> None:
    rewrite_solution(
        course,
        "STEP = 1\n",
        "STEP = 1\n\n\nclass Given:\n    def now(self):\n        return self.value\n",
    )
    rewrite_solution(course, "# ## Part 2 · A running total", f"# ## Part 2\n# Perhaps `{line}`?")
    assert leaks(course, adding) == []


# -- what an author can do wrong --------------------------------------------------------------------

END = "    ### END SOLUTION\n"
BEGIN = "    ### BEGIN SOLUTION\n    together"
PART = '# %% part="add"'
TOTAL = '# %% part="total"'
RETURN = "    return together\n"
START = "        self.value = start"
TODO = "    # TODO: both numbers together\n"
SECOND_ADD = "# %%\ndef add(a):\n    # TODO: one\n    ### BEGIN SOLUTION\n    return a\n    ### END SOLUTION\n\n"
OUTSIDE = "# TODO: a number\n### BEGIN SOLUTION\nSTEP = 1\n### END SOLUTION\n"
SPLIT = (f"    together = a + b\n{RETURN}{END}", f"    together = (a +\n{END}    b)\n{RETURN}")
NO_TODO = "the gap of `add` has no `# TODO:` line directly above it."
AUTHORS_MISTAKES = {
    "unclosed": (RETURN + END, RETURN, "38: a gap begins inside the gap of line 18"),
    "nested": (RETURN, f"{BEGIN} = 3\n{RETURN}", "20: a gap begins inside the gap of line 18"),
    "end_alone": (BEGIN, "    together", "20: `### END SOLUTION` without a `### BEGIN SOLUTION`"),
    "no_todo": (TODO, "", f"17: {NO_TODO}"),
    "blank_after_todo": (TODO, f"{TODO}\n", f"19: {NO_TODO}"),
    "todo_inside": (RETURN, f"    # TODO: more\n{RETURN}", "20: this TODO is inside the gap"),
    "todo_alone": (START, f"        # TODO: keep\n{START}", "34: this TODO has no gap below it"),
    "near_miss": (BEGIN, BEGIN.replace("ION", "ON"), "18: `### BEGIN SOLUTON` looks like a marker"),
    "two_hashes": (f"\n{END}", "\n    ## end solution\n", "21: `## end solution` looks like a"),
    "behind_code": (f"\n{END}", f"  {END[4:]}",
                    "20: `### END SOLUTION` must stand alone in its line."),
    "empty": (f"    together = a + b\n{RETURN}", "", "18: this gap is empty"),
    "outside": ("STEP = 1\n", OUTSIDE, "9: this gap must be inside a function."),
    "two_functions": (f"\n{END}", f"\n\n\ndef more():\n    return 3\n{END}",
                      "18: this gap goes on"),
    "indent": (RETURN + END, RETURN + END[4:], "21: `### END SOLUTION` must be indented like its"),
    "half_statement": (*SPLIT, "21: without its gaps the document is not Python (unmatched ')')"),
    "unknown_part": (PART, '# %% part="ad"', "01_adding has no part `ad`; did you mean `add`?"),
    "missing_part": (PART, "", 'the part `add` of course.yml has no cell `# %% part="add"`.'),
    "part_twice": (TOTAL, PART, "47: the part `add` has its cell already, in line 24."),
    "full_part": (PART, f"{PART}\nx = 1",
                  '24: the cell `part="add"` must be empty; the build fills'),
    "misspelt": ("part=", "prat=", "24: `prat` is not an option of a cell; did you mean `part`?"),
    "no_quotes": (PART, "# %% part=add", "24: the cell's option `part=add` cannot be read"),
    "both": (PART, f'{PART} picture="add"',
             "24: a cell is for a part, a picture or an answer, not"),
    "no_first_cell": ("# %% [markdown]\n# # Add", "x\n# %%\n# # Add",
                      "1: the document must begin with"),
    "not_python": (RETURN, "    return a +\n", "20: this is not Python: invalid syntax."),
    "split_class": ("    def push", "# %%\n    def push",
                    "37: this cell cannot run by itself in a"),
    "name_twice": (TOTAL, SECOND_ADD + TOTAL,
                   "50: `add` has a gap in another cell already (line 14)."),
}  # fmt: skip


@pytest.mark.parametrize("name", AUTHORS_MISTAKES)
def test_invalid_documents_are_reported_with_file_and_line(course: Course, name: str) -> None:
    old, new, sentence = AUTHORS_MISTAKES[name]
    problems = document_problems(course, old, new)
    assert f" {sentence}" in problems
    assert all(line.startswith(f"{LABEL}, line ") for line in problems.splitlines())


def test_all_problems_of_a_document_are_reported_at_once(course: Course) -> None:
    file = course.solution_file(course.assignments[0])
    rewrite(file, "    # TODO: both numbers together\n", "")
    rewrite(file, 'part="total"', 'part="totl"')
    with pytest.raises(CourseError) as caught:
        build(course)
    assert len(caught.value.problems) == 2


def test_an_assignment_that_did_not_change_is_not_derived_again(
    course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    derived: list[str] = []

    def recorded(course: Course, assignment: Assignment) -> dict[Path, str]:
        derived.append(assignment.name)
        return released(course, assignment)

    monkeypatch.setattr("autograder.authoring.build.released", recorded)
    others = ["02_adding", "03_adding"]
    course = with_copies(course, others)
    build(course)
    derived.clear()
    assert check(course) == []
    assert derived == ["01_adding", *others]
    derived.clear()
    assert check(course) == []
    assert len(derived) == 1


@pytest.mark.parametrize("changed", ["solution_file", "visible_test_file", "stub_file"])
def test_an_assignment_that_changed_is_checked_again(course: Course, changed: str) -> None:
    course = with_copies(course, ["02_adding", "03_adding"])
    build(course)
    assert check(course) == []
    adding = course.assignment("01_adding")
    file = getattr(course, changed)(adding)
    rewrite(file, "together", "jointly")
    for _ in range(4):
        assert check(course) != [], "an error must not be forgotten after it was found once"


def with_copies(course: Course, names: list[str]) -> Course:
    """Return the course with further assignments, each a copy of the first."""
    settings = course.root / "course.yml"
    text = settings.read_text()
    entry = text[text.index("  - name: 01_adding") :]
    for name in names:
        for folder in ("solutions", "tests/assignments"):
            shutil.copytree(course.root / folder / "01_adding", course.root / folder / name)
        text += entry.replace("01_adding", name)
    settings.write_text(text)
    return load_course(course.root)
