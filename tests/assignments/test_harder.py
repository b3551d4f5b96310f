"""The harder exercises: unwritten they say so, the instructors' solutions pass, and slips are told."""

import importlib.util
import math
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch

from autograder.course.reading import load_course

HERE = Path(__file__).resolve().parent
EXERCISES = sorted(HERE.glob("*/given/harder.py"))
MUON = HERE / "15_train_it_well/given/muon.py"  # a second one
ALL = [*EXERCISES, MUON]
COURSE = load_course(HERE.parents[1])
SLIPS = {
    "00_why_transformers": [
        ("i, f, g, o =", "f, i, g, o =", "equal_to_pytorch"),
        ("i, f, g, o =", "i, f, o, g =", "by_hand"),
        ("torch.sigmoid(i) * torch.tanh(g)", "torch.sigmoid(i) * torch.sigmoid(g)", "by_hand"),
        ("torch.sigmoid(o) * torch.tanh(c), c", "torch.sigmoid(o) * c, c", "by_hand"),
        (" + b).chunk", ").chunk", "by_hand"),
        ("states.append(h)", "states.append(c)", "whole_text"),
        ("h, c = lstm_step(x, h, c,", "h, _ = lstm_step(x, h, c,", "whole_text"),
        ("share ** (1 / steps)", "share", "half_is_left"),
        ("math.log(f / (1 - f))", "f", "half_is_left"),
    ],
    "01_word_vectors": [
        ("ids[max(0, place - window) : place] + ", "", "counted_by_hand"),
        ("max(0, place - window)", "max(0, place - 1)", "wider_window"),
        ("+= 1", "= 1", "counted_by_hand"),
        ("table / table.sum()", "table", "compared_by_hand"),
        (".log().clamp(min=0)", ".log()", "rarer_than_chance"),
        ("torch.where(table > 0, pairs / by_chance, 1.0)", "pairs / by_chance", "compared_by_hand"),
        ("s[:size].sqrt()", "s[:size]", "all_columns"),
        (" * s[:size].sqrt()", "", "all_columns"),
    ],
    "02_positional_encoding": [
        ("torch.stack([-a.sin(), a.cos()])", "torch.stack([a.sin(), a.cos()])", "by_hand"),
        ("torch.stack([a.cos(), a.sin()]), torch.stack([-a.sin(), a.cos()])",
         "torch.stack([a.cos(), -a.sin()]), torch.stack([a.sin(), a.cos()])", "by_hand"),
        ("2 * hands / d_model", "hands / d_model", "along_the_table"),
        (".solution.T", ".solution", "found_again"),
        ("table[:-k], table[k:]", "table[:-1], table[1:]", "found_again"),
        (".square().mean().sqrt().item()", ".mean().abs().item()", "nothing_to_find"),
    ],
    "03_masked_heads": [
        ("back < width", "back <= width", "ticks_by_hand"),
        ("(back >= 0) & ", "", "ticks_by_hand"),
        ("matrix_power(step, layers)", "matrix_power(step, layers + 1)", "paths"),
        ("(mask | torch.eye(len(mask), dtype=torch.bool))", "mask", "keeps_what_it_knows"),
        ("step, layers) > 0", "step, layers)", "paths"),
        ("torch.arange(1, num_heads + 1)", "torch.arange(num_heads)", "slopes_by_hand"),
        ("-8 * torch", "-1 * torch", "slopes_by_hand"),
        (".masked_fill(back < 0, -torch.inf)", "", "slopes_by_hand"),
        ("(-slopes", "(slopes", "slopes_by_hand"),
        ("/ num_heads", "/ 8", "slopes"),
    ],
    "04_multi_head_concat": [
        ("part.repeat_interleave(each, dim=1)", "part.repeat(1, each, 1, 1)", "shared_by_hand"),
        (", is_causal=True", "", "shared_by_hand"),
        ("for part in (k, v))", "for part in (k, k))", "shared_by_hand"),
        ("(groups, num_heads // groups, -1, C)", "(groups, -1, num_heads // groups, C)", "pooled_by_hand"),
        ("(groups, num_heads // groups, -1, C)", "(-1, num_heads // groups, C)", "pooled_rows_stay_apart"),
        ("(groups, num_heads // groups, -1, C).mean(dim=1)", "(num_heads // groups, groups, -1, C).mean(dim=0)",
         "pooled_by_hand"),
        (".mean(dim=1)", ".sum(dim=1)", "pooled_by_hand"),
        ("return 2 * layers", "return layers", "memory"),
    ],
    "05_encoder_block": [
        (" - normed * along", "", "by_hand"),
        ("g - g.mean(dim=-1, keepdim=True)", "g", "by_hand"),
        ("u * gamma", "u", "equal_to_autograd"),
        (" + eps", "", "equal_to_autograd"),
        (") / sigma        #", ")        #", "by_hand"),
        ("(u * normed).reshape(-1, C).sum", "(g * normed).reshape(-1, C).sum", "equal_to_autograd"),
        ("(u * normed).reshape(-1, C).sum(dim=0)", "(u * normed).mean(dim=0)", "by_hand"),
    ],
    "07_mini_gpt": [
        (".log_softmax(dim=-1)", "", "by_hand"),
        ("scores[:, None] + logits", "logits", "by_hand"),
        ("beams[:, -model.block_size :]", "beams", "keeps_the_beginning"),
        ("beams[places // V]", "beams[: len(places)]", "by_hand"),
        ("beams[places // V]", "beams[(places // V) * 0]", "by_hand"),
        ("min(width, longer.numel())", "width", "as_good_as_trying_all"),
        ("logits[:, -1]", "logits[:, 0]", "by_hand"),
        ("logits, _ = model(", "model(ids[:, -1:])\n        logits, _ = model(", "one_batch"),
    ],
    "08_encoder_decoder": [
        ("(ours & theirs).total()", "sum(ours[gram] for gram in ours if gram in theirs)", "clipped_by_hand"),
        ("(ours & theirs).total()", "len(ours & theirs)", "clipped_by_hand"),
        ("tuple(text[start : start + n])", "tuple(sorted(text[start : start + n]))", "pairs"),
        ("range(len(text) - n + 1)", "range(len(text))", "pairs"),
        (" + min(0.0, 1 - r / c)", "", "brevity_by_hand"),
        ("min(0.0, 1 - r / c)", "1 - r / c", "too_long"),
        ("1 - r / c)", "1 - c / r)", "brevity_by_hand"),
        ("sum(logarithms) / longest", "sum(logarithms)", "too_long"),
        ("if not matched:", "if False:", "nothing_matches"),
    ],
    "09_masked_language_model": [
        (".log_softmax(dim=-1)", "", "score_by_hand"),
        ("[each, each, ids].sum()", "[each, each, ids].mean()", "score_by_hand"),
        ("    copies[each, each] = mask_id\n", "", "each_word_is_hidden_alone"),
        ("copies[each, each] = mask_id", "copies[:] = mask_id", "each_word_is_hidden_alone"),
        ("    ids = ids.clone()\n", "", "one_gap_at_a_time"),
        ("        probabilities[:, mask_id] = 0\n", "        probabilities[:, mask_id] = 0\n        ids[gaps] = "
         "probabilities.argmax(dim=-1)\n        continue\n", "one_gap_at_a_time"),
        ("probabilities.argmax().item()", "probabilities[0].argmax().item()", "surest_first"),
    ],
    "12_rotary_positions": [
        ("base ** (-torch", "base ** (torch", "speeds_by_hand"),
        ("torch.arange(0, D, 2, dtype=torch.float64) / D", "torch.arange(D // 2, dtype=torch.float64) / D",
         "speeds_by_hand"),
        ("2 * math.pi / speeds", "1 / speeds", "waiting_hands"),
        ("> trained", "< trained", "waiting_hands"),
        ("factor ** (D / (D - 2))", "factor", "base_by_hand"),
        ("factor ** (D / (D - 2))", "factor ** 2", "slowest_and_fastest"),
        ("omega / factor, omega)", "omega, omega / factor)", "parts"),
        ("omega / factor, omega)", "omega / factor, omega / factor)", "parts"),
        ("omega / factor, omega)", "omega * factor, omega)", "parts"),
    ],
    "15_train_it_well": [
        ("scores.softmax(dim=-1).topk(k, dim=-1)", "scores.topk(k, dim=-1)", "choices"),
        ("    return weights, chosen", "    return weights / weights.sum(dim=-1, keepdim=True), chosen", "choices"),
        (".mean(dim=(0, 1))", ".sum(dim=1).mean(dim=0)", "even_and_not"),
        ("return E * (f * P)", "return (f * P)", "balance_by_hand"),
        ("return E * (f * P).sum()", "return E * (P * P).sum()", "balance_by_hand"),
        ("return E * (f * P).sum()", "return E * (f * f).sum()", "balance_by_hand"),
        ("P = scores.softmax(dim=-1).mean(dim=0)", "P = scores.softmax(dim=-1).mean(dim=0).detach()", "which_way"),
        ("weights[rows, places, None] * expert(tokens[rows])", "expert(tokens[rows])", "each_by_its_own"),
        ("weights[rows, places, None]", "weights[rows, 0, None]", "each_by_its_own"),
        ("expert(tokens[rows])", "expert(tokens)[rows]", "only_the_chosen"),
        ("            if len(rows):\n", "            if True:\n", "only_the_chosen"),
        ("self.balance = balance_loss(scores, chosen)", "self.balance = balance_loss(scores, chosen).detach()",
         "learns"),
        ("weights, chosen = route(scores, self.k)", "weights, chosen = route(scores.detach(), self.k)", "learns"),
    ],
    "muon": [
        (".clamp(min=1e-30)", "", "either_side"),
        ("G / G.norm()", "G / (1 + G.norm())", "one_number"),
        ("B * square + C * square @ square", "B * square", "one_number"),
        ("weight.grad + self.momentum * average", "average", "two_steps"),
        (".add_(weight.grad)", ".add_(0.1 * weight.grad)", "two_steps"),
        ("max(1, weight.shape[0] / weight.shape[1])", "(weight.shape[0] / weight.shape[1])", "wide_matrices"),
        ("max(1, weight.shape[0] / weight.shape[1]) ** 0.5", "1", "two_steps"),
        ("if weight.grad is None:", "if False:", "two_steps"),
        ("range(iterations)", "range(5)", "one_number"),
    ],
    "16_preferences": [
        ("rewards / beta", "rewards * beta", "by_hand"),
        (".log_softmax(dim=0)", "", "by_hand"),
        ("(log_reference + rewards / beta).log_softmax(dim=0)",
         "(log_reference.exp() * (rewards / beta).exp()).log().log_softmax(dim=0)", "large_rewards"),
        ("rewards = beta * (log_policy - log_reference)", "rewards = (log_policy - log_reference)", "there_and_back"),
        ("rewards - (log_reference.exp() * rewards).sum()", "rewards - rewards.mean()", "there_and_back"),
        ("sorted(rewards.tolist())", "rewards.tolist()", "best_of_two"),
        ("math.comb(i, n - 1)", "math.comb(i + 1, n - 1)", "best_of_two"),
        ("(n - 1) / n", "1", "what_it_costs"),
    ],
    "17_find_the_bug": [
        ("n = min(2 * n, len(items))", "break", "by_hand"),
        ("if n == len(items):", "if n >= len(items) // 2:", "by_hand"),
        ("return list(items)", "return list(items)[::-1]", "by_hand"),
        ("items[: edges[part]] + items[edges[part + 1] :]", "items[edges[part] : edges[part + 1]]", "by_hand"),
        ("len(items) * part // n", "part", "few_questions"),
    ],
    "18_what_it_costs": [
        ("6 * parameters * tokens /", "2 * parameters * tokens /", "days_of_gpt3"),
        ("* used *", "/ used *", "days_of_gpt3"),
        ("flops / (6 * 20)", "flops / 20", "chinchilla"),
        ("return parameters, 20 * parameters", "return parameters, parameters", "chinchilla"),
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
    module, answer = loaded(exercise), loaded(solution_file(exercise), text)
    vars(module).update({name: value for name, value in vars(answer).items() if not name.startswith("_")})
    for check in module.CHECKS:
        try:
            check()
        except Exception:
            return check.__name__
    return ""


def solution_file(exercise: Path) -> Path:
    return exercise.parents[1] / f"{exercise.stem}_solution.py"


def solution(exercise: Path) -> str:
    return solution_file(exercise).read_text("utf-8")


def label(exercise: Path) -> str:
    return exercise.parts[-3] if exercise.stem == "harder" else exercise.stem


@pytest.mark.parametrize("exercise", ALL, ids=label)
def test_the_instructors_solution_passes(exercise):
    assert failing(exercise, solution(exercise)) == ""


@pytest.mark.parametrize("exercise", ALL, ids=label)
def test_each_slip_is_found(exercise):
    for right, wrong, check in SLIPS[label(exercise)]:
        text = solution(exercise)
        assert text.count(right) >= 1, right
        assert failing(exercise, text.replace(right, wrong)) == check, (right, wrong)


@pytest.mark.parametrize("exercise", [EXERCISES[0], *(pytest.param(e, marks=pytest.mark.slow) for e in ALL[1:])])
def test_what_is_not_written_says_so(exercise):
    done = subprocess.run([sys.executable, str(exercise)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and not done.stderr
    assert done.stdout.startswith("✗ ") and done.stdout.rstrip().endswith("is not written yet.")


def test_most_assignments_have_one_of_the_minutes_that_the_guide_says():
    assert len(EXERCISES) > 0.7 * len(COURSE.assignments)
    head = re.compile(r'"""Harder, and not graded: .+ \(about (\d+) minutes, [●○]+\)')
    minutes = [int(head.match(exercise.read_text("utf-8"))[1]) for exercise in EXERCISES]
    guide = (COURSE.root / "docs/students.md").read_text("utf-8")
    assert f"an exercise of {min(minutes)} to {max(minutes)} minutes" in guide
    assert sum(minutes) == pytest.approx(535, abs=30)  # "about nine more" hours


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda file: file.parts[-3])
def test_the_assignment_announces_it_with_its_minutes(exercise):
    minutes, difficulty = re.search(r"\(about (\d+) minutes, ([●○]+)\)", exercise.read_text("utf-8")).groups()
    text = COURSE.solution_file(COURSE.assignment(exercise.parts[-3])).read_text("utf-8")
    assert text.count("\n# ## Harder: ") == 1
    section = text.split("\n# ## Harder: ")[1]
    assert section.split("\n#\n")[1].startswith(f"# Not graded; about {minutes} minutes, {difficulty}.")


@pytest.fixture(scope="module")
def answers():
    """The instructors' solutions by the numbers of their assignments."""
    return {exercise.parts[-3][:2]: loaded(exercise.parents[1] / "harder_solution.py") for exercise in EXERCISES}


def says(number, *sentences):
    (exercise,) = (exercise for exercise in EXERCISES if exercise.parts[-3].startswith(number))
    text = " ".join(exercise.read_text("utf-8").split())
    for sentence in sentences:
        assert sentence in text, f"the exercise of {number} does not say {sentence!r}"


def test_numbers_of_the_first_texts(answers):
    assert [f"{math.tanh(math.log(3)):.1f}", f"{0.5 * math.tanh(1.4):.4f}"] == ["0.8", "0.4427"]
    assert 0.9**50 == pytest.approx(0.005, abs=5e-4)
    assert (f"{0.5 ** (1 / 50):.4f}", f"{answers['00'].forget_bias(0.5, 50):.2f}") == ("0.9862", "4.27")
    says("00", "h' = 0.5 · tanh 1.4 = 0.4427", "about half a per cent", "0.5^(1/50) = 0.9862", "= 4.27")
    says("01", "ln((2/6) / (3/6 · 2/6)) = ln 2", "ln((1/6) / (3/6 · 1/6)) = ln 2")
    assert (2 / 6) / (3 / 6 * 2 / 6) == pytest.approx((1 / 6) / (3 / 6 * 1 / 6)) == pytest.approx(2)
    assert [f"{wave(1):.4f}" for wave in (math.cos, math.sin)] == ["0.5403", "0.8415"]
    says("02", "the rows (0.5403, 0.8415) and (-0.8415, 0.5403)")
    assert round((4096 - 1) * 32, -3) == 131_000
    weights = torch.tensor([-1.0, -0.5, 0.0]).softmax(dim=0)
    assert [f"{weight:.3f}" for weight in weights] == ["0.186", "0.307", "0.506"]
    assert answers["03"].reach(answers["03"].window_mask(4, 2), 2)[3].tolist() == [False, True, True, True]
    says("03", "some 131,000 words", "0.186, 0.307 and 0.506", "word 3 knows of words 1, 2 and 3")
    says("04", f"{answers['04'].cache_numbers(80, 8, 128, 4096):,} numbers", "the groups get 2 and 15")
    assert answers["04"].cache_numbers(80, 64, 128, 4096) == 8 * answers["04"].cache_numbers(80, 8, 128, 4096)


def test_numbers_of_the_other_texts(answers):
    assert f"{6 * 174.6e9 * 300e9:.2e}" == "3.14e+23" and f"{6 * 70e9 * 1.4e12:.2e}" == "5.88e+23"
    assert int(answers["18"].training_days(174.6e9, 300e9, 1000, 312e12, 0.4)) == 29 and 300 / 174.6 < 2
    says("18", "3.14 · 10²³ operations", "that is 29 days", "fewer than two. With 5.88 · 10²³ operations")
    assert (0.6 * 0.35, 0.4 * 0.9) == pytest.approx((0.21, 0.36))
    says("07", "0.6 · 0.35 = 0.21", "0.4 · 0.9 = 0.36")
    assert f"{math.exp(1 - 4 / 3):.4f}" == "0.7165"
    says("08", "e^(1 - 4/3) = 0.7165")
    assert f"{math.log(1 / 4) + math.log(1 / 2):.3f}" == "-2.079"
    says("09", "ln 1/8 = -2.079")
    rotary = answers["12"]
    assert [f"{2 * math.pi / speed:.4g}" for speed in rotary.speeds(4).tolist()] == ["6.283", "628.3"]
    assert rotary.larger_base(4, 8.0) == pytest.approx(640_000)
    assert rotary.by_parts(4, 100, 8.0).tolist() == pytest.approx([1, 0.00125])
    says("12", "the wavelengths 6.28 and 628.3", "10,000 · 8^(4/2) = 640,000", "640,000^(-1/2) = 0.00125")
    assert f"{3.4445 - 4.7750 + 2.0315:.3f}" == "0.701"
    assert "3.4445 - 4.7750 + 2.0315 = 0.701" in " ".join(MUON.read_text("utf-8").split())
    preferences = answers["16"]
    assert f"{preferences.price(2):.3f}" == "0.193" and preferences.best_of(torch.tensor([1.0, 2.0, 5.0]), 2) == 4
    says("16", "so best-of-2 is worth 4. It costs at most ln 2 - ½ = 0.193")


def test_numbers_of_the_mixture_of_experts(answers):
    first = torch.tensor([0.8, 0.6, 0.7, 0.1])
    scores = torch.stack([first, 1 - first], dim=1).log()
    _, chosen = answers["15"].route(scores, 1)
    assert chosen.flatten().tolist() == [0, 0, 0, 1]
    assert float(answers["15"].balance_loss(scores, chosen)) == pytest.approx(1.05)
    assert (float(first.mean()), 2 * (0.75 * 0.55 + 0.25 * 0.45)) == pytest.approx((0.55, 1.05))
    says("15", "f = (0.75, 0.25)", "P = (0.55, 0.45)", "2 · (0.75 · 0.55 + 0.25 · 0.45) = 1.05")
    # Mixtral: 32 layers of 4096 numbers, 32 heads that share 8 keys and values, experts of 14336, a vocabulary of 32000
    attention = 2 * 4096 * 4096 + 2 * 4096 * 1024
    expert, rest = 3 * 4096 * 14_336, 2 * 32_000 * 4096
    parameters = [32 * (attention + 8 * 4096 + experts * expert) + rest for experts in (8, 2)]
    assert [f"{number / 1e9:.1f}" for number in parameters] == ["46.7", "12.9"]
    says("15", "E = 8 and k = 2: 46.7 billion parameters, of which a token uses 12.9 billion")


@pytest.mark.slow
def test_the_program_with_heads_says_what_is_missing(tmp_path):
    folder = HERE / "11_spot_the_cheat"
    for name in ("induction.py", "harder.py"):
        (tmp_path / name).write_bytes((folder / "given" / name).read_bytes())
    done = subprocess.run([sys.executable, "induction.py"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.startswith("induction_scores is not written yet.")
    assert "`python harder.py`" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.slow
def test_heads_of_a_model_learn_to_copy(tmp_path):
    """The program finds its heads with the instructors' functions; without them, everything depends on layer 0, too."""
    folder = HERE / "11_spot_the_cheat"
    (tmp_path / "induction.py").write_bytes((folder / "given/induction.py").read_bytes())
    (tmp_path / "harder.py").write_bytes((folder / "harder_solution.py").read_bytes())
    done = subprocess.run([sys.executable, "induction.py"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    steps = [tuple(map(float, row)) for row in re.findall(r"^ *(\d+) +(\d\.\d+) +(\d\.\d+)$", done.stdout, re.M)]
    assert steps[0][1:] == pytest.approx((math.log(32), 0.05), abs=0.05)
    assert steps[-1][0] == 300 and steps[-1][1] < 0.5 and steps[-1][2] > 0.3
    heads = re.findall(r"^ +([01]), (\d|all) +(\d\.\d+)(?: +(\d\.\d+))?$", done.stdout, re.M)
    scores = {(layer, head): float(score) for layer, head, score, loss in heads if loss}
    assert len(scores) == 8
    assert max(score for (layer, _), score in scores.items() if layer == "0") < 0.15
    assert min(float(loss) for _, head, loss, _ in heads if head == "all") > 2
    assert (tmp_path / "induction.png").stat().st_size > 10_000
