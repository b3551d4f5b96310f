"""The numbers that the prose of assignments 01 to 13, and of 17, works out by hand, computed with the solutions.

Assignments 00, 06, 14, 15, 16 and 18 have such tests in their own folders.
"""

import importlib.util
import math
import random
import re
from collections.abc import Callable
from types import ModuleType, SimpleNamespace

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from autograder.course.reading import load_course
from tests.assignments.chance import ROOT

COURSE = load_course(ROOT)


@pytest.fixture(scope="module")
def solution() -> Callable[[str], ModuleType]:
    """The solution of an assignment by its number, as a module."""
    modules: dict[str, ModuleType] = {}

    def load(number: str) -> ModuleType:
        if number not in modules:
            (file,) = (COURSE.solution_file(a) for a in COURSE.assignments if a.name.startswith(number))
            spec = importlib.util.spec_from_file_location(f"solution_{number}", file)
            modules[number] = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(modules[number])
        return modules[number]

    return load


def says(number: str, *sentences: str) -> None:
    """The prose of an assignment contains each of these, however its lines are broken."""
    (file,) = (COURSE.solution_file(a) for a in COURSE.assignments if a.name.startswith(number))
    lines = (line.strip().removeprefix("# ").removeprefix("#") for line in file.read_text("utf-8").splitlines())
    prose = " ".join(" ".join(lines).split())
    for sentence in sentences:
        assert sentence in prose, f"{file.name} does not say {sentence!r}"


def numbers_of(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def tensor(*values: object) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def test_01_word_vectors(solution):
    words = solution("01")
    tokenizer = words.CharTokenizer("banana")
    assert (tokenizer.encode("banana"), tokenizer.decode([2, 0, 1])) == ([1, 0, 2, 0, 2, 0], "nab")
    assert words.skip_gram_pairs([0, 1, 2, 3], 1) == [(0, 1), (1, 0), (1, 2), (2, 1), (2, 3), (3, 2)]
    assert words.cbow_examples([0, 1, 2, 3], 1) == [([1], 0), ([0, 2], 1), ([1, 3], 2), ([2], 3)]
    assert tensor(math.log(2), 0, 0).softmax(0).tolist() == pytest.approx([1 / 2, 1 / 4, 1 / 4])
    assert (f"{-math.log(1 / 4):.3f}", f"{math.log(3):.3f}") == ("1.386", "1.099")
    man, king, woman, queen = tensor(1, 0), tensor(1, 3), tensor(3, 0), tensor(4, 5)
    assert (king - man + woman).tolist() == [3, 3]
    assert f"{F.cosine_similarity(king - man + woman, queen, dim=0):.3f}" == "0.994"
    says("01", r"$-\ln \tfrac14 = 1.386$", r"$\ln 3 = 1.099$", r"= 0.994$", "`[1, 0, 2, 0, 2, 0]`")


def test_02_positional_encoding(solution):
    table = solution("02").positional_encoding(3, 4)
    waves = [[math.sin(p), math.cos(p), math.sin(0.01 * p), math.cos(0.01 * p)] for p in range(3)]
    torch.testing.assert_close(table.double(), tensor(*waves), atol=1e-6, rtol=0)
    assert [[f"{number:.4f}" for number in row] for row in waves] == [
        ["0.0000", "1.0000", "0.0000", "1.0000"],
        ["0.8415", "0.5403", "0.0100", "1.0000"],
        ["0.9093", "-0.4161", "0.0200", "0.9998"],
    ]
    assert round(10_000 * 2 * math.pi, -3) == 63_000
    says("02", r"\approx 63{,}000$", "| 2 | 0.9093 | −0.4161 | 0.0200 | 0.9998 |")
    says("02", "$(10.8415, 10.5403, 10.0100, 11.0000)$", "leaves as $(10, 11, 10, 11)$")
    layer = solution("02").TokenAndPositionEmbedding(8, 2, 2).double()
    with torch.no_grad():
        layer.token_embedding.weight[7] = tensor(5, 0)
        layer.position_embedding.weight[:] = torch.stack([tensor(0.1, 0.2), tensor(0.3, 0.4)])
        assert layer(torch.tensor([[7, 7]]))[0].flatten().tolist() == pytest.approx([5.1, 0.2, 5.3, 0.4])
    says("02", "The sentence `7 7` becomes $(5.1, 0.2), (5.3, 0.4)$")


def test_02_a_plain_number_drowns_the_word():
    cat, dog = tensor(1, -1), tensor(-1, 1)
    assert F.cosine_similarity(cat, dog, dim=0) == pytest.approx(-1)
    assert ((cat + 500).tolist(), (dog + 500).tolist()) == ([501, 499], [499, 501])
    assert f"{F.cosine_similarity(cat + 500, dog + 500, dim=0):.6f}" == "0.999992"
    says("02", "$(501, 499)$ and $(499, 501)$, and their cosine is 0.999992")


def test_03_masked_heads(solution):
    heads = solution("03")
    q, k, v = (
        tensor(2 * math.log(3), 0, 0, 0)[None],
        torch.eye(4).double()[:2],
        torch.stack([tensor(10, 8, 0), tensor(20, 0, 4)]),
    )
    output, weights = heads.attention(q, k, v)
    assert weights[0].tolist() == pytest.approx([3 / 4, 1 / 4])
    assert output[0].tolist() == pytest.approx([12.5, 6, 1])
    assert numbers_of(heads.Head(20, 5, 7)) == 300
    assert heads.causal_mask(4).sum() == 10
    assert torch.tensor(88.0).exp().isfinite() and not torch.tensor(89.0).exp().isfinite()
    says(
        "03",
        r"$(12.5,\ 6,\ 1)$",
        r"$3 \cdot 20 \cdot 5 = 300$",
        "A sentence of 4 words has 10 ticks",
        "$e^{89}$ does not fit",
    )


def test_04_multi_head_concat(solution):
    many = solution("04")
    for heads in (1, 2, 4):
        assert numbers_of(many.MultiHeadAttention(20, heads, block_size=11)) == 1620
    assert numbers_of(many.Head(20, 5, 11)) == 300
    fused = many.FusedMultiHeadAttention(20, 4)
    assert (numbers_of(fused), fused.W_qkv.weight.shape[0], 2 * 20 + 2 * 5) == (1600, 60, 50)
    assert 12 * 5 * 20 == 60 * 20 == 1200
    says("04", "owns 3 · 20 · 5 = 300 weights", "4 · 20² + 20 = 1620", "`W_qkv` has 60 rows", "the rows 50 to 54")


def test_05_encoder_block(solution):
    blocks = solution("05")
    x, one = tensor(2, 2, 6, 6), torch.ones(4).double()
    assert blocks.layer_norm(x, one, 0 * one, eps=0).tolist() == [-1, -1, 1, 1]
    assert blocks.layer_norm(x, 10 * one, one, eps=0).tolist() == [-9, -9, 11, 11]
    assert [f"{z:.4f}" for z in F.gelu(tensor(1, -1)).tolist()] == ["0.8413", "-0.1587"]
    assert numbers_of(blocks.TransformerEncoderBlock(128, 4, 256)) == 132_480
    says("05", "132,480", "GELU(1) = 1·Φ(1) = 0.8413", "GELU(−1) = −0.1587")


def test_05_ends_with_what_makes_it_bert(solution):
    """BERT's 108,891,648 numbers are ours with learned positions and a table for the segments; the norm moves."""
    with torch.device("meta"):
        encoder = solution("05").TransformerEncoder(30_522, 768, 12, 12, 3072, 512)
    learned_positions, segments = 512 * 768, 2 * 768
    assert numbers_of(encoder) + learned_positions == 108_890_112
    assert numbers_of(encoder) + learned_positions + segments == 108_891_648
    assert numbers_of(encoder.norm) == 2 * 768
    says("05", "add a table for the two segments that BERT reads, and move the last norm")


def test_06_toy_model(solution):
    count = solution("06")
    toy = count.BertConfig(10, 2, 2, 1, 5, 4, 3)
    told = count.count_bert(toy)
    assert (told["word_embeddings"], told["position_embeddings"], told["token_type_embeddings"]) == (20, 8, 6)
    assert (count.count_embeddings(toy), told["attention"], told["feed_forward"], told["pooler"]) == (38, 28, 31, 6)
    assert (count.count_layer(toy), told["total"], 38 + 2 * 59 + 6) == (59, 162, 162)
    gpt2 = count.count_gpt2(count.GPT2Config(10, 4, 2, 1, 1))
    assert (gpt2["attention"], gpt2["feed_forward"]) == (28, 46)
    assert round(109_482_240 * 4 / 1e6) == 438 and 2 * 768 == 1536
    says("06", r"$38 + 2 \cdot 59 + 6 = 162$", "BERT-base takes 438 MB", "with the LayerNorm there are 38", "makes 31")
    says("06", r"$4 + (2 \cdot 6 + 6) + (2 \cdot 2 + 2) = 28$", r"$4 + (2 \cdot 8 + 8) + (8 \cdot 2 + 2) = 46$")


def test_07_mini_gpt(solution):
    gpt = solution("07")
    assert (len(gpt.ALPHABET), f"{math.log(31):.3f}") == (31, "3.434")
    assert len(gpt.TEXT) == pytest.approx(2000, abs=150)
    assert [f"{-math.log(p):.3f}" for p in (0.9, 0.1)] == ["0.105", "2.303"]
    assert f"{(math.log(2) + math.log(8)) / 2:.3f}" == "1.386"
    assert math.exp((math.log(2) + math.log(8)) / 2) == pytest.approx(4)
    model = gpt.TransformerLanguageModel(31)
    parts = [model.token_embed, model.pos_embed, model.blocks, model.ln, model.fc]
    assert [numbers_of(part) for part in parts] == [1984, 512, 49_984, 128, 2015]
    assert (numbers_of(model), round(124_439_808 / 54_623)) == (54_623, 2278)
    coin = {f"{100 * 0.8**n / (0.8**n + 0.2**n):.1f}" for n in (2, 4, 0.5)}
    assert coin == {"94.1", "99.6", "66.7"}
    says(
        "07",
        "54,623 together",
        "2,278 times as large",
        r"94.1\,\%",
        r"99.6\,\%",
        r"66.7\,\%",
        "costs $0.105$",
        "costs $2.303$",
    )


def test_07_first_loss(solution):
    """Fresh logits have a variance of about a third, so the first loss is about ln 31 + 1/6; the run begins at 3.615."""
    gpt = solution("07")
    data, generator = gpt.encode(gpt.TEXT), torch.Generator()
    assert f"{math.log(31) + 1 / 6:.1f}" == "3.6"
    torch.manual_seed(7)
    model = gpt.TransformerLanguageModel(len(gpt.ALPHABET), embed_size=64, block_size=32, num_heads=4, num_layers=2)
    x, _ = gpt.get_batch(data, 32, 32, generator)
    assert model(x)[0].var().item() == pytest.approx(1 / 3, abs=0.1)
    (first,) = gpt.train(model, data, steps=1, batch_size=16, lr=2e-3, generator=generator.manual_seed(7))
    assert first == pytest.approx(3.615, abs=5e-3)
    says("07", r"Expect $3.434 + \tfrac16 \approx 3.6$", "it begins at 3.615")


def test_08_encoder_decoder(solution):
    scores = tensor(math.log(3), 0)
    assert f"{scores.softmax(0) @ scores:.4f}" == "0.8240"
    shifted = solution("08").shift_right(torch.tensor([[7, 8, 9, 2]]), 1)
    assert shifted.tolist() == [[1, 7, 8, 9]]
    says("08", r"= 0.8240$", "the target row `[7, 8, 9, 2]` is read as `[1, 7, 8, 9]`")


def test_09_masked_language_model(solution):
    bert = solution("09")
    assert [0.15 * 200_000, 0.12 * 200_000, 0.015 * 200_000] == pytest.approx([30_000, 24_000, 3_000])
    assert round(100 * 0.85**6) == 38
    assert (round(100 * 0.1 * 0.2), round(100 * 0.8 * 0.9)) == (2, 72)
    assert (30_522 * 768, 768 * 768 + 768 + 2 * 768 + 30_522) == (23_440_896, 622_650)
    assert (torch.stack([tensor(1, 0), tensor(0, 3), tensor(1, 1)]) @ tensor(2, 1) + tensor(0, 0, 0.5)).tolist() == [
        2,
        3,
        3.5,
    ]
    assert len(bert.TEXT.splitlines()) == pytest.approx(80, abs=1)
    logits, labels = tensor([0.0, 0], [math.log(7), 0], [3, 4])[None], torch.tensor([[0, 1, -100]])
    assert logits[0, :2].softmax(-1)[[0, 1], [0, 1]].tolist() == pytest.approx([1 / 2, 1 / 8])
    assert f"{bert.masked_language_model_loss(logits, labels):.3f}" == "1.386"
    says("09", r"$(\ln 2 + \ln 8)/2 = 1.386$", "109,482,240 numbers")
    says(
        "09",
        "38 of 100 cases",
        "2 % random words instead of 10",
        "72 % of the masks",
        "622,650",
        "logits 2, 3 and 3.5",
        "23,440,896",
    )


def test_10_ready_made(solution):
    word = tensor(1, 1, 1, 1.02)
    variance = word.var(correction=0)
    assert f"{variance:.6f}" == "0.000075"
    last = [f"{F.layer_norm(word, (4,), eps=eps)[-1]:.2f}" for eps in (1e-5, 1e-3)]
    assert last == ["1.63", "0.46"]
    assert 1 / math.sqrt(1 + 1e-5) / (1 / math.sqrt(1 + 1e-3)) == pytest.approx(1 + 1 / 2000, abs=2e-5)
    assert 4 * (20 * 20 + 20) == 60 * 20 + 60 + 420 == 1680
    one = torch.ones((), dtype=torch.float64)
    assert (f"{F.gelu(one):.6f}", f"{F.gelu(one, approximate='tanh'):.6f}") == ("0.841345", "0.841192")
    assert f"{F.gelu(one) - F.gelu(one, approximate='tanh'):.5f}" == "0.00015"
    bpe, tea = solution("10"), "tea no tea sea tea"
    assert [tea.count(pair) for pair in ("ea", "te", " t", " n", " s")] == [4, 3, 2, 1, 1]
    assert bpe.train_bpe(tea, 3) == [(b"e", b"a"), (b"t", b"ea"), (b" ", b"tea")]
    assert (len(tea), "|".join(map(bytes.decode, bpe.encode(tea, bpe.train_bpe(tea, 3))))) == (
        18, "tea| |n|o| tea| |s|ea| tea")
    pairs = [pair for word in ("aaab", "␣aaab") for pair in zip(word, word[1:])]
    assert [pairs.count(tuple(pair)) for pair in ("aa", "ab", "␣a")] == [4, 2, 1]
    assert bpe.train_bpe("aaab aaab", 2) == [(b"a", b"a"), (b"a", b"b")]
    assert (len("é".encode()), len("🙂".encode())) == (2, 4)
    says(
        "10",
        "0.000075",
        "is 1.63, with eps = 1e-3 it is 0.46",
        "1,680 again",
        "0.841345",
        "0.841192",
        "The difference of 0.00015",
        "`aaab aaab`, the pair (a, a) stands 4 times, (a, b) twice, (␣, a) once",
        "the 18 bytes of the text have become 9 tokens: `tea`, `␣`, `n`, `o`, `␣tea`, `␣`, `s`, `ea`, `␣tea`",
    )


def test_11_a_fair_test(solution):
    module = solution("11")
    assert module.overlap([1, 2, 3, 4], [2, 3, 4, 3, 2, 3], 2) == 0.6
    right_a, right_b = torch.tensor([True, True, True, False]), torch.tensor([True, False, False, True])
    rows = torch.tensor([[0, 1, 2, 3], [0, 0, 0, 0], [1, 1, 2, 2]])
    assert module.difference(right_a, right_b, rows) == pytest.approx((0.25, 0.0125, 0.9625))
    assert f"{100 * math.sqrt(0.8 * 0.2 / 200):.1f}" == "2.8" and (160 / 200, 154 / 200) == (0.8, 0.77)
    one, two = tensor(1, 0, 0.5, 0.5), tensor(0.5, 0.5, 0, 1)
    assert (one @ one, two @ two, one @ two) == (1.5, 1.5, 1)
    assert f"{F.cosine_similarity(one, two, dim=0):.3f}" == "0.667"
    says("11", "so the overlap is $3/5 = 0.6$", "at 0.0125, and the 97.5 % point at 0.9625", "2.8 points higher")
    says("11", "$1 / 1.5 = 0.667$")


def test_11_spot_the_cheat():
    assert (f"{math.log(28):.3f}", 16 * 28) == ("3.332", 448)
    assert (tensor(3, 4) - tensor(3, 3.9)).norm() / tensor(3, 4).norm() == pytest.approx(0.02)
    strip = [*range(8), *range(8)]
    assert [strip[2 * t : 2 * t + 2] for t in (0, 1, 3, 4)] == [[0, 1], [2, 3], [6, 7], [0, 1]]
    assert (math.log(2) + math.log(8)) / 2 == pytest.approx(1.386, abs=5e-4)
    assert 12 * 12 == 144
    says("11", r"$(\ln 2 + \ln 8)/2 = 1.386$", "12 layers of 12 heads, 144 tables")
    says(
        "11",
        r"\ln 28 = 3.332",
        "that is 448 changed",
        "$0.1 / 5 = 0.02$",
        "output 3 gets 6 and 7, and output 4 gets 0 and 1 again",
    )


def test_12_rotary_positions(solution):
    rope = solution("12").rope
    at_one = torch.tensor([1])
    rotated = [rope(tensor(*x)[None], at_one)[0].tolist() for x in ((1, 0, 1, 0), (0, 1, 0, 1))]
    assert rotated[0] == pytest.approx([0.5403, 0.8415, 1.0000, 0.0100], abs=5e-5)
    assert rotated[1] == pytest.approx([-0.8415, 0.5403, -0.0100, 1.0000], abs=5e-5)
    halves = rope(tensor(1, 2, 3, 4)[None], at_one, interleaved=False)[0]
    assert [f"{number:.4f}" for number in halves.tolist()] == ["-1.9841", "1.9599", "2.4624", "4.0198"]
    assert f"{math.cos(2):.4f}" == "-0.4161"
    ends = [rope(tensor(1, 0)[None], torch.tensor([p]))[0] for p in (3, 5, 103, 105)]
    assert [f"{ends[0] @ ends[1]:.4f}", f"{ends[2] @ ends[3]:.4f}"] == ["-0.4161", "-0.4161"]
    assert 44 / (2 * math.pi) == pytest.approx(7, abs=0.003)
    assert torch.tensor(257.0).bfloat16() == 256
    says(
        "12",
        r"(-1.9841,\ 1.9599,\ 2.4624,\ 4.0198)$",
        r"\cos 2 = -0.4161",
        "for the positions 3 and 5 it is $\\cos 2 = -0.4161$, and for the positions 103 and 105 as well",
        "almost exactly seven full turns",
        "position 257",
    )


def test_13_key_value_cache(solution):
    attention = solution("13").CachedAttention(20, 4)
    _, cache = attention(torch.randn(1, 5, 20))
    assert (cache[0].shape, sum(part.numel() for part in cache)) == ((1, 4, 5, 5), 200)
    _, cache = attention(torch.randn(1, 2, 20), cache)
    assert (cache[0].shape, sum(part.numel() for part in cache)) == ((1, 4, 7, 5), 280)
    assert 2 * 32 * 32 * 128 * 4096 * 2 == 2_147_483_648 == 2 * 2**30
    weights = 6_738_415_616 * 2  # bytes of Llama 2 in its size of 7 billion, 2 bytes each
    assert 6 * 2_147_483_648 < weights < 7 * 2_147_483_648
    text = [1, 2, 3]
    for _ in range(3):
        text.append(sum(text) % 10)
    assert text == [1, 2, 3, 6, 2, 4]
    says("13", "200 numbers together", "280 numbers", "2{,}147{,}483{,}648", "Seven users", "`1 2 3 6 2 4`")


def test_13_grouped_queries(solution):
    module = solution("13")
    assert module.cache_bytes(32, 32, 128, 4096, 2) == 2_147_483_648
    attention = module.GroupedQueryAttention(20, 4, 2)
    _, cache = attention(torch.randn(1, 5, 20))
    assert attention.key.weight.shape == (10, 20)
    assert [part.shape for part in cache] == [(1, 2, 5, 5)] * 2
    assert sum(part.numel() for part in cache) == 100
    rows = {
        "GPT-2 small": (12, 12, 12, 64),
        "Falcon 7B": (32, 71, 1, 64),
        "Llama 2 7B": (32, 32, 32, 128),
        "Llama 2 70B": (80, 64, 8, 128),
        "Llama 3.1 8B": (32, 32, 8, 128),
    }
    for model, (layers, asking, kept, numbers) in rows.items():
        megabytes = module.cache_bytes(layers, kept, numbers, 1000, 2) / 1e6
        says("13", f"| {model} | {layers} | {asking} | {kept} | {numbers} | {megabytes:.0f} MB |")
    assert module.cache_bytes(80, 8, 128, 1000, 2) < module.cache_bytes(32, 32, 128, 1000, 2)
    says("13", "The largest of these models has a smaller cache than one a tenth of its size.", "100 numbers together")


def test_13_blocks(solution):
    module = solution("13")
    q, k, v = torch.ones(1, 1), torch.tensor([[1.0], [3.0], [6.0]]).log(), torch.tensor([[10.0], [20.0], [30.0]])
    assert module.blockwise_attention(q, k, v, 2).item() == pytest.approx(25)
    assert (4 / 3 / 2 + 1, 70 / 3 / 2 + 30) == pytest.approx((5 / 3, 125 / 3))
    assert module.bytes_moved(4, 6, 2, 3, 2) == ((16 + 24 + 96) * 2, (24 + 2 * (24 + 16)) * 2) == (272, 208)
    whole, blocks = module.bytes_moved(4096, 4096, 128, 512, 2)
    assert (round(whole / 1e6), round(blocks / 1e6)) == (138, 28)
    assert module.bytes_moved(4096, 4096, 128, 64, 2)[1] > whole > module.bytes_moved(4096, 4096, 128, 128, 2)[1]
    assert (round(4096 * 4096 * 2 / 1e6), 4096 * 64 * 2 / 1e6) == (34, pytest.approx(0.5, abs=0.03))  # in the answer
    says("13", "it is 138 million bytes against 28 million", "ten billion of them")


def test_13_sizes_are_those_of_the_published_models():
    """The defaults of Hugging Face's configurations are GPT-2 small, Falcon 7B, and a Llama as wide as Llama 2."""
    transformers = pytest.importorskip("transformers")
    gpt2, falcon, llama = transformers.GPT2Config(), transformers.FalconConfig(), transformers.LlamaConfig()
    assert (gpt2.n_layer, gpt2.n_head, gpt2.n_embd // gpt2.n_head) == (12, 12, 64)
    falcon_heads = falcon.num_attention_heads
    assert (falcon.num_hidden_layers, falcon_heads, falcon.hidden_size // falcon_heads) == (32, 71, 64)
    assert falcon.multi_query
    llama_heads = llama.num_attention_heads
    assert (llama.num_hidden_layers, llama_heads, llama.hidden_size // llama_heads) == (32, 32, 128)


def beside_the_suite_of_17(name: str) -> ModuleType:
    """A file of 17's author: `pictures`, whose RANDOM are inputs of ordinary sizes, or a file of tests."""
    file = ROOT / f"tests/assignments/17_find_the_bug/{name}.py"
    spec = importlib.util.spec_from_file_location(f"{name}_17", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_17_find_the_bug(solution):
    module = solution("17")

    def middle(numbers: list[int]) -> int:
        return sorted(set(numbers))[len(set(numbers)) // 2]

    assert [middle([3, 1, 2]), middle([1, 1, 2])] == [2, 2]
    assert [sorted(numbers)[len(numbers) // 2] for numbers in ([1, 1, 2], [3, 1, 2])] == [1, 2]
    broken = [name for name in module.SUSPECTS if module.verdict(name)]
    assert (len(module.SUSPECTS), len(broken)) == (10, 8)
    says("17", "Below are ten short functions", "Eight of them break their promise", "Two keep it")


WEAK_EVIDENCE = [
    ("mean_in_pieces", (tensor(0, 3), 1), "mean_in_pieces([0.0, 3.0], 1) is the mean, 1.5."),
    ("drop_some", (tensor(1), 0, False), "drop_some([1.0], 0, False)."),
    ("hold_out", ([7, 8], 2), "hold_out([7, 8], 2) returns ([8], [7]), as it should."),
    ("newest_file", ([],), "The evidence, newest_file([]), is not what newest_file allows"),
]


@pytest.mark.parametrize(("name", "evidence", "shown"), WEAK_EVIDENCE)
def test_17_weak_evidence_is_shown_with_the_suspects_answer(solution, name, evidence, shown):
    visible, hidden = map(beside_the_suite_of_17, ("test_visible", "test_hidden"))
    student = SimpleNamespace(evidence=lambda name: evidence)
    with pytest.raises(AssertionError, match=re.escape(shown)) as failure:
        if name == "mean_in_pieces":
            visible.evidence_against_pieces(student)
        elif name == "drop_some":
            visible.evidence_against_dropout(student)
        else:
            hidden.proven(student, solution("17"), name)
    assert name in ("mean_in_pieces", "drop_some") or shown in failure.value.public


@pytest.mark.slow
def test_17_random_inputs_find_at_most_two_of_the_eight(solution):
    module, pictures = solution("17"), beside_the_suite_of_17("pictures")
    found = dict.fromkeys(pictures.RANDOM, 0)
    tries, together = 400, []
    for seed in range(tries):
        random.seed(seed)
        torch.manual_seed(seed)
        inputs = {name: draw() for name, draw in pictures.RANDOM.items()}
        told = [
            name
            for name, arguments in inputs.items()
            if pictures.told_apart(module.SUSPECTS[name], module.repaired(name), arguments)
        ]
        together.append(len(told))
        for name in told:
            found[name] += 1
    often = sorted(name for name, count in found.items() if count > tries / 4)
    assert often == ["drop_some", "mean_in_pieces"]
    assert sum(together) / tries < 2
    assert sum(count <= 2 for count in together) > 0.9 * tries
    assert found["smooth_targets"] == found["running_loss"] == 0
    says(
        "17",
        "random inputs of one ordinary size, one ordinary scale and without repetition find two often",
        "the others seldom or never",
    )


def test_missing_sentence_is_noticed():
    with pytest.raises(AssertionError, match="does not say"):
        says("03", "a sentence that is not there")
