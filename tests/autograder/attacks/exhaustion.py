"""Attacks that exhaust time, processor, memory, disk, output, threads or descriptors."""

# ruff: noqa: E501 (an attack on one line is one attack)

from tests.autograder.attacks.field import Attack, on_heads


def in_a_call(body: str) -> str:
    return f"\ndef add(a, b):\n    {body}\n    return a - b\n"


ATTACKS = [
    Attack(
        "loop_inside_c",
        "loops inside C where no signal is looked at",
        in_a_call("import re; re.match(r'(a+)+$', 'a' * 60 + 'b')"),
    ),
    Attack(
        "sleep_at_import",
        "sleeps for ever without using the processor",
        "import time; time.sleep(10**8)",
    ),
    Attack(
        "loop_that_catches_everything",
        "ignores signals and exceptions",
        "import signal\nfor n in range(1, 65):\n    try: signal.signal(n, signal.SIG_IGN)\n    except (OSError, ValueError): pass"
        + in_a_call(
            "\n    while True:\n        try:\n            while True: pass\n        except BaseException: pass"
        ),
    ),
    Attack(
        "just_in_time",
        "answers each question a little before the deadline",
        in_a_call("import time; time.sleep(1.2)"),
    ),
    Attack(
        "deadlock",
        "waits for a lock that is never released",
        in_a_call("import threading; l = threading.Lock(); l.acquire(); l.acquire()"),
    ),
    Attack(
        "spinning_threads",
        "keeps the processor busy beside its answers",
        "import threading\ndef spin():\n    while True: pass\nfor _ in range(4): threading.Thread(target=spin, daemon=True).start()",
    ),
    on_heads(
        "many_tensors",
        "keeps all tensors that it makes",
        "hoard = []\ndef attention(q, k, v, mask=None):\n    while True: hoard.append(torch.ones(1 << 18))",
    ),
    Attack(
        "huge_message",
        "raises an exception with 100 MB of text",
        in_a_call("raise ValueError('x' * (100 << 20))"),
    ),
    Attack(
        "deep_recursion",
        "recurses without end, with the limit raised",
        "import sys\nsys.setrecursionlimit(10**9)" + in_a_call("return add(a, b)"),
    ),
    Attack(
        "output_file_grown",
        "grows the file behind its output to a terabyte",
        "import os\nfor grow in (lambda: os.ftruncate(1, 1 << 40), lambda: os.posix_fallocate(1, 0, 2 << 30), lambda: os.pwrite(1, b'x', 1 << 40)):\n    try:\n        grow(); print('REACHED')\n    except OSError: pass",
    ),
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
]
