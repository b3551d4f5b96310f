"""A table as a course site lets an instructor download it: read cell by cell, and filled without touching the rest.

What is not filled keeps its bytes: byte-order mark, quotes, line ends, separators, order of columns.
"""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from pathlib import Path

from autograder.records import RefusedError
from autograder.source.gate import MEGABYTE, open_regular
from autograder.submissions.collected import CollectError

SHEET_BYTES = 50 * MEGABYTE
SEPARATORS = (",", ";", "\t")
_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))


@dataclass(frozen=True)
class SheetCell:
    """A cell's value, and where it stands in the text, quotes and all."""

    value: str
    start: int
    end: int
    quoted: bool


class Sheet:
    """The rows of a file; `fill` changes a cell, `data` is the file with all that was filled."""

    def __init__(self, data: bytes, name: str) -> None:
        self.name = name
        self._mark, self._encoding, self._text = _decode(data, name)
        self.separator = _separator(self._text)
        self._cells = [row for row in _Reader(self._text, self.separator, name).rows() if not _blank(row)]
        self._filled: dict[tuple[int, int], str] = {}
        if not self._cells:
            raise CollectError(f"{name} is empty.")
        self.header = [cell.value.strip() for cell in self._cells[0]]
        self.rows = [[cell.value for cell in row] for row in self._cells[1:]]

    def column(self, *names: str) -> int | None:
        """The number of the first of these columns that is there, whatever its capitals."""
        lower = [title.casefold() for title in self.header]
        return next((lower.index(name.casefold()) for name in names if name.casefold() in lower), None)

    def cell(self, row: int, column: int | None) -> str:
        """A value without the spaces around it; empty where the row is short or there is no such column."""
        if column is None or column >= len(self.rows[row]):
            return ""
        return self.rows[row][column].strip()

    def fill(self, row: int, column: int, value: str) -> None:
        """Put a value into a cell that is there."""
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


def read_sheet(path: Path) -> Sheet:
    """The sheet at `path`; raises CollectError when it is no table."""
    try:
        with open_regular(path, SHEET_BYTES) as stream:
            return Sheet(stream.read(), path.name)
    except CollectError:
        raise
    except RefusedError as refusal:
        raise CollectError(str(refusal)) from None
    except OSError as error:
        raise CollectError(f"{path} cannot be read: {error.strerror}.") from None


def _decode(data: bytes, name: str) -> tuple[bytes, str, str]:
    """The byte-order mark, the encoding and the text. What is not UTF-8 is taken letter by letter."""
    if data.startswith(b"PK"):
        raise CollectError(f"{name} is a workbook or an archive, not a table; save it as CSV.")
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            try:
                return mark, encoding, data[len(mark) :].decode(encoding)
            except UnicodeDecodeError:
                raise CollectError(f"{name} is broken: its letters are not {encoding}.") from None
    if b"\0" in data:
        raise CollectError(f"{name} is not a text; save it as CSV.")
    try:
        return b"", "utf-8", data.decode("utf-8")
    except UnicodeDecodeError:
        return b"", "latin-1", data.decode("latin-1")


def _separator(text: str) -> str:
    """What stands most often in the first line, outside quotes."""
    outside = "".join(text.lstrip("\r\n").partition("\n")[0].split('"')[::2])
    return max(SEPARATORS, key=outside.count)


def _blank(row: list[SheetCell]) -> bool:
    return not any(cell.value.strip() for cell in row)


class _Reader:
    """Reads a table letter by letter, because the standard library forgets where a cell stood."""

    def __init__(self, text: str, separator: str, name: str) -> None:
        self._text, self._separator, self._name = text, separator, name
        self._at = 0

    def rows(self) -> list[list[SheetCell]]:
        rows: list[list[SheetCell]] = []
        while self._at < len(self._text):
            row = [self._cell()]
            while self._text[self._at : self._at + 1] == self._separator:
                self._at += 1
                row.append(self._cell())
            rows.append(row)
            self._at += 2 if self._text.startswith("\r\n", self._at) else 1
        return rows

    def _cell(self) -> SheetCell:
        start = self._at
        quoted = self._text.startswith('"', start)
        value = self._quoted() if quoted else ""
        ends = (self._separator, "\r", "\n")
        rest = self._at
        while self._at < len(self._text) and self._text[self._at] not in ends:
            self._at += 1
        return SheetCell(value + self._text[rest : self._at], start, self._at, quoted)

    def _quoted(self) -> str:
        """The value between quotes, in which a doubled quote is a quote."""
        pieces, at = [], self._at + 1
        while True:
            end = self._text.find('"', at)
            if end < 0:
                line = self._text.count("\n", 0, self._at) + 1
                raise CollectError(f"{self._name}: a quote that opens in line {line} is never closed.")
            pieces.append(self._text[at:end])
            if not self._text.startswith('"', end + 1):
                self._at = end + 1
                return '"'.join(pieces)
            at = end + 2
