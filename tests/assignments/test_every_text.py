"""What every assignment's text has in common: the map of the whole Transformer, its headings and its layout."""

import ast
import itertools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from autograder.course.definitions import Definition, comments
from autograder.course.document import load_document
from autograder.course.markers import BEGIN
from autograder.course.notebook import to_notebook
from autograder.course.reading import load_course

COURSE = load_course(Path(__file__).resolve().parents[2])
EACH = pytest.mark.parametrize("assignment", COURSE.assignments, ids=lambda assignment: assignment.name)
MARGIN = 88  # where shapes stand, or two spaces behind code that is longer
SHAPE = re.compile(r"# (\(|each \(|\w+ (times|of) \(|[A-Z]$|[\w ]+ -> )")
OTHER_LEADS = ("In numbers", "A worked number", "A worked example", "One worked number", "Think about it")
LEADS = rf"^# \**(One number by hand|To think about|Not here|{'|'.join(OTHER_LEADS)})\b"
LAST_HEADINGS = ["Harder", "Look back", "Read on"]
HERE = "▶ you are here"
LONG = 70  # lines of given code that may stand between the text and what a student writes
WIDEST = 60  # characters that a notebook shows in a window of 640 pixels
ROWS = (
    (" the next word", "07 trained, and writing"),
    ("       ↑", "18 what it costs"),
    ("       ↑", "16 taught what people prefer"),
    ("       ↑", "14 fine-tuned"),
    ("       ↑", "15 trained well"),
    ("┌──────────────┐", "06 all of it, counted"),
    ("│              │", "05 the whole block"),
    ("│ feed-forward │", "08 one that reads a second text"),
    ("│      ↑       │", "09 the same, with gaps to fill"),
    ("│      ↑       │", "10 ready-made"),
    ("│  attention   │ × N", "03 one head"),
    ("│              │", "04 many heads"),
    ("│              │", "11 tested"),
    ("└──────────────┘", "13 with a cache"),
    ("       ↑", "01 vectors"),
    ("   vectors +", "02 positions"),
    ("   positions", "12 positions that turn"),
    ("       ↑", "17 the code around it, debugged"),
    ("words of a text", "00 why not one word after the other"),
)


def the_map(number: str) -> list[str]:
    """The lines of the map with a mark at one assignment."""
    lines = []
    for drawing, item in ROWS:
        mark = "▶" if item.startswith(number) else " "
        lines.append(f"{drawing:21}{mark} {item}".rstrip())
    return [*lines, "", HERE]


def as_comments(lines: list[str]) -> str:
    """A block of code in the prose of a py:percent document."""
    return "\n".join(f"# {line}".rstrip() for line in ["```", *lines, "```"])


@EACH
def test_the_map_stands_at_the_head_and_shows_where_you_are(assignment):
    text = COURSE.solution_file(assignment).read_text("utf-8")
    drawn = as_comments(the_map(assignment.name[:2]))
    assert drawn.count("▶") == 2, "one mark, and what it means"
    head = text.split("\n# %%\n")[0]
    assert drawn in head, f"the head of {assignment.name} needs this map:\n{drawn}"


def test_every_assignment_has_a_place_on_the_map():
    numbers = sorted(item[:2] for _, item in ROWS if item)
    assert numbers == sorted(assignment.name[:2] for assignment in COURSE.assignments)


@EACH
def test_the_map_fits_a_narrow_window(assignment):
    assert max(map(len, the_map(assignment.name[:2]))) <= WIDEST


@EACH
def test_each_part_says_its_minutes_and_difficulty(assignment):
    text = COURSE.solution_file(assignment).read_text("utf-8")
    told = re.findall(r"^# ## Part \d.*\n#\n# About \d+ minutes, (●{1,3}○{0,2})$", text, re.MULTILINE)
    assert len(told) == len(re.findall(r"^# ## Part \d", text, re.MULTILINE)) >= len(assignment.parts)
    assert set(map(len, told)) == {3}


@EACH
def test_a_sentence_above_each_picture_says_what_to_look_at(assignment):
    cells = load_document(COURSE, assignment).cells
    bare = [cell.name for above, cell in itertools.pairwise(cells) if cell.kind == "picture" and above.kind != "markdown"]
    assert not bare


@EACH
def test_long_given_code_is_folded(assignment):
    """But the ten functions that 17 asks to read."""
    read = assignment.name == "17_find_the_bug"
    for cell in to_notebook(assignment, load_document(COURSE, assignment).stub).cells:
        lines = 0 if cell.cell_type == "markdown" or "nbgrader" in cell.metadata else len(cell.source.splitlines())
        folded = cell.metadata.get("jupyter", {}).get("source_hidden", False)
        assert read or folded or lines <= LONG, cell.source[:200]


@EACH
def test_a_cell_to_write_in_holds_one_class(assignment):
    """A mistake in one of two classes would make the whole cell red."""
    for cell in load_document(COURSE, assignment).cells:
        if cell.kind == "code" and BEGIN in cell.source:
            classes = [node.name for node in ast.parse(cell.source).body if isinstance(node, ast.ClassDef)]
            assert len(classes) <= 1, classes


def shapes(text: str) -> Iterator[tuple[int, int, str]]:
    """The shapes on the right margin: the number of the line, the column, and what stands before it."""
    for comment in comments(text):
        before = comment.line[: comment.start[1]]
        if before.strip() and SHAPE.match(comment.string):
            yield comment.start[0], len(before), before
        elif comment.string.startswith("# TODO") and (noted := re.search(r"\s{2,}(?=# )", comment.string)):
            yield comment.start[0], len(before) + noted.end(), before + comment.string[: noted.end()]


@EACH
def test_shapes_stand_in_one_column(assignment):
    text = COURSE.solution_file(assignment).read_text("utf-8")
    found = list(shapes(text))
    assert len(found) > 10
    for line, column, before in found:
        assert column == max(MARGIN, len(before.rstrip()) + 2), f"line {line}: a shape in column {column}"


@EACH
def test_paragraphs_with_the_same_purpose_begin_with_the_same_words(assignment):
    text = COURSE.solution_file(assignment).read_text("utf-8")
    leads = re.findall(LEADS, text, re.MULTILINE)
    assert leads.count("Not here") == 1
    assert leads.count("One number by hand") >= len(assignment.parts) / 2
    assert not set(leads) & set(OTHER_LEADS)
    for lead in ("One number by hand", "To think about", "Not here"):
        assert len(re.findall(rf"^# \*\*{lead}\.\*\* ", text, re.MULTILINE)) == leads.count(lead), lead
    assert "Letters for shapes:" in " ".join(text.replace("\n# ", " ").split())


@EACH
def test_the_last_sections_have_the_same_names(assignment):
    text = COURSE.solution_file(assignment).read_text("utf-8")
    headings = re.findall(r"^# ## ([^:\n]+)", text, re.MULTILINE)
    is_harder = (COURSE.visible_test_file(assignment).parent / "given/harder.py").is_file()
    expected = LAST_HEADINGS if is_harder else LAST_HEADINGS[1:]
    assert [heading for heading in headings if heading in LAST_HEADINGS] == expected
    assert headings[-1] == LAST_HEADINGS[-1]


def cells_of(text: str) -> Iterator[tuple[int, str]]:
    """The cells of a document, each with the number of blank lines before it."""
    cells = re.split(r"^(?=# %%)", text, flags=re.MULTILINE)[1:]
    blank = 0
    for cell in cells:
        yield blank, cell
        blank = len(cell) - len(cell.rstrip("\n")) - 1


@EACH
def test_two_blank_lines_surround_definitions_and_one_all_other_cells(assignment):
    last: list[ast.stmt] = []
    for number, (blank, cell) in enumerate(cells_of(COURSE.solution_file(assignment).read_text("utf-8"))):
        statements = [] if cell.startswith("# %% [markdown]") else ast.parse(cell).body
        beside = [*last[-1:], *statements[:1]]
        expected = 2 if any(isinstance(statement, Definition) for statement in beside) else 1
        assert number == 0 or blank == expected, f"{blank} blank lines before: {cell[:200]}"
        last = statements


@EACH
def test_errors_are_promised_in_one_form(assignment):
    """`Raises ValueError that names kind and its value if …`, in every docstring."""
    tree = ast.parse(COURSE.solution_file(assignment).read_text("utf-8"))
    documented = (node for node in ast.walk(tree) if isinstance(node, Definition))
    for docstring in filter(None, map(ast.get_docstring, documented)):
        sentences = " ".join(docstring.split())
        for before in re.findall(r"(\S+ \S+ )`?ValueError", sentences):
            assert re.search(r"([Rr]aises?|and) $", before), f"{before}ValueError"
        assert "naming" not in sentences


@EACH
def test_each_test_says_what_it_is_about_in_one_task(assignment):
    for file in (COURSE.visible_test_file(assignment), COURSE.hidden_test_file(assignment)):
        for node in ast.parse(file.read_text("utf-8")).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                (decorator,) = node.decorator_list
                assert ast.unparse(decorator).startswith("task("), f"{file.name}: {node.name}"


@EACH
def test_visible_tests_ask_for_no_answer_without_gradients(assignment):
    """At home, PyTorch's attention rounds otherwise in `no_grad`; in the sandbox, student code does not run in it."""
    file = COURSE.visible_test_file(assignment)
    asked = [
        ast.unparse(statement)
        for block in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(block, ast.With) and "no_grad" in ast.unparse(block.items[0])
        for statement in block.body
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name)
    ]
    assert not asked
