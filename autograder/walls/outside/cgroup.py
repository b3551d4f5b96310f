"""Limits on all workers of a fork server together, by cgroup v2 where it is delegated to this user."""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

TREE = Path("/sys/fs/cgroup")
OWN = Path("/proc/self/cgroup")
GRADERS = "autograder-graders"
SANDBOX = "autograder-sandbox-"
WORKERS = 4  # of one fork server at the same time, at most


class Group:
    """A new group for one fork server and its workers, which may use one processor together."""

    def __init__(self, parent: Path) -> None:
        self.folder = parent / f"{SANDBOX}{os.urandom(8).hex()}"
        self.folder.mkdir()
        (self.folder / "cpu.max").write_text("100000 100000")
        self._own_bytes = 0
        # a fork that may open nothing for writing sets them, too
        self._memory, self._tasks = (
            os.open(self.folder / name, os.O_WRONLY | os.O_CREAT)
            for name in ("memory.max", "pids.max")
        )

    @property
    def descriptors(self) -> tuple[int, int]:
        """What `limit` needs to be open."""
        return self._memory, self._tasks

    def joining(self, command: list[str]) -> list[str]:
        """Return a command that enters the group first; if it cannot, it runs without these limits."""
        return [
            "/bin/sh",
            "-c",
            'echo $$ > "$0"; exec "$@"',
            str(self.folder / "cgroup.procs"),
            *command,
        ]

    def limit(self, limits: Mapping[str, float]) -> None:
        """Set what all workers together may use beside the fork server itself."""
        with suppress(OSError):
            self._own_bytes = self._own_bytes or int((self.folder / "memory.current").read_text())
            bytes_of_worker = int(limits["memory_mb"] + limits["scratch_mb"]) << 20
            memory = self._own_bytes + WORKERS * bytes_of_worker
            os.pwrite(self._memory, str(memory).encode(), 0)
            os.pwrite(self._tasks, str(WORKERS * (1 + int(limits["processes"]))).encode(), 0)

    def close(self) -> None:
        for descriptor in self.descriptors:
            os.close(descriptor)
        with suppress(OSError):
            self.folder.rmdir()


def open_group() -> Group | None:
    """Return a new group; None where cgroup v2 is not delegated.

    This group's processes move to one of their own: a group with processes has none below it.
    """
    with suppress(OSError):
        parent = delegated()
        if parent is not None:
            (parent / GRADERS).mkdir(exist_ok=True)
            for pid in (parent / "cgroup.procs").read_text().split():
                (parent / GRADERS / "cgroup.procs").write_text(pid)
            (parent / "cgroup.subtree_control").write_text("+cpu +memory +pids")
            return Group(parent)
    return None


def delegated() -> Path | None:
    """Return the group of this process if this user may divide it; root only what systemd marks as given away."""
    with suppress(OSError, StopIteration):
        path = next(line[4:] for line in OWN.read_text().splitlines() if line.startswith("0::/"))
        folder = TREE / path.removesuffix(GRADERS)
        ours = all(
            os.access(folder / name, os.W_OK)
            for name in (".", "cgroup.procs", "cgroup.subtree_control")
        )
        if ours and os.getuid() == 0:
            ours = os.getxattr(folder, "user.delegate") == b"1"
        if ours and {"cpu", "memory", "pids"} <= set(
            (folder / "cgroup.controllers").read_text().split()
        ):
            return folder
    return None
