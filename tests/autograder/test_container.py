"""The container: what its entry says, which commands the guide gives, and a class that is graded in it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from made_up_class import main

from autograder.walls.inside.jail import SAFE_TIERS
from tests.autograder.tables import rows_of

ROOT = Path(__file__).resolve().parents[2]
ENTRY = ROOT / "scripts" / "container"
GUIDE = ROOT / "docs" / "containers.md"
CACHE = Path.home() / ".cache" / "autograder-container"
DEBIAN = "bookworm"
NOBODY = 65534
USER = 1000  # of the container
NAME, SEED = "03_masked_heads", "1"
PIP_PATHS = ("PIP_CERT", "PIP_FIND_LINKS")  # files without which this machine's pip finds nothing
TOGETHER = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}


def program(folder: Path, name: str, lines: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{lines}\n", "utf-8")
    (folder / name).chmod(0o755)


# -- the entry --------------------------------------------------------------------------------------


@dataclass
class Entry:
    """The container's entry with folders of its own in place of /submitted and /grades, and a stand-in for autograder."""

    folder: Path

    @property
    def submitted(self) -> Path:
        return self.folder / "submitted"

    @property
    def grades(self) -> Path:
        return self.folder / "grades"

    def run(self, *words: str, doctor: int = 0) -> subprocess.CompletedProcess[str]:
        text = ENTRY.read_text("utf-8")
        for place in ("submitted", "grades"):
            text = re.sub(rf"(?<=[ ])/{place}\b", str(self.folder / place), text)
        program(self.folder / "programs", "entry", text.removeprefix("#!/bin/sh\n"))
        ended = f'if [ "$1" = doctor ]; then exit {doctor}; fi'
        program(self.folder / "programs", "autograder", f'echo "autograder $*"\n{ended}')
        path = f"{self.folder / 'programs'}:{os.environ['PATH']}"
        nobody = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
        become = [] if os.getuid() else nobody
        return subprocess.run(
            [*become, self.folder / "programs" / "entry", *words],
            capture_output=True, text=True, env={**os.environ, "PATH": path},
        )  # fmt: skip


@pytest.fixture
def entry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Entry]:
    folder = Path(tempfile.mkdtemp(prefix="entry-"))  # below it, an ordinary user may read
    folder.chmod(0o755)
    made = Entry(folder)
    for place in (made.submitted, made.grades):
        place.mkdir()
        place.chmod(0o777)
    yield made
    shutil.rmtree(folder)


def test_entry_asks_the_doctor_and_then_grades(entry: Entry) -> None:
    done = entry.run()
    assert (done.returncode, done.stderr) == (0, "")
    grading = f"autograder grade {entry.submitted} --output {entry.grades}"
    assert done.stdout.splitlines() == ["autograder doctor", grading]


def test_entry_runs_the_command_that_it_is_given(entry: Entry) -> None:
    entry.submitted.rmdir()
    done = entry.run("doctor", "--json")
    assert (done.returncode, done.stdout) == (0, "autograder doctor --json\n")


def test_nothing_is_graded_where_no_sandbox_works(entry: Entry) -> None:
    done = entry.run(doctor=1)
    assert (done.returncode, done.stdout) == (3, "autograder doctor\n")
    assert "Nothing was graded: no sandbox works in this container." in done.stderr
    assert (ROOT / "docs" / "containers.md").is_file() and "docs/containers.md" in done.stderr


def test_missing_folders_are_named_with_what_to_add(entry: Entry) -> None:
    entry.grades.rmdir()
    done = entry.run()
    assert (done.returncode, done.stdout) == (3, "")
    assert "No folder for the grades: make one with mkdir -p grades" in done.stderr
    entry.submitted.rmdir()
    done = entry.run()
    assert (done.returncode, done.stdout) == (3, "")
    assert "No submissions: start the container with -v" in done.stderr


@pytest.mark.parametrize(
    ("place", "mode", "problem"),
    [
        ("submitted", 0o311, "cannot read"),
        ("submitted", 0o444, "cannot read"),
        ("grades", 0o555, "cannot write to"),
    ],
)
def test_folder_that_the_user_cannot_use_is_named_with_the_options(
    entry: Entry, place: str, mode: int, problem: str
) -> None:
    folder = entry.folder / place
    folder.chmod(mode)
    done = entry.run()
    assert (done.returncode, done.stdout) == (3, "")
    user = os.getuid() or NOBODY
    assert done.stderr.startswith(f"User {user} in the container {problem} {folder}.")
    assert "--userns=keep-id" in done.stderr and '--user "$(id -u):$(id -g)"' in done.stderr
    assert "z." in done.stderr


# -- the guide --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["podman", "docker"])
def test_commands_of_the_guide_mount_what_the_entry_reads(tmp_path: Path, name: str) -> None:
    text = GUIDE.read_text("utf-8")
    blocks = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    (block,) = (block for block in blocks if block.startswith(f"{name} build"))
    program(tmp_path / "programs", name, 'echo "$*" >> calls')
    path = f"{tmp_path / 'programs'}:{os.environ['PATH']}"
    (tmp_path / "submitted").mkdir()
    shutil.copy(ROOT / "Containerfile", tmp_path)
    environment = {**os.environ, "PATH": path}
    subprocess.run(["sh", "-eu", "-c", block], cwd=tmp_path, env=environment, check=True)
    building, running = (tmp_path / "calls").read_text("utf-8").splitlines()
    assert building in ("build -t grader .", "build -f Containerfile -t grader .")
    assert running.startswith("run --rm --user") and running.endswith(" grader")
    mounted = re.findall(r"-v (\S+)", running)
    assert mounted == [f"{tmp_path}/submitted:/submitted:ro", f"{tmp_path}/grades:/grades"]
    assert (tmp_path / "grades").is_dir(), "docker would make the missing folder as root"


# -- the image --------------------------------------------------------------------------------------


def why_not() -> str:
    """Return why no image can be built here; empty if it can."""
    missing = [name for name in ("buildah", "debootstrap") if not shutil.which(name)]
    if missing:
        return f"An image is built with {' and '.join(missing)}: install them with apt-get."
    return "" if os.getuid() == 0 else "Only root can build an image without a registry."


REASON = why_not()
Buildah = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def buildah() -> Iterator[Buildah]:
    """Call buildah with a store of its own, which is removed at the end: an image has several GB."""
    store = Path(tempfile.mkdtemp(prefix="autograder-container-"))
    variables = {**os.environ, "BUILDAH_ISOLATION": "chroot", "STORAGE_DRIVER": "vfs"}

    def call(*words: str | Path, may_fail: bool = False) -> subprocess.CompletedProcess[str]:
        places = ["--root", store / "images", "--runroot", store / "run"]
        done = subprocess.run(["buildah", *places, *words], env=variables, **TOGETHER)
        assert may_fail or done.returncode == 0, done.stdout
        return done

    yield call
    call("rm", "--all", may_fail=True)
    shutil.rmtree(store)


def base() -> Path:
    """Return a folder with a minimal Debian, which later runs use again."""
    folder = CACHE / DEBIAN
    if not folder.is_dir():
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as draft:
            command = ["debootstrap", "--variant=minbase", DEBIAN, f"{draft}/{DEBIAN}"]
            done = subprocess.run(command, **TOGETHER)
            assert done.returncode == 0, done.stdout
            Path(draft, DEBIAN).rename(folder)
    return folder


@pytest.fixture(scope="module")
def image(buildah: Buildah, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Build the image of this checkout on Debian's packages, with the files that pip needs on this machine."""
    places = {name: Path(os.environ.get(name, "")) for name in PIP_PATHS if os.environ.get(name)}
    places = {name: place for name, place in places.items() if place.exists()}
    settings = tmp_path_factory.mktemp("pip") / "pip.conf"
    names = {name: name.removeprefix("PIP_").lower().replace("_", "-") for name in places}
    lines = [f"{option} = /machine/{name}" for name, option in names.items()]
    settings.write_text("\n".join(["[global]", *lines, ""]), "utf-8")
    started = container_of(buildah, "scratch")
    buildah("add", "--quiet", started, base(), "/")
    buildah("add", "--quiet", started, settings, "/etc/pip.conf")
    buildah("commit", "--quiet", "--rm", started, "local-base")
    volumes = [f"--volume={place}:/machine/{name}:ro" for name, place in places.items()]
    options = ["--layers=false", "--pull-never", "--build-arg=BASE=localhost/local-base", *volumes]
    buildah("build", "--quiet", *options, "--file", ROOT / "Containerfile", "--tag", "grader", ROOT)
    return "localhost/grader"


def container_of(buildah: Buildah, image: str) -> str:
    return buildah("from", "--pull-never", image).stdout.split()[-1]


@pytest.fixture(scope="module")
def container(buildah: Buildah, image: str) -> str:
    return container_of(buildah, image)


@pytest.fixture(scope="module")
def submitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("class") / "submitted"
    words = ["--students", "6", "--assignment", NAME, "--seed", SEED, "--output", str(folder)]
    assert main([*words, "--course", str(ROOT)]) == 0
    subprocess.run(["chmod", "-R", "a+rX", folder], check=True)
    return folder


def autograder(*words: str | Path) -> None:
    program = [sys.executable, "-c", "from autograder.cli import main; main()"]
    done = subprocess.run([*program, *words, "--course", ROOT], **TOGETHER)
    assert done.returncode == 0, done.stdout


def grades_in(folder: Path) -> list[tuple[str, ...]]:
    columns = ("student", "assignment", "status", "score")
    return [tuple(row[name] for name in columns) for row in rows_of(folder / "grades.csv")]


def entry_of(buildah: Buildah, container: str) -> list[str]:
    facts = json.loads(buildah("inspect", container).stdout)
    return list(facts["OCIv1"]["config"]["Entrypoint"])


@pytest.mark.slow
@pytest.mark.skipif(bool(REASON), reason=REASON)
def test_container_grades_a_class_as_outside(
    buildah: Buildah, container: str, submitted: Path, tmp_path: Path
) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    os.chown(inside, USER, USER)
    volumes = [f"--volume={submitted}:/submitted:ro", f"--volume={inside}:/grades"]
    said = buildah("run", *volumes, container, "--", *entry_of(buildah, container)).stdout
    assert re.search(r"^\w+ works: .*\bGrading\b", said, re.DOTALL | re.MULTILINE), said
    lines = map(json.loads, (inside / "grades.jsonl").read_text("utf-8").splitlines())
    graded = [line for line in lines if line.get("status") == "graded"]
    assert {line["isolation"] for line in graded} <= set(SAFE_TIERS)
    assert (inside / "grades.csv").stat().st_uid == USER
    (seed,) = {str(line["seed"]) for line in graded}
    autograder("grade", submitted, "--seed", seed, "--output", outside)
    assert grades_in(inside) == grades_in(outside) != []


@pytest.mark.slow
@pytest.mark.skipif(bool(REASON), reason=REASON)
def test_container_runs_as_an_ordinary_user(
    buildah: Buildah, container: str, submitted: Path, tmp_path: Path
) -> None:
    assert buildah("run", container, "--", "id", "-u").stdout.split() == [str(USER)]
    (tmp_path / "grades").mkdir(mode=0o755)
    volumes = [f"--volume={submitted}:/submitted:ro", f"--volume={tmp_path / 'grades'}:/grades"]
    done = buildah("run", *volumes, container, "--", *entry_of(buildah, container), may_fail=True)
    assert f"User {USER} in the container cannot write to /grades." in done.stdout
    assert done.returncode == 3
