"""The encoder block against PyTorch's own layers and the reference, on fresh numbers."""

import random

import torch
import torch.nn.functional as F
from torch import nn

from autograder import checks, task

READY_MADE_NORM = (
    "torch.nn.LayerNorm",
    "torch.nn.functional.layer_norm",
    "torch.layer_norm",
    "torch.native_layer_norm",
)
READY_MADE_BLOCK = ("torch.nn.TransformerEncoderLayer", "torch.nn.TransformerEncoder")

B, T, C, H, FF, V = 3, 7, 20, 4, 13, 17


def filled(module, seed):
    """The module in float64 and eval mode, with fresh numbers in every parameter."""
    module.double()
    module.eval()
    torch.default_generator.manual_seed(seed)
    checks.randomize(module)
    return module


def tail(lengths, width):
    """True where a sentence is over: (B, width)."""
    return torch.arange(width) >= torch.tensor(lengths).unsqueeze(1)


def no_looking_ahead(length):
    """PyTorch's causal mask: True where attending is forbidden, (length, length)."""
    return torch.ones(length, length, dtype=torch.bool).triu(1)


def name_in_our_block(name):
    """What a parameter of PyTorch's encoder layer is called in the blocks of this assignment."""
    if name.startswith("norm"):
        return name.replace("weight", "gamma").replace("bias", "beta")
    return name.replace("self_attn", "attention").replace("linear", "ff.linear")


def compare_with_pytorch(make_block, norm_first, seed):
    """Same outputs and input gradients as PyTorch's layer: every two of mode, padding and attn_mask meet."""
    layer = nn.TransformerEncoderLayer(C, H, FF, dropout=0.0, batch_first=True, norm_first=norm_first)
    filled(layer, seed)
    weights = {name_in_our_block(name): parameter.detach() for name, parameter in layer.named_parameters()}
    shapes = {name: tuple(weight.shape) for name, weight in weights.items()}
    x = torch.randn(B, T, C, dtype=torch.float64)
    padding = tail([T, 4, 2], T)  # (B, T)
    two_blocked = torch.zeros(T, T, dtype=torch.bool)
    two_blocked[2, 0] = two_blocked[5, 1] = True
    none_or_both = {"": (None, None), " with both masks": (padding, two_blocked)}
    one = {" with padding": (padding, None), " with a causal attn_mask": (None, no_looking_ahead(T))}
    for activation, dropout, mode, masks in (
        ("relu", 0.1, "evaluation", none_or_both),
        ("gelu", 0.0, "training", one),
    ):
        block = make_block(C, H, FF, dropout, activation)
        checks.parameters(block, shapes)
        block.double()
        block.train(mode == "training")
        with torch.no_grad():
            for name, parameter in block.named_parameters():
                parameter.copy_(weights[name])
        layer.activation = {"relu": F.relu, "gelu": F.gelu}[activation]
        layer.train(mode == "training")
        for words, (padded, blocked) in masks.items():
            what = f"the {activation} block{words}, in {mode} with dropout={dropout},"
            compare_once(block, layer, x, padded, blocked, what)


def compare_once(block, layer, x, padded, blocked, what):
    """The real tokens of both outputs and, with an attn_mask, the gradients of x under one random direction."""
    real = torch.ones(B, T, dtype=torch.bool) if padded is None else ~padded  # (B, T)
    differentiate = blocked is not None
    mine, theirs = (x.clone().requires_grad_(differentiate) for _ in range(2))
    with torch.set_grad_enabled(differentiate):
        actual = block(mine, padding_mask=padded, attn_mask=blocked)
        expected = layer(theirs, src_mask=blocked, src_key_padding_mask=padded)
    checks.shape(actual, (B, T, C), what)
    checks.close(actual[real].detach(), expected[real].detach(), what, axes=("real token", "feature"))
    if differentiate:
        direction = torch.randn_like(expected)[real]
        (actual_gradient,) = torch.autograd.grad((actual[real] * direction).sum(), mine)
        (expected_gradient,) = torch.autograd.grad((expected[real] * direction).sum(), theirs)
        checks.close(actual_gradient, expected_gradient, f"the gradient of x through {what}")


def check_first_layer(student, encoder, seed):
    """Where the encoder is wrong, its first layer may be: it is the student's own post-norm block."""
    x = torch.randn(B, T, C, dtype=torch.float64)
    block = filled(student.TransformerEncoderBlock(C, 5, FF), seed)
    checks.copy_parameters(encoder.layers[0], block)
    padding = tail([T, 4, 2], T)
    what = "the encoder's first layer, compared with your TransformerEncoderBlock,"
    checks.close(encoder.layers[0](x, padding)[~padding], block(x, padding)[~padding], what)


def compare_gradients(actual, expected, encoder, model):
    """The gradients of both encoders' parameters under one random direction."""
    cut_off = "The encoder's output is cut off from its parameters: no gradient can flow back."
    checks.true(actual.requires_grad, cut_off, public=cut_off)
    direction = torch.randn_like(expected)
    mine, theirs = dict(encoder.named_parameters()), dict(model.named_parameters())
    found = torch.autograd.grad(
        actual, [mine[name] for name in theirs], direction.to(actual.dtype), materialize_grads=True
    )
    wanted = torch.autograd.grad(expected, list(theirs.values()), direction)
    for name, gradient, right in zip(theirs, found, wanted):
        if name == "embedding.weight":
            gradient, right = gradient[1:], right[1:]  # padding_idx=0 is allowed
        checks.close(gradient, right, f"the gradient of {name}", atol=1e-6)


@torch.no_grad()
def check_all_dropped(block, x, stream):
    """With dropout=1.0 only the stream is left in training, and everything is there in eval."""
    left = stream(x)
    missing = (block(x) - left).abs().max().item()
    checks.true(missing > 1e-6, "With dropout=1.0 the sublayers are silent in eval: dropout is never off.")
    block.train()
    checks.close(block(x), left, "in training with dropout=1.0 the block")


@torch.no_grad()
def check_eval_and_training(module, x):
    """In eval nothing is random; in training, with dropout=0.5, something is."""
    checks.deterministic_in_eval(module, x)
    module.train()
    same = torch.equal(module(x[:1]), module(x[:1]))
    checks.true(not same, "In training with dropout=0.5 two calls gave the same output: nothing was dropped.")


@task("layer_norm", 0.75, forbids=READY_MADE_NORM, promise=(
    "Bring every token to mean 0 and standard deviation 1, then multiply by gamma and add beta.",
    "For float32 numbers near 4096 that differ by about 1, the result must still be right to 0.02.",
))
def test_layer_norm_equals_pytorch(student):
    """layer_norm gives the numbers of PyTorch's layer norm, for one token, a sentence and a batch."""
    for shape in ((7,), (7, 7), (2, 3, 5, 7)):
        x = 3 * torch.randn(shape, dtype=torch.float64) + 2
        gamma, beta = torch.randn(7, dtype=torch.float64), torch.randn(7, dtype=torch.float64)
        actual = student.layer_norm(x, gamma, beta)
        checks.dtype(actual, torch.float64, f"layer_norm of x with shape {shape} in float64")
        checks.close(actual, F.layer_norm(x, (7,), gamma, beta), f"layer_norm of x with shape {shape}")
    far = 4096 + torch.randn(3, 5, 7)  # numbers of float32
    expected = F.layer_norm(far.double(), (7,), gamma, beta).float()
    actual = student.layer_norm(far, gamma.float(), beta.float())
    checks.close(actual, expected, "layer_norm of numbers near 4096", atol=0.02)


@task("layer_norm", 0.5, forbids=READY_MADE_NORM,
      promise="The tiny $\\varepsilon$ is added to the variance **before** the root is taken.")
def test_eps_sits_inside_the_root(student):
    """Tokens with tiny numbers, tokens with equal numbers and a large eps come out right."""
    gamma, beta = torch.randn(7, dtype=torch.float64), torch.randn(7, dtype=torch.float64)
    x = torch.randn(3, 5, 7, dtype=torch.float64)
    tiny = student.layer_norm(1e-3 * x, gamma, beta)
    checks.close(tiny, F.layer_norm(1e-3 * x, (7,), gamma, beta), "layer_norm of numbers near 0.001")
    flat = torch.full((2, 7), 7.0).double()
    checks.close(student.layer_norm(flat, gamma, beta), beta.expand(2, 7), "layer_norm of seven sevens")
    large = student.layer_norm(x, gamma, beta, 0.7)
    checks.close(large, F.layer_norm(x, (7,), gamma, beta, 0.7), "layer_norm with eps=0.7")


@task("layer_norm", 2, forbids=READY_MADE_NORM,
      promise="Mean and variance depend on $x$, too, and gradients flow through them.")
def test_gradients_through_layer_norm(student):
    """The gradients of x, gamma and beta are those of PyTorch's layer norm."""
    gamma, beta = torch.randn(7, dtype=torch.float64), torch.randn(7, dtype=torch.float64)

    def expected(x, gamma, beta):
        return F.layer_norm(x, (7,), gamma, beta)

    for shape in ((3, 5, 7), (7,)):
        x = torch.randn(shape, dtype=torch.float64)
        checks.gradients_close(student.layer_norm, expected, x, gamma, beta, what="the gradient (layer_norm)")


@task("layer_norm", 0.25, forbids=READY_MADE_NORM, promise=(
    "$\\mu$ and $\\sigma^2$ belong to **one token**",
    "none of them changes its inputs.",
))
def test_tokens_do_not_meet_in_layer_norm(student):
    """What layer_norm does to a token depends on this token alone, and x itself stays as it was."""
    x = torch.randn(3, 5, 7, dtype=torch.float64)
    gamma, beta = torch.randn(7, dtype=torch.float64), torch.randn(7, dtype=torch.float64)
    together = checks.input_untouched(lambda x: student.layer_norm(x, gamma, beta), x)
    checks.shape(together, (3, 5, 7), "layer_norm of a batch")
    for t in (2, 4):
        alone = student.layer_norm(x[1:2, t : t + 1], gamma, beta)
        what = f"token {t} of sentence 1, compared with the same token alone,"
        checks.close(together[1:2, t : t + 1], alone, what)


@task("feed_forward", 1.25, needs="test_feed_forward_parameters", promise=(
    '"gelu" (the exact one)',
    "the same for every position, in training and in evaluation",
))
def test_gelu_is_the_exact_one(student, reference, seed):
    """With activation="gelu", FeedForward uses the exact GELU, and nothing else happens inside."""
    x = torch.randn(3, 7, 5, dtype=torch.float64)
    model = filled(reference.FeedForward(5, 13, "gelu"), seed)
    layer = student.FeedForward(5, 13, "gelu").double()
    checks.copy_parameters(model, layer)
    expected = model(x)
    for training in (True, False):
        checks.close(layer.train(training)(x), expected, "FeedForward with gelu")
    checks.gradients_close(layer, model, x, what="the gradient (gelu)")


@task("feed_forward", 0.25,
      promise='Raises ValueError that names activation and its value if it is any other name ("GELU", say).')
def test_unknown_activation_is_refused(student):
    """Another activation than relu and gelu is a ValueError that names activation and its value."""
    made_up = "".join(random.sample("bcdfhjkmnopqstvwxyz", 6))
    for name in ("swish", made_up):
        checks.raises(ValueError, student.FeedForward, 5, 13, name, naming=("activation", name))
    checks.raises(ValueError, student.FeedForward, 5, 13, activation="tanh", naming=("activation", "tanh"))


@task("feed_forward", 0.25,
      promise='Raises ValueError that names activation and its value if it is any other name ("GELU", say).')
def test_activation_in_capitals_is_refused(student):
    """The activations have no other names: relu and gelu in capital letters are refused, too."""
    narrow, wide = random.randint(3, 9), random.randint(11, 99)
    for name in ("GELU", "ReLU"):
        checks.raises(ValueError, student.FeedForward, narrow, wide, activation=name, naming=("activation", name))


@task("post_norm", 1, forbids=READY_MADE_BLOCK, promise=(
    "Post-norm: attention, add, norm, feed-forward, add, norm.",
    "none of them changes its inputs.",
))
def test_post_norm_wiring(student, seed):
    """The block's own parts, wired in post-norm order, give the block's output."""
    x = torch.randn(B, T, C, dtype=torch.float64)
    block = filled(student.TransformerEncoderBlock(C, H, FF), seed)
    with torch.no_grad():
        actual = checks.input_untouched(block, x)
        checks.shape(actual, (B, T, C), "the post-norm block's output")
        h = block.norm1(x + block.attention(x, x, x, need_weights=False)[0])
        expected = block.norm2(h + block.ff(h))
    checks.close(actual, expected, "the post-norm block, compared with its own parts in order,")
    alike = "All tokens leave the block alike, whatever went in."
    checks.true(not torch.allclose(actual[:, 1:], actual[:, :-1]), alike, public=alike)


@task("post_norm", 1.25, needs="test_post_norm_parameters", forbids=READY_MADE_BLOCK, promise=(
    "Two masks can be passed in, in training and in evaluation, and both are passed on to attention.",
    "after `.double()`, in float64",
))
def test_post_norm_equals_pytorch(student, seed):
    """With the same weights, the block and PyTorch's encoder layer agree, masks and gradients included."""
    compare_with_pytorch(student.TransformerEncoderBlock, norm_first=False, seed=seed)


@task("post_norm", 1.25, forbids=READY_MADE_BLOCK, promise=(
    "padding_mask (B, T), True marks padding, which no token attends to",
    "attn_mask (T, T), True in row t and column s: token t may not attend to token s",
))
def test_no_token_attends_to_padding_or_to_blocked_tokens(student, seed):
    """No token attends to padding; with a causal attn_mask each attends to all earlier tokens and to no later one."""
    x = torch.randn(2, T, C, dtype=torch.float64)
    block = filled(student.TransformerEncoderBlock(C, H, FF), seed)
    with torch.no_grad():
        checks.padding_invariant(lambda x, padding: block(x, padding_mask=padding), x, [6, 3])
    checks.causal_by_gradient(lambda x: block(x, attn_mask=no_looking_ahead(x.shape[1])), x[:, :5])


@task("post_norm", 0.5, forbids=READY_MADE_BLOCK,
      promise="Dropout, in training, acts on each sublayer's output before it is added, never on the stream.")
def test_post_norm_dropout(student, seed):
    """Dropout acts on the sublayers' outputs in training, never on the shortcut and never in evaluation."""
    x = torch.randn(B, T, C, dtype=torch.float64)
    block = filled(student.TransformerEncoderBlock(C, H, FF, dropout=1.0), seed)
    check_all_dropped(block, x, lambda x: block.norm2(block.norm1(x)))
    check_eval_and_training(filled(student.TransformerEncoderBlock(C, H, FF, dropout=0.5), seed), x)


@task("pre_norm", 0.5, forbids=READY_MADE_BLOCK, promise=(
    "Pre-norm: norm, attention, add, norm, feed-forward, add.",
    "none of them changes its inputs.",
))
def test_pre_norm_wiring(student, seed):
    """The block's own parts, wired in pre-norm order, give the block's output."""
    x = torch.randn(B, T, C, dtype=torch.float64)
    block = filled(student.PreNormBlock(C, H, FF), seed)
    with torch.no_grad():
        actual = checks.input_untouched(block, x)
        checks.shape(actual, (B, T, C), "the pre-norm block's output")
        normed = block.norm1(x)
        h = x + block.attention(normed, normed, normed, need_weights=False)[0]
        expected = h + block.ff(block.norm2(h))
    checks.close(actual, expected, "the pre-norm block, compared with its own parts in order,")


@task("pre_norm", 1.5, forbids=READY_MADE_BLOCK,
      promise="forward: x (B, T, C) -> (B, T, C), with the same two masks")
def test_pre_norm_equals_pytorch(student, seed):
    """With the same weights, the block and PyTorch's layer with norm_first agree, masks and gradients too."""
    compare_with_pytorch(student.PreNormBlock, norm_first=True, seed=seed)


@task("pre_norm", 0.5, forbids=READY_MADE_BLOCK,
      promise="Dropout, in training, acts on each sublayer's output before it is added, never on the stream.")
def test_pre_norm_dropout(student, seed):
    """With everything dropped a pre-norm block in training returns x; in eval nothing is dropped."""
    x = torch.randn(B, T, C, dtype=torch.float64)
    block = filled(student.PreNormBlock(C, H, FF, dropout=1.0), seed)
    check_all_dropped(block, x, lambda x: x)
    check_eval_and_training(filled(student.PreNormBlock(C, H, FF, dropout=0.5), seed), x)


@task("encoder", 1.75, needs="test_encoder_owns_its_layers", forbids=READY_MADE_BLOCK, promise=(
    "`embedding` (nn.Embedding) plus the first T rows of the buffer `pe`",
    "`layers` (nn.ModuleList): n_layers post-norm TransformerEncoderBlocks with the default activation",
    "`norm`: a final LayerNorm",
))
def test_encoder_numbers(student, reference, seed):
    """Tokens plus positions, through every block, through the final norm: the right numbers and gradients."""
    sizes = dict(d_model=C, n_heads=5, n_layers=3, d_ff=FF, max_len=71)
    model = filled(reference.TransformerEncoder(V, **sizes), seed)
    encoder = student.TransformerEncoder(V, **sizes)
    encoder.double()
    encoder.eval()
    checks.copy_parameters(model, encoder)
    ids = (torch.randperm(67) % V).unsqueeze(0)  # every word stands somewhere
    what = "the encoder's output for 67 tokens"
    with torch.no_grad():
        actual, expected = encoder(ids), model(ids)
        checks.shape(actual, (1, 67, C), what)
        if not torch.allclose(actual.double(), expected, atol=1e-5):
            check_first_layer(student, encoder, seed)
        checks.close(actual, expected, what, atol=1e-5)
    encoder = student.TransformerEncoder(V, **sizes, dropout=0.0)
    encoder.double()
    checks.copy_parameters(model, encoder)
    ids = torch.randint(V, (B, T))
    ids[:, 1] = 0  # a word like any other
    padding = tail([T, 4, 2], T)
    actual = checks.input_untouched(encoder, ids, padding)[~padding]
    expected = model(ids, padding)[~padding]
    what = "the encoder with padding, in training with dropout=0.0,"
    checks.close(actual.detach(), expected.detach(), what, axes=("real token", "feature"), atol=1e-5)
    compare_gradients(actual, expected, encoder, model)


@task("encoder", 1.25, forbids=READY_MADE_BLOCK,
      promise="padding_mask (B, T), True marks padding, in every layer")
def test_padding_changes_nothing(student, seed):
    """Padded or not, a sentence's real tokens come out the same, whatever the padding holds."""
    ids = torch.randint(0, V, (2, T))
    encoder = filled(student.TransformerEncoder(V, C, H, n_layers=2, d_ff=FF, max_len=11), seed)
    with torch.no_grad():
        checks.padding_invariant(lambda ids, padding: encoder(ids, padding_mask=padding), ids, [6, 3])
        ids[1] = ids[0]
        ids[1, 0] = (ids[0, 0] + 1) % V
        answer = encoder(ids)
        deaf = "A token's output does not change when another token of its sentence does."
        checks.true(not torch.allclose(answer[0, 1], answer[1, 1]), deaf, public=deaf)


@task("encoder", 0.25, needs="test_encoder_owns_its_layers", forbids=READY_MADE_BLOCK, promise=(
    "into the saved `state_dict`.",
    "plus the first T rows of the buffer `pe`",
))
def test_positions_travel_with_the_encoder(student, seed):
    """A saved encoder holds its pe, and other numbers in pe are other positions for the words."""
    ids = torch.randint(0, V, (B, T))
    encoder = filled(student.TransformerEncoder(V, C, H, n_layers=1, d_ff=FF, max_len=11), seed)
    saved = "pe" in encoder.state_dict()
    checks.true(saved, "The encoder's state_dict has no pe, so the positions are missing from a saved file.")
    with torch.no_grad():
        before = encoder(ids).clone()
        encoder.pe.copy_(torch.randn(encoder.pe.shape))
        moved = (encoder(ids) - before).abs().max().item()
    checks.true(moved > 1e-6, "The encoder answers the same with other numbers in pe: it does not read them.")


@task("encoder", 0.25, forbids=READY_MADE_BLOCK,
      promise="both as they are, without any scaling; then dropout")
def test_encoder_dropout(student, seed):
    """In eval the encoder repeats itself; in training dropout acts on the embeddings and in the blocks."""
    ids = torch.randint(0, V, (B, T))
    sizes = dict(d_model=C, n_heads=H, d_ff=FF, max_len=11)
    encoder = filled(student.TransformerEncoder(V, **sizes, n_layers=2, dropout=1.0), seed)
    encoder.train()
    with torch.no_grad():
        answer = encoder(ids)
    what = "the answer in training with dropout=1.0, when neither word nor position can make a difference,"
    checks.close(answer, answer[:1, :1].expand(B, T, C), what)
    check_eval_and_training(filled(student.TransformerEncoder(V, **sizes, n_layers=1, dropout=0.5), seed), ids)
