"""Counting BERT by hand: the tests that you can run yourself."""

from contextlib import contextmanager

from autograder import checks, task

LIBRARIES = ("torch", "transformers")

# Models so small that every number can be checked on paper. Each of their heads is one number wide.
SMALL = {
    "vocab_size": 11,
    "hidden_size": 6,
    "num_hidden_layers": 2,
    "num_attention_heads": 6,
    "intermediate_size": 13,
    "max_position_embeddings": 7,
    "type_vocab_size": 3,
}
SMALL_GPT2 = {"vocab_size": 11, "n_positions": 7, "n_embd": 6, "n_layer": 2, "n_head": 6}


def call(function: str, config: str, sizes: dict) -> str:
    """The call as a reader would type it: `count_layer(BertConfig(hidden_size=6, …))`."""
    listed = ", ".join(f"{name}={size}" for name, size in sizes.items())
    return f"{function}({config}({listed}))"


@contextmanager
def told(words):
    """If a check inside fails, these words say which mistake it was, whatever the code looks like; "" says nothing."""
    try:
        yield
    except checks.CheckFailed as failure:
        failure.telling = failure.telling or words
        raise


def check_list(counts, expected: dict, what: str) -> None:
    """Every expected entry is in the dict that the student returned, with the right number."""
    checks.true(isinstance(counts, dict), f"{what} should return a dict.")
    for key in expected:
        checks.true(key in counts, f"{what} has no entry {key}.")
    with told(" and ".join(f"{key} {counts[key]}" for key in expected if counts[key] != expected[key])):
        for key, number in expected.items():
            checks.equal(counts[key], number, f"the entry {key} of {what}")


@task("embeddings", 0.6, forbids=LIBRARIES)
def test_tables_of_a_small_model(student):
    """The tables and their LayerNorm are counted right in a model small enough for paper."""
    small = student.BertConfig(**SMALL)
    checks.equal(student.count_embeddings(small), 138, call("count_embeddings", "BertConfig", SMALL))


@task("embeddings", 0.4, forbids=LIBRARIES)
def test_tables_of_bert_base(student):
    """The tables and their LayerNorm are counted right for BERT-base."""
    checks.equal(student.count_embeddings(student.BertConfig()), 23_837_184, "count_embeddings(BertConfig())")


@task("attention", 0.6, forbids=LIBRARIES)
def test_attention_of_a_small_model(student):
    """Attention is counted right in a model small enough for paper."""
    small = student.BertConfig(**SMALL)
    checks.close(student.count_attention(small), 180, call("count_attention", "BertConfig", SMALL))


@task("attention", 0.4, forbids=LIBRARIES)
def test_attention_of_bert_base(student):
    """Attention is counted right for BERT-base, with any number of heads."""
    checks.close(student.count_attention(student.BertConfig()), 2_363_904, "count_attention(BertConfig())")
    four = student.BertConfig(num_attention_heads=4)
    checks.close(student.count_attention(four), 2_363_904, "count_attention(BertConfig(num_attention_heads=4))")


@task("feed_forward", 0.6, forbids=LIBRARIES)
def test_feed_forward_of_a_small_model(student):
    """The feed-forward part is counted right in a model small enough for paper."""
    small = student.BertConfig(**SMALL)
    checks.equal(student.count_feed_forward(small), 187, call("count_feed_forward", "BertConfig", SMALL))


@task("feed_forward", 0.2, forbids=LIBRARIES)
def test_feed_forward_of_bert_base(student):
    """The feed-forward part is counted right for BERT-base."""
    checks.equal(student.count_feed_forward(student.BertConfig()), 4_723_968, "count_feed_forward(BertConfig())")


@task("feed_forward", 0.2, forbids=LIBRARIES)
def test_a_layer_is_one_layer(student):
    """One layer has as many parameters in a model of seven layers as in a model of one."""
    shallow = student.count_layer(student.BertConfig(**{**SMALL, "num_hidden_layers": 1}))
    deep = student.count_layer(student.BertConfig(**{**SMALL, "num_hidden_layers": 7}))
    checks.equal(deep, shallow, "count_layer with num_hidden_layers=7, compared with num_hidden_layers=1,")


@task("bert", 0.6, forbids=LIBRARIES)
def test_list_of_a_small_bert(student):
    """A BERT small enough for paper is counted right, part by part, with its pooler and without."""
    config = student.BertConfig(**SMALL)
    checks.equal(student.count_pooler(config), 42, call("count_pooler", "BertConfig", SMALL))
    expected = {
        "word_embeddings": 66,
        "position_embeddings": 42,
        "token_type_embeddings": 18,
        "embedding_layer_norm": 12,
        "attention": 180,
        "feed_forward": 187,
        "encoder": 734,
        "pooler": 42,
        "total": 914,
    }
    what = call("count_bert", "BertConfig", SMALL)
    check_list(student.count_bert(config), expected, what)
    expected = {"pooler": 0, "total": 872}
    check_list(student.count_bert(config, pooler=False), expected, f"{what[:-1]}, pooler=False)")

@task("bert", 0.4, forbids=LIBRARIES)
def test_list_of_bert_base(student):
    """BERT-base is counted to the last parameter, part by part."""
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


@task("gpt2", 0.6, forbids=LIBRARIES)
def test_list_of_a_tiny_gpt2(student):
    """A GPT-2 small enough for paper is counted right, part by part."""
    expected = {
        "token_embeddings": 66,
        "position_embeddings": 42,
        "attention": 180,
        "feed_forward": 330,
        "blocks": 1_020,
        "final_layer_norm": 12,
        "total": 1_140,
    }
    counts = student.count_gpt2(student.GPT2Config(**SMALL_GPT2))
    check_list(counts, expected, call("count_gpt2", "GPT2Config", SMALL_GPT2))

@task("gpt2", 0.4, forbids=LIBRARIES)
def test_list_of_gpt2_small(student):
    """The small GPT-2 is counted to the last parameter, part by part."""
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
