"""The commands. No logic: each reads its arguments, calls one room of the engine, and shows what came of it."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from autograder import __version__
from autograder.records import CourseError, InfrastructureError, Refused

if TYPE_CHECKING:
    from autograder.course import Course
    from autograder.journal import Journal, Reading

DONE, FOUND, USAGE, INFRASTRUCTURE, STOPPED = 0, 1, 2, 3, 130

app = typer.Typer(
    name="autograder",
    help="Grades what students program: fairly, kindly, safely and fast.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

CourseOption = Annotated[
    Path, typer.Option("--course", help="The course's folder or course.yml.", metavar="PATH")
]
PicturesOption = Annotated[
    bool, typer.Option("--pictures", help="Then draw what failing code does, for the feedback.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]


def load_course(path: Path) -> Course:
    """As `autograder.course.load_course`, imported when a command needs it: help is there at once."""
    from autograder.course import load_course

    return load_course(path)


def say(sentence: str) -> None:
    """A sentence on stderr, where errors belong."""
    from rich.console import Console

    Console(stderr=True, highlight=False, soft_wrap=True).print(sentence, markup=False)


def kindly(command: Callable[..., int | None]) -> Callable[..., None]:
    """Turns what people can mend into a sentence and an exit code instead of a traceback."""

    @wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> None:
        try:
            code = command(*args, **kwargs)
        except (CourseError, Refused, UsageProblem) as error:
            say(str(error))
            code = USAGE
        except InfrastructureError as error:
            say(str(error))
            code = INFRASTRUCTURE
        except OSError as error:
            if error.filename is None:  # no place that cannot be read or written, but a mistake of ours
                raise
            say(f"{error.filename}: {error.strerror}.")
            code = INFRASTRUCTURE
        except KeyboardInterrupt as stopped:
            sentence = "Stopped. What was finished is kept; the same command goes on from there."
            say(" ".join((sentence, *map(str, stopped.args))))
            code = STOPPED
        raise typer.Exit(code or DONE)

    return wrapped


class UsageProblem(Exception):
    """Arguments that make no sense together; its `str` is the sentence."""


# ---------------------------------------------------------------------- students


TargetArgument = Annotated[
    str, typer.Argument(metavar="[ASSIGNMENT]", help="An assignment's name or folder, or your file in it.")
]


@app.command(rich_help_panel="Students")
@kindly
def check(
    target: TargetArgument = ".",
    picture: Annotated[
        bool, typer.Option("--picture", "-p", help="Draw what your code does, into `pictures/`.")
    ] = False,
    as_json: JsonOption = False,
) -> int:
    """See how your code stands: the visible tests, a sentence for each failure."""
    from autograder.self_check import check_work
    from autograder.work import find_works

    works = find_works(target)
    if len(works) > 1:
        return _check_all(target, as_json)
    report = check_work(works[0])
    if as_json:
        print(json.dumps(report.as_record(), ensure_ascii=False))
        return DONE if report.all_passed else FOUND
    from autograder.console import console
    from autograder.drawing import draw_all
    from autograder.screens import check_screen

    console.print(check_screen(report, draw_all(works[0]) if picture else ()))
    return DONE if report.all_passed else FOUND


def _check_all(target: str, as_json: bool) -> int:
    from autograder.console import checking, console
    from autograder.progress import standings
    from autograder.screens import progress_screen

    with checking(quiet=as_json) as tell:
        found = standings(target, tell)
    reports = [standing.report for standing in found]
    if as_json:
        print(json.dumps([report.as_record() for report in reports if report], ensure_ascii=False))
    else:
        console.print(progress_screen(found))
    return DONE if all(report and report.all_passed for report in reports) else FOUND


@app.command(rich_help_panel="Students")
@kindly
def watch(target: TargetArgument = ".") -> int:
    """Check again whenever you save. Keys: h hint, p picture, q quit."""
    from autograder.console import console
    from autograder.watch import watch as watching

    try:
        watching(target, console)
    except KeyboardInterrupt:
        console.print()
    return DONE


@app.command(rich_help_panel="Students")
@kindly
def hint(
    target: TargetArgument = ".",
    again: Annotated[bool, typer.Option("--again", help="Begin with the first step again.")] = False,
) -> int:
    """One step of help with the first failing test, never code; call it again for the next."""
    from autograder.console import console
    from autograder.hints import next_hint
    from autograder.screens import hint_screen
    from autograder.self_check import check_work
    from autograder.work import find_work

    work = find_work(target)
    found = next_hint(work, check_work(work), start_over=again)
    if found is None:
        console.print("[green]Every visible test passes: no hint is needed.[/]")
    else:
        console.print(hint_screen(found, f"autograder hint {work.name}"))
    return DONE


@app.command(rich_help_panel="Students")
@kindly
def progress(
    folder: Annotated[str, typer.Argument(help="The folder with your assignments.")] = ".",
    as_json: JsonOption = False,
) -> int:
    """See how you stand in the whole course."""
    _check_all(folder, as_json)
    return DONE


@app.command(rich_help_panel="Students")
@kindly
def pack(
    target: TargetArgument = ".",
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder for the archive.")] = Path("."),
) -> int:
    """Make the archive to hand in, and read it back as the grader will."""
    from autograder import pack as packing
    from autograder.console import console
    from autograder.screens import packed_screen
    from autograder.self_check import check_work
    from autograder.work import find_work

    if not output.is_dir():
        raise UsageProblem(f"There is no folder {output}.")
    work = find_work(target)
    packed = packing.pack(work, output)
    console.print(packed_screen(packed, check_work(work)))
    return DONE


# ---------------------------------------------------------------------- instructors


@app.command(rich_help_panel="Instructors")
@kindly
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
    from autograder.collecting import Wish
    from autograder.collecting import collect as collecting
    from autograder.collecting.people import read_roster

    course = load_course(course_path)
    wanted = course.assignment(assignment) if assignment else None
    wish = Wish(output, wanted, read_roster(roster), source, replace, times)
    report = collecting(archives, course, wish)
    for sentence in (*report.notes, *report.odd):
        say(sentence)
    print(json.dumps(report.as_record(), ensure_ascii=False) if as_json else report.summary)
    return FOUND if report.odd or not report.fates else DONE


@app.command(rich_help_panel="Instructors")
@kindly
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
    from autograder.cohort import grade_class
    from autograder.console import console, watching
    from autograder.feedback.class_report import differing
    from autograder.feedback.gradebook import what_counts
    from autograder.feedback.html import write_what_counts
    from autograder.feedback.kept import keep, taken_out
    from autograder.journal import Journal, fresh_seed, read_journal
    from autograder.lateness import strangers
    from autograder.made_up import give_way
    from autograder.pool import Plan
    from autograder.submission_times import keep_times, read_names
    from autograder.submissions import find_submissions
    from autograder.tables import show_class
    from autograder.writing import check_folder

    course = load_course(course_path)
    names = None if assignment is None else (course.assignment(assignment).name,)
    found = find_submissions(path, course, assignment)
    check_folder(output)
    output, moved = give_way(output, path)
    if moved:
        say(moved)
    kept = keep(output, found)
    keep_times(output, path, kept)
    with Journal(output) as journal:
        _say_of(journal)
        if seed is None:
            seed = fresh_seed() if regrade else journal.run_seed()
        plan = Plan(course, seed, _tier(unsafe), jobs, names)
        try:
            with watching(len(kept), quiet=as_json) as tell:
                outcome = grade_class(plan, taken_out(output, kept), journal, tell, regrade)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(*_so_far(journal)) from None
    counted, count = what_counts(output, course, read_journal(journal.path))
    problems = _draw(plan, output, counted, as_json) if pictures else []
    write_what_counts(output, course, counted, count)
    for sentence in (*differing(course, counted), *strangers(course, counted, read_names(output))):
        say(sentence)
    show_class(console, course, counted, count, outcome, output, as_json=as_json)
    return INFRASTRUCTURE if outcome.failures else FOUND if problems else DONE


def _so_far(journal: Journal) -> list[str]:
    """What to do with grades of which there are some, but not all."""
    if not journal.latest:
        return []
    return [f"`autograder report {shlex.quote(str(journal.path.parent))}` shows what there is so far."]


def _draw(plan: Any, folder: Path, grades: Any, quiet: bool) -> list[str]:
    """Draws the pictures that are not there yet; says and returns what stood in the way."""
    from autograder.console import drawing
    from autograder.feedback.painter import draw_pictures

    with drawing(quiet) as tell:
        drawn = draw_pictures(plan, folder, grades, tell)
    for problem in drawn.problems:
        say(problem)
    return drawn.problems


def _tier(unsafe: bool) -> str:
    return "unsafe" if unsafe else "best"


@app.command(rich_help_panel="Instructors")
@kindly
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
    from autograder.feedback.class_report import differing
    from autograder.feedback.gradebook import what_counts
    from autograder.feedback.html import write_what_counts
    from autograder.journal import grades_at
    from autograder.lateness import strangers
    from autograder.pool import Plan
    from autograder.submission_times import read_names

    found = grades_at(grades)
    folder = found.path.parent
    course = load_course(course_path)
    counted, count = what_counts(folder, course, found)
    _say_of(found)
    plan = Plan(course, 0, _tier(unsafe), jobs)
    problems = _draw(plan, folder, counted, quiet=False) if pictures else []
    print(write_what_counts(folder, course, counted, count))
    differences = differing(course, counted)
    for sentence in (*differences, *strangers(course, counted, read_names(folder))):
        say(sentence)
    return FOUND if problems or found.problem or differences else DONE


def _say_of(journal: Journal | Reading) -> None:
    """That lines of a journal cannot be read, where they cannot."""
    if journal.problem:
        say(journal.problem)


@app.command(rich_help_panel="Instructors")
@kindly
def compare(
    old: Annotated[Path, typer.Argument(help="The folder with the earlier grades.jsonl, or that file.")],
    new: Annotated[Path, typer.Argument(help="The folder with the later grades.jsonl, or that file.")],
    as_json: JsonOption = False,
) -> int:
    """See who goes up or down between two gradings, and why, before anything is published."""
    from autograder.comparing import compare as comparing
    from autograder.console import console
    from autograder.tables import show_comparison

    comparison = comparing(_grades(old), _grades(new))
    if as_json:
        print(json.dumps(comparison.as_record(), ensure_ascii=False))
    else:
        show_comparison(console, comparison)
    return DONE


def _grades(path: Path) -> list[Any]:
    """The grades of a folder or journal in the order in which they were written; never none."""
    from autograder.journal import grades_at

    found = grades_at(path)
    grades = list(found)
    _say_of(found)
    return grades


@app.command(rich_help_panel="Instructors")
@kindly
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
    from autograder import exports
    from autograder.collecting.people import read_roster

    if to not in exports.EXPORTERS:
        raise UsageProblem(f"There is no export to `{to}`; there is: {', '.join(exports.EXPORTERS)}.")
    course = load_course(course_path)
    counted = exports.Counted() if to in exports.WITHOUT_GRADES else exports.read_grades(grades, course, to)
    request = exports.Request(
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


@app.command(rich_help_panel="Instructors")
@kindly
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
    from autograder.console import console
    from autograder.feedback.alike import check_room, write_alike
    from autograder.similarity import similar as comparing
    from autograder.tables import show_similar

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


@app.command(rich_help_panel="Instructors")
@kindly
def doctor(
    walls: Annotated[bool, typer.Option("--verify", help="Try every wall of every kind of sandbox.")] = False,
    as_json: JsonOption = False,
) -> int:
    """Say which kind of sandbox works on this machine, and why another does not."""
    from dataclasses import asdict

    if walls:
        return _verify_walls(as_json)
    from autograder.console import show_tiers
    from autograder.sandbox.doctor import examine

    reports = examine()
    if as_json:
        print(json.dumps([asdict(report) for report in reports], ensure_ascii=False))
    else:
        show_tiers(reports)
    return DONE if any(report.works and report.tier != "unsafe" for report in reports) else FOUND


def _verify_walls(as_json: bool) -> int:
    from dataclasses import asdict

    from autograder.console import show_walls
    from autograder.sandbox.verify import is_sound, verify

    columns = verify()
    if as_json:
        print(json.dumps([asdict(column) for column in columns], ensure_ascii=False))
    else:
        show_walls(columns)
    return DONE if is_sound(columns) else FOUND


# ---------------------------------------------------------------------- authors


@app.command(rich_help_panel="Authors")
@kindly
def build(
    names: Annotated[list[str] | None, typer.Argument(metavar="[ASSIGNMENT]...", help="Only these.")] = None,
    check_only: Annotated[
        bool, typer.Option("--check", help="Change nothing; fail when something is stale.")
    ] = False,
    course_path: CourseOption = Path("."),
) -> int:
    """Make what students receive from the solutions."""
    from autograder.authoring import build as building

    course = load_course(course_path)
    if check_only:
        problems = building.check(course, names or None)
        for problem in problems:
            say(problem)
        if not problems:
            count = len(course.select(names or None))
            print(f"What students receive is up to date: {count} assignment{'' if count == 1 else 's'}.")
        return FOUND if problems else DONE
    for path in building.build(course, names or None):
        print(path)
    return DONE


@app.command(rich_help_panel="Authors")
@kindly
def audit(
    names: Annotated[list[str] | None, typer.Argument(metavar="[ASSIGNMENT]...", help="Only these.")] = None,
    seeds: Annotated[int, typer.Option(min=1, help="How many draws right answers must stand.")] = 20,
    mistake_seeds: Annotated[
        int, typer.Option(min=1, help="In how many draws each mistake must be caught and named.")
    ] = 1,
    seed: Annotated[
        int, typer.Option(help="Every random input follows from it; another seed, other inputs.")
    ] = 0,
    mutants: Annotated[bool, typer.Option(help="Try automatic mutants of the solutions, too.")] = True,
    only: Annotated[
        str | None, typer.Option(help="Try only one kind: stub, solution, mistake, alternative or mutant.")
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1)] = os.cpu_count() or 1,
    unsafe: Annotated[bool, typer.Option("--unsafe", help="Allow grading without a sandbox.")] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the findings as JSON here.")
    ] = None,
    course_path: CourseOption = Path("."),
    as_json: JsonOption = False,
) -> int:
    """Prove that the course is fair: stubs 0 %, right answers 100 %, mistakes caught and named."""
    from autograder.authoring.audit import KINDS, Draws, audit_course, is_an_audit
    from autograder.console import auditing, show_audit
    from autograder.pool import Plan
    from autograder.writing import check_file, write_whole

    course = load_course(course_path)
    chosen = tuple(assignment.name for assignment in course.select(names or None))
    plan = Plan(course, seed, _tier(unsafe), jobs, chosen)
    if only is not None and only not in KINDS:
        raise UsageProblem(f"There is no kind {only!r} to try; there are {', '.join(KINDS)}.")
    kinds = (only,) if only else tuple(kind for kind in KINDS if mutants or kind != "mutant")
    if output:
        check_file(output, "`audit`", is_an_audit)
    with auditing(quiet=as_json) as tell:
        audits = audit_course(plan, Draws(seeds, mistake_seeds), kinds, tell)
    record = json.dumps([entry.as_record() for entry in audits], ensure_ascii=False, indent=1)
    if output:
        write_whole(output, record + "\n")
    if as_json:
        print(record)
    else:
        show_audit(audits)
    return FOUND if any(entry.problems for entry in audits) else DONE


@app.command(rich_help_panel="Authors")
@kindly
def new(
    name: Annotated[str, typer.Argument(help="A number and a name, such as 14_beam_search.")],
    title: Annotated[
        str | None, typer.Option(help="What students read; without it, made from the name.")
    ] = None,
    course_path: CourseOption = Path("."),
) -> int:
    """Begin an assignment that works, with an example in every file; in an empty folder, begin a course."""
    from autograder.authoring.new import new as making

    for file in making(course_path, name, title):
        print(os.path.relpath(file))
    say(f"Next: autograder build {name}, then autograder audit {name}")
    return DONE


@app.command(rich_help_panel="Authors")
@kindly
def release(
    names: Annotated[list[str] | None, typer.Argument(metavar="[ASSIGNMENT]...", help="Only these.")] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="A folder, or an archive that ends in .zip.")
    ] = Path("release.zip"),
    wheel: Annotated[
        Path | None,
        typer.Option(help="The kit's wheel to go along; without it, it is built from its source."),
    ] = None,
    course_path: CourseOption = Path("."),
) -> int:
    """Make what students get, and prove that no solution, hidden test or mistake is in it."""
    from autograder.authoring.release import release as releasing

    made = releasing(load_course(course_path), output, names or None, wheel)
    for problem in made.problems:
        say(problem)
    if made.problems:
        say("Nothing was released.")
        return FOUND
    print(f"{len(made.files)} files in {output}")
    return DONE


@app.command(rich_help_panel="Authors")
@kindly
def demo(
    students: Annotated[int, typer.Option(min=1, max=100_000, help="How many students.")] = 30,
    output: Annotated[Path, typer.Option("--output", "-o", help="Where the class goes.")] = Path("demo"),
    seed: Annotated[int, typer.Option(help="The same seed makes the same class.")] = 0,
    assignment: Annotated[
        list[str] | None, typer.Option("--assignment", "-a", help="Only this assignment.")
    ] = None,
    course_path: CourseOption = Path("."),
) -> int:
    """Write a made-up class of submissions: right, wrong, unfinished, crashing, looping."""
    from autograder.authoring.demo import write_demo

    made = write_demo(load_course(course_path), output, students=students, seed=seed, assignments=assignment)
    print(f"{len(made)} students in {output}")
    return DONE


def _version(wanted: bool) -> None:
    if wanted:
        print(f"autograder {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show it.")
    ] = False,
) -> None:
    """Grades what students program: fairly, kindly, safely and fast."""


def main() -> None:
    """The `autograder` command."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a terminal without UTF-8 shows marks, not a traceback
    app()
