"""The commands for instructors: collect, grade, report, compare, decide, export, similar and doctor."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from autograder import api
from autograder.cli.base import DONE, FOUND, INFRASTRUCTURE, CommandUsageError, CourseOption, JsonOption, say
from autograder.course.config import has_course

PicturesOption = Annotated[
    bool, typer.Option("--pictures", help="Also draw pictures of failing code for the feedback.")
]

RosterOption = Annotated[
    Path | None, typer.Option(help="A CSV file with the students; by default, roster.csv beside course.yml.")
]
SectionOption = Annotated[str | None, typer.Option(help="Only this section of the roster.")]


def collect(
    archives: Annotated[
        list[Path], typer.Argument(metavar="ARCHIVE...", help="Archives downloaded from a course site, or folders.")
    ],
    assignment: Annotated[
        str | None, typer.Option("--assignment", "-a", help="The assignment, if the archives' names do not contain it.")
    ] = None,
    roster: RosterOption = None,
    times: Annotated[
        Path | None, typer.Option(help="A CSV file with submission times, such as Moodle's grading worksheet.")
    ] = None,
    source: Annotated[
        str | None, typer.Option("--from", help="The format: canvas, moodle, gradescope or folders.", metavar="SOURCE")
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder to write the submissions to.")] = Path(
        "submitted"
    ),
    replace: Annotated[
        bool, typer.Option("--replace", help="Also replace files that were changed by hand, after saving a copy.")
    ] = False,
    course_path: CourseOption = Path("."),
    as_json: JsonOption = False,
) -> int:
    """Import downloads from Canvas, Moodle or Gradescope into the folder that `grade` reads."""
    report = api.collect(
        archives, course_path, output, assignment=assignment, roster=roster, times=times, source=source, replace=replace
    )
    say(*report.notes, *report.odd)
    print(json.dumps(report.as_record(), ensure_ascii=False) if as_json else report.summary)
    return FOUND if report.odd or not report.counts else DONE


def grade(
    path: Annotated[Path, typer.Argument(metavar="SUBMISSIONS", help="A folder, an archive or one file.")],
    assignment: Annotated[str | None, typer.Option("--assignment", "-a", help="Grade only this assignment.")] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder for the journal and the reports.")] = Path(
        "grades"
    ),
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="Number of parallel graders.")] = os.cpu_count() or 1,
    cluster: Annotated[
        str | None,
        typer.Option(help="Grade on a Dask cluster: local:4, tls://scheduler:8786 or a YAML file.", metavar="ADDRESS"),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Repeat a run with the seed stored in its grades.")] = None,
    regrade: Annotated[bool, typer.Option("--regrade", help="Also grade unchanged submissions again.")] = False,
    unsafe: Annotated[bool, typer.Option("--unsafe", help="Allow grading without a sandbox.")] = False,
    trust_timestamps: Annotated[
        bool, typer.Option("--trust-timestamps", help="Use nbgrader's timestamp.txt, which students can forge.")
    ] = False,
    pictures: PicturesOption = False,
    course_path: CourseOption = Path("."),
    as_json: JsonOption = False,
) -> int:
    """Grade a class, each submission in its own sandbox; an interrupted run continues where it stopped."""
    from autograder.cli.console import console, progress
    from autograder.cli.tables import show_class

    course = api.load_course(course_path)
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
            pictures=pictures,
            cluster=cluster,
            on_grade=steps("Grading"),
            on_picture=steps("Drawing"),
        )
    say(*run.messages)
    show_class(console, course, run, as_json=as_json)
    return INFRASTRUCTURE if run.summary.failures else FOUND if run.undrawn else DONE


def report(
    grades: Annotated[Path, typer.Argument(help="The folder with grades.jsonl.")] = Path("grades"),
    pictures: PicturesOption = False,
    section: SectionOption = None,
    jobs: Annotated[
        int, typer.Option("--jobs", "-j", min=1, help="Number of parallel drawing processes.")
    ] = os.cpu_count() or 1,
    unsafe: Annotated[bool, typer.Option("--unsafe", help="Allow drawing without a sandbox.")] = False,
    course_path: CourseOption = Path("."),
    as_json: JsonOption = False,
) -> int:
    """Write the report pages again from a journal, without grading."""
    from autograder.cli.console import progress

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
    print(json.dumps(pages.as_record(), ensure_ascii=False) if as_json else pages.index)
    return FOUND if pages.undrawn or pages.differences else DONE


def compare(
    old: Annotated[Path, typer.Argument(help="The earlier grades.jsonl, or its folder.")],
    new: Annotated[Path, typer.Argument(help="The later grades.jsonl, or its folder.")],
    course_path: CourseOption = Path("."),
    as_json: JsonOption = False,
) -> int:
    """Compare two gradings: list the students whose score changed, and the tests that changed it.

    In a course, its decisions are laid over both.
    """
    from autograder.cli.console import console
    from autograder.cli.tables import show_comparison

    comparison = api.compare(old, new, course_path if has_course(course_path) else None)
    say(*comparison.notes)
    if as_json:
        print(json.dumps(comparison.as_record(), ensure_ascii=False))
    else:
        show_comparison(console, comparison)
    return DONE


def decide(
    student: Annotated[
        str | None, typer.Argument(help="A student's id, name or login, or a submission; none with --drop.")
    ] = None,
    assignment: Annotated[str | None, typer.Option("--assignment", "-a", help="The assignment.")] = None,
    give: Annotated[float | None, typer.Option(help="Give points back.", metavar="POINTS")] = None,
    take: Annotated[float | None, typer.Option(help="Take points off.", metavar="POINTS")] = None,
    part: Annotated[str | None, typer.Option(help="The part to which these points belong.")] = None,
    comment: Annotated[str | None, typer.Option(help="A comment for the student.", metavar="TEXT")] = None,
    excuse: Annotated[bool, typer.Option("--excuse", help="Count neither the score nor its maximum.")] = False,
    accept_late: Annotated[bool, typer.Option("--accept-late", help="Deduct nothing for lateness.")] = False,
    drop: Annotated[str | None, typer.Option(help="Drop a test for everybody.", metavar="TEST")] = None,
    counts: Annotated[
        str | None, typer.Option(help="A dropped test counts: full (its points for everybody) or out (of the total).")
    ] = None,
    reason: Annotated[str | None, typer.Option("--reason", "-r", help="The reason, which the student reads.")] = None,
    by: Annotated[str | None, typer.Option(help="The author.", envvar=["AUTOGRADER_BY", "USER", "USERNAME"])] = None,
    pick: Annotated[
        bool, typer.Option("--pick", help="List submissions that are flagged or just below a border.")
    ] = False,
    border: Annotated[list[float], typer.Option(help="A border for --pick, in percent; repeatable.")] = [50],  # noqa: B006
    within: Annotated[float, typer.Option(help="How far below a border, in percent.")] = 2,
    grades: Annotated[Path, typer.Option(help="The folder with grades.jsonl.")] = Path("grades"),
    course_path: CourseOption = Path("."),
    as_json: JsonOption = False,
) -> int:
    """Decide about grades: points, comments, excuses, dropped tests, late work. Writes decisions.yml."""
    from autograder.cli.console import console
    from autograder.cli.tables import show_decided, show_to_review

    if pick:
        found = api.to_review(grades, course_path, border, within)
        print(json.dumps(found, ensure_ascii=False)) if as_json else show_to_review(console, found)
        return DONE
    if by is None:
        raise CommandUsageError("Say which author with --by.")
    flags = {"excuse": excuse or None, "accept_late": accept_late or None}
    made = dict(give=give, take=take, part=part, comment=comment, drop=drop, counts=counts, **flags)
    decided = api.decide(student, assignment, course_path, grades, by=by, reason=reason, **made)
    if as_json:
        print(json.dumps([asdict(one.grade) for one in decided], ensure_ascii=False))
    else:
        show_decided(console, decided)
    return DONE


def export(
    to: Annotated[
        str,
        typer.Option(
            "--to",
            help="csv, canvas, moodle, moodle-feedback, gradescope, classroom50, junit or nbgrader.",
            metavar="TOOL",
        ),
    ],
    grades: Annotated[Path, typer.Argument(help="The folder with grades.jsonl.")] = Path("grades"),
    assignment: Annotated[str | None, typer.Option("--assignment", "-a", help="Only this assignment.")] = None,
    sheet: Annotated[Path | None, typer.Option(help="The gradebook file from Canvas or Moodle to fill in.")] = None,
    column: Annotated[
        str | None, typer.Option(help="The column to fill, if its title differs from the assignment's.")
    ] = None,
    roster: RosterOption = None,
    section: SectionOption = None,
    submissions: Annotated[
        Path | None, typer.Option(help="The folder with the class's submissions; by default `submitted`.")
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="The file to write.")] = None,
    hidden: Annotated[
        str | None,
        typer.Option(help="Gradescope shows hidden tests: hidden, after_due_date, after_published, visible."),
    ] = None,
    course_path: CourseOption = Path("."),
    as_json: JsonOption = False,
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
    print(json.dumps(exported.as_record(), ensure_ascii=False) if as_json else exported.summary)
    return FOUND if exported.problems else DONE


def similar(
    path: Annotated[Path, typer.Argument(metavar="SUBMISSIONS", help="A folder or an archive of a class.")],
    assignment: Annotated[str, typer.Option("--assignment", "-a", help="The assignment to compare.")],
    most: Annotated[int, typer.Option(min=1, help="Maximum number of pairs.")] = 20,
    least: Annotated[float, typer.Option(min=0, max=100, help="Minimum likeness of a pair, in percent.")] = 15,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write an HTML page with each pair side by side.")
    ] = None,
    course_path: CourseOption = Path("."),
    as_json: JsonOption = False,
) -> int:
    """List pairs of submissions that are unusually alike, as a starting point for review, not as a verdict."""
    from autograder.cli.console import console
    from autograder.cli.tables import show_similar

    found = api.similar(path, assignment, course_path, most=most, least=least / 100, page=output)
    if as_json:
        print(json.dumps([pair.as_record() for pair in found.pairs], ensure_ascii=False))
        return DONE
    show_similar(console, found)
    if output:
        print(f"Side by side: {output}")
    return DONE


def doctor(
    walls: Annotated[bool, typer.Option("--verify", help="Test every boundary of every sandbox tier.")] = False,
    as_json: JsonOption = False,
) -> int:
    """Show which sandbox tiers work on this machine, and why others do not."""
    if walls:
        return _verify_walls(as_json)
    from autograder.cli.console import show_tiers

    reports = api.doctor()
    if as_json:
        print(json.dumps([asdict(report) for report in reports], ensure_ascii=False))
    else:
        show_tiers(reports)
    return DONE if any(report.works and report.tier != "unsafe" for report in reports) else FOUND


def _verify_walls(as_json: bool) -> int:
    from autograder.cli.console import show_walls

    columns, sound = api.verify()
    if as_json:
        print(json.dumps([asdict(column) for column in columns], ensure_ascii=False))
    else:
        show_walls(columns)
    return DONE if sound else FOUND
