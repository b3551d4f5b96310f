"""Any student's file becomes a valid notebook with each part's test cell exactly once."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import nbformat
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autograder.bridge.shared.errors import BELOW_MAIN, TAKES_TOO_LONG
from autograder.course.config import Course
from autograder.course.document import load_document
from autograder.course.notebook import to_notebook
from autograder.course.reading import load_course
from autograder.feedback.render import Message
from autograder.nbgrader.decided_points import part_score
from autograder.nbgrader.graded_notebook import MOST_CELLS, show_grade, submitted_notebook
from autograder.records import Grade, SourceFile
from autograder.records import TestResult as Result
from tests.autograder.pages import page_of
from tests.autograder.tiny_course import write_tiny_course

ASSIGNMENT = "01_adding"

anything = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
grade_ids = st.sampled_from(["add", "total", "write-add", "write-Total", "bonus"]) | anything
cells = st.fixed_dictionaries(
    {},
    optional={
        "cell_type": st.sampled_from(["code", "markdown", "raw", "heading"]) | anything,
        "source": st.sampled_from(['check("add")', "def add(a, b): pass", "class Total: pass"])
        | anything,
        "metadata": st.fixed_dictionaries(
            {},
            optional={
                "nbgrader": st.fixed_dictionaries(
                    {}, optional={"grade_id": grade_ids, "points": anything}
                )
                | anything
            },
        )
        | anything,
        "attachments": anything,
        "outputs": anything,
        "id": anything,
    },
)
notebooks = st.fixed_dictionaries(
    {"cells": st.lists(cells | anything, max_size=8)}, optional={"metadata": anything}
)


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    return load_course(write_tiny_course(tmp_path_factory.mktemp("course")))


@pytest.fixture(scope="module")
def assignment(course):
    return course.assignment(ASSIGNMENT)


@pytest.fixture(scope="module")
def release(course, assignment):
    return to_notebook(assignment, load_document(course, assignment).stub)


def grade_of(*tests: Result, **facts) -> Grade:
    return Grade(
        **{
            "student": "ada", "assignment": ASSIGNMENT, "status": "graded", "score": 0,
            "max_score": 10, **facts,
        },
        tests=tests,
    )  # fmt: skip


def as_released(assignment, release):
    """The notebook of a student who handed in what was released."""
    file = SourceFile("adding.ipynb", nbformat.writes(release))
    return submitted_notebook(assignment, release, [file])


def cell_of(notebook, name):
    (cell,) = (c for c in notebook.cells if c.metadata.get("nbgrader", {}).get("grade_id") == name)
    return cell


def show(notebook, assignment, grade) -> None:
    course = Course(root=Path("nowhere"), title="Tiny", assignments=(assignment,))
    show_grade(notebook, assignment, page_of(course.root, course, grade))


def checked(notebook, assignment) -> None:
    """Check that the notebook is valid for nbformat and for nbgrader's rules about ids, and can be written."""
    show(notebook, assignment, grade_of())
    nbformat.validate(notebook)
    nbformat.writes(notebook).encode("utf-8")
    ids = [
        cell.metadata.nbgrader.grade_id for cell in notebook.cells if "nbgrader" in cell.metadata
    ]
    assert len(ids) == len(set(ids))
    tests = {
        cell.metadata.nbgrader.grade_id: cell
        for cell in notebook.cells
        if cell.metadata.get("nbgrader", {}).get("grade")
    }
    assert {name: cell.metadata.nbgrader.points for name, cell in tests.items()} == {
        "add": 4,
        "total": 6,
    }
    for cell in tests.values():
        assert [output.output_type for output in cell.outputs] == ["display_data", "execute_result"]
        assert cell.outputs[1].data["text/plain"] == "0.0"


@settings(max_examples=150)
@given(notebooks)
def test_any_notebook_becomes_a_valid_graded_notebook(assignment, release, document):
    text = json.dumps(document)
    checked(submitted_notebook(assignment, release, [SourceFile("adding.ipynb", text)]), assignment)


def test_last_test_cell_holds_the_text_of_an_objection(assignment, release):
    notebook = as_released(assignment, release)
    wrong = Result("test_any", "add", "Any two numbers.", "failed", 0, 4, "add(4, 5) is -1.")
    show(notebook, assignment, grade_of(wrong, submission_sha256="cd" * 32))
    first, last = (cell_of(notebook, name).outputs for name in ("add", "total"))
    assert len(first) == 2
    shown = last[1].data
    assert (
        f"Submission: {32 * 'cd'}\n\nTest: Any two numbers.\nCame back: add" in shown["text/plain"]
    )
    assert shown["text/plain"].endswith("My reason:\n") and "Is this wrong?" in shown["text/html"]


def test_huge_notebook_is_truncated(assignment, release):
    many = {"cells": [{"cell_type": "code", "source": "1"}] * (MOST_CELLS + 500)}
    notebook = submitted_notebook(
        assignment, release, [SourceFile("adding.ipynb", json.dumps(many))]
    )
    assert len(notebook.cells) == MOST_CELLS + 2
    checked(notebook, assignment)


@pytest.mark.parametrize(
    "score, shown", [(2.5, "2.5"), (-1, "0.0"), (99, "4.0"), (0.1 + 0.2, "0.3")]
)
def test_score_is_a_float_between_zero_and_the_maximum(assignment, release, score, shown):
    result = Result(
        "test_x", "add", "It `adds` <b>.", "failed", score, 4.0, "sum <script> wrong", "Why?"
    )
    notebook = as_released(assignment, release)
    show(notebook, assignment, grade_of(result))
    cell = cell_of(notebook, "add")
    assert cell.outputs[1].data["text/plain"] == shown
    page = cell.outputs[0].data["text/html"]
    assert "<script>" not in page and "<b>" not in page
    assert "<code>adds</code>" in page and "Why?" in page


def test_refused_submission_scores_zero_and_shows_the_reason(assignment, release):
    grade = grade_of(status="refused", problem="Two different files.")
    assert [part_score(grade.tests, part) for part in assignment.parts] == [0.0, 0.0]
    notebook = submitted_notebook(assignment, release, [])
    show(notebook, assignment, grade)
    assert "Not graded: Two different files." in notebook.cells[0].outputs[0].data["text/plain"]


def test_recognised_mistake_is_named(assignment, release):
    wrong = Result(
        "test_x", "add", "It adds.", "failed", 0, 4.0, "7", "Why?",
        "the_second_number_is_taken_away",
    )  # fmt: skip
    notebook = as_released(assignment, release)
    show(notebook, assignment, grade_of(wrong))
    cell = cell_of(notebook, "add")
    for kind in ("text/plain", "text/html"):
        assert "This looks familiar: the second number is taken away." in cell.outputs[0].data[kind]


@pytest.mark.parametrize(
    "message, mark",
    [
        ("`add` is not written yet (line 3).", "○"),
        ("This part is not written yet.", "○"),
        ('Below your code, `add` still has the line `raise NotImplementedError("add is not written yet.")`', "✗"),
        ("add(2, 3) returned 4; 5 was expected.", "✗"),
    ],
)  # fmt: skip
def test_unwritten_code_is_told_from_wrong_code(message, mark):
    result = Result("test_x", "add", "It adds.", "failed", 0, 4.0, message)
    assert f"{mark} It adds." in repr(Message("Two numbers", (result,)))
    assert f">{mark} " in Message("Two numbers", (result,))._repr_html_()


def test_attached_pictures_are_kept(assignment, release):
    cell = {
        "cell_type": "markdown",
        "source": "![mine](attachment:a.png)",
        "attachments": {"a.png": {"image/png": "AAAA"}},
    }
    text = json.dumps({"cells": [cell]})
    shown = submitted_notebook(assignment, release, [SourceFile("adding.ipynb", text)])
    (own,) = [cell for cell in shown.cells if "attachments" in cell]
    assert own.source == cell["source"]


# -- no cell becomes active ---------------------------------------------------------------------------------------

LINE_ENDS = (
    "\n", "\r", "\r\n", "\v", "\f", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029", "\u2424",
)  # fmt: skip
SCRIPT = "<script>executed = true</script>"
HARMLESS = {
    "p", "pre", "code", "span", "div", "em", "strong", "br", "hr", "table", "thead", "tbody", "tr", "th",
    "td",
}  # fmt: skip
HARMLESS |= {"ul", "ol", "li", "blockquote", "del", "section", "h1", "h2", "h3", "h4", "h5", "h6"}


class Elements(HTMLParser):
    """The names of all elements of a page, and their attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.page = page
        self.names = set()
        self.attributes = set()
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.names.add(tag)
        self.attributes |= {name for name, _ in attributes}


def rendered(assignment, release, *cells):
    """The elements that nbconvert, which makes nbgrader's pages, makes of a student's cells."""
    from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

    text = json.dumps({"cells": list(cells)})
    shown = submitted_notebook(assignment, release, [SourceFile("adding.ipynb", text)])
    own = [cell for cell in shown.cells if "nbgrader" not in cell.metadata]
    pages = []
    for cell in own:
        assert cell.cell_type == "markdown"
        renderer = IPythonRenderer(escape=False, attachments=cell.get("attachments", {}))
        pages.append(MarkdownWithMath(renderer=renderer).render(cell.source))
    return Elements("\n".join(pages))


@pytest.mark.parametrize("kind", ["raw", "heading", "widget", None, ["raw"]])
@pytest.mark.parametrize("end", LINE_ENDS, ids=ascii)
def test_no_line_end_lets_a_raw_cell_become_active(assignment, release, kind, end):
    for text in (
        f"note{end}{end}{SCRIPT}",
        f"{end}{SCRIPT}",
        f"{SCRIPT}{end}",
        f"a{end}```{end}{SCRIPT}{end}```",
    ):
        found = rendered(assignment, release, {"cell_type": kind, "source": text})
        assert found.names <= {"pre", "code"}, (text, found.names)


@pytest.mark.parametrize("end", LINE_ENDS, ids=ascii)
@pytest.mark.parametrize(
    "prose",
    [
        SCRIPT,
        "<img src=x onerror=executed=1>",
        "[go](javascript:executed=1)",
        "[go]( <JaVaScRiPt:alert(1)> 'title')",
        "[go](&#106;avascript:alert(1))",
        "[go][r]{end}{end}[r]: javascript:alert(1)",
        "![seen](https://elsewhere.example/pixel.png)",
        "$\\require{action}\\style{position:fixed}{x}$",
        "[go]: javascript:executed=1",
        "![go][pic]{end}{end}[pic]: attachment:missing.png",
        "<https://example.org>",
        "see https://example.org now",
        "`a` <{end}script>executed=1</script>",
        "$\\href{{javascript:executed=1}}{{x}}$",
    ],
)
def test_no_prose_becomes_active(assignment, release, prose, end):
    text = f"note{end}{end}{prose.replace('{end}', end)}"
    found = rendered(assignment, release, {"cell_type": "markdown", "source": text})
    assert found.names <= HARMLESS, found.names
    assert not [name for name in found.attributes if name.startswith("on") or name == "title"]
    assert not re.search(r"\\(href|require|style)", found.page)


@pytest.mark.parametrize(
    "name", ["missing.png", "\u00e9.png", "a b.png", "a%20b.png", "", "a.png 'x'", "../a.png"]
)
def test_a_missing_attachment_is_text(assignment, release, name):
    """nbconvert makes no page of a notebook that lacks one."""
    cell = {"cell_type": "markdown", "source": f"![x](attachment:{name}) ![y](attachment:b.png)"}
    found = rendered(assignment, release, {**cell, "attachments": {"b.png": {"image/png": "AAAA"}}})
    assert "img" in found.names


@pytest.mark.parametrize("name", ["image.png", "Screenshot%202026-11-02.png", "\u00e9.png"])
def test_an_attachment_is_shown_or_text(assignment, release, name):
    cell = {"cell_type": "markdown", "source": f"![x](attachment:{name})"}
    found = rendered(assignment, release, {**cell, "attachments": {name: {"image/png": "AAAA"}}})
    assert ("img" in found.names) == name.isascii()


def test_cell_that_was_stopped_is_named_to_the_student(assignment, release):
    stopped = f"Line 1 of cell 1 {TAKES_TOO_LONG}"
    grade = grade_of(
        flags=(
            stopped,
            "Line 3 looks names up while it runs (`getattr`): forbidden ones could hide there.",
        )
    )
    notebook = submitted_notebook(assignment, release, [])
    show(notebook, assignment, grade)
    shown = [str(cell.outputs[0].data) for cell in notebook.cells if cell.get("outputs")]
    assert shown and all(stopped in each and BELOW_MAIN.partition("`")[0] in each for each in shown)
    assert not any("looks names up" in each for each in shown)
