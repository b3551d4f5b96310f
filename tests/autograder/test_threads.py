"""A process of ours that forks has one thread: another could hold a lock, which the child would wait for in vain.

Python 3.12 and later warn when a process with several threads forks.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from autograder.walls.outside.launcher import Sandbox
from tests.autograder.test_sandbox import descendants

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="there is no /proc")


def threads_of(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/task"))


def fork_servers_of(sandbox: Sandbox) -> set[int]:
    started = {server.process.pid for server in sandbox.servers.values()}
    return started.union(*map(descendants, started))


def test_fork_server_has_one_thread(sandbox):
    sandbox.warm_up()
    servers = fork_servers_of(sandbox)
    assert servers and {threads_of(pid) for pid in servers} == {1}


COUNTING = """
import os, sys

def count():
    print("threads", len(os.listdir("/proc/self/task")), file=sys.stderr)

os.register_at_fork(before=count)
from autograder.cli import main
main()
"""


@pytest.mark.slow
def test_a_command_that_checks_in_a_child_has_one_thread(tmp_path):
    name = "00_why_transformers"
    shutil.copytree(ROOT / "assignments" / name, tmp_path / "course" / name)
    environment = {
        name: text for name, text in os.environ.items() if not name.endswith("NUM_THREADS")
    }
    done = subprocess.run(
        [sys.executable, "-c", COUNTING, "progress", str(tmp_path / "course")],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    counted = [line for line in done.stderr.splitlines() if line.startswith("threads")]
    assert set(counted) == {"threads 1"}, done.stderr
