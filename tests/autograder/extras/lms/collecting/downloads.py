"""Downloads of course sites, as they name their files, and what is in a collected folder."""

from __future__ import annotations

import zipfile
from pathlib import Path

from autograder.submissions.collected import Collected, read_collected

NAME = "01_adding"


def tree(folder: Path) -> dict[str, str]:
    """Return every file below a folder with its text, except collected.json."""
    files = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name != "collected.json":
            files[path.relative_to(folder).as_posix()] = path.read_text("utf-8", "replace")
    return files


def known(folder: Path) -> dict[str, Collected]:
    """Return the record in collected.json by student."""
    return {student: one for (student, _), one in read_collected(folder).items()}


def unpacked(archive: Path) -> Path:
    """Unpack the archive to a folder of the same name."""
    folder = archive.with_suffix("")
    with zipfile.ZipFile(archive) as files:
        files.extractall(folder)
    return folder


CANVAS = {
    "lovelaceada_1001_5001_adding.py": "ada = 1\n",
    "hoppergrace_LATE_1002_5002_adding-1.py": "grace = 1\n",
    "turingalan_1003_5003_adding.ipynb": "{}\n",
    "liskovbarbara_1004_5004_01_adding.zip": b"PK of Barbara",
    "duchâteletélodie_1005_5005_essay.pdf": "%PDF",
    "knuthdonald_1006_5006_text.html": "<p>typed</p>",
    "notes of the tutor.txt": "…",
    "__MACOSX/._lovelaceada_1001_5001_adding.py": "noise",
}


MOODLE = {
    "Ada Lovelace_657831_assignsubmission_file/adding.py": "ada = 1\n",
    "Grace Hopper_657832_assignsubmission_file_/adding (2).py": "grace = 1\n",
    "Élodie du Châtelet_657833_assignsubmission_file/my work/deep/adding.ipynb": "{}\n",
    "Alan Turing_657834_assignsubmission_file_adding.py": "alan = 1\n",
    "Participant_657835_assignsubmission_file/test_adding.py": "given\n",
    "Barbara Liskov_657836_assignsubmission_onlinetext/onlinetext.html": "<p>typed</p>",
    "Donald Knuth_657837_assignsubmission_onlinetext/onlinetext.html": "<p>see the file</p>",
    "Donald Knuth_657837_assignsubmission_file/adding.py": "donald = 1\n",
}


METADATA = """\
---
submission_1:
  :submitters:
  - :name: Ada Lovelace
    :sid: '00123'
    :email: ada@example.org
  - :name: Grace Hopper
    :email: grace@example.org
  :created_at: 2026-03-20 23:58:00.123456000 -07:00
  :score: 3.0
  :status: processed
  :results:
    score: 3.0
    tests: []
  :history:
  - :id: 7
    :created_at: 2026-03-20 22:58:00.123456000 -07:00
submission_2:
  :submitters: []
  :created_at: 2026-03-21 06:00:00.000000000 Z
submission_3:
  :submitters:
  - :name: Alan Turing
    :sid: 124
  :created_at: '2026-03-21 07:00:00 UTC'
submission_4:
  :submitters:
  - :name: Nobody
"""


GRADESCOPE = {
    "assignment_5_export/submission_metadata.yml": METADATA,
    "assignment_5_export/submission_1/adding.py": "both = 1\n",
    "assignment_5_export/submission_1/.DS_Store": "noise",
    "assignment_5_export/submission_2/src/adding.py": "unknown = 1\n",
    "assignment_5_export/submission_3/adding.py": "alan = 1\n",
    "assignment_5_export/submission_99/adding.py": "whose = 1\n",
    "__MACOSX/assignment_5_export/._submission_metadata.yml": "noise",
}
CANVAS_SHEET = """\
Student,ID,SIS Login ID,Section,Adding (7),Final Score
    Points Possible,,,,10,(read only)
"Lovelace, Ada",1001,ada,S1,,
"Hopper, Grace",1002,grace,S1,,
"Turing, Alan",1003,alan,S1,,
"Liskov, Barbara",1004,barbara,S1,,
"""
MOODLE_SHEET = """\
Identifier,"Full name","Email address",Status,Grade,"Maximum grade","Last modified (grade)"
"Participant 657831","Ada Lovelace",ada@example.org,Submitted,,10.00,-
"Participant 657832","Grace Hopper",grace@example.org,Submitted,,10.00,-
"Participant 657833","Élodie du Châtelet",elodie@example.org,Submitted,,10.00,-
"Participant 657834","Alan Turing",alan@example.org,Submitted,,10.00,-
"Participant 657837","Donald Knuth",donald@example.org,Submitted,,10.00,-
"""
