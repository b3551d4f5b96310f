"""How much of this machine one repository may take."""

from dataclasses import dataclass

from autograder.source.gate import MEGABYTE


@dataclass(frozen=True)
class Limits:
    """The limits of one repository: what it sends and what is stored of it, its files, and the
    seconds of each step.
    """

    bytes: int = 100 * MEGABYTE
    files: int = 20_000
    seconds: float = 120
    at_once: int = 8  # repositories
