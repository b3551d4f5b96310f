"""Given functions that a hidden test calls in the student's file, where they may be changed or deleted.

A suite that means to call one lists it: `GIVEN = ("attention_layer",)`.
"""

import ast

from autograder.authoring.released import suite_text
from autograder.course.config import Assignment, Course
from autograder.course.document import load_document


def called_by_accident(course: Course, assignment: Assignment) -> list[str]:
    """Return a sentence for each given function that hidden tests use unlisted, and for each listed in vain."""
    file = course.hidden_test_file(assignment)
    if not file.is_file():
        return []
    tree = ast.parse(suite_text(course, file))
    label = course.label(file)
    given = _given(course, assignment)
    used = {name: line for name, line in _names_of_student(tree) if name in given}
    listed = _listed(tree)
    problems = [
        f"{label}, line {line}: `{name}` is given, so students may change or delete it: what a test does with theirs "
        f'says nothing about their work. Use `reference.{name}`, or list it: GIVEN = ("{name}",).'
        for name, line in used.items()
        if name not in listed
    ]
    return problems + [
        f"{label}: GIVEN lists `{name}`, which no test calls."
        for name in listed
        if name not in used
    ]


def _given(course: Course, assignment: Assignment) -> set[str]:
    """Return the solution's functions in which no gap is."""
    document = load_document(course, assignment)
    gaps = [gap.begin for gap in document.gaps]
    return {
        node.name
        for node in ast.parse(document.text).body
        if isinstance(node, ast.FunctionDef)
        and not any(node.lineno <= begin <= (node.end_lineno or 0) for begin in gaps)
    }


def _names_of_student(tree: ast.Module) -> list[tuple[str, int]]:
    """Return each `student.name` of a suite, and each that is asked for as a text, with its line."""
    names = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and _is_student(node.value):
            names.append((node.attr, node.lineno))
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("getattr", "hasattr"):
            owner, name, *_ = node.args
            if _is_student(owner) and isinstance(name, ast.Constant):
                names.append((str(name.value), node.lineno))
    return names


def _is_student(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "student"


def _listed(tree: ast.Module) -> list[str]:
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "GIVEN":
            return list(ast.literal_eval(node.value))
    return []
