"""The subject of a test: the student's module, the reference, and their random state."""

import random
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
import torch

from autograder.proxy.connection import Connection
from autograder.proxy.local import LocalStudent
from autograder.proxy.remote import RemoteStudent
from autograder.source import text as source

AnyConnection = TypeVar("AnyConnection", bound=Connection)


@dataclass
class Use:
    """The use of a name in a student's text, with its place; `cell` is 0 for a `.py`.

    `dynamic` marks a name that looks up other names at run time.
    """

    name: str
    line: int
    cell: int = 0
    dynamic: bool = False
    module: str = ""

    @property
    def place(self) -> str:
        within = f"cell {self.cell}" if self.cell else self.module
        return f"Line {self.line} of {within}" if within else f"Line {self.line}"


class Subject:
    """A student's module in this process."""

    def __init__(self, student: LocalStudent | RemoteStudent, reference: Any = None, uses: Iterable[Use] = ()) -> None:
        self.student = student
        self.reference = reference
        self.uses = list(uses)
        self._forbidden: dict[tuple[str, ...], Use | None] = {}

    def begin(self, seed: int, reads_output: bool = False) -> None:
        """Prepare a test: seed the random generators, equally for all students of a run.

        If the test `reads_output`, what the student's code prints is printed in this process, too.
        """
        torch.default_generator.manual_seed(seed)  # torch.manual_seed formats a stack for each accelerator
        np.random.seed(seed % 2**32)
        random.seed(seed)

    def share(self, folder: Path) -> None:
        """Let the student's code read and write a folder of the present test, wherever that code runs."""

    def forbidden(self, names: Iterable[str]) -> Use | None:
        """Return the first use of one of the names, or None."""
        wanted = tuple(names)
        if wanted not in self._forbidden:  # most tests of a suite forbid the same names
            uses = (use for use in self.uses if not use.dynamic)
            found = (use for use in uses if any(_matches(use.name, name) for name in wanted))
            self._forbidden[wanted] = next(found, None)
        return self._forbidden[wanted]


class RemoteSubject(Subject, Generic[AnyConnection]):
    """A student's module behind a connection."""

    def __init__(
        self, connection: AnyConnection, student: RemoteStudent, reference: Any, uses: Iterable[Use] = ()
    ) -> None:
        super().__init__(student, reference, uses)
        self.connection = connection

    def begin(self, seed: int, reads_output: bool = False) -> None:
        self.connection.reads_output = reads_output
        self.connection.start_test(seed)
        super().begin(seed, reads_output)

    def share(self, folder: Path) -> None:
        self.connection.share(folder)


def uses_in(text: str, filename: str, tests: str | None = None) -> list[Use]:
    """Return the names used in a trusted text, or in the text of this process's own student, by parsing only.

    With the text of the `tests`, only names reachable from them are returned.
    """
    entry_points = None if tests is None else set(re.findall(r"\.(\w+)", tests))
    return [Use(*found) for found in source.names_used(text, filename, entry_points)["uses"]]


def _matches(used: str, forbidden: str) -> bool:
    """Whether a used name is forbidden: `torch.nn.modules.normalization.LayerNorm` is `torch.nn.LayerNorm`.

    A forbidden name without a dot includes all names below it: `torch.fft` uses `torch`. Of a dotted one, the root
    and the last component have to match.
    """
    if "." not in forbidden:
        return used == forbidden or used.startswith(f"{forbidden}.")
    root, last = forbidden.split(".")[0], forbidden.rsplit(".", 1)[1]
    parts = used.split(".")
    return parts[0] == root and last in parts[1:]
