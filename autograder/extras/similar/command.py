"""The command `similar`: pairs of submissions that are unusually alike."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from autograder.api import load_course
from autograder.cli.base import DONE, Call, command_of
from autograder.options import AnyPath, CourseFolder, Submissions, number_option, path_option, value

if TYPE_CHECKING:  # slow: it imports notebooks and their schemas
    from autograder.extras.similar.similar import Similar


def similar(
    submissions: Submissions,
    assignment: Annotated[
        str, value("--assignment", "-a", metavar="NAME", help="The assignment to compare.")
    ],
    course: CourseFolder = ".",
    *,
    most: int = 20,
    least: Annotated[
        float,
        number_option(
            "--least",
            metavar="PERCENT",
            least=0,
            most=100,
            help="Minimum likeness of a pair, in percent.",
        ),
    ] = 15,
    page: Annotated[
        AnyPath | None,
        path_option("--output", "-o", help="Write an HTML page with each pair side by side."),
    ] = None,
) -> "Similar":
    """List pairs of submissions that are unusually alike, as a starting point for review, not as a verdict."""
    from autograder.extras.similar import similar as finding
    from autograder.extras.similar.similarity_page import check_room, write_alike

    loaded = load_course(course)
    chosen = loaded.assignment(assignment)
    if page is not None:
        check_room(Path(page))
    pairs = finding.similar(loaded, chosen, Path(submissions), most, least / 100)
    if page is not None:
        write_alike(Path(page), chosen.title, pairs)
    return pairs


@command_of(similar)
def similar_command(call: Call) -> int:
    from autograder.cli.console import console
    from autograder.extras.similar.screen import show_similar

    page = call.options["page"]
    pairs = call(similar)
    at_page = {"page": str(page)} if page else {}
    call.show(lambda: {**pairs.as_record(), **at_page}, lambda: show_similar(console, pairs))
    if page and not call.as_json:
        print(f"Side by side: {page}")
    return DONE
