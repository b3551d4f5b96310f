"""When the course first saw each commit: the time of hand-in, which no date inside a repository can change.

A file of JSON lines for each student and address, in the order in which the commits were seen. It
is replaced as a whole, so that a killed command leaves the old or the new one.
"""

import itertools
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path

from autograder.records import InfrastructureError
from autograder.submissions.hand_in import counting_time
from autograder.text.files import write_whole
from autograder.text.moments import instant, read_time

SUFFIX = ".jsonl"


@dataclass(frozen=True)
class Sighting:
    """A commit that stood at the head of a branch or tag when the course looked.

    `work` has a digest of the work for each assignment, once it was read.
    """

    ref: str
    commit: str
    seen: str
    work: Mapping[str, str] = field(default_factory=dict)
    by_table = False

    @property
    def moment(self) -> datetime:
        return read_time(self.seen)


class Seen:
    """The sightings of one student's work at one address.

    Those of `others` count as well: of the same student at an earlier address, and of the same
    address by other members of a group.
    """

    def __init__(self, file: Path, others: Iterable[Path] = ()) -> None:
        self._file = file
        self._sightings = _read(file)
        self._elsewhere = list(itertools.chain.from_iterable(map(_read, others)))

    def note(self, ref: str, commit: str, now: datetime) -> None:
        """Note a commit at the head; only the first time counts, whatever branch it stands at."""
        if self._place(commit) is None:
            moment = now.astimezone(timezone.utc).isoformat(timespec="seconds")
            self._sightings.append(Sighting(ref, commit, moment))
            self._write()

    def note_work(self, commit: str, work: Mapping[str, str]) -> None:
        """Note the digests of the work in a commit that was noted before."""
        place = self._place(commit)
        if place is None:
            raise KeyError(commit)
        sighting = self._sightings[place]
        if any(sighting.work.get(name) != digest for name, digest in work.items()):
            self._sightings[place] = replace(sighting, work={**sighting.work, **work})
            self._write()

    def handed_in(self, commit: str, assignment: str) -> str:
        """Return when the work of an assignment was first seen as it is in this commit, as ISO-8601.

        A later commit that changes other files only is no new attempt, on whatever branch.
        """
        whole = [*self._elsewhere, *self._sightings]
        sightings = sorted(
            (sighting for sighting in whole if assignment in sighting.work),
            key=lambda sighting: instant(sighting.moment),
        )
        place = next(n for n, sighting in enumerate(sightings) if sighting.commit == commit)
        first = sightings[place]
        for sighting in reversed(sightings[:place]):
            if sighting.work[assignment] != first.work[assignment]:
                break
            first = counting_time(first, sighting)
        return first.seen

    def _place(self, commit: str) -> int | None:
        commits = [sighting.commit for sighting in self._sightings]
        return commits.index(commit) if commit in commits else None

    def _write(self) -> None:
        write_whole(
            self._file, "".join(f"{json.dumps(asdict(sighting))}\n" for sighting in self._sightings)
        )


class Sightings:
    """All sightings of a course in a folder, by student and address."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._by_student: dict[str, list[Path]] = {}
        self._by_address: dict[str, list[Path]] = {}
        for file in sorted(folder.glob(f"*{SUFFIX}")):
            student, _, address = file.stem.rpartition("-")
            self._by_student.setdefault(student, []).append(file)
            self._by_address.setdefault(address, []).append(file)

    def of(self, student: str, address: str) -> Seen:
        """Return the sightings of a student at an address, both as they stand in names of files."""
        file = self._folder / f"{student}-{address}{SUFFIX}"
        others = {*self._by_student.get(student, ()), *self._by_address.get(address, ())}
        return Seen(file, sorted(others - {file}))


def _read(file: Path) -> list[Sighting]:
    """Read the sightings; raises InfrastructureError if they cannot be read, as all work would be late."""
    try:
        lines = file.read_text("utf-8").splitlines() if file.exists() else []
        sightings = [Sighting(**json.loads(line)) for line in lines]
        for sighting in sightings:
            _ = sighting.moment  # raises ValueError if it is no time
    except (OSError, ValueError, TypeError) as error:
        raise InfrastructureError(
            f"{file} cannot be read ({error}). It holds the times of hand-in; put back a copy, or give the times in a "
            "table with --times and move the file away."
        ) from None
    return sightings
