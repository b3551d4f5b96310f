"""The commands for authors: build, audit, new, release and demo."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated

import typer

from autograder.cli.base import (
    DONE,
    FOUND,
    CommandUsageError,
    CourseOption,
    JsonOption,
    load_course,
    report_errors,
    say,
    tier_of,
)

commands = typer.Typer()


@commands.command(rich_help_panel="Authors")
@report_errors
def build(
    names: Annotated[list[str] | None, typer.Argument(metavar="[ASSIGNMENT]...", help="Only these.")] = None,
    check_only: Annotated[
        bool, typer.Option("--check", help="Change nothing; fail when something is stale.")
    ] = False,
    course_path: CourseOption = Path("."),
) -> int:
    """Make what students receive from the solutions."""
    from autograder.authoring import build as building
    from autograder.text.wording import counted

    course = load_course(course_path)
    if check_only:
        problems = building.check(course, names or None)
        for problem in problems:
            say(problem)
        if not problems:
            count = counted(len(course.select(names or None)), "assignment")
            print(f"What students receive is up to date: {count}.")
        return FOUND if problems else DONE
    for path in building.build(course, names or None):
        print(path)
    return DONE


@commands.command(rich_help_panel="Authors")
@report_errors
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
    from autograder.authoring.audit import KINDS, Seeds, audit_course, is_an_audit
    from autograder.cli.console import progress, show_audit
    from autograder.grading.pool import Plan
    from autograder.text.files import check_file, write_whole

    course = load_course(course_path)
    chosen = tuple(assignment.name for assignment in course.select(names or None))
    plan = Plan(course, seed, tier_of(unsafe), jobs, chosen)
    if only is not None and only not in KINDS:
        raise CommandUsageError(f"There is no kind {only!r} to try; there are {', '.join(KINDS)}.")
    kinds = (only,) if only else tuple(kind for kind in KINDS if mutants or kind != "mutant")
    if output:
        check_file(output, "`audit`", is_an_audit)
    with progress(quiet=as_json) as steps:
        audits = audit_course(plan, Seeds.drawn(seed, seeds, mistake_seeds), kinds, steps("Auditing"))
    record = json.dumps([entry.as_record() for entry in audits], ensure_ascii=False, indent=1)
    if output:
        write_whole(output, record + "\n")
    if as_json:
        print(record)
    else:
        show_audit(audits)
    return FOUND if any(entry.problems for entry in audits) else DONE


@commands.command(rich_help_panel="Authors")
@report_errors
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


@commands.command(rich_help_panel="Authors")
@report_errors
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

    made = releasing(
        load_course(course_path), output, names or None, wheel, tell=lambda step: say(f"{step} …")
    )
    for problem in made.problems:
        say(problem)
    if made.problems:
        say("Nothing was released.")
        return FOUND
    print(f"{len(made.files)} files in {output}")
    return DONE


@commands.command(rich_help_panel="Authors")
@report_errors
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

    made = write_demo(
        load_course(course_path), output, students, seed, assignment, tell=lambda step: say(f"{step} …")
    )
    print(f"{len(made)} students in {output}")
    return DONE
