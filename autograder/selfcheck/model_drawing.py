"""Draw a whole model as boxes from the modules of a student's own `nn.Module`, as an SVG.

Graphviz is not used: nested rows of boxes need no search for a layout, and students need not
install it. The SVG brings its own background, so it is readable on light and dark pages.
"""

import html
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

from torch import nn
from torch.nn.parameter import is_lazy

from autograder.text.files import write_whole

LEVELS = 3  # how deep boxes are nested
WIDTH = 640
MARGIN = 20
ROW = 32
GAP = 7
INSET = 12
ENDS = 46  # height of the arrow from the input, and of that to the output
LINE = 17
CHARACTER = 7.9  # widths of a monospaced character, of 13 and of 12 pixels
SMALL_CHARACTER = 7.3
LONGEST_NAME = 26
MOST_SHAPES = 4
PARAMETER = "Parameter"

# PyTorch's other layers are not opened: their inner modules have names that a student never wrote.
_OPENED = ("torch.nn.modules.container", "torch.nn.modules.module", "torch.nn.modules.transformer")

_STYLE = """
.model-drawing { font: 13px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: #1b2430; }
.model-drawing .page { fill: #ffffff; }
.model-drawing .box { fill: #eef3f9; stroke: #8296ad; }
.model-drawing .box.level-2 { fill: #dfe9f4; }
.model-drawing .box.level-3 { fill: #ffffff; }
.model-drawing .box.bare { stroke-dasharray: 4 3; }
.model-drawing .arrow { fill: none; stroke: #55677d; stroke-width: 1.5; }
.model-drawing .name { font-weight: bold; }
.model-drawing .times { font-weight: bold; fill: #a33b00; }
.model-drawing .number { font-size: 12px; text-anchor: end; fill: #44546a; }
.model-drawing .end { text-anchor: middle; fill: #44546a; }
.model-drawing .foot { font: 12px system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; fill: #44546a; }
@media (prefers-color-scheme: dark) {
  .model-drawing { fill: #e4eaf1; }
  .model-drawing .page { fill: #14181d; }
  .model-drawing .box { fill: #1e2630; stroke: #62758c; }
  .model-drawing .box.level-2 { fill: #293542; }
  .model-drawing .box.level-3 { fill: #14181d; }
  .model-drawing .arrow { stroke: #93a5ba; }
  .model-drawing .times { fill: #ffa366; }
  .model-drawing .number, .model-drawing .end, .model-drawing .foot { fill: #b3c0cf; }
}
"""


@dataclass(frozen=True)
class Box:
    """A module, or a parameter that a module with further modules owns.

    `parameters` counts those that no box before it has, in all `times` equal modules together.
    """

    name: str
    kind: str
    parameters: int
    detail: str = ""
    inner: tuple["Box", ...] = ()
    times: int | None = None
    has_more: bool = False


@dataclass(frozen=True)
class ModelDrawing:
    """The drawing of a model: a picture in a notebook, an SVG in a file."""

    model: str
    parameters: int
    svg: str

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return (
            f"The drawing of {self.model}, {_counted(self.parameters)}. "
            'A notebook shows it; draw_model(model, "model.svg") writes it to a file.'
        )


def draw_model(model: nn.Module, file: str | Path | None = None) -> ModelDrawing:
    """Draw the modules of a model as boxes, the input below and the output above; with `file`, write the SVG there, too.

    The boxes are in the order in which `__init__` made the modules, parameters before modules.
    What `forward` does with them is not read: it may use them in another order, several times, or
    not at all. Equal modules in a row of a list are drawn once, with × N, and parameters that
    several modules share are counted once. Example: draw_model(GPT(), "model.svg").
    Raises TypeError if model is no nn.Module, ValueError if file does not end in .svg, or if layers
    do not know their sizes yet.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"model must be an nn.Module, but it is {_instead(model)}")
    if any(is_lazy(parameter) for parameter in model.parameters()):
        raise ValueError(
            "model has lazy layers that do not know their sizes yet: call it once, then draw it"
        )
    if file is not None and Path(file).suffix.lower() != ".svg":
        raise ValueError(f"file must end in .svg, but it is {str(file)!r}")
    whole = _Reader().whole(model)
    drawing = ModelDrawing(whole.kind, whole.parameters, _svg(whole))
    if file is not None:
        write_whole(Path(file), drawing.svg)
    return drawing


def _instead(value: object) -> str:
    if isinstance(value, type):
        return f"the class {value.__name__}: make a model of it first, {value.__name__}(…)"
    return f"of the class {type(value).__name__}"


class _Reader:
    """Reads the boxes of one model, and remembers which parameters have been counted."""

    def __init__(self) -> None:
        self._places: dict[nn.Parameter, str] = {}

    def whole(self, model: nn.Module) -> Box:
        inner = self._inner(model, "", 1) if _is_opened(model) else ()
        inner = inner or (self._closed("", model, ""),)
        return Box("", _kind(model), sum(box.parameters for box in inner), inner=inner)

    def _inner(self, module: nn.Module, path: str, level: int) -> tuple[Box, ...]:
        """Return the boxes within a module: its own parameters, then its modules."""
        parameters = module.named_parameters(recurse=False, remove_duplicate=False)
        boxes = [
            self._of_parameters(name, PARAMETER, {path + name: value}) for name, value in parameters
        ]
        for names, modules in _rows(module):
            boxes.append(self._row(names, modules, path, level))
        return tuple(boxes)

    def _row(self, names: list[str], modules: list[nn.Module], path: str, level: int) -> Box:
        """Return one box for equal modules; `names` are their names in the module at `path`."""
        first = self._read(names[0], modules[0], path, level)
        if len(names) == 1:
            return first
        total = first.parameters
        for name, module in zip(names[1:], modules[1:], strict=True):
            total += self._closed(name, module, f"{path}{name}").parameters
        is_sum = total == len(names) * first.parameters
        detail = f"= {len(names)} × {first.parameters:,}" if is_sum and total else ""
        return replace(
            first,
            name=f"{names[0]}–{names[-1]}",
            parameters=total,
            detail=detail if is_sum else "in all, some shared",
            times=len(names),
        )

    def _read(self, name: str, module: nn.Module, path: str, level: int) -> Box:
        if not _is_opened(module) or level == LEVELS:
            return self._closed(name, module, f"{path}{name}")
        rows = list(_rows(module))
        is_list = type(module) in (nn.ModuleList, nn.Sequential)
        if is_list and len(rows) == 1 and not name.isdecimal():  # drawn as its modules, × N
            names, equals = rows[0]
            row = self._row(names, equals, f"{path}{name}.", level)
            return replace(row, name=name, times=len(names))
        inner = self._inner(module, f"{path}{name}.", level + 1)
        return Box(name, _kind(module), sum(box.parameters for box in inner), inner=inner)

    def _closed(self, name: str, module: nn.Module, path: str) -> Box:
        within = {f"{path}.{n}".lstrip("."): value for n, value in module.named_parameters()}
        box = self._of_parameters(name, _kind(module), within)
        return replace(box, has_more=_is_opened(module))

    def _of_parameters(self, name: str, kind: str, parameters: dict[str, nn.Parameter]) -> Box:
        shared = {path: p for path, p in parameters.items() if p in self._places}
        new = {path: p for path, p in parameters.items() if path not in shared}
        detail = self._where(shared, bool(new)) if shared else _sum_of_shapes(new)
        self._places |= {p: path for path, p in new.items()}
        return Box(name, kind, sum(p.numel() for p in new.values()), detail)

    def _where(self, shared: dict[str, nn.Parameter], has_new: bool) -> str:
        """Say which earlier parameter the first shared one is, and how many more there are."""
        path, parameter = next(iter(shared.items()))
        first = f"{path.rpartition('.')[2]} is {self._places[parameter]}"
        further = f" and {len(shared) - 1} more" if len(shared) > 1 else ""
        return f"and {first}{further}" if has_new else f"{first}{further}"


def _sum_of_shapes(parameters: dict[str, nn.Parameter]) -> str:
    """Return `= 31 × 64 + 31`; "" if it is one plain number, or too long."""
    if len(parameters) > MOST_SHAPES:
        return ""
    shapes = " + ".join(" × ".join(map(str, p.shape)) for p in parameters.values())
    return f"= {shapes}" if " " in shapes else ""


def _is_opened(module: nn.Module) -> bool:
    """Whether the modules within this one are drawn."""
    home = type(module).__module__
    is_closed = home.startswith("torch.nn.") and home not in _OPENED
    return bool(_children(module)) and not is_closed


def _children(module: nn.Module) -> dict[str, nn.Module]:
    """Return the modules directly within this one, also those that it holds under two names."""
    return {name: child for name, child in module._modules.items() if child is not None}


def _rows(module: nn.Module) -> Iterator[tuple[list[str], list[nn.Module]]]:
    """Yield the names and modules within this one, those together that are equal neighbours in a list."""

    def key(child: tuple[str, nn.Module]) -> object:
        name, inner = child
        return _make(inner) if name.isdecimal() else name

    for _, row in groupby(_children(module).items(), key):
        neighbours = dict(row)
        yield list(neighbours), list(neighbours.values())


def _make(module: nn.Module) -> object:
    """Return what is equal for modules that are drawn as one: classes and shapes of parameters."""
    kinds = tuple((name, type(inner)) for name, inner in module.named_modules())
    return kinds, tuple((name, value.shape) for name, value in module.named_parameters())


def _kind(module: nn.Module) -> str:
    return type(module).__name__


def _counted(parameters: int) -> str:
    return f"{parameters:,} parameter{'' if parameters == 1 else 's'}"


def _svg(whole: Box) -> str:
    foot = _foot(whole)
    boxes = sum(_height(box) + GAP for box in whole.inner) - GAP
    top = MARGIN + ROW + ENDS
    below = top + boxes + ENDS
    height = below + LINE * len(foot) + MARGIN
    heading = replace(whole, name=whole.kind, kind="")
    title = f"{whole.kind}, {_counted(whole.parameters)}"
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="model-drawing" viewBox="0 0 {WIDTH} {height}" '
        f'width="{WIDTH}" height="{height}" role="img" aria-label="{_escaped(title)}">',
        f"<title>{_escaped(title)}</title>",
        f"<style>{_STYLE}</style>",
        f'<rect class="page" width="{WIDTH}" height="{height}"/>',
        *_label(heading, MARGIN, MARGIN, WIDTH - 2 * MARGIN, _counted(whole.parameters)),
        *_arrow("output", MARGIN + ROW + 12, top - 6, top - 22),
        *_stack(whole, MARGIN, top, WIDTH - 2 * MARGIN, 1),
        *_arrow("input", below - 12, top + boxes + 22, top + boxes + 6),
    ]
    for number, line in enumerate(foot, start=1):
        lines.append(
            f'<text class="foot" x="{MARGIN}" y="{below + LINE * number}">{_escaped(line)}</text>'
        )
    return "\n".join([*lines, "</svg>"]) + "\n"


def _foot(whole: Box) -> list[str]:
    foot = [
        "From bottom to top in the order in which you made them. How they are connected is decided",
        "in forward, which this drawing does not read. The numbers count parameters, shared ones once.",
    ]
    boxes = list(_all(whole))
    if any(box.kind == PARAMETER for box in boxes):
        foot.append(
            "A module's own parameters are below the modules in it, whenever you made them."
        )
    if any(box.has_more for box in boxes):
        foot.append("“…”: there are more modules inside.")
    return foot


def _all(box: Box) -> Iterator[Box]:
    yield box
    for inner in box.inner:
        yield from _all(inner)


def _height(box: Box) -> int:
    if not box.inner:
        return ROW
    return ROW + sum(_height(inner) + GAP for inner in box.inner) + INSET - GAP


def _stack(box: Box, left: int, top: int, width: int, level: int) -> Iterator[str]:
    """Yield the boxes within a box, the first at the bottom."""
    for inner in reversed(box.inner):
        yield from _drawn(inner, left, top, width, level)
        top += _height(inner) + GAP


def _drawn(box: Box, left: int, top: int, width: int, level: int) -> Iterator[str]:
    kinds = f"box level-{level}" if box.parameters or box.detail else f"box level-{level} bare"
    yield (
        f'<rect class="{kinds}" x="{left}" y="{top}" width="{width}" height="{_height(box)}" rx="5"/>'
    )
    number = f"{box.parameters:,}" if box.parameters or not box.detail else ""
    yield from _label(box, left + 10, top, width - 20, number)
    yield from _stack(box, left + INSET, top + ROW, width - 2 * INSET, level + 1)


def _label(box: Box, left: int, top: int, width: int, number: str) -> Iterator[str]:
    """Yield the name and class at the left, and the number at the right with as much of its detail as fits."""
    words = [_short(box.name), _short(box.kind) + (" …" if box.has_more else "")]
    times = "" if box.times is None else f"× {box.times}"
    used = sum(len(word) + 1 for word in [*words, times]) * CHARACTER
    most = int((width - used) / SMALL_CHARACTER)
    detailed = f"{number} {box.detail}".strip()
    if len(detailed) > most and box.detail.startswith("="):
        detailed = number
    base = top + ROW // 2 + 5
    yield (
        f'<text x="{left}" y="{base}"><title>{_escaped(f"{box.name} {box.kind}".strip())}</title>'
        f'<tspan class="name">{_escaped(words[0])}</tspan> {_escaped(words[1])} '
        f'<tspan class="times">{times}</tspan></text>'
    )
    yield f'<text class="number" x="{left + width}" y="{base}">{_escaped(_short(detailed, most))}</text>'


def _arrow(word: str, base: int, start: int, tip: int) -> Iterator[str]:
    """Yield a word and an arrow that points upwards."""
    middle = WIDTH // 2
    yield f'<text class="end" x="{middle}" y="{base}">{word}</text>'
    yield (
        f'<path class="arrow" d="M{middle} {start}V{tip}M{middle - 4} {tip + 5}L{middle} {tip}'
        f'L{middle + 4} {tip + 5}"/>'
    )


def _short(text: str, most: int = LONGEST_NAME) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _escaped(text: str) -> str:
    """Escape a text, and replace characters that XML cannot hold."""
    return html.escape("".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text))
