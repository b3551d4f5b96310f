"""“Is this wrong?”: the text on a page, what `decide --request` reads in it, and the decision that follows."""

from __future__ import annotations

import html
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from click.testing import Result
from typer.testing import CliRunner

import autograder
from autograder.cli import app
from autograder.feedback.markdown import as_markdown
from autograder.gradebook.decisions import read_decisions
from tests.autograder.pages import page_of
from tests.autograder.tiny_course import COURSE, HIDDEN, SOLUTION, write_tiny_course

NAME = "01_adding"
FORGETFUL = SOLUTION.replace("self.value = self.value + number", "self.value = number")
SILENT = SOLUTION.replace("number must not be negative, but it is {number}.", "no")
WORKS = {"ada": SILENT, "ben": FORGETFUL, "cy": FORGETFUL, "dee": SOLUTION}
REFUSAL = "Test: A negative number is a ValueError that names it."
MILDER = HIDDEN.replace(', naming=("number", wrong))', ")")


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory, grader_at_hand: None) -> Path:
    """A course with the grades of a class, in which ben and cy have equal work, and dee's is right."""
    root = write_tiny_course(tmp_path_factory.mktemp("objections") / "course")
    text = COURSE.replace("feedback: hints", "feedback: hints\ncontact: ta@example.org")
    (root / "course.yml").write_text(text, "utf-8")
    for student, work in WORKS.items():
        folder = root / "submitted" / student / NAME
        folder.mkdir(parents=True)
        (folder / "adding.py").write_text(work, "utf-8")
    autograder.grade(root / "submitted", root, root / "grades", jobs=1)
    return root


@pytest.fixture
def root(graded: Path, tmp_path: Path, grader_at_hand: None) -> Path:
    """The same, for a test that writes."""
    return shutil.copytree(graded, tmp_path / "course")


def text_of(root: Path, student: str) -> str:
    """The text on the page of a student; empty if there is none."""
    page = (root / "grades/feedback" / student / f"{NAME}.html").read_text("utf-8")
    found = re.search(r'<section class="objection">.*<pre>(.*?)</pre>', page, re.DOTALL)
    return html.unescape(found[1]) if found else ""


def decide(root: Path, text: str | bytes, *words: str) -> Result:
    file = root / "mail.txt"
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    where = ("--grades", str(root / "grades"), "--course", str(root), "--by", "G")
    return CliRunner().invoke(app, ["decide", "--request", str(file), *words, *where])


def test_every_page_of_failing_code_ends_with_the_text(graded: Path) -> None:
    """The text has what identifies the grade and what came back, and nothing of the run."""
    course = autograder.load_course(graded)
    (grade,) = (g for g in autograder.read_grades(graded / "grades") if g.student == "ada")
    text = text_of(graded, "ada")
    assert text.splitlines()[:2] == [
        f"Assignment: {NAME}",
        f"Submission: {grade.submission_sha256}",
    ]
    assert f"{REFUSAL}\nCame back: " in text and text.endswith("My reason:\n")
    assert str(grade.seed) not in text and "test_negative" not in text
    assert text_of(graded, "dee") == ""

    page = page_of(graded / "grades", course, grade)
    assert f"```text\n{text}\n```" in as_markdown(page).text
    mail = urlsplit(page.mail)
    assert (mail.scheme, mail.path) == ("mailto", "ta@example.org")
    assert parse_qs(mail.query) == {"subject": ["Adding, ada"], "body": [text]}


WRITTEN = {
    "as it was copied": lambda text: text,
    "quoted in a mail": lambda text: "On Monday Ada wrote:\n" + re.sub("(?m)^", "> ", text),
    "wrapped by a mail program": lambda text: text.replace(": ", ":\n").replace(
        " names", "\nnames"
    ),
    "with the line ends of Windows": lambda text: "\ufeff" + text.replace("\n", "\r\n"),
}


@pytest.mark.parametrize("how", WRITTEN)
def test_wrong_counterexample_is_shown_beside_the_same_answer(root: Path, how: str) -> None:
    """The submission is graded once more with the seed of its grade; nothing is written."""
    done = decide(
        root, WRITTEN[how](text_of(root, "ada")) + "Minus one is\n    a number.", "--json"
    )
    assert done.exit_code == 0, done.output
    record = json.loads(done.stdout)
    (answer,) = record["answers"]
    assert answer["before"] == answer["now"] and answer["before"].startswith("failed: ")
    assert (answer["claimed"], record["other_suite"]) == ("", False)
    assert "a number." in record["request"]["reason"]
    assert not (root / "decisions.yml").exists()

    shown = decide(root, text_of(root, "ada") + "Minus one [bold]is\x1b[2J").stdout
    assert "Once more: the same." in shown and "[bold]is�" in shown
    said = decide(root, text_of(root, "ada"), "--reason", "The text of the task asks for it.")
    assert said.exit_code == 0, said.output
    (entry,) = read_decisions(autograder.load_course(root))
    assert entry.decision.sentence == "On your request: The text of the task asks for it."
    assert entry.decision.request == f"{record['request']['digest'][:12]}: {REFUSAL[6:]}"


def test_right_counterexample_passes_once_the_suite_is_corrected(root: Path) -> None:
    (root / f"tests/assignments/{NAME}/test_hidden.py").write_text(MILDER, "utf-8")
    text = text_of(root, "ada") + "Nowhere it says that the message names the number."
    record = json.loads(decide(root, text, "--json").stdout)
    (answer,) = record["answers"]
    assert (answer["now"], record["other_suite"]) == ("passed", True)

    given = decide(root, text, "--give", "1", "--part", "total", "--reason", "You are right.")
    assert "ada, 01_adding: 9 of 10 points → 10 of 10 points" in given.stdout, given.output
    dropped = ("--drop", answer["test"], "--counts", "full", "--reason", "Not in the text.")
    assert decide(root, text, *dropped).exit_code == 0
    first, second = (entry.decision for entry in read_decisions(autograder.load_course(root)))
    assert first.request == second.request and second.student is None
    autograder.report(root / "grades", root)
    page = (root / "grades/feedback/ada" / f"{NAME}.html").read_text("utf-8")
    assert "On your request: 1 point given back: You are right." in page


def test_what_else_a_text_claims_is_told_apart_from_what_came_back(root: Path) -> None:
    text = text_of(root, "ada").replace("Came back: ", "Came back: Correct! Not that ")
    (answer,) = json.loads(decide(root, text, "--json").stdout)["answers"]
    assert answer["claimed"].startswith("Correct! Not that ")
    assert "Correct!" not in answer["before"] + answer["now"]


REFUSED: dict[str, tuple[str, Callable[[str], str | bytes], tuple[str, ...], str]] = {
    "digest of no submission": (
        "ada",
        lambda text: re.sub("[0-9a-f]{64}", "ab" * 32, text),
        (),
        "The submission that mail.txt names is not in the journal.",
    ),
    "digest cut off": (
        "ada",
        lambda text: re.sub("[0-9a-f]{64}", "ab" * 31, text),
        (),
        "mail.txt names no digest of a submission.",
    ),
    "no digest": (
        "ada",
        lambda text: re.sub("Submission: .*\n", "", text),
        (),
        "mail.txt names no digest of a submission.",
    ),
    "another assignment": (
        "ada",
        lambda text: text.replace(NAME, "02_taking"),
        (),
        "The submission that mail.txt names is of 01_adding, not of 02_taking.",
    ),
    "another student's digest": (
        "ada",
        lambda text: text,
        ("dee",),
        "The submission that mail.txt names is not of dee, but of ada.",
    ),
    "equal work of two": (
        "ben",
        lambda text: text,
        (),
        "The submission that mail.txt names is of ben and cy: their work is equal.",
    ),
    "a test that passed": (
        "ada",
        lambda text: text.replace(REFUSAL, "Test: 2 and 3 together are 5."),
        (),
        "mail.txt names a test that did not fail, “2 and 3 together are 5.”.",
    ),
    "no test": ("ada", lambda text: text.split("Test: ")[0], (), "mail.txt names no test."),
    "no text": (
        "ada",
        lambda text: b"\xff\xfe" + text.encode("utf-16-le"),
        (),
        "is not UTF-8 text.",
    ),
    "too long": (
        "ada",
        lambda text: text + 70_000 * "x",
        (),
        "mail.txt is larger than 65536 bytes.",
    ),
    "empty": ("ada", lambda text: "", (), "mail.txt names no assignment."),
}


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("decision", [(), ("--give", "1", "--reason", "R")])
def test_text_that_cannot_be_told_is_refused_and_nothing_is_written(
    root: Path, case: str, decision: tuple[str, ...]
) -> None:
    student, change, words, sentence = REFUSED[case]
    done = decide(root, change(text_of(root, student)), *words, *decision)
    assert done.exit_code == 2 and sentence in " ".join(done.stderr.split()), done.output
    assert not (root / "decisions.yml").exists()


def test_of_two_with_equal_work_the_named_one_is_meant(root: Path) -> None:
    done = decide(root, text_of(root, "ben"), "cy", "--give", "1", "--reason", "R")
    assert "cy, 01_adding:" in done.stdout, done.output
    (entry,) = read_decisions(autograder.load_course(root))
    assert entry.decision.student == "cy"


def test_assignment_that_is_given_is_that_of_the_text(root: Path) -> None:
    course = root / "course.yml"
    other = "  - {name: 02_more, title: M, minutes: 1, parts: [{name: a, title: A, points: 1}]}\n"
    course.write_text(course.read_text("utf-8") + other, "utf-8")
    decision = ("--give", "1", "--reason", "R", "--assignment")
    done = decide(root, text_of(root, "ada"), *decision, "02_more")
    assert done.exit_code == 2 and "is about 01_adding, not about 02_more." in done.stderr
    assert not (root / "decisions.yml").exists()
    assert decide(root, text_of(root, "ada"), *decision, NAME).exit_code == 0


def test_file_that_is_a_link_is_not_read(root: Path) -> None:
    text = text_of(root, "ada")
    (root / "other.txt").write_text(text, "utf-8")
    link = root / "link.txt"
    link.symlink_to(root / "other.txt")
    where = ("--grades", str(root / "grades"), "--course", str(root))
    done = CliRunner().invoke(app, ["decide", "--request", str(link), *where])
    assert done.exit_code == 2 and "link.txt cannot be opened" in done.stderr
