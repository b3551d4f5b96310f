"""course.yml as records: a course, its assignments, their parts and limits, and the paths of their files.

`reading` reads them from a course.yml.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date, datetime, time
from pathlib import Path
from typing import Annotated, ClassVar, Literal, get_args
from zoneinfo import ZoneInfo

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PrivateAttr,
    WithJsonSchema,
    model_validator,
)

from autograder.course.yaml_record import YamlRecord
from autograder.records import CourseError as CourseError
from autograder.records import total
from autograder.text.moments import read_date_or_time
from autograder.text.spelling import did_you_mean, one_of
from autograder.text.utf8 import read_utf8

CATCH_FILE = "catch.py"  # what is called with an input to catch wrong programs

Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Amount = Annotated[int, Field(gt=0)]
Text = Annotated[str, Field(min_length=1)]


def _moment(value: object) -> object:
    """Parse a date and time from YAML or text; a date alone means the end of that day."""
    return _read_moment(value, time(23, 59, 59))


def _read_moment(value: object, of_day: time) -> object:
    try:
        moment = read_date_or_time(value) if isinstance(value, str) and value else value
    except ValueError:
        raise ValueError(
            f'must be a date and time such as `2026-11-27 23:59`, not the text "{value}".'
        ) from None
    if isinstance(moment, date) and not isinstance(moment, datetime):
        return datetime.combine(moment, of_day)
    return moment


def _zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        raise ValueError(
            f'must be a time zone such as `Europe/Berlin`, not the text "{name}".'
        ) from None
    return name


def _module_name(name: str) -> str:
    if not all(part.isidentifier() for part in name.split(".")):
        raise ValueError(
            f'must be the name of a module such as `scipy.stats`, not the text "{name}".'
        )
    return name


_WRITTEN_MOMENT = {
    "type": "string",
    "pattern": r"^\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?( ?(Z|UTC|[+-]\d{2}:?\d{2}))?)?$",
}
ModuleName = Annotated[str, AfterValidator(_module_name)]
Moment = Annotated[datetime, BeforeValidator(_moment), WithJsonSchema(_WRITTEN_MOMENT)]
Share = Annotated[float, Field(gt=0, le=1)]
Percent = Annotated[float, Field(ge=0, le=100)]


class Limits(YamlRecord):
    """The resource limits of one submission; an assignment's own limits override the course's."""

    call_seconds: Seconds = Field(
        default=10,
        description="Processor time of one call of a student's function; five times as many on the clock.",
    )
    load_seconds: Seconds = Field(
        default=10, description="The same for importing a student's file."
    )
    cpu_seconds: Seconds = Field(
        default=30, description="Processor time of one submission's process."
    )
    submission_seconds: Seconds = Field(
        default=120, description="For a whole submission, on the clock."
    )
    submission_cpu_seconds: Seconds = Field(
        default=60,
        description="For a whole submission: the processor time of its workers, and of the grader in its tests.",
    )
    memory_mb: Amount = Field(default=1024, description="Memory of one submission's process.")
    file_mb: Amount = Field(default=1, description="Largest file that a student's code may write.")
    scratch_mb: Amount = Field(
        default=32, description="All files together that a student's code may write."
    )
    processes: Amount = Field(default=16, description="Processes and threads of one submission.")
    open_files: Amount = Field(default=64, description="Files open at the same time.")
    output_kb: Amount = Field(
        default=64, description="How much of what a student's code prints is kept."
    )
    per_hour: Amount | None = Field(
        default=None,
        description="How often `grade --watch` grades a student's work for one assignment within an hour.",
    )


CONVERSATION = "conversation"  # the part that a person grades
CONVERSATION_TITLE = "A conversation about this work"


class Part(YamlRecord):
    """A group of tests with points inside an assignment; one graded cell of its notebook."""

    name: str = Field(
        pattern=r"^[a-z][a-z0-9_]*$",
        description="small letters, digits and underscores, such as `layer_norm`",
    )
    title: Text = ""
    points: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    satisfied_at: Share | None = Field(
        default=None,
        description="The share of the points from which on `export --to satisfied` says so, such as 0.8.",
    )


@dataclass(frozen=True)
class WrittenAnswer:
    """A cell `# %% answer="why" points=2 rubric="…"` of a solution: in nbgrader, a person gives the points."""

    name: str
    points: float
    rubric: str | None


class Assignment(YamlRecord):
    """One assignment of the course. Loaded through a course, its `limits` are complete."""

    name: str = Field(
        pattern=r"^[0-9]{2,}_[a-z][a-z0-9_]*$",
        description="a number, an underscore and small letters, such as `03_masked_heads`",
    )
    title: Text
    minutes: Amount
    limits: Limits = Field(
        default=Limits(), description="Only what differs from the course's limits."
    )
    preload: tuple[ModuleName, ...] = Field(
        default=(),
        strict=False,
        description="Modules that submissions may need beside PyTorch and are slow to import: imported beforehand.",
    )
    due: Moment | None = Field(
        default=None,
        description="When it is due, such as `2026-11-27 23:59`, on the course's clock; a day alone means its end.",
    )
    parts: tuple[Part, ...] = Field(min_length=1, strict=False)
    satisfied_at: Share | None = Field(default=None, description="The same for each of the parts.")
    conversation: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = Field(
        default=None,
        description="The points of a conversation about the work, which `autograder decide --part conversation` gives.",
    )
    share_for_refusals: Share | None = Field(
        default=None,
        description="Where refusals are the lesson: the share of the points that the audit allows to trivial answers "
        "which raise the solution's exceptions. Without them, and by default, it is 0.25.",
    )
    GONE: ClassVar[dict[str, str]] = {
        "catch_points": "Remove it: `autograder catch` works without points. For points that a person gives, "
        "write `conversation`."
    }
    _answers: tuple[WrittenAnswer, ...] = PrivateAttr(())

    @model_validator(mode="after")
    def _names_of_further_parts_are_free(self) -> "Assignment":
        names = [part.name for part in self.parts]
        if self.conversation is not None and CONVERSATION in names:
            raise ValueError(
                f"has points for a `{CONVERSATION}`, so no part of its own can be called that."
            )
        return self

    @property
    def stem(self) -> str:
        """The name of the student's module: `masked_heads` for `03_masked_heads`."""
        return self.name.partition("_")[2]

    @property
    def points(self) -> float:
        """The maximum score of the tests."""
        return total(part.points for part in self.parts)

    @property
    def decided_parts(self) -> tuple[Part, ...]:
        """The parts, and behind them the conversation, if it has points."""
        if self.conversation is None:
            return self.parts
        conversation = Part(name=CONVERSATION, title=CONVERSATION_TITLE, points=self.conversation)
        return (*self.parts, conversation)

    @property
    def answers(self) -> tuple[WrittenAnswer, ...]:
        """The written answers of the solution, which are graded in nbgrader alone."""
        return self._answers

    @property
    def points_in_nbgrader(self) -> dict[str, float]:
        """The points of each graded cell of nbgrader: the parts, and the written answers behind them."""
        parts = {part.name: part.points for part in self.parts}
        return parts | {answer.name: answer.points for answer in self.answers}

    def part(self, name: str) -> Part:
        """Return the part with that name; raises CourseError if there is none."""
        names = [part.name for part in self.parts]
        if name in names:
            return self.parts[names.index(name)]
        hint = did_you_mean(name, names) or f"; it has {one_of(names)}."
        raise CourseError(f"{self.name} has no part `{name}`{hint}")


class Extension(YamlRecord):
    """An extension for one student: another due date for one assignment, or more days for one or all."""

    student: Text
    assignment: Text | None = Field(default=None, description="Without it, all assignments.")
    due: Moment | None = None
    days: Amount | None = None

    @model_validator(mode="after")
    def _says_until_when(self) -> "Extension":
        if (self.due is None) == (self.days is None):
            raise ValueError("must say either `due` or `days`.")
        if self.due is not None and self.assignment is None:
            raise ValueError("has a `due`; it must say for which `assignment`.")
        return self


class LatePolicy(YamlRecord):
    """The deduction for late work, and late days that cost nothing.

    The raw score stays unchanged; the final score is computed from it.
    """

    free_days: Amount | None = Field(
        default=None,
        description="How many late days each student has for all assignments together, taken in the order of due dates.",
    )
    most_per_assignment: Amount | None = Field(
        default=None, description="How many of these one assignment can take."
    )

    grace_minutes: Annotated[float, Field(ge=0, allow_inf_nan=False)] = Field(
        default=0, description="How long after the due date nothing is late yet."
    )
    percent_a_day: Percent | None = Field(
        default=None,
        description="Of the score that was reached, for each day that has begun, beyond late days. Without it, work "
        "beyond the late days counts nothing.",
    )
    most_percent: Percent = Field(default=100, description="More than this is never taken off.")
    extensions: tuple[Extension, ...] = Field(default=(), strict=False)

    @model_validator(mode="after")
    def _says_what_a_day_costs(self) -> "LatePolicy":
        if self.free_days is None and self.percent_a_day is None:
            raise ValueError(
                "must say what a late day costs: `percent_a_day`, `free_days` or both."
            )
        if self.most_per_assignment is not None and self.free_days is None:
            raise ValueError(
                "has a `most_per_assignment`; it must say how many `free_days` there are."
            )
        return self


Visibility = Literal["visible", "parts", "hints", "full"]


class Feedback(YamlRecord):
    """What students see of hidden tests before the due date and after it; a single word stands for both.

    `visible` is nothing, `parts` the points of each part, `hints` sentences and hints, `full`
    inputs and numbers, too.
    """

    before_due: Visibility = "hints"
    after_due: Visibility = "hints"

    @property
    def graded(self) -> str:
        """The messages that grading stores: `hints`, `full` or `both`."""
        if self.before_due == "full":
            return "full"
        return "both" if self.after_due == "full" else "hints"


def _feedback(value: object) -> object:
    if not isinstance(value, str):
        return value
    if value not in VISIBILITIES:
        hint = did_you_mean(value, VISIBILITIES) or "."
        raise ValueError(
            f'must be {one_of(VISIBILITIES)}, or a block of these, not the text "{value}"{hint}'
        )
    return {"before_due": value, "after_due": value}


def _switch(value: object) -> object:
    """Parse yes, no, or the moment from when on; a date alone means the beginning of that day."""
    return value if isinstance(value, bool) else _read_moment(value, time())


def _no_host_network(value: object) -> object:
    """Refuse the name of a sandbox that there was."""
    if value == "host-network":
        raise ValueError('names a sandbox that is gone: write "landlock".')
    return value


VISIBILITIES: tuple[str, ...] = get_args(Visibility)
_LEVEL = {"enum": list(VISIBILITIES)}
_DATED = {
    "type": "object",
    "properties": dict.fromkeys(Feedback.model_fields, _LEVEL),
    "additionalProperties": False,
}
FeedbackSetting = Annotated[
    Feedback, BeforeValidator(_feedback), WithJsonSchema({"anyOf": [_LEVEL, _DATED]})
]


class CourseFile(YamlRecord):
    """The contents of course.yml, as written there."""

    title: Text
    feedback: FeedbackSetting = Field(
        default=Feedback(),
        description="What students see of hidden tests: nothing (visible), the points of each part (parts), sentences "
        "and hints (hints), or inputs and numbers, too (full); or one of these `before_due` and one `after_due`.",
    )
    follow_through: Annotated[float, Field(ge=0, le=1)] = Field(
        default=1.0,
        description="What counts of a test that passes once the solution takes the place of a part that failed "
        "before it, as a share of its points; 0 turns it off.",
    )
    contact: Text | None = Field(
        default=None,
        pattern=r"^[^@\s?&]+@[^@\s?&]+$",
        description="an email address, to which students write about a grade from their feedback pages",
    )
    database: Text | None = Field(
        default=None,
        description="The gradebook's address for nbgrader, such as `postgresql://host/name`; without it, a file.",
    )
    timezone: Annotated[Text, AfterValidator(_zone)] = Field(
        default="UTC", description="The clock of due dates, such as `Europe/Berlin`."
    )
    late: LatePolicy | None = Field(
        default=None, description="What late work costs; without it, nothing."
    )
    attempts: Literal["last", "best"] = Field(
        default="last", description="Which counts of what a student handed in for an assignment."
    )
    catch: Annotated[
        bool | datetime,
        BeforeValidator(_switch),
        WithJsonSchema({"anyOf": [{"type": "boolean"}, _WRITTEN_MOMENT]}),
    ] = Field(
        default=True,
        description="Whether `autograder catch` unlocks wrong programs for a part that passes; or from when on, such "
        "as `2026-11-27`.",
    )
    limits: Limits = Limits()
    min_tier: Annotated[
        Literal["namespaces", "landlock"] | None, BeforeValidator(_no_host_network)
    ] = Field(
        default=None,
        description="The weakest sandbox that may grade, strongest first; without it, either, or --unsafe.",
    )
    assignments: tuple[Assignment, ...] = Field(strict=False)
    GONE: ClassVar[dict[str, str]] = {
        "earlier_questions": "Remove it: `autograder check` asks no questions of earlier parts any more; "
        "`autograder answers` shows the questions of the text with their answers."
    }


class Course(CourseFile):
    """A course and its folder; provides the paths of each assignment's files."""

    root: Path

    def find(self, name: str) -> Assignment | None:
        """Return the assignment with that name; None if the course does not contain it."""
        return next(
            (assignment for assignment in self.assignments if assignment.name == name), None
        )

    def assignment(self, name: str) -> Assignment:
        """Return the assignment with that name; raises CourseError if there is none."""
        if named := self.find(name):
            return named
        names = [assignment.name for assignment in self.assignments]
        hint = did_you_mean(name, names) or (f"; there are {', '.join(names)}." if names else ".")
        raise CourseError(f"The course has no assignment `{name}`{hint}")

    def select(self, names: Iterable[str] | None = None) -> tuple[Assignment, ...]:
        """Return the assignments with those names, all of them for None; raises CourseError for an unknown name."""
        return self.assignments if names is None else tuple(self.assignment(name) for name in names)

    def label(self, file: Path) -> str:
        """Return the path of a file in the course's folder, as messages name it."""
        return file.relative_to(self.root).as_posix()

    def read(self, file: Path, problem: Callable[[str], Exception], missing: str = "") -> str:
        """Read one of the course's files as UTF-8; raises `problem` with a sentence if that fails."""
        return read_utf8(file, self.label(file), problem, missing)

    @property
    def hidden_folders(self) -> list[Path]:
        """Return the folders that must be hidden from students and from the processes of their code."""
        return [self.root / "solutions", self.root / "tests"]

    def solution_folder(self, assignment: Assignment) -> Path:
        return self.root / "solutions" / assignment.name

    def solution_file(self, assignment: Assignment) -> Path:
        return self.solution_folder(assignment) / f"{assignment.stem}.py"

    def read_solution(self, assignment: Assignment) -> str:
        """Return the text of the solution; raises CourseError if it is missing or is not UTF-8."""
        file = self.solution_file(assignment)
        return self.read(
            file,
            CourseError,
            f"{assignment.name} has no solution yet: {self.label(file)} is missing.",
        )

    def release_folder(self, assignment: Assignment) -> Path:
        """Return the folder of the files that students receive; it is built, never edited by hand."""
        return self.root / "assignments" / assignment.name

    def stub_file(self, assignment: Assignment) -> Path:
        return self.release_folder(assignment) / f"{assignment.stem}.py"

    def notebook_file(self, assignment: Assignment) -> Path:
        return self.release_folder(assignment) / f"{assignment.stem}.ipynb"

    def suite_folder(self, assignment: Assignment) -> Path:
        return self.root / "tests" / "assignments" / assignment.name

    def visible_test_file(self, assignment: Assignment) -> Path:
        return self.suite_folder(assignment) / "test_visible.py"

    def hidden_test_file(self, assignment: Assignment) -> Path:
        return self.suite_folder(assignment) / "test_hidden.py"

    def mistakes_file(self, assignment: Assignment) -> Path:
        return self.suite_folder(assignment) / "mistakes.yml"

    def failing_tests_file(self, assignment: Assignment) -> Path:
        return self.suite_folder(assignment) / "failing_tests.json"

    def answers_file(self, assignment: Assignment) -> Path:
        return self.suite_folder(assignment) / "answers.yml"

    def catch_file(self, assignment: Assignment) -> Path:
        """Return the file of inputs to catch mistakes with, which students receive."""
        return self.suite_folder(assignment) / "given" / CATCH_FILE

    def given_files(self, assignment: Assignment) -> list[Path]:
        """Return the programs that students receive as they are, sorted by name."""
        files = sorted((self.suite_folder(assignment) / "given").glob("*.py"))
        return [file for file in files if file.name != CATCH_FILE or self.catch is not False]

    def nudges_file(self, assignment: Assignment) -> Path:
        return self.suite_folder(assignment) / "nudges.yml"

    def pictures_file(self, assignment: Assignment) -> Path:
        return self.suite_folder(assignment) / "pictures.py"

    def alternatives(self, assignment: Assignment) -> list[Path]:
        """Return the files of alternatives, sorted by name."""
        return sorted((self.suite_folder(assignment) / "alternatives").glob("*.py"))
