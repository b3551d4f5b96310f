"""Ready-made: every switch, and the four promises, against the solution's models by hand."""

import random

import torch

from autograder import checks, task

B, T, S, C, H, FF, V = 3, 5, 7, 24, 4, 13, 17
SAME = {"atol": 2e-5, "rtol": 1e-4}  # for numbers with seven digits
DIGITS = {"atol": 1e-10, "rtol": 1e-10}  # for numbers with fifteen


def future(length):
    return torch.ones(length, length, dtype=torch.bool).triu(1)


def tail(lengths, width):
    """True where a row is over: (B, width)."""
    return torch.arange(width) >= torch.tensor(lengths).unsqueeze(1)


def fresh(student, name, *sizes, **switches):
    """A module of the student's with fresh weights, in eval mode."""
    return resting(checks.randomize(getattr(student, name)(*sizes, **switches)))


def twins(student, reference, name, *sizes, **switches):
    """The student's module and the solution's with the same fresh weights, both in eval mode."""
    mine, theirs = (getattr(who, name)(*sizes, **switches) for who in (student, reference))
    checks.copy_parameters(checks.randomize(theirs), mine, name)
    mine.eval()
    theirs.eval()
    return mine, theirs


def resting(module):
    module.eval()
    return module


def logits(gpt2, ids):
    answer = gpt2(ids, use_cache=False)
    known = isinstance(answer, dict) and "logits" in answer
    checks.true(
        known, "What came back does not return what a GPT2LMHeadModel returns, an object that has logits."
    )
    return answer["logits"]


def own_copies(old, new, ask_old, ask_new):
    """Whatever happens to one of two modules, the output of the other stays as before."""
    before_old, before_new = ask_old(old), ask_new(new)
    checks.randomize(new)
    changed = ask_new(new)
    checks.true(not torch.allclose(changed, before_new), "The new module does not use its own parameters.")
    checks.close(
        ask_old(old), before_old, "the old module's output after the new one's weights have changed", **SAME
    )
    checks.randomize(old)
    ask_old(old)
    checks.close(
        ask_new(new), changed, "the new module's output after the old one's weights have changed", **SAME
    )


def left_alone(convert, old):
    """The new module; the old one owns the same parameters as before, with the same numbers, and as trainable."""
    before = {name: (value.detach().clone(), value.requires_grad) for name, value in old.named_parameters()}
    new = convert(old)
    now = dict(old.named_parameters())
    checks.true(
        list(now) == list(before), "After the move, the old module owns other parameters than before."
    )
    for name, (value, learns) in before.items():
        checks.dtype(now[name], value.dtype, f"{name} of the old module, after the move,")
        checks.equal(now[name], value, f"{name} of the old module, after the move")
        same = now[name].requires_grad == learns
        checks.true(same, f"Before the move {name} of the old module was trainable or not, after it the other way round.")
    return new


def in_mode(convert, old, training):
    """The new module; it is in the old one's mode, and the old one stays in it."""
    word = "training" if training else "eval"
    old.train(training)
    new = convert(old)
    checks.true(old.training == training, f"The old module was in {word} mode; after the move it is not.")
    checks.true(new.training == training, f"The old module is in {word} mode; the new one is not.")
    return new


def keeps_type(convert, old, ask_old, ask_new):
    """The new module's numbers are of the old one's type, and none of their digits are lost on the way.

    `convert(old, training)` moves the old module, in training mode or not.
    """
    checks.randomize(old.to(torch.float64)).eval()
    theirs, moved = checks.tensor(ask_old(old)), []
    for kind, word, training in ((torch.float64, "float64", True), (torch.float32, "float32", False)):
        moved.append(convert(old.to(kind), training))
        for name, parameter in moved[-1].named_parameters():
            checks.dtype(parameter, kind, f"{name}, moved from a module in {word},")
    mine = checks.tensor(ask_new(resting(moved[0])))
    if mine.shape == theirs.shape and torch.allclose(mine, theirs, **SAME):  # a wrong move is told elsewhere
        checks.close(mine, theirs, "the new module's output, moved in float64,", **DIGITS)


def keeps_type_and_mode(convert, old, ask_old, ask_new):
    """Both of the old module's; each move differs from float32 in training mode, which PyTorch begins with."""
    keeps_type(lambda old, training: in_mode(convert, old, training), old, ask_old, ask_new)


def without_dropout(convert, old, ask_old, ask_new):
    """A module without dropout is moved to one without dropout: in training mode, too, both give the same output."""
    old.train()
    new = convert(old)
    new.train()
    checks.close(
        ask_new(new), ask_old(old), "the new module's output in training mode, without dropout,", **SAME
    )


def with_dropout(convert, old, last, ask_old, ask_new):
    """Dropout is as strong as in the old module.

    One word stands at all places, and of all that is added to it only number 0 of the last step is not zero: it is
    dropped in some places, and in the others stretched, the more, the stronger dropout is.
    """
    mute(old)
    with torch.no_grad():
        dict(old.named_parameters())[last][0] = 3.0
    old.train()
    new = convert(old)
    old.train()
    new.train()
    mine, theirs = (checks.tensor(answer)[..., 0] for answer in (ask_new(new), ask_old(old)))
    for what, choose in (("smallest", torch.amin), ("largest", torch.amax)):
        checks.close(choose(mine), choose(theirs), f"the {what} output under dropout", **SAME)


def mute(*modules):
    """Attention and feed-forward layers return zero: only the norms are left of a block."""
    steps = ("out_proj", "cross_attention.proj", "linear2", "ff.2")
    with torch.no_grad():
        for module in modules:
            for name, parameter in module.named_parameters():
                if name.rpartition(".")[0].endswith(steps):
                    parameter.zero_()


# ------------------------------------------------------------------ attention


@task("attention", 0.5, needs="test_attention_by_hand",
      promise="`layer(x, x, x, attn_mask=~mask)[0]` equals `fused(x, mask)`, and `layer(x, x, x)[0]` equals `fused(x)`.")
def test_attention_for_other_sizes(student, reference):
    """Outputs agree for one head and for many, for short and long sentences, for all and for the past only."""
    for width, heads, length in ((C, 1, T), (12, 6, S), (12, 4, 1)):
        mine, theirs = twins(student, reference, "FusedMultiHeadAttention", width, heads)
        layer, x = student.to_torch_attention(mine), torch.randn(B, length, width)
        what = f"PyTorch's output for C = {width}, H = {heads}, T = {length}"
        checks.close(layer(x, x, x)[0], theirs(x), what, **SAME)
        hidden = future(length)
        past = layer(x, x, x, attn_mask=hidden)[0]
        checks.close(past, theirs(x, ~hidden), f"{what} and a mask", **SAME)


@task("attention", 0.25, needs="test_attention_moves_in", promise=(
    "owns **copies** of the weights: whatever happens to one of the two later, the other does not change",
    "the old module is left exactly as it was",
))
def test_attention_owns_copies(student):
    """The move leaves attention by hand as it was, and what happens to one of the two later stays with it."""
    mine = fresh(student, "FusedMultiHeadAttention", C, H)
    layer, x = left_alone(student.to_torch_attention, mine), torch.randn(B, T, C)
    own_copies(mine, layer, lambda old: old(x), lambda new: new(x, x, x)[0])


@task("attention", 0.25, needs="test_attention_moves_in", promise=(
    "has the old one's **number type**",
    "Call it before you copy: numbers that pass through a smaller type lose their last digits on the way.",
))
def test_attention_keeps_its_number_type(student):
    """PyTorch's attention has float64 weights exactly if attention by hand has, with all their digits."""
    x = torch.randn(B, T, C, dtype=torch.float64)
    old = student.FusedMultiHeadAttention(C, H)
    keeps_type(
        lambda old, _: student.to_torch_attention(old), old, lambda old: old(x), lambda new: new(x, x, x)[0]
    )


@task("attention", 0.25, needs="test_attention_moves_in",
      promise="is in the old one's **mode**, training or eval")
def test_attention_keeps_its_mode(student):
    """PyTorch's attention comes in the mode, training or eval, that attention by hand is in."""
    old = checks.randomize(student.FusedMultiHeadAttention(C, H))
    for training in (False, True):
        in_mode(student.to_torch_attention, old, training)


# ------------------------------------------------------------------ the encoder layer


@task("encoder", 0.25, promise="which is post-norm or a PreNormBlock.")
def test_encoder_layer_in_pre_norm(student, reference):
    """A PreNormBlock becomes a layer that norms first."""
    mine, theirs = twins(student, reference, "PreNormBlock", C, H, FF)
    layer, x = resting(student.to_torch_encoder_layer(mine)), torch.randn(B, T, C)
    checks.close(layer(x), theirs(x), "PyTorch's output for a PreNormBlock", **SAME)


@task("encoder", 0.25, needs="test_encoder_layer_moves_in", promise='`ff.activation`, `"relu"` or `"gelu"`')
def test_encoder_layer_with_the_other_activation(student, reference):
    """A block with GELU becomes a layer with GELU, for other sizes as well."""
    mine, theirs = twins(student, reference, "TransformerEncoderBlock", 12, 3, 40, activation="gelu")
    layer, x = resting(student.to_torch_encoder_layer(mine)), torch.randn(2, S, 12)
    checks.close(layer(x), theirs(x), "PyTorch's output for a block with GELU", **SAME)


@task("encoder", 0.25, needs="test_encoder_layer_moves_in",
      promise="`norm1.eps` (BERT, for example, takes 1e-12)")
def test_encoder_layer_keeps_eps(student, reference):
    """The layer's norms take the block's eps, large or small."""
    for eps in (0.05, 1e-12):
        mine, theirs = twins(student, reference, "TransformerEncoderBlock", C, H, FF, eps=eps)
        layer, x = resting(student.to_torch_encoder_layer(mine)), 1e-3 * torch.randn(B, T, C)
        mute(mine, theirs, layer)
        checks.close(layer(x), theirs(x), f"PyTorch's output for small numbers and eps = {eps}", **SAME)


@task("encoder", 0.25, needs="test_encoder_layer_moves_in", promise="Dropout is as strong as in the block.")
def test_encoder_layer_keeps_dropout(student):
    """Dropout is as strong in the layer as in the block, and where the block has none, the layer has none."""
    x = torch.randn(B, T, C)
    dry = fresh(student, "TransformerEncoderBlock", C, H, FF, dropout=0.0)
    without_dropout(student.to_torch_encoder_layer, dry, lambda old: old(x), lambda new: new(x))
    wet = fresh(student, "TransformerEncoderBlock", C, H, FF, dropout=0.4)
    same = x[:1, :1].expand(B, 17, C).contiguous()
    convert = student.to_torch_encoder_layer
    with_dropout(convert, wet, "ff.linear2.bias", lambda old: old(same), lambda new: new(same))


@task("encoder", 0.25, needs="test_encoder_layer_moves_in", promise=(
    "equals `block(x, padding_mask)`. Dropout is as strong as in the block. The four promises hold.",
    "owns **copies** of the weights",
    "the old module is left exactly as it was",
))
def test_encoder_layer_keeps_the_promises(student):
    """The layer owns copies, has the block's number type and mode, and leaves the block as it was."""
    mine = fresh(student, "TransformerEncoderBlock", C, H, FF)
    x, convert = torch.randn(B, T, C), student.to_torch_encoder_layer
    own_copies(mine, resting(left_alone(convert, mine)), lambda old: old(x), lambda new: new(x))
    keeps_type_and_mode(convert, mine, lambda old: old(x.double()), lambda new: new(x.double()))


# ------------------------------------------------------------------ the decoder layer


@task("decoder", 0.75,
      promise="`layer(y, memory, tgt_mask=future(T), memory_key_padding_mask=memory_padding_mask)` equals")
def test_decoder_layer_for_other_sizes(student, reference):
    """Outputs agree for other sizes, for memories longer and shorter than the text, and for padded ones."""
    for width, heads, d_ff, lengths, alike in ((C, 1, FF, [4, S, 2], T), (12, 6, 29, [2, 1, 3], 3)):
        mine, theirs = twins(student, reference, "DecoderBlock", width, heads, d_ff)
        layer, longest = resting(student.to_torch_decoder_layer(mine)), max(lengths)
        y, memory, padding = torch.randn(B, T, width), torch.randn(B, longest, width), tail(lengths, longest)
        sizes = f"C = {width}, H = {heads}, d_ff = {d_ff}, T = {T}, S ="
        whole = memory[:, :alike]  # without padding, all memories are equally long
        checks.close(
            layer(y, whole, tgt_mask=future(T)), theirs(y, whole), f"PyTorch's output for {sizes} {alike}", **SAME
        )
        padded = layer(y, memory, tgt_mask=future(T), memory_key_padding_mask=padding)
        what = f"PyTorch's output for {sizes} {longest} and padding"
        checks.close(padded, theirs(y, memory, padding), what, **SAME)


@task("decoder", 0.25, needs="test_decoder_layer_moves_in",
      promise="`block(y, memory, memory_padding_mask)`. Dropout is as strong as in the block.")
def test_decoder_layer_keeps_dropout(student):
    """Dropout is as strong in the layer as in the block, and where the block has none, the layer has none."""
    y, memory = torch.randn(B, T, C), torch.randn(B, S, C)
    dry = fresh(student, "DecoderBlock", C, H, FF, dropout=0.0)

    def ask_new(new):
        return new(y, memory, tgt_mask=future(T))

    without_dropout(student.to_torch_decoder_layer, dry, lambda old: old(y, memory), ask_new)
    wet = fresh(student, "DecoderBlock", C, H, FF, dropout=0.4)
    same, convert = y[:1, :1].expand(B, 17, C).contiguous(), student.to_torch_decoder_layer
    with_dropout(convert, wet, "ff.2.bias", lambda old: old(same, memory), lambda new: new(same, memory))


@task("decoder", 0.25, needs="test_decoder_layer_moves_in", promise=(
    "owns **copies** of the weights",
    "the old module is left exactly as it was",
))
def test_decoder_layer_owns_copies(student):
    """The move leaves the block as it was, and what happens to one of the two later stays with it."""
    mine = fresh(student, "DecoderBlock", C, H, FF)
    layer = resting(left_alone(student.to_torch_decoder_layer, mine))
    y, memory = torch.randn(B, T, C), torch.randn(B, S, C)
    own_copies(mine, layer, lambda old: old(y, memory), lambda new: new(y, memory, tgt_mask=future(T)))


@task("decoder", 0.25, needs="test_decoder_layer_moves_in",
      promise="has the old one's **number type**, and is in the old one's **mode**, training or eval")
def test_decoder_layer_keeps_type_and_mode(student):
    """The layer has the block's mode and its number type, with all digits."""
    y, memory = torch.randn(B, T, C, dtype=torch.float64), torch.randn(B, S, C, dtype=torch.float64)
    convert, block = student.to_torch_decoder_layer, student.DecoderBlock(C, H, FF)
    keeps_type_and_mode(
        convert, block, lambda old: old(y, memory), lambda new: new(y, memory, tgt_mask=future(T))
    )


# ------------------------------------------------------------------ GPT-2


@task("gpt2", 0.5, promise=("For ids (B, T), `gpt2(ids).logits` equals `model(ids)`", "(`n_positions`, C)"))
def test_gpt2_for_other_sizes(student, reference):
    """Logits agree for other sizes, three blocks, one word, a full text; the table of positions has block_size rows."""
    sizes = 29, 12, 6, 6, 3
    mine, theirs = twins(student, reference, "TransformerLanguageModel", *sizes)
    gpt2 = resting(student.to_hugging_face_gpt2(mine))
    positions = dict(gpt2.named_parameters()).get("transformer.wpe.weight")
    checks.shape(positions, (6, 12), "GPT-2's table of positions")
    for length in (1, 6):
        ids = torch.randint(29, (B, length))
        what = "the logits for V = {}, C = {}, block_size = {}, H = {}, N = {}".format(*sizes)
        checks.close(logits(gpt2, ids), theirs(ids), f"{what} and T = {length}", **SAME)


@task("gpt2", 0.25, needs="test_gpt2_moves_in", promise=(
    "`layer_norm_epsilon=1e-5`",
    "`gpt2(ids).logits` equals `model(ids)`",
))
def test_gpt2_keeps_eps(student, reference):
    """All norms of GPT-2 take the eps of the model by hand."""
    mine, theirs = twins(student, reference, "TransformerLanguageModel", V, C, 7, H, eps=0.05)
    gpt2, ids = resting(student.to_hugging_face_gpt2(mine)), torch.randint(V, (B, T))
    checks.close(logits(gpt2, ids), theirs(ids), "the logits for eps = 0.05", **SAME)


@task("gpt2", 0.25, needs="test_gpt2_moves_in", promise="in training mode, too: there is no dropout.")
def test_gpt2_has_no_dropout(student):
    """In training mode, too, GPT-2 gives the logits of the model by hand."""
    mine = fresh(student, "TransformerLanguageModel", V, C, 7, H)
    ids = torch.randint(V, (B, T))
    without_dropout(student.to_hugging_face_gpt2, mine, lambda old: old(ids), lambda new: logits(new, ids))


@task("gpt2", 0.25, promise="Its head is tied to its table of word vectors, as ours is.")
def test_gpt2_is_tied(student):
    """GPT-2's head and its table of word vectors are one matrix, counted once."""
    model = checks.randomize(student.TransformerLanguageModel(V, C, 7, H, num_layers=2))
    gpt2 = student.to_hugging_face_gpt2(model)
    tables = [name for name, value in gpt2.named_parameters() if tuple(value.shape) == (V, C)]
    checks.true(
        len(tables) == 1, f"There are {len(tables)} matrices with a row for each word; one was expected."
    )


@task("gpt2", 0.25, promise=("owns **copies** of the weights", "the old module is left exactly as it was"))
def test_gpt2_owns_copies(student):
    """The move leaves the model by hand as it was, and what happens to one of the two later stays with it."""
    mine = fresh(student, "TransformerLanguageModel", V, C, 7, H)
    gpt2, ids = resting(left_alone(student.to_hugging_face_gpt2, mine)), torch.randint(V, (B, T))
    own_copies(mine, gpt2, lambda old: old(ids), lambda new: logits(new, ids))


@task("gpt2", 0.25,
      promise="has the old one's **number type**, and is in the old one's **mode**, training or eval")
def test_gpt2_keeps_type_and_mode(student):
    """GPT-2 has the mode of the model by hand and its number type, with all digits."""
    ids, convert = torch.randint(V, (B, T)), student.to_hugging_face_gpt2
    model = student.TransformerLanguageModel(V, C, 7, H)
    keeps_type_and_mode(convert, model, lambda old: old(ids), lambda new: logits(new, ids))


# ------------------------------------------------------------------ byte pair encoding

ACCENTS = ("é", "ü", "½", "東", "🙂")


def sentence(count, letters="abc", longest=7):
    """Words of a few letters, and some letters of more than one byte, so that pairs are frequent and often tied."""
    made = []
    for _ in range(count):
        made.append("".join(random.choices(letters, k=random.randrange(1, longest))))
        if random.random() < 0.2:
            made[-1] += random.choice(ACCENTS)
    return " ".join(made)


def characters(count):
    """Any characters that UTF-8 can hold, from all of Unicode."""
    codes = random.sample(range(0x110000 - 0x800), count)
    return "".join(chr(code if code < 0xD800 else code + 0x800) for code in codes)  # without the surrogates


@task("bpe", 0.75, needs="test_merges_by_hand", promise=(
    "Most frequent pair first, within words and over the whole text; of equally frequent ones, the smallest.",
    "What was joined is a token from now on, and can become half of the next pair.",
))
def test_merges_of_random_words(student, reference, seed):
    """For random words with accents, each merge is the most frequent pair at its turn, and the smallest of them."""
    for text, n_merges in ((sentence(60), 29), (sentence(83, "xyzXYZ"), 23)):
        checks.equal(student.train_bpe(text, n_merges), reference.train_bpe(text, n_merges), "the list of merges")


@task("bpe", 0.25, promise=(
    "A pair that stands in the text once still counts.",
    'There are fewer merges only if no word has two tokens left: none for "".',
    "Raises ValueError that names n_merges and its value if it is below 0; n_merges = 0 gives [].",
))
def test_training_ends_where_it_should(student):
    """Training goes on until every word is one token, and not beyond; a number of merges below 0 is refused."""
    word = "".join(random.sample("bcdefghijk", 2))
    once = [(word[:1].encode(), word[1:].encode())]
    checks.equal(student.train_bpe(word, 1), once, "the list of merges of a word that stands there once")
    checks.equal(student.train_bpe(word, 53), once, "the list of merges, more of them than there can be,")
    checks.equal(student.train_bpe(word, 0), [], "the list of no merges")
    for empty in ("", word[0], f"{word[0]} "):
        checks.equal(student.train_bpe(empty, 5), [], f"the list of merges of {empty!r}")
    for wrong in (-1, -random.randrange(2, 50)):
        checks.raises(ValueError, student.train_bpe, word, wrong, naming=("n_merges", wrong))


@task("bpe", 0.125, promise=(
    "A text is cut into **words**, before each space and nowhere else.",
    "No token will ever reach across such a cut.",
))
def test_words_are_cut_before_spaces_alone(student, reference, seed):
    """No merge reaches from one word into the next; tabs, ends of lines and hyphens are characters like any other."""
    one, two = random.sample("bcdefghijk", 2)
    merges = student.train_bpe(f" {one} {two}" * 31 + f" {one}", 9)
    expected = [(b" ", letter.encode()) for letter in (one, two)]
    checks.equal(merges, expected, "the list of merges of two letters that stand side by side, with a space between,")
    for sign in ("\n", "\t", "-", ",", "'", "\u00a0"):
        text, n_merges = (one + sign) * 4 + sign, 1 + len(sign.encode())
        expected = reference.train_bpe(text, n_merges)
        checks.equal(student.train_bpe(text, n_merges), expected, f"the list of merges of {text!r}")
    checks.equal(student.train_bpe("  " * 5, 5), [], "the list of merges of ten spaces")


@task("bpe", 0.75, promise=(
    "go through this list once, in its order: each pair is joined wherever it stands in the new text",
    "Letters and bytes that training never saw stay single bytes. Without merges, every token is one byte.",
))
def test_tokens_of_another_text(student, reference, seed):
    """A text that was not seen in training becomes the tokens that the merges make, in their order."""
    for letters, n_merges in (("ab", 31), ("mnopq", 59)):
        merges = reference.train_bpe(sentence(47, letters), n_merges)
        for text in (sentence(31, letters, 11), sentence(5, letters + "zZ")):
            checks.equal(student.encode(text, merges), reference.encode(text, merges), "the list of tokens")
    text = characters(13)
    checks.equal(student.encode(text, []), [bytes([byte]) for byte in text.encode()], "the tokens without merges")


@task("bpe", 0.125, promise=(
    'Joined, the tokens are the bytes of the text: `b"".join(encode(text, merges)) == text.encode()`.',
    "For each text that UTF-8 can hold, `decode(encode(text, merges))` is the text.",
    'what is no UTF-8 becomes U+FFFD, as `errors="replace"` says.',
))
def test_any_text_comes_back(student, reference, seed):
    """All of Unicode comes back as it was, and encoded again it is the same tokens; bytes that are no letter become �."""
    merges = reference.train_bpe(sentence(31) + " 東京" * 9, 31)
    for text in (characters(61), sentence(7), "  two  and\n\tthree ", "\x00 \x7f\r\n", "東京 🙂🙂", ""):
        tokens = student.encode(text, merges)
        checks.true(
            isinstance(tokens, list) and all(isinstance(token, bytes) for token in tokens),
            "encode does not return a list of bytes.",
        )
        checks.equal(b"".join(tokens), text.encode(), f"the tokens of {text!r}, joined,")
        decoded = student.decode(tokens)
        checks.equal(decoded, text, f"the tokens of {text!r}, decoded,")
        checks.equal(student.encode(decoded, merges), tokens, "the tokens, decoded and encoded again,")
    half = random.choice(ACCENTS).encode()[:-1]
    broken = [b"a", *(bytes([byte]) for byte in half), b"b", bytes([random.randrange(0x80, 0xC0)])]
    checks.equal(student.decode(broken), "a�b�", "the text of bytes that are no letters")
