"""The sandbox: each test attempts one action that a student's code might try."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import platform
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import tempfile
import textwrap
import threading
from pathlib import Path

import pytest
from typer.testing import CliRunner

from autograder.cli import app
from autograder.course.config import Limits, course_schema
from autograder.records import InfrastructureError
from autograder.sandbox.doctor import doctor
from autograder.sandbox.inside.jail import SAFE_TIERS, TIERS
from autograder.sandbox.outside import launcher
from autograder.sandbox.outside.launcher import Sandbox
from autograder.sandbox.outside.unavailable import SandboxUnavailableError
from autograder.sandbox.outside.worker_process import Ending, WorkerProcess
from tests.autograder.sampling import sampled
from tests.autograder.waiting import HANGS, wait_until

ROOT = Path(__file__).resolve().parents[2]
SAFE, ALL = SAFE_TIERS, tuple(TIERS)
STRONGEST = (
    "namespaces"  # `make test` tries each wall in it alone, and `test_verify` tries every tier
)

# runs what the test sends; a student's code gets exactly as far as this
ENTRY = """
import json, traceback

def run(channel):
    reader = channel.makefile("rb")
    for line in reader:
        text, arguments = json.loads(line)
        space = {}
        try:
            exec(text, space)
            answer = {"value": space["attempt"](*arguments)}
        except BaseException as error:
            answer = {"error": type(error).__name__, "errno": getattr(error, "errno", None)}
        channel.sendall(json.dumps(answer).encode() + b"\\n")
"""

NUMBERS = dict(
    call_seconds=600,
    load_seconds=600,
    cpu_seconds=600,
    submission_seconds=600,
    memory_mb=512,
    file_mb=1,
    scratch_mb=4,
    processes=16,
    open_files=64,
    output_kb=64,
)


def limits(**changed: float) -> Limits:
    """Return limits, including values that course.yml would not accept."""
    return Limits.model_construct(**(NUMBERS | changed))


def ask(worker: WorkerProcess, text: str, *arguments: object, seconds: float = HANGS) -> dict:
    """Return the result of the function `attempt` of `text` inside the worker."""
    worker.socket.settimeout(seconds)
    worker.socket.sendall(json.dumps([textwrap.dedent(text), arguments]).encode() + b"\n")
    return reply_of(worker)


def reply_of(worker: WorkerProcess) -> dict:
    line = b""
    while not line.endswith(b"\n"):
        chunk = worker.socket.recv(65536)
        if not chunk:
            raise EOFError("the worker has ended")
        line += chunk
    return json.loads(line)


def attempt(sandbox: Sandbox, text: str, *arguments: object, **changed: float) -> dict:
    """As `ask`, in a new worker."""
    with sandbox.spawn(limits(**changed)) as worker:
        return ask(worker, text, *arguments)


def last_attempt(sandbox: Sandbox, text: str, **changed: float) -> Ending:
    """Return how a worker ends that sends no reply."""
    with sandbox.spawn(limits(**changed)) as worker:
        with pytest.raises((EOFError, ConnectionError)):
            ask(worker, text)
        return worker.end(kill=False)


def descendants(pid: int) -> set[int]:
    """Return all living processes below `pid`, as this machine sees them."""
    parents = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            state, parent = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()[:2]
            if state != "Z":
                parents[int(name)] = int(parent)
    found, new = set(), {pid}
    while new:
        new = {child for child, parent in parents.items() if parent in new}
        found |= new
    return found


def living(pids: set[int]) -> set[int]:
    """Return those of `pids` that are alive; a zombie that its parent has not reaped is not."""
    alive = set()
    for pid in pids:
        with contextlib.suppress(OSError):
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
                alive.add(pid)
    return alive


@pytest.fixture(scope="module")
def entry():
    with (
        tempfile.TemporaryDirectory() as folder
    ):  # not one of pytest's: those are closed to other users
        Path(folder, "sandbox_entry.py").write_text(ENTRY)
        os.chmod(folder, 0o755)
        yield dict(entry="sandbox_entry:run", folders=[Path(folder)], warm=False)


@pytest.fixture(scope="module")
def started(tiers, entry):
    """Sandboxes by tier, started on first use; skips if a tier does not work here."""
    os.environ["GRADERS_SECRET"] = "tell nobody"
    sandboxes: dict[str, Sandbox] = {}

    def of(tier: str) -> Sandbox:
        if not tiers[tier].works:
            pytest.skip(tiers[tier].reason)
        if tier not in sandboxes:
            sandboxes[tier] = Sandbox(tier, **entry)
        return sandboxes[tier]

    yield of
    for sandbox in sandboxes.values():
        sandbox.close()
    del os.environ["GRADERS_SECRET"]


@pytest.fixture(params=sampled(SAFE, STRONGEST.__eq__))
def safe(request, started) -> Sandbox:
    return started(request.param)


@pytest.fixture(params=sampled(ALL, STRONGEST.__eq__))
def any_tier(request, started) -> Sandbox:
    return started(request.param)


@pytest.fixture
def namespaces(started) -> Sandbox:
    return started("namespaces")


# ------------------------------------------------------------------ files


HIDDEN = [
    "/etc/passwd",
    "/etc",
    "/root",
    "/home",
    "/var",
    "/sys",
    "/proc/1/environ",
    "/proc/self/cmdline",
    "/tmp",
]
LOOK = """
    import os
    def attempt(*paths):
        seen = []
        for path in paths:
            try:
                os.listdir(path) if os.path.isdir(path) else open(path, "rb").read(1)
            except OSError:
                continue
            seen.append(path)
        return seen
"""


def test_files_of_the_machine_and_the_course_cannot_be_read(safe):
    of_the_course = [
        str(ROOT),
        str(ROOT / "pyproject.toml"),
        str(ROOT / "tests"),
        str(ROOT / "solutions"),
        __file__,
    ]
    paths = [
        *HIDDEN,
        *of_the_course,
        str(Path.home()),
        "/proc/self/environ",
        "/dev/shm",
        "/dev/tty",
        "/dev/mem",
    ]
    assert attempt(safe, LOOK, *paths) == {"value": []}


def test_python_and_its_packages_can_be_read(any_tier):
    text = """
        def attempt():
            import decimal, random, typing, autograder.records, numpy
            random.seed()
            return [open("/dev/null").read(), len(open("/dev/urandom", "rb").read(4))]
    """
    assert attempt(any_tier, text) == {"value": ["", 4]}


def test_namespaces_show_an_empty_machine(namespaces):
    text = """
        import os, sys, autograder
        def attempt():
            places = [*sys.path, sys.prefix, autograder.__file__, os.getcwd(), *sys.argv, *sys.orig_argv]
            return [sorted(os.listdir("/")), os.listdir("/proc"), os.listdir("."), os.getuid(),
                    os.uname().nodename, places]
    """
    root, processes, scratch, uid, host, places = attempt(namespaces, text)["value"]
    allowed = {"box", "dev", "engine", "lib", "lib64", "packages", "proc", "python", "sys", "usr"}
    assert set(root) <= allowed
    assert (processes, scratch, uid, host) == ([], [], 65534, "sandbox")
    outside = [place for place in places if str(ROOT) in place or str(Path.home()) in place]
    assert outside == []


def test_the_course_is_not_on_the_import_path(any_tier):
    text = """
        import sys
        def attempt():
            return [sys.path, sys.argv, sys.orig_argv, sys.flags.isolated, sys.flags.no_site]
    """
    path, arguments, original, isolated, no_site = attempt(any_tier, text)["value"]
    assert str(ROOT) not in path and "" not in path
    assert (arguments, original, isolated, no_site) == (["autograder"], [], 1, 1)


def test_environment_of_the_grader_is_not_inherited(any_tier):
    answer = attempt(any_tier, "import os\ndef attempt():\n    return dict(os.environ)")
    names = {"HOME", "LANG", "LD_LIBRARY_PATH", "MALLOC_ARENA_MAX", "MKL_NUM_THREADS", "OMP_NUM_THREADS",
             "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS", "PATH", "PWD", "TMPDIR", "USER", "LC_CTYPE"}  # fmt: skip
    assert set(answer["value"]) <= names


def test_nothing_can_be_written_outside_the_scratch_folder(safe):
    text = """
        import os
        def attempt(*folders):
            written = []
            for folder in folders:
                for write in (lambda p: open(p + "/x", "w"), lambda p: os.mkdir(p + "/y"),
                              lambda p: os.symlink("/", p + "/z"), lambda p: os.truncate(p, 0),
                              lambda p: os.chmod(p, 0o777), lambda p: os.utime(p)):
                    try:
                        write(folder)
                    except OSError:
                        continue
                    written.append(folder)
            return written
    """
    folders = [
        "/",
        "/tmp",
        "/usr",
        "/usr/lib",
        "/dev",
        "/dev/shm",
        "/etc",
        "/var/tmp",
        "/packages/0",
        "/engine",
    ]
    folders += [
        "/engine/autograder",
        str(ROOT),
        str(ROOT / "autograder"),
        sysconfig.get_path("purelib"),
        str(Path.home()),
    ]
    assert attempt(safe, text, *folders) == {"value": []}
    assert not (ROOT / "x").exists() and not (ROOT / "autograder" / "x").exists()


def test_scratch_folder_is_limited_and_empty_for_each_worker(namespaces):
    fill = """
        import os
        def attempt():
            written = 0
            try:
                for number in range(1000):
                    with open(f"file{number}", "wb") as file:
                        written += file.write(bytes(500_000))
            except OSError as error:
                return [written, error.errno]
    """
    written, number = attempt(namespaces, fill)["value"]
    assert 1_000_000 < written <= 4 * 2**20
    assert number == errno.ENOSPC
    assert attempt(namespaces, "import os\ndef attempt():\n    return os.listdir('.')") == {
        "value": []
    }


def test_number_of_files_is_limited(namespaces):
    text = """
        def attempt():
            for number in range(10_000):
                open(f"{number}", "w").close()
    """
    assert attempt(namespaces, text)["errno"] == errno.ENOSPC


def test_size_of_a_file_is_limited(namespaces):
    text = """
        def attempt():
            with open("large", "wb") as file:
                file.write(bytes(3_000_000))
    """
    assert attempt(namespaces, text)["errno"] == errno.EFBIG


def test_under_landlock_there_is_no_folder_to_write_to(started):
    text = "import tempfile\ndef attempt():\n    return tempfile.mkdtemp()"
    assert attempt(started("landlock"), text)["error"] in ("FileNotFoundError", "PermissionError")


def test_proc_is_empty(safe):
    text = """
        import os
        def attempt():
            found = []
            for place in ("/proc", "/proc/self", "/proc/self/fd", "/proc/1", "/proc/sys/kernel"):
                try:
                    found += os.listdir(place)
                except OSError:
                    pass
            return found
    """
    assert attempt(safe, text) == {"value": []}


# ------------------------------------------------------------------ network, processes, signals


def test_network_is_not_available(any_tier):
    text = """
        import socket
        def attempt():
            made = []
            for family in (socket.AF_INET, socket.AF_INET6, socket.AF_UNIX, 16, 17):
                for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW):
                    try:
                        socket.socket(family, kind)
                    except PermissionError:
                        continue
                    made.append([family, kind])
            try:
                made.append(socket.getaddrinfo("example.org", 80))
            except OSError:
                pass
            return made
    """
    assert attempt(any_tier, text) == {"value": []}


@pytest.mark.parametrize(
    "action",
    [
        "os.fork()",
        "os.forkpty()",
        "os.execv('/usr/bin/env', ['env'])",
        "os.posix_spawn('/usr/bin/env', ['env'], {})",
        "__import__('subprocess').run(['/usr/bin/env'])",
        "__import__('multiprocessing').Pool(1)",
    ],
)
def test_other_processes_cannot_be_started(any_tier, action):
    answer = attempt(any_tier, f"import os\ndef attempt():\n    return {action}")
    assert answer.get("error") in ("PermissionError", "OSError", "FileNotFoundError"), answer


def test_shell_cannot_be_started(any_tier):
    with any_tier.spawn(limits()) as worker:
        assert (
            ask(worker, "import os\ndef attempt(): return os.system('echo ran; true')")["value"]
            != 0
        )
        assert worker.output() == ""


def test_signals_cannot_reach_other_processes(any_tier):
    text = """
        import os, signal
        def attempt(*pids):
            reached = []
            for pid in (0, -1, 2, 3, os.getppid(), *pids):
                try:
                    os.kill(pid, signal.SIGKILL)
                except (PermissionError, ProcessLookupError):
                    continue
                reached.append(pid)
            try:
                os.killpg(0, signal.SIGKILL)
            except PermissionError:
                pass
            return reached
    """
    victim = subprocess.Popen(["sleep", "infinity"])
    try:
        assert attempt(any_tier, text, os.getpid(), victim.pid) == {"value": []}
        assert victim.poll() is None
        assert attempt(any_tier, "def attempt(): return 1") == {"value": 1}
    finally:
        victim.kill()
        victim.wait()


# what one worker does and what another one sees of it, through a file that both can read
CHANNELS = {
    "flock": """
        import fcntl, os
        file = os.open(os.__file__, os.O_RDONLY)
        def send(bit):
            fcntl.flock(file, fcntl.LOCK_EX if bit else fcntl.LOCK_UN)
        def receive():
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            fcntl.flock(file, fcntl.LOCK_UN)
    """,
    "record locks": """
        import fcntl, os, struct
        file = os.open(os.__file__, os.O_RDONLY)
        def send(bit):
            for command in (fcntl.F_SETLK, 37):  # 37: F_OFD_SETLK
                fcntl.fcntl(file, command, struct.pack("hhqqi", fcntl.F_RDLCK if bit else fcntl.F_UNLCK, 0, 0, 0, 0))
        def receive():
            return fcntl.fcntl(file, fcntl.F_GETLK, struct.pack("hhqqi", fcntl.F_WRLCK, 0, 0, 0, 0)).hex()
    """,
    "leases": """
        import fcntl, os
        file = os.open(os.__file__, os.O_RDONLY)
        def send(bit):
            fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_RDLCK if bit else fcntl.F_UNLCK)
        def receive():
            return fcntl.fcntl(file, fcntl.F_GETLEASE)
    """,
    "futex": """
        import ctypes, os, platform, threading, time
        libc = ctypes.CDLL(None, use_errno=True)
        libc.mmap.restype, libc.mmap.argtypes = ctypes.c_void_p, [ctypes.c_void_p] + [ctypes.c_long] * 5
        number = {"x86_64": 202, "aarch64": 98}[platform.machine()]
        page = libc.mmap(None, 4096, 1, 1, os.open(os.__file__, os.O_RDONLY), 0)
        word = ctypes.c_int.from_address(page).value
        def wait():
            libc.syscall(number, ctypes.c_void_p(page), 0, word, None, None, 0)
        def send(bit):
            if bit:
                threading.Thread(target=wait, daemon=True).start()
                time.sleep(0.2)
            else:
                libc.syscall(number, ctypes.c_void_p(page), 1, 9, None, None, 0)
        def receive():
            return libc.syscall(number, ctypes.c_void_p(page), 1, 9, None, None, 0)
    """,
}
SPEAK = """
import builtins
def attempt(step, *arguments):
    if not hasattr(builtins, "channel"):
        builtins.channel = channel_of()
    try:
        return builtins.channel[step](*arguments)
    except OSError as error:
        return error.errno
"""


@pytest.mark.parametrize("way", CHANNELS)
def test_two_sandboxes_have_no_way_to_signal_each_other(safe, entry, way):
    """A locked file, or a thread that waits for it, would carry a bit; each bit sent looks the same to the other."""
    text = (
        "def channel_of():\n"
        + textwrap.indent(textwrap.dedent(CHANNELS[way]), "    ")
        + "    return locals()\n"
        + SPEAK
    )
    with (
        Sandbox(safe.tier, **entry) as other,
        safe.spawn(limits()) as sender,
        other.spawn(limits()) as receiver,
    ):
        received = []
        for bit in (1, 0, 1, 1, 0, 0):
            ask(sender, text, "send", bit)
            received.append(ask(receiver, text, "receive")["value"])
    assert len(set(received)) == 1, received


def test_threads_are_joined_although_no_file_can_be_waited_for(any_tier):
    """The C library waits for a thread's end by the same system call, on memory of its own."""
    text = """
        import ctypes, time
        def attempt():
            libc, thread = ctypes.CDLL(None), ctypes.c_void_p()
            pause = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(lambda _: time.sleep(0.1))
            started = libc.pthread_create(ctypes.byref(thread), None, pause, None)
            return [started, libc.pthread_join(thread, None)]
    """
    assert attempt(any_tier, text) == {"value": [0, 0]}


def test_no_limit_and_no_owner_of_another_process_can_be_set(any_tier):
    text = """
        import fcntl, os, resource, signal
        def attempt(pid):
            refused = 0
            for action in (lambda: resource.prlimit(pid, resource.RLIMIT_CPU, (1, 1)),
                           lambda: fcntl.fcntl(3, fcntl.F_SETOWN, pid),
                           lambda: fcntl.fcntl(3, 10, signal.SIGKILL),
                           lambda: os.setpriority(os.PRIO_PROCESS, pid, 19),
                           lambda: os.sched_setaffinity(pid, {0})):
                try:
                    action()
                except PermissionError:
                    refused += 1
            return refused
    """
    assert attempt(any_tier, text, os.getpid()) == {"value": 5}


def test_limits_cannot_be_raised_again(any_tier):
    text = """
        import resource
        def attempt():
            for name in ("AS", "CPU", "FSIZE", "NOFILE", "NPROC", "DATA"):
                kind = getattr(resource, "RLIMIT_" + name)
                soft, hard = resource.getrlimit(kind)
                try:
                    resource.setrlimit(kind, (hard + 1, hard + 1))
                except (ValueError, OSError):
                    continue
                return name
    """
    assert attempt(any_tier, text) == {"value": None}


@pytest.mark.skipif(
    platform.machine() != "x86_64", reason="The numbers in this test are those of x86_64."
)
def test_dangerous_system_calls_fail(any_tier):
    text = """
        import ctypes, os
        calls = dict(ptrace=101, mount=165, unshare=272, setns=308, bpf=321, keyctl=250, add_key=248,
                     shmget=29, memfd_create=319, prctl=157, chroot=161, seccomp=317, personality=135,
                     userfaultfd=323, process_vm_readv=310, perf_event_open=298, chmod=90)
        def attempt():
            libc, answers = ctypes.CDLL(None, use_errno=True), {}
            for name, number in calls.items():
                answers[name] = [libc.syscall(number, 0, 0, 0, 0), ctypes.get_errno()]
            answers["io_uring_setup"] = [libc.syscall(425, 1, 0), ctypes.get_errno()]
            answers["clone3"] = [libc.syscall(435, 0, 0), ctypes.get_errno()]
            answers["x32 getpid"] = [libc.syscall(0x40000000 | 39), ctypes.get_errno()]
            return answers
    """
    answers = attempt(any_tier, text)["value"]
    unknown = {name: answers.pop(name) for name in ("io_uring_setup", "clone3")}
    assert set(map(tuple, unknown.values())) == {(-1, errno.ENOSYS)}
    assert set(map(tuple, answers.values())) == {(-1, errno.EPERM)}, answers


def test_the_terminal_cannot_be_typed_into(any_tier):
    text = """
        import fcntl
        def attempt():
            fcntl.ioctl(0, 0x5412, b"x")
    """
    answer = attempt(any_tier, text)
    assert (answer["error"], answer["errno"]) == ("PermissionError", errno.EPERM)


def test_worker_has_four_open_descriptors(any_tier):
    text = """
        import os
        def attempt():
            found = []
            for number in range(64):
                try:
                    os.fstat(number)
                except OSError:
                    continue
                found.append(number)
            return found
    """
    assert attempt(any_tier, text) == {"value": [0, 1, 2, 3]}


def test_stop_signals_do_not_keep_a_worker_alive(any_tier):
    text = """
        import os, signal
        def attempt():
            for number in (signal.SIGSTOP, signal.SIGTSTP):
                os.kill(os.getpid(), number)
            while True:
                signal.pause()
    """
    assert last_attempt(any_tier, text, submission_seconds=1).reason == "wall"


def test_worker_that_ignores_signals_is_killed(any_tier):
    text = """
        import signal, time
        def attempt():
            for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
                signal.signal(number, signal.SIG_IGN)
            while True:
                time.sleep(1)
    """
    assert last_attempt(any_tier, text, submission_seconds=1).reason == "wall"


def test_a_daemon_dies_with_its_worker(any_tier):
    text = """
        import os, threading, time
        def attempt():
            threading.Thread(target=time.sleep, args=(10**6,)).start()
            try:
                os.setsid()
                if os.fork() == 0:
                    time.sleep(10**6)
            except PermissionError:
                pass
            return "started"
    """
    before = descendants(os.getpid())
    with any_tier.spawn(limits()) as worker:
        assert ask(worker, text) == {"value": "started"}
        workers = descendants(os.getpid()) - before
        assert workers
    assert living(workers) == set()


# ------------------------------------------------------------------ resources


def test_memory_is_limited_and_the_worker_survives(any_tier):
    texts = [
        "def attempt(): bytearray(700 * 2**20)",
        "import mmap\ndef attempt(): mmap.mmap(-1, 700 * 2**20)",
        "def attempt(): return len([bytes(2**20) for _ in range(700)])",
    ]
    with any_tier.spawn(limits(memory_mb=512)) as worker:
        assert ask(worker, "def attempt(): return len(bytearray(300 * 2**20))") == {
            "value": 300 * 2**20
        }
        errors = [ask(worker, text)["error"] for text in texts]
        assert [error for error in errors if error not in ("MemoryError", "OSError")] == []


def test_threads_are_limited(any_tier):
    if any_tier.note:
        pytest.skip(any_tier.note)
    text = """
        import threading, time
        threading.stack_size(64 * 1024)
        def attempt():
            started = 0
            try:
                for _ in range(2000):
                    threading.Thread(target=time.sleep, args=(10**6,), daemon=True).start()
                    started += 1
            except RuntimeError:
                return started
    """
    started = attempt(any_tier, text, processes=16)["value"]
    assert started is not None and 1 <= started <= 60


def test_processor_time_is_limited(any_tier):
    ending = last_attempt(any_tier, "def attempt():\n    while True: pass", cpu_seconds=1)
    assert (ending.reason, ending.code) == ("cpu", -signal.SIGKILL)


def test_wall_clock_time_is_limited(any_tier):
    ending = last_attempt(
        any_tier, "import time\ndef attempt(): time.sleep(10**6)", submission_seconds=1
    )
    assert (ending.reason, ending.code) == ("wall", -signal.SIGKILL)


def test_excess_output_is_dropped_without_an_error(any_tier):
    text = """
        def attempt():
            print("first")
            for _ in range(300):
                print("x" * 10_000)
            return "done"
    """
    with any_tier.spawn(limits(output_kb=64)) as worker:
        assert ask(worker, text) == {"value": "done"}
        assert worker.output().startswith("first\nxxx")
        assert len(worker.output(limit=10**9)) == 64 * 1024
        assert worker.output(limit=5) == "first"


def test_raw_output_is_limited_like_a_file(any_tier):
    text = """
        import os
        def attempt():
            while True:
                os.write(1, bytes(100_000))
    """
    with any_tier.spawn(limits(file_mb=1)) as worker:
        assert ask(worker, text)["errno"] == errno.EFBIG
        assert len(worker.output(limit=10**9)) <= 2**20


def test_output_that_is_not_utf8_is_replaced(any_tier):
    with any_tier.spawn(limits()) as worker:
        ask(worker, "import os\ndef attempt(): os.write(1, b'ok \\xff\\xfe')")
        assert worker.output() == "ok \ufffd\ufffd"


def test_descriptors_are_limited(any_tier):
    text = "def attempt():\n    return len([open('/dev/null') for _ in range(200)])"
    assert attempt(any_tier, text)["errno"] == errno.EMFILE


# ------------------------------------------------------------------ how workers end


@pytest.mark.parametrize(
    ("action", "code"),
    [
        ("os._exit(5)", 5),
        ("ctypes.string_at(0)", -signal.SIGSEGV),
        ("os.kill(os.getpid(), signal.SIGKILL)", None),
        ("os.abort()", None),
    ],
)
def test_ending_names_the_reason(any_tier, action, code):
    text = f"import os, ctypes, signal, time\ndef attempt():\n    {action}\n    time.sleep(0.2)\n    os._exit(9)"
    ending = last_attempt(any_tier, text)
    assert ending.reason == "exit"
    assert ending.code == code if code is not None else ending.code != 0


def test_worker_ends_when_its_socket_is_closed(any_tier):
    with any_tier.spawn(limits()) as worker:
        worker.socket.shutdown(socket.SHUT_WR)
        assert worker.end(kill=False).reason == "exit"
        assert worker.end(kill=False).code == 0


def test_end_kills_the_worker_and_can_be_called_twice(any_tier):
    worker = any_tier.spawn(limits())
    ask(worker, "def attempt(): return 1")
    first = worker.end()
    assert (first.reason, first.code) == ("closed", -signal.SIGKILL)
    assert worker.end() is first
    worker.close()
    worker.close()


def test_concurrent_workers_are_isolated_from_each_other(any_tier):
    workers = [any_tier.spawn(limits()) for _ in range(6)]
    text = """
        import builtins
        def attempt(number):
            builtins.mark = getattr(builtins, "mark", 0) + number
            return builtins.mark
    """
    assert [ask(worker, text, number)["value"] for number, worker in enumerate(workers)] == list(
        range(6)
    )
    workers[0].end()
    assert [ask(worker, text, 10)["value"] for worker in workers[1:]] == [11, 12, 13, 14, 15]
    for worker in workers:
        worker.close()


def test_large_messages_are_transferred(any_tier):
    with any_tier.spawn(limits()) as worker:
        answer = ask(worker, "def attempt(text): return text[::-1]", "ab" * 2_000_000)
        assert answer["value"] == "ba" * 2_000_000


def test_descriptors_cannot_be_sent(any_tier):
    text = """
        import os, socket
        def attempt():
            channel = socket.socket(fileno=os.dup(3))
            try:
                socket.send_fds(channel, [b" "], [1] * 20)
            except PermissionError:
                return "refused"
    """
    with any_tier.spawn(limits()) as worker:
        before = len(os.listdir("/proc/self/fd"))
        assert ask(worker, text) == {"value": "refused"}
        assert len(os.listdir("/proc/self/fd")) == before


def test_failed_isolation_raises_infrastructure_error(any_tier):
    with any_tier.spawn(limits(open_files=-7)) as worker:
        with pytest.raises((EOFError, ConnectionError)):
            ask(worker, "def attempt(): return 'no wall'")
        with pytest.raises(InfrastructureError, match="could not put up the walls"):
            worker.end(kill=False)


# ------------------------------------------------------------------ the fork server


def test_dead_fork_server_is_restarted(any_tier):
    worker = any_tier.spawn(limits())
    server = any_tier._servers[()].process
    processes = descendants(server.pid) | {server.pid}
    for number in (
        signal.SIGSTOP,
        signal.SIGKILL,
    ):  # a running fork server would report that its worker ended
        for pid in processes:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
    with pytest.raises(InfrastructureError, match="fork server ended"):
        worker.end()
    worker.close()
    assert attempt(any_tier, "def attempt(): return 'alive'") == {"value": "alive"}
    assert any_tier._servers[()].process is not server


@pytest.mark.parametrize("tier", sampled(ALL, STRONGEST.__eq__))
def test_fork_server_that_fails_to_start_reports_its_output(tiers, tier):
    if not tiers[tier].works:
        pytest.skip(tiers[tier].reason)
    sandbox = Sandbox(tier, entry="no.such.module:serve", warm=False)
    with pytest.raises(
        SandboxUnavailableError, match="(?s)failed inside the sandbox.*No module named 'no'"
    ):
        sandbox.spawn(limits())
    sandbox.close()


@pytest.mark.parametrize("tier", sampled(ALL, STRONGEST.__eq__))
def test_close_leaves_no_process(tiers, entry, tier):
    if not tiers[tier].works:
        pytest.skip(tiers[tier].reason)
    before = descendants(os.getpid())
    open_files = len(os.listdir("/proc/self/fd"))
    with Sandbox(tier, **entry) as sandbox:
        workers = [sandbox.spawn(limits()) for _ in range(3)]
        for worker in workers:
            ask(
                worker,
                "import signal\ndef attempt(): signal.signal(signal.SIGTERM, signal.SIG_IGN) and None",
            )
        family = descendants(os.getpid()) - before
        assert len(family) >= 4
    assert wait_until(lambda: living(family) == set())
    for worker in workers:
        worker.close()
    assert len(os.listdir("/proc/self/fd")) == open_files


GRADER = """
import sys, threading, time
from autograder.course.config import Limits
from autograder.sandbox.inside.jail import SAFE_TIERS, TIERS
from autograder.sandbox.outside.launcher import Sandbox
made = []
def make():
    made.append(Sandbox({tier!r}, entry="sandbox_entry:run", folders=[{folder!r}], warm=False))
if {threaded}:
    thread = threading.Thread(target=make)
    thread.start()
    thread.join()
else:
    make()
workers = [made[0].spawn(Limits(**{numbers!r})) for _ in range(3)]
for worker in workers:
    worker.socket.sendall(b'["def attempt():\\\\n    while True: pass", []]\\n')
print("ready", flush=True)
time.sleep(10**6)
"""


@pytest.mark.parametrize("threaded", sampled([False, True], lambda threaded: threaded))
@pytest.mark.parametrize("tier", sampled(ALL, STRONGEST.__eq__))
def test_no_process_survives_a_killed_grader(tiers, entry, tier, threaded):
    if not tiers[tier].works:
        pytest.skip(tiers[tier].reason)
    code = GRADER.format(
        tier=tier, folder=str(entry["folders"][0]), numbers=NUMBERS, threaded=threaded
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, env=environment
    ) as grader:
        try:
            assert grader.stdout.readline() == b"ready\n"
            assert wait_until(lambda: len(descendants(grader.pid)) >= 4)
            family = descendants(grader.pid)
        finally:
            grader.kill()
    assert wait_until(lambda: living(family) == set()), living(family)


def test_a_sandbox_outlives_the_thread_that_made_it(tiers, entry):
    tier = next(tier for tier in ALL if tiers[tier].works)
    made: list[Sandbox] = []
    thread = threading.Thread(target=lambda: made.append(Sandbox(tier, **entry)))
    thread.start()
    thread.join()
    with made[0] as sandbox:
        worker = sandbox.spawn(limits())
        assert ask(worker, "def attempt(): return 1") == {"value": 1}
        worker.close()


def test_fork_server_is_warm_and_has_one_thread(tiers):
    tier = next(tier for tier in ALL if tiers[tier].works)
    with Sandbox(tier) as sandbox, sandbox.spawn(limits()) as worker:
        assert all(len(os.listdir(f"/proc/{pid}/task")) == 1 for pid in descendants(os.getpid()))
        worker.socket.shutdown(socket.SHUT_WR)
        assert worker.end(kill=False) == Ending("exit", 0)


def test_a_warm_fork_server_has_computed_gradients_before_it_forks(tiers, entry):
    """The first backward pass of a process is slow, so the fork server rehearses one before it forks."""
    folder = entry["folders"][0]
    (folder / "rehearsed_entry.py").write_text(
        f"from autograder.sandbox.inside.server import rehearse\n{ENTRY}"
    )
    tier = next(tier for tier in ALL if tiers[tier].works)
    text = """
        import sys
        torch_was_there = "torch" in sys.modules
        import torch
        def attempt():
            first = (torch.ones(1, requires_grad=True) * 2).grad_fn._sequence_nr()
            return [torch_was_there, torch.get_num_threads(), first > 0]
    """
    with Sandbox(tier, **(entry | {"entry": "rehearsed_entry:run", "warm": True})) as sandbox:
        assert attempt(sandbox, text) == {"value": [True, 1, True]}


@pytest.mark.parametrize("tier", sampled(ALL, STRONGEST.__eq__))
def test_preloaded_modules_are_imported_only_in_their_own_workers(tiers, tier):
    if not tiers[tier].works:
        pytest.skip(tiers[tier].reason)
    question = "import sys\ndef attempt(): return 'preloaded_one' in sys.modules"
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "sandbox_entry.py").write_text(
            "import tempfile\ntempfile.gettempdir()\n" + ENTRY
        )
        as_some_libraries_do = "import tempfile\ntempfile.mkdtemp()"
        Path(folder, "preloaded_one.py").write_text(as_some_libraries_do)
        os.chmod(folder, 0o755)
        entry = dict(entry="sandbox_entry:run", folders=[Path(folder)], warm=False)
        with Sandbox(tier, **entry) as sandbox:
            with sandbox.spawn(limits(), ["preloaded_one"]) as worker:
                assert ask(worker, question) == {"value": True}
            assert attempt(sandbox, question) == {"value": False}
            with sandbox.spawn(limits(), ["preloaded_one"]) as worker:
                assert ask(worker, question) == {"value": True}
            assert len(sandbox._servers) == 2


def test_failed_preload_does_not_affect_other_workers(tiers, entry):
    tier = next(tier for tier in ALL if tiers[tier].works)
    with Sandbox(tier, **entry) as sandbox:
        with pytest.raises(SandboxUnavailableError, match="No module named 'no_such'"):
            sandbox.spawn(limits(), ["no_such.module"])
        assert attempt(sandbox, "def attempt(): return 'alive'") == {"value": "alive"}


# ------------------------------------------------------------------ which tier


def test_doctor_reports_all_tiers(tiers):
    assert list(tiers) == list(ALL)
    for report in tiers.values():
        assert report.reason.endswith(".") and len(report.reason) > 30
        assert report.works or report.hint


def test_missing_bubblewrap_is_reported_with_its_installation(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SandboxUnavailableError, match="no bubblewrap.*Install bubblewrap"):
        Sandbox("namespaces")
    report = doctor.examine()[0]
    assert (report.tier, report.works) == ("namespaces", False)
    assert "no bubblewrap" in report.reason and "Install bubblewrap" in report.hint
    assert "Install" not in report.reason


def test_failed_bubblewrap_is_reported_with_its_output(monkeypatch, tmp_path):
    program = tmp_path / "bwrap"
    program.write_text(
        "#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    report = doctor.examine()[0]
    assert not report.works and "No permissions to create new namespace" in report.reason


@pytest.fixture
def tiers_that_work(monkeypatch):
    def only(*working: str) -> None:
        def try_tier(tier: str) -> str:
            if tier not in working:
                raise launcher.unavailable(tier, "It is switched off.")
            return ""

        monkeypatch.setattr(launcher, "try_tier", try_tier)
        launcher.best_tier.cache_clear()

    yield only
    launcher.best_tier.cache_clear()


def test_best_tier_is_the_strongest_safe_one(tiers_that_work):
    tiers_that_work("namespaces", "landlock", "unsafe")
    assert launcher.best_tier() == "namespaces"
    tiers_that_work("host-network", "landlock", "unsafe")
    assert launcher.best_tier() == "host-network"
    tiers_that_work("landlock", "unsafe")
    assert launcher.best_tier() == "landlock"
    tiers_that_work("unsafe")
    with pytest.raises(
        SandboxUnavailableError, match="(?s)'namespaces'.*'host-network'.*'landlock'.*--unsafe"
    ):
        Sandbox("best")


def test_a_machine_that_is_weaker_than_the_course_allows_is_refused(tiers_that_work):
    tiers_that_work("landlock", "unsafe")
    for minimum in (None, "landlock"):
        launcher.require_tier("best", minimum)
    for minimum in ("namespaces", "host-network"):
        with pytest.raises(
            SandboxUnavailableError, match=f"would be 'landlock'.*asks for '{minimum}'"
        ):
            launcher.require_tier("best", minimum)
    tiers_that_work("host-network")
    launcher.require_tier("best", "host-network")
    with pytest.raises(SandboxUnavailableError, match="would be 'unsafe'.*asks for 'landlock'.$"):
        launcher.require_tier("unsafe", "landlock")


def test_a_course_may_ask_for_every_safe_tier():
    allowed = course_schema()["properties"]["min_tier"]["anyOf"][0]["enum"]
    assert tuple(allowed) == SAFE_TIERS


def test_nothing_is_graded_on_a_machine_that_is_too_weak(tiers_that_work, built_course, tmp_path):
    """By no command that runs students' code: one sentence, exit code 3, and no grade."""
    tiers_that_work("landlock")
    root, output = tmp_path / "course", tmp_path / "grades"
    shutil.copytree(built_course, root)
    text = (root / "course.yml").read_text()
    (root / "course.yml").write_text(text.replace("title:", "min_tier: namespaces\ntitle:", 1))
    submitted = tmp_path / "submitted" / "ada" / "01_adding"
    submitted.mkdir(parents=True)
    (submitted / "adding.py").write_text("def add(a, b): return a + b\n")
    words = ["grade", tmp_path / "submitted", "--course", root, "--output", output, "--jobs", "1"]
    for more in ([], ["--unsafe"]):
        done = CliRunner().invoke(app, [*map(str, words), *more])
        assert done.exit_code == 3
        assert "`min_tier` in course.yml asks for 'namespaces'" in " ".join(done.stderr.split())
        assert (output / "grades.jsonl").read_text() == ""


def test_an_unknown_tier_is_a_sentence():
    with pytest.raises(
        SandboxUnavailableError,
        match="no sandbox 'chroot'; there are namespaces, host-network, landlock, unsafe",
    ):
        Sandbox("chroot")


@pytest.mark.parametrize("tier", sampled(SAFE, STRONGEST.__eq__))
def test_course_inside_pythons_folders_is_refused(tier):
    with pytest.raises(SandboxUnavailableError, match="Move the course"):
        Sandbox(tier, hidden=[Path("/usr/share/course/tests")])


ORDINARY = """
import json
from autograder.sandbox.doctor import doctor
print(json.dumps([[r.tier, r.works, r.reason] for r in doctor.examine()]))
"""


def test_ordinary_user_has_the_same_isolation(tiers):
    if os.getuid() != 0:
        pytest.skip("This user is an ordinary one: all other tests have shown it.")
    python = f"/usr/bin/python{sys.version_info.major}.{sys.version_info.minor}"
    folders = os.pathsep.join([str(ROOT), sysconfig.get_path("purelib")])
    command = [
        "setpriv",
        "--reuid=4321",
        "--regid=4321",
        "--clear-groups",
        "env",
        "-i",
        f"PYTHONPATH={folders}",
    ]
    command += ["PYTHONDONTWRITEBYTECODE=1", "PATH=/usr/bin:/bin", python, "-c"]
    try:
        trial = subprocess.run(
            [*command, "import autograder, numpy"], capture_output=True, text=True, cwd="/"
        )
    except FileNotFoundError:
        pytest.skip("There is no setpriv to become an ordinary user with.")
    if trial.returncode:
        pytest.skip(
            f"An ordinary user can reach no Python with our packages: {trial.stderr[-200:]}"
        )
    done = subprocess.run(
        [*command, ORDINARY], capture_output=True, text=True, cwd="/", timeout=HANGS
    )
    found = {tier: (works, reason) for tier, works, reason in json.loads(done.stdout)}
    for tier in ALL:
        works, reason = found[tier]
        if tiers[tier].works and not works and "amespace" in reason:
            pytest.skip(reason)
        assert works == tiers[tier].works, reason
