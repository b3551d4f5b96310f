"""The names that a submission uses, and equality of two texts, determined without running them."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from types import ModuleType

import pytest

from autograder.bridge.inside.server import Server
from autograder.bridge.outside.worker_connection import WorkerConnection
from autograder.bridge.shared.errors import StudentError
from autograder.course.config import Limits
from autograder.course.reading import load_course
from autograder.source import pieces as pieces_module
from autograder.source import text as source
from autograder.source.names_used import Words, names_used
from tests.autograder.sampling import sampled

ROOT = Path(__file__).resolve().parents[2]


def used(text, filename="net.py"):
    return {name for name, *_ in names_used(text, filename)["uses"]}


def notebook(*cells):
    return json.dumps({"cells": [{"cell_type": "code", "source": cell} for cell in cells]})


NORM = "torch.nn.LayerNorm"
FOUND = [
    "import torch\ntorch.nn.LayerNorm(3)",
    "import torch as t\nx = t.nn.LayerNorm",
    "import torch.nn\ntorch.nn.LayerNorm(3)",
    "import torch.nn as nn\nnn.LayerNorm(3)",
    "from torch import nn as n\nn.LayerNorm(3)",
    "from torch.nn import LayerNorm as L\nL(3)",
    "from torch.nn import *\nLayerNorm(3)",
    "def f():\n    return LayerNorm(3)\nfrom torch.nn import *",
    "from torch import nn\na = nn\nb = a.LayerNorm",
    "from torch import nn\na = b = nn\nb.LayerNorm",
    "from torch import nn\na: object = nn\na.LayerNorm",
    "from torch import nn\nprint((a := nn))\na.LayerNorm",
    "from torch import nn\nclass A(nn.LayerNorm): pass",
    "from torch import nn\nclass A:\n    def f(self):\n        return nn.LayerNorm(3)",
    "class A:\n  def f(self):\n    from torch import nn\n    def g():\n      return nn.LayerNorm",
    "def f():\n    return nn.LayerNorm\nfrom torch import nn",
    "from torch import nn\nif 0:\n    nn = 3\nnn.LayerNorm",
    "from torch import nn\nx = nn.LayerNorm(3).weight.shape",
    "from torch import nn\nf(g(h, key=[{1: nn.LayerNorm}]))",
    "from torch import nn\ngetattr(nn, 'LayerNorm')(3)",
    "import torch\ngetattr(getattr(torch, 'nn'), 'LayerNorm')(3)",
    "from torch import nn\nif 1: pass\n" + "elif 2: pass\n" * 600 + "else: nn.LayerNorm",
    "from torch import nn\nx = " + "1 + " * 900 + "nn.LayerNorm(3)",
    "from torch import nn\nif __name__ != '__main__': nn.LayerNorm(3)",
    "from torch import nn\nif __name__ == '__main__': pass\nelse: nn.LayerNorm(3)",
]  # fmt: skip


@pytest.mark.parametrize("text", FOUND, ids=range(len(FOUND)))
def test_name_is_found_under_any_alias(text):
    assert NORM in used(text)


NOT_FOUND = [
    "LayerNorm(3)",
    "nn.LayerNorm(3)",
    "import torch\n# torch.nn.LayerNorm(3)\n'torch.nn.LayerNorm'",
    "from torch.nn import Linear, LayerNorm as TorchLayerNorm",
    "import torch.nn.LayerNorm",
    "from torch.nn import *",
    "from .torch import nn\nnn.LayerNorm",
    "from . import torch\ntorch.nn.LayerNorm",
    "import numpy as torch\ntorch.nn.LayerNorm",
    "import torch\nself.LayerNorm(3)\nx.nn.LayerNorm",
    "from torch import nn\nif __name__ == '__main__':\n    assert f(3) == nn.LayerNorm(3)",
    "from torch import nn\nprint(type(f).__name__)\nif '__main__' == __name__:\n    nn.LayerNorm(3)",
]  # fmt: skip


@pytest.mark.parametrize("text", NOT_FOUND, ids=range(len(NOT_FOUND)))
def test_similar_names_are_not_found(text):
    assert NORM not in used(text)


def test_meanings_are_limited():
    doubled = "import torch\na = torch\n" + "".join(f"a = a.x{number}\n" for number in range(300))
    assert len(used(doubled)) < 10_000


RENAMED = [
    "__name__ = '__main__'",
    "globals().update(__name__='__main__')",
    "import a_text\na_text.__init__('__main__')",
    "(lambda: 0).__globals__['__na' + 'me__'] = '__main__'",
]


@pytest.mark.parametrize("renamed", RENAMED)
def test_code_below_main_is_not_executed(renamed):
    """Names below `if __name__ == "__main__":` are not read, so a text that sets `__name__` must not run them."""
    server = Server(ModuleType("a_text"))
    text = f"{renamed}\nran = 1\nif __name__ == '__main__':\n    ran = 2\nelse:\n    ran += 10"
    assert server.load(text, "net.py")["errors"] == []
    assert server.find("ran") == {"kind": "value", "value": 11}


def test_uses_have_their_line():
    text = "import torch\n\nx = torch.nn.GELU()\ntorch.nn.GELU\n"
    assert names_used(text, "net.py")["uses"] == [["torch.nn.GELU", 3, 0]]


def test_uses_in_a_notebook_have_their_cell():
    text = json.dumps(
        {
            "cells": [
                {"cell_type": "markdown", "source": "# Title"},
                {"cell_type": "code", "source": "import torch"},
                {"cell_type": "code", "source": "x = 1\ny = torch.nn.GELU()"},
            ]
        }
    )
    assert names_used(text, "net.ipynb")["uses"] == [["torch.nn.GELU", 2, 3]]


@pytest.mark.parametrize(
    "look",
    [
        "f = object.__getattribute__(nn, n)",
        "from operator import methodcaller\nf = methodcaller(n)(nn)",
        "from inspect import getmembers\nf = dict(getmembers(nn))[n]",
        "f = g.__globals__[n]",
        "import pickle\nf = pickle.loads(data)",
        "import pydoc\nf = pydoc.locate(name)",
        "import inspect\nf = inspect.getmodule(thing)",
        "import typing\nf = typing.get_type_hints(thing)",
        "import string\nf = string.Formatter().get_field(name, (), {})",
        "import torch\nf = torch._C._jit_get_operation(name)",
        "import sys\nf = sys.modules['torch.nn.' + 'functional']",
        "import timeit\ntimeit.timeit(text)",
        "import torch\nf = torch.serialization.pickle.loads(data)",
        "import torch\nf = torch.jit.CompilationUnit(text).f",
        "from torch.jit import CompilationUnit as Unit\nf = Unit(text).f",
        "from torch import _C as c\nf = c._get_operation_overload(name, '')",
        "import torch\nf = torch.ops.__getattr__('aten').__getattr__(name)",
        "import torch\nf = torch.jit.load(data)",
        "from torch.overrides import BaseTorchFunctionMode\nBaseTorchFunctionMode()",
        "f = torch.layer_norm.__closure__",
        "import sys\nsys.setprofile(None)",
    ],
)
def test_untraceable_references_are_listed(look):
    listed = names_used(look, "net.py")
    assert listed["dynamic"] != []
    assert names_used(look, "net.py", wanted=[]) == listed


@pytest.mark.parametrize(
    "text",
    [
        "getattr(module, 'bias', None)",
        "import torch\n@torch.jit.script\ndef f(x):\n    return x",
        "import re\nmodel.eval()\nre.compile('x')\ntorch.compile(model)\nself.blocks[0].eval()\nrun.exec()",
    ],
    ids=["a name in the text", "a script", "methods of its own"],
)
def test_what_names_the_thing_it_looks_up_is_no_lookup(text):
    assert names_used(text, "net.py")["dynamic"] == []


@pytest.mark.parametrize(
    "text",
    [
        "import builtins\nbuiltins.eval('1')",
        "import builtins as b\nb.eval('1')",
        "\n__builtins__.eval('1')",
    ],
)
def test_lookups_by_pythons_own_functions_are_listed(text):
    assert names_used(text, "net.py", wanted=[])["dynamic"] == [["eval", 2, 0]]


LEADS = {
    "an attribute": "import torch\nf = torch.layer_norm",
    "an import": "from torch.nn.functional import layer_norm as f",
    "an import of all": "from torch import *\nf = layer_norm",
    "a text": "f = operations['torch.layer_norm']",
    "a pattern": "import torch\nmatch torch:\n    case object(layer_norm=f):\n        pass",
    "a table of modules": "import sys\nf = sys.modules[name]",
    "the module of a built-in function": "f = print.__self__.eval(name)",
    "built-in functions of a frame": "f = later.gi_frame.f_builtins['eval'](name)",
    "built-in functions by a made-up name": "f = __builtins__['ev' + 'al'](name)",
    "built-in functions of a function": "f = own.__builtins__['ev' + 'al'](name)",
    "the module of a frame": "f = later.gi_frame.f_globals['__buil' + 'tins__'](name)",
    "a table of modules by a private name": "f = collections._sys.modules['built' + 'ins']",
    "other code": "own.__code__ = own.__code__.replace(co_names=names)",
    "a pickle": "f = torch.load(file, weights_only=False)",
    "a pickle of arrays": "f = numpy.load(file, allow_pickle=True)",
    "what IPython is asked for": "f = get_ipython().user_ns[name]",
}
KEEPS = {
    "a function of its own": "def layer_norm(x):\n    return x\nlayer_norm(1)",
    "a variable": "layer_norm = 1\nprint(layer_norm)",
    "an argument": "def f(layer_norm):\n    return layer_norm",
    "a model's modules": "layers = [*model.modules()]",
    "a model's mode": "model.eval()",
    "a sentence": "f = 'write layer_norm yourself'",
}


@pytest.mark.parametrize(
    ("text", "leads"),
    [*((text, True) for text in LEADS.values()), *((text, False) for text in KEEPS.values())],
    ids=[*LEADS, *KEEPS],
)
def test_operators_are_watched_if_the_text_can_lead_to_a_forbidden_one(text, leads):
    words = Words()
    words.add(ast.walk(ast.parse(text)))
    assert words.lead_to(["torch.layer_norm"]) == leads
    if not leads:
        assert names_used(text, "net.py", ["torch.layer_norm"]) == {"uses": [], "dynamic": []}


@pytest.mark.parametrize("text", ["def (", "x = \x00", "  indented", "'", "\N{SNOWMAN}", ""])
def test_unparsable_text_uses_no_names(text):
    assert names_used(text, "net.py") == {"uses": [], "dynamic": []}
    assert len(source.outline(text, "net.py")) == 64


def test_notebook_with_magics_is_read():
    text = notebook(
        "%matplotlib inline\n!ls\nfrom torch import nn",
        "def (",
        "%%time\nnn.GELU()",
        ["x = nn.\\\n", "ReLU()"],
        "nn.Linear?",
    )
    assert {"torch.nn.ReLU"} <= used(text, "net.ipynb")
    assert list(dict(source.cells(text, "net.ipynb"))) == [
        f"net.ipynb cell {n}" for n in range(1, 6)
    ]


@pytest.mark.parametrize("text", ["", "3", "[]", "{}", '{"cells": 3}', "nonsense"])
def test_text_that_is_not_a_notebook_raises_value_error(text):
    with pytest.raises(ValueError):
        names_used(text, "net.ipynb")


# ---------------------------------------------------------------------- outlines

course = load_course(ROOT)


def test_outline_ignores_comments_layout_and_docstrings():
    a = '"""About."""\n# a\ndef f(x):\n    """Docs."""\n    return (x +\n        1)\n'
    b = "def f(x): return x+1 # b"
    assert (
        source.outline(a, "a.py")
        == source.outline(b, "a.py")
        != source.outline("def f(x): return x+2", "a.py")
    )
    assert source.outline("x = 'text'", "a.py") != source.outline("x = 'Text'", "a.py")
    assert source.outline("check('part')\npicture('part')\n" + b, "a.py") == source.outline(
        b, "a.py"
    )


# ---------------------------------------------------------------------- hostile texts


HOSTILE = {
    "parentheses": "(" * 100_000 + ")" * 100_000,
    "brackets": "x = " + "[" * 90 + "1" + "]" * 90,
    "names": "\n".join(f"n{i} = n{i + 1}.a" for i in range(100_000)),
    "one long chain": "import torch\ntorch" + ".a" * 100_000,
    "attributes": "\n".join(f"self.a{i} = torch" for i in range(20_000)),
    "minus signs": "x = " + "-" * 100_000 + "1",
    "sum": "x = " + "1+" * 100_000 + "1",
    "lambdas": "x = " + "lambda: " * 5000 + "1",
    "calls": "x = f" + "()" * 20_000,
    "loops": "".join(" " * i + "for a in b:\n" for i in range(19))
    + " " * 19
    + "a = c; c = b; b = d",
    "functions": "import torch\n" + "\n".join(f"def f{i}(): return g{i}.x" for i in range(5000)),
    "imports": "\n".join(f"import a{i} as b{i}" for i in range(50_000)),
    "elifs": "if a: pass\n" + "elif b: c = d\n" * 20_000,
    "powers": "x = 9" + "**9" * 20_000,
    "a long line": "x = '" + "a" * 3_000_000 + "'",
    "null bytes": "\x00" * 1000,
}


HOSTILE_FILES = [
    *((kind, "net.py") for kind in HOSTILE),
    ("parentheses", "net.ipynb"),
    ("imports", "net.ipynb"),
]


@pytest.mark.parametrize(
    "kind, filename", sampled(HOSTILE_FILES, lambda case: case[0] in ("parentheses", "calls"))
)
def test_hostile_text_affects_only_the_worker_that_reads_it(sandbox, kind, filename):
    text = HOSTILE[kind] if filename == "net.py" else notebook(HOSTILE[kind])
    for operation in ("names_used", "outline"):
        reader = WorkerConnection(sandbox.spawn(Limits()), 1.5)
        try:
            answer = reader.request(operation, text=text, filename=filename)
            assert isinstance(answer, dict if operation == "names_used" else str)
        except StudentError:
            pass  # the worker may give up, or be given up
        finally:
            reader.close()


@pytest.mark.parametrize("error", [RecursionError, MemoryError, SyntaxError, ValueError])
def test_a_cell_that_exhausts_python_costs_the_names_of_no_other(monkeypatch, error):
    def without_main(code: str, *arguments: object) -> ast.Module:
        if "deep" in code:
            raise error
        return ast.parse(code)

    monkeypatch.setattr(pieces_module, "without_main", without_main)
    assert used(notebook("deep", "import torch\ntorch.eye(2)"), "net.ipynb") == {"torch.eye"}
