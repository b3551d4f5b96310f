"""The Python API: the commands as functions, for scripts and notebooks.

    import autograder

    run = autograder.grade("submitted", course=".", output="grades")
    for grade in run.grades:
        print(grade.student, grade.assignment, grade.score, grade.max_score)

Each function does the work of the command of the same name and returns records instead of tables.
Graders are separate processes, as are those that draw pictures: a script that calls `grade`, or
`report` with pictures, must do so below `if __name__ == "__main__":`, as with `multiprocessing`.
"""

import getpass
import itertools
import os
import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from zoneinfo import ZoneInfo

from autograder.course.config import Course
from autograder.course.reading import course_file
from autograder.course.reading import load_course as read_course
from autograder.feedback import objections
from autograder.feedback.html import write_what_counts
from autograder.feedback.live_pages import LivePages
from autograder.feedback.objections import Objection
from autograder.feedback.pages import feedback_path
from autograder.feedback.status_page import FOLDER as STATUS
from autograder.gradebook import comparing, decisions, final_scores, texts
from autograder.gradebook.comparing import Comparison
from autograder.gradebook.decisions import Decided, Decision, lay_over, read_decisions, unfitting
from autograder.gradebook.demo_marker import choose_output_folder
from autograder.gradebook.final_scores import (
    Effective,
    as_record,
    final_of,
    latest_grades,
    what_counts,
)
from autograder.gradebook.journal import Journal, Reading, grades_at
from autograder.gradebook.lateness import Final, GradeKey, unknown_students
from autograder.gradebook.people import people_of
from autograder.gradebook.run_state import OpenRun
from autograder.gradebook.seals import refuse_links
from autograder.gradebook.times import keep_times, read_names
from autograder.nbgrader.inbound import Inbound
from autograder.options import (
    AnyPath,
    CourseFolder,
    GradesFolder,
    GradesOption,
    Jobs,
    OneAssignment,
    OnProgress,
    OutputFolder,
    Pictures,
    Section,
    Steps,
    Submissions,
    Unsafe,
    argument,
    flag,
    ignore,
    number_option,
    path_argument,
    path_option,
    value,
    whole_option,
)
from autograder.records import Grade, InfrastructureError, RefusedError, Submission
from autograder.runs.changes import require_watchfiles
from autograder.runs.pool import Plan
from autograder.runs.repeated import Repeated
from autograder.runs.run import RunSummary, grade_class, grade_once_more, ungraded
from autograder.runs.watching import Watching
from autograder.submissions.class_folder import ClassFolder
from autograder.submissions.find import find_submissions
from autograder.submissions.output_folder import check_output
from autograder.text.files import check_folder, make_folder
from autograder.walls.outside.trusted_process import python_command

# slow: PyTorch, and notebooks with their schemas; or not on Windows, where students check their
# work
if TYPE_CHECKING:
    from autograder.selfcheck.check import CheckReport
    from autograder.walls.outside.doctor import TierReport

MOST_NOTES = 20  # about the choice among a student's files

Drawing = Annotated[OnProgress | None, Steps("Drawing")]
TrustTimestamps = Annotated[
    bool,
    flag(
        "--trust-timestamps",
        help="Use nbgrader's timestamp.txt, which students can forge.",
        advanced=True,
    ),
]
TrustGrades = Annotated[
    bool,
    flag(
        "--trust-grades",
        help="Believe what another person or machine wrote into the output folder.",
        advanced=True,
    ),
]


@dataclass(frozen=True)
class Report:
    """The report pages of a class, its effective grades, and the final scores by student and assignment.

    `undrawn` names pictures that could not be drawn. `differences` lists differences between the
    grades and `course.yml`, decisions that do not fit, and the lines of the journal that cannot be
    read. `notes` holds all other messages for the instructor. `absent` has the names of the
    students in the roster who handed in nothing, by id. `names` has the display names that are
    known; `originals` the ids of the roster or
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
    names: Mapping[str, str] = field(default_factory=dict)
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
    return course if isinstance(course, Course) else read_course(Path(course))


def grade(
    submissions: Submissions,
    course: CourseFolder = ".",
    output: OutputFolder = "grades",
    *,
    assignment: OneAssignment = None,
    jobs: Jobs = None,
    seed: Annotated[
        int | None,
        whole_option(
            "--seed", help="Repeat a run with the seed stored in its grades.", advanced=True
        ),
    ] = None,
    regrade: Annotated[
        bool, flag("--regrade", help="Also grade unchanged submissions again.")
    ] = False,
    unsafe: Unsafe = False,
    trust_timestamps: TrustTimestamps = False,
    trust_grades: TrustGrades = False,
    pictures: Pictures = False,
    cluster: Annotated[
        str | None,
        value(
            "--cluster",
            metavar="ADDRESS",
            help="Grade on a Dask cluster: local:4, tls://scheduler:8786 or a YAML file.",
            advanced=True,
        ),
    ] = None,
    on_grade: Annotated[OnProgress | None, Steps("Grading")] = None,
    on_picture: Drawing = None,
) -> Run:
    """Grade a class, each submission in its own sandbox; an interrupted run continues where it stopped.

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
    people_of(loaded, folder)
    with OpenRun(folder, seed, regrade, trust_grades) as run, Journal(folder) as journal:
        stored = texts.put(folder, itertools.chain([first], handed_in))
        keep_times(folder, source, stored, trust_timestamps, loaded)
        new = stored if regrade else ungraded(loaded, stored, journal)
        plan = plan_of(loaded, run.seed, unsafe, jobs, _assignments_of(loaded, new))
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
    tell = _counting(on_grade or ignore, unchanged + len(new))
    for _ in range(unchanged):
        tell(None)
    try:
        summary = grade_class(plan.for_submissions(len(new)), new, journal, tell, cluster)
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
    submissions: Submissions,
    course: CourseFolder = ".",
    output: OutputFolder = "grades",
    *,
    assignment: OneAssignment = None,
    jobs: Jobs = None,
    unsafe: Unsafe = False,
    trust_timestamps: TrustTimestamps = False,
    trust_grades: TrustGrades = False,
    collect: Annotated[
        str | None,
        value(
            "--collect",
            metavar="REPOSITORIES",
            help="With --watch: every ten minutes, also collect from these repositories.",
            advanced=True,
        ),
    ] = None,
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
    tell = on_problem or ignore
    inbound = Inbound(source, loaded, name, tell) if Inbound.fits(source) else None
    hand_ins = inbound or ClassFolder(source, loaded, name, trust_timestamps)
    folder, moved = _output_folder(Path(output), source, Submission("", ""))
    if folder.resolve().is_relative_to(source.resolve()):
        raise RefusedError(
            f"{folder} lies among the submissions that are watched. Name a folder outside with --output."
        )
    read_decisions(loaded)
    class_of = people_of(loaded, folder).class_list
    with OpenRun(folder, trusted=trust_grades) as run, Journal(folder) as journal:
        for problem in filter(None, (moved, run.problem, journal.problem)):
            tell(problem)
        pages = LivePages(
            folder,
            loaded,
            class_of,
            tell,
            on_grade or ignore,
            on_postponed or ignore,
            inbound.publish if inbound else None,
        )
        pages.write_all()
        plan = plan_of(loaded, run.seed, unsafe, jobs, (name,) if name else None)
        students = {grade.student: "" for grade in journal.latest.values()}
        people = class_of({**students, **read_names(folder)})
        listed = {*people.names, *people.groups}
        watching = Watching(plan, hand_ins, journal, pages, listed)
        with ExitStack() as stack:
            stack.callback(pages.end)
            if collect:
                command = _collecting(collect, source, loaded, name)
                stack.enter_context(Repeated(command, 60 * every_minutes, pages.troubled_by))
            watching.run(lambda: (on_ready or ignore)(folder / STATUS / "index.html"))


def _collecting(table: str, submissions: Path, course: Course, assignment: str | None) -> list[str]:
    """Return the command that collects from repositories, as a process beside this one."""
    only = ("--assignment", assignment) if assignment else ()
    words = ("collect", table, "--from", "git", "--output", str(submissions), *only)
    return python_command(
        "from autograder.cli import main; main()", *words, "--course", str(course.root), "--quiet"
    )


def regrade(
    submissions: AnyPath, course: AnyPath | Course = ".", output: AnyPath = "grades", **options: Any
) -> Run:
    """Grade all submissions again with fresh inputs; takes the options of `grade`."""
    return grade(submissions, course, output, regrade=True, **options)


def report(
    grades: GradesFolder = "grades",
    course: CourseFolder = ".",
    *,
    pictures: Pictures = False,
    section: Section = None,
    jobs: Jobs = None,
    unsafe: Unsafe = False,
    on_picture: Drawing = None,
) -> Report:
    """Write the report pages again from a journal, without grading.

    For a section, only its report is written.
    """
    journal = grades_at(Path(grades))
    pages = _write_pages(
        plan_of(load_course(course), 0, unsafe, jobs), journal, pictures, on_picture, section
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


def compare(
    old: Annotated[AnyPath, path_argument(metavar="OLD", help="The earlier grades or folder.")],
    new: Annotated[AnyPath, path_argument(metavar="NEW", help="The later grades or folder.")],
    course: Annotated[
        AnyPath | Course | None,
        path_option("--course", help="The course's folder or course.yml, for its decisions."),
    ] = None,
) -> Comparison:
    """Compare two gradings: list the students whose score changed, and the tests that changed it.

    With a course, its decisions are laid over both, lateness is not.
    """
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
    student: Annotated[
        str | None,
        argument(
            metavar="STUDENT",
            help="A student's id, name or login, or a submission; none with --drop.",
        ),
    ] = None,
    assignment: OneAssignment = None,
    course: CourseFolder = ".",
    grades: GradesOption = "grades",
    *,
    by: Annotated[
        str,
        value(
            "--by",
            metavar="NAME",
            envvar="AUTOGRADER_BY",
            help="The author; by default, the user of this computer.",
        ),
    ] = "",
    request: Annotated[
        AnyPath | None,
        path_option("--request", metavar="FILE", help="An objection; alone, it is only looked at."),
    ] = None,
    reason: Annotated[
        str | None,
        value(
            *("--reason", "-r", "--comment"),
            metavar="TEXT",
            help="The reason, which the student reads; alone, it is a comment.",
        ),
    ] = None,
    give: Annotated[
        float | None, number_option("--give", metavar="POINTS", help="Give points back.")
    ] = None,
    take: Annotated[
        float | None, number_option("--take", metavar="POINTS", help="Take points off.")
    ] = None,
    part: Annotated[
        str | None, value("--part", metavar="NAME", help="The part of these points.")
    ] = None,
    excuse: Annotated[
        bool, flag("--excuse", help="Count neither the score nor its maximum.")
    ] = False,
    accept_late: Annotated[
        bool, flag("--accept-late", help="Deduct nothing for lateness, and take no late days.")
    ] = False,
    drop: Annotated[
        str | None, value("--drop", metavar="TEST", help="Drop a test for everybody.")
    ] = None,
    counts: Annotated[
        str | None,
        value(
            "--counts",
            metavar="HOW",
            help="A dropped test counts: full (its points for everybody) or out (of the total).",
        ),
    ] = None,
    comment: str | None = None,
) -> list[Decided]:
    """Decide about grades: points, comments, excuses, dropped tests, late work.

    The decision is added to `decisions.yml` beside course.yml, and the grades that it is about are
    returned. Nothing is graded again. `student` is an id, a name, a login or an address of the
    roster, or the path of a submission, which also gives the assignment; None is for `drop`.
    A reason without anything else is a comment. `request` is the file of an objection, which gives
    the student and the assignment. Raises CourseError for an invalid decision, and RefusedError for
    one that does not fit the grades.
    """
    by = by or _user()
    decision: dict[str, Any] = dict(
        give=give,
        take=take,
        part=part,
        comment=comment,
        reason=reason,
        drop=drop,
        counts=counts,
        excuse=excuse or None,
        accept_late=accept_late or None,
    )
    if [name for name, given in decision.items() if given is not None] == ["reason"]:
        decision = {"comment": reason}
    loaded = load_course(course)
    reading = grades_at(Path(grades))
    effective = effective_of(reading, loaded)
    names = _names_of(effective)
    originals = effective.originals
    named = _named(student, effective, loaded, reading) if student else None
    if request is None:
        chosen = _chosen_assignment(loaded, assignment, student or "")
    else:
        asked, _ = objections.read_request(Path(request), reading, named)
        chosen = loaded.assignment(asked.assignment).name
        if assignment and loaded.assignment(assignment).name != chosen:
            raise RefusedError(f"{request} is about {chosen}, not about {assignment}.")
        named = None if drop else asked.student
        decision["request"] = asked.reference
    if named:
        decision["student"] = originals.get(named, named)
    journal = effective.journal
    if decision.get("give") or decision.get("take"):
        scores = {grade.key: grade.score for grade in journal}
        decision["score"] = scores.get((named or "", chosen))
    now = datetime.now(ZoneInfo(loaded.timezone)).replace(second=0, microsecond=0, tzinfo=None)
    new = decisions.make_decision(assignment=chosen, **decision, by=by, at=now)
    return _add_decision(loaded, new, journal, names)


def objection(
    request: AnyPath,
    student: str | None = None,
    course: AnyPath | Course = ".",
    grades: AnyPath = "grades",
) -> Objection:
    """Grade the submission of an objection once more, with the seed of its grade; nothing is written.

    Raises RefusedError, also for a text about no submission of the journal or, without a `student`,
    about the equal work of several, and InfrastructureError.
    """
    loaded = load_course(course)
    reading = grades_at(Path(grades))
    named = _named(student, effective_of(reading, loaded), loaded, reading) if student else None
    asked, grade = objections.read_request(Path(request), reading, named)
    submission = texts.get(reading.path.parent, grade)
    if submission is None:
        raise RefusedError(
            f"The graded text of {grade.student} is no longer stored. `autograder grade` stores it again."
        )
    plan = plan_of(loaded, grade.seed, False, 1, (grade.assignment,))
    return objections.looked_at(asked, grade, grade_once_more(plan, submission))


def _names_of(effective: Effective) -> dict[str, str]:
    """Return the names of all students and groups of a class by id, empty if unknown."""
    names = dict.fromkeys((grade.student for grade in effective.grades), "")
    names |= dict.fromkeys(effective.people.groups, "")
    return names | dict.fromkeys(effective.people.names, "") | dict(effective.names)


def _named(student: str, effective: Effective, course: Course, reading: Reading) -> str:
    """Return the id in the grades of the student who is named; raises RefusedError."""
    names = _names_of(effective)
    people = people_of(course, reading.path.parent)
    return people.student_id(_student_in_path(student, names), names, effective.originals)


def _user() -> str:
    """Return the name of who runs this program; raises RefusedError if the system knows none."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        raise RefusedError(
            "Say who decides: --by NAME, or the environment variable AUTOGRADER_BY."
        ) from None


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
    outdated = decisions.outdated(course, decision)
    new = decisions.Entry("The decision does not fit", decision, outdated)
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
    grades: GradesOption = "grades",
    course: CourseFolder = ".",
    borders: Annotated[
        Sequence[float],
        number_option(
            "--pick",
            metavar="PERCENT",
            help="List submissions that are flagged, or up to 2 % below this border; repeatable.",
        ),
    ] = (),
    within: float = 2,
) -> list[dict[str, Any]]:
    """Return the submissions that are flagged, or at most `within` percent below one of the `borders`, with reasons."""
    loaded = load_course(course)
    return effective_of(grades_at(Path(grades)), loaded).to_review(borders, within)


def check(target: AnyPath = ".") -> "CheckReport":
    """Run the visible tests on a student's file in this process; `target` is the file, its folder or its name."""
    from autograder.selfcheck.check import check_target

    return check_target(Path(target))


def doctor(
    course: CourseFolder = ".", *, on_tier: Annotated[OnProgress | None, Steps("Trying")] = None
) -> "list[TierReport]":
    """Show in which sandbox tiers grading works on this machine, and why not in others.

    A small submission is graded in each tier, with what the assignments of the course import, if
    there is a course. `on_tier` is called with the number of tiers done and their total.
    """
    from autograder.runs.trial_submission import examine_grading

    is_there = isinstance(course, Course) or course_file(Path(course)).is_file()
    loaded = load_course(course) if is_there else None
    return examine_grading(loaded, on_tier or ignore)


def plan_of(
    course: Course, seed: int, unsafe: bool, jobs: int | None, names: tuple[str, ...] | None = None
) -> Plan:
    """Return the plan of graders for these options and assignments; None stands for all."""
    return Plan(course, seed, "unsafe" if unsafe else "best", jobs or os.cpu_count() or 1, names)


def effective_of(journal: Reading, course: Course, section: str | None = None) -> Effective:
    """Return what counts of a journal, for the class of the course's roster."""
    folder = journal.path.parent
    return what_counts(folder, course, journal, people_of(course, folder).class_list, section)


def _write_pages(
    plan: Plan,
    journal: Reading,
    pictures: bool,
    on_picture: OnProgress | None,
    section: str | None = None,
) -> Report:
    folder = journal.path.parent
    refuse_links(folder)
    effective = effective_of(journal, plan.course, section)
    grades = effective.grades
    scores = effective.finals
    undrawn = []
    if pictures:  # PyTorch is loaded only then
        from autograder.feedback.painter import draw_pictures

        undrawn = draw_pictures(plan, folder, grades, on_picture or ignore)
    index = write_what_counts(folder, plan.course, effective, section)
    differences = [*final_scores.differing(plan.course, grades, scores), *effective.problems]
    notes = unknown_students(plan.course, grades, effective.names) if section is None else []
    return Report(
        folder,
        index,
        tuple(grades),
        scores,
        tuple(undrawn),
        tuple(differences),
        tuple(notes),
        absent=effective.absent,
        names=effective.names,
        originals=effective.originals,
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
