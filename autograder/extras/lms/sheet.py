"""A table of a course site: read cell by cell, and filled in with all other cells, their order and the encoding kept."""

import codecs
import csv
import io
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from autograder.extras.lms.identity import plain
from autograder.records import RefusedError
from autograder.source.gate import MEGABYTE, open_regular

SHEET_BYTES = 50 * MEGABYTE
SEPARATORS = (",", ";", "\t")
LINE_ENDS = ("\r\n", "\n", "\r")
_COMPARED_LINES = 5
_SEPARATOR_LINE = re.compile(r"\s*sep=(.)[\r\n]+", re.IGNORECASE)  # for Excel
_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


class Sheet:
    """The rows of a file; `fill` changes a cell, `data` is the file with all changes.

    `rows` leaves out blank rows and what stands above the titles, such as a title of the whole
    table; `data` has them.
    """

    def __init__(self, data: bytes, name: str) -> None:
        self.name = name
        self._encoding, text = _decode(data, name)
        self._beginning, text = _without_separator_line(text)
        self._separator = self._beginning.strip()[-1:] or _separator(text)
        self._line_end = next((end for end in LINE_ENDS if end in text), "\n")
        csv.field_size_limit(SHEET_BYTES)
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=self._separator, strict=True)
        try:
            self._lines = list(reader)
        except csv.Error:
            raise RefusedError(
                f"{name} cannot be read at line {reader.line_num}; perhaps a quote is never closed."
            ) from None
        filled = [row for row in self._lines if _cells_in(row)]
        if not filled:
            raise RefusedError(f"{name} is empty.")
        titles, *self.rows = filled[_lines_above_titles(filled) :]
        self.header = list(map(str.strip, titles))

    def column(self, *names: str) -> int | None:
        """Return the index of the first of these columns that exists, ignoring case."""
        titles = list(map(plain, self.header))
        return next((titles.index(plain(name)) for name in names if plain(name) in titles), None)

    def cell(self, row: int, column: int | None) -> str:
        """Return a value without surrounding spaces; empty if the row is short or the column is missing."""
        if column is None or column >= len(self.rows[row]):
            return ""
        return self.rows[row][column].strip()

    def first_filled(self, row: int, *names: str) -> str:
        """Return the first value that is not empty among these columns of a row, in this order."""
        cells = (self.cell(row, self.column(name)) for name in names)
        return next(filter(None, cells), "")

    def fill(self, row: int, column: int, value: str) -> None:
        """Write a value to an existing cell."""
        self.rows[row][column] = value

    @property
    def data(self) -> bytes:
        text = io.StringIO(newline="")
        writer = csv.writer(text, delimiter=self._separator, lineterminator=self._line_end)
        writer.writerows(self._lines)
        return (self._beginning + text.getvalue()).encode(self._encoding)


def read_sheet(path: Path) -> Sheet:
    """Read the table at `path`; raises RefusedError if it is not a table."""
    try:
        with open_regular(path, SHEET_BYTES) as stream:
            return Sheet(stream.read(), path.name)
    except OSError as error:
        raise RefusedError(f"{path} cannot be read: {error.strerror}.") from None


def _decode(data: bytes, name: str) -> tuple[str, str]:
    encoding = next(
        (encoding for mark, encoding in _MARKS.items() if data.startswith(mark)), "utf-8"
    )
    text = _decoded(data, encoding)
    for other in ("cp1252", "latin-1"):  # of Excel on Windows, and what has a letter for every byte
        if text is None:
            encoding = other
            text = _decoded(data, encoding)
    if text is None or data.startswith(b"PK") or "\0" in text:
        raise RefusedError(
            f"{name} is a workbook or another kind of file, not a table in text; save it as CSV."
        )
    return encoding, text


def _decoded(data: bytes, encoding: str) -> str | None:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError:
        return None


def _without_separator_line(text: str) -> tuple[str, str]:
    """Split off Excel's line `sep=;`, which is empty if there is none."""
    match = _SEPARATOR_LINE.match(text)
    end = match.end() if match else 0
    return text[:end], text[end:]


def _separator(text: str) -> str:
    """Return the separator that the first lines have equally often, as a line above the titles can hold another."""
    lines = list(filter(str.strip, text.splitlines()))[:_COMPARED_LINES]
    outside = ["".join(line.split('"')[::2]) for line in lines]
    return max(SEPARATORS, key=lambda separator: _how_equally_often(separator, outside))


def _how_equally_often(separator: str, lines: Sequence[str]) -> tuple[int, int]:
    counts = Counter(line.count(separator) for line in lines if separator in line)
    return max(((lines_with_it, count) for count, lines_with_it in counts.items()), default=(0, 0))


def _lines_above_titles(rows: Sequence[Sequence[str]]) -> int:
    """Return how many of the first rows have one cell, if the next one has several: they are not the titles."""
    return next((number for number, row in enumerate(rows) if _cells_in(row) > 1), 0)


def _cells_in(row: Sequence[str]) -> int:
    return sum(bool(cell.strip()) for cell in row)
