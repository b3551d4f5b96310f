"""Encoder and decoder against PyTorch's own layers, the reference and make-believe models."""

import random

import torch
from torch import nn

from autograder import checks, task
from autograder.fakes import Reverser

READY_MADE_ATTENTION = ("torch.nn.functional.multi_head_attention_forward",)
READY_MADE_DECODER = ("torch.nn.TransformerDecoderLayer", "torch.nn.TransformerDecoder")

B, T, S, C, H, FF, V = 3, 5, 7, 24, 4, 13, 17
LONG = 150  # longer than any length in the stub
PAD, BOS, EOS = 0, 1, 2
LENGTHS = [4, S, 2]


def numbers(*shape):
    return torch.randn(*shape, dtype=torch.float64)


def filled(module):
    """The module in float64 and eval mode, with fresh numbers in every parameter."""
    module.double()
    module.eval()
    return checks.randomize(module)


def tail(lengths, width):
    """True where a row is over: (B, width)."""
    return torch.arange(width) >= torch.tensor(lengths).unsqueeze(1)


def torch_attention(weights):
    """PyTorch's own attention with the weights of a CrossAttention."""
    layer = nn.MultiheadAttention(C, weights["n_heads"], batch_first=True).double()
    inner = ("query", "key", "value")
    layer.load_state_dict(
        {
            "in_proj_weight": torch.cat([weights[f"{name}.weight"] for name in inner]),
            "in_proj_bias": torch.cat([weights[f"{name}.bias"] for name in inner]),
            "out_proj.weight": weights["proj.weight"],
            "out_proj.bias": weights["proj.bias"],
        }
    )
    return layer


def weights_of(module):
    return {name: parameter.detach().clone() for name, parameter in module.named_parameters()}


def torch_block(block):
    """PyTorch's own decoder layer with the weights of a DecoderBlock."""
    weights = weights_of(block)
    own = {name: value for name, value in weights.items() if name.startswith(("self_attention", "norm"))}
    own = {name.replace("self_attention", "self_attn"): value for name, value in own.items()}
    for name in ("weight", "bias"):
        own[f"linear1.{name}"], own[f"linear2.{name}"] = weights[f"ff.0.{name}"], weights[f"ff.2.{name}"]
    cross = {name.removeprefix("cross_attention."): value for name, value in weights.items()}
    for name, value in torch_attention({**cross, "n_heads": H}).state_dict().items():
        own[f"multihead_attn.{name}"] = value
    layer = nn.TransformerDecoderLayer(C, H, FF, dropout=0.0, batch_first=True).double()
    layer.load_state_dict(own)
    return layer


def compare(actual, expected, y, memory, what):
    """Outputs, and the gradients of both inputs under one random direction."""
    wanted = expected(y, memory).detach()

    def compared(*inputs):
        output = actual(*inputs)
        checks.close(output.detach(), wanted, what)
        return output

    checks.gradients_close(compared, expected, y, memory, what=f"the gradient ({what})")


# ------------------------------------------------------------------ cross-attention


@task("cross", 1.75, needs="test_cross_attention_owns_four_layers", forbids=READY_MADE_ATTENTION, promise=(
    "Queries come from the written words, keys and values from the memory.",
    "in training and in eval alike; none of the inputs is changed",
))
def test_cross_attention_equals_pytorch(student):
    """With the same weights, CrossAttention and PyTorch's attention agree, for several lengths and heads."""
    for heads, length, training in ((H, S, False), (H, T, True), (1, LONG, False)):
        cross = filled(student.CrossAttention(C, heads))
        cross.train(training)
        layer = torch_attention({**weights_of(cross), "n_heads": heads})
        y, memory = numbers(B, T, C), numbers(B, length, C)
        words = " in training" if training else ""
        what = f"CrossAttention{words} with {heads} heads, T = {T} and S = {length}"
        compare(cross, lambda y, memory, layer=layer: layer(y, memory, memory)[0], y, memory, what)
    small = student.CrossAttention(C, H)
    checks.dtype(small(y.float(), memory.float()), torch.float32, "CrossAttention in float32")


@task("cross", 0.25, forbids=READY_MADE_ATTENTION, promise=(
    "there is no causal mask here",
    "The two lengths have nothing to do with each other.",
))
def test_every_word_of_the_memory_is_in_reach(student):
    """Each written word attends to every memory word, whatever their order, and to no other written word."""
    y, memory = numbers(B, T, C), numbers(B, T, C)
    cross = filled(student.CrossAttention(C, H))
    output = cross(y, memory)
    checks.shape(output, (B, T, C), "CrossAttention of equally many written and read words")
    checks.close(cross(y, memory.flip(1)), output, "CrossAttention with the memory in reverse order")
    # B times as many sentences: of each there is one for each of its T words
    many, single = memory.repeat_interleave(T, 0), y.reshape(B * T, 1, C)
    alone = cross(single, many)
    checks.shape(alone, (B * T, 1, C), "CrossAttention of one written word")
    checks.close(alone.reshape(B, T, C), output, "CrossAttention, asked by one written word at a time,")
    changed = many.unflatten(0, (B, T)) + torch.eye(T, dtype=torch.float64)[..., None]  # word s of sentence s
    moved = cross(y.repeat_interleave(T, 0), changed.flatten(0, 1))
    checks.shape(moved, (B * T, T, C), "CrossAttention of equally many written and read words")
    moved = (moved.unflatten(0, (B, T)) - output.unsqueeze(1)).abs().amax(dim=(0, 3))  # (changed, written)
    for s, reached in enumerate(moved):
        same = reached < 1e-9                                                        # (T,)
        checks.true(not same.any(), f"No change of memory word {s} reaches written word {same.int().argmax()}.")


@task("cross", 0.5, forbids=READY_MADE_ATTENTION, promise=(
    "memory_padding_mask (B, S), True marks padding, which gets no attention",
    "in training and in eval alike; none of the inputs is changed",
))
def test_padding_in_the_memory_gets_no_attention(student):
    """The content of padded memory slots does not matter, in training as in eval; a padded memory is a shorter one."""
    y = numbers(B, T, C)
    cross = filled(student.CrossAttention(C, H))
    memory, padding = numbers(B, S, C), tail(LENGTHS, S)
    other = torch.where(padding.unsqueeze(-1), numbers(B, S, C), memory)
    memories = torch.cat([memory, other, memory + 1])                                # (3 B, S, C)
    for training in (False, True):
        cross.train(training)
        words = "in training " if training else ""
        turned = memories.roll(B * training, 0)                                      # another memory in each call
        outputs = cross(y.repeat(3, 1, 1), turned, padding.repeat(3, 1))
        checks.shape(outputs, (3 * B, T, C), f"{words}CrossAttention with padding")
        first, replaced, moved = outputs.roll(-B * training, 0).split(B)
        checks.finite(first, f"{words}CrossAttention with padding")
        checks.close(replaced, first, f"{words}CrossAttention after the padding was replaced")
        apart = (moved - first).abs().amax()
        checks.true(apart > 1e-9, "With padding, no change of the memory reaches the output.")
    for row, length in enumerate(LENGTHS):
        alone = cross(y[row : row + 1], memory[row : row + 1, :length])
        what = f"row {row} with a padded memory, compared with the same memory without padding,"
        checks.close(first[row : row + 1], alone, what)
    checks.input_untouched(cross, y, memory, padding, what="CrossAttention")


@task("cross", 0.25, forbids=READY_MADE_ATTENTION,
      promise="Raises ValueError that names d_model and n_heads and their values if n_heads does not divide d_model.")
def test_heads_that_do_not_divide_the_width_are_refused(student):
    """A d_model that n_heads does not divide is a ValueError that names both and their values."""
    checks.shape(student.CrossAttention(C, 6)(torch.randn(1, 2, C), torch.randn(1, 3, C)), (1, 2, C))
    heads = random.randint(4, 9)
    for width in (heads * random.randint(2, 9) + random.randint(1, heads - 1), 2 * heads - 1):
        naming = ("d_model", width, "n_heads", heads)
        checks.raises(ValueError, student.CrossAttention, width, heads, naming=naming)


# ------------------------------------------------------------------ the decoder block


@task("block", 0.75, forbids=READY_MADE_DECODER, promise=(
    "Post-norm: self-attention, add, norm; cross-attention, add, norm; feed-forward, add, norm.",
    "none of the inputs is changed",
))
def test_block_wiring(student):
    """The block's own parts, wired in post-norm order, give its output, and no input is changed."""
    y, memory, padding = numbers(B, T, C), numbers(B, S, C), tail(LENGTHS, S)
    block = filled(student.DecoderBlock(C, H, FF, dropout=0.0))
    checks.input_untouched(block, y, memory, padding, what="the decoder block")
    future = torch.ones(T, T, dtype=torch.bool).triu(1)

    def whole(y, memory, mask=None):
        return block(y, memory) if mask is None else block(y, memory, memory_padding_mask=mask)

    for mask, training in ((None, False), (padding, True)):
        block.train(training)
        words = (" in training" if training else "") + ("" if mask is None else " with padding in the memory")
        inputs = (y, memory) if mask is None else (y, memory, mask)
        actual = checks.input_untouched(whole, *inputs, what="the decoder block")
        a = block.norm1(y + block.self_attention(y, y, y, attn_mask=future, need_weights=False)[0])
        b = block.norm2(a + block.cross_attention(a, memory, mask))
        expected = block.norm3(b + block.ff(b))
        checks.close(actual, expected, f"the block{words}, compared with its own parts in order,")


@task("block", 1.25, needs="test_block_owns_its_parts", forbids=READY_MADE_DECODER, promise=(
    "(nn.LayerNorm with PyTorch's default eps)",
    "for any T and S, in the number type of the module",
))
def test_block_equals_pytorch(student):
    """With the same weights, the block and PyTorch's decoder layer agree, gradients and eps included."""
    block = filled(student.DecoderBlock(C, H, FF))
    layer = torch_block(block)
    future = torch.ones(T, T, dtype=torch.bool).triu(1)
    for length, padding in ((T, tail([4, T, 2], T)), (T, None), (S, tail(LENGTHS, S))):
        y, memory = numbers(B, T, C), numbers(B, length, C)

        def theirs(y, memory, padding=padding):
            return layer(y, memory, tgt_mask=future, memory_key_padding_mask=padding)

        words = "" if padding is None else ", with padding in the memory"
        what = f"the block with T = {T}, S = {length}{words}"
        compare(lambda y, memory, padding=padding: block(y, memory, padding), theirs, y, memory, what)


@task("block", 0.5, forbids=READY_MADE_DECODER,
      promise="written word t attends to the written words up to and including t, and to the whole memory")
def test_the_future_is_hidden_at_any_length(student):
    """However long the sentence, a written word attends to itself and to all earlier words, to no later one."""
    y, memory = numbers(1, LONG, C), numbers(1, S, C)
    block = filled(student.DecoderBlock(C, H, FF))
    short = block(y[:, :T], memory)
    output = block(y, memory)
    checks.shape(output, (1, LONG, C), f"the block of {LONG} written words")
    for t in (1, T, 2 * T, LONG - T):
        what = f"the block of the first {t} of {LONG} words, compared with the block of all,"
        checks.close(short if t == T else block(y[:, :t], memory), output[:, :t], what)
    other = y.clone()
    other[:, 0] += 1
    moved = (block(other, memory) - output).abs().amax(dim=(0, 2))                   # (T,)
    checks.true((moved > 1e-9).all(), "The first written word has no influence on some later word.")


@task("block", 0.5, forbids=READY_MADE_DECODER, promise=(
    "(nn.Dropout; acts on each sublayer's output, before it is added).",
    "and only in training.",
))
def test_block_dropout(student):
    """Dropout acts on the three sublayers' outputs in training, never on the residual stream and never in eval."""
    y, memory = numbers(B, T, C), numbers(B, S, C)
    block = filled(student.DecoderBlock(C, H, FF, dropout=1.0))
    stream = block.norm3(block.norm2(block.norm1(y)))
    checks.deterministic_in_eval(block, y, memory)
    missing = (block(y, memory) - stream).abs().max().item()
    checks.true(not missing <= 1e-6, "With dropout=1.0 the sublayers are silent in eval: dropout is never off.")
    block.train()
    checks.close(block(y, memory), stream, "in training with dropout=1.0 the block")


# ------------------------------------------------------------------ the translator


@task("translator", 1.75, needs="test_translator_owns_its_parts", forbids=READY_MADE_DECODER, promise=(
    "Every block of the decoder gets the *same* memory, the output of the encoder's last layer.",
    "`head`, an nn.Linear (with bias) from d_model to vocab_size.",
))
def test_translator_numbers(student, reference):
    """With as many words as numbers in a vector, memory, logits and gradients are right, with and without padding."""
    sizes = dict(n_layers=2, d_ff=FF, max_len=11)
    model = filled(reference.Translator(C, C, H, **sizes))
    translator = student.Translator(C, C, H, **sizes)
    translator.double()
    translator.eval()
    checks.copy_parameters(model, translator)
    src, y = torch.randint(3, C, (B, S)), torch.randint(3, C, (B, T))
    memory = model.encode(src).detach()
    checks.close(translator.encode(src), memory, "the memory")
    logits = model.decode(y, memory).detach()
    checks.close(translator.decode(y, memory), logits, "the logits")
    padding = tail(LENGTHS, S)
    what = "the translator's output with padding in the source"
    checks.close(translator(src, y, padding), model(src, y, padding), what)
    checks.parameter_gradients_close(translator, model, src, y)
    small = translator.float()
    checks.dtype(small.decode(y, memory.float()), torch.float32, "the logits of a translator in float32")


@task("translator", 0.5, forbids=READY_MADE_DECODER, promise=(
    "Padding gets no attention, in training and in eval alike.",
    "thanks to the causal mask all positions are asked at once.",
))
def test_neither_padding_nor_the_future_reaches_the_logits(student):
    """Neither padding in the source nor words that are written later change the logits; early words do."""
    translator = filled(student.Translator(V, C, H, n_layers=2, d_ff=FF, max_len=11))
    src, y, padding = torch.randint(3, V, (B, S)), torch.randint(3, V, (B, T)), tail(LENGTHS, S)
    encode, decode = translator.encode, translator.decode
    memory = encode(src, padding)
    checks.padding_invariant(encode, src, LENGTHS, what="the memory")
    other = torch.where(padding.unsqueeze(-1), numbers(B, S, C), memory)
    x, block = numbers(B, T, C), translator.decoder[0]
    what = "the decoder's first block after the memory's padding was replaced"
    checks.close(block(x, other, padding), block(x, memory, padding), what)
    with_padding = decode(y, memory, padding)
    what = "the logits after the memory's padding was replaced"
    checks.close(decode(y, other, padding), with_padding, what)
    checks.prefix_invariant(lambda y: decode(y, memory, padding), y, what="the logits")
    changed = y.clone()
    changed[:, 0] = (y[:, 0] + 1) % V
    moved = (decode(changed, memory, padding) - with_padding).abs().amax(dim=(0, 2))  # (T,)
    checks.true((moved > 1e-9).all(), "The first written word has no influence on what comes later.")


@task("translator", 0.5, forbids=READY_MADE_DECODER, promise=(
    "the decoder's blocks, with the same dropout, and the head",
    "Padding gets no attention, in training and in eval alike.",
))
def test_translator_dropout(student):
    """The decoder's blocks get the translator's dropout; with dropout=0, training and eval give the same numbers."""
    src, y = torch.randint(3, V, (B, S)), torch.randint(3, V, (B, T))
    translator = filled(student.Translator(V, C, H, 2, FF, 11, dropout=0.5))
    checks.deterministic_in_eval(translator, src, y, what="the logits")
    memory = translator.encode(src)
    translator.train()
    decode = translator.decode
    alike = torch.equal(decode(y, memory), decode(y, memory))
    checks.true(not alike, "With dropout=0.5 nothing is dropped in the decoder while training.")
    translator = filled(student.Translator(V, C, H, 1, FF, 11))
    padding = tail(LENGTHS, S)
    decode = translator.decode
    expected, with_padding = decode(y, memory), translator(src, y, padding)
    translator.train()
    checks.close(decode(y, memory), expected, "in training with dropout=0 the logits")
    what = "in training with dropout=0 and padding in the source, compared with eval, the logits"
    checks.close(translator(src, y, padding), with_padding, what)


# ------------------------------------------------------------------ greedy decoding


class Hesitant(Reverser):
    """Its second word is PAD and its third BOS, whatever they should be."""

    def decode(self, y, memory, memory_padding_mask=None):
        logits = super().decode(y, memory, memory_padding_mask)
        logits[:, 1:2, self.pad_id] += 1
        logits[:, 2:3, self.bos_id] += 1
        return logits


def some_words(*lengths, without=()):
    """Rows of random words, none of them special or in `without`."""
    words = [word for word in range(3, V) if word not in without]
    return [random.choices(words, k=length) for length in lengths]


def backwards(rows, eos_id=EOS, pad_id=PAD):
    """The rows in reverse, each with its EOS, filled up with PAD: (B, L)."""
    ended = [torch.tensor([*reversed(row), eos_id]) for row in rows]
    return nn.utils.rnn.pad_sequence(ended, batch_first=True, padding_value=pad_id)


def decode(student, model, rows, max_len):
    """greedy_decode of these rows, filled up with the model's PAD."""
    rows, pad_id = [torch.tensor(row) for row in rows], model.pad_id
    src = nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=pad_id)
    return student.greedy_decode(model, src, model.bos_id, model.eos_id, pad_id, max_len)


@task("greedy", 0.75, promise=(
    "each row is what was written, its EOS, then PAD.",
    "L is the length of the longest row with its EOS, and never more than max_len.",
))
def test_each_row_ends_on_its_own(student):
    """Rows filled up with PAD, which must not be read: each gets its words, its own EOS, then PAD, and no more."""
    rows = some_words(2, 4, 1)
    written = checks.tensor(decode(student, Reverser(V), rows, max_len=9))
    ended = int((written == EOS).any(dim=-1).sum())
    checks.true(ended == 3, f"{ended} of 3 rows end with an EOS of their own, and there is room for all.")
    checks.equal(written, backwards(rows), "the output for 2, 4 and 1 words, filled up with padding,")
    pad_id = random.randrange(9, V)
    long, short = some_words(4, 1, without=[pad_id])
    rows = [long, [*short, 0]]
    written = decode(student, Reverser(V, pad_id=pad_id), rows, max_len=7)
    what = f"the output for 4 and 2 words, filled up with padding, pad_id = {pad_id},"
    checks.equal(written, backwards(rows, pad_id=pad_id), what)
    rows = some_words(4, 3)
    written = decode(student, Reverser(V, margin=1e-4), rows, max_len=7)
    checks.equal(written, backwards(rows), "two sentences in reverse, by a model whose best words are nearly tied,")


@task("greedy", 0.25, promise=(
    "Only EOS, that is eos_id, ends a row.",
    "should the model predict PAD or BOS before it, that is a word like any other.",
))
def test_special_words_have_the_ids_of_the_call(student):
    """BOS, EOS and PAD are bos_id, eos_id and pad_id, and only EOS ends a row."""
    bos_id, eos_id, pad_id = random.sample(range(3, V), 3)
    long, short = some_words(4, 1, without=[bos_id, eos_id, pad_id])
    rows = [long, [*short, EOS, BOS]]
    written = decode(student, Reverser(V, bos_id, eos_id, pad_id), rows, max_len=7)
    what = f"two sentences in reverse with bos_id = {bos_id}, eos_id = {eos_id} and pad_id = {pad_id}"
    checks.equal(written, backwards(rows, eos_id, pad_id), what)
    rows = some_words(3, 4)
    written = decode(student, Hesitant(V), rows, max_len=7)
    expected = backwards(rows)
    expected[:, 1:3] = torch.tensor([PAD, BOS])
    checks.equal(written, expected, "the output of a model whose second word is PAD and whose third is BOS")


@task("greedy", 0.75, promise=(
    "and never more than max_len.",
    "Raises ValueError that names max_len and its value if it is below 1.",
))
def test_max_len_is_the_limit(student):
    """No row gets more than max_len words, whether it is done or not; max_len below 1 is a ValueError that names it."""
    rows = some_words(2, 4)
    expected = backwards(rows)
    for limit in (1, 3, 5, 6):
        written = decode(student, Reverser(V), rows, max_len=limit)
        checks.equal(written, expected[:, :limit], f"two sentences in reverse with max_len = {limit}")
    src = torch.tensor(some_words(2))
    for too_few in (0, -2):
        naming = ("max_len", too_few)
        checks.raises(ValueError, student.greedy_decode, Reverser(V), src, BOS, EOS, PAD, too_few, naming=naming)


@task("greedy", 0.75, promise=(
    "encode is called once.",
    "**The source's padding** is where `src` is `pad_id`.",
    "src keeps its values.",
))
def test_the_encoder_runs_once(student):
    """The source is read once, with its padding masked, every step of writing uses that memory, and src stays."""
    model = Reverser(V)
    rows = some_words(3, 5)
    written = decode(student, model, rows, max_len=8)
    times = model.encoder_calls
    checks.true(times == 1, f"The encoder ran {times} times for one batch; once is enough.")
    checks.equal(written, backwards(rows), "two sentences in reverse")
    short, long = some_words(2, 3)
    src, signs = torch.tensor([[*short, PAD], long]), (BOS, EOS, PAD, 6)
    checks.input_untouched(lambda src: student.greedy_decode(Reverser(V), src, *signs), src, what="greedy_decode")


class Nervous(Reverser):
    """In training mode, its last word is more likely than it should be."""

    def decode(self, y, memory, memory_padding_mask=None):
        logits = super().decode(y, memory, memory_padding_mask)
        logits[..., -1] += float(self.training)
        return logits


@task("greedy", 0.5,
      promise="It runs in eval mode and without gradients; afterwards it is back in the mode it came in.")
def test_decoding_is_an_exam(student):
    """The model decodes in eval mode, and afterwards is in the mode it came in."""
    for training in (True, False):
        model = Nervous(V)
        model.train(training)
        decode(student, model, some_words(2, 3), max_len=6)
        came, went = ("training" if mode else "eval" for mode in (training, model.training))
        checks.true(bool(model.decodings), "The model was never asked for a word.")
        checks.true(not any(model.modes), "The model was asked while it was in training mode.")
        checks.true(came == went, f"The model came in {came} mode and was left in {went} mode.")


@task("greedy", 0.5, promise="It runs in eval mode and without gradients")
def test_decoding_keeps_no_gradients(student):
    """The model reads and writes without gradients being kept."""
    model = Reverser(V)
    decode(student, model, some_words(2, 3), max_len=6)
    checks.true(bool(model.decodings), "The model was never asked for a word.")
    checks.true(not any(model.grads), "The model was asked while gradients were kept.")
