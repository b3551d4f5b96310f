"""Jupyter in a real browser: formgrader shows a graded class, and a student completes the first part of a
notebook.

Needs Playwright and a Chromium of the system (`apt-get install chromium`). The pictures go to build/screenshots.
"""

from __future__ import annotations

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
from typing import Any

import pytest

pytest.importorskip("nbgrader", reason="nbgrader is not installed: pip install 'autograder[nbgrader]'")
pytest.importorskip("playwright", reason="Playwright is not installed: pip install 'autograder[browser]'")

from playwright.sync_api import sync_playwright

from tests.autograder.nbgrader.classroom import ROOT, TINY, Classroom, tiny_classroom
from tests.autograder.waiting import HANGS, hang_guard

NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)
PICTURES = ROOT / "build" / "screenshots"
MILLISECONDS = 1000 * HANGS

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium; on Debian: apt-get install chromium"),
]


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Classroom:
    """A class of three, graded."""
    room = tiny_classroom(tmp_path_factory.mktemp("browser"))
    text = (room.folder / "solutions" / TINY / "adding.py").read_text().replace("a + b", "a - b")
    for student, work in {"ada": room.solution(), "bob": room.stub()}.items():
        room.hand_in(student, work)
    room.hand_in("cleo", text, "adding.py")
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
    environment = {**os.environ, **{name: str(room.folder / folder) for name, folder in folders.items()}}
    options = ["--no-browser", f"--ServerApp.port={port}", "--IdentityProvider.token=", "--ServerApp.password="]
    options += ["--ServerApp.port_retries=0"]
    if os.geteuid() == 0:
        options.append("--allow-root")
    log = (room.folder / "jupyter.log").open("wb")
    server = subprocess.Popen(
        [sys.executable, "-m", "jupyterlab", *options],
        cwd=room.folder,
        env=environment,
        stdout=log,
        stderr=subprocess.STDOUT,
    )
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
            assert server.poll() is None and time.monotonic() < deadline, "JupyterLab does not start"
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


def test_formgrader_lists_the_graded_class(browser: Any, jupyter: str, room: Classroom) -> None:
    with page_of(browser, "formgrader-class") as page:
        page.goto(f"{jupyter}/formgrader/gradebook/{TINY}/adding")
        page.get_by_text("Submission #3").wait_for()
        page.goto(f"{jupyter}/formgrader/manage_submissions/{TINY}")
        for student in ("ada", "bob", "cleo"):
            page.get_by_role("link", name=student).or_(page.get_by_text(student, exact=True)).first.wait_for()
        assert page.locator("tr", has_text="ada").get_by_text("10", exact=False).count()


def test_formgrader_shows_the_autograders_feedback(browser: Any, jupyter: str, room: Classroom) -> None:
    from nbgrader.api import Gradebook

    with Gradebook(f"sqlite:///{room.folder / 'gradebook.db'}", "attention-by-hand") as gradebook:
        submission = gradebook.find_submission_notebook("adding", TINY, "cleo").id
    with page_of(browser, "formgrader-submission") as page:
        page.goto(f"{jupyter}/formgrader/submissions/{submission}/")
        page.get_by_text("Two numbers: 0 of 4 points").wait_for()
        page.get_by_text("Do two heaps become smaller when they are put together?").first.wait_for()
        assert page.locator("input.score").first.get_attribute("placeholder") == "0"
        page.get_by_text("Two numbers: 0 of 4 points").scroll_into_view_if_needed()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_student_completes_the_first_part_in_jupyterlab(
    browser: Any, jupyter: str, room: Classroom, theme: str
) -> None:
    settings(room, "themes", f'{{"theme": "JupyterLab {theme.capitalize()}"}}')
    with page_of(browser, f"lab-{theme}-green") as page:
        page.goto(f"{jupyter}/lab/workspaces/{theme}/tree/assignments/{TINY}/adding.ipynb?reset")
        page.get_by_text("Python 3 (ipykernel) | Idle").wait_for()
        assert page.locator("body").get_attribute("data-jp-theme-light") == str(theme == "light").lower()
        from_red_to_green(page, f"lab-{theme}-red")


def test_student_completes_the_first_part_in_notebook_7(browser: Any, jupyter: str, room: Classroom) -> None:
    pytest.importorskip("notebook", "7", reason="Notebook is not installed: pip install 'autograder[nbgrader]'")
    shutil.copytree(room.course.release_folder(room.assignment), room.folder / "seven")
    with page_of(browser, "notebook-green") as page:
        page.goto(f"{jupyter}/notebooks/seven/adding.ipynb")
        page.locator(".jp-NotebookKernelStatus-info").or_(page.get_by_text("Idle")).first.wait_for()
        from_red_to_green(page, "notebook-red")


def from_red_to_green(page: Any, red: str) -> None:
    """Run all cells, write the code of the first part, and run all cells again."""
    run_all(page)
    answers = page.locator(".jp-OutputArea")
    answers.get_by_text("is not written yet").nth(1).wait_for()
    photograph(page, red)
    assert answers.get_by_text("Traceback").count() == 0

    cell = page.locator(".jp-CodeCell", has_text="def add").first
    cell.locator(".cm-line", has_text="raise NotImplementedError").first.click()
    page.keyboard.press("Home")
    page.keyboard.press("Shift+End")
    page.keyboard.type("return a + b")
    run_all(page)
    answers.get_by_text("All visible tests of this part pass: 1 of 1 points.").wait_for()
    assert answers.get_by_text("Parts: add ✓ · total 0/1").count() >= 1


def settings(room: Classroom, name: str, text: str) -> None:
    """Write the settings that a user would choose in JupyterLab."""
    file = room.folder / ".lab" / "@jupyterlab" / "apputils-extension" / f"{name}.jupyterlab-settings"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def run_all(page: Any) -> None:
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
