"""Catch the mistake: wrong programs that a passing part unlocks, and the student's code as yardstick."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest
import torch
from typer.testing import CliRunner

import autograder.notebook as notebook
from autograder.authoring import catch
from autograder.bridge.outside.local import load
from autograder.cli import app
from autograder.course.config import CATCH_FILE, Course, CourseError
from autograder.course.mistakes_file import load_mistakes
from autograder.course.reading import load_course
from autograder.records import RefusedError
from autograder.selfcheck.catch.game import (
    Attempt,
    WrongProgram,
    attempt,
    give_up,
    in_place,
    load_inputs,
    unlocked,
)
from autograder.selfcheck.catch.told import about_attempt
from autograder.selfcheck.check import suite_of
from autograder.selfcheck.kernel import this_kernel
from autograder.selfcheck.locked_hints import LockedHints
from autograder.selfcheck.workspace import find_work
from tests.autograder.at_hand import build_at_hand
from tests.autograder.tiny_course import write_tiny_course

ROOT = Path(__file__).resolve().parents[2]
COURSE = load_course(ROOT)
BLOCK = COURSE.assignment("05_encoder_block")
SOLUTION = COURSE.read_solution(BLOCK)
MISTAKES = {mistake.id: mistake for mistake in load_mistakes(COURSE, BLOCK)}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of *The encoder block* as students receive it."""
    return shutil.copytree(COURSE.release_folder(BLOCK), tmp_path / BLOCK.name)


@pytest.fixture
def tiny(tmp_path: Path) -> Course:
    return load_course(write_tiny_course(tmp_path / "course"))


def written(folder: Path, text: str) -> Path:
    file = folder / "encoder_block.py"
    file.write_text(text, "utf-8")
    return file


def told(*words: str) -> str:
    return said(*words)[1]


def said(*words: str) -> tuple[int, str]:
    """Return the exit code of `catch` and what it prints, in one line."""
    result = CliRunner().invoke(app, ["catch", *words])
    return result.exit_code, " ".join(result.output.split())


def loaded(text: str = SOLUTION) -> ModuleType:
    return load(text, "encoder_block.py").module


def programs_for(folder: Path, module: ModuleType, part: str) -> tuple[WrongProgram, ...]:
    with suite_of(folder / "test_encoder_block.py") as session:
        return unlocked(LockedHints(folder), session, module, part)


@cache
def programs_opened_by(text: str, part: str) -> tuple[WrongProgram, ...]:
    """The programs of a part, opened once for each text: opening a lock takes a while."""
    programs = programs_for(COURSE.release_folder(BLOCK), loaded(text), part)
    assert programs
    return programs


def tried(folder: Path, part: str, *arguments: object, text: str = SOLUTION) -> Attempt:
    programs = programs_opened_by(text, part)
    return attempt(loaded(text), load_inputs(folder).call(part), lambda: arguments, programs)


def caught(result: Attempt) -> set[str]:
    return {verdict.program.title for verdict in result.verdicts if verdict.caught}


def test_a_part_that_passes_unlocks_its_programs_and_no_other(folder: Path) -> None:
    stub = (folder / "encoder_block.py").read_text("utf-8")
    half_done = stub.replace('raise NotImplementedError("layer_norm is not written yet.")', (
        "mean = x.mean(dim=-1, keepdim=True)\n"
        "    variance = ((x - mean) ** 2).mean(dim=-1, keepdim=True)\n"
        "    return gamma * (x - mean) / (variance + eps).sqrt() + beta"
    ))  # fmt: skip
    assert half_done != stub
    shown = told(str(folder))
    assert "Locked until" in shown and "0 of 0" not in shown
    written(folder, half_done)
    shown = told(str(folder))
    assert shown.count("Locked until the visible tests of this part pass.") == 5
    written(folder, SOLUTION)
    shown = told(str(folder))
    assert "Locked" not in shown and "0 of 18 unlocked programs caught." in shown
    assert shown.index("Change one thing at a time") < shown.index("--give-up A")


def test_code_that_fails_the_part_opens_nothing(folder: Path) -> None:
    module = loaded(MISTAKES["only_centred"].source)
    assert programs_for(folder, module, "layer_norm") == ()


def test_an_input_catches_and_the_caught_program_tells_its_story(folder: Path) -> None:
    written(folder, SOLUTION)
    file = folder / CATCH_FILE
    squares = "torch.arange(8.0).reshape(1, 2, 4) ** 2, torch.tensor([[False, True]])"
    inputs = f'INPUTS["post_norm"] = [lambda: torch.ones(1, 2, 4), lambda: ({squares})]'
    file.write_text(
        file.read_text("utf-8").replace("if __name__", f"{inputs}\n\nif __name__"), "utf-8"
    )
    shown = told(str(folder), "--part", "post_norm")
    assert "Input 1 (8 numbers): H, I and J answer like your code." in shown
    assert "H is caught: the output differs" in shown
    assert "The padding mask is not used." in shown
    assert "key_padding_mask=None" in shown and "easy to forget" in shown
    assert "of 4 unlocked programs caught" in shown and "Layer norm" not in shown


def test_an_input_that_breaks_the_contract_is_refused_with_its_sentence(folder: Path) -> None:
    all_padding = tried(folder, "post_norm", torch.ones(1, 2, 4), torch.ones(1, 2).bool())
    assert (all_padding.refused, all_padding.verdicts) == ("No sentence is all padding.", ())
    too_long = tried(folder, "encoder", torch.zeros(1, 9).long())
    assert "T=9" in too_long.refused and "max_len=8" in too_long.refused
    assert "An input of this part is (x, gamma, beta" in tried(folder, "layer_norm").refused
    uneven = tried(folder, "layer_norm", *[torch.ones(2)] * 2, torch.ones(3))
    assert "gamma and beta are (C,)" in uneven.refused


def test_programs_that_agree_with_one_another_point_at_ones_own_code(folder: Path) -> None:
    x = torch.tensor([[[1.0, 2.0, 4.0], [4.0, 0.0, 3.0]]])
    mask = torch.tensor([[False, True]])
    wrong = tried(folder, "post_norm", x, mask, text=MISTAKES["padding_ignored"].source)
    assert [program.letter for program in wrong.agreeing] == ["G", "I", "J"]
    lines = [each.line for each in about_attempt(wrong, "Your input", ())]
    assert "G, I and J agree with one another here, and not with you" in " ".join(lines)
    assert tried(folder, "post_norm", x, mask).agreeing == ()


@pytest.mark.slow
def test_giving_up_tells_whether_ones_own_code_makes_the_mistake(folder: Path) -> None:
    written(folder, SOLUTION)
    code, output = said(str(folder), "--give-up", "b")
    assert code == 0
    assert "The author's input for B: (tensor([4096.0" in output
    assert "It catches B" in output and "makes this mistake" not in output
    written(folder, MISTAKES["variance_as_a_difference"].source)
    code, output = said(str(folder), "--give-up", "B")
    assert code == 1
    assert "your code makes this mistake" in output
    assert f"→ {MISTAKES['variance_as_a_difference'].hint}" in output


@pytest.mark.slow
def test_an_unknown_letter_or_part_is_a_sentence(folder: Path) -> None:
    written(folder, SOLUTION)
    code, output = said(str(folder), "--give-up", "Z")
    assert code == 2 and "There is no program 'Z' here: there are A, B" in output
    code, output = said(str(folder), "--part", "attention")
    assert code == 2 and "`layer_norm`" in output


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("INPUTS = {", "catch.py stops in line 1: SyntaxError"),
        ("import torch\nINPUTS = {'encoder': x}\n", "catch.py stops in line 2: NameError"),
        ("x = 1\n", "catch.py has no INPUTS"),
        ("INPUTS = {'encoder': 1}\n", "catch.py does not define"),
    ],
)
def test_a_broken_catch_file_is_a_sentence(folder: Path, text: str, sentence: str) -> None:
    (folder / CATCH_FILE).write_text(text, "utf-8")
    with pytest.raises(RefusedError, match=sentence):
        load_inputs(folder).call("encoder")


def test_a_program_does_not_depend_on_the_names_that_a_student_keeps_in_self(folder: Path) -> None:
    text = SOLUTION.replace("self.max_len", "self.longest").replace("self.activation", "self.bend")
    assert text != SOLUTION
    module = loaded(text)
    for part, programs in catch.programs(COURSE, BLOCK).items():
        for program in programs:
            given = give_up(module, load_inputs(folder).call(part), program)
            assert given.difference and " stops: " not in given.difference, given
            assert not given.unexpected


def test_a_program_takes_its_place_and_leaves_it(folder: Path) -> None:
    module = loaded()
    before = dict(vars(module))
    for part in ("layer_norm", "feed_forward", "post_norm"):
        for program in programs_opened_by(SOLUTION, part):
            with pytest.raises(KeyError), in_place(module, program):
                assert dict(vars(module)) != before
                raise KeyError
    assert dict(vars(module)) == before


def test_an_endless_loop_in_ones_own_code_ends(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("autograder.selfcheck.check.SECONDS", 0.2)
    line = "        T = token_ids.shape[1]\n"
    text = SOLUTION.replace(line, f"{line}        while T == 5:\n            pass\n")
    assert text != SOLUTION
    late = tried(folder, "encoder", torch.zeros(1, 5).long(), text=text).refused
    assert re.match("This input (used|took) more than", late), "by the clock on a busy machine"


@pytest.fixture
def in_notebook(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    module = loaded()
    monkeypatch.setitem(notebook.sys.modules, "__main__", module)
    monkeypatch.setattr(this_kernel, "folder", folder)
    monkeypatch.delenv("NBGRADER_EXECUTION", raising=False)
    yield folder


def test_the_notebook_tries_an_input_on_its_definitions(in_notebook: Path) -> None:
    shown = str(notebook.catch("layer_norm"))
    assert "Unlocked: A, B, C and D" in shown and "(x, gamma, beta, eps=1e-05" in shown
    x = torch.tensor([[1.0, 2.0, 4.0], [5.0, 9.0, 6.0]])
    shown = str(notebook.catch("layer_norm", lambda: (x, torch.ones(3), torch.zeros(3))))
    assert "C is caught" in shown and "One mean for a whole sentence." in shown
    assert 'catch("layer_norm", give_up="A")' in shown
    assert "It catches A" in str(notebook.catch("layer_norm", give_up="a"))
    assert "There is no program 'H'" in str(notebook.catch("layer_norm", give_up="H"))
    assert "There is no part 'attention'" in str(notebook.catch("attention", lambda: ()))


def test_during_grading_it_does_nothing(in_notebook: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NBGRADER_EXECUTION", "autograde")
    assert notebook.catch("layer_norm", lambda: ()) is None


@pytest.mark.parametrize(
    ("setting", "opening"),
    [
        ("true", ""),
        ("2026-11-27", "2026-11-26T23:00:00+00:00"),
        ("2026-11-27 08:30", "2026-11-27T07:30:00+00:00"),
    ],
)
def test_a_day_begins_at_midnight_on_the_courses_clock(
    tiny: Course, setting: str, opening: str
) -> None:
    file = tiny.root / "course.yml"
    file.write_text(
        f"catch: {setting}\ntimezone: Europe/Berlin\n{file.read_text('utf-8')}", "utf-8"
    )
    assert catch.opening(load_course(tiny.root)) == opening


def test_a_wrong_setting_is_a_sentence(tiny: Course) -> None:
    file = tiny.root / "course.yml"
    file.write_text(f"catch: soon\n{file.read_text('utf-8')}", "utf-8")
    with pytest.raises(CourseError, match="course.yml, line 1: .*date and time"):
        load_course(tiny.root)


CATCH = '''"""Catch."""


def total(program, numbers):
    box = program.Total()
    return [box.push(number) for number in numbers]


INPUTS = {"total": lambda: [7]}
RANDOM_INPUTS = {"total": lambda: [3]}
'''


def with_catch(course: Course, chosen: str = "[1, 2]", file: str = CATCH) -> Course:
    """The tiny course, whose mistake that no visible test sees is to be caught."""
    mistakes = course.mistakes_file(course.assignments[0])
    mistakes.write_text(
        f"{mistakes.read_text('utf-8').rstrip()}\n"
        f"  catch: {{input: '{chosen}', story: Nobody pushes twice in a first test.}}\n",
        "utf-8",
    )
    catch_file = course.catch_file(course.assignments[0])
    catch_file.parent.mkdir(exist_ok=True)
    catch_file.write_text(file, "utf-8")
    return course


def broken(course: Course) -> list[str]:
    return list(catch.broken(course, course.assignments[0]))


@pytest.mark.parametrize(
    ("chosen", "old", "new", "sentence"),
    [
        ("[1] * 31", "", "", "has 31 numbers; 30 are the most"),
        ("[7]", "", "", "does not separate it from the solution"),
        ("[7]", "", "", "code with the mistake is right"),
        ("[1, 2]", "lambda: [7]", "lambda: [7, 1]", "the text's example catches"),
        ("[1, 2]", "lambda: [3]", "lambda: [3, 1]", "random numbers catch 1 of 1 programs"),
        ("[1, 2]", "lambda: [7]", "lambda: [-7]", "example 1 of the part total .* is refused"),
        ("[1, 2]", "lambda: [3]", "lambda: [-3]", "the random input .* is refused"),
        ("[1, 2]", '{"total": lambda: [3]}', "{}", "RANDOM_INPUTS of catch.py has no input"),
    ],
)  # fmt: skip
def test_the_audit_names_each_broken_promise(
    tiny: Course, chosen: str, old: str, new: str, sentence: str
) -> None:
    assert old in CATCH
    problems = broken(with_catch(tiny, chosen, CATCH.replace(old, new) if old else CATCH))
    assert re.search(sentence, " | ".join(problems)), problems


def test_the_audit_notices_right_code_that_is_called_wrong(tiny: Course) -> None:
    file = CATCH.replace("for number in numbers]", "for number in numbers] + [box.value]")
    own_name = tiny.alternatives(tiny.assignments[0])[0]
    text = tiny.read_solution(tiny.assignments[0]).replace("self.value", "self.total")
    own_name.write_text(text, "utf-8")
    problems = broken(with_catch(tiny, "[1, 2]", file))
    assert any(f"the alternative {own_name.stem}" in problem for problem in problems), problems


@pytest.mark.parametrize(
    ("chosen", "sentence"),
    [
        ("[1, 2", "its `input` is not an expression of Python"),
        ("[x]", "cannot be made: NameError"),
        ("[-1]", "The solution refuses the input .* must not be negative"),
    ],
)
def test_an_input_that_cannot_be_used_is_an_error_of_the_course(
    tiny: Course, chosen: str, sentence: str
) -> None:
    with pytest.raises(CourseError, match=sentence):
        catch.programs(with_catch(tiny, chosen), tiny.assignments[0])


def test_more_than_four_in_a_part_and_a_missing_file_are_errors(
    tiny: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    course = with_catch(tiny)
    monkeypatch.setattr(catch, "MOST", 0)
    course.catch_file(course.assignments[0]).unlink()
    with pytest.raises(CourseError) as error:
        catch.programs(course, course.assignments[0])
    assert "the part `total` has 1 mistakes to catch; 0 are the most" in str(error.value)
    assert "there is no tests/assignments/01_adding/given/catch.py" in str(error.value)


def test_a_built_course_is_caught_from_end_to_end(tiny: Course) -> None:
    """The tiny course is built, and a student whose code makes the mistake is told so."""
    assignment = with_catch(tiny).assignments[0]
    build_at_hand(tiny)
    folder = tiny.release_folder(assignment)
    assert (folder / CATCH_FILE).read_text("utf-8") == CATCH
    mistake = next(m for m in load_mistakes(tiny, assignment) if m.program)
    (folder / "adding.py").write_text(mistake.source, "utf-8")
    assert find_work(folder).file.name == "adding.py"
    assert "your code makes this mistake" in told(str(folder), "--give-up", "A")
    (folder / "adding.py").write_text(tiny.read_solution(assignment), "utf-8")
    shown = told(str(folder), "--give-up", "A")
    assert "the output differs: yours is [1, 3], A is [1, 2]" in shown
