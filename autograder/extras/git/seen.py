"""When the course first saw each commit: the time of hand-in, which no date inside a repository can change.

A file of JSON lines for each repository, in the order in which the commits were seen. It is
replaced as a whole, so that a killed command leaves the old or the new one.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path

from autograder.records import InfrastructureError
from autograder.text.files import write_whole


@dataclass(frozen=True)
class Sighting:
    """A commit that stood at the head of a branch or tag when the course looked.

    `work` has a digest of the files of each assignment, once they were read.
    """

    ref: str
    commit: str
    seen: str
    work: Mapping[str, str] = field(default_factory=dict)


class Seen:
    """The sightings of one repository."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._sightings = _read(file)

    def note(self, ref: str, commit: str, now: datetime) -> None:
        """Note a commit at the head; only the first time counts."""
        if self._place(ref, commit) is None:
            moment = now.astimezone(timezone.utc).isoformat(timespec="seconds")
            self._sightings.append(Sighting(ref, commit, moment))
            self._write()

    def note_work(self, ref: str, commit: str, work: Mapping[str, str]) -> None:
        """Note the digests of the work in a commit that was noted before."""
        place = self._place(ref, commit)
        if place is None:
            raise KeyError(commit)
        sighting = self._sightings[place]
        if any(sighting.work.get(name) != digest for name, digest in work.items()):
            self._sightings[place] = replace(sighting, work={**sighting.work, **work})
            self._write()

    def handed_in(self, ref: str, commit: str, assignment: str) -> str:
        """Return when the work of an assignment was first seen as it is in this commit, as ISO-8601.

        A later commit that changes other files only is no new attempt.
        """
        of_the_ref = [sighting for sighting in self._sightings if sighting.ref == ref]
        place = next(
            number for number, sighting in enumerate(of_the_ref) if sighting.commit == commit
        )
        digest = of_the_ref[place].work[assignment]
        while place and of_the_ref[place - 1].work.get(assignment) == digest:
            place -= 1
        return of_the_ref[place].seen

    def _place(self, ref: str, commit: str) -> int | None:
        places = (
            number
            for number, sighting in enumerate(self._sightings)
            if (sighting.ref, sighting.commit) == (ref, commit)
        )
        return next(places, None)

    def _write(self) -> None:
        write_whole(
            self._file, "".join(f"{json.dumps(asdict(sighting))}\n" for sighting in self._sightings)
        )


def _read(file: Path) -> list[Sighting]:
    """Read the sightings; raises InfrastructureError if they cannot be read, as all work would be late."""
    try:
        lines = file.read_text("utf-8").splitlines() if file.exists() else []
        sightings = [Sighting(**json.loads(line)) for line in lines]
        for sighting in sightings:
            datetime.fromisoformat(sighting.seen)
    except (OSError, ValueError, TypeError) as error:
        raise InfrastructureError(
            f"{file} cannot be read ({error}). It holds the times of hand-in; put back a copy, or give the times in a "
            "table with --times and move the file away."
        ) from None
    return sightings
