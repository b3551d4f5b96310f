"""Find the submissions of a class that are unusually alike; `source.similarity` compares their code."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from autograder.course.config import Assignment, Course
from autograder.course.document import load_document
from autograder.course.mistakes import load_alternatives
from autograder.records import SourceFile, Submission
from autograder.source.similarity import GRAM, Pair, alike
from autograder.source.text import cells
from autograder.source.tokens import Code, Stub, own_code
from autograder.submissions.find import find_submissions

MOST_TOKENS = 10_000  # the time and memory of a comparison grow with the product of both lengths
MOST_LETTERS = 200_000  # of code to be read: reading takes seconds and a hundred megabytes for each half megabyte


@dataclass
class Similar:
    """The similar pairs of a class, most alike first, and the code of each student by name.

    `empty` names students without code of their own, `too_long` those whose code is too long to be compared.
    """

    pairs: list[Pair] = field(default_factory=list)
    codes: dict[str, Code] = field(default_factory=dict)
    empty: list[str] = field(default_factory=list)
    too_long: list[str] = field(default_factory=list)

    def as_record(self) -> dict[str, Any]:
        facts = {"compared": len(self.codes), "empty": self.empty, "too_long": self.too_long}
        return {"pairs": [pair.as_record() for pair in self.pairs], **facts}


def similar(course: Course, assignment: Assignment, path: Path, most: int, least: float) -> Similar:
    """Return at most `most` pairs of the submissions at `path` with a likeness of at least `least`, from 0 to 1.

    Raises RefusedError if there are no submissions, CourseError if the assignment has no readable solution, and
    InfrastructureError without rapidfuzz.
    """
    document = load_document(course, assignment)
    stub = Stub.of(document.stub)
    found = Similar()
    for submission in find_submissions(path, course, assignment.name):
        code = read_code(submission, stub)
        if code is None or len(code.tokens) > MOST_TOKENS:
            found.too_long.append(submission.student)
        elif len(code.tokens) < GRAM:
            found.empty.append(submission.student)
        else:
            found.codes[submission.student] = code
    ours = [document.text, *(text for _, text in load_alternatives(course, assignment))]
    found.pairs = alike(found.codes, [own_code(text, stub) for text in ours], most, least)
    return found


def read_code(submission: Submission, stub: Stub) -> Code | None:
    """Return a submission's own code; of two files, the one with more tokens. None if there is too much to read."""
    texts = [_python(file) for file in submission.files if not submission.problem]
    if any(len(text) > MOST_LETTERS for text in texts):
        return None
    codes = [own_code(text, stub) for text in texts]
    return max(codes, key=lambda code: len(code.tokens), default=own_code("", stub))


def _python(file: SourceFile) -> str:
    try:
        return "\n".join(text.rstrip("\n") for _, text in cells(file.text, file.name))
    except (ValueError, RecursionError):
        return ""
