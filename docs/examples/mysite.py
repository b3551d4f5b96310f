"""Downloads of a site whose folders are called `Ada Lovelace - 12345`."""

import re
from collections.abc import Sequence
from pathlib import Path

from autograder.extras.lms.collecting.collector import Collector
from autograder.extras.lms.identity import Described, Id
from autograder.extras.lms.raw_submission import Findings, RawSubmission
from autograder.extras.lms.roster import Roster
from autograder.submissions.below import files_below
from autograder.submissions.files import Entry, File, Odd

FOLDER = re.compile(r"(.+) - (\d+)")


class MySiteCollector(Collector):
    def fits(self, entries: Sequence[Entry]) -> bool:
        return bool(entries) and all(FOLDER.fullmatch(entry.name) for entry in entries)

    def read(self, entries: Sequence[Entry], source: Path, roster: Roster) -> Findings:
        found = Findings()
        for entry in entries:
            match = FOLDER.fullmatch(entry.name)
            if match is None or isinstance(entry, File | Odd):
                found.odd.append(f"{entry.name} is no folder of a student.")
                continue
            name, number = match.groups()
            files = tuple(files_below(entry, found.odd))
            identity = Described((Id(number, "mysite"),), (name,))
            found.handed.append(
                RawSubmission(number, files, identity, "mysite", name=name, where=name)
            )
        return found
