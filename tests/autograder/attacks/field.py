"""The environment of the attacks: two courses with canaries, a sandbox that records the output of its
workers, and honest submissions.

An attack is code that is appended to a wrong answer of the right shape. The honest score is the score of that
answer alone. Attacks print `REACHED` when they have reached something forbidden; the output of all workers is
searched for it.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autograder.course.config import Course
from autograder.course.reading import load_course
from autograder.grading.preparation import open_grader
from autograder.records import Grade, SourceFile, Submission
from autograder.walls.outside.launcher import Sandbox
from autograder.walls.outside.worker_process import WorkerProcess
from tests.autograder.tiny_course import ALTERNATIVE, write_tiny_course

ROOT = Path(__file__).resolve().parents[3]
HEADS, TINY = "03_masked_heads", "01_adding"
KERNEL_KEYS = (
    "16962",
    "16963",
)  # 0x4242 and 0x4243: memory, queues and semaphores that attacks try to leave
RUN_SEED = 2026
LEFT_BEHIND = "left_behind"  # how attacks call the files that they try to leave
PLACES = ("/tmp", "/dev/shm", "/var/tmp", "/")
LIMITS = dict(
    call_seconds=1.5, load_seconds=3, cpu_seconds=8, submission_seconds=12, memory_mb=384,
    scratch_mb=4, output_kb=64,
)  # fmt: skip

TINY_WRONG = """
def add(a, b):
    return a - b


class Total:
    def __init__(self, start=0):
        self.value = start

    def push(self, number):
        self.value = self.value + number
        return self.value
"""


@dataclass(frozen=True)
class Attack:
    """One attack of a hostile student.

    `code` is appended to the wrong answer, or with `alone` used by itself; COURSE in it is replaced by the
    course's path. Instead, `make` can write files or archives into a student's folder. `proves` is the output
    which shows that the attack took place. `gains` is a documented gain; every other attack must gain
    nothing.
    """

    name: str
    tries: str
    code: str = ""
    course: str = TINY
    alone: bool = False
    make: Callable[[Path, str], None] | None = None
    proves: str = ""
    gains: float = 0.0


def on_heads(name: str, tries: str, code: str, **more: Any) -> Attack:
    """Return an attack on the assignment about masked heads."""
    return Attack(name, tries, code, course=HEADS, **more)


class OverheardSandbox(Sandbox):
    """A sandbox that records the output of its workers."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.outputs: list[str] = []
        super().__init__(*args, **kwargs)

    def spawn(self, limits: Any, preload: Iterable[str] = ()) -> WorkerProcess:
        worker = super().spawn(limits, preload)
        close = worker.close

        def listen_and_close() -> None:
            worker.close = close  # type: ignore[method-assign]
            self.outputs.append(worker.output(1 << 20))
            close()

        worker.close = listen_and_close  # type: ignore[method-assign]
        return worker


@dataclass
class Outcome:
    """The result of an attack: the best grade of several, and the output of all workers."""

    grade: Grade
    output: str


class Field:
    """The environment in one tier: graders for both courses with one sandbox, and the secrets that must not be found."""

    def __init__(self, tier: str, folder: Path) -> None:
        self.folder = folder
        self.canary = f"CANARY-{secrets.token_hex(8)}"
        self.root = folder / "course"
        self.planted = self._plant(self.root)
        self.course = _hurried(load_course(self.root))
        self.before = _contents(folder)
        self.sandbox = OverheardSandbox(tier, hidden=self.course.hidden_folders)
        self.wrong = {TINY: TINY_WRONG, HEADS: heads_wrong()}
        self.right = {TINY: ALTERNATIVE, HEADS: _heads_solution()}
        self.grader = open_grader(
            load_course(self.root), self.sandbox, RUN_SEED
        )  # in no hurry, on however busy a machine
        self.honest = {name: self.grade(name, text).score for name, text in self.wrong.items()}
        self.grader.session.close()
        self.grader = open_grader(self.course, self.sandbox, RUN_SEED)

    def grade(self, name: str, text: str, student: str = "mallory") -> Grade:
        file = f"{name.partition('_')[2]}.py"
        return self.grader.grade(Submission(student, name, (SourceFile(file, text),)))

    def attack(self, attack: Attack, folder: Path) -> Outcome:
        self.sandbox.outputs.clear()
        grade = (
            self._hand_in(attack, folder)
            if attack.make
            else self.grade(attack.course, self.text(attack))
        )
        return Outcome(grade, "\n".join(self.sandbox.outputs))

    def text(self, attack: Attack) -> str:
        code = attack.code.replace("COURSE", str(self.root))
        return code if attack.alone else f"{self.wrong[attack.course]}\n{code}"

    def _hand_in(self, attack: Attack, folder: Path) -> Grade:
        """Hand in the files of a hostile and of an honest student, and grade them as a class."""
        from autograder.submissions.find import find_submissions

        (folder / "course").symlink_to(self.root)  # attackers know where the course is
        folder = folder / "class"
        theirs, ours = folder / "mallory" / attack.course, folder / "ada" / attack.course
        for each in (theirs, ours):
            each.mkdir(parents=True)
        module = f"{attack.course.partition('_')[2]}.py"
        (ours / module).write_text(self.right[attack.course])
        assert attack.make is not None
        attack.make(theirs, self.wrong[attack.course])
        grades = [self.grader.grade(s) for s in find_submissions(folder, self.course)]
        full = self.course.assignment(attack.course).points
        assert [g.score for g in grades if g.student == "ada"] == [full], (
            "the neighbour lost points"
        )
        return max((g for g in grades if g.student != "ada"), key=lambda g: g.score)

    def close(self) -> None:
        self.grader.close()
        for file in self.planted:
            file.unlink(missing_ok=True)

    def left_behind(self) -> list[str]:
        """Return files that an attack has left behind, wherever it may have written."""
        places = [*map(Path, PLACES), Path.home(), self.root, ROOT]
        found = [
            str(file) for place in places for file in _named(place, LEFT_BEHIND)
        ] + _kernel_objects()
        return found + sorted(set(_contents(self.folder).items()) ^ set(self.before.items()))

    def _plant(self, root: Path) -> list[Path]:
        """Place canaries in tests, solutions and mistakes, beside the course, in the home folder and in a
        shared folder.
        """
        write_tiny_course(root)
        for part in ("solutions", "tests/assignments", "assignments"):
            shutil.copytree(
                ROOT / part / HEADS,
                root / part / HEADS,
                ignore=shutil.ignore_patterns("__pycache__"),
            )
        (root / "course.yml").write_text(_both_courses((root / "course.yml").read_text()))
        for name in (TINY, HEADS):
            suite, stem = root / "tests" / "assignments" / name, name.partition("_")[2]
            hidden = [
                suite / "test_hidden.py",
                suite / "test_visible.py",
                root / "solutions" / name / f"{stem}.py",
            ]
            for file in hidden:
                note = (
                    f'\n# {self.canary} of {file.name}\nKEPT_SECRET = "{self.canary} in memory"\n'
                )
                file.write_text(file.read_text() + note)
            mistakes = suite / "mistakes.yml"
            mistakes.write_text(
                f"{_first_mistakes(mistakes.read_text())}\n# {self.canary} of the mistakes\n"
            )
        os.environ["GRADERS_TOKEN"] = f"{self.canary} of the environment"
        planted = [
            Path.home() / f".{self.canary}",
            Path("/tmp") / f"{self.canary}.txt",
            self.folder / "secret.txt",
        ]
        for file in planted:
            file.write_text(f"{self.canary} of {file}")
        return planted


@contextmanager
def open_field(tier: str, folder: Path) -> Iterator[Field]:
    field = Field(tier, folder)
    try:
        yield field
    finally:
        field.close()
        os.environ.pop("GRADERS_TOKEN", None)


def heads_wrong() -> str:
    """Return an answer with the right shapes and names, a wrong scale, and no error for long sentences."""
    text = _heads_solution().replace("/ math.sqrt(q.shape[-1])", "/ q.shape[-1]")
    return text.replace("if T > block_size:", "if False:")


def _heads_solution() -> str:
    return (ROOT / "solutions" / HEADS / "masked_heads.py").read_text("utf-8")


def _first_mistakes(text: str, count: int = 3) -> str:
    """Return a few of the mistakes, to save time: each runs through every failed test."""
    return "- id:".join(text.split("- id:")[: count + 1])


def _both_courses(tiny: str) -> str:
    lines = (ROOT / "course.yml").read_text("utf-8").split("\n")
    start = next(n for n, line in enumerate(lines) if f"name: {HEADS}" in line)
    end = next(n for n, line in enumerate(lines) if n > start and "- name:" in line)
    return tiny.rstrip("\n") + "\n" + "\n".join(lines[start:end]) + "\n"


def _hurried(course: Course) -> Course:
    assignments = tuple(
        a.model_copy(update={"limits": a.limits.model_copy(update=LIMITS)})
        for a in course.assignments
    )
    return course.model_copy(update={"assignments": assignments})


def _contents(folder: Path) -> dict[str, str]:
    files = (f for f in folder.rglob("*") if f.is_file() and "__pycache__" not in f.parts)
    return {str(f): hashlib.sha256(f.read_bytes()).hexdigest() for f in files}


def _kernel_objects() -> list[str]:
    tables = [table for table in Path("/proc/sysvipc").glob("*") if table.is_file()]
    lines = [
        f"{line} of {table.name}"
        for table in tables
        for line in table.read_text().split("\n")
        if line
    ]
    return [line for line in lines if line.split()[0] in KERNEL_KEYS]


def _named(place: Path, beginning: str) -> list[Path]:
    return list(place.glob(f"{beginning}*")) if place.is_dir() else []
