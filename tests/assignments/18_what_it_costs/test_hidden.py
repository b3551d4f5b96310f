"""What it costs: the tests that only graders see."""

import itertools
import math
import random

import torch
from torch import tensor

from autograder import checks, task

DTYPES = (torch.float64, torch.float32)
SAME_TYPE = "they are float32 or float64, and what comes out has the same number type."
UNTOUCHED = "No argument is modified."


def whole(number):
    """A count that came back as a float is the count, too, in tests that do not ask for its type."""
    return int(number) if isinstance(number, float) and number.is_integer() else number


def ids(words):
    """Words in a tensor or a tuple are words, too, in tests that do not ask for their type."""
    if isinstance(words, torch.Tensor):
        words = words.tolist()
    return [int(word) for word in words] if isinstance(words, (list, tuple)) else words


# Part 1: operations


def some_sizes():
    """Sizes of a GPT-2 that nobody has trained, each of its heads one number wide."""
    C = random.choice([5, 7, 11, 13])
    sizes = {"vocab_size": random.choice([17, 19, 23]), "n_positions": random.choice([97, 101, 103])}
    return {**sizes, "n_embd": C, "n_layer": random.choice([2, 3, 6]), "n_head": C}


@task("flops", 1, promise=(
    "The operations of all products when the model reads one text of T >= 1 tokens, with the logits of every token.",
    "The feed-forward part is 4C wide; the whole table of T × T scores is computed; nothing else is counted.",
))
def test_operations_of_other_models(student, reference, seed):
    """The operations are counted right for models and texts of any size, from one token on."""
    gpt2 = {"vocab_size": 50_257, "n_positions": 1024, "n_embd": 768, "n_layer": 12, "n_head": 12}
    for sizes, T in ((some_sizes(), 1), (some_sizes(), random.randint(29, 96)), (gpt2, random.randint(500, 1024))):
        found = student.forward_flops(student.GPT2Config(**sizes), T)
        expected = reference.forward_flops(reference.GPT2Config(**sizes), T)
        checks.equal(whole(found), expected, f"forward_flops of {sizes} and {T} tokens")


@task("flops", 0.125, promise="-> int:")
def test_operations_are_counted_in_ints(student, seed):
    """The number of operations is an int."""
    found = student.forward_flops(student.GPT2Config(**some_sizes()), random.randint(29, 96))
    checks.true(isinstance(found, int), "forward_flops(...) is no int.", public="forward_flops(...) is no int.")


@task("flops", 0.25, promise="After the last layer, each token gets its logits")
def test_one_more_word_and_one_more_layer(student, seed):
    """A further word of the vocabulary costs 2TC, whatever the number of layers; layers are all alike."""
    sizes, T = some_sizes(), random.randint(29, 96)

    def operations(**changes):
        return whole(student.forward_flops(student.GPT2Config(**{**sizes, **changes}), T))

    price = operations(vocab_size=sizes["vocab_size"] + 1) - operations()
    checks.equal(price, 2 * T * sizes["n_embd"], f"the price of one more word with {T} tokens")
    steps = [more - fewer for fewer, more in itertools.pairwise(operations(n_layer=n) for n in (1, 2, 3, 4))]
    checks.true(steps[0] > 0, "A further layer costs nothing.")
    checks.equal(steps, [steps[0]] * 3, "the prices of layers 2, 3 and 4")


SHARES = ("attention", "feed_forward")


@task("flops", 0.875, promise=(
    "Which shares of the operations of one layer are attention and feed-forward",
    "Attention includes its four projections. Logits belong to no layer. Both shares add up to 1.",
))
def test_shares_of_other_models(student, reference, seed):
    """The smaller and the larger share are right for short and long texts, and the same with any vocabulary."""
    for T in (1, random.randint(5, 40), random.randint(1000, 5000)):
        sizes = some_sizes()
        found = sorted(checks.unpack(student.shares(student.GPT2Config(**sizes), T), SHARES))
        expected = sorted(reference.shares(reference.GPT2Config(**sizes), T))
        for name, share, right in zip(("smaller", "larger"), found, expected):
            checks.close(share, right, f"the {name} share of {sizes} and {T} tokens")


@task("flops", 0.125, promise="(attention, feed_forward)")
def test_attention_comes_first(student, seed):
    """Of the two shares, the first is the one that grows with the text."""
    config = student.GPT2Config(**some_sizes())
    short, long = (checks.unpack(student.shares(config, T), SHARES)[0] for T in (3, random.randint(1000, 5000)))
    checks.true(short < long, f"The first share is {short} for 3 tokens and {long} for a long text.",
                public="The first share does not grow with the text.")


@task("flops", 0.375, promise="About how many operations a training takes, there and back")
def test_other_trainings(student, seed):
    """A training takes three times as much as two operations for each parameter and token."""
    for scale in (10, 10**5, 10**8):
        parameters, tokens = random.randint(scale, 9 * scale), random.randint(3 * scale, 8 * scale)
        expected = 6 * parameters * tokens
        found = whole(student.training_flops(parameters, tokens))
        checks.equal(found, expected, f"training_flops({parameters}, {tokens})")


# Part 2: bytes or operations


def some_step():
    """Bytes of weights and cache, operations, bandwidth and peak, of any size."""
    weights, cache = random.randint(10**8, 10**11), random.randint(10**5, 10**9)
    return weights, cache, random.randint(10**8, 10**12), random.randint(10**11, 10**13), random.randint(10**13, 10**15)


@task("decode", 0.75, promise="A step is over when both are done, so it takes as long as the slower of the two")
def test_steps_of_any_size(student, reference, seed):
    """A step takes as long as moving weights and cache, or as long as computing, whichever is longer."""
    weights, cache, flops, bw, peak = some_step()
    slow = math.ceil(peak * (weights + cache) / bw)  # as many operations as fit into the time of moving
    counts = {0: (slow // 7, 3 * slow), cache: (slow // 7, 3 * slow, flops), 40 * weights: (3 * slow, 90 * slow)}
    for cached, several in counts.items():
        for operations in several:
            step = weights, cached, operations, bw, peak
            checks.close(student.decode_seconds(*step), reference.decode_seconds(*step), f"decode_seconds{step}")


def batches_that_turn(count, cached):
    """Arguments for which the exact solution is no whole number, nor nearly one, and another one without the cache."""
    found = []
    while len(found) < count:
        weights, cache, flops, bw, peak = some_step()
        cache = cache if cached else 0
        gained = flops / peak - cache / bw
        if gained <= 0.02 * flops / peak:
            continue
        exact, without_cache = weights / bw / gained, weights / bw / (flops / peak)
        if 0.1 < exact % 1 < 0.9 and (not cached or int(exact) != int(without_cache)):
            found.append((weights, cache, flops, bw, peak))
    return found


@task("decode", 0.75, promise="The smallest batch B >= 1 for which computing takes at least as long as moving, an int.")
def test_other_batches_that_turn(student, reference, seed):
    """For models and cards of any size, with a cache and without, it is the smallest batch that computes long enough."""
    for step in (*batches_that_turn(3, True), *batches_that_turn(2, False)):
        found = whole(student.batch_where_it_turns(*step))
        checks.equal(found, reference.batch_where_it_turns(*step), f"batch_where_it_turns{step}")


@task("decode", 0.125, promise="for which computing takes at least as long as moving, an int.")
def test_a_batch_is_an_int(student, seed):
    """The batch is an int."""
    (step,) = batches_that_turn(1, True)
    found = student.batch_where_it_turns(*step)
    checks.true(isinstance(found, int), f"batch_where_it_turns{step} is no int.", public="The batch is no int.")


@task("decode", 0.125, promise="computing takes at least as long as moving")
def test_batches_that_turn_exactly(student, reference, seed):
    """If both times are equal for a batch, it is that one; and no batch is smaller than 1."""
    power = 2 ** random.randint(3, 6)
    for step in ((power * 64, 0, 64, 2, 2), (power * 64, 32, 64, 2, 2), (64, 0, 64, 4, 4), (64, 32, power * 128, 4, 4)):
        expected = reference.batch_where_it_turns(*step)
        checks.equal(whole(student.batch_where_it_turns(*step)), expected, f"batch_where_it_turns{step}")


@task("decode", 0.25,
      promise="Raises ValueError that names bytes_of_cache and its value if there is no such batch.")
def test_caches_that_are_too_large(student, seed):
    """If moving a user's cache takes as long as computing, or longer, a ValueError names bytes_of_cache and its value."""
    weights, flops = random.randint(10**3, 10**6), 2 ** random.randint(10, 20)
    for cache in (flops, 3 * flops + 1):
        naming = ("bytes_of_cache", cache)
        checks.raises(ValueError, student.batch_where_it_turns, weights, cache, flops, 2, 2, naming=naming)


# Part 3: numbers in a few bits


def some_table(M, K, dtype, scale=1.0):
    """Random numbers, a few of them far out."""
    x = torch.randn(M, K, dtype=dtype)
    return scale * torch.where(torch.rand(M, K) < 0.05, 20 * x, x)


def some_whole_numbers(M, K, group, dtype):
    """Whole numbers from -127 to 127 in an int8, and scales."""
    q = torch.randint(-127, 128, (M, K)).to(torch.int8)
    return q, 0.01 + torch.rand(M, K // group, dtype=dtype)


def same_but_for_halves(found, expected, exact, what):
    """Two tables of whole numbers are equal, but for those whose exact value is a half, or nearly one."""
    checks.shape(found, expected.shape, what, axes=("row", "column"))
    halves = ((exact % 1) - 0.5).abs() < 1e-4
    settled = torch.where(halves, expected.long(), checks.tensor(found).long())
    checks.equal(settled, expected.long(), what, axes=("row", "column"))


@task("quantise", 0.125, promise="Returns q (M, K), int8")
def test_whole_numbers_of_one_byte(student, seed):
    """Whole numbers come in an int8, whatever the number type of the table."""
    for dtype in DTYPES:
        q, _ = checks.unpack(student.quantise(some_table(5, 21, dtype), 4, 7), ("q", "scale"))
        checks.dtype(q, torch.int8, "q")


@task("quantise", 0.875, promise=(
    "Round each row of x (M, K) to whole numbers, in groups of `group` neighbours with one scale each.",
    "scale = (the largest absolute number of the group) / (2^(bits - 1) - 1), and q = x / scale, rounded to the nearest.",
    "and scale (M, K // group), of x's number type",
    SAME_TYPE,
    UNTOUCHED,
))
def test_tables_of_any_size(student, reference, seed):
    """Whole numbers and scales are right for any bits, any group, very small and very large numbers, in both types."""
    for dtype in DTYPES:
        for (M, K, group), bits, scale in (((5, 21, 3), 2, 1.0), ((3, 14, 14), 5, 1e-20), ((7, 22, 11), 8, 1e20)):
            x = some_table(M, K, dtype, scale)
            what = f"of {M} rows and {K} columns in {bits} bits and groups of {group}"
            answer = checks.input_untouched(student.quantise, x, bits, group, what="the call")
            q, scales = checks.unpack(answer, ("q", "scale"))
            expected, right = reference.quantise(x, bits, group)
            checks.dtype(scales, dtype, f"scale {what}")
            checks.close(scales / scale, right / scale, f"scale {what}", axes=("row", "group"), atol=1e-6)
            exact = x.double() / right.double().repeat_interleave(group, dim=1)
            same_but_for_halves(q, expected, exact, f"q {what}")


@task("quantise", 0.25, promise="A group of zeros has scale 1.")
def test_groups_of_zeros(student, reference, seed):
    """A group of zeros has scale 1 and whole numbers 0, also beside other groups."""
    for dtype in DTYPES:
        x = some_table(3, 12, dtype)
        x[random.randrange(3), 4:8] = 0
        x[0] = 0
        q, scales = checks.unpack(student.quantise(x, 4, 4), ("q", "scale"))
        expected, right = reference.quantise(x, 4, 4)
        checks.close(scales, right, "scale", axes=("row", "group"), atol=1e-6)
        same_but_for_halves(q, expected, x.double() / right.double().repeat_interleave(4, dim=1), "q")


@task("quantise", 0.25, promise=(
    "Raises ValueError that names bits and its value if bits is not from 2 to 8",
    "ValueError that names group and its value if group does not divide K.",
))
def test_bits_and_groups_that_are_refused(student, seed):
    """Fewer than 2 bits, more than 8, and groups that do not divide the columns are refused, by name and value."""
    x = some_table(3, 14, torch.float64)
    for bits, group, name in ((1, 7, "bits"), (9, 7, "bits"), (random.randint(10, 32), 7, "bits"), (4, 5, "group")):
        value = bits if name == "bits" else group
        checks.raises(ValueError, student.quantise, x, bits, group, naming=(name, value))


@task("quantise", 0.25, promise=(
    "The numbers that q (M, K) and scale (M, K // G) stand for: (M, K), of scale's number type.",
    UNTOUCHED,
))
def test_whole_numbers_stand_for_others(student, reference, seed):
    """Each whole number is multiplied by the scale of its group, in any number of groups and in both types."""
    for dtype, group in zip(DTYPES, (3, 7)):
        q, scales = some_whole_numbers(5, 21, group, dtype)
        found = checks.input_untouched(student.dequantise, q, scales, what="dequantise")
        checks.dtype(found, dtype, "the numbers")
        expected = reference.dequantise(q, scales)
        checks.close(found, expected, f"the numbers in groups of {group}", axes=("row", "column"))


@task("quantise", 0.25, promise="No number moves by more than half a scale")
def test_there_and_back(student, seed):
    """There and back, no number moves by more than half of its scale, and some numbers move."""
    for bits, group in ((2, 3), (4, 7), (8, 21)):
        x = some_table(5, 21, torch.float64)
        q, scales = checks.unpack(student.quantise(x, bits, group), ("q", "scale"))
        moved = (checks.tensor(student.dequantise(q, scales)) - x).abs()
        checks.shape(moved, (5, 21), "the numbers after there and back")
        allowed = x.abs().unflatten(1, (-1, group)).amax(dim=-1) / (2 ** (bits - 1) - 1) / 2
        most = float((moved - allowed.repeat_interleave(group, dim=1)).max())
        checks.true(most < 1e-9, f"In {bits} bits and groups of {group}, a number moves by more than half a scale.")
        checks.true(bool((moved > 1e-6).any()), f"In {bits} bits, no number has moved at all.")


@task("quantise", 0.5, promise=(
    "The products of x (..., K) and the rows that q (M, K) and scale (M, K // G) stand for: (..., M).",
    "x and scale have the same number type, and so has the result.",
    UNTOUCHED,
))
def test_products_of_any_shape(student, reference, seed):
    """The products are those of the full table, for one row, several, and several times several, in both types."""
    for dtype in DTYPES:
        for shape, group in (((), 3), ((4,), 7), ((2, 3), 21), ((2, 1, 3), 1)):
            q, scales = some_whole_numbers(5, 21, group, dtype)
            x = torch.randn(*shape, 21, dtype=dtype)
            found = checks.input_untouched(student.quantised_matmul, x, q, scales, what="quantised_matmul")
            checks.dtype(found, dtype, "the products")
            expected = x.double() @ reference.dequantise(q, scales.double()).T
            checks.close(found, expected.to(dtype), f"the products of x {tuple(x.shape)}", atol=2e-3, rtol=1e-5)


@task("quantise", 0.25, needs="test_products_of_any_shape", forbids="torch.Tensor[2232]",
      promise="no tensor of (M, K) numbers is made.")
def test_no_table_of_long_numbers(student, seed):
    """For 29 rows and 77 columns, no tensor of 29 · 77 = 2,233 numbers is made, also for a moment."""
    q, scales = some_whole_numbers(29, 77, 11, torch.float64)
    x = torch.randn(2, 3, 77, dtype=torch.float64)
    expected = x @ (q * scales.repeat_interleave(11, dim=1)).T
    checks.close(student.quantised_matmul(x, q, scales), expected, "the products")


# Part 4: guessing ahead


def some_probabilities(*shape, dtype=torch.float64):
    return (2 * torch.randn(*shape, dtype=dtype)).softmax(dim=-1)


def target_and_draft(R, V):
    """A draft that never guesses one of the words, and a target that draws one of two after each refusal."""
    while True:
        p, q = some_probabilities(R + 1, V), some_probabilities(R, V)
        q = q.scatter(1, torch.randint(V, (R, 1)), 0)
        q /= q.sum(dim=1, keepdim=True)
        if bool(((p[:R] > q).sum(dim=1) == 2).all()):
            return p, q


def middles(breaks):
    """The middles of all pieces into which these points cut the numbers from 0 to 1, each with its length."""
    points = sorted({0.0, 1.0, *(float(point) for point in breaks if 0 < point < 1)})
    return [((low + high) / 2, high - low) for low, high in itertools.pairwise(points) if high - low > 1e-12]


def exact_distributions(student, p, q):
    """What `speculative_step` writes at each place, without any die: (R + 1, V), each row divided by its sum.

    Every list of guesses counts as often as the draft makes it, every piece of the uniforms as long as it is.
    """
    R, V = q.shape
    left = (p[:R] - q).clamp(min=0)
    sums = [row.cumsum(dim=0) / row.sum() for row in (*p, *left)]
    last = middles(torch.cat(sums).tolist())
    written = torch.zeros(R + 1, V, dtype=torch.float64)
    for guesses in itertools.product(range(V), repeat=R):
        likely = math.prod(float(q[i, g]) for i, g in enumerate(guesses))
        if likely == 0:
            continue
        pieces = [middles([p[i, g] / q[i, g]]) for i, g in enumerate(guesses)]
        for chosen in itertools.product(*pieces, last):
            uniforms = tensor([middle for middle, _ in chosen], dtype=torch.float64)
            words = ids_of(student.speculative_step(p, q, tensor(guesses), uniforms), R, V)
            weight = likely * math.prod(length for _, length in chosen)
            for place, word in enumerate(words):
                written[place, word] += weight
    return written / written.sum(dim=1, keepdim=True).clamp(min=1e-12)


def ids_of(words, R, V):
    """The words of a step, once it is clear that they are 1 to R + 1 ids."""
    found = ids(words)
    checks.true(isinstance(found, list), "speculative_step returned no list.", public="What came back is no list.")
    told = f"{len(found)} words came back for {R} guesses; 1 to {R + 1} were expected."
    checks.true(1 <= len(found) <= R + 1, told, public=told)
    good = all(0 <= word < V for word in found)
    checks.true(good, f"The words {found} are no ids.", public="Some of the words are no ids from 0 to V - 1.")
    return found


@task("speculate", 1.25, needs="test_one_guess_by_hand", promise=(
    "The rule must leave the probabilities exactly as they are, those of the target alone.",
    "However bad the pupil is, the text is the teacher's.",
))
def test_the_words_are_the_targets(student, seed):
    """At each place that a step reaches, the words come exactly as often as the target wants them, whatever the draft."""
    for R, V in ((1, 4), (2, 3)):
        p, q = target_and_draft(R, V)
        what = f"the probabilities of the words, with {R} guesses,"
        checks.close(exact_distributions(student, p, q), p, what, axes=("place", "word"), atol=1e-9)


@task("speculate", 0.75, promise=(
    "guess i is accepted when uniforms[i] < p[i, g] / q[i, g], where g is guesses[i].",
    "At the first refusal, place i, the LAST uniform draws from max(0, p[i] - q[i]), made to sum to 1.",
    "If all are accepted, the last uniform draws from p[R].",
    UNTOUCHED,
))
def test_steps_with_any_number_of_guesses(student, reference, seed):
    """With none, one and several guesses, in both number types, exactly the right words are written."""
    for dtype in DTYPES:
        for R in (0, 1, 2, 3, 5, 5):
            p, q = some_probabilities(R + 1, 7, dtype=dtype), some_probabilities(R, 7, dtype=dtype)
            p[:R] = (p[:R] + 3 * q) / 4
            for guesses in torch.randint(7, (4, R)):
                uniforms = torch.rand(R + 1, dtype=dtype)
                step = p, q, guesses, uniforms
                found = ids_of(checks.input_untouched(student.speculative_step, *step, what="speculative_step"), R, 7)
                checks.equal(found, reference.speculative_step(*step), f"the words of a step with {R} guesses")


@task("speculate", 0.25, promise=(
    "guess i is accepted when uniforms[i] < p[i, g] / q[i, g]",
    "Should rounding have left only zeros there, it draws from p[i].",
    "A draw is the lowest id at which the sum of the probabilities from id 0 on exceeds the uniform.",
))
def test_steps_at_the_edge(student, reference, seed):
    """A uniform equal to the ratio refuses, a uniform of 0 draws nothing impossible, and nothing is left is no error."""
    V = random.randint(5, 9)
    p, q = torch.zeros(2, V, dtype=torch.float64), torch.zeros(1, V, dtype=torch.float64)
    p[0, 1], p[0, 3], q[0, 1], q[0, 2] = 0.25, 0.75, 0.5, 0.5
    p[1, 2], p[1, 4] = 0.5, 0.5
    short = p.clone()
    short[0] = q[0]
    short[0, 2] -= 2.0**-20
    cases = [(short, 2, 1 - 2.0**-22, 0.25), (p, 1, 0.5, 0.0), (p, 1, 0.4375, 0.0), (p, 1, 0.4375, 0.5)]
    cases.append((p, 2, 0.0, random.random()))
    for target, guess, first, last in cases:
        step = target, q, tensor([guess]), tensor([first, last], dtype=torch.float64)
        found = ids(student.speculative_step(*step))
        checks.equal(found, reference.speculative_step(*step), f"the words with the uniforms {first} and {last}")


@task("speculate", 0.25, promise=("Returns 1 to R + 1 ids, as ints.", "-> list[int]"))
def test_words_are_ints_in_a_list(student, seed):
    """The words are ints in a list, accepted and drawn ones."""
    for R in (0, 3):
        p = some_probabilities(R + 1, 7)
        found = student.speculative_step(p, p[:R].clone(), torch.randint(7, (R,)), torch.rand(R + 1, dtype=torch.float64))
        checks.true(isinstance(found, list), "The words are in no list.", public="The words are in no list.")
        for word in found:
            checks.true(isinstance(word, int), "One of the words is no int.", public="One of the words is no int.")


@task("speculate", 0.25, promise=(
    "How many words a step with R >= 0 guesses writes on average if each guess is accepted with probability a.",
    "Raises ValueError that names a and its value if a is not from 0 to 1.",
))
def test_words_of_other_steps(student, reference, seed):
    """The mean number of words is right from no guess to many, from 0 to 1; outside of that, a ValueError names a."""
    for a in (0.0, random.uniform(0.1, 0.4), random.uniform(0.5, 0.95), 1.0):
        for R in (0, random.randint(2, 9), 40):
            expected = reference.expected_tokens(a, R)
            checks.close(student.expected_tokens(a, R), expected, f"expected_tokens({a}, {R})")
    for a in (-0.25, 1.5):
        checks.raises(ValueError, student.expected_tokens, a, 4, naming=("a", a))
