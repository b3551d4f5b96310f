"""What reads the downloads of a course site."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path

from autograder.extras.lms.raw_submission import Findings
from autograder.extras.lms.roster import Roster
from autograder.submissions.files import Entry


class Collector(ABC):
    """Reads a site's downloads. A package registers its class by the site's name under `autograder.collectors`."""

    @abstractmethod
    def fits(self, entries: Sequence[Entry]) -> bool:
        """Return whether files and folders of these names are a download of the site."""

    @abstractmethod
    def read(self, entries: Sequence[Entry], source: Path, roster: Roster) -> Findings:
        """Return the submissions in a download, and sentences about what was not understood."""
