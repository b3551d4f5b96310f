"""The commands for instructors: collect, grade, report, compare, export, similar and doctor."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from autograder import api
from autograder.cli.base import DONE, FOUND, INFRASTRUCTURE, CourseOption, JsonOption, report_errors, say

commands = typer.Typer()
PicturesOption = Annotated[
    bool, typer.Option("--pictures", help="Then draw what failing code does, for the feedback.")
]


@commands.command(rich_help_panel="Instructors")
@report_errors
def collect(
    archives: Annotated[
        list[Path], typer.Argument(metavar="ARCHIVE...", help="Downloads of a course site, or folders.")
    ],
    assignment: Annotated[
        str | None,
        typer.Option("--assignment", "-a", help="What they are for, when their names do not tell."),
    ] = None,
    roster: Annotated[
        Path | None, typer.Option(help="A CSV file with the students' ids and their other names and numbers.")
    ] = None,
    times: Annotated[
        Path | None,
        typer.Option(help="A CSV file that tells when each student's work came, such as Moodle's worksheet."),
    ] = None,
    source: Annotated[
        str | None, typer.Option("--from", help="canvas, moodle, gradescope or folders.", metavar="SOURCE")
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="Where the submissions go.")] = Path(
        "submitted"
    ),
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace what was changed by hand, too; it is kept aside.")
    ] = False,
    course_path: CourseOption = Path("."),
    as_json: JsonOption = False,
) -> int:
    """Bring downloads of Canvas, Moodle or Gradescope into the folder that `grade` reads."""
    report = api.collect(
        archives,
        course_path,
        output,
        assignment=assignment,
        roster=roster,
        times=times,
        source=source,
        replace=replace,
    )
    for sentence in (*report.notes, *report.odd):
        say(sentence)
    print(json.dumps(report.as_record(), ensure_ascii=False) if as_json else report.summary)
    return FOUND if report.odd or not report.counts else DONE


@commands.command(rich_help_panel="Instructors")
@report_errors
def grade(
    path: Annotated[Path, typer.Argument(metavar="SUBMISSIONS", help="A folder, an archive or one file.")],
    assignment: Annotated[
        str | None, typer.Option("--assignment", "-a", help="Grade only this assignment.")
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="Where journal and reports go.")] = Path(
        "grades"
    ),
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="How many graders work at once.")] = (
        os.cpu_count() or 1
    ),
    seed: Annotated[
        int | None, typer.Option(help="Repeat a run: the seed that it kept in its grades.")
    ] = None,
    regrade: Annotated[
        bool, typer.Option("--regrade", help="Grade unchanged submissions again, too.")
    ] = False,
    unsafe: Annotated[bool, typer.Option("--unsafe", help="Allow grading without a sandbox.")] = False,
    trust_timestamps: Annotated[
        bool,
        typer.Option(
            "--trust-timestamps", help="Believe nbgrader's timestamp.txt, which students could have written."
        ),
    ] = False,
    pictures: PicturesOption = False,
    course_path: CourseOption = Path("."),
    as_json: JsonOption = False,
) -> int:
    """Grade a class: every submission in its own sandbox; a killed run goes on where it stopped."""
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
            on_grade=steps("Grading"),
            on_picture=steps("Drawing"),
        )
    for sentence in run.messages:
        say(sentence)
    show_class(console, course, run, as_json=as_json)
    return INFRASTRUCTURE if run.summary.failures else FOUND if run.undrawn else DONE


@commands.command(rich_help_panel="Instructors")
@report_errors
def report(
    grades: Annotated[Path, typer.Argument(help="The folder with grades.jsonl.")] = Path("grades"),
    pictures: PicturesOption = False,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="How many painters work at once.")] = (
        os.cpu_count() or 1
    ),
    unsafe: Annotated[bool, typer.Option("--unsafe", help="Allow drawing without a sandbox.")] = False,
    course_path: CourseOption = Path("."),
) -> int:
    """Make the pages again from a journal, without grading again."""
    from autograder.cli.console import progress

    with progress(quiet=False) as steps:
        pages = api.report(
            grades, course_path, pictures=pictures, jobs=jobs, unsafe=unsafe, on_picture=steps("Drawing")
        )
    for sentence in pages.messages:
        say(sentence)
    print(pages.index)
    return FOUND if pages.undrawn or pages.differences else DONE


@commands.command(rich_help_panel="Instructors")
@report_errors
def compare(
    old: Annotated[Path, typer.Argument(help="The folder with the earlier grades.jsonl, or that file.")],
    new: Annotated[Path, typer.Argument(help="The folder with the later grades.jsonl, or that file.")],
    as_json: JsonOption = False,
) -> int:
    """See who goes up or down between two gradings, and why, before anything is published."""
    from autograder.cli.console import console
    from autograder.cli.tables import show_comparison

    comparison = api.compare(old, new)
    for sentence in comparison.notes:
        say(sentence)
    if as_json:
        print(json.dumps(comparison.as_record(), ensure_ascii=False))
    else:
        show_comparison(console, comparison)
    return DONE


@commands.command(rich_help_panel="Instructors")
@report_errors
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
    assignment: Annotated[
        str | None, typer.Option("--assignment", "-a", help="Only this assignment.")
    ] = None,
    sheet: Annotated[
        Path | None, typer.Option(help="The file from Canvas or Moodle that shall be filled in.")
    ] = None,
    column: Annotated[
        str | None, typer.Option(help="The column to fill, when its title is not the assignment's.")
    ] = None,
    roster: Annotated[
        Path | None, typer.Option(help="A CSV file with the students' ids and their other names and numbers.")
    ] = None,
    submissions: Annotated[
        Path | None, typer.Option(help="Where the class's submissions are, `submitted` if not said.")
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="The file to write.")] = None,
    hidden: Annotated[
        str,
        typer.Option(
            help="When Gradescope shows hidden tests: hidden, after_due_date, after_published, visible."
        ),
    ] = "after_published",
    course_path: CourseOption = Path("."),
) -> int:
    """Hand a class's grades, or an assignment's autograder, to another tool."""
    exported = api.export(
        to,
        grades,
        course_path,
        assignment=assignment,
        sheet=sheet,
        column=column,
        roster=roster,
        submissions=submissions,
        output=output,
        hidden=hidden,
    )
    for problem in exported.problems:
        say(problem)
    print(exported.summary)
    return FOUND if exported.problems else DONE


@commands.command(rich_help_panel="Instructors")
@report_errors
def similar(
    path: Annotated[Path, typer.Argument(metavar="SUBMISSIONS", help="A folder or an archive of a class.")],
    assignment: Annotated[str, typer.Option("--assignment", "-a", help="The assignment to look at.")],
    most: Annotated[int, typer.Option(min=1, help="List at most so many pairs.")] = 20,
    least: Annotated[float, typer.Option(min=0, max=100, help="List pairs from this likeness on.")] = 15,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write a page with each pair side by side.")
    ] = None,
    course_path: CourseOption = Path("."),
    as_json: JsonOption = False,
) -> int:
    """List submissions that are more alike than usual, for a person to look at; not a verdict."""
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


@commands.command(rich_help_panel="Instructors")
@report_errors
def doctor(
    walls: Annotated[bool, typer.Option("--verify", help="Try every wall of every kind of sandbox.")] = False,
    as_json: JsonOption = False,
) -> int:
    """Say which kind of sandbox works on this machine, and why another does not."""
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
