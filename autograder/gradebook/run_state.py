"""The state of a run in a folder of grades: its secret seed, and a lock against a second run."""

import json
import os
import secrets
import socket
from datetime import datetime, timezone
from pathlib import Path
from types import TracebackType
from typing import Any

from filelock import FileLock, Timeout

from autograder.gradebook.seals import check_owner, refuse_links, seal
from autograder.records import RefusedError
from autograder.text.files import make_folder, remove_drafts, write_whole

FILE_NAME = "run.json"
LOCK_NAME = ".lock"
SEED_BITS = 128


class OpenRun:
    """An active run in `folder`, as a context manager.

    Raises RefusedError if another run holds the lock, or if what the folder holds was written by
    somebody else, unless it is `trusted` (see `seals`). `problem` is a message about the owner's
    key, or empty.

    `seed` is the requested one, that of the interrupted run in this folder, or a fresh one. If the
    context exits with an exception, the next run continues this one, unless it is `restarted`.
    """

    def __init__(
        self, folder: Path, seed: int | None = None, restarted: bool = False, trusted: bool = False
    ) -> None:
        refuse_links(folder)
        make_folder(folder)
        self._file = folder / FILE_NAME
        self._lock = FileLock(folder / LOCK_NAME, timeout=0, mode=folder.stat().st_mode & 0o666)
        try:
            self._lock.acquire()
        except Timeout:
            raise RefusedError(_occupied(folder)) from None
        try:
            remove_drafts(folder)
            self.problem = check_owner(folder, trusted)
        except BaseException:
            self._lock.release()
            raise
        stopped = None if restarted else _read(self._file).get("seed")
        if seed is not None:
            self.seed = seed
        else:
            self.seed = stopped if isinstance(stopped, int) else fresh_seed()

    def __enter__(self) -> "OpenRun":
        started = datetime.now(timezone.utc).isoformat(timespec="seconds")
        holder = {"process": os.getpid(), "host": socket.gethostname(), "started": started}
        text = (json.dumps({"schema": 1, "seed": self.seed, **holder}) + "\n").encode()
        seal(self._file.parent, FILE_NAME, text)
        write_whole(self._file, text)
        return self

    def __exit__(
        self, kind: type | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None:
            self._file.unlink(missing_ok=True)
        self._lock.release()


def fresh_seed() -> int:
    """Return an unpredictable seed."""
    return secrets.randbits(SEED_BITS)


def _occupied(folder: Path) -> str:
    holder = _read(folder / FILE_NAME)
    process = (
        f"process {holder['process']} on {holder['host']}"
        if "process" in holder
        else "another process"
    )
    since = f" since {holder['started']}" if "started" in holder else ""
    return (
        f"{folder} is in use: {process} has been grading into it{since}. "
        "Wait until it ends, or name another folder with --output."
    )


def _read(file: Path) -> dict[str, Any]:
    try:
        record = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}
