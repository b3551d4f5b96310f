"""Every number in the prose, computed once more, and operations as PyTorch itself counts them.

Not a part of the graded suite.
"""

import importlib.util
import os
import re
import sys
from pathlib import Path

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

os.environ["HF_HUB_OFFLINE"] = "1"

ROOT = Path(__file__).resolve().parents[3]
SOLUTION = ROOT / "solutions" / "18_what_it_costs" / "what_it_costs.py"
TEXT = re.sub(r"\s*\n\s*#?\s*", " ", SOLUTION.read_text("utf-8"))
SMALL = 124_439_808  # parameters of GPT-2 small, from 06
CARD = {"bw": 2e12, "peak": 312e12}
BILLION = 10**9


@pytest.fixture(scope="module")
def told():
    """The solution, as a module of its own."""
    spec = importlib.util.spec_from_file_location("solution_of_what_it_costs", SOLUTION)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


def says(*sentences: str) -> None:
    """Each of them stands in the text, across the ends of lines as well."""
    for sentence in sentences:
        assert sentence in TEXT, f"the text no longer says: {sentence}"


def answers(*sentences: str) -> None:
    """Each of them stands in the answers."""
    text = " ".join((Path(__file__).parent / "answers.yml").read_text("utf-8").split())
    for sentence in sentences:
        assert sentence in text, f"the answers no longer say: {sentence}"


def test_operations_as_pytorch_counts_them(told):
    transformers = pytest.importorskip("transformers", reason="needs Hugging Face's models; install .[dev]")
    sizes = {"vocab_size": 101, "n_positions": 37, "n_embd": 21, "n_layer": 3, "n_head": 7}
    config = transformers.GPT2Config(**sizes, attn_implementation="eager")
    with torch.device("meta"):
        model = transformers.GPT2LMHeadModel(config)
        ids = torch.zeros(1, 29, dtype=torch.long)
    with FlopCounterMode(display=False) as counter:
        model(ids)
    assert told.forward_flops(told.GPT2Config(**sizes), 29) == counter.get_total_flops()


def test_operations_of_the_text(told):
    toy = told.GPT2Config(vocab_size=5, n_embd=3, n_layer=2, n_head=1)
    assert told.forward_flops(toy, 4) == 2 * (864 + 192) + 120 == 2232
    assert [f"{share:.4f}" for share in told.shares(toy, 4)] == ["0.4545", "0.5455"]
    says("$2 \\cdot 1056 + 120 = 2232$", "a share of 0.4545", "a share of 0.5455", "$8 \\cdot 4 \\cdot 9 + 192 = 480$")
    assert f"{told.training_flops(174.6e9, 300e9):.3g}" == "3.14e+23"
    short = {T: 2 * SMALL * T / told.forward_flops(told.GPT2Config(), T) for T in (128, 799, 800, 1024)}
    assert [f"{short[T]:.3f}" for T in (128, 1024)] == ["0.988", "0.874"]
    assert short[800] < 0.9 < short[799]
    says("is 0.988 of the exact number when it reads 128 tokens, and 0.874 when it reads 1,024")
    answers("From 800 tokens on, 2D is less than 0.9 of the exact number.")


def test_seconds_of_the_text(told):
    step = 14 * BILLION, 0, 14 * BILLION
    assert told.decode_seconds(*step, **CARD) == pytest.approx(0.007)
    computing = step[2] / CARD["peak"]
    assert f"{1000 * computing:.3f}" == "0.045" and 0.99 < 1 - computing / 0.007 < 0.995
    assert told.decode_seconds(*step, bw=2e12, peak=20 * 312e12) == told.decode_seconds(*step, **CARD)
    assert told.batch_where_it_turns(14 * BILLION, 64 * 10**6, 14 * BILLION, **CARD) == 544
    with pytest.raises(ValueError, match="128000000"):
        told.batch_where_it_turns(14 * BILLION, 128 * 10**6, 14 * BILLION, **CARD)
    says("= 7$ milliseconds, computing takes 0.045", "this happens at $B = 544$", "(0.064 milliseconds)")
    caches = [1000 * size / CARD["bw"] for size in (524e6, 131e6)]
    assert [f"{milliseconds:.2g}" for milliseconds in caches] == ["0.26", "0.066"]
    assert 1000 * 2 * 8 * BILLION / CARD["peak"] == pytest.approx(0.05, abs=0.002) and caches[1] > 0.052
    answers("moving 524 MB takes 0.26 milliseconds, moving 131 MB takes 0.066")


def test_bits_of_the_text(told):
    row = torch.tensor([[0.6, -1.4, 0.1, 7.0]], dtype=torch.float64)
    q, scale = told.quantise(row, 4, 2)
    assert q.tolist() == [[3, -7, 0, 7]] and scale[0].tolist() == pytest.approx([0.2, 1])
    assert told.quantise(row, 4, 4)[0].tolist() == [[1, -1, 0, 7]]
    x = torch.tensor([1.0, 2, 3, 4], dtype=torch.float64)
    assert float(told.quantised_matmul(x, q, scale)) == pytest.approx(25.8) and float(row @ x) == pytest.approx(26.1)
    outlier, _ = told.quantise(torch.tensor([[60.0, 1, -2, 3, 0.5]]), 4, 5)
    assert outlier.tolist() == [[7, 0, 0, 0, 0]]
    bits = 4 + 16 / 64
    size = 7 * bits / 8
    assert (bits, f"{size:.2f}", f"{1000 * size * BILLION / 2e12:.2f}") == (4.25, "3.72", "1.86")
    says("are 4.25 bits a number", "from 14 to 3.72 billion bytes", "after 1.86 milliseconds instead of 7")
    dice = torch.Generator().manual_seed(0)
    table, errors = torch.randn(8, 512, generator=dice), []
    for few in range(2, 9):
        errors.append(float((told.dequantise(*told.quantise(table, few, 32)) - table).square().mean()) ** 0.5)
    assert all(1.7 < more / less < 3.2 for more, less in zip(errors, errors[1:]))


def test_guesses_of_the_text(told):
    p, q = torch.tensor([0.5, 0.3, 0.2]), torch.tensor([0.2, 0.5, 0.3])
    kept = torch.minimum(p, q)
    assert (kept + (q - kept).sum() * torch.tensor([1.0, 0, 0])).tolist() == pytest.approx(p.tolist())
    both, draft = torch.stack([p, torch.tensor([0.1, 0.6, 0.3])]), q[None]
    steps = [told.speculative_step(both, draft, torch.tensor([1]), torch.tensor([u, 0.5])) for u in (0.55, 0.65)]
    assert steps == [[1, 1], [0]]
    assert (told.expected_tokens(0.8, 4), told.expected_tokens(1.0, 4)) == (pytest.approx(3.3616), 5)
    faster = {R: told.expected_tokens(0.8, R) / (1 + R / 10) for R in range(1, 40)}
    assert [f"{faster[R]:.3g}" for R in (4, 20, 6)] == ["2.4", "1.65", "2.47"] and max(faster, key=faster.get) == 6
    assert f"{told.expected_tokens(0.8, 20):.2f}" == "4.95"
    answers("2.4 times as fast", "1.65 times as fast", "The best is 6, with 2.47", "writes 4.95 words")
