"""Modules and objects that confuse their proxies in the grader."""

# ruff: noqa: E501 (an attack on one line is one attack)

from tests.autograder.attacks.field import HEADS, Attack, on_heads
from tests.autograder.attacks.forge_results import taking_over


def head(body: str, before: str = "") -> str:
    """Return a head with all the right parts and a wrong answer, changed by `body`."""
    return f"""
{before}
class Wrong(Head):
    def forward(self, x):
        return self.value(x) * 0.5
class Head(Wrong):
{body}
"""


def described(description: str) -> dict:
    """Reply to calls with a module of this description."""
    return dict(
        code=taking_over(f"""
import torch
turn = 0
def answer(sock, number, operation, arguments):
    global turn
    turn += 1
    if operation == "find":
        return wire.send(sock, {{"id": number, "ok": {{"kind": "class"}}}})
    description = {{"kind": "module", "type": "Head", "parameters": [], "buffers": [],
                   "modules": [["", "Head", True, ""]], **{description}}}
    wire.send(sock, {{"id": number, "ok": returned(wire.Handle(turn % 3, description))}})
"""),
        course=HEADS,
        proves="TOOK OVER",
    )


ATTACKS = [
    on_heads(
        "lying_parameters",
        "lists parameters that it does not have",
        head("""
    def named_parameters(self, *a, **k):
        for name in ("key.weight", "query.weight", "value.weight"):
            yield name, nn.Parameter(torch.zeros(5, 20))
"""),
    ),
    on_heads(
        "changing_parameters",
        "has other parameters at each look",
        head("""
    looks = 0
    def named_parameters(self, *a, **k):
        Head.looks += 1
        yield f"p{Head.looks}", nn.Parameter(torch.zeros(Head.looks))
"""),
    ),
    on_heads(
        "another_in_eval",
        "puts other weights into itself when it is converted",
        head(
            "    def double(self): return nn.Linear(3, 3)\n    def to(self, *a, **k):\n        self.key = self.query = self.value = nn.Linear(2, 2)\n        return self\n"
        ),
    ),
    on_heads(
        "itself_as_a_part",
        "is a part of itself",
        head(
            "    def __init__(self, *sizes):\n        super().__init__(*sizes)\n        self._modules['me'] = self\n"
        ),
    ),
    on_heads(
        "attributes_that_answer",
        "answers every question about it with itself",
        "class Head:\n    def __init__(self, *sizes): pass\n    def __getattr__(self, name): return self\n    def __call__(self, *a, **k): return self\n    def __len__(self): return -1\n    def __getitem__(self, key): return self",
    ),
    Attack(
        "module_that_answers",
        "its module answers to every name",
        "def __getattr__(name): return lambda *a, **k: 5\ndel add, Total",
    ),
    Attack(
        "functions_that_are_objects",
        "puts objects, classes and values where functions were expected",
        "class add:\n    def __new__(cls, a, b): return 5\nTotal = 7",
    ),
    Attack(
        "properties_that_raise",
        "has attributes that end the process",
        "class Total:\n    def __init__(self, start=0): pass\n    @property\n    def push(self): raise SystemExit(0)\n    def __getattribute__(self, name): raise KeyboardInterrupt",
    ),
    Attack(
        "handles_of_others",
        "gives the same object for all objects",
        "only = None\nclass Total:\n    def __new__(cls, start=0):\n        global only\n        only = only or object.__new__(cls)\n        return only\n    def __init__(self, start=0): self.value = start\n    def push(self, number): return self.value",
    ),
    Attack(
        "parameters_without_numbers",
        "describes parameters of 2 to the 60 numbers on the meta device",
        **described(
            '{"parameters": [["key.weight", torch.empty(2**25, 2**25, device="meta"), True]], "modules": [["", "H", True, ""], ["key", "Linear", True, "key"]]}'
        ),
    ),
    on_heads(
        "parameters_as_large_as_the_machine",
        "has parameters without numbers, of as many as the machine can hold: tests fill them with numbers",
        head("""
    def __init__(self, *sizes):
        super().__init__(*sizes)
        self.big = nn.Parameter(torch.empty(2**15, 2**14, device="meta"))
"""),
    ),
]
