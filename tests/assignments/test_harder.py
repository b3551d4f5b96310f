"""The harder exercises: unwritten they say so, the instructors' solutions pass, and slips are told."""

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

HERE = Path(__file__).resolve().parent
EXERCISES = sorted(HERE.glob("*/given/harder.py"))
SLIPS = {
    "13_key_value_cache": [
        ("o = o * shrink", "o = o", "by_hand"),
        ("l = l * shrink", "l = l", "by_hand"),
        ("/ math.sqrt(q.shape[-1])", "", "equal_to_pytorch"),
        ("range(0, k.shape[-2], tile)", "range(0, k.shape[-2] // tile * tile, tile)", "by_hand"),
        ("torch.maximum(m, scores.amax(dim=-1, keepdim=True))", "torch.zeros_like(m)", "large_scores"),
        ("begin : begin + tile", "begin : begin + 10**6", "by_hand"),
        ("range(0, k.shape[-2], tile)", "range(0, 1)", "by_hand"),
        ("    m = q.new_full", "    tile = 10**6\n    m = q.new_full", "no_table"),
    ],
    "10_ready_made": [
        ("(-counts[pair], pair)", "-counts[pair]", "worked_example"),
        ("(-counts[pair], pair)", "(counts[pair], pair)", "worked_example"),
        ("joined[-1] += token", "joined[-1] = token + joined[-1]", "comes_back"),
        ("if not counts:", "if False:", "stops"),
        ('text.replace(" ", "\\0 ").split("\\0")', "text.split()", "comes_back"),
        ("for pair in merges:", "for pair in merges[:1]:", "each_was_the_most_frequent"),
    ],
    "11_spot_the_cheat": [
        ("seen[word] + 1", "seen[word]", "by_hand"),
        ("seen[word] = t", "seen.setdefault(word, t)", "latest_place"),
        ("weights[:, t, s]", "weights[:, s, t]", "by_hand"),
        ("if not pairs:", "if False:", "nothing_twice"),
        ("outputs.clone()", "outputs", "ablation"),
    ],
}


def loaded(file: Path, text: str | None = None) -> ModuleType:
    spec = importlib.util.spec_from_file_location(file.stem, file)
    module = importlib.util.module_from_spec(spec)
    exec(compile(file.read_text("utf-8") if text is None else text, str(file), "exec"), vars(module))
    return module


def failing(exercise: Path, text: str) -> str:
    """The first check that this solution fails; "" if it passes all of them."""
    module, answer = loaded(exercise), loaded(exercise.parents[1] / "harder_solution.py", text)
    vars(module).update({name: value for name, value in vars(answer).items() if not name.startswith("_")})
    for check in module.CHECKS:
        try:
            check()
        except Exception:
            return check.__name__
    return ""


def solution(exercise: Path) -> str:
    return (exercise.parents[1] / "harder_solution.py").read_text("utf-8")


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda file: file.parts[-3])
def test_the_instructors_solution_passes(exercise):
    assert failing(exercise, solution(exercise)) == ""


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda file: file.parts[-3])
def test_each_slip_is_found(exercise):
    for right, wrong, check in SLIPS[exercise.parts[-3]]:
        text = solution(exercise)
        assert text.count(right) >= 1, right
        assert failing(exercise, text.replace(right, wrong)) == check, (right, wrong)


@pytest.mark.parametrize("exercise", [EXERCISES[0], *(pytest.param(e, marks=pytest.mark.slow) for e in EXERCISES[1:])])
def test_what_is_not_written_says_so(exercise):
    done = subprocess.run([sys.executable, str(exercise)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and not done.stderr
    assert done.stdout.startswith("✗ ") and done.stdout.rstrip().endswith("is not written yet.")
