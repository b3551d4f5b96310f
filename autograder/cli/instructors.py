"""The commands for instructors: collect, grade, report, compare, decide, export, return, similar
and doctor.
"""

import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from autograder import api
from autograder.cli.base import DONE, FOUND, INFRASTRUCTURE, USAGE, say, show
from autograder.cli.console import console, progress, show_tiers, show_walls
from autograder.cli.tables import (
    show_class,
    show_comparison,
    show_decided,
    show_line,
    show_similar,
    show_to_review,
)
from autograder.course.config import course_file
from autograder.records import RefusedError


def collect(
    archives: list[str],
    assignment: str | None = None,
    roster: Path | None = None,
    times: Path | None = None,
    source: str | None = None,
    branch: str | None = None,
    output: Path = Path("submitted"),
    replace: bool = False,
    course_path: Path = Path("."),
    as_json: bool = False,
) -> int:
    """Import downloads from Canvas, Moodle or Gradescope, or git repositories, into the folder that
    `grade` reads.
    """
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
    path: Path,
    assignment: str | None = None,
    output: Path = Path("grades"),
    jobs: int = os.cpu_count() or 1,
    cluster: str | None = None,
    seed: int | None = None,
    regrade: bool = False,
    watch: bool = False,
    collect: str | None = None,
    every: float = 10,
    unsafe: bool = False,
    trust_timestamps: bool = False,
    trust_grades: bool = False,
    pictures: bool = False,
    course_path: Path = Path("."),
    as_json: bool = False,
) -> int:
    """Grade a class, each submission in its own sandbox; an interrupted run continues where it
    stopped.
    """
    course = api.load_course(course_path)
    if watch:
        others = {"cluster": cluster, "seed": seed, "regrade": regrade, "pictures": pictures}
        _refuse_beside_watch(others)
        api.watch(
            path,
            course,
            output,
            assignment=assignment,
            jobs=jobs,
            unsafe=unsafe,
            trust_timestamps=trust_timestamps,
            trust_grades=trust_grades,
            collect=collect,
            every_minutes=every,
            on_ready=lambda page: say(
                f"Watching {path}. What is going on: {page}. Ctrl-C ends it."
            ),
            on_grade=lambda grade: show_line(grade, course, as_json),
            on_postponed=say,
            on_problem=say,
        )
        say("Stopped. What was graded is in the journal; the same command goes on from there.")
        return DONE
    if collect is not None:
        raise RefusedError("--collect is for --watch; otherwise, run `autograder collect` first.")
    with progress(quiet=as_json) as steps:
        run = api.grade(
            path,
            course,
            output,
            assignment=assignment,
            jobs=jobs,
            seed=seed,
            regrade=regrade,
            unsafe=unsafe,
            trust_timestamps=trust_timestamps,
            trust_grades=trust_grades,
            pictures=pictures,
            cluster=cluster,
            on_grade=steps("Grading"),
            on_picture=steps("Drawing"),
        )
    say(*run.messages)
    show_class(console, course, run, as_json=as_json)
    if run.summary.failures:
        return INFRASTRUCTURE
    return FOUND if run.undrawn else DONE


def _refuse_beside_watch(options: Mapping[str, object]) -> None:
    """Raise RefusedError for an option that is given, and that `--watch` does not have."""
    for name, value in options.items():
        if value not in (None, False):
            raise RefusedError(f"--watch and --{name} do not go together; leave one of them out.")


def report(
    grades: Path = Path("grades"),
    pictures: bool = False,
    section: str | None = None,
    jobs: int = os.cpu_count() or 1,
    unsafe: bool = False,
    course_path: Path = Path("."),
    as_json: bool = False,
) -> int:
    """Write the report pages again from a journal, without grading."""
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


def compare(old: Path, new: Path, course_path: Path = Path("."), as_json: bool = False) -> int:
    """Compare two gradings: list the students whose score changed, and the tests that changed it.

    In a course, its decisions are laid over both.
    """
    # then `compare` says what is wrong
    is_given = course_file(course_path).is_file() or not course_path.exists()
    comparison = api.compare(old, new, course_path if is_given else None)
    say(*comparison.notes)
    show(as_json, comparison.as_record, lambda: show_comparison(console, comparison))
    return DONE


def decide(
    student: str | None = None,
    assignment: str | None = None,
    give: float | None = None,
    take: float | None = None,
    part: str | None = None,
    comment: str | None = None,
    excuse: bool = False,
    accept_late: bool = False,
    drop: str | None = None,
    counts: str | None = None,
    reason: str | None = None,
    by: str | None = None,
    pick: bool = False,
    border: list[float] = [50],  # noqa: B006
    within: float = 2,
    grades: Path = Path("grades"),
    course_path: Path = Path("."),
    as_json: bool = False,
) -> int:
    """Decide about grades: points, comments, excuses, dropped tests, late work.

    Writes decisions.yml.
    """
    if pick:
        found = api.to_review(grades, course_path, border, within)
        show(as_json, lambda: found, lambda: show_to_review(console, found))
        return DONE
    if by is None:
        raise RefusedError("Say who decides: --by NAME, or the environment variable AUTOGRADER_BY.")
    flags = {"excuse": excuse or None, "accept_late": accept_late or None}
    made = dict(give=give, take=take, part=part, comment=comment, drop=drop, counts=counts, **flags)
    decided = api.decide(student, assignment, course_path, grades, by=by, reason=reason, **made)
    show(
        as_json,
        lambda: [asdict(one.grade) for one in decided],
        lambda: show_decided(console, decided),
    )
    return DONE


def export(
    to: str,
    grades: Path = Path("grades"),
    assignment: str | None = None,
    sheet: Path | None = None,
    column: str | None = None,
    roster: Path | None = None,
    section: str | None = None,
    submissions: Path | None = None,
    output: Path | None = None,
    hidden: str | None = None,
    course_path: Path = Path("."),
    as_json: bool = False,
) -> int:
    """Export a class's grades, or an assignment's autograder, to another tool."""
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
    grades: Path,
    repositories: str,
    to: str = "git",
    assignment: str | None = None,
    roster: Path | None = None,
    branch: str = "feedback",
    replace: bool = False,
    course_path: Path = Path("."),
    as_json: bool = False,
) -> int:
    """Return each student's feedback to a branch of the student's repository."""
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
    path: Path,
    assignment: str,
    most: int = 20,
    least: float = 15,
    output: Path | None = None,
    course_path: Path = Path("."),
    as_json: bool = False,
) -> int:
    """List pairs of submissions that are unusually alike, as a starting point for review, not as a
    verdict.
    """
    found = api.similar(path, assignment, course_path, most=most, least=least / 100, page=output)
    page = {"page": str(output)} if output else {}
    show(as_json, lambda: {**found.as_record(), **page}, lambda: show_similar(console, found))
    if output and not as_json:
        print(f"Side by side: {output}")
    return DONE


def doctor(walls: bool = False, course_path: Path = Path("."), as_json: bool = False) -> int:
    """Show in which sandbox tiers grading works on this machine, and why not in others."""
    from autograder.sandbox.doctor.verify import is_sound

    with progress(quiet=as_json or walls) as steps:
        reports = api.doctor(walls, course_path, on_tier=steps("Trying"))
    screen = show_walls if walls else show_tiers
    show(as_json, lambda: [asdict(report) for report in reports], lambda: screen(reports))
    usable = [report for report in reports if report.works]
    return DONE if is_sound(reports) and not usable[0].problems else FOUND
