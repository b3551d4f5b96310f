"""A student's own check: sentences, places, hints, pictures and progress."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import nbformat
import pytest
from typer.testing import CliRunner

from autograder import cli
from autograder.cli.console import console
from autograder.selfcheck import progress
from autograder.selfcheck.check import check_target
from autograder.selfcheck.forked import GivenUp, Unfinished, run_in_child
from autograder.selfcheck.workspace import find_work
from tests.autograder.sampling import sampled, thinned
from tests.autograder.student_folder import FORGETS, RIGHT, SUBTRACTS, same_as_golden, write_answer
from tests.autograder.waiting import HANGS


def run(*arguments: str) -> tuple[int, str]:
    console.width = 80  # it keeps what the first test of the process had
    result = CliRunner(env={"COLUMNS": "80"}).invoke(cli.app, list(arguments))
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.output


def test_check_gives_the_same_results_as_the_grader(folder: Path) -> None:
    """A number that claims to be equal to all others does not pass."""
    sly = "\n\n\nclass Sly(int):\n    def __eq__(self, other):\n        return True\n    __hash__ = int.__hash__\n"
    write_answer(folder, RIGHT.replace("together = a + b", "together = Sly(7)") + sly)
    found = {finding.result.name: finding for finding in check_target(folder).findings}
    wrong = found["test_two_and_three_are_five"]
    assert wrong.result.outcome == "failed" and wrong.result.message
    assert found["test_first_push_is_the_sum"].passed


def test_place_to_look_is_a_function_of_the_tested_part(folder: Path) -> None:
    """The last called function may be used only for the comparison."""
    write_answer(folder, RIGHT.replace("a + b", "a + b + 1"))
    tests = folder / "test_adding.py"
    text = tests.read_text()
    both = text.replace(
        "checks.equal(student.add(2, 3), 5,",
        "checks.equal(student.add(2, 3), student.Total(2).push(3),",
    )
    assert both != text
    tests.write_text(both)
    place = check_target(folder).findings[0].place
    assert place is not None and place.function == "add"


def test_check_reloads_changed_files(folder: Path) -> None:
    """Two checks in one process read the current files of the student and of the tests."""
    write_answer(folder, RIGHT)
    assert check_target(folder).all_passed
    write_answer(folder, SUBTRACTS)
    tests = folder / "test_adding.py"
    tests.write_text(tests.read_text().replace("5,", "-1,"))
    assert check_target(folder).all_passed


@pytest.mark.parametrize("form", ["py", "ipynb"])
def test_code_below_the_stubs_line_is_not_called_unwritten(folder: Path, form: str) -> None:
    file = folder / f"adding.{form}"
    ends = "\\n" if form == "ipynb" else "\n"
    text = file.read_text("utf-8")
    gap = re.search(r"    raise NotImplementedError\(.{1,2}add is not.*?\)", text)
    assert gap
    below = (
        f'{gap[0]}{ends}",\n    "    return a + b'
        if form == "ipynb"
        else f"{gap[0]}\n    return a + b"
    )
    file.write_text(text.replace(gap[0], below), "utf-8")
    told = check_target(file).findings[0]
    sentence = "stops `add` before your code: delete it."
    assert sentence in (told.result.message or "") and not told.unwritten
    assert sentence in " ".join(run("hint", str(file))[1].split())


def test_a_function_that_does_not_end_is_waited_for_once(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("autograder.selfcheck.check.SECONDS", 1.0)
    monkeypatch.setattr("autograder.selfcheck.check.SHORT_SECONDS", 0.2)
    tests = folder / "test_adding.py"
    added = "\n\n".join(
        f'@pytest.mark.part("add")\n@pytest.mark.points(0)\ndef test_more_{number}(student):\n'
        f'    """{number} more."""\n    checks.equal(student.add({number}, 3), {number + 3}, "it")\n'
        for number in (1, 2, 7)
    )
    tests.write_text(f"{tests.read_text()}\n\n{added}")
    write_answer(folder, RIGHT.replace("together = a", "while a < 7: pass\n    together = a"))
    told = {each.result.name: each.result for each in check_target(folder).findings}
    assert "more than 1 seconds of processor time" in (
        told["test_two_and_three_are_five"].message or ""
    )
    again = "`add` did not end in an earlier test, and here it was stopped after 0.2 seconds."
    assert [told[f"test_more_{number}"].message for number in (1, 2)] == [again, again]
    assert told["test_more_7"].outcome == "passed"


def test_an_interrupted_check_says_nothing_of_finished_work(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_answer(folder, RIGHT + "\nraise KeyboardInterrupt\n")
    for command in ("check", "hint", "pack"):
        assert run(command)[1].endswith("Stopped. adding.py was not checked to its end.\n")


TESTS_OUT_OF_ORDER = {
    "no test in it": (lambda text: text.replace("def test_", "def tst_"), "test_adding.py holds no test: unpack"),
    "empty": (lambda text: "", "test_adding.py holds no test: unpack the test file again."),
    "not there": (None, "There is no test_adding.py in"),
    "another number": (lambda text: text.replace(" 5,", " 6,"), "test_adding.py was changed"),
    "one test less": (lambda text: text.replace("def test_two", "def tst_two"), "test_adding.py was changed"),
    "other line ends": (lambda text: text.replace("\n", "\r\n") + "\r\n", ""),
}  # fmt: skip


@pytest.mark.parametrize("case", TESTS_OUT_OF_ORDER)
def test_a_test_file_that_is_not_the_one_handed_out_is_named(folder: Path, case: str) -> None:
    change, sentence = TESTS_OUT_OF_ORDER[case]
    write_answer(folder, RIGHT)
    tests = folder / "test_adding.py"
    text = tests.read_text("utf-8")
    tests.unlink()
    if change:
        tests.write_bytes(change(text).encode())
    told = " ".join(run("check")[1].split())
    assert sentence in told and ("unpack" in told) == bool(sentence)
    assert "All 0 visible tests" not in told


# -- screens ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text", "code"),
    sampled(
        [
            ("check_stub", None, 1),
            ("check_right", RIGHT, 0),
            ("check_mistake", SUBTRACTS, 1),
            ("check_wrong", RIGHT.replace("a + b", "[a, b]"), 1),
            ("check_error", RIGHT.replace("a + b", "print('a is', a) or a + c"), 1),
            ("check_syntax_error", RIGHT.replace("return together", "return together)"), 1),
            ("check_stopped", RIGHT + "\nprint('so far')\nclass Late(Total, 1):\n    pass\n", 0),
            (
                "check_unfinished",
                RIGHT.replace("class Total:", "raise SystemExit\n\n\nclass Total:"),
                1,
            ),
            (
                "check_missing_module",
                RIGHT.replace("class Total:", "import nowhere\n\n\nclass Total:"),
                0,
            ),
            ("check_empty", "", 1),
        ],
        lambda case: (
            case[0] in ("check_stub", "check_mistake", "check_error", "check_syntax_error")
        ),
    ),
)
def test_check_prints_the_golden_output(
    folder: Path, name: str, text: str | None, code: int
) -> None:
    if text is not None:
        write_answer(folder, text)
    found, screen = run("check")
    same_as_golden(name, screen)
    assert found == code


def test_check_of_a_notebook_prints_the_golden_output(folder: Path) -> None:
    """Its magics and its own check cells do nothing; a place is a cell and a line."""
    notebook = nbformat.read(folder / "adding.ipynb", as_version=4)
    for cell in notebook.cells:
        cell.source = cell.source.replace(
            'raise NotImplementedError("add is not written yet.")', "return a - b"
        )
    notebook.cells.insert(0, nbformat.v4.new_code_cell("%matplotlib inline\n!ls\nprint('hello')"))
    nbformat.write(notebook, folder / "adding.ipynb")
    before = sys.modules.get("autograder.notebook")
    code, screen = run("check")
    assert sys.modules.get("autograder.notebook") is before
    same_as_golden("check_notebook", screen)
    assert code == 1


def test_syntax_error_in_a_notebook_names_cell_and_line(folder: Path) -> None:
    file = folder / "adding.ipynb"
    file.write_text(
        file.read_text().replace("raise NotImplementedError(", "raise NotImplementedError((", 1)
    )
    report = check_target(file)
    assert re.fullmatch(r"adding\.ipynb, cell \d+, line \d+", report.stopped_at), report.problem
    assert report.problem.startswith("Python cannot read your file: '(' was never closed")
    line, caret = report.unreadable.splitlines()
    assert line[caret.index("^")] == "("


def test_check_with_pictures_writes_them(folder: Path) -> None:
    write_answer(
        folder,
        SUBTRACTS.replace(
            "if number < 0",
            "raise NotImplementedError('Total.push is not written yet.')\n        if 1",
        ),
    )
    (folder / "pictures").mkdir()
    (folder / "pictures" / "total_pushes.png").write_text("an older picture")
    _, screen = run("check", "--picture")
    same_as_golden("check_pictures", screen)
    drawn = (folder / "pictures" / "add_a_row_of_sums.png").read_bytes()
    assert drawn.startswith(b"\x89PNG") and not (folder / "pictures" / "total_pushes.png").exists()


@pytest.fixture
def checked(folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the assignments whose tests `progress` runs, in order."""
    names: list[str] = []

    def recorded(task: Any, seconds: float) -> Any:
        names.append(task.args[0].name)
        return task()

    monkeypatch.setattr(progress, "run_in_child", recorded)
    return names


def test_progress_shows_a_line_for_all_that_is_not_begun(folder: Path) -> None:
    _, screen = run("progress")
    assert "Not begun: 01_adding" in screen and "Part 1" not in screen
    assert "0 of 3 points" in screen and "autograder check 01_adding  goes on" in screen


def test_progress_runs_unchanged_work_only_once(folder: Path, checked: list[str]) -> None:
    write_answer(folder, FORGETS)
    first = run("progress")
    assert run("progress") == first
    assert checked == ["01_adding"]


@pytest.mark.parametrize("changed", ["adding.py", "test_adding.py", "another.py"])
def test_progress_runs_work_again_after_a_change_in_its_folder(
    folder: Path, checked: list[str], changed: str
) -> None:
    write_answer(folder, FORGETS)
    run("progress")
    with (folder / changed).open("a") as file:
        file.write("\n# changed\n")
    run("progress")
    assert len(checked) == 2


OTHER_LAYOUT = '{"report": {"file": 7}}'  # in a record that is otherwise whole


@pytest.mark.parametrize("content", [OTHER_LAYOUT, *thinned(["", "[]", '{"key": 7}', "\0"], 4)])
def test_a_damaged_report_only_costs_time(folder: Path, checked: list[str], content: str) -> None:
    write_answer(folder, RIGHT)
    first = run("progress")
    file = folder / ".autograder" / "report.json"
    if content == OTHER_LAYOUT:
        content = json.dumps({**json.loads(file.read_text()), **json.loads(content)})
    file.write_text(content)
    assert run("progress") == first
    assert len(checked) == 2


def test_hints_are_shown_one_at_a_time_without_code(folder: Path) -> None:
    write_answer(folder, SUBTRACTS)
    screens = []
    for options in ([], [], [], [], [], ["--again"]):
        code, screen = run("hint", "01_adding", *options)
        assert code == 0
        screens.append(screen)
    same_as_golden("hint", "\n$\n".join(screens))
    assert screens[0] == screens[-1]
    assert not any(
        line.strip() in screen
        for screen in screens
        for line in RIGHT.splitlines()
        if "together =" in line
    )
    assert sorted(file.name for file in (folder / ".autograder").iterdir()) == ["steps.json"]


def test_hint_for_an_import_error_comes_first(folder: Path) -> None:
    write_answer(folder, RIGHT + "\n1 / 0\n")
    assert "What Python says" in run("hint")[1] and "division by zero" in run("hint", "--again")[1]
    assert "adding.py:45" in run("hint")[1]
    write_answer(folder, "")
    assert "Hint 1 of 1" in run("hint")[1]


@pytest.mark.parametrize(
    ("command", "in_the_way", "sentence"),
    [
        (["hint"], ".autograder", "which remembers the hints, cannot be written"),
        (["check", "--picture"], "pictures", "pictures cannot be made"),
    ],
)
def test_failed_write_is_reported(
    folder: Path, command: list[str], in_the_way: str, sentence: str
) -> None:
    (folder / in_the_way).write_text("a file where a folder should be")
    code, screen = run(*command)
    assert code == 2 and sentence in " ".join(screen.split())


# -- finding the work -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "target", [".", "01_adding", "adding", "01", "1", "adding.py", "adding.ipynb", "../01_adding"]
)
def test_work_is_found_by_path_and_by_name(folder: Path, target: str) -> None:
    work = find_work(target)
    assert (work.name, work.stem) == ("01_adding", "adding")
    assert work.file.suffix == (".ipynb" if target.endswith("ipynb") else ".py")


@pytest.mark.parametrize(
    ("target", "sentence"),
    [
        ("nothing.py", "There is no file, folder or assignment 'nothing.py' here."),
        ("hints.json", "hints.json is neither a .py file nor a notebook."),
        ("test_adding.py", "test_adding.py holds the tests. Name your own file, adding.py."),
        ("/", "There is no assignment in /."),
    ],
)
def test_unusable_target_is_reported(folder: Path, target: str, sentence: str) -> None:
    code, screen = run("check", target)
    assert code == 2 and sentence in " ".join(screen.split())


def test_unreadable_files_are_reported(folder: Path) -> None:
    (folder / "adding.py").write_bytes(b"caf\xe9")
    assert run("check")[0] == 2
    assert "adding.py is not UTF-8 text (byte 4)" in run("check")[1]
    (folder / "adding.py").unlink()
    (folder / "adding.ipynb").write_text("{")
    assert "adding.ipynb is not a readable notebook" in run("check")[1]


# -- the machinery ----------------------------------------------------------------------------------


def test_check_prints_json(folder: Path) -> None:
    write_answer(folder, SUBTRACTS)
    code, screen = run("check", "--json")
    record = json.loads(screen)
    assert code == 1 and (record["score"], record["max_score"]) == (2.0, 3.0)
    assert record["findings"][0]["result"]["mistake"] == "subtracts"


def test_code_that_ends_the_process_is_reported() -> None:
    assert run_in_child(lambda: {"a": 1}, HANGS) == {"a": 1}
    with pytest.raises(Unfinished, match="exit code 3"):
        run_in_child(lambda: os._exit(3), HANGS)
    with pytest.raises(Unfinished, match="took more than 1 seconds and was stopped"):
        run_in_child(lambda: time.sleep(10**6), 0.2)
    with pytest.raises(GivenUp):
        run_in_child(lambda: time.sleep(10**6), HANGS, lambda: True)
    with pytest.raises(Unfinished, match="ZeroDivisionError"):
        run_in_child(lambda: 1 / 0, HANGS)


def loop() -> None:
    while True:
        pass


def test_time_limit_of_a_child_counts_its_processor_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waiting for a processor on a busy machine does not count, as in grading; nor does sleeping, up to the clock."""
    monkeypatch.setattr("autograder.walls.outside.deadline.CLOCK_FACTOR", 10 * HANGS)
    assert run_in_child(lambda: time.sleep(0.5) or "rested", 0.4) == "rested"
    with pytest.raises(Unfinished, match="more than 0.4 seconds of processor time.*endless loop"):
        run_in_child(loop, 0.4)


def test_endless_loop_is_reported(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("autograder.selfcheck.check.SECONDS", 0.5)
    monkeypatch.setattr("autograder.walls.outside.deadline.CLOCK_FACTOR", HANGS)
    write_answer(
        folder, RIGHT.replace("together = a + b", "while True: pass\n    together = a + b")
    )
    looping = check_target(folder).findings[0]
    assert (looping.result.outcome, looping.result.score) == ("timeout", 0)
    assert "more than 0.5 seconds of processor time" in (looping.result.message or "")
    write_answer(folder, "while True:\n    pass\n")
    sentence = (
        r"Your file used more than 0.5 seconds of processor time when it was loaded, and was stopped in line 1; "
        r"what stands below had a short time\. Is there an endless loop\? "
        r"Put what takes long, such as training, below `if __name__ == \"__main__\":`\."
    )
    assert re.fullmatch(sentence, check_target(folder).problem)


@pytest.mark.slow
def test_check_imports_no_unneeded_libraries(folder: Path) -> None:
    """Libraries that a check does not use would double its time."""
    write_answer(folder, SUBTRACTS)
    code = "import sys; from autograder.selfcheck.check import check_target; check_target('.'); print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=folder, check=True
    )
    needless = {
        "matplotlib", "IPython", "jupytext", "nbformat", "transformers", "jinja2", "hypothesis", "pandas",
    }  # fmt: skip
    needless |= {"torch._dynamo", "torch._inductor"}
    assert needless & set(done.stdout.split()) == set()
