"""The questions in an assignment's text, with the author's answers from `answers.yml` beside its suite."""

import re

from pydantic import RootModel

from autograder.course.config import Assignment, Course, CourseError
from autograder.course.document import Document, load_document
from autograder.course.yaml_file import MarkedYaml
from autograder.text.wording import counted

_LEADS = r"To think about|Think about it|One last question|One question to take along"
_QUESTION = re.compile(rf"(?:^|(?<=\s))\**(?:{_LEADS})\b.*?(?=\n\s*\n|\Z)", re.DOTALL)


class _Answers(RootModel[dict[str, list[str]]]):
    """The answers to the questions of each part, in the order of the questions."""


def load_questions(course: Course, assignment: Assignment) -> dict[str, list[tuple[str, str]]]:
    """Return the questions of each part with their answers; empty without an `answers.yml`.

    A question is the end of a paragraph that begins with “To think about” or a similar lead. It belongs to the part whose
    test cell comes next, or to the last part. Raises CourseError if a part has more questions than answers, or fewer.
    """
    file = course.answers_file(assignment)
    if not file.is_file():
        return {}
    document = MarkedYaml(course.label(file), course.read(file, CourseError), "the file of answers")
    record = document.read(_Answers)
    answers, asked = record.root if record else {}, _questions(load_document(course, assignment))
    for part in [] if document.problems else {**asked, **answers}:
        questions, told = asked.get(part, []), answers.get(part, [])
        if len(questions) != len(told):
            there = f"{counted(len(questions), 'question')} in the text, and {counted(len(told), 'answer')} here"
            document.add((part,), f"the part `{part}` has {there}.")
    if document.problems:
        raise CourseError(document.problems)
    return {part: list(zip(questions, answers[part])) for part, questions in asked.items()}


def _questions(document: Document) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    waiting: list[str] = []
    part = ""
    for cell in document.cells:
        if cell.kind == "markdown":
            waiting += [" ".join(match[0].replace("*", "").split()) for match in _QUESTION.finditer(cell.source)]
        elif cell.kind == "part":
            part = cell.name or ""
            found[part], waiting = waiting, []
    found[part] += waiting
    return {part: questions for part, questions in found.items() if questions}
