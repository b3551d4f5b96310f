"""What to do about a sandbox tier that does not work: the setting of this machine that is in the
way.
"""

import ctypes
import errno
import os
import platform
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from autograder.sandbox.inside import landlock, seccomp
from autograder.sandbox.inside.jail import ON_LINUX, kernel_version
from autograder.text.tables import read_table

SETTINGS = Path("/proc/sys")
STATUS = Path("/proc/self/status")
MARKS_OF_CONTAINERS = ("/.dockerenv", "/run/.containerenv", "/run/systemd/container")
KINDS = ("user", "pid", "mnt", "ipc", "uts", "cgroup", "net")
SENTENCES: dict[str, str] = read_table(__file__, "remedies.yml")


def remedy(tier: str) -> str:
    """Return what to do so that the tier works on this machine, a sentence for each cause that is
    found.
    """
    if tier == "unsafe":
        return SENTENCES["unsafe"]
    if not ON_LINUX:
        return SENTENCES["not linux"]
    causes = _landlock() if tier == "landlock" else _namespaces(tier)
    return " ".join([*_missing_filter(), *causes]) or SENTENCES["unknown"]


def _missing_filter() -> Iterator[str]:
    if not seccomp.supported():
        yield SENTENCES["no table"].format(machine=platform.machine())
    elif _filter_mode() is None:
        yield SENTENCES["no seccomp"]


def _landlock() -> Iterator[str]:
    problem = not landlock.version() and ctypes.get_errno()
    if kernel_version() < (5, 13):
        yield SENTENCES["old kernel"].format(release=platform.release())
    elif problem == errno.EOPNOTSUPP:
        yield SENTENCES["landlock off"]
    elif problem and _filter_mode():
        yield SENTENCES["landlock filtered" if in_container() else "filtered"]
    elif problem:
        yield SENTENCES["no landlock"]


def _namespaces(tier: str) -> list[str]:
    kinds = [kind for kind in KINDS if (tier, kind) != ("host-network", "net")]
    settings = [(f"user.max_{kind}_namespaces", 0, 15000) for kind in kinds]
    settings.append(("kernel.unprivileged_userns_clone", 0, 1))
    settings.append(("kernel.apparmor_restrict_unprivileged_userns", 1, 0))
    wrong = [(name, bad, good) for name, bad, good in settings if _setting(name) == bad]
    found = [
        SENTENCES["setting"].format(name=name, bad=bad, good=good) for name, bad, good in wrong
    ]
    if shutil.which("bwrap") is None:
        found.append(SENTENCES["no bubblewrap"])
    if found:
        return found
    if in_container():
        return [SENTENCES["container"]]
    return [SENTENCES["filtered"]] if _filter_mode() else []


def in_container() -> bool:
    """Whether this process runs in a container: Docker, Podman, Kubernetes, LXC or systemd-nspawn."""
    variables = ("container", "KUBERNETES_SERVICE_HOST")
    return any(map(os.path.exists, MARKS_OF_CONTAINERS)) or any(map(os.environ.get, variables))


def _setting(name: str) -> int | None:
    with suppress(OSError, ValueError):
        return int((SETTINGS / name.replace(".", "/")).read_text())
    return None


def _filter_mode() -> int | None:
    """Return the mode of the filter that this process was started with, 0 without one; None without
    seccomp.
    """
    with suppress(OSError):
        lines = STATUS.read_text().splitlines()
        return next((int(line.split()[1]) for line in lines if line.startswith("Seccomp:")), None)
    return None
