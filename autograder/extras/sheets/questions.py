"""The questions of `questions.yml` beside an assignment's suite: what, why and what if, about a student's own code.

`questions.py` beside it has the functions that show what code gives on small fresh inputs. Students
receive neither of the two.
"""

import ast
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import Field

from autograder.course.config import Assignment, Course, CourseError, Text
from autograder.course.definitions import definitions
from autograder.course.mistakes_file import load_mistakes
from autograder.course.yaml_file import MarkedYaml, YamlPath
from autograder.course.yaml_record import YamlRecord
from autograder.text.spelling import did_you_mean

TEMPLATES = Path(__file__).parent / "templates"

FILE_NAME = "questions.yml"
SHOWN_BY = "questions.py"

Anchors = tuple[Text, Text, Text]  # what an answer of 0, 1 and 2 points contains
Arguments = dict[str, int | float | str | bool | list[int] | list[float]]


class Question(YamlRecord):
    """A question with its answer, for the examiner."""

    ask: Text
    answer: Text
    points: Annotated[Anchors, Field(strict=False)]


class Edit(YamlRecord):
    """A change of a student's text: a piece of code that occurs once, and what takes its place.

    Spaces do not matter; `$name` stands for any name with attributes, an index or arguments.
    """

    place: Text | None = Field(default=None, alias="in")
    old: Text = Field(alias="replace")
    new: str = Field(alias="with")


class WhatIf(YamlRecord):
    """A question with four pictures or tables, of which the student's code gives one.

    Either the first of the `edits` that fits is made to the student's text, or its functions are
    called with the arguments in `given`. The wrong options come from the code as it is, from the
    `mistakes`, and from `others`, which are further arguments.
    """

    ask: Text
    show: Text
    answer: Text
    edits: Annotated[tuple[Edit, ...], Field(strict=False)] = ()
    given: Arguments = Field(default_factory=dict)
    others: Annotated[tuple[Arguments, ...], Field(strict=False)] = ()
    mistakes: Annotated[tuple[Text, ...], Field(strict=False)] = ()


class Topic(YamlRecord):
    """Three linked questions about one part; `functions` are those whose lines are shown."""

    topic: Text
    part: Text
    functions: Annotated[tuple[Text, ...], Field(alias="in", min_length=1, strict=False)]
    what: Question
    why: Question
    what_if: Annotated[tuple[WhatIf, ...], Field(min_length=1, strict=False)]
    follow_up: Text


class MistakeNote(YamlRecord):
    """What helps to talk about a known mistake: how to see it, and what a good answer contains."""

    see: Text
    good: Text


class QuestionFile(YamlRecord):
    """The contents of questions.yml."""

    topics: Annotated[tuple[Topic, ...], Field(min_length=1, strict=False)]
    mistakes: dict[str, MistakeNote] = Field(default_factory=dict)


def questions_file(course: Course, assignment: Assignment) -> Path:
    return course.suite_folder(assignment) / FILE_NAME


def shown_by_file(course: Course, assignment: Assignment) -> Path:
    return course.suite_folder(assignment) / SHOWN_BY


def example_files(course: Course, name: str) -> dict[Path, str]:
    """Return the files with questions of a new assignment, to be written by `autograder new`."""
    assignment = Assignment.model_construct(name=name)
    return {
        questions_file(course, assignment): (TEMPLATES / "questions.yml.txt").read_text("utf-8"),
        shown_by_file(course, assignment): (TEMPLATES / "questions.py.txt").read_text("utf-8"),
    }


def load_question_file(course: Course, assignment: Assignment) -> QuestionFile | None:
    """Return the questions of an assignment; None if it has none.

    Raises CourseError with all errors in them.
    """
    file = questions_file(course, assignment)
    if not file.is_file():
        return None
    document = MarkedYaml(course.label(file), course.read(file, CourseError), "the questions")
    record = document.read(QuestionFile)
    document.check_unique(("topics",), "topic", "topic")
    if record is not None:
        _Checks(course, assignment, document).check(record)
    if record is None or document.problems:
        raise CourseError(document.problems)
    return record


class _Checks:
    """Reports names in a file of questions that the course does not have."""

    def __init__(self, course: Course, assignment: Assignment, document: MarkedYaml) -> None:
        self._document = document
        self._parts = [part.name for part in assignment.parts]
        tree = ast.parse(course.read_solution(assignment))
        self._functions = [name for name, _ in definitions(tree)]
        self._mistakes = [mistake.id for mistake in load_mistakes(course, assignment)]
        self._shows = _functions_in(course, shown_by_file(course, assignment))

    def check(self, record: QuestionFile) -> None:
        for index, topic in enumerate(record.topics):
            place: YamlPath = ("topics", index)
            self._known((*place, "part"), "part", topic.part, self._parts)
            for name in topic.functions:
                self._known((*place, "in"), "function of the solution", name, self._functions)
            for number, what_if in enumerate(topic.what_if):
                self._check_what_if((*place, "what_if", number), what_if)
        for name in record.mistakes:
            self._known(("mistakes", name), "known mistake", name, self._mistakes)

    def _check_what_if(self, place: YamlPath, what_if: WhatIf) -> None:
        self._known((*place, "show"), f"function in {SHOWN_BY}", what_if.show, self._shows)
        for name in what_if.mistakes:
            self._known((*place, "mistakes"), "known mistake", name, self._mistakes)
        if bool(what_if.edits) == bool(what_if.given):
            self._document.add(place, "needs either `edits` of the student's code or `given`.")

    def _known(self, place: YamlPath, noun: str, name: str, names: list[str]) -> None:
        if name not in names:
            hint = did_you_mean(name, names) or "."
            self._document.add(place, f"there is no {noun} `{name}`{hint}")


def _functions_in(course: Course, file: Path) -> list[str]:
    if not file.is_file():
        raise CourseError(
            f"{course.label(file)} is missing; it shows what the code in {FILE_NAME} gives."
        )
    try:
        tree = ast.parse(course.read(file, CourseError))
    except SyntaxError as error:
        raise CourseError(
            f"{course.label(file)}, line {error.lineno}: this is not Python: {error.msg}."
        ) from None
    return [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]


def notes_of(record: QuestionFile | None) -> Mapping[str, MistakeNote]:
    return record.mistakes if record else {}
