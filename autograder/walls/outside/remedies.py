"""What to do about a sandbox tier that does not work: the setting of this machine that is in the way."""

import ctypes
import errno
import os
import platform
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from autograder.walls.inside import landlock, seccomp
from autograder.walls.inside.jail import ON_LINUX, kernel_version

SETTINGS = Path("/proc/sys")
STATUS = Path("/proc/self/status")
MARKS_OF_CONTAINERS = ("/.dockerenv", "/run/.containerenv", "/run/systemd/container")
KINDS = ("user", "pid", "mnt", "ipc", "uts", "cgroup", "net")
FILTERED = (
    "This process runs under a filter of system calls (seccomp), which may be in the way: start it "
    "outside the service or the sandbox that set the filter."
)


def remedy(tier: str) -> str:
    """Return what to do so that the tier works on this machine, a sentence for each cause that is found."""
    if tier == "unsafe":
        return "It needs Linux or macOS; on Windows use WSL 2 or a container."
    if not ON_LINUX:
        return "It needs Linux; on macOS and Windows use a Linux container or WSL 2."
    causes = _landlock() if tier == "landlock" else _namespaces()
    sentences = [*_missing_filter(), *causes]
    return " ".join(sentences) or "No setting that is known to forbid it was found."


def _missing_filter() -> Iterator[str]:
    if not seccomp.supported():
        yield (
            f"There is no filter of system calls for {platform.machine()}: "
            "use an x86_64 or aarch64 machine."
        )
    elif _filter_mode() is None:
        yield (
            "This kernel has no seccomp: use one with CONFIG_SECCOMP_FILTER, "
            "as all distributions' kernels have."
        )


def _landlock() -> Iterator[str]:
    problem = not landlock.version() and ctypes.get_errno()
    if kernel_version() < (5, 13):
        yield (
            f"This is Linux {platform.release()}; "
            "Landlock needs Linux 5.13, or Red Hat Enterprise Linux 9.6."
        )
    elif problem == errno.EOPNOTSUPP:
        yield (
            "Landlock is switched off: add it to the list lsm= of the kernel's command line, "
            "and start anew."
        )
    elif problem and _filter_mode() and in_container():
        yield (
            "The filter of this container refuses Landlock: use a newer container runtime, "
            "or grade outside."
        )
    elif problem and _filter_mode():
        yield FILTERED
    elif problem:
        yield "This kernel was built without Landlock: use one with CONFIG_SECURITY_LANDLOCK."


def _namespaces() -> list[str]:
    settings = [(f"user.max_{kind}_namespaces", 0, 15000) for kind in KINDS]
    settings.append(("kernel.unprivileged_userns_clone", 0, 1))
    settings.append(("kernel.apparmor_restrict_unprivileged_userns", 1, 0))
    remedies = [
        f"{name} is {bad}: as root, sysctl {name}={good}, "
        "and the same line in a file in /etc/sysctl.d to keep it."
        for name, bad, good in settings
        if _setting(name) == bad
    ]
    if shutil.which("bwrap") is None:
        remedies.append("Install bubblewrap: apt install bubblewrap, or dnf install bubblewrap.")
    if remedies:
        return remedies
    if in_container():
        return [
            "A container may make no namespaces without CAP_SYS_ADMIN or with a filter: start it with "
            "--security-opt seccomp=unconfined --security-opt apparmor=unconfined "
            "--security-opt systempaths=unconfined, or grade outside."
        ]
    return [FILTERED] if _filter_mode() else []


def in_container() -> bool:
    """Whether this process runs in a container: Docker, Podman, Kubernetes, LXC or systemd-nspawn."""
    variables = ("container", "KUBERNETES_SERVICE_HOST")
    return any(map(os.path.exists, MARKS_OF_CONTAINERS)) or any(map(os.environ.get, variables))


def _setting(name: str) -> int | None:
    with suppress(OSError, ValueError):
        return int((SETTINGS / name.replace(".", "/")).read_text())
    return None


def _filter_mode() -> int | None:
    """Return the mode of the filter that this process was started with, 0 without one; None without seccomp."""
    with suppress(OSError):
        lines = STATUS.read_text().splitlines()
        return next((int(line.split()[1]) for line in lines if line.startswith("Seccomp:")), None)
    return None
