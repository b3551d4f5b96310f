"""The author's nudges from `nudges.yml` beside an assignment's suite: a question for each gap of the stub.

`autograder hint` shows one where a test fails and the answer is no known mistake's.
"""

from pydantic import RootModel

from autograder.course.config import Assignment, Course, CourseError
from autograder.course.document import load_document
from autograder.course.yaml_file import MarkedYaml
from autograder.text.spelling import did_you_mean


def load_nudges(course: Course, assignment: Assignment) -> dict[str, str]:
    """Return the nudges by the qualified name of their gap's function; empty without a `nudges.yml`.

    Not every gap needs one. Raises CourseError if one is for a function without a gap.
    """
    if not (file := course.nudges_file(assignment)).is_file():
        return {}
    document = MarkedYaml(course.label(file), course.read(file, CourseError), "the file of nudges")
    record = document.read(RootModel[dict[str, str]])
    nudges = record.root if record else {}
    gaps = [gap.function for gap in load_document(course, assignment).gaps]
    for function, nudge in nudges.items():
        if function not in gaps:
            remedy = did_you_mean(function, gaps) or f"; there are {', '.join(gaps)}."
            document.add((function,), f"the stub has no gap in `{function}`{remedy}")
        elif not nudge.strip():
            document.add(
                (function,),
                f"the nudge of `{function}` is empty; write a question, or remove the line.",
            )
    if document.problems:
        raise CourseError(document.problems)
    return nudges
