"""Trusted processes import nothing from the current folder, where students' files may lie.

Python puts the current folder first on the path of `python -c …`, as which `multiprocessing` starts
its processes, and of `python -m …`. There, a student's `signal.py` would be imported in place of
Python's own module. The option `-P` prevents that, and in Python 3.10, which does not have it, the
first statement of the code; `sys` itself is built in. (`-I` would also drop settings such as
PYTHONPATH, which an installation may need.)

Those that `multiprocessing` starts are deaf to Ctrl-C from their first line on, also while they
import. The process that started them decides, and says so.
"""

import multiprocessing
import os
import signal
import sys
from collections.abc import Sequence
from multiprocessing import util
from multiprocessing.context import SpawnContext
from typing import Any

SAFE_PATH = ["-P"] if sys.version_info >= (3, 11) else []
# the entry is empty; a relative one, as packages that were installed as editable have, leads into
# the folder, too
_IS_ABSOLUTE = "entry[:1] in ('/', chr(92)) or entry[1:2] == ':'"
WITHOUT_CURRENT_FOLDER = (
    f"import sys; sys.path[:] = [entry for entry in sys.path if {_IS_ABSOLUTE}]; "
)


def python_command(code: str, *arguments: str) -> list[str]:
    """Return the command that runs this code as a trusted process."""
    return [sys.executable, *SAFE_PATH, "-c", WITHOUT_CURRENT_FOLDER + code, *arguments]


def module_command(module: str, *arguments: str) -> list[str]:
    """Return the command that runs this module as `python -m` does, as a trusted process."""
    code = f"import runpy; runpy.run_module({module!r}, run_name='__main__', alter_sys=True)"
    return python_command(code, *arguments)


def spawning() -> SpawnContext:
    """Return the context of `multiprocessing` for trusted processes.

    From now on, all processes that `multiprocessing` spawns in this process are trusted ones: its
    resource tracker, and the workers of a Dask cluster on this machine, too.
    """
    setattr(util, "spawnv_passfds", _spawn_trusted)  # noqa: B010  (its type is narrower than its use)
    return multiprocessing.get_context("spawn")


def is_root() -> bool:
    """Whether this user may do everything on this machine; False where no user is told by a number."""
    return hasattr(os, "geteuid") and os.geteuid() == 0


def leave_current_folder() -> None:
    """Make the root folder the current one: libraries read settings there, such as Matplotlib's `matplotlibrc`."""
    os.chdir(os.sep)


def forget_current_folder() -> None:
    """Remove the current folder from the path of this process, if it was started as `python -c …` or interactively."""
    sys.path[:] = [entry for entry in sys.path if os.path.isabs(entry)]


_spawn: Any = util.spawnv_passfds


def _spawn_trusted(path: bytes | str, arguments: Sequence[Any], descriptors: Sequence[int]) -> Any:
    """Do what `spawnv_passfds` does: each of multiprocessing's own processes is `python … -c CODE …`."""
    command = [arguments[0], *SAFE_PATH, *arguments[1:]]
    place = command.index("-c") + 1
    command[place] = WITHOUT_CURRENT_FOLDER + command[place]
    # the new process inherits what is blocked
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        return _spawn(path, command, descriptors)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
