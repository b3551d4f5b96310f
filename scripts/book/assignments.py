"""The assignments as a book to read: the text, the stubs, and pictures of code that is right."""

from __future__ import annotations

import hashlib
import io
import re
import runpy
from itertools import chain
from pathlib import Path
from types import SimpleNamespace

import matplotlib
import nbformat

from autograder.course.config import Assignment, Course
from autograder.feedback.gallery import load_gallery

_CALL = re.compile(r'(check|picture)\("(\w+)"\)')


def assignment_pages(course: Course, pictures: Path | None) -> dict[str, str | bytes]:
    """Return a page for each assignment and its pictures, which are kept in a folder; None draws none."""
    pages: dict[str, str | bytes] = {"assignments/index.md": _contents(course)}
    for assignment in course.assignments:
        drawn = _drawn(course, assignment, pictures) if pictures else {}
        for name, (image, _) in drawn.items():
            pages[f"assignments/{name}"] = image
        pages[f"assignments/{assignment.name}.md"] = _page(course, assignment, drawn)
    return pages


def _contents(course: Course) -> str:
    rows = [
        f"| [{a.name[:2]} · {a.title}]({a.name}.md) | {'; '.join(part.title for part in a.parts)} "
        f"| {a.minutes} | {a.points:g} |"
        for a in course.assignments
    ]
    minutes = sum(a.minutes or 0 for a in course.assignments)
    points = sum(a.points for a in course.assignments)
    return "\n".join(
        [
            "# The assignments",
            "",
            "You can read the assignments here; you work on them in an editor or a notebook, where your code is checked.",
            "[Teaching it](../teaching.md) lists what a student can do after each, and "
            "[Topics of the course](../students.md#topics-of-the-course) which part teaches what.",
            "",
            "| assignment | parts | minutes | points |",
            "|---|---|--:|--:|",
            *rows,
            f"| all | | {minutes} | {points:g} |",
            "",
            "```{toctree}",
            ":hidden:",
            "",
            *(a.name for a in course.assignments),
            "```",
            "",
        ]
    )


def _page(
    course: Course, assignment: Assignment, drawn: dict[str, tuple[bytes, tuple[str, str]]]
) -> str:
    """Return the cells of the notebook that students receive; the first code cell only sets it up."""
    notebook = course.release_folder(assignment) / f"{assignment.stem}.ipynb"
    cells = nbformat.read(notebook, as_version=4).cells
    blocks: list[str] = []
    code_cells = 0
    for cell in cells:
        code_cells += cell.cell_type == "code"
        if cell.cell_type == "markdown":
            blocks.append(cell.source)
        elif call := _CALL.fullmatch(cell.source):
            blocks.append(_in_place_of(call[1], call[2], assignment, drawn))
        elif code_cells > 1:
            blocks.append(f"```python\n{cell.source}\n```")
    facts = f"*{assignment.minutes} minutes · {assignment.points:g} points · `{assignment.name}`*"
    title, _, text = "\n\n".join(block for block in blocks if block).partition("\n")
    return f"{title}\n\n{facts}\n{text}\n"


def _in_place_of(
    function: str,
    part: str,
    assignment: Assignment,
    drawn: dict[str, tuple[bytes, tuple[str, str]]],
) -> str:
    if function == "check":
        points = assignment.part(part).points
        sentence = f'`check("{part}")` runs the visible tests of this part.'
        worth = f"With the hidden tests, it is worth {points:g} points."
        return f":::{{admonition}} Check\n:class: tip\n{sentence} {worth}\n:::"
    figures = [
        f"```{{figure}} {name}\n:alt: {title}\n\n{caption}\n```"
        for name, (_, (title, caption)) in drawn.items()
        if name.startswith(f"{assignment.name}-{part}-")
    ]
    return "\n\n".join(figures)


def _drawn(
    course: Course, assignment: Assignment, folder: Path
) -> dict[str, tuple[bytes, tuple[str, str]]]:
    """Return the pictures of the solution with their titles and captions, drawn where one of its files is new."""
    file = course.pictures_file(assignment)
    if not file.is_file():
        return {}
    solution = course.solution_file(assignment)
    digest = hashlib.sha256(file.read_bytes() + solution.read_bytes()).hexdigest()[:16]
    folder = folder / f"{assignment.name}-{digest}"
    student: SimpleNamespace | None = None
    drawn: dict[str, tuple[bytes, tuple[str, str]]] = {}
    for function in chain.from_iterable(load_gallery(file).values()):
        name = f"{assignment.name}-{function.part}-{function.name.replace('_', '-')}.png"
        kept = folder / name
        if not kept.is_file():
            student = student or SimpleNamespace(**runpy.run_path(str(solution)))
            kept.parent.mkdir(parents=True, exist_ok=True)
            figure, _ = function.drawn(student)
            kept.write_bytes(_image(figure))
        drawn[name] = kept.read_bytes(), (function.title, function.look_for)
    return drawn


def _image(figure: matplotlib.figure.Figure) -> bytes:
    image = io.BytesIO()
    figure.savefig(
        image,
        format="png",
        dpi=100,
        facecolor="white",
        bbox_inches="tight",
        metadata={"Software": None},
    )
    return image.getvalue()
