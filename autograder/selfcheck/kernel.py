"""What the functions of a notebook know while its kernel runs: where the assignment's files are, and
what has been checked so far.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from autograder.feedback.render import Message

_PART = re.compile(r"""\b(?:task|part)\(\s*["'](\w+)["']""")  # @task("mask", 1)


@dataclass
class Kernel:
    """The memory of one kernel.

    `folder` is that of the assignment's files, once it is known; `seen` holds the latest results of
    each part, and `waiting` the unwritten names that executed cells need.
    """

    folder: Path | None = None
    seen: dict[str, Message] = field(default_factory=dict)
    waiting: list[str] = field(default_factory=list)

    @property
    def here(self) -> Path:
        """Where the assignment's files are looked for."""
        return self.folder or Path.cwd()

    def open_assignment(self, name: str) -> None:
        """Look for the folder with the assignment's tests, in or near the notebook's."""
        here = Path.cwd()
        test_file = f"test_{name.partition('_')[2]}.py"
        near = [
            here,
            here / name,
            *(above / "assignments" / name for above in (here, *here.parents[:2])),
        ]
        near += sorted(here.glob(f"*/assignments/{name}"))
        self.folder = next((folder for folder in near if (folder / test_file).is_file()), None)

    def test_file(self, part: Any) -> Path | None:
        """Return the test file in the assignment's folder with tests of the part, or of any part for ""."""
        for path in sorted(self.here.glob("test_*.py")):
            if not part or part in parts_of(path):
                return path
        return None


this_kernel = Kernel()


def parts_of(test_file: Path) -> list[str]:
    """Return the parts that the tests of a file are about, in their order, without running it."""
    return list(dict.fromkeys(_PART.findall(test_file.read_text("utf-8"))))
