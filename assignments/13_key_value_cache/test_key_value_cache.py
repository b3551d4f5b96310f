"""Key-value cache: the tests that come with the assignment."""

import torch
from torch import nn

from autograder import checks, task

AXES = ("new word", "any word")


def fill_all(module):
    """Fresh numbers for all parameters, in whatever order the layers were made."""
    with torch.no_grad():
        for _, parameter in sorted(module.named_parameters()):
            parameter.copy_(torch.randn(parameter.shape) / 3)
    return module


class LastDigit(nn.Module):
    """Predicts the last digit of the sum of all words so far, and is never sure. Its cache is that sum."""

    def forward(self, ids, cache=None):
        sums = ids.cumsum(dim=1) + (0 if cache is None else cache)  # (B, T)
        logits = 1e-3 * nn.functional.one_hot(sums % 10, 10).float()  # (B, T, 10)
        return logits, sums[:, -1:]


class HowMany(nn.Module):
    """Predicts the number of words in this call, and is never sure. Its cache counts the calls."""

    def forward(self, ids, cache=None):
        logits = nn.functional.one_hot(torch.full_like(ids, ids.shape[1]), 10).float()  # (B, T, 10)
        return logits, torch.tensor(1) + (0 if cache is None else cache)


def all_endings(student, attention, pieces, endings):
    """The result of the given function; computed call by call when the file does not have it."""
    if hasattr(student, "all_endings"):
        return student.all_endings(attention, pieces, endings)
    cache = None
    for piece in pieces:
        _, cache = attention(piece, cache)
    return [checks.unpack(attention(ending, cache), ("out", "cache"))[1] for ending in endings]


def pieces_equal_the_whole(attention, x):
    """A text x (B, 7, C) read in pieces of 2, 1 and 4 words gets the outputs of the text read as a whole."""
    whole, _ = attention(x)  # (B, T, C)
    whole = checks.tensor(whole)
    checks.true(not torch.equal(whole[:, 1:], whole[:, :-1]), "All words of a text get the same output.")
    cache, begin = None, 0
    for size in (2, 1, 4):
        out, cache = attention(x[:, begin : begin + size], cache)  # (B, size, C)
        what = f"the output for a piece of {size} after {begin} words"
        checks.close(out, whole[:, begin : begin + size], what)
        begin += size


# Part 1: the mask


@task("mask", 0.25)
def test_mask_without_a_past_is_a_square(student):
    """Without old words, the mask is the square: every word attends to itself and to the words before it."""
    expected = torch.tensor([[True, False, False], [True, True, False], [True, True, True]])
    mask = student.causal_mask(3)
    checks.equal(mask, expected, "causal_mask(3)", axes=AXES)
    checks.dtype(mask, torch.bool, "causal_mask(3)")


@task("mask", 0.5)
def test_mask_of_three_new_words_after_two(student):
    """Three words that follow two old ones attend to both of these, and among themselves only to the past."""
    expected = torch.tensor(
        [
            [True, True, True, False, False],
            [True, True, True, True, False],
            [True, True, True, True, True],
        ]
    )
    mask = checks.tensor(student.causal_mask(3, 2), "causal_mask(3, 2)")
    checks.equal(mask != 0, expected, "causal_mask(3, 2)", axes=AXES)


# Part 2: attention


@task("attention", 0.25)
def test_the_four_layers(student):
    """The layers query, key, value and proj each own a weight of (d_model, d_model), and no bias."""
    attention = student.CachedAttention(20, 4)
    weights = {f"{name}.weight": (20, 20) for name in ("query", "key", "value", "proj")}
    checks.parameters(attention, weights)


@task("attention", 0.25)
def test_uneven_heads_are_refused(student):
    """A d_model that n_heads does not divide is a ValueError that names both and their values."""
    checks.raises(ValueError, student.CachedAttention, 22, 4, naming=("d_model", 22, "n_heads", 4))


@task("attention", 0.5)
def test_the_cache_grows(student):
    """Seven words leave seven keys and seven values for each head; after two more words there are nine of each."""
    axes = ("batch", "head", "word", "number")
    attention = student.CachedAttention(20, 4)
    out, cache = checks.unpack(attention(torch.randn(3, 7, 20)), ("out", "cache"))
    checks.shape(out, (3, 7, 20), "the output for seven words")
    for name, kept in zip(("keys", "values"), checks.unpack(cache, ("keys", "values"), "the cache")):
        checks.shape(kept, (3, 4, 7, 5), f"the {name} of the cache", axes=axes)
    out, cache = checks.unpack(attention(torch.randn(3, 2, 20), cache), ("out", "cache"))
    checks.shape(out, (3, 2, 20), "the output for two more words")
    for name, kept in zip(("keys", "values"), checks.unpack(cache, ("keys", "values"), "the cache")):
        checks.shape(kept, (3, 4, 9, 5), f"the {name} of the cache after two more words", axes=axes)


@task("attention", 0.5)
def test_pieces_give_what_the_whole_gives(student):
    """A text read in pieces, of one word or of several, gets the outputs of the text read as a whole."""
    attention = fill_all(student.CachedAttention(20, 4).double())
    pieces_equal_the_whole(attention, torch.randn(3, 7, 20).double())


@task("attention", 0.25, needs="test_the_cache_grows")
def test_every_ending_has_its_own_cache(student):
    """A text that is continued in several ways from one point leaves each ending with its own keys and values."""
    attention = fill_all(student.CachedAttention(20, 4).double())
    text, endings = torch.randn(11, 2, 2, 20).double(), torch.randn(3, 2, 1, 20).double()
    wholes = torch.cat([torch.cat([*text, ending], dim=1) for ending in endings])  # (6, 23, C)
    _, expected = attention(wholes)
    for pieces in (text[:2], text):
        words = 2 * len(pieces)
        caches = all_endings(student, attention, list(pieces), list(endings))
        first, second = (checks.unpack(cache, 2, "the cache")[0] for cache in caches[:2])
        checks.true(not torch.equal(first, second), "Two different endings leave the same keys.")
        for i, name in enumerate(("keys", "values")):
            wanted = checks.tensor(expected[i])
            wanted = torch.cat([wanted[:, :, :words], wanted[:, :, -1:]], dim=2)
            for cache, own in zip(caches, wanted.split(2)):
                kept = checks.unpack(cache, 2, "the cache")[i]
                what = f"the {name} of one of three endings"
                checks.close(kept, own, what, axes=("batch", "head", "word", "number"))


# Part 3: writing


@task("writing", 0.25)
def test_writing_goes_on_with_all_that_was_read(student):
    """A model that predicts the last digit of the sum of all words continues 1 2 3 by 6 2 4, and 5 0 4 by 9 8 6."""
    written = student.generate(LastDigit(), torch.tensor([[1, 2, 3], [5, 0, 4]]), 3)
    expected = torch.tensor([[1, 2, 3, 6, 2, 4], [5, 0, 4, 9, 8, 6]])
    checks.equal(written, expected, "the text", axes=("row", "word"))


@task("writing", 0.5)
def test_no_word_is_read_twice(student):
    """A model that predicts the number of words in each call predicts 3 for a prompt of three, and from then on 1."""
    written = student.generate(HowMany(), torch.tensor([[7, 8, 9]]), 4)
    checks.equal(written, torch.tensor([[7, 8, 9, 3, 1, 1, 1]]), "the text", axes=("row", "word"))


# Part 4: groups


@task("groups", 0.25)
def test_cache_of_llama_2(student):
    """Llama 2 7B keeps 2,147,483,648 bytes for a text of 4,096 words, and a toy 1,680 bytes."""
    checks.equal(student.cache_bytes(3, 2, 5, 7, 4), 1680, "cache_bytes(3, 2, 5, 7, 4)")
    checks.equal(student.cache_bytes(32, 32, 128, 4096, 2), 2_147_483_648, "cache_bytes(32, 32, 128, 4096, 2)")


@task("groups", 0.125)
def test_two_layers_are_narrow(student):
    """With 6 heads that ask and 2 that are kept, key and value make 8 numbers of 24, and query and proj 24; no bias."""
    attention = student.GroupedQueryAttention(24, 6, 2)
    weights = {"query.weight": (24, 24), "key.weight": (8, 24), "value.weight": (8, 24), "proj.weight": (24, 24)}
    checks.parameters(attention, weights)


@task("groups", 0.125)
def test_uneven_groups_are_refused(student):
    """A d_model that n_heads does not divide, and an n_heads that n_kv_heads does not divide, are ValueErrors."""
    for sizes, naming in (
        ((22, 4, 2), ("d_model", 22, "n_heads", 4)),
        ((24, 6, 4), ("n_heads", 6, "n_kv_heads", 4)),
    ):
        checks.raises(ValueError, student.GroupedQueryAttention, *sizes, naming=naming)


@task("groups", 0.25)
def test_the_cache_is_narrow(student):
    """With 6 heads that ask and 2 that are kept, the cache holds 2 keys and 2 values of each word."""
    axes = ("batch", "head", "word", "number")
    attention = student.GroupedQueryAttention(24, 6, 2)
    cache = None
    for size, words in ((5, 5), (3, 8)):
        out, cache = checks.unpack(attention(torch.randn(3, size, 24), cache), ("out", "cache"))
        checks.shape(out, (3, size, 24), f"the output for {size} words")
        for name, kept in zip(("keys", "values"), checks.unpack(cache, ("keys", "values"), "the cache")):
            all_heads = f"The cache holds the {name} of all 6 heads that ask; those of the 2 kept heads are enough."
            checks.true(checks.tensor(kept).shape[1:2] != (6,), all_heads, telling="all heads are kept")
            checks.shape(kept, (3, 2, words, 4), f"the {name} of the cache after {words} words", axes=axes)


@task("groups", 0.25, needs="test_two_layers_are_narrow")
def test_first_word_hears_itself_in_every_group(student):
    """The first word attends to itself alone: heads 0 to 2 read its value in kept head 0, heads 3 to 5 in kept head 1."""
    attention = fill_all(student.GroupedQueryAttention(24, 6, 2).double())
    with torch.no_grad():
        attention.proj.weight.copy_(torch.eye(24))
    x = torch.randn(3, 1, 24).double()  # (B, 1, C)
    out, _ = checks.unpack(attention(x), ("out", "cache"))
    kept = (x @ attention.value.weight.detach().T).unflatten(-1, (2, 4))  # (B, 1, G, D)
    expected = kept[:, :, [0, 0, 0, 1, 1, 1]].flatten(2)  # (B, 1, C)
    checks.close(out, expected, "the output for the first word, without the last layer,")


@task("groups", 0.125)
def test_pieces_give_what_the_whole_gives_with_groups(student):
    """With 6 heads that ask and 2 that are kept, too, a text read in pieces gets the outputs of the whole text."""
    attention = fill_all(student.GroupedQueryAttention(24, 6, 2).double())
    pieces_equal_the_whole(attention, torch.randn(3, 7, 24).double())


READY_MADE = (
    "torch.nn.functional.scaled_dot_product_attention",
    "torch.nn.MultiheadAttention",
    "torch.nn.functional.multi_head_attention_forward",
)


def some_attention(*leading, T, S, D, E):
    """Queries, keys and values in float64."""
    sizes = ((T, D), (S, D), (S, E))
    return [torch.randn(*leading, *size, dtype=torch.float64) for size in sizes]


@task("blocks", 0.25, forbids=READY_MADE)
def test_blocks_by_hand(student):
    """Scores of ln 1, ln 3 and ln 6 and values of 10, 20 and 30 give 25, in blocks of one, two or three."""
    q, k = torch.ones(1, 1), torch.tensor([[1.0], [3.0], [6.0]]).log()
    v = torch.tensor([[10.0], [20.0], [30.0]])
    for block in (2, 1, 3):
        output = student.blockwise_attention(q, k, v, block)
        checks.close(output, torch.tensor([[25.0]]), f"the output in blocks of {block}", atol=1e-4)


@task("blocks", 0.5, forbids=(*READY_MADE, "torch.Tensor[1000]"))
def test_blocks_give_what_the_whole_table_gives(student):
    """For blocks of every size, also for scores of thousands, the output is that of PyTorch, without the table."""
    q, k, v = some_attention(2, T=37, S=31, D=5, E=3)
    for scale, block, size in ((1.0, 2, ""), (3000.0, 4, " for large scores")):
        expected = nn.functional.scaled_dot_product_attention(scale * q, k, v)
        output = student.blockwise_attention(scale * q, k, v, block)
        checks.close(output, expected, f"the output in blocks of {block}{size}")


@task("blocks", 0.25, needs="test_blocks_by_hand", forbids=(*READY_MADE, "torch.Tensor[1500]"))
def test_blocks_with_a_mask(student):
    """With a mask (T, S), each query attends to what it may attend to."""
    q, k, v = some_attention(2, T=37, S=31, D=5, E=3)
    mask = torch.rand(37, 31) < 0.5
    mask[:, :7] = True
    expected = nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    checks.close(student.blockwise_attention(q, k, v, 7, mask), expected, "the output in blocks of 7 with a mask")


@task("blocks", 0.25)
def test_bytes_by_hand(student):
    """Four queries and six keys of two numbers move 272 bytes with the table and 208 in blocks of three."""
    checks.equal(student.bytes_moved(4, 6, 2, 3, 2), (272, 208), "bytes_moved(4, 6, 2, 3, 2)")
