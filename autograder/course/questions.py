"""The questions in an assignment's text, with the author's answers from `answers.yml` beside its suite."""

from pydantic import Field, RootModel, model_validator

from autograder.course.config import Assignment, Course, CourseError
from autograder.course.document import Question, load_document
from autograder.course.yaml_file import MarkedYaml, YamlRecord
from autograder.text.wording import counted


class AnswerOfFile(YamlRecord):
    """An answer in `answers.yml`, perhaps with its question in words that stand alone."""

    answer: str
    again: str = Field(
        default="", description="The question, as it is asked when its text is not in sight."
    )

    @model_validator(mode="before")
    @classmethod
    def _a_text_is_the_answer(cls, value: object) -> object:
        return {"answer": value} if isinstance(value, str) else value


def load_questions(course: Course, assignment: Assignment) -> dict[str, list[tuple[str, str]]]:
    """Return the questions of each part with their answers; empty without an `answers.yml`.

    Questions with a cell for a written answer are left out. Raises CourseError if a part has an
    answer too many or too few.
    """
    by_part: dict[str, list[tuple[str, str]]] = {}
    for part, pairs in _read(course, assignment).items():
        by_part[part] = [(question.text, given.answer) for question, given in pairs]
    return by_part


def load_rewordings(course: Course, assignment: Assignment) -> dict[str, str]:
    """Return the questions that are asked again in other words, with these words."""
    rewordings: dict[str, str] = {}
    for pairs in _read(course, assignment).values():
        rewordings |= {question.text: given.again for question, given in pairs if given.again}
    return rewordings


def _read(course: Course, assignment: Assignment) -> dict[str, list[tuple[Question, AnswerOfFile]]]:
    file = course.answers_file(assignment)
    if not file.is_file():
        return {}
    document = MarkedYaml(course.label(file), course.read(file, CourseError), "the file of answers")
    record = document.read(RootModel[dict[str, list[AnswerOfFile]]])
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
        without_cell = [(question, given) for question, given in pairs if not question.is_graded]
        if without_cell:
            answered[part] = without_cell
    return answered
