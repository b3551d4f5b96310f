"""Key-value cache: the tests that only graders see."""

import random

import pytest
import torch
from torch import nn

from autograder import checks

B, T, C, H, D = 3, 7, 20, 4, 5
CARDS = ("batch", "head", "word", "number")


def text(T=T, B=B):
    return torch.randn(B, T, C, dtype=torch.float64)  # (B, T, C)


def box(S, B=B):
    """Keys and values that no layer has made."""
    return tuple(torch.randn(2, B, H, S, D, dtype=torch.float64))  # twice (B, H, S, D)


def two(student, reference, n_heads=H):
    """The student's layer and ours, with the same fresh weights."""
    ours = checks.randomize(reference.CachedAttention(C, n_heads).double(), scale=0.4)
    theirs = student.CachedAttention(C, n_heads).double()
    checks.copy_parameters(ours, theirs)
    return theirs, ours


def call(attention, x, cache=None):
    """The answer and the cache, once it is clear that they are one and the other."""
    out, cache = checks.unpack(attention(x.clone(), cache), ("out", "cache"))
    keys, values = checks.unpack(cache, ("keys", "values"), "the cache")
    return out, (keys, values)


def in_pieces(attention, x, sizes, cache=None):
    """Reads x piece by piece, and puts the answers side by side."""
    answers = []
    for piece in x.split(sizes, dim=1):
        out, cache = call(attention, piece, cache)
        answers.append(out)
    return answers, cache


def pieces_agree(attention, x, whole, sizes):
    """Each piece gets the answers that its words have in the whole text."""
    begin = 0
    for size, out in zip(sizes, in_pieces(attention, x, sizes)[0]):
        what = f"the answer for a piece of {size} after {begin} words"
        checks.close(out, whole[:, begin : begin + size], what)
        begin += size


def random_sizes(T):
    """Pieces of random sizes, T words together."""
    cuts = sorted(random.sample(range(1, T), 3))
    return [end - begin for begin, end in zip([0, *cuts], [*cuts, T])]


class Memory(nn.Module):
    """What it says next depends on every word heard, on its place, and on how many there were. It is never sure."""

    VOCABULARY = 23

    def __init__(self):
        super().__init__()
        self.heard, self.pasts = [], []

    def forward(self, ids, cache=None):
        old = ids[:, :0] if cache is None else cache  # (B, past)
        self.heard.append(ids.clone())
        self.pasts.append(old.shape[1])
        every = torch.cat([old, ids], dim=1)  # (B, S)
        said = self.after(every)[:, old.shape[1] :]  # (B, T)
        return nn.functional.one_hot(said, self.VOCABULARY).float(), every

    def after(self, every):
        places = torch.arange(1, every.shape[1] + 1)  # (S,)
        return (places * (every + 5)).cumsum(dim=1) % self.VOCABULARY  # (B, S)

    def continued(self, ids, new):
        for _ in range(new):
            ids = torch.cat([ids, self.after(ids)[:, -1:]], dim=1)
        return ids


def prompt(T=5, B=B):
    return torch.randint(Memory.VOCABULARY, (B, T))


# Part 1: the mask


@pytest.mark.part("mask")
@pytest.mark.points(1)
def test_masks_of_many_sizes(student, reference):
    """Whatever their number, new words hear all old ones, themselves, and the new ones before them."""
    for new, past in ((5, 0), (2, 7), (4, 3), (3, 1), (random.randint(2, 6), random.randint(2, 9))):
        expected = reference.causal_mask(new, past)
        checks.equal(
            student.causal_mask(new, past),
            expected,
            f"causal_mask({new}, {past})",
            axes=("new word", "any word"),
        )


@pytest.mark.part("mask")
@pytest.mark.points(0.25)
def test_mask_of_a_single_word(student):
    """A single new word may hear everybody: all old words and itself."""
    for past in (0, 1, 6):
        expected = torch.ones(1, past + 1, dtype=torch.bool)
        checks.equal(
            student.causal_mask(1, past), expected, f"causal_mask(1, {past})", axes=("new word", "any word")
        )


# Part 2: attention


@pytest.mark.part("attention")
@pytest.mark.points(0.5)
@pytest.mark.needs("test_the_four_layers")
def test_whole_text_equals_pytorch(student, reference):
    """Without a cache, with one head and with four, the answers are those of PyTorch's own causal attention."""
    for n_heads in (1, H):
        theirs, ours = two(student, reference, n_heads)
        layer = nn.MultiheadAttention(C, n_heads, bias=False, batch_first=True).double()
        with torch.no_grad():
            layer.in_proj_weight.copy_(torch.cat([ours.query.weight, ours.key.weight, ours.value.weight]))
            layer.out_proj.weight.copy_(ours.proj.weight)
        x = text()
        to_come = torch.ones(T, T, dtype=torch.bool).triu(1)  # (T, T)
        expected, _ = layer(x, x, x, attn_mask=to_come, need_weights=False)
        checks.close(call(theirs, x)[0], expected, f"the answer for a whole text with n_heads={n_heads}")


@pytest.mark.part("attention")
@pytest.mark.points(0.5)
@pytest.mark.needs("test_the_four_layers", "test_the_cache_grows")
def test_every_split_gives_the_same(student, reference):
    """Cut a text anywhere, into two pieces or many: the answers are those of the whole text."""
    theirs, ours = two(student, reference)
    x = text()
    whole, _ = ours(x)
    for first in range(1, T):
        pieces_agree(theirs, x, whole, [first, T - first])
    pieces_agree(theirs, x, whole, [1] * T)
    pieces_agree(theirs, x, whole, random_sizes(T))


@pytest.mark.part("attention")
@pytest.mark.points(0.5)
@pytest.mark.needs("test_the_four_layers", "test_the_cache_grows")
def test_cache_holds_keys_and_values_of_all_words(student, reference):
    """The cache holds the key and the value of each word in the text's order, and old entries never change."""
    theirs, ours = two(student, reference)
    x = text(T + 4)
    cache, begin = None, 0
    for size in (T, 1, 3):
        piece = x[:, begin : begin + size]
        begin += size
        old, (_, cache) = cache, call(theirs, piece, cache)
        _, expected = ours(x[:, :begin])
        for i, name in enumerate(("keys", "values")):
            checks.close(cache[i], expected[i], f"the {name} after {begin} words", axes=CARDS)
            if old is not None:
                kept = checks.tensor(cache[i])[:, :, : old[i].shape[2]]
                checks.close(kept, old[i], f"the old {name} after {size} more", axes=CARDS, atol=0, rtol=0)


@pytest.mark.part("attention")
@pytest.mark.points(0.5)
@pytest.mark.needs("test_the_four_layers")
def test_the_cache_that_comes_in_is_heard(student, reference):
    """The words listen to the keys and values in the cache that is handed in, whoever wrote them there."""
    theirs, ours = two(student, reference)
    for size, past in ((2, 4), (1, 5), (3, 1), (4, 9)):
        x, cache = text(size), box(past)
        expected, _ = ours(x, cache)
        what = f"the answer for {size} words after a strange cache of {past}"
        checks.close(call(theirs, x, cache)[0], expected, what)


@pytest.mark.part("attention")
@pytest.mark.points(0.25)
@pytest.mark.needs("test_the_four_layers", "test_the_cache_grows")
def test_two_continuations_of_one_beginning(student, reference):
    """A text can be continued in two ways from one cache: neither disturbs the other, nor another text."""
    theirs, ours = two(student, reference)
    begin, ends = text(4), (text(3), text(2))
    _, cache = in_pieces(theirs, begin, [3, 1])
    before = [kept.detach().clone() for kept in cache]
    boxes = []
    for end in ends:
        _, kept = call(theirs, end, cache)
        boxes.append(kept)
    for i, name in enumerate(("keys", "values")):
        checks.close(
            cache[i], before[i], f"the {name} handed in, after the calls", axes=CARDS, atol=0, rtol=0
        )
    last = text(1)
    for end, kept in zip(ends, boxes):
        expected, _ = ours(torch.cat([begin, end, last], dim=1))
        what = f"the answer for one more word after the continuation of {end.shape[1]}"
        checks.close(call(theirs, last, kept)[0], expected[:, -1:], what)
    other = text(3)
    checks.close(call(theirs, other)[0], ours(other)[0], "the answer for another text, without a cache")
    checks.input_untouched(lambda *inputs: theirs(inputs[0], inputs[1:]), text(2), *box(3))


@pytest.mark.part("attention")
@pytest.mark.points(0.25)
@pytest.mark.needs("test_the_four_layers")
def test_rows_do_not_mix(student, reference):
    """Each row of the batch listens to its own cache, and is answered as if it were alone."""
    theirs, _ = two(student, reference)
    x, cache = text(2), box(5)
    together = checks.tensor(call(theirs, x, cache)[0])
    for row in range(B):
        one = slice(row, row + 1)
        alone = call(theirs, x[one], tuple(kept[one] for kept in cache))[0]
        checks.close(alone, together[one], "the answer for one row alone")


@pytest.mark.part("attention")
@pytest.mark.points(0.25)
@pytest.mark.needs("test_the_four_layers", "test_the_cache_grows")
def test_gradients_reach_earlier_pieces(student, reference):
    """Read in pieces or as a whole, a text teaches the same: words and weights get the same gradients."""
    theirs, ours = two(student, reference)
    x, weight = text(), text()
    theirs_x, ours_x = x.clone().requires_grad_(), x.clone().requires_grad_()
    answers, _ = in_pieces(theirs, theirs_x, [3, 1, 3])
    (torch.cat(answers, dim=1) * weight).sum().backward()
    (ours(ours_x)[0] * weight).sum().backward()
    checks.close(theirs_x.grad, ours_x.grad, "the gradient of the words")
    for name, parameter in ours.named_parameters():
        layer = getattr(theirs, name.partition(".")[0])
        checks.close(layer.weight.grad, parameter.grad, f"the gradient of {name}", axes=("row", "column"))


@pytest.mark.part("attention")
@pytest.mark.points(0.25)
@pytest.mark.needs("test_the_cache_grows")
def test_number_type_is_kept(student):
    """A layer in float32 answers in float32, one in float64 in float64, and the cache has that type, too."""
    for dtype in (torch.float32, torch.float64):
        attention = student.CachedAttention(C, H).to(dtype)
        out, cache = call(attention, text(4).to(dtype))
        out, cache = call(attention, text(2).to(dtype), cache)
        checks.dtype(out, dtype, "the answer")
        for name, kept in zip(("keys", "values"), cache):
            checks.dtype(kept, dtype, f"the {name} of the cache")


# Part 3: writing


@pytest.mark.part("writing")
@pytest.mark.points(0.5)
def test_every_word_heard_counts(student):
    """For a model whose next word depends on all words and their places, every row of the text is right."""
    for rows, length, new in ((3, 5, 7), (2, 1, 4), (1, 6, 1)):
        ids = prompt(length, rows)
        expected = Memory().continued(ids, new)
        written = student.generate(Memory(), ids.clone(), new)
        checks.equal(written, expected, f"the text of {length} and {new} more words", axes=("row", "word"))


@pytest.mark.part("writing")
@pytest.mark.points(0.25)
@pytest.mark.needs("test_every_word_heard_counts")
def test_long_prompts_are_heard_to_the_end(student):
    """A prompt of hundreds of words is heard from the first to the last."""
    ids = prompt(random.randint(1100, 1300), 2)
    written = student.generate(Memory(), ids.clone(), 3)
    expected = Memory().continued(ids, 3)
    checks.equal(written, expected, "the text of a long prompt and 3 more words", axes=("row", "word"))


@pytest.mark.part("writing")
@pytest.mark.points(0.25)
def test_model_stays_in_its_mode(student):
    """A model that is in training mode when it begins to write is in training mode afterwards; the same for eval."""
    for training, mode in ((True, "training"), (False, "eval")):
        model = Memory().train(training)
        student.generate(model, prompt(), 3)
        checks.true(model.training == training, f"The model was in {mode} mode; after writing it is not.")


@pytest.mark.part("writing")
@pytest.mark.points(0.5)
def test_each_call_gets_the_newest_cache(student):
    """At each call the model gets what it has not heard yet, and the cache of the call before."""
    for length, new in ((5, 4), (1, 3)):
        model, ids = Memory(), prompt(length)
        student.generate(model, ids.clone(), new)
        checks.true(
            len(model.heard) >= new, f"For {new} new words the model was called {len(model.heard)} times."
        )
        for i in range(new):
            begin = 0 if i == 0 else length + i - 1
            checks.equal(model.pasts[i], begin, f"the number of words in the cache of call {i + 1}")
            checks.equal(
                model.heard[i].shape[1], length if i == 0 else 1, f"the number of words in call {i + 1}"
            )


@pytest.mark.part("writing")
@pytest.mark.points(0.5)
def test_prompt_stays_as_it_is(student):
    """The prompt keeps its values and stands at the beginning of the text; with no new words it is the text."""
    ids = prompt()
    checks.input_untouched(lambda ids: student.generate(Memory(), ids, 3), ids)
    written = checks.tensor(student.generate(Memory(), ids.clone(), 3), "the text")
    checks.equal(written[:, :5], ids, "the beginning of the text", axes=("row", "word"))
    checks.equal(
        student.generate(Memory(), ids.clone(), 0), ids, "the text with no new words", axes=("row", "word")
    )
