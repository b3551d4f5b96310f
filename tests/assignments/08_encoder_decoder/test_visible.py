"""Encoder and decoder, part by part: worked numbers and facts that hold for every right answer."""

import math

import torch

from autograder import checks, task
from autograder.fakes import Reverser

READY_MADE_ATTENTION = ("torch.nn.functional.multi_head_attention_forward",)
READY_MADE_DECODER = ("torch.nn.TransformerDecoderLayer", "torch.nn.TransformerDecoder")

C, H, FF, V = 24, 4, 13, 17
CROSS = {
    f"{layer}.{kind}": shape
    for layer in ("query", "key", "value", "proj")
    for kind, shape in (("weight", (C, C)), ("bias", (C,)))
}
BLOCK = {
    "self_attention.in_proj_weight": (3 * C, C),
    "self_attention.in_proj_bias": (3 * C,),
    "self_attention.out_proj.weight": (C, C),
    "self_attention.out_proj.bias": (C,),
    "ff.0.weight": (FF, C),
    "ff.0.bias": (FF,),
    "ff.2.weight": (C, FF),
    "ff.2.bias": (C,),
    **{f"cross_attention.{name}": shape for name, shape in CROSS.items()},
    **{f"norm{n}.{kind}": (C,) for n in (1, 2, 3) for kind in ("weight", "bias")},
}


def ids(*rows):
    """Rows of word ids as a tensor."""
    return torch.tensor(rows)


def idle_weights(module, output):
    """The names of the matrices in which other numbers do not change what `output` returns.

    There, as many words are written as read. Where keys and values of different lengths have come to one attention,
    PyTorch computes an output, but gradients outside of its memory.
    """
    before, idle = output(), []
    matrices = {name: parameter for name, parameter in module.named_parameters() if parameter.ndim == 2}
    gradients = [None] * len(matrices)
    if matrices and before.requires_grad:
        direction = torch.randn_like(before)
        gradients = torch.autograd.grad(before, list(matrices.values()), direction, allow_unused=True)
    for (name, parameter), gradient in zip(matrices.items(), gradients):
        if gradient is not None and gradient.any():  # it counts; other numbers need not be tried
            continue
        kept = parameter.detach().clone()
        with torch.no_grad():
            parameter.copy_(torch.randn(kept.shape))
        after = output().detach()  # as before with gradients: without them, attention is computed otherwise
        with torch.no_grad():
            parameter.copy_(kept)
        if torch.equal(after, before):
            idle.append(name)
    return idle


@task("cross", 0.25, forbids=READY_MADE_ATTENTION)
def test_cross_attention_owns_four_layers(student):
    """CrossAttention owns query, key, value and proj, each from d_model to d_model with a bias."""
    cross = student.CrossAttention(C, H)
    checks.parameters(cross, CROSS)
    y, memory = torch.randn(3, 5, C), torch.randn(3, 7, C)
    output = cross(y, memory)
    checks.shape(output, (3, 5, C), "CrossAttention of 5 written and 7 read words")
    checks.dtype(output, torch.float32, "CrossAttention of numbers in float32")


@task("cross", 1.25, forbids=READY_MADE_ATTENTION)
def test_cross_attention_by_hand(student):
    """The query 1, with ln 3 and 0 in the memory, gets three quarters of ln 3."""
    cross = student.CrossAttention(1, 1).double()
    with torch.no_grad():
        for name, parameter in cross.named_parameters():
            parameter.fill_(1.0 if name.endswith("weight") else 0.0)
    y = torch.tensor([[[1.0], [0.0]]], dtype=torch.float64)                          # (1, 2, 1)
    memory = torch.tensor([[[math.log(3)], [0.0], [5.0]]], dtype=torch.float64)      # (1, 3, 1)
    output = torch.tensor([[[0.75], [0.5]]], dtype=torch.float64) * math.log(3)      # (1, 2, 1)
    last, first = torch.tensor([[False, False, True]]), torch.tensor([[True, False]])
    for training in (True, False):
        cross.train(training)
        both = cross(y, memory[:, :2])
        checks.close(both, output, "what the queries 1 and 0 get")
        padded = checks.input_untouched(cross, y, memory, last, what="CrossAttention")
        checks.close(padded, output, "the same with a third memory slot that is padding")
        checks.close(cross(y, memory[:, :2], first), 0 * output, "the same when the slot with ln 3 is padding")
    checks.dtype(both, torch.float64, "CrossAttention of numbers in float64")


@task("cross", 0.25, forbids=READY_MADE_ATTENTION)
def test_each_written_word_asks_for_itself(student, seed):
    """A written word gets what it would get alone, whatever the other words and sentences of the batch are."""
    y, memory = torch.randn(3, 5, C, dtype=torch.float64), torch.randn(3, 7, C, dtype=torch.float64)
    padding = torch.arange(7) >= torch.tensor([[4], [7], [2]])                       # (3, 7)
    cross = checks.randomize(student.CrossAttention(C, H).double())
    together = cross(y, memory, padding)
    for b, t in ((2, 0), (0, 1), (1, 4)):
        alone = cross(y[b : b + 1, t : t + 1], memory[b : b + 1], padding[b : b + 1])
        what = f"word {t} of sentence {b}, compared with the same word alone,"
        checks.close(together[b : b + 1, t : t + 1], alone, what)


@task("cross", 0.25, needs="test_cross_attention_owns_four_layers", forbids=READY_MADE_ATTENTION)
def test_cross_attention_uses_its_four_layers(student, seed):
    """Other weights in any of the four layers change the output."""
    y, memory = torch.randn(3, 5, C, dtype=torch.float64), torch.randn(3, 5, C, dtype=torch.float64)
    cross = checks.randomize(student.CrossAttention(C, H).double())
    idle = idle_weights(cross, lambda: cross(y, memory))
    checks.true(not idle, f"The output does not change with the numbers in {' and '.join(idle)}.")


@task("cross", 0.25, forbids=READY_MADE_ATTENTION)
def test_cross_attention_refuses_uneven_heads(student):
    """A d_model that n_heads does not divide is a ValueError that names them and their values."""
    checks.raises(ValueError, student.CrossAttention, 10, 4, naming=("d_model", 10, "n_heads", 4))


@task("block", 1, forbids=READY_MADE_DECODER)
def test_block_owns_its_parts(student):
    """DecoderBlock owns two attentions, ff, norm1, norm2 and norm3, each with its own parameters."""
    checks.parameters(student.DecoderBlock(C, H, FF), BLOCK)


@task("block", 0.75, forbids=READY_MADE_DECODER)
def test_block_with_silent_sublayers(student):
    """When all three sublayers return zero, y only passes norm1, norm2 and norm3, in this order."""
    y, memory = torch.randn(3, 5, C, dtype=torch.float64), torch.randn(3, 7, C, dtype=torch.float64)
    block = student.DecoderBlock(C, H, FF).double()
    block.eval()
    checks.randomize(block)
    last_layers = ("self_attention.out_proj", "cross_attention.proj", "ff.2")
    silence = [p for name, p in block.named_parameters() if name.rpartition(".")[0] in last_layers]

    def norms(y):
        return block.norm3(block.norm2(block.norm1(y)))

    checks.silent_sublayers(lambda y: block(y, memory), y, silence, norms)


@task("block", 0.25, forbids=READY_MADE_DECODER)
def test_block_with_everything_dropped(student, seed):
    """With dropout=1.0, y only passes the three norms in training; in evaluation nothing is dropped."""
    y, memory = torch.randn(3, 5, C, dtype=torch.float64), torch.randn(3, 7, C, dtype=torch.float64)
    block = student.DecoderBlock(C, H, FF, dropout=1.0).double()
    block.eval()
    checks.randomize(block)
    stream = block.norm3(block.norm2(block.norm1(y)))
    output = checks.input_untouched(block, y, memory, what="the block")
    checks.dtype(output, torch.float64, "the output of a block in float64")
    acts = not torch.allclose(output, stream)
    checks.true(acts, "With dropout=1.0 the sublayers add nothing in evaluation: dropout is never off.")
    block.train()
    checks.close(block(y, memory), stream, "the block in training with dropout=1.0")


@task("translator", 1.75)
def test_shift_right_by_hand(student):
    """shift_right puts BOS in front of each row and drops the last word; the number type stays."""
    targets = ids([7, 8, 9, 2], [5, 2, 0, 0])
    shifted = student.shift_right(targets, 1)
    checks.equal(shifted, ids([1, 7, 8, 9], [1, 5, 2, 0]), "shift_right of [7, 8, 9, 2] and [5, 2, 0, 0]")
    checks.input_untouched(lambda targets: student.shift_right(targets, 3), targets, what="shift_right")
    one_column = student.shift_right(ids([6], [4], [9]), 3)
    checks.equal(one_column, ids([3], [3], [3]), "shift_right of three rows with one word each, BOS = 3,")
    short = student.shift_right(targets.int(), 1)
    checks.dtype(short, torch.int32, "shift_right of numbers in int32")


@task("translator", 0.25, forbids=READY_MADE_DECODER)
def test_translator_owns_its_parts(student):
    """Beside the given parts, Translator owns a head and n_layers DecoderBlocks that share nothing."""
    translator = student.Translator(V, C, H, n_layers=2, d_ff=FF, max_len=11)
    shapes = {f"decoder.{n}.{name}": shape for n in range(2) for name, shape in BLOCK.items()}
    shapes |= {"head.weight": (V, C), "head.bias": (V,)}
    shapes |= {
        name: tuple(parameter.shape)
        for name, parameter in translator.named_parameters()
        if name.startswith(("token_embedding.", "position_embedding.", "encoder."))
    }
    checks.parameters(translator, shapes)


@task("translator", 0.25, needs="test_translator_owns_its_parts", forbids=READY_MADE_DECODER)
def test_every_layer_of_the_translator_counts(student, seed):
    """Other weights in any layer, from the word vectors to the head, change the logits."""
    translator = checks.randomize(student.Translator(V, C, H, n_layers=2, d_ff=FF, max_len=11).double())
    src, y = torch.randint(3, V, (3, 7)), torch.randint(3, V, (3, 5))
    logits = translator(src, y)
    checks.shape(logits, (3, 5, V), "the logits for 5 written words")
    checks.dtype(logits, torch.float64, "the logits of a translator in float64")
    idle = idle_weights(translator, lambda: translator(src[:, :5], y))
    sentence = f"The logits do not change with the numbers in {' and '.join(sorted(idle))}."
    checks.true(not idle, sentence, telling=f"{sorted(idle)}")


@task("greedy", 1)
def test_greedy_decode_says_a_sentence_backwards(student):
    """With a model that reverses its source, one sentence comes back reversed, and then EOS."""
    for sentence, backwards in (([5, 6, 7], [7, 6, 5, 2]), ([9, 4, 4, 8, 3], [3, 8, 4, 4, 9, 2])):
        written = student.greedy_decode(Reverser(V), ids(sentence), bos_id=1, eos_id=2, pad_id=0, max_len=9)
        checks.equal(written, ids(backwards), f"the sentence {sentence} in reverse")


@task("greedy", 0.25)
def test_greedy_decode_stops_at_max_len(student):
    """No row gets more than max_len words, the BOS in front not counted; a max_len below 1 is refused by name."""
    for most, backwards in ((1, [7]), (3, [7, 6, 5]), (4, [7, 6, 5, 2])):
        written = student.greedy_decode(Reverser(V), ids([5, 6, 7]), 1, 2, 0, most)
        checks.equal(written, ids(backwards), f"the sentence [5, 6, 7] in reverse with max_len = {most}")
    checks.raises(ValueError, student.greedy_decode, Reverser(V), ids([5]), 1, 2, 0, 0, naming=("max_len", 0))


@task("greedy", 0.25)
def test_greedy_decode_leaves_everything_as_it_was(student):
    """The model reads once, is asked in eval mode and without gradients, and is then in the mode it came in."""
    src = ids([5, 6, 7, 8], [9, 4, 0, 0])
    checks.input_untouched(lambda src: student.greedy_decode(Reverser(V), src, 1, 2, 0, 9), src, what="greedy_decode")
    for training in (True, False):
        model = Reverser(V).train(training)
        student.greedy_decode(model, ids([5, 6, 7, 8]), 1, 2, 0, 9)
        times = model.encoder_calls
        checks.true(times == 1, f"The model read the sentence {times} times; once is enough.")
        checks.true(not any(model.modes), "The model was asked for a word in training mode.")
        checks.true(not any(model.grads), "The model was asked for a word while gradients were kept.")
        checks.true(model.training == training, "The model is in another mode than the one it came in.")
