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
]
