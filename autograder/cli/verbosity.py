"""How much a command says: `--quiet` and `--verbose`, for all that prints."""

from contextvars import ContextVar

QUIET: ContextVar[bool] = ContextVar("quiet", default=False)
VERBOSE: ContextVar[bool] = ContextVar("verbose", default=False)
