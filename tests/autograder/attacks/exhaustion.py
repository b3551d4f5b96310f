"""Attacks that exhaust time, processor, memory, disk, output, threads or descriptors."""

# ruff: noqa: E501 (an attack on one line is one attack)

from tests.autograder.attacks.field import Attack, on_heads


def in_a_call(body: str) -> str:
    return f"\ndef add(a, b):\n    {body}\n    return a - b\n"


ATTACKS = [
    Attack("loop_inside_c", "loops inside C where no signal is looked at",
           in_a_call("import re; re.match(r'(a+)+$', 'a' * 60 + 'b')")),
    Attack("just_in_time", "answers each question a little before the deadline",
           in_a_call("import time; time.sleep(1.2)")),
    Attack("huge_message", "raises an exception with 100 MB of text",
           in_a_call("raise ValueError('x' * (100 << 20))")),
    Attack("deep_recursion", "recurses without end, with the limit raised",
           "import sys\nsys.setrecursionlimit(10**9)" + in_a_call("return add(a, b)")),
    Attack(
        "hanging_at_exit",
        "hangs when the interpreter ends",
        "import atexit, time\natexit.register(time.sleep, 10**6)\nclass Late:\n    def __del__(self): time.sleep(10**6)\nlate = Late()",
    ),
    on_heads(
        "five_thousand_layers",
        "a module of five thousand layers",
        "class Head(nn.Module):\n    def __init__(self, *sizes):\n        super().__init__()\n        self.all = nn.ModuleList(nn.Linear(1, 1) for _ in range(5000))\n    def forward(self, x): return x",
    ),
    on_heads(
        "memory_kept_for_gradients",
        "answers with graphs that never end",
        "def attention(q, k, v, mask=None):\n    for _ in range(100_000): q = q * 1.0001\n    return q, q",
    ),
]  # fmt: skip
