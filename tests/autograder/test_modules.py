"""Several modules in a submission: files beside the student's module, which `files` in course.yml allows."""

from __future__ import annotations

import io
import os
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from autograder.cli import app
from autograder.course.config import Course, CourseError, load_course
from autograder.course.digests import submission_digest
from autograder.extras.lms.exports import ExportRequest, export, gradescope_run
from autograder.extras.lms.exports.container_memory import ContainerMemory
from autograder.extras.lms.exports.nbgrader import _hand_in
from autograder.gradebook import texts
from autograder.grading.grader import Grader
from autograder.records import Grade, SourceFile, Submission
from autograder.selfcheck.check import check_target
from autograder.selfcheck.pack import pack
from autograder.selfcheck.watch import _stamp
from autograder.selfcheck.workspace import find_work
from autograder.submissions import find_submissions
from autograder.submissions.files import DiskFolder
from autograder.submissions.take import submission_of, wanted_of
from tests.autograder.at_hand import build_at_hand
from tests.autograder.tiny_course import write_files

NAME = "01_spread"
COURSE = """\
title: Numbers
limits: {call_seconds: 2, load_seconds: 5}
assignments:
  - name: 01_spread
    title: Spread
    minutes: 10
    files: [helpers.py]
    parts:
      - {name: spread, title: Spread, points: 4}
"""
SOLUTION = '''\
# %%
from helpers import middle


# %%
def spread(numbers: list[float]) -> float:
    """The median distance from the median: spread([1, 2, 9]) is 1."""
    # TODO: the median of the distances
    ### BEGIN SOLUTION
    centre = middle(numbers)
    return middle([abs(number - centre) for number in numbers])
    ### END SOLUTION


# %% part="spread"
'''
HELPERS = '''\
"""Numbers in order."""


def middle(numbers):
    return sorted(numbers)[len(numbers) // 2]
'''
GIVEN = '''\
"""Numbers in order."""


def middle(numbers):
    raise NotImplementedError("middle is not written yet.")
'''
VISIBLE = '''\
"""The spread of three numbers."""

import pytest

from autograder import checks

pytestmark = pytest.mark.forbids("statistics")


@pytest.mark.part("spread")
@pytest.mark.points(1)
def test_three(student):
    """The spread of 1, 2 and 9 is 1."""
    checks.equal(student.spread([1, 2, 9]), 1, "spread([1, 2, 9])")
'''
HIDDEN = '''\
"""The spread of other numbers."""

import random

import pytest

from autograder import checks

pytestmark = pytest.mark.forbids("statistics")


@pytest.mark.part("spread")
@pytest.mark.points(3)
def test_others(student, reference, seed):
    """The spread of any numbers."""
    numbers = [random.randint(1, 99) for _ in range(9)]
    checks.equal(student.spread(numbers), reference.spread(numbers), "the spread")
'''
MISTAKES = """\
- id: from_the_mean
  in: spread
  replace: middle(numbers)
  with: sum(numbers) / len(numbers)
  hint: From which number are the distances measured?
"""
FILES = {
    "course.yml": COURSE,
    f"solutions/{NAME}/spread.py": SOLUTION,
    f"solutions/{NAME}/helpers.py": HELPERS,
    f"tests/assignments/{NAME}/given/helpers.py": GIVEN,
    f"tests/assignments/{NAME}/test_visible.py": VISIBLE,
    f"tests/assignments/{NAME}/test_hidden.py": HIDDEN,
    f"tests/assignments/{NAME}/mistakes.yml": MISTAKES,
}


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Course:
    course = load_course(write_files(tmp_path_factory.mktemp("modules"), FILES))
    build_at_hand(course)
    return course


@pytest.fixture(scope="module")
def grader(course: Course, sandbox) -> Iterator[Grader]:
    grader = Grader(course, sandbox, 7)
    yield grader
    grader.close()


def graded(grader: Grader, helpers: str | None = HELPERS, text: str = SOLUTION) -> Grade:
    modules = () if helpers is None else (SourceFile("helpers.py", helpers),)
    return grader.grade(Submission("ada", NAME, (SourceFile("spread.py", text, modules),)))


# ------------------------------------------------------------------ grading


def test_a_submission_imports_its_own_modules(grader):
    assert graded(grader).score == 4
    wrong = graded(grader, HELPERS.replace("sorted(numbers)", "numbers"))
    assert [test.outcome for test in wrong.tests] == ["failed", "failed"]
    assert graded(grader).score == 4, "no module of an earlier submission is left"
    own = SOLUTION.replace("from helpers import middle", "def middle(n):\n    return sorted(n)[len(n) // 2]")
    assert graded(grader, None, own).score == 4, "a single file is right, too"


def test_known_mistakes_and_lines_of_modules_are_named(grader):
    named = graded(grader, text=SOLUTION.replace("centre = middle(numbers)", "centre = sum(numbers) / len(numbers)"))
    assert {test.mistake for test in named.tests} == {"from_the_mean"}
    failed = graded(grader, HELPERS.replace("sorted(numbers)", "sorted(missing)"))
    assert "(line 5 of helpers.py)" in failed.tests[0].message
    assert "sorted(missing)" in failed.tests[1].message, "the line is that of the module, also in a hidden test"


def test_a_missing_module_and_one_that_is_not_allowed(grader):
    for text in (SOLUTION, SOLUTION.replace("helpers", "others")):
        refused = graded(grader, None if text == SOLUTION else HELPERS, text)
        name = "helpers" if text == SOLUTION else "others"
        assert refused.score == 0
        assert f"uses `{name}`, and there is no such module where it runs (line" in refused.tests[0].message


USING = "import statistics\n\n\ndef middle(numbers):\n    return statistics.median(numbers)\n"


def test_forbidden_packages_that_modules_enter(grader):
    line = SOLUTION[: SOLUTION.index("middle(numbers)")].count("\n") + 1
    for helpers, place in (
        (USING, "Line 5 of helpers.py"),
        ("from statistics import median as middle\n", f"Line {line}"),
    ):
        used = graded(grader, helpers)
        assert used.score == 0
        assert used.tests[0].message.startswith(f"{place} ran code of `statistics` in this test, and"), used.tests[0]


def test_forbidden_packages_that_modules_name_are_noted(grader):
    named = graded(grader, HELPERS + USING.replace("middle", "compare"))
    assert (named.score, len(named.flags)) == (4, 1)
    assert "of helpers.py names `statistics.median`, which some tests forbid" in named.flags[0]


@pytest.mark.parametrize(
    "helpers",
    [
        "import sys\nsys.exit(0)\n",
        "while True: pass\n",
        "import helpers, spread\n",
        "import sys\nsys.meta_path.clear()\nsys.modules.clear()\n",
        "def middle(",
        "\0",
    ],
)
def test_a_hostile_module_costs_only_its_own_points(grader, helpers):
    assert graded(grader, helpers).score == 0
    assert graded(grader).score == 4


# ------------------------------------------------------------------ where submissions lie


def layouts(folder: Path) -> dict[str, Path]:
    """Return the same submission in every layout."""
    both = {"spread.py": SOLUTION, "helpers.py": HELPERS}
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w") as archive:
        for name, text in both.items():
            archive.writestr(name, text)
    (folder / "packed").mkdir()
    (folder / "packed" / "ada.zip").write_bytes(whole.getvalue())
    return {
        "of one student": write_files(folder / "one" / "ada", both),
        "of a class": write_files(folder / "class" / "ada", both).parent,
        "by assignment": write_files(folder / "assigned" / "ada" / NAME, both).parent.parent,
        "as archives": folder / "packed",
    }


@pytest.mark.parametrize("wanted", [NAME, None])
def test_modules_are_found_in_every_layout(course, tmp_path, wanted):
    for layout, place in layouts(tmp_path).items():
        found = list(find_submissions(place, course, wanted))
        assert [(one.student, one.assignment, one.problem) for one in found] == [("ada", NAME, None)], layout
        (file,) = found[0].files
        assert (file.name, file.module_texts) == ("spread.py", (("helpers.py", HELPERS),)), layout


def test_other_files_are_no_modules(course, tmp_path):
    place = write_files(
        tmp_path / "ada", {"spread.py": SOLUTION, "helpers.py": HELPERS, "more.py": "", "helpers.txt": ""}
    )
    (found,) = find_submissions(place, course)
    assert [name for file in found.files for name, _ in file.module_texts] == ["helpers.py"]


@pytest.mark.parametrize("kind", ["link", "pipe", "folder", "huge", "not text"])
def test_a_module_that_is_no_plain_file_is_refused(course, tmp_path, kind):
    place = write_files(tmp_path / "ada", {"spread.py": SOLUTION})
    helpers = place / "helpers.py"
    if kind == "link":
        helpers.symlink_to(course.root / "solutions" / NAME / "helpers.py")
    elif kind == "pipe":
        os.mkfifo(helpers)
    elif kind == "folder":
        helpers.mkdir()
    else:
        helpers.write_bytes(b"#" * (5 << 20) if kind == "huge" else b"\xff\xfe")
    (found,) = find_submissions(place, course, NAME)
    assert found.problem is not None and "helpers.py" in found.problem


def test_the_digest_and_the_stored_text_hold_the_modules(tmp_path):
    def one(text: str) -> Submission:
        return Submission("ada", NAME, (SourceFile("spread.py", SOLUTION, (SourceFile("helpers.py", text),)),))

    assert submission_digest(one(HELPERS)) != submission_digest(one(GIVEN))
    (again,) = texts.iterate(tmp_path, texts.put(tmp_path, [one(HELPERS)]))
    assert again == one(HELPERS)


def test_collect_keeps_the_modules(course, tmp_path):
    archive = tmp_path / "submissions.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        packed.writestr("lovelaceada_107_3001_spread-1.py", SOLUTION)
        packed.writestr("lovelaceada_107_3002_helpers-2.py", HELPERS)
        packed.writestr("turingalan_108_3003_spread.py", SOLUTION)
        packed.writestr("turingalan_108_3004_notes.py", "")
    for number, words in enumerate(([], ["--assignment", NAME])):
        output = tmp_path / f"submitted{number}"
        command = ["collect", str(archive), "--course", str(course.root), "--output", str(output), *words]
        done = CliRunner().invoke(app, command)
        assert sorted(file.name for file in (output / "107" / NAME).iterdir()) == ["helpers.py", "spread.py"], (
            done.output
        )
        kept = ["notes.py", "spread.py"] if words else ["spread.py"]  # `grade` decides which of them holds the work
        assert sorted(file.name for file in (output / "108" / NAME).iterdir()) == kept
        assert list(find_submissions(output, course))[0].files[0].modules


def test_collect_keeps_the_modules_of_plain_folders(course, tmp_path):
    for number, place in enumerate(layouts(tmp_path).values()):
        output = tmp_path / f"submitted{number}"
        words = ["collect", str(place), "--course", str(course.root), "--output", str(output), "--assignment", NAME]
        done = CliRunner().invoke(app, words)
        found = {file.name: file.read_text("utf-8") for file in (output / "ada" / NAME).iterdir()}
        assert found == {"helpers.py": HELPERS, "spread.py": SOLUTION}, done.output


def test_nbgrader_reads_the_modules(course, tmp_path):
    """nbgrader's folder of a student is read by the same function."""
    place = tmp_path / "ada" / NAME
    place.mkdir(parents=True)
    shutil.copy(course.notebook_file(course.assignment(NAME)), place)
    write_files(place, {"helpers.py": HELPERS})
    found = submission_of("ada", wanted_of(course, NAME), [DiskFolder(place)])
    assert [(file.name, file.module_texts) for file in found.files] == [("spread.ipynb", (("helpers.py", HELPERS),))]


def test_nbgrader_receives_the_modules(course, tmp_path):
    """The export hands in what was graded, so that `nbgrader autograde` can grade it again."""
    folders = SimpleNamespace(submitted_directory="submitted", format_path=lambda *way: str(tmp_path.joinpath(*way)))
    handed = Submission("ada", NAME, (SourceFile("spread.py", SOLUTION, (SourceFile("helpers.py", HELPERS),)),))
    grade = Grade("ada", NAME, "graded", 4, 4, (), seed=7, submission_sha256="", suite_sha256="")
    _hand_in(SimpleNamespace(coursedir=folders), course.assignment(NAME), {"ada": (handed, grade)})
    found = submission_of("ada", wanted_of(course, NAME), [DiskFolder(tmp_path / "submitted" / "ada" / NAME)])
    assert submission_digest(found) == submission_digest(handed)


@pytest.mark.slow
def test_gradescope_grades_with_the_modules(course, tmp_path):
    """The zip for Gradescope holds what the course has of them; the student's come with the submission."""
    export("gradescope", ExportRequest(course, assignment=NAME, output=tmp_path / "autograder.zip"))
    root = tmp_path / "autograder"
    with zipfile.ZipFile(tmp_path / "autograder.zip") as archive:
        archive.extractall(root / "source")
    unpacked = root / "source" / "course"
    assert (unpacked / "solutions" / NAME / "helpers.py").read_text("utf-8") == HELPERS
    assert (unpacked / "assignments" / NAME / "helpers.py").read_text("utf-8") == GIVEN
    write_files(root / "submission", {"spread.py": SOLUTION, "helpers.py": HELPERS})
    assert gradescope_run.run(root, ContainerMemory(root)).score == 4
    write_files(root / "submission", {"helpers.py": GIVEN})
    assert gradescope_run.run(root, ContainerMemory(root)).score == 0


# ------------------------------------------------------------------ a student's own folder


@pytest.fixture
def own(course: Course, tmp_path: Path) -> Path:
    folder = tmp_path / NAME
    shutil.copytree(course.release_folder(course.assignment(NAME)), folder)
    return folder


def test_check_and_pack_take_the_modules(course, own, tmp_path):
    assert (own / "helpers.py").read_text("utf-8") == GIVEN
    write_files(own, {"spread.py": SOLUTION})
    first = _stamp(find_work(own))
    unfinished = check_target(own)
    assert "`middle` is not written yet" in unfinished.findings[0].result.message
    write_files(own, {"helpers.py": HELPERS})
    assert check_target(own).all_passed
    assert _stamp(find_work(own)) != first, "`watch` sees a module that was saved"
    write_files(own, {"helpers.py": HELPERS.replace("sorted(numbers)", "missing")})
    assert str(check_target(own).findings[0].place) == "helpers.py:5"
    write_files(own, {"helpers.py": "\n\n\n" + HELPERS.replace("sorted(numbers)", "missing")})
    place = check_target(own).findings[0].place
    assert (str(place), place.function) == ("helpers.py:8", "middle"), "not the function in line 8 of spread.py"
    write_files(own, {"helpers.py": "from statistics import median as middle\n"})
    line = SOLUTION[: SOLUTION.index("middle(numbers)")].count("\n") + 1
    assert check_target(own).findings[0].result.message.startswith(f"Line {line} ran code of `statistics`")
    write_files(own, {"helpers.py": HELPERS})
    packed = pack(find_work(own), tmp_path)
    assert [file.name for file in packed.files] == ["spread.py", "helpers.py"]
    (found,) = find_submissions(packed.archive, course)
    assert found.files[0].module_texts == (("helpers.py", HELPERS),)


# ------------------------------------------------------------------ course.yml and the audit


@pytest.mark.parametrize(
    ("files", "sentence"),
    [
        ("[random.py]", "a module of Python's own"),
        ("[torch.py]", "a module that the kit needs"),
        ("[test_more.py]", "must be the name of a module such as `helpers.py`"),
        ("['../helpers.py']", "must be the name of a module such as `helpers.py`"),
        ("[helpers.txt]", "must be the name of a module such as `helpers.py`"),
        ("[spread.py]", "`spread.py` is the student's own module"),
    ],
)
def test_unfit_names_are_refused(tmp_path, files, sentence):
    write_files(tmp_path, {"course.yml": COURSE.replace("[helpers.py]", files)})
    with pytest.raises(CourseError) as refused:
        load_course(tmp_path)
    assert sentence in str(refused.value)


@pytest.mark.slow
def test_the_audit_tries_answers_with_the_modules_of_the_solution(course):
    done = CliRunner().invoke(app, ["audit", NAME, "--course", str(course.root), "--jobs", "1", "--only", "mistake"])
    assert done.exit_code == 0, done.output
    for kind in ("stub", "solution", "mutant"):
        done = CliRunner().invoke(app, ["audit", NAME, "--course", str(course.root), "--jobs", "1", "--only", kind])
        assert done.exit_code == 0, done.output
