"""Promises: the words of the stub that each hidden test rests on, `promise="words of the stub"` in its `@task(…)`.

They must occur in the released stub, in its prose or a docstring; line breaks and comment signs of
prose do not count. They are read from the text of the suite, as a build runs no test.
"""

import ast
from collections.abc import Iterator

from autograder.authoring.released import suite_text
from autograder.course.config import Assignment, Course
from autograder.course.document import load_document
from autograder.course.reading import headings_of_parts


def promises(course: Course, assignment: Assignment) -> dict[str, tuple[str, ...]]:
    """Return the promised words of each hidden test; empty for a test that names none."""
    file = course.hidden_test_file(assignment)
    tree = ast.parse(suite_text(course, file) if file.is_file() else "")
    tests = (
        node
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    )
    return {test.name: tuple(_words(test)) for test in tests}


def broken_promises(course: Course, assignment: Assignment) -> list[str]:
    """Return a sentence for each hidden test without a promise, if others have one, and for each broken one."""
    label = course.label(course.hidden_test_file(assignment))
    stub = _plain(load_document(course, assignment).stub)
    promised = promises(course, assignment)
    if not any(promised.values()):
        return []
    problems = [
        f"{label}: `{test}` names no promise of the stub."
        for test, sentences in promised.items()
        if not sentences
    ]
    for test, sentences in promised.items():
        problems += [
            f"{label}: `{test}` names words that the stub does not have: {words!r}."
            for words in sentences
            if _plain(words) not in stub
        ]
    return problems


def other_titles(course: Course, assignment: Assignment) -> list[str]:
    """Return a sentence for each part that course.yml calls otherwise than the heading that students read."""
    headings = headings_of_parts(course, assignment)
    return [
        f"{assignment.name}: course.yml calls part `{part.name}` “{part.title}”, and its heading “{headings[number]}”. "
        "Leave the title out, or make both the same."
        for number, part in enumerate(assignment.parts, start=1)
        if number in headings and part.title != headings[number]
    ]


def _words(test: ast.FunctionDef) -> Iterator[str]:
    for decorator in test.decorator_list:
        for argument in _promise_of(decorator):
            for node in ast.walk(argument):
                if isinstance(node, ast.Constant):
                    yield str(node.value)


def _promise_of(decorator: ast.expr) -> list[ast.expr]:
    """Return what `@task(…, promise=…)` or `@pytest.mark.promise(…)` promises."""
    if not isinstance(decorator, ast.Call):
        return []
    name = ast.unparse(decorator.func).rpartition(".")[2]
    if name == "task":
        return [keyword.value for keyword in decorator.keywords if keyword.arg == "promise"]
    return decorator.args if name == "promise" else []


def _plain(text: str) -> str:
    lines = (line.strip().removeprefix("# ").removeprefix("#") for line in text.splitlines())
    return " ".join(" ".join(lines).split())
