"""The core's commands for instructors: grade, report, decide, compare and doctor.

Each shows what a function of the Python API returns; its options are declared there.
"""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from autograder import api
from autograder.cli.base import DONE, FOUND, INFRASTRUCTURE, Call, command_of, say
from autograder.cli.console import console, show_tiers
from autograder.course.reading import course_file
from autograder.options import flag
from autograder.records import RefusedError

AS_ROOT = "Grading as root: an ordinary user is safer, who has less to lose if the sandbox fails."


@command_of(api.grade, api.watch)
def grade(
    call: Call,
    watch: Annotated[
        bool,
        flag(
            "--watch",
            help="Grade what is handed in as it comes, until Ctrl-C; also nbgrader's inbound folder.",
        ),
    ] = False,
) -> int:
    """Grade a class, each submission in its own sandbox; an interrupted run continues where it stopped."""
    from autograder.cli.tables import show_class
    from autograder.walls.outside.trusted_process import is_root

    options = call.options
    options["course"] = api.load_course(options["course"])
    if is_root() and not call.as_json:
        say(AS_ROOT)
    if watch:
        return _watch(call)
    if options["collect"] is not None:
        raise RefusedError("--collect is for --watch; otherwise, run `autograder collect` first.")
    run = call(api.grade)
    say(*run.messages)
    show_class(console, options["course"], run, as_json=call.as_json)
    if run.summary.failures:
        return INFRASTRUCTURE
    return FOUND if run.undrawn else DONE


NOT_BESIDE_WATCH = ("cluster", "seed", "regrade", "pictures")


def _watch(call: Call) -> int:
    """Grade until Ctrl-C."""
    from autograder.cli.tables import show_line

    options = call.options
    for name in NOT_BESIDE_WATCH:
        if options[name] not in (None, False):
            raise RefusedError(f"--watch and --{name} do not go together; leave one of them out.")
    place = options["submissions"]
    call(
        api.watch,
        on_ready=lambda page: say(f"Watching {place}. What is going on: {page}. Ctrl-C ends it."),
        on_grade=lambda grade: show_line(grade, options["course"], call.as_json),
        on_postponed=say,
        on_problem=say,
    )
    say("Stopped. What was graded is in the journal; the same command goes on from there.")
    return DONE


@command_of(api.report)
def report(call: Call) -> int:
    pages = call(api.report)
    say(*pages.messages)
    call.show(pages.as_record, lambda: print(pages.index))
    return FOUND if pages.undrawn or pages.differences else DONE


@command_of(api.compare)
def compare(call: Call) -> int:
    from autograder.cli.tables import show_comparison

    course = call.options["course"] or Path(".")
    # a course that is named, but is not there: `compare` says what is wrong
    is_given = course_file(course).is_file() or not course.exists()
    comparison = call(api.compare, course=course if is_given else None)
    say(*comparison.notes)
    call.show(comparison.as_record, lambda: show_comparison(console, comparison))
    return DONE


DECIDING = ("reason", "give", "take", "part", "excuse", "accept_late", "drop", "counts")


@command_of(api.decide, api.to_review)
def decide(call: Call) -> int:
    """Decide about grades: points, comments, excuses, dropped tests, late work; written to decisions.yml."""
    from autograder.cli.tables import show_decided, show_objection, show_to_review

    if call.options["borders"]:
        submissions = call(api.to_review)
        call.show(lambda: submissions, lambda: show_to_review(console, submissions))
        return DONE
    if call.options["request"] and not any(call.options[name] for name in DECIDING):
        objection = call(api.objection)
        call.show(objection.as_record, lambda: show_objection(console, objection))
        return DONE
    decided = call(api.decide)
    call.show(
        lambda: [asdict(after.grade) for after in decided], lambda: show_decided(console, decided)
    )
    return DONE


@command_of(api.doctor)
def doctor(call: Call) -> int:
    reports = call(api.doctor)
    call.show(lambda: [asdict(report) for report in reports], lambda: show_tiers(reports))
    safe = [report for report in reports if report.works and report.tier != "unsafe"]
    return DONE if safe and not safe[0].problems else FOUND
