"""What a worker sends first: descriptors of its statistics in the kernel."""

import os
import socket
from contextlib import suppress

STATISTICS = b" "  # comes with descriptors of these files; JSON may begin with it
STATISTICS_FILES = ("/proc/self/stat", "/proc/self/schedstat")


def send_statistics(status: socket.socket) -> None:
    """Send the grader descriptors of this process's statistics in the kernel: its state, its
    processor time, and how long it waited for a processor.
    """
    descriptors = []
    with suppress(OSError):  # another system, or a kernel without the second one
        for path in STATISTICS_FILES:
            descriptors.append(os.open(path, os.O_RDONLY | os.O_CLOEXEC))
    if descriptors:
        socket.send_fds(status, [STATISTICS], descriptors)
    for descriptor in descriptors:
        os.close(descriptor)
