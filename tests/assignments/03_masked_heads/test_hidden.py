"""Masked heads: the tests that only graders see."""

import random

import torch
from torch.nn import functional as F

from autograder import checks, task

READY_MADE = (
    "torch.nn.functional.scaled_dot_product_attention",
    "torch.nn.functional.multi_head_attention_forward",
    "torch.nn.MultiheadAttention",
    "torch._scaled_dot_product_attention_math",
    "torch._scaled_dot_product_flash_attention_for_cpu",
    "torch._native_multi_head_attention",
)


def queries_keys_values(*leading, T=5, S=7, D=4, E=3, dtype=torch.float32):
    """Fresh queries, keys and values: (..., T, D), (..., S, D), (..., S, E)."""
    sizes = ((T, D), (S, D), (S, E))
    return tuple(torch.randn(*leading, *size, dtype=dtype) for size in sizes)


def something_to_attend_to(*shape):
    """A random boolean mask in which every query (row) may attend to a key, and some may not attend to all."""
    mask = torch.rand(*shape) < 0.6
    key = torch.randint(shape[-1], shape[:-1])
    return mask.scatter(-1, key[..., None], True)


def output_and_weights(student, q, k, v, mask=None):
    """What attention returns, in whichever order: the order has a test of its own. Alone, it is the output."""
    answer = student.attention(q, k, v, mask)
    if isinstance(answer, torch.Tensor):
        return answer, None
    first, second = checks.unpack(answer, ("output", "weights"), "attention(q, k, v)")
    swapped = isinstance(first, torch.Tensor) and first.shape[-1:] == (k.shape[-2],) != (v.shape[-1],)
    return (second, first) if swapped else (first, second)


def same_answer(student, reference, q, k, v, mask=None, atol=1e-5):
    """Both give the same weights and the same output."""
    outer = {2: (), 3: ("batch",), 4: ("batch", "head")}[q.ndim]
    expected_output, expected_weights = reference.attention(q, k, v, mask)
    output, weights = output_and_weights(student, q, k, v, mask)
    checks.close(weights, expected_weights, "the weights", axes=(*outer, "query", "key"), atol=atol)
    checks.close(output, expected_output, "the output", axes=(*outer, "query", "number"), atol=atol)


def same_gradients(student, reference, mask):
    """Both send the same gradients from the output to queries, keys and values."""

    def output_of(module):
        return lambda q, k, v: output_and_weights(module, q, k, v, mask)[0]

    qkv = queries_keys_values(3)
    checks.gradients_close(output_of(student), output_of(reference), *qkv, what="the gradient", atol=1e-5)


def every_gradient_arrives(output, sources):
    """By its gradients, the output depends on each of the named tensors."""
    checks.finite(output, "the output")
    checks.true(
        output.requires_grad, "The output is cut off from its inputs: no gradient can flow back through it."
    )
    pull = torch.randn(output.shape, dtype=output.dtype)
    gradients = torch.autograd.grad(output, list(sources.values()), pull, allow_unused=True)
    for name, gradient in zip(sources, gradients, strict=True):
        arrives = gradient is not None and bool(gradient.any())
        checks.true(arrives, f"No gradient reaches {name}, so nothing there can be learned.")


def weights_follow_the_mask(student, q, k, v, mask):
    """Allowed keys have a weight above 0 and no others do; each query's weights add up to 1, or to 0."""
    allowed = mask.expand(*q.shape[:-1], k.shape[-2])
    axes = ("batch", "head", "query", "key")
    output, weights = output_and_weights(student, q, k, v.clone(), mask.clone())
    checks.shape(weights, tuple(allowed.shape), "the weights")
    checks.finite(weights, "the weights", axes=axes)
    checks.equal(weights > 0, allowed, "the table of weights above 0", axes=axes)
    whole = allowed.any(dim=-1).to(weights.dtype)
    checks.close(weights.sum(dim=-1), whole, "the sum of the weights", axes=axes[:-1])
    checks.close(output, weights.to(v.dtype) @ v, "the output", axes=(*axes[:-1], "number"), atol=1e-5)


def twins(student, reference, C, D, block_size):
    """The student's head and the solution's, with the same random weights."""
    expected = checks.randomize(reference.Head(C, D, block_size)).eval()
    head = student.Head(C, D, block_size)
    head.eval()
    checks.copy_parameters(expected, head)
    return head, expected


def some_head(student, C, D, block_size):
    """The student's head with random weights, the same ones in whatever order its matrices were made."""
    head = checks.randomize(student.Head(C, D, block_size))
    head.eval()
    return head


# Part 1: the causal mask


@task("mask", 1, promise=(
    "Which word may attend to which in a sentence of T words, as a boolean table of shape (T, T).",
    "Word $t$ may attend to word $s$ when $s$ comes no later than $t$.",
))
def test_mask_of_any_length(student, reference):
    """The mask is right for one word, for a few and for more than a hundred."""
    for T in (1, random.randint(4, 9), random.randint(103, 130)):
        mask = checks.tensor(student.causal_mask(T), f"causal_mask({T})")
        checks.equal(mask != 0, reference.causal_mask(T), f"causal_mask({T})")


@task("mask", 0.75, needs="test_mask_is_a_table_of_booleans",
      promise='Row t is the query, column s the key; True means "t may attend to s".')
def test_mask_makes_pytorch_causal(student):
    """In PyTorch's own attention, the mask lets each word attend to its whole past and to nothing later."""
    for T in random.sample(range(5, 60), 2):
        q, k, v = queries_keys_values(2, T=T, S=T)
        expected = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        actual = F.scaled_dot_product_attention(q, k, v, attn_mask=student.causal_mask(T))
        checks.close(actual, expected, "PyTorch's output under your mask")


# Part 2: scaled dot-product attention


@task("attention", 0.25, forbids=READY_MADE, promise=(
    "Returns the output (..., T, E) and the weights (..., T, S).",
    "The output is the sum of the values, weighted by them.",
    "None allows everything.",
))
def test_attention_without_a_mask(student, reference):
    """Without a mask every query attends to every key: weights and output are those of the formula."""
    q, k, v = queries_keys_values(3)
    same_answer(student, reference, q, k, v)


@task("attention", 1, forbids=READY_MADE,
      promise="A key that is masked gets a weight of exactly zero, and the weights of the others add up to 1.")
def test_attention_with_a_mask(student, reference):
    """Under a mask, forbidden keys have weight 0, and the weights of the others add up to 1."""
    q, k, v = queries_keys_values(3, D=11, E=2)
    same_answer(student, reference, q, k, v, something_to_attend_to(5, 7))


@task("attention", 0.5, needs=("test_attention_without_a_mask", "test_attention_with_a_mask"),
      forbids=READY_MADE,
      promise=(
          "The output is the sum of the values, weighted by them.",
          "leading dimensions: none, a batch, or a batch and heads.",
      ))
def test_attention_equals_pytorch(student, reference):
    """The output is the same as that of PyTorch's finished attention, with a mask and without."""
    sizes = {"T": 7, "S": 5, "D": 11, "E": 13}
    masks = [something_to_attend_to(2, 3, 7, 5), None, None, None]
    batches = [queries_keys_values(2, 3, **sizes), queries_keys_values(2, 3, **sizes)]
    large = [{"T": 103, "D": 67}, {"S": 107, "E": 71}]  # T or S: a loop over pairs ends in time
    batches += [queries_keys_values(**{"T": 2, "S": 3, "D": 4, "E": 5} | size) for size in large]
    for (q, k, v), mask in zip(batches, masks, strict=True):
        expected = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        assert torch.allclose(reference.attention(q, k, v, mask)[0], expected, atol=1e-5)
        output, _ = output_and_weights(student, q, k, v, mask)
        checks.close(output, expected, "the output", atol=1e-5)


@task("attention", 0.25, forbids=READY_MADE,
      promise="mask: booleans that broadcast to (..., T, S), such as (T, S) or (S,)")
def test_one_mask_serves_many(student):
    """A smaller mask (one for all sentences, all heads or all queries) is broadcast over the rest."""
    for shape in ((5, 7), (7,), (1, 7), (3, 1, 1, 7), (2, 5, 7)):
        q, k, v = queries_keys_values(3, 2)
        weights_follow_the_mask(student, q, k, v, something_to_attend_to(*shape))


@task("attention", 0.25, forbids=READY_MADE, promise="Your weights must survive scores of $\\pm 10\\,000$.")
def test_huge_scores_stay_finite(student, reference):
    """Scores of plus and minus ten thousand give weights, not NaN, and forbidden keys keep weight 0."""
    every_key = None
    only_low_scores = torch.tensor([[False, True, False, True, False]])
    only_the_lowest = torch.tensor([[False, True, False, False, False]])
    for mask in (every_key, only_low_scores, only_the_lowest):
        q, k, v = queries_keys_values(T=3, S=5, D=4)
        q[:, 0], q[2] = torch.tensor([200.0, -200.0, 0.0]), 0.0  # the last query scores 0 everywhere
        k[:, 0] = torch.tensor([100.0, -100.0, 50.0, -30.0, 0.0])  # scores from -10,000 to 10,000
        same_answer(student, reference, q, k, v, mask, atol=1e-5)


@task("attention", 0.2, forbids=READY_MADE, promise="A query that may attend to nothing gets zeros in both.")
def test_zeros_do_not_spread(student):
    """Queries that may attend to nothing get zeros, and the weights of all others still add up to 1."""
    q, k, v = queries_keys_values(2, 3)
    mask = something_to_attend_to(2, 1, 5, 7)
    mask[0, 0, random.randrange(5)] = False
    mask[1] = False
    weights_follow_the_mask(student, q, k, v, mask)


@task("attention", 0.15, needs="test_attention_without_a_mask", forbids=READY_MADE,
      promise="The inputs keep their values")
def test_attention_leaves_its_inputs_alone(student):
    """Attention reads its inputs and changes none of them."""
    checks.input_untouched(student.attention, *queries_keys_values(2), something_to_attend_to(5, 7))


@task("attention", 0.15, needs="test_attention_without_a_mask", forbids=READY_MADE,
      promise="both results have their number type (float32, float64).")
def test_attention_answers_in_the_number_type_of_its_inputs(student):
    """Output and weights have the number type of queries, keys and values, in float32 and in float64."""
    mask = something_to_attend_to(5, 7)
    for dtype in (torch.float32, torch.float64):
        output, weights = output_and_weights(student, *queries_keys_values(2, dtype=dtype), mask)
        checks.dtype(output, dtype, "the output")
        checks.dtype(weights, dtype, "the weights")


def learned_attention(student, leading, mask=None):
    """Gradients arrive at fresh queries, keys and values; returns the output, as a function, and these three."""
    names = ("the queries", "the keys", "the values")
    sources = {n: t.requires_grad_() for n, t in zip(names, queries_keys_values(*leading), strict=True)}

    def output():
        return output_and_weights(student, *sources.values(), mask)[0]

    every_gradient_arrives(output(), sources)
    return output, sources.values()


@task("attention", 1.85, forbids=READY_MADE,
      promise="Queries, keys and values are all learned, so gradients must flow back to all three.")
def test_attention_can_be_learned_from(student):
    """Gradients flow back from the output of a batch to queries, keys and values."""
    output, sources = learned_attention(student, (3,))
    checks.gradients_predict(output, *sources)


@task("attention", 0.5, forbids=READY_MADE, promise=(
    "Queries, keys and values are all learned, so gradients must flow back to all three.",
    "leading dimensions: none, a batch, or a batch and heads.",
))
def test_attention_of_any_shape_can_be_learned_from(student):
    """Gradients flow back under a mask, too, and without a batch or with heads beside it."""
    learned_attention(student, (), something_to_attend_to(5, 7))
    output, sources = learned_attention(student, (3, 2))
    checks.gradients_predict(output, *sources)


@task("attention", 0.15, needs="test_attention_with_a_mask", forbids=READY_MADE, promise=(
    "backwards through the gradients. Neither may contain one.",
    "gradients must flow back to all three.",
))
def test_no_nan_flows_back(student, reference):
    """The gradients are those of the formula, also where a query may attend to nothing: none of them is NaN."""
    mask = something_to_attend_to(3, 5, 7)
    mask[0, random.randrange(5)] = False
    mask[1] = False
    same_gradients(student, reference, mask)


# Part 3: one masked head


@task("head", 0.6, forbids=READY_MADE,
      promise="The three layers are called `key`, `query` and `value`: `nn.Linear` without bias. All three learn.")
def test_head_learns_three_matrices(student):
    """A head learns three matrices, key, query and value, and nothing else."""
    C, D = random.randint(11, 40), random.randint(2, 9)
    head = student.Head(C, D, random.randint(41, 60))
    checks.parameters(head, {"key.weight": (D, C), "query.weight": (D, C), "value.weight": (D, C)})


@task("head", 0.41, forbids=READY_MADE, promise=(
    "The mask belongs to the head, but it is not learned: it is a **buffer**. It follows the head in `.to(device)`",
))
def test_head_keeps_its_mask_as_a_buffer(student):
    """The mask that the head reads moves with the head, and the optimiser never sees it."""
    checks.buffers_follow(student.Head(11, 3, 7))
    head = some_head(student, 11, 3, 7)
    x = torch.randn(2, 7, 11)
    before = checks.tensor(head(x), "the output")
    with torch.no_grad():
        for buffer in head.buffers():
            if buffer.ndim:
                buffer.copy_(buffer.flip(-1))
    after = checks.tensor(head(x), "the output")
    checks.true(
        not torch.allclose(after, before),
        "The head owns a buffer, but forward does not read it: with another buffer the output is the same.",
    )


@task("head", 0.95, needs="test_head_shapes", forbids=READY_MADE, promise=(
    "computes a word's query, key and value from the word's own vector",
    "After `head.double()` the answers are float64.",
    "A shorter sentence uses a corner of the mask, whatever came before it",
))
def test_head_with_the_same_weights(student, reference):
    """With the solution's weights, the head gives the solution's output, in short and long sentences, in any order."""
    C, D, block_size = 20, 3, 67
    head, expected = twins(student, reference, C, D, block_size)
    for B, T, training in [(3, 4, True), (1, block_size, False), (2, 1, True)]:
        x = torch.randn(B, T, C)
        with torch.no_grad():  # which halves the time of loops over pairs
            answer = head.train(training)(x)
        checks.close(answer, expected(x), f"the output for {T} words", atol=1e-5)
    x = torch.randn(3, 7, C).double()
    exact = head.eval().double()(x)
    checks.dtype(exact, torch.float64, "the output after head.double()")
    checks.close(exact, expected.double()(x), "the output after head.double()")


@task("head", 0.15, needs="test_head_shapes", forbids=READY_MADE,
      promise="One head of causal self-attention: every word attends to itself and to the words before it.")
def test_a_sentence_alone_is_a_batch_of_one(student):
    """A sentence gets the same answer alone, as a batch of one, and among others."""
    head = some_head(student, 11, 3, 7)
    checks.batch_invariant(head, torch.randn(2, 5, 11), atol=1e-5)


@task("head", 0.25, needs="test_head_shapes", forbids=READY_MADE,
      promise="*no word attends to a word that comes after it.*")
def test_future_words_change_nothing(student):
    """Cutting off the end of a sentence changes nothing for the words before the cut."""
    head = some_head(student, 11, 3, 5)
    checks.prefix_invariant(head, torch.randn(2, 5, 11), atol=1e-5)


@task("head", 0.32, forbids=READY_MADE, promise="every word attends to itself and to the words before it.")
def test_every_word_reacts_to_its_whole_past(student):
    """Each word's output reacts to itself and to every earlier word, and to no later one."""
    head = some_head(student, 13, 3, 5)
    checks.causal_by_gradient(head, torch.randn(2, 5, 13))


@task("head", 0.25, forbids=READY_MADE, promise=(
    "called twice, it gives the same answer, in training as well.",
    "The inputs keep their values",
))
def test_head_is_steady(student):
    """Asked twice, the head answers the same, in training as well, and leaves the word vectors as they were."""
    head = some_head(student, 13, 3, 5)
    x = torch.randn(2, 5, 13)
    checks.deterministic_in_eval(head, x)
    checks.input_untouched(head, x)
    answer = checks.tensor(head(x), "the output")
    head.train()
    checks.close(head(x), answer, "the output in training", atol=1e-5)


@task("head", 0.67, forbids=READY_MADE, promise="All three learn.")
def test_all_three_matrices_learn(student):
    """Gradients reach key, query and value, in training and in evaluation, for one sentence and for several."""
    head = some_head(student, 13, 3, 7)
    matrices = {
        name: dict(head.named_parameters()).get(f"{name}.weight") for name in ("key", "query", "value")
    }
    missing = [name for name, matrix in matrices.items() if matrix is None]
    checks.true(not missing, f"The head has no trainable matrix {', '.join(missing)}.")

    def output(x):
        answer = head(x)
        return answer[0] if isinstance(answer, tuple) and answer else answer  # a tuple fails other tests

    every_gradient_arrives(output(torch.randn(1, 6, 13)), matrices)
    head.train()
    x = torch.randn(3, 6, 13)
    every_gradient_arrives(output(x), matrices)
    checks.gradients_predict(lambda: output(x), *matrices.values())


@task("head", 0.05, needs="test_head_with_the_same_weights", forbids=READY_MADE, promise=(
    "All three learn.",
    "gradients must flow back to all three.",
))
def test_gradients_of_the_head_are_those_of_the_formula(student, reference):
    """Key, query and value receive the same gradients as the solution's."""
    head, expected = twins(student, reference, 13, 3, 5)
    checks.parameter_gradients_close(head, expected, torch.randn(2, 5, 13), atol=1e-5)
