"""Attacks by processes, signals, privileges and system calls."""

# ruff: noqa: E501 (an attack on one line is one attack)

from tests.autograder.attacks.field import Attack


def syscalls(**numbers: tuple) -> str:
    """Make system calls by their x86-64 number, and report those that are not refused."""
    return f"""
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
for name, (number, *arguments) in {numbers!r}.items():
    if libc.syscall(number, *arguments) >= 0:
        print("REACHED", name)
"""


def each(*actions: str) -> str:
    return "import ctypes, os, signal, subprocess, sys\n" + "".join(
        f"try:\n    print('REACHED', {action!r}, {action})\nexcept Exception: pass\n"
        for action in actions
    )


ATTACKS = [
    Attack(
        "fork",
        "forks by each of Python's functions",
        each(
            "os.fork()",
            "os.forkpty()",
            "__import__('pty').fork()",
            "__import__('multiprocessing').get_context('fork').Pool(1)",
        ),
    ),
    Attack(
        "threads_that_outlive",
        "leaves threads that wait for later",
        "import threading, time\nfor _ in range(8): threading.Thread(target=time.sleep, args=(300,)).start()",
    ),
    Attack("kill_the_group", "kills its process group", "import os\nos.killpg(0, 9)"),
    Attack(
        "illegal_instructions",
        "jumps into its own machine code",
        "import ctypes, mmap\ntry:\n    m = mmap.mmap(-1, 4096, prot=7); m.write(b'\\x0f\\x0b'); ctypes.CFUNCTYPE(None)(ctypes.addressof(ctypes.c_char.from_buffer(m)))()\nexcept OSError: pass",
    ),
    Attack(
        "clone_with_namespaces",
        "clones itself into new namespaces",
        syscalls(clone=(56, 0x10000000 | 17, 0, 0, 0, 0), clone3=(435, 0, 88)),
    ),
    Attack(
        "rare_calls",
        "uses parts of the kernel that are rarely watched",
        syscalls(
            keyctl=(250, 0, -3, 1),
            add_key=(248, b"user", b"x", b"y", 1, -3),
            uring=(425, 8, 0),
            bpf=(321, 0, 0, 0),
            faults=(323, 0),
            perf=(298, 0, 0, -1, -1, 0),
            secret=(447, 0),
            modules=(175, 0, 0, 0),
            kexec=(246, 0, 0, 0, 0),
        ),
    ),
]
