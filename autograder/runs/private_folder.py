"""A folder for the temporary files of a run's graders; one whose run was killed is removed by the next run."""

import fcntl
import os
import shutil
import tempfile
import time
from contextlib import suppress
from pathlib import Path

PREFIX = "autograder-graders-"
SECONDS_TO_LOCK = 60.0  # a younger folder may not be locked yet


class PrivateFolder:
    """A new folder below the one for temporary files, for this user alone; a lock says that it is in use."""

    def __init__(self) -> None:
        self.name = tempfile.mkdtemp(prefix=PREFIX)
        self._lock = os.open(self.name, os.O_RDONLY)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        remove_abandoned(Path(self.name).parent)

    def close(self) -> None:
        """Remove the folder, with what is in it."""
        if self._lock >= 0:
            shutil.rmtree(self.name, ignore_errors=True)
            os.close(self._lock)
            self._lock = -1


def remove_abandoned(place: Path) -> None:
    """Remove the folders of this user whose runs have ended without removing them."""
    for folder in place.glob(f"{PREFIX}*"):
        with suppress(OSError):  # another user's, or another run removes it
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                state = os.fstat(lock)
                is_old = time.time() - state.st_mtime > SECONDS_TO_LOCK
                if state.st_uid == os.geteuid() and is_old:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(lock)
