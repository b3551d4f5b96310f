"""Many heads: the tests that decide. Every one of them meets fresh numbers."""

import random

import torch
from torch import nn

from autograder import checks, task

READY_MADE = (
    "torch.nn.MultiheadAttention",
    "torch.nn.functional.multi_head_attention_forward",
    "torch._scaled_dot_product_attention_math",
    "torch._scaled_dot_product_flash_attention_for_cpu",
    "torch._native_multi_head_attention",
)

B, T, C, H, D = 3, 7, 20, 4, 5
BLOCK = 11


def sentence(batch=B):
    return torch.randn(batch, T, C).double()                                           # (B, T, C)


def causal_mask():
    return torch.ones(T, T, dtype=torch.bool).tril()                                   # (T, T)


def two_multi_heads(student, reference, num_heads=H, width=C, bias=True):
    """The student's module and ours, with the same fresh weights."""
    ours = reference.MultiHeadAttention(width, num_heads, BLOCK, bias=bias).double()
    checks.randomize(ours, scale=0.3)
    theirs = student.MultiHeadAttention(width, num_heads, BLOCK, bias=bias).double()
    checks.copy_parameters(ours, theirs)
    return theirs, ours


def two_fused(student, reference, num_heads=H, width=C):
    """The student's fused module and ours, with the same fresh weights.

    A bias that only the student's has becomes 0: that there is none is a test of its own.
    """
    ours = checks.randomize(reference.FusedMultiHeadAttention(width, num_heads).double(), scale=0.3)
    theirs = student.FusedMultiHeadAttention(width, num_heads).double()
    tables, own = dict(theirs.named_parameters()), dict(ours.named_parameters())
    if tables.keys() <= own.keys():
        checks.copy_parameters(ours, theirs)
    with torch.no_grad():
        for name in tables.keys() - own.keys():
            tables[name].zero_()
        for name in tables.keys() & own.keys():
            tables[name].copy_(own[name])
    return theirs, ours


def pytorch_layer(num_heads, queries_keys_values, projection):
    """PyTorch's own layer with these tables: (3C, C) and (C, C)."""
    layer = nn.MultiheadAttention(len(projection), num_heads, bias=False, batch_first=True).double()
    with torch.no_grad():
        layer.in_proj_weight.copy_(queries_keys_values)
        layer.out_proj.weight.copy_(projection)
    return layer


def not_cut_off(output):
    """Gradients can flow back through the output."""
    cut = "The output is cut off from the parameters: no gradient can flow back through it."
    checks.true(checks.tensor(output).numel() > 0 and output.requires_grad, cut, public=cut)


def gradients_agree(output, sources, expected, known):
    """Under one random direction, the named sources of the output have the gradients of the known ones, in order."""
    not_cut_off(output)
    direction = torch.randn_like(expected)
    found = torch.autograd.grad(
        output, list(sources.values()), direction.to(output.dtype), materialize_grads=True
    )
    wanted = torch.autograd.grad(expected, known, direction)
    for name, gradient, right in zip(sources, found, wanted, strict=True):
        checks.close(gradient, right, f"the gradient of {name}", atol=1e-6)


def every_gradient_arrives(output_of_sources, sources, parts=lambda gradients: {}):
    """The output depends on each of the named tensors, as its gradients say, and changes with them.

    `parts` names parts of these gradients, from which something must arrive as well.
    """
    output = output_of_sources()
    not_cut_off(output)
    pull = torch.randn(output.shape).to(output.dtype)
    gradients = torch.autograd.grad(output, list(sources.values()), pull, allow_unused=True)
    for name, gradient in zip(sources, gradients, strict=True):
        silent = f"No gradient reaches {name}, so it can never learn."
        checks.true(gradient is not None and bool(gradient.any()), silent, public=silent)
    for name, part in parts(gradients).items():
        silent = f"No gradient reaches {name}, so they can never learn."
        checks.true(bool(part.any()), silent, public=silent)
    checks.gradients_predict(output_of_sources, *sources.values(), cotangent=pull)


def change(parameter, rows=slice(None)):
    """Fresh numbers for some rows of a parameter, in place."""
    with torch.no_grad():
        parameter[rows] = torch.randn_like(parameter[rows])


# Part 1: heads side by side


@task("heads", 0.25, forbids=READY_MADE, promise="Every head starts with random weights of its own.")
def test_heads_start_different(student):
    """Before any training the heads already differ: each starts with random weights of its own."""
    mha = student.MultiHeadAttention(C, H, BLOCK, bias=False).double()
    # The projection returns the difference between each head's output and the next head's.
    difference = torch.zeros(C, C)
    own, following = torch.arange(C - D), torch.arange(D, C)
    difference[own, own] = 1.0
    difference[own, following] = -1.0
    with torch.no_grad():
        mha.proj.weight.copy_(difference)
    differences = mha(sentence())                                                      # (B, T, C)
    for h in range(H - 1):
        apart = differences[..., h * D : (h + 1) * D].abs().max().item()
        twins = f"Head {h} and head {h + 1} give the same output in a module that was just made."
        checks.true(apart > 0, twins, public=twins)


@task("heads", 1.25, needs="test_every_head_is_known_to_pytorch", forbids=READY_MADE, promise=(
    "The outputs are concatenated along the features in the order of the heads",
    "The result is the same in training and in evaluation, and float64 after `.double()`.",
))
def test_heads_equal_pytorch(student, reference):
    """With one head and with many, the output is that of PyTorch's own layer, in training and in evaluation."""
    for num_heads, width, training in [(1, C, True), (11, 33, False)]:
        theirs, ours = two_multi_heads(student, reference, num_heads, width, bias=False)
        queries = [head.query.weight for head in ours.heads]
        keys = [head.key.weight for head in ours.heads]
        values = [head.value.weight for head in ours.heads]
        layer = pytorch_layer(num_heads, torch.cat(queries + keys + values), ours.proj.weight)
        x = torch.randn(2, T, width).double()
        expected, _ = layer(x, x, x, attn_mask=~causal_mask(), need_weights=False)
        what = f"the output with embed_size={width}, num_heads={num_heads} and bias=False"
        output = theirs.train(training)(x)
        checks.dtype(output, torch.float64, what)
        checks.close(output, expected, what)


@task("heads", 0.5, needs="test_every_head_is_known_to_pytorch", forbids=READY_MADE, promise=(
    "it has a bias if `bias` is true",
    "all of them, and the projection, must be trainable.",
))
def test_heads_learn(student, reference):
    """With a bias in the projection, output and gradients are right and the input keeps its numbers."""
    theirs, ours = two_multi_heads(student, reference)
    x, tables = sentence().requires_grad_(), dict(ours.named_parameters())
    output, expected = checks.input_untouched(theirs, x.clone()), ours(x)
    checks.close(output, expected, "the output with bias=True")
    own = dict(theirs.named_parameters())
    sources = {"the input": x} | {name: own[name] for name in tables}
    gradients_agree(output, sources, expected, [x, *tables.values()])


@task("heads", 2.6, forbids=READY_MADE, promise="all of them, and the projection, must be trainable.")
def test_every_head_can_be_trained(student):
    """Gradients reach the tables of every head and the projection, in training and in evaluation."""
    mha = checks.randomize(student.MultiHeadAttention(12, 4, BLOCK).double())
    tables = {name: table for name, table in sorted(mha.named_parameters()) if name.endswith("weight")}
    unknown = "No table of a head is among the parameters of the module."
    checks.true("heads.0.query.weight" in tables, unknown, public=unknown)
    for batch, training in [(1, True), (2, False)]:
        mha.train(training)
        x = torch.randn(batch, 4, 12).double()
        every_gradient_arrives(lambda x=x: mha(x), tables)


@task("heads", 0.4, needs="test_every_head_is_known_to_pytorch", forbids=READY_MADE,
      promise="head 0 fills the first D columns.")
def test_each_head_keeps_its_columns(student):
    """Change the values or queries of one head, and only its columns of the concatenation change."""
    mha = student.MultiHeadAttention(15, 3, BLOCK).double()
    tables = dict(mha.named_parameters())
    for _, parameter in sorted(tables.items()):
        change(parameter)
    with torch.no_grad():
        mha.proj.weight.copy_(torch.eye(15))
    for name in ("value", "query"):

        def touch(h, name=name):
            change(tables[f"heads.{h}.{name}.weight"])

        checks.heads_local(mha, torch.randn(B, T, 15).double(), 3, touch)


# Part 2: cutting and gluing


@task("reshape", 1, promise=(
    "Head h receives the features h·D up to (h+1)·D - 1 of every word, words in their old order.",
    "No number changes, and neither does the number type",
))
def test_split_of_any_size(student, reference):
    """split_heads puts every number in its place, for any number of heads and any layout in memory."""
    for batch, words, heads, strip in [(3, 7, 4, 5), (2, 5, 1, 6), (1, 3, 8, 1), (5, 1, 13, 4)]:
        x = torch.randn(batch, heads * strip, words).transpose(1, 2).double()          # (B, T, C)
        cut = student.split_heads(x, heads)
        checks.dtype(cut, torch.float64, "split_heads(x, num_heads) for x in float64")
        checks.close(
            cut, reference.split_heads(x, heads),
            f"split_heads(x, {heads}) for x of shape {tuple(x.shape)}",
            axes=("sentence", "head", "word", "feature"),
        )
        checks.input_untouched(lambda t, heads=heads: student.split_heads(t, heads), x)


@task("reshape", 1, promise=(
    "Merge the strips of every word again: (B, H, T, D) -> (B, T, C).",
    "No number changes, and neither does the number type",
))
def test_merge_of_any_size(student, reference):
    """merge_heads gives every word its own strips in the order of the heads, for any layout in memory."""
    for batch, words, heads, strip in [(3, 7, 4, 5), (2, 5, 1, 6), (1, 3, 8, 1), (5, 1, 13, 4)]:
        fresh = torch.randn(batch, heads, words, strip)                                # (B, H, T, D)
        odd = torch.randn(batch, words, heads, strip).transpose(1, 2).double()         # (B, H, T, D)
        for x in (fresh, odd):
            merged = checks.tensor(student.merge_heads(x), "merge_heads(x)")
            kept = f"merge_heads gives {merged.numel()} numbers for {x.numel()}; gluing loses none and adds none."
            checks.true(merged.numel() == x.numel(), kept)
            checks.dtype(merged, x.dtype, f"merge_heads(x) for x in {x.dtype}")
            checks.close(
                merged, reference.merge_heads(x),
                f"merge_heads(x) for x of shape {tuple(x.shape)}", axes=("sentence", "word", "feature"),
            )
            checks.input_untouched(student.merge_heads, x)


# Part 3: all heads in one matrix


@task("fused", 1, forbids=READY_MADE, promise=(
    "None allows all.",
    "The result is the same in training and in evaluation, and float64 after `.double()`.",
))
def test_fused_equals_pytorch(student, reference):
    """With one head and with many, unmasked output and gradients are those of PyTorch's own layer."""
    for num_heads, width, training in [(1, C, True), (11, 33, False)]:
        theirs, ours = two_fused(student, reference, num_heads, width)
        layer = pytorch_layer(num_heads, ours.W_qkv.weight, ours.W_out.weight)
        x = torch.randn(2, T, width).double().requires_grad_()
        expected, _ = layer(x, x, x, need_weights=False)
        what = f"the output with d_model={width}, n_heads={num_heads} and no mask"
        output = theirs.train(training)(x.clone())
        checks.dtype(output, torch.float64, what)
        checks.close(output, expected, what)
        sources = {"the input": x, "W_qkv.weight": theirs.W_qkv.weight, "W_out.weight": theirs.W_out.weight}
        gradients_agree(output, sources, expected, [x, layer.in_proj_weight, layer.out_proj.weight])


@task("fused", 1.25, forbids=READY_MADE,
      promise="its rows are first all queries, then all keys, then all values")
def test_every_third_of_the_matrix_can_be_trained(student):
    """Gradients reach the queries, keys and values of W_qkv and W_out, in training and in evaluation."""
    fused = checks.randomize(student.FusedMultiHeadAttention(C, H).double())
    tables = {"W_qkv": fused.W_qkv.weight, "W_out": fused.W_out.weight}

    def thirds(gradients):
        names = (f"the rows of W_qkv for the {kind}" for kind in ("queries", "keys", "values"))
        return dict(zip(names, gradients[0].chunk(3), strict=True))

    for batch, training in [(1, True), (2, False)]:
        fused.train(training)
        x = sentence(batch)
        every_gradient_arrives(lambda x=x: fused(x, causal_mask()), tables)
        every_gradient_arrives(lambda x=x: fused(x), tables, thirds)


@task("fused", 2, forbids=READY_MADE, promise=(
    "`mask` holds booleans that broadcast to (B, H, T, T), True where attending is allowed",
    "A mask applies to the call that it is passed to, and to no later one",
    "Scores may be large.",
))
def test_fused_obeys_the_mask(student, reference):
    """Only where the mask is True may a word attend, for any shape of mask and any scores, in this call alone."""
    many = T + 2                                                       # more sentences than words in each
    causal = causal_mask()                                                             # (T, T)
    padding = torch.ones(many, 1, 1, T, dtype=torch.bool)                              # (B, 1, 1, T)
    padding[0, ..., -2:] = False
    padding[2, ..., -3:] = False
    scattered = torch.rand(B, 1, T, T) > 0.5                                           # (B, 1, T, T)
    own = torch.rand(H, T, T) > 0.5                                                    # (H, T, T)
    for mask in (scattered, own):
        mask |= torch.eye(T, dtype=torch.bool)                                         # each may attend to itself
    masks = {"causal": causal, "padding": padding, "scattered": scattered, "different": own}
    theirs, ours = two_fused(student, reference)
    for scores, loudness in (("gentle", 1.0), ("loud", 30.0)):
        with torch.no_grad():
            for module in (theirs, ours):
                module.W_qkv.weight *= loudness
        theirs.train(scores == "gentle")
        for name, mask in masks.items():
            x = sentence(many if mask is padding else B)
            what = f"the output under a {name} mask of shape {tuple(mask.shape)} and {scores} scores"
            expected = ours(x, mask)
            checks.close(checks.input_untouched(theirs, x, mask), expected, what)
        x = sentence()
        checks.close(theirs(x), ours(x), "the output without a mask, in a call after one with a mask,")


@task("fused", 0.25, forbids=READY_MADE, promise="inside each third head by head")
def test_fused_heads_keep_to_themselves(student, reference):
    """Change the rows of one head in W_qkv, values or queries, and only its columns change."""
    theirs, _ = two_fused(student, reference)
    with torch.no_grad():
        theirs.W_out.weight.copy_(torch.eye(C))
    for third in (2, 0):                                                               # values, queries

        def touch(h, first=third * C):
            change(theirs.W_qkv.weight, slice(first + h * D, first + (h + 1) * D))

        checks.heads_local(theirs, sentence(), H, touch)


@task("fused", 0.5, forbids=READY_MADE, promise=(
    "Raises ValueError that names d_model and n_heads and their values if `d_model` is not divisible by `n_heads`.",
))
def test_fused_refuses_uneven_heads(student):
    """A ValueError refuses a width that the heads cannot share evenly, naming both numbers; an even one is welcome."""
    heads, each = random.randint(4, 9), random.randint(2, 9)
    uneven = heads * each + random.randint(1, heads - 1)
    naming = ("d_model", uneven, "n_heads", heads)
    checks.raises(ValueError, student.FusedMultiHeadAttention, uneven, heads, naming=naming)
    width = heads * each
    even = student.FusedMultiHeadAttention(width, heads)
    checks.shape(even.W_qkv.weight, (3 * width, width), f"W_qkv.weight of FusedMultiHeadAttention({width}, {heads})")


# Part 4: the proof


@task("proof", 0.75, promise=(
    "Raises ValueError if the two differ in width or in the number of heads.",
    "A bias of `proj` has no place in `fused` and is not copied.",
))
def test_fuse_refuses_different_sizes(student):
    """A different width or number of heads is refused with a ValueError; a bias in proj is not, it stays behind."""
    per_head = checks.randomize(student.MultiHeadAttention(C, H, BLOCK, bias=False))
    for width, heads in ((28, H), (C, 2)):
        other = checks.randomize(student.FusedMultiHeadAttention(width, heads))
        checks.raises(ValueError, student.fuse, per_head, other)
    biased = checks.randomize(student.MultiHeadAttention(C, H, BLOCK, bias=True))
    fused = student.FusedMultiHeadAttention(C, H)
    student.fuse(biased, fused)
    what = "W_out.weight after fuse of a module with bias=True"
    checks.close(fused.W_out.weight, biased.proj.weight, what, axes=("row", "column"))
    checks.parameters(fused, {"W_qkv.weight": (3 * C, C), "W_out.weight": (C, C)}, "the module that fuse filled")


@task("proof", 1.5, needs=("test_every_head_is_known_to_pytorch", "test_fused_owns_two_tables"), promise=(
    "a copy of every weight of `per_head`, each in its place; `per_head` stays as it is.",
    "Later changes of one do not reach the other.",
))
def test_fuse_moves_copies(student, reference):
    """fuse copies every table to its place, leaves the old module alone, and then each goes its own way."""
    ours = checks.randomize(reference.MultiHeadAttention(C, H, BLOCK, bias=False).double())
    per_head = student.MultiHeadAttention(C, H, BLOCK, bias=False).double()
    tables = dict(per_head.named_parameters())
    with torch.no_grad():
        for name, table in ours.named_parameters():
            tables[name].copy_(table)
    fused, expected = two_fused(student, reference)
    x = sentence()
    before = per_head(x).detach().clone()

    student.fuse(per_head, fused)
    reference.fuse(ours, expected)

    checks.close(per_head(x), before, "the output of per_head after fuse")
    answer = fused(x, causal_mask()).detach().clone()
    checks.close(fused.W_qkv.weight, expected.W_qkv.weight, "W_qkv.weight after fuse", axes=("row", "column"))
    checks.close(fused.W_out.weight, expected.W_out.weight, "W_out.weight after fuse", axes=("row", "column"))

    for h in (0, H - 1):
        change(tables[f"heads.{h}.query.weight"])
        change(tables[f"heads.{h}.value.weight"])
    change(tables["proj.weight"])
    before = per_head(x).detach().clone()
    checks.close(fused(x, causal_mask()), answer, "the fused output after a later change of per_head")

    change(fused.W_qkv.weight)
    change(fused.W_out.weight)
    changed = fused(x, causal_mask())
    checks.true(not torch.equal(changed, answer), "The fused output does not depend on its own weights.")
    checks.close(per_head(x), before, "the output of per_head after a later change of fused")
