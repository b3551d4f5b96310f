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


@task("cross", 0.5, forbids=READY_MADE_ATTENTION)
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
    checks.close(cross(y, memory[:, :2]), output, "what the queries 1 and 0 get")
    last = torch.tensor([[False, False, True]])
    checks.close(cross(y, memory, last), output, "the same with a third memory slot that is padding")
    first = torch.tensor([[True, False]])
    checks.close(cross(y, memory[:, :2], first), 0 * output, "the same when the slot with ln 3 is padding")


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


@task("greedy", 1)
def test_greedy_decode_says_a_sentence_backwards(student):
    """With a model that reverses its source, one sentence comes back reversed, and then EOS."""
    for sentence, backwards in (([5, 6, 7], [7, 6, 5, 2]), ([9, 4, 4, 8, 3], [3, 8, 4, 4, 9, 2])):
        written = student.greedy_decode(Reverser(V), ids(sentence), bos_id=1, eos_id=2, pad_id=0, max_len=9)
        checks.equal(written, ids(backwards), f"the sentence {sentence} in reverse")
