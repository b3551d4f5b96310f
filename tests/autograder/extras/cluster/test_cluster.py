"""Grading on a Dask cluster: the same grades as on one machine, each counted once, whatever dies on the way."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import json
import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("distributed", reason="Dask is not installed: pip install '.[cluster]'")
pytest.importorskip(
    "dask_jobqueue", reason="dask-jobqueue is not installed: pip install '.[cluster]'"
)

import dask
from distributed.diskutils import WorkSpace

from autograder.course.config import Course
from autograder.course.reading import load_course
from autograder.extras.cluster import cluster, cluster_worker
from autograder.extras.cluster.bundle import Bundle
from autograder.extras.cluster.cluster import Coordinator
from autograder.extras.cluster.cluster_address import batch_cluster, connect
from autograder.extras.cluster.cluster_worker import Graders
from autograder.extras.cluster.grader_process import GraderDiedError, GraderProcess
from autograder.gradebook import texts
from autograder.gradebook.journal import Journal, Reading
from autograder.records import Grade, InfrastructureError, RefusedError, SourceFile, Submission
from autograder.runs.pool import Plan
from autograder.runs.run import grade_class
from tests.autograder.test_sandbox import descendants, living
from tests.autograder.waiting import wait_until

ROOT = Path(__file__).resolve().parents[4]
NAME = "01_adding"
GRADER_MODULE = b"autograder.extras.cluster.grader_process"
KILLS = int(os.environ.get("CLUSTER_KILLS", "0"))


@pytest.fixture
def course(built_course: Path) -> Course:
    return load_course(built_course)


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where the workers of a cluster on this machine keep their files."""
    folder = tmp_path / "scratch"
    monkeypatch.setenv("DASK_TEMPORARY_DIRECTORY", str(folder))
    with dask.config.set({"temporary-directory": str(folder)}):
        yield folder


def submission(student: str, text: str) -> Submission:
    return Submission(student, NAME, (SourceFile("adding.py", text),))


def small_class(course: Course) -> list[Submission]:
    text = course.solution_file(course.assignments[0]).read_text("utf-8")
    answers = [
        text, text.replace("a + b", "a - b"), text.replace("self.value + number", "number"),
        "def add(", "",
    ]  # fmt: skip
    return [submission(f"s{number}", answers[number % len(answers)]) for number in range(10)]


def graded(
    plan: Plan, folder: Path, submissions: list[Submission], address: str | None
) -> list[dict[str, Any]]:
    """Return the lines of a journal without the seconds, sorted by student."""
    with Journal(folder) as journal:
        stored = texts.put(folder, submissions)
        summary = grade_class(plan, stored, journal, lambda _: None, cluster=address)
    assert (summary.failures, summary.notes) == ([], [])
    lines = [json.loads(line) for line in (folder / "grades.jsonl").read_text("utf-8").splitlines()]
    lines = [{**line, "seconds": None, "test_seconds": None} for line in lines]
    return sorted(lines, key=lambda line: (line["student"], line["assignment"]))


def started_since(before: set[int]) -> set[int]:
    """Return the living processes that were started since; multiprocessing's own helper remains until the end."""
    return {
        pid
        for pid in living(descendants(os.getpid()) - before)
        if b"resource_tracker" not in command(pid)
    }


def command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b"resource_tracker"


def left_behind(scratch: Path) -> list[Path]:
    return [path for path in scratch.rglob("*") if path.name.startswith(("worker-", "grader-"))]


@pytest.mark.slow
def test_grades_are_the_same_as_on_one_machine_and_nothing_is_left(
    course: Course, tmp_path: Path, scratch: Path, grader_at_hand: None
):
    plan, submissions = Plan(course, 7, jobs=1), small_class(course)
    here = graded(plan, tmp_path / "here", submissions, None)
    before = descendants(os.getpid())
    there = graded(plan, tmp_path / "there", submissions, "local:1")
    assert there == here and len(here) == len(submissions)
    assert wait_until(lambda: not started_since(before))
    assert left_behind(scratch) == []


# -- what the coordinator does when something dies; the cluster is played by the test -----------------------


@dataclass
class FakeFuture:
    status: str = "pending"
    error: Exception | None = None
    cancelled: bool = False
    tell: Any = None

    def add_done_callback(self, tell: Any) -> None:
        self.tell = tell

    def cancel(self) -> None:
        self.cancelled = True

    def exception(self) -> Exception | None:
        return self.error

    def end(self, status: str, error: Exception | None = None) -> None:
        self.status, self.error = status, error
        self.tell(self)


@dataclass
class FakeClient:
    """Records the chunks that are sent; `present` are the workers that the scheduler knows."""

    present: dict[str, int] = field(default_factory=dict)
    sent: list[tuple[str, int, list[Submission], FakeFuture]] = field(default_factory=list)

    def submit(
        self, _task: Any, _topic: str, number: int, chunk: list[Submission], **options: Any
    ) -> FakeFuture:
        self.sent.append((options["workers"][0], number, chunk, FakeFuture()))
        return self.sent[-1][3]

    def nthreads(self) -> dict[str, int]:
        return self.present


class Play:
    """A run whose events the test makes up; `grades` are those that it has returned."""

    def __init__(self, submissions: list[Submission], *workers: str, graders: int = 1) -> None:
        self.client = FakeClient(dict.fromkeys(workers, graders))
        self.run = Coordinator(self.client, "topic", iter(submissions))
        self.grades: list[Grade] = []
        self.ended: set[int] = set()
        for worker in workers:
            self.event(worker=worker, ready=graders)

    def event(self, **facts: Any) -> None:
        self.grades += self.run.handle(facts)
        self.run.hand_out()

    def begin(self, sent: int) -> None:
        worker, number, _, _ = self.client.sent[sent]
        self.event(worker=worker, chunk=number, began=True)

    def grade(self, sent: int, *places: int, score: float = 1.0) -> None:
        worker, number, chunk, _ = self.client.sent[sent]
        for place in places:
            grade = Grade(chunk[place].student, NAME, "graded", score, 1.0)
            self.event(worker=worker, chunk=number, place=place, kind="grade", text=grade.to_json())

    def end(self, sent: int) -> None:
        worker, number, chunk, _ = self.client.sent[sent]
        self.begin(sent)
        self.grade(sent, *range(len(chunk)))
        self.event(worker=worker, chunk=number, ended=True)
        self.ended.add(number)

    def kill(self, worker: str) -> None:
        del self.client.present[worker]
        self.run.check_workers(patient=True)
        self.run.hand_out()

    def join(self, worker: str) -> None:
        self.client.present[worker] = 1
        self.event(worker=worker, ready=1)

    def first_in_work(self) -> int | None:
        """The place of the first chunk that was sent and has neither ended nor been given up."""
        for place, (_, number, _, future) in enumerate(self.client.sent):
            if number not in self.ended and not future.cancelled:
                return place
        return None

    @property
    def chunks(self) -> list[list[str]]:
        """The students of each chunk, in the order in which they were sent."""
        return [[one.student for one in chunk] for _, _, chunk, _ in self.client.sent]

    @property
    def students(self) -> list[str]:
        return [grade.student for grade in self.grades]


def students(count: int) -> list[Submission]:
    return [submission(f"s{number}", "") for number in range(count)]


def names_of(submissions: list[Submission]) -> list[str]:
    return sorted(one.student for one in submissions)


def finish(play: Play) -> None:
    while (place := play.first_in_work()) is not None:
        play.end(place)
    play.grades += play.run.held()


def test_chunks_hold_one_assignment_and_grow_to_32():
    mixed = [replace(one, assignment=f"0{place % 3}_a") for place, one in enumerate(students(3000))]
    play = Play(mixed, "a", "b", graders=2)
    finish(play)
    sent = [chunk for _, _, chunk, _ in play.client.sent]
    assert all(len({one.assignment for one in chunk}) == 1 for chunk in sent)
    assert len(sent[0]) <= 4 and max(map(len, sent)) == cluster.LARGEST_CHUNK
    assert sorted(student for chunk in play.chunks for student in chunk) == names_of(mixed)


def test_dead_worker_costs_its_chunk_one_repetition_and_arrived_grades_are_kept():
    play = Play(students(20), "a", "b")
    place = next(n for n, (worker, *_) in enumerate(play.client.sent) if worker == "a")
    first = play.chunks[place]
    play.begin(place)
    play.grade(place, 0)
    play.kill("a")
    finish(play)
    again = [chunk for chunk in play.chunks if set(chunk) & set(first) and chunk != first]
    assert again[0] == [first[1]], "it was being graded, so it is graded alone"
    assert sorted(play.students) == names_of(students(20)), "each once"
    assert play.run.failed == {}


def test_submission_at_which_two_workers_died_is_named_and_innocent_ones_are_graded():
    play = Play(students(6), "a")
    deaths = 0
    while (place := play.first_in_work()) is not None:
        names = play.chunks[place]
        if "s2" not in names:
            play.end(place)
            continue
        play.begin(place)
        play.grade(place, *range(names.index("s2")))
        deaths += 1
        play.kill(play.client.sent[place][0])
        play.join(f"worker {deaths}")
    assert deaths == 2
    assert play.run.failed == {("s2", NAME): "the grader died twice."}
    play.grades += play.run.held()
    assert sorted(play.students) == ["s0", "s1", "s3", "s4", "s5"]


def test_worker_that_leaves_costs_nobody_a_repetition_alone():
    play = Play(students(2), "a")
    play.begin(0)
    play.event(worker="a", left=True)
    play.join("b")
    assert play.chunks == [["s0", "s1"]] * 2
    assert play.client.sent[0][3].cancelled
    play.begin(1)
    play.kill("b")
    assert play.run.failed == {}, "it died once: the worker that left had not"


def test_worker_that_falls_silent_is_replaced_and_its_late_grades_count_once(monkeypatch):
    play = Play(students(2), "a", "b")
    play.begin(0)
    monkeypatch.setattr(cluster, "SILENT_SECONDS", -1.0)
    play.run.check_workers(patient=True)
    play.run.hand_out()
    play.grade(0, 0, 1)  # late
    finish(play)
    assert play.chunks == [["s0", "s1"]] * 2
    assert play.students == ["s0", "s1"] and play.run.failed == {}


@pytest.mark.parametrize("late", [True, False])
def test_two_different_scores_of_one_submission_are_named_and_neither_counts(late):
    play = Play(students(1), "a")
    play.begin(0)
    play.event(worker="a", left=True)
    play.join("b")
    order = (0, 1) if late else (1, 0)
    play.grade(order[0], 0, score=1.0)
    play.grade(order[1], 0, score=0.5)
    finish(play)
    assert play.run.failed == {
        ("s0", NAME): "two graders gave it 1 and 0.5 points; neither counts."
    }
    assert play.grades == []


def test_run_without_a_machine_that_can_grade_ends_with_the_reasons():
    play = Play(students(2))
    play.client.present = {"a": 1}
    play.run.check_workers(patient=False)
    play.event(worker="a", refused="It has torch 2.1 instead of 2.2.", host="node7")
    with pytest.raises(InfrastructureError, match=r"node7 \(a\) took no part: It has torch 2\.1"):
        play.run.check_workers(patient=False)
    play.client.present = {"a": 1, "b": 1}  # which may still be starting
    play.run.check_workers(patient=False)


def test_running_cluster_without_workers_is_not_waited_for_but_a_batch_queue_is(monkeypatch):
    play = Play(students(2))
    monkeypatch.setattr(cluster, "START_SECONDS", -1.0)
    play.run.check_workers(patient=True)
    with pytest.raises(InfrastructureError, match="has no workers"):
        play.run.check_workers(patient=False)


@pytest.mark.parametrize(("status", "error"), [("lost", OSError), ("error", InfrastructureError)])
def test_chunk_that_dask_gave_up_ends_the_run(status, error):
    play = Play(students(2), "a")
    play.client.sent[0][3].end(status, ValueError("no such plugin"))
    with pytest.raises(error):
        play.event(**play.run.events.get(timeout=1))


# -- addresses ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        *[
            pytest.param(address, "without encryption", id=f"plain tcp, {address}")
            for address in (
                "tcp://10.0.0.7:8786",
                "tcp://scheduler:1",
                "tcp://127.evil.example:8786",
                "tcp://127.0.0.1:8786",
                "tcp://localhost:8786",
                "tcp://[::1]:8786",
            )
        ],
        *[
            pytest.param(address, "Write `local:4`", id=f"names no cluster, {address}")
            for address in ("local:", "local:0", "local:two", "a:1", "http://a:1", "slurm.txt")
        ],
        pytest.param("tls://10.0.0.7:1", "TLS__CA_FILE", id="tls without certificates"),
        pytest.param("missing/slurm.yml", "slurm.yml", id="missing file"),
    ],
)
def test_address_is_refused_with_a_sentence(address, sentence):
    with pytest.raises(RefusedError, match=sentence), connect(address):
        pass


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("class: SlurmCluster\njobs: 2\n", "no class `SlurmCluster`; there are"),
        ("class: SLURMCluster\n", "`jobs`"),
        ("class: SLURMCluster\njobs: 0\n", "greater than 0"),
        ("class: SLURMCluster\njobs: 2\nqueue: short\n", "`queue`"),
        ("class: SLURMCluster\njobs: 2\narguments: {cores: 1}\n", "cannot be made"),
        ("class: SLURMCluster\njobs: 2\narguments: {scheduler_options: 5}\n", "cannot be made"),
        ("class: [\n", "line"),
    ],
)
def test_file_with_an_error_is_refused_with_a_sentence(tmp_path, text, sentence):
    file = tmp_path / "slurm.yml"
    file.write_text(text)
    with pytest.raises(RefusedError) as refused:
        batch_cluster(file)
    assert sentence in str(refused.value) and "slurm.yml" in str(refused.value)


# -- what a grader checks before it takes work ------------------------------------------------------------------


@pytest.mark.parametrize("package", ["Python", "torch", "autograder"])
def test_machine_with_other_versions_is_refused(course, tmp_path, package):
    whole = Bundle.of(Plan(course, 7))
    other = replace(whole, versions={**whole.versions, package: "1.0"})
    with pytest.raises(InfrastructureError, match=f"It has {package} .* instead of 1.0"):
        other.unpack(tmp_path)
    assert list(tmp_path.iterdir()) == [], "nothing of the course is written"


def test_damaged_course_and_other_suites_are_refused(course, tmp_path):
    whole = Bundle.of(Plan(course, 7))
    with pytest.raises(InfrastructureError, match="damaged"):
        replace(whole, archive=whole.archive[:-1]).unpack(tmp_path)
    with pytest.raises(InfrastructureError, match="suites"):
        replace(whole, suites={NAME: "0"}).unpack(tmp_path)


def test_machine_with_a_weaker_sandbox_than_min_tier_is_refused_and_leaves_nothing(
    course, tmp_path
):
    file = course.root / "course.yml"
    strict = tmp_path / "course"
    shutil.copytree(course.root, strict)
    (strict / "course.yml").write_text(f"min_tier: namespaces\n{file.read_text()}")
    plan = Plan(load_course(strict), 7, tier="unsafe")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    with pytest.raises(InfrastructureError, match="`min_tier` in course.yml asks for 'namespaces'"):
        GraderProcess(Bundle.of(plan), str(scratch))
    assert list(scratch.iterdir()) == []


def test_machine_without_a_package_of_the_only_assignment_is_refused(course, tmp_path):
    lacking = tmp_path / "course"
    shutil.copytree(course.root, lacking)
    file = lacking / "course.yml"
    needing = "minutes: 10\n    preload: [no_such_library]\n"
    file.write_text(file.read_text().replace("minutes: 10\n", needing))
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    with pytest.raises(
        InfrastructureError, match="needs no_such_library, which cannot be imported"
    ):
        GraderProcess(Bundle.of(Plan(load_course(lacking), 7)), str(scratch))


# -- the graders of one worker; the processes are played by the test ----------------------------------------------


class FakeGrader:
    """Grades until it meets a student whose name is in `deadly`."""

    def __init__(self, deadly: dict[str, int]) -> None:
        self.deadly, self.is_alive, self.closed = deadly, True, False

    def grade(self, submission: Submission) -> tuple[str, str]:
        if self.deadly.get(submission.student, 0) > 0:
            self.deadly[submission.student] -= 1
            self.is_alive = False
            raise GraderDiedError
        return "grade", submission.student

    def close(self) -> None:
        self.is_alive, self.closed = False, True


class FakeWorker:
    address, local_directory, lifetime = "tls://a:1", "scratch", None
    state = SimpleNamespace(nthreads=3)

    def __init__(self) -> None:
        self.told: list[dict[str, Any]] = []
        self.plugins: dict[str, Graders] = {}

    def log_event(self, topic: str, facts: dict[str, Any]) -> None:
        assert topic == "topic"
        self.told.append(facts)


class Room:
    """A worker with the plugin, set up; `started` are the graders that it has started."""

    def __init__(
        self,
        monkeypatch: pytest.MonkeyPatch,
        problem: str = "",
        lifetime: float | None = None,
        **deadly: int,
    ):
        self.worker, self.started = FakeWorker(), list[FakeGrader]()
        self.worker.lifetime = lifetime
        self.plugin = self.worker.plugins["topic"] = Graders(None, "topic")

        def start() -> FakeGrader:
            if problem:
                raise InfrastructureError(problem)
            self.started.append(FakeGrader(deadly))
            return self.started[-1]

        monkeypatch.setattr(self.plugin, "start", start)
        monkeypatch.setattr(cluster_worker, "get_worker", lambda: self.worker)
        asyncio.run(self.set_up())

    async def set_up(self) -> None:
        self.plugin.setup(self.worker)
        await asyncio.gather(*(asyncio.all_tasks() - {asyncio.current_task()}))

    def grade(self, *names: str) -> list[tuple[Any, ...]]:
        del self.worker.told[:]
        cluster_worker.grade_chunk("topic", 1, [submission(name, "") for name in names])
        return [
            tuple(value for key, value in facts.items() if key != "worker")
            for facts in self.worker.told
        ]


def test_worker_says_that_it_is_ready_and_reports_each_grade(monkeypatch):
    room = Room(monkeypatch)
    assert room.worker.told == [{"worker": "tls://a:1", "ready": 3}]
    told = [(1, True), (1, 0, "grade", "s0"), (1, 1, "grade", "s1"), (1, True)]
    assert room.grade("s0", "s1") == told
    assert len(room.started) == 1


@pytest.mark.parametrize(
    ("deaths", "found"), [(1, ("grade", "s1")), (2, ("failed", "the grader died twice."))]
)
def test_dead_grader_is_replaced_once_for_each_submission(monkeypatch, deaths, found):
    room = Room(monkeypatch, s1=deaths)
    outcomes = [told[2:] for told in room.grade("s0", "s1", "s2")[1:4]]
    assert outcomes == [("grade", "s0"), found, ("grade", "s2")]
    assert len(room.started) == deaths + 1 and all(each.closed for each in room.started[:-1])


def test_worker_at_the_end_of_its_lifetime_begins_no_submission(monkeypatch):
    room = Room(monkeypatch, lifetime=float(cluster_worker.LEAVING_SECONDS - 1))
    room.grade("s0")
    assert room.worker.told[1:] == [{"worker": "tls://a:1", "chunk": 1, "left": True}]


# -- a grader as a subprocess -----------------------------------------------------------------------------------


# -- whole clusters ---------------------------------------------------------------------------------------------


@pytest.fixture
def certificates(tmp_path) -> Iterator[list[str]]:
    """Certificates made as docs/cluster.md says, in the environment of the command; options for Dask's programs."""
    guide = (ROOT / "docs/cluster.md").read_text("utf-8")
    for line in re.findall(r"^openssl .*$", guide, re.MULTILINE):
        subprocess.run(shlex.split(line), cwd=tmp_path, check=True, capture_output=True)
    files = ("ca.pem", "grading.pem", "grading.key")
    ca, certificate, key = (str(tmp_path / name) for name in files)
    names = {"ca-file": ca, "client.cert": certificate, "client.key": key}
    with dask.config.set({f"distributed.comm.tls.{name}": value for name, value in names.items()}):
        yield ["--tls-ca-file", ca, "--tls-cert", certificate, "--tls-key", key]


def dask_program(name: str, *arguments: str) -> subprocess.Popen[bytes]:
    program = [sys.executable, "-m", f"distributed.cli.dask_{name}", *arguments]
    return subprocess.Popen(program, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


@contextlib.contextmanager
def program(name: str, *arguments: str) -> Iterator[None]:
    """One of Dask's programs, with its own workers, until the end of the context."""
    process = dask_program(name, *arguments)
    try:
        yield
    finally:
        process.terminate()
        process.wait()


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("openssl"), reason="openssl is not installed")
def test_running_cluster_with_certificates_grades_and_keeps_nothing_of_the_course(
    course, tmp_path, certificates
):
    before = descendants(os.getpid())
    file, scratch = tmp_path / "scheduler.json", tmp_path / "scratch"
    scratch.mkdir()
    local = ("--no-dashboard", "--host", "127.0.0.1", *certificates)
    ports = ("--protocol", "tls", "--port", "0")
    with program("scheduler", *ports, "--scheduler-file", str(file), *local):
        assert wait_until(lambda: file.exists() and file.read_text().endswith("}"))
        address = json.loads(file.read_text())["address"]
        own = ("--nthreads", "1", "--local-directory", str(scratch))
        with program("worker", address, *own, *local):
            lines = graded(Plan(course, 7), tmp_path / "grades", small_class(course), address)
            assert [line["score"] for line in lines] == [10.0, 6.0, 7.0, 0.0, 0.0] * 2
            assert wait_until(lambda: not list(scratch.rglob("grader-*"))), (
                "nothing of the course stays on a worker"
            )
    assert wait_until(lambda: not started_since(before))


SBATCH = """\
#!/bin/sh
cp "$1" {folder}/script.sh
[ -n "{start}" ] && setsid sh {folder}/script.sh > {folder}/worker.log 2>&1 &
echo "Submitted batch job 4711"
"""
SLURM = """\
class: SLURMCluster
jobs: 1
arguments:
  queue: short
  cores: 1
  memory: 2GB
  walltime: "00:30:00"
  local_directory: {folder}
  shared_temp_directory: {folder}
  scheduler_options: {{host: 127.0.0.1}}
  worker_extra_args: ["--lifetime", "25m"]
  protocol: tcp://
"""


def slurm(folder: Path, monkeypatch: pytest.MonkeyPatch, start: str = "") -> Path:
    """Write slurm.yml, and a `sbatch` that keeps the script it is given; with `start`, it starts the worker as well."""
    programs = folder / "bin"
    programs.mkdir()
    (programs / "sbatch").write_text(SBATCH.format(folder=folder, start=start))
    (programs / "scancel").write_text("#!/bin/sh\n")
    for each in programs.iterdir():
        each.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    (folder / "slurm.yml").write_text(SLURM.format(folder=folder))
    return folder / "slurm.yml"


def test_slurm_is_sent_a_script_with_the_files_arguments(tmp_path, monkeypatch):
    with batch_cluster(slurm(tmp_path, monkeypatch)):
        assert wait_until((tmp_path / "script.sh").exists)
        script = (tmp_path / "script.sh").read_text()
    options = ("-p short", "--cpus-per-task=1", "-t 00:30:00", "--mem=2G")
    assert {f"#SBATCH {option}" for option in options} <= set(script.splitlines())
    assert "tls://127.0.0.1:" in script and "--lifetime 25m" in script and "--tls-ca-file" in script
    assert "tcp://" not in script, "encryption cannot be turned off"
    assert not list(tmp_path.glob("*.pem")), "the certificates of the run are removed"


# -- the course itself -------------------------------------------------------------------------------------------


# -- random kills, as many as CLUSTER_KILLS says: `make cluster` sets it -----------------------------------------------

STUDENTS = 100
KILLS_OF_A_CLASS = 5
VICTIMS = ("grader", "worker", "coordinator")
NONE = pytest.param(0, marks=pytest.mark.skip("CLUSTER_KILLS says how many"))
SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER, of prctl(2)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(-(-KILLS // KILLS_OF_A_CLASS)) or [NONE])
def test_random_kills_lose_no_grade_count_none_twice_and_leave_nothing(
    course, tmp_path, monkeypatch, seed
):
    """Graders, workers, nannies and the coordinator are killed at random grades; the run goes on or is resumed."""
    chance = random.Random(seed)
    ctypes.CDLL(None).prctl(
        SUBREAPER, 1
    )  # what outlives its parent becomes a child of this process
    scratch, temporary = tmp_path / "scratch", tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("DASK_TEMPORARY_DIRECTORY", str(scratch))
    monkeypatch.setenv("TMPDIR", str(temporary))
    for one in range(STUDENTS):
        text = small_class(course)[one % 10].files[0].text
        file = tmp_path / "class" / f"s{one:03}" / NAME / "adding.py"
        file.parent.mkdir(parents=True)
        file.write_text(text)
    journal = tmp_path / "grades/grades.jsonl"
    before, killed = descendants(os.getpid()), list[str]()
    with contextlib.ExitStack() as stack:
        nannies = stack.enter_context(Nannies(tmp_path, scratch)) if seed % 2 else None
        address = nannies.address if nannies else "local:2"
        run = start_class(course, tmp_path, address)
        while len(killed) < KILLS_OF_A_CLASS:
            wanted = lines(journal) + chance.randrange(STUDENTS // KILLS_OF_A_CLASS // 2)
            wait_for_lines(run, journal, wanted)
            if run.poll() is None and lines(journal) < STUDENTS:
                killed.append(chance.choice((*VICTIMS, "nanny") if nannies else VICTIMS))
                kill(chance.choice(sorted(candidates(run, killed[-1], nannies)) or [run.pid]))
            elif lines(journal) >= STUDENTS:
                break
            if run.poll() is not None or killed[-1] == "coordinator":
                run.wait()
                run = start_class(course, tmp_path, address)
            if nannies:
                nannies.replace_dead()
        run.wait()
        last = start_class(course, tmp_path, address)
        assert last.wait() == 0, (killed, last.stderr.read())
    assert len(killed) == KILLS_OF_A_CLASS, (
        "the class is too small for this machine: it was graded before the last kill"
    )
    students = [grade.student for grade in Reading(journal)]
    assert sorted(students) == [f"s{one:03}" for one in range(STUDENTS)], killed
    scores = {grade.student: grade.score for grade in Reading(journal)}
    assert [scores[f"s{one:03}"] for one in range(STUDENTS)] == [10.0, 6.0, 7.0, 0.0, 0.0] * (
        STUDENTS // 5
    )
    assert wait_until(lambda: not started_since(before)), killed
    assert not [*filter(Path.is_dir, temporary.iterdir())], killed
    if "grader" not in killed:  # a grader that was killed with its worker leaves its folder to Dask
        assert not [*scratch.rglob("grader-*")], killed
    # the next worker of a dead nanny's machine purges what was left
    WorkSpace(str(scratch / "dask-scratch-space")).new_work_dir(name="next").release()
    assert left_behind(scratch) == [], killed


def wait_for_lines(run: subprocess.Popen[str], journal: Path, count: int) -> None:
    assert wait_until(lambda: run.poll() is not None or lines(journal) > count)


def lines(journal: Path) -> int:
    return journal.read_bytes().count(b"\n") if journal.exists() else 0


def kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def start_class(course: Course, folder: Path, address: str) -> subprocess.Popen[str]:
    arguments = ["grade", "class", "--course", str(course.root), "--cluster", address, "--json"]
    program = [sys.executable, "-c", "from autograder.cli import main; main()", *arguments]
    return subprocess.Popen(
        program, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )


def candidates(
    coordinator: subprocess.Popen[str], victim: str, nannies: Nannies | None
) -> set[int]:
    """Return the processes of a kind: graders run a module of their own, workers are started by `spawn_main`."""
    programs = {one.pid for one in nannies.processes} if nannies else set()
    tops = {coordinator.pid, *programs}
    below = {pid: command(pid) for top in tops for pid in living(descendants(top))}
    marks = {"grader": GRADER_MODULE, "worker": b"spawn_main"}
    if victim in marks:
        return {pid for pid, line in below.items() if marks[victim] in line}
    return programs if victim == "nanny" else {coordinator.pid}


class Nannies:
    """A running cluster of a scheduler and two of Dask's worker programs, which watch over a worker each."""

    def __init__(self, folder: Path, scratch: Path) -> None:
        self._file, self._scratch = folder / "scheduler.json", scratch
        self.processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Nannies:
        self._scheduler = dask_program("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard",
                                       "--scheduler-file", str(self._file))  # fmt: skip
        assert wait_until(lambda: self._file.exists() and self._file.read_text().endswith("}"))
        self.address = json.loads(self._file.read_text())["address"]
        self.processes = [self._start() for _ in range(2)]
        return self

    def __exit__(self, *_: object) -> None:
        for process in (*self.processes, self._scheduler):
            process.terminate()
            process.wait()

    def replace_dead(self) -> None:
        """Start a worker program for each that was killed, as a batch system does."""
        self.processes = [
            self._start() if one.poll() is not None else one for one in self.processes
        ]

    def _start(self) -> subprocess.Popen[bytes]:
        return dask_program("worker", self.address, "--nthreads", "1", "--no-dashboard",
                            "--local-directory", str(self._scratch))  # fmt: skip
