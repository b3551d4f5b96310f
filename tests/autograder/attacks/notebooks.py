"""Attacks by notebooks: commands, metadata, outputs, invalid cells."""

# ruff: noqa: E501 (an attack on one line is one attack)

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.autograder.attacks.field import Attack

RIGHT = "def add(a, b):\n    return a + b\n"
GRADED = {
    "grade": True, "solution": True, "locked": False, "points": 9999, "grade_id": "add",
    "schema_version": 3,
}  # fmt: skip


def cell(source: Any, kind: str = "code", **others: Any) -> dict:
    return {
        "cell_type": kind, "source": source, "metadata": {}, "outputs": [], "execution_count": None,
        **others,
    }  # fmt: skip


def notebook(*cells: Any, **others: Any) -> Callable[[Path, str], None]:
    """Return a notebook whose first cell is the wrong answer."""

    def make(folder: Path, wrong: str) -> None:
        whole = {
            "nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [cell(wrong), *cells],
            **others,
        }  # fmt: skip
        (folder / "adding.ipynb").write_text(json.dumps(whole))

    return make


def text(content: str) -> Callable[[Path, str], None]:
    def make(folder: Path, wrong: str) -> None:
        (folder / "adding.ipynb").write_text(content)

    return make


def attack(name: str, tries: str, make: Callable[[Path, str], None]) -> Attack:
    return Attack(name, tries, make=make)


ATTACKS = [
    attack("points_in_metadata", "writes its points into the metadata",
           notebook(cell("x = 1", metadata={"nbgrader": GRADED}))),
    attack(
        "shell_commands",
        "runs commands of the shell",
        notebook(
            cell("!echo REACHED\n!!echo REACHED\nfiles = !ls /\nprint(files)"),
            cell("%%bash\necho REACHED"),
            cell("%%sh\necho REACHED"),
        ),
    ),
    attack(
        "the_shell_object",
        "asks IPython for its kernel, history and spaces",
        notebook(
            cell(
                "s = get_ipython()\ns.system('echo REACHED')\ns.run_line_magic('system', 'echo REACHED')\ntry:\n    print('REACHED', s.kernel, s.history_manager, s.user_ns)\nexcept AttributeError: pass"
            )
        ),
    ),
    attack(
        "doubled_keys",
        "has its cells twice, and readers differ",
        text(
            '{"cells": [], "nbformat": 4, "cells": [{"cell_type": "code", "source": "def add(a, b): return a - b"}], "cells": 7}'
        ),
    ),
    attack(
        "magic_without_end",
        "makes the reader of magics work for ever",
        notebook(
            cell("?" * 20_000),
            cell("%" * 20_000),
            cell("(" * 20_000),
            cell("\\\n" * 20_000),
            cell("!" * 20_000 + "\n" + "x = !a\n" * 3000),
        ),
    ),
]  # fmt: skip
