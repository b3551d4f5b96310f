"""Feedback returns to a branch of each repository: as on the page, only what changed, and nothing else is touched."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from typer.testing import CliRunner

import autograder
from autograder.cli import app
from autograder.course.config import Course
from autograder.course.reading import load_course
from autograder.extras.git.returning import Returned
from autograder.feedback.markdown import as_markdown, escaped
from autograder.feedback.pages import feedback_path
from autograder.feedback.record import PageRecords
from autograder.gradebook.final_scores import what_counts
from autograder.gradebook.journal import Journal, grades_at
from autograder.records import Grade, RefusedError, TestResult
from tests.autograder.killing import killed_at, random_points
from tests.autograder.pages import write_all
from tests.autograder.student_folder import PICTURES
from tests.autograder.student_repositories import (
    NEEDS_GIT,
    StudentRepository,
    git,
    make_repository,
    write_table,
)
from tests.autograder.tiny_course import COURSE, write_tiny_course

pytestmark = NEEDS_GIT

NAME = "01_adding"
FUTURE, PAST = "2999-01-01 12:00", "2020-01-01 12:00"
HOSTILE = "<script>alert(1)</script> [click](https://evil.example) ![x](//evil.example/x.png) @everyone #1 `a` | b"
WORK = {"adding.py": "def add(a, b):\n    return a - b\n"}


def course_in(folder: Path, due: str = PAST) -> Course:
    text = COURSE.replace("feedback: hints", "feedback: {before_due: visible, after_due: full}")
    write_tiny_course(folder)
    (folder / "course.yml").write_text(
        text.replace("minutes: 10\n", f"minutes: 10\n    due: {due}\n"), "utf-8"
    )
    (folder / "tests/assignments/01_adding/pictures.py").write_text(PICTURES, "utf-8")
    return load_course(folder)


def grade_of(
    student: str, message: str = "add(2, 3) returned -1; 5 was expected.", score: float = 6
) -> Grade:
    known = {"mistake": "subtracts", "hint": "Do two heaps become smaller?"}
    two = ("test_two", "add", "2 and 3 are 5.", "failed", 0, 1, message)
    any_two = ("test_any", "add", "Any two numbers.", "failed", 0, 3, "Wrong.")
    tests = (
        TestResult(*two, hidden=False, **known),
        TestResult(*any_two, full_message="add(4, 5) is -1."),
        TestResult("test_push", "total", "It pushes.", "passed", 2, 2, hidden=False),
        TestResult("test_sums", "total", "It sums up.", "passed", 4, 4),
    )
    return Grade(student, NAME, "graded", score, 10, tests, submission_sha256="cd" * 32)


@pytest.fixture
def course(tmp_path: Path) -> Course:
    return course_in(tmp_path / "course")


@pytest.fixture
def students(tmp_path: Path) -> dict[str, StudentRepository]:
    """The repositories of ada and ben, who have grades in `grades`, and of eve, who has none."""
    with Journal(tmp_path / "grades") as journal:
        for student in ("ada", "ben"):
            journal.append(grade_of(student))
    found = {name: make_repository(tmp_path, name, WORK) for name in ("ada", "ben", "eve")}
    write_table(tmp_path, found)
    return found


def give(folder: Path, course: Course, **options: object) -> Returned:
    table = folder / "repositories.csv"
    done = autograder.export("git", folder / "grades", course, repositories=table, **options)  # type: ignore[arg-type]
    return Returned(**done.students, problems=done.problems)


def test_feedback_is_in_a_clone(
    tmp_path: Path, course: Course, students: dict[str, StudentRepository]
) -> None:
    before = students["ada"].head("main")
    returned = give(tmp_path, course)
    assert (returned.pushed, returned.ungraded, returned.problems) == (["ada", "ben"], ["eve"], [])
    git("clone", "--quiet", "--branch=feedback", students["ada"].url, "clone", folder=tmp_path)
    page = (tmp_path / "clone" / NAME / "README.md").read_text("utf-8")
    assert page.startswith("# Adding\n\nFeedback for ada\n\n**6 of 10 points**\n")
    assert "> **Subtracts**\n>\n> Do two heaps become smaller?" in page
    assert f"[Adding](<{NAME}/README.md>): 6 of 10 points" in (
        tmp_path / "clone/README.md"
    ).read_text("utf-8")
    write_all(tmp_path / "grades", course, grades_at(tmp_path / "grades"))
    html = (tmp_path / "clone" / NAME / "feedback.html").read_bytes()
    assert html == (tmp_path / "grades" / feedback_path(grade_of("ada"))).read_bytes()
    assert students["ada"].head("main") == before
    assert students["ada"].refs() == ["refs/heads/feedback", "refs/heads/main"]
    assert (
        students["ada"].git("log", "--format=%an <%ae> %P", "feedback")
        == "Autograder <feedback@autograder.invalid> \n"
    )
    assert students["eve"].refs() == ["refs/heads/main"]


def test_only_changed_feedback_is_pushed(
    tmp_path: Path, course: Course, students: dict[str, StudentRepository]
) -> None:
    give(tmp_path, course)
    first = students["ada"].head("feedback"), students["ben"].head("feedback")
    again = give(tmp_path, course)
    assert (again.pushed, again.unchanged) == ([], ["ada", "ben"])
    with Journal(tmp_path / "grades") as journal:
        journal.append(grade_of("ben", "Better.", score=7))
    assert give(tmp_path, course).pushed == ["ben"]
    assert students["ada"].head("feedback") == first[0]
    assert students["ben"].head("feedback") != first[1]
    assert "**7 of 10 points**" in students["ben"].show("feedback", f"{NAME}/README.md")


def test_feedback_shows_what_students_may_see_at_the_time(
    tmp_path: Path, students: dict[str, StudentRepository]
) -> None:
    give(tmp_path, course_in(tmp_path / "course", FUTURE))
    for file in ("README.md", "feedback.html"):
        early = students["ada"].show("feedback", f"{NAME}/{file}")
        assert "points in the visible tests" in early
        assert "add(4, 5)" not in early and "Any two numbers" not in early
    assert give(tmp_path, course_in(tmp_path / "course", PAST)).pushed == ["ada", "ben"]
    for file in ("README.md", "feedback.html"):
        assert "add(4, 5) is -1." in students["ada"].show("feedback", f"{NAME}/{file}")


def test_branch_of_somebody_else_is_left_alone(
    tmp_path: Path, course: Course, students: dict[str, StudentRepository]
) -> None:
    own = students["ada"].commit({"notes.md": "mine"}, branch="feedback")
    returned = give(tmp_path, course)
    assert returned.pushed == ["ben"] and students["ada"].head("feedback") == own
    assert "its branch feedback was not written by the course" in returned.problems[0]
    assert give(tmp_path, course, branch="grades").pushed == ["ada", "ben"]
    assert give(tmp_path, course, replace=True).pushed == ["ada"]
    assert "notes.md" not in students["ada"].names("feedback")


@pytest.mark.parametrize(("taken", "wanted"), [("feedback/old", "feedback"), ("a", "a/b/c")])
def test_branch_that_takes_the_name_is_named(
    tmp_path: Path, course: Course, students: dict[str, StudentRepository], taken: str, wanted: str
) -> None:
    students["ada"].commit(WORK, branch=taken)
    returned = give(tmp_path, course, branch=wanted)
    assert returned.pushed == ["ben"]
    sentence = f"its branch {taken} takes the name, as git keeps no branch {wanted} beside it. Name another"
    assert f"{sentence} with --branch." in returned.problems[0]
    assert give(tmp_path, course, branch="grades").pushed == ["ada", "ben"]


def test_feedback_comes_into_a_repository_of_sha256(
    tmp_path: Path, course: Course, students: dict[str, StudentRepository]
) -> None:
    students["ada"] = make_repository(tmp_path, "newer", WORK, "sha256")
    write_table(tmp_path, students)
    assert give(tmp_path, course).pushed == ["ada", "ben"]
    assert "# Adding" in students["ada"].show("feedback", f"{NAME}/README.md")
    students["ada"].git("fsck", "--strict")
    again = give(tmp_path, course)
    assert (again.unchanged, again.problems) == (["ada", "ben"], [])


def test_repository_that_cannot_be_written_stops_no_other(
    tmp_path: Path, course: Course, students: dict[str, StudentRepository]
) -> None:
    write_table(tmp_path, {"ada": StudentRepository(tmp_path / "gone.git"), "ben": students["ben"]})
    returned = give(tmp_path, course)
    assert returned.pushed == ["ben"]
    assert f"ada: file://{tmp_path}/gone.git got no feedback" in returned.problems[0]
    assert not list((tmp_path / "grades/return").glob("*.git"))


def test_command_line(
    tmp_path: Path,
    course: Course,
    students: dict[str, StudentRepository],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["export", "grades", "--repositories", "repositories.csv", "--course", "course", "--to"]
    done = CliRunner().invoke(app, [*words, "git"])
    told = "Feedback: 2 pushed, 0 unchanged, 1 without a grade, 0 failed.\n"
    assert (done.exit_code, done.stdout) == (0, told)
    record = json.loads(CliRunner().invoke(app, [*words, "git", "--json"]).stdout)
    rest = {"pushed": [], "ungraded": ["eve"], "problems": [], "files": []}
    assert record.items() >= {"unchanged": ["ada", "ben"], **rest}.items()
    wrong = CliRunner().invoke(app, ["export", "grades", "--course", "course", "--to", "git"])
    assert wrong.exit_code == 2 and "needs --repositories" in wrong.stderr


@pytest.mark.parametrize("branch", ["-x", "a b", "a:b", "../x", ""])
def test_name_that_is_no_branch_is_refused(
    tmp_path: Path, course: Course, students: dict[str, StudentRepository], branch: str
) -> None:
    with pytest.raises(RefusedError, match="is not the name of a branch"):
        give(tmp_path, course, branch=branch)


def test_killed_command_ends_as_one_that_was_not(
    tmp_path: Path, course: Course, students: dict[str, StudentRepository]
) -> None:
    def work() -> None:
        assert give(tmp_path, course).problems == []

    _, changes = killed_at(0, work)
    whole = {name: one.head("feedback") for name, one in students.items()}
    assert whole["ada"] and whole["ben"]
    for point in random_points(2, changes, "feedback"):
        for name in ("ada", "ben"):
            students[name].git("update-ref", "-d", "refs/heads/feedback")
        killed_at(point, work)
        killed_at(0, work)
        assert {name: one.head("feedback") for name, one in students.items()} == whole, point
        assert not list((tmp_path / "grades/return").glob("*.git"))


# ------------------------------------------------------------------ Markdown


class Rendered(HTMLParser):
    """The elements of a page, its links and pictures, and its text outside of code, as a forge renders Markdown."""

    def __init__(self, markdown: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.targets: list[str] = []
        self.text = ""
        self.code = ""
        self._in_code = 0
        renderer = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
        self.feed(renderer.render(markdown))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.targets += [value or "" for name, value in attrs if name in ("href", "src")]
        self._in_code += tag == "code"

    def handle_endtag(self, tag: str) -> None:
        self._in_code -= tag == "code"

    def handle_data(self, data: str) -> None:
        self.text += "" if self._in_code else data
        self.code += data if self._in_code else ""


def page_of(folder: Path, course: Course, grade: Grade) -> str:
    effective = what_counts(folder, course, [grade])
    return as_markdown(PageRecords(folder, course).page(effective.grades[0], effective)).text


@pytest.mark.parametrize(
    "message", [HOSTILE, f"    {HOSTILE}", "```\n# no\n```", "1. one\n- two\n> three\n===\n---"]
)
def test_text_of_a_student_becomes_no_markup(tmp_path: Path, course: Course, message: str) -> None:
    (tmp_path / "grades").mkdir()
    plain = Rendered(page_of(tmp_path / "grades", course, grade_of("ada", "Wrong")))
    page = Rendered(page_of(tmp_path / "grades", course, grade_of("ada", message)))
    added = set(page.tags) - set(plain.tags)
    assert added <= {"code", "pre"} and page.targets == []
    assert sum(tag in ("h1", "h2", "li", "blockquote", "hr") for tag in page.tags) == sum(
        tag in ("h1", "h2", "li", "blockquote", "hr") for tag in plain.tags
    )


NEIGHBOURS = [
    *("`a`@b`![x](https://evil.example/t.png)", "`a`@b`[Log-in](https://evil.example)"),
    *("`a`@b`@octo-org/everybody", "`a`@b`<h1>", "`a`@b`<details>", "`a``b`@c`<img src=x>"),
    *("``a`@b`", "x`a`@b`` `<b>", "`a`#1`!2`@c`![x](y)", "@a`b`@c", "`a`\\`@b`<i>`"),
]
REFERENCES = [
    *("closes GH-1", "fixes TICKET-12", "see 892308a8b5b5b5b5b5b5b5b5b5b5b5b5b5b5b5b5", ":skull:"),
    *("octo/repo#1", "892308a8...97071e0a", '~"label"', "&12", "[vulnerability:1]", "@ada"),
]


@pytest.mark.parametrize("text", NEIGHBOURS)
def test_pieces_that_are_escaped_apart_stay_text_together(text: str) -> None:
    for whole in (text, f"{text} {text}", f"- {text}", f"`{text}`"):
        page = Rendered(escaped(whole))
        assert set(page.tags) <= {"p", "code"} and page.targets == [], escaped(whole)


@pytest.mark.parametrize("text", REFERENCES)
def test_what_a_forge_could_take_for_a_reference_is_code(text: str) -> None:
    assert not any(word in Rendered(escaped(text)).text for word in text.split()[-1:])


@given(
    st.lists(st.sampled_from(["`", "``", "@a", "<b>", "![x](y)", "[x](y)", "\\", "a", " ", "#1"]))
)
@settings(max_examples=300)
def test_neighbours_of_any_kind_are_only_text(pieces: list[str]) -> None:
    page = Rendered(escaped("".join(pieces)))
    assert set(page.tags) <= {"p", "code"} and page.targets == []
    assert not any(mark in page.text for mark in ("@a", "#1"))
