"""The text of a student's file, or a sentence about what the file really is."""

import codecs
import json
import re
from typing import Any

from autograder.records import RefusedError
from autograder.source.gate import FILE_BYTES, too_large
from autograder.source.text import notebook_cells

NOTEBOOK = ".ipynb"
MOST_BRACKETS = 400_000  # of a large notebook's lists and dicts: outputs are mostly long texts
MOST_COMMAS = 2_000_000

_AGAIN = "Hand in the file that you wrote."
_BEGINNINGS = (
    (b"%PDF-", "a PDF document"),
    (b"PK\x03\x04", "a zip archive"),
    (b"PK\x05\x06", "a zip archive"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"Rar!", "a rar archive"),
    (b"BZh", "a bzip2 archive"),
    (b"\xfd7zXZ", "an xz archive"),
    (b"\x89PNG", "a picture"),
    (b"\xff\xd8\xff", "a picture"),
    (b"GIF8", "a picture"),
    (b"{\\rtf", "a document of a word processor"),
    (b"\xd0\xcf\x11\xe0", "a document of Word or another office program"),
    (b"bplist00", "a property list of macOS"),
    (b"\x7fELF", "a program"),
    (b"MZ\x90", "a program"),
)
_OFFICE = re.compile(rb"\[Content_Types\]\.xml|word/|xl/|ppt/|mimetypeapplication/vnd\.oasis")
_PAGE = re.compile(
    rb"\s*(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*)?<(?:!doctype\s+html|html|head|body)\b", re.I | re.S
)
_POINTER = b"version https://git-lfs.github.com/spec/"
# of a conflict, each at the beginning of a line, in this order
_MARKS = ("<<<<<<<", "=======", ">>>>>>>")
_PYTHON = re.compile(
    r"^(?:from [\w.]+ import |import \w|def \w+\(|class \w|# ?%%|#!|#.*coding)", re.M
)
_CODING = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
_ONE_LANGUAGE = re.compile(
    r"iso8859-\d+|cp\d+|koi8-\w+|mac-\w+|gb\w+|big5\w*|euc_\w+|shift_jis\w*|ascii"
)


def source_text(name: str, data: bytes) -> str:
    """Return the text of a `.py` or `.ipynb`; raises RefusedError with what the file is in place of that.

    `name` is the file's as messages show it, whose ending tells which of the two it should be.
    A notebook that is too large is returned without its stored outputs.
    """
    is_notebook = name.lower().endswith(NOTEBOOK)
    if kind := _kind(data):
        raise RefusedError(f"{name} is {kind}, not {_expected(is_notebook)}. {_AGAIN}")
    text = _decoded(name, data, is_notebook)
    if "\0" in text:
        raise RefusedError(f"{name} is not a text file: it contains a zero byte.")
    if is_notebook:
        return _notebook(name, text, data)
    _refuse_conflict(name, text)
    if text.lstrip()[:1] == "{" and _is_notebook(text):
        raise RefusedError(
            f"{name} is a notebook, not Python: rename it to {name[: -len('.py')]}{NOTEBOOK}."
        )
    return text


def _kind(data: bytes) -> str:
    """Return what a file is that is neither Python nor a notebook; empty if it can be one."""
    beginning = data[:4096].removeprefix(codecs.BOM_UTF8)
    if beginning.startswith(_POINTER):
        return "a pointer of Git LFS, without the content (`git lfs pull` fetches it)"
    if _PAGE.match(beginning):
        return "a web page, perhaps of a download button or a sign-in"
    for mark, kind in _BEGINNINGS:
        if beginning.startswith(mark):
            is_office = mark.startswith(b"PK") and _OFFICE.search(beginning)
            return "a document of Word or another office program" if is_office else kind
    return ""


def _expected(is_notebook: bool) -> str:
    return "a notebook" if is_notebook else "Python text"


def _decoded(name: str, data: bytes, is_notebook: bool) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        if not is_notebook and (named := _named_coding(data)):
            return data.decode(named, "replace")
        raise RefusedError(
            f"{name} is not UTF-8 text (byte {error.start + 1}); save it as UTF-8."
        ) from None


def _named_coding(data: bytes) -> str:
    """Return the coding of an 8-bit text that a comment in its first two lines names, as Python reads it."""
    for line in data.split(b"\n", 2)[:2]:
        if match := _CODING.match(line):
            try:
                coding = codecs.lookup(match[1].decode("ascii")).name
            except (LookupError, UnicodeDecodeError):
                return ""
            return coding if _ONE_LANGUAGE.fullmatch(coding) else ""
    return ""


def _notebook(name: str, text: str, data: bytes) -> str:
    if len(data) > FILE_BYTES and _is_complex(data):
        raise RefusedError(too_large(name, FILE_BYTES))
    try:
        notebook_cells(text)
    except ValueError:
        _refuse_conflict(name, text, least=1)
        if text.lstrip()[:1] not in ("{", "[") and _PYTHON.search(text):
            renamed = f"{name[: -len(NOTEBOOK)]}.py"
            raise RefusedError(
                f"{name} is Python text, not a notebook: rename it to {renamed}."
            ) from None
        raise RefusedError(f"{name} is not a readable notebook. Was it saved completely?") from None
    if len(data) <= FILE_BYTES:
        return text
    text = _without_outputs(json.loads(text))
    if len(text.encode("utf-8", "replace")) > FILE_BYTES:
        raise RefusedError(too_large(name, FILE_BYTES))
    return text


def _is_complex(data: bytes) -> bool:
    """Whether reading a notebook would need far more memory than the file has."""
    return data.count(b"{") + data.count(b"[") > MOST_BRACKETS or data.count(b",") > MOST_COMMAS


def _without_outputs(notebook: dict[str, Any]) -> str:
    sheets = notebook.get("worksheets")
    holders = [notebook, *(sheets if isinstance(sheets, list) else [])]
    for holder in holders:
        cells = holder.get("cells") if isinstance(holder, dict) else None
        for cell in cells if isinstance(cells, list) else []:
            if isinstance(cell, dict) and "outputs" in cell:
                cell["outputs"] = []
    return json.dumps(notebook, ensure_ascii=False, indent=1)


def _is_notebook(text: str) -> bool:
    try:
        notebook_cells(text)
    except ValueError:
        return False
    return True


def _refuse_conflict(name: str, text: str, least: int = len(_MARKS)) -> None:
    """Raise RefusedError if the text holds the marks of a merge conflict, or at `least` so many of them."""
    first = 0
    marks = 0
    for number, line in enumerate(text.split("\n"), start=1):
        mark = _MARKS[marks]
        stripped = line.strip()
        if stripped == mark or (stripped.startswith(f"{mark} ") and mark != "======="):
            first = first or number
            marks = marks + 1
        if marks == least:
            raise RefusedError(
                f"{name} holds the marks of a merge conflict (line {first}): "
                "keep one version, and delete the marks."
            )
