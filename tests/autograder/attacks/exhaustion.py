"""Attacks that exhaust time, processor, memory, disk, output, threads or descriptors."""

# ruff: noqa: E501 (an attack on one line is one attack)

from tests.autograder.attacks.field import HEADS, Attack


def in_a_call(body: str) -> str:
    return f"\ndef add(a, b):\n    {body}\n    return a - b\n"


ATTACKS = [
    Attack("loop_at_import", "never finishes importing", "while True: pass"),
    Attack(
        "sleep_at_import",
        "sleeps for ever without using the processor",
        "import time; time.sleep(10**8)",
    ),
    Attack("loop_in_a_call", "never answers", in_a_call("while True: pass")),
    Attack(
        "loop_inside_c",
        "loops inside C where no signal is looked at",
        in_a_call("import re; re.match(r'(a+)+$', 'a' * 60 + 'b')"),
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
    Attack("stopped", "stops itself", in_a_call("import os; os.kill(os.getpid(), 19)")),
    Attack(
        "deadlock",
        "waits for a lock that is never released",
        in_a_call("import threading; l = threading.Lock(); l.acquire(); l.acquire()"),
    ),
    Attack("big_power", "computes a power that never ends", in_a_call("10 ** 10 ** 10")),
    Attack(
        "spinning_threads",
        "keeps the processor busy beside its answers",
        "import threading\ndef spin():\n    while True: pass\nfor _ in range(4): threading.Thread(target=spin, daemon=True).start()",
    ),
    Attack(
        "thousand_threads",
        "starts a thousand threads",
        "import threading, time\nn = 0\ntry:\n    for _ in range(1000):\n        threading.Thread(target=time.sleep, args=(60,), daemon=True).start(); n += 1\nexcept RuntimeError: pass\nif n > 64: print('REACHED', n)",
    ),
    Attack(
        "fork_bomb",
        "forks itself again and again",
        "import os\nfor _ in range(12):\n    try:\n        os.fork(); print('REACHED')\n    except OSError: pass",
    ),
    Attack(
        "list_of_megabytes",
        "fills the memory",
        in_a_call("hoard = []\n    while True: hoard.append(bytearray(1 << 20))"),
    ),
    Attack(
        "tensor_of_terabytes",
        "asks for a terabyte at once",
        "def attention(q, k, v, mask=None): return torch.ones(10**12), q",
        course=HEADS,
    ),
    Attack(
        "many_tensors",
        "keeps all tensors that it makes",
        "hoard = []\ndef attention(q, k, v, mask=None):\n    while True: hoard.append(torch.ones(1 << 18))",
        course=HEADS,
    ),
    Attack(
        "mapped_memory",
        "maps anonymous and shared memory",
        "import mmap\nhoard = []\ntry:\n    while len(hoard) < 4096: hoard.append(mmap.mmap(-1, 1 << 20)); hoard[-1][:] = bytes(1 << 20)\nexcept (OSError, MemoryError, ValueError): pass\nif len(hoard) > 2000: print('REACHED', len(hoard))",
    ),
    Attack(
        "memory_files",
        "keeps memory in files without a name",
        "import os\nn = 0\ntry:\n    for _ in range(200):\n        f = os.memfd_create('x'); n += os.write(f, bytes(8 << 20))\nexcept OSError: pass\nif n > 600 << 20: print('REACHED', n)",
    ),
    Attack(
        "shared_memory",
        "makes memory that outlives it",
        "import ctypes\nlibc = ctypes.CDLL(None)\nif libc.shmget(0x4242, 1 << 20, 0o1666) >= 0: print('made')\nfrom multiprocessing import shared_memory\ntry:\n    shared_memory.SharedMemory('left_behind_x', create=True, size=1 << 20); print('REACHED')\nexcept OSError: pass",
    ),
    Attack(
        "huge_text", "makes a text of gigabytes by a format", in_a_call("'%*d' % (2**31 - 1, 1)")
    ),
    Attack("huge_answer", "answers with 300 MB", in_a_call("return 'x' * (300 << 20)")),
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
    Attack("output", "prints without end", in_a_call("while True: print('x' * 100_000)")),
    Attack(
        "output_behind_print",
        "writes to the descriptor itself without end",
        in_a_call("import os\n    while True: os.write(1, b'x' * 100_000)"),
    ),
    Attack(
        "output_file_grown",
        "grows the file behind its output to a terabyte",
        "import os\nfor grow in (lambda: os.ftruncate(1, 1 << 40), lambda: os.posix_fallocate(1, 0, 2 << 30), lambda: os.pwrite(1, b'x', 1 << 40)):\n    try:\n        grow(); print('REACHED')\n    except OSError: pass",
    ),
    Attack(
        "disk",
        "fills the disk wherever it can write",
        "import os\nwritten = 0\nfor folder in ('.', '/tmp', '/dev/shm', '/var/tmp', '/', '/box', 'COURSE'):\n    for n in range(40):\n        try:\n            with open(f'{folder}/left_behind_{n}', 'wb') as file: written += file.write(bytes(900_000))\n        except OSError: break\nif written > 8 << 20: print('REACHED', written)",
    ),
    Attack(
        "many_files",
        "makes a hundred thousand empty files",
        "n = 0\ntry:\n    for n in range(100_000): open(f'left_behind_{n}', 'w').close()\nexcept OSError: pass\nif n > 8000: print('REACHED', n)",
    ),
    Attack(
        "many_descriptors",
        "opens files until there are no numbers left",
        "import os\nn = 0\ntry:\n    while n < 100_000: os.dup(1); n += 1\nexcept OSError: pass\nif n > 100: print('REACHED', n)",
    ),
    Attack(
        "pipes",
        "keeps the kernel's memory in pipes",
        "import fcntl, os\nn = 0\ntry:\n    while True:\n        r, w = os.pipe()\n        try: fcntl.fcntl(w, 1031, 1 << 20)\n        except OSError: pass\n        os.set_blocking(w, False); n += os.write(w, bytes(1 << 20))\nexcept OSError: pass\nif n > 64 << 20: print('REACHED', n)",
    ),
    Attack(
        "hanging_at_exit",
        "hangs when the interpreter ends",
        "import atexit, time\natexit.register(time.sleep, 10**6)\nclass Late:\n    def __del__(self): time.sleep(10**6)\nlate = Late()",
    ),
    Attack(
        "hanging_texts",
        "hangs when it is printed or compared",
        "import time\nclass Slow(Exception):\n    def __str__(self): time.sleep(10**6)\n    __repr__ = __eq__ = __hash__ = __bool__ = __len__ = __str__"
        + in_a_call("raise Slow"),
    ),
    Attack(
        "timers",
        "sends itself alarms all the time",
        "import signal\nsignal.signal(signal.SIGALRM, lambda *a: None)\nsignal.setitimer(signal.ITIMER_REAL, 0.0001, 0.0001)",
    ),
    Attack(
        "higher_priority",
        "raises its priority and its limits",
        "import os, resource\nfor act in (lambda: os.nice(-20), lambda: os.setpriority(0, 0, -20), lambda: resource.setrlimit(resource.RLIMIT_AS, (-1, -1)), lambda: resource.setrlimit(resource.RLIMIT_CPU, (-1, -1)), lambda: os.sched_setscheduler(0, 1, os.sched_param(99))):\n    try:\n        act(); print('REACHED')\n    except (OSError, ValueError): pass",
    ),
    Attack(
        "hundred_thousand_names",
        "defines a hundred thousand names",
        "globals().update({f'n{n}': n for n in range(100_000)})",
    ),
    Attack(
        "five_thousand_layers",
        "a module of five thousand layers",
        "class Head(nn.Module):\n    def __init__(self, *sizes):\n        super().__init__()\n        self.all = nn.ModuleList(nn.Linear(1, 1) for _ in range(5000))\n    def forward(self, x): return x",
        course=HEADS,
    ),
    Attack(
        "huge_layers",
        "a module of a hundred megabytes",
        "class Head(nn.Module):\n    def __init__(self, *sizes):\n        super().__init__()\n        self.key = nn.Linear(5000, 5000)\n    def forward(self, x): return x",
        course=HEADS,
    ),
    Attack(
        "memory_kept_for_gradients",
        "answers with graphs that never end",
        "def attention(q, k, v, mask=None):\n    for _ in range(100_000): q = q * 1.0001\n    return q, q",
        course=HEADS,
    ),
]
