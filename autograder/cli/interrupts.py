"""Ctrl-C and SIGTERM: a sentence and an exit code, whatever this process is doing.

While a command works, a signal raises KeyboardInterrupt, so that it can finish what it has begun.
Before and after, while modules are imported or the interpreter shuts down, there is nothing to
finish, and an exception could end in anything.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

STOPPED = "Stopped. Finished work is kept; run the same command again to continue."
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_process = os.getpid()
_received: list[int] = []  # by the present command


def answer_signals() -> None:
    """Answer signals of this process from now on; one that is ignored, as in a background job, stays ignored."""
    global _process
    _process = os.getpid()
    for number in _SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _end)


@contextmanager
def raised_as_exceptions() -> Iterator[None]:
    """Raise KeyboardInterrupt for a signal inside, if this process answers signals."""
    _received.clear()
    answered = [number for number in _SIGNALS if signal.getsignal(number) is _end]
    try:
        for number in answered:
            signal.signal(number, _raise)
        yield
    except Exception:
        if _received:  # an import that was interrupted raised something else
            raise KeyboardInterrupt from None
        raise
    finally:
        for number in answered:
            signal.signal(number, _end)


def exit_code() -> int:
    """Return the exit code of a command that was interrupted: that of a shell for the signal, or for Ctrl-C."""
    return 128 + (_received[-1] if _received else signal.SIGINT)


def _end(number: int, frame: object) -> None:
    _leave_forks_alone(number)
    os.write(2, f"{STOPPED}\n".encode())  # `sys.stderr` may be in the middle of another text
    os._exit(128 + number)


def _raise(number: int, frame: object) -> None:
    _leave_forks_alone(number)
    _received.append(number)
    raise KeyboardInterrupt


def _leave_forks_alone(number: int) -> None:
    """End a fork of this process as if it had no handler: it has nothing to finish and nothing to say."""
    if os.getpid() != _process:
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
