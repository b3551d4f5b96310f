"""The isolation of one worker, in three strengths with one interface: `prepare`, `fork`, `enter`.

This module runs inside the sandbox, holds no secret, and does not affect a grade.
"""

import ctypes
import os
import platform
import resource
import signal
import struct
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from autograder.walls.inside import landlock, scratch, seccomp
from autograder.walls.inside.libc import check, libc

ON_LINUX = sys.platform == "linux"
NOBODY = 65534
MEGABYTE = 1 << 20
SCRATCH = "/box"

NEW_MOUNTS = 0x00020000
NEW_CGROUPS = 0x02000000
NEW_HOSTNAME = 0x04000000
NEW_IPC = 0x08000000
NEW_USERS = 0x10000000
NEW_PIDS = 0x20000000
NEW_NETWORK = 0x40000000

READ_ONLY = 1
NO_SETUID = 2
NO_DEVICES = 4
NO_PROGRAMS = 8
RECURSIVE = 0x4000
PRIVATE = 1 << 18

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_CAPBSET_DROP = 24
PR_SET_NO_NEW_PRIVS = 38
PR_CAP_AMBIENT = 47
PR_CAP_AMBIENT_CLEAR_ALL = 4
CAPABILITY_VERSION_3 = 0x20080522
READ_SEARCH = 2  # CAP_DAC_READ_SEARCH
LAST_CAPABILITY = 63
# the first Linux that counts the processes of a user namespace apart from those of its owner
COUNTED_APART = (5, 14)


@dataclass(frozen=True)
class Footprint:
    """The resources that this process uses before any student code runs; limits are added to them."""

    address_space: int
    data: int

    @classmethod
    def now(cls) -> "Footprint":
        """Measure this process; zeros if the system does not provide the numbers."""
        try:
            with open("/proc/self/statm") as file:
                pages = [int(word) for word in file.read().split()]
        except OSError:
            return cls(0, 0)
        size = resource.getpagesize()
        return cls(pages[0] * size, pages[5] * size)


class Walls:
    """What isolates workers: a sandbox of one tier, with the steps that all tiers share."""

    name = ""
    needs_filter = False

    def __init__(self, readable: Iterable[str], hidden: Iterable[str]) -> None:
        self.readable = tuple(readable)
        self.hidden = tuple(hidden)
        self.note = ""
        self.scratch = ""  # the folder with those of the workers, unless each has a disk of its own
        # gets the descriptor by which calls are heard of that the filter refuses a worker
        self.hand_over: Callable[[int], None] | None = None

    def prepare(self) -> None:
        """Drop root privileges if possible; called once, at the start of the fork server."""
        if os.getuid() != 0:
            return
        closed = [
            path for path in self.readable if os.path.isdir(path) and not _is_open_to_nobody(path)
        ]
        if not closed:
            become_nobody()
        else:
            self.note = (
                f"Workers stay user 0, without capabilities, because no other user can reach {closed[0]}; "
                "their number of threads is not limited."
            )

    def make_room(self) -> None:
        """Make the folder with those of the workers; called once, when workers can be forked."""
        self.scratch = tempfile.mkdtemp(prefix=f"autograder-{os.getpid()}-", dir="/tmp")

    def fork(self) -> int:
        """Fork as `os.fork` does."""
        return os.fork()

    def enter(self, limits: Mapping[str, float], footprint: Footprint) -> None:
        """Isolate the new worker, with the strictest step last. Raises OSError if a step fails."""
        os.setsid()
        parent = os.getppid()
        processes = self._process_limit(limits)
        self._hide_files(limits)
        limit_resources(limits, footprint, processes)
        if not ON_LINUX:
            return
        drop_privileges()
        die_with_parent(parent)
        self.filter_calls()

    def _hide_files(self, limits: Mapping[str, float]) -> None:
        scratch.make_folder(f"{self.scratch}/{os.getpid()}")

    def is_overfull(self, worker: int, limits: Mapping[str, float]) -> bool:
        """Whether a worker has written more files than it may."""
        most = int(limits["scratch_mb"]) * MEGABYTE
        return scratch.is_overfull(f"{self.scratch}/{worker}", most)

    def remove_files(self, worker: int) -> None:
        """Remove the folder of a worker that has ended."""
        scratch.remove_folder(f"{self.scratch}/{worker}")

    def close(self) -> None:
        """Remove what `make_room` made."""
        if self.scratch:
            scratch.remove_folder(self.scratch)

    def _process_limit(self, limits: Mapping[str, float]) -> int:
        return int(limits["processes"]) + count_tasks(os.getuid())

    def filter_calls(self) -> None:
        """Refuse system calls that no worker needs, for good; raises OSError where a tier cannot do
        without and this machine has no list of them.
        """
        if seccomp.supported():
            labels = seccomp.OF_WORKERS
            listener = seccomp.listen(platform.machine()) if self.hand_over else None
            if listener is not None and self.hand_over:
                self.hand_over(listener)
                os.close(listener)
                labels = seccomp.OF_WATCHED_WORKERS
            seccomp.install(seccomp.filter_program(platform.machine(), os.getpid(), labels))
        elif self.needs_filter:
            raise OSError(f"there is no list of system calls for {platform.machine()} machines")


class Unsafe(Walls):
    """No isolation but separate processes and limits: a worker can read the files of this user."""

    name = "unsafe"


class Landlock(Walls):
    """Hides all files except the interpreter's and its packages'; needs no namespaces and no privileges."""

    name = "landlock"
    needs_filter = True

    def make_room(self) -> None:
        """Also find out, once for all workers, what shows Python without packages that lie beside it."""
        super().make_room()
        self._shown = landlock.around(self.readable, self.hidden)

    def _hide_files(self, limits: Mapping[str, float]) -> None:
        super()._hide_files(limits)
        hide_from_memory_killer()
        no_new_privileges()
        readable, listed = self._shown
        landlock.restrict(readable, [os.getcwd()], listed)


class Namespaces(Walls):
    """Separate namespaces for users, mounts, processes, network and host name, and a small private disk."""

    name = "namespaces"
    needs_filter = True

    def prepare(self) -> None:
        """Drop root privileges for good and enter a new user and process namespace."""
        if os.getuid() == 0:
            become_nobody()
        new_namespaces(NEW_PIDS | NEW_MOUNTS)
        _go_on_as_child()
        self.own_pids = os.open("/proc/self/ns/pid_for_children", os.O_RDONLY | os.O_CLOEXEC)

    def make_room(self) -> None:
        """Each worker has a disk of its own."""

    def fork(self) -> int:
        """Fork a child that is the first process of a new process namespace."""
        check(libc().unshare(NEW_PIDS), "making a process namespace")
        pid = os.fork()
        if pid:
            check(libc().setns(self.own_pids, NEW_PIDS), "returning to the process namespace")
        return pid

    def _hide_files(self, limits: Mapping[str, float]) -> None:
        hide_from_memory_killer()
        new_namespaces(NEW_MOUNTS | NEW_IPC | NEW_NETWORK | NEW_HOSTNAME | NEW_CGROUPS)
        cover_shared_files(int(limits["scratch_mb"]))

    def is_overfull(self, worker: int, limits: Mapping[str, float]) -> bool:
        """A disk that is full says so itself."""
        return False

    def remove_files(self, worker: int) -> None:
        """Its disk has ended with it."""

    def _process_limit(self, limits: Mapping[str, float]) -> int:
        if kernel_version() >= COUNTED_APART:
            return int(limits["processes"])
        return super()._process_limit(limits)


TIERS: dict[str, type[Walls]] = {tier.name: tier for tier in (Namespaces, Landlock, Unsafe)}
SAFE_TIERS = tuple(TIERS)[:-1]


def kernel_version() -> tuple[int, int]:
    """Return (6, 1) for Linux 6.1.0-something."""
    major, minor = platform.release().split(".")[:2]
    return int(major), int("".join(filter(str.isdigit, minor)) or 0)


def become_nobody() -> None:
    """Switch from root to an unprivileged user for good."""
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)
    if ON_LINUX:  # without this its own files under /proc would still belong to root
        check(libc().prctl(PR_SET_DUMPABLE, 1, 0, 0, 0), "keeping /proc/self")


def _is_open_to_nobody(folder: str) -> bool:
    """Whether an unprivileged user can read a folder; tested in a child, as dropping root is final."""
    pid = os.fork()
    if pid == 0:
        readable = False
        try:
            become_nobody()
            readable = os.access(folder, os.R_OK | os.X_OK)
        finally:
            os._exit(0 if readable else 1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def new_namespaces(kinds: int) -> None:
    """Move this process to new namespaces, owned by a new user namespace that contains only this user."""
    uid = os.getuid()
    gid = os.getgid()
    check(libc().unshare(NEW_USERS | kinds), "making namespaces")
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{uid} {uid} 1"),
        ("gid_map", f"{gid} {gid} 1"),
    ):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def _go_on_as_child() -> None:
    """Continue in a child, which is process 1 of the new namespace; the parent only waits for it."""
    pid = os.fork()
    if pid == 0:
        check(
            libc().prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0),
            "tying the fork server to its parent",
        )
        return
    os.closerange(3, 4096)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os._exit(code if code >= 0 else 128 - code)


def cover_shared_files(scratch_mb: int) -> None:
    """Mount a private disk at `/box`, an empty folder over `/proc`, and one that nobody can open over `/sys`."""
    mount("none", "/", "none", RECURSIVE | PRIVATE)
    plain = NO_SETUID | NO_DEVICES | NO_PROGRAMS
    mount("tmpfs", SCRATCH, "tmpfs", plain, f"size={scratch_mb}m,nr_inodes=4096,mode=1777")
    mount("tmpfs", "/proc", "tmpfs", plain | READ_ONLY, "size=4k,nr_inodes=2")
    mount("tmpfs", "/sys", "tmpfs", plain | READ_ONLY, "size=4k,nr_inodes=2,mode=000")
    os.chdir(SCRATCH)


def mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    """Call mount(2); raises OSError."""
    words = [word.encode() for word in (source, target, kind)]
    check(libc().mount(*words, flags, options.encode()), f"mounting {target}")


def limit_resources(limits: Mapping[str, float], footprint: Footprint, processes: int) -> None:
    """Set soft and hard limits alike, so that none can be raised again."""
    memory = int(limits["memory_mb"]) * MEGABYTE
    wanted = {
        "CPU": int(limits["cpu_seconds"]),
        "FSIZE": int(limits["file_mb"]) * MEGABYTE,
        "NOFILE": int(limits["open_files"]),
        "NPROC": processes,
        "STACK": 16 * MEGABYTE,
        "CORE": 0,
        "MEMLOCK": 0,
        "MSGQUEUE": 0,
        "SIGPENDING": 256,
    }
    if ON_LINUX:  # DATA alone misses shared mappings; elsewhere neither can be relied on
        wanted["DATA"] = footprint.data + memory
        wanted["AS"] = footprint.address_space + memory
    for name, value in wanted.items():
        kind = getattr(resource, f"RLIMIT_{name}", None)
        if kind is not None:
            _, hard = resource.getrlimit(kind)
            value = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(kind, (value, value))


def count_tasks(uid: int) -> int:
    """Count this user's threads on the machine, all of which count without a user namespace."""
    count = 0
    for name in os.listdir("/proc") if os.path.isdir("/proc/self") else []:
        try:
            if name.isdigit() and os.stat(f"/proc/{name}").st_uid == uid:
                count += len(os.listdir(f"/proc/{name}/task"))
        except OSError:  # it ended meanwhile
            continue
    return count


def hide_from_memory_killer() -> None:
    """Make the kernel kill a worker before the grader when the machine runs out of memory."""
    with open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")


def no_new_privileges() -> None:
    """Prevent this process from gaining privileges through any program, setuid or not."""
    check(libc().prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "giving up new privileges")


def drop_privileges(read_all: bool = False) -> None:
    """Drop all capabilities, and the means to regain any; with `read_all`, root keeps the right to read all files."""
    for capability in range(LAST_CAPABILITY + 1):
        # the end of the list, or none to drop
        if libc().prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) < 0:
            break
    libc().prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    header = struct.pack("Ii", CAPABILITY_VERSION_3, 0)
    has = ctypes.create_string_buffer(24)
    check(libc().capget(header, has), "asking for capabilities")
    kept = struct.unpack("6I", has)[1] & (1 << READ_SEARCH if read_all else 0)
    check(libc().capset(header, struct.pack("6I", kept, kept, 0, 0, 0, 0)), "dropping capabilities")
    no_new_privileges()


def die_with_parent(parent: int) -> None:
    """Make the kernel kill this process when its parent ends; exit now if it already has."""
    check(
        libc().prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0),
        "tying the worker to the fork server",
    )
    if os.getppid() != parent:
        os._exit(1)
