"""The commands for instructors: collect, grade, report, compare, export, similar and doctor."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from autograder.cli.base import (
    DONE,
    FOUND,
    INFRASTRUCTURE,
    CommandUsageError,
    CourseOption,
    JsonOption,
    load_course,
    report_errors,
    say,
    tier_of,
)

if TYPE_CHECKING:
    from autograder.gradebook.journal import Journal, Reading
    from autograder.gradebook.lateness import Final, GradeKey
    from autograder.grading.pool import Plan
    from autograder.records import Grade

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
    from autograder.lms.collecting import CollectOptions
    from autograder.lms.collecting import collect as collecting
    from autograder.lms.roster import read_roster

    course = load_course(course_path)
    wanted = course.assignment(assignment) if assignment else None
    wish = CollectOptions(output, wanted, read_roster(roster), source, replace, times)
    report = collecting(archives, course, wish)
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
    pictures: PicturesOption = False,
    course_path: CourseOption = Path("."),
    as_json: JsonOption = False,
) -> int:
    """Grade a class: every submission in its own sandbox; a killed run goes on where it stopped."""
    from autograder.cli.console import console, watching
    from autograder.cli.tables import show_class
    from autograder.gradebook import texts
    from autograder.gradebook.demo_marker import choose_output_folder
    from autograder.gradebook.journal import Journal, fresh_seed, read_journal
    from autograder.gradebook.times import keep_times
    from autograder.grading.pool import Plan
    from autograder.grading.run import grade_class
    from autograder.submissions import find_submissions
    from autograder.text.files import check_folder

    course = load_course(course_path)
    names = None if assignment is None else (course.assignment(assignment).name,)
    found = find_submissions(path, course, assignment)
    check_folder(output)
    output, moved = choose_output_folder(output, path)
    if moved:
        say(moved)
    stored = texts.put(output, found)
    keep_times(output, path, stored)
    with Journal(output) as journal:
        _say_of(journal)
        if seed is None:
            seed = fresh_seed() if regrade else journal.run_seed()
        plan = Plan(course, seed, tier_of(unsafe), jobs, names)
        try:
            with watching(len(stored), quiet=as_json) as tell:
                outcome = grade_class(plan, texts.iterate(output, stored), journal, tell, regrade)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(*_so_far(journal)) from None
    pages = _write_pages(plan, output, read_journal(journal.path), pictures, quiet=as_json)
    show_class(console, course, pages.counted, pages.count, outcome, output, as_json=as_json)
    return INFRASTRUCTURE if outcome.failures else FOUND if pages.problems else DONE


def _so_far(journal: Journal) -> list[str]:
    """What to do with grades of which there are some, but not all."""
    if not journal.latest:
        return []
    return [f"`autograder report {shlex.quote(str(journal.path.parent))}` shows what there is so far."]


@dataclass
class _Pages:
    """What the pages of a class were made of, and where they begin."""

    counted: list[Grade]
    count: dict[GradeKey, Final]
    index: Path
    problems: list[str]
    differences: list[str]


def _write_pages(plan: Plan, folder: Path, grades: Iterable[Grade], pictures: bool, quiet: bool) -> _Pages:
    """Write what counts, with pictures if wanted, and say what a person should look at."""
    from autograder.feedback.class_report import differing
    from autograder.feedback.html import write_what_counts
    from autograder.gradebook.final_scores import what_counts
    from autograder.gradebook.lateness import unknown_students
    from autograder.gradebook.times import read_names

    counted, count = what_counts(folder, plan.course, grades)
    problems = _draw(plan, folder, counted, quiet) if pictures else []
    index = write_what_counts(folder, plan.course, counted, count)
    differences = differing(plan.course, counted)
    for sentence in (*differences, *unknown_students(plan.course, counted, read_names(folder))):
        say(sentence)
    return _Pages(counted, count, index, problems, differences)


def _draw(plan: Plan, folder: Path, grades: list[Grade], quiet: bool) -> list[str]:
    """Draws the pictures that are not there yet; says and returns what stood in the way."""
    from autograder.cli.console import drawing
    from autograder.feedback.painter import draw_pictures

    with drawing(quiet) as tell:
        drawn = draw_pictures(plan, folder, grades, tell)
    for problem in drawn.problems:
        say(problem)
    return drawn.problems


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
    from autograder.gradebook.journal import grades_at
    from autograder.grading.pool import Plan

    found = grades_at(grades)
    plan = Plan(load_course(course_path), 0, tier_of(unsafe), jobs)
    pages = _write_pages(plan, found.path.parent, found, pictures, quiet=False)
    _say_of(found)
    print(pages.index)
    return FOUND if pages.problems or found.problem or pages.differences else DONE


def _say_of(journal: Journal | Reading) -> None:
    """That lines of a journal cannot be read, where they cannot."""
    if journal.problem:
        say(journal.problem)


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
    from autograder.gradebook.comparing import compare as comparing

    comparison = comparing(_grades(old), _grades(new))
    if as_json:
        print(json.dumps(comparison.as_record(), ensure_ascii=False))
    else:
        show_comparison(console, comparison)
    return DONE


def _grades(path: Path) -> list[Any]:
    """The grades of a folder or journal in the order in which they were written; never none."""
    from autograder.gradebook.journal import grades_at

    found = grades_at(path)
    grades = list(found)
    _say_of(found)
    return grades


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
    from autograder.lms import exports
    from autograder.lms.roster import read_roster

    if to not in exports.EXPORTERS:
        raise CommandUsageError(f"There is no export to `{to}`; there is: {', '.join(exports.EXPORTERS)}.")
    course = load_course(course_path)
    counted = exports.Counted() if to in exports.WITHOUT_GRADES else exports.read_grades(grades, course, to)
    request = exports.ExportRequest(
        course=course,
        grades=counted.grades,
        scores=counted.scores,
        names=counted.names,
        folder=counted.folder,
        submissions=submissions,
        assignment=assignment,
        sheet=sheet,
        column=column,
        roster=read_roster(roster),
        output=output,
        hidden=hidden,
    )
    exported = exports.export(to, request)
    problems = [*counted.problems, *exported.problems]
    for problem in problems:
        say(problem)
    print(exported.summary)
    return FOUND if problems else DONE


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
    from autograder.feedback.similarity_page import check_room, write_alike
    from autograder.source.similarity import similar as comparing

    course = load_course(course_path)
    chosen = course.assignment(assignment)
    if output:
        check_room(output)
    found = comparing(course, chosen, path, most, least / 100)
    if output:
        write_alike(output, chosen.title, found)
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
    from dataclasses import asdict

    if walls:
        return _verify_walls(as_json)
    from autograder.cli.console import show_tiers
    from autograder.sandbox.doctor import examine

    reports = examine()
    if as_json:
        print(json.dumps([asdict(report) for report in reports], ensure_ascii=False))
    else:
        show_tiers(reports)
    return DONE if any(report.works and report.tier != "unsafe" for report in reports) else FOUND


def _verify_walls(as_json: bool) -> int:
    from dataclasses import asdict

    from autograder.cli.console import show_walls
    from autograder.sandbox.verify import is_sound, verify

    columns = verify()
    if as_json:
        print(json.dumps([asdict(column) for column in columns], ensure_ascii=False))
    else:
        show_walls(columns)
    return DONE if is_sound(columns) else FOUND
