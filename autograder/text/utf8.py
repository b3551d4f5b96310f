"""Reading texts."""

from collections.abc import Callable
from pathlib import Path


def read_utf8(
    file: Path, label: str, problem: Callable[[str], Exception], missing: str = ""
) -> str:
    """Read a UTF-8 text, without a byte-order mark; raises `problem` with a sentence if that fails."""
    try:
        return file.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        sentence = f"{label} is not UTF-8 text (byte {error.start + 1}); save it as UTF-8."
    except OSError as error:
        sentence = (
            missing
            if missing and not file.exists()
            else f"{file} cannot be read: {error.strerror}."
        )
    raise problem(sentence)
