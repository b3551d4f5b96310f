"""The commands for instructors: collect, grade, report, compare, decide, export, return, similar, sheet and doctor.

Each imports what it needs: the commands of students and authors start without it.
"""

import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from autograder.cli.base import DONE, FOUND, INFRASTRUCTURE, USAGE, say, show
from autograder.cli.console import console, progress, show_tiers, show_walls
from autograder.cli.options import (
    PROCESSORS,
    AsJson,
    CoursePath,
    GradesFolder,
    Jobs,
    OneAssignment,
    Pictures,
    RosterFile,
    Section,
    Unsafe,
    path_argument,
    path_option,
)
from autograder.course.config import Course, course_file
from autograder.records import RefusedError

AS_ROOT = "Grading as root: an ordinary user is safer, who has less to lose if the sandbox fails."


def collect(
    archives: Annotated[
        list[str],
        typer.Argument(
            metavar="ARCHIVE...",
            help="Archives downloaded from a course site, or folders; with --from git, a table.",
        ),
    ],
    assignment: Annotated[
        str | None,
        typer.Option(
            "--assignment", "-a", help="The assignment, if the archives' names do not contain it."
        ),
    ] = None,
    roster: RosterFile = None,
    times: Annotated[
        Path | None,
        path_option(help="A CSV file with submission times, such as Moodle's grading worksheet."),
    ] = None,
    source: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="SOURCE",
            help="The format: canvas, moodle, gradescope, brightspace, blackboard, folders or git.",
        ),
    ] = None,
    branch: Annotated[
        str | None,
        typer.Option(help="With --from git: the branch or tag that stands for the hand-in."),
    ] = None,
    output: Annotated[
        Path, path_option("--output", "-o", help="The folder to write the submissions to.")
    ] = Path("submitted"),
    replace: Annotated[
        bool,
        typer.Option(
            "--replace", help="Also replace files that were changed by hand, after saving a copy."
        ),
    ] = False,
    course_path: CoursePath = Path("."),
    as_json: AsJson = False,
) -> int:
    """Import downloads from Canvas, Moodle or Gradescope, or git repositories, into the folder that `grade` reads."""
    from autograder import api

    if "" in archives:
        raise RefusedError("The path is empty.")  # often a variable of a script that is not set
    with progress(quiet=as_json) as steps:
        report = api.collect(
            archives,
            course_path,
            output,
            assignment=assignment,
            roster=roster,
            times=times,
            source=source,
            branch=branch,
            replace=replace,
            on_repository=steps("Repositories"),
        )
    say(*report.notes, *report.odd, *report.broken)
    show(as_json, report.as_record, lambda: print(report.summary))
    if report.broken:
        return USAGE
    return FOUND if report.odd or not report.counts else DONE


def grade(
    path: Annotated[
        Path, path_argument(metavar="SUBMISSIONS", help="A folder, an archive or one file.")
    ],
    assignment: Annotated[
        str | None, typer.Option("--assignment", "-a", help="Grade only this assignment.")
    ] = None,
    output: Annotated[
        Path, path_option("--output", "-o", help="The folder for the journal and the reports.")
    ] = Path("grades"),
    jobs: Jobs = PROCESSORS,
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Grade on a Dask cluster: local:4, tls://scheduler:8786 or a YAML file.",
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Repeat a run with the seed stored in its grades.")
    ] = None,
    regrade: Annotated[
        bool, typer.Option("--regrade", help="Also grade unchanged submissions again.")
    ] = False,
    watch: Annotated[
        bool,
        typer.Option(
            "--watch",
            help="Grade what is handed in as it comes, until Ctrl-C; also nbgrader's inbound folder.",
        ),
    ] = False,
    collect: Annotated[
        str | None,
        typer.Option(
            "--collect",
            metavar="REPOSITORIES",
            help="With --watch: also collect from these repositories, a table or an address with {student}.",
        ),
    ] = None,
    every: Annotated[
        float, typer.Option(min=1, help="With --collect: how many minutes apart.")
    ] = 10,
    unsafe: Unsafe = False,
    trust_timestamps: Annotated[
        bool,
        typer.Option(
            "--trust-timestamps", help="Use nbgrader's timestamp.txt, which students can forge."
        ),
    ] = False,
    trust_grades: Annotated[
        bool,
        typer.Option(
            "--trust-grades",
            help="Believe what another person or machine wrote into the output folder.",
        ),
    ] = False,
    pictures: Pictures = False,
    course_path: CoursePath = Path("."),
    as_json: AsJson = False,
) -> int:
    """Grade a class, each submission in its own sandbox; an interrupted run continues where it stopped."""
    from autograder import api
    from autograder.cli.tables import show_class

    course = api.load_course(course_path)
    if is_root() and not as_json:
        say(AS_ROOT)
    shared: dict[str, Any] = {
        "assignment": assignment,
        "jobs": jobs,
        "unsafe": unsafe,
        "trust_timestamps": trust_timestamps,
        "trust_grades": trust_grades,
    }
    if watch:
        others = {"cluster": cluster, "seed": seed, "regrade": regrade, "pictures": pictures}
        _refuse_beside_watch(others)
        return _watch(path, course, output, as_json, collect=collect, every_minutes=every, **shared)
    if collect is not None:
        raise RefusedError("--collect is for --watch; otherwise, run `autograder collect` first.")
    with progress(quiet=as_json) as steps:
        run = api.grade(
            path,
            course,
            output,
            seed=seed,
            regrade=regrade,
            pictures=pictures,
            cluster=cluster,
            **shared,
            on_grade=steps("Grading"),
            on_picture=steps("Drawing"),
        )
    say(*run.messages)
    show_class(console, course, run, as_json=as_json)
    if run.summary.failures:
        return INFRASTRUCTURE
    return FOUND if run.undrawn else DONE


def is_root() -> bool:
    """Whether this user may do everything on this machine; False where no user is told by a number."""
    return hasattr(os, "geteuid") and os.geteuid() == 0


def _watch(path: Path, course: Course, output: Path, as_json: bool, **options: Any) -> int:
    """Grade until Ctrl-C, with the options of `api.watch`."""
    from autograder import api
    from autograder.cli.tables import show_line

    api.watch(
        path,
        course,
        output,
        on_ready=lambda page: say(f"Watching {path}. What is going on: {page}. Ctrl-C ends it."),
        on_grade=lambda grade: show_line(grade, course, as_json),
        on_postponed=say,
        on_problem=say,
        **options,
    )
    say("Stopped. What was graded is in the journal; the same command goes on from there.")
    return DONE


def _refuse_beside_watch(options: Mapping[str, object]) -> None:
    """Raise RefusedError for an option that is given, and that `--watch` does not have."""
    for name, value in options.items():
        if value not in (None, False):
            raise RefusedError(f"--watch and --{name} do not go together; leave one of them out.")


def report(
    grades: GradesFolder = Path("grades"),
    pictures: Pictures = False,
    section: Section = None,
    jobs: Annotated[
        int, typer.Option("--jobs", "-j", min=1, help="Number of processes that draw pictures.")
    ] = PROCESSORS,
    unsafe: Annotated[
        bool, typer.Option("--unsafe", help="Allow drawing without a sandbox.")
    ] = False,
    course_path: CoursePath = Path("."),
    as_json: AsJson = False,
) -> int:
    """Write the report pages again from a journal, without grading."""
    from autograder import api

    with progress(quiet=as_json) as steps:
        pages = api.report(
            grades,
            course_path,
            pictures=pictures,
            section=section,
            jobs=jobs,
            unsafe=unsafe,
            on_picture=steps("Drawing"),
        )
    say(*pages.messages)
    show(as_json, pages.as_record, lambda: print(pages.index))
    return FOUND if pages.undrawn or pages.differences else DONE


def compare(
    old: Annotated[Path, path_argument(help="The earlier grades.jsonl, or its folder.")],
    new: Annotated[Path, path_argument(help="The later grades.jsonl, or its folder.")],
    course_path: CoursePath = Path("."),
    as_json: AsJson = False,
) -> int:
    """Compare two gradings: list the students whose score changed, and the tests that changed it.

    In a course, its decisions are laid over both.
    """
    from autograder import api
    from autograder.cli.tables import show_comparison

    # then `compare` says what is wrong
    is_given = course_file(course_path).is_file() or not course_path.exists()
    comparison = api.compare(old, new, course_path if is_given else None)
    say(*comparison.notes)
    show(as_json, comparison.as_record, lambda: show_comparison(console, comparison))
    return DONE


def decide(
    student: Annotated[
        str | None,
        typer.Argument(help="A student's id, name or login, or a submission; none with --drop."),
    ] = None,
    assignment: Annotated[
        str | None, typer.Option("--assignment", "-a", help="The assignment.")
    ] = None,
    give: Annotated[float | None, typer.Option(metavar="POINTS", help="Give points back.")] = None,
    take: Annotated[float | None, typer.Option(metavar="POINTS", help="Take points off.")] = None,
    part: Annotated[str | None, typer.Option(help="The part of these points.")] = None,
    comment: Annotated[
        str | None, typer.Option(metavar="TEXT", help="A comment for the student.")
    ] = None,
    excuse: Annotated[
        bool, typer.Option("--excuse", help="Count neither the score nor its maximum.")
    ] = False,
    accept_late: Annotated[
        bool, typer.Option("--accept-late", help="Deduct nothing for lateness.")
    ] = False,
    drop: Annotated[
        str | None, typer.Option(metavar="TEST", help="Drop a test for everybody.")
    ] = None,
    counts: Annotated[
        str | None,
        typer.Option(
            help="A dropped test counts: full (its points for everybody) or out (of the total)."
        ),
    ] = None,
    reason: Annotated[
        str | None, typer.Option("--reason", "-r", help="The reason, which the student reads.")
    ] = None,
    by: Annotated[
        str | None, typer.Option(envvar=["AUTOGRADER_BY", "USER", "USERNAME"], help="The author.")
    ] = None,
    pick: Annotated[
        bool,
        typer.Option("--pick", help="List submissions that are flagged or just below a border."),
    ] = False,
    border: Annotated[
        list[float], typer.Option(help="A border for --pick, in percent; repeatable.")
    ] = [50],  # noqa: B006
    within: Annotated[float, typer.Option(help="How far below a border, in percent.")] = 2,
    grades: Annotated[Path, path_option(help="The folder with grades.jsonl.")] = Path("grades"),
    course_path: CoursePath = Path("."),
    as_json: AsJson = False,
) -> int:
    """Decide about grades: points, comments, excuses, dropped tests, late work.

    Writes decisions.yml.
    """
    from autograder import api
    from autograder.cli.tables import show_decided, show_to_review

    if pick:
        submissions = api.to_review(grades, course_path, border, within)
        show(as_json, lambda: submissions, lambda: show_to_review(console, submissions))
        return DONE
    if by is None:
        raise RefusedError("Say who decides: --by NAME, or the environment variable AUTOGRADER_BY.")
    flags = {"excuse": excuse or None, "accept_late": accept_late or None}
    decision = dict(
        give=give, take=take, part=part, comment=comment, drop=drop, counts=counts, **flags
    )
    decided = api.decide(student, assignment, course_path, grades, by=by, reason=reason, **decision)
    show(
        as_json,
        lambda: [asdict(after.grade) for after in decided],
        lambda: show_decided(console, decided),
    )
    return DONE


def export(
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="TOOL",
            help="csv, canvas, moodle, moodle-feedback, gradescope, classroom50, junit or nbgrader.",
        ),
    ],
    grades: GradesFolder = Path("grades"),
    assignment: OneAssignment = None,
    sheet: Annotated[
        Path | None, path_option(help="The gradebook file from Canvas or Moodle to fill in.")
    ] = None,
    column: Annotated[
        str | None,
        typer.Option(help="The column to fill, if its title differs from the assignment's."),
    ] = None,
    roster: RosterFile = None,
    section: Section = None,
    submissions: Annotated[
        Path | None,
        path_option(help="The folder with the class's submissions; by default `submitted`."),
    ] = None,
    output: Annotated[Path | None, path_option("--output", "-o", help="The file to write.")] = None,
    hidden: Annotated[
        str | None,
        typer.Option(
            help="Gradescope shows hidden tests: hidden, after_due_date, after_published, visible."
        ),
    ] = None,
    course_path: CoursePath = Path("."),
    as_json: AsJson = False,
) -> int:
    """Export a class's grades, or an assignment's autograder, to another tool."""
    from autograder import api

    exported = api.export(
        to,
        grades,
        course_path,
        assignment=assignment,
        sheet=sheet,
        column=column,
        roster=roster,
        section=section,
        submissions=submissions,
        output=output,
        hidden=hidden,
    )
    say(*exported.problems)
    show(as_json, exported.as_record, lambda: print(exported.summary))
    return FOUND if exported.problems else DONE


def return_feedback(
    grades: GradesFolder,
    repositories: Annotated[
        str,
        typer.Argument(
            metavar="REPOSITORIES", help="A table of repositories, or an address with {student}."
        ),
    ],
    to: Annotated[
        str, typer.Option("--to", metavar="TOOL", help="Where to; `git` is the only value.")
    ] = "git",
    assignment: Annotated[
        str | None,
        typer.Option("--assignment", "-a", help="Return only the feedback on this assignment."),
    ] = None,
    roster: RosterFile = None,
    branch: Annotated[
        str, typer.Option(help="The branch to write; no other is touched.")
    ] = "feedback",
    replace: Annotated[
        bool,
        typer.Option(
            "--replace", help="Also replace a branch of that name that the course did not write."
        ),
    ] = False,
    course_path: CoursePath = Path("."),
    as_json: AsJson = False,
) -> int:
    """Return each student's feedback to a branch of the student's repository."""
    from autograder import api

    with progress(quiet=as_json) as steps:
        returned = api.return_feedback(
            grades,
            repositories,
            course_path,
            to=to,
            assignment=assignment,
            roster=roster,
            branch=branch,
            replace=replace,
            on_repository=steps("Repositories"),
        )
    say(*returned.problems)
    show(as_json, returned.as_record, lambda: print(returned.summary))
    return FOUND if returned.problems else DONE


def similar(
    path: Annotated[
        Path, path_argument(metavar="SUBMISSIONS", help="A folder or an archive of a class.")
    ],
    assignment: Annotated[
        str, typer.Option("--assignment", "-a", help="The assignment to compare.")
    ],
    most: Annotated[int, typer.Option(min=1, help="Maximum number of pairs.")] = 20,
    least: Annotated[
        float, typer.Option(min=0, max=100, help="Minimum likeness of a pair, in percent.")
    ] = 15,
    output: Annotated[
        Path | None,
        path_option("--output", "-o", help="Write an HTML page with each pair side by side."),
    ] = None,
    course_path: CoursePath = Path("."),
    as_json: AsJson = False,
) -> int:
    """List pairs of submissions that are unusually alike, as a starting point for review, not as a verdict."""
    from autograder import api
    from autograder.cli.tables import show_similar

    pairs = api.similar(path, assignment, course_path, most=most, least=least / 100, page=output)
    page = {"page": str(output)} if output else {}
    show(as_json, lambda: {**pairs.as_record(), **page}, lambda: show_similar(console, pairs))
    if output and not as_json:
        print(f"Side by side: {output}")
    return DONE


def sheet(
    assignment: Annotated[str, typer.Argument(help="The assignment, such as 03_masked_heads.")],
    student: Annotated[
        str | None,
        typer.Option(
            "--student", "-s", help="For a conversation with this student: an id, name or login."
        ),
    ] = None,
    everybody: Annotated[
        bool, typer.Option("--all", help="For a conversation with each student, in one file.")
    ] = False,
    seed: Annotated[
        int, typer.Option(help="Equal submissions and seeds give equal questions.")
    ] = 0,
    section: Section = None,
    grades: Annotated[Path, path_option(help="The folder with grades.jsonl.")] = Path("grades"),
    output: Annotated[
        Path | None,
        path_option("--output", "-o", help="The HTML file; by default, in `sheets/` beside it."),
    ] = None,
    jobs: Jobs = PROCESSORS,
    unsafe: Unsafe = False,
    course_path: CoursePath = Path("."),
    as_json: AsJson = False,
) -> int:
    """Write a page to print: for teaching assistants, or questions about a student's own code.

    A sheet is paper for people: it gives no points and judges nobody.
    """
    from autograder import api

    if student is not None and everybody:
        raise RefusedError("--student and --all do not go together; leave one of them out.")
    with progress(quiet=as_json) as steps:
        sheets = api.sheet(
            assignment,
            grades,
            course_path,
            student=student,
            everybody=everybody,
            section=section,
            seed=seed,
            page=output,
            jobs=jobs,
            unsafe=unsafe,
            on_sheet=steps("Preparing"),
        )
    say(*sheets.problems)
    show(as_json, sheets.as_record, lambda: print(sheets.path))
    return DONE


def doctor(
    walls: Annotated[
        bool, typer.Option("--verify", help="Test every boundary of every sandbox tier.")
    ] = False,
    course_path: CoursePath = Path("."),
    as_json: AsJson = False,
) -> int:
    """Show in which sandbox tiers grading works on this machine, and why not in others."""
    from autograder import api
    from autograder.sandbox.doctor.verify import is_sound

    with progress(quiet=as_json or walls) as steps:
        reports = api.doctor(walls, course_path, on_tier=steps("Trying"))
    screen = show_walls if walls else show_tiers
    show(as_json, lambda: [asdict(report) for report in reports], lambda: screen(reports))
    usable = [report for report in reports if report.works]
    return DONE if is_sound(reports) and not usable[0].problems else FOUND
