"""Gradebook, feedback pages and class report: their contents, what they must not contain, and escaping."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest
from rich.console import Console
from typer.testing import CliRunner

from autograder.api import Run
from autograder.cli import app
from autograder.cli.tables import show_class
from autograder.course.config import Course
from autograder.feedback import class_report
from autograder.feedback import statistics as stats
from autograder.feedback.pages import TEMPLATES, feedback_path
from autograder.gradebook import texts
from autograder.gradebook.final_scores import differing, latest_grades
from autograder.gradebook.journal import Journal, Reading
from autograder.gradebook.table import write_gradebook
from autograder.records import Grade, Outcome, SourceFile, Submission
from autograder.records import TestResult as Result
from autograder.runs.run import RunSummary
from tests.autograder.pages import counted, write_all, write_feedback
from tests.autograder.tables import rows_of

NAME = "01_adding"
TESTS = (
    ("test_two_and_three_are_five", "add", "2 and 3 together are 5.", 1.0),
    ("test_any_two_numbers", "add", "Any two whole numbers are added.", 3.0),
    ("test_first_push_is_the_sum", "total", "After one push, the total is that number.", 2.0),
    ("test_pushes_add_up", "total", "Three pushes give the sum of all four numbers.", 3.0),
    ("test_negative_numbers_are_refused", "total",
     "A negative number is a ValueError that names it.", 1.0),
)  # fmt: skip
HINT = "Do two heaps become smaller when they are put together?"


def result(index: int, outcome: Outcome = "passed", **more: str) -> Result:
    name, part, title, points = TESTS[index]
    return Result(
        name, part, title, outcome, points if outcome == "passed" else 0.0, points, **more
    )


def graded(student: str, *changes: Result, assignment: str = NAME) -> Grade:
    """Return a grade in which all tests pass except those with the given results."""
    changed = {test.name: test for test in changes}
    tests = tuple(changed.get(name, result(index)) for index, (name, *_) in enumerate(TESTS))
    score = sum(test.score for test in tests)
    return Grade(student, assignment, "graded", score, 10.0, tests, seed=41, isolation="namespaces")


def subtracting(student: str) -> Grade:
    known = {"mistake": "subtracts", "hint": HINT}
    return graded(
        student,
        result(0, "failed", message="The result of add(2, 3) is -1; 5 was expected.", **known),
        result(1, "failed", message="The result of add(…) is not the expected number.", **known),
    )


def refused(
    student: str, problem: str = "The file is not UTF-8 text (byte 7).", assignment: str = NAME
) -> Grade:
    return Grade(
        student, assignment, "refused", 0.0, 10.0 if assignment == NAME else 0.0, problem=problem
    )


def page_with(folder: Path, course: Course, *changes: Result) -> Page:
    """The page of ada, whose tests pass except those with the given results."""
    return Page(write_feedback(folder, course, graded("ada", *changes)))


class Page(HTMLParser):
    """The elements, the visible text and the headings of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.source = path.read_text("utf-8")
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self._within = ""
        self.feed(self.source)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attributes)))
        self._within = tag

    def handle_data(self, data: str) -> None:
        if self._within not in ("style", "script"):
            self.texts.append((self._within, data))

    @property
    def text(self) -> str:
        return " ".join("".join(data for _, data in self.texts).split())

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]

    def inside(self, tag: str) -> list[str]:
        return [data.strip() for within, data in self.texts if within == tag and data.strip()]


# Statistics


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([6, 1, 2], [3, 1, 1.5, 2, 4, 6]),
        ([1, 2, 3, 10], [4, 1, 1.75, 2.5, 4.75, 10]),
        ([7], [7, 7, 7, 7, 7, 7]),
        ([], [None] * 6),
    ],
)
def test_mean_and_quartiles_equal_hand_computed_values(
    values: list[float], expected: list[float | None]
) -> None:
    assert list(stats.summary(values).values()) == expected


def test_discrimination_equals_hand_computed_values() -> None:
    # The products of the deviations add up to 2, their squares to 1 and 5: 2 / √(1 · 5).
    passed, rest = [True, True, False, False], [3, 2, 1, 0]
    assert stats.discrimination(passed, rest) == pytest.approx(2 / 5**0.5)
    assert stats.discrimination(passed[::-1], rest) == pytest.approx(-2 / 5**0.5)
    assert stats.discrimination([True, False, True, False], [1, 1, 0, 0]) == pytest.approx(0)


def test_discrimination_excludes_the_test_itself() -> None:
    first, second = result(0), result(1)
    lost_first, lost_second = result(0, "failed"), result(1, "skipped")
    pairs = [(first, lost_second), (lost_first, second)]
    items = stats.items([Grade(str(i), NAME, "graded", 0, 4, pair) for i, pair in enumerate(pairs)])
    assert [(item.name, item.passed, item.taken, item.rate) for item in items] == [
        (TESTS[0][0], 1, 2, 0.5),
        (TESTS[1][0], 1, 2, 0.5),
    ]
    assert [item.discrimination for item in items] == [pytest.approx(-1), pytest.approx(-1)]


def test_mistake_counts_once_per_student() -> None:
    grades = [subtracting("alan"), subtracting("ada"), graded("emmy"), refused("kurt")]
    forgetful = result(3, "failed", mistake="forgets", hint="And earlier ones?", message="No.")
    counts = stats.mistake_counts([*grades, graded("sofia", forgetful)])
    assert counts[0] == stats.MistakeCount(NAME, "subtracts", HINT, ("ada", "alan"), 4)
    assert (counts[1].mistake, counts[1].students) == ("forgets", ("sofia",))


def test_equal_failures_without_a_known_mistake_are_one_cluster(
    tmp_path: Path, course: Course
) -> None:
    """The numbers in the messages differ; another message or a further failed test is another cluster."""
    says = [f"add({n}, 2) gave {n}.5; {n + 2} was expected." for n in (3, 44)]
    grades = [
        graded("ada", result(0, "failed", message=says[0])),
        graded("bo", result(0, "failed", message=says[1])),
        graded("cy", result(0, "failed", message="There is no `add`.")),
        graded("di", result(0, "failed", message=says[0]), result(1, "failed")),
    ]
    clusters = stats.unnamed_failures(grades)
    assert [cluster.students for cluster in clusters] == [("ada", "bo"), ("cy",), ("di",)]
    page = write_all(tmp_path, course, grades).read_text("utf-8")
    assert page.count("<pre ") == 1
    assert '<pre tabindex="0"># 01_adding: made by ada, bo\n- id: unnamed_add_1\n' in page


# Gradebook


def test_gradebook_contains_the_latest_grades_sorted(tmp_path: Path) -> None:
    grades = [graded("emmy"), subtracting("Ada"), graded("Ada"), refused("alan")]
    grades.append(subtracting("emmy"))
    path = write_gradebook(tmp_path / "new folder", counted(*latest_grades(grades)))
    assert path.read_bytes() == (
        b"student,assignment,status,score,max_score,problem,final_score,days_late,decisions\r\n"
        b"Ada,01_adding,graded,10,10,,10,,\r\n"
        b"alan,01_adding,refused,0,10,The file is not UTF-8 text (byte 7).,0,,\r\n"
        b"emmy,01_adding,graded,6,10,,6,,\r\n"
    )


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", "\n", "＝"])
def test_gradebook_contains_no_formulas(tmp_path: Path, start: str) -> None:
    hostile = f'{start}HYPERLINK("x")'
    (row,) = rows_of(write_gradebook(tmp_path, counted(refused(hostile, hostile, hostile))))
    assert [row[column] for column in ("student", "assignment", "problem")] == ["'" + hostile] * 3


# Feedback pages


def test_page_lists_passed_and_failed_tests(tmp_path: Path, course: Course) -> None:
    page = Page(write_feedback(tmp_path, course, subtracting("ada")))
    assert "6 of 10 points" in page.text
    assert "Well on the way." in page.text
    assert page.inside("h2") == ["Two numbers", "A running total"]
    assert page.inside("h3") == [TESTS[0][2], TESTS[1][2]]
    assert page.inside("li") == [TESTS[2][2], TESTS[3][2], TESTS[4][2]]
    assert "0 of 4" in page.text and "6 of 6" in page.text


def test_followed_test_is_shown_apart_and_not_as_a_failure(tmp_path: Path, course: Course) -> None:
    message = "Right, once `add` is right."
    followed = replace(
        result(3, "followed", message=message, mistake="subtracts", hint=HINT), score=3.0
    )
    grade = graded("ada", *subtracting("ada").tests[:2], followed)
    page = Page(write_feedback(tmp_path, course, grade))
    assert "Right, once add is right." in page.text and page.text.count(HINT) == 1
    assert page.inside("h3") == [TESTS[0][2], TESTS[1][2]]
    assert "6 of 6" in page.text and TESTS[3][2] in page.inside("li")
    assert stats.unnamed_failures([grade]) == []
    assert [item.passed for item in stats.items([grade])] == [0, 0, 1, 1, 1]
    assert stats.mistake_counts([grade])[0].hint == HINT


def test_tests_of_one_cause_stand_below_its_question(tmp_path: Path, course: Course) -> None:
    page = Page(write_feedback(tmp_path, course, subtracting("ada")))
    assert page.text.count(HINT) == page.text.count("Subtracts") == 1
    assert page.source.count('<article class="card">') == 1
    in_order = ("Subtracts", HINT, TESTS[0][2], "-1; 5 was", TESTS[1][2])
    places = [page.text.index(words) for words in in_order]
    assert places == sorted(places)


def test_failed_and_waiting_tests_show_their_cost(tmp_path: Path, course: Course) -> None:
    waiting = result(1, "skipped", message="This waits.")
    page = page_with(tmp_path, course, result(0, "failed", message="No."), waiting)
    assert f"{TESTS[0][2]} −{TESTS[0][3]:g} No." in page.text
    assert f"This waits. {TESTS[1][2]} −{TESTS[1][3]:g}" in page.text


def test_equal_failures_are_shown_once(tmp_path: Path, course: Course) -> None:
    slow = "Your file took longer than 5 seconds to load."
    page = page_with(tmp_path, course, *(result(n, "timeout", message=slow) for n in range(5)))
    assert page.text.count(slow) == page.text.count("took too long") == 1
    assert page.inside("h3") == [title for _, _, title, _ in TESTS]
    assert "These fail for a reason given above." in page.text, "in the second part"
    assert "No test passes yet." in page.text


def test_failure_ends_with_the_call_to_try(tmp_path: Path, course: Course) -> None:
    failed = result(0, "failed", message="Too small.", to_try="Try: `add('<b>', 3)`")
    page = page_with(tmp_path, course, failed)
    assert "Too small. Try: add('<b>', 3)" in page.text and "add('<b>', 3)" in page.inside("code")


def test_page_shows_the_file_and_the_submission_time(tmp_path: Path, course: Course) -> None:
    files = (SourceFile("adding.py", "x = 1"), SourceFile("<b>.ipynb", "{}"))
    (known,) = texts.put(tmp_path, [Submission("ada", NAME, files)])
    zoned = course.model_copy(update={"timezone": "Europe/Berlin"})
    entry = {"student": "ada", "assignment": NAME, "submission_sha256": known.digest}
    entry["at"] = "2026-11-27T11:00:00+00:00"
    (tmp_path / "times.json").write_text(json.dumps({"times": [entry]}), "utf-8")
    write_all(
        tmp_path, zoned, [replace(graded("ada"), submission_sha256=known.digest), graded("bo")]
    )
    text = Page(tmp_path / feedback_path(graded("ada"))).text
    assert "Feedback for ada on adding.py and <b>.ipynb" in text
    assert "Handed in 27 November 2026, 12:00 CET" in text
    text = Page(tmp_path / feedback_path(graded("bo"))).text
    assert "Feedback for bo 10 of 10 points" in text, "unknown facts are not mentioned"


def test_grades_of_before_with_points_for_catch_py_are_still_read_and_shown(
    tmp_path: Path, course: Course
) -> None:
    own = SourceFile("adding.py", "x = 1")
    both = Submission("ada", NAME, (own, SourceFile("catch.py", "INPUTS = {}")))
    (stored,) = texts.put(tmp_path, [both])
    caught = Result("catch_A", "catch", "An input catches program A.", "failed", 0.0, 2.0, "No.")
    older = graded("ada")
    older = replace(
        older, max_score=older.max_score + 2, tests=(*older.tests, caught),
        submission_sha256=stored.digest,
    )  # fmt: skip
    with Journal(tmp_path) as journal:
        journal.append(older)
    (read,) = Reading(tmp_path / "grades.jsonl")
    submission = texts.get(tmp_path, read)
    assert submission is not None and submission.files == (own,)
    write_all(tmp_path, course, [read])
    text = Page(tmp_path / feedback_path(read)).text
    assert (
        "10 of 12 points" in text
        and "catch 0 of 2 not yet An input catches program A. −2 No." in text
    )


def test_page_contains_no_test_names_and_no_data_of_the_run(tmp_path: Path, course: Course) -> None:
    source = write_feedback(tmp_path, course, subtracting("ada")).read_text("utf-8")
    assert not any(name in source for name, *_ in TESTS)
    assert "namespaces" not in source
    assert "41" not in Page(tmp_path / feedback_path(subtracting("ada"))).text


NAMES = [
    *("ada", "Ada", "../ada", "a/b", "a b", "a_b", "", ".", "..", "å", "a\u030a", "<script>"),
    *("x" * 300, "a\0b"),
]


def test_every_student_has_a_separate_folder(tmp_path: Path, course: Course) -> None:
    paths = [write_feedback(tmp_path, course, graded(name)) for name in NAMES]
    assert len({str(path).casefold() for path in paths}) == len(NAMES)
    assert all(path.resolve().parent.parent == (tmp_path / "feedback").resolve() for path in paths)


# The class report


def whole_class() -> list[Grade]:
    timeout = result(3, "timeout", message="It took too long.")
    return [
        graded("ada"),
        subtracting("alan"),
        subtracting("grace"),
        graded("emmy", timeout),
        refused("kurt"),
        refused("sofia", "The course has no assignment `02_more`.", "02_more"),
    ]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory, course: Course) -> Iterator[Page]:
    yield Page(write_all(tmp_path_factory.mktemp("grades"), course, whole_class()))


def test_report_shows_pass_rates_and_discrimination(report: Page) -> None:
    text = " ".join(" ".join(data for _, data in report.texts).split())
    # Passing the first test goes with (9, 7 - 1) in the rest, failing it with (6, 6).
    expected = stats.discrimination([True, False, False, True], [9, 6, 6, 6])
    assert expected is not None
    assert f"{TESTS[0][2]} 2 of 4 {expected:.2f}" in text
    assert f"{TESTS[2][2]} 4 of 4 –" in text
    assert "Two numbers 50 % of the points" in text
    assert "corrected item–total correlation (point-biserial)" in text


def test_pages_to_read_are_sorted_by_lost_points(tmp_path: Path, course: Course) -> None:
    students, names = ("ada", "alan", "bo", "emmy", "kurt"), (NAME, "02_more", "03_yet_more")
    grades = [graded(student, assignment=name) for student in students for name in names]
    grades += [
        subtracting("ada"),
        replace(graded("ada", assignment="02_more"), score=1.0),
        refused("alan"),
    ]
    source = write_all(tmp_path, course, grades).read_text("utf-8")
    section = source[source.index('id="help"') : source.index('id="refused"')]
    rows = [re.findall(r">([^<>\s]+)</(?:th|a)>", row) for row in section.split("<tr>")[2:]]
    assert rows == [["ada", "02_more", "Adding"], ["alan", "Adding"]]


def test_every_link_of_the_report_has_a_target(tmp_path: Path, course: Course) -> None:
    grades = [subtracting(name) for name in NAMES] + [refused("a?b#c%20")]
    index = write_all(tmp_path, course, grades)
    hrefs = [a["href"] or "" for a in Page(index).all("a")]
    links = {unquote(href) for href in hrefs if not href.startswith("#")}
    assert len(links) == 2 * len(grades)  # the page of the grade, and that of the student
    assert all((tmp_path / link).is_file() for link in links)
    anchors = {href[1:] for href in hrefs if href.startswith("#")}
    assert anchors <= {attributes.get("id") for _, attributes in Page(index).elements}


def test_table_of_all_students_shows_every_score(tmp_path: Path, course: Course) -> None:
    low = graded("low", *(result(index, "failed") for index in (0, 1, 3)))
    stranger = refused("zoë", "No such assignment.", "09_none")
    source = write_all(tmp_path, course, [*whole_class(), low, stranger]).read_text("utf-8")
    table = source[source.index('<table id="everybody">') :]
    body = table[table.index("<tbody>") : table.index("</tbody>")]
    rows = [re.sub(r"<[^>]+>", " ", row).split() for row in body.split("</tr>")[:-1]]
    assert rows == [
        ["ada", "10", "10", "–"],
        ["alan", "6", "6", "–"],
        ["emmy", "7", "7", "–"],
        ["grace", "6", "6", "–"],
        ["kurt", "0", "refused", "–"],
        ["low", "3", "3", "–"],
        ["sofia", "0", "–", "refused"],
        ["zoë", "0", "–", "refused"],
    ]
    assert body.count('class="number low"') == 1
    heads = re.findall(r'<th scope="col"[^>]*aria-sort="(\w+)"><button type="button">', table)
    assert heads == ["ascending", "none", "none", "none"]
    assert "no assignment of this course" in table
    usual = write_all(tmp_path, course, [low]).read_text("utf-8")
    assert '"button">Other' not in usual and "no assignment of this course" not in usual


def in_terminal(width: int, course: Course, grades: list[Grade], folder: Path) -> list[str]:
    screen = io.StringIO()
    run = Run(folder, folder / "index.html", tuple(grades), {}, summary=RunSummary())
    show_class(Console(file=screen, width=width), course, run, as_json=False)
    return screen.getvalue().splitlines()


def test_every_terminal_table_shows_the_total(tmp_path: Path, course: Course) -> None:
    (one,) = course.assignments
    names = [f"{number:02d}_adding" for number in range(1, 14)]
    many = course.model_copy(
        update={"assignments": tuple(one.model_copy(update={"name": n}) for n in names)}
    )
    student = "a" * 60 + "@example.org"
    grades = [graded(student, assignment=name) for name in names]
    lines = in_terminal(80, many, [*grades, refused("bo", assignment="07_adding")], tmp_path)
    heads = [line.split() for line in lines if line.split()[:1] == ["total"]]
    assert [name for head in heads for name in head[1:]] == [name[:2] for name in names]
    assert 1 < len(heads) < 5
    for row in ("student / 130 / 10", "a" * 31 + "… 130 10"):
        assert sum(" ".join(line.split()).startswith(row) for line in lines) == len(heads)
    assert max(map(len, lines[3:-1])) <= 80
    assert len([line for line in in_terminal(300, many, grades, tmp_path) if "total" in line]) == 1


def test_grades_that_differ_from_course_yml_are_reported(course: Course) -> None:
    old = graded("ada", assignment="00_old")
    fitting = [graded("ada"), subtracting("bo"), refused("kurt", assignment="09_none")]
    assert differing(course, fitting) == []
    assert differing(course, [graded("ada"), replace(graded("bo"), max_score=12.5), old]) == [
        "00_old: there are grades of it, but course.yml has no assignment of that name; they count as they are. "
        "If it has a new name, rename the submissions' folders, too, and grade them again.",
        "01_adding: there are grades out of 12.5 points, but course.yml says 10. `autograder grade` grades these again.",
    ]


def test_report_reads_grades_by_default_and_reports_differences(
    tmp_path: Path, course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with Journal(tmp_path / "grades") as journal:
        journal.append(graded("ada"))
    command = ["report", "--course", str(course.root)]
    done = CliRunner().invoke(app, command)
    assert (done.exit_code, done.stdout, done.stderr) == (0, "grades/index.html\n", "")
    with Journal(tmp_path / "grades") as journal:
        journal.append(replace(graded("bo"), max_score=20.0))
    done = CliRunner().invoke(app, command)
    assert (done.exit_code, "out of 20 points, but course.yml says 10." in done.stderr) == (1, True)


def test_report_shows_different_suites_and_missing_isolation(
    tmp_path: Path, course: Course
) -> None:
    grades = [
        replace(graded("ada"), suite_sha256="one", isolation="unsafe"),
        replace(graded("alan"), suite_sha256="two", seed=8),
    ]
    text = Page(write_all(tmp_path, course, grades)).text
    assert "graded by 2 versions of its suite" in text
    assert "graded without isolation" in text
    assert "41, 8" in text


# Safety, size and access


HOSTILE = [
    "<script>alert(1)</script>", '" onmouseover="alert(1)',
    "</title></style><img src=x onerror=alert(1)>", "{{ 7 * 7 }}{% raw %}", "`<b onclick=x>`",
    "]]><svg onload=alert(1)>",
]  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE)
def test_html_in_any_value_is_escaped(tmp_path: Path, course: Course, text: str) -> None:
    bad = Result("test_x", text, text, "failed", 0, 1, text, text, text)
    waiting = Result("test_y", "add", text, "skipped", 0, 1, text)
    grade = Grade(text, NAME, "graded", 0, 2, (bad, waiting), isolation=text)
    write_all(tmp_path, course, [grade, refused(text, text, text), graded("ada", assignment=text)])
    pages = [Page(path) for path in tmp_path.rglob("*.html")]
    assert len(pages) == 6
    for page in pages:
        assert not {"img", "b"} & {tag for tag, _ in page.elements}
        assert not any(
            name.startswith("on") for _, attributes in page.elements for name in attributes
        )
        assert all("onload" not in svg for svg in page.all("svg"))
        assert "49" not in page.inside("title")[0]
        assert len(page.all("title")) == len(page.all("style")) == 1
    index = Page(tmp_path / "index.html")
    assert len(index.all("script")) == 1
    assert text.replace("`", "") in index.text


def test_content_security_policy_allows_only_the_reports_script(
    report: Page, tmp_path: Path, course: Course
) -> None:
    (script,) = re.findall(r"<script>(.*?)</script>", report.source, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policies = [meta["content"] or "" for meta in report.all("meta") if "http-equiv" in meta]
    assert [f"script-src 'sha256-{digest}'" in policy for policy in policies] == [True]
    page = Page(write_feedback(tmp_path, course, graded("ada")))
    assert page.all("script") == []
    assert any("default-src 'none'" in (meta.get("content") or "") for meta in page.all("meta"))


def test_pages_load_no_external_resources(report: Page) -> None:
    assert not re.search(r"https?:|url\(|@import", report.source)
    assert not [tag for tag, attributes in report.elements if "src" in attributes or tag == "link"]


def test_headings_and_tables_are_accessible(report: Page, tmp_path: Path, course: Course) -> None:
    for page in (report, Page(write_feedback(tmp_path, course, subtracting("ada")))):
        levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch(r"h[1-6]", tag)]
        assert levels[0] == 1 and levels.count(1) == 1
        assert all(after <= before + 1 for before, after in zip(levels, levels[1:], strict=False))
        assert page.all("html")[0]["lang"] == "en"
        assert len(page.all("caption")) == len(page.all("table"))
        assert all("scope" in head for head in page.all("th"))


@pytest.mark.parametrize("scheme", [0, 1, 2], ids=["light", "dark", "paper"])
def test_text_has_sufficient_contrast(scheme: int) -> None:
    style = (TEMPLATES / "style.css").read_text("utf-8")
    colours = dict(re.findall(r"--([\w-]+): (#\w{6});", style.split(":root {")[scheme + 1]))
    assert len(colours) == 11
    grounds = {
        "text": ("paper", "sheet", "open-tint", "low", "lowest"),
        "quiet": ("paper", "sheet"),
        "good": ("paper", "sheet"),
        "open": ("paper", "sheet", "open-tint"),
    }
    for front, backs in grounds.items():
        for back in backs:
            assert contrast(colours[front], colours[back]) >= 4.5, (front, back)


def contrast(one: str, other: str) -> float:
    """The contrast ratio of two colours, as the Web Content Accessibility Guidelines define it."""
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_report_of_a_large_class_links_to_the_table_and_writes_the_pages_of_all_students(
    tmp_path: Path, course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(class_report, "MOST_LISTED", 2)
    problem = {"status": "refused", "problem": "The file is empty.", "tests": (), "score": 0.0}
    grades = [*(graded(student) for student in ("ada", "bo")), subtracting("cy")]
    grades += [replace(graded(f"fay{number}"), **problem) for number in range(3)]
    report = write_all(tmp_path, course, grades)
    page = report.read_text("utf-8")
    assert "<div><dt>Students</dt><dd>6</dd></div>" in page and 'id="everybody"' not in page
    assert 'Their scores are in <a href="grades.csv">grades.csv</a>' in page
    assert '1 more: see <a href="grades.csv">grades.csv</a>' in page
    assert list(tmp_path.glob("index*")) == [report]
    lowest = page[page.index('id="help"') : page.index('id="everyone"')]
    assert "fay0" in lowest and "ada" not in lowest
    assert (
        len(rows_of(tmp_path / "grades.csv")) == len(list(tmp_path.rglob("feedback/*/*.html"))) == 6
    )
    assert len(list((tmp_path / "students").iterdir())) == 6


# -- the command ------------------------------------------------------------------------------------------


def report_of(path: Path, course: Course):
    return CliRunner().invoke(app, ["report", str(path), "--course", str(course.root)])


def journal_of(folder: Path, *students: str) -> Path:
    with Journal(folder) as journal:
        for student in students:
            journal.append(graded(student))
    return folder / "grades.jsonl"


@pytest.mark.parametrize("content", ["student,score\nada,3\n", "", "[]\n", "[" * 100_000 + "\n"])
@pytest.mark.parametrize("name", ["notes.txt", "grades.jsonl"])
def test_file_without_grades_is_refused(
    tmp_path: Path, course: Course, name: str, content: str
) -> None:
    (tmp_path / name).write_text(content, "utf-8")
    for mine in ("index.html", "grades.csv"):
        (tmp_path / mine).write_text("mine", "utf-8")
    done = report_of(tmp_path / name, course)
    assert (done.exit_code, done.stderr) == (2, f"{tmp_path / name} holds no grades.\n")
    kept = {(tmp_path / mine).read_text("utf-8") for mine in ("index.html", "grades.csv")}
    assert kept == {"mine"}


def test_partial_last_line_is_ignored(tmp_path: Path, course: Course) -> None:
    """The next run removes it, so it cannot remain in the middle of a journal."""
    journal = journal_of(tmp_path, "ada", "ben")
    journal.write_bytes(journal.read_bytes()[:-40])
    done = report_of(tmp_path, course)
    assert (done.exit_code, done.stderr) == (0, "")
    with Journal(tmp_path) as written:
        written.append(graded("cy"))
    assert [grade.student for grade in Reading(journal)] == ["ada", "cy"]
    assert report_of(tmp_path, course).exit_code == 0
    journal.write_bytes(journal.read_bytes()[:-1])
    with Journal(tmp_path) as written:
        written.append(graded("dan"))
    assert [grade.student for grade in Reading(journal)] == ["ada", "cy", "dan"]
