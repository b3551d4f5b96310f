"""Draws the README's pictures from the course's own solution and one of its known mistakes.

Run it from anywhere: `python docs/images/draw.py`.
"""

import runpy
from pathlib import Path
from types import SimpleNamespace

from matplotlib.figure import Figure

from autograder.authoring.mistakes import load_mistakes
from autograder.course import load_course

HERE = Path(__file__).parent
ASSIGNMENT, LEAK = "03_masked_heads", "head_without_a_mask"


def main() -> None:
    course = load_course(HERE)
    assignment = course.assignment(ASSIGNMENT)
    right = course.solution_file(assignment).read_text("utf-8")
    leaking = next(m.source for m in load_mistakes(course, assignment) if m.id == LEAK)
    gradient_xray = runpy.run_path(str(course.pictures_file(assignment)))["gradient_xray"]
    for name, source in (("xray-right", right), ("xray-leaking", leaking)):
        save(gradient_xray(module(source)), HERE / f"{name}.png")


def module(source: str) -> SimpleNamespace:
    names: dict[str, object] = {}
    exec(compile(source, "masked_heads.py", "exec"), names)
    return SimpleNamespace(**names)


def save(figure: Figure, file: Path) -> None:
    figure.savefig(file, dpi=110, metadata={"Software": None})


if __name__ == "__main__":
    main()
