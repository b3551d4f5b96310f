"""Printing on consoles whose encoding lacks some characters, as cp1252 does on Windows: `#` in place of a bar's block."""

import codecs
from typing import Any

HANDLER = "autograder.replacements"
REPLACEMENTS = {
    **{"█": "#", "▣": "#", "░": ".", "━": "-", "╸": "-", "╺": "-", "─": "-", "│": "|"},
    **{"✓": "+", "✗": "x", "≈": "~", "○": "o", "●": "*", "·": ".", "•": "*", "→": ">", "⏱": "!"},
    **{"“": '"', "”": '"', "‘": "'", "’": "'", "–": "-", "—": "-", "−": "-", "×": "x", "…": "."},
}


def print_replacements(stream: Any) -> None:
    """Let a text stream print replacements, and question marks for what has none, instead of failing."""
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(errors=HANDLER)


def encodable(text: str, stream: Any) -> str:
    """Return the text with replacements for the characters that the stream's encoding lacks."""
    encoding = encoding_of(stream)
    return text.encode(encoding, HANDLER).decode(encoding)


def encoding_of(stream: Any) -> str:
    return getattr(stream, "encoding", None) or "utf-8"


def _replace(error: UnicodeError) -> tuple[str, int]:
    """Handle the characters that cannot be encoded; each is replaced by one character, so that columns fit."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    return "".join(REPLACEMENTS.get(character, "?") for character in lacking), error.end


codecs.register_error(HANDLER, _replace)
