"""A failure counts if it occurs twice: what one test leaves behind costs no other test its points."""

from __future__ import annotations

import itertools
import json

import pytest

from autograder.bridge.outside.replay import ReplayCache
from autograder.course.reading import load_course
from autograder.grading.grader import Grader
from autograder.grading.preparation import open_grader
from autograder.grading.suite_run import SolutionFailsError, SubmissionExaminee
from autograder.grading.time_limits import Watch
from autograder.records import SourceFile, Submission
from tests.autograder.sampling import sampled
from tests.autograder.tiny_course import write_tiny_course

SEED = 5
TEST = '''

@pytest.mark.part("{part}")
@pytest.mark.points({points})
def test_{part}_{number}(student):
    """Once more."""
    checks.equal(student.{call}, {result}, "it")
'''
# (part, points, calls with their results); the sums of points are those of course.yml
TESTS = (
    ("add", 1, (("add(1, 2)", 3), ("add(3, 4)", 7), ("add(5, 6)", 11), ("add(7, 8)", 15))),
    ("total", 2, (("Total(1).push(2)", 3), ("Total(2).push(2)", 4), ("Total(3).push(2)", 5))),
)
# how calls of `add` spoil later ones: what stands above it, what it does, and when it is wrong
IN_THE_MODULE = {
    "a counter": ("calls = [0]", "calls[0] += 1", "calls[0] > 1"),
    "a counter that lasts": ("calls = [0]", "calls[0] += 1", "calls[0] > 3"),
    "a global name": ("seen = False", "global seen; before, seen = seen, True", "before"),
    "its own attribute": ("", "add.n = getattr(add, 'n', 0) + 1", "add.n > 1"),
    "a default": ("", "hoard.append(a)", "len(hoard) > 1"),
    "a cache": ("kept = {}", "first = kept.setdefault('sum', a)", "first != a"),
    "a cache of functools": ("import functools\n@functools.lru_cache\ndef first(): return []",
                             "first().append(a)", "len(first()) > 1"),
    "an attribute of a class": ("class Box: n = 0", "Box.n += 1", "Box.n > 1"),
    "an object": ("class Box: n = 0\nbox = Box()", "box.n += 1", "box.n > 1"),
    "a closure": (
        "def counter():\n    n = 0\n    def up():\n        nonlocal n\n        n += 1\n        return n\n"
        "    return up\nup = counter()",
        "n = up()",
        "n > 1",
    ),
    "a generator": ("left = iter([1])", "it = next(left, None)", "it is None"),
    "an iterator that ends": ("left = iter([1, 1])", "next(left)", "False"),
    "a member of an enumeration": (
        "import enum\nclass Phase(enum.Enum):\n    TRAIN = 1\n    def step(self):\n"
        "        self.steps = getattr(self, 'steps', 0) + 1\n        return self.steps",
        "n = Phase.TRAIN.step()",
        "n > 1",
    ),
    "a class that is called self": (
        "class Net:\n    calls = 0\n    @classmethod\n    def up(self):\n        self.calls += 1",
        "Net.up()",
        "Net.calls > 1",
    ),
    "what else stands in the main block": (
        "if __name__ == '__main__':\n    pass\nelse:\n    seen = []",
        "seen.append(a)",
        "len(seen) > 1",
    ),
    "own random numbers": (
        "import random\ndice = random.Random(1)\nwanted = random.Random(1).random()",
        "drawn = dice.random()",
        "drawn != wanted",
    ),
    "a list that is emptied": ("stock = [1]", "one = stock.pop()", "False"),
    "a module of parameters": (
        "import torch\nlayer = torch.nn.Linear(1, 1)\ntorch.nn.init.zeros_(layer.weight)",
        "before = layer.weight.item(); layer.weight.data += 1",
        "before > 0",
    ),
    "its own name": ("", "globals()['add'] = lambda a, b: a - b", "False"),
}  # fmt: skip
OUTSIDE_IT = {
    "an attribute of a library": ("import math", "before = hasattr(math, 'n'); math.n = 1",
                                  "before"),
    "a function of a library": ("import math", "before = math.floor(0.5); math.floor = math.ceil",
                                "before"),
    "the environment": ("import os", "before = 'SPOILT' in os.environ; os.environ['SPOILT'] = '1'",
                        "before"),
    "a built-in name": ("import builtins", "before = hasattr(builtins, 'n'); builtins.n = 1",
                        "before"),
    "the default type of torch": (
        "import torch",
        "before = torch.get_default_dtype(); torch.set_default_dtype(torch.float64)",
        "before is torch.float64",
    ),
    "the limit of recursion": ("import sys",
                               "before = sys.getrecursionlimit(); sys.setrecursionlimit(777)",
                               "before == 777"),
    "a file": ("import os", "before = os.path.exists('spoilt'); open('spoilt', 'w').close()",
               "before"),
    "the present folder": (
        "import os",
        "before = os.getcwd(); os.makedirs('deep', exist_ok=True); os.chdir('deep')",
        "before.endswith('deep')",
    ),
    "the settings of numpy": ("import numpy as np",
                              "before = np.geterr()['divide']; np.seterr(divide='raise')",
                              "before == 'raise'"),
    "a count in a file": (
        "import pathlib\nnotes = pathlib.Path.home() / 'notes'",
        "before = notes.read_text() if notes.exists() else ''; notes.write_text(before + 'x')",
        "len(before) > 2",
    ),
    "a file that grows": ("", "open('grown', 'a').write('x'); n = len(open('grown').read())",
                          "n > 3"),
    "a name of setattr": ("import math",
                          "before = getattr(math, 'n', 0); setattr(math, 'n', before + 1)",
                          "before > 2"),
    "the class of a layer": (
        "import torch\nclass Net(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.inner = torch.nn.Linear(1, 1)\n        self.inner.__class__.n = self.before() + 1\n"
        "    def before(self):\n        return getattr(torch.nn.Linear, 'n', 0)",
        "n = Net().before()",
        "n > 3",
    ),
    "a type": ("import torch", "t = type(torch.ones(1)); t.n = getattr(t, 'n', 0) + 1", "t.n > 3"),
    "a module as self": (
        "import math\ndef mark(self):\n    self.n = getattr(self, 'n', 0) + 1\n    return self.n",
        "n = mark(math)",
        "n > 3",
    ),
    "another name of a library": ("import math\nown = math",
                                  "own.n = getattr(math, 'n', 0) + 1",
                                  "math.n > 3"),
    "an item of the built-in names": (
        "", "n = __builtins__.get('n', 0) + 1; __builtins__['n'] = n", "n > 3"
    ),
    "a table of a library": (
        "import copy",
        "n = copy._deepcopy_dispatch.get('n', 0) + 1; copy._deepcopy_dispatch['n'] = n",
        "n > 3",
    ),
    "the dictionary of a library": (
        "import math", "vars(math).update(n=getattr(math, 'n', 0) + 1)", "math.n > 3"
    ),
    "a hook of all modules": (
        "import torch\ncalls = []\nlayer = torch.nn.Linear(1, 1)",
        "h = torch.nn.modules.module.register_module_forward_hook(lambda *_: calls.append(1)); "
        "layer(torch.ones(1))",
        "len(calls) > 1",
    ),
    "a block that stays open": (
        "import torch\nleft = []\ndef inside():\n    with torch.autocast('cpu'):\n        yield",
        "before = torch.is_autocast_enabled('cpu'); left.append(inside()); next(left[-1])",
        "before",
    ),
    "a block that is entered": (
        "import torch",
        "before = torch.is_autocast_enabled('cpu'); torch.autocast('cpu').__enter__()",
        "before",
    ),
    "a filter of warnings": (
        "import warnings",
        "n = len(warnings.filters); warnings.filterwarnings('ignore', str(n))",
        "any(entry[1] is not None and entry[1].pattern.isdigit() for entry in warnings.filters[1:])",
    ),
    "a filter of warnings, by another road": (
        "import torch",
        "n = len(torch.warnings.filters); torch.warnings.filterwarnings('ignore', str(n))",
        "any(entry[1] is not None and entry[1].pattern.isdigit() for entry in torch.warnings.filters[1:])",
    ),
    "a hook of all optimisers": (
        "import torch\nfrom torch.optim.optimizer import register_optimizer_step_post_hook\n"
        "def halve(optimizer, *_):\n    for group in optimizer.param_groups:\n        group['lr'] *= 0.5\n"
        "def fit():\n    register_optimizer_step_post_hook(halve)\n    w = torch.zeros(1, requires_grad=True)\n"
        "    optimizer = torch.optim.SGD([w], lr=1.0)\n    for _ in range(2):\n        optimizer.zero_grad()\n"
        "        (-w).sum().backward()\n        optimizer.step()\n    return w.item()",
        "w = fit()",
        "w < 1.1",
    ),
    "a function of a library in a layer": (
        "import torch.nn.functional as F\nclass Net:\n    def __init__(self):\n        self.act = F.relu\n"
        "        self.act.calls = getattr(self.act, 'calls', 0) + 1",
        "n = Net().act.calls",
        "n > 3",
    ),
    "a list of a class": (
        "from torch import nn\nlayer = nn.Linear(1, 1)",
        "n = len(layer.__constants__); layer.__constants__.append('mine')",
        "n > 4",
    ),
    "a file of an array": (
        "import numpy as np\nfrom pathlib import Path",
        "before = Path('last.pkl').exists(); np.ones(2).dump('last.pkl')",
        "before",
    ),
    "a tensor in a file": (
        "import torch",
        "t = torch.from_file('steps.bin', shared=True, size=1); t += 1",
        "t.item() > 3",
    ),
    "a setting that is switched on": (
        "import torch",
        "check = torch.sparse.check_sparse_tensor_invariants; before = check.is_enabled(); check.enable()",
        "before",
    ),
    "a table that is filled by its method": (
        "import copy",
        "kept = copy._deepcopy_dispatch.setdefault('kept', []); kept.append(a)",
        "len(kept) > 3",
    ),
    "a size of buffers": ("import numpy as np", "n = np.setbufsize(16384)", "n == 16384"),
    "a coroutine in a block": (
        "import torch\nleft = []\nclass Wait:\n    def __await__(self):\n        return iter([1])\n"
        "async def inside():\n    with torch.autocast('cpu'):\n        await Wait()",
        "before = torch.is_autocast_enabled('cpu'); left.append(inside()); left[-1].send(None)",
        "before",
    ),
}  # fmt: skip
LEAKS = IN_THE_MODULE | OUTSIDE_IT
# what else is wrong: nothing, or all of the second part, which calls `add` or does not
PUSHES = {
    "right": "return self.value + number",
    "wrong": "return -1",
    "wrong after a call": "add(self.value, number); return -1",
}
TOTAL = """\
class Total:
    def __init__(self, start=0):
        self.value = start

    def push(self, number):
        {}
"""
SAMPLE = {("a counter that lasts", "right"), ("a cache", "wrong after a call"), ("a file", "wrong")}
WAYS = [*itertools.product(LEAKS, PUSHES)]


def answer(leak: str, push: str) -> str:
    above, then, spoilt = LEAKS[leak]
    return (
        f"{above}\n\n\ndef add(a, b, hoard=[]):\n    {then}\n"
        f"    return a - b if {spoilt} else a + b\n\n\n" + TOTAL.format(PUSHES[push])
    )


@pytest.fixture(scope="module")
def grader(tmp_path_factory, sandbox):
    folder = write_tiny_course(tmp_path_factory.mktemp("leaks") / "course")
    text = '"""Adding, again and again."""\n\nimport pytest\n\nfrom autograder import checks\n'
    for part, points, calls in TESTS:
        for number, (call, result) in enumerate(calls):
            test = {"part": part, "points": points, "number": number}
            text += TEST.format(**test, call=call, result=result)
    suite = folder / "tests/assignments/01_adding"
    (suite / "test_visible.py").write_text(text, "utf-8")
    (suite / "test_hidden.py").unlink()
    made = open_grader(load_course(folder), sandbox, SEED)
    yield made
    made.close()


def passed(grader: Grader, text: str, *groups: list, name: str = "adding.py") -> list[str]:
    """Return the tests that pass if those of a group meet each other."""
    names = []
    for tests in groups:
        loaded = grader.load(grader.assignment("01_adding"), SourceFile(name, text))
        try:
            examinee = SubmissionExaminee(loaded, ReplayCache(), Watch())
            endings = examinee.endings(grader.session, SEED, tests)
        finally:
            loaded.close()
        names += [ending.test.name for ending in endings if ending.passed]
    return names


@pytest.mark.parametrize(("leak", "push"), sampled(WAYS, SAMPLE.__contains__))
def test_what_a_test_leaves_behind_costs_no_other_its_points(grader, leak, push):
    tests = grader.tests["01_adding"]
    text = answer(leak, push)
    together = passed(grader, text, tests)
    assert together == passed(grader, text, *([test] for test in tests))
    assert len(together) == (7 if push == "right" else 4), "alone, each call is the first"


@pytest.mark.parametrize(
    ("above", "sum_of_them", "workers"),
    [
        ("import time", "a + b", 1),
        ("import time", "a - b", 2),
        ("import time", "a - b * time.perf_counter_ns()", 1 + 4),  # no answer is given twice
        ("import os", "a - b", 1 + 4),  # it can change more than its own module
        ("import torch\nextra = torch.rand(1).item()", "a - b - extra", 2),
        ("import random\nextra = random.random()", "a - b - extra", 1 + 4),  # Python seeds it anew
        ("import numpy as np\nextra = np.random.rand()", "a - b - extra", 2),
    ],
)
def test_workers_are_as_few_as_answers_allow(grader, monkeypatch, above, sum_of_them, workers):
    connect, made = grader.workers.connect, []
    monkeypatch.setattr(
        grader.workers, "connect", lambda *given: made.append(given) or connect(*given)
    )
    text = answer("a default", "right").replace("a - b if len(hoard) > 1 else a + b", sum_of_them)
    passed(grader, f"{above}\n{text}", grader.tests["01_adding"])
    assert len(made) == workers


@pytest.mark.parametrize("error", ["MemoryError", "OSError(28, 'No space left on device')"])
@pytest.mark.parametrize("lasts", [False, True])
def test_a_fault_of_the_grader_costs_no_points(tmp_path, sandbox, error, lasts):
    """A known mistake gives the same answers before the fault, and so explains nothing."""
    fault = tmp_path / "fault"
    folder = write_tiny_course(tmp_path / "course")
    suite = folder / "tests/assignments/01_adding"
    meet = (
        f"    import pathlib\n    fault = pathlib.Path({str(fault)!r})\n    if fault.exists():\n"
        f"        {'pass' if lasts else 'fault.unlink()'}\n        raise {error}\n"
    )
    text = '"""Adding."""\n\nimport pytest\n\nfrom autograder import checks\n'
    for part, points, call, result in (
        ("add", 4, "add(4, 0)", 4),
        ("total", 6, "Total(0).push(2)", 2),
    ):
        test = {"part": part, "points": points, "number": 0}
        text += TEST.format(**test, call=call, result=result) + (meet if part == "add" else "")
    (suite / "test_visible.py").write_text(text, "utf-8")
    (suite / "test_hidden.py").unlink()
    (suite / "failing_tests.json").write_text('{"subtracts": ["test_add_0"]}', "utf-8")
    grader = open_grader(load_course(folder), sandbox, SEED)
    right = f"def add(a, b):\n    return a + b\n\n\n{TOTAL.format('return self.value + number')}"
    submission = Submission("ada", "01_adding", (SourceFile("adding.py", right),))
    try:
        grader.prepare_all()
        fault.touch()
        if lasts:
            with pytest.raises(SolutionFailsError, match="The solution itself does not pass"):
                grader.grade(submission)
        else:
            assert grader.grade(submission).score == 10
    finally:
        grader.close()


@pytest.mark.parametrize(
    "cell",
    ["x = " + "+".join("1" * 5000), "x = " + "-" * 100_000 + "1", "x = [" + "1," * 10_000 + "]"],
)
def test_a_cell_that_is_too_much_for_python_costs_no_other_its_points(grader, cell):
    text = answer("a counter that lasts", "wrong after a call")
    cells = [
        {"cell_type": "code", "source": source, "metadata": {}, "outputs": []}
        for source in (text, cell)
    ]
    notebook = json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
    together = passed(grader, notebook, grader.tests["01_adding"], name="adding.ipynb")
    assert together == ["test_add_0", "test_add_1", "test_add_2", "test_add_3"]
