"""Many heads: what you can check yourself."""

from contextlib import contextmanager

import torch

from autograder import checks, task

READY_MADE = (
    "torch.nn.MultiheadAttention",
    "torch.nn.functional.multi_head_attention_forward",
    "torch._scaled_dot_product_attention_math",
    "torch._scaled_dot_product_flash_attention_for_cpu",
    "torch._native_multi_head_attention",
)


def fill(parameter, numbers):
    with torch.no_grad():
        parameter.copy_(numbers)


def fill_all(module):
    """The same fresh numbers for everybody, in whatever order the layers were made."""
    for _, parameter in sorted(module.named_parameters()):
        fill(parameter, torch.randn(parameter.shape) / 3)
    return module


@contextmanager
def told(words):
    """If a check inside fails, these words say which mistake it was, whatever the code looks like; "" says nothing."""
    try:
        yield
    except checks.CheckFailed as failure:
        failure.telling = failure.telling or words
        raise


def tables_of(per_head, fused):
    """The queries, keys, values and projection of the heads, and what the fused form has in their places."""
    heads = {name: table.detach().clone() for name, table in per_head.named_parameters()}
    kinds = [[heads[f"heads.{h}.{kind}.weight"] for h in range(4)] for kind in ("query", "key", "value")]
    old = [*map(torch.cat, kinds), heads["proj.weight"]]
    new = [*fused.W_qkv.weight.detach().clone().chunk(3), fused.W_out.weight.detach().clone()]
    return old, new


def moved(before, after):
    """What lies in each place of the fused form after fuse, in words; "" if that is none of the tables."""
    (old, was), (heads_now, now) = before, after
    names = ("the queries", "the keys", "the values", "the projection")
    found = []
    for there, fresh, place in zip(now, was, names):
        known = {"what was there before": fresh, **dict(zip(names, old)), "the projection on its side": old[3].T}
        same = [name for name, table in known.items() if torch.equal(table, there)]
        found.append(f"{same[0]} for {place}" if same else "")
    unmoved = all(map(torch.equal, old, heads_now))
    return " and ".join([*found, "" if unmoved else "the heads changed"]) if all(found) else ""


@task("heads", 0.5, forbids=READY_MADE)
def test_every_head_is_known_to_pytorch(student):
    """PyTorch finds the weights of all heads and of the projection, and each table has the right shape."""
    mha = student.MultiHeadAttention(20, 4, 11)
    tables = {f"{h}.{name}.weight": (5, 20) for h in range(4) for name in ("key", "query", "value")}
    sizes = sorted({tuple(table.shape) for name, table in mha.named_parameters() if name.startswith("heads.")})
    projection = [tuple(table.shape) for name, table in mha.named_parameters() if name == "proj.weight"]
    with told(f"heads of {sizes}, projection of {projection}" if len(sizes) == 1 and sizes != [(5, 20)] else ""):
        checks.parameters(mha.heads, tables, "heads")
    checks.shape(mha.proj.weight, (20, 20), "proj.weight")


@task("heads", 1, needs="test_every_head_is_known_to_pytorch", forbids=READY_MADE)
def test_outputs_are_concatenated_in_order(student):
    """A word alone attends to itself: its output holds head 0's output first, then head 1's, then head 2's."""
    mha = student.MultiHeadAttention(6, 3, 2).double()
    tables = dict(mha.named_parameters())
    factors = [1.0, 10.0, 100.0]
    for h in range(3):                       # head h copies two features of the word, times its own factor
        table = torch.zeros(2, 6)
        table[0, 2 * h] = table[1, 2 * h + 1] = factors[h]
        fill(tables[f"heads.{h}.value.weight"], table)
    fill(mha.proj.weight, 2 * torch.eye(6))  # the projection doubles everything
    if mha.proj.bias is not None:
        fill(mha.proj.bias, torch.zeros(6))

    word = torch.tensor([[[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]]], dtype=torch.float64)       # (1, 1, 6)
    expected = torch.tensor([[[2.0, 4.0, 60.0, 80.0, 1000.0, 1200.0]]], dtype=torch.float64)
    checks.close(mha(word), expected, "the output for the single word [1, 2, 3, 4, 5, 6]")


@task("heads", 0.5, forbids=READY_MADE)
def test_heads_refuse_what_does_not_fit(student):
    """A ValueError refuses a width that does not divide evenly, naming both numbers, and a sentence too long."""
    naming = ("embed_size", 22, "num_heads", 4)
    checks.raises(ValueError, student.MultiHeadAttention, 22, 4, 11, naming=naming)
    mha = fill_all(student.MultiHeadAttention(20, 4, 7))
    checks.shape(mha(torch.randn(2, 7, 20)), (2, 7, 20), "the output for exactly block_size words")
    for training in (True, False):
        checks.raises(ValueError, mha.train(training), torch.randn(2, 8, 20))


@task("reshape", 1)
def test_split_gives_every_head_its_strip(student):
    """split_heads gives head 0 the first strip of every word, head 1 the next; words keep their order."""
    # Every number tells where it comes from: 100 · word + feature. Three heads share twelve features.
    x = torch.tensor([[[100.0 * t + c for c in range(12)] for t in range(5)]])         # (1, 5, 12)
    strips = [[[100.0 * t + 4 * h + d for d in range(4)] for t in range(5)] for h in range(3)]
    checks.close(
        student.split_heads(x, 3), torch.tensor([strips]), "split_heads(x, 3) for x[0, t, c] = 100·t + c",
        axes=("sentence", "head", "word", "feature"),
    )


@task("reshape", 1)
def test_merge_undoes_split(student):
    """Gluing the strips back together returns every word as it was."""
    x = torch.randn(3, 7, 20)                                                          # (B, T, C)
    for num_heads in (1, 4, 20):
        there_and_back = student.merge_heads(student.split_heads(x, num_heads))
        checks.close(there_and_back, x, f"merge_heads(split_heads(x, {num_heads}))")


@task("fused", 0.25, forbids=READY_MADE)
def test_fused_owns_two_tables(student):
    """The fused form owns W_qkv with 3·C rows and W_out with C rows, and nothing else that learns."""
    fused = student.FusedMultiHeadAttention(20, 4)
    checks.parameters(fused, {"W_qkv.weight": (60, 20), "W_out.weight": (20, 20)})


@task("fused", 0.75, forbids=READY_MADE)
def test_shuffled_words_give_shuffled_answers(student):
    """Without a mask the fused form knows no order: shuffle the words, and the outputs are shuffled alike."""
    fused = fill_all(student.FusedMultiHeadAttention(20, 4).double())
    x = torch.randn(3, 7, 20).double()
    checks.permutation_equivariant(fused, x)
    output = fused(x)
    differ = not torch.allclose(output, output[:, :1].expand_as(output))
    checks.true(differ, "All words of a sentence get the same output, whatever they are.")


@task("proof", 0.75, forbids=READY_MADE)
def test_both_forms_give_the_same_answer(student):
    """After fuse, and not before it, the fused form with a causal mask gives the output of the heads side by side."""
    per_head = fill_all(student.MultiHeadAttention(20, 4, 11, bias=False))
    fused = fill_all(student.FusedMultiHeadAttention(20, 4))

    x = torch.randn(3, 7, 20)                                                          # (B, T, C)
    causal = torch.ones(7, 7, dtype=torch.bool).tril()                                 # (T, T)
    before, tables = fused(x, causal).detach().clone(), tables_of(per_head, fused)

    student.fuse(per_head, fused)

    after = checks.tensor(fused(x, causal), "the fused output after fuse")
    with told(moved(tables, tables_of(per_head, fused))):
        checks.close(after, per_head(x), "the fused output after fuse", atol=1e-4, rtol=1e-4)
        checks.true(not torch.equal(before, after), "The fused output is the same before and after fuse.")
