"""Key-value cache: the tests that only graders see."""

import random

import torch
from torch import nn

from autograder import checks, task

B, T, C, H, D = 3, 7, 20, 4, 5
CACHE = ("batch", "head", "word", "number")
SINGLE = {"atol": 1e-4, "rtol": 1e-4}  # float32 has seven digits


def text(T=T, B=B):
    return torch.randn(B, T, C)  # (B, T, C)


def strange_cache(S, B=B):
    """Keys and values that no layer has made."""
    return tuple(torch.randn(2, B, H, S, D))  # twice (B, H, S, D)


def fresh(student, n_heads=H):
    """The student's layer, with fresh weights."""
    return checks.randomize(student.CachedAttention(C, n_heads), scale=0.4)


def two(student, reference):
    """The student's layer and ours, with the same fresh weights."""
    ours = checks.randomize(reference.CachedAttention(C, H), scale=0.4)
    theirs = student.CachedAttention(C, H)
    checks.copy_parameters(ours, theirs)
    return theirs, ours


def call(attention, x, cache=None):
    """The output and the cache, once it is clear that they are one and the other."""
    out, cache = checks.unpack(attention(x.clone(), cache), ("out", "cache"))
    keys, values = checks.unpack(cache, ("keys", "values"), "the cache")
    return out, (keys, values)


def in_pieces(attention, x, sizes):
    """Reads x piece by piece: the outputs, and the last cache."""
    outputs, cache = [], None
    for piece in x.split(sizes, dim=1):
        out, cache = call(attention, piece, cache)
        outputs.append(out)
    return outputs, cache


def pieces_agree(attention, x, whole, sizes):
    """Each piece gets the outputs that its words have in the whole text."""
    begin = 0
    for size, out in zip(sizes, in_pieces(attention, x, sizes)[0]):
        what = f"the output for a piece of {size} after {begin} words"
        checks.close(out, whole[:, begin : begin + size], what)
        begin += size


def by_pytorch(x, n_heads, query, key, value, proj):
    """PyTorch's own causal attention for x (B, T, C) and these weights (C, C), without its class to fill."""
    x = x.transpose(0, 1)  # (T, B, C)
    rows = torch.cat([query, key, value]).detach()  # (3 C, C)
    future = torch.ones(len(x), len(x), dtype=torch.bool).triu(1)  # (T, T)
    no_biases = {"in_proj_bias": None, "bias_k": None, "bias_v": None, "out_proj_bias": None}
    out, _ = nn.functional.multi_head_attention_forward(
        x, x, x, x.shape[-1], n_heads, rows, **no_biases, add_zero_attn=False, dropout_p=0.0,
        out_proj_weight=proj.detach(), attn_mask=future, need_weights=False,
    )  # fmt: skip
    return out.transpose(0, 1)


def words_differ(out):
    """Where all outputs are equal, pieces agree with the whole for no good reason."""
    out = checks.tensor(out)
    checks.true(not torch.equal(out[:, 1:], out[:, :-1]), "All words of a text get the same output.")


def gradients_agree(attention, x):
    """Read in pieces or as a whole, x (B, 7, C) gives the same gradients, and the outputs change as these say."""
    own, weight = x.clone().requires_grad_(), torch.randn_like(x)
    sources = [own, *attention.parameters()]
    names = ["the words", *(name for name, _ in attention.named_parameters())]
    of_whole = checks.gradients_predict(lambda: call(attention, own)[0], *sources, cotangent=weight)
    total = (torch.cat(in_pieces(attention, own, [3, 1, 3])[0], dim=1) * weight).sum()
    of_pieces = torch.autograd.grad(total, sources, materialize_grads=True)
    for name, whole, pieces in zip(names, of_whole, of_pieces):
        checks.true(bool(whole.any()), f"No gradient reaches {name}.")
        checks.close(pieces, whole, f"the gradient of {name}, read in pieces and compared with the whole text,")


def number_type_stays(attention, x):
    """A new layer, in float32, reads x (B, 6, C) in two pieces; then the same in float64."""
    outputs = []
    for dtype in (torch.float32, torch.float64):
        if dtype is torch.float64:
            attention.double()
        outs, cache = in_pieces(attention, x.to(dtype), [4, 2])
        checks.dtype(outs[-1], dtype, "the output")
        for name, kept in zip(("keys", "values"), cache):
            checks.dtype(kept, dtype, f"the {name} of the cache")
        outputs.append(outs[-1].double())
    checks.close(*outputs, "the output in float32, compared with the one in float64,", atol=1e-4)
    words_differ(outputs[1])


def random_sizes(T):
    """Two pieces of random sizes, T words together."""
    first = random.randrange(1, T)
    return [first, T - first]


class Memory(nn.Module):
    """What it predicts depends on every word, on its position, and on the number of words. It is never sure."""

    VOCABULARY = 23

    def __init__(self):
        super().__init__()
        self.read, self.pasts = [], []

    def forward(self, ids, cache=None):
        old = ids[:, :0] if cache is None else cache  # (B, past)
        self.read.append(ids.clone())
        self.pasts.append(old.shape[1])
        every = torch.cat([old, ids], dim=1)  # (B, S)
        predicted = self.after(every)[:, old.shape[1] :]  # (B, T)
        return 1e-3 * nn.functional.one_hot(predicted, self.VOCABULARY).float(), every

    def after(self, every):
        positions = torch.arange(1, every.shape[1] + 1)  # (S,)
        return (positions * (every + 5)).cumsum(dim=1) % self.VOCABULARY  # (B, S)

    def continued(self, ids, new):
        for _ in range(new):
            ids = torch.cat([ids, self.after(ids)[:, -1:]], dim=1)
        return ids


def prompt(T=5, B=B):
    return torch.randint(Memory.VOCABULARY, (B, T))


# Part 1: the mask


@task("mask", 1,
      promise="What T new words after past old ones may attend to: booleans (T, past + T), for any T >= 1 and past >= 0.")
def test_masks_of_many_sizes(student, reference):
    """Whatever their number, new words attend to all old ones, to themselves, and to the new ones before them."""
    sizes = (random.randint(2, 6), random.randint(7, 9)), (150, 0), (3, 5000)
    for new, past in sizes:
        expected = reference.causal_mask(new, past)
        mask = checks.tensor(student.causal_mask(new, past), f"causal_mask({new}, {past})")
        checks.equal(
            mask != 0,
            expected,
            f"causal_mask({new}, {past})",
            axes=("new word", "any word"),
        )


@task("mask", 0.25, promise=('True means "may attend to".', "itself, word 1 to two words, and so on."))
def test_mask_of_a_single_word(student):
    """A single new word may attend to all old words and to itself."""
    for past in (0, random.randrange(1, 60)):
        expected = torch.ones(1, past + 1, dtype=torch.bool)
        mask = checks.tensor(student.causal_mask(1, past), f"causal_mask(1, {past})")
        checks.equal(mask != 0, expected, f"causal_mask(1, {past})", axes=("new word", "any word"))


# Part 2: attention


@task("attention", 1, needs="test_the_four_layers", promise=(
    "Causal attention with several heads",
    "Head h works with the features h·D up to (h+1)·D - 1 of queries, keys and values",
    "All is the same in training and in eval",
))
def test_whole_text_equals_pytorch(student):
    """Without a cache, with one head and with four, the outputs are those of PyTorch's own causal attention."""
    for n_heads, mode in ((1, "eval"), (H, "training")):
        attention, x = fresh(student, n_heads), text()
        layers = attention.query, attention.key, attention.value, attention.proj
        expected = by_pytorch(x, n_heads, *(layer.weight for layer in layers))
        out, _ = call(attention.train(mode == "training"), x)
        what = f"the output for a whole text with n_heads={n_heads} in {mode}"
        checks.close(out, expected, what, **SINGLE)


@task("attention", 0.5, needs="test_the_cache_grows", promise=(
    "cut a text into pieces anywhere",
    "you must get the outputs of the whole text at once.",
    "All is the same in training and in eval",
))
def test_every_split_gives_the_same(student):
    """Cut a text anywhere, into two pieces or many: the outputs are those of the whole text, in training and in eval."""
    attention = fresh(student).double()
    x = text(19, B=2).double()
    whole = checks.tensor(call(attention, x)[0])
    words_differ(whole)
    pieces_agree(attention, x, whole, random_sizes(19))
    attention.eval()
    pieces_agree(attention, x, whole, [1, 7, 8, 3])


@task("attention", 0.25, needs=("test_the_four_layers", "test_the_cache_grows"),
      promise="both (B, H, S, D): the old entries exactly as they were, then the new ones")
def test_cache_holds_keys_and_values_of_all_words(student, reference):
    """The cache holds the key and the value of each word in the text's order, and old entries never change."""
    theirs, ours = two(student, reference)
    x = text(T + 4)
    _, expected = ours(x)
    cache, begin = None, 0
    for size in (T, 1, 3):
        piece = x[:, begin : begin + size]
        begin += size
        old, (_, cache) = cache, call(theirs, piece, cache)
        for i, name in enumerate(("keys", "values")):
            wanted = expected[i][:, :, :begin]
            checks.close(cache[i], wanted, f"the {name} after {begin} words", axes=CACHE, **SINGLE)
            if old is not None:
                kept = checks.tensor(cache[i])[:, :, : old[i].shape[2]]
                checks.close(kept, old[i], f"the old {name} after {size} more", axes=CACHE, atol=0, rtol=0)


@task("attention", 0.25, needs="test_the_four_layers", promise=(
    "cache None, or what an earlier call returned, of any length",
    "the new ones are appended behind them.",
))
def test_the_cache_that_comes_in_is_used(student, reference):
    """The words attend to the keys and values in the cache that comes in, wherever they were made and however many."""
    theirs, ours = two(student, reference)
    cases = []
    for size, past, rows, training in ((3, 1, B, True), (2, 300, 1, False)):
        x, cache = text(size, rows), strange_cache(past, rows)
        out, _ = call(theirs.train(training), x, cache)
        cases.append((out, ours(x, cache)[0], f"the output for {size} words after a strange cache of {past}"))
    for case in cases:
        checks.close(*case, **SINGLE)


@task("attention", 0.25, needs="test_the_cache_grows", promise=(
    "So a text can be continued in two ways from the same point, and two conversations never get mixed up.",
    "x and the old cache keep their values.",
))
def test_two_continuations_of_one_beginning(student):
    """A text can be continued in two ways from one cache: neither disturbs the other, nor another text."""
    theirs = fresh(student)
    begin, ends, lasts = text(4), (text(3), text(2)), (text(1), text(2))
    _, cache = call(theirs, begin)
    before = [kept.detach().clone() for kept in cache]
    caches = [call(theirs, end, cache)[1] for end in ends]
    for i, name in enumerate(("keys", "values")):
        checks.close(
            cache[i], before[i], f"the {name} that came in, after the calls", axes=CACHE, atol=0, rtol=0
        )
    outs = []
    for last, kept in zip(lasts, caches):
        answer = checks.input_untouched(lambda x, *kept: theirs(x, kept), last, *kept)
        outs.append(checks.unpack(answer, ("out", "cache"))[0])
    # two texts of eight words, without a cache, after all that was read
    texts = [torch.cat([begin, end, last], dim=1) for end, last in zip(ends, lasts)]
    whole = checks.tensor(call(theirs, torch.cat(texts))[0])
    words_differ(whole)
    for last, out, expected in zip(lasts, outs, whole.split(B)):
        words = last.shape[1]
        what = f"the output for {words} more, after one of two continuations"
        checks.close(out, expected[:, -words:], what, **SINGLE)


@task("attention", 0.25, needs="test_the_four_layers",
      promise="forward: x (B, T, C), the T >= 1 new words; cache None, or what an earlier call returned")
def test_rows_do_not_mix(student, reference):
    """Each row of the batch attends to its own cache, and gets the output that it gets alone."""
    theirs, ours = two(student, reference)
    x, cache = text(2), strange_cache(5)
    together = ours(x, cache)[0]
    row = random.randrange(B)
    one = slice(row, row + 1)
    alone, _ = call(theirs, x[one], tuple(kept[one] for kept in cache))
    checks.close(alone, together[one], "the output for one row alone", **SINGLE)


@task("attention", 0.25, needs="test_the_cache_grows",
      promise="Nothing is detached: gradients also reach the words of earlier pieces.")
def test_gradients_reach_earlier_pieces(student):
    """Read in pieces or as a whole, a text gives the same gradients, for its words and for the weights."""
    gradients_agree(fresh(student).double(), text(B=2).double())


@task("attention", 0.5, needs="test_the_cache_grows", promise="out and cache have the module's number type.")
def test_number_type_is_kept(student):
    """A layer in float32 has its output and cache in float32, one in float64 in float64."""
    number_type_stays(student.CachedAttention(C, H), text(6))


# Part 3: writing


@task("writing", 0.25, promise=(
    "The model reads every word once: first the prompt, however long, then the newest word alone, with the newest cache.",
    "Continue each row of ids by max_new_tokens words, always taking the most likely one.",
))
def test_every_word_counts(student):
    """For a model whose next word depends on all words and their places, every row of the text is right."""
    for rows, length, new in ((3, 5, 3), (1, 1, 2)):
        ids = prompt(length, rows)
        expected = Memory().continued(ids, new)
        written = student.generate(Memory(), ids.clone(), new)
        checks.equal(written, expected, f"the text of {length} and {new} more words", axes=("row", "word"))


@task("writing", 0.25, needs="test_every_word_counts", promise="first the prompt, however long")
def test_long_prompts_are_read_to_the_end(student):
    """A prompt of more than a thousand words is read from the first to the last."""
    ids = prompt(random.randint(1100, 1300), 1)
    written = student.generate(Memory(), ids.clone(), 2)
    expected = Memory().continued(ids, 2)
    checks.equal(written, expected, "the text of a long prompt and 2 more words", axes=("row", "word"))


@task("writing", 0.25, needs="test_every_word_counts",
      promise="Nothing is kept from one call of generate to the next.")
def test_one_model_writes_two_texts(student):
    """A model that has written one text writes another one, and the same one again, as if it were its first."""
    model, again = Memory(), prompt(4)
    for ids, new in ((prompt(), 1), (again, 1), (again, 2)):
        written = student.generate(model, ids.clone(), new)
        checks.equal(written, Memory().continued(ids, new), "the text", axes=("row", "word"))


@task("writing", 0.5,
      promise="Its mode, training or eval, is the caller's business: afterwards it is what it was before.")
def test_model_stays_in_its_mode(student):
    """A model that is in training mode when it begins to write is in training mode afterwards; the same for eval."""
    for training, mode, new in ((True, "training", 2), (False, "eval", 1)):
        model = Memory().train(training)
        student.generate(model, prompt(), new)
        checks.true(model.training == training, f"The model was in {mode} mode; after writing it is not.")


@task("writing", 0.5,
      promise="first the prompt, however long, then the newest word alone, with the newest cache.")
def test_each_call_gets_the_newest_cache(student):
    """At each call the model gets what it has not read yet, and the cache of the call before."""
    for length, new in ((5, 3), (1, 2)):
        model, ids = Memory(), prompt(length)
        student.generate(model, ids.clone(), new)
        checks.true(
            len(model.read) >= new, f"For {new} new words the model was called {len(model.read)} times."
        )
        for i in range(new):
            begin = 0 if i == 0 else length + i - 1
            checks.equal(model.pasts[i], begin, f"the number of words in the cache of call {i + 1}")
            checks.equal(
                model.read[i].shape[1], length if i == 0 else 1, f"the number of words in call {i + 1}"
            )


@task("writing", 0.5,
      promise="they keep their values. Returns (B, T + max_new_tokens): ids, and the new words after them.")
def test_prompt_stays_as_it_is(student):
    """The prompt keeps its values and stands at the beginning of the text; with no new words it is the text."""
    ids = prompt()
    written = checks.input_untouched(lambda ids: student.generate(Memory(), ids, 1), ids)
    written = checks.tensor(written, "the text")
    checks.equal(written[:, :5], ids, "the beginning of the text", axes=("row", "word"))
    checks.equal(
        student.generate(Memory(), ids.clone(), 0), ids, "the text with no new words", axes=("row", "word")
    )


# Part 4: groups

WIDTH, ASKING, KEPT, EACH = 24, 6, 2, 4


def wide(T=T, B=B):
    return torch.randn(B, T, WIDTH)  # (B, T, C)


def strange_narrow_cache(S, B=B):
    """Keys and values of two heads that no layer has made."""
    return tuple(torch.randn(2, B, KEPT, S, EACH, dtype=torch.float64))  # twice (B, G, S, D)


def grouped(student, kept=KEPT):
    """The student's layer with groups, with fresh weights."""
    return checks.randomize(student.GroupedQueryAttention(WIDTH, ASKING, kept), scale=0.4)


def without_groups(attention, kept, x):
    """PyTorch's own attention in which each head has the key and the value that it shares with its group."""
    groups = [head // (ASKING // kept) for head in range(ASKING)]
    narrow = [attention.key.weight, attention.value.weight]
    shared = [weight.unflatten(0, (kept, EACH))[groups].flatten(0, 1) for weight in narrow]  # (C, C)
    return by_pytorch(x, ASKING, attention.query.weight, *shared, attention.proj.weight)


@task("groups", 0.125,
      promise="How many bytes the keys and values of one text of `length` words take in all layers, a whole number.")
def test_bytes_of_many_caches(student, reference):
    """For any model and length, the number of bytes is two times the product of the five numbers, a whole number."""
    for case in (tuple(random.sample(range(3, 60), 5)), (80, 8, 128, 131_072, 1)):
        found = student.cache_bytes(*case)
        checks.true(isinstance(found, int), "cache_bytes(...) is not a whole number (an int).")
        checks.equal(found, reference.cache_bytes(*case), f"cache_bytes{case}")


@task("groups", 0.625, needs=("test_two_layers_are_narrow", "test_the_cache_is_narrow"), promise=(
    "head h of the queries uses kept head h // (n_heads / n_kv_heads).",
    "Kept head g works with the features g·D up to (g+1)·D - 1 of keys and values",
    "Scores are divided by √D.",
    "all is the same in training and in eval",
))
def test_any_number_of_groups_equals_pytorch(student):
    """With one group, with some, and with one for each head, the outputs are those of PyTorch with shared keys."""
    for kept, mode in ((1, "eval"), (3, "training"), (ASKING, "eval")):
        attention, x = grouped(student, kept), wide()
        expected = without_groups(attention, kept, x)
        out, _ = call(attention.train(mode == "training"), x)
        checks.close(out, expected, f"the output with {kept} kept heads in {mode}", **SINGLE)


@task("groups", 0.5, needs=("test_two_layers_are_narrow", "test_the_cache_is_narrow"), promise=(
    "forward: as in `CachedAttention`, but both parts of the cache are (B, n_kv_heads, S, D).",
    "cut a text into pieces anywhere",
))
def test_pieces_give_the_same_with_groups(student):
    """Cut a text anywhere: with groups, too, the outputs are those of the whole text."""
    attention = grouped(student).double()
    x = wide(9, B=2).double()
    whole = checks.tensor(call(attention, x)[0])
    words_differ(whole)
    pieces_agree(attention, x, whole, [1, *random_sizes(8)])


@task("groups", 0.375, needs=("test_two_layers_are_narrow", "test_the_cache_is_narrow"), promise=(
    "The old entries stay exactly as they were, and the cache that comes in keeps its values.",
    "two conversations never get mixed up.",
))
def test_narrow_cache_is_used_and_handed_on(student, reference):
    """The words attend to the narrow cache that comes in, and it goes out with their own keys and values behind it."""
    ours = checks.randomize(reference.GroupedQueryAttention(WIDTH, ASKING, KEPT).double(), scale=0.4)
    theirs = student.GroupedQueryAttention(WIDTH, ASKING, KEPT).double()
    checks.copy_parameters(ours, theirs)
    for size, past in ((2, 4), (3, 1)):
        x, cache = wide(size).double(), strange_narrow_cache(past)
        answer = checks.input_untouched(lambda x, *cache: theirs(x, cache), x, *cache)
        out, kept = checks.unpack(answer, ("out", "cache"))
        kept = checks.unpack(kept, ("keys", "values"), "the cache")
        expected, expected_cache = ours(x, cache)
        checks.close(out, expected, f"the output for {size} words after a strange cache of {past}")
        for i, name in enumerate(("keys", "values")):
            what = f"the {name} after a strange cache of {past} and {size} words"
            checks.close(kept[i], expected_cache[i], what, axes=CACHE)
            old = checks.tensor(kept[i])[:, :, :past]
            checks.close(old, cache[i], f"the old {name} after {size} more", axes=CACHE, atol=0, rtol=0)


@task("groups", 0.125, needs=("test_two_layers_are_narrow", "test_the_cache_is_narrow"),
      promise="Nothing is detached")
def test_gradients_reach_earlier_pieces_with_groups(student):
    """Read in pieces or as a whole, a text gives the same gradients, for its words and for the weights."""
    gradients_agree(grouped(student).double(), wide(B=2).double())


@task("groups", 0.125, needs=("test_two_layers_are_narrow", "test_the_cache_is_narrow"),
      promise="out and cache have the module's number type.")
def test_number_type_is_kept_with_groups(student):
    """A layer with groups has its output and cache in float32 when it is in float32, and in float64 when it is there."""
    number_type_stays(student.GroupedQueryAttention(WIDTH, ASKING, KEPT), wide(6))


# ------------------------------------------------------------------ attention in blocks

READY_MADE = (
    "torch.nn.functional.scaled_dot_product_attention",
    "torch.nn.MultiheadAttention",
    "torch.nn.functional.multi_head_attention_forward",
)


def whole_table(q, k, v, mask=None):
    """Attention as in 03: a query that may attend to nothing gets zeros."""
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    weights = torch.softmax(scores, dim=-1)
    return (weights if mask is None else weights.masked_fill(~mask, 0.0)) @ v


def some_attention(*leading, T=23, S=31, D=5, E=3, dtype=torch.float64):
    """Queries, keys and values."""
    sizes = ((T, D), (S, D), (S, E))
    return [torch.randn(*leading, *size, dtype=dtype) for size in sizes]


def blocks_agree(student, inputs, block, mask=None, how="", **tolerances):
    output = student.blockwise_attention(*inputs, block, mask)
    checks.close(output, whole_table(*inputs, mask), f"the output in blocks of {block}{how}", **tolerances)


def some_mask(*shape):
    """A random mask in which each query may attend to the first key of all."""
    mask = torch.rand(shape) < 0.4
    mask[..., 0] = True
    return mask


@task("blocks", 0.5, forbids=(*READY_MADE, "torch.Tensor[1150]"), promise=(
    "the same for every block size.",
    "with the same leading dimensions: none, a batch, or a batch and heads.",
    "No tensor that is made on the way is larger than the largest of the inputs, the output and (..., T, block).",
))
def test_blocks_of_any_size(student):
    """Blocks that divide S or do not, without a batch, with one, with heads: nothing changes, and no table is made."""
    blocks_agree(student, some_attention(2, 3, T=19, S=13, D=4, E=5), 6)
    larger = random.randrange(7, 60)
    for T, S, block in ((29, 6, 1), (29, 6, 6), (1, 6, larger), (23, 1, 1)):
        blocks_agree(student, some_attention(T=T, S=S, D=2, E=6), block, how=f" for {S} keys")


@task("blocks", 0.5, needs="test_blocks_by_hand", forbids=(*READY_MADE, "torch.Tensor[750]"), promise=(
    "mask: booleans that broadcast to (..., T, S), such as (T, S), (S,) or (T, 1), True where t may attend to s",
))
def test_masks_that_broadcast(student):
    """Masks of every shape that broadcasts to (..., T, S), also with a last axis of 1, mean what they mean in 03."""
    inputs = some_attention(2, 3, T=13, S=11, D=4, E=5)
    for shape in ((11,), (1, 11), (3, 1, 11), (2, 1, 13, 11)):
        blocks_agree(student, inputs, 6, some_mask(*shape), f" with a mask {shape}")
    for shape in ((13, 1), (1,), (3, 1, 1)):
        mask = torch.ones(shape, dtype=torch.bool)
        blocks_agree(student, inputs, 6, mask, f" with a mask {shape}")
    mask = torch.rand(2, 1, 13, 1) < 0.5
    blocks_agree(student, inputs, 6, mask, " with a mask (2, 1, 13, 1)")


@task("blocks", 0.5, needs="test_blocks_by_hand", forbids=(*READY_MADE, "torch.Tensor[1500]"), promise=(
    "A query that may attend to nothing gets zeros, and so does every query if S is 0.",
    "A query may be forbidden **every key of its first block**",
))
def test_queries_without_keys(student):
    """Where a block, or all of them, have no key for a query, nothing becomes NaN; without any key the output is 0."""
    q, k, v = some_attention(2, T=31, S=29)
    q = q * torch.tensor([1.0, 3000.0]).double()[:, None, None]  # the second text has large scores
    mask = some_mask(31, 29)
    mask[random.randrange(5), :26] = False
    mask[5 + random.randrange(5), :10] = False
    mask[10 + random.randrange(5), 7:] = False
    mask[15 + random.randrange(5)] = False
    blocks_agree(student, (q, k, v), 7, mask, " with a mask that leaves some queries without keys")
    nothing = q, k[:, :0], v[:, :0]
    output = student.blockwise_attention(*nothing, 3)
    checks.close(output, torch.zeros(2, 31, 3, dtype=torch.float64), "the output without any key")


@task("blocks", 0.5, needs="test_blocks_by_hand", forbids=(*READY_MADE, "torch.Tensor[2000]"),
      promise="Scores of ±10,000 do no harm")
def test_large_scores(student):
    """Scores of ±10,000, the largest of them first, last or in the middle, in float32: all stays finite."""
    rising = torch.arange(1, 30) / 29
    slopes = torch.stack([rising, rising.flip(0), rising.roll(14), torch.ones(29)])  # one for each text
    q, k, v = some_attention(2, 4, T=11, S=29, dtype=torch.float32)
    q = torch.ones_like(q) * torch.tensor([1.0, -1.0])[:, None, None, None]
    k = torch.ones_like(k) * slopes[:, :, None]
    inputs = [10_000 / 5**0.5 * q, k, v]  # all scores between -10,000 and 10,000
    blocks_agree(student, inputs, 10, how=" for scores of ±10,000", **SINGLE)


@task("blocks", 0.25, needs="test_blocks_by_hand", forbids=(*READY_MADE, "torch.Tensor[1200]"),
      promise="gradients flow back to q, k and v.")
def test_gradients_of_attention_in_blocks(student):
    """The gradients of q, k and v are those of the whole table, also where a query may attend to nothing."""
    inputs, mask = some_attention(2), some_mask(23, 31)
    mask[random.randrange(23)] = False
    checks.gradients_close(
        lambda q, k, v: student.blockwise_attention(q, k, v, 11, mask),
        lambda q, k, v: whole_table(q, k, v, mask),
        *inputs,
    )


@task("blocks", 0.25, needs="test_blocks_by_hand", forbids=(*READY_MADE, "torch.Tensor[1200]"), promise=(
    "The inputs keep their values, and the output has their number type (float32, float64).",
    "Raises ValueError that names block and its value if it is below 1.",
))
def test_types_inputs_and_refusals_in_blocks(student):
    """The number type stays, the inputs keep their values, and a block below 1 is refused."""
    for dtype in (torch.float32, torch.float64):
        inputs = some_attention(2, dtype=dtype)
        output = checks.input_untouched(lambda q, k, v: student.blockwise_attention(q, k, v, 11), *inputs)
        checks.dtype(output, dtype, "the output")
        checks.close(output, whole_table(*inputs), "the output in blocks of 11", atol=1e-4)
    for wrong in (0, -random.randrange(1, 9)):
        checks.raises(ValueError, student.blockwise_attention, *some_attention(T=2, S=3), wrong, naming=("block", wrong))


@task("blocks", 0.25, promise="The bytes that go from and to the large memory: with the whole table, and in blocks.")
def test_bytes_of_random_sizes(student, reference, seed):
    """For random sizes, also with a last block that is shorter, both numbers of bytes are those of the formulas."""
    block = random.randrange(3, 40)
    S = block * random.randrange(2, 12) + 1  # so that the last block has one key
    for size in (block, S, 1, S + block):
        T, D = (random.randrange(2, 500) for _ in range(2))
        sizes = (T, S, D, size, random.choice((1, 2, 4, 8)))
        checks.equal(student.bytes_moved(*sizes), reference.bytes_moved(*sizes), f"bytes_moved{sizes}")
