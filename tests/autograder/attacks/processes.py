"""Attacks by processes, signals, privileges and system calls."""

from tests.autograder.attacks.field import Attack


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
]
