"""Text that is no Markdown, written into Markdown."""

from __future__ import annotations

import re


def escaped(text: str) -> str:
    """Return a text as Markdown that shows the same; what stands between backticks stays code."""
    pieces = re.split(r"(`[^`\n]+`)", text)
    return "".join(
        piece.replace("|", r"\|") if index % 2 else re.sub(r"([\\`*_\[\]<>$|{}#~])", r"\\\1", piece)
        for index, piece in enumerate(pieces)
    )
