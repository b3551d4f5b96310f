"""The command-line interface. Each command parses its arguments, calls the engine and prints the result.

This module imports nothing that takes long, so that Ctrl-C is answered while the commands are still
being imported.
"""

import os
import sys
from typing import TYPE_CHECKING, Any

from autograder.cli.interrupts import answer_signals

if TYPE_CHECKING:
    from autograder.cli.commands import app

__all__ = ["app", "main"]


def main() -> None:
    """Run the `autograder` command."""
    answer_signals()
    from autograder.text.consoles import print_replacements
    from autograder.walls.outside.trusted_process import forget_current_folder

    for stream in (sys.stdout, sys.stderr):
        print_replacements(stream)
    forget_current_folder()
    # a process with several threads should not fork, and NumPy's library starts some when it is
    # imported
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from autograder.cli.commands import app

    app()


def __getattr__(name: str) -> Any:
    if name != "app":
        raise AttributeError(f"module 'autograder.cli' has no attribute {name!r}")
    from autograder.cli.commands import app

    return app
