"""Shared files: a test and a submission write and read the same files in `tmp_path`, wherever the submission runs."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from autograder.authoring.build import build
from autograder.checks.explain import explain
from autograder.course.config import Course, Limits, load_course
from autograder.gradebook.journal import Journal
from autograder.grading.grader import Grader
from autograder.records import InfrastructureError, SourceFile, Submission
from autograder.runs.pool import Plan
from autograder.runs.run import grade_class
from autograder.sandbox.inside.server import Server
from autograder.sandbox.outside.launcher import Sandbox
from autograder.sandbox.outside.loopback import LoopbackConnection
from autograder.sandbox.outside.remote import RemoteStudent
from autograder.sandbox.outside.worker_connection import WorkerConnection
from autograder.sandbox.shared import files, wire
from autograder.sandbox.shared.errors import StudentCrashedError, StudentError
from autograder.selfcheck.check import check_target
from tests.autograder.at_hand import build_at_hand
from tests.autograder.sampling import thinned
from tests.autograder.sharing_course import FILES_NAME, PLAIN_NAME, write_sharing_course
from tests.autograder.test_printed_text import pytest_of
from tests.autograder.waiting import wait_until

TEXT = r"""
import os, shutil, socket
from pathlib import Path

def double(file):
    target = file.with_suffix(".out")
    target.write_text(str(2 * int(file.read_text())))
    return target

def same(thing):
    return thing

def save(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)

def save_and_fail(path):
    path.write_text("half")
    raise ValueError("no")

def load(path):
    return path.read_text()

def names(folder):
    return sorted(path.name for path in folder.iterdir())

def found(folder):
    return folder.iterdir()

def remove(path):
    shutil.rmtree(path) if path.is_dir() else path.unlink()

def between(folder, callback):
    (folder / "asked.txt").write_text("question")
    return callback(folder / "asked.txt").read_text()

def become_folder(path):
    path.unlink()
    path.mkdir()
    (path / "inside").write_text("x")

class Log:
    def __init__(self, path):
        self.path = path
    def note(self, line):
        with self.path.open("a") as file:
            file.write(line + "\n")

def elsewhere():
    return Path("/etc/passwd"), Path("course.yml"), Path("..")

def climb(folder):
    return folder / ".." / "other", folder.parent

def link(folder):
    (folder / "link").symlink_to("/etc/passwd")

def folder_link(folder):
    (folder / "link").symlink_to("/usr")

def hard_link(folder):
    (folder / "a").write_text("x")
    os.link(folder / "a", folder / "b")

def pipe(folder):
    os.mkfifo(folder / "pipe")

def many(folder):
    for number in range(1_000_000):
        (folder / str(number)).touch()

def huge(folder):
    for number in range(8):
        (folder / str(number)).write_bytes(bytes(1_000_000))

def deep(folder):
    folder.joinpath(*"abcdefghi").mkdir(parents=True)

def control(folder):
    (folder / "a\x1b[2Jb").touch()

def no_text(folder):
    open(os.fsencode(folder) + b"/\xff", "w").close()

def forge(news):
    from autograder.sandbox.shared.files import SharedFolder
    SharedFolder.news = lambda self: {"files": news}
"""


def connected(kind: str, sandbox: Sandbox, folder: Path) -> LoopbackConnection | WorkerConnection:
    """Return a connection to TEXT in a test that shares the folder."""
    connection: LoopbackConnection | WorkerConnection
    if kind == "loopback":
        connection = LoopbackConnection(Server(ModuleType("submission")))
    else:
        connection = WorkerConnection(sandbox.spawn(Limits()), Limits().call_seconds)
    assert connection.request("load", text=TEXT, filename="shared.py")["errors"] == []
    connection.start_test(3)
    connection.share(folder)
    return connection


@pytest.fixture(params=["loopback", "worker"])
def student(request, sandbox, tmp_path):
    connection = connected(request.param, sandbox, tmp_path)
    yield RemoteStudent(connection)
    connection.close()


@pytest.fixture
def worker(sandbox, tmp_path):
    (tmp_path / "shared").mkdir()
    connection = connected("worker", sandbox, tmp_path / "shared")
    yield RemoteStudent(connection)
    connection.close()


# ------------------------------------------------------------------ in a call


def test_a_file_goes_in_and_another_comes_back(student, tmp_path):
    (tmp_path / "number.txt").write_text("21")
    found = student.double(tmp_path / "number.txt")
    assert found == tmp_path / "number.out" and found.read_text() == "42"


def test_the_folder_and_paths_in_it_travel_as_paths(student, tmp_path):
    for thing in (tmp_path, tmp_path / "no" / "file", [tmp_path / "a", {"b": (tmp_path / "b",)}]):
        assert student.same(thing) == thing
    (tmp_path / "a").write_text("1")
    (tmp_path / "b").mkdir()
    assert student.names(tmp_path) == ["a", "b"]
    assert sorted(student.found(tmp_path)) == [tmp_path / "a", tmp_path / "b"]


def test_folders_are_made_and_removed(student, tmp_path):
    student.save(tmp_path / "a" / "b" / "text", "é")
    assert (tmp_path / "a" / "b" / "text").read_text("utf-8") == "é"
    student.remove(tmp_path / "a")
    assert list(tmp_path.iterdir()) == []


def test_what_the_test_changes_between_calls_is_seen(student, tmp_path):
    file = tmp_path / "a"
    student.save(file, "first")
    file.write_text("second")
    assert student.load(file) == "second"
    file.unlink()
    with pytest.raises(StudentError):
        student.load(file)


def test_a_file_becomes_a_folder_and_a_file_again(student, tmp_path):
    (tmp_path / "a").write_text("x")
    student.become_folder(tmp_path / "a")
    assert (tmp_path / "a" / "inside").read_text() == "x"
    student.remove(tmp_path / "a")
    student.save(tmp_path / "a", "y")
    assert (tmp_path / "a").read_text() == "y"


def test_files_before_an_error_are_there(student, tmp_path):
    with pytest.raises(ValueError, match="no"):
        student.save_and_fail(tmp_path / "a")
    assert (tmp_path / "a").read_text() == "half"


def test_a_function_of_the_test_reads_and_writes_during_a_call(student, tmp_path):
    def answer(file: Path) -> Path:
        assert file == tmp_path / "asked.txt" and file.read_text() == "question"
        (tmp_path / "told.txt").write_text("answer")
        return tmp_path / "told.txt"

    assert student.between(tmp_path, answer) == "answer"


def test_a_function_of_the_test_calls_the_student_again(student, tmp_path):
    def answer(file: Path) -> Path:
        student.save(tmp_path / "inner", student.load(file) + "!")
        return tmp_path / "inner"

    assert student.between(tmp_path, answer) == "question!"


def test_objects_keep_paths(student, tmp_path):
    log = student.Log(tmp_path / "log")
    log.note("one")
    assert (tmp_path / "log").read_text() == "one\n" and log.path == tmp_path / "log"
    log.path = tmp_path / "other"
    log.note("two")
    assert (tmp_path / "other").read_text() == "two\n"


def test_an_error_names_the_folder_as_the_test_does(student, tmp_path):
    with pytest.raises(StudentError) as caught:
        student.load(tmp_path / "a")
    assert str(caught.value) == "[Errno 2] No such file or directory: 'tmp_path/a'"


def test_the_next_test_has_a_new_folder(student, tmp_path, tmp_path_factory):
    student.save(tmp_path / "a", "x")
    other = tmp_path_factory.mktemp("other")
    student._connection.start_test(4)
    student._connection.share(other)
    assert student.names(other) == []
    student.save(other / "b", "y")
    assert (other / "b").read_text() == "y" and not (tmp_path / "b").exists()


def test_a_test_without_a_folder_takes_no_files(worker, tmp_path):
    worker._connection.start_test(4)
    worker.forge({"a": b"x"})
    assert worker.same(3) == 3
    assert list((tmp_path / "shared").iterdir()) == []


def test_files_are_part_of_the_answers(student, tmp_path):
    """So a known mistake that writes something else is recognised by it."""
    student.save(tmp_path / "a", "x")
    first = student._connection.transcript
    for text, same in (("x", True), ("y", False)):
        (tmp_path / "a").unlink()
        student._connection.start_test(3)
        student._connection.share(tmp_path)
        student.save(tmp_path / "a", text)
        assert first.same_as(student._connection.transcript) == same


# ------------------------------------------------------------------ what cannot be handed in


def test_a_path_elsewhere_is_not_sent(student, tmp_path):
    for path in (Path("/etc/passwd"), Path("a"), tmp_path / ".." / "a", tmp_path.parent):
        with pytest.raises(StudentError, match="cannot be sent: a path is not in the `tmp_path` of the test"):
            student.same(path)
    assert student.same(tmp_path) == tmp_path


def test_odd_files_of_the_test_are_not_sent(student, tmp_path):
    (tmp_path / "link").symlink_to("/etc/passwd")
    with pytest.raises(StudentError, match="cannot be sent: link cannot be opened"):
        student.names(tmp_path)
    (tmp_path / "link").unlink()
    (tmp_path / "large").write_bytes(bytes(files.MAX_BYTES + 1))
    with pytest.raises(StudentError, match="cannot be sent: large is larger than 4 MB"):
        student.names(tmp_path)
    (tmp_path / "large").unlink()
    assert student.names(tmp_path) == []


# ------------------------------------------------------------------ hostile submissions


@pytest.mark.parametrize(
    ("attack", "sentence"),
    [
        ("link", "link cannot be opened: Too many levels of symbolic links."),
        ("folder_link", "link cannot be opened: Too many levels of symbolic links."),
        ("hard_link", "is linked to from elsewhere"),
        ("pipe", "pipe is not a regular file."),
        ("huge", "The files in `tmp_path` are larger than 4 MB."),
        ("deep", "a/b/c/d/e/f/g/h/i lies deeper than 8 folders."),
        ("control", "a\N{REPLACEMENT CHARACTER}[2Jb is no usual name of a file."),
        ("no_text", "\N{REPLACEMENT CHARACTER} is no usual name of a file."),
    ],
)
@pytest.mark.parametrize("where", ["loopback", "worker"])
def test_odd_files_of_the_submission_are_its_error(sandbox, tmp_path, where, attack, sentence):
    connection = connected(where, sandbox, tmp_path)
    with pytest.raises(StudentError) as caught:
        getattr(RemoteStudent(connection), attack)(tmp_path)
    connection.close()
    message = explain(caught.value, full=True, file=SourceFile("shared.py", TEXT)).message
    if where == "worker":
        written = {place.name for place in tmp_path.iterdir()}
        assert written <= ({"a"} if attack == "hard_link" else set())  # the file itself, where it cannot be linked
    assert sentence in message or (where == "worker" and "Operation not permitted" in message)


def test_a_million_files_are_an_error(worker, tmp_path):
    with pytest.raises(StudentError):
        worker.many(tmp_path / "shared")
    assert list((tmp_path / "shared").iterdir()) == []


FORGED = [
    None, 3, "text", [], [["a", b"x"]], b"x",
    {"../escaped": b"x"}, {"..": None}, {".": None}, {"": b"x"}, {"/escaped": b"x"}, {"/tmp/escaped": b"x"},
    {"a/../../escaped": b"x"}, {"a": None, "a/..": b"x"}, {"a//b": b"x"}, {"a/": b"x"}, {"a/b": b"x"},
    {"a": b"x", "a/b": b"x"}, {"kept": b"kept", "kept/x": b"x"}, {"kept": None, "kept/x": 3},
    {"a\nb": b"x"}, {"a\x00b": b"x"}, {"a\x1b[2J": b"x"}, {"\u202egpj.exe": b"x"}, {"x" * 256: b"x"},
    {"é" * 128: b"x"}, {"a": "text"}, {"a": 3}, {"a": [b"x"]}, {"a": {"b": b"x"}}, {3: b"x"}, {None: None},
    {("a",): b"x"},    {str(number): b"" for number in range(files.MAX_FILES + 1)}, {"large": bytes(files.MAX_BYTES + 1)},
    {"/".join("abcdefghi"[: length + 1]): None for length in range(9)},
]  # fmt: skip


@pytest.mark.parametrize("claim", thinned(FORGED, 6), ids=lambda claim: repr(claim)[:40])
def test_forged_files_fail_and_change_nothing(worker, tmp_path, claim):
    """A worker may say anything about its files."""
    folder = tmp_path / "shared"
    (folder / "kept").write_text("kept")
    worker.names(folder)
    with pytest.raises(StudentCrashedError, match="What came back is not a list of files"):
        worker.forge(claim)
        worker.same(3)
    assert [path.name for path in tmp_path.iterdir()] == ["shared"]
    assert [path.name for path in folder.iterdir()] == ["kept"] and (folder / "kept").read_text() == "kept"


def test_a_submission_may_remove_everything_in_the_folder_and_nothing_else(worker, tmp_path):
    folder = tmp_path / "shared"
    (folder / "a" / "b").mkdir(parents=True)
    (folder / "a" / "b" / "c").write_text("x")
    worker.forge({})
    assert [path.name for path in tmp_path.iterdir()] == ["shared"] and list(folder.iterdir()) == []


def test_a_returned_path_never_leads_out_of_the_folder(worker, tmp_path):
    folder = tmp_path / "shared"
    for path in (*worker.elsewhere(), *worker.climb(folder)):
        assert not isinstance(path, Path)
        with pytest.raises(TypeError):
            open(path)  # noqa: SIM115


@pytest.mark.parametrize(
    "name", ["..", "../x", "/etc/passwd", "a/../../x", "a//b", "", "./a", "a\x00", "a\nb", "x" * 256, 3, None, ["a"]]
)
def test_a_forged_path_is_no_frame(name):
    with pytest.raises(wire.WireError):
        wire.loads(wire._JSON.encode({"!path": name}).encode(), b"")


def test_a_forged_path_without_a_folder_fails(worker):
    worker._connection.start_test(4)
    exchange = worker._connection.exchange
    worker._connection.exchange = lambda *given: {
        **exchange(*given),
        "ok": {"kind": "value", "value": wire.SharedPath("a")},
    }
    with pytest.raises(StudentCrashedError, match="What came back is not a path"):
        worker.same  # noqa: B018


def test_links_of_the_test_are_not_written_through(worker, tmp_path):
    folder, secret = tmp_path / "shared", tmp_path / "secret"
    secret.write_text("secret")
    worker.names(folder)
    (folder / "a").symlink_to(secret)  # too late to be sent; as if it were made during the call
    worker._connection.folder.news = dict
    with pytest.raises(InfrastructureError, match="cannot be written here"):
        worker.forge({"a": b"x"})
    assert secret.read_text() == "secret"


# ------------------------------------------------------------------ in a suite


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Course:
    course = load_course(write_sharing_course(tmp_path_factory.mktemp("sharing")))
    build_at_hand(course)
    return course


@pytest.fixture(scope="module")
def solution(course: Course) -> str:
    return course.solution_file(course.assignment(FILES_NAME)).read_text("utf-8")


@pytest.fixture(scope="module")
def grader(course: Course, sandbox):
    grader = Grader(course, sandbox, 7)
    yield grader
    grader.close()


def graded(grader: Grader, text: str, student: str = "ada"):
    return grader.grade(Submission(student, FILES_NAME, (SourceFile("table.py", text),)))


DOUBLES = ("number**2", "number * 2")


def test_grading_shares_the_files(grader, solution):
    for _ in range(3):  # the third is replayed
        assert graded(grader, solution).score == 6
    wrong = graded(grader, solution.replace(*DOUBLES))
    outcomes = {test.name: (test.outcome, test.mistake) for test in wrong.tests}
    assert outcomes == {
        "test_two_rows": ("failed", "doubles"),
        "test_other_rows": ("failed", "doubles"),
        "test_total": ("passed", None),
        "test_other_total": ("passed", None),
    }
    assert wrong.tests[0].message == "The written text is '2,4\\n3,6\\n'; '2,4\\n3,9\\n' was expected."


def test_equal_replies_with_other_files_are_not_replayed(grader, solution):
    """`write` returns None in all of them; only the file tells them apart."""
    assert graded(grader, solution).score == 6
    assert graded(grader, solution.replace(*DOUBLES)).score == 2
    assert graded(grader, solution.replace('"".join(', '"" and "".join(')).score == 2
    assert graded(grader, solution).score == 6


def test_the_solution_stands_in_for_a_part_that_writes_files(grader, solution):
    wrong = graded(grader, solution.replace('"".join(', "3 and (", 1))
    assert {test.name: test.outcome for test in wrong.tests} == {
        "test_two_rows": "failed",
        "test_other_rows": "failed",
        "test_total": "followed",
        "test_other_total": "followed",
    }


def test_a_wrong_path_is_a_sentence_without_the_graders_folders(grader, solution):
    wrong = graded(grader, solution.replace("    return target\n", '    return target.with_name("other")\n'))
    assert wrong.tests[1].message == "The path is the path 'other'; the path 'total.txt' was expected."


def test_a_student_sees_the_same(course, solution):
    released = course.stub_file(course.assignment(FILES_NAME))
    stub = released.read_text("utf-8")
    try:
        released.write_text(solution, "utf-8")
        assert check_target(released).all_passed
        released.write_text(solution.replace(*DOUBLES), "utf-8")
        result = check_target(released).findings[0].result
        assert result.message == "The written text is '2,4\\n3,6\\n'; '2,4\\n3,9\\n' was expected."
        assert result.mistake == "doubles"
    finally:
        released.write_text(stub, "utf-8")


@pytest.mark.slow
def test_plain_pytest_shares_them_too(course, solution, tmp_path):
    assert "4 passed" in pytest_of(course, name=FILES_NAME)
    file = tmp_path / "table.py"
    file.write_text(solution, "utf-8")
    for more in ([], ["--autograder-unsafe"]):
        assert "4 passed" in pytest_of(course, "--autograder-submission", str(file), *more, name=FILES_NAME)
    file.write_text(solution.replace(*DOUBLES), "utf-8")
    assert "2 failed, 2 passed" in pytest_of(course, "--autograder-submission", str(file), name=FILES_NAME)


@pytest.mark.slow
def test_a_fixture_asked_for_by_name_is_shared_too(course, sandbox, solution, tmp_path):
    root = write_sharing_course(tmp_path / "course")
    for name in ("test_visible.py", "test_hidden.py"):
        file = root / "tests" / "assignments" / FILES_NAME / name
        text = file.read_text("utf-8").replace("student, tmp_path)", "student, request)")
        text = text.replace(
            'is written beside the table."""', '…"""\n    tmp_path = request.getfixturevalue("tmp_path")'
        )
        text = text.replace('are two rows."""', '…"""\n    tmp_path = request.getfixturevalue("tmp_path")')
        text = text.replace('empty one is 0."""', '…"""\n    tmp_path = request.getfixturevalue("tmp_path")')
        file.write_text(text, "utf-8")
    other = load_course(root)
    build(other)
    grader = Grader(other, sandbox, 7, [FILES_NAME])
    assert graded(grader, solution).score == 6
    grader.session.close()


@pytest.mark.slow
@pytest.mark.parametrize("tier", ["host-network", "unsafe"])
def test_other_sandboxes_share_them_and_leave_nothing(course, solution, tiers, tier):
    if not tiers[tier].works:
        pytest.skip(f"no {tier} here")
    with Sandbox(tier) as sandbox:
        grader = Grader(course, sandbox, 7, [FILES_NAME])
        assert graded(grader, solution).score == 6
        assert graded(grader, solution.replace(*DOUBLES)).score == 2
        assert graded(grader, solution.replace("    rows =", "    while True: pass\n    rows =")).score == 4
        server = sandbox._servers[()].process.pid
        grader.close()
    assert wait_until(lambda: not list(Path("/tmp").glob(f"autograder-{server}-*")))


@pytest.mark.slow
def test_under_landlock_only_other_assignments_are_graded(course, solution, tiers, tmp_path):
    if not tiers["landlock"].works:
        pytest.skip("no Landlock here")
    plain = course.solution_file(course.assignment(PLAIN_NAME)).read_text("utf-8")
    handed_in = [
        Submission("ada", FILES_NAME, (SourceFile("table.py", solution),)),
        Submission("ada", PLAIN_NAME, (SourceFile("adding.py", plain),)),
        Submission("eve", FILES_NAME, (SourceFile("table.py", solution.replace(*DOUBLES)),)),
        Submission("eve", PLAIN_NAME, (SourceFile("adding.py", plain.replace("a + b", "a - b")),)),
    ]
    with Journal(tmp_path) as journal:
        summary = grade_class(Plan(course, 7, tier="landlock"), handed_in, journal, lambda _: None)
    assert {name: grade.score for name, grade in journal.latest.items()} == {
        ("ada", PLAIN_NAME): 2,
        ("eve", PLAIN_NAME): 0,
    }
    (failure,) = summary.failures
    assert failure.startswith(f"2 submissions of {FILES_NAME} (ada and eve): ")
    assert "needs a stronger sandbox than landlock" in failure
