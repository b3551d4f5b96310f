"""Convert downloads from course sites to `submitted/`, the folder that `autograder grade` reads."""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from autograder.course.config import Assignment, Course
from autograder.extras.lms.collecting import folders
from autograder.extras.lms.collecting.choose import choose, named_in, the_only_one
from autograder.extras.lms.collecting.collector import Collector
from autograder.extras.lms.collecting.submission_folder import ImportStatus, SubmissionFolder
from autograder.extras.lms.collecting.times import SubmissionTimes, read_times
from autograder.extras.lms.identity import Match, anything, is_turned, same_name
from autograder.extras.lms.raw_submission import Findings, RawSubmission
from autograder.extras.lms.roster import Person, Roster
from autograder.installation.extensions import extensions, load_extension
from autograder.records import RefusedError
from autograder.submissions.archives import UnreadableArchive, open_archive
from autograder.submissions.below import visible
from autograder.submissions.collected import Collected
from autograder.submissions.files import SOURCES as FILES
from autograder.submissions.files import DiskFolder, Entry, File, Folder, Odd, suffix
from autograder.submissions.find import not_there
from autograder.text.names import graded_name, shown, submission_folder
from autograder.text.wording import LISTED, counted, joined, listed

GROUP = "autograder.collectors"
FOLDERS = "folders"  # what `grade` reads, too
# The layout of some fits others' downloads as well, so the surest come first.
_SUREST_FIRST = ("gradescope", "moodle", "brightspace", "blackboard", "canvas")
_FATES: dict[ImportStatus, str] = {
    "older": "{0}: the one that is there was handed in later; it stays.",
    "replaced": "{0}: this one counts now; the earlier one is in .earlier/.",
    "changed by hand": "{0}: the files in {1} were changed after they were collected, or never were; they stay. "
    "`--replace` takes these and keeps the others in .earlier/.",
    "behind a link": "{0}: {1} is a link, and nothing is written through links; take it away and collect again.",
}


@dataclass
class CollectReport:
    """The result of collecting: counts, notes for the instructor, and entries that were not understood.

    `broken` are messages about archives of which nothing could be read. `untimed` are students
    without a time of submission, `not_in_table` those whose time is not that of the table.
    """

    folder: Path
    counts: Counter[ImportStatus] = field(default_factory=Counter)
    students: set[str] = field(default_factory=set)
    late: list[Collected] = field(default_factory=list)
    untimed: set[str] = field(default_factory=set)
    not_in_table: set[str] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)
    odd: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)

    @property
    def summary(self) -> str:
        """`9 submissions of 8 students: 9 new; 2 late, of 1 student: Ada Lovelace (01_adding and 02_totals).`"""
        parts = ", ".join(f"{self.counts[status]} {status}" for status in self.counts) or "nothing"
        names = self._late_students
        late = ""
        if names:
            works = [f"{name} ({joined(assignments, LISTED)})" for name, assignments in names]
            late = f"; {len(self.late)} late, of {counted(len(works), 'student')}: {listed(works)}"
        total = sum(self.counts.values())
        return f"{counted(total, 'submission')} of {counted(len(self.students), 'student')}: {parts}{late}."

    @property
    def _late_students(self) -> list[tuple[str, list[str]]]:
        """The name of each late student, with the assignments."""
        names = {facts.student: shown(facts.shown_name) for facts in self.late}
        whose = [(facts.student, facts.assignment) for facts in self.late]
        return [(name, [a for s, a in whose if s == student]) for student, name in names.items()]

    def as_record(self) -> dict[str, Any]:
        facts = {"output": str(self.folder), "students": len(self.students), "late": len(self.late)}
        facts |= {"late_students": [name for name, _ in self._late_students]}
        return {
            **facts,
            "submissions": dict(self.counts),
            "notes": self.notes,
            "not_understood": [*self.odd, *self.broken],
        }


@dataclass(frozen=True)
class CollectOptions:
    """The output folder, the assignment, the source and further options; None means automatic detection."""

    output: Path
    assignment: Assignment | None = None
    roster: Roster = field(default_factory=Roster)
    source: str | None = None
    replace: bool = False
    times: Path | None = None


def collect(paths: Sequence[Path], course: Course, options: CollectOptions) -> CollectReport:
    """Import the submissions in these archives and folders into `options.output`, one archive after another.

    Entries that are not understood are listed in the report and do not stop the import. Raises
    RefusedError before anything is written if a path or source does not exist, the table of times
    cannot be read, or the output is unusable.
    """
    missing = [path for path in paths if not path.exists()]
    if missing:
        raise RefusedError(not_there(missing[0]))
    names = [*_sites(), FOLDERS]
    if options.source not in (None, *names):
        raise RefusedError(f"There is no source `{options.source}`; there are {', '.join(names)}.")
    for path in paths:
        if path.is_file() and not suffix(path.name):  # such as a table
            raise RefusedError(
                f"{path} is not a download of submissions. `collect` takes an archive from a course site, or a "
                "folder; a gradebook or a worksheet is for --roster, --times or `autograder export --sheet`."
            )
    times = _times(options, course, paths)
    submitted = SubmissionFolder(options.output, course, options.replace)
    report = CollectReport(options.output)
    try:
        for path in paths:
            try:
                _Collection(path, course, options, times, submitted, report).run()
            except UnreadableArchive as refusal:
                report.broken.append(f"{path}: {refusal}")
            except RefusedError as refusal:
                report.odd.append(f"{path}: {refusal}")
    finally:
        submitted.save()
    _tell_who_is_not_in(times, report)
    return report


class Collecting:
    """Stores submissions that were found elsewhere, one lot after another, and notes all of them when it is closed.

    `source` names their origin in messages.
    """

    def __init__(
        self, source: Path, course: Course, options: CollectOptions, report: CollectReport
    ) -> None:
        self._report = report
        self._times = _times(options, course, [source])
        self._submitted = SubmissionFolder(options.output, course, options.replace)
        self._collection = _Collection(
            source, course, options, self._times, self._submitted, report
        )

    def receive(self, findings: Findings) -> None:
        """Store these submissions."""
        self._collection.take_all(findings)

    def close(self) -> None:
        self._submitted.save()
        _tell_who_is_not_in(self._times, self._report)


@dataclass(frozen=True)
class _Collection:
    path: Path
    course: Course
    options: CollectOptions
    times: SubmissionTimes | None
    submitted: SubmissionFolder
    report: CollectReport

    def run(self) -> None:
        if self.options.source != FOLDERS and suffix(self.path.name) not in FILES:
            place = self.path.resolve()
            opened = (
                nullcontext(DiskFolder(place))
                if place.is_dir()
                else open_archive(self.path, whole_class=True)
            )
            with opened as folder:
                site, entries = _recognised(folder, self.options.source)
                if site is not None:
                    self.take_all(site.read(entries, self.path, self.options.roster))
                    return
                originals = folders.originals(entries)
                self.take_all(self._folders(originals))
                return
        self.take_all(self._folders({}))

    def _folders(self, originals: Mapping[str, Entry]) -> Findings:
        options = self.options
        return folders.read(self.path, self.course, options.assignment, originals, options.roster)

    def take_all(self, findings: Findings) -> None:
        assignment = self.options.assignment or named_in(self.path.name, self.course)
        meant = assignment or the_only_one(findings.handed, self.course)
        self._tell(findings.odd, findings.notes)
        matches = self._matches(findings.handed)
        for number, raw in enumerate(findings.handed):
            for raw_of_person, person in self._people(raw, matches.get(number)):
                self._take(raw_of_person, person, assignment, meant)

    def _matches(self, handed: Sequence[RawSubmission]) -> dict[int, Match[Person]]:
        """Return the person of the roster for each submission; of several that fit one person, the one with its id."""
        matches = self.options.roster.match_all(
            {number: raw.described for number, raw in enumerate(handed)}
        )
        sharing: dict[tuple[Person, str], dict[str, list[int]]] = {}
        for number, match in matches.items():
            raw = handed[number]
            sharing.setdefault((match.place, raw.assignment), {}).setdefault(raw.key, []).append(
                number
            )
        for (person, _), by_key in sharing.items():
            sure = [
                key
                for key, numbers in by_key.items()
                if any(matches[number].by_id for number in numbers)
            ]
            if len(by_key) == 1:
                continue
            for key in by_key:
                if sure != [key]:
                    self._leave_out(by_key, key, person, handed)
                    for number in by_key[key]:
                        del matches[number]
        return matches

    def _leave_out(
        self,
        by_key: Mapping[str, list[int]],
        key: str,
        person: Person,
        handed: Sequence[RawSubmission],
    ) -> None:
        whose = shown(handed[by_key[key][0]].where)
        others = listed(
            [
                f"{shown(handed[by_key[other][0]].where)} ({shown(other)})"
                for other in by_key
                if other != key
            ]
        )
        self._tell(
            [
                f"{whose} ({shown(key)}) was left out: {others} can be {shown(person.name or person.id)} in the roster, "
                "too. Add their ids to the roster."
            ]
        )

    def _people(
        self, raw: RawSubmission, match: Match[Person] | None
    ) -> Sequence[tuple[RawSubmission, Person]]:
        roster = self.options.roster
        person = match.place if match else None
        members = roster.members(raw.name or raw.key)
        if members and person in (None, *members):
            names = listed([shown(member.name or member.id) for member in members])
            self._tell([], [f"{shown(raw.where)} is a group; its work is collected for {names}."])
            return [(_of_member(raw, member), member) for member in members]
        reason = ""
        if members:
            reason = (
                f"a student and a group of the roster fit, and {shown(raw.where)} can be either."
            )
        elif not roster.people:
            person = Person(raw.key, raw.name)
            reason = self._taken_by_another(person)
        elif person is None:
            reason = self._why_not(raw)
        elif match and match.turned:
            reason = self._turned_before(raw, person)
        if person is None or reason:
            if reason:
                self._tell([f"{shown(raw.where)} was left out: {reason}"])
            return []
        if match and not match.by_id and not match.turned:
            self._tell_of_turned_work(raw, person)
        if match and match.turned:
            self._tell(
                [],
                [
                    f"{shown(raw.where)} is taken for {shown(person.name)}, the only one so called, turned round."
                ],
            )
        return [(raw, person)]

    def _why_not(self, raw: RawSubmission) -> str:
        """Return why nobody in the roster fits; empty if that was told already."""
        roster = self.options.roster
        return "" if roster.find(raw.described) else roster.why_not(raw.described)

    def _turned_before(self, raw: RawSubmission, person: Person) -> str:
        """Return why a name cannot be turned round: work of the person was collected under the name as it is."""
        if not any(
            is_turned(raw.name, name) for name in self.submitted.names_of(graded_name(person.id))
        ):
            return ""
        return f"{shown(person.name)} has handed in under that name, so {shown(raw.where)} is somebody else."

    def _tell_of_turned_work(self, raw: RawSubmission, person: Person) -> None:
        """Tell that earlier work was taken for the person's, if it was collected under the name turned round."""
        for name in self.submitted.names_of(graded_name(person.id)):
            if is_turned(raw.name, name):
                self._tell(
                    [
                        f"work of {shown(name)} was collected for {shown(raw.where)} before; it is somebody else's."
                    ]
                )

    def _taken_by_another(self, person: Person) -> str:
        """Return why a number cannot be this person's: Moodle's groups and participants share numbers."""
        before = self.submitted.name_of(graded_name(person.id))
        if (
            not before
            or not person.name
            or same_name(before, person.name)
            or not person.id.isdecimal()
        ):
            return ""
        return (
            f"{person.id} is {shown(before)} in {self.submitted.folder} already. Participants and groups can have the "
            "same number; collect this into another folder with --output, or use a roster with a column `group`."
        )

    def _take(
        self,
        raw: RawSubmission,
        person: Person,
        assignment: Assignment | None,
        meant: Assignment | None,
    ) -> None:
        by_archive = self.course.assignment(raw.assignment) if raw.assignment else assignment
        is_known = person.name and raw.where == raw.name
        where = person.name if is_known else raw.where
        choice = choose(replace(raw, where=where), self.course, by_archive, meant)
        self._tell(choice.odd, choice.notes)
        folder = submission_folder(person.id)
        for name, files in choice.files.items():
            if name in choice.unusable and self.submitted.holds(folder, name, files):
                continue
            in_table = self._time_in_table(raw, person, name)
            facts = Collected(
                student=graded_name(person.id),
                assignment=name,
                original=person.id if person.id != graded_name(person.id) else "",
                name=person.name or raw.name,
                submitted_at=in_table or raw.submitted_at,
                by_table=in_table is not None,
                late=raw.late,
                attempt=raw.attempt,
                source=self.path.name,
                key="" if raw.key == person.id else raw.key,
                site=raw.site,
                file_time=raw.file_time,
                called="" if raw.name == person.name else raw.name,
            )
            self._count(facts, self.submitted.put(folder, facts, files), person)
            if self.times and not in_table and facts.submitted_at:
                self.report.not_in_table.add(shown(facts.shown_name))

    def _time_in_table(self, raw: RawSubmission, person: Person, assignment: str) -> str | None:
        described = raw.described | person.identity
        return self.times.find(described, assignment) if self.times else None

    def _count(self, facts: Collected, status: ImportStatus, person: Person) -> None:
        self.report.counts[status] += 1
        self.report.students.add(facts.student)
        if facts.late:
            self.report.late.append(facts)
        if facts.submitted_at is None:
            self.report.untimed.add(shown(facts.shown_name))
        if status in _FATES:
            place = self.submitted.folder / submission_folder(person.id) / facts.assignment
            whose = f"{shown(facts.shown_name)}, {facts.assignment}"
            sentence = _FATES[status].format(whose, place)
            left_out = status in ("changed by hand", "behind a link")
            self._tell([sentence] if left_out else [], [] if left_out else [sentence])

    def _tell(self, odd: Sequence[str], notes: Sequence[str] = ()) -> None:
        self.report.odd += [f"{self.path.name}: {sentence}" for sentence in odd]
        self.report.notes += [f"{self.path.name}: {sentence}" for sentence in notes]


def _of_member(raw: RawSubmission, member: Person) -> RawSubmission:
    """Return the work of a group as that of a member, for whom the group's own number and name do not count."""
    return replace(raw, key=member.id, site="", described=anything(member.id), name=member.name)


def _tell_who_is_not_in(times: SubmissionTimes | None, report: CollectReport) -> None:
    """Name the students of whom the table of times, if there is one, has no single time."""
    if times is None:
        return
    lacks = f"{times.name} has no time, or several times, for: "
    if report.untimed or report.not_in_table:
        report.odd += [f"{times.name}: {damage}" for damage in dict.fromkeys(times.damages)]
    if report.untimed:
        report.odd.append(f"{lacks}{listed(sorted(report.untimed))}.")
    if report.not_in_table:
        names = sorted(report.not_in_table)
        report.odd.append(
            f"{lacks}{listed(names)}. What counts is the time in the download or, for a "
            "repository, when the course first saw the work."
        )


def _times(
    options: CollectOptions, course: Course, paths: Sequence[Path]
) -> SubmissionTimes | None:
    if options.times is None:
        return None
    return read_times(options.times, course, paths, options.assignment)


def _sites() -> list[str]:
    """Return the sites whose downloads can be read: those of other packages first, then the surest."""
    return sorted(extensions(GROUP), key=_rank)


def _rank(name: str) -> int:
    return _SUREST_FIRST.index(name) if name in _SUREST_FIRST else -1


def _recognised(folder: Folder, wanted: str | None) -> tuple[Collector | None, list[Entry]]:
    """Return the site of a download, judged by its names, or None, and the entries; `wanted` is not guessed."""
    entries = visible(folder)
    levels = [entries]
    if len(entries) == 1 and not isinstance(entries[0], File | Odd):
        levels.append(visible(entries[0]))
    sites = _sites() if wanted is None else [wanted]
    collectors: list[Collector] = [load_extension(GROUP, site)() for site in sites]
    for level in filter(None, levels):
        for collector in collectors:
            if collector.fits(level):
                return collector, level
    if wanted is not None:
        raise RefusedError(f"This does not look like a download of {wanted.capitalize()}.")
    return None, entries
