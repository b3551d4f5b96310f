"""Whatever stands for a built-in, a shell or a library is called as the real one is, and answers in the same kind."""

from __future__ import annotations

import ast
import builtins
import getpass
import importlib
import inspect
import json
import pdb
import sys
import types
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any

import IPython
import pytest
import torch
from IPython.core import debugger, display_functions
from IPython.core.events import EventManager
from IPython.core.interactiveshell import InteractiveShell

from autograder import notebook
from autograder.bridge.inside import loading, shell, surroundings
from autograder.bridge.inside.absent import absent_allowed
from autograder.bridge.inside.server import Server
from autograder.bridge.outside.remote import RemoteStudent
from autograder.bridge.outside.worker_connection import WorkerConnection
from autograder.course.config import Limits
from autograder.selfcheck.check import check_target
from autograder.walls.outside.launcher import Sandbox
from tests.autograder.student_folder import RIGHT, copy_of

# ------------------------------------------------------------------ signatures

OWN = {"captured", "user_ns", "config", "display_formatter"}
METHODS = [name for name in vars(shell.Shell) if name[:1] != "_" and name not in OWN]


def stand_in_of(target: Any, name: str) -> Callable[..., Any]:
    with surroundings.nobody_there("net.py", shell.Shell({})):
        found: Callable[..., Any] = getattr(target, name)
    return found


def own_import() -> Callable[..., Any]:
    with absent_allowed("net.py", ast.parse(""), []):
        return builtins.__import__


PAIRS: dict[str, tuple[Any, Any]] = {
    **{
        f"Shell.{name}": (getattr(shell.Shell, name), getattr(InteractiveShell, name))
        for name in METHODS
        if callable(getattr(InteractiveShell, name, None))
    },
    **{
        f"Events.{name}": (getattr(shell.Events, name), getattr(EventManager, name))
        for name in ("register", "unregister", "trigger")
    },
    **{
        f"notebook.{name}": (stand_in, getattr(notebook, name))
        for name, stand_in in vars(shell.silent_notebook()).items()
        if inspect.isfunction(stand_in)
    },
    "display": (shell.display, display_functions.display),
    "clear_output": (shell.clear_output, display_functions.clear_output),
    "get_ipython": (stand_in_of(IPython, "get_ipython"), IPython.get_ipython),
    "IPython.embed": (stand_in_of(IPython, "embed"), IPython.embed),
    "IPython.set_trace": (stand_in_of(debugger, "set_trace"), debugger.set_trace),
    "pdb.set_trace": (stand_in_of(pdb, "set_trace"), pdb.set_trace),
    "getpass": (stand_in_of(getpass, "getpass"), getpass.getpass),
    "torch.compile": (loading.uncompiled, torch.compile),
}


def takes(real: inspect.Parameter, parameters: dict[str, inspect.Parameter]) -> bool:
    """Whether a parameter of the real thing can be given to the stand-in in the same ways."""
    own = parameters.get(real.name)
    kinds = {parameter.kind for parameter in parameters.values()}
    if own is not None and real.kind is own.kind:
        return (own.default is inspect.Parameter.empty) <= (real.default is inspect.Parameter.empty)
    by_name = real.kind in (real.KEYWORD_ONLY, real.POSITIONAL_OR_KEYWORD, real.VAR_KEYWORD)
    by_place = real.kind in (real.POSITIONAL_ONLY, real.POSITIONAL_OR_KEYWORD, real.VAR_POSITIONAL)
    return (not by_name or real.VAR_KEYWORD in kinds) and (
        not by_place or real.VAR_POSITIONAL in kinds
    )


@pytest.mark.parametrize("name", PAIRS)
def test_a_stand_in_has_the_signature_of_the_real_one(name: str) -> None:
    own, real = map(inspect.signature, PAIRS[name])
    parameters = dict(own.parameters)
    for parameter in real.parameters.values():
        assert takes(parameter, parameters), f"{name}{own} for {real}: {parameter}"


def test_every_function_of_the_notebook_has_a_stand_in() -> None:
    real = {
        name
        for name, value in vars(notebook).items()
        if inspect.isfunction(value) and name[:1] != "_" and value.__module__ == notebook.__name__
    }
    assert real <= vars(shell.silent_notebook()).keys()


def test_import_is_called_as_python_calls_it() -> None:
    own = own_import()
    assert own("math", fromlist=["pi"]).pi == own("math", globals=None, locals=None, level=0).pi
    assert own("math", {}, {}, None, 0) is own("math", None, None, ["pi"])
    assert list(inspect.signature(own).parameters) == [
        *("name", "globals", "locals", "fromlist", "level")
    ]


# ------------------------------------------------------------------ what students' files call

# each text leaves its answer in `found`
BOTH = {
    "a codec by its name": ("with open(NAME, 'w', encoding='cp1252') as f: f.write('é')", None),
    "an import by keyword": ("found = __import__('math', fromlist=['pi']).floor(1.5)", 1),
    "print": ("import sys; print(1, 2, sep='', end='', file=sys.stderr, flush=True)", None),
    "stdout's encoding": ("import sys; sys.stdout.reconfigure(encoding='utf-8')", None),
    "a terminal": ("import sys; found = sys.stdout.isatty(), sys.stdin.isatty()", (False, False)),
    "arguments": (
        "import argparse; p = argparse.ArgumentParser(); p.add_argument('--n', default=3); "
        "found = p.parse_args().n", 3),
    "the file's name": ("from pathlib import Path; found = Path(__file__).stem", "net"),
    "a breakpoint": (
        "breakpoint(); breakpoint('why', header=1); import pdb; pdb.set_trace()", None),
    "input": ("try:\n    input('? ')\nexcept EOFError:\n    found = 1", 1),
    "a password": (
        "import getpass\ntry:\n    getpass.getpass(prompt='? ')\nexcept EOFError:\n"
        "    found = 1", 1),
    "get_ipython": (
        "from IPython import get_ipython; get_ipython().run_line_magic('matplotlib', 'inline')",
        None),
    "a shell command": ("found = get_ipython().system('ls')", None),
    "its output": (
        "x = get_ipython().getoutput('ls'); found = (x.n, x.s, x.l, '\\n'.join(x), list(x))",
        ("", "", [], "", [])),
    "the namespace": ("x = 3; found = get_ipython().user_ns['x']", 3),
    "run again": (
        "r = get_ipython().run_cell('x = 4'); r.raise_error(); found = r.success, x", (True, 4)),
    "which shell": ("found = type(get_ipython()).__name__ == 'ZMQInteractiveShell'", False),
    "display": ("found = display(1, 2, raw=True, metadata={})", None),
    "IPython's display": (
        "from IPython.display import display, HTML, Image, Markdown, Audio, clear_output, update_display; "
        "h = display(HTML('<b>1</b>'), display_id='a'); h.update(Markdown('x')); "
        "clear_output(wait=True); update_display(1, display_id='a'); found = h.display_id", "a"),
    "tqdm.auto": (
        "from tqdm.auto import tqdm, trange; "
        "found = list(tqdm(range(3), desc='x')), len(trange(2))", ([0, 1, 2], 2)),
    "tqdm.notebook": (
        "from tqdm.notebook import tqdm\nwith tqdm(total=3) as bar:\n    bar.update(2)\n"
        "    bar.set_postfix(loss=1)\nfound = [x for x in tqdm([1, 2], leave=False)]", [1, 2]),
    "widgets": (
        "import ipywidgets as widgets; from ipywidgets import interact, IntSlider, VBox; "
        "s = IntSlider(min=0, max=3, value=2); s.observe(print, names='value'); "
        "display(VBox([s])); found = s.value", 2),
    "a window": (
        "import matplotlib; matplotlib.use('TkAgg'); import matplotlib.pyplot as plt; "
        "plt.figure(); plt.plot([1]); plt.show()", None),
    "a thread": (
        "import threading; found = []; t = threading.Thread(target=found.append, args=(1,)); "
        "t.start(); t.join()", [1]),
    "a loop of its own": (
        "import asyncio\nasync def f():\n    await asyncio.sleep(0)\n    return 3\n"
        "found = asyncio.run(f())", 3),
    "await": (
        "import asyncio\nasync def f():\n    await asyncio.sleep(0.01)\n    return 3\n"
        "found = await f()", 3),
    "async for": ("async def f():\n    yield 1\nasync for found in f():\n    pass", 1),
}  # fmt: skip
IN_NOTEBOOKS = {
    "Colab's card": (
        "info = !nvidia-smi\ninfo = '\\n'.join(info)\nfound = info.find('failed') >= 0", False),
    "the environment": (
        "%env OWN_NAME=x\ny = %env OWN_NAME\nall = %env\nfound = y, all['OWN_NAME']", ("x", "x")),
    "a timing": ("x = %timeit -o -n 1 sum([1])\nfound = x.average + x.best >= 0", True),
    "magics": (
        "%load_ext autoreload\n%autoreload 2\n%matplotlib widget\n%pip install x\n"
        "%config X.y = 1\n!pip -q install x", None),
    "the notebook's functions": (
        "from autograder.notebook import check, hint, watch_training; r = check('mask'); "
        "hint('mask', again=True); watch_training(3, title='x')(1, 2.0); found = r.passed", False),
}  # fmt: skip


def loaded(text: str, form: str) -> tuple[dict[str, Any], dict[str, Any]]:
    if form == "ipynb":
        text = json.dumps({"cells": [{"cell_type": "code", "source": text}]})
    server = Server(types.ModuleType("submission"))
    told = server.load(text, f"net.{form}")
    return vars(server.module), told


CASES = [
    *[(name, form, *BOTH[name]) for name in BOTH for form in ("py", "ipynb")],
    *[(name, "ipynb", *IN_NOTEBOOKS[name]) for name in IN_NOTEBOOKS],
]


@pytest.mark.parametrize(("name", "form", "text", "answer"), CASES, ids=lambda case: str(case)[:30])
def test_what_runs_at_home_runs_here(
    name: str, form: str, text: str, answer: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OWN_NAME", raising=False)
    monkeypatch.setattr(sys, "stdout", surroundings.Output())
    found, told = loaded(f"NAME = 'notes.txt'\n{dedent(text)}\ndef after():\n    return 1", form)
    assert told["errors"] == [] and told["absent"] == []
    assert found.get("found") == answer and found["after"]() == 1


def test_nothing_of_it_stays(tmp_path: Path) -> None:
    watched = [(sys, "argv"), (sys, "stdin"), (sys, "breakpointhook"), (IPython, "get_ipython")]
    before = [getattr(target, name) for target, name in watched]
    finders = list(sys.meta_path)
    loaded("from IPython import get_ipython\nimport matplotlib\nmatplotlib.use('TkAgg')", "py")
    assert all(getattr(target, name) is old for (target, name), old in zip(watched, before))
    assert sys.meta_path == finders


def test_cells_and_their_values_have_names() -> None:
    sources = ["x = 2", "x + 1", "_ + 10", "x;", "found = (_, __, _2, Out[3], In[1], len(In), _i)"]
    text = json.dumps({"cells": [{"cell_type": "code", "source": each} for each in sources]})
    server = Server(types.ModuleType("submission"))
    told = server.load(text, "net.ipynb")
    assert told["errors"] == []
    assert vars(server.module)["found"] == (13, 3, 3, 13, "x = 2", 6, "x;")


@pytest.mark.parametrize("name", ["widgets", "tqdm.notebook", "tqdm.auto"])
def test_bars_and_widgets_that_are_not_installed_do_nothing(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = importlib.machinery.PathFinder.find_spec

    def without(fullname: str, *where: Any) -> Any:
        return (
            None if fullname.partition(".")[0] in ("tqdm", "ipywidgets") else real(fullname, *where)
        )

    for module in [
        each for each in sys.modules if each.partition(".")[0] in ("tqdm", "ipywidgets")
    ]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setattr(importlib.machinery.PathFinder, "find_spec", without)
    text, answer = BOTH[name]
    found, told = loaded(dedent(text), "ipynb")
    assert told == {"errors": [], "stopped": [], "absent": []} and found["found"] == answer


# ------------------------------------------------------------------ in a worker, and in calls

IN_CALLS = """
import asyncio

def called():
    import matplotlib
    matplotlib.use("TkAgg")
    import matplotlib.pyplot as plt
    from tqdm.notebook import tqdm
    from IPython import get_ipython
    plt.plot([1]); plt.show()
    breakpoint()
    help(len)
    assert get_ipython() is not None and exit and quit

    async def soon():
        return await asyncio.to_thread(int, "3")

    return [asyncio.run(soon()), *tqdm([1, 2])]
"""


def test_the_same_holds_in_calls_in_a_worker(sandbox: Sandbox) -> None:
    connection = WorkerConnection(sandbox.spawn(Limits()), Limits().call_seconds)
    try:
        assert connection.request("load", text=IN_CALLS, filename="net.py")["errors"] == []
        connection.start_test(3)
        assert RemoteStudent(connection).called() == [3, 1, 2]
    finally:
        connection.close()


def test_check_asks_nobody(released: Path, tmp_path: Path) -> None:
    folder = copy_of(released, tmp_path)
    text = RIGHT.replace("together = a + b", "breakpoint(); together = a + b")
    (folder / "adding.py").write_text(
        f"{text}\nimport sys\nsys.stdout.reconfigure(encoding='utf-8')\n"
    )
    report = check_target(folder / "adding.py")
    assert report.all_passed and report.failures == ()
