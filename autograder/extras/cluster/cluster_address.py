"""Addresses of `--cluster`: a cluster on this machine, a running one, or one that a file describes."""

import asyncio
import logging
import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import dask
from distributed import Client, LocalCluster
from distributed.security import Security
from pydantic import Field

from autograder.course.yaml_file import MarkedYaml
from autograder.course.yaml_record import YamlRecord
from autograder.records import InfrastructureError, RefusedError
from autograder.text.numbers import read_whole
from autograder.text.utf8 import read_utf8
from autograder.walls.outside.trusted_process import spawning

RUNNING = ("tls://", "tcp://")
QUIET = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "10s",
}
FORMS = (
    "Write `local:4`, `tls://scheduler:8786`, or the name of a YAML file that describes a cluster."
)


class ClusterFile(YamlRecord):
    """A YAML file that names a class of `dask_jobqueue`, its arguments, and how many jobs are submitted."""

    kind: str = Field(alias="class", description="such as `SLURMCluster`")
    jobs: int = Field(gt=0, description="How many jobs are submitted.")
    arguments: dict[str, Any] = Field(default={}, description="The arguments of the class.")


@contextmanager
def connect(address: str) -> Iterator[Client]:
    """Connect to a cluster in this context; raises RefusedError for a wrong address, or InfrastructureError."""
    # lost workers are reported by the run
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    with ExitStack() as started:
        started.enter_context(dask.config.set(QUIET))
        try:
            if address.startswith(RUNNING):
                client = Client(
                    address, security=_check_running(address), set_as_default=False, timeout="30s"
                )
            else:
                with _interruptions_held_back():
                    client = Client(started.enter_context(_started(address)), set_as_default=False)
        except (OSError, RuntimeError, asyncio.TimeoutError) as error:
            raise InfrastructureError(
                f"There is no connection to the cluster {address}: {error}."
            ) from None
        yield started.enter_context(client)


@contextmanager
def _interruptions_held_back() -> Iterator[None]:
    """Answer Ctrl-C and SIGTERM after the context: Dask cannot close a cluster that is only half made."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals are answered in the main thread
        return
    held: list[int] = []
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number in before:
        signal.signal(number, lambda number, frame: held.append(number))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if held:
            signal.raise_signal(held[0])


def _started(address: str) -> Any:
    if Path(address).suffix in (".yml", ".yaml"):
        return batch_cluster(Path(address))
    spawning()  # also of Dask's own processes
    kind, _, count = address.partition(":")
    workers = read_whole(count) or 0
    if kind != "local" or workers < 1:
        raise RefusedError(f"--cluster {address} is not an address of a cluster. {FORMS}")
    return LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        processes=True,
        security=Security.temporary(),  # other users of this machine could connect as well
        protocol="tls://",
        host="127.0.0.1",
        dashboard_address=None,
        memory_limit=0,
        silence_logs=logging.CRITICAL,
    )


def batch_cluster(file: Path) -> Any:
    """Start the cluster that a file describes; raises RefusedError if the file is not valid."""
    import dask_jobqueue

    document = MarkedYaml(file.name, read_utf8(file, file.name, RefusedError), "the cluster")
    record = document.read(ClusterFile)
    if record is None:
        raise RefusedError("\n".join(document.problems))
    names = [name for name in dir(dask_jobqueue) if name.endswith("Cluster")]
    if record.kind not in names:
        raise RefusedError(
            f"{file.name}: dask_jobqueue has no class `{record.kind}`; there are {', '.join(names)}."
        )
    home = str(Path.home())
    options = {"dashboard": False, "dashboard_address": "127.0.0.1:0"}
    safe = {"security": Security.temporary(), "protocol": "tls://"}
    try:
        options |= record.arguments.pop("scheduler_options", {})
        arguments = {
            "shared_temp_directory": home,
            **record.arguments,
            **safe,
            "scheduler_options": options,
        }
        cluster = getattr(dask_jobqueue, record.kind)(**arguments)
    except (TypeError, ValueError) as error:
        raise RefusedError(f"{file.name}: {record.kind} cannot be made: {error}") from None
    cluster.scale(jobs=record.jobs)
    return cluster


def _check_running(address: str) -> Security:
    if address.startswith("tcp://"):
        raise RefusedError(
            f"--cluster {address} is refused: without encryption, everybody on the network, and every user of "
            "this machine, could run programs as you. Write `local:4` for this machine; elsewhere, start the cluster "
            "with certificates and write tls:// (docs/cluster.md shows how)."
        )
    if not all(
        dask.config.get(f"distributed.comm.tls.{name}", None) for name in ("ca-file", "client.cert")
    ):
        raise RefusedError(
            f"--cluster {address} needs certificates. Set DASK_DISTRIBUTED__COMM__TLS__CA_FILE and "
            "DASK_DISTRIBUTED__COMM__TLS__CLIENT__CERT (docs/cluster.md shows how)."
        )
    return Security(require_encryption=True)
