"""The commands `collect` and `export`: work from course sites and repositories comes in, grades and feedback go out."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from autograder.api import load_course
from autograder.cli.base import DONE, FOUND, USAGE, Call, command_of, say
from autograder.course.config import Course
from autograder.extras.lms.roster import roster_of
from autograder.options import (
    AnyPath,
    CourseFolder,
    GradesFolder,
    OneAssignment,
    OnProgress,
    RosterFile,
    Section,
    Steps,
    argument,
    flag,
    ignore,
    path_option,
    value,
)
from autograder.records import RefusedError

if TYPE_CHECKING:
    from autograder.extras.lms import collecting, exports

Repositories = Annotated[OnProgress | None, Steps("Repositories")]


def collect(
    archives: Annotated[
        Sequence[str],
        argument(
            metavar="ARCHIVE",
            help="Archives downloaded from a course site, or folders; with --from git, a table.",
        ),
    ],
    course: CourseFolder = ".",
    output: Annotated[
        AnyPath, path_option("--output", "-o", help="The folder to write the submissions to.")
    ] = "submitted",
    *,
    assignment: OneAssignment = None,
    roster: RosterFile = None,
    times: Annotated[
        AnyPath | None,
        path_option(
            "--times", help="A CSV file with submission times, such as Moodle's grading worksheet."
        ),
    ] = None,
    source: Annotated[
        str | None,
        value(
            "--from",
            metavar="SOURCE",
            help="The format: canvas, moodle, gradescope, brightspace, blackboard, folders or git.",
        ),
    ] = None,
    branch: Annotated[
        str | None,
        value(
            "--branch",
            metavar="NAME",
            help="With --from git: the branch or tag that stands for the hand-in.",
            advanced=True,
        ),
    ] = None,
    replace: Annotated[
        bool,
        flag(
            "--replace",
            help="Also replace files that were changed by hand, after saving a copy.",
            advanced=True,
        ),
    ] = False,
    on_repository: Repositories = None,
) -> "collecting.CollectReport":
    """Import downloads from Canvas, Moodle or Gradescope, or git repositories, into the folder that `grade` reads.

    With the source `git`, `archives` is one table of repositories, or one address with `{student}`;
    `branch` is the branch or tag that stands for the hand-in.
    """
    from autograder.extras.lms import collecting

    if "" in archives:
        raise RefusedError("The path is empty.")  # often a variable of a script that is not set
    loaded = load_course(course)
    wanted = loaded.assignment(assignment) if assignment else None
    people = roster_of(loaded, path_of(roster))
    options = collecting.CollectOptions(
        Path(output), wanted, people, source, replace, path_of(times)
    )
    if source == "git":
        return _collect_from_git(archives, loaded, options, branch or "", on_repository or ignore)
    if branch:
        raise RefusedError("--branch is for repositories; say --from git as well.")
    return collecting.collect([Path(archive) for archive in archives], loaded, options)


def _collect_from_git(
    tables: Sequence[AnyPath],
    course: Course,
    options: "collecting.CollectOptions",
    branch: str,
    on_repository: OnProgress,
) -> "collecting.CollectReport":
    from autograder.extras.git.collecting import collect_from_git
    from autograder.extras.git.repositories import read_repositories

    if len(tables) != 1:
        raise RefusedError(
            "`--from git` takes one table of repositories, or one address with {student} in it."
        )
    source = os.fspath(tables[0])
    name = options.assignment.name if options.assignment else ""
    repositories = read_repositories(source, course, options.roster, name, branch)
    return collect_from_git(repositories, course, options, Path(source).name, on_repository)


@command_of(collect)
def collect_command(call: Call) -> int:
    report = call(collect)
    say(*report.notes, *report.odd, *report.broken)
    call.show(report.as_record, lambda: print(report.summary))
    if report.broken:
        return USAGE
    return FOUND if report.odd or not report.counts else DONE


def export(
    to: Annotated[
        str,
        value(
            "--to",
            metavar="TOOL",
            help=(
                "csv, satisfied, canvas, moodle, moodle-feedback, gradescope, classroom50, junit, "
                "nbgrader or git."
            ),
        ),
    ] = "",
    grades: GradesFolder = "grades",
    course: CourseFolder = ".",
    *,
    assignment: OneAssignment = None,
    sheet: Annotated[
        AnyPath | None,
        path_option("--sheet", help="The gradebook file from Canvas or Moodle to fill in."),
    ] = None,
    column: Annotated[
        str | None,
        value(
            "--column",
            metavar="TITLE",
            help="The column to fill, if its title differs from the assignment's.",
        ),
    ] = None,
    roster: RosterFile = None,
    section: Section = None,
    submissions: Annotated[
        AnyPath | None,
        path_option(
            "--submissions",
            help="The folder with the class's submissions; by default `submitted`.",
            advanced=True,
        ),
    ] = None,
    output: Annotated[
        AnyPath | None, path_option("--output", "-o", help="The file to write.")
    ] = None,
    hidden: str | None = None,
    repositories: Annotated[
        str | None,
        value(
            "--repositories",
            metavar="TABLE",
            help="With --to git: a table of repositories, or an address with {student}.",
        ),
    ] = None,
    branch: Annotated[
        str,
        value(
            "--branch",
            metavar="NAME",
            help="With --to git: the branch to write; no other is touched.",
            advanced=True,
        ),
    ] = "feedback",
    replace: Annotated[
        bool,
        flag(
            "--replace",
            help="With --to git: also replace a branch of that name that the course did not write.",
            advanced=True,
        ),
    ] = False,
    on_step: Repositories = None,
) -> "exports.Exported":
    """Export a class's grades, its feedback, or an assignment's autograder, to another tool.

    With `git`, each student's feedback is pushed to a branch of the student's repository if it
    differs from what is there; a branch that the course did not write is left alone unless
    `replace` is set.
    """
    from autograder.extras.lms import exports
    from autograder.extras.lms.exports.by_hand import with_hand_grading

    exporter = exports.find_exporter(to)
    loaded = load_course(course)
    request = exports.ExportRequest(
        course=loaded,
        submissions=path_of(submissions),
        assignment=assignment,
        sheet=path_of(sheet),
        column=column,
        roster=roster_of(loaded, path_of(roster), Path(grades)),
        output=path_of(output),
        hidden=hidden,
        repositories=os.fspath(repositories) if repositories else None,
        branch=branch,
        replace=replace,
        on_step=on_step or ignore,
    )
    if exporter.has_grades:
        request = exports.read_grades(request, Path(grades), exporter, section)
    if exporter.adds_hand_grading:
        request = with_hand_grading(request)
    return exports.export(to, request)


@command_of(export)
def export_command(call: Call) -> int:
    exported = call(export)
    say(*exported.problems)
    call.show(exported.as_record, lambda: print(exported.summary))
    return FOUND if exported.problems else DONE


def path_of(path: AnyPath | None) -> Path | None:
    return None if path is None else Path(path)
