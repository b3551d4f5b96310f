"""Points for catching: a submitted catch.py runs in the sandbox, and its inputs are tried on the solution."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from autograder.authoring import audit
from autograder.authoring.catch_programs import catch_file_of_author
from autograder.cli import app
from autograder.course.config import Assignment, Course, CourseError, load_course
from autograder.course.digests import submission_digest, suite_digest
from autograder.course.mistakes import load_mistakes
from autograder.gradebook import texts
from autograder.grading import catch_inputs
from autograder.grading.grader import Grader
from autograder.records import CATCH_FILE, Grade, SourceFile, Submission
from autograder.sandbox.outside.launcher import Sandbox
from autograder.submissions import find_submissions
from tests.autograder.at_hand import build_at_hand
from tests.autograder.sampling import thinned
from tests.autograder.test_catch import CATCH, with_catch
from tests.autograder.tiny_course import write_tiny_course

ROOT = Path(__file__).resolve().parents[2]
WITHOUT = load_course(ROOT)
ORDINARY = WITHOUT.assignment("05_encoder_block")
HURRIED = ORDINARY.limits.model_copy(update={"call_seconds": 0.5, "load_seconds": 3.0})
BLOCK = ORDINARY.model_copy(update={"catch_points": 4.5, "limits": HURRIED})
COURSE = WITHOUT.model_copy(update={"assignments": (BLOCK,)})
SOLUTION = COURSE.read_solution(BLOCK)
RELEASED = COURSE.catch_file(BLOCK).read_text("utf-8")
HEAD = "import torch\n"


@pytest.fixture(scope="module")
def grader(sandbox: Sandbox) -> Iterator[Grader]:
    grader = Grader(COURSE, sandbox, 7)
    yield grader
    grader.close()


def handed_in(catch: str | None, text: str = SOLUTION) -> Submission:
    file = SourceFile("encoder_block.py", text)
    catch_file = None if catch is None else SourceFile(CATCH_FILE, catch)
    return Submission("ada", BLOCK.name, (file,), catch=catch_file)


def graded(grader: Grader, catch: str | None, text: str = SOLUTION) -> Grade:
    grade = grader.grade(handed_in(catch, text))
    assert grade.max_score == BLOCK.points == 29.5
    assert sum(test.score for test in grade.tests if test.part != "catch") == 25 or text != SOLUTION
    return grade


def points(grade: Grade) -> float:
    return round(sum(test.score for test in grade.tests if test.part == "catch"), 6)


def messages(grade: Grade) -> dict[str, str]:
    """What the programs that are not caught say, by their letters."""
    of_part = [test for test in grade.tests if test.part == "catch"]
    return {test.name.removeprefix("catch_"): test.message for test in of_part if test.message}


def first_message(grade: Grade) -> str:
    return next(iter(messages(grade).values()))


def test_no_course_of_ours_has_such_points() -> None:
    assert [a.name for a in WITHOUT.assignments if a.catch_points is not None] == []
    without = WITHOUT.assignment(BLOCK.name)
    assert without.graded_parts == without.parts
    assert suite_digest(WITHOUT, without) != suite_digest(COURSE, BLOCK)


@pytest.mark.slow
def test_the_authors_inputs_catch_every_program(grader: Grader) -> None:
    grade = graded(grader, catch_file_of_author(COURSE, BLOCK).text)
    assert (points(grade), grade.score, messages(grade)) == (4.5, 29.5, {})
    of_part = [test for test in grade.tests if test.part == "catch"]
    assert len(of_part) == 18 and of_part[0].name == "catch_A"
    assert of_part[0].title == "An input catches program A of “Layer normalisation”."


def test_the_released_file_and_an_empty_one_catch_nothing(grader: Grader) -> None:
    released = graded(grader, RELEASED)
    assert points(released) == 0
    same = "Your input for `post_norm` does not separate it from right code."
    assert messages(released)["H"] == same
    empty = graded(grader, "")
    assert points(empty) == 0
    assert first_message(empty) == "catch.py has no INPUTS: a dict with an input for each part."


def test_without_a_catch_file_the_part_says_what_to_hand_in(grader: Grader) -> None:
    grade = graded(grader, None)
    assert points(grade) == 0 and grade.score == 25
    assert set(messages(grade).values()) == {
        "There is no catch.py beside your encoder_block. Hand in the catch.py that came with the "
        "assignment, with your inputs in it."
    }
    unreadable = replace(handed_in(None), catch_problem="catch.py is a link, not a file.")
    assert first_message(grader.grade(unreadable)) == "catch.py is a link, not a file."


def test_some_inputs_earn_some_points_also_for_a_student_whose_own_code_is_wrong(
    grader: Grader,
) -> None:
    squares = "torch.arange(8.0).reshape(1, 2, 4) ** 2, torch.tensor([[False, True]])"
    text = f'{HEAD}INPUTS = {{"post_norm": [lambda: torch.ones(1, 2, 4), lambda: ({squares})]}}\n'
    grade = graded(grader, text)
    caught = {"G", "H", "I", "J"} - messages(grade).keys()
    assert "H" in caught and points(grade) == len(caught) * 0.25
    assert "None of your 2 inputs for `post_norm`" in " ".join(messages(grade).values())
    assert messages(grade)["A"] == "INPUTS of your catch.py has no input for `layer_norm`."
    ignored = next(m for m in load_mistakes(COURSE, BLOCK) if m.id == "padding_ignored")
    assert points(graded(grader, text, ignored.source)) == points(grade)


UNUSABLE = [
    ("torch.ones(1, 2, 4), torch.ones(1, 2).bool()", "No sentence is all padding."),
    ("", "An input of this part is (x, padding_mask=None, attn_mask=None, silent=False): missing"),
    ("1 / 0", "It cannot be made: ZeroDivisionError"),
    ("object()", "An input consists of tensors, numbers, texts, lists and None only."),
    ("torch.ones(10 ** 10)", "It cannot be made: RuntimeError"),
    ("torch.ones(10 ** 8)", "It cannot be made: "),
    ("torch.ones(1, 101, 100)", "It has 10,100 numbers; 10,000 are the most."),
]


@pytest.mark.parametrize(("made", "sentence"), thinned(UNUSABLE, 3))
def test_an_input_that_cannot_be_used_is_refused_with_its_reason(
    grader: Grader, made: str, sentence: str
) -> None:
    grade = graded(grader, f'{HEAD}INPUTS = {{"post_norm": lambda: ({made})}}\n')
    assert points(grade) == 0
    assert messages(grade)["H"].startswith(f"Your input for `post_norm` is refused: {sentence}")


def test_an_endless_input_costs_no_other(grader: Grader) -> None:
    good = "torch.arange(8.0).reshape(1, 2, 4) ** 2, torch.tensor([[False, True]])"
    text = f"""
        import itertools, os, torch

        INPUTS = {{
            "layer_norm": lambda: sum(1 for _ in itertools.count()),
            "pre_norm": lambda: os._exit(0),
            "post_norm": lambda: ({good}),
        }}
    """
    grade = graded(grader, textwrap.dedent(text))
    assert "gave no answer within 0.5 seconds" in messages(grade)["A"]
    ended = [said for said in messages(grade).values() if "ended the process" in said]
    assert ended and points(grade) >= 0.25
    endless = graded(grader, "while True: pass\n")
    assert "Line 1 of catch.py was stopped" in first_message(endless)


def test_what_takes_right_code_too_long_is_refused(sandbox: Sandbox, tmp_path: Path) -> None:
    """Right code is called with numbers from a student, so its time and memory have limits, too."""
    root = write_tiny_course(tmp_path / "course")
    course = pointed(with_catch(load_course(root), file=CATCH + REPEATED))
    grader = Grader(course, sandbox, 7)
    try:
        catch = SourceFile(CATCH_FILE, 'INPUTS = {"total": lambda: (1, 10 ** 10)}\n')
        file = SourceFile("adding.py", course.read_solution(course.assignments[0]))
        grade = grader.grade(Submission("ada", "01_adding", (file,), catch=catch))
    finally:
        grader.close()
    assert messages(grade) == {"A": "Your input for `total` is refused: MemoryError"}


REPEATED = """

def total(program, number, times):
    box = program.Total()
    return [box.push(number) for number in [number] * times]
"""


@pytest.mark.slow
def test_random_inputs_are_the_same_each_time(grader: Grader) -> None:
    numbers = "{x} {torch.randn(1)} {random.random()} {np.random.rand()}"
    text = f"""
        import random
        import numpy as np
        import torch

        x = torch.randn(1)
        INPUTS = {{"layer_norm": lambda: {{}}[f"{numbers}"]}}
    """
    first = messages(graded(grader, textwrap.dedent(text)))
    assert "KeyError: 'tensor([1.5410]) tensor([1.5410]) 0.8444" in first["A"]  # as at home
    grader.reseed(8)
    assert messages(graded(grader, textwrap.dedent(text))) == first
    grader.reseed(7)


def test_an_input_can_come_from_the_students_own_module(grader: Grader) -> None:
    own = f"{SOLUTION}\n\nPADDED = torch.tensor([[False, True]])\n"
    text = """
        import torch
        from encoder_block import PADDED, layer_norm

        squares = layer_norm(torch.arange(8.0).reshape(1, 2, 4) ** 2, torch.ones(4), torch.zeros(4))
        INPUTS = {"post_norm": lambda: (squares.detach(), PADDED)}
    """
    grade = graded(grader, textwrap.dedent(text), own)
    assert "H" not in messages(grade)
    broken = graded(grader, textwrap.dedent(text))
    sentence = "catch.py imports `encoder_block.PADDED`, and there is no such module"
    assert sentence in messages(broken)["H"]


def test_a_hostile_file_learns_nothing_and_changes_nothing(grader: Grader) -> None:
    solution = COURSE.solution_file(BLOCK)
    text = f"""
        import gc, os, sys

        def read(path):
            try:
                return open(path).read()[:99]
            except OSError as error:
                return type(error).__name__

        def search():
            held = [each for each in gc.get_objects() if type(each) is dict]
            words = "key_padding_mask" + "=None"
            texts = [value for each in held for value in each.values() if type(value) is str]
            return sum(words in text and "search" not in text for text in texts)

        class Number(float):
            def __float__(self):
                return 1.0

        seen = [read({str(solution)!r}), read({str(COURSE.mistakes_file(BLOCK))!r}), search()]
        INPUTS = {{"post_norm": lambda: {{}}[str(seen)], "layer_norm": lambda: Number(1)}}
    """
    grade = graded(grader, textwrap.dedent(text))
    assert "['FileNotFoundError', 'FileNotFoundError', 0]" in messages(grade)["H"]
    assert points(grade) == 0
    assert points(graded(grader, catch_file_of_author(COURSE, BLOCK).text)) == 4.5


def test_no_worker_lives_while_programs_are_tried(
    grader: Grader, monkeypatch: pytest.MonkeyPatch
) -> None:
    from autograder.grading import catch_part

    workers = []
    opened = grader.workers.connect
    monkeypatch.setattr(
        grader.workers,
        "connect",
        lambda *args, **options: workers.append(opened(*args, **options)) or workers[-1],
    )
    compare = catch_part.difference

    def watched(*outcomes: object) -> str:
        assert all(connection.worker.socket.fileno() == -1 for connection in workers)
        return compare(*outcomes)  # type: ignore[arg-type]

    monkeypatch.setattr(catch_part, "difference", watched)
    assert points(graded(grader, catch_file_of_author(COURSE, BLOCK).text)) == 4.5


def test_only_so_many_inputs_are_tried(grader: Grader, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catch_inputs, "MOST_INPUTS", 2)
    text = f'{HEAD}INPUTS = {{"post_norm": [lambda: torch.ones(1, 2, 4)] * 3}}\n'
    assert "Only 2 inputs of a part are tried." in messages(graded(grader, text))["H"]


# From the students' folders to the grades, with the tiny course


def pointed(course: Course) -> Course:
    """The course of this folder, with two points for catching."""
    file = course.root / "course.yml"
    text = file.read_text("utf-8").replace(
        "    minutes: 10\n", "    minutes: 10\n    catch_points: 2\n"
    )
    file.write_text(text, "utf-8")
    return load_course(course.root)


@pytest.fixture
def tiny(tmp_path: Path) -> Course:
    return pointed(with_catch(load_course(write_tiny_course(tmp_path / "course"))))


@pytest.fixture
def built(tiny: Course) -> Course:
    build_at_hand(tiny)
    return tiny


def class_of(course: Course, catch_files: dict[str, str]) -> Path:
    """A class whose students hand in the solution, and some a catch.py beside it."""
    folder = course.root.parent / "class"
    for student in ("ada", "bob", "cleo"):
        own = folder / student / "01_adding"
        own.mkdir(parents=True, exist_ok=True)
        solution = course.read_solution(course.assignments[0])
        (own / "adding.py").write_text(solution, "utf-8")
        (own / CATCH_FILE).unlink(missing_ok=True)
        if student in catch_files:
            (own / CATCH_FILE).write_text(catch_files[student], "utf-8")
    return folder


RIGHT = 'INPUTS = {"total": lambda: [1, 2]}\n'


def test_a_catch_file_is_found_stored_and_part_of_the_digest(tiny: Course, tmp_path: Path) -> None:
    folder = class_of(tiny, {"ada": RIGHT, "bob": CATCH})
    found = {each.student: each for each in find_submissions(folder, tiny)}
    assert found["ada"].catch == SourceFile(CATCH_FILE, RIGHT)
    assert found["cleo"].catch is None and len(found["ada"].files) == 1
    assert len({submission_digest(each) for each in found.values()}) == 3
    stored = texts.put(tmp_path / "grades", found.values())
    assert all(each.submission.catch is None for each in stored)
    again = {each.student: each for each in texts.iterate(tmp_path / "grades", stored)}
    assert again == found
    files = texts.files_of(tmp_path / "grades", submission_digest(found["ada"]))
    assert [file.name for file in files] == ["adding.py"]


def test_without_points_a_catch_file_is_not_read(tmp_path: Path) -> None:
    course = with_catch(load_course(write_tiny_course(tmp_path / "course")))
    found = {s.student: s for s in find_submissions(class_of(course, {"ada": RIGHT}), course)}
    assert found["ada"].catch is None
    assert submission_digest(found["ada"]) == submission_digest(found["bob"])


def test_a_link_or_a_binary_file_is_a_sentence_of_the_part(tiny: Course) -> None:
    folder = class_of(tiny, {})
    (folder / "ada" / "01_adding" / CATCH_FILE).symlink_to("adding.py")
    (folder / "bob" / "01_adding" / CATCH_FILE).write_bytes(b"\x00\x01")
    found = {each.student: each for each in find_submissions(folder, tiny)}
    assert "a link" in found["ada"].catch_problem and found["ada"].problem is None
    assert found["bob"].catch_problem and found["bob"].files


def run(*words: object) -> str:
    result = CliRunner().invoke(app, [*map(str, words)])
    return f"{result.exit_code} {result.output}"


@pytest.mark.slow
def test_a_class_is_graded_decided_and_exported(
    tiny: Course, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tiny.root)
    folder = class_of(tiny, {"ada": RIGHT, "bob": CATCH})
    grades = tmp_path / "grades"
    command = ("grade", folder, "--output", grades, "--jobs", "1")
    assert run(*command).startswith("0")
    assert scores(grades) == {"ada": 12.0, "bob": 10.0, "cleo": 10.0}
    page = (grades / "feedback" / "ada" / "01_adding.html").read_text("utf-8")
    assert "Catch the mistake" in page and "An input catches program A" in page
    lost = (grades / "feedback" / "cleo" / "01_adding.html").read_text("utf-8")
    assert "There is no catch.py beside your adding." in lost
    class_of(tiny, {"ada": RIGHT, "bob": RIGHT})
    assert run(*command).startswith("0")
    assert scores(grades) == {"ada": 12.0, "bob": 12.0, "cleo": 10.0}
    (tiny.root / "decisions.yml").write_text(
        "- {student: cleo, assignment: 01_adding, part: catch, give: 1, reason: Shown in class., "
        "by: Grace, at: 2026-11-30 14:05}\n",
        "utf-8",
    )
    assert run("report", grades).startswith("0")
    of_cleo = (grades / "grades.csv").read_text("utf-8").partition("cleo")[2]
    assert "11" in of_cleo.partition("\n")[0]


def scores(grades: Path) -> dict[str, float]:
    lines = (grades / "grades.jsonl").read_text("utf-8").splitlines()
    records = [json.loads(line) for line in lines]
    return {record["student"]: record["score"] for record in records if "score" in record}


def test_a_student_packs_the_catch_file_too(built: Course, tmp_path: Path) -> None:
    release = built.release_folder(built.assignments[0])
    (release / "adding.py").write_text(built.read_solution(built.assignments[0]), "utf-8")
    shown = " ".join(run("pack", release, "--output", tmp_path).split())
    assert shown.startswith("0") and "adding.py and catch.py" in shown
    (submission,) = find_submissions(tmp_path / "01_adding.zip", built)
    assert submission.catch == SourceFile(CATCH_FILE, CATCH)


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("catch_points: 2", "catch_points: 0", "greater than 0"),
        ("name: total", "name: catch", "no part of its own can be called `catch`"),
    ],
)
def test_points_that_cannot_be_given_are_an_error_of_the_course(
    tiny: Course, old: str, new: str, sentence: str
) -> None:
    file = tiny.root / "course.yml"
    file.write_text(file.read_text("utf-8").replace(old, new), "utf-8")
    with pytest.raises(CourseError, match=sentence):
        load_course(tiny.root)


@pytest.mark.parametrize("switched_off", [True, False])
def test_points_without_programs_are_an_error_of_the_course(
    tmp_path: Path, sandbox: Sandbox, switched_off: bool
) -> None:
    course = load_course(write_tiny_course(tmp_path / "course"))
    if switched_off:
        course = with_catch(course).model_copy(update={"catch": False})
    assignments = tuple(a.model_copy(update={"catch_points": 1.0}) for a in course.assignments)
    course = course.model_copy(update={"assignments": assignments})
    reason = "`catch` is off" if switched_off else "mistakes.yml has none"
    with pytest.raises(CourseError, match=f"no programs to catch: .*{reason}"):
        Grader(course, sandbox, 7)


def test_the_audit_hands_in_the_authors_inputs(
    tiny: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    assignment: Assignment = tiny.assignments[0]
    case = audit.Case("solution", assignment.name, "it", "", (1,))
    monkeypatch.setattr(audit, "this_grader", lambda: type("Its", (), {"course": tiny}))
    assert audit.catch_file_of(case) == catch_file_of_author(tiny, assignment)
    stub = audit.Case("stub", assignment.name, "it", "", (1,))
    assert audit.catch_file_of(stub) == SourceFile(CATCH_FILE, CATCH)
