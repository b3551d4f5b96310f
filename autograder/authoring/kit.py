"""The files with which others install this program: its wheel, and the script that chooses PyTorch's build."""

import base64
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from importlib import metadata
from pathlib import Path

import autograder
from autograder.course.config import CourseError
from autograder.installation import distribution, install
from autograder.records import InfrastructureError
from autograder.text.files import zipped
from autograder.walls.outside.trusted_process import module_command

FOLDER = "kit"
SCRIPT = "install.py"
SECONDS = 300
BESIDE_THE_ENGINE = ("pyproject.toml", "README.md", "LICENSE")  # what a wheel is built from
BUILDERS = ("pip", "setuptools")
# what pip adds to a wheel's files
_OF_THE_INSTALLATION = ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json")


def kit(wheel: Path | None = None) -> dict[str, bytes]:
    """Return the files of the folder `kit/` by name, with the wheel first; this program's own wheel by default.

    Raises CourseError if `wheel` is none, and InfrastructureError if there is no way to make one.
    """
    name, content = _own_wheel() if wheel is None else _read(wheel)
    return {name: content, SCRIPT: Path(install.__file__).read_bytes()}


def add_sources(digest: "hashlib._Hash", wheel: Path | None = None) -> None:
    """Add all that `kit` is made from, beside the engine's own text, to a digest; raises CourseError
    if `wheel` is none.
    """
    if wheel is not None:
        name, content = _read(wheel)
        digest.update(name.encode() + b"\0" + content)
        return
    for name in BESIDE_THE_ENGINE:
        file = Path(autograder.__file__).parents[1] / name
        digest.update(file.read_bytes() if file.is_file() else b"\0")
    for package in (distribution.NAME, *BUILDERS):
        with suppress(metadata.PackageNotFoundError):
            digest.update(str(metadata.distribution(package).read_text("METADATA")).encode())


def _read(wheel: Path) -> tuple[str, bytes]:
    if wheel.suffix != ".whl" or not wheel.is_file():
        raise CourseError(f"{wheel} is not a wheel (a file that ends in .whl).")
    return wheel.name, wheel.read_bytes()


def _own_wheel() -> tuple[str, bytes]:
    source = Path(autograder.__file__).parents[1]
    return _built(source) if (source / "pyproject.toml").is_file() else _packed_again()


def _built(source: Path) -> tuple[str, bytes]:
    """Build the wheel from a copy of the source's own files, so that stray files are not included."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "source"
        wheel_folder = Path(folder) / "wheel"
        shutil.copytree(
            source / "autograder", copy / "autograder", ignore=shutil.ignore_patterns("__pycache__")
        )
        for name in BESIDE_THE_ENGINE:
            if (source / name).is_file():
                shutil.copy(source / name, copy)
        command = module_command(
            "pip", "--disable-pip-version-check", "wheel", "--quiet", "--no-deps"
        )
        command += [
            "--no-build-isolation",
            "--no-index",
            "--wheel-dir",
            str(wheel_folder),
            str(copy),
        ]
        environment = {**os.environ, "SOURCE_DATE_EPOCH": "1577836800"}
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, env=environment, timeout=SECONDS
            )
        except subprocess.TimeoutExpired:
            raise InfrastructureError(
                f"The autograder's wheel was not built within {SECONDS} seconds."
            ) from None
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
            raise InfrastructureError(f"The autograder's wheel cannot be built: {last}")
        (wheel,) = wheel_folder.glob("*.whl")
        return wheel.name, wheel.read_bytes()


def _packed_again() -> tuple[str, bytes]:
    """Return the wheel from which this program was installed, packed again from the installed files."""
    try:
        installed = metadata.distribution(distribution.NAME)
    except metadata.PackageNotFoundError:
        sentence = "The autograder is neither installed as a package nor run from its source, so it has no wheel."
        raise InfrastructureError(sentence) from None
    files = dict(_files_of_the_wheel(installed))
    about = next(name.partition("/")[0] for name in files if name.endswith(".dist-info/WHEEL"))
    files[f"{about}/RECORD"] = _record(files, f"{about}/RECORD")
    return f"{about.removesuffix('.dist-info')}-py3-none-any.whl", b"".join(zipped(files.items()))


def _files_of_the_wheel(installed: metadata.Distribution) -> Iterator[tuple[str, bytes]]:
    for file in sorted(installed.files or ()):
        is_added = file.parent.suffix == ".dist-info" and file.name in _OF_THE_INSTALLATION
        if not is_added and not {"..", "__pycache__"} & set(file.parts):
            yield file.as_posix(), Path(str(file.locate())).read_bytes()


def _record(files: dict[str, bytes], own_name: str) -> bytes:
    """Return the contents of a wheel's RECORD: each file with its digest and its size."""
    lines = []
    for name, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(content)}\n")
    return "".join([*lines, f"{own_name},,\n"]).encode()
