"""Draws the pictures of the README and the guides from the course itself, so that they cannot drift away from it.

Run it from anywhere: `python docs/images/draw.py`, or with names: `python docs/images/draw.py road`. The screens
need the extras report and browser and a Chromium, and grade a made-up class, which takes a few minutes.
"""

import argparse
import math
import re
import runpy
import shutil
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch
from PIL import Image

from autograder.course.config import Course
from autograder.course.mistakes_file import load_mistakes
from autograder.course.reading import load_course

HERE = Path(__file__).parent
ASSIGNMENT, LEAK = "03_masked_heads", "head_without_a_mask"
CLASS = ("02_positional_encoding", "03_masked_heads", "05_encoder_block")
BLUE, ORANGE, GREEN, PALE, INK = "#0072b2", "#b34a00", "#00734f", "#eef2f5", "#1f2429"
ACROSS = 5  # stops in a row of the road


def main() -> None:
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument(
        "names", nargs="*", metavar="NAME", help=f"only these of {', '.join(DRAWINGS)}"
    )
    names = options.parse_args().names or list(DRAWINGS)
    if unknown := [name for name in names if name not in DRAWINGS]:
        options.error(f"there is no drawing {unknown[0]}; there are {', '.join(DRAWINGS)}")
    course = load_course(HERE)
    for name in names:
        DRAWINGS[name](course)


def save(figure: Figure, name: str, **text: str) -> None:
    """A figure as a small PNG; `text` is kept in it."""
    figure.savefig(HERE / f"{name}.png", dpi=110, metadata={"Software": None, **text})


# ---------------------------------------------------------------------- the gradient X-ray


def xrays(course: Course) -> None:
    assignment = course.assignment(ASSIGNMENT)
    right = course.solution_file(assignment).read_text("utf-8")
    gradient_xray = runpy.run_path(str(course.pictures_file(assignment)))["gradient_xray"]
    for name, source in (("xray-right", right), ("xray-leaking", leaking(course))):
        save(gradient_xray(module(source)), name)


def leaking(course: Course) -> str:
    return next(
        m.source for m in load_mistakes(course, course.assignment(ASSIGNMENT)) if m.id == LEAK
    )


def module(source: str) -> SimpleNamespace:
    names: dict[str, object] = {}
    exec(compile(source, "masked_heads.py", "exec"), names)
    return SimpleNamespace(**names)


# ---------------------------------------------------------------------- the road


def road(course: Course) -> None:
    """The assignments in their order, as stops of one winding road."""
    stops = [place(number) for number in range(len(course.assignments))]
    rows = 1 + (len(stops) - 1) // ACROSS
    figure = Figure(figsize=(10, 0.1 + 1.75 * rows))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(-0.8, ACROSS - 0.2)
    axes.set_ylim(-rows + 0.25, 0.3)
    axes.axis("off")
    x, y = zip(*bends(stops))
    axes.plot(x, y, color="#c9ced4", lw=20, solid_capstyle="round", zorder=1)
    axes.plot(x, y, color="white", lw=1.6, dashes=(5, 5), zorder=2)
    for assignment, (x, y) in zip(course.assignments, stops):
        axes.plot(x, y, "o", ms=27, color=BLUE, mec="white", mew=2.5, zorder=3)
        label(axes, x, y, assignment.name[:2], color="white", weight="bold", fontsize=12)
        label(axes, x, y - 0.22, textwrap.fill(assignment.title, 18), weight="bold", va="top")
        lines = 1 + len(textwrap.wrap(assignment.title, 18))
        told = f"{assignment.minutes} min · {assignment.points:g} points"
        label(axes, x, y - 0.13 - 0.11 * lines, told, color="#565d66", fontsize=8.5, va="top")
    save(figure, "road", Description=road_in_words(course))


def road_in_words(course: Course) -> str:
    """Return the contents of the picture of the road, which the file stores to detect an outdated picture."""
    stops = (
        f"{a.name[:2]} {a.title}, {a.minutes} min, {a.points:g} points" for a in course.assignments
    )
    return "; ".join(stops)


def place(number: int) -> tuple[float, float]:
    """Where a stop is: rows run to the right and to the left in turn."""
    row, step = divmod(number, ACROSS)
    return (step if row % 2 == 0 else ACROSS - 1 - step), -row


def bends(stops: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """The line of the road through all stops, with half a circle where it turns into the next row."""
    line = stops[:1]
    for (x, y), (next_x, next_y) in zip(stops, stops[1:]):
        if next_y < y:
            side = 1 if x > 0 else -1
            turn = [math.pi * (0.5 - step / 24) for step in range(25)]
            line += [(x + side * 0.6 * math.cos(t), y - 0.5 + 0.5 * math.sin(t)) for t in turn]
        line.append((next_x, next_y))
    return line


def label(axes: Axes, x: float, y: float, text: str, **style: Any) -> None:
    axes.text(
        x,
        y,
        text,
        **{"ha": "center", "va": "center", "color": INK, "fontsize": 10, "zorder": 4, **style},
    )


# ---------------------------------------------------------------------- diagrams


def source(course: Course) -> None:
    """Draw the files that are built from an author's files."""
    figure, axes = sheet(9.4, 3.5)
    for y, text in (
        (2.45, "the solution:\nprose, code, gaps"),
        (1.35, "the suite: visible\nand hidden tests"),
    ):
        box(axes, 0.2, y, 2.6, 0.85, text, BLUE)
    box(axes, 0.2, 0.25, 2.6, 0.85, "mistakes with hints,\nother right answers", BLUE)
    axes.plot([3.3, 3.3], [0.675, 2.875], color=INK, lw=1.8)
    for y in (0.675, 1.775, 2.875):
        axes.plot([2.85, 3.3], [y, y], color=INK, lw=1.8)
    for y, command, colour, made in (
        (
            1.9,
            "autograder build",
            GREEN,
            "assignments/: stub, notebook,\nvisible tests, locked hints",
        ),
        (
            0.25,
            "autograder audit",
            ORANGE,
            "a proof that it is fair, or\nwhat is not, name by name",
        ),
    ):
        arrow(axes, (3.3, y + 0.7), (4.0, y + 0.7))
        box(axes, 4.0, y + 0.25, 1.8, 0.9, command.replace(" ", "\n"), "#565d66")
        arrow(axes, (5.8, y + 0.7), (6.5, y + 0.7))
        box(axes, 6.5, y + 0.15, 2.7, 1.1, made, colour)
    save(figure, "source")


def wall(course: Course) -> None:
    """Draw both sides of the sandbox, and the data that passes between them."""
    figure, axes = sheet(9.4, 3.5)
    box(axes, 0.2, 0.4, 3.4, 2.8, "", PALE)
    label(axes, 1.9, 2.95, "the grader", weight="bold")
    for y, text in (
        (2.25, "tests and their inputs"),
        (1.55, "solution and mistakes"),
        (0.85, "scores, journal"),
    ):
        box(axes, 0.5, y - 0.25, 2.8, 0.55, text, BLUE)
    box(axes, 5.9, 0.4, 3.3, 2.8, "", PALE)
    label(axes, 7.55, 2.95, "a worker", weight="bold")
    box(axes, 6.2, 1.55, 2.7, 1.0, "one student's text,\nPyTorch", ORANGE)
    label(
        axes,
        7.55,
        0.95,
        "no network, no files,\nno other process, limits",
        fontsize=9,
        color="#565d66",
    )
    axes.plot([4.75, 4.75], [0.15, 3.35], color=INK, lw=5)
    arrow(axes, (3.6, 2.2), (5.9, 2.2), "calls: names, tensors", 2.4)
    arrow(axes, (5.9, 1.3), (3.6, 1.3), "answers: numbers, sentences", 1.0)
    save(figure, "wall")


def milliseconds(course: Course) -> None:
    """Where a right answer's processor time goes: the columns of the table in benchmarks/results.md."""
    text = (course.root / "benchmarks" / "results.md").read_text("utf-8")
    rows = re.findall(r"^\| (.+?) +\| +([\d.]+) ms +\| +([\d.]+) ms +\|$", text, re.MULTILINE)
    found = {name: (float(before), float(after)) for name, before, after in rows}
    floor = found.pop("the floor")
    found.pop("all")
    figure = Figure(figsize=(8.4, 2.7), layout="constrained")
    axes, lefts = figure.subplots(), [0.0, 0.0]
    for colour, (name, widths) in zip((BLUE, "#7a8793", ORANGE, "#d9995c"), found.items()):
        axes.barh([1, 0], widths, left=lefts, color=colour, label=name, height=0.6)
        lefts = [left + width for left, width in zip(lefts, widths)]
    for y, total in zip((1, 0), lefts):
        axes.text(total + 1, y, f"{total:.0f} ms", va="center")
    axes.axvline(sum(floor) / 2, color=INK, ls=":", label="the floor: the suite alone")
    axes.set(yticks=[1, 0], yticklabels=["before", "after"], xlim=(0, 1.1 * max(lefts)))
    axes.set_xlabel("milliseconds of processor time for one right answer")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, ncols=5, loc="lower center", bbox_to_anchor=(0.45, 1.0), fontsize=8)
    save(figure, "milliseconds")


def sheet(width: float, height: float) -> tuple[Figure, Axes]:
    """An empty figure measured in inches."""
    figure = Figure(figsize=(width, height))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(0, width)
    axes.set_ylim(0, height)
    axes.axis("off")
    return figure, axes


def box(
    axes: Axes, x: float, y: float, width: float, height: float, text: str, colour: str
) -> None:
    style = {"boxstyle": "round,pad=0,rounding_size=0.08", "fc": colour, "ec": "none"}
    axes.add_patch(FancyBboxPatch((x, y), width, height, **style))
    label(axes, x + width / 2, y + height / 2, text, color="white")


def arrow(axes: Axes, start: tuple, end: tuple, text: str = "", height: float = 0.0) -> None:
    style = {
        "arrowstyle": "-|>",
        "mutation_scale": 14,
        "lw": 1.8,
        "color": INK,
        "shrinkA": 3,
        "shrinkB": 3,
    }
    axes.add_patch(FancyArrowPatch(start, end, zorder=5, **style))
    if text:
        ground = {"fc": "white", "ec": "none", "pad": 1.5}
        label(axes, (start[0] + end[0]) / 2, height, text, fontsize=9, bbox=ground)


# ---------------------------------------------------------------------- screens


def screens(course: Course) -> None:
    """The class report and a page of feedback, as Chromium shows them."""
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        report, feedback = graded_class(course, Path(folder)), leaking_page(course, Path(folder))
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium") or shutil.which("chromium-browser"),
            args=["--no-sandbox"],
        )
        page = browser.new_page(viewport={"width": 960, "height": 900}, device_scale_factor=1.5)
        page.goto(report.as_uri())
        photograph(page, "report", "#distributions", "#again > ul > li:nth-child(5)")
        page.goto(feedback.as_uri())
        photograph(page, "feedback", "section:nth-of-type(3)", "figure")
        browser.close()


def photograph(page: Any, name: str, first: str, last: str) -> None:
    """The part of a page from one element to another, with as few colours as it needs."""
    top, bottom = page.locator(first).first.bounding_box(), page.locator(last).last.bounding_box()
    left = min(top["x"], bottom["x"]) - 24
    right = max(top["x"] + top["width"], bottom["x"] + bottom["width"]) + 24
    clip = {
        "x": left,
        "y": top["y"] - 12,
        "width": right - left,
        "height": bottom["y"] + bottom["height"] + 28 - top["y"],
    }
    file = HERE / f"{name}.png"
    page.screenshot(path=file, clip=clip, full_page=True)
    with Image.open(file) as image:
        few = image.convert("RGB").quantize(96, dither=Image.Dither.NONE)
    few.save(file, optimize=True)


def graded_class(course: Course, folder: Path) -> Path:
    """The report about a made-up class of thirty."""
    chosen = [word for name in CLASS for word in ("--assignment", name)]
    script = course.root / "scripts" / "made_up_class.py"
    size = ["--students", "30", "--seed", "1", "--output", str(folder / "class")]
    subprocess.run([sys.executable, script, *size, *chosen], cwd=course.root, check=True)
    autograder(
        course, "grade", str(folder / "class"), "--output", str(folder / "grades"), "--seed", "1"
    )
    return folder / "grades" / "index.html"


def leaking_page(course: Course, folder: Path) -> Path:
    """The feedback for a head that forgot its mask, with its pictures."""
    hand_in(folder / "leaking" / "ada" / ASSIGNMENT, leaking(course))
    grades = folder / "leaking-grades"
    autograder(
        course,
        "grade",
        str(folder / "leaking"),
        "--output",
        str(grades),
        "--seed",
        "1",
        "--pictures",
    )
    return grades / "feedback" / "ada" / f"{ASSIGNMENT}.html"


def hand_in(folder: Path, text: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "masked_heads.py").write_text(text, "utf-8")


def autograder(course: Course, *words: str) -> None:
    program = "from autograder.cli import main; main()"
    subprocess.run([sys.executable, "-c", program, *words], cwd=course.root, check=True)


DRAWINGS: dict[str, Callable[[Course], None]] = {
    "xrays": xrays,
    "road": road,
    "source": source,
    "wall": wall,
    "milliseconds": milliseconds,
    "screens": screens,
}

if __name__ == "__main__":
    main()
