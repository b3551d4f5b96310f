"""A page for each command, made from the command itself, as its `--help` is."""

from __future__ import annotations

import inspect
from collections import defaultdict
from typing import Any

import typer
from typer.core import TyperArgument, TyperGroup

from autograder.cli import app
from book.markdown import escaped

_GROUPS = ("Students", "Instructors", "Authors")


def command_pages() -> dict[str, str | bytes]:
    """Return the pages of all commands, and their list by the people who use them."""
    group = typer.main.get_command(app)
    assert isinstance(group, TyperGroup)
    commands: dict[str, Any] = dict(group.commands)
    by_panel: dict[str, list[str]] = defaultdict(list)
    pages: dict[str, str | bytes] = {}
    for name, command in commands.items():
        by_panel[getattr(command, "rich_help_panel", None) or _GROUPS[1]].append(name)
        pages[f"commands/{name}.md"] = _page(name, command)
    lines = [
        "# Commands",
        "",
        "Every command explains itself with `--help`; these pages say the same.",
        "",
    ]
    for panel, names in by_panel.items():
        lines += [f"## {panel}", "", "| command | what it does |", "|---|---|"]
        for name in names:
            first = inspect.cleandoc(commands[name].help or "").partition("\n")[0]
            lines.append(f"| [`autograder {name}`]({name}.md) | {escaped(first)} |")
        lines.append("")
    lines += [
        "## Exit codes", "",
        "| code | meaning |", "|--:|---|",
        "| 0 | done, whatever the students' scores |",
        "| 1 | a check or an audit found something |",
        "| 2 | wrong usage, or a broken `course.yml` |",
        "| 3 | the machine failed, such as a full disk; never a score |",
        "",
        "```{toctree}", ":hidden:", "", *commands, "```", "",
    ]  # fmt: skip
    pages["commands/index.md"] = "\n".join(lines)
    return pages


def _page(name: str, command: Any) -> str:
    context = command.context_class(command, info_name=f"autograder {name}")
    usage = " ".join([f"autograder {name}", *command.collect_usage_pieces(context)])
    lines = [f"# autograder {name}", "", escaped(inspect.cleandoc(command.help or "")), ""]
    lines += ["```console", f"$ {usage}", "```", ""]
    panels: dict[str, list[str]] = defaultdict(list)
    for parameter in command.get_params(context):
        if row := _row(parameter, context):
            panel = getattr(parameter, "rich_help_panel", None)
            is_argument = isinstance(parameter, TyperArgument)
            panels[panel or ("Arguments" if is_argument else "Options")].append(row)
    for panel, rows in sorted(panels.items(), key=lambda item: (item[0] == "Advanced", item[0])):
        lines += [f"## {panel}", "", "| | |", "|---|---|", *rows, ""]
    return "\n".join(lines)


def _row(parameter: Any, context: Any) -> str:
    """Return a parameter as a row of a table; empty if `--help` does not list it."""
    record = parameter.get_help_record(context)
    if record is None:
        return ""
    names, meaning = (" ".join(text.split()) for text in record)
    return f"| `{names}` | {escaped(meaning)} |"
