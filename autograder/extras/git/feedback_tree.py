"""The files of a student's feedback: a page of each assignment as Markdown and as HTML, and the pictures beside it."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from autograder.feedback.html import TEMPLATE
from autograder.feedback.markdown import as_markdown, escaped
from autograder.feedback.pages import rendered
from autograder.gradebook.final_scores import number
from autograder.submissions import folder_name

README = "README.md"
HTML = "feedback.html"
_BRANCH_ONLY = (
    "The course writes this branch and no other. "
    "Do not commit to it: feedback never replaces the work of others."
)


def feedback_files(pages: Sequence[Mapping[str, Any]], alone: bool) -> dict[str, bytes]:
    """Return the files by path. `pages` are the values of each page; the only page stands at the top if it is `alone`.

    Otherwise each has a folder, below one of its student if several students share the repository.
    """
    if alone and len(pages) == 1:
        return _page(pages[0], "", _BRANCH_ONLY)
    files: dict[str, bytes] = {}
    lines = ["# Feedback", ""]
    shared = len({values["grade"].student for values in pages}) > 1
    for values in pages:
        grade = values["grade"]
        folder = "/".join(
            map(folder_name, (grade.student, grade.assignment) if shared else (grade.assignment,))
        )
        whose = f", {escaped(values['student'])}" if shared else ""
        files |= _page(values, f"{folder}/", "")
        lines.append(
            f"- [{escaped(values['title'])}](<{quote(folder)}/{README}>){whose}: {_score(values)}"
        )
    files[README] = "\n".join([*lines, "", _BRANCH_ONLY, ""]).encode("utf-8", "replace")
    return files


def _page(values: Mapping[str, Any], folder: str, foot: str) -> dict[str, bytes]:
    page = as_markdown(values)
    text = "\n".join([page.text, *([foot, ""] if foot else [])])
    files = {
        README: text.encode("utf-8", "replace"),
        HTML: rendered(TEMPLATE, **values),
        **page.pictures,
    }
    return {f"{folder}{name}": content for name, content in files.items()}


def _score(values: Mapping[str, Any]) -> str:
    final = values["final"]
    grade = values["grade"]
    if final.excused:
        return "excused"
    if grade.status == "refused" and not final.score:
        return "not graded"
    return f"{number(final.score)} of {number(grade.max_score)} points"
