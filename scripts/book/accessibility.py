"""The table of WCAG 2.2: which criterion which browser test proves, and what nothing proves."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path
from typing import Any

import yaml

from book.guides import with_links_of_the_site

CRITERIA = Path(__file__).with_name("criteria.yml")
_TESTS = Path("tests/autograder/browser")
_PAGE = Path("docs/accessibility.md")
_PLACE = "<!-- the table of criteria -->"


def accessibility_page(root: Path) -> dict[str, str | bytes]:
    """Return the page with the statement and the table, which stands in the place of a comment."""
    text = with_links_of_the_site(root / _PAGE, root)
    before, mark, after = text.partition(_PLACE)
    assert mark, f"{_PAGE} has no place for the table"
    return {"accessibility.md": f"{before}{criteria_table(root)}{after}"}


def criteria_table(root: Path) -> str:
    """Return a row for each criterion, and above it how many are proven, cannot apply, or are open."""
    proofs = proofs_of(root)
    rows: list[str] = []
    states: dict[str, int] = defaultdict(int)
    for criterion in criteria():
        number = criterion["number"]
        if tests := proofs.get(number):
            state, why = "tested", ", ".join(f"`{test}`" for test in tests)
        elif reason := criterion.get("without"):
            state, why = "does not apply", reason
        else:
            state, why = "not proven", "no test"
        states[state] += 1
        rows.append(f"| {number} | {criterion['name']} | {criterion['level']} | {state} | {why} |")
    counts = ", ".join(f"{count} {state}" for state, count in states.items())
    head = ["| criterion | name | level | state | test or reason |", "|---|---|---|---|---|"]
    return "\n".join([f"Of {len(rows)} criteria: {counts}.", "", *head, *rows])


def criteria() -> list[dict[str, Any]]:
    """Return the success criteria of levels A and AA."""
    found: list[dict[str, Any]] = yaml.safe_load(CRITERIA.read_text("utf-8"))
    return found


def proofs_of(root: Path) -> dict[str, list[str]]:
    """Return the browser tests marked `@pytest.mark.wcag("1.4.3")`, by criterion."""
    proofs: dict[str, list[str]] = defaultdict(list)
    for file in sorted((root / _TESTS).glob("test_*.py")):
        functions = [
            node
            for node in ast.parse(file.read_text("utf-8")).body
            if isinstance(node, ast.FunctionDef)
        ]
        for function in functions:
            for decorator in function.decorator_list:
                if (
                    isinstance(decorator, ast.Call)
                    and ast.unparse(decorator.func) == "pytest.mark.wcag"
                ):
                    for number in map(ast.literal_eval, decorator.args):
                        proofs[number].append(function.name)
    return proofs
