"""What to do about a sandbox tier that does not work: the setting of this machine that is in the way."""

from __future__ import annotations

import errno
import os
import platform
import shutil
from collections.abc import Iterator
from pathlib import Path

from autograder.sandbox import landlock, seccomp
from autograder.sandbox.jail import ON_LINUX, kernel_version

SETTINGS = Path("/proc/sys")
STATUS = Path("/proc/self/status")
KINDS = ("user", "pid", "mnt", "ipc", "uts", "cgroup", "net")
KEEP = "as root, and the same line in a file in /etc/sysctl.d to keep it"


def remedy(tier: str) -> str:
    """Return what to do so that the tier works on this machine, a sentence for each cause that is found."""
    if tier == "unsafe":
        return "It needs Linux or macOS; on Windows use WSL 2 or a container."
    if not ON_LINUX:
        return "It needs Linux; on macOS and Windows use a Linux container or WSL 2."
    causes = _landlock() if tier == "landlock" else _namespaces(tier)
    return " ".join([*_missing_filter(), *causes]) or _last_resort(tier)


def _last_resort(tier: str) -> str:
    if tier != "landlock" and (os.getuid() == 0 or _status().get("Seccomp") == "2"):
        return (
            "A container may make no namespaces without CAP_SYS_ADMIN, or with a filter: start it with "
            "--security-opt seccomp=unconfined --security-opt apparmor=unconfined "
            "--security-opt systempaths=unconfined, or grade outside."
        )
    return "No setting that is known to forbid it was found."


def _missing_filter() -> Iterator[str]:
    if not seccomp.supported():
        yield f"There is no filter of system calls for {platform.machine()}: use an x86_64 or aarch64 machine."
    elif "Seccomp" not in _status():
        yield "This kernel has no seccomp: use one with CONFIG_SECCOMP_FILTER, as all distributions' kernels have."


def _landlock() -> Iterator[str]:
    problem = landlock.problem()
    if kernel_version() < (5, 13):
        yield f"This is Linux {platform.release()}; Landlock needs Linux 5.13, or Red Hat Enterprise Linux 9.6."
    elif problem == errno.EOPNOTSUPP:
        yield "Landlock is switched off: add it to the list lsm= of the kernel's command line, and start anew."
    elif problem == errno.EPERM or (problem == errno.ENOSYS and _status().get("Seccomp") == "2"):
        yield "The filter of this container refuses Landlock: use a newer container runtime, or grade outside."
    elif problem:
        yield "This kernel was built without Landlock: use one with CONFIG_SECURITY_LANDLOCK."


def _namespaces(tier: str) -> Iterator[str]:
    if shutil.which("bwrap") is None:
        yield "Install bubblewrap: apt install bubblewrap, or dnf install bubblewrap."
    needed = KINDS[:-1] if tier == "host-network" else KINDS
    for kind in needed:
        if _setting(f"user/max_{kind}_namespaces") == 0:
            yield f"user.max_{kind}_namespaces is 0: sysctl user.max_{kind}_namespaces=15000, {KEEP}."
    if _setting("kernel/unprivileged_userns_clone") == 0:
        yield f"kernel.unprivileged_userns_clone is 0: sysctl kernel.unprivileged_userns_clone=1, {KEEP}."
    if _setting("kernel/apparmor_restrict_unprivileged_userns") == 1:
        yield (
            "AppArmor lets no ordinary user make namespaces: "
            f"sysctl kernel.apparmor_restrict_unprivileged_userns=0, {KEEP}; "
            "or write a profile for bwrap that allows `userns`."
        )


def _setting(name: str) -> int | None:
    """Return a number of the kernel's settings; None where there is no such setting."""
    try:
        return int((SETTINGS / name).read_text())
    except (OSError, ValueError):
        return None


def _status() -> dict[str, str]:
    """Return what the kernel says of this process."""
    try:
        lines = STATUS.read_text().splitlines()
    except OSError:
        return {}
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
