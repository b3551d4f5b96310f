"""The map at the head of an assignment's text as a picture: an SVG drawn from the text itself.

The map stands in a fenced block that ends in `▶ you are here`. On the left it draws the model with
boxes (`┌ ┐ └ ┘`), arrows (`↑`) and labels; on the right it lists the assignments, a number and a
title in a line, with `▶` before the one that the reader is in.
"""

import base64
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from html import escape

HERE = "▶ you are here"
WIDTH = 600  # fits a window of 640 pixels

_BLOCK = re.compile(rf"^```\n((?:(?!```).*\n)+?){HERE}\n```$", re.MULTILINE)
_STOP = re.compile(r"^(?P<drawing>.*?)(?P<mark>[▶ ]) (?P<number>\d\d) (?P<title>\S.*)$")
_LABEL = re.compile(r"[^\s│┌┐└┘─↑]+(?: [^\s│┌┐└┘─↑]+)*")

_COLUMN = 9  # pixels of a character of the drawing
_ROW = 23
_MARGIN = 20
_STOPS = 218  # where the list begins
_STYLE = """\
text { font: 13px system-ui, sans-serif; fill: #24292f }
.card { fill: #ffffff; stroke: #d0d7de }
.block { fill: #f6f8fa; stroke: #57606a; stroke-width: 1.5 }
.layer { fill: #ddf4ff; stroke: #0969da }
.arrow { stroke: #57606a; stroke-width: 1.5 }
.head { fill: #57606a }
.number { font-weight: 600; fill: #0550ae }
.place { fill: #0550ae }
.here { fill: #ffffff }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 }
  .card { fill: #0d1117; stroke: #30363d }
  .block { fill: #161b22; stroke: #9198a1 }
  .layer { fill: #10233f; stroke: #4493f8 }
  .arrow { stroke: #9198a1 }
  .head { fill: #9198a1 }
  .number { fill: #79c0ff }
  .place { fill: #79c0ff }
  .here { fill: #0d1117 }
}
"""


@dataclass(frozen=True)
class _Stop:
    row: int
    number: str
    title: str
    is_here: bool


@dataclass(frozen=True)
class _Label:
    row: int
    begin: int
    text: str

    @property
    def middle(self) -> float:
        return self.begin + len(self.text) / 2


@dataclass(frozen=True)
class _Span:
    """The rows of a box or of an arrow, both included, and the column in its middle."""

    top: int
    bottom: int
    middle: float
    width: int = 1

    def holds(self, label: _Label) -> bool:
        is_between = self.top < label.row < self.bottom
        return is_between and abs(label.middle - self.middle) < self.width / 2


def with_map_picture(prose: str) -> str:
    """Return Markdown with the picture of its map above the map as text, which is folded; prose
    without a map stays as it is.

    The picture is an image with its data in it: JupyterLab removes SVG elements and shows no SVG
    attachments. Where even the image is not shown, its description and the text remain.
    """

    def picture(block: re.Match[str]) -> str:
        stops, _ = _read(block[1])
        here = next((stop for stop in stops if stop.is_here), None)
        if here is None:
            return block[0]
        data = base64.b64encode(map_picture(block[1]).encode()).decode()
        return (
            f'<img width="{WIDTH}" alt="{escape(_description(here))}"'
            f' src="data:image/svg+xml;base64,{data}">\n\n'
            '<details style="margin-bottom: 1em"><summary>The map as text</summary>'
            f"\n\n{block[0]}\n\n</details>"
        )

    return _BLOCK.sub(picture, prose, count=1)


def map_picture(text: str) -> str:
    """Return the SVG of a map; `text` holds its lines without the last one, `▶ you are here`."""
    stops, drawing = _read(text.rstrip("\n"))
    height = len(drawing) * _ROW + 2 * _MARGIN
    here = "".join(_description(stop) for stop in stops if stop.is_here)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}"'
        f' viewBox="0 0 {WIDTH} {height}" role="img">',
        f"<title>{escape(here)}</title>",
        f"<style>\n{_STYLE}</style>",
        f'<rect class="card" x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1}" rx="8"/>',
        *_drawn_model(drawing),
    ]
    for stop in stops:
        lines += _drawn_stop(stop)
    return "\n".join([*lines, "</svg>"]) + "\n"


def _description(here: _Stop) -> str:
    return (
        "The map of the course: the assignments along the way of a text through the model,"
        f" up to the next word. You are here: {here.number}, {here.title}."
    )


def _read(text: str) -> tuple[list[_Stop], list[str]]:
    """Return the assignments, and the lines of the drawing."""
    stops: list[_Stop] = []
    drawing: list[str] = []
    for row, line in enumerate(text.rstrip("\n").split("\n")):
        stop = _STOP.match(line)
        if stop:
            stops.append(_Stop(row, stop["number"], stop["title"], stop["mark"] == "▶"))
        drawing.append(stop["drawing"] if stop else line)
    return stops, drawing


def _drawn_model(drawing: list[str]) -> Iterator[str]:
    boxes = list(_boxes(drawing))
    arrows = list(_arrows(drawing))
    axes = [arrow.middle for arrow in arrows]
    for box in boxes:
        left = _x(_on_axis(box.middle, axes)) - box.width * _COLUMN / 2
        height = (box.bottom - box.top) * _ROW
        yield _rectangle("block", left, _y(box.top), box.width * _COLUMN, height)
    for arrow in arrows:
        yield from _drawn_arrow(arrow)
    for label in _labels(drawing):
        x = _x(_on_axis(label.middle, axes))
        if any(box.holds(label) for box in boxes):
            yield _rectangle("layer", x - 60, _y(label.row) - 14, 120, 28)
        yield f'<text x="{x:g}" y="{_y(label.row) + 5}" text-anchor="middle">{escape(label.text)}</text>'


def _boxes(drawing: list[str]) -> Iterator[_Span]:
    for top, line in enumerate(drawing):
        for corner in re.finditer("┌─*┐", line):
            left = corner.start()
            below = range(top + 1, len(drawing))
            bottom = next((row for row in below if drawing[row][left : left + 1] == "└"), None)
            if bottom is not None:
                width = len(corner[0])
                yield _Span(top, bottom, left + width / 2, width)


def _arrows(drawing: list[str]) -> Iterator[_Span]:
    """Yield each arrow; arrows that stand on each other are one."""
    places: list[tuple[int, int]] = []
    for row, line in enumerate(drawing):
        places += [(row, match.start()) for match in re.finditer("↑", line)]
    for top, column in places:
        if (top - 1, column) in places:
            continue
        bottom = top
        while (bottom + 1, column) in places:
            bottom += 1
        yield _Span(top, bottom, column + 0.5)


def _labels(drawing: list[str]) -> Iterator[_Label]:
    for row, line in enumerate(drawing):
        for label in _LABEL.finditer(line):
            yield _Label(row, label.start(), label[0])


def _on_axis(middle: float, axes: Iterable[float]) -> float:
    """Return the column of an arrow that is next to a middle: in text, half a column is lost."""
    return next((axis for axis in axes if abs(axis - middle) <= 0.5), middle)


def _drawn_arrow(arrow: _Span) -> Iterator[str]:
    x = _x(arrow.middle)
    top = _y(arrow.top) - 9
    yield f'<path class="arrow" d="M{x:g} {_y(arrow.bottom) + 9}V{top + 6}"/>'
    yield f'<path class="head" d="M{x:g} {top}l5 8h-10z"/>'


def _drawn_stop(stop: _Stop) -> Iterator[str]:
    y = _y(stop.row) + 5
    if stop.is_here:
        yield _rectangle("place", _STOPS - 10, _y(stop.row) - 11, WIDTH - _STOPS - 10, 22)
        yield f'<text class="here" x="{WIDTH - 30}" y="{y}" text-anchor="end">you are here</text>'
    kind = "here" if stop.is_here else "title"
    yield f'<text class="number {kind}" x="{_STOPS}" y="{y}">{stop.number}</text>'
    yield f'<text class="{kind}" x="{_STOPS + 26}" y="{y}">{escape(stop.title)}</text>'


def _rectangle(kind: str, x: float, y: float, width: float, height: float) -> str:
    return (
        f'<rect class="{kind}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="5"/>'
    )


def _x(column: float) -> float:
    return _MARGIN + column * _COLUMN


def _y(row: int) -> float:
    return _MARGIN + row * _ROW + _ROW // 2
