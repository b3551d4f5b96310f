"""The grader's fork is shut in: a submission that takes it over has no way from there to the machine."""

from __future__ import annotations

import ctypes
import errno
import os
import pickle
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import ClassVar, NamedTuple

import pytest

from autograder.course.config import Course
from autograder.grading.notes import TRIED
from autograder.grading.time_limits import KernelWatch
from autograder.records import Grade, InfrastructureError, SourceFile, Submission
from autograder.runs import replies
from autograder.runs.disposable import Disposable
from autograder.runs.pool import GraderPool, Plan, be_ready, grade_one, graders, this_grader
from autograder.runs.private_folder import PrivateFolder
from autograder.runs.watching import grade_anew
from autograder.walls.inside.tried import NETWORK
from autograder.walls.outside import doctor
from autograder.walls.outside.shut_in import shut_in
from tests.autograder.tiny_course import ALTERNATIVE

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Landlock and seccomp are Linux's.")
ROOT = Path(__file__).resolve().parents[2]
NAME = "01_adding"
PTRACE_ATTACH = 16
LIBC = ctypes.CDLL(None, use_errno=True)


@pytest.fixture(scope="module")
def pool(course: Course) -> Iterator[GraderPool]:
    with graders(Plan(course, run_seed=1)) as started:
        started.submit(temporary_file).result()  # it finds this module before the course's `tests`
        started.submit(be_ready).result()
        yield started


@pytest.fixture(scope="module")
def victim() -> Iterator[Path]:
    """A file that everybody may write."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        os.chmod(folder, 0o777)
        file = Path(folder, "victim.txt")
        file.write_text("untouched")
        os.chmod(file, 0o666)
        yield file


def native(call: str, *arguments: object) -> None:
    """Call the C library; raises OSError if it reports a failure."""
    if getattr(LIBC, call)(*arguments) < 0:
        raise OSError(ctypes.get_errno(), call)


def connected(family: int) -> None:
    with socket.socket(family) as one:
        one.connect(("127.0.0.1", 9) if family == socket.AF_INET else "/run/systemd/notify")


def forked() -> None:
    if os.fork() == 0:
        os._exit(0)


def written_through(descriptors: list[int]) -> None:
    """Write to whatever of these leads anywhere else than to /dev/null, the pipe and the fork servers."""
    nowhere = os.stat(os.devnull).st_rdev
    leading = [number for number in descriptors if os.fstat(number).st_rdev != nowhere]
    if not leading:
        raise PermissionError(errno.EPERM, "all of them lead nowhere")


ATTEMPTS: dict[str, Callable[[Path], object]] = {
    "become a program": lambda _: os.execv("/bin/true", ["/bin/true"]),
    "run a program": lambda _: subprocess.run(["/bin/true"], check=True),
    "spawn a program": lambda _: os.posix_spawn("/bin/true", ["/bin/true"], {}),
    "fork": lambda _: forked(),
    "connect over IPv4": lambda _: connected(socket.AF_INET),
    "connect to a socket in the file system": lambda _: connected(socket.AF_UNIX),
    "make a socket of the kernel's": lambda _: socket.socket(16, socket.SOCK_RAW),
    "make a datagram socket": lambda _: socket.socket(socket.AF_INET6, socket.SOCK_DGRAM),
    "write a new file beside another": lambda victim: victim.with_name("new").write_text("x"),
    "write a new file in /tmp": lambda _: Path("/tmp/left_by_a_fork").write_text("x"),
    "write a new file at home": lambda _: Path("~/left_by_a_fork").expanduser().write_text("x"),
    "write a new file into shared memory": lambda _: Path("/dev/shm/left").write_text("x"),
    "make a folder": lambda victim: victim.with_name("folder").mkdir(),
    "open a file for writing": lambda victim: os.open(victim, os.O_WRONLY),
    "open a file for both": lambda victim: os.open(victim, os.O_RDWR),
    "open a file for appending": lambda victim: os.open(victim, os.O_WRONLY | os.O_APPEND),
    "empty a file": lambda victim: os.truncate(victim, 0),
    "remove a file": lambda victim: victim.unlink(),
    "rename a file": lambda victim: victim.rename(f"{victim}.other"),
    "move a file into its own folder": lambda victim: victim.rename(
        f"{tempfile.gettempdir()}/taken"
    ),
    "link a file": lambda victim: os.link(victim, f"{tempfile.gettempdir()}/linked"),
    "make a symbolic link": lambda _: os.symlink("/", f"{tempfile.gettempdir()}/linked"),
    "change a mode": lambda victim: victim.chmod(0o600),
    "change times": lambda victim: os.utime(victim),
    "change an owner": lambda victim: os.chown(victim, os.getuid(), os.getgid()),
    "set an attribute": lambda victim: os.setxattr(victim, "user.x", b"x"),
    "write into its parent's memory": lambda _: os.open(f"/proc/{os.getppid()}/mem", os.O_RDWR),
    "read its parent's memory": lambda _: os.open(f"/proc/{os.getppid()}/mem", os.O_RDONLY),
    "read its parent's environment": lambda _: Path(f"/proc/{os.getppid()}/environ").read_bytes(),
    "trace its parent": lambda _: native("ptrace", PTRACE_ATTACH, os.getppid(), 0, 0),
    "kill its parent": lambda _: os.kill(os.getppid(), 0),
    "kill process 1": lambda _: os.kill(1, 0),
    "kill everybody": lambda _: os.kill(-1, 0),
    "kill its group": lambda _: os.killpg(0, 0),
    "mount": lambda _: native("mount", b"none", b"/mnt", b"tmpfs", 0, b""),
    "leave for another namespace": lambda _: native("unshare", 0x10000000),
    "set the clock": lambda _: native("settimeofday", bytes(16), None),
    "become another user": lambda _: os.setuid(12345),
    "change its root": lambda _: os.chroot("/"),
    "ask for a new key": lambda _: native("syscall", 250, 0, -3, 0),
    "write to what is open": lambda _: written_through([0, 1, 2]),
}  # fmt: skip


def attempted(victim: Path) -> dict[str, str]:
    """Attempt everything in this process; return what did not end in a refusal."""
    return {name: said for name, attempt in ATTEMPTS.items() if (said := outcome(attempt, victim))}


def outcome(attempt: Callable[[Path], object], victim: Path) -> str:
    try:
        attempt(victim)
    except OSError as error:
        refusals = (errno.EPERM, errno.EACCES, errno.ENOSYS, errno.EXDEV)
        return "" if error.errno in refusals else f"{error}"
    return "allowed"


def test_everything_is_refused_in_the_fork_that_grades(pool, victim):
    refused = pool.submit(attempted, victim).result()
    assert refused == {}
    assert victim.read_text() == "untouched"
    assert [path.name for path in victim.parent.iterdir()] == [victim.name]


def test_the_attempts_are_real(victim):
    """Most of them succeed in this process, so it is the walls that refuse them."""
    harmless = ("run a program", "fork", "make a datagram socket", "open a file for writing")
    harmless += ("open a file for appending", "change times", "kill its parent", "make a folder")
    assert {outcome(ATTEMPTS[name], victim) for name in harmless} == {"allowed"}
    victim.with_name("folder").rmdir()


def test_a_thread_of_the_fork_is_shut_in_too(pool, victim):
    assert pool.submit(attempted_in_a_thread, victim).result() == {}


def attempted_in_a_thread(victim: Path) -> dict[str, str]:
    told: list[dict[str, str]] = []
    thread = threading.Thread(target=lambda: told.append(attempted(victim)))
    thread.start()
    thread.join()
    return told[0]


def test_grading_goes_on_and_the_fork_is_the_same(pool):
    def submitted(text: str, student: str) -> Submission:
        return Submission(student, NAME, (SourceFile("adding.py", text),))

    before = pool.submit(os.getpid).result()
    right, wrong = (
        pool.submit(grade_one, submitted(text, student)).result()
        for student, text in (
            ("ada", ALTERNATIVE),
            ("ben", ALTERNATIVE.replace("sum((a, b))", "a - b")),
        )
    )
    assert isinstance(right, Grade)
    assert (right.score, right.flags) == (right.max_score, ())
    assert {test.mistake for test in wrong.tests} == {None, "subtracts"}
    assert pool.submit(os.getpid).result() == before


def test_what_is_tried_in_vain_is_told_by_the_fork_that_grades(pool):
    tries = "\nimport socket\ntry: socket.socket()\nexcept OSError: pass\n"
    flags = [
        pool.submit(grade_one, Submission("ada", NAME, (SourceFile("adding.py", text),)))
        .result()
        .flags
        for text in (ALTERNATIVE + tries, ALTERNATIVE)
    ]
    assert flags == [(TRIED[NETWORK],), ()]


FORGED = {
    "another student": {"student": "ben"},
    "another assignment": {"assignment": "02_more"},
    "another text": {"submission_sha256": "a" * 64},
    "no text": {"submission_sha256": ["a"]},
}


@pytest.mark.parametrize("arguments", [(grade_one,), (grade_anew, 1)], ids=["grade", "watch"])
@pytest.mark.parametrize("changes", FORGED.values(), ids=FORGED)
def test_a_fork_that_replies_with_the_grade_of_other_work_is_replaced(pool, changes, arguments):
    submission = Submission("ada", NAME, (SourceFile("adding.py", ALTERNATIVE),))
    function, *seeds = arguments
    right = pool.submit(function, submission, *seeds).result()
    before = pool.submit(poisoned, replace(right, **changes)).result()
    again = pool.submit(function, submission, *seeds).result()
    assert (again.attempt, again.score) == (right.attempt, right.score)
    assert pool.submit(os.getpid).result() != before


def poisoned(forged: Grade) -> int:
    """From now on, let the grader of this fork return a forged grade."""
    this_grader().grade = lambda _: forged  # type: ignore[method-assign]
    return os.getpid()


def test_a_fork_writes_temporary_files_of_its_own(pool):
    folder = pool.submit(temporary_file).result()
    assert Path(folder).is_dir(), "it is removed with the graders"
    assert os.stat(folder).st_mode & 0o077 == 0


def temporary_file() -> str:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "file.txt")
        file.write_text("x")
        file.rename(Path(folder, "other.txt"))
        (Path(folder, "deep") / "deeper").mkdir(parents=True)
        assert sorted(path.name for path in Path(folder).iterdir()) == ["deep", "other.txt"]
    return tempfile.gettempdir()


@pytest.mark.slow
def test_nothing_remains_of_the_temporary_files(course):
    with graders(Plan(course, run_seed=1)) as pool:
        folder = Path(pool.submit(tempfile.gettempdir).result())
        assert folder.is_dir()
    assert not folder.parent.exists()


ABANDONS = """
import os, signal
from autograder.runs.private_folder import PrivateFolder
print(PrivateFolder().name, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_next_run_removes_what_a_killed_run_left_and_nothing_else(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", ABANDONS], capture_output=True, text=True, env=environment,
        check=False,
    )  # fmt: skip
    abandoned = Path(done.stdout.strip())
    lives, other = PrivateFolder(), tmp_path / f"{abandoned.name}-link"
    other.symlink_to(tmp_path / "of somebody", target_is_directory=True)
    (tmp_path / "of somebody").mkdir()
    assert abandoned.is_dir(), "it may have been made a moment ago, and not be locked yet"
    for folder in (abandoned, Path(lives.name)):
        os.utime(folder, (0, 0))
    PrivateFolder().close()
    assert not abandoned.exists()
    assert Path(lives.name).is_dir() and (tmp_path / "of somebody").is_dir()
    lives.close()
    assert not Path(lives.name).exists()


@pytest.mark.slow
def test_fork_server_that_is_missing_or_dies_is_started_by_the_grader(course):
    with graders(Plan(course, run_seed=1)) as pool:
        assert pool.submit(spawned, "decimal").result() == 3
        pool.submit(fork_server_ended).result()
        assert pool.submit(spawned, "decimal").result() == 3


def spawned(module: str) -> int:
    """Start a worker with this module imported, and ask it for a sum."""
    grader = this_grader()
    assignment = grader.assignment(NAME).model_copy(update={"preload": (module,)})
    loaded = grader.load(assignment, SourceFile("adding.py", ALTERNATIVE))
    total: int = loaded.subject().student.add(1, 2)
    loaded.close()
    return total


def fork_server_ended() -> None:
    for server in this_grader().workers.sandbox.servers.values():
        server.control.shutdown(socket.SHUT_RDWR)


# ------------------------------------------------------------------ what a fork replies


class Row(NamedTuple):
    number: int


@dataclass(frozen=True)
class Note:
    text: str
    row: Row

    def __post_init__(self) -> None:
        assert self.text != "made in the parent", "no method of a record is called"


@pytest.mark.parametrize(
    "value",
    [
        None,
        1.5,
        "x",
        b"x",
        [1, (2, {3: {4}})],
        Row(1),
        Path("/x"),
        Note("x", Row(2)),
        frozenset({1}),
    ],
    ids=repr,
)
def test_a_reply_is_what_was_sent(value):
    again = replies.loads(replies.dumps(value))
    assert (again, type(again)) == (value, type(value))


@pytest.mark.parametrize(
    "error", [KeyError("x"), InfrastructureError("x"), ImportError("x", name="y")], ids=repr
)
def test_an_exception_is_what_was_raised(error):
    again = replies.loads(replies.dumps(error))
    assert (type(again), again.args, vars(again)) == (type(error), error.args, vars(error))


def test_an_exception_of_another_library_is_named():
    again = replies.loads(replies.dumps(subprocess.CalledProcessError(1, "true")))
    assert type(again) is RuntimeError
    assert "CalledProcessError" in str(again)


class Hostile:
    def __init__(self, *call: object) -> None:
        self.call = call

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        function, *arguments = self.call
        return function, tuple(arguments)


HOSTILE = {
    "runs a program": Hostile(os.system, "true"),
    "evaluates": Hostile(eval, "1"),
    "imports": Hostile(__import__, "antigravity"),
    "opens": Hostile(open, "/dev/null"),
    "makes an object of the engine": Hostile(KernelWatch),
    "makes a record of no record": Hostile(replies.record, "subprocess", "Popen", {}),
    "makes an exception of no exception": Hostile(replies.raised, "builtins", "eval", ("1",), {}),
    "makes a row of no row": Hostile(replies.row, "builtins", "tuple", (1,)),
    "imports a module": Hostile(replies.record, "antigravity", "Record", {}),
    "names a method": Hostile(replies.record, "autograder.records", "Grade.to_json", {}),
}


@dataclass
class Caller:
    """A record whose methods the unpickler would call by itself."""

    called: ClassVar[list[str]] = []

    def __call__(self, *_: object) -> None:
        self.called.append("as a function")

    def append(self, _: object) -> None:
        self.called.append("append")

    def __setitem__(self, *_: object) -> None:
        self.called.append("setitem")

    def __setstate__(self, _: object) -> None:
        self.called.append("setstate")

    def __hash__(self) -> int:
        self.called.append("hash")
        return 1


def bytes_of(maker: str, arguments: bytes, rest: bytes) -> bytes:
    """A pickle that calls a maker with arguments, and then goes on."""
    return b"\x80\x02c" + replies.__name__.encode() + f"\n{maker}\n".encode() + arguments + rest


WORDS = f"X{len(__name__):c}\0\0\0{__name__}X\6\0\0\0Caller}}\x87R"
CALLER = bytes_of("record", WORDS.encode("latin-1"), b"")
MADE_BY_HAND = {
    "calls a record": CALLER + b")R.",
    "appends to a record": CALLER + b"Na.",
    "fills a record": CALLER + b"NNs.",
    "gives a record a state": CALLER + b"}X\1\0\0\0xK\1sb.",
    "asks for the hash of a record": b"\x80\x02}" + CALLER[2:] + b"Ns.",
    "changes a maker": bytes_of("path", b"", b"N}X\x0c\0\0\0__defaults__)s\x86b."),
    "gives a maker an attribute": bytes_of("path", b"", b"}X\1\0\0\0xK\1sb."),
    "ends the parent": pickle.dumps(
        Hostile(replies.raised, "builtins", "KeyboardInterrupt", (), {})
    ),
}


@pytest.mark.parametrize("name", [*HOSTILE, *MADE_BY_HAND])
def test_hostile_replies_are_not_read(name):
    data = MADE_BY_HAND.get(name) or pickle.dumps(HOSTILE[name], protocol=4)
    with pytest.raises((pickle.UnpicklingError, TypeError, AttributeError)):
        replies.loads(data)
    assert "antigravity" not in sys.modules
    assert Caller.called == []


def test_parts_that_a_reply_repeats_are_built_once():
    value: list[object] = []
    for _ in range(60):
        value = [value, value]
    assert len(replies.loads(replies.dumps(value))) == 2


def test_fork_that_replies_otherwise_is_ended():
    disposable = Disposable(KernelWatch(), started=lambda: None, enclose=reply_itself)
    with pytest.raises(InfrastructureError, match="died twice"):
        disposable.call(os.getpid)
    assert disposable.end() == 0, "it has been ended"


def reply_itself(pipe: int) -> None:
    """Send a hostile reply as a fork that a submission has taken over could."""
    from multiprocessing.connection import Connection

    Connection(os.dup(pipe)).send_bytes(pickle.dumps(HOSTILE["runs a program"]))


# ------------------------------------------------------------------ systems that lack a part


@pytest.mark.parametrize(
    ("lacking", "missing"),
    [
        ((), ()),
        (("landlock.version",), ("Landlock",)),
        (("seccomp.install",), ("seccomp",)),
        (("landlock.version", "seccomp.install"), ("Landlock", "seccomp")),
    ],
    ids=str,
)
def test_what_is_missing_is_told_and_the_rest_holds(lacking, missing, victim, monkeypatch):
    def lack(*_: object) -> int:
        if "seccomp.install" in lacking:
            raise OSError(errno.EINVAL, "no such thing")
        return 0

    if "landlock.version" in lacking:
        monkeypatch.setattr("autograder.walls.inside.landlock.version", lambda: 0)
    if "seccomp.install" in lacking:
        monkeypatch.setattr("autograder.walls.inside.seccomp.install", lack)
    disposable = Disposable(KernelWatch(), started=lambda: None)
    with tempfile.TemporaryDirectory() as folder:
        told = disposable.call(partial(shut_in_and_try, victim), folder)
    disposable.end()
    assert told[0] == missing
    assert (told[1]["run a program"] == "allowed") == (len(missing) == 2), "either refuses it"
    assert (told[1]["open a file for writing"] == "allowed") == ("Landlock" in missing)


@pytest.mark.parametrize("lacking", [(), ("Landlock",), ("Landlock", "seccomp")], ids=str)
def test_doctor_says_what_the_kernel_lacks(lacking, monkeypatch):
    if "Landlock" in lacking:
        monkeypatch.setattr("autograder.walls.inside.landlock.version", lambda: 0)
    if "seccomp" in lacking:
        monkeypatch.setattr("autograder.walls.inside.seccomp.filter_program", refuse)
    monkeypatch.setattr("autograder.walls.outside.launcher.try_tier", lambda tier: "")
    hints = [report.hint for report in doctor.examine()]
    assert all(("This kernel has no" in hint) == bool(lacking) for hint in hints)
    assert all(f"no {part}" in hint for part in lacking for hint in hints)


def refuse(*_: object) -> bytes:
    raise ValueError("no list")


def shut_in_and_try(victim: Path, folder: str) -> tuple[tuple[str, ...], dict[str, str]]:
    missing = shut_in(folder, set(map(int, os.listdir("/proc/self/fd"))))
    names = ("run a program", "open a file for writing")
    return missing, {name: outcome(ATTEMPTS[name], victim) for name in names}
