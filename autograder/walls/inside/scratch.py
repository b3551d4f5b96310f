"""The folder of one worker where no disk of its own can be mounted: its size is watched, and it is removed.

A full disk of its own refuses to write. Here, the worker is ended that has written too much.
"""

import os
from contextlib import suppress

MOST_ENTRIES = 4096  # files and folders, as on a disk of its own
BLOCK = 512  # bytes, in which the system counts


def make_folder(folder: str) -> None:
    """Make a folder for this process alone, and make it the current one, that of temporary files and the home."""
    os.mkdir(folder, 0o700)
    os.environ.update(HOME=folder, TMPDIR=folder)
    os.chdir(folder)


def is_overfull(folder: str, most: int) -> bool:
    """Whether a folder holds more than so many bytes, too many files, or what cannot be counted."""
    folders = [folder]
    entries = size = 0
    while folders:
        try:
            listed = list(os.scandir(folders.pop()))
            for entry in listed:
                state = entry.stat(follow_symlinks=False)
                size += BLOCK * state.st_blocks
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
        except (FileNotFoundError, NotADirectoryError):  # it was removed meanwhile
            continue
        except OSError:  # a path too long for the system, a folder that nobody may list
            return True
        entries += len(listed)
        if entries > MOST_ENTRIES or size > most:
            return True
    return False


def remove_folder(folder: str) -> None:
    """Remove a folder of a process that has ended, however deep it is; what cannot be removed stays.

    Each folder inside is first moved up, beside the others: no path becomes too long.
    """
    folders = [folder]
    moved = 0
    with suppress(OSError):
        while folders:
            top = folders.pop()
            os.chmod(top, 0o700)
            for entry in list(os.scandir(top)):
                if not entry.is_dir(follow_symlinks=False):
                    os.unlink(entry.path)
                    continue
                moved += 1
                beside = f"{folder}.{moved}"
                os.chmod(entry.path, 0o700)  # a folder that is moved is changed itself
                os.rename(entry.path, beside)
                folders.append(beside)
            os.rmdir(top)
