"""The Python API: the commands as functions, for scripts and notebooks.

    import autograder

    run = autograder.grade("submitted", course=".", output="grades")
    for grade in run.grades:
        print(grade.student, grade.assignment, grade.score, grade.max_score)

Each function does the work of the command of the same name and returns records instead of tables.
Graders are separate processes, as are those that draw pictures: a script that calls `grade`, or
`report` with pictures, must do so below `if __name__ == "__main__":`, as with `multiprocessing`.
"""

import itertools
import os
import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from autograder.course import config
from autograder.course.config import Course
from autograder.extras.lms import collecting, exports
from autograder.extras.lms.exports.by_hand import with_hand_grading
from autograder.extras.lms.roster import FILE_NAME as ROSTER
from autograder.extras.lms.roster import Roster, read_roster
from autograder.feedback.html import write_what_counts
from autograder.feedback.live_pages import LivePages
from autograder.feedback.pages import feedback_path
from autograder.feedback.status_page import FOLDER as STATUS
from autograder.gradebook import comparing, decisions, final_scores, texts
from autograder.gradebook.comparing import Comparison
from autograder.gradebook.decisions import Decided, Decision, lay_over, read_decisions, unfitting
from autograder.gradebook.demo_marker import MARK, choose_output_folder
from autograder.gradebook.final_scores import (
    Effective,
    as_record,
    final_of,
    latest_grades,
    what_counts,
)
from autograder.gradebook.journal import Journal, Reading, grades_at
from autograder.gradebook.lateness import Final, GradeKey, unknown_students
from autograder.gradebook.run_state import OpenRun
from autograder.gradebook.seals import refuse_links
from autograder.gradebook.times import keep_times, read_names, read_originals
from autograder.nbgrader.inbound import Inbound
from autograder.records import Grade, InfrastructureError, RefusedError, Submission
from autograder.runs.changes import require_watchfiles
from autograder.runs.pool import Plan
from autograder.runs.repeated import Repeated
from autograder.runs.run import RunSummary, grade_class, ungraded
from autograder.runs.watching import Watching
from autograder.sandbox.outside.trusted_process import python_command
from autograder.submissions import find_submissions
from autograder.submissions.class_folder import ClassFolder
from autograder.submissions.output_folder import check_output
from autograder.text.files import check_folder, make_folder
from autograder.text.names import graded_name

# slow: PyTorch, and notebooks with their schemas; or not on Windows, where students check their
# work
if TYPE_CHECKING:
    from autograder.extras.git.returning import Returned
    from autograder.extras.sheets.sheets import Sheets
    from autograder.extras.similar.similar import Similar
    from autograder.sandbox.doctor.doctor import TierReport
    from autograder.selfcheck.check import CheckReport

MOST_NOTES = 20  # about the choice among a student's files

AnyPath = str | os.PathLike[str]
OnProgress = Callable[[int, int], None]  # called with the number done and the total


@dataclass(frozen=True)
class Report:
    """The report pages of a class, its effective grades, and the final scores by student and assignment.

    `undrawn` names pictures that could not be drawn. `differences` lists differences between the
    grades and `course.yml`, decisions that do not fit, and the lines of the journal that cannot be
    read. `notes` holds all other messages for the instructor. `absent` has the names of the
    students in the roster who handed in nothing, by id. `originals` has the ids of the roster or
    the course site that differ from those in the grades, because no folder can have such a name.
    """

    folder: Path
    index: Path
    grades: tuple[Grade, ...]
    final_scores: Mapping[GradeKey, Final]
    undrawn: tuple[str, ...] = ()
    differences: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    absent: Mapping[str, str] = field(default_factory=dict)
    originals: Mapping[str, str] = field(default_factory=dict)

    @property
    def messages(self) -> tuple[str, ...]:
        return (*self.notes, *self.undrawn, *self.differences)

    def as_record(self) -> dict[str, Any]:
        """Return the scores and the paths of the pages as a JSON-serializable dict."""
        scores = [
            as_record(g, final_of(g, self.final_scores), self.folder / feedback_path(g))
            for g in self.grades
        ]
        paths = {"output": str(self.folder), "report": str(self.index)}
        return {
            **paths,
            "grades": scores,
            "absent": dict(self.absent),
            "messages": list(self.messages),
        }


@dataclass(frozen=True)
class Run(Report):
    """A run and its pages; `summary` counts the submissions graded, refused, unchanged and not graded."""

    summary: RunSummary = field(kw_only=True)


def load_course(course: AnyPath | Course = ".") -> Course:
    """Load the course from a folder or a `course.yml`; return a `Course` unchanged.

    Raises CourseError.
    """
    return course if isinstance(course, config.Course) else config.load_course(Path(course))


def grade(
    submissions: AnyPath,
    course: AnyPath | Course = ".",
    output: AnyPath = "grades",
    *,
    assignment: str | None = None,
    jobs: int | None = None,
    seed: int | None = None,
    regrade: bool = False,
    unsafe: bool = False,
    trust_timestamps: bool = False,
    trust_grades: bool = False,
    pictures: bool = False,
    cluster: str | None = None,
    on_grade: OnProgress | None = None,
    on_picture: OnProgress | None = None,
) -> Run:
    """Grade a class as `autograder grade` does: each submission in its own sandbox, with a journal and pages.

    `submissions` is a folder `<student>/<assignment>/<file>`, an archive of one, or a single file.
    Unchanged submissions are not graded again unless `regrade` is set. `jobs` is the largest number
    of parallel graders, one per processor if not given. `trust_timestamps` uses nbgrader's
    `timestamp.txt`, which lies in the students' own folders. `trust_grades` believes what another
    person or machine wrote into the output folder. `cluster` grades on the workers of a Dask
    cluster instead: `local:4`, `tls://scheduler:8786`, or a YAML file. `on_grade` and `on_picture`
    are called with the number done and the total.

    Raises CourseError, RefusedError (unusable paths), and InfrastructureError if nothing can be
    graded. Submissions that could not be graded because of the machine are listed in
    `run.summary.failures`.
    """
    source = Path(submissions)
    loaded = load_course(course)
    handed_in = find_submissions(source, loaded, assignment)
    first = next(handed_in)
    folder, moved = _output_folder(Path(output), source, first)
    # an error in what is laid over the grades is told before the class is graded
    read_decisions(loaded)
    _roster(loaded, None, folder)
    with OpenRun(folder, seed, regrade, trust_grades) as run, Journal(folder) as journal:
        stored = texts.put(folder, itertools.chain([first], handed_in))
        keep_times(folder, source, stored, trust_timestamps)
        new = stored if regrade else ungraded(loaded, stored, journal)
        plan = _plan(loaded, run.seed, unsafe, jobs, _assignments_of(loaded, new))
        summary = _grade_new(plan, journal, new, len(stored) - len(new), cluster, on_grade)
    pages = _write_pages(plan, Reading(journal.path), pictures, on_picture)
    notes = (
        *filter(None, (moved, run.problem, journal.problem)),
        *_notes_on_choice(stored),
        *summary.notes,
        *pages.notes,
    )
    return Run(**{**vars(pages), "notes": notes}, summary=summary)


def _output_folder(output: Path, source: Path, first: Submission) -> tuple[Path, str]:
    """Return the folder to write to, and a message if it is not `output`; raises RefusedError for a
    folder of something else.
    """
    check_output(output, source, first)
    check_folder(output)
    refuse_links(output)
    return choose_output_folder(output, source)


def _assignments_of(
    course: Course, submissions: Sequence[texts.StoredSubmission]
) -> tuple[str, ...]:
    """Return the assignments of the course that occur in these submissions."""
    names = {stored.submission.assignment for stored in submissions}
    return tuple(assignment.name for assignment in course.assignments if assignment.name in names)


def _grade_new(
    plan: Plan,
    journal: Journal,
    new: Sequence[texts.StoredSubmission],
    unchanged: int,
    cluster: str | None,
    on_grade: OnProgress | None,
) -> RunSummary:
    """Grade the new submissions; an interruption tells how to see the grades so far.

    Raises InfrastructureError if nothing could be graded.
    """
    folder = journal.path.parent
    tell = _counting(on_grade or _ignore, unchanged + len(new))
    for _ in range(unchanged):
        tell(None)
    submissions = texts.iterate(folder, new)
    try:
        summary = grade_class(plan.for_submissions(len(new)), submissions, journal, tell, cluster)
    except KeyboardInterrupt:
        if not journal.latest:
            raise KeyboardInterrupt from None
        shown = f"`autograder report {shlex.quote(str(folder))}` shows the grades so far."
        raise KeyboardInterrupt(*filter(None, (shown, journal.problem))) from None
    if summary.failures and not journal.latest:
        raise InfrastructureError("\n".join(["Nothing was graded.", *summary.failures]))
    summary.unchanged = unchanged
    return summary


def watch(
    submissions: AnyPath,
    course: AnyPath | Course = ".",
    output: AnyPath = "grades",
    *,
    assignment: str | None = None,
    jobs: int | None = None,
    unsafe: bool = False,
    trust_timestamps: bool = False,
    trust_grades: bool = False,
    collect: str | None = None,
    every_minutes: float = 10,
    on_ready: Callable[[Path], None] | None = None,
    on_grade: Callable[[Grade], None] | None = None,
    on_postponed: Callable[[str], None] | None = None,
    on_problem: Callable[[str], None] | None = None,
) -> None:
    """Grade as `autograder grade --watch` does: what is handed in, as it comes, until KeyboardInterrupt.

    `submissions` is the folder of a class, or the `inbound` folder of a course in nbgrader's
    exchange. `collect` is a table of repositories, or an address with `{student}`, from which work
    is collected into that folder every so many minutes. `on_ready` is called with the path of the
    status page when the graders are ready, `on_grade` with each grade when it is in the journal,
    `on_postponed` with a sentence for each hand-in that waits for the quota, and `on_problem` with
    each problem; grading goes on after it.

    Raises CourseError, RefusedError and InfrastructureError if grading cannot begin.
    """
    source = Path(submissions)
    loaded = load_course(course)
    require_watchfiles()
    name = loaded.assignment(assignment).name if assignment else None
    if collect is not None:
        make_folder(source)
    tell = on_problem or _ignore
    inbound = Inbound(source, loaded, name, tell) if Inbound.fits(source) else None
    hand_ins = inbound or ClassFolder(source, loaded, name, trust_timestamps)
    folder, moved = _output_folder(Path(output), source, Submission("", ""))
    if folder.resolve().is_relative_to(source.resolve()):
        raise RefusedError(
            f"{folder} lies among the submissions that are watched. Name a folder outside with --output."
        )
    read_decisions(loaded)
    class_of = _roster(loaded, None, folder).class_list
    with OpenRun(folder, trusted=trust_grades) as run:
        journal = Journal(folder)
        for problem in filter(None, (moved, run.problem, journal.problem)):
            tell(problem)
        pages = LivePages(
            folder,
            loaded,
            class_of,
            tell,
            on_grade or _ignore,
            on_postponed or _ignore,
            inbound.publish if inbound else None,
        )
        pages.write_all()
        plan = _plan(loaded, run.seed, unsafe, jobs, (name,) if name else None)
        repeated = _collecting(collect, source, loaded, name, every_minutes) if collect else None
        watching = Watching(plan, hand_ins, journal, pages, repeated)
        try:
            watching.run(lambda: (on_ready or _ignore)(folder / STATUS / "index.html"))
        finally:
            pages.end()


def _collecting(
    table: str, submissions: Path, course: Course, assignment: str | None, minutes: float
) -> Repeated:
    """Return the command that collects from repositories, as a process beside this one."""
    only = ("--assignment", assignment) if assignment else ()
    words = ("collect", table, "--from", "git", "--output", str(submissions), *only)
    command = python_command(
        "from autograder.cli import main; main()", *words, "--course", str(course.root), "--quiet"
    )
    return Repeated(command, 60 * minutes)


def regrade(
    submissions: AnyPath, course: AnyPath | Course = ".", output: AnyPath = "grades", **options: Any
) -> Run:
    """Grade all submissions again with fresh inputs; takes the options of `grade`."""
    return grade(submissions, course, output, regrade=True, **options)


def report(
    grades: AnyPath = "grades",
    course: AnyPath | Course = ".",
    *,
    pictures: bool = False,
    section: str | None = None,
    jobs: int | None = None,
    unsafe: bool = False,
    on_picture: OnProgress | None = None,
) -> Report:
    """Write the report pages of a class again from its journal, without grading; for a section, only its report."""
    journal = grades_at(Path(grades))
    pages = _write_pages(
        _plan(load_course(course), 0, unsafe, jobs), journal, pictures, on_picture, section
    )
    return (
        replace(pages, differences=(*pages.differences, journal.problem))
        if journal.problem
        else pages
    )


def read_grades(grades: AnyPath = "grades") -> list[Grade]:
    """Return all grades of a folder or journal, in the order in which they were written.

    Raises RefusedError.
    """
    return list(grades_at(Path(grades)))


def compare(old: AnyPath, new: AnyPath, course: AnyPath | Course | None = None) -> Comparison:
    """Compare two gradings; with a course, its decisions are laid over both, lateness is not."""
    loaded = None if course is None else load_course(course)
    before = grades_at(Path(old))
    after = grades_at(Path(new))
    # a quarter of a large journal
    latest = latest_grades(replace(grade, test_seconds=()) for grade in after)
    if loaded is None:
        comparison = comparing.compare(before, latest)
        notes = []
    else:
        entries = read_decisions(loaded)
        laid = list(lay_over(loaded, entries, latest))
        grades_before = (decided.grade for decided in lay_over(loaded, entries, before))
        comparison = comparing.compare(grades_before, (decided.grade for decided in laid))
        notes = unfitting(loaded, entries, laid, ())
    return replace(comparison, notes=(*filter(None, (before.problem, after.problem)), *notes))


def decide(
    student: str | None,
    assignment: str | None = None,
    course: AnyPath | Course = ".",
    grades: AnyPath = "grades",
    *,
    by: str,
    reason: str | None = None,
    **decision: Any,
) -> list[Decided]:
    """Add a decision to `decisions.yml` beside course.yml; return the grades that it is about. Nothing is graded again.

    `student` is an id, a name, a login or an address of the roster, or the path of a submission,
    which also gives the assignment. `decision` is one of `give=1`, `take=1` (both also with
    `part="mask"`), `comment="…"`, `excuse=True`, `accept_late=True`, or for all students
    (`student=None`) `drop="test_…"` with `counts="full"` or `counts="out"`. Raises CourseError for
    an invalid decision, and RefusedError for one that does not fit the grades.
    """
    loaded = load_course(course)
    reading = grades_at(Path(grades))
    folder = reading.path.parent
    effective = _effective(reading, loaded)
    names = dict.fromkeys((grade.student for grade in effective.grades), "")
    names |= dict.fromkeys(effective.people.groups, "")
    names |= read_names(folder) | dict(effective.people.names)
    chosen = _chosen_assignment(loaded, assignment, student or "")
    originals = read_originals(folder)
    if student:
        named = _student_in_path(student, names)
        student = _roster(loaded, None, folder).student_id(named, names, originals)
        decision["student"] = originals.get(student, student)
    journal = effective.journal
    if decision.get("give") or decision.get("take"):
        scores = {grade.key: grade.score for grade in journal}
        decision["score"] = scores.get((student or "", chosen))
    now = datetime.now(ZoneInfo(loaded.timezone)).replace(second=0, microsecond=0, tzinfo=None)
    new = decisions.make_decision(assignment=chosen, **decision, reason=reason, by=by, at=now)
    return _add_decision(loaded, new, journal, names)


def _chosen_assignment(course: Course, assignment: str | None, path: str) -> str:
    """Return the name of the assignment that is given, or that the path of a submission has."""
    in_path = [place for place in Path(path).parts if course.find(place)]
    if not assignment and not in_path:
        raise RefusedError("Say which assignment with --assignment.")
    return course.assignment(assignment or in_path[-1]).name


def _student_in_path(text: str, students: Collection[str]) -> str:
    """Return the student in the path of a submission; the text itself if it is no such path."""
    if text in students:
        return text
    in_path = [place for place in Path(text).parts if place in students]
    return in_path[-1] if in_path else text


def _add_decision(
    course: Course, decision: Decision, journal: Sequence[Grade], students: Collection[str]
) -> list[Decided]:
    """Write a decision to the file, and return the grades that it is about; raises RefusedError for
    one that does not fit.
    """
    new = decisions.Entry("The decision does not fit", decision)
    with decisions.locked(course):
        entries = (*read_decisions(course), new)
        decided = list(lay_over(course, entries, journal))
        problems = unfitting(course, [new], decided, students)
        of_new = [problem for problem in problems if problem.startswith(new.place)]
        if of_new or not journal:
            raise RefusedError("\n".join(of_new) or "There are no grades.")
        decisions.add_decision(course, decision)
    return [grade for grade in decided if decision in grade.made]


def to_review(
    grades: AnyPath = "grades",
    course: AnyPath | Course = ".",
    borders: Sequence[float] = (50,),
    within: float = 2,
) -> list[dict[str, Any]]:
    """Return the submissions that are flagged, or at most `within` percent below one of the `borders`, with reasons."""
    loaded = load_course(course)
    return _effective(grades_at(Path(grades)), loaded).to_review(borders, within)


def collect(
    archives: Sequence[AnyPath],
    course: AnyPath | Course = ".",
    output: AnyPath = "submitted",
    *,
    assignment: str | None = None,
    roster: AnyPath | None = None,
    times: AnyPath | None = None,
    source: str | None = None,
    branch: str | None = None,
    replace: bool = False,
    on_repository: OnProgress | None = None,
) -> collecting.CollectReport:
    """Import downloads from Canvas, Moodle or Gradescope into the folder that `grade` reads.

    With the source `git`, `archives` is one table of repositories, or one address with `{student}`;
    `branch` is the branch or tag that stands for the hand-in.
    """
    loaded = load_course(course)
    wanted = loaded.assignment(assignment) if assignment else None
    people = _roster(loaded, roster)
    options = collecting.CollectOptions(Path(output), wanted, people, source, replace, _path(times))
    if source == "git":
        return _collect_from_git(archives, loaded, options, branch or "", on_repository or _ignore)
    if branch:
        raise RefusedError("--branch is for repositories; say --from git as well.")
    return collecting.collect([Path(archive) for archive in archives], loaded, options)


def _collect_from_git(
    tables: Sequence[AnyPath],
    course: Course,
    options: collecting.CollectOptions,
    branch: str,
    on_repository: OnProgress,
) -> collecting.CollectReport:
    from autograder.extras.git.collecting import collect_from_git
    from autograder.extras.git.repositories import read_repositories

    if len(tables) != 1:
        raise RefusedError(
            "`--from git` takes one table of repositories, or one address with {student} in it."
        )
    source = os.fspath(tables[0])
    name = options.assignment.name if options.assignment else ""
    repositories = read_repositories(source, course, options.roster, name, branch)
    return collect_from_git(repositories, course, options, Path(source).name, on_repository)


def return_feedback(
    grades: AnyPath,
    repositories: AnyPath,
    course: AnyPath | Course = ".",
    *,
    to: str = "git",
    assignment: str | None = None,
    roster: AnyPath | None = None,
    branch: str = "feedback",
    replace: bool = False,
    on_repository: OnProgress | None = None,
) -> "Returned":
    """Push each student's feedback to a branch of the student's repository, if it differs from what is there.

    `repositories` is a table, or an address with `{student}`, as for `collect`. The pages show what
    students may see at present. A branch that the course did not write is left alone unless
    `replace` is set.
    """
    from autograder.extras.git.repositories import check_branch, read_repositories
    from autograder.extras.git.returning import ReturnOptions, return_to_git

    if to != "git":
        raise RefusedError(f"Feedback is returned to `git`, not to `{to}`.")
    loaded = load_course(course)
    reading = grades_at(Path(grades))
    wanted = loaded.assignment(assignment).name if assignment else ""
    people = _roster(loaded, roster)
    owned = read_repositories(os.fspath(repositories), loaded, people, wanted)
    effective = _effective(reading, loaded)
    options = ReturnOptions(
        check_branch(branch), replace, _student_of(effective, people, reading.path.parent)
    )
    return return_to_git(
        owned, reading.path.parent, loaded, effective, options, on_repository or _ignore
    )


def export(
    to: str,
    grades: AnyPath = "grades",
    course: AnyPath | Course = ".",
    *,
    assignment: str | None = None,
    sheet: AnyPath | None = None,
    column: str | None = None,
    roster: AnyPath | None = None,
    section: str | None = None,
    submissions: AnyPath | None = None,
    output: AnyPath | None = None,
    hidden: str | None = None,
) -> exports.Exported:
    """Write a class's grades, or an assignment's autograder, for another tool; see `autograder export --help`."""
    exporter = exports.find_exporter(to)
    loaded = load_course(course)
    request = exports.ExportRequest(
        course=loaded,
        submissions=_path(submissions),
        assignment=assignment,
        sheet=_path(sheet),
        column=column,
        roster=_roster(loaded, roster, Path(grades)),
        output=_path(output),
        hidden=hidden,
    )
    if exporter.has_grades:
        request = exports.read_grades(request, Path(grades), exporter, section)
    if exporter.adds_hand_grading:
        request = with_hand_grading(request)
    return exports.export(to, request)


def similar(
    submissions: AnyPath,
    assignment: str,
    course: AnyPath | Course = ".",
    *,
    most: int = 20,
    least: float = 0.15,
    page: AnyPath | None = None,
) -> "Similar":
    """Find the pairs of submissions that are unusually alike; `page` is an HTML file to show them side by side."""
    from autograder.extras.similar import similar as finding
    from autograder.extras.similar.similarity_page import check_room, write_alike

    loaded = load_course(course)
    chosen = loaded.assignment(assignment)
    if page is not None:
        check_room(Path(page))
    pairs = finding.similar(loaded, chosen, Path(submissions), most, least)
    if page is not None:
        write_alike(Path(page), chosen.title, pairs)
    return pairs


def sheet(
    assignment: str,
    grades: AnyPath = "grades",
    course: AnyPath | Course = ".",
    *,
    student: str | None = None,
    everybody: bool = False,
    section: str | None = None,
    seed: int = 0,
    page: AnyPath | None = None,
    jobs: int | None = None,
    unsafe: bool = False,
    on_sheet: OnProgress | None = None,
) -> "Sheets":
    """Write a sheet to print about the graded work on one assignment.

    It is for teaching assistants, about the class; with `student` or `everybody`, for a
    conversation of five minutes about a student's own code. Equal submissions and seeds give equal
    sheets. `page` is the HTML file; by default, it lies in `sheets/` in the folder of grades.
    """
    from autograder.extras.sheets import sheets
    from autograder.extras.sheets.conversation import SheetJob

    loaded = load_course(course)
    chosen = loaded.assignment(assignment)
    reading = grades_at(Path(grades))
    folder = reading.path.parent
    refuse_links(folder)
    effective = _effective(reading, loaded, section)
    names = read_names(folder) | {k: name for k, name in effective.people.names.items() if name}
    plan = _plan(loaded, seed, unsafe, jobs, (chosen.name,))
    of_assignment = [grade for grade in effective.grades if grade.assignment == chosen.name]
    if student is not None:
        students = dict.fromkeys((grade.student for grade in effective.grades), "") | names
        named = _roster(loaded, None, folder).student_id(student, students, read_originals(folder))
        of_assignment = [grade for grade in of_assignment if grade.student == named]
    if not of_assignment:
        who = f"{student} has" if student else "There is"
        raise RefusedError(f"{who} no graded work on {chosen.name} in {folder}.")
    if student is None and not everybody:
        file = _path(page) or sheets.class_file(folder, chosen)
        return sheets.write_class_page(
            plan, folder, chosen, of_assignment, names, file, on_sheet or _ignore
        )
    file = _path(page) or sheets.conversations_file(
        folder, chosen, of_assignment[0].student if student else None
    )
    sheet_jobs = [SheetJob(folder.absolute(), grade, seed) for grade in of_assignment]
    return sheets.write_conversations(plan, chosen, sheet_jobs, names, file, on_sheet or _ignore)


def check(target: AnyPath = ".") -> "CheckReport":
    """Run the visible tests on a student's file in this process; `target` is the file, its folder or its name."""
    from autograder.selfcheck.check import check_target

    return check_target(Path(target))


def doctor(
    walls: bool = False, course: AnyPath = ".", *, on_tier: OnProgress | None = None
) -> "list[TierReport]":
    """Report in which sandbox tiers grading works on this machine, and why not in others.

    A small submission is graded in each tier, with what the assignments of the course import, if
    there is a course. With `walls`, every boundary is tested instead. `on_tier` is called with the
    number of tiers done and their total.
    """
    from autograder.runs.trial_submission import examine_grading
    from autograder.sandbox.doctor.verify import verify

    if walls:
        return verify()
    loaded = load_course(course) if config.course_file(Path(course)).is_file() else None
    return examine_grading(loaded, on_tier or _ignore)


def _student_of(effective: Effective, roster: Roster, folder: Path) -> Callable[[str], str]:
    """Return a function from a student of a table to the id in the grades."""
    names = dict.fromkeys((grade.student for grade in effective.grades), "") | read_names(folder)
    originals = read_originals(folder)
    return lambda student: roster.student_id(graded_name(student), names, originals)


def _plan(
    course: Course, seed: int, unsafe: bool, jobs: int | None, names: tuple[str, ...] | None = None
) -> Plan:
    return Plan(course, seed, "unsafe" if unsafe else "best", jobs or os.cpu_count() or 1, names)


def _roster(course: Course, roster: AnyPath | None = None, grades: Path | None = None) -> Roster:
    """Read this roster, or the one beside course.yml if there is one; a made-up class has none."""
    beside = course.root / ROSTER
    made_up = grades is not None and (grades / MARK).exists()
    return read_roster(_path(roster) or (beside if beside.is_file() and not made_up else None))


def _effective(journal: Reading, course: Course, section: str | None = None) -> Effective:
    folder = journal.path.parent
    return what_counts(folder, course, journal, _roster(course, None, folder).class_list, section)


def _write_pages(
    plan: Plan,
    journal: Reading,
    pictures: bool,
    on_picture: OnProgress | None,
    section: str | None = None,
) -> Report:
    folder = journal.path.parent
    refuse_links(folder)
    effective = _effective(journal, plan.course, section)
    grades = effective.grades
    scores = effective.finals
    undrawn = []
    if pictures:  # PyTorch is loaded only then
        from autograder.feedback.painter import draw_pictures

        undrawn = draw_pictures(plan, folder, grades, on_picture or _ignore)
    index = write_what_counts(folder, plan.course, effective, section)
    differences = [*final_scores.differing(plan.course, grades, scores), *effective.problems]
    notes = unknown_students(plan.course, grades, read_names(folder)) if section is None else []
    originals = {**effective.people.originals, **read_originals(folder)}
    return Report(
        folder,
        index,
        tuple(grades),
        scores,
        tuple(undrawn),
        tuple(differences),
        tuple(notes),
        absent=effective.absent,
        originals=originals,
    )


def _notes_on_choice(submissions: Sequence[texts.StoredSubmission]) -> list[str]:
    """Return the notes about the choice among several files of a student, at most a screen of them."""
    notes = list[str]()
    for stored in submissions:
        submission = stored.submission
        notes += [
            f"{submission.student}, {submission.assignment}: {note}" for note in submission.notes
        ]
    further = len(notes) - MOST_NOTES
    if further > 0:
        return [
            *notes[:MOST_NOTES],
            f"There are {further} more such notes, all of them in the report.",
        ]
    return notes


def _counting(on_progress: OnProgress, total: int) -> Callable[[object], None]:
    done = itertools.count(1)
    on_progress(0, total)
    return lambda _: on_progress(next(done), total)


def _path(path: AnyPath | None) -> Path | None:
    return None if path is None else Path(path)


def _ignore(*_: object) -> None:
    return None
