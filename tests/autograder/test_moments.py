"""Times and numbers of people: what is documented is all that is accepted, with one meaning in every Python."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from typer.testing import CliRunner

from autograder.cli import app
from autograder.course.config import CourseError
from autograder.course.reading import load_course
from autograder.text import moments
from autograder.text.moments import instant, read_date_or_time, read_named_time
from autograder.text.numbers import read_number, read_whole
from tests.autograder.tiny_course import FILES

MEANT = {
    "2026-11-27": "2026-11-27",
    "2026-11-27 23:59": "2026-11-27T23:59:00",
    " 2026-11-27\u00a023:59 ": "2026-11-27T23:59:00",
    "2026-11-27T23:59:30": "2026-11-27T23:59:30",
    "2026-11-27 23:59:30.5": "2026-11-27T23:59:30.500000",
    "2026-11-27 23:59:30.123456789": "2026-11-27T23:59:30.123456",
    "2026-11-27 23:59Z": "2026-11-27T23:59:00+00:00",
    "2026-11-27 23:59 UTC": "2026-11-27T23:59:00+00:00",
    "2026-11-27 23:59+01:00": "2026-11-27T23:59:00+01:00",
    "2026-11-27 23:59:00 -0930": "2026-11-27T23:59:00-09:30",
    "2024-02-29 00:00": "2024-02-29T00:00:00",
}
REFUSED = [
    *("2026-11-27 23.59", "2026-11-27 23,59", "2026-11-27 23", "2026-11-27 2359", "2026-11-27 23:59.5"),
    *("20261127", "20261127T2359", "2026-W48-5", "2026-331", "2026-11", "26-11-27", "2026-1-5 1:00:00"),
    *("2026-11-27x23:59", "2026-11-27 24:00", "2026-11-27 23:60", "2026-11-27 23:59:60"),
    *("2025-02-29", "2026-13-01", "0001-01-01", "9999-12-31", "2026-11-27 23:59 +25:00"),
    *("2026-11-27 23:59 CET", "2026-11-27 23:59+1", "2026-11-27 23:59+01:00:30", "２０２６-11-27 23:59"),
    *("٢٠٢٦-11-27", "2026-11-27 11:59 PM", "27.11.2026", "11/27/2026", "now", "", "2026-11-27 23:59z"),
]  # fmt: skip
TABLE = """
import importlib.util, json, sys
spec = importlib.util.spec_from_file_location("moments", sys.argv[1])
moments = importlib.util.module_from_spec(spec)
spec.loader.exec_module(moments)
def read(text):
    try:
        return moments.read_date_or_time(text).isoformat()
    except ValueError:
        return None
print(json.dumps({text: read(text) for text in json.load(sys.stdin)}))
"""


def read(text: str) -> str | None:
    try:
        return read_date_or_time(text).isoformat()
    except ValueError:
        return None


@pytest.mark.parametrize("text", [*MEANT, *REFUSED])
def test_time_is_read_as_documented_or_refused(text: str) -> None:
    assert read(text) == MEANT.get(text)


def pythons() -> list[str]:
    """Return an interpreter of each other version that is installed here."""
    folder = Path.home() / ".pyenv/versions"
    installed = [*map(str, sorted(folder.glob("3.1[0-9]*/bin/python")))]
    return [python for python in installed if Path(python).parent != Path(sys.base_prefix) / "bin"]


@pytest.mark.parametrize("python", pythons(), ids=lambda python: Path(python).parents[1].name)
def test_every_python_reads_the_same(python: str) -> None:
    command = [python, "-I", "-X", "utf8", "-c", TABLE, moments.__file__]
    given = json.dumps([*MEANT, *REFUSED])
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == {**MEANT, **dict.fromkeys(REFUSED)}


@pytest.mark.parametrize(
    ("text", "universal"),
    [
        ("2026-10-25 02:10:00 CET", "01:10"),
        ("2026-10-25 02:30:00 CEST", "00:30"),
        ("2026-10-25 02:30:00.123456 Europe/Berlin", "00:30"),
        ("2026-10-25 02:30:00 +0200", "00:30"),
        ("2026-10-25 02:30:00", "02:30"),
        ("2026-10-25 02:30:00 GMT", "02:30"),
        ("2026-10-25 02:30:00 UTC", "02:30"),
        ("2026-10-25 02:30:00 EST", "07:30"),
        ("2026-10-25 02:30:00 EDT", "06:30"),
    ],
)
def test_names_of_zones_are_instants(text: str, universal: str) -> None:
    assert f"{instant(read_named_time(text)):%H:%M}" == universal


def test_short_name_is_that_of_the_courses_zone() -> None:
    text = "2026-11-27 12:00:00 CST"
    assert instant(read_named_time(text, ZoneInfo("Asia/Shanghai"))).hour == 4
    assert instant(read_named_time(text, ZoneInfo("America/Chicago"))).hour == 18
    with pytest.raises(ValueError):
        read_named_time("2026-11-27 12:00:00 Nowhere/Land")


NO_NUMBERS = ["nan", "inf", "-Infinity", "1_000", "1e3", "٣", "３", "0x10", "1.", ".5", "", "1 000"]


@pytest.mark.parametrize("text", [*NO_NUMBERS, "9" * 400])
def test_what_only_python_takes_for_a_number_is_none(text: str) -> None:
    assert (read_number(text), read_whole(text)) == (None, None)


def test_numbers_are_read() -> None:
    assert (read_number(" 2,5 "), read_number("-0.25"), read_number("+7")) == (2.5, -0.25, 7)
    assert (read_whole("007"), read_whole("-3"), read_whole("2.5")) == (7, -3, None)


COURSE = FILES["course.yml"]


def problem_of(folder: Path, text: str) -> str:
    (folder / "course.yml").write_text(text, "utf-8")
    with pytest.raises(CourseError) as caught:
        load_course(folder)
    return str(caught.value)


ODD_DUES = ["2026-11-27 23.59", "2026-11-27 2359", "2026-11-27 23:59:00 +1", "2026-1-5 1:00:00"]


@pytest.mark.parametrize("due", ODD_DUES)
def test_due_date_in_another_form_is_refused(tmp_path: Path, due: str) -> None:
    text = COURSE.replace("minutes: 10\n", f"minutes: 10\n    due: {due}\n", 1)
    sentence = problem_of(tmp_path, text)
    assert due in sentence and "`2026-11-27 23:59`" in sentence


@pytest.mark.parametrize(
    ("written", "taken"),
    [("010", "8"), ("1_0", "10"), ("1:30", "90"), ("0x1F", "31"), ("0b11", "3")],
)
def test_number_that_yaml_reads_otherwise_than_people_is_refused(
    tmp_path: Path, written: str, taken: str
) -> None:
    assert problem_of(tmp_path, COURSE.replace("minutes: 10", f"minutes: {written}", 1)) == (
        f"course.yml, line 7: `minutes` of the assignment `01_adding` is written {written}, which YAML takes for "
        f"{taken}. Write digits alone, such as 10 or 2.5."
    )


@pytest.mark.parametrize("text", ["nan", "inf", "1_0", "٣", "1e1"])
@pytest.mark.parametrize(
    "words",
    [
        ("grade", "x", "--jobs"),
        ("grade", "x", "--seed"),
        ("decide", "ada", "--give"),
        ("decide", "--pick"),
        ("similar", "x", "-a", "y", "--least"),
        ("audit", "--seeds"),
    ],
)
def test_number_of_an_option_is_written_in_digits(words: tuple[str, ...], text: str) -> None:
    result = CliRunner().invoke(app, [*words, text])
    assert result.exit_code == 2
    assert "number, such as" in " ".join(result.output.split())
