"""The entry point of `run_autograder` on Gradescope: reads one submission, writes `results/results.json`.

If the machine fails, no results are written: Gradescope then reports a failed autograder instead of
a wrong score. Output on stdout is visible to the instructor only.
"""

import json
import sys
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from autograder.course.config import Assignment, Course, CourseError
from autograder.course.reading import load_course
from autograder.extras.lms.exports.container_memory import ContainerMemory
from autograder.extras.lms.exports.gradescope import SETTINGS
from autograder.gradebook.run_state import fresh_seed
from autograder.gradebook.visibility import with_full_messages
from autograder.records import Grade, InfrastructureError, Submission, TestResult
from autograder.submissions.choose import submission_of, wanted_of
from autograder.submissions.files import DiskFolder
from autograder.version import __version__

RESULTS = Path("results", "results.json")
SUBMITTED = "submission"


def run(root: Path, memory: ContainerMemory) -> Grade:
    """Grade the files in `submission/` and write the results.

    Raises InfrastructureError or CourseError.
    """
    from autograder.grading.preparation import open_grader
    from autograder.walls.outside.launcher import Sandbox, require_tier

    memory.require()
    kills_before = memory.kills
    settings = _settings(root / "source" / SETTINGS)
    course = load_course(root / "source" / "course")
    assignment = course.assignment(settings["assignment"])
    require_tier("best", course.min_tier)
    hidden_folders = [*course.hidden_folders, root / SUBMITTED, root / "results"]
    sandbox = Sandbox(hidden=hidden_folders, preload=assignment.preload)
    grader = open_grader(course, sandbox, fresh_seed(), [assignment.name])
    try:
        submission = submission_in(root / SUBMITTED, course, assignment)
        grade = grader.grade(submission)
        hidden = {test.name for test in grader.tests[assignment.name] if test.hidden}
    finally:
        grader.close()
        memory.require_no_kill_since(kills_before)
    record = results(course, assignment, grade, hidden, settings["hidden"])
    path = root / RESULTS
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(record, ensure_ascii=False, indent=1) + "\n", "utf-8", "replace")
    return grade


def results(
    course: Course, assignment: Assignment, grade: Grade, hidden: Collection[str], visibility: str
) -> dict[str, Any]:
    """Return `results.json`: every test with its points; those named in `hidden` get the `visibility`."""
    refused = grade.status == "refused"
    seen = [test for test in grade.tests if visibility == "visible" or test.name not in hidden]
    said = (
        f"This submission could not be graded. {grade.problem}"
        if refused
        else _greeting(grade, seen)
    )
    if visibility == "after_due_date":
        grade = with_full_messages(grade)
    return {
        "score": grade.score,
        "execution_time": round(grade.seconds, 3),
        "output": said,
        **dict.fromkeys(("output_format", "test_output_format", "test_name_format"), "text"),
        "visibility": "visible",
        "stdout_visibility": "hidden",
        "extra_data": {
            "assignment": assignment.name,
            "max_score": grade.max_score,
            "seed": grade.seed,
            "isolation": grade.isolation,
            "autograder": __version__,
        },
        "tests": [
            {
                **_test(assignment, grade.tests, test),
                "visibility": visibility if test.name in hidden else "visible",
            }
            for test in grade.tests
        ],
    }


def _greeting(grade: Grade, seen: Sequence[TestResult]) -> str:
    passes = all(test.is_right for test in seen)
    said = (
        "Every test below passes."
        if passes
        else "Each test below says what it expects, and what it met instead."
    )
    return (
        said
        if len(seen) == len(grade.tests)
        else f"{said} There are further tests, which are shown later."
    )


def _test(
    assignment: Assignment, tests: tuple[TestResult, ...], test: TestResult
) -> dict[str, Any]:
    parts = [part.name for part in assignment.parts]
    mates = [other.name for other in tests if other.part == test.part]
    said = "\n\n".join(filter(None, (test.message, test.hint)))
    return {
        "name": test.title,
        "number": f"{parts.index(test.part) + 1}.{mates.index(test.name) + 1}",
        "status": "passed" if test.is_right else "failed",
        "score": test.score,
        "max_score": test.max_score,
        "output": said,
        "tags": [test.part],
    }


def _settings(path: Path) -> dict[str, str]:
    try:
        settings = json.loads(path.read_text("utf-8"))
        return {name: str(settings[name]) for name in ("assignment", "hidden")}
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise CourseError(
            f"{path} cannot be read ({error}). Export the autograder again."
        ) from None


def submission_in(folder: Path, course: Course, assignment: Assignment) -> Submission:
    """Return what a student has uploaded to this folder, or to the assignment's folder in it."""
    inner = folder / assignment.name
    place = inner if inner.is_dir() and not inner.is_symlink() else folder
    return submission_of("student", wanted_of(course, assignment.name), [DiskFolder(place, folder)])


def main(arguments: list[str]) -> int:
    """Run the grader and return the exit code: 0 if results were written.

    The arguments are the root and the folder of the container's control group.
    """
    root, control_group = arguments
    try:
        grade = run(Path(root).resolve(), ContainerMemory(Path(control_group)))
    except (CourseError, InfrastructureError) as error:
        print(error)
        return 3
    print(
        f"{grade.status}, {grade.score:g} of {grade.max_score:g}, isolation {grade.isolation}, seed {grade.seed}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
