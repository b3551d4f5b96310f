"""The pages of the Python API: every public name, with its docstring and the help of its parameters."""

from __future__ import annotations

import importlib
import inspect

_MODULES = {
    "autograder": "Grading, reports and records, from Python. [](python.md) shows them at work.",
    "autograder.checks": "What the tests of a suite assert.",
    "autograder.fakes": "Models with known outputs, for tests of code that uses a model.",
    "autograder.notebook": "What the first cell of a notebook imports.",
}


def interface_pages() -> dict[str, str | bytes]:
    """Return a page for each public module."""
    pages: dict[str, str | bytes] = {
        f"api/{name}.md": _page(name, about) for name, about in _MODULES.items()
    }
    lines = [
        "# The Python API",
        "",
        "[What a version promises](../versions.md) says which of these names stay.",
        "",
    ]
    lines += ["| module | what for |", "|---|---|"]
    lines += [
        f"| [`{name}`]({name}.md) | {about.replace('(python.md)', '(../python.md)')} |"
        for name, about in _MODULES.items()
    ]
    lines += ["", "```{toctree}", ":hidden:", "", *_MODULES, "```", ""]
    pages["api/index.md"] = "\n".join(lines)
    return pages


def _page(name: str, about: str) -> str:
    module = importlib.import_module(name)
    lines = [f"# {name}", "", about.replace("(python.md)", "(../python.md)"), ""]
    lines += ["```{eval-rst}", f".. module:: {name}", ""]
    for public in public_names(name):
        value = getattr(module, public)
        kind = _kind(value)
        lines += [f".. auto{kind}:: {name}.{public}"]
        lines += ["   :members:", "   :exclude-members: forward"] if kind == "class" else []
        lines += [""]
    return "\n".join([*lines, "```", ""])


def public_names(name: str) -> list[str]:
    """Return the names that a module offers: `__all__`, or what it defines itself without an underscore."""
    module = importlib.import_module(name)
    if hasattr(module, "__all__"):
        return list(module.__all__)
    return [
        public
        for public, value in vars(module).items()
        if not public.startswith("_") and getattr(value, "__module__", "") == name
    ]


def _kind(value: object) -> str:
    if inspect.isclass(value):
        return "exception" if issubclass(value, BaseException) else "class"
    return "function" if callable(value) else "data"
