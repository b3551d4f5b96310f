"""The questions in an assignment's text, with the author's answers from `answers.yml` beside its suite."""

from pydantic import RootModel

from autograder.course.config import Assignment, Course, CourseError
from autograder.course.document import load_document
from autograder.course.yaml_file import MarkedYaml
from autograder.text.wording import counted


def load_questions(course: Course, assignment: Assignment) -> dict[str, list[tuple[str, str]]]:
    """Return the questions of each part with their answers; empty without an `answers.yml`.

    Questions with a cell for a written answer are left out. Raises CourseError if a part has an
    answer too many or too few.
    """
    file = course.answers_file(assignment)
    if not file.is_file():
        return {}
    document = MarkedYaml(course.label(file), course.read(file, CourseError), "the file of answers")
    record = document.read(RootModel[dict[str, list[str]]])
    answers = record.root if record else {}
    asked = load_document(course, assignment).questions()
    for part in [] if document.problems else {**asked, **answers}:
        questions = asked.get(part, [])
        given = answers.get(part, [])
        if len(questions) != len(given):
            there = f"{counted(len(questions), 'question')} in the text, and {counted(len(given), 'answer')} here"
            document.add((part,), f"the part `{part}` has {there}.")
    if document.problems:
        raise CourseError(document.problems)
    answered = {}
    for part, questions in asked.items():
        pairs = zip(questions, answers[part])
        without_cell = [
            (question.text, answer) for question, answer in pairs if not question.is_graded
        ]
        if without_cell:
            answered[part] = without_cell
    return answered
