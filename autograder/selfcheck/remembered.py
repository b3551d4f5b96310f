"""Keep the report of an assignment beside the student's file, so that unchanged work is not run again.

The report lies in `.autograder/report.json`, under a digest of everything in the assignment's
folder and of the versions that take part. It can be deleted at any time.
"""

import hashlib
import json
import sys
from collections.abc import Callable

import torch
from pydantic import TypeAdapter

from autograder.selfcheck.check import CheckReport
from autograder.selfcheck.hints import FOLDER
from autograder.selfcheck.workspace import Work
from autograder.text.files import add_files, write_whole
from autograder.version import __version__

FILE_NAME = "report.json"
MOST_BYTES = 50_000_000  # of a folder, in which somebody may keep data
_REPORTS = TypeAdapter(CheckReport)


def remembered_report(work: Work, make: Callable[[], CheckReport]) -> CheckReport:
    """Return the report of this work, from an earlier time if nothing has changed since; else `make` makes it."""
    file = work.folder / FOLDER / FILE_NAME
    key = _key(work)
    if key is None:
        return make()
    try:
        record = json.loads(file.read_bytes())
        if record["key"] == key:
            return _REPORTS.validate_python(record["report"])
    except (OSError, ValueError, KeyError, TypeError):
        pass  # there is none, or it is damaged: a new one takes its place
    report = make()
    if key == _key(work):  # the code itself may write files, and then they belong to its next run
        try:
            record = {"key": key, "report": _REPORTS.dump_python(report, mode="json")}
            write_whole(file, json.dumps(record, indent=1) + "\n")
        except OSError:
            return report  # in a folder that cannot be written, the tests run each time
    return report


def _key(work: Work) -> str | None:
    """Return the digest of all that a report depends on; None for a folder that is too large or cannot be read."""
    digest = hashlib.sha256(
        f"{__version__}\0{sys.version}\0{torch.__version__}\0{work.file.name}".encode()
    )
    try:
        sizes = [file.stat().st_size for file in work.folder.rglob("*") if file.is_file()]
        if sum(sizes) > MOST_BYTES:
            return None
        add_files(digest, work.folder)
    except OSError:
        return None
    return digest.hexdigest()
