"""The commands for authors: build, audit, new, release and demo."""

import json
import os
from pathlib import Path
from typing import Annotated

import typer

from autograder.cli.base import DONE, FOUND, say
from autograder.cli.console import progress, show_audit
from autograder.cli.options import (
    PROCESSORS,
    AsJson,
    CoursePath,
    Jobs,
    Names,
    Unsafe,
    path_option,
    whole_option,
)
from autograder.course.config import load_course
from autograder.records import RefusedError
from autograder.text.wording import counted, listed


def build(
    names: Names = None,
    check_only: Annotated[
        bool, typer.Option("--check", help="Write nothing; fail if a built file is out of date.")
    ] = False,
    course_path: CoursePath = Path("."),
) -> int:
    """Build the students' files from the solutions."""
    from autograder.authoring import build as building

    course = load_course(course_path)
    if check_only:
        problems = building.check(course, names or None)
        say(*problems)
        if not problems:
            print(
                f"The students' files are up to date: {counted(len(course.select(names or None)), 'assignment')}."
            )
        return FOUND if problems else DONE
    for path in building.build(course, names or None):
        print(path)
    return DONE


def audit(
    names: Names = None,
    seeds: Annotated[
        int, whole_option(least=1, help="Number of random draws that correct answers must pass.")
    ] = 20,
    mistake_seeds: Annotated[
        int,
        whole_option(
            least=1, help="Number of random draws in which each mistake must be caught and named."
        ),
    ] = 1,
    seed: Annotated[int, whole_option(help="Seed of all random inputs.")] = 0,
    mutants: Annotated[
        bool, typer.Option(help="Also try automatic mutants of the solutions.")
    ] = True,
    only: Annotated[
        str | None,
        typer.Option(
            help="Try only one kind: stub, trivial, solution, mistake, alternative or mutant."
        ),
    ] = None,
    jobs: Jobs = PROCESSORS,
    unsafe: Unsafe = False,
    output: Annotated[
        Path | None, path_option("--output", "-o", help="Write the findings to this file as JSON.")
    ] = None,
    course_path: CoursePath = Path("."),
    as_json: AsJson = False,
    record: Annotated[
        bool,
        typer.Option(
            help="Write which tests each mistake fails to failing_tests.json, beside the suites: it makes grading fast."
        ),
    ] = False,
) -> int:
    """Check that the course is fair: stubs 0 %, correct answers 100 %, mistakes caught and named."""
    from autograder.authoring.audit import KINDS, audit_course, is_an_audit, record_failing_tests
    from autograder.runs.pool import Plan
    from autograder.text.files import check_file, write_whole

    course = load_course(course_path)
    chosen = tuple(assignment.name for assignment in course.select(names or None))
    plan = Plan(course, seed, "unsafe" if unsafe else "best", jobs, chosen)
    if only is not None and only not in KINDS:
        raise RefusedError(f"There is no kind {only!r} to try; there are {', '.join(KINDS)}.")
    kinds = (only,) if only else tuple(kind for kind in KINDS if mutants or kind != "mutant")
    if output:
        check_file(output, "`audit`", is_an_audit)
    with progress(quiet=as_json) as steps:
        audits = audit_course(plan, seeds, mistake_seeds, kinds, steps("Auditing"))
    findings = json.dumps([entry.as_record() for entry in audits], ensure_ascii=False, indent=1)
    if output:
        write_whole(output, findings + "\n")
    if record:
        record_failing_tests(course, audits)
    if as_json:
        print(findings)
    else:
        show_audit(audits)
    return FOUND if any(entry.problems for entry in audits) else DONE


def new(
    name: Annotated[str, typer.Argument(help="A number and a name, such as 14_beam_search.")],
    title: Annotated[
        str | None,
        typer.Option(help="The title that students read; by default derived from the name."),
    ] = None,
    ci: Annotated[
        str | None,
        typer.Option(
            help="Also write workflows, for github or gitlab; with github-course or gitlab-course, one "
            "that grades the class, too."
        ),
    ] = None,
    course_path: CoursePath = Path("."),
) -> int:
    """Create an assignment that works, with an example in every file; in an empty folder, create a course."""
    from autograder.authoring.new import new as making

    for file in making(course_path, name, title, ci):
        print(os.path.relpath(file))
    say(f"Next: autograder build {name}, then autograder audit {name}")
    return DONE


def release(
    names: Names = None,
    output: Annotated[
        Path,
        path_option(
            "--output", "-o", help="A folder, or an archive with a name that ends in .zip."
        ),
    ] = Path("release.zip"),
    wheel: Annotated[
        Path | None,
        path_option(help="The autograder's wheel to include; by default it is built from source."),
    ] = None,
    course_path: CoursePath = Path("."),
) -> int:
    """Package the students' files, and verify that they contain no solution, hidden test or mistake."""
    from autograder.authoring.release import release as releasing

    released = releasing(
        load_course(course_path), output, names or None, wheel, tell=lambda step: say(f"{step} …")
    )
    say(*released.problems)
    if released.problems:
        say("Nothing was released.")
        return FOUND
    print(f"{len(released.files)} files in {output}")
    return DONE


def demo(
    students: Annotated[int, typer.Option(min=1, max=100000, help="Number of students.")] = 30,
    output: Annotated[
        Path, path_option("--output", "-o", help="The folder to write the class to.")
    ] = Path("demo"),
    seed: Annotated[
        int, typer.Option(help="Seed of the class; the same seed makes the same class.")
    ] = 0,
    assignment: Annotated[
        list[str] | None, typer.Option("--assignment", "-a", help="Only this assignment.")
    ] = None,
    course_path: CoursePath = Path("."),
) -> int:
    """Write a made-up class of submissions: correct, wrong, unfinished, crashing, looping."""
    from autograder.authoring.demo import write_demo

    class_of_students = write_demo(
        load_course(course_path),
        output,
        students,
        seed,
        assignment,
        tell=lambda step: say(f"{step} …"),
    )
    absent = [
        student.name
        for student in class_of_students
        if not any(answer.files for answer in student.answers.values())
    ]
    print(
        counted(len(class_of_students), "student"),
        f"in {output}" + (f"; no submissions from {listed(absent)}" if absent else ""),
    )
    return DONE
