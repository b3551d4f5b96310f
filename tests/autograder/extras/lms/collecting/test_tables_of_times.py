"""Times of submissions from a table: the sites' own worksheets, any known id, and formats of many languages."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from autograder.extras.lms.collecting.times import read_moment
from autograder.records import RefusedError
from autograder.submissions.collected import read_collected
from tests.autograder.extras.lms.collecting.downloads import CANVAS, MOODLE, NAME, known

WORKSHEET = """\
Identifier,"Full name","Email address",Status,Grade,"Maximum grade","Last modified (submission)","Last modified (grade)"
"Participant 657831","Ada Lovelace",ada@example.org,Submitted,,10.00,"Friday, 27 November 2026, 11:58 PM",-
"Participant 657832","Grace Hopper",grace@example.org,Submitted,,10.00,"Saturday, 28 November 2026, 12:05 AM",-
"Participant 657833","Élodie du Châtelet",elodie@example.org,Submitted,,10.00,"Sunday, 29 November 2026, 9:00 AM",-
"Participant 657834","Alan Turing",alan@example.org,Submitted,,10.00,-,-
"""


@pytest.fixture
def table(tmp_path: Path) -> Callable[[str], Path]:
    def write(text: str) -> Path:
        (tmp_path / "times.csv").write_text(text, "utf-8")
        return tmp_path / "times.csv"

    return write


def when(folder: Path) -> dict[str, str | None]:
    return {student: one.submitted_at for student, one in known(folder).items()}


def test_moodle_worksheet_provides_submission_times(packed, gather, table, tmp_path):
    report = gather(packed("adding.zip", MOODLE), times=table(WORKSHEET))
    assert when(tmp_path / "submitted") == {
        "657831": "2026-11-27T23:58:00+00:00",
        "657832": "2026-11-28T00:05:00+00:00",
        "657833": "2026-11-29T09:00:00+00:00",
        **dict.fromkeys(("657834", "657835", "657836", "657837")),
    }
    assert report.odd[-1] == (
        "times.csv has no time, or several times, for: Alan Turing, Barbara Liskov, Donald Knuth, Participant."
    )


@pytest.mark.parametrize(
    "key", ["1002", "hoppergrace", '"Hopper, Grace"', "gh", "grace@example.org"]
)
def test_times_are_matched_by_any_known_id(packed, gather, roster, table, tmp_path, key):
    people = roster("student,name,email,canvas\ngh,Grace Hopper,grace@example.org,1002\n")
    archive = packed("adding.zip", {"hoppergrace_LATE_1002_5002_adding.py": "x\n"})
    times = table(f"student,submitted_at\n{key},2026-11-28T00:05:00+01:00\n")
    assert not gather(archive, roster=people, times=times).odd
    assert when(tmp_path / "submitted") == {"gh": "2026-11-28T00:05:00+01:00"}


def test_times_apply_to_one_assignment_or_name_it(packed, gather, table, tmp_path):
    files = {"lovelaceada_1001_1_adding.py": "x\n", "lovelaceada_1001_2_many_heads.py": "x\n"}
    archive = packed("submissions.zip", files)
    with pytest.raises(RefusedError, match="does not say for which assignment"):
        gather(archive, times=table("student,submitted_at\n1001,2026-11-28 00:05\n"))
    assert not (tmp_path / "submitted").exists()
    rows = "1001,adding,2026-11-28 00:05\n1001,02_many_heads,2026-11-29\n"
    gather(archive, times=table(f"student,assignment,submitted_at\n{rows}"))
    found = read_collected(tmp_path / "submitted")
    assert {name: one.submitted_at for (_, name), one in found.items()} == {
        NAME: "2026-11-28T00:05:00+00:00",
        "02_many_heads": "2026-11-29T00:00:00+00:00",
    }


@pytest.mark.parametrize(
    "text, sentence",
    [
        ("student,when\n1,2\n", r"no column `submitted_at`.*Its columns are `student`, `when`\."),
        ("student,submitted_at\n1001,03/04/26 9:00\n",
         "row of 1001: '03/04/26 9:00' is not a time"),
        ("student,submitted_at\n1001,yesterday\n", "can be read; write it like 2026-11-27 23:58"),
        ("student,assignment,submitted_at\n1,essay,2026-11-27\n", "no assignment 'essay'"),
    ],
)  # fmt: skip
def test_invalid_table_of_times_is_reported(packed, gather, table, tmp_path, text, sentence):
    with pytest.raises(RefusedError, match=sentence):
        gather(packed("adding.zip", CANVAS), times=table(text))
    assert not (tmp_path / "submitted").exists()


@pytest.mark.parametrize(
    "text, moment",
    [
        ("2026-11-27T22:58:00Z", "2026-11-27T22:58:00+00:00"),
        ("2026-11-27 22:58:00.5 UTC", "2026-11-27T22:58:00+00:00"),
        ("2026-11-27 22:58:00 -0800", "2026-11-27T22:58:00-08:00"),
        ("2026-11-27 22:58", "2026-11-27T22:58:00"),
        ("Friday, 27 November 2026, 10:58 PM", "2026-11-27T22:58:00"),
        ("Friday, November 27, 2026, 12:58\u202fAM", "2026-11-27T00:58:00"),
        ("Freitag, 27. November 2026, 22:58", "2026-11-27T22:58:00"),
        ("Mittwoch, 3. März 2027, 12:08", "2027-03-03T12:08:00"),
        ("27 November 2026 9:05:30 p.m.", "2026-11-27T21:05:30"),
    ],
)
def test_time_formats_of_the_sites_are_accepted(text, moment):
    assert read_moment(text).isoformat() == moment


@pytest.mark.parametrize(
    "text",
    [
        *("", "27.11.2026 22:58", "Friday", "31 April 2026, 10:00", "May 2026, 25:00", "-"),
        *("2026-11-27 22.58", "20261127", "2026-W48-5 22:58", "2026-11-27 22", "2026-11-27 24:00"),
        *("27 November 26, 10:58 PM", "٢٧ November ٢٠٢٦, 10:58", "27 November 2026, ١٠:٥٨"),
        *(
            "perhaps 27 November or so 2026, 22:58",
            "27 November 2026, 22:58 CET",
            "1 27 November 2026, 22:58",
        ),
    ],
)
def test_other_time_formats_are_refused(text):
    with pytest.raises(ValueError):
        read_moment(text)
