"""The files of a student's feedback: a page of each assignment as Markdown and as HTML, and the pictures beside it."""

from collections.abc import Sequence
from urllib.parse import quote

from autograder.feedback.html import as_html
from autograder.feedback.markdown import as_markdown, escaped
from autograder.feedback.record import PageRecord
from autograder.gradebook.final_scores import number
from autograder.text.names import folder_name

README = "README.md"
HTML = "feedback.html"
_BRANCH_ONLY = (
    "The course writes this branch and no other. "
    "Do not commit to it: feedback never replaces the work of others."
)


def feedback_files(pages: Sequence[PageRecord], alone: bool) -> dict[str, bytes]:
    """Return the files by path. The only page stands at the top if it is `alone`.

    Otherwise each has a folder, below one of its student if several students share the repository.
    """
    if alone and len(pages) == 1:
        return _page(pages[0], "", _BRANCH_ONLY)
    files: dict[str, bytes] = {}
    lines = ["# Feedback", ""]
    shared = len({page.key[0] for page in pages}) > 1
    for page in pages:
        folder = "/".join(map(folder_name, page.key if shared else page.key[1:]))
        whose = f", {escaped(page.student)}" if shared else ""
        files |= _page(page, f"{folder}/", "")
        lines.append(
            f"- [{escaped(page.title)}](<{quote(folder)}/{README}>){whose}: {_score(page)}"
        )
    files[README] = "\n".join([*lines, "", _BRANCH_ONLY, ""]).encode("utf-8", "replace")
    return files


def _page(page: PageRecord, folder: str, foot: str) -> dict[str, bytes]:
    shown = as_markdown(page)
    text = "\n".join([shown.text, *([foot, ""] if foot else [])])
    files = {README: text.encode("utf-8", "replace"), HTML: as_html(page), **shown.pictures}
    return {f"{folder}{name}": content for name, content in files.items()}


def _score(page: PageRecord) -> str:
    if page.standing == "excused":
        return "excused"
    if page.standing == "refused":
        return "not graded"
    return f"{number(page.score)} of {number(page.max_score)} points"
