"""The class report and the feedback pages in a real browser: narrow and wide, light and dark, by keyboard.

Needs Playwright, axe-core and a Chromium of the system: `pip install '.[browser]'`, `apt-get install
chromium`. Screenshots are written to build/screenshots, or to the folder AUTOGRADER_SCREENSHOTS.
"""

from __future__ import annotations

import base64
import csv
import io
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("playwright", reason="Playwright is not installed: pip install '.[browser]'")
pytest.importorskip(
    "axe_playwright_python", reason="axe-core is not installed: pip install '.[browser]'"
)

from axe_playwright_python.sync_playwright import Axe
from matplotlib.figure import Figure
from playwright.sync_api import Browser, Page, sync_playwright

from autograder.course.config import Course
from autograder.course.reading import load_course
from autograder.extras.similar.similar import CourseAnswer, Similar
from autograder.extras.similar.similarity import Pair, Passage
from autograder.extras.similar.similarity_page import write_alike
from autograder.extras.similar.tokens import Stub, own_code
from autograder.feedback.pictures import Picture, failing_parts, keep_pictures, picture_file
from autograder.gradebook import texts
from autograder.records import Grade, SourceFile, Submission
from tests.autograder.browser.paper_class import failing, here, mistakes_of, paper_class, results_of
from tests.autograder.pages import write_all

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
SCREENSHOTS = Path(os.environ.get("AUTOGRADER_SCREENSHOTS") or here() / "build" / "screenshots")
WIDTHS = {"phone": 390, "desk": 1280}
NAME = "03_masked_heads"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.browser,
    pytest.mark.skipif(
        CHROMIUM is None, reason="there is no Chromium; on Debian: apt-get install chromium"
    ),
]


@pytest.fixture(scope="module")
def course() -> Course:
    return load_course(here())


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


def picture(part: str) -> Picture:
    """Return a picture as large as the course's, with a caption."""
    figure, file = Figure(figsize=(8.6, 4.8)), io.BytesIO()
    figure.subplots().plot([1, 3, 2])
    figure.savefig(file, format="png", dpi=100)
    image = base64.b64encode(file.getvalue()).decode()
    return Picture(
        part,
        "who attends to whom",
        "With the mask, *the* attends to itself alone.",
        image,
        'Lit: <b>28</b> of 49, "cat" most.',
    )


def ada(course: Course) -> Grade:
    """Return a grade with every element of a feedback page: passed, failed with and without a known mistake,
    skipped, crashed, a picture.
    """
    assignment = course.assignment(NAME)
    tests, known = results_of(course, assignment), mistakes_of(course, assignment)
    outcomes = [
        failing(tests[1], known[0]),
        failing(tests[2], known[0]),
        failing(tests[3], None, "crashed"),
    ]
    outcomes += [failing(tests[4], known[1]), failing(tests[5], None, "timeout")]
    said = "Your code raised a TypeError (line 4).\n    return torch.softmax(scores, dim=-1) @ value_with_a_long_name"
    outcomes += [replace(failing(tests[6], None), message=said)]
    outcomes += [
        replace(
            failing(tests[7], None, "skipped"),
            message="This waits until “The shares add up to 1.” passes.",
        )
    ]
    results = (tests[0], *outcomes, *tests[8:])
    score = sum(result.score for result in results)
    return Grade(
        "ada", NAME, "graded", score, assignment.points, results, seed=41, isolation="namespaces"
    )


@pytest.fixture(scope="module")
def site(course: Course, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the pages of a class of twelve with refused and flagged submissions and pictures."""
    folder = tmp_path_factory.mktemp("site")
    problem = "masked_heads.py is not UTF-8 text (byte 6); save it as UTF-8."
    code = SourceFile("masked_heads.py", course.read_solution(course.assignment(NAME)))
    (kept,) = texts.put(folder, [Submission("ada", NAME, (code,))])
    adas = replace(ada(course), submission_sha256=kept.digest)
    grades = [adas, *paper_class(course, 12)]
    grades += [Grade("zoë <b>", NAME, "refused", 0.0, 15.0, problem=problem)]
    flag = "Line 3 looks names up while it runs (`getattr`): forbidden ones could hide there."
    grades += [replace(ada(course), student="bo", flags=(flag,), submission_sha256="b")]
    file = picture_file(folder, course, grades[0])
    assert file is not None
    first, second, *_ = failing_parts(grades[0])
    undrawn = Picture(
        second, "gradient xray", "Black.", problem="`Head.forward` is not written yet (line 9)."
    )
    keep_pictures(file, [picture(first), undrawn])
    write_all(folder, course, grades)
    write_alike(folder / "alike.html", "Masked heads", two_alike())
    return folder


def two_alike() -> Similar:
    """Return the similarity of two students with the same lines, one of them with long ones."""
    code = "def causal_mask(T):\n    rows = [[speaker <= listener for speaker in range(T)] for listener in range(T)]\n"
    codes = {
        name: own_code(
            f"{code}    return torch.tensor(rows)  # {name}, {'on and ' * 30}on\n", Stub.of("")
        )
        for name in ("ada", "bo")
    }
    pair = Pair("ada", "bo", 0.9, 0.8, ("listener", "speaker"), (Passage((1, 2), (1, 2), 30),))
    words = ("torch.nn.functional.scaled_dot_product_attention", "listener")
    answer = CourseAnswer("ada", "the solution", 0.97, words, 40)
    return Similar(pairs=[pair], codes=codes, course_answers=[answer])


PAGES = {
    "report": "index.html",
    "feedback": f"feedback/ada/{NAME}.html",
    "student": "students/ada.html",
    "alike": "alike.html",
    "refused": f"feedback/zoë _b_-*/{NAME}.html",
}


def address(site: Path, pattern: str) -> str:
    (page,) = site.glob(pattern)
    return page.as_uri()


@contextmanager
def opened(browser: Browser, where: str, **options: Any) -> Iterator[Page]:
    """Open a page in its own window; an error in its console fails the test."""
    context = browser.new_context(viewport={"width": WIDTHS["desk"], "height": 900}, **options)
    page, complaints = context.new_page(), list[str]()
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("requestfailed", lambda request: complaints.append(request.url))
    try:
        page.goto(where)
        yield page
    finally:
        context.close()
    assert complaints == []


def grave(page: Page) -> list[str]:
    """Return the accessibility violations that axe-core finds."""
    found = Axe().run(page).response["violations"]
    return [
        f"{entry['id']}: {entry['help']} ({node['html'][:200]})"
        for entry in found
        if entry["impact"] in ("moderate", "serious", "critical")
        for node in entry["nodes"]
    ]


@pytest.mark.wcag("1.1.1", "1.3.1", "1.4.3", "1.4.10", "2.4.2", "2.4.4", "3.1.1", "4.1.2")
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", PAGES)
def test_pages_have_no_accessibility_violations(
    browser: Browser, site: Path, name: str, width: str, scheme: str
) -> None:
    with opened(browser, address(site, PAGES[name]), color_scheme=scheme) as page:
        page.set_viewport_size({"width": WIDTHS[width], "height": 900})
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=SCREENSHOTS / f"{name}-{width}-{scheme}.png", full_page=True)
        assert page.evaluate("document.scrollingElement.scrollWidth - innerWidth") <= 0, (
            "it scrolls sideways"
        )
        page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
        assert grave(page) == []


def test_a_page_begins_with_a_link_to_its_content(browser: Browser, site: Path) -> None:
    for name in PAGES.values():
        with opened(browser, address(site, name)) as page:
            page.keyboard.press("Tab")
            target = page.evaluate("document.activeElement.getAttribute('href')")
            assert target.startswith("#")
            assert page.locator(target).count() == 1


def test_an_assignment_of_a_student_is_two_printed_pages(browser: Browser, site: Path) -> None:
    with opened(browser, address(site, PAGES["student"])) as page:
        assignments = page.locator("section[aria-labelledby^=work]").count()
        printed = re.findall(rb"/Type\s*/Page\b", page.pdf(format="A4"))
        assert 0 < len(printed) <= 2 * assignments


def test_report_begins_with_the_class(browser: Browser, site: Path) -> None:
    with opened(browser, address(site, PAGES["report"])) as page:
        ids = page.evaluate("[...document.querySelectorAll('main > section')].map(one => one.id)")
        named = page.evaluate("[...document.querySelectorAll('nav a')].map(one => one.hash)")
        assert ids[:4] == ["summary", "distributions", "help", "refused"]
        assert named == [f"#{name}" for name in ids]


def test_feedback_page_shows_its_pictures(browser: Browser, site: Path) -> None:
    with opened(browser, address(site, PAGES["feedback"])) as page:
        (image,) = page.locator("img").all()
        assert image.evaluate("image => image.complete && image.naturalWidth") == 860
        assert image.get_attribute("alt").endswith('whom: Lit: <b>28</b> of 49, "cat" most.')
        assert page.locator("figure em").inner_text() == "the"
        assert page.get_by_text("No picture yet of gradient xray").is_visible()


@pytest.mark.wcag("2.1.1", "2.4.7", "4.1.3")
def test_report_table_can_be_searched_and_sorted_by_keyboard(browser: Browser, site: Path) -> None:
    with opened(browser, address(site, "index.html")) as page:
        tab_to(page, "#search")
        page.keyboard.type("stud 007")
        rows = page.locator("#everybody tbody tr:visible")
        assert [row.split()[1] for row in rows.all_inner_texts()] == ["007"]
        assert page.get_by_role("status").inner_text() == "1 of 15 students"
        page.keyboard.press("Control+A")
        page.keyboard.press("Delete")
        assert rows.count() == 15
        tab_to(page, "#everybody th.total button")
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline == "solid", "the focus cannot be seen"
        page.keyboard.press("Enter")
        totals = [
            float(cell) for cell in page.locator("#everybody tbody td.total").all_inner_texts()
        ]
        assert totals == sorted(totals)
        page.keyboard.press("Space")
        again = [
            float(cell) for cell in page.locator("#everybody tbody td.total").all_inner_texts()
        ]
        assert again == totals[::-1]
        assert page.locator("#everybody th.total").get_attribute("aria-sort") == "descending"


def test_every_table_can_be_downloaded(browser: Browser, site: Path, tmp_path: Path) -> None:
    with opened(browser, address(site, "index.html")) as page:
        assert page.locator(".download a").count() == page.locator("main table").count()
        with page.expect_download() as downloading:
            page.locator("#everyone .download a").click()
        file = tmp_path / downloading.value.suggested_filename
        downloading.value.save_as(file)
    rows = list(csv.reader(file.read_text("utf-8-sig").splitlines()))
    total = sum(assignment.points for assignment in load_course(here()).assignments)
    assert (file.name, rows[0][:2], len(rows)) == (
        "everyone.csv",
        ["Student", f"Total of {total:g}"],
        16,
    )
    assert [row[0] for row in rows if row[0].startswith("ada")] == ["ada"]


def tab_to(page: Page, selector: str) -> None:
    for _ in range(200):
        page.keyboard.press("Tab")
        if page.evaluate("selector => document.activeElement.matches(selector)", selector):
            return
    raise AssertionError(f"{selector} cannot be reached with the Tab key")


# A class of three hundred
