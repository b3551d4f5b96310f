"""The parameters of the API, described by the help of the command-line options that they declare."""

from __future__ import annotations

import inspect
import typing
from typing import Any

from typer.models import ArgumentInfo, OptionInfo


def add_help_of_parameters(
    app: Any, what: str, name: str, value: Any, options: Any, lines: list[str]
) -> None:
    """Append a field for each parameter whose annotation carries the help of an option."""
    if what != "function":
        return
    fields = [
        f":param {parameter}: {' '.join(text.split())}"
        for parameter, text in _helps(value).items()
        if text
    ]
    lines += ["", *fields, ""] if fields else []


def _helps(function: Any) -> dict[str, str]:
    try:
        hints = typing.get_type_hints(function, include_extras=True)
    except (NameError, TypeError):
        return {}
    described: dict[str, str] = {}
    for name in inspect.signature(function).parameters:
        for mark in getattr(hints.get(name), "__metadata__", ()):
            if isinstance(mark, OptionInfo | ArgumentInfo):
                described[name] = mark.help or ""
    return described
