"""What hostile submissions cost the others in a class: `python -m benchmarks.hostile_third [--jobs 2]`.

Thirty honest submissions of 03_masked_heads are graded, then a class of the same size in which
attacks on the autograder take the place of the last ten. In two of these classes, three attacks
never end, in different places; the other seven are one of each kind, or those that take most time
and memory. In two further ones, all ten describe exceptions by tensors, or all stay just below each
limit. Printed are the time on the clock, the processor time of all processes, the most memory of
one grader (resident, and with shared pages counted in parts), and the honest grades that changed.
The first line is the twenty honest submissions alone; the last ones are one submission by itself:
an honest one, and one of each kind.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

from autograder.course.mistakes_file import load_alternatives, load_mistakes
from autograder.course.reading import load_course
from benchmarks.measure import descendants, measured, proportional_mb
from benchmarks.plain_suite import ROOT
from tests.autograder.attacks.field import HEADS, heads_wrong
from tests.autograder.attacks.test_attacks import ATTACKS

FILE = "masked_heads.py"
HONEST, CLASS = 20, 30
SAMPLE_SECONDS = 0.1
SEED = 7
NOT_COMPARED = ("seconds", "test_seconds")
ENDLESS = {
    "endless_import": "while True: pass",
    "endless_call": "def attention(q, k, v, mask=None):\n    while True: pass",
    "endless_in_c": "import re\ndef causal_mask(T, device=None): re.match(r'(a+)+$', 'a' * 60 + 'b')",
}
SLOW = """
import time
def spend(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass
spend(9)
"""
ALIKE = {
    "exceptions": "forge_results claimed_exceptions",
    "loading": "a file whose import takes nine seconds each time",
}
OTHERS = {
    "mixed": (
        "read_secrets files_by_their_path",
        "forge_results changed_inputs",
        "monkeypatching comparisons_of_torch",
        "type_confusion tensor_that_agrees",
        "wire_frames four_gigabytes",
        "gaming finished_layer",
        "proxy_confusion lying_parameters",
    ),
    "costly": (
        "type_confusion huge_arrays",
        "exhaustion huge_message",
        "exhaustion memory_kept_for_gradients",
        "remembering other_words_each_time",
        "remembering asks_back_differently",
        "proxy_confusion parameters_as_large_as_the_machine",
        "following asks_for_too_much",
    ),
}


def honest_texts(count: int) -> list[str]:
    """The solution, its alternatives and the known mistakes in turns, each text only once."""
    course = load_course(ROOT)
    assignment = course.assignment(HEADS)
    right = [
        course.read_solution(assignment),
        *(text for _, text in load_alternatives(course, assignment)),
    ]
    wrong = [mistake.source for mistake in load_mistakes(course, assignment)]
    texts = [text for pair in zip(right * count, wrong * count) for text in pair][:count]
    return [f"{text}\n# {number}\n" for number, text in enumerate(texts)]


def hostile_texts(which: str) -> dict[str, str]:
    attacks = {f"{kind} {attack.name}": attack.code for kind, attack in ATTACKS} | {
        ALIKE["loading"]: SLOW
    }
    if which in ALIKE:
        codes = {f"{which}_{number}": attacks[ALIKE[which]] for number in range(CLASS - HONEST)}
    else:
        codes = ENDLESS | {name.replace(" ", "_"): attacks[name] for name in OTHERS[which]}
    return {
        # graded after every second honest one
        f"student{2 * number:02}_{name}": f"{heads_wrong()}\n{code}\n"
        for number, (name, code) in enumerate(codes.items())
    }


def hand_in(folder: Path, texts: dict[str, str]) -> None:
    for student, text in texts.items():
        file = folder / student / HEADS / FILE
        file.parent.mkdir(parents=True)
        file.write_text(text, "utf-8")


class GraderMemory(threading.Thread):
    """Looks at this process's graders and their forks: the largest resident and proportional memory, in megabytes."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.resident = self.proportional = 0.0
        self._over = threading.Event()

    def run(self) -> None:
        while not self._over.wait(SAMPLE_SECONDS):
            for pid in descendants(os.getpid()):
                try:
                    command = Path(f"/proc/{pid}/cmdline").read_bytes()
                    status = Path(f"/proc/{pid}/status").read_text()
                except OSError:
                    continue  # it ended meanwhile
                if b"multiprocessing.spawn" in command and "VmHWM:" in status:
                    peak = int(status.partition("VmHWM:")[2].split()[0]) / 1024
                    self.resident = max(self.resident, peak)
                    self.proportional = max(self.proportional, proportional_mb(pid))

    def end(self) -> None:
        self._over.set()
        self.join()


def grade(folder: Path, output: Path, jobs: int) -> tuple[str, dict[str, dict[str, Any]]]:
    memory = GraderMemory()
    memory.start()
    words = ["grade", folder, "--course", ROOT, "--output", output, "--jobs", jobs, "--seed", SEED]
    command = [sys.executable, "-c", "from autograder.cli import main; main()", *map(str, words)]
    cost = measured([command], folder)
    memory.end()
    lines = [json.loads(line) for line in (output / "grades.jsonl").read_text("utf-8").splitlines()]
    grades = {
        line["student"]: {key: line[key] for key in line if key not in NOT_COMPARED}
        for line in lines
    }
    figures = f"{cost.seconds:6.1f} s on the clock, {cost.cpu_seconds:6.1f} s of processors, largest grader "
    return (
        figures + f"{memory.resident:.0f} MB resident, {memory.proportional:.0f} MB proportional",
        grades,
    )


def print_changes(student: str, before: dict[str, Any], after: dict[str, Any]) -> None:
    for field in sorted({*before, *after}):
        if before.get(field) != after.get(field):
            print(f"  {student}: {field}: {before.get(field)} -> {after.get(field)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", nargs="*", choices=[*OTHERS, *ALIKE], default=[*OTHERS, *ALIKE])
    options = parser.parse_args()
    jobs = options.jobs
    with tempfile.TemporaryDirectory() as name:
        everybody = {f"student{number:02}": text for number, text in enumerate(honest_texts(CLASS))}
        honest = dict([*everybody.items()][:HONEST])
        classes = {"alone": honest, "honest": everybody}
        classes |= {which: honest | hostile_texts(which) for which in options.only}
        for which, texts in classes.items():
            hand_in(Path(name, which), texts)
            figures, grades = grade(Path(name, which), Path(name, f"{which}-grades"), jobs)
            if which == "alone":
                alone = grades
            changed = [student for student in honest if grades[student] != alone[student]]
            print(
                f"{which}: {len(grades)} submissions, {figures}; {len(changed)} honest grades changed",
                flush=True,
            )
            for student in changed:
                print_changes(student, alone[student], grades[student])
        single = {"one honest": dict([*honest.items()][:1])}
        single |= {
            f"one of {which}": dict([*hostile_texts(which).items()][:1]) for which in options.only
        }
        for which, texts in single.items():
            hand_in(Path(name, which), texts)
            print(f"{which}: {grade(Path(name, which), Path(name, f'{which}-grades'), 1)[0]}")


if __name__ == "__main__":
    main()
