"""Promises: the words of the stub that each hidden test rests on.

A hidden test names them with `@pytest.mark.promise("words of the stub", …)`. The words must occur in the released
stub, in its prose or its docstrings; line breaks and the comment signs of prose do not count.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from autograder.authoring.released import relative_name, suite_text
from autograder.course.config import Assignment, Course
from autograder.course.document import load_document
from autograder.course.yaml_file import closest


@dataclass(frozen=True)
class Promise:
    """A hidden test, and the words of the stub that promise what it asserts; empty if it names none."""

    test: str
    line: int
    words: tuple[str, ...]


def promises(course: Course, assignment: Assignment) -> list[Promise]:
    """Return the promises of an assignment's hidden tests, in the file's order."""
    file = course.hidden_test_file(assignment)
    if not file.is_file():
        return []
    tests = [node for node in ast.parse(suite_text(course, file)).body if isinstance(node, ast.FunctionDef)]
    return [Promise(t.name, t.lineno, _words(t)) for t in tests if t.name.startswith("test_")]


def broken_promises(course: Course, assignment: Assignment) -> list[str]:
    """Return a sentence for each hidden test without a promise, and for each promise that the stub does not make.

    A suite without a single promise has no problems here: its author has not begun (the audit counts such tests).
    """
    found = promises(course, assignment)
    if not any(promise.words for promise in found):
        return []
    label = relative_name(course, course.hidden_test_file(assignment))
    stub = load_document(course, assignment).stub
    text, sentences = _plain(stub), stub.splitlines()
    problems = []
    for promise in found:
        where = f"{label}, line {promise.line}: `{promise.test}`"
        if not promise.words:
            problems.append(f"{where} has no promise: name the stub's words with `@pytest.mark.promise`.")
        for words in promise.words:
            if _plain(words) not in text:
                near = closest(words, [_plain(line) for line in sentences])
                hint = f" Near is: {near}" if near else ""
                problems.append(f"{where} names words that the stub does not have: {words!r}.{hint}")
    return problems


def _words(test: ast.FunctionDef) -> tuple[str, ...]:
    marks = [call for call in test.decorator_list if isinstance(call, ast.Call)]
    marks = [call for call in marks if isinstance(call.func, ast.Attribute) and call.func.attr == "promise"]
    return tuple(
        str(word.value)
        for mark in marks
        for word in mark.args
        if isinstance(word, ast.Constant) and word.value
    )


def _plain(text: str) -> str:
    """The text on one line, without the comment signs of prose."""
    lines = (line.strip().removeprefix("# ").removeprefix("#") for line in text.splitlines())
    return " ".join(" ".join(lines).split())
