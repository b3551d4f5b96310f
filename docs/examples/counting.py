"""The command `count`: how many grades are in a folder."""

from dataclasses import dataclass
from typing import Annotated, Any

from autograder.api import read_grades
from autograder.cli.base import DONE, Call, command_of
from autograder.options import GradesFolder, value


@dataclass(frozen=True)
class Count:
    grades: int

    def as_record(self) -> dict[str, Any]:
        return {"grades": self.grades}


def count(
    grades: GradesFolder = "grades",
    *,
    status: Annotated[
        str, value("--status", metavar="STATUS", help="Only these grades.")
    ] = "graded",
) -> Count:
    """Count the grades of a folder."""
    return Count(sum(grade.status == status for grade in read_grades(grades)))


@command_of(count)
def count_command(call: Call) -> int:
    counted = call(count)
    call.show(counted.as_record, lambda: print(f"{counted.grades} grades."))
    return DONE
