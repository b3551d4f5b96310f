"""Find the submissions of a class that are unusually alike; `extras.similar.similarity` compares their code.

Submissions that contain nearly all of one of the course's own answers are found, too: a public
course has public answers.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat

from autograder.course.config import Assignment, Course
from autograder.course.document import load_document
from autograder.course.mistakes_file import load_alternatives
from autograder.course.notebook import to_notebook
from autograder.extras.similar.similarity import GRAM, Pair, alike, contained
from autograder.extras.similar.tokens import Code, Stub, own_code
from autograder.records import SourceFile, Submission
from autograder.source.magics import without_calls
from autograder.source.text import cells
from autograder.submissions.find import find_submissions

MOST_TOKENS = 10_000  # the time and memory of a comparison grow with the product of both lengths
# of code to be read: reading takes seconds and a hundred megabytes for each half megabyte
MOST_LETTERS = 200_000

# A copy contains at least 0.94 of the answer, also with other names and with its functions in
# another order. Of the course's own answers, which are written independently, none contains more
# than 0.85 of another one.
NEARLY_ALL = 0.9
SHORTEST = 100  # tokens: honest students write a shorter answer in the same words
SOLUTION = "the solution"


@dataclass(frozen=True)
class CourseAnswer:
    """A submission that contains nearly all of one of the course's own answers.

    `share` is the share of the answer that it contains. `words` are the names, comments and strings
    of the answer that the submission has, too; `of_words` is the number of those in the answer.
    """

    student: str
    answer: str
    share: float
    words: tuple[str, ...]
    of_words: int

    def as_record(self) -> dict[str, Any]:
        """Return the finding as a JSON-serializable dict."""
        share = round(self.share, 3)
        words = {"words": list(self.words), "of_words": self.of_words}
        return {"student": self.student, "answer": self.answer, "share": share, **words}


@dataclass
class Similar:
    """The similar pairs of a class, most alike first, and the code of each student by name.

    `course_answers` are the submissions that contain an answer of the course, with most of its
    words first. `empty` names students without code of their own, `too_long` those whose code is
    too long to be compared.
    """

    pairs: list[Pair] = field(default_factory=list)
    course_answers: list[CourseAnswer] = field(default_factory=list)
    codes: dict[str, Code] = field(default_factory=dict)
    empty: list[str] = field(default_factory=list)
    too_long: list[str] = field(default_factory=list)

    def as_record(self) -> dict[str, Any]:
        facts = {"compared": len(self.codes), "empty": self.empty, "too_long": self.too_long}
        answers = [answer.as_record() for answer in self.course_answers]
        pairs = [pair.as_record() for pair in self.pairs]
        return {"pairs": pairs, "course_answers": answers, **facts}


def similar(course: Course, assignment: Assignment, path: Path, most: int, least: float) -> Similar:
    """Return at most `most` pairs of the submissions at `path` with a likeness of at least `least`, from 0 to 1.

    Raises RefusedError if there are no submissions, CourseError if the assignment has no readable
    solution, and InfrastructureError without rapidfuzz.
    """
    document = load_document(course, assignment)
    stub = Stub.of(_given(assignment, document.stub))
    result = Similar()
    for submission in find_submissions(path, course, assignment.name):
        code = read_code(submission, stub)
        if code is None or len(code.tokens) > MOST_TOKENS:
            result.too_long.append(submission.student)
        elif len(code.tokens) < GRAM:
            result.empty.append(submission.student)
        else:
            result.codes[submission.student] = code
    texts = {SOLUTION: document.text}
    for name, text in load_alternatives(course, assignment):
        texts[f"alternative {name}"] = text
    answers = {name: own_code(text, stub) for name, text in texts.items()}
    result.pairs = alike(result.codes, answers.values(), most, least)
    result.course_answers = _course_answers(result.codes, answers)[:most]
    return result


def _course_answers(codes: Mapping[str, Code], answers: Mapping[str, Code]) -> list[CourseAnswer]:
    long_enough = {
        name: answer for name, answer in answers.items() if len(answer.tokens) >= SHORTEST
    }
    matches = []
    for student, code in codes.items():
        for name, answer in long_enough.items():
            share = contained(answer, code)
            if share >= NEARLY_ALL:
                words = tuple(sorted(answer.words & code.words))
                matches.append(CourseAnswer(student, name, share, words, len(answer.words)))
    return sorted(matches, key=lambda match: (-len(match.words), -match.share, match.student))


def read_code(submission: Submission, stub: Stub) -> Code | None:
    """Return a submission's own code; of two files, the one with more tokens.

    None if there is too much to read.
    """
    texts = [_python(file) for file in submission.files if not submission.problem]
    if any(len(text) > MOST_LETTERS for text in texts):
        return None
    codes = [own_code(text, stub) for text in texts]
    return max(codes, key=lambda code: len(code.tokens), default=own_code("", stub))


def _given(assignment: Assignment, stub: str) -> str:
    """Return the code that students receive: the script's, and the notebook's, which begins with a cell of its own."""
    notebook = nbformat.writes(to_notebook(assignment, stub))
    return f"{stub}\n{_python(SourceFile(f'{assignment.stem}.ipynb', notebook))}"


def _python(file: SourceFile) -> str:
    try:
        return "\n".join(
            without_calls(text).rstrip("\n") for _, text in cells(file.text, file.name)
        )
    except (ValueError, RecursionError):
        return ""
