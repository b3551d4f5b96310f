"""Loading a text: modules that are missing, a newer Python's syntax, a limit of time, and PyTorch's settings."""

from __future__ import annotations

import ast
import builtins
import gc
import json
import sys
import time
import types
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest
import torch

from autograder.bridge.inside import loading
from autograder.bridge.inside.worker import Worker
from autograder.bridge.shared.errors import (
    RemoteException,
    missing_name,
    student_raised,
    told_exception,
)
from autograder.course.reading import load_course
from autograder.failures.explain import explain
from autograder.failures.needs import unmet_need
from autograder.grading.grader import Grader
from autograder.grading.preparation import open_grader
from autograder.records import Grade, SourceFile, Submission
from autograder.selfcheck.check import check_target
from autograder.source.python_versions import newer_syntax, newer_than_oldest
from autograder.walls.outside.launcher import Sandbox
from tests.autograder.student_folder import RIGHT, copy_of
from tests.autograder.tiny_course import COURSE, write_tiny_course

NAME = "01_adding"
BELOW = 'Put what takes long, such as training, below `if __name__ == "__main__":`.'


def load(text: str, filename: str = "net.py", **how: object) -> tuple[types.ModuleType, dict]:
    server = Worker(types.ModuleType("submission"))
    told = server.load(text, filename, **how)
    return server.module, told


def cells(*texts: str) -> str:
    return json.dumps({"cells": [{"cell_type": "code", "source": text} for text in texts]})


@pytest.fixture(scope="module")
def grader(tmp_path_factory: pytest.TempPathFactory, sandbox: Sandbox) -> Iterator[Grader]:
    folder = write_tiny_course(tmp_path_factory.mktemp("loading") / "course")
    (folder / "course.yml").write_text(COURSE.replace("load_seconds: 5", "load_seconds: 1"))
    course = load_course(folder)
    grader = open_grader(course, sandbox, 7)
    yield grader
    grader.close()


def graded(grader: Grader, text: str, name: str = "adding.py") -> Grade:
    return grader.grade(Submission("ada", NAME, (SourceFile(name, text),)))


def messages(grade: Grade) -> set[str]:
    return {test.message for test in grade.tests if test.message}


# ------------------------------------------------------------------ modules that are missing

IMPORTS = [
    "from no_einops import rearrange, einsum",
    "import no_pandas as pd",
    "import no_sklearn.metrics",
    "import no_sklearn.metrics as metrics",
    "from no_sklearn.metrics import *",
    "from torch import no_such_name",
    "from typing import no_such_name",
    "from . import own_file",
    "if True:\n    import no_pandas",
    "from no_jaxtyping import Float\ndef f(x: Float[int, 'b t']) -> Float[int, 'b'] | None: pass",
    "import no_jaxtyping as jt\ndef f(x: jt.Float[int, 'b t'], y: 'int' = 1) -> int | jt.Int: pass",
    "from no_beartype import beartype\n@beartype\ndef unused(x): pass",
    "from no_jaxtyping import jaxtyped, checker\n@jaxtyped(typechecker=checker)\ndef unused(x): pass",
    "import no_lightning as pl\nclass Unused(pl.LightningModule):\n    pass",
    "from no_torchinfo import summary\nif __name__ == '__main__':\n    summary(1)",
]


@pytest.mark.parametrize("line", IMPORTS)
def test_missing_module_that_is_not_used_costs_nothing(line: str) -> None:
    module, told = load(f"{line}\n\ndef answer():\n    return 1\n")
    assert told["errors"] == [] and module.answer() == 1 and told["absent"]


@pytest.mark.parametrize(
    "lines",
    [
        "import no_seaborn as sns\nsns.set_theme(style='white')",
        "import no_pandas as pd\npd.set_option('display.width', 9)",
        "from no_colab import drive\ndrive.mount('/content/drive')\nimport no_wandb\nno_wandb.init()",
        "import no_wandb\ndef begin():\n    no_wandb.init()\nbegin()",
    ],
)
@pytest.mark.parametrize("name", ["net.py", "net.ipynb"])
def test_a_call_of_a_missing_module_at_the_top_does_not_stop_the_file(
    lines: str, name: str
) -> None:
    text = f"from __future__ import annotations\n{lines}\ndef answer(x: unknown) -> int:\n    return x\n"
    module, told = load(cells(text) if name.endswith(".ipynb") else text, name)
    assert told["errors"] == [] and module.answer(1) == 1 and told["absent"]


NOT_HERE = {
    "a logger": "import no_board\nwriter = no_board.SummaryWriter()\nwriter.add_scalar('loss', 1)",
    "text of nanoGPT": """
        with open("input.txt") as f:
            text = f.read()
        chars = sorted(set(text))
        vocab_size = len(chars)
        def encode_all():
            return [chars.index(c) for c in text]
        data = encode_all()
        print(f"{vocab_size} characters")
    """,
    "a folder of Colab": "import os\nos.chdir('/content/drive/MyDrive')",
    "a graphics card": "import torch\nmodel = torch.nn.Linear(1, 1).cuda()\nprint(model(torch.ones(1, 1)))",
    "a program": "import subprocess\nsubprocess.run(['no-nvidia-smi'])",
    "a class on data": "rows = open('no.csv').readlines()\nclass Rows:\n    count = len(rows)\nprint(Rows.count)",
}


@pytest.mark.parametrize("name", ["net.py", "net.ipynb"])
@pytest.mark.parametrize("lines", NOT_HERE.values(), ids=NOT_HERE)
def test_what_needs_the_students_computer_does_not_stop_the_file(lines: str, name: str) -> None:
    text = f"from __future__ import annotations\n{dedent(lines)}\ndef answer(x: unknown):\n    return x\n"
    module, told = load(cells(text) if name.endswith(".ipynb") else text, name)
    assert module.answer(1) == 1
    (error,) = told["errors"]
    assert error["type"] in (
        "AssertionError",
        "FileNotFoundError",
        "ModuleNotFoundError",
        "RuntimeError",
    )


FAILING = {
    "a check": ("assert 1 == 2, 'one is not two'", "AssertionError"),
    "an own error": ("raise ImportError('own')", "ImportError"),
    "a module by its name": ("__import__('no_sns')", "ModuleNotFoundError"),
    "a misspelt name": ("print(misspelt)", "NameError"),
    "a division": ("x = [1, 2]; y = 1 / 0; z = 3", "ZeroDivisionError"),
    "what is not written": (
        "raise NotImplementedError('it is not written yet.')",
        "NotImplementedError",
    ),
    "a class": ("class Late(int, str):\n    pass", "TypeError"),
    "a block": ("if True:\n    z = 3\n    1 / 0", "ZeroDivisionError"),
    "a wait": ("import asyncio\nawait asyncio.sleep('x')\nz = 3", "TypeError"),
    "what was cancelled": ("import asyncio\nraise asyncio.CancelledError", "CancelledError"),
    "a cancelled wait": (
        "import asyncio\nasync def ended():\n    raise asyncio.CancelledError\nawait ended()",
        "CancelledError",
    ),
    "a task that cancels itself": (
        "import asyncio\nasync def cancelled():\n    asyncio.current_task().cancel()\n"
        "    await asyncio.sleep(0)\nawait cancelled()",
        "CancelledError",
    ),
    "a skip of pytest": ("import pytest\npytest.skip(allow_module_level=True)", "Skipped"),
    "a generator's end": ("raise GeneratorExit", "GeneratorExit"),
    "an own kind of stop": ("class Stop(BaseException): pass\nraise Stop", "Stop"),
    "a name without a hash": ("late = NameError('x')\nlate.name = []\nraise late", "NameError"),
    "a name that cannot be hashed": (
        "class Name(str):\n    def __hash__(self): return 1 / 0\nlate = NameError('x')\n"
        "late.name = Name('x')\nraise late",
        "NameError",
    ),
    "a name that cannot be read": (
        "class Late(NameError):\n    @property\n    def name(self): return 1 / 0\nraise Late('x')",
        "Late",
    ),
    "a module's name without a hash": (
        "from no_einops import rearrange\ntry: rearrange(1)\nexcept ImportError as late:\n"
        "    late.name = []\n    raise",
        "ModuleNotFoundError",
    ),
    "an error that says nothing of itself": (
        "class Late(ImportError):\n    def __getattribute__(self, name): return 1 / 0\n"
        "raise Late('x')",
        "Late",
    ),
    "a syntax error of its own": ("raise SyntaxError('odd', (5, 'six', [], 7))", "SyntaxError"),
}
REMOVING = {
    "all modules": "import sys\nsys.modules.clear()",
    "by their text": "from unittest import mock\nmock.patch.dict('sys.modules', clear=True).start()",
    "by a computed name": "import sys\ngetattr(sys, 'mod' + 'ules').clear()",
    "all modules, and a wait": "import asyncio, sys\nsys.modules.clear()\nawait asyncio.sleep(0)",
    "PyTorch, and another import": (
        "import sys\nfor name in [*sys.modules]:\n    if name.startswith('torch'):\n"
        "        del sys.modules[name]\nimport torch.nn"
    ),
    "one, in whose place another one comes": (
        "import sys, types\nif True:\n    del sys.modules['torch.nn']\n"
        "    sys.modules['another'] = types.ModuleType('another')"
    ),
    "the newest, in whose place another one comes": (
        "import sys, types\nif sys.modules.popitem():\n    sys.modules['another'] = types.ModuleType('another')"
    ),
    "the table of modules": "import sys\nsys.modules = {}\nimport torch",
}


@pytest.mark.parametrize("name", ["net.py", "net.ipynb"])
@pytest.mark.parametrize("lines", FAILING)
def test_a_statement_that_fails_stops_itself_alone(lines: str, name: str) -> None:
    line, kind = FAILING[lines]
    text = f"from __future__ import annotations\ndef above(x: unknown):\n    return 1\n{line}\n" + (
        "follows = y if 'y' in globals() else 0\ndef answer(x: unknown) -> int:\n    return x\n"
    )
    module, told = load(cells(text) if name.endswith(".ipynb") else text, name)
    assert module.above(1) == module.answer(1) == 1
    assert [error["type"] for error in told["errors"]] == [kind]
    assert getattr(module, "z", 3) == 3


@pytest.mark.parametrize("before_fork", [False, True])
@pytest.mark.parametrize("name", ["net.py", "net.ipynb"])
@pytest.mark.parametrize("lines", REMOVING)
def test_modules_that_a_text_removes_are_there_again(
    lines: str, name: str, before_fork: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "modules_before_fork", {})
    if before_fork:
        loading.remember_modules()
    table = sys.modules
    there = dict(table)
    pieces = [REMOVING[lines], "1 / 0", "def answer():\n    return 1\n"]
    try:
        module, told = load(cells(*pieces) if name == "net.ipynb" else "\n".join(pieces), name)
        assert sys.modules is table and there.keys() <= table.keys()
    finally:
        sys.modules = table
        table.update(there)
    assert module.answer() == 1
    assert [error["type"] for error in told["errors"]] == ["ZeroDivisionError"]


def test_the_first_cause_is_named_and_not_what_follows() -> None:
    text = "a = 1 / 0\nb = a + 1\nprint(b)\n@a\ndef f(): pass\nf()\nimport no_pandas\n"
    text += "table = no_pandas.read()\nrows = no_pandas.more()\nprint(table, rows)\n"
    for _, told in (load(text), load(cells(*text.splitlines()), "net.ipynb")):
        kinds = [error["type"] for error in told["errors"]]
        assert kinds[0] == "ZeroDivisionError" and "NameError" not in kinds
        assert kinds.count("ModuleNotFoundError") == 1


@pytest.mark.parametrize("name", ["net.py", "net.ipynb"])
def test_names_beside_the_solutions_are_bound_and_deleted(name: str) -> None:
    text = "x = y = 1\ndel x\ndef f(): return 1\ndel f\nasync def g(): return y\nz = await g()\n"
    module, told = load(
        cells(text) if name.endswith(".ipynb") else text, name, stand_ins={"f": False}
    )
    assert told["errors"] == [] and (module.y, module.z) == (1, 1)
    assert not hasattr(module, "x") and hasattr(module, "f")


@pytest.mark.parametrize("name", ["net.py", "net.ipynb"])
@pytest.mark.parametrize("line", ["import sys; sys.exit()", "exit()", "raise KeyboardInterrupt"])
def test_what_ends_the_process_ends_the_text(line: str, name: str) -> None:
    pieces = ["def above():\n    return 1", line, "def answer():\n    return 1\n"]
    text = cells(*pieces) if name.endswith(".ipynb") else "\n".join(pieces)
    module, told = load(text, name)
    assert module.above() == 1 and not hasattr(module, "answer")
    assert len(told["errors"]) == 1


USES = {
    "call": "def f(x):\n    return rearrange(x)",
    "call without arguments": "def f(x):\n    return rearrange()",
    "attribute's call": "def f(x):\n    return rearrange.more(x)",
    "item": "def f(x):\n    return rearrange['a'](x)",
    "arithmetic": "def f(x):\n    return x + rearrange",
    "matrix product": "def f(x):\n    return rearrange @ x",
    "iteration": "def f(x):\n    return list(rearrange)",
    "condition": "def f(x):\n    return 1 if rearrange else 2",
    "type": "def f(x):\n    return isinstance(x, rearrange)",
    "context": "def f(x):\n    with rearrange:\n        return x",
    "decorated": "@rearrange\ndef f(x):\n    return x",
    "decorated class": "@rearrange\nclass f:\n    pass",
    "decorated with options": "@rearrange(typechecker=rearrange)\ndef f(x):\n    return x",
    "base class": "class f(rearrange):\n    pass",
    "base class with options": "class f(rearrange, frozen=True):\n    pass",
    "import inside": "def f(x):\n    import no_einops\n    return x",
}


@pytest.mark.parametrize("name", USES)
def test_use_of_a_missing_module_raises_the_error_of_its_import(name: str) -> None:
    module, told = load(f"from no_einops import rearrange\n{USES[name]}\n")
    assert told["errors"] == []
    for _ in range(2):
        with pytest.raises(ModuleNotFoundError, match="No module named 'no_einops'"):
            module.f(1)


def test_only_the_students_own_imports_are_forgiven(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = builtins.__import__
    (tmp_path / "library_without_einops.py").write_text("import no_einops\nx = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    module, told = load("import library_without_einops as helper\ndef f():\n    return helper.x\n")
    assert builtins.__import__ is before
    assert told["absent"] == [["no_einops", 1, "net.py"]], (
        "an error of the helper is one of its import"
    )
    with pytest.raises(ModuleNotFoundError, match="no_einops"):
        module.f()()


def test_a_grade_names_the_missing_module(grader: Grader) -> None:
    unused = RIGHT.replace("STEP = 1", "from no_einops import rearrange\nSTEP = 1")
    assert graded(grader, unused).score == 10
    used = unused.replace("together = a + b", "together = rearrange(a, b)")
    grade = graded(grader, used)
    assert 0 < grade.score < 10
    line = used[: used.index("together = rearr")].count("\n") + 1
    sentence = f"Your code uses `no_einops`, and there is no such module where it runs (line {line}).\n    together ="
    assert all(
        message.startswith(sentence) for message in messages(grade) if "waits" not in message
    ), messages(grade)
    decorated = unused.replace("def add(", "@rearrange\ndef add(")
    assert "Your code uses `no_einops`, and there is no such module where it runs." in messages(
        graded(grader, decorated)
    )


def test_a_graphics_card_that_is_missing_is_named() -> None:
    file = SourceFile("net.py", "x.to('cuda')\n")
    claim = RemoteException("AssertionError", (), "Torch not compiled with CUDA enabled")
    assert (
        "asks for the device `cuda`, and there is none"
        in explain(student_raised(claim), full=False, file=file).message
    )
    assert unmet_need(claim, SourceFile("net.py", "x")) == ""


# ------------------------------------------------------------------ a newer Python

NEWER = [
    ('x = f"{d["a"]}"', (3, 12)),
    ("x = rf'{d['a']}'", (3, 12)),
    ('x = f"{"\\n".join(a)}"', (3, 12)),
    ("class A[T]:", (3, 12)),
    ("def f[T](x: T) -> T:", (3, 12)),
    ("async def f[T: int](x):", (3, 12)),
    ("type X = int", (3, 12)),
    ("type X[T] = list[T]", (3, 12)),
    ("except* ValueError:", (3, 11)),
    ("except ValueError, TypeError:", (3, 14)),
    ('x = t"{a}"', (3, 14)),
    ("y = x[*rows]", (3, 11)),
]


@pytest.mark.parametrize(("line", "version"), NEWER)
def test_syntax_of_a_newer_python_is_recognised(line: str, version: tuple[int, int]) -> None:
    told = newer_syntax(line, (3, 10))
    assert told is not None and told.version == version
    assert newer_syntax(line, version) is None


@pytest.mark.parametrize(
    "line",
    [
        "def f(x: T:", "class A(T:", 'x = f"{d["', 'x = f"{d}" + "a', "x = f'{a!r}' 'b", "type(x) = 3",
        "y = x[a * b] = = 1", "except ValueError", "x = print 'a'", "for t in 'abc'",
    ],
)  # fmt: skip
def test_other_errors_are_not_blamed_on_python(line: str) -> None:
    with pytest.raises(SyntaxError):
        ast.parse(line)
    assert newer_syntax(line, (3, 10)) is None


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("from typing import Any, override\n", 1),
        ("x = 1\nimport tomllib\n", 2),
        ("x = 1\n\ntry:\n    pass\nexcept* ValueError:\n    pass\n", 5),
    ],
)
def test_text_that_the_oldest_python_cannot_read_is_found(text: str, line: int) -> None:
    if sys.version_info < (3, 11):
        pytest.skip("This Python cannot read it either.")
    assert newer_than_oldest(text).line == line
    assert newer_than_oldest("from typing import Any\nx = f'{1}'\n") is None


@pytest.mark.skipif(sys.version_info < (3, 12), reason="reads it itself since 3.12")
@pytest.mark.parametrize(
    "text",
    [
        'x = f"{d["a"]}"',
        "class A[T]: pass",
        "type X = int",
        'x = f"{"\\n".join(a)}"',
        'x = f"{f"{1}"}"',
    ],
)
def test_newer_text_is_found_by_the_python_that_reads_it(text: str) -> None:
    told = newer_than_oldest(f"y = 1\n{text}\n")
    assert told is not None and told.line == 2 and told.version == (3, 12)
    assert newer_than_oldest('x = f"{d[\'a\']}" + "\\n"') is None


@pytest.mark.skipif(sys.version_info < (3, 12), reason="this Python cannot read it")
def test_check_warns_of_what_an_older_grader_cannot_read(released: Path, tmp_path: Path) -> None:
    folder = copy_of(released, tmp_path)
    (folder / "adding.py").write_text(RIGHT + '\nd = {"a": 1}\nx = f"{d["a"]}"\n')
    report = check_target(folder / "adding.py")
    assert (
        report.all_passed
        and "needs Python 3.12 or later" in str(report.warnings)
        and "Python 3.10" in str(report.warnings)
    )


def test_a_name_of_a_newer_library_is_named(grader: Grader) -> None:
    if sys.version_info >= (3, 14):
        pytest.skip("there is no newer one in the table")
    text = RIGHT.replace("STEP = 1", "from functools import Placeholder\nSTEP = 1")
    assert graded(grader, text).score == 10
    told = messages(
        graded(grader, text.replace("together = a + b", "together = Placeholder(a, b)"))
    )
    assert any(
        "has no `functools.Placeholder`: `functools.Placeholder` needs Python 3.14" in each
        for each in told
    ), told


# ------------------------------------------------------------------ a limit of time

SPINS = "while True:\n    pass\n"


REFUSED = {
    "a late future": "from __future__ import annotations",
    "an unknown future": "from __future__ import nothing",
    "a late global": "global above",
    "a late global in a block": "for _ in range(0):\n    above = 2\n    global above",
    "a return": "return above",
    "a break": "if above:\n    break",
    "a nonlocal name": "def f():\n    nonlocal above",
    "a wait in a function": "def f():\n    await above",
    "a deleted call": "del above()",
}


@pytest.mark.parametrize("line", REFUSED.values(), ids=REFUSED)
def test_nothing_runs_of_a_text_that_python_does_not_compile(line: str) -> None:
    text = f"above = 1\n{line}\n"
    with pytest.raises(SyntaxError) as refused:
        compile(text, "net.py", "exec", dont_inherit=True)
    module, told = load(text)
    (error,) = map(told_exception, told["errors"])
    assert (error.type, refused.value.msg in error.text) == ("SyntaxError", True)
    assert not hasattr(module, "above")


@pytest.mark.parametrize("more", ["", " and SWITCH", " and above and 1 / 0"])
def test_what_stands_below_main_is_not_compiled(more: str) -> None:
    block = f"if __name__ == '__main__'{more}:\n    yield 1\nelse:\n    below = 1\n"
    module, told = load(f"{block}for _ in range(2):\n    above = below\n")
    assert (module.above, told["errors"]) == (1, [])


LONG = {
    "an endless loop": SPINS,
    "a sleep that swallows": (
        "for _ in range(9**9):\n    try:\n        __import__('time').sleep(9)\n"
        "    except Exception:\n        pass\n"
    ),
    "a wait": "await __import__('asyncio').sleep(99)\n",
    "a wait that spins": "async def spin():\n    while True:\n        pass\nawait spin()\n",
    "a class": "class Late:\n    while True:\n        pass\n",
    "a decorator": "@(lambda f: all(iter(int, 1)) or [zero for zero in iter(int, 1) if zero])\ndef late(): pass\n",
    "a block": "with __import__('contextlib').suppress(ValueError):\n    while True: pass\n",
}


@pytest.fixture
def frozen() -> Iterator[None]:
    """As in a worker: the limit of a short statement does not pay for a collection of all that pytest holds."""
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("frozen")
@pytest.mark.parametrize("name", ["net.py", "net.ipynb"])
@pytest.mark.parametrize("text", LONG.values(), ids=LONG)
def test_the_limit_stops_one_statement(text: str, name: str) -> None:
    text = f"def f():\n    return 1\n\n{text}\ndef g():\n    return 2\nx = g()\n"
    module, told = load(cells(text) if name.endswith("b") else text, name, limit=0.2)
    assert (module.f(), module.g(), module.x) == (1, 2, 2)
    ((_, line),) = told["stopped"]
    assert text.splitlines()[line - 1][:5] not in ("", "def g", "x = g")
    error = told_exception(told["errors"][0])
    assert BELOW in str(missing_name("h", [error])) and "took too long in" in str(
        missing_name("h", [error])
    )


@pytest.mark.usefixtures("frozen")
@pytest.mark.parametrize("name", ["net.py", "net.ipynb"])
def test_many_long_statements_leave_time_for_a_definition_below_them(name: str) -> None:
    """Together, they end long before the grader's own limit, which is twice this one."""
    pieces = [f"for x{number} in iter(int, 1): pass" for number in range(12)]
    pieces += ["def g():\n    return 1", "print(x3)"]
    text = cells(*pieces) if name.endswith("b") else "\n".join(pieces)
    begun = time.process_time()
    module, told = load(text, name, limit=1.0)
    assert module.g() == 1
    assert len(told["stopped"]) == len(told["errors"]) == 12, "the NameError follows from them"
    assert time.process_time() - begun < 2.5


@pytest.mark.usefixtures("frozen")
@pytest.mark.parametrize("name", ["net.py", "net.ipynb"])
def test_a_second_loading_skips_what_was_stopped(name: str) -> None:
    place = [f"{name} cell 1" if name.endswith("b") else name, 2]
    text = f"x = 1\n{SPINS}y = 1"
    module, told = load(
        cells(text, "z = y") if name.endswith("b") else f"{text}\nz = y",
        name,
        limit=30.0,
        skipped=[place],
    )
    assert (module.x, module.y, module.z) == (1, 1, 1) and told["stopped"] == [place]


def test_a_file_that_ends_itself_is_flagged(grader: Grader) -> None:
    grade = graded(grader, f"{RIGHT}\nexit()\n")
    assert grade.score == 10
    assert grade.flags == (
        f"Line {RIGHT.count(chr(10)) + 2} ended the file: what stands below it was not read.",
    )


# ------------------------------------------------------------------ settings of PyTorch

SETTINGS = """
import torch
torch.set_default_dtype(torch.float64)
torch.autograd.set_detect_anomaly(True)
torch.set_grad_enabled(False)
torch.set_default_device("meta")
torch.use_deterministic_algorithms(True)
torch.set_num_threads(2)
torch.set_num_interop_threads(2)
torch.set_num_interop_threads(1)
torch.manual_seed(3)
torch.set_printoptions(precision=2)
"""


def state() -> tuple:
    return (
        *(torch.get_default_dtype(), torch.is_grad_enabled(), torch.is_anomaly_enabled()),
        *(
            torch.get_num_threads(),
            torch.are_deterministic_algorithms_enabled(),
            torch.ones(1).device.type,
        ),
        torch.is_deterministic_algorithms_warn_only_enabled(),
    )


def test_settings_of_a_text_end_with_its_loading() -> None:
    before = state()
    assert load(SETTINGS)[1]["errors"] == [] and state() == before


COMPILED = """
import torch

@torch.compile
def f(x):
    return x + 1

@torch.compile(mode="reduce-overhead")
def g(x):
    return x + 1

@torch.jit.script
def h(x):
    return x + 1

class Net(torch.nn.Module):
    def forward(self, x):
        return x + 1

net = torch.compile(Net())
"""


@pytest.mark.parametrize("name", ["net.py", "net.ipynb"])
def test_compiled_functions_are_called_as_they_are(name: str) -> None:
    compiler = torch.compile
    module, told = load(COMPILED if name == "net.py" else cells(COMPILED), name)
    assert told["errors"] == [] and torch.compile is compiler
    assert {int(each(torch.ones(()))) for each in (module.f, module.g, module.h, module.net)} == {2}
