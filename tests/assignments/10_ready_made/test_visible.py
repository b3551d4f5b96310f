"""Ready-made, part by part: the model by hand and its ready-made counterpart, with the student's own weights."""

import torch

from autograder import checks, task

B, T, S, C, H, FF = 3, 5, 7, 24, 4, 13
SAME = {"atol": 2e-5, "rtol": 1e-4}  # for numbers with seven digits


def filled(module):
    """The module with fresh numbers everywhere, in eval mode."""
    module.eval()
    return checks.randomize(module)


@task("attention", 0.5)
def test_attention_moves_in(student):
    """PyTorch's attention gives the same output as attention by hand, with and without a mask."""
    fused = filled(student.FusedMultiHeadAttention(C, H))
    layer = student.to_torch_attention(fused)
    x, mask = torch.randn(B, T, C), torch.ones(T, T, dtype=torch.bool).tril()
    checks.close(layer(x, x, x)[0], fused(x), "PyTorch's output without a mask", **SAME)
    checks.close(layer(x, x, x, attn_mask=~mask)[0], fused(x, mask), "PyTorch's output with a mask", **SAME)


@task("attention", 0.25)
def test_attention_by_hand(student):
    """With query 1, key 1, value 5 and output 2, the output for a single word 3 is 30."""
    fused = student.FusedMultiHeadAttention(1, 1)
    with torch.no_grad():
        fused.W_qkv.weight.copy_(torch.tensor([[1.0], [1.0], [5.0]]))
        fused.W_out.weight.fill_(2.0)
    word = torch.tensor([[[3.0]]])  # (1, 1, 1)
    output, _ = student.to_torch_attention(fused)(word, word, word)
    checks.close(output, 10 * word, "the output for the word 3")


@task("encoder", 0.75)
def test_encoder_layer_moves_in(student):
    """PyTorch's encoder layer gives the same output as a post-norm block, with and without padding."""
    block = filled(student.TransformerEncoderBlock(C, H, FF))
    layer = student.to_torch_encoder_layer(block)
    layer.eval()
    x, padding = torch.randn(B, T, C), torch.arange(T) >= torch.tensor([[5], [3], [4]])
    checks.close(layer(x), block(x), "PyTorch's output", **SAME)
    padded = layer(x, src_key_padding_mask=padding)
    real = ~padding.unsqueeze(-1)  # (B, T, 1)
    checks.close(padded * real, block(x, padding) * real, "PyTorch's output with padding", **SAME)


@task("decoder", 0.5)
def test_decoder_layer_moves_in(student):
    """PyTorch's decoder layer, told to hide the future, gives the same output as the block by hand."""
    block = filled(student.DecoderBlock(C, H, FF))
    layer = student.to_torch_decoder_layer(block)
    layer.eval()
    y, memory = torch.randn(B, T, C), torch.randn(B, S, C)
    future = torch.ones(T, T, dtype=torch.bool).triu(1)
    checks.close(layer(y, memory, tgt_mask=future), block(y, memory), "PyTorch's output", **SAME)


@task("gpt2", 0.75)
def test_gpt2_moves_in(student):
    """Hugging Face's GPT-2 gives the same logits as the model by hand."""
    model = filled(student.TransformerLanguageModel(17, C, 7, H, num_layers=2))
    gpt2 = student.to_hugging_face_gpt2(model)
    gpt2.eval()
    ids = torch.randint(17, (B, T))
    answer = gpt2(ids, use_cache=False)
    known = isinstance(answer, dict) and "logits" in answer
    checks.true(
        known, "What came back does not return what a GPT2LMHeadModel returns, an object that has logits."
    )
    checks.close(answer["logits"], model(ids), "the logits of GPT-2", **SAME)


@task("bpe", 0.5)
def test_merges_by_hand(student):
    """"tea no tea sea tea" teaches (e, a) first, then (t, ea), then the space with tea."""
    merges = student.train_bpe("tea no tea sea tea", 3)
    checks.equal(merges, [(b"e", b"a"), (b"t", b"ea"), (b" ", b"tea")], 'train_bpe("tea no tea sea tea", 3)')


@task("bpe", 0.25)
def test_overlaps_and_ties_by_hand(student):
    """"aaab aaab" teaches (a, a), which stands there 4 times, and then the smaller of two pairs that stand twice."""
    merges = student.train_bpe("aaab aaab", 2)
    checks.equal(merges, [(b"a", b"a"), (b"a", b"b")], 'train_bpe("aaab aaab", 2)')


@task("bpe", 0.5)
def test_tokens_by_hand(student):
    """The merges are made in the order in which they were learned, each in every place, from the left."""
    merges = [(b"a", b"a"), (b"a", b"b")]
    checks.equal(student.encode("aaaab", merges), [b"aa", b"aa", b"b"], "the tokens of aaaab")
    merges = [(b"a", b"n"), (b"an", b"d"), (b"l", b"and"), (b" ", b"a")]
    expected = [b"s", b"e", b"a", b" ", b"and", b" ", b"an", b"t"]
    checks.equal(student.encode("sea and ant", merges), expected, "the tokens of sea and ant")


@task("bpe", 0.25)
def test_tokens_become_the_text_again(student):
    """The tokens of a text, decoded, are the text, also if a token is half a letter."""
    merges = [(b"n", b"o"), (b" ", b"no"), (b"\xc3", b"\xa9")]
    for text in ("no tea", "  no é, no è: ½ 🙂\n"):
        checks.equal(student.decode(student.encode(text, merges)), text, f"the tokens of {text!r}, decoded,")
