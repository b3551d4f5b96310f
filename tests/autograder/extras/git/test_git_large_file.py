"""A file of 2 GB in a student's repository: it fills no disk, whatever the server can, and stops nobody."""

from __future__ import annotations

import random
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from autograder.course.config import Course
from autograder.extras.git import environment
from autograder.extras.git.collecting import GitReport, collect_from_git, stores_of
from autograder.extras.git.command import Limits, size_of
from autograder.extras.git.repositories import Repository
from autograder.extras.lms.collecting import CollectOptions
from autograder.source.gate import MEGABYTE
from autograder.submissions import find_submissions
from tests.autograder.extras.git.git_daemon import served
from tests.autograder.student_repositories import (
    ENVIRONMENT,
    GIT,
    NEEDS_GIT,
    StudentRepository,
    make_repository,
)

pytestmark = [NEEDS_GIT, pytest.mark.slow]

WORK = {"adding.py": "def add(a, b):\n    return a + b\n"}
SIZE = 2_048  # megabytes
LIMITS = Limits(seconds=1_000)  # more than the default, for a machine with much to do
LOOK_EVERY = 0.01  # seconds
Look = Callable[[StudentRepository], GitReport]


@pytest.fixture(scope="module")
def zeros(tmp_path_factory: pytest.TempPathFactory) -> StudentRepository:
    """A repository with a file of 2 GB of zeros, which take some MB in a pack."""
    return with_large_file(tmp_path_factory.mktemp("zeros"), bytes(MEGABYTE), compression=1)


@pytest.fixture(scope="module")
def noise(tmp_path_factory: pytest.TempPathFactory) -> StudentRepository:
    """A repository with a file of 2 GB of noise, which take 2 GB in a pack."""
    return with_large_file(
        tmp_path_factory.mktemp("noise"), random.Random(1).randbytes(MEGABYTE), compression=0
    )


def with_large_file(folder: Path, megabyte: bytes, compression: int) -> StudentRepository:
    """Make a repository with a file of 2 GB: beside the work on one branch, in its place on another."""
    repository = make_repository(folder, "eve")
    repository.git("config", "core.compression", str(compression))
    repository.git("config", "core.bigFileThreshold", "1m")
    process = subprocess.Popen(
        [GIT or "git", "fast-import", "--quiet"],
        cwd=repository.path,
        env=ENVIRONMENT,
        stdin=subprocess.PIPE,
    )
    assert process.stdin is not None
    with process.stdin as given:
        given.write(f"blob\nmark :1\ndata {SIZE * MEGABYTE}\n".encode())
        for _ in range(SIZE):
            given.write(megabyte)
        work = WORK["adding.py"]
        inline = f"M 100644 inline adding.py\ndata {len(work)}\n{work}\n"
        given.write(f"\n{commit_to('beside')}{inline}M 100644 :1 data.bin\n".encode())
        given.write(f"{commit_to('instead')}M 100644 :1 adding.py\n".encode())
    assert process.wait() == 0
    return repository


def commit_to(branch: str) -> str:
    """Return the begin of a commit for `git fast-import`."""
    return f"commit refs/heads/{branch}\ncommitter Eve <eve@school.example> 1 +0000\ndata 4\nwork\n"


def stand_at(repository: StudentRepository, branch: str, partial: bool) -> None:
    """Let main stand where a branch does; `partial` is whether the server sends files one by one."""
    repository.git("config", "uploadpack.allowFilter", str(partial).lower())
    repository.move("main", repository.head(branch))


@contextmanager
def largest_size(*folders: Path) -> Iterator[list[int]]:
    """Yield a list that gets the largest size of these folders while the block ran."""
    ended = threading.Event()
    seen: list[int] = []
    sizes = [0]

    def look() -> None:
        while not ended.wait(LOOK_EVERY):
            sizes.append(sum(map(size_of, folders)))

    watching = threading.Thread(target=look)
    watching.start()
    try:
        yield seen
    finally:
        ended.set()
        watching.join()
        seen.append(max(sizes))


@pytest.fixture(params=["on this machine", "of a server"])
def look(
    request: pytest.FixtureRequest, tmp_path: Path, course: Course, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Look]:
    """Collect a repository before two ordinary ones, and see that little space was taken on the way."""
    monkeypatch.setenv("TMPDIR", str(tmp_path / "drafts"))
    (tmp_path / "drafts").mkdir()
    submitted = tmp_path / "submitted"
    folders = submitted, stores_of(submitted), tmp_path / "drafts"
    others = [make_repository(tmp_path, name, WORK) for name in ("ada", "ben")]

    def collected(addresses: list[str]) -> GitReport:
        listed = [Repository(Path(address).stem, address) for address in addresses]
        stored: dict[int, int] = {}

        def see(done: int, _: int) -> None:
            stored[done] = len(list(submitted.glob("*/*/*.py")))

        with largest_size(*folders) as largest:
            report = collect_from_git(
                listed, course, CollectOptions(submitted), "table.csv", see, LIMITS
            )
        assert 0 < largest[0] < LIMITS.bytes + 5 * MEGABYTE
        assert stored[3] >= 2
        assert not list((tmp_path / "drafts").iterdir())
        return report

    if request.param == "on this machine":
        yield lambda one: collected([one.url, *(other.url for other in others)])
        return
    monkeypatch.setattr(environment, "PROTOCOLS", (*environment.PROTOCOLS, "git"))
    with served(Path("/")) as address:
        yield lambda one: collected([f"{address}{each.path}" for each in (one, *others)])


def problems_of(folder: Path, course: Course) -> dict[str, str]:
    found = find_submissions(folder / "submitted", course)
    return {one.student: one.problem or "" for one in found}


def test_zeros_beside_the_work_are_only_counted(
    tmp_path: Path, course: Course, zeros: StudentRepository, look: Look
) -> None:
    stand_at(zeros, "beside", partial=False)
    assert look(zeros).odd == []
    assert problems_of(tmp_path, course) == {"ada": "", "ben": "", "eve": ""}


def test_zeros_in_place_of_the_work_are_refused_when_graded(
    tmp_path: Path, course: Course, zeros: StudentRepository, look: Look
) -> None:
    stand_at(zeros, "instead", partial=True)
    assert look(zeros).failed == 0
    sentence = "adding.py is larger than 4 MB."
    assert problems_of(tmp_path, course) == {"ada": "", "ben": "", "eve": sentence}


def test_noise_beside_the_work_is_not_fetched_where_the_server_can(
    tmp_path: Path, course: Course, noise: StudentRepository, look: Look
) -> None:
    stand_at(noise, "beside", partial=True)
    assert look(noise).odd == []
    assert problems_of(tmp_path, course) == {"ada": "", "ben": "", "eve": ""}


@pytest.mark.parametrize(("branch", "partial"), [("beside", False), ("instead", True)])
def test_noise_that_must_be_fetched_ends_at_the_limit(
    tmp_path: Path, course: Course, noise: StudentRepository, look: Look, branch: str, partial: bool
) -> None:
    stand_at(noise, branch, partial)
    report = look(noise)
    assert (report.failed, len(report.odd)) == (1, 1)
    # on this machine, git maps the whole file into memory before it sends any of it
    limits = "it sends more than 100 MB.", "reading it takes more than 1000 MB of memory."
    assert report.odd[0].partition("was not collected: ")[2] in limits
    assert problems_of(tmp_path, course) == {"ada": "", "ben": ""}
    assert size_of(stores_of(tmp_path / "submitted")) < MEGABYTE
