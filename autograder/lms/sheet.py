"""A table of a course site: read cell by cell, and filled in without changes to any other byte of the file."""

import codecs
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autograder.records import RefusedError
from autograder.source.gate import MEGABYTE, open_regular
from autograder.text.tables import read_table

SHEET_BYTES = 50 * MEGABYTE
SEPARATORS = (",", ";", "\t")
_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))


@dataclass(frozen=True)
class SheetCell:
    """A cell's value and its position in the text, including quotes."""

    value: str
    start: int
    end: int
    quoted: bool


class Sheet:
    """The rows of a file; `fill` changes a cell, `data` is the file with all changes."""

    def __init__(self, data: bytes, name: str) -> None:
        self.name = name
        self._mark, self._encoding, self._text = _decode(data, name)
        self.separator = _separator(self._text)
        self._cells = _rows(self._text, self.separator, name)
        self._filled: dict[tuple[int, int], str] = {}
        if not self._cells:
            raise RefusedError(f"{name} is empty.")
        self.header = [cell.value.strip() for cell in self._cells[0]]
        self.rows = [[cell.value for cell in row] for row in self._cells[1:]]

    def column(self, *names: str) -> int | None:
        """Return the index of the first of these columns that exists, ignoring case."""
        lower = [title.casefold() for title in self.header]
        return next((lower.index(name.casefold()) for name in names if name.casefold() in lower), None)

    def cell(self, row: int, column: int | None) -> str:
        """Return a value without surrounding spaces; empty if the row is short or the column is missing."""
        if column is None or column >= len(self.rows[row]):
            return ""
        return self.rows[row][column].strip()

    def fill(self, row: int, column: int, value: str) -> None:
        """Write a value to an existing cell."""
        self._filled[row + 1, column] = value

    @property
    def data(self) -> bytes:
        pieces, at = [], 0
        for (row, column), value in sorted(self._filled.items()):
            cell = self._cells[row][column]
            pieces += [self._text[at : cell.start], self._written(value, cell.quoted)]
            at = cell.end
        text = "".join([*pieces, self._text[at:]])
        return self._mark + text.encode(self._encoding)

    def _written(self, value: str, quoted: bool) -> str:
        if quoted or any(letter in value for letter in (self.separator, '"', "\n", "\r")):
            return '"' + value.replace('"', '""') + '"'
        return value


def titles(site: str) -> Any:
    """Return the titles of columns in the tables of a site, by their meaning, from `columns.yml`."""
    return read_table(__file__, "columns.yml")[site]


def read_sheet(path: Path) -> Sheet:
    """Read the table at `path`; raises RefusedError if it is not a table."""
    try:
        with open_regular(path, SHEET_BYTES) as stream:
            return Sheet(stream.read(), path.name)
    except OSError as error:
        raise RefusedError(f"{path} cannot be read: {error.strerror}.") from None


def _decode(data: bytes, name: str) -> tuple[bytes, str, str]:
    """Return the byte-order mark, the encoding and the text; data that is not UTF-8 is decoded byte by byte."""
    if data.startswith(b"PK"):
        raise RefusedError(f"{name} is a workbook or an archive, not a table; save it as CSV.")
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            try:
                return mark, encoding, data[len(mark) :].decode(encoding)
            except UnicodeDecodeError:
                raise RefusedError(f"{name} is broken: its letters are not {encoding}.") from None
    if b"\0" in data:
        raise RefusedError(f"{name} is not a text; save it as CSV.")
    try:
        return b"", "utf-8", data.decode("utf-8")
    except UnicodeDecodeError:
        return b"", "latin-1", data.decode("latin-1")


def _separator(text: str) -> str:
    """Return the most frequent separator in the first line, outside quotes."""
    outside = "".join(text.lstrip("\r\n").partition("\n")[0].split('"')[::2])
    return max(SEPARATORS, key=outside.count)


def _rows(text: str, separator: str, name: str) -> list[list[SheetCell]]:
    """Parse CSV with the position of each cell, which the standard library does not provide."""
    cell = re.compile(rf'(?P<quoted>"(?P<inner>[^"]*(?:""[^"]*)*)"(?!"))?(?P<rest>[^{separator}\r\n]*)')
    rows: list[list[SheetCell]] = []
    row: list[SheetCell] = []
    at = 0
    while at < len(text) or row:
        match = cell.match(text, at)
        assert match is not None  # also an empty cell matches
        quoted, end = match["quoted"] is not None, match.end()
        if not quoted and text.startswith('"', at):
            line = text.count("\n", 0, at) + 1
            raise RefusedError(f"{name}: a quote that opens in line {line} is never closed.")
        row.append(SheetCell((match["inner"] or "").replace('""', '"') + match["rest"], at, end, quoted))
        at = end + 1
        if not text.startswith(separator, end):
            rows.append(row)
            row, at = [], end + (2 if text.startswith("\r\n", end) else 1)
    return [row for row in rows if any(cell.value.strip() for cell in row)]
