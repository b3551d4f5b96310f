"""Counting BERT by hand: models of other sizes, and sizes that cannot be."""

import random

from autograder import checks, task

LIBRARIES = ("torch", "transformers")

BERT_LIST = (
    "word_embeddings",
    "position_embeddings",
    "token_type_embeddings",
    "embedding_layer_norm",
    "attention",
    "feed_forward",
    "encoder",
    "pooler",
    "total",
)
GPT2_LIST = (
    "token_embeddings",
    "position_embeddings",
    "attention",
    "feed_forward",
    "blocks",
    "final_layer_norm",
    "total",
)


def bert_sizes(seed: int) -> dict:
    """Sizes of a BERT that nobody has trained, each head one number wide; none else a small multiple of another.

    So a check that divides the wrong way round is found where checks are tested, and costs nothing here.
    """
    draw = random.Random(seed)
    width = draw.choice([3, 5, 7]) * draw.choice([11, 13, 17])
    return {
        "vocab_size": draw.choice([401, 557, 701, 907]),
        "hidden_size": width,
        "num_hidden_layers": draw.choice([2, 4, 6, 9]),
        "num_attention_heads": width,
        "intermediate_size": draw.choice([131, 173, 227, 281]),
        "max_position_embeddings": draw.choice([29, 31, 37, 43]),
        "type_vocab_size": draw.choice([3, 5, 8]),
    }


def gpt2_sizes(seed: int) -> dict:
    """Sizes of a GPT-2 that nobody has trained, each head one number wide."""
    draw = random.Random(seed)
    width = draw.choice([3, 5, 7]) * draw.choice([11, 13, 17])
    return {
        "vocab_size": draw.choice([401, 557, 701, 907]),
        "n_positions": draw.choice([29, 31, 37, 43]),
        "n_embd": width,
        "n_layer": draw.choice([2, 4, 6, 9]),
        "n_head": width,
    }


def call(function: str, config: str, sizes: dict) -> str:
    """The call as a reader would type it: `count_layer(BertConfig(hidden_size=6, …))`."""
    listed = ", ".join(f"{name}={size}" for name, size in sizes.items())
    return f"{function}({config}({listed}))"


def check_whole(count, what: str, public: str) -> None:
    """A count is an int; that a float came back is no secret."""
    end = "returned a float; an int was expected."
    checks.true(not isinstance(count, float), f"{what} {end}", public=f"{public} {end}")


def check_count(student, reference, function: str, sizes: dict) -> None:
    """The student's count of this BERT is the reference's."""
    actual = getattr(student, function)(student.BertConfig(**sizes))
    expected = getattr(reference, function)(reference.BertConfig(**sizes))
    what = call(function, "BertConfig", sizes)
    check_whole(actual, what, f"{function}(…)")
    checks.equal(actual, expected, what)


def check_list(counts, expected: dict, keys: tuple, what: str) -> None:
    """Every one of `keys` is in the dict that the student returned, with the right number."""
    checks.true(isinstance(counts, dict), f"{what} should return a dict.", public="A dict should come back.")
    for key in keys:
        checks.true(key in counts, f"{what} has no entry {key}.", public=f"The list has no entry {key}.")
        check_whole(counts[key], f"The entry {key} of {what}", f"The entry {key}")
        checks.equal(counts[key], expected[key], f"the entry {key} of {what}")


def check_refused(student, function: str, config: str, sizes: dict, *fields: str) -> None:
    """These sizes are refused, at the latest when they are counted, naming one of `fields` and its value."""

    def counting():
        return getattr(student, function)(getattr(student, config)(**sizes))

    def refusing_again():
        raise refusal

    what = call(function, config, sizes)
    refusal = checks.raises(ValueError, counting, what=what)
    named = [field for field in fields if field in str(refusal)] or fields[:1]
    checks.raises(ValueError, refusing_again, naming=(named[0], sizes[named[0]]), what=what)


@task("embeddings", 1, forbids=LIBRARIES,
      promise="All parameters between a token's id and the first layer: three tables and a LayerNorm.")
def test_tables_of_other_models(student, reference, seed):
    """The tables and their LayerNorm are counted right for models of any size."""
    for step in range(3):
        check_count(student, reference, "count_embeddings", bert_sizes(seed + step))


@task("embeddings", 0.5, forbids=LIBRARIES, promise="Each is a plain list of vectors of width $C$")
def test_price_of_one_more_row(student, seed):
    """One more word, position or segment costs exactly one vector."""
    sizes = bert_sizes(seed)
    before = student.count_embeddings(student.BertConfig(**sizes))
    for field in ("vocab_size", "max_position_embeddings", "type_vocab_size"):
        larger = {**sizes, field: sizes[field] + 1}
        price = student.count_embeddings(student.BertConfig(**larger)) - before
        checks.equal(price, sizes["hidden_size"], f"the price of raising {field} from {sizes[field]} by one")


@task("embeddings", 0.5, forbids=LIBRARIES, promise=(
    "the first thing every counting function does is to refuse such a config with a `ValueError`",
    "Refused are a negative size in any field, zero heads, and a width that is not a multiple of the number of",
    "The sentence names the field and its value",
))
def test_tables_that_cannot_be(student, seed):
    """The tables of a model with a negative size, without heads, or with uneven heads are not counted but refused."""
    sizes = bert_sizes(seed)
    for field in ("vocab_size", "type_vocab_size"):
        check_refused(student, "count_embeddings", "BertConfig", {**sizes, field: -sizes[field]}, field)
    wide, without = {**sizes, "hidden_size": sizes["hidden_size"] + 1}, {**sizes, "num_attention_heads": 0}
    for wrong in (wide, without):
        check_refused(student, "count_embeddings", "BertConfig", wrong, "hidden_size", "num_attention_heads")


@task("attention", 1, forbids=LIBRARIES,
      promise="The parameters of one layer's self-attention, with its output projection and its LayerNorm.")
def test_attention_of_other_models(student, reference, seed):
    """Attention is counted right for models of any size."""
    for step in range(3):
        check_count(student, reference, "count_attention", bert_sizes(seed + step))


@task("attention", 0.5, forbids=LIBRARIES, promise=(
    "a width that is not a multiple of the number of heads",
    "The sentence names the field and its value",
))
def test_heads_must_share_evenly(student, seed):
    """A width that the heads cannot share evenly is refused, naming a field and its value."""
    sizes = bert_sizes(seed)
    sizes["hidden_size"] += 1
    check_refused(student, "count_attention", "BertConfig", sizes, "hidden_size", "num_attention_heads")
    sizes = {**sizes, "hidden_size": -7 * sizes["num_attention_heads"]}
    check_refused(student, "count_attention", "BertConfig", sizes, "hidden_size")


@task("attention", 0.5, forbids=LIBRARIES, promise=(
    "Only zero heads are refused",
    "The sentence names the field and its value",
))
def test_nothing_is_shared_among_nobody(student, seed):
    """A model without heads is refused, naming a field and its value."""
    sizes = {**bert_sizes(seed), "num_attention_heads": 0}
    check_refused(student, "count_attention", "BertConfig", sizes, "num_attention_heads", "hidden_size")


@task("feed_forward", 1, forbids=LIBRARIES,
      promise="The parameters of one layer's feed-forward part, with its LayerNorm.")
def test_feed_forward_of_other_models(student, reference, seed):
    """The feed-forward part is counted right for models of any size."""
    for step in range(3):
        check_count(student, reference, "count_feed_forward", bert_sizes(seed + step))


@task("feed_forward", 1, forbids=LIBRARIES,
      promise="A **layer** of BERT is attention and feed-forward, and nothing else")
def test_layer_is_the_sum_of_its_parts(student, seed):
    """A layer is attention and feed-forward together, nothing more and nothing less."""
    sizes = bert_sizes(seed)
    config = student.BertConfig(**sizes)
    attention = student.count_attention(config)
    feed_forward = student.count_feed_forward(config)
    layer = student.count_layer(config)
    checks.true(layer != 0, f"{call('count_layer', 'BertConfig', sizes)} is 0, but a layer has parameters.")
    checks.equal(layer, attention + feed_forward, call("count_layer", "BertConfig", sizes))


@task("bert", 1, forbids=LIBRARIES, promise=(
    "The parameters of every part of BERT, and the total.",
    "0 when `pooler` is False",
))
def test_lists_of_other_berts(student, reference, seed):
    """The whole list is right for models of any size, with the pooler and without it."""
    for step in range(3):
        sizes = bert_sizes(seed + step)
        check_count(student, reference, "count_pooler", sizes)
        config, expected = student.BertConfig(**sizes), reference.BertConfig(**sizes)
        what = call("count_bert", "BertConfig", sizes)
        check_list(student.count_bert(config), reference.count_bert(expected), BERT_LIST, what)
        without = student.count_bert(config, pooler=False)
        what = f"{what[:-1]}, pooler=False)"
        check_list(without, reference.count_bert(expected, pooler=False), BERT_LIST, what)


@task("bert", 0.5, needs="test_lists_of_other_berts", forbids=LIBRARIES,
      promise="Zero is allowed where a model can do without the thing: no segments, no layers.")
def test_berts_without_segments_or_layers(student, reference, seed):
    """A BERT without segments, or without layers, is no mistake: what it has not got counts nothing."""
    for field in ("type_vocab_size", "num_hidden_layers"):
        sizes = {**bert_sizes(seed), field: 0}
        counts = student.count_bert(student.BertConfig(**sizes))
        expected = reference.count_bert(reference.BertConfig(**sizes))
        check_list(counts, expected, BERT_LIST, call("count_bert", "BertConfig", sizes))


@task("bert", 0.5, forbids=LIBRARIES, promise=(
    "the first thing every counting function does is to refuse such a config with a `ValueError`",
    "that names the field and its value.",
    "a negative size in any field",
))
def test_berts_that_cannot_be(student, seed):
    """A BERT with a negative size, or with a width that the heads cannot share, is refused by every function."""
    sizes = bert_sizes(seed)
    for field in sizes:
        check_refused(student, "count_bert", "BertConfig", {**sizes, field: -1}, field)
    for function, field in (
        ("count_embeddings", "vocab_size"),
        ("count_feed_forward", "intermediate_size"),
        ("count_layer", "intermediate_size"),
        ("count_pooler", "hidden_size"),
    ):
        check_refused(student, function, "BertConfig", {**sizes, field: -sizes[field]}, field)
    wide = {**sizes, "hidden_size": sizes["hidden_size"] + 1}
    check_refused(student, "count_bert", "BertConfig", wide, "hidden_size", "num_attention_heads")


@task("gpt2", 1, forbids=LIBRARIES,
      promise="The parameters of every part of GPT-2, and the total. The tied output layer is not counted again.")
def test_lists_of_other_gpts(student, reference, seed):
    """The whole list of GPT-2 is right for models of any size."""
    deep = {**gpt2_sizes(seed), "n_layer": 61 + seed % 30}
    for sizes in (gpt2_sizes(seed), gpt2_sizes(seed + 1), deep):
        counts = student.count_gpt2(student.GPT2Config(**sizes))
        expected = reference.count_gpt2(reference.GPT2Config(**sizes))
        check_list(counts, expected, GPT2_LIST, call("count_gpt2", "GPT2Config", sizes))


@task("gpt2", 0.5, needs="test_lists_of_other_gpts", forbids=LIBRARIES,
      promise="Zero is allowed where a model can do without the thing: no segments, no layers.")
def test_gpts_without_blocks(student, reference, seed):
    """A GPT-2 without blocks is no mistake: its tables and its last LayerNorm are counted as always."""
    sizes = {**gpt2_sizes(seed), "n_layer": 0}
    counts = student.count_gpt2(student.GPT2Config(**sizes))
    expected = reference.count_gpt2(reference.GPT2Config(**sizes))
    check_list(counts, expected, GPT2_LIST, call("count_gpt2", "GPT2Config", sizes))


@task("gpt2", 0.5, forbids=LIBRARIES,
      promise="a negative size in any field, zero heads, and a width that is not a multiple of the number of heads")
def test_gpts_that_cannot_be(student, seed):
    """A GPT-2 with a negative size, without heads, or with a width that the heads cannot share, is refused."""
    sizes = gpt2_sizes(seed)
    for field in sizes:
        check_refused(student, "count_gpt2", "GPT2Config", {**sizes, field: -1}, field)
    wide = {**sizes, "n_embd": sizes["n_embd"] + 1}
    check_refused(student, "count_gpt2", "GPT2Config", wide, "n_embd", "n_head")
    check_refused(student, "count_gpt2", "GPT2Config", {**sizes, "n_head": 0}, "n_head", "n_embd")
