"""The encoder block, part by part: worked numbers and facts that hold for every right answer."""

import torch

from autograder import checks, task

READY_MADE_NORM = (
    "torch.nn.LayerNorm",
    "torch.nn.functional.layer_norm",
    "torch.layer_norm",
    "torch.native_layer_norm",
)
READY_MADE_BLOCK = ("torch.nn.TransformerEncoderLayer", "torch.nn.TransformerEncoder")

C, H, FF = 20, 4, 13
BLOCK = {
    "attention.in_proj_weight": (3 * C, C),
    "attention.in_proj_bias": (3 * C,),
    "attention.out_proj.weight": (C, C),
    "attention.out_proj.bias": (C,),
    "ff.linear1.weight": (FF, C),
    "ff.linear1.bias": (FF,),
    "ff.linear2.weight": (C, FF),
    "ff.linear2.bias": (C,),
    "norm1.gamma": (C,),
    "norm1.beta": (C,),
    "norm2.gamma": (C,),
    "norm2.beta": (C,),
}


def filled(module, seed, dtype=torch.float64):
    """The module in float64, or as it was made, in float32, and in eval mode, with fresh numbers in every parameter."""
    if dtype is not torch.float32:
        module.to(dtype)
    module.eval()
    torch.manual_seed(seed)
    checks.randomize(module)
    return module


def silence(block):
    """Both sublayers answer zero, whatever they are asked."""
    endings = ("attention.out_proj.weight", "attention.out_proj.bias", "ff.linear2.weight", "ff.linear2.bias")
    with torch.no_grad():
        for name, parameter in block.named_parameters():
            if name in endings:
                parameter.zero_()


def check_dropout(block, x, silent):
    """In evaluation the sublayers act and x keeps its values; in training, with dropout=1.0, only `silent` is left."""
    output = checks.input_untouched(block, x, what="the block")
    checks.dtype(output, torch.float64, "the output of a block in float64")
    acts = not torch.allclose(output, silent)
    checks.true(acts, "With dropout=1.0 the sublayers add nothing in evaluation: dropout is never off.")
    block.train()
    checks.close(block(x), silent, "a block in training with dropout=1.0")


@task("layer_norm", 0.5, forbids=READY_MADE_NORM)
def test_layer_norm_by_hand(student):
    """layer_norm turns the token [2, 2, 6, 6] into [-1, -1, 1, 1], then stretches and shifts it."""
    token = torch.tensor([[2.0, 2.0, 6.0, 6.0]], dtype=torch.float64)
    gamma, beta = torch.full((4,), 10.0).double(), torch.ones(4).double()
    expected = torch.tensor([[-9.0, -9.0, 11.0, 11.0]]).double()
    normed = student.layer_norm(token, gamma, beta, eps=0.0)
    checks.close(normed, expected, "layer_norm of [2, 2, 6, 6] with gamma 10 and beta 1")
    gamma, beta = torch.tensor([1.0, 2.0, 3.0, 4.0]).double(), torch.tensor([0.0, 1.0, 0.0, -1.0]).double()
    expected = torch.tensor([[-1.0, -1.0, 3.0, 3.0]]).double()
    normed = student.layer_norm(token, gamma, beta, eps=0.0)
    checks.close(normed, expected, "layer_norm of [2, 2, 6, 6] with a gamma and a beta for each feature")


@task("layer_norm", 2, forbids=READY_MADE_NORM)
def test_layer_norm_as_a_module(student, seed):
    """LayerNorm owns gamma (ones) and beta (zeros) and gives what layer_norm gives with them and its eps."""
    x = torch.randn(7, dtype=torch.float64)
    norm = student.LayerNorm(7, eps=0.3)
    checks.parameters(norm, {"gamma": (7,), "beta": (7,)})
    checks.close(norm.gamma.detach(), torch.ones(7), "a fresh gamma")
    checks.close(norm.beta.detach(), torch.zeros(7), "a fresh beta")
    filled(norm, seed)
    by_function = student.layer_norm(x, norm.gamma.detach(), norm.beta.detach(), 0.3)
    checks.close(norm(x), by_function, "LayerNorm(7, eps=0.3) on x, compared with your own layer_norm,")
    with torch.no_grad():
        norm.gamma.mul_(-2)
    moved = not torch.allclose(norm(x), by_function)
    checks.true(moved, "LayerNorm gives the same output with another gamma.")


@task("feed_forward", 0.75)
def test_feed_forward_parameters(student):
    """FeedForward owns linear1, from d_model to d_ff, and linear2, back again, both with a bias."""
    shapes = {
        "linear1.weight": (13, 5),
        "linear1.bias": (13,),
        "linear2.weight": (5, 13),
        "linear2.bias": (5,),
    }
    checks.parameters(student.FeedForward(5, 13), shapes)
    checks.parameters(student.FeedForward(5, 13, activation="gelu"), shapes)


@task("feed_forward", 1.25, needs="test_feed_forward_parameters")
def test_feed_forward_by_hand(student):
    """With small round weights, FeedForward gives the numbers that you get on paper."""
    layer = student.FeedForward(2, 3)
    weights = {
        "linear1.weight": [[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]],
        "linear1.bias": [0.0, 0.0, 0.0],
        "linear2.weight": [[1.0, 2.0, 0.0], [0.0, 0.0, -5.0]],
        "linear2.bias": [10.0, 0.0],
    }
    with torch.no_grad():
        for name, parameter in layer.named_parameters():
            parameter.copy_(torch.tensor(weights[name]))
    x = torch.tensor([[[3.0, -2.0], [-4.0, 1.0], [-1.0, -1.0]]])  # (1, 3, 2)
    expected = torch.tensor([[[13.0, 0.0], [12.0, -15.0], [10.0, -10.0]]])  # (1, 3, 2)
    for training in (True, False):
        checks.close(layer.train(training)(x), expected, "FeedForward with relu on three tokens")


@task("feed_forward", 0.25)
def test_feed_forward_refuses_an_unknown_activation(student):
    """Another activation than relu and gelu is a ValueError that names activation and its value."""
    for name in ("tanh", "swish"):
        checks.raises(ValueError, student.FeedForward, 5, 13, name, naming=("activation", name))


@task("post_norm", 0.75, forbids=READY_MADE_BLOCK)
def test_post_norm_parameters(student):
    """TransformerEncoderBlock owns attention, ff, norm1 and norm2, each with its own parameters."""
    checks.parameters(student.TransformerEncoderBlock(C, H, FF), BLOCK)


@task("post_norm", 1, forbids=READY_MADE_BLOCK)
def test_post_norm_with_silent_sublayers(student, seed):
    """When both sublayers answer zero, x only passes norm1 and then norm2."""
    x = torch.randn(3, 5, C, dtype=torch.float64)
    block = filled(student.TransformerEncoderBlock(C, H, FF), seed)
    silence(block)
    output = block(x)
    checks.close(output, block.norm2(block.norm1(x)), "a post-norm block with silent sublayers")
    differ = not torch.allclose(output[:, 1:], output[:, :-1])
    checks.true(differ, "All tokens leave the block alike, whatever went in.")


@task("post_norm", 0.25, forbids=READY_MADE_BLOCK)
def test_post_norm_with_everything_dropped(student, seed):
    """With dropout=1.0, x only passes the norms in training; in evaluation nothing is dropped."""
    x = torch.randn(3, 5, C, dtype=torch.float64)
    block = filled(student.TransformerEncoderBlock(C, H, FF, dropout=1.0), seed)
    check_dropout(block, x, block.norm2(block.norm1(x)))


@task("pre_norm", 1, forbids=READY_MADE_BLOCK)
def test_pre_norm_with_silent_sublayers(student, seed):
    """When both sublayers answer zero, a pre-norm block returns x itself."""
    x = torch.randn(3, 5, C, dtype=torch.float64)
    block = filled(student.PreNormBlock(C, H, FF), seed)
    silence(block)
    checks.close(block(x), x, "a pre-norm block with silent sublayers")


@task("pre_norm", 0.25, forbids=READY_MADE_BLOCK)
def test_pre_norm_adds_the_same_to_a_token_far_away(student, seed):
    """When all numbers of a token grow by the same amount, the block adds the same correction to it as before."""
    x = torch.randn(3, 5, C, dtype=torch.float64)
    block = filled(student.PreNormBlock(C, H, FF), seed)
    both = torch.cat([x, x + 100 * torch.randn(3, 5, 1, dtype=torch.float64)])  # the same tokens near and far
    added = block(both) - both
    checks.close(added[3:], added[:3], "what the block adds to tokens far away")


@task("pre_norm", 0.25, forbids=READY_MADE_BLOCK)
def test_pre_norm_with_everything_dropped(student, seed):
    """With dropout=1.0, a pre-norm block returns x itself in training; in evaluation nothing is dropped."""
    x = torch.randn(3, 5, C, dtype=torch.float64)
    block = filled(student.PreNormBlock(C, H, FF, dropout=1.0), seed)
    check_dropout(block, x, x)


@task("encoder", 0.5, forbids=READY_MADE_BLOCK)
def test_encoder_owns_its_layers(student):
    """The encoder owns an embedding, a final norm and n_layers blocks that share nothing; pe is a buffer."""
    encoder = student.TransformerEncoder(17, d_model=C, n_heads=H, n_layers=3, d_ff=FF, max_len=11)
    shapes = {"embedding.weight": (17, C), "norm.gamma": (C,), "norm.beta": (C,)}
    for n in range(3):
        shapes |= {f"layers.{n}.{name}": shape for name, shape in BLOCK.items()}
    checks.parameters(encoder, shapes)
    names = [name for name, _ in encoder.named_buffers()]
    checks.true("pe" in names, "The encoder has no buffer called pe, so the positions do not follow it.")


@task("encoder", 0.5, forbids=READY_MADE_BLOCK)
def test_encoder_refuses_a_sentence_that_is_too_long(student, seed):
    """max_len tokens are encoded; one token more is a ValueError that names max_len, its value and T's."""
    ids = torch.randint(0, 17, (3, 8))
    encoder = filled(
        student.TransformerEncoder(17, d_model=C, n_heads=H, n_layers=1, d_ff=FF, max_len=7), seed, torch.float32
    )
    checks.shape(encoder(ids[:, :7]), (3, 7, C), "the encoder's output for T = max_len")
    for training in (True, False):
        checks.raises(ValueError, encoder.train(training), ids, naming=("max_len", 7, 8))


@task("encoder", 0.25, needs="test_encoder_owns_its_layers", forbids=READY_MADE_BLOCK)
def test_every_number_of_the_encoder_counts(student, seed):
    """Other numbers in any parameter of the encoder, from the embedding to the final norm, change its output."""
    ids = torch.randint(0, 17, (3, 7))
    encoder = filled(student.TransformerEncoder(17, d_model=C, n_heads=H, n_layers=2, d_ff=FF), seed)
    parameters, before, idle = dict(encoder.named_parameters()), encoder(ids), []
    gradients = [None] * len(parameters)
    if before.requires_grad:
        direction = torch.randn_like(before)
        gradients = torch.autograd.grad(before, list(parameters.values()), direction, allow_unused=True)
    for (name, parameter), gradient in zip(parameters.items(), gradients):
        if gradient is not None and gradient.any():  # it counts; other numbers need not be tried
            continue
        kept = parameter.detach().clone()
        with torch.no_grad():
            parameter.copy_(torch.randn(kept.shape))
        after = encoder(ids).detach()  # as before with gradients: without them, attention is computed otherwise
        with torch.no_grad():
            parameter.copy_(kept)
        if torch.equal(after, before):
            idle.append(name)
    idle.sort()
    checks.true(not idle, f"The output does not change with the numbers in {', '.join(idle)}.", telling=f"{idle}")


@task("encoder", 0.25, needs="test_encoder_owns_its_layers", forbids=READY_MADE_BLOCK)
def test_encoder_drops_all_or_nothing(student, seed):
    """With dropout=1.0 all tokens come out alike in training; with dropout=0.0 training is like evaluation."""
    ids = torch.randint(0, 17, (3, 7))
    sizes = dict(d_model=C, n_heads=H, d_ff=FF)
    encoder = filled(student.TransformerEncoder(17, **sizes, n_layers=2, dropout=1.0), seed)
    output = encoder(ids)
    differ = not torch.allclose(output[:, 1:], output[:, :-1])
    checks.true(differ, "All tokens leave the encoder alike in evaluation: dropout is never off.")
    dropped = encoder.train()(ids)
    checks.close(dropped, dropped[:1, :1].expand(3, 7, C), "the output in training with dropout=1.0")
    encoder = filled(student.TransformerEncoder(17, **sizes, n_layers=1, dropout=0.0), seed)
    output = encoder(ids)
    checks.dtype(output, torch.float64, "the output of an encoder in float64")
    checks.close(encoder.train()(ids), output, "the output in training with dropout=0.0")
