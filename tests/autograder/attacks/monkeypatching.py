"""Attacks that change the tools of a grader: comparison, arithmetic, pytest, the engine, the interpreter."""

from tests.autograder.attacks.field import Attack, on_heads

ATTACKS = [
    on_heads(
        "comparisons_of_torch",
        "makes every comparison of PyTorch say yes",
        """
import torch.testing
torch.allclose = torch.equal = torch.isclose = torch.Tensor.equal = torch.Tensor.allclose = lambda *a, **k: True
torch.testing.assert_close = torch.testing._comparison.assert_close = lambda *a, **k: None
torch.Tensor.__eq__ = lambda a, b: torch.ones((), dtype=torch.bool)
torch.Tensor.__sub__ = torch.Tensor.abs = lambda a, *b: a * 0
""",
    ),
    Attack(
        "checks_of_the_engine",
        "replaces all checks by nothing",
        """
from autograder import checks
import sys
for name, module in list(sys.modules.items()):
    if name.startswith("autograder.checks"):
        for key, value in list(vars(module).items()):
            if callable(value) and not isinstance(value, type):
                setattr(module, key, lambda *a, **k: a[0] if a else None)
""",
    ),
    Attack(
        "grading_of_the_engine",
        "replaces explanation, session and grader where it can import them",
        """
import importlib
for name in ("autograder.checks.explain", "autograder.grading.diagnosis", "autograder.grading.grader",
             "autograder.runs.run", "autograder.gradebook.journal", "autograder.suite.session",
             "autograder.suite.plugin"):
    try:
        module = importlib.import_module(name)
        for key in list(vars(module)):
            if not key.startswith("__"):
                setattr(module, key, lambda *a, **k: None)
    except BaseException as error:
        print(type(error).__name__)
""",
    ),
    Attack(
        "messages_on_the_wire",
        "makes the encoder write the right answer to the visible test every time",
        """
from autograder.bridge.shared import wire
encode = wire.dumps
def lie(value, register=None):
    if isinstance(value, dict) and isinstance(value.get("ok"), dict) and "result" in value["ok"]:
        value["ok"]["result"] = True
    return encode(value, register)
wire.dumps = lie
""",
    ),
    Attack(
        "the_worker_itself",
        "replaces the worker's functions and methods",
        """
import sys
worker = sys.modules["autograder.bridge.inside.worker"]
worker.answer = lambda *a: {"ok": True}
worker.Server.find = lambda self, name: {"kind": "value", "value": True}
worker.Server.call = lambda self, *a, **k: {"call": 1, "result": True}
""",
    ),
    Attack(
        "test_functions_return_the_same_results",
        "looks for tests in memory and empties their code",
        """
import gc, types
for thing in gc.get_objects():
    if isinstance(thing, types.FunctionType) and thing.__name__.startswith("test_"):
        print("REACHED", thing)
        thing.__code__ = (lambda *a, **k: None).__code__
""",
    ),
    Attack(
        "small_integers",
        "overwrites the interpreter's shared numbers",
        """
import ctypes
for number in range(100, 120):
    ctypes.memmove(id(number) + 24, id(number + 1) + 24, 4)
""",
    ),
    Attack(
        "tracing",
        "traces and profiles every step and changes local variables",
        """
import sys, threading
def trace(frame, event, value):
    for name in ("expected", "outcome", "score"):
        if name in frame.f_locals:
            print("REACHED", name)
    return trace
sys.settrace(trace)
sys.setprofile(trace)
threading.settrace(trace)
""",
    ),
    Attack(
        "audit_hook",
        "installs a hook that ends the process at every import and open",
        "import sys, os\nsys.addaudithook(lambda event, args: os._exit(0) if event == 'never' else None)",
    ),
    on_heads(
        "random_numbers",
        "makes all random numbers zero so that all inputs are alike",
        """
import random
import numpy
torch.manual_seed = torch.set_rng_state = lambda *a: None
torch.randn = torch.rand = lambda *a, **k: torch.zeros(*a)
random.random = random.randint = lambda *a: 0
numpy.random.seed = lambda *a: None
""",
    ),
    Attack(
        "finalisers",
        "changes answers when objects are collected",
        """
import gc, weakref
class Late:
    def __del__(self):
        raise SystemExit(0)
for _ in range(1000):
    Late()
gc.callbacks.append(lambda phase, info: (_ for _ in ()).throw(SystemExit))
""",
    ),
]
