"""What the fork server imports for all its workers, before a student's text is read.

While it imports, a package may do what packages do: write temporary files, look for libraries,
start programs that are not there.
"""

import errno
import importlib
import os
import shutil
import tempfile
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

# programs by which libraries ask about the machine, and do without where they are not installed
ASKED = frozenset(
    {"arp", "cc", "fc-list", "file", "gcc", "ifconfig", "ip", "ld", "ldconfig", "lscpu", "netstat"}
    | {"nvcc", "objdump", "uname", "which"}
)
IMPORTING = "importing"  # a line of output before each import
Serve = Callable[[Any], None]


class ImportFailedError(Exception):
    """A module cannot be imported inside the sandbox; `module` is its name, `reason` the last line."""

    def __init__(self, module: str, error: BaseException) -> None:
        self.module = module
        self.reason = traceback.format_exception_only(error)[-1].strip()


@contextmanager
def files_for_imports(scratch: str | None) -> Iterator[None]:
    """Let the imports in this block write temporary files and caches below HOME; remove them at the end.

    `scratch` is the sandbox's own disk, over which each worker mounts another one. Without one,
    imports write to a new folder below /tmp.
    """
    folder = scratch or tempfile.mkdtemp(prefix="autograder-imports-", dir="/tmp")
    variables = {"HOME": os.environ["HOME"], "TMPDIR": os.environ["TMPDIR"]}
    os.environ.update(HOME=folder, TMPDIR=folder)
    tempfile.tempdir = folder
    try:
        yield
    finally:
        tempfile.tempdir = None
        os.environ.update(variables)
        remove_content(folder)
        if scratch is None:
            os.rmdir(folder)


def remove_content(folder: str) -> None:
    """Remove everything in a folder, but not the folder itself."""
    for entry in os.scandir(folder):
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path)
        else:
            os.unlink(entry.path)


def import_for_workers(module: str) -> Any:
    """Import a module that workers inherit; its name in the output tells where a crash happened."""
    print(IMPORTING, module, flush=True)
    try:
        imported = importlib.import_module(module)
    except BaseException as error:
        raise ImportFailedError(module, error) from error
    return imported


def warm_up() -> None:
    """Import PyTorch and IPython, so that forks share their pages."""
    torch = import_for_workers("torch")
    torch.set_num_threads(1)  # before anything else: a pool of threads does not survive a fork
    torch.set_num_interop_threads(1)
    transformer = import_for_workers("IPython.core.inputtransformer2")
    transformer.TransformerManager().transform_cell("%matplotlib inline\nx = 1\n")


def miss_programs(event: str, arguments: tuple[Any, ...]) -> None:
    """Raise FileNotFoundError, as an audit hook, where a library asks one of the `ASKED` programs.

    No program can be started anyway; but a person is told of those that students' code tries to.
    """
    if event == "subprocess.Popen" and os.path.basename(os.fsdecode(arguments[0])) in ASKED:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), arguments[0])


def import_all(options: Mapping[str, Any]) -> Serve:
    """Import everything that workers share and return their entry point; raises ImportFailedError.

    The entry's `rehearse` runs the common code paths, which imports more.
    """
    module, function = options["entry"].split(":")
    with files_for_imports(options["scratch"]):
        if options["warm"]:
            warm_up()
        for name in options["preload"]:
            import_for_workers(name)
        entry = import_for_workers(module)
        if options["warm"] and hasattr(entry, "rehearse"):
            entry.rehearse()
    serve: Serve = getattr(entry, function)
    return serve
