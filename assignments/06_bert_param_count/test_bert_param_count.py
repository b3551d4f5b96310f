"""Counting BERT by hand: the tests that you can run yourself."""

import pytest

from autograder import checks

pytestmark = pytest.mark.forbids("torch", "transformers")

# A model so small that every number can be checked on paper.
SMALL = {
    "vocab_size": 11,
    "hidden_size": 6,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 13,
    "max_position_embeddings": 7,
    "type_vocab_size": 3,
}


def call(function: str, config: str, sizes: dict) -> str:
    """The call as a reader would type it: `count_layer(BertConfig(hidden_size=6, …))`."""
    listed = ", ".join(f"{name}={size}" for name, size in sizes.items())
    return f"{function}({config}({listed}))"


def check_list(counts, expected: dict, what: str) -> None:
    """Every expected entry is in the dict that the student returned, with the right number."""
    checks.true(isinstance(counts, dict), f"{what} should return a dict.")
    for key, number in expected.items():
        checks.true(key in counts, f"{what} has no entry {key}.")
        checks.equal(counts[key], number, f"the entry {key} of {what}")


@pytest.mark.part("embeddings")
@pytest.mark.points(1)
def test_tables_of_a_small_model(student):
    """The tables and their LayerNorm are counted right in a model small enough for paper."""
    small = student.BertConfig(**SMALL)
    checks.equal(student.count_embeddings(small), 138, call("count_embeddings", "BertConfig", SMALL))
    base = student.BertConfig()
    checks.equal(student.count_embeddings(base), 23_837_184, "count_embeddings(BertConfig())")


@pytest.mark.part("attention")
@pytest.mark.points(1)
def test_attention_of_a_small_model(student):
    """Attention is counted right in a model small enough for paper."""
    small = student.BertConfig(**SMALL)
    checks.equal(student.count_attention(small), 180, call("count_attention", "BertConfig", SMALL))
    base = student.BertConfig()
    checks.equal(student.count_attention(base), 2_363_904, "count_attention(BertConfig())")


@pytest.mark.part("feed_forward")
@pytest.mark.points(1)
def test_feed_forward_of_a_small_model(student):
    """The feed-forward part is counted right in a model small enough for paper."""
    small = student.BertConfig(**SMALL)
    checks.equal(student.count_feed_forward(small), 187, call("count_feed_forward", "BertConfig", SMALL))
    base = student.BertConfig()
    checks.equal(student.count_feed_forward(base), 4_723_968, "count_feed_forward(BertConfig())")


@pytest.mark.part("bert")
@pytest.mark.points(1)
def test_list_of_bert_base(student):
    """BERT-base is counted to the last parameter, room by room."""
    config = student.BertConfig()
    checks.equal(student.count_pooler(config), 590_592, "count_pooler(BertConfig())")
    expected = {
        "word_embeddings": 23_440_896,
        "position_embeddings": 393_216,
        "token_type_embeddings": 1_536,
        "embedding_layer_norm": 1_536,
        "attention": 2_363_904,
        "feed_forward": 4_723_968,
        "encoder": 85_054_464,
        "pooler": 590_592,
        "total": 109_482_240,
    }
    check_list(student.count_bert(config), expected, "count_bert(BertConfig())")
    without = student.count_bert(config, pooler=False)
    expected = {"pooler": 0, "total": 108_891_648}
    check_list(without, expected, "count_bert(BertConfig(), pooler=False)")


@pytest.mark.part("gpt2")
@pytest.mark.points(1)
def test_list_of_gpt2_small(student):
    """The small GPT-2 is counted to the last parameter, room by room."""
    expected = {
        "token_embeddings": 38_597_376,
        "position_embeddings": 786_432,
        "attention": 2_363_904,
        "feed_forward": 4_723_968,
        "blocks": 85_054_464,
        "final_layer_norm": 1_536,
        "total": 124_439_808,
    }
    check_list(student.count_gpt2(student.GPT2Config()), expected, "count_gpt2(GPT2Config())")
