"""Notice changes in folders, with watchfiles where it is installed.

Some file systems report nothing, for example those of other machines, so a look at everything now
and then belongs to it. Links are not followed: only the named folders are watched, not those below
them.
"""

import importlib.util
import threading
from collections.abc import Callable, Collection
from pathlib import Path

from autograder.installation.distribution import install_extra
from autograder.records import InfrastructureError

STEP_MS = 50
GROUPED_MS = 200
WAIT_MS = 1000


def require_watchfiles() -> None:
    """Raise InfrastructureError without watchfiles."""
    if importlib.util.find_spec("watchfiles") is None:
        raise InfrastructureError(
            f"`--watch` needs watchfiles. Install it: {install_extra('watch')}"
        )


def _has_a_text_for_name(folder: Path) -> bool:
    """Whether the library can watch a folder; what others hold is seen when all is looked at."""
    return not any("\ud800" <= letter <= "\udfff" for letter in str(folder))


class Changes:
    """Calls a function with the paths that changed, in a thread of its own."""

    def __init__(self, changed: Callable[[Collection[Path]], None]) -> None:
        self._changed = changed
        self._folders: frozenset[Path] = frozenset()
        self._stop = threading.Event()

    def watch(self, folders: Collection[Path]) -> bool:
        """Watch these folders from now on; return whether they are others than before.

        What happened in a folder before is not reported.
        """
        wanted = frozenset(filter(_has_a_text_for_name, folders))
        if wanted == self._folders:
            return False
        self.close()
        self._folders = wanted
        self._stop = threading.Event()
        if wanted:
            arguments = (wanted, self._stop)
            threading.Thread(target=self._report, args=arguments, daemon=True).start()
        return True

    def close(self) -> None:
        self._stop.set()
        self._folders = frozenset()

    def _report(self, folders: Collection[Path], stop: threading.Event) -> None:
        from watchfiles import watch

        try:
            for changes in watch(
                *folders,
                watch_filter=None,
                debounce=GROUPED_MS,
                step=STEP_MS,
                stop_event=stop,
                rust_timeout=WAIT_MS,
                recursive=False,
                ignore_permission_denied=True,
                raise_interrupt=False,
            ):
                self._changed([Path(path) for _, path in changes])
        except (OSError, RuntimeError):
            # a folder vanished, or the system's limit is reached: the next look sees what changed
            self._folders = frozenset()
