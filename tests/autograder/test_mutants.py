"""Mutants of a solution: which are created, that they change only gaps, and that their ids are stable."""

from __future__ import annotations

import ast
import textwrap

import pytest

from autograder.authoring.mutants import load_equivalent_mutants, mutants
from autograder.course.reading import load_course
from autograder.records import CourseError

COURSE = """\
title: A tiny course
assignments:
  - name: 01_adding
    title: Adding
    minutes: 10
    parts:
      - {name: add, title: Two numbers, points: 4}
"""


def in_gap(code: str, signature: str = "def f(a, b, x, T, H, self=None):") -> str:
    """Return a solution with one function whose gap contains this code."""
    body = textwrap.indent(textwrap.dedent(code).strip("\n"), "    ")
    return f"import torch\n\n\n{signature}\n    # TODO: write it\n    ### BEGIN SOLUTION\n{body}\n    ### END SOLUTION\n"


def bodies(code: str) -> set[str]:
    """Return the gaps of all mutants of a gap, in a normalized layout."""
    result = set()
    for mutant in mutants(in_gap(code)):
        function = ast.parse(mutant.source).body[-1]
        result.add("; ".join(ast.unparse(statement) for statement in function.body))
    return result


def the(code: str, operator: str) -> set[str]:
    """Return the functions (from the ids) and the descriptions of one operator's mutants."""
    return {m.description for m in mutants(in_gap(code)) if m.id.split(":")[1] == operator}


# ---------------------------------------------------------------------- operators


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("return a + b", {"return a - b"}),
        ("return a * b", {"return a / b", "return a + b"}),
        ("return a @ b", {"return a * b"}),
        ("return a // b", {"return a / b"}),
        ("return a < b", {"return a <= b"}),
        ("return a >= b", {"return a > b"}),
        ("return a is None", {"return a is not None"}),
        ("return a < b < x", {"return a <= b < x", "return a < b <= x"}),
        ("return not a", {"return a"}),
        ("return -a", {"return a"}),
        ("return ~a", {"return a"}),
        ("return a and b", {"return a or b", "return a", "return b"}),
        ("return a if b else x", {"return x if b else a"}),
        ("return 2", {"return 3", "return 1"}),
        ("return 0.5", {"return 1.0", "return 0.25"}),
        ("return True", {"return False"}),
        ("return a[:T]", {"return a[:]"}),
        ("return a[1:]", {"return a[2:]", "return a[0:]", "return a[:]"}),
        ("return f(a, b)", {"return f(b, a)"}),
        ("return f(a, dim=b)", {"return f(a)"}),
        ("return open(a, encoding='utf-8')", set()),
        ("return x.sum()", {"return x.mean()", "return x"}),
        ("return x.tril()", {"return x.triu()", "return x"}),
        ("return torch.sin(x)", {"return torch.cos(x)"}),
        ("return min(x)", {"return max(x)"}),
        ("return x.transpose(a, b)", {"return x"}),
        ("return x.T", {"return x"}),
        ("return self.norm(x)", {"return x"}),
        ("return [i for i in x if i]", {"return [i for i in x if True]"}),
        ("return 'text' + a", set()),
        ("return f'{a + 1}'", set()),
        ("return None", set()),
        ("a += b", {"a -= b", "pass"}),
        ("a.append(b)", {"a.extend(b)", "pass"}),
        ("with a:\n    b = x", {"if True:\n    b = x", "with a:\n    pass"}),
    ],
)
def test_each_operator_creates_the_expected_mutants(code, expected):
    assert bodies(code) == expected


def test_a_guard_is_deleted_turned_round_moved_by_one_and_raises_something_else():
    code = """
        if T > H:
            raise ValueError(f"T = {T + 1} is longer than {H}" + "!")
        return x
    """
    raising = "\n    raise ValueError(f'T = {T + 1} is longer than {H}' + '!'); return x"
    assert bodies(code) == {
        "pass; return x",
        f"if not T > H:{raising}",
        f"if T >= H:{raising}",
        f"if T > H:{raising.replace('ValueError', 'RuntimeError')}",
    }


def test_mutant_keeps_the_surrounding_code():
    assert "return a * (b - x)" in bodies("return a * (b + x)")
    assert "return a ** 1" in bodies("return a ** 2")
    assert "return (a - b).T" in bodies("return (a + b).T")
    assert "return x ** (-1)" in {
        body.replace("** -1", "** (-1)") for body in bodies("return x ** 0")
    }


# ---------------------------------------------------------------------- the gap


def test_only_gaps_change():
    source = "def given(a):\n    return a + 1\n\n\n" + in_gap("return a - 1")
    start = source.index("### BEGIN")
    changed = list(mutants(source))
    assert changed
    for mutant in changed:
        assert mutant.source[:start] == source[:start]
        assert mutant.source.endswith("    ### END SOLUTION\n")


def test_annotations_and_docstrings_are_not_changed():
    code = '''
        """Two: 2."""
        y: list[1 + 2] = a
    '''
    assert bodies(code) == {"'Two: 2.'; pass"}


# ---------------------------------------------------------------------- what is promised of them


LONGER = in_gap("""
    first = a + a          # a comment
    second = a + a + b
    if first > 2 and second:
        x = x.transpose(-2, -1).sum(dim=-1, keepdim=True)
    return first * second
""")


def test_mutants_are_reproducible_and_unique():
    once, again = list(mutants(LONGER)), list(mutants(LONGER))
    assert once == again
    assert len(once) == 30
    assert len({mutant.id for mutant in once}) == len(once)
    assert len({ast.dump(ast.parse(mutant.source)) for mutant in once}) == len(once)
    assert ast.dump(ast.parse(LONGER)) not in {
        ast.dump(ast.parse(mutant.source)) for mutant in once
    }


def test_ids_survive_edits_elsewhere():
    ids = {mutant.id for mutant in mutants(LONGER)}
    moved = "import math\n\n" + LONGER.replace("# a comment", "# another comment")
    moved = moved.replace("    first = a + a", "    new = a + a + 7\n    first = a  +  a")
    assert ids <= {mutant.id for mutant in mutants(moved)}


def test_ids_change_with_their_statement_and_function():
    ids = [mutant.id for mutant in mutants(in_gap("return a + b"))]
    assert ids == ["f:plus_becomes_minus:1:" + ids[0][-6:]]
    other = [mutant.id for mutant in mutants(in_gap("return a + x"))]
    assert ids != other


# ---------------------------------------------------------------------- equivalent_mutants.yml


@pytest.fixture
def course(tmp_path):
    (tmp_path / "course.yml").write_text(COURSE, encoding="utf-8")
    course = load_course(tmp_path)
    course.suite_folder(course.assignments[0]).mkdir(parents=True)
    return course


def write(course, text: str) -> None:
    file = course.suite_folder(course.assignments[0]) / "equivalent_mutants.yml"
    file.write_text(text, encoding="utf-8")


def load(course) -> dict[str, str]:
    return load_equivalent_mutants(
        course, course.assignments[0], {m.id for m in mutants(in_gap("return a + b"))}
    )


def refused(course) -> str:
    with pytest.raises(CourseError) as caught:
        load(course)
    return str(caught.value)


LABEL = "tests/assignments/01_adding/equivalent_mutants.yml"


def test_equivalent_mutants_are_loaded_with_their_reasons(course):
    known = next(mutants(in_gap("return a + b"))).id
    write(course, f"- id: {known}\n  reason: Nobody adds here.\n")
    assert load(course) == {known: "Nobody adds here."}


def test_id_without_a_mutant_is_reported(course):
    write(course, "- id: f:minus_becomes_plus:1:000000\n  reason: It was so once.\n")
    assert refused(course).startswith(
        f"{LABEL}, line 1: the solution has no mutant `f:minus_becomes_plus:1:000000`; "
    )
    write(course, "- id: nothing like it\n  reason: It was so once.\n")
    assert "has its statement changed? Then look at it again." in refused(course)
