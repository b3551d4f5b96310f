"""The index of error messages: each sentence with which a command can end, read from the engine's text."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from book.markdown import escaped

_ERRORS = {"CourseError": 2, "RefusedError": 2, "BadParameter": 2, "InfrastructureError": 3}
# the page about what a room does, by the beginning of its modules' paths
_PAGES = {
    "extras/git": "git.md",
    "extras/lms": "exports.md",
    "extras/cluster": "cluster.md",
    "extras/similar": "grading.md#similar-submissions",
    "extras/sheets": "conversations.md",
    "nbgrader": "nbgrader.md",
    "selfcheck": "students.md",
    "notebook": "students.md",
    "authoring": "authoring.md",
    "course": "assignment-files.md",
    "suite": "assignment-files.md",
    "walls": "security.md",
    "bridge": "security.md",
    "installation": "students.md",
}
_ELSE = "grading.md"


class Message(NamedTuple):
    """A sentence with … in place of what it names, the exit code, and the page about it."""

    text: str
    code: int
    page: str


def messages_page(engine: Path) -> dict[str, str | bytes]:
    """Return the page with all messages, by the page that explains what they are about."""
    lines = [
        "# Error messages",
        "",
        "Each sentence with which a command stops, with … where it names something of yours, beside the exit code. "
        "A message says what was wrong, where, and what to do; the page in the heading says more. "
        "Search this site for the first words of a message.",
        "",
    ]
    found = sorted(set(messages(engine)), key=lambda message: (message.page, sort_key(message)))
    page = ""
    for message in found:
        if message.page != page:
            page = message.page
            name = page.partition("#")[0].removesuffix(".md")
            lines += [
                "",
                f"## {name.replace('-', ' ').capitalize()}",
                "",
                f"[More about this]({page})",
                "",
            ]
            lines += ["| message | exit code |", "|---|--:|"]
        lines.append(f"| {escaped(message.text)} | {message.code} |")
    return {"messages.md": "\n".join([*lines, ""])}


def sort_key(message: Message) -> str:
    """Return what a person looks for: the message from its first word on."""
    return re.sub(r"^\W+", "", message.text).casefold()


def messages(engine: Path) -> Iterator[Message]:
    """Yield the messages of all errors that the engine raises with a sentence of its own."""
    for file in sorted(engine.rglob("*.py")):
        inside = file.relative_to(engine).as_posix()
        page = next((page for room, page in _PAGES.items() if inside.startswith(room)), _ELSE)
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
                name = ast.unparse(node.exc.func).rpartition(".")[2]
                text = _sentence(node.exc.args[0]) if node.exc.args else ""
                if name in _ERRORS and re.search(r"[a-z]{3}", text):
                    yield Message(" ".join(text.split()), _ERRORS[name], page)


def _sentence(node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(_sentence(piece) for piece in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _sentence(node.left) + _sentence(node.right)
    return "…"
