"""Command lines and environments that start the fork server in each sandbox tier."""

import importlib.util
import json
import os
import shlex
import shutil
import site
import sys
import sysconfig
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autograder.walls.inside.jail import NOBODY, ON_LINUX, SCRATCH
from autograder.walls.outside.remedies import remedy
from autograder.walls.outside.unavailable import SandboxImportError, SandboxUnavailableError

BOOT = Path(__file__).with_name("boot.py.txt").read_text("utf-8")


def unavailable(tier: str, why: str) -> SandboxUnavailableError:
    """Return the error for a tier that does not work on this machine."""
    return SandboxUnavailableError(f"The sandbox {tier!r} does not work here. {why}", remedy(tier))


def import_failed(tier: str, module: str, reason: str) -> SandboxImportError:
    """Return the error for a module whose import fails in a tier; `reason` is Python's last line."""
    sentence = f"`import {module}` failed inside the sandbox ({tier}): {reason.rstrip('.')}."
    if not _is_installed(module):
        return SandboxImportError(sentence, f"It is not installed in {sys.prefix}.", module)
    program = shlex.join([sys.executable, "-c", f"import {module}"])
    remedy = (
        f"Run {program} to see whether it fails outside the sandbox, too. If so, install the "
        "package again. If not, please report this message."
    )
    return SandboxImportError(sentence, remedy, module)


def _is_installed(module: str) -> bool:
    """Whether the package of a module is found here, outside the sandbox, without importing it."""
    return importlib.util.find_spec(module.partition(".")[0]) is not None


@dataclass(frozen=True)
class Layout:
    """The paths of the interpreter, its packages and this package on this machine."""

    python: Path
    base: Path
    packages: tuple[Path, ...]
    engine: Path

    @classmethod
    def of_this_python(cls, folders: Iterable[Path] = ()) -> "Layout":
        """Return the layout of the running interpreter; `folders` follow its packages."""
        base = Path(sys.base_prefix).resolve()
        python = Path(getattr(sys, "_base_executable", None) or sys.executable).resolve()
        # a wrapper elsewhere; the interpreter itself lies with its library
        if not python.is_relative_to(base):
            python = base / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"
        packages = dict.fromkeys(
            [*_package_folders(), *(Path(folder).resolve() for folder in folders)]
        )
        return cls(python, base, tuple(packages), Path(__file__).resolve().parents[2])

    @property
    def base_is_system(self) -> bool:
        return self.base.is_relative_to("/usr")

    @property
    def hidden(self) -> list[Path]:
        """Return the folders of packages beside the interpreter that this environment does not use."""
        beside = map(Path, site.getsitepackages([sys.base_prefix]))
        return [
            folder
            for folder in dict.fromkeys(path.resolve() for path in beside if path.is_dir())
            if not any(path.is_relative_to(folder) for path in (*self.packages, self.engine))
        ]

    @property
    def shown(self) -> list[Path]:
        """Return all paths that a worker needs to read."""
        return [Path("/usr"), Path("/lib"), Path("/lib64"), self.base, *self.packages, self.engine]

    def refuse_to_show(self, hidden: Iterable[Path]) -> None:
        """Raise SandboxUnavailableError if a hidden folder lies inside a folder that workers read."""
        for folder in hidden:
            for shown in self.shown:
                if Path(folder).resolve().is_relative_to(shown):
                    raise SandboxUnavailableError(
                        f"Student code could read {folder}, because it lies in {shown}, which every Python "
                        "process needs. Move the course to another folder."
                    )

    def environment(self, base: Path) -> dict[str, str]:
        """Return all environment variables of a worker; none of the grader's is inherited."""
        variables = {name: "1" for name in _ONE_THREAD}
        variables |= {"PATH": "/usr/bin", "HOME": SCRATCH, "TMPDIR": SCRATCH, "LANG": "C.UTF-8"}
        variables |= {"USER": "student", "MALLOC_ARENA_MAX": "2"}
        if sysconfig.get_config_var("Py_ENABLE_SHARED") and not self.base_is_system:
            variables["LD_LIBRARY_PATH"] = str(base / "lib")
        return variables


def _package_folders() -> list[Path]:
    folders = [Path(entry) for entry in sys.path if entry.endswith("-packages")]
    folders += [Path(sysconfig.get_path(kind)) for kind in ("purelib", "platlib")]
    for name in ("torch", "numpy", "IPython"):
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.origin:
            folders.append(Path(spec.origin).parents[1])
    return list(dict.fromkeys(path.resolve() for path in folders if path.is_dir()))


def _plain_command(layout: Layout, options: dict[str, Any]) -> tuple[list[str], dict[str, str]]:
    """Return the command for an ordinary process; with Landlock its workers hide files themselves."""
    if options["tier"] == "landlock" and not ON_LINUX:
        raise unavailable("landlock", "This is not Linux.")
    paths = [str(path) for path in layout.packages]
    readable = [*map(str, layout.shown), "/dev/null", "/dev/urandom", "/dev/random", "/dev/zero"]
    options = {**options, "path": paths, "package": str(layout.engine), "readable": readable}
    options |= {"scratch": None, "hidden": list(map(str, layout.hidden))}
    return _python(layout.python, options), layout.environment(layout.base)


def _bubblewrap_command(
    layout: Layout, options: dict[str, Any]
) -> tuple[list[str], dict[str, str]]:
    """Return the command for bubblewrap, in which only Python, its packages and /usr are visible."""
    bubblewrap = shutil.which("bwrap")
    if bubblewrap is None:
        raise unavailable(options["tier"], "There is no bubblewrap (the program bwrap).")
    base = layout.base if layout.base_is_system else Path("/python")
    python = base / layout.python.relative_to(layout.base)
    binds = [] if layout.base_is_system else [(layout.base, base)]
    paths = [f"/packages/{number}" for number in range(len(layout.packages))]
    binds += list(zip(layout.packages, map(Path, paths), strict=True))
    binds.append((layout.engine, Path("/engine/autograder")))
    command = [bubblewrap, *_NEW_MACHINE]
    # root gives up being root only inside, when what it alone can reach is bound
    if not _is_real_root():
        command += [
            "--unshare-user",
            "--uid",
            str(NOBODY),
            "--gid",
            str(NOBODY),
            "--cap-add",
            "ALL",
        ]
    # "parent" means the thread that started it
    if threading.current_thread() is threading.main_thread():
        command.append("--die-with-parent")
    command += _system_folders()
    # imports may write here; each worker's own disk is mounted over it
    command += ["--perms", "1777", "--tmpfs", SCRATCH]
    for source, target in binds:
        command += ["--ro-bind", str(source), str(target)]
    for folder in layout.hidden:
        if folder.is_relative_to(layout.base):
            place = str(base / folder.relative_to(layout.base))
            command += ["--perms", "0555", "--tmpfs", place, "--remount-ro", place]
    for name, value in layout.environment(base).items():
        command += ["--setenv", name, value]
    command += ["--remount-ro", "/", "--chdir", "/"]
    options = {**options, "path": paths, "package": "/engine/autograder", "readable": []}
    options |= {"scratch": SCRATCH, "hidden": []}
    return [*command, *_python(python, options)], {"PATH": "/usr/bin:/bin"}


def _is_real_root() -> bool:
    """Whether this is root and can switch to another user, which some containers do not support."""
    if os.getuid() != 0:
        return False
    ranges = [
        tuple(map(int, line.split()))
        for line in Path("/proc/self/uid_map").read_text().splitlines()
    ]
    return any(first <= NOBODY < first + count for first, _, count in ranges)


PROCESSORS = "/sys/devices/system/cpu"
_ONE_THREAD = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS")
COMMANDS = {"namespaces": _bubblewrap_command, "landlock": _plain_command, "unsafe": _plain_command}

_NEW_MACHINE = (
    *("--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"),
    *("--hostname", "sandbox", "--clearenv", "--proc", "/proc"),
    # folders that bubblewrap makes on the way to others would be root's alone
    *("--dir", "/dev", "--dir", "/engine", "--dir", "/packages"),
)


def _system_folders() -> list[str]:
    """Return bubblewrap's arguments for /usr, the links into it, and four harmless devices."""
    arguments = ["--ro-bind", "/usr", "/usr"]
    for name in ("/lib", "/lib64"):
        if os.path.islink(name):
            arguments += ["--symlink", os.readlink(name), name]
        elif os.path.isdir(name):
            arguments += ["--ro-bind", name, name]
    for device in ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom"):
        arguments += ["--dev-bind", device, device]
    # some libraries look at the processors while they are imported; workers cover it
    # made by --ro-bind-try, they would be root's alone
    for folder in reversed(Path(PROCESSORS).parents[:-1]):
        arguments += ["--dir", str(folder)]
    return [*arguments, "--ro-bind-try", PROCESSORS, PROCESSORS]


def _python(python: Path, options: dict[str, Any]) -> list[str]:
    return [str(python), "-I", "-S", "-B", "-X", "utf8", "-c", BOOT, json.dumps(options)]
