"""Sheets for people: questions about a student's own lines with one right option that running finds, a page for
teaching assistants without code, and no key of either in what students receive.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest

import autograder
from autograder.authoring.leaks import gives_away
from autograder.authoring.released import released
from autograder.course.config import Assignment, Course, CourseError
from autograder.course.mistakes_file import load_alternatives, load_mistakes
from autograder.course.notebook import to_notebook
from autograder.course.reading import load_course
from autograder.extras.sheets import conversation, sheets
from autograder.extras.sheets.conversation import Sheet, SheetJob
from autograder.extras.sheets.own_code import OwnCode, function_of, hunks_of
from autograder.extras.sheets.questions import Edit, load_question_file, questions_file
from autograder.extras.sheets.sheets import prepare_all
from autograder.gradebook.journal import grades_at
from autograder.records import SourceFile
from autograder.runs.pool import Plan
from autograder.walls.outside.launcher import Sandbox
from tests.autograder.at_hand import GraderAtHand
from tests.autograder.tiny_course import write_files

ROOT = Path(__file__).parents[4]
NAME = "03_masked_heads"
ASKED = [
    "02_positional_encoding", "03_masked_heads", "04_multi_head_concat", "05_encoder_block", "07_mini_gpt",
    "12_rotary_positions",
]  # fmt: skip
CODE = '''\
def attention(q, k, mask=None):
    """A softmax(scores, dim=-1) in words."""
    scores = q @ k  # (T, S)
    return torch.softmax( scores, dim = -1 )
'''


def edit(old: str, new: str, place: str | None = "attention") -> Edit:
    return Edit.model_validate({"in": place, "replace": old, "with": new})


def own(text: str) -> OwnCode:
    return OwnCode.of(SourceFile("masked_heads.py", text))


def test_an_edit_is_made_where_its_code_stands_whatever_the_spaces_and_names_are() -> None:
    change = own(CODE).changed([edit("softmax($all, dim=-1)", "softmax($all, dim=-2)")])
    assert change is not None
    assert (change.line.place, change.new) == ("line 4", "return torch.softmax(scores, dim=-2)")
    assert change.text.replace(" ", "").count("dim=-1") == 1  # the one of the docstring


@pytest.mark.parametrize(
    "wanted",
    [
        edit("dim=-3", "dim=0"),
        edit("dim=-1", "dim=-2", place="Head.forward"),
        edit("scores", "numbers"),  # more than once
        edit("(T, S)", "(S, T)"),  # a remark, which is no code for Python
        edit("dim = -1", "dim=-1"),  # no change
        edit("dim=-1 )", "dim=-1"),  # no Python
    ],
    ids=lambda one: one.old,
)
def test_an_edit_that_does_not_fit_is_not_made(wanted: Edit) -> None:
    assert own(CODE).changed([wanted]) is None


def test_lines_of_a_notebook_have_the_numbers_of_their_cells() -> None:
    course = load_course(ROOT)
    assignment = course.assignment(NAME)
    notebook = nbformat.writes(to_notebook(assignment, course.read_solution(assignment)))
    code = OwnCode.of(SourceFile("masked_heads.ipynb", notebook))
    (lines,) = code.lines_of(["causal_mask"])
    cells = nbformat.reads(notebook, 4).cells
    for line in lines:
        text = cells[line.cell - 1].source.split("\n")[line.number - 1]
        assert text.startswith(line.text)


def test_short_functions_that_are_called_are_shown_too() -> None:
    long = "def long(x):\n" + "    x += 1\n" * 20
    code = OwnCode(
        f"def helper(x):\n    return x\n\n{long}\ndef f(x):\n    return helper(long(x))\n"
    )
    blocks = code.lines_of(["f"])
    assert [block[0].text for block in blocks] == ["def f(x):", "def helper(x):"]


@pytest.mark.parametrize("times", [300, 900, 1500, 2500, 100_000])
@pytest.mark.parametrize("begin", ["1+", "-", "x.", "("])
def test_text_that_is_nested_deeply_is_shown_and_ends_nothing(begin: str, times: int) -> None:
    code = own(
        f"def f(x):\n    y = 1\n    return y\n\nz = {begin * times}x{')' * (begin == '(') * times}\n"
    )
    code.changed([Edit.model_validate({"replace": "y = 1", "with": "y = 2"})])
    assert not code.is_readable or code.lines_of(["f"])


def test_a_mistake_is_made_in_a_students_text_where_its_lines_are_found() -> None:
    course = load_course(ROOT)
    assignment = course.assignment(NAME)
    solution = course.read_solution(assignment)
    mistakes = {mistake.id: mistake for mistake in load_mistakes(course, assignment)}
    late = mistakes["mask_one_late"]
    assert function_of(solution, late.source) == "causal_mask"
    mine = (
        "import torch\n\ndef causal_mask(T):\n  return torch.ones(T,T, dtype=torch.bool).tril()\n"
    )
    change = own(mine).with_lines(hunks_of(solution, late.source))
    assert change is not None and change.line.number == 4
    other = mine.replace(".tril()", ".triu(1) == 0")
    assert own(other).with_lines(hunks_of(solution, late.source)) is None


@pytest.fixture(scope="module")
def course() -> Course:
    return load_course(ROOT)


@pytest.fixture(scope="module")
def assignment(course: Course) -> Assignment:
    return course.assignment(NAME)


@pytest.fixture(scope="module")
def at_hand(sandbox: Sandbox) -> Iterator[None]:
    """One grader for all that this module prepares, in this process."""
    pools: dict[tuple[str, ...] | None, GraderAtHand] = {}

    class Kept(GraderAtHand):
        def shutdown(self, **options: bool) -> None:
            return

    def graders(plan: Plan) -> GraderAtHand:
        return pools.setdefault(plan.names, Kept(plan, sandbox))

    with pytest.MonkeyPatch.context() as patch:
        for module in ("runs.run", "feedback.painter", "extras.sheets.sheets"):
            patch.setattr(f"autograder.{module}.graders", graders)
        conversation.course_questions.cache_clear()
        yield
    for pool in pools.values():
        GraderAtHand.shutdown(pool)


@pytest.fixture(scope="module")
def grades(
    course: Course, assignment: Assignment, at_hand: None, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A graded class: two right answers, one of them twice, three mistakes, a stub, and a file that is not Python."""
    folder = tmp_path_factory.mktemp("class")
    solution = course.read_solution(assignment)
    mistakes = {mistake.id: mistake.source for mistake in load_mistakes(course, assignment)}
    answers = {
        "ada": solution,
        "ben": solution,
        "cleo": dict(load_alternatives(course, assignment))["einsum"],
        "dan": mistakes["head_without_a_mask"],
        "eve": mistakes["head_without_a_mask"],
        "fay": mistakes["scores_not_scaled"],
        "gil": course.stub_file(assignment).read_text("utf-8"),
        "hal": "def causal_mask(T:\n",
    }
    class_files = {f"{student}/{NAME}/masked_heads.py": text for student, text in answers.items()}
    write_files(folder / "submitted", class_files)
    autograder.grade(folder / "submitted", course, folder / "grades", seed=3, jobs=1)
    return folder / "grades"


@pytest.fixture(scope="module")
def prepared(course: Course, assignment: Assignment, grades: Path) -> dict[str, Sheet]:
    """The sheet of each student."""
    jobs = [SheetJob(grades, grade, 0) for grade in grades_at(grades)]
    plan = Plan(course, 3, names=(NAME,))
    return {sheet.student: sheet for sheet in prepare_all(plan, assignment, jobs, lambda *_: None)}


def test_each_sheet_has_three_linked_questions_about_the_students_lines(
    prepared: dict[str, Sheet], course: Course, assignment: Assignment
) -> None:
    sheet = prepared["ada"]
    assert sheet.what and sheet.why and sheet.what_if and sheet.pictures
    solution = course.read_solution(assignment).split("\n")
    for block in sheet.code:
        for line in block:
            assert solution[line.number - 1].startswith(line.text)
    for each in (sheet.what, sheet.why, sheet.what_if):
        assert len(each.points) == 3 and each.answer


@pytest.mark.parametrize("student", ["ada", "cleo", "dan", "fay"])
def test_one_option_is_right_and_all_differ(prepared: dict[str, Sheet], student: str) -> None:
    pictures = prepared[student].pictures
    assert pictures is not None
    assert [option.letter for option in pictures.options] == list("ABCD")
    assert sum(option.is_right for option in pictures.options) == 1
    tables = [option.table for option in pictures.options]
    assert not any(one.looks_like(other) for one, other in itertools.combinations(tables, 2))


def test_work_that_lost_points_is_asked_about_the_gap_that_was_named(
    prepared: dict[str, Sheet],
) -> None:
    sheet = prepared["dan"]
    assert sheet.about_a_gap and sheet.part == "head"
    assert sheet.what is not None and "Where does it pass the mask to attention?" in sheet.what.ask
    assert "the head does not use its mask" in sheet.what.answer
    assert "the head does not use its mask" not in sheet.what.ask
    assert any("def forward" in line.text for block in sheet.code for line in block)


def test_unwritten_work_is_asked_kindly(prepared: dict[str, Sheet]) -> None:
    what = prepared["gil"].what
    assert what is not None and re.match(r"`[\w.]+` is not written yet", what.ask)
    assert "line" not in " ".join(what.points)


def test_the_same_submission_and_seed_give_the_same_sheet(
    course: Course, grades: Path, prepared: dict[str, Sheet], tmp_path: Path
) -> None:
    assert prepared["ada"].questions() == prepared["ben"].questions()
    pages = []
    for number, seed in enumerate([5, 5, 6]):
        page = tmp_path / f"{number}.html"
        autograder.sheet(NAME, grades, course, student="ada", seed=seed, page=page)
        pages.append(page.read_bytes())
    assert pages[0] == pages[1] != pages[2]


def test_all_sheets_are_one_file_to_print(course: Course, grades: Path) -> None:
    made = autograder.sheet(NAME, grades, course, everybody=True)
    page = made.path.read_text("utf-8")
    assert made.path == grades / "sheets" / NAME / "all-conversations.html"
    assert page.count('<section class="sheet">') == 8 and made.students == 7
    assert page.count("for the examiner") == 7
    assert "size: A4" in page and "<script" not in page


@pytest.mark.slow
def test_the_page_for_teaching_assistants_names_mistakes_and_holds_no_line_of_the_solution(
    course: Course, assignment: Assignment, grades: Path
) -> None:
    made = autograder.sheet(NAME, grades, course)
    page = made.path.read_text("utf-8")
    assert made.path == grades / "sheets" / f"{NAME}.html"
    assert re.search(
        r"2 × the head does not use its mask.*\(<bdi>dan</bdi>, <bdi>eve</bdi>\)", page
    )
    assert page.index("the head does not use its mask") < page.index("the scores are not divided")
    assert "Where does it pass the mask to attention?" in page
    assert re.search(r"Whom to visit first.*hal", page, re.DOTALL)
    assert "data:image/png;base64," in page
    assert not gives_away(course, assignment, [("the page", page)])


def test_a_hostile_name_and_message_stay_text(
    course: Course, grades: Path, assignment: Assignment, tmp_path: Path
) -> None:
    first = next(iter(grades_at(grades)))
    page = tmp_path / "page.html"
    plan = Plan(course, 3, names=(NAME,))
    names = {first.student: "<script>alert(1)</script>"}
    jobs = [SheetJob(grades, first, 0)]
    sheets.write_conversations(plan, assignment, jobs, names, page, lambda *_: None)
    text = page.read_text("utf-8")
    assert "<script" not in text and "&lt;script&gt;" in text


def test_students_receive_no_key_of_a_sheet(course: Course) -> None:
    """Neither the release nor the package holds an answer, an option's origin or the file of questions."""
    package = [
        file.read_text("utf-8")
        for file in sorted((ROOT / "autograder").rglob("*"))
        if file.suffix in {".py", ".j2", ".css", ".txt", ".md"}
    ]
    for name in ASKED:
        assignment = course.assignment(name)
        record = load_question_file(course, assignment)
        assert record is not None
        keys = []
        for topic in record.topics:
            keys += [topic.what.answer, topic.why.answer, *topic.what.points, *topic.why.points]
            keys += [what_if.answer for what_if in topic.what_if]
        texts = released(course, assignment)
        assert not [file for file in texts if file.name.startswith("questions")]
        on_disk = [
            file.read_text("utf-8") for file in course.release_folder(assignment).glob("*.*")
        ]
        for text in [*texts.values(), *on_disk, *package]:
            assert not [key for key in keys if len(key) > 40 and key in text]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (("part: mask", "part: msk"), "there is no part `msk`.*`mask`"),
        (("show: mask", "show: maks"), "no function in questions.py `maks`"),
        (("[own_word_masked,", "[own_word_maskd,"), "no known mistake `own_word_maskd`"),
        (("in: [causal_mask]", "in: [causal_msk]"), "no function of the solution `causal_msk`"),
        (("given: {T: 6, first: 4}", "given: {}"), "needs either `edits`.*or `given`"),
        (("topics:", "topic:"), "topics"),
    ],
)
def test_an_error_in_the_questions_is_a_sentence_with_its_line(
    course: Course,
    assignment: Assignment,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: tuple[str, str],
    sentence: str,
) -> None:
    text = questions_file(course, assignment).read_text("utf-8").replace(*change, 1)
    file = ROOT / "tests" / "questions-of-a-test.yml"
    monkeypatch.setattr("autograder.extras.sheets.questions.questions_file", lambda *_: file)
    monkeypatch.setattr(
        Course,
        "read",
        lambda self, path, problem, missing="": text if path == file else path.read_text("utf-8"),
    )
    monkeypatch.setattr(Path, "is_file", lambda path: path == file or path.exists())
    with pytest.raises(CourseError, match=rf"line \d+: .*{sentence}"):
        load_question_file(course, assignment)
