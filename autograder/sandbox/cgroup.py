"""Limits on all workers of a fork server together, by cgroup v2 where it is delegated to this user.

Each worker has limits of its own everywhere; these count what they miss, such as the files on a worker's disk.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

TREE, OWN = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")
CONTROLLERS = {"cpu", "memory", "pids"}
GRADERS, SANDBOX = "autograder-graders", "autograder-sandbox-"
WORKERS = 4  # of one fork server at the same time, at most


class Group:
    """A new group for one fork server and its workers, which may use one processor together."""

    def __init__(self, parent: Path) -> None:
        self.folder = parent / f"{SANDBOX}{os.urandom(8).hex()}"
        self.folder.mkdir()
        self._own_bytes = 0
        self._set("cpu.max", "100000 100000")

    def joining(self, command: list[str]) -> list[str]:
        """Return a command that enters the group first; if it cannot, it runs without these limits."""
        enter = 'echo $$ > "$0"; exec "$@"'
        return ["/bin/sh", "-c", enter, str(self.folder / "cgroup.procs"), *command]

    def limit(self, limits: Mapping[str, float]) -> None:
        """Set what all workers together may use beside the fork server itself."""
        with suppress(OSError, ValueError):
            self._own_bytes = self._own_bytes or int((self.folder / "memory.current").read_text())
            each = int(limits["memory_mb"] + limits["scratch_mb"]) << 20
            self._set("memory.max", self._own_bytes + WORKERS * each)
            self._set("pids.max", WORKERS * (1 + int(limits["processes"])))

    def close(self) -> None:
        with suppress(OSError):
            self.folder.rmdir()

    def _set(self, name: str, value: object) -> None:
        (self.folder / name).write_text(str(value))


def open_group() -> Group | None:
    """Return a new group; None where cgroup v2 is not delegated."""
    with suppress(OSError):
        parent = delegated()
        if parent is not None:
            _make_room(parent)
            return Group(parent)
    return None


def delegated() -> Path | None:
    """Return the group of this process if this user may divide it with all controllers.

    Root can write every group, but systemd marks those that it has given away.
    """
    with suppress(OSError, StopIteration):
        path = next(line[4:] for line in OWN.read_text().splitlines() if line.startswith("0::/"))
        folder = TREE / path.removesuffix(GRADERS)
        names = (".", "cgroup.procs", "cgroup.subtree_control")
        ours = all(os.access(folder / name, os.W_OK) for name in names)
        if ours and os.getuid() == 0:
            ours = os.getxattr(folder, "user.delegate") == b"1"
        if ours and set((folder / "cgroup.controllers").read_text().split()) >= CONTROLLERS:
            return folder
    return None


def _make_room(parent: Path) -> None:
    """Move this group's processes to one of their own: a group with processes has none below it."""
    (parent / GRADERS).mkdir(exist_ok=True)
    for pid in (parent / "cgroup.procs").read_text().split():
        (parent / GRADERS / "cgroup.procs").write_text(pid)
    (parent / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in sorted(CONTROLLERS)))
