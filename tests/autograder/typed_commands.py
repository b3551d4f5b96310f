"""Commands as an instructor types them, for tests of whole days."""

from __future__ import annotations

from typer.testing import CliRunner

from autograder.cli import app


def run_command(*words: str, code: int = 0) -> str:
    """Return the output of a command that ends with this exit code."""
    done = CliRunner().invoke(app, words)
    assert done.exit_code == code, done.output
    return done.output
