"""This program as pip knows it: its name, what it requires, and the commands that install what is missing."""

import json
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from autograder.version import __version__

NAME = "attention-by-hand"
# what is imported, and the command; on PyPI, the name of another distribution
PACKAGE = "autograder"
_EXTRA = re.compile(r"""\bextra\s*==\s*["']([\w.-]+)["']""")


@dataclass(frozen=True)
class Requirement:
    """A package that is required, always or by one of the extras, as `text` for pip."""

    name: str
    text: str
    extra: str | None = None


@lru_cache(maxsize=1)
def requirements() -> tuple[Requirement, ...]:
    """Return all requirements, those of extras included; none if this program runs from source, not installed."""
    try:
        lines = metadata.requires(NAME) or []
    except metadata.PackageNotFoundError:
        return ()
    return tuple(map(_requirement, lines))


def _requirement(line: str) -> Requirement:
    text, _, marker = line.partition(";")
    extra = _EXTRA.search(marker)
    return Requirement(
        plain_name(re.split(r"[^\w.-]", line)[0]), text.strip(), extra[1] if extra else None
    )


def plain_name(name: str) -> str:
    """Normalize a distribution's name as package indexes do."""
    return re.sub(r"[-_.]+", "-", name).lower()


# ---------------------------------------------------------------------- commands to type


def install_extra(extra: str) -> str:
    """Return the command that installs the packages of an extra, true however this program was installed."""
    return install_command(
        requirement.text for requirement in requirements() if requirement.extra == extra
    )


def install_command(packages: Iterable[str]) -> str:
    """Return the command that installs these packages for the Python that runs this program."""
    return f"{_pip()} install {' '.join(map(_quoted, packages))}"


def install_again() -> str:
    """Say how to install this program over itself: a command, and where to type it if that matters."""
    origin = _origin()
    if origin:
        return f"`{_pip()} install {origin}`"
    wheel = f"kit/{NAME.replace('-', '_')}-{__version__}-py3-none-any.whl"
    return f"`{_pip()} install --force-reinstall --no-deps {wheel}` in the folder that your course's archive unpacks to"


def _origin() -> str | None:
    """Return pip's arguments for the folder or file that this program was installed from, if that is still there."""
    try:
        text = metadata.distribution(NAME).read_text("direct_url.json")
    except metadata.PackageNotFoundError:
        return None
    record = json.loads(text) if text else {}
    address = urlsplit(record.get("url", ""))
    path = Path(url2pathname(address.path))
    if address.scheme != "file" or not path.exists():
        return None
    is_editable = record.get("dir_info", {}).get("editable")
    return f"{'--editable' if is_editable else '--force-reinstall --no-deps'} {_quoted(str(path))}"


def _pip() -> str:
    return f"{_quoted(sys.executable)} -m pip"


def _quoted(word: str) -> str:
    """Quote a word, if necessary, so that shells, PowerShell and the Windows console all read it as one."""
    return f'"{word}"' if re.search(r"[^\w./:\\-]", word) else word


# ---------------------------------------------------------------------- another package of the same name


def warning_about_namesake() -> str | None:
    """Return a sentence if another distribution called `autograder` is installed in this environment."""
    namesake = _namesake()
    if namesake is None:
        return None
    return (
        f"Another package called `{PACKAGE}` ({namesake.version}) is installed in this environment and may have "
        f"overwritten files of this one, {NAME}: remove it with `{_pip()} uninstall {PACKAGE}`, and then install "
        f"{NAME} again with {install_again()}."
    )


def _namesake() -> metadata.Distribution | None:
    try:
        distribution = metadata.distribution(PACKAGE)
    except metadata.PackageNotFoundError:
        return None
    return None if _is_left_by_a_build(distribution) else distribution


def _is_left_by_a_build(distribution: metadata.Distribution) -> bool:
    """Whether this is a folder `*.egg-info` that a build has left in the source, and nothing that is installed."""
    folder = Path(str(distribution.locate_file("")))
    return (folder / "pyproject.toml").is_file() and distribution.read_text("PKG-INFO") is not None
