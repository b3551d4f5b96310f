"""Every number in the prose, computed once more, and found in the text as it is written there.

Not a part of the graded suite.
"""

import importlib.util
import math
import re
import sys
from collections import Counter
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).resolve().parents[3]
SOLUTION = ROOT / "solutions" / "16_preferences" / "preferences.py"
TEXT = re.sub(r"\s*\n\s*#?\s*", " ", SOLUTION.read_text("utf-8"))


@pytest.fixture(scope="module")
def told():
    """The solution, as a module of its own."""
    spec = importlib.util.spec_from_file_location("solution_of_preferences", SOLUTION)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


def says(*sentences: str) -> None:
    """Each of them stands in the text, across the ends of lines as well."""
    for sentence in sentences:
        assert sentence in TEXT, f"the text no longer says: {sentence}"


def numbers(*values: object) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def of_three(value: float) -> str:
    return f"{value:.3f}"


def test_cards_and_the_guest_book(told):
    cards, book = told.cards(), told.guest_book()
    assert len(set(cards)) == len(cards) and {len(card.split()) for card in cards} == {5}
    says(f"There are {len(cards)} such cards, all of five words", f"**guest book**, {len(book):,} lines long")
    assert (len(told.HOT.split()), len(told.COLD.split())) == (12, 12)
    says("serves 24 dishes, twelve of them hot and twelve cold", f"two blocks and {len(told.WORDS)} words")
    kind = Counter()
    for card, reply in book:
        kind[(reply in told.replies_to(card, told.POLITE)), (reply in told.replies_to(card, told.RUDE))] += 1
    assert kind[True, False] == kind[False, True] == len(book) / 4
    assert "my soup was very cold" in cards
    for reply in told.replies_to("my soup was very cold", told.POLITE + told.RUDE):
        says(f"*{reply}*")
    assert "the lemonade was rather warm" in cards
    ids = told.encode(book)
    assert ids.shape[1] <= told.PROMPT + told.LONGEST
    assert (ids[:, told.PROMPT - 1] == told.SLASH).all() and told.answer_places(ids)[:, told.PROMPT].all()
    says("the first six tokens, and what follows begins at position 6")


def test_log_probability_by_hand(told):
    assert of_three(math.log(1 / 2) + math.log(1 / 4)) == of_three(math.log(1 / 8)) == "-2.079"
    assert of_three((math.log(2) + math.log(4) + math.log(2)) / 3) == of_three(4 / 3 * math.log(2)) == "0.924"
    assert of_three((math.log(8) / 2 + math.log(2)) / 2) == "0.866"
    says(r"$\ln \tfrac12 + \ln \tfrac14 = -2.079$", r"$(\ln 2 + \ln 4 + \ln 2)/3 = 0.924$", "would be 0.866.")


def test_comparisons_by_hand(told):
    one = told.bradley_terry_loss(numbers(2.0), numbers(1.0))
    assert told.bradley_terry_loss(numbers(102.0), numbers(101.0)) == one
    assert (of_three(torch.sigmoid(numbers(1.0)).item()), of_three(one), of_three(math.log(2))) == (
        "0.731",
        "0.313",
        "0.693",
    )
    says(r"$\sigma(1) = 0.731$", r"$-\ln 0.731 = 0.313$", r"$\ln 2 = 0.693$")
    assert told.bradley_terry_loss(numbers(-5000.0), numbers(5000.0)) == 10_000
    assert torch.sigmoid(numbers(-10_000.0)) == 0
    says("With the scores −5,000 and 5,000 the right loss is 10,000", r"But $\sigma(-10{,}000)$ is 0")


def test_margin_by_hand(told):
    pair = [numbers(value) for value in (-10.0, -11.0, -12.0, -9.0)]
    loss, margins = told.dpo_loss(*pair)
    assert margins.item() == pytest.approx(0.4) and of_three(loss) == "0.513"
    says(r"$0.1 \cdot (2 - (-2)) = 0.4$", r"$-\ln \sigma(0.4) = 0.513$")
    assert told.dpo_loss(pair[0], pair[1], pair[0], pair[1])[0] == pytest.approx(math.log(2))


def test_advantages_by_hand(told):
    rewards = numbers([0.0, 0.0, 4.0, 4.0], [10.0, 10.0, 14.0, 14.0])
    assert told.group_advantages(rewards, eps=0.0).tolist() == [[-1, -1, 1, 1]] * 2
    assert of_three((rewards[0] - 2)[3] / rewards[0].std()) == "0.866"
    says("The rewards 0, 0, 4, 4 have the mean 2 and the standard deviation 2", "would be ±0.866.)")


def test_four_cases_by_hand(told):
    shown = []
    for advantage in (1.0, -1.0):
        row = []
        for ratio in (0.5, 1.5):
            cut = min(max(ratio, 0.8), 1.2)
            loss = told.clipped_loss(numbers(math.log(ratio)), numbers(0.0), numbers(advantage))
            value = min(ratio * advantage, cut * advantage)
            assert -loss.item() == pytest.approx(value)
            pair = f"min({ratio * advantage:g}, {cut * advantage:g}) = ".replace("-", "−")
            mark = "**" if value != ratio * advantage else ""
            row.append(pair + mark + f"{value:g}".replace("-", "−") + mark)
        shown.append(" | ".join(row))
    says(f"| **A = 1** | {shown[0]} |", f"| **A = −1** | {shown[1]} |")
    now = numbers(0.0).requires_grad_()
    (gradient,) = torch.autograd.grad(told.clipped_loss(now, numbers(0.0), numbers(3.0)), now)
    assert gradient.item() == -3


def test_divergence_by_hand(told):
    half, theirs = numbers(0.5, 0.5).log(), numbers(0.25, 0.75).log()
    first, second = (told.kl_penalty(half[i : i + 1], theirs[i : i + 1]).item() for i in (0, 1))
    divergence = (0.5 * (half - theirs)).sum().item()
    assert [of_three(value) for value in (first, second, told.kl_penalty(half, theirs), divergence)] == [
        "0.193",
        "0.095",
        "0.144",
        "0.144",
    ]
    assert (of_three(math.log(2)), of_three(math.log(1.5))) == ("0.693", "0.405")
    logits = torch.zeros(2, dtype=torch.float64, requires_grad=True)
    policy, weights = logits.log_softmax(dim=0), logits.detach().softmax(dim=0)
    penalties = torch.stack([told.kl_penalty(policy[i : i + 1], theirs[i : i + 1]) for i in (0, 1)])
    there = (policy.exp() * (policy - theirs)).sum()
    back = (theirs.exp() * (theirs - policy)).sum()
    slopes = [torch.autograd.grad(loss, logits, retain_graph=True)[0][0] for loss in
              ((weights * penalties).sum(), there, back)]
    assert [f"{slope:.4f}" for slope in slopes] == ["0.2500", "0.2747", "0.2500"]
    says("grows by 0.2747 for each unit, but the gradient of this penalty is 0.25")
    says("counts $0.5 + 0.693 - 1 = 0.193$", "$1.5 - 0.405 - 1 = 0.095$", "Their mean is 0.144", "is 0.144 as well")


def test_token_by_token_by_hand(told):
    assert round(100 * (1.02**12 - 1)) == 27 and 1.02**9 < 1.2 < 1.02**10
    answer = torch.tensor([[True, True, False], [True, True, True]])
    ratios = torch.tensor([[1.5, 1.0, 1.0], [0.5, 1.0, 1.0]], dtype=torch.float64)
    loss = told.token_clipped_loss(ratios.log(), torch.zeros(2, 3), numbers(1.0, -1.0), answer)
    counts = (1.2, 1.0, -0.8, -1.0, -1.0)
    assert (of_three(loss), of_three(sum(counts[2:]) / 3), f"{-sum(counts) / 5:.2f}") == ("-0.083", "-0.933", "0.12")
    says("$-(1.1 - 0.933)/2 = -0.083$", "would give 0.12", "the answer has become 27 % likelier")


# ---------------------------------------------------------------- what the prose says about the whole run


@pytest.fixture(scope="module")
def run(told):
    """The run of the notebook, on one thread: the models by their names, and what was seen on the way."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    patch = pytest.MonkeyPatch()
    patch.setattr("autograder.notebook.watch_training", lambda *_, **__: lambda *_: None)
    torch.manual_seed(0)
    pretrained = told.LanguageModel(len(told.WORDS))
    told.pretrain(pretrained)
    torch.manual_seed(1)
    reference = told.demonstrate(pretrained).requires_grad_(False)
    torch.manual_seed(2)
    compared, margins, _ = told.compare(reference)
    judge = told.taught_judge()
    held, rewards, near = told.please(judge, reference, leash=1.0)
    loose, more, far = told.please(judge, reference, leash=0.0)
    yield {
        "models": (pretrained, reference, compared, held, loose),
        "margins": margins,
        "judge": judge,
        "rewards": (rewards, more),
        "distances": (near, far),
    }
    patch.undo()
    torch.set_num_threads(threads)


@pytest.mark.slow
def test_manners_before_and_after(told, run):
    before, shown, compared, held, loose = (told.kinds(model) for model in run["models"])
    assert before["another card"] == pytest.approx(0.5, abs=0.08)
    assert before["rude"] == pytest.approx(before["polite"], abs=0.08)
    says("it replies with another complaint half of the time, and half of the rest is rude")
    assert shown["another card"] < 0.1 < 0.3 < min(shown["polite"], shown["rude"])
    for better in (compared, held):
        assert better["polite"] > shown["polite"] + 0.1 and better["rude"] < shown["rude"] / 2
    assert loose["no sentence of the book"] > 0.95


@pytest.mark.slow
def test_the_run_without_a_leash_cheats(told, run):
    judge, (rewards, more), (near, far) = run["judge"], run["rewards"], run["distances"]
    polite, rude = told.some_pairs(seed=4)
    assert (judge(polite, told.answer_places(polite)) > judge(rude, told.answer_places(rude))).all()
    assert judge.favourites()[0] == "sorry"
    says("on pairs that it has never seen it is right every time", "Your judge had never seen *sorry sorry sorry*")
    assert sum(more[-10:]) > 3 * sum(rewards[-10:]) and sum(far[-10:]) > 20 * sum(near[-10:])
    written = told.write(run["models"][-1], told.SHOWN, torch.Generator().manual_seed(2))
    assert all(told.words_of(row).split().count("sorry") >= 9 for row in written)
    assert run["margins"][0] == pytest.approx(0, abs=1e-4) and run["margins"][-1] > 0.1


@pytest.mark.slow
def test_a_reward_that_can_be_checked(told, run):
    pretrained = run["models"][0]
    checked, rewards, _ = told.please(told.names_the_dish, pretrained, 0.1, by_tokens=True)
    before, after = told.kinds(pretrained), told.kinds(checked)
    assert sum(rewards[:5]) / 5 < 0.65 and sum(rewards[-5:]) / 5 > 0.72
    assert after["another card"] < 0.25 < 0.4 < before["another card"]
    assert after["polite"] > before["polite"] and after["rude"] > before["rude"]
    says("yet it hardly replies with cards any more", "both have grown")
