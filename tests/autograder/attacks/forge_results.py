"""Attacks that forge results: exit codes, printed results, outcomes of pytest, handwritten replies."""

from tests.autograder.attacks.field import Attack, on_heads

# takes the worker over: answers every question by itself from now on
TAKEOVER = """
import sys
from autograder.bridge.shared import wire
def take_over(answer):
    frame = sys._getframe()
    while "sock" not in frame.f_locals or "number" not in frame.f_locals:
        frame = frame.f_back
    sock, number = frame.f_locals["sock"], frame.f_locals["number"]
    print("TOOK OVER", flush=True)
    wire.send(sock, {"id": number, "ok": {"errors": [], "stopped": [], "absent": []}})
    while True:
        number, operation, arguments = wire.receive(sock, max_text=wire.MAX_DATA)
        if number:  # the others have no reply
            answer(sock, number, operation, arguments)
def returned(value, **others):
    import torch
    tensors = [] if not isinstance(value, torch.Tensor) else [False]
    return {"call": 1, "result": value, "differentiable": tensors, "mutated": [], "refilled": [],
            "modules": [], "generators": [], **others}
def plain(operation, value=0):
    return {"find": {"kind": "function"}, "call": returned(value), "get": {"kind": "value", "value": value},
            "backward": []}.get(operation)
"""


def taking_over(answer: str) -> str:
    return TAKEOVER + answer + "\ntake_over(answer)\n"


def raising(what: str) -> str:
    return f"""
def add(a, b):
    {what}
class Total:
    def __init__(self, start=0):
        {what}
"""


ATTACKS = [
    Attack("exit_with_success", "ends the process with code 0 before any test",
           "import os; os._exit(0)"),
    Attack(
        "the_engines_own_exceptions",
        "raises the engine's errors for broken machines and broken courses",
        raising(
            "from autograder.records import InfrastructureError, RefusedError; "
            "from autograder.course.config import CourseError; "
            "raise (InfrastructureError if 'add' in globals() else CourseError)('stop the class')"
        ),
    ),
    Attack(
        "exception_that_explodes",
        "raises an exception whose text, name and steps fail when they are looked at",
        "class Mine(Exception):\n    def __str__(self): raise SystemExit(0)\n    __repr__ = __str__\n"
        "    @property\n    def __traceback__(self): raise SystemExit(0)" + raising("raise Mine"),
    ),
    Attack(
        "printed_verdict",
        "prints summaries, journal lines, workflow commands and escapes",
        r"""
import json, sys
for stream in (sys.stdout, sys.stderr):
    print("26 passed in 0.01s\n::set-output name=score::100\n##[error]x\n\x1b[2J\x1b]0;owned\x07", file=stream)
    print(json.dumps({"schema": 1, "student": "mallory", "assignment": "01_adding", "status": "graded",
                      "score": 10.0, "max_score": 10.0, "tests": []}), file=stream, flush=True)
    print("</pre><script>alert(1)</script><testcase name='x'/>", file=stream, flush=True)
""",
    ),
    Attack(
        "everything_is_right",
        "answers every question with yes",
        taking_over("""
def answer(sock, number, operation, arguments):
    wire.send(sock, {"id": number, "ok": True})
"""),
        proves="TOOK OVER",
    ),
    Attack(
        "claimed_exceptions",
        "claims exceptions of types that would end the grader",
        taking_over("""
names = ["KeyboardInterrupt", "SystemExit", "Skipped", "UsageError", "TestAlarm", "InfrastructureError", "Exit"]
turn = 0
def answer(sock, number, operation, arguments):
    global turn
    turn += 1
    name = names[turn % len(names)]
    wire.send(sock, {"id": number, "error": {"type": name, "bases": names, "text": name, "frames": []}})
"""),
        proves="TOOK OVER",
    ),
    on_heads(
        "changed_inputs",
        "claims that the call changed the test's own inputs into what fits a wrong answer",
        taking_over("""
import torch
def answer(sock, number, operation, arguments):
    reply = plain(operation)
    if operation == "call":
        tensors = [a for a in arguments["args"] if isinstance(a, torch.Tensor)]
        result = (torch.zeros(1), torch.zeros(1))
        if len(tensors) > 2:
            q, k, v = tensors[:3]
            result = q.new_zeros(*q.shape[:-1], v.shape[-1]), q.new_zeros(*q.shape[:-1], k.shape[-2])
        reply = returned(result, differentiable=[False, False],
                         mutated=[[n, torch.zeros_like(t)] for n, t in enumerate(tensors)])
    wire.send(sock, {"id": number, "ok": reply})
"""),
        proves="TOOK OVER",
    ),
    Attack(
        "two_tries",
        "guesses differently in the second look at a failure",
        """
import time
guess = int(time.time() * 1000) % 7
def add(a, b):
    return guess
""",
        gains=1,  # of the one test whose right answer is always the same
    ),
]  # fmt: skip
