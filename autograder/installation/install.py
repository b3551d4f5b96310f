"""Install packages with pip, after PyTorch in the build that fits this machine.

    python install.py -c constraints.txt -r requirements.txt

does what `python -m pip install -qq -c constraints.txt -r requirements.txt` does, but first installs
PyTorch; -v shows pip's whole log. On Linux, PyPI has a build of about 3 GB with CUDA. A machine
without a graphics card gets the CPU build of about 200 MB, from PyTorch's own index, if that
answers. A PyTorch that is there stays. The variable PYTORCH decides otherwise:

    PYTORCH=cpu    the CPU build
    PYTORCH=cuda   the build that pip takes by itself
    PYTORCH=skip   only the PyTorch that is there

PYTORCH_CPU_INDEX is the address of another index with the CPU build. This file runs before anything
is installed, so it imports only Python's own library.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import ssl
import subprocess
import sys
import sysconfig
import tempfile
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

CPU_INDEX = "https://download.pytorch.org/whl/cpu"
SMALL = "about 200 MB"
LARGE = "about 3 GB"
LOWEST = (2, 2)  # of PyTorch; the same as in pyproject.toml
LOWEST_PYTHON = (3, 10)
NEWEST_PYTHON = (3, 14)  # for which the pinned PyTorch has a release
SECONDS = 5.0  # that the index may take to answer
GRAPHICS_CARD = ("/dev/nvidia0", "/proc/driver/nvidia")
NOT_INSTALLED = "Not everything could be installed; pip's message above says why."
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "install")


class CannotInstall(Exception):
    """A reason for which nothing more is installed, as a sentence."""


@dataclass(frozen=True)
class Choice:
    """Which PyTorch is installed: a sentence, and the arguments for pip; none if there is nothing to install."""

    sentence: str
    arguments: tuple[str, ...] = ()


def main(arguments: Sequence[str]) -> int:
    """Install PyTorch and then what pip's `arguments` say; returns an exit code."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("-v", "--verbose", action="store_true")
    parser.add_argument("-c", "--constraint", action="append", default=[], type=Path)
    parser.add_argument("--no-cache-dir", action="append_const", const="--no-cache-dir", default=[])
    options, wanted = parser.parse_known_args(arguments)
    if not wanted or "--help" in wanted:
        print(__doc__)
        return 0 if wanted else 2
    try:
        install_pytorch([*options.no_cache_dir, *constrained(options.constraint)])
    except CannotInstall as reason:
        say(str(reason))
        return 1
    with tempfile.TemporaryDirectory() as folder:
        constraints = [fitting(file, Path(folder)) for file in options.constraint]
        quietly = [] if options.verbose else ["-qq"]  # errors alone
        say("Installing the other packages.")
        code = subprocess.run(
            [*PIP, *quietly, *options.no_cache_dir, *constrained(constraints), *wanted]
        ).returncode
    say(NOT_INSTALLED if code else "Everything is installed.")
    return code


def say(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)


def constrained(files: Sequence[Path]) -> list[str]:
    return [word for file in files for word in ("--constraint", str(file))]


# ---------------------------------------------------------------------- PyTorch


def install_pytorch(options: Sequence[str]) -> None:
    """Choose a build and install it with these options of pip; raises CannotInstall if there is none."""
    if sys.version_info[:2] < LOWEST_PYTHON:
        raise CannotInstall("Python {}.{} or later is needed.".format(*LOWEST_PYTHON))
    requirement = "torch>={}.{}".format(*LOWEST)
    wanted = os.environ.get("PYTORCH", "")
    choice = before_any_index(wanted)
    if choice is None and wanted != "cuda" and found_without_index(requirement, options):
        choice = Choice(f"PyTorch {installed_version()} is installed from a wheel at hand.")
    if choice is None:
        index = os.environ.get("PYTORCH_CPU_INDEX", CPU_INDEX).rstrip("/")
        choice = choose_index(wanted, index)
    say(choice.sentence)
    if choice.arguments:
        run_pip([*choice.arguments, *options, requirement])
        say(f"PyTorch {installed_version()} is installed.")


def before_any_index(wanted: str) -> Choice | None:
    """Return the choice if a PyTorch is there; raises CannotInstall if nothing can be chosen."""
    if wanted not in ("", "cpu", "cuda", "skip"):
        raise CannotInstall(f"PYTORCH is cpu, cuda or skip, not `{wanted}`.")
    version = installed_version()
    if version and release_of(version) >= LOWEST:
        sentence = f"PyTorch {version} is already installed and stays."
        if wanted in ("cpu", "cuda"):
            sentence += (
                f" To change its build, remove it first: {sys.executable} -m pip uninstall torch"
            )
        return Choice(sentence)
    if wanted == "skip":
        lowest = "{}.{}".format(*LOWEST)
        raise CannotInstall(
            f"PYTORCH=skip, but no PyTorch {lowest} or later is installed for {sys.executable}."
        )
    return None


def found_without_index(requirement: str, options: Sequence[str]) -> bool:
    """Install PyTorch from a folder of wheels (pip's setting find-links), if one has it."""
    command = [*PIP, "--quiet", "--no-index", "--no-deps", *options, requirement]
    return subprocess.run(command, capture_output=True).returncode == 0


def choose_index(wanted: str, index: str) -> Choice:
    """Return where PyTorch comes from; raises CannotInstall if the CPU build is wanted and its index is silent."""
    if sys.platform != "linux":
        return Choice(f"Installing PyTorch, {SMALL}.", ("-q",))
    if wanted == "cuda":
        return Choice(f"Installing PyTorch with CUDA, {LARGE} (PYTORCH=cuda).", ("-q",))
    if wanted == "" and has_graphics_card():
        sentence = f"There is a graphics card: installing PyTorch with CUDA, {LARGE}."
        return Choice(f"{sentence} PYTORCH=cpu takes the build of {SMALL}.", ("-q",))
    if answers(index):
        sentence = f"Installing PyTorch's CPU build from {index}, {SMALL}."
        return Choice(
            f"{sentence} PYTORCH=cuda takes the build for graphics cards.",
            ("-q", "--extra-index-url", index),
        )
    if wanted == "cpu":
        raise CannotInstall(
            f"PYTORCH=cpu, but {index} does not answer. PYTORCH_CPU_INDEX names another index with the CPU build."
        )
    sentence = f"Installing PyTorch from pip's own index, because {index} does not answer."
    return Choice(f"{sentence} PyPI's build for Linux brings CUDA, {LARGE}.", ("-q",))


def has_graphics_card() -> bool:
    return any(map(os.path.exists, GRAPHICS_CARD)) or shutil.which("nvidia-smi") is not None


def answers(index: str) -> bool:
    certificates = os.environ.get("PIP_CERT") or None
    try:
        context = ssl.create_default_context(cafile=certificates)
        with urllib.request.urlopen(f"{index}/torch/", timeout=SECONDS, context=context):
            return True
    except (OSError, ValueError):  # no network, no such page, no address at all
        return False


def installed_version() -> str | None:
    try:
        return metadata.version("torch")
    except metadata.PackageNotFoundError:
        return None


def release_of(version: str) -> tuple[int, int]:
    major, minor = re.findall(r"\d+", f"{version}.0")[:2]
    return int(major), int(minor)


def run_pip(arguments: Sequence[str]) -> None:
    """Run pip; raises CannotInstall if it fails, after showing what it said."""
    done = subprocess.run(
        [*PIP, *arguments], stderr=subprocess.PIPE, encoding="utf-8", errors="replace"
    )
    if done.returncode:
        sys.stderr.write(done.stderr)
        raise CannotInstall(why_not(done.stderr))


def why_not(said: str) -> str:
    """Return a sentence for a failure of pip, from what it said."""
    python = "{}.{}".format(*sys.version_info)
    offered = re.search(r"No matching distribution found for torch", said) and re.search(
        r"from versions: ([^)]*)", said
    )
    unreachable = "Retrying (" in said or "Could not fetch URL" in said
    if not offered or unreachable:
        return "PyTorch could not be installed; pip's message above says why."
    usable = [
        version
        for version in offered[1].split(", ")
        if version[:1].isdigit() and release_of(version) >= LOWEST
    ]
    if usable:
        return (
            f"The PyTorch that is pinned here has no release for Python {python}{_another_python()}"
        )
    if sys.version_info[:2] > NEWEST_PYTHON:
        return f"PyTorch has no release for Python {python} yet{_another_python()}"
    return f"PyTorch has no release for Python {python} on {sysconfig.get_platform()} that pip could find."


def _another_python() -> str:
    return ": use an older Python, with make for example PYTHON=python3.13 make …"


# ---------------------------------------------------------------------- constraints


def fitting(constraints: Path, folder: Path) -> Path:
    """Return constraints that let the installed PyTorch stay: without its pin if it is another version.

    The packages that it requires are not pinned then, either, since another PyTorch needs other
    versions of them.
    """
    version = installed_version()
    lines = constraints.read_text("utf-8").splitlines()
    pins = [line for line in lines if name_of(line) == "torch"]
    if not version or f"torch=={version.partition('+')[0]}" in (
        pin.partition(";")[0].strip() for pin in pins
    ):
        return constraints
    free = {"torch", *map(name_of, metadata.requires("torch") or ())}
    kept = [line for line in lines if name_of(line) not in free]
    changed = folder / constraints.name
    changed.write_text("".join(f"{line}\n" for line in [*kept, f"torch=={version}"]), "utf-8")
    return changed


def name_of(requirement: str) -> str:
    return re.sub(r"[-_.]+", "-", re.split(r"[^\w.-]", requirement.strip())[0]).lower()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
