"""Gradescope: the zip for "Configure Autograder", which grades one assignment with this engine and its sandbox."""

import json
from pathlib import Path

import autograder
from autograder.course.config import Assignment, Course
from autograder.extras.cluster.bundle import course_files
from autograder.extras.lms.exports import Exported, Exporter, ExportRequest
from autograder.installation.distribution import plain_name, requirements
from autograder.records import InfrastructureError, RefusedError
from autograder.source.stub import source_files
from autograder.text.files import zipped

VISIBILITIES = ("hidden", "after_due_date", "after_published", "visible")
SETTINGS = "settings.json"
CONSTRAINTS = "constraints.txt"
PROGRAMS = ("setup.sh", "run_autograder")
_SCRIPTS = Path(__file__).parent


class GradescopeExport(Exporter):
    """The autograder of one assignment for Gradescope."""

    has_grades = False

    def export(self, request: ExportRequest) -> Exported:
        """Write the zip for one assignment; raises RefusedError if the assignment is ambiguous."""
        if request.assignment is None:
            raise RefusedError(
                "Gradescope has an autograder for each assignment; say which one with --assignment."
            )
        hidden = request.hidden or _usual(request.course)
        if hidden not in VISIBILITIES:
            raise RefusedError(f"`hidden` is one of {', '.join(VISIBILITIES)}.")
        assignment = request.course.assignment(request.assignment)
        data = zipped(files(request.course, assignment, hidden).items(), PROGRAMS)
        path = request.write(f"gradescope-{assignment.name}.zip", data, mark=PROGRAMS[0].encode())
        return Exported(
            f"{path} is the autograder of {assignment.name}, out of {assignment.points:g} points. It holds the solution "
            "and the hidden tests: upload it to Gradescope and give it to nobody else."
        )


def _usual(course: Course) -> str:
    if course.feedback.before_due in ("hints", "full"):
        return "after_published"
    return "after_due_date" if course.feedback.after_due in ("hints", "full") else "hidden"


def files(course: Course, assignment: Assignment, hidden: str) -> dict[str, bytes]:
    """Return the contents of the zip by name; raises RefusedError if a part of the course is missing."""
    settings = {"assignment": assignment.name, "hidden": hidden}
    contents = {
        "setup.sh": _SCRIPTS.joinpath("gradescope_setup.sh").read_bytes(),
        "run_autograder": _SCRIPTS.joinpath("gradescope_run.sh").read_bytes(),
        SETTINGS: (json.dumps(settings, indent=1) + "\n").encode(),
        "requirements.txt": _requirements(assignment).encode(),
    }
    missing = [
        path
        for path in (course.solution_file(assignment), course.stub_file(assignment))
        if not path.is_file()
    ]
    if missing:
        raise RefusedError(
            f"{missing[0]} is missing. `autograder build` makes what students receive."
        )
    constraints = course.root / CONSTRAINTS
    contents[CONSTRAINTS] = constraints.read_bytes() if constraints.is_file() else b""
    package = Path(autograder.__file__).parent
    for path in sorted(package.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            contents[f"kit/autograder/{path.relative_to(package).as_posix()}"] = path.read_bytes()
    released = course.release_folder(assignment)  # its sources tell a student's work from the stub
    for path in (*course_files(course, (assignment.name,)), *source_files(released)):
        contents[f"course/{course.label(path)}"] = path.read_bytes()
    return contents


def _requirements(assignment: Assignment) -> str:
    if not requirements():
        raise InfrastructureError(
            "The autograder is not installed as a package; run `make grade` once."
        )
    lines = {
        requirement.name: requirement.text
        for requirement in requirements()
        if requirement.extra is None
    }
    of_extras = {
        requirement.name: requirement.text
        for requirement in requirements()
        if requirement.extra is not None
    }
    for name in sorted({plain_name(module.partition(".")[0]) for module in assignment.preload}):
        lines.setdefault(name, of_extras.get(name, name))
    return "".join(f"{line}\n" for line in lines.values())
