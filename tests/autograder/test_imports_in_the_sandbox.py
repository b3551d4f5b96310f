"""What packages do while they are imported works in the fork server of every tier, and is over before a worker starts.

A newcomer on Linux gets PyTorch's CUDA build: its import asks `ctypes.util.find_library`, which writes a temporary file.
"""

from __future__ import annotations

import os
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from autograder.walls.inside.jail import TIERS
from autograder.walls.outside.launcher import Sandbox
from autograder.walls.outside.unavailable import SandboxImportError, SandboxUnavailableError
from tests.autograder.sampling import sampled
from tests.autograder.test_sandbox import ENTRY, STRONGEST, ask, limits

# each leaves the path that it used, or None, in `used`
HABITS = {
    "writes a temporary file": """
        import tempfile
        kept = tempfile.NamedTemporaryFile(delete=False)
        kept.write(b"text")
        used = kept.name
        """,
    "makes a temporary folder": """
        import tempfile
        used = tempfile.mkdtemp()
        """,
    "asks for a library": """
        import ctypes.util
        found, used = ctypes.util.find_library("nvrtc"), None
        """,
    "keeps a cache in HOME": """
        import os
        used = os.path.expanduser("~/.cache/some_library")
        os.makedirs(used)
        open(os.path.join(used, "version"), "w").close()
        """,
    "tries a program that is missing": """
        import subprocess
        used = None
        try:
            subprocess.run(["nvidia-smi"], check=True)
        except FileNotFoundError:
            pass
        """,
    "runs a program": """
        import subprocess, sys
        used = None
        subprocess.run([sys.executable, "-S", "-c", ""], check=True)
        """,
    "looks at the processors": """
        import os
        used = None
        open("/proc/cpuinfo").read(), os.listdir("/sys/devices/system/cpu")
        """,
    "starts a thread": """
        import threading
        used = None
        threading.Thread(target=threading.Event().wait, daemon=True).start()
        """,
}  # fmt: skip
FREQUENT = "asks for a library"

QUESTION = """
import os, tempfile

def attempt():
    import some_library
    home = os.path.expanduser("~")
    kept = os.path.isdir(home) and os.access(home, os.R_OK) and os.listdir(home)
    return [bool(some_library.used) and os.path.exists(some_library.used), bool(kept), tempfile.tempdir]
"""


@pytest.fixture
def packages() -> Iterator[Path]:
    """A folder on the workers' path; not one of pytest's, which are closed to other users."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "sandbox_entry.py").write_text(ENTRY)
        folder.chmod(0o755)
        yield folder


def answer(sandbox: Sandbox, question: str, preload: tuple[str, ...] = ("some_library",)) -> Any:
    """Return the result of the function `attempt` of a text in a new worker."""
    with sandbox.spawn(limits(), preload) as worker:
        return ask(worker, question)["value"]


def library(folder: Path, text: str, name: str = "some_library") -> None:
    (folder / f"{name}.py").write_text(textwrap.dedent(text))


CASES = [(habit, tier) for habit in HABITS for tier in TIERS]


@pytest.mark.parametrize(
    ("habit", "tier"), sampled(CASES, lambda case: STRONGEST in case or case[0] == FREQUENT)
)
def test_an_import_may_do_what_packages_do(tiers, packages, habit, tier):
    if not tiers[tier].works:
        pytest.skip(tiers[tier].reason)
    library(packages, HABITS[habit])
    with Sandbox(tier, entry="sandbox_entry:run", folders=[packages], warm=False) as sandbox:
        still_there, kept, temporary = answer(sandbox, QUESTION)
    assert not still_there and not kept
    if tier == "landlock":
        assert temporary is None


@pytest.mark.slow
@pytest.mark.parametrize("tier", TIERS)
def test_what_every_worker_imports_may_do_the_same(tiers, packages, tier):
    """PyTorch, IPython and the server are imported in the same way as the modules of `preload`."""
    if not tiers[tier].works:
        pytest.skip(tiers[tier].reason)
    library(packages, HABITS["writes a temporary file"])
    library(packages, "import some_library\n" + ENTRY, "sandbox_entry")
    with Sandbox(tier, entry="sandbox_entry:run", folders=[packages], warm=True) as sandbox:
        assert answer(sandbox, QUESTION, preload=())[:2] == [False, False]


def test_no_folder_of_the_imports_remains(tiers, packages):
    if not tiers["landlock"].works:
        pytest.skip(tiers["landlock"].reason)
    library(
        packages, "import os, sys\nused = os.path.expanduser('~')\nsys.stderr.write(used + '\\n')"
    )
    with Sandbox("landlock", entry="sandbox_entry:run", folders=[packages], warm=False) as sandbox:
        folder = answer(sandbox, "import some_library\ndef attempt(): return some_library.used")
    assert "autograder-imports-" in folder and not os.path.exists(folder)


# ------------------------------------------------------------------ what is said when an import fails


@pytest.fixture
def failure(tiers, packages):
    """Return what is said of a library with this text, in the strongest tier that works here."""
    tier = next(tier for tier in TIERS if tiers[tier].works)

    def of(text: str) -> SandboxUnavailableError:
        library(packages, text)
        with Sandbox(tier, entry="sandbox_entry:run", folders=[packages], warm=False) as sandbox:
            with pytest.raises(SandboxUnavailableError) as caught:
                sandbox.spawn(limits(), ["some_library"])
            with sandbox.spawn(limits()) as worker:
                assert ask(worker, "def attempt(): return 1") == {"value": 1}
        return caught.value

    return of


def test_a_failing_import_is_named_with_its_last_line(failure, packages, monkeypatch):
    monkeypatch.syspath_prepend(packages)
    error = failure("raise OSError(30, 'Read-only file system', '/nowhere')")
    assert isinstance(error, SandboxImportError)
    assert "`import some_library` failed inside the sandbox" in str(error)
    assert "OSError: [Errno 30] Read-only file system: '/nowhere'." in str(error)
    assert "-c 'import some_library'" in error.remedy
    assert "does not work here" not in str(error) and "container" not in str(error)


def test_a_package_that_is_not_installed_is_named(failure):
    assert failure("import no_such_package").remedy.endswith(f"is not installed in {sys.prefix}.")


@pytest.mark.parametrize("ending", ["sys.exit('no processor of mine')", "raise KeyboardInterrupt"])
def test_an_import_that_ends_the_process_is_named(failure, ending):
    assert "`import some_library` failed inside the sandbox" in str(
        failure(f"import sys\n{ending}")
    )


def test_a_crash_is_said_with_the_import_and_the_signal(failure):
    error = failure("import ctypes\nctypes.string_at(0)")
    assert isinstance(error, SandboxImportError)
    assert "`import some_library` failed inside the sandbox" in str(error)
    assert "It ended by SIGSEGV." in str(error) and "does not work here" not in str(error)
