"""A department's gradebook: a real PostgreSQL server on loopback, started for this test."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("nbgrader", reason="nbgrader is not installed: pip install '.[nbgrader]'")
pytest.importorskip("psycopg", reason="psycopg is not installed: pip install '.[nbgrader]'")

from tests.autograder.nbgrader.classroom import TINY, tiny_classroom
from tests.autograder.waiting import HANGS, hang_guard

FULL = {"add": 4.0, "total": 6.0}


def programs() -> Path | None:
    """Return the folder of PostgreSQL's server on Debian or another system."""
    places = [*sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)]
    found = shutil.which("initdb")
    return next(
        (p for p in [*places, *([Path(found).parent] if found else [])] if (p / "initdb").exists()),
        None,
    )


def install() -> Path | None:
    """Install PostgreSQL as root on Debian, if continuous integration requests it."""
    if os.geteuid() == 0 and os.environ.get("CI") and shutil.which("apt-get"):
        command = ["apt-get", "-qq", "install", "-y", "--no-install-recommends", "postgresql"]
        subprocess.run(
            command, env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"}, capture_output=True
        )
    return programs()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a new server; it refuses to run as root, so it runs as another user."""
    place = programs() or install()
    if place is None:
        pytest.skip("there is no PostgreSQL here; on Debian: apt-get install postgresql")
    folder = Path(subprocess.check_output(["mktemp", "-d"], text=True).strip())
    owner: dict[str, str] = {}
    if os.geteuid() == 0:
        owner = {"user": "nobody"}
        shutil.chown(folder, "nobody")
    data, port = folder / "data", free_port()
    environment = {"PATH": os.defpath, "LC_ALL": "C"}
    made = subprocess.run(
        [place / "initdb", "-D", data, "-U", "grader", "--auth=trust", "-E", "UTF8", "--no-sync"],
        **owner, env=environment, cwd=folder, capture_output=True, text=True,
    )  # fmt: skip
    if made.returncode:
        shutil.rmtree(folder)
        pytest.skip(f"initdb does not work here: {made.stderr.strip()[-300:]}")
    options = [
        "-c", "listen_addresses=127.0.0.1", "-c", f"unix_socket_directories={folder}", "-c",
        "fsync=off",
    ]  # fmt: skip
    server = subprocess.Popen(
        [place / "postgres", "-D", data, "-p", str(port), *options],
        **owner, env=environment, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        yield ready(f"postgresql://grader@127.0.0.1:{port}/postgres")
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(HANGS)
        shutil.rmtree(folder)


def ready(url: str) -> str:
    import psycopg

    deadline = hang_guard()
    while True:
        try:
            psycopg.connect(url, connect_timeout=3).close()
            return url
        except psycopg.OperationalError:
            assert time.monotonic() < deadline, "the server does not answer"
            time.sleep(0.2)


@pytest.mark.slow
def test_gradebook_in_postgresql(database: str, tmp_path: Path) -> None:
    """Run all commands of an instructor with the address in the environment, and then in course.yml."""
    room = tiny_classroom(tmp_path)
    room.hand_in("ada", room.solution())
    room.hand_in("bob", room.stub())
    room.nbgrader("generate_assignment", TINY, NBGRADER_DB_URL=database)
    room.nbgrader("autograde", TINY, NBGRADER_DB_URL=database)
    url = database.replace("postgresql://", "postgresql+psycopg://")
    assert room.gradebook_scores(url) == {"ada": FULL, "bob": {"add": 0.0, "total": 0.0}}
    assert not (tmp_path / "gradebook.db").exists()

    course = tmp_path / "course.yml"
    course.write_text(course.read_text() + f"database: {database}\n")
    room.hand_in("bob", room.solution())
    room.autograder("grade", "submitted")
    room.autograder("export", "grades", "--to", "nbgrader")
    assert room.gradebook_scores(url) == {"ada": FULL, "bob": FULL}
    room.nbgrader("export")
    assert "bob,,,,10.0,0.0,10.0,10.0" in (tmp_path / "grades.csv").read_text()
    assert not (tmp_path / "gradebook.db").exists()
