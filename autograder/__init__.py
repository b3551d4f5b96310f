"""An auto-graded course kit: stubs, suites, a sandbox, grades and feedback.

Everything in `__all__` is imported when it is first used, so that importing the package is cheap;
PyTorch is loaded only by the rooms that need it. `task`, `autograder.checks`, `autograder.fakes` and
`autograder.notebook` are for suites and notebooks.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from autograder.version import __version__ as __version__

if TYPE_CHECKING:
    from autograder.api import (
        Report,
        Run,
        check,
        compare,
        decide,
        doctor,
        grade,
        load_course,
        read_grades,
        regrade,
        report,
        watch,
    )
    from autograder.course.config import Assignment, Course, Part
    from autograder.records import (
        CourseError,
        Grade,
        InfrastructureError,
        RefusedError,
        SourceFile,
        Submission,
        TestResult,
    )
    from autograder.selfcheck.check import CheckReport
    from autograder.suite.task import task

__all__ = [
    "Assignment", "CheckReport", "Course", "CourseError", "Grade", "InfrastructureError", "Part", "RefusedError",
    "Report", "Run", "SourceFile", "Submission", "TestResult", "check", "compare", "decide", "doctor", "grade",
    "load_course", "read_grades", "regrade", "report", "task", "watch",
]  # fmt: skip

COMMANDS = "autograder.commands"  # the entry points of further commands, whose functions are names of the API, too
_HOME = {
    **dict.fromkeys(("Assignment", "Course", "Part"), "autograder.course.config"),
    **dict.fromkeys(("CourseError", "InfrastructureError", "RefusedError"), "autograder.records"),
    **dict.fromkeys(("Grade", "SourceFile", "Submission", "TestResult"), "autograder.records"),
    "CheckReport": "autograder.selfcheck.check",
    "task": "autograder.suite.task",
}


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module(_HOME.get(name, "autograder.api")), name)
    if not name.startswith("_"):
        from autograder.installation.extensions import extensions, load_extension

        if name in extensions(COMMANDS):  # such as `collect` and `export`
            return load_extension(COMMANDS, name).functions[0]
    raise AttributeError(f"module 'autograder' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
