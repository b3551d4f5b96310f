"""A table of a course site: read cell by cell, and filled in with all other cells, their order and the encoding kept."""

import codecs
import csv
import io
from pathlib import Path
from typing import Any

from autograder.records import RefusedError
from autograder.source.gate import MEGABYTE, open_regular
from autograder.text.tables import read_table

SHEET_BYTES = 50 * MEGABYTE
SEPARATORS = (",", ";", "\t")
LINE_ENDS = ("\r\n", "\n", "\r")
_MARKS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}


class Sheet:
    """The rows of a file; `fill` changes a cell, `data` is the file with all changes."""

    def __init__(self, data: bytes, name: str) -> None:
        self.name = name
        self._encoding, text = _decode(data, name)
        self._separator = _separator(text)
        self._line_end = next((end for end in LINE_ENDS if end in text), "\n")
        csv.field_size_limit(SHEET_BYTES)
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=self._separator, strict=True)
        try:
            rows = [row for row in reader if any(map(str.strip, row))]
        except csv.Error:
            raise RefusedError(
                f"{name} cannot be read at line {reader.line_num}; perhaps a quote is never closed."
            ) from None
        if not rows:
            raise RefusedError(f"{name} is empty.")
        self._titles, *self.rows = rows
        self.header = list(map(str.strip, self._titles))

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
        self.rows[row][column] = value

    @property
    def data(self) -> bytes:
        text = io.StringIO(newline="")
        writer = csv.writer(text, delimiter=self._separator, lineterminator=self._line_end)
        writer.writerows([self._titles, *self.rows])
        return text.getvalue().encode(self._encoding)


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


def _decode(data: bytes, name: str) -> tuple[str, str]:
    encoding = next((encoding for mark, encoding in _MARKS.items() if data.startswith(mark)), "utf-8")
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        encoding, text = "latin-1", data.decode("latin-1")
    if data.startswith(b"PK") or "\0" in text:
        raise RefusedError(f"{name} is a workbook or another kind of file, not a table in text; save it as CSV.")
    return encoding, text


def _separator(text: str) -> str:
    outside = "".join(text.lstrip("\r\n").partition("\n")[0].split('"')[::2])
    return max(SEPARATORS, key=outside.count)
