"""A pytest session that runs a suite repeatedly: collection, available fixtures, and the end of tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from autograder.bridge.outside.local import LocalStudent, load
from autograder.bridge.outside.subject import Subject
from autograder.course.config import CourseError
from autograder.course.reading import load_course
from autograder.failures.explain import Failure
from autograder.suite.session import Ending, Examinee, SuiteSession, check_suite
from tests.autograder.sampling import thinned
from tests.autograder.tiny_course import ALTERNATIVE, write_tiny_course

SUITE = "tests/assignments/01_adding"
HIDDEN = f"{SUITE}/test_hidden.py"
USES = """
import pytest

@pytest.mark.part("add")
def test_uses({fixture}, student):
    {body}
    assert student.add(2, 3) == 5

@pytest.mark.part("add")
def test_goes_on(student):
    assert student.add(2, 3) == 5
"""
FIXTURES = {
    "tmp_path": "(tmp_path / 'new').write_text('', 'utf-8'); assert len(list(tmp_path.iterdir())) == 1",
    "monkeypatch": "import os; assert 'CHANGED' not in os.environ; monkeypatch.setenv('CHANGED', '1')",
    "capsys": "print('heard'); assert capsys.readouterr().out == 'heard\\n'",
    "recwarn": "import warnings; warnings.warn('heard'); assert len(recwarn) == 1",
}


@pytest.fixture
def course(tmp_path):
    return write_tiny_course(tmp_path / "course")


def test_problems_of_a_suite_are_reported(course):
    hidden = course / SUITE / "test_hidden.py"
    text = hidden.read_text("utf-8")
    text = text.replace('needs("test_two_and_three_are_five")', 'needs("test_nothing")')
    text = text.replace(
        'part("total")\n@pytest.mark.points(3)', 'part("totals")\n@pytest.mark.points(3)'
    )
    text = text.replace('    """A negative number is a ValueError that names it."""\n', "")
    hidden.write_text(text, "utf-8")
    loaded = load_course(course)
    assignment = loaded.assignment("01_adding")
    session = SuiteSession([loaded.visible_test_file(assignment), hidden], course)
    try:
        problems = check_suite(loaded, assignment, session.tests())
    finally:
        session.close()
    assert problems == [
        f"{HIDDEN}, line 10: test_any_two_numbers needs test_nothing, which is not defined before it.",
        f"{HIDDEN}, line 19: test_pushes_add_up belongs to part `totals`, which is not in course.yml; "
        "did you mean `total`?",
        f"{HIDDEN}, line 29: test_negative_numbers_are_refused has no docstring for students to read.",
        f"{SUITE}: the tests of part `total` add up to 3 points; course.yml says 6.",
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    thinned(
        [
            (
                "import os\nimport nowhere_to_be_found\n",
                "line 2 cannot be collected: ModuleNotFoundError: No module named 'nowhere_to_be_found'",
            ),
            ("\n\ndef f(:\n", "line 3 cannot be collected: SyntaxError: invalid syntax"),
            (
                "def f():\n    1 / 0\nf()\n",
                "line 2 cannot be collected: ZeroDivisionError: division",
            ),
            ("import pytest\npytest.skip('no')\n", "line 2 cannot be collected: Using pytest.skip"),
        ],
        4,
    ),
)
def test_suite_that_cannot_be_collected_is_reported(course, text, problem):
    (course / HIDDEN).write_text(text, "utf-8")
    with pytest.raises(CourseError) as caught:
        SuiteSession([course / HIDDEN], course)
    assert str(caught.value).startswith(f"{HIDDEN}, {problem}")


@pytest.mark.parametrize(
    "name", thinned(["[WS 26] homework", "week 3 [draft", "a::b", "-k", "@files"], 4)
)
def test_a_folder_may_have_any_name(tmp_path, monkeypatch, name):
    folder = Path(name, "course")
    monkeypatch.chdir(tmp_path)
    write_tiny_course(folder)
    for root in (folder, tmp_path / folder):
        session = SuiteSession([root / SUITE / "test_hidden.py"], root)
        names = [test.name for test in session.tests()]
        session.close()
        assert "test_pushes_add_up" in names


def test_no_folder_above_the_course_is_listed(course, monkeypatch):
    """A home folder can hold thousands of files, each of which pytest would look at."""
    listed = []
    scandir = os.scandir

    def listing(folder):
        listed.append(Path(folder))
        return scandir(folder)

    monkeypatch.setattr(os, "scandir", listing)
    SuiteSession([course / HIDDEN], course).close()
    assert listed and all(folder.is_relative_to(course) for folder in listed)


def session_of(folder, text):
    file = folder / "test_hidden.py"
    file.write_text(text, "utf-8")
    return SuiteSession([file], folder)


def outcomes(session, text=ALTERNATIVE):
    """Return how each test ended for a module of this process: the exception's type and first line, or None."""
    student = LocalStudent(load(text, "adding.py", "adding_of_a_test").module)
    return {
        ending.test.name: ending.error
        and f"{type(ending.error).__name__}: {ending.error}".split("\n")[0]
        for ending in session.examine(Examinee(Subject(student, student)), 1)
    }


NEEDS = """
import pytest

@pytest.mark.part("add")
def test_first(student):
    assert student.answer == 1

@pytest.mark.part("add")
@pytest.mark.needs("test_first")
def test_second(student): ...

@pytest.mark.part("add")
@pytest.mark.needs("test_second")
def test_third(student): ...
"""


class Second(Examinee):
    """Another module is examined where the first one fails, and `test_second` need not run."""

    def __init__(self, *answers):
        modules = [load(f"answer = {n}", "answer.py").module for n in answers]
        super().__init__(Subject(LocalStudent(modules[0])))
        self.other = Subject(LocalStudent(modules[1]))

    def ending(self, test, run):
        if test.name == "test_second":
            return Ending(test)
        first = super().ending(test, run)
        return Ending(test, run(test, self.other)) if first.failed else first


@pytest.mark.parametrize(
    ("answers", "ends"),
    [
        ((1, 2), ["passed", "passed", "passed"]),
        ((2, 1), ["passed", "passed", "passed"]),
        ((2, 3), ["failed", "skipped", "skipped"]),
    ],
)
def test_an_examination_waits_repeats_and_knows(tmp_path, answers, ends):
    session = session_of(tmp_path, NEEDS)
    try:
        for _ in range(2):
            endings = [*session.examine(Second(*answers), 1)]
            results = [
                ending.result(Failure("failed", "no") if ending.error else None)
                for ending in endings
            ]
            assert [result.outcome for result in results] == ends
            waiting = [result.message for result in results if result.outcome == "skipped"]
            assert (
                waiting
                == [f"This waits until “test_{name}” passes." for name in ("first", "second")][
                    : len(waiting)
                ]
            )
        alone = [ending.passed for ending in session.examine(Second(2, 3), 1, session.tests()[2:])]
        assert alone == [True], "a needed test that is not examined does not count"
    finally:
        session.close()


@pytest.mark.parametrize("fixture", thinned(FIXTURES, 2))
def test_fixtures_with_a_teardown_work_in_repeated_runs(tmp_path, fixture):
    session = session_of(tmp_path, USES.format(fixture=fixture, body=FIXTURES[fixture]))
    try:
        for _ in range(3):
            assert outcomes(session) == {"test_uses": None, "test_goes_on": None}
        wrong = outcomes(session, ALTERNATIVE.replace("sum((a, b))", "a - b"))
        assert all(said and said.startswith("AssertionError") for said in wrong.values())
        assert outcomes(session) == {"test_uses": None, "test_goes_on": None}
    finally:
        session.close()
    assert "CHANGED" not in os.environ


def test_temporary_folders_are_removed_after_passed_and_failed_tests(tmp_path):
    body = "open(tmp_path / 'new', 'w').close(); used.append(tmp_path)"
    text = USES.format(fixture="tmp_path", body=body).replace(
        "import pytest\n", "import pytest\nused = []\n"
    )
    session = session_of(tmp_path, text)
    try:
        for answer in (ALTERNATIVE, ALTERNATIVE.replace("sum((a, b))", "a - b")):
            outcomes(session, answer)
        used = session.tests()[0].item.module.used
        assert len(used) == 2 and not any(folder.exists() for folder in used)
        assert used[0].parent.exists()
    finally:
        session.close()
    assert not used[0].parent.exists()


OF_NONE = ("caplog", "cache", "of_a_conftest")
REFUSED = {
    **{name: (name, "", "", f"4: test_uses uses the fixture `{name}`, which") for name in OF_NONE},
    "no student": ("tmp_path", "on(student)", "on()",
                   "9: test_goes_on belongs to a part, but does"),
    "points that are no number": ("tmp_path", "@pytest.mark.part(",
                                  "@pytest.mark.points('many')\n@pytest.mark.part(",
                                  "4: test_uses has `points(many)`; write a number"),
}  # fmt: skip


@pytest.mark.parametrize("fixture, old, new, problem", thinned(REFUSED.values(), 3), ids=REFUSED)
def test_unusable_tests_are_refused_at_collection(tmp_path, fixture, old, new, problem):
    conftest = "import pytest\n@pytest.fixture\ndef of_a_conftest(): ...\n"
    (tmp_path / "conftest.py").write_text(conftest, "utf-8")
    text = USES.format(fixture=fixture, body="pass")
    assert old in text
    with pytest.raises(CourseError) as caught:
        session_of(tmp_path, text.replace(old, new) if old else text)
    assert str(caught.value).startswith(f"test_hidden.py, line {problem}")


def test_failing_teardown_fails_only_its_own_test(tmp_path):
    fixture = "@pytest.fixture\ndef fragile():\n    yield\n    raise OSError('no space left')\n"
    text = USES.format(fixture="fragile", body="pass").replace(
        "import pytest\n", f"import pytest\n{fixture}"
    )
    session = session_of(tmp_path, text)
    try:
        for _ in range(2):
            assert outcomes(session) == {
                "test_uses": "OSError: no space left",
                "test_goes_on": None,
            }
    finally:
        session.close()


@pytest.mark.parametrize(
    "ending",
    thinned(
        ["pytest.exit('done')", "pytest.skip('no')", "pytest.fail('no')", "raise SystemExit"], 4
    ),
)
def test_pytest_outcome_ends_only_its_own_test(tmp_path, ending):
    session = session_of(tmp_path, USES.format(fixture="monkeypatch", body=ending))
    try:
        for _ in range(2):
            ended = outcomes(session)
            assert ended["test_uses"] and ended["test_goes_on"] is None
    finally:
        session.close()


def test_pytest_settings_of_the_environment_are_ignored(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTEST_ADDOPTS", "-k nothing --an-option-of-a-plugin")
    monkeypatch.setenv("PYTEST_PLUGINS", "nowhere_to_be_found")
    session = session_of(tmp_path, USES.format(fixture="tmp_path", body="pass"))
    try:
        assert set(outcomes(session)) == {"test_uses", "test_goes_on"}
    finally:
        session.close()
    assert os.environ["PYTEST_PLUGINS"] == "nowhere_to_be_found"
    assert "PYTEST_DISABLE_PLUGIN_AUTOLOAD" not in os.environ
