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
        "programs",
        "starts programs",
        each(
            "subprocess.run(['/usr/bin/env'], check=True)",
            "os.posix_spawn('/bin/sh', ['sh', '-c', 'id'], {})",
            "os.execv('/bin/sh', ['sh', '-c', 'echo REACHED'])",
            "os.popen('id').read() or 1 / 0",
        ),
    ),
    Attack(
        "shell",
        "starts a shell through C",
        "import ctypes\nctypes.CDLL(None).system(b'echo REACHED')",
    ),
    Attack(
        "program_in_memory",
        "runs a program that exists only in memory",
        each(
            "os.execve(os.memfd_create('x'), ['x'], {})",
            "ctypes.CDLL(None).fexecve(3, None, None) == -1 and 1 / 0",
        ),
    ),
    Attack(
        "daemon",
        "leaves a daemon behind",
        "import os, time\ntry:\n    if os.fork() == 0:\n        os.setsid()\n        if os.fork() == 0: time.sleep(300)\n        os._exit(0)\n    print('REACHED')\nexcept OSError: pass",
    ),
    Attack(
        "threads_that_outlive",
        "leaves threads that wait for later",
        "import threading, time\nfor _ in range(8): threading.Thread(target=time.sleep, args=(300,)).start()",
    ),
    Attack(
        "kill_all",
        "kills whatever it may",
        "import os\nfor pid in (-1, 0, os.getppid(), *range(2, 300)):\n    try:\n        if pid != os.getpid(): os.kill(pid, 9); print('REACHED', pid)\n    except OSError: pass",
    ),
    Attack("kill_the_group", "kills its process group", "import os\nos.killpg(0, 9)"),
    Attack(
        "kill_by_thread",
        "kills by the calls for threads",
        syscalls(tgkill=(234, 1, 2, 9), tkill=(200, 2, 9), queue=(129, 2, 9, 0), pidfd=(434, 2, 0)),
    ),
    Attack(
        "kill_itself",
        "kills itself in each call",
        "import os\ndef add(a, b): os.kill(os.getpid(), 9)",
    ),
    Attack("abort", "aborts in C", "import ctypes\ndef add(a, b): ctypes.CDLL(None).abort()"),
    Attack(
        "null_pointer",
        "reads where nothing is",
        "import ctypes\ndef add(a, b): return ctypes.string_at(0)",
    ),
    Attack(
        "illegal_instructions",
        "jumps into its own machine code",
        "import ctypes, mmap\ntry:\n    m = mmap.mmap(-1, 4096, prot=7); m.write(b'\\x0f\\x0b'); ctypes.CFUNCTYPE(None)(ctypes.addressof(ctypes.c_char.from_buffer(m)))()\nexcept OSError: pass",
    ),
    Attack(
        "stack",
        "runs out of the stack in C",
        "import ctypes\nlibc = ctypes.CDLL(None)\nT = ctypes.CFUNCTYPE(None)\ndef f(): g()\ng = T(f)\ndef add(a, b): g()",
    ),
    Attack(
        "tracing_others",
        "traces, stops and continues other processes",
        syscalls(
            attach=(101, 16, 1, 0, 0),
            seize=(101, 0x4206, 2, 0, 0),
            writev=(311, 2, 0, 0, 0, 0),
            compare=(312, 1, 2, 0, 0, 0),
        ),
    ),
    Attack(
        "namespaces",
        "makes and enters namespaces",
        syscalls(
            users=(272, 0x10000000),
            mounts=(272, 0x20000),
            pids=(272, 0x20000000),
            enter=(308, 3, 0),
        ),
    ),
    Attack(
        "clone_with_namespaces",
        "clones itself into new namespaces",
        syscalls(clone=(56, 0x10000000 | 17, 0, 0, 0, 0), clone3=(435, 0, 88)),
    ),
    Attack(
        "mounts",
        "mounts, unmounts, changes its root",
        syscalls(
            mount=(165, b"/", b"/box", b"none", 4096, 0),
            umount=(166, b"/proc", 2),
            chroot=(161, b"/box"),
            pivot=(155, b"/", b"/box"),
            tree=(428, -100, b"/", 1),
            fsopen=(430, b"tmpfs", 0),
            move=(429, 3, b"", 3, b"/", 4),
        ),
    ),
    Attack(
        "privileges",
        "asks for another user and for capabilities",
        each(
            "os.setuid(0) or os.geteuid() or 'root'",
            "os.setgroups([0]) or 'groups'",
            "os.setresuid(0, 0, 0) or 'root'",
        ),
    ),
    Attack(
        "owners",
        "changes owners and modes of files",
        each(
            "os.chown('/usr', 1000, 1000) or 1",
            "os.chmod('/usr', 0o777) or 1",
            "os.chmod('/packages', 0o777) or 1",
            "os.setxattr('/usr', 'user.x', b'') or 1",
        ),
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
    Attack(
        "the_machine",
        "changes clock, name and power of the machine",
        syscalls(
            clock=(227, 0, 0),
            settime=(164, 0, 0),
            name=(170, b"owned", 5),
            domain=(171, b"owned", 5),
            reboot=(169, 0xFEE1DEAD, 672274793, 0, 0),
            swap=(167, b"/dev/null", 0),
            accounting=(163, 0),
            quota=(179, 0, 0, 0, 0),
        ),
    ),
    Attack(
        "shared_objects_of_the_kernel",
        "makes queues and semaphores that outlive it",
        syscalls(
            queue=(68, 0x4243, 0o1666),
            semaphores=(64, 0x4243, 4, 0o1666),
            posix=(240, b"left_behind_q", 0o102, 0o666, 0),
        ),
    ),
    Attack(
        "old_machine_code",
        "calls the kernel by the numbers of another machine",
        syscalls(x32_getpid=(0x40000000 + 39,), x32_fork=(0x40000000 + 57,), none=(99999,)),
    ),
    Attack(
        "personality",
        "switches off randomness of addresses",
        syscalls(personality=(135, 0x0040000)),
    ),
    Attack(
        "dumpable",
        "lets itself be read and dumped, and frees itself from its parent",
        "import ctypes\nlibc = ctypes.CDLL(None)\nlibc.prctl(4, 1, 0, 0, 0); libc.prctl(1, 0, 0, 0, 0); libc.prctl(36, 1, 0, 0, 0)\nimport resource\ntry: resource.setrlimit(resource.RLIMIT_CORE, (-1, -1)); print('REACHED')\nexcept (OSError, ValueError): pass\ndef add(a, b): libc.abort()",
    ),
    Attack(
        "owner_of_the_socket",
        "has signals sent to others through the socket's owner",
        each(
            "__import__('fcntl').fcntl(3, 8, 1) or 'owner'",
            "__import__('fcntl').fcntl(3, 10, 9) or 'signal'",
        ),
    ),
    Attack(
        "terminal",
        "types into the terminal of the person who grades",
        "import fcntl\nfor number in range(5):\n    for call in (0x5412, 0x541D, 0x540E):\n        try: fcntl.ioctl(number, call, b'x'); print('REACHED', number)\n        except (OSError, TypeError): pass",
    ),
    Attack(
        "limits_of_others",
        "sets limits and priorities of other processes",
        each(
            "__import__('resource').prlimit(os.getppid() or 2, 7, (0, 0))",
            "os.setpriority(os.PRIO_PROCESS, os.getppid(), 19) or 1",
            "os.setpriority(os.PRIO_USER, 0, 19) or 1",
            "os.sched_setaffinity(os.getppid(), {0}) or 1",
        ),
    ),
]
