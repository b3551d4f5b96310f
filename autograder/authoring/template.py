"""The files in `templates/`, with placeholders filled in."""

from collections.abc import Mapping
from pathlib import Path

FOLDER = Path(__file__).parent / "templates"


def filled(name: str, words: Mapping[str, str] | None = None) -> str:
    """Return the template with that name, with each `@word@` replaced."""
    text = (FOLDER / f"{name}.txt").read_text(encoding="utf-8")
    for word, value in (words or {}).items():
        text = text.replace(f"@{word}@", value)
    return text
