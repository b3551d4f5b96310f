"""The map at the head of each assignment: a notebook shows it as a picture, drawn from the text."""

import base64
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import nbformat
import pytest

from autograder.course.config import Assignment, load_course
from autograder.course.map_picture import WIDTH, with_map_picture
from autograder.course.notebook import to_notebook

COURSE = load_course(Path(__file__).parents[2])
EACH = pytest.mark.parametrize("assignment", COURSE.assignments, ids=lambda a: a.name)
SVG = "{http://www.w3.org/2000/svg}"
SMALL = """\
# A course

```
 the end          02 <last> & "least"
    ↑           ▶ 01 the first
┌───────┐
│ a box │ × 2
└───────┘
    ↑
 a text

▶ you are here
```

And so on.
"""


def image(prose: str) -> re.Match[str]:
    found = re.findall(r"<img[^>]*>", prose)
    assert len(found) == 1
    pattern = r'<img width="(\d+)" alt="([^"]+)" src="data:image/svg\+xml;base64,([^"]+)">'
    match = re.fullmatch(pattern, found[0])
    assert match, found[0][:300]
    return match


def drawing(prose: str) -> ET.Element:
    return ET.fromstring(base64.b64decode(image(prose)[3], validate=True))


def texts(picture: ET.Element, kind: str | None = None) -> list[str]:
    elements = picture.iter(f"{SVG}text")
    return [str(e.text) for e in elements if kind is None or kind in e.get("class", "").split()]


def released_prose(assignment: Assignment) -> str:
    notebook = nbformat.read(COURSE.notebook_file(assignment), as_version=4)
    return notebook.cells[0].source


@EACH
def test_released_notebook_shows_the_map_and_the_place_on_it(assignment: Assignment) -> None:
    stub = COURSE.stub_file(assignment).read_text("utf-8")
    prose = released_prose(assignment)
    assert prose == to_notebook(assignment, stub).cells[0].source
    number = assignment.name[:2]
    picture = drawing(prose)
    assert sorted(texts(picture, "number")) == [a.name[:2] for a in COURSE.assignments]
    here = texts(picture, "here")
    assert here[:2] == ["you are here", number] and len(here) == 3
    assert image(prose)[2].endswith(f"You are here: {number}, {here[2]}.")
    assert picture.findtext(f"{SVG}title") == image(prose)[2]


@EACH
def test_everything_is_inside_the_picture(assignment: Assignment) -> None:
    picture = drawing(released_prose(assignment))
    width, height = int(picture.attrib["width"]), int(picture.attrib["height"])
    assert picture.get("viewBox") == f"0 0 {width} {height}"
    assert str(width) == image(released_prose(assignment))[1]
    assert width == WIDTH <= 640
    for rectangle in picture.iter(f"{SVG}rect"):
        x, y, wide, high = (float(rectangle.attrib[key]) for key in ("x", "y", "width", "height"))
        assert x >= 0 and y >= 0 and x + wide <= width and y + high <= height
    for text in picture.iter(f"{SVG}text"):
        assert 0 < float(text.attrib["x"]) < width and 0 < float(text.attrib["y"]) < height


def test_all_words_of_the_text_are_in_the_picture() -> None:
    picture = drawing(with_map_picture(SMALL))
    assert sorted(texts(picture)) == sorted(
        ["the end", "02", '<last> & "least"', "01", "the first", "you are here"]
        + ["a box", "× 2", "a text"]
    )
    assert texts(picture, "here") == ["you are here", "01", "the first"]
    kinds = [str(element.get("class")) for element in picture.iter(f"{SVG}rect")]
    assert kinds == ["card", "block", "layer", "place"]
    assert len([path for path in picture.iter(f"{SVG}path") if path.get("class") == "arrow"]) == 2


def test_text_of_the_map_stays_below_its_picture() -> None:
    prose = with_map_picture(SMALL)
    before, block, after = re.split(r"(```.*```)", SMALL, flags=re.DOTALL)
    assert prose.startswith(f"{before}<img ")
    assert prose.endswith(
        f'<details style="margin-bottom: 1em"><summary>The map as text</summary>\n\n{block}\n\n</details>{after}'
    )


@pytest.mark.parametrize(
    "prose",
    [
        "# Adding\n\nNo map here.\n",
        "```\nx = 1\n```\n\n▶ you are here\n",
        "```\n  01 a list, and nobody in it\n\n▶ you are here\n```\n",
        SMALL.replace("```", "````"),
    ],
)
def test_prose_without_a_map_stays_as_it_is(prose: str) -> None:
    assert with_map_picture(prose) == prose


def test_block_above_the_map_stays_as_it_is() -> None:
    above = "```\nx = 1\n```\n\n"
    assert with_map_picture(above + SMALL) == above + with_map_picture(SMALL)
