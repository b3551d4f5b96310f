"""The sandbox: what a worker sees, how it ends, and the fork server.

That each wall holds in each tier: see `test_walls`. What its filter of system calls decides: see `test_seccomp`.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import threading
from pathlib import Path

import pytest
from typer.testing import CliRunner

from autograder.cli import app
from autograder.course.config import Limits
from autograder.records import InfrastructureError
from autograder.walls.inside.jail import SAFE_TIERS, TIERS
from autograder.walls.outside import doctor, launcher
from autograder.walls.outside.command import Layout
from autograder.walls.outside.launcher import Sandbox
from autograder.walls.outside.unavailable import SandboxUnavailableError
from autograder.walls.outside.worker_process import Ending, WorkerProcess
from tests.autograder.sampling import sampled
from tests.autograder.waiting import HANGS, wait_until

ROOT = Path(__file__).resolve().parents[2]
SAFE, ALL = SAFE_TIERS, tuple(TIERS)
STRONGEST = "namespaces"  # `make test` tries it alone

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
    call_seconds=600, load_seconds=600, cpu_seconds=600, submission_seconds=600, memory_mb=512,
    file_mb=1, scratch_mb=4, processes=16, open_files=64, output_kb=64,
)  # fmt: skip


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


@pytest.fixture(params=sampled(ALL, STRONGEST.__eq__))
def tier(request, tiers) -> str:
    if not tiers[request.param].works:
        pytest.skip(tiers[request.param].reason)
    return request.param


@pytest.fixture
def namespaces(started) -> Sandbox:
    return started("namespaces")


# ------------------------------------------------------------------ files


def test_python_and_its_packages_can_be_read(any_tier):
    text = """
        def attempt():
            import decimal, random, typing, autograder.records, numpy
            random.seed()
            return [open("/dev/null").read(), len(open("/dev/urandom", "rb").read(4))]
    """
    assert attempt(any_tier, text) == {"value": ["", 4]}


@pytest.mark.skipif(
    not Layout.of_this_python().hidden, reason="this environment uses the interpreter's packages"
)
@pytest.mark.parametrize("tier", SAFE)
def test_packages_beside_the_interpreter_cannot_be_read(started, tier) -> None:
    """A virtual environment does not use them, and what an author has installed there is nobody's business."""
    text = """
        import os
        def attempt(folders):
            read = []
            for folder in folders:
                for place, _, names in os.walk(folder):
                    for name in names:
                        try:
                            open(os.path.join(place, name), "rb").close()
                        except OSError:
                            continue
                        read.append(name)
            return read
        """
    layout = Layout.of_this_python()
    base = Path("/python") if tier == "namespaces" and not layout.base_is_system else layout.base
    folders = [str(base / folder.relative_to(layout.base)) for folder in layout.hidden]
    assert any(path.is_file() for folder in layout.hidden for path in folder.rglob("*"))
    assert attempt(started(tier), text, folders) == {"value": []}


@pytest.mark.parametrize("tier", SAFE)
def test_modules_of_python_are_found_when_they_are_looked_for_anew(started, tier) -> None:
    text = """
        def attempt():
            import importlib
            importlib.invalidate_caches()
            import _lsprof, wave, xmlrpc.client, numpy.polynomial
            return "found"
        """
    assert attempt(started(tier), text) == {"value": "found"}


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


def test_number_of_files_is_limited(namespaces):
    text = """
        def attempt():
            for number in range(10_000):
                open(f"{number}", "w").close()
    """
    assert attempt(namespaces, text)["errno"] == errno.ENOSPC


WRITES = """
    import os, tempfile
    def attempt():
        assert os.listdir() == [], "it begins empty"
        os.makedirs("deep/" * 50)
        with open("deep/note.txt", "w") as file:
            file.write("of another")
        os.mkdir("closed", 0o300)
        return [os.getcwd(), tempfile.gettempdir(), os.path.expanduser("~")]
"""
LOOKS = """
    import os
    def attempt(folder):
        found = []
        for path in (folder, os.path.dirname(folder), folder + "/deep/note.txt"):
            try:
                found += os.listdir(path) if os.path.isdir(path) else [open(path).read()]
            except OSError:
                continue
        return found
"""


@pytest.mark.parametrize("tier", ALL)
def test_a_folder_of_its_own_is_unseen_by_other_workers_and_removed(started, tier):
    sandbox = started(tier)
    with sandbox.spawn(limits()) as one, sandbox.spawn(limits()) as other:
        folder, temporary, home = ask(one, WRITES)["value"]
        assert folder == temporary == home
        if tier in SAFE:
            assert not {"deep", "of another"} & set(ask(other, LOOKS, folder)["value"])
        one.end()
        assert not os.path.exists(folder)
        assert ask(other, WRITES)["value"][0] == folder or tier in ("landlock", "unsafe")


@pytest.mark.parametrize("tier", ["landlock", "unsafe"])
def test_no_folder_outlives_a_sandbox_that_is_closed_at_once(tiers, entry, tier):
    if not tiers[tier].works:
        pytest.skip(tiers[tier].reason)
    sandbox = Sandbox(tier, **entry)
    (server,) = sandbox.servers.values()
    sandbox.close()
    assert list(Path("/tmp").glob(f"autograder-{server.process.pid}-*")) == []


@pytest.mark.parametrize("how", ["closed", "killed"])
@pytest.mark.parametrize("tier", ["landlock", "unsafe"])
def test_no_folder_outlives_the_fork_server(tiers, entry, tier, how):
    if not tiers[tier].works:
        pytest.skip(tiers[tier].reason)
    with Sandbox(tier, **entry) as sandbox, sandbox.spawn(limits()) as worker:
        folder = Path(ask(worker, WRITES)["value"][0])
        assert folder.is_dir() and folder.parent.stat().st_mode & 0o077 == 0
        if how == "killed":
            for server in sandbox.servers.values():
                server.process.kill()
    assert not folder.parent.exists()


FILLS = """
    import os, time
    def attempt(name, size):
        for number in range(5000):
            path = name.format(number)
            os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
            with open(path, "wb") as file:
                file.write(bytes(size))
            os.chdir(os.path.dirname(path) or ".")
        time.sleep(600)
"""


@pytest.mark.parametrize(
    ("name", "size"),
    [("{}", 1 << 20), ("{}", 1), ("deep/{}", 1 << 16), ("a" * 200 + "/{}", 0)],
    ids=["large files", "many files", "files in deep folders", "paths that are too long"],
)
def test_where_no_disk_is_full_a_worker_that_writes_too_much_is_ended(started, name, size):
    with started("landlock").spawn(limits()) as worker:
        with pytest.raises((EOFError, ConnectionError)):
            ask(worker, FILLS, name, size)
        assert worker.end(kill=False).reason == "disk"
        assert attempt(started("landlock"), "def attempt(): return 1") == {"value": 1}


# ------------------------------------------------------------------ threads


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


# ------------------------------------------------------------------ output


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


def test_output_that_is_not_utf8_is_replaced(any_tier):
    with any_tier.spawn(limits()) as worker:
        ask(worker, "import os\ndef attempt(): os.write(1, b'ok \\xff\\xfe')")
        assert worker.output() == "ok \ufffd\ufffd"


# ------------------------------------------------------------------ how workers end

IGNORES_SIGNALS = """
    for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_IGN)
    while True:
        time.sleep(1)
"""
STOPS_ITSELF = """
    for number in (signal.SIGSTOP, signal.SIGTSTP):
        os.kill(os.getpid(), number)
    while True:
        signal.pause()
"""
ENDINGS = {
    "exit code": ("os._exit(5)", {}, "exit", 5),
    "crash": ("ctypes.string_at(0)", {}, "exit", -signal.SIGSEGV),
    "kills itself": ("os.kill(os.getpid(), signal.SIGKILL)", {}, "exit", None),
    "abort": ("os.abort()", {}, "exit", None),
    "ignores signals": (IGNORES_SIGNALS, {"submission_seconds": 1}, "wall", -signal.SIGKILL),
    "stops itself": (STOPS_ITSELF, {"submission_seconds": 1}, "wall", -signal.SIGKILL),
}


@pytest.mark.parametrize(("action", "limited", "reason", "code"), ENDINGS.values(), ids=ENDINGS)
def test_ending_names_the_reason(any_tier, action, limited, reason, code):
    text = f"import os, ctypes, signal, time\ndef attempt():\n    {action.strip()}\n    time.sleep(0.2)\n    os._exit(9)"
    ending = last_attempt(any_tier, text, **limited)
    assert ending.reason == reason
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


def test_failed_isolation_raises_infrastructure_error(any_tier):
    with any_tier.spawn(limits(open_files=-7)) as worker:
        with pytest.raises((EOFError, ConnectionError)):
            ask(worker, "def attempt(): return 'no wall'")
        with pytest.raises(InfrastructureError, match="could not put up the walls"):
            worker.end(kill=False)


# ------------------------------------------------------------------ the fork server


def test_dead_fork_server_is_restarted(any_tier, entry):
    before = descendants(os.getpid())
    with Sandbox(any_tier.tier, **entry) as sandbox:
        worker = sandbox.spawn(limits())
        processes = descendants(os.getpid()) - before
        # a running fork server would report that its worker ended
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in processes:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
        with pytest.raises(InfrastructureError, match="fork server ended"):
            worker.end()
        worker.close()
        assert attempt(sandbox, "def attempt(): return 'alive'") == {"value": "alive"}


def test_fork_server_that_fails_to_start_reports_its_output(tier):
    sandbox = Sandbox(tier, entry="no.such.module:serve", warm=False)
    with pytest.raises(
        SandboxUnavailableError, match="(?s)failed inside the sandbox.*No module named 'no'"
    ):
        sandbox.spawn(limits())
    sandbox.close()


def test_close_leaves_no_process(entry, tier):
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
from autograder.walls.inside.jail import SAFE_TIERS, TIERS
from autograder.walls.outside.launcher import Sandbox
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
def test_no_process_survives_a_killed_grader(entry, tier, threaded):
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


@pytest.mark.slow
def test_a_warm_fork_server_has_computed_gradients_before_it_forks(tiers, entry):
    """The first backward pass of a process is slow, so the fork server rehearses one before it forks."""
    folder = entry["folders"][0]
    (folder / "rehearsed_entry.py").write_text(
        f"from autograder.bridge.inside.worker import rehearse\n{ENTRY}"
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


def test_preloaded_modules_are_imported_only_in_their_own_workers(tier):
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
            servers = descendants(os.getpid())
            with sandbox.spawn(limits(), ["preloaded_one"]) as worker:
                assert ask(worker, question) == {"value": True}
            assert wait_until(lambda: descendants(os.getpid()) <= servers), (
                "one server is used again"
            )


def test_what_every_worker_has_needs_no_fork_server_of_its_own(sandbox):
    sandbox.warm_up()
    before = set(sandbox.servers)
    sandbox.warm_up(["torch.nn", "json"])
    with sandbox.spawn(limits(), ["torch.nn"]):
        assert set(sandbox.servers) == before


def test_failed_preload_does_not_affect_other_workers(tiers, entry):
    tier = next(tier for tier in ALL if tiers[tier].works)
    with Sandbox(tier, **entry) as sandbox:
        with pytest.raises(SandboxUnavailableError, match="No module named 'no_such'"):
            sandbox.spawn(limits(), ["no_such.module"])
        assert attempt(sandbox, "def attempt(): return 'alive'") == {"value": "alive"}


# ------------------------------------------------------------------ which tier


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
    tiers_that_work("landlock", "unsafe")
    assert launcher.best_tier() == "landlock"
    tiers_that_work("unsafe")
    with pytest.raises(SandboxUnavailableError, match="(?s)'namespaces'.*'landlock'.*--unsafe"):
        Sandbox("best")


def test_a_machine_that_is_weaker_than_the_course_allows_is_refused(tiers_that_work):
    tiers_that_work("landlock", "unsafe")
    for minimum in (None, "landlock"):
        launcher.require_tier("best", minimum)
    with pytest.raises(SandboxUnavailableError, match="would be 'landlock'.*asks for 'namespaces'"):
        launcher.require_tier("best", "namespaces")
    with pytest.raises(SandboxUnavailableError, match="would be 'unsafe'.*asks for 'landlock'.$"):
        launcher.require_tier("unsafe", "landlock")


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
        SandboxUnavailableError, match="no sandbox 'chroot'; there are namespaces, landlock, unsafe"
    ):
        Sandbox("chroot")


@pytest.mark.parametrize("tier", sampled(SAFE, STRONGEST.__eq__))
def test_course_inside_pythons_folders_is_refused(tier):
    with pytest.raises(SandboxUnavailableError, match="Move the course"):
        Sandbox(tier, hidden=[Path("/usr/share/course/tests")])
