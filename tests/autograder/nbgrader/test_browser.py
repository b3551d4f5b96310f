"""Jupyter in a real browser: formgrader shows a class and grades an answer, and students solve notebooks.

Needs Playwright and a Chromium of the system (`apt-get install chromium`). The pictures go to build/screenshots.
"""

from __future__ import annotations

import csv
import io
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("nbgrader", reason="nbgrader is not installed: pip install '.[nbgrader]'")
pytest.importorskip("playwright", reason="Playwright is not installed: pip install '.[browser]'")

import nbformat
from playwright.sync_api import TimeoutError as NotShown
from playwright.sync_api import sync_playwright

import autograder
from autograder.authoring.build import build
from tests.autograder.nbgrader.classroom import ROOT, TINY, Classroom, edited, tiny_classroom
from tests.autograder.nbgrader.hostile_notebook import FLAG, make_hostile
from tests.autograder.waiting import HANGS, hang_guard

NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)
PICTURES = ROOT / "build" / "screenshots"
MILLISECONDS = 1000 * HANGS

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(
        CHROMIUM is None, reason="there is no Chromium; on Debian: apt-get install chromium"
    ),
]


QUESTION = '# %% answer="why_one" points=2 rubric="Names counting on."'
ANSWER = "Because counting on gives the same number."


def write_answer(notebook: Any) -> None:
    for cell in notebook.cells:
        if cell.metadata.get("nbgrader", {}).get("grade_id") == "why_one":
            cell.source = ANSWER


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Classroom:
    """A class of five, graded: Ada has answered the question, Dora's file is refused, and Eve's notebook is hostile."""
    room = tiny_classroom(tmp_path_factory.mktemp("browser"))
    source = room.folder / "solutions" / TINY / "adding.py"
    source.write_text(
        source.read_text().replace('# %% part="add"\n', f'# %% part="add"\n\n{QUESTION}\n')
    )
    room = Classroom(room.folder)
    build(room.course)
    answered = edited(room.solution(), write_answer)
    for student, work in {"ada": answered, "bob": room.stub()}.items():
        room.hand_in(student, work)
    room.hand_in("cleo", source.read_text().replace("a + b", "a - b"), "adding.py")
    room.hand_in("dora", b"%PDF-1.4", "homework.pdf")
    room.hand_in("eve", edited(room.solution(), make_hostile))
    room.nbgrader("generate_assignment", TINY)
    room.nbgrader("autograde", TINY)
    return room


@pytest.fixture(scope="module")
def jupyter(room: Classroom) -> Iterator[str]:
    """The address of a JupyterLab in the course's folder."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    settings(room, "notification", '{"fetchNews": "false"}')
    folders = {
        "JUPYTER_CONFIG_DIR": ".jupyter",
        "JUPYTERLAB_SETTINGS_DIR": ".lab",
        "JUPYTERLAB_WORKSPACES_DIR": ".spaces",
    }
    environment = {
        **os.environ,
        **{name: str(room.folder / folder) for name, folder in folders.items()},
    }
    options = [
        "--no-browser", f"--ServerApp.port={port}", "--IdentityProvider.token=",
        "--ServerApp.password=",
    ]  # fmt: skip
    options += ["--ServerApp.port_retries=0"]
    if os.geteuid() == 0:
        options.append("--allow-root")
    log = (room.folder / "jupyter.log").open("wb")
    server = subprocess.Popen(
        [sys.executable, "-m", "jupyterlab", *options], cwd=room.folder, env=environment,
        stdout=log, stderr=subprocess.STDOUT,
    )  # fmt: skip
    try:
        address = f"http://127.0.0.1:{port}"
        wait_for(f"{address}/api/status", server)
        yield address
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(HANGS)
        log.close()


def wait_for(address: str, server: subprocess.Popen) -> None:
    deadline = hang_guard()
    while True:
        try:
            with urllib.request.urlopen(address, timeout=5):
                return
        except OSError:
            assert server.poll() is None and time.monotonic() < deadline, (
                "JupyterLab does not start"
            )
            time.sleep(0.3)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@contextmanager
def page_of(browser: Any, name: str, **options: Any) -> Iterator[Any]:
    """Open a page; its last state is saved as a screenshot, also after a failure."""
    context = browser.new_context(viewport={"width": 1280, "height": 1000}, **options)
    page = context.new_page()
    page.set_default_timeout(MILLISECONDS)
    try:
        yield page
    finally:
        photograph(page, name)
        context.close()


def photograph(page: Any, name: str) -> None:
    PICTURES.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=PICTURES / f"{name}.png")


@pytest.mark.slow
def test_formgrader_shows_the_autograders_feedback(
    browser: Any, jupyter: str, room: Classroom
) -> None:
    submission = submission_of(room, "cleo")
    with page_of(browser, "formgrader-submission") as page:
        page.goto(f"{jupyter}/formgrader/submissions/{submission}/")
        page.get_by_text("Two numbers: 0 of 4 points").wait_for()
        page.get_by_text("Do two heaps become smaller when they are put together?").first.wait_for()
        assert page.locator("input.score").first.get_attribute("placeholder") == "0"
        page.get_by_text("Two numbers: 0 of 4 points").scroll_into_view_if_needed()


def submission_of(room: Classroom, student: str) -> str:
    """Return the id under which formgrader shows a student's notebook."""
    from nbgrader.api import Gradebook

    with Gradebook(f"sqlite:///{room.folder / 'gradebook.db'}", "attention-by-hand") as gradebook:
        return str(gradebook.find_submission_notebook("adding", TINY, student).id)


@pytest.mark.slow
def test_points_and_a_comment_for_an_answer_reach_the_export(
    browser: Any, jupyter: str, room: Classroom
) -> None:
    with page_of(browser, "formgrader-answer") as page:
        page.goto(f"{jupyter}/formgrader/submissions/{submission_of(room, 'ada')}/")
        page.get_by_text(ANSWER).wait_for()
        cell = page.locator(".nbgrader_cell", has_text=ANSWER)
        fill_and_save(page, cell, "input.score", "1.5")
        fill_and_save(page, cell, "textarea.comment", "Which number do you count from?")
        cell.scroll_into_view_if_needed()
    rows = {row["student"]: row for row in csv.DictReader(io.StringIO(exported(room)))}
    assert (rows["ada"][TINY], rows["ada"][f"{TINY}: why_one"]) == ("11.5", "1.5")
    assert rows["ada"]["comments"] == f"{TINY}: Which number do you count from?"


def fill_and_save(page: Any, cell: Any, field: str, text: str) -> None:
    """Fill a field once formgrader has loaded its value, and wait until the server has saved the text.

    Formgrader sets placeholders when a cell's grade and comment are loaded; it ignores what is typed before that.
    """
    for loaded in ("input.extra-credit[placeholder]", "textarea.comment[placeholder]"):
        cell.locator(loaded).wait_for()
    with page.expect_response(lambda response: response.request.method in ("PUT", "POST")) as saved:
        cell.locator(field).fill(text)
        cell.locator(field).press("Tab")
    assert saved.value.ok


def exported(room: Classroom) -> str:
    """Return the scores for a spreadsheet."""
    autograder.export("csv", room.folder / "grades", room.folder, output=room.folder / "scores.csv")
    return (room.folder / "scores.csv").read_text("utf-8")


def test_nothing_of_a_hostile_notebook_runs_in_formgrader(
    browser: Any, jupyter: str, room: Classroom
) -> None:
    with page_of(browser, "formgrader-hostile") as page:
        page.goto(f"{jupyter}/formgrader/submissions/{submission_of(room, 'eve')}/")
        assert_nothing_ran(page)


@pytest.mark.slow
def test_nothing_of_a_hostile_notebook_runs_in_nbgraders_feedback(
    browser: Any, room: Classroom
) -> None:
    """All students have a page, also the one whose attachments are missing."""
    room.nbgrader("generate_feedback", TINY)
    pages = sorted((room.folder / "feedback").glob("*/*/*.html"))
    assert [page.parts[-3] for page in pages] == ["ada", "bob", "cleo", "dora", "eve"]
    with page_of(browser, "feedback-hostile") as page:
        page.goto(pages[-1].as_uri())
        assert_nothing_ran(page)


def assert_nothing_ran(page: Any) -> None:
    """The page shows the student's scripts as text. A script of the test's own sets the flag, where one can run."""
    page.get_by_text(FLAG).first.wait_for()
    page.wait_for_load_state("load")
    assert page.evaluate(f"typeof window.{FLAG}") == "undefined"
    assert page.locator("[onload], [onerror], iframe[srcdoc]").count() == 0
    page.evaluate(
        f"document.body.insertAdjacentHTML('beforeend', `<img src='x:' onerror='window.{FLAG} = 1'>`)"
    )
    page.wait_for_function(f"window.{FLAG} === 1")


@pytest.mark.slow
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_student_completes_the_first_part_in_jupyterlab(
    browser: Any, jupyter: str, room: Classroom, theme: str
) -> None:
    settings(room, "themes", f'{{"theme": "JupyterLab {theme.capitalize()}"}}')
    with page_of(browser, f"lab-{theme}-green") as page:
        page.goto(f"{jupyter}/lab/workspaces/{theme}/tree/assignments/{TINY}/adding.ipynb?reset")
        page.get_by_text("Python 3 (ipykernel) | Idle").wait_for()
        assert (
            page.locator("body").get_attribute("data-jp-theme-light")
            == str(theme == "light").lower()
        )
        from_red_to_green(page, f"lab-{theme}-red")


def from_red_to_green(page: Any, red: str) -> None:
    """Run all cells, write the code of the first part, and run all cells again."""
    answers = page.locator(".jp-OutputArea")
    run_until(page, answers.get_by_text("is not written yet").nth(1))
    photograph(page, red)
    assert answers.get_by_text("Traceback").count() == 0

    cell = page.locator(".jp-CodeCell", has_text="def add").first
    cell.locator(".cm-line", has_text="raise NotImplementedError").first.click()
    page.keyboard.press("Home")
    page.keyboard.press("Shift+End")
    page.keyboard.type("return a + b")
    run_until(page, answers.get_by_text("All visible tests of this part pass: 1 of 1 points."))
    assert answers.get_by_text("Parts: add ✓ · total 0/1").count() >= 1


def settings(room: Classroom, name: str, text: str) -> None:
    """Write the settings that a user would choose in JupyterLab."""
    file = (
        room.folder / ".lab" / "@jupyterlab" / "apputils-extension" / f"{name}.jupyterlab-settings"
    )
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def run_until(page: Any, wanted: Any) -> None:
    """Run all cells until this is shown; the menu does nothing while the notebook is still being connected."""
    deadline = hang_guard()
    while True:
        run_all(page)
        try:
            return wanted.wait_for(timeout=MILLISECONDS / 20)
        except NotShown:
            if time.monotonic() > deadline:
                raise


def run_all(page: Any) -> None:
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_role("menuitem", name="Run All Cells", exact=True).click()


def solve(folder: Path, room: Classroom) -> None:
    """Write a notebook with only correct answers over the one in a student's folder."""
    nbformat.write(room.solution(), folder / f"{room.stem}.ipynb")


WALKS = [("02_positional_encoding", "light"), ("03_masked_heads", "dark")]
if os.environ.get("WALKS") == "all":  # some minutes each: they train
    NAMES = ("02_positional_encoding", "03_masked_heads", "05_encoder_block", "07_mini_gpt")
    WALKS = [(name, theme) for name in NAMES for theme in ("light", "dark")]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "theme"), WALKS)
def test_notebook_from_the_stub_to_full_marks(
    browser: Any, jupyter: str, room: Classroom, name: str, theme: str
) -> None:
    """At 1200 pixels beside the side bar: nothing is cut off, no traceback is shown, and all output is accessible."""
    real = Classroom(ROOT, name)
    folder = room.folder / "walk" / theme / name
    shutil.copytree(real.course.release_folder(real.assignment), folder)
    settings(room, "themes", f'{{"theme": "JupyterLab {theme.capitalize()}"}}')
    for state in ("stub", "solved"):
        if state == "solved":
            solve(folder, real)
        with page_of(browser, f"walk-{name[:2]}-{theme}-{state}-end") as page:
            page.set_viewport_size({"width": 1200, "height": 1000})
            address = f"walk/{theme}/{name}/{real.stem}.ipynb"
            page.goto(f"{jupyter}/lab/workspaces/walk-{theme}-{name}-{state}/tree/{address}?reset")
            page.get_by_text("Python 3 (ipykernel) | Idle").wait_for()
            run_all(page)
            walk(
                page, f"walk-{name[:2]}-{theme}-{state}",
                [part.name for part in real.assignment.parts], state,
            )  # fmt: skip


SLIDERS = [("03_masked_heads", "attention"), ("12_rotary_positions", "rotation")]
if os.environ.get("WALKS") == "all":
    SLIDERS.append(("07_mini_gpt", "generation"))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "part"), SLIDERS)
def test_slider_changes_the_picture_above_it(
    browser: Any, jupyter: str, room: Classroom, name: str, part: str
) -> None:
    pytest.importorskip(
        "ipywidgets", reason="ipywidgets is not installed: pip install '.[notebook]'"
    )
    real = Classroom(ROOT, name)
    folder = room.folder / "sliders" / name
    shutil.copytree(real.course.release_folder(real.assignment), folder)
    solve(folder, real)
    with page_of(browser, f"slider-{name[:2]}-moved") as page:
        page.goto(
            f"{jupyter}/lab/workspaces/slider-{name}/tree/sliders/{name}/{real.stem}.ipynb?reset"
        )
        page.get_by_text("Python 3 (ipykernel) | Idle").wait_for()
        run_all(page)
        cell = scroll_to(page, f'picture("{part}")')
        handle = cell.locator(".widget-slider .noUi-handle").first
        handle.scroll_into_view_if_needed()
        photograph(page, f"slider-{name[:2]}")
        before = images(cell)
        handle.press("ArrowRight")
        page.wait_for_function(
            "([cell, before]) => [...cell.querySelectorAll('img')].some((one, i) => one.src !== before[i])",
            arg=[cell.element_handle(), before],
        )
        assert len(images(cell)) == len(before)
        assert not cell.get_by_text("Traceback").count()


def images(cell: Any) -> list[str]:
    """Return the sources of a cell's pictures."""
    return cell.locator("img").evaluate_all("all => all.map(one => one.src)")


def walk(page: Any, picture: str, parts: list[str], state: str) -> None:
    """Look at the check and the picture of each part, which JupyterLab renders once they are scrolled to."""
    told = {
        "stub": "visible points of this part so far",
        "solved": "All visible tests of this part pass",
    }[state]
    for part in parts:
        cell = scroll_to(page, f'check("{part}")')
        cell.get_by_text(told).first.wait_for()
        look_at(page, cell, f"{picture}-{part}-check")
        accessible(page)
        if state == "solved" and (cell := scroll_to(page, f'picture("{part}")')).count():
            cell.locator("img").first.wait_for()
            look_at(page, cell, f"{picture}-{part}-picture")


def look_at(page: Any, cell: Any, picture: str) -> None:
    """Take a screenshot of a cell; its output must not be wider than its place, and hold no traceback."""
    cell.locator(".jp-OutputArea").first.scroll_into_view_if_needed()
    photograph(page, picture)
    assert not cell.get_by_text("Traceback").count()
    wide = "all => all.filter(one => one.scrollWidth > one.clientWidth + 1).length"
    assert cell.locator(".jp-OutputArea-output").evaluate_all(wide) == 0, (
        f"{picture}: the output is cut off"
    )


def scroll_to(page: Any, call: str) -> Any:
    """Return the first code cell with this call, after scrolling down until it is rendered."""
    cells = page.locator(".jp-CodeCell", has_text=call)
    notebook = page.locator(".jp-WindowedPanel-outer").first
    for _ in range(200):
        if cells.count():
            break
        notebook.evaluate("one => one.scrollBy(0, 400)")
        page.wait_for_timeout(50)
    return cells.first


def accessible(page: Any) -> None:
    """Check our own output; the rest of the page is JupyterLab's."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    found = axe.run(page, context=".jp-OutputArea div[role=status]").response["violations"]
    assert [(one["id"], one["nodes"][0]["html"][:200]) for one in found] == []
