"""The reference is what PyTorch is, and every number in its prose is recomputed.

Not a part of the graded suite.
"""

import importlib.util
import math
import random
import re
from pathlib import Path

import pytest
import torch
from torch import nn

ROOT = Path(__file__).resolve().parents[3]
SOLUTION = ROOT / "solutions" / "15_train_it_well" / "train_it_well.py"
PROSE = re.sub(r"\s+", " ", re.sub(r"^# ?", "", SOLUTION.read_text("utf-8"), flags=re.MULTILINE))


@pytest.fixture(scope="module")
def solution():
    """The solution, as a module of its own."""
    spec = importlib.util.spec_from_file_location("solution_of_train_it_well", SOLUTION)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def texts(solution):
    """The texts that the notebook trains on."""
    return solution.read_texts()


def says(*words):
    """The prose holds each of these."""
    for word in words:
        assert word in PROSE, f"the prose does not say {word!r}"


# ---------------------------------------------------------------- the reference against PyTorch


@pytest.mark.parametrize("seed", range(20))
def test_reference_is_pytorchs_adamw(solution, seed):
    draw, dice = random.Random(seed), torch.Generator().manual_seed(seed)
    shapes = ((), (3,), (5, 2), (2, 1, 7))
    dtype = draw.choice((torch.float32, torch.float64))
    values = [torch.randn(shape, generator=dice, dtype=dtype) for shape in shapes]
    settings = {
        "lr": draw.choice((1e-3, 0.1, 0.5)),
        "betas": (draw.uniform(0, 0.95), draw.uniform(0, 0.999)),
        "eps": draw.choice((1e-8, 1e-3, 0.5)),
        "weight_decay": draw.choice((0.0, 0.01, 0.5)),
    }
    settings = {key: value for key, value in settings.items() if draw.random() < 0.7}
    mine, theirs = ([nn.Parameter(value.clone()) for value in values] for _ in range(2))
    ours, reference = solution.AdamW(iter(mine), **settings), torch.optim.AdamW(theirs, **settings)
    for _ in range(6):
        if draw.random() < 0.5:
            ours.lr = reference.param_groups[0]["lr"] = draw.uniform(0, 0.3)
        ours.zero_grad()
        reference.zero_grad()
        assert all(parameter.grad is None for parameter in (*mine, *theirs))
        for a, b in zip(mine, theirs):
            if draw.random() < 0.7:
                a.grad = torch.randn(a.shape, generator=dice, dtype=dtype) * draw.choice((0.0, 1e-8, 1.0, 1e3))
                b.grad = a.grad.clone()
        ours.step()
        reference.step()
        for a, b in zip(mine, theirs):
            torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("seed", range(20))
def test_reference_is_pytorchs_clipping(solution, seed):
    draw, dice = random.Random(seed), torch.Generator().manual_seed(seed)
    mine, theirs = ([nn.Parameter(torch.zeros(shape)) for shape in ((), (3,), (5, 2))] for _ in range(2))
    for a, b in zip(mine, theirs):
        if draw.random() < 0.8:
            a.grad = torch.randn(a.shape, generator=dice) * draw.choice((0.1, 1.0, 30.0))
            b.grad = a.grad.clone()
    limit = draw.choice((0.3, 2.0, 100.0, math.inf))
    norm = solution.clip_gradients(iter(mine), limit)
    assert norm == pytest.approx(nn.utils.clip_grad_norm_(theirs, limit).item(), rel=1e-5)
    for a, b in zip(mine, theirs):
        torch.testing.assert_close(a.grad, b.grad, rtol=1e-4, atol=1e-6)


def test_reference_is_pytorchs_rms_norm(solution):
    norm, theirs = solution.RMSNorm(7, 1e-3).double(), nn.RMSNorm(7, 1e-3).double()
    with torch.no_grad():
        theirs.weight.copy_(torch.randn(7))
        norm.weight.copy_(theirs.weight)
    x = torch.randn(3, 5, 7, dtype=torch.float64)
    torch.testing.assert_close(norm(x), theirs(x))


# ---------------------------------------------------------------- the numbers in the prose


def test_alphabet_and_its_logarithm(solution):
    assert len(solution.ALPHABET) == 96 and solution.ALPHABET[0] == "\n"
    assert sum(character.isprintable() for character in solution.ALPHABET) == 95
    assert f"{math.log(96):.3f}" == "4.564"
    says("the 95 printable characters", r"\ln 96 = 4.564", "With our 96 characters")


def test_spread_of_the_first_logits():
    spread = math.sqrt(96)
    assert (f"{spread:.2f}", f"{0.02 * spread:.3f}", f"{math.exp(0.02 * spread):.2f}") == ("9.80", "0.196", "1.22")
    assert round(math.exp(spread), -3) == 18_000
    says(r"\sqrt{96} \cdot 1 = 9.80", "about 18,000 to one", r"\sqrt{96} \cdot 0.02 = 0.196", "$1.22 : 1$")


def test_first_loss_with_and_without_init_weights(solution):
    torch.manual_seed(0)
    V, T = 96, 32
    ids, targets = torch.randint(V, (16, T)), torch.randint(V, (16, T))
    for modern in (False, True):
        model = solution.LanguageModel(V, block_size=T, modern=modern)
        assert model(ids, targets)[1] > 3 * math.log(V)
        solution.init_weights(model)
        assert abs(model(ids, targets)[1] - math.log(V)) < 0.1


def test_logits_spread_as_the_prose_says(solution):
    torch.manual_seed(0)
    model = solution.LanguageModel(96)
    ids = torch.randint(96, (16, 64))
    for spread in (9.8, 0.196):
        logits, _ = model(ids)
        others = torch.ones_like(logits, dtype=torch.bool).scatter_(2, ids[..., None], False)
        assert logits[others].std().item() == pytest.approx(spread, rel=0.1)  # a token's own logit is another matter
        solution.init_weights(model)


def test_first_loss_on_source_code_is_below_ln_v(solution, texts):
    """The tied table scores a repeated token higher, and one character in twelve repeats the one before."""
    torch.manual_seed(0)
    data = solution.encode("".join(texts[:40]))
    model = solution.LanguageModel(96, modern=True)
    solution.init_weights(model)
    ids, targets = solution.windows(data, 64, 32, torch.Generator().manual_seed(1))
    repeated = ids == targets
    with torch.no_grad():
        logits, loss = model(ids, targets)
    losses = nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="none").view_as(ids)
    assert loss.item() == pytest.approx(4.5, abs=0.05)
    assert repeated.float().mean().item() == pytest.approx(1 / 12, abs=0.02)
    assert losses[repeated].mean() < math.log(96) - 0.5 < math.log(96) - 0.1 < losses[~repeated].mean()
    says("The first number is about 4.5", "right for one character in twelve")


def test_schedule_of_eight_steps(solution):
    rates = [solution.learning_rate(step, warmup=4, total=8, peak=0.008) for step in range(10)]
    assert [float(f"{rate:.3g}") for rate in rates] == [0.002, 0.004, 0.006, 0.008, 0.00683, 0.004, 0.00117, 0, 0, 0]
    says("0.002, 0.004, 0.006, 0.008, then 0.00683, 0.004, 0.00117, and 0")


def test_three_four_five(solution):
    knobs = solution.Knobs(torch.tensor([1.0]), torch.tensor([2.0]))
    for limit, after in ((10, (3, 4)), (1, (0.6, 0.8))):
        knobs.set_gradients(torch.tensor([3.0]), torch.tensor([4.0]))
        assert knobs.clip(limit) == 5
        assert [gradient.item() for gradient in knobs.gradients()] == pytest.approx(after)
    says("Their common norm is 5", "`[0.6]` and `[0.8]`")


@pytest.mark.parametrize("gradient", (0.5, 500.0))
def test_first_step_of_adamw(solution, gradient):
    knobs = solution.Knobs(torch.tensor(1.0, dtype=torch.float64))
    optimiser = knobs.adamw(lr=0.1, weight_decay=0.01)
    knobs.set_gradients(torch.tensor(gradient, dtype=torch.float64))
    optimiser.step()
    assert f"{knobs.values()[0].item():.3f}" == "0.899"
    if gradient == 0.5:
        m, v = 0.1 * gradient, 0.001 * gradient**2
        assert (m, v, m / 0.1, v / 0.001) == pytest.approx((0.05, 0.00025, 0.5, 0.25))
    says("$m = 0.05$ and $v = 0.00025$", r"\hat m = 0.5$ and $\hat v = 0.25$", "= 0.899$", "gradient of 500")


def test_three_steps_with_the_same_gradient():
    m = v = 0.0
    for t in (1, 2, 3):
        m, v = 0.9 * m + 0.1 * 0.5, 0.999 * v + 0.001 * 0.5**2
        corrected = m / (1 - 0.9**t), v / (1 - 0.999**t)
        assert corrected == pytest.approx((0.5, 0.25))
        says(f"| {t} | {m:.4g} | {v:.5g} | 0.5 | 0.25 |")


def test_perplexities(solution):
    assert [f"{solution.perplexity(loss):.2f}" for loss in (math.log(96), 1.5, 1.4)] == ["96.00", "4.48", "4.06"]
    says("perplexity 96. A loss of 1.5 is perplexity 4.48; at 1.4 it is 4.06.")


def test_nuclei(solution):
    logits = torch.tensor([0.5, 0.25, 0.15, 0.1]).log()
    kept = solution.top_p(logits, 0.7)
    assert kept.isfinite().tolist() == [True, True, False, False]
    assert kept.softmax(-1)[:2].tolist() == pytest.approx([2 / 3, 1 / 3])
    assert solution.top_p(logits, 0.4).isfinite().sum() == 1
    assert solution.top_p(torch.zeros(4), 0.5).isfinite().tolist() == [True, True, False, False]
    says("the first two reach 0.75", "they have 2/3 and 1/3", "For `p=0.4` the first alone is enough")


def test_one_and_seven(solution):
    x = torch.tensor([1.0, 7.0])
    torch.testing.assert_close(solution.RMSNorm(2, 0.0)(x), torch.tensor([0.2, 1.4]))
    torch.testing.assert_close(nn.LayerNorm(2)(x), torch.tensor([-1.0, 1.0]), atol=1e-4, rtol=0)
    says("$(1 + 49)/2 = 25$", "makes it `[0.2, 1.4]`", "would make it `[-1, 1]`")


def test_both_feed_forward_layers_are_equally_large(solution):
    def owned(module):
        return sum(parameter.numel() for parameter in module.parameters())

    C = 96
    assert 8 * C // 3 == 256 and 3 * C * 256 == 2 * C * 4 * C == owned(solution.SwiGLU(C, 256)) == 73_728
    assert owned(solution.LanguageModel(len(solution.ALPHABET), modern=True)) == 347_808
    says("With $C = 96$ that is 256", r"$3 \cdot 96 \cdot 256 = 2 \cdot 96 \cdot 384 = 73{,}728$")
    says("Yours has 347,808 parameters")


def test_text_is_where_every_machine_has_it(solution, texts):
    length = sum(map(len, texts))
    assert 3e6 < length < 6e6
    assert set("".join(texts[:20])) <= set(solution.ALPHABET)
    assert solution.decode(solution.encode(texts[0][:500])) == texts[0][:500]
    says("some four million characters")


# ---------------------------------------------------------------- the given parts at work


def test_text_of_a_folder_of_ones_own(solution, tmp_path):
    (tmp_path / "b.txt").write_text("two\tand é", encoding="utf-8")
    (tmp_path / "a.txt").write_text("one")
    (tmp_path / "c.py").write_text("three")
    assert solution.read_texts(tmp_path, "*.txt") == ["one", "two and "]


def test_small_run_learns_and_writes(solution, texts):
    torch.manual_seed(0)
    data = solution.encode("".join(texts[1:4]))
    model = solution.LanguageModel(96, 32, 2, 1, 16, modern=True)
    solution.init_weights(model)
    before = solution.held_out_loss(model, data, 1)
    losses = solution.Trainer(model, data, total=60, batch_size=8).run(60)
    after = solution.held_out_loss(model, data, 1)
    assert before > 4.3 and after < 3.6
    assert losses[0] == pytest.approx(before, abs=0.3) and len(losses) == 60
    text = solution.write(model, "def ", 40)
    assert text.startswith("def ") and len(text) == 44
    assert text == solution.write(model, "def ", 40)


def test_each_habit_can_be_left_out(solution, monkeypatch):
    monkeypatch.setattr(solution, "held_out_loss", lambda model, data: model(data[None, :8], data[None, 1:9])[1].item())
    monkeypatch.setattr(solution.Trainer, "run", lambda trainer, steps: [0.0] * steps)
    data = torch.arange(90)
    first = {name: solution.ablate(name, data, data, steps=50) for name in solution.LEFT_OUT}
    assert {len(losses) for losses in first.values()} == {2}
    assert first["init_weights"][0] > 3 * math.log(96) > 2 * first["nothing"][0]
    assert solution.LEFT_OUT["cosine"]["floor"] == 5e-3  # the peak of the recipe


# ---------------------------------------------------------------- what the prose says about a whole run


@pytest.fixture
def one_thread():
    """On one thread, which is faster for matrices this small."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def divided(solution, texts):
    """The text to learn from, and the text that is held out, as in the notebook."""
    learned = "".join(text for number, text in enumerate(texts) if number % 10)
    return solution.encode(learned), solution.encode("".join(texts[::10]))


def mean_cosine(solution, model, data):
    """How far the gradients of different batches agree: the mean cosine of each two of six."""
    generator, gradients = torch.Generator().manual_seed(5), []
    for _ in range(6):
        _, loss = model(*solution.windows(data, model.block_size, 32, generator))
        model.zero_grad()
        loss.backward()
        gradients.append(torch.cat([parameter.grad.flatten() for parameter in model.parameters()]))
    directions = nn.functional.normalize(torch.stack(gradients))
    cosines = directions @ directions.T
    return (cosines.sum() - len(gradients)).item() / (len(gradients) * (len(gradients) - 1))


def fresh_trainer(solution, data):
    torch.manual_seed(0)
    model = solution.LanguageModel(len(solution.ALPHABET), modern=True)
    solution.init_weights(model)
    return solution.Trainer(model, data, total=1500)


def test_the_first_gradients_agree(solution, divided, one_thread):
    data, _ = divided
    assert mean_cosine(solution, fresh_trainer(solution, data).model, data) == pytest.approx(0.9, abs=0.06)
    says("the gradients of two batches have a cosine of about 0.9 before the first step, and of about 0.5 after 150")


@pytest.mark.slow
def test_the_gradients_agree_less_after_150_steps(solution, divided, one_thread):
    data, _ = divided
    trainer = fresh_trainer(solution, data)
    trainer.run(150)
    assert mean_cosine(solution, trainer.model, data) == pytest.approx(0.5, abs=0.1)


@pytest.mark.slow
def test_two_habits_do_not_pay_in_300_steps(solution, divided, one_thread, monkeypatch):
    """The cosine and the weight decay: without them the loss is as low or lower."""
    monkeypatch.setattr("autograder.notebook.watch_training", lambda *_: lambda *_: None)
    data, held_out = divided
    last = {without: solution.ablate(without, data, held_out)[-1] for without in ("nothing", "cosine", "weight decay")}
    assert last["cosine"] < last["nothing"]
    assert last["weight decay"] < last["nothing"] + 0.02
    says("Two of the six habits do not earn their place in 300 steps")


def test_what_the_answer_says_about_weight_decay(solution):
    trainer = solution.Trainer(solution.LanguageModel(4, 8, 2, 1), torch.zeros(99, dtype=torch.long), total=300)
    peak, decay, T = trainer.schedule["peak"], trainer.adamw.weight_decay, solution.LanguageModel(4, 8, 2, 1).block_size
    assert (peak, decay) == (0.005, 0.1)
    assert 0.13 < 1 - (1 - peak * decay) ** 300 < 0.14
    assert 300 * trainer.batch_size * T == 614_400
