"""The memory of the container that grades on Gradescope: how much there is, and whether it ran out.

A process that the kernel kills for want of memory may be the student's or the grader's. Neither is
a student's fault, so nothing is graded then.
"""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from autograder.records import InfrastructureError

# the most that scripts/gradescope_rehearsal.py measures in an assignment of the course
NEEDED_MB = 700
MEGABYTE = 1 << 20
NO_LIMIT = 1 << 50  # version 1 of control groups writes a number near 2**63
REMEDY = "On Gradescope, choose at least 1.5 GB of RAM: Settings, Container Specifications."


@dataclass(frozen=True)
class ContainerMemory:
    """The memory limit as the container's control group tells it, in version 2 or 1; see `kills` for processes."""

    folder: Path

    @property
    def megabytes(self) -> int | None:
        """The limit; None if there is none, or none can be read."""
        for name in ("memory.max", "memory/memory.limit_in_bytes"):
            text = _read(self.folder / name).strip()
            if text.isdigit() and int(text) < NO_LIMIT:
                return int(text) // MEGABYTE
        return None

    @property
    def kills(self) -> int:
        """How many processes the kernel has killed in this container because its memory ran out."""
        for name in ("memory.events", "memory/memory.oom_control"):
            for line in _read(self.folder / name).splitlines():
                if line.startswith("oom_kill "):
                    return int(line.split()[1])
        return 0

    def require(self) -> None:
        """Raise InfrastructureError if the container has less memory than grading needs."""
        megabytes = self.megabytes
        if megabytes is not None and megabytes < NEEDED_MB:
            raise InfrastructureError(
                f"Nothing was graded: this container has {megabytes} MB of memory, and grading needs {NEEDED_MB} MB. "
                f"{REMEDY}"
            )

    def require_no_kill_since(self, kills: int) -> None:
        """Raise InfrastructureError if a process was killed since there were so many `kills`."""
        if self.kills > kills:
            raise InfrastructureError(
                f"Nothing was graded: the container ran out of memory, and the system ended a process. {REMEDY} If this "
                "happens with one submission only, its code uses much memory: `memory_mb` in course.yml limits it."
            )


def _read(path: Path) -> str:
    with suppress(OSError):
        return path.read_text("utf-8", "replace")
    return ""
