"""A student's code may use its working folder, alike in every sandbox; what it tries beyond that is told."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Mapping

import pytest

from autograder.course.config import Course
from autograder.course.reading import load_course
from autograder.grading.grader import Grader
from autograder.grading.notes import TRIED
from autograder.grading.preparation import open_grader
from autograder.records import Grade, SourceFile, Submission
from autograder.walls.inside.jail import SAFE_TIERS
from autograder.walls.outside.doctor import TierReport
from autograder.walls.outside.launcher import Sandbox
from tests.autograder.sampling import thinned
from tests.autograder.tiny_course import write_files

NAME = "01_files"
COURSE = f"""\
title: Files
feedback: full
limits: {{call_seconds: 20, load_seconds: 20, scratch_mb: 8}}
assignments:
  - name: {NAME}
    title: Files
    minutes: 10
    parts:
      - {{name: one, title: One, points: 4}}
"""
SOLUTION = '''\
# %% [markdown]
# # Files

# %%
def use():
    """Return done."""
    # TODO: a word
    ### BEGIN SOLUTION
    return "done"
    ### END SOLUTION


# %% part="one"
'''
SUITE = '''\
"""Files."""

import pytest

from autograder import checks


@pytest.mark.part("one")
@pytest.mark.points(4)
def test_it_is_done(student):
    """Twice in one process."""
    for _ in range(2):
        checks.equal(student.use(), "done", "use()")
'''
FILES = {
    "course.yml": COURSE,
    f"solutions/{NAME}/files.py": SOLUTION,
    f"tests/assignments/{NAME}/test_visible.py": SUITE,
    f"tests/assignments/{NAME}/test_hidden.py": '"""None."""\n',
    f"tests/assignments/{NAME}/mistakes.yml": "[]\n",
}

# each leaves nothing behind, and asserts what it reads back
FORMS = {
    "nothing": "pass",
    "write and read": """
        with open("a.txt", "w") as file: file.write("x")
        assert open("a.txt").read() == "x"
        os.remove("a.txt"); assert not os.path.exists("a.txt")""",
    "folders": """
        os.mkdir("a"); os.makedirs("a/b/c", exist_ok=True)
        assert [name for _, names, _ in os.walk("a") for name in names] == ["b", "c"]
        os.removedirs("a/b/c")""",
    "change the folder": """
        before = os.getcwd(); os.mkdir("a"); os.chdir("a"); Path("x").write_text("x")
        os.chdir(".."); assert os.getcwd() == before and Path("a/x").read_text() == "x"
        shutil.rmtree("a")""",
    "the home folder": """
        file = Path.home() / ".cache" / "x"; file.parent.mkdir(); file.write_text("x")
        assert Path("~/.cache/x").expanduser().read_text() == "x"; shutil.rmtree(file.parent)""",
    "TemporaryDirectory": """
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "x").write_text("x"); assert os.listdir(folder) == ["x"]
        assert not os.path.exists(folder)""",
    "json, pickle and csv": """
        with open("a", "w") as file: json.dump([1], file)
        with open("b", "wb") as file: pickle.dump([1], file)
        with open("c", "w", newline="") as file: csv.writer(file).writerow([1])
        assert json.load(open("a")) == pickle.load(open("b", "rb")) == [1]
        for name in "abc": os.remove(name)""",
    "numpy": """
        np.save("a.npy", np.ones(3)); np.savez("a.npz", x=np.ones(3)); np.savetxt("a.txt", np.ones(3))
        assert np.load("a.npy").sum() == np.load("a.npz")["x"].sum() == np.loadtxt("a.txt").sum() == 3
        for name in ("a.npy", "a.npz", "a.txt"): os.remove(name)""",
    "torch": """
        torch.save({"x": torch.ones(3)}, "a.pt"); model = torch.nn.Linear(2, 2)
        torch.save(model.state_dict(), "b.pt"); model.load_state_dict(torch.load("b.pt"))
        assert torch.load("a.pt")["x"].sum() == 3; os.remove("a.pt"); os.remove("b.pt")""",
    "a picture": """
        import matplotlib; matplotlib.use("Agg")
        import matplotlib.pyplot as plt
        plt.plot([1, 2]); plt.savefig("a.png"); plt.close("all")
        assert Path("a.png").stat().st_size > 100; os.remove("a.png")""",
    "a log": """
        log = logging.getLogger("x"); handler = logging.FileHandler("x.log"); log.addHandler(handler)
        log.warning("x"); handler.close(); log.removeHandler(handler)
        assert Path("x.log").read_text() == "x\\n"; os.remove("x.log")""",
    "many files, one after another": """
        for number in range(40):
            Path("x").write_bytes(bytes(1 << 19)); os.remove("x")""",
    "many files at once": """
        for number in range(1000): Path(str(number)).write_text("x")
        for number in range(1000): os.remove(str(number))""",
    "a database in memory": """
        with sqlite3.connect(":memory:") as base: base.execute("create table t (x)")""",
    # refused everywhere: locks, times and modes
    "a database": """
        with sqlite3.connect("a.db") as base: base.execute("create table t (x)")""",
    "a copy with its mode": """
        Path("x").write_text("x"); shutil.copy("x", "y")""",
    "a file that is too large": """
        Path("x").write_bytes(bytes(2 << 20))""",
    "a file outside": """
        Path("/tmp/left_by_a_worker").write_text("x")""",
    "a file beside the working folder": """
        Path("../left_by_a_worker").write_text("x")""",
    "a symbolic link": """
        os.symlink("x", "y")""",
}  # fmt: skip
REFUSED = ("a database", "a copy with its mode", "a file that is too large", "a symbolic link")
REFUSED_WITH_WALLS = ("a file outside", "a file beside the working folder")
IMPORTS = """\
import ctypes, ctypes.util, getpass, signal
from concurrent.futures import ThreadPoolExecutor
import csv, glob, gzip, json, logging, multiprocessing, os, pickle, platform, shutil, socket, sqlite3
import subprocess, tempfile, time, urllib.request, uuid, zipfile
from pathlib import Path
import numpy as np, torch
"""


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Course:
    return load_course(write_files(tmp_path_factory.mktemp("files") / "course", FILES))


@pytest.fixture(scope="module")
def grade(course: Course, tiers) -> Iterator[Callable[[str, str], Grade]]:
    """Return a function that grades a text in a tier."""
    started: dict[str, Grader] = {}

    def graded(text: str, tier: str) -> Grade:
        if tier not in started:
            started[tier] = open_grader(course, Sandbox(tier), 1)
        return started[tier].grade(Submission("ada", NAME, (SourceFile("files.py", text),)))

    yield graded
    for grader in started.values():
        grader.close()


def text_of(statements: str) -> str:
    body = textwrap.indent(textwrap.dedent(statements), "    ")
    return f'{IMPORTS}\n\ndef use():\n{body}\n    return "done"\n'


def working(tiers: Mapping[str, TierReport]) -> list[str]:
    return [tier for tier, report in tiers.items() if report.works]


@pytest.mark.parametrize("form", thinned(FORMS, 4))
def test_files_are_used_alike_in_every_sandbox(form, grade, tiers):
    compared = [
        tier for tier in working(tiers) if form not in REFUSED_WITH_WALLS or tier in SAFE_TIERS
    ]
    points = 0.0 if form in (*REFUSED, *REFUSED_WITH_WALLS) else 4.0
    scores = {tier: grade(text_of(FORMS[form]), tier).score for tier in compared}
    assert scores == dict.fromkeys(compared, points)


OVERFULL = """
    for number in range(12): Path(str(number)).write_bytes(bytes(1 << 20))
    time.sleep(5)
    return "done"
"""


def test_more_than_the_folder_may_hold_is_never_kept(grade, tiers):
    """A disk of its own refuses; without one, the worker is ended."""
    for tier in working(tiers):
        assert grade(text_of(OVERFULL), tier).score == 0.0


# ------------------------------------------------------------------ what it tries in vain

NETWORK, PROGRAM = TRIED.values()
TRIES = {
    "connects": ("socket.create_connection(('127.0.0.1', 9))", [NETWORK]),
    "makes a socket": ("socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)", [NETWORK]),
    "asks for a page": ("urllib.request.urlopen('http://127.0.0.1:9/')", [NETWORK]),
    "runs a program": ("subprocess.run(['/bin/true'])", [PROGRAM]),
    "runs the shell": ("assert os.system('true') == 0", [PROGRAM]),
    "reads what a program says": ("os.popen('true').read()", [PROGRAM]),
    "spawns": ("os.posix_spawn('/bin/true', ['true'], {})", [PROGRAM]),
    "becomes a program": ("os.execv('/bin/true', ['true'])", [PROGRAM]),
    "forks": ("os.fork()", [PROGRAM]),
    "starts a process": (
        "multiprocessing.get_context('fork').Process(target=print).start()", [PROGRAM]
    ),
    "both": ("os.system('true'); socket.socket()", [NETWORK, PROGRAM]),
    "without its descriptors": ("os.closerange(0, 64); socket.socket()", [NETWORK]),
    "with handlers of all signals": ("""
        for number in set(range(1, 32)) - {9, 19}: signal.signal(number, signal.SIG_IGN)
        socket.socket()""", [NETWORK]),
    "in a thread": ("""
        with ThreadPoolExecutor() as pool: pool.submit(socket.socket).result()""", [NETWORK]),
    "without Python": ("assert ctypes.CDLL(None).socket(2, 1, 0) >= 0", [NETWORK]),
    "and then a wrong answer": ("""
        try: socket.socket()
        except OSError: return "wrong" """, [NETWORK]),
    "again and again": ("""
        for _ in range(3000): ctypes.CDLL(None).socket(2, 1, 0)
        socket.socket()""", [NETWORK]),
    "and ends at once": ("""
        try: socket.socket()
        finally: os._exit(0)""", [NETWORK]),
}  # fmt: skip


@pytest.mark.parametrize("name", thinned(TRIES, 4))
def test_what_is_tried_in_vain_is_told(name, grade, tiers):
    statements, flags = TRIES[name]
    for tier in working(tiers):
        answer = grade(text_of(statements), tier)
        assert (answer.score, list(answer.flags)) == (0.0, flags), tier


def test_what_is_tried_while_the_file_is_loaded_is_told(grade, tiers):
    text = (
        f"{IMPORTS}\ntry: socket.socket()\nexcept OSError: pass\n\ndef use():\n    return 'done'\n"
    )
    for tier in working(tiers):
        answer = grade(text, tier)
        assert (answer.score, list(answer.flags)) == (4.0, [NETWORK]), tier


HARMLESS = {
    "the name of the machine": "socket.gethostname(), platform.node(), platform.uname().machine",
    "the platform": "platform.platform(), platform.processor(), platform.architecture()",
    "the user": "getpass.getuser()",
    "the home of another user": "os.path.expanduser('~root')",
    "threads": "with ThreadPoolExecutor(2) as pool: assert list(pool.map(abs, [-1])) == [1]",
    "numbers for names": "uuid.uuid4(), uuid.uuid5(uuid.NAMESPACE_DNS, 'x')",
    "a library that is looked for": "ctypes.util.find_library('m')",
    "a loader of data": "assert len(list(torch.utils.data.DataLoader([1, 2]))) == 2",
    "what torch knows": "torch.cuda.is_available(), torch.backends.mps.is_available()",
    "a gradient": "torch.ones(1, requires_grad=True).sum().backward()",
    "modules of Python": "import asyncio, http.client, ssl, webbrowser, xmlrpc.client, pty, venv",
    "modules of torch": """
        import torch.distributed, torch.multiprocessing, torch.utils.cpp_extension""",
    "a picture": """
        import matplotlib; matplotlib.use("Agg")
        import matplotlib.pyplot as plt
        plt.plot([1]); plt.title("x")""",
}  # fmt: skip


@pytest.mark.parametrize("name", thinned(HARMLESS, 4))
def test_what_right_answers_do_raises_no_flag(name, grade, tiers):
    for tier in working(tiers):
        answer = grade(text_of(HARMLESS[name]), tier)
        assert (answer.score, answer.flags) == (4.0, ()), (tier, answer.tests[0].message)
