"""The functions of a notebook: hint, progress, pack, pictures, and the first cell, wherever the notebook lies."""

from __future__ import annotations

import inspect
import linecache
import shutil
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import nbformat
import pytest

from autograder import notebook
from autograder.bridge.outside.local import LocalStudent, load
from autograder.course.config import Assignment
from autograder.course.notebook import SET_UP, with_narrow_lines
from autograder.course.reading import load_course
from autograder.feedback.gallery import load_gallery
from autograder.selfcheck import live
from autograder.selfcheck.drawing import NEUTRAL, on_any_page
from autograder.selfcheck.kernel import parts_of, this_kernel
from autograder.source.text import outline

NAME = "01_adding"
GAP = 'raise NotImplementedError("add is not written yet.")'


@pytest.fixture
def folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A student's folder of the assignment, as the working directory of a new kernel."""
    monkeypatch.setattr(this_kernel, "folder", None)
    monkeypatch.setattr(this_kernel, "seen", {})
    return folder


def run_cells(
    folder: Path, monkeypatch: pytest.MonkeyPatch, answer: str = GAP, save: bool = True
) -> None:
    """Write the answer to the notebook, save it, and run its cells of code with definitions, as a kernel does."""
    file = folder / "adding.ipynb"
    opened = nbformat.read(file, as_version=4)
    main = ModuleType("__main__")
    space = vars(main)
    space["In"] = []
    for number, cell in enumerate(opened.cells):
        cell.source = cell.source.replace(GAP, answer).replace("return a - b", answer)
        if cell.cell_type == "code" and ("def " in cell.source or "STEP" in cell.source):
            name, text = f"{folder}/{number}.py", cell.source + "\n"
            monkeypatch.setitem(
                linecache.cache, name, (len(text), None, text.splitlines(keepends=True), name)
            )
            exec(compile(text, name, "exec"), space)
    monkeypatch.setitem(sys.modules, "__main__", main)
    if save:
        nbformat.write(opened, file)


def test_check_in_a_notebook_names_the_mistake(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_cells(folder, monkeypatch, "return a - b")
    assert "This looks familiar: subtracts." in repr(notebook.check("add"))
    assert ">○ not yet</span>" in notebook.check("total")._repr_html_()


WITHOUT_PART = 'The parts: "add" and "total".'
AFTER_A_RESTART = {
    "its cell": ("pass", lambda: notebook.check("add"), "`add` is not defined: run its cell first."),
    "a class": ("pass", lambda: notebook.check("total"), "`Total` is not defined: run its cell first."),
    "a helper": (
        "def add(a, b): return STEP and a + b",
        lambda: notebook.check("add"),
        "`STEP` is not defined: run its cell first.",
    ),
    "an import": (
        "def add(a, b): return annotations and a + b",
        lambda: notebook.check("add"),
        "`annotations` is not defined: run the cell with the imports first.",
    ),
    "a module": (
        "def add(a, b): return torch.tensor(a)",
        lambda: notebook.check("add"),
        "`torch` is not defined: run the cell with the imports first.",
    ),
    "a misspelt name": ("def add(a, b): return summ(a, b)", lambda: notebook.check("add"), "NameError"),
    "all parts": ("def add(a, b): return a + b", lambda: notebook.check(), "1 of 3 visible points so far."),
    "a hint": ("pass", lambda: notebook.hint("add"), "`add` is not defined: run its cell first."),
    "another part": ("pass", lambda: notebook.check("ad"), f"There is no part 'ad'; did you mean `add`? {WITHOUT_PART}"),
    "a hint of another": ("pass", lambda: notebook.hint("sum"), f"There is no part 'sum'. {WITHOUT_PART}"),
    "without quotes": ("pass", lambda: notebook.check(print), 'stands in quotes: "add" and "total".'),
    "catch alone": ("pass", lambda: notebook.catch(), 'Name a part: "add" and "total".'),
    "a picture of another": ("pass", lambda: notebook.picture("ad"), "did you mean `add`?"),
    "a picture of none": ("pass", lambda: notebook.picture(), 'Name a part: "add" and "total".'),
    "not saved": ("pass", lambda: notebook.pack(), "holds no answer yet: save the notebook first"),
}  # fmt: skip


@pytest.mark.parametrize("case", AFTER_A_RESTART)
def test_what_has_not_run_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], case: str
) -> None:
    code, call, sentence = AFTER_A_RESTART[case]
    main = ModuleType("__main__")
    exec(code, vars(main))
    monkeypatch.setitem(sys.modules, "__main__", main)
    assert sentence in repr(call()) + capsys.readouterr().out


def test_first_cell_explains_itself_without_the_kit(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "autograder.notebook", None)
    exec(SET_UP, {})
    told = capsys.readouterr().out
    assert (
        "cannot import autograder.notebook" in told
        and "python kit/install.py -r requirements.txt" in told
    )


@pytest.mark.parametrize(
    "place", [".", "course/assignments/01_adding", "assignments/01_adding", "01_adding"]
)
def test_files_are_found_near_a_notebook_that_was_opened_alone(
    released: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    place: str,
) -> None:
    monkeypatch.setattr(this_kernel, "folder", None)
    monkeypatch.chdir(tmp_path)
    notebook.open_assignment(NAME)
    assert f"The tests of {NAME} are not in {tmp_path}." in capsys.readouterr().out
    shutil.copytree(released / NAME, tmp_path / place, dirs_exist_ok=True)
    notebook.open_assignment(NAME)
    assert this_kernel.here.samefile(tmp_path / place) and capsys.readouterr().out == ""
    shown = Shown(monkeypatch)
    notebook.picture("add")
    assert shown.first


SHAPES = '''\
def f(x):
    """A text.

    a line of a text that is much wider than any notebook shows beside its bar   # (B, T)
    """
    # TODO: a comment that is much wider than any notebook shows beside it        # (B, T, C)
    y = x.reshape(1, 2, 3).transpose(0, 1).reshape(6)                             # (B, T * C)
    z = y.reshape(1, 2, 3).transpose(0, 1).reshape(6).reshape(2, 3)               # (B, T * C)
    # TODO: a short comment                                                       # (B, T, C)
    return z  # short
'''


def test_shapes_of_wide_lines_stand_beside_the_code_or_on_a_line_of_their_own() -> None:
    assert with_narrow_lines(SHAPES).splitlines()[3:] == [
        "    a line of a text that is much wider than any notebook shows beside its bar",
        "        # (B, T)",
        '    """',
        "    # TODO: a comment that is much wider than any notebook shows beside it",
        "    #       (B, T, C)",
        "    y = x.reshape(1, 2, 3).transpose(0, 1).reshape(6)     # (B, T * C)",
        "    # (B, T * C)",
        "    z = y.reshape(1, 2, 3).transpose(0, 1).reshape(6).reshape(2, 3)",
        "    # TODO: a short comment                               # (B, T, C)",
        "    return z  # short",
    ]


WIDE_DOCSTRING = '''\
class Head:
    """One head of attention.                                               (B, T, C) -> (B, T, D)

    key         the linear layer from C to D without a bias that makes a key of each word of the sentence
    wei                                                                     (B, T, T)
    The scores are divided by the square root of D, and after that every future word is hidden by the mask.
        Head(8, 4)(x) -> a line of an example with one space
    """
'''
NARROW_DOCSTRING = '''\
class Head:
    """One head of attention.  (B, T, C) -> (B, T, D)

    key         the linear layer from C to D without a bias that makes a key of
                each word of the sentence
    wei  (B, T, T)
    The scores are divided by the square root of D, and after that every future
    word is hidden by the mask.
        Head(8, 4)(x) -> a line of an example with one space
    """
'''


def test_wide_docstrings_are_wrapped_in_a_notebook() -> None:
    assert with_narrow_lines(WIDE_DOCSTRING) == NARROW_DOCSTRING
    assert with_narrow_lines(NARROW_DOCSTRING) == NARROW_DOCSTRING
    assert outline(WIDE_DOCSTRING, "a.py") == outline(NARROW_DOCSTRING, "b.py")


def test_pictures_are_readable_on_light_and_dark_pages() -> None:
    """Outside the axes there is no background; dark words there become grey, and colours stay as they are."""
    from matplotlib.figure import Figure

    figure = Figure()
    axes = figure.subplots()
    title, inside = axes.set_title("a title"), axes.text(0.5, 0.5, "inside")
    label = axes.set_xlabel("a label", color="orangered")
    on_any_page(figure)
    assert figure.get_facecolor()[3] == 0
    assert (title.get_color(), inside.get_color(), label.get_color()) == (
        NEUTRAL,
        "black",
        "orangered",
    )
    plain = Figure()
    plain.subplots().set_axis_off()
    on_any_page(plain)
    assert plain.get_facecolor()[3] == 1


def test_training_without_tqdm_prints_a_bar(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    watch = notebook.watch_training(40)
    assert capsys.readouterr().out == ""  # unwritten code ends before there is anything to show
    watch(20, 2.5)
    watch(40, 1.25)
    shown = capsys.readouterr()
    assert "20 of 40, loss 2.500" in shown.out and shown.out.endswith("█ 40 of 40, loss 1.250\n")
    assert shown.err == ""


class Shown:
    """Collects what a notebook displays, and what takes its place later."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.first: list[Any] = []
        self.later: list[Any] = []
        monkeypatch.setattr("IPython.display.display", self.display)
        for module in (live, notebook):
            monkeypatch.setattr(module, "in_notebook", lambda: True)

    def display(self, value: Any, display_id: bool = False) -> Any:
        self.first.append(value)
        return self

    def update(self, value: Any) -> None:
        self.later.append(value)


SLIDERS = """
def a_row_of_sums(student, most: int = 3):
    \"\"\"The sums climb like a staircase.\"\"\"
    figure = Figure(figsize=(2, 2))
    sums = [student.add(n, 1) for n in range(most)]
    figure.subplots().plot(sums)
    return figure, f"The sums end at {sums[-1]}."


PICTURES = {"add": [a_row_of_sums]}
SLIDERS = {a_row_of_sums: {"most": (3, 5, 50)}}
"""


def with_sliders(folder: Path) -> None:
    file = folder / "pictures.py"
    file.write_text(file.read_text() + SLIDERS)


def test_sliders_change_a_picture(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip(
        "ipywidgets", reason="ipywidgets is not installed: pip install '.[notebook]'"
    )
    with_sliders(folder)
    run_cells(folder, monkeypatch, "return a + b")
    shown = Shown(monkeypatch)
    notebook.picture("add")
    image, slider, caption = shown.first
    assert (slider.description, slider.value, slider.options) == ("most", 3, (3, 5, 50))
    assert caption.data == "The sums climb like a staircase."
    assert image.alt == "The sums end at 3."
    slider.value = 50
    assert shown.later[0].alt == "The sums end at 50."
    assert shown.later[0].data != image.data


@pytest.mark.parametrize("name", ["03_masked_heads", "07_mini_gpt", "12_rotary_positions"])
def test_every_end_of_a_slider_of_the_course_can_be_drawn(name: str) -> None:
    course = load_course(Path(__file__).parents[2])
    assignment = course.assignment(name)
    gallery = load_gallery(course.pictures_file(assignment))
    functions = [function for drawn in gallery.values() for function in drawn if function.choices]
    assert functions
    student = LocalStudent(
        load(course.solution_file(assignment).read_text("utf-8"), "solution.py").module
    )
    for function in functions:
        for end in (0, -1):
            ends = {argument: values[end] for argument, values in function.choices.items()}
            function.drawn(student, **ends)
        for argument, values in function.choices.items():
            assert inspect.signature(function.draw).parameters[argument].default in values


@pytest.mark.parametrize(
    "assignment", load_course(Path(__file__).parents[2]).assignments, ids=lambda a: a.name
)
def test_every_part_of_the_course_finds_its_tests(
    assignment: Assignment, monkeypatch: pytest.MonkeyPatch
) -> None:
    course = load_course(Path(__file__).parents[2])
    monkeypatch.setattr(this_kernel, "folder", course.release_folder(assignment))
    visible = course.release_folder(assignment) / f"test_{assignment.stem}.py"
    assert {this_kernel.test_file(part.name) for part in assignment.parts} == {visible}
    assert this_kernel.test_file(f"{assignment.parts[0].name}_") is None
    assert parts_of(visible) == [part.name for part in assignment.parts]
