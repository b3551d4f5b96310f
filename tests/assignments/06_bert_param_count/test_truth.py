"""The reference itself counts what Hugging Face's models really own, at any size.

The models are built on PyTorch's `meta` device: shapes without weights, and nothing is downloaded.
Not a part of the graded suite.
"""

import importlib.util
import os
import random
import sys
from pathlib import Path

import pytest
import torch

os.environ["HF_HUB_OFFLINE"] = "1"

ROOT = Path(__file__).resolve().parents[3]
SOLUTION = ROOT / "solutions" / "06_bert_param_count" / "bert_param_count.py"


@pytest.fixture(scope="module")
def counting():
    """The solution, as a module of its own."""
    pytest.importorskip("transformers", reason="needs Hugging Face's models; install .[dev]")
    spec = importlib.util.spec_from_file_location("solution_of_bert_param_count", SOLUTION)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module                 # dataclasses look their module up here
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


def owned(*modules: torch.nn.Module) -> int:
    return sum(parameter.numel() for module in modules for parameter in module.parameters())


def random_bert(draw: random.Random) -> dict:
    heads = draw.randint(1, 6)
    return {
        "vocab_size": draw.randint(50, 500),
        "hidden_size": heads * draw.randint(1, 20),
        "num_hidden_layers": draw.randint(1, 4),
        "num_attention_heads": heads,
        "intermediate_size": draw.randint(1, 200),
        "max_position_embeddings": draw.randint(1, 60),
        "type_vocab_size": draw.randint(1, 5),
    }


def random_gpt2(draw: random.Random) -> dict:
    heads = draw.randint(1, 6)
    return {
        "vocab_size": draw.randint(50, 500),
        "n_positions": draw.randint(1, 60),
        "n_embd": heads * draw.randint(1, 20),
        "n_layer": draw.randint(1, 4),
        "n_head": heads,
    }


def check_bert(counting, sizes: dict) -> None:
    import transformers  # for seconds: only where these tests run

    config = counting.BertConfig(**sizes)
    with torch.device("meta"):
        model = transformers.BertModel(transformers.BertConfig(**sizes))
    layer, embeddings = model.encoder.layer[0], model.embeddings

    assert counting.count_embeddings(config) == owned(embeddings)
    assert counting.count_attention(config) == owned(layer.attention)
    assert counting.count_feed_forward(config) == owned(layer.intermediate, layer.output)
    assert counting.count_layer(config) == owned(layer)
    assert counting.count_pooler(config) == owned(model.pooler)
    assert counting.count_bert(config) == {
        "word_embeddings": owned(embeddings.word_embeddings),
        "position_embeddings": owned(embeddings.position_embeddings),
        "token_type_embeddings": owned(embeddings.token_type_embeddings),
        "embedding_layer_norm": owned(embeddings.LayerNorm),
        "attention": owned(layer.attention),
        "feed_forward": owned(layer.intermediate, layer.output),
        "encoder": owned(model.encoder),
        "pooler": owned(model.pooler),
        "total": owned(model),
    }
    without = counting.count_bert(config, pooler=False)
    assert (without["pooler"], without["total"]) == (0, owned(embeddings, model.encoder))


def check_gpt2(counting, sizes: dict) -> None:
    import transformers  # for seconds: only where these tests run

    with torch.device("meta"):
        model = transformers.GPT2LMHeadModel(transformers.GPT2Config(**sizes))
    body, block = model.transformer, model.transformer.h[0]

    assert model.lm_head.weight is body.wte.weight, "the head is expected to be tied"
    assert counting.count_gpt2(counting.GPT2Config(**sizes)) == {
        "token_embeddings": owned(body.wte),
        "position_embeddings": owned(body.wpe),
        "attention": owned(block.ln_1, block.attn),
        "feed_forward": owned(block.ln_2, block.mlp),
        "blocks": owned(body.h),
        "final_layer_norm": owned(body.ln_f),
        "total": owned(model),
    }


@pytest.mark.parametrize("seed", range(12))
def test_berts_of_random_size(counting, seed):
    check_bert(counting, random_bert(random.Random(seed)))


@pytest.mark.parametrize("seed", range(12))
def test_gpt2s_of_random_size(counting, seed):
    check_gpt2(counting, random_gpt2(random.Random(seed)))


def test_bert_base_and_large(counting):
    check_bert(counting, {})
    large = {
        "hidden_size": 1024,
        "num_hidden_layers": 24,
        "num_attention_heads": 16,
        "intermediate_size": 4096,
    }
    check_bert(counting, large)
    assert counting.count_bert(counting.BertConfig())["total"] == 109_482_240
    assert counting.count_bert(counting.BertConfig(**large))["total"] == 335_141_888


@pytest.mark.parametrize(
    ("layers", "heads", "width", "total"),
    [
        (12, 12, 768, 124_439_808),
        (24, 16, 1024, 354_823_168),
        (36, 20, 1280, 774_030_080),
        (48, 25, 1600, 1_557_611_200),
    ],
)
def test_the_four_gpt2s(counting, layers, heads, width, total):
    sizes = {"n_layer": layers, "n_head": heads, "n_embd": width}
    check_gpt2(counting, sizes)
    assert counting.count_gpt2(counting.GPT2Config(**sizes))["total"] == total


def test_a_bert_without_segments_or_layers_is_small_not_wrong(counting):
    assert counting.count_bert(counting.BertConfig(type_vocab_size=0))["token_type_embeddings"] == 0
    assert counting.count_bert(counting.BertConfig(num_hidden_layers=0))["encoder"] == 0
    with pytest.raises(ValueError, match="num_attention_heads"):
        counting.count_bert(counting.BertConfig(num_attention_heads=0))
