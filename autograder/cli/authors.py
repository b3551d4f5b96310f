"""The commands for authors: build, audit, new and release."""

import json
import os
from collections import Counter
from pathlib import Path
from typing import Annotated

from autograder.cli.base import DONE, FOUND, say
from autograder.cli.console import progress, show_audit
from autograder.course.reading import load_course
from autograder.options import Jobs, Names, Unsafe, argument, flag, path_option, value, whole_option
from autograder.records import RefusedError
from autograder.text.wording import counted


def build(
    names: Names = None,
    check_only: Annotated[
        bool, flag("--check", help="Write nothing; fail if a built file is out of date.")
    ] = False,
    course_path: Path = Path("."),
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
    files = Counter(path.parent for path in building.build(course, names or None))
    for folder, number in files.items():
        print(f"{folder}: {counted(number, 'file')}")
    return DONE


def audit(
    names: Names = None,
    seeds: Annotated[
        int,
        whole_option(
            "--seeds",
            least=1,
            help="Number of random draws that correct answers must pass.",
            advanced=True,
        ),
    ] = 20,
    mistake_seeds: Annotated[
        int,
        whole_option(
            "--mistake-seeds",
            least=1,
            help="Number of random draws in which each mistake must be caught and named.",
            advanced=True,
        ),
    ] = 1,
    seed: Annotated[
        int, whole_option("--seed", help="Seed of all random inputs.", advanced=True)
    ] = 0,
    mutants: Annotated[
        bool, flag("--mutants/--no-mutants", help="Also try automatic mutants of the solutions.")
    ] = True,
    only: Annotated[
        str | None,
        value(
            "--only",
            metavar="KIND",
            advanced=True,
            help="Try only one kind: stub, trivial, solution, mistake, alternative or mutant.",
        ),
    ] = None,
    jobs: Jobs = None,
    unsafe: Unsafe = False,
    output: Annotated[
        Path | None, path_option("--output", "-o", help="Write the findings to this file as JSON.")
    ] = None,
    course_path: Path = Path("."),
    as_json: bool = False,
    record: Annotated[
        bool,
        flag(
            "--record",
            advanced=True,
            help="Write which tests each mistake fails to failing_tests.json, beside the suites: it makes grading fast.",
        ),
    ] = False,
) -> int:
    """Check that the course is fair: stubs 0 %, correct answers 100 %, mistakes caught and named."""
    from autograder.api import plan_of
    from autograder.authoring.audit import KINDS, audit_course, is_an_audit, record_failing_tests
    from autograder.text.files import check_file, write_whole

    course = load_course(course_path)
    chosen = tuple(assignment.name for assignment in course.select(names or None))
    plan = plan_of(course, seed, unsafe, jobs, chosen)
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
    name: Annotated[
        str, argument(metavar="NAME", help="A number and a name, such as 14_beam_search.")
    ],
    ci: Annotated[
        str | None,
        value(
            "--ci",
            metavar="FORGE",
            help="Also write workflows, for github or gitlab; with github-course or gitlab-course, one "
            "that grades the class, too.",
        ),
    ] = None,
    course_path: Path = Path("."),
) -> int:
    """Create an assignment that works, with an example in every file; in an empty folder, create a course."""
    from autograder.authoring.new import new as making

    for file in making(course_path, name, ci):
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
        path_option(
            "--wheel",
            advanced=True,
            help="The autograder's wheel to include; by default it is built from source.",
        ),
    ] = None,
    course_path: Path = Path("."),
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
