"""Pictures of the encoder block, drawn from the student's own code."""

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch
from torch import Tensor

from autograder.checks import pictured

INK, QUIET, WARM, COOL, ALARM = "#222222", "#999999", "#E69F00", "#0072B2", "#D55E00"


# -- layer norm ---------------------------------------------------------------------------------


def one_token_normed(student) -> tuple[Figure, str]:
    """Follow one token's numbers downwards: they move until their mean (the triangle) is 0, shrink until
    their standard deviation (the bar) is 1 to each side, and are multiplied by gamma and shifted by beta."""
    token = torch.tensor([2.0, 3.0, 6.0, 9.0], dtype=torch.float64)
    gamma = torch.tensor([2.0, 1.0, 1.0, 2.0], dtype=torch.float64)
    beta = torch.tensor([1.0, 3.0, 6.0, 5.0], dtype=torch.float64)
    one, zero, vast = torch.ones(4).double(), torch.zeros(4).double(), 1e12
    stages = {
        "the token": token,
        "centred\n(mean 0)": student.layer_norm(token, one * vast**0.5, zero, vast),
        "and scaled\n(gamma 1, beta 0)": student.layer_norm(token, one, zero),
        "stretched and shifted\n(its own gamma, beta)": student.layer_norm(token, gamma, beta),
    }
    figure = Figure(figsize=(7, 4.4), layout="constrained")
    axes = figure.subplots()
    rows = torch.stack([numbers.detach().cpu() for numbers in stages.values()])  # (4, C)
    for feature in range(rows.shape[1]):
        axes.plot(rows[:, feature], range(4), color=QUIET, lw=1, zorder=1)
    for place, numbers in enumerate(rows):
        mean, spread = numbers.mean().item(), numbers.std(correction=0).item()
        words = f"mean {round(mean, 2) + 0.0:.2f}, spread {spread:.2f}"
        bar = [mean - spread, mean + spread]
        axes.plot(bar, [place + 0.26] * 2, color=WARM, lw=4, solid_capstyle="butt")
        axes.plot(mean, place + 0.26, marker="^", color=INK, ms=8)
        axes.text(mean, place + 0.38, words, ha="center", va="top", fontsize=8)
        for feature, number in enumerate(numbers.tolist()):
            axes.plot(number, place, "o", ms=13, color=COOL, zorder=2)
            axes.text(number, place, str(feature), color="white", ha="center", va="center", fontsize=8)
    axes.axvline(0, color=INK, lw=0.8, zorder=0)
    axes.set_yticks(range(4), stages)
    axes.set_ylim(3.7, -0.4)
    axes.set_xlabel("the numbers of one token (the discs carry the feature's index)")
    axes.set_title("One token on its way through your layer norm", loc="left", fontsize=11)
    return figure, pictured.sentence(
        *(
            f"{name}: {pictured.listed(numbers)}"
            for name, numbers in zip(("the token", "centred", "scaled", "stretched and shifted"), rows)
        ),
    )


def three_sizes(student) -> tuple[Figure, str]:
    """Three tokens, one a thousand times larger than the next, come out looking alike; the tiniest stays
    a little smaller, because next to its variance eps is not small any more."""
    pattern = torch.tensor([-1.2, 0.3, 1.5, -0.4, 0.8, -1.0, 0.9, -0.9], dtype=torch.float64)
    sizes = torch.tensor([[3e-3], [3.0], [3e3]], dtype=torch.float64)
    tokens = sizes * pattern + 2 * sizes  # (3, C)
    normed = student.layer_norm(tokens, torch.ones(8).double(), torch.zeros(8).double()).detach().cpu()
    figure = Figure(figsize=(7, 4), layout="constrained")
    grid = figure.subplots(2, 3, sharex=True)
    for column, name in enumerate(("tiny", "middling", "huge")):
        above, below = grid[0][column], grid[1][column]
        above.bar(range(8), tokens[column], color=QUIET)
        below.bar(range(8), normed[column], color=COOL)
        above.set_title(f"a {name} token", fontsize=10)
        above.ticklabel_format(axis="y", style="plain")
        below.set_xticks(range(8))
        below.set_ylim(-2.2, 2.2)
        below.axhline(0, color=INK, lw=0.8)
        below.set_xlabel("feature")
    grid[0][0].set_ylabel("before")
    grid[1][0].set_ylabel("after your layer norm")
    return figure, pictured.sentence(
        *(
            f"the {name} token comes out with {pictured.span(numbers)}, at first {pictured.listed(numbers[:2])}"
            for name, numbers in zip(("tiny", "middling", "huge"), normed)
        ),
    )


# -- feed-forward -------------------------------------------------------------------------------


def switches_and_a_hat(student) -> tuple[Figure, str]:
    """Left, the two switches: ReLU has a sharp knee at 0, GELU a soft one that dips below 0 first. Right,
    three hidden numbers together: only with a switch can straight lines become a hat."""
    x = torch.linspace(-3, 3, 241).unsqueeze(-1)  # (241, 1)
    figure = Figure(figsize=(8, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    switch = {"linear1.weight": [[1.0]], "linear1.bias": [0.0], "linear2.weight": [[1.0]]}
    hat = {
        "linear1.weight": [[1.0]] * 3,
        "linear1.bias": [1.0, 0.0, -1.0],
        "linear2.weight": [[1.0, -2.0, 1.0]],
    }
    for name, color, line in (("relu", COOL, "-"), ("gelu", WARM, "--")):
        for axes, weights, hidden in ((left, switch, 1), (right, hat, 3)):
            layer = student.FeedForward(1, hidden, name)
            set_weights(layer, weights | {"linear2.bias": [0.0]})
            axes.plot(x, layer(x).detach().cpu(), line, color=color, lw=2.2, label=name)
    left.set_title("One hidden number: the switch itself", loc="left", fontsize=10)
    right.set_title("Three hidden numbers: a hat", loc="left", fontsize=10)
    for axes in (left, right):
        axes.axhline(0, color=INK, lw=0.6)
        axes.set_xlabel("the token's only number")
        axes.legend(frameon=False)
    left.set_ylabel("what FeedForward makes of it")
    return figure, pictured.sentence(
        pictured.lines(left, "one hidden number"),
        pictured.lines(right, "three hidden numbers"),
    )


def set_weights(module, weights: dict[str, list]) -> None:
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            parameter.copy_(torch.tensor(weights[name]))


# -- blocks -------------------------------------------------------------------------------------


def fill(module, seed: int) -> None:
    """Fresh numbers that do not depend on how the module was built: norms start as 1 and 0, biases as 0."""
    dice = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in sorted(module.named_parameters()):
            if parameter.ndim > 1:
                numbers = torch.randn(parameter.shape, generator=dice) / parameter.shape[-1] ** 0.5
            else:
                numbers = torch.full(parameter.shape, float(name.endswith("gamma")))
            parameter.copy_(numbers)


class Findings:
    """What a block does, found out by silencing its parts and watching the output: names of what is there."""

    def __init__(self, block) -> None:
        fill(block, seed=1)
        block.eval()
        self.block = block
        dice = torch.Generator().manual_seed(2)
        self.x, self.other = torch.randn(2, 1, 5, 12, generator=dice)  # (1, T, C) each
        stations = (("attention.out_proj", "norm1.beta"), ("ff.linear2", "norm2.beta"))
        self.shortcuts = [self.reacts_to_x(silent=[answer]) for answer, _ in stations]
        self.on_the_road = [self.reacts_to(beta, silent=[answer]) for answer, beta in stations]
        self.before_the_branch = [self.is_before_the_branch(answer, beta) for answer, beta in stations]
        self.used = [self.reacts_to(beta, silent=[]) for _, beta in stations]

    def answer(self, x: Tensor, silent, raised: str = "") -> Tensor:
        """The block's output with some parts silent and, perhaps, one parameter changed."""
        kept = {name: p.detach().clone() for name, p in self.block.named_parameters()}
        ramp = torch.linspace(-1, 1, 12)
        with torch.no_grad():
            for name, parameter in self.block.named_parameters():
                if name.rpartition(".")[0] in silent:
                    parameter.zero_()
                if name == raised:
                    parameter.add_(ramp)
            output = self.block(x).detach().cpu()
            for name, parameter in self.block.named_parameters():
                parameter.copy_(kept[name])
        return output

    def reacts_to_x(self, silent) -> bool:
        return self.differ(self.answer(self.x, silent), self.answer(self.other, silent))

    def reacts_to(self, name: str, silent) -> bool:
        return self.differ(self.answer(self.x, silent), self.answer(self.x, silent, raised=name))

    def is_before_the_branch(self, answer: str, beta: str) -> bool:
        """Then it does not matter whether the norm or the silent answer is raised: both join at the plus."""
        by_norm, by_answer = (self.answer(self.x, [answer], raised=name) for name in (beta, f"{answer}.bias"))
        return self.reacts_to_x(silent=[answer]) and not self.differ(by_norm, by_answer)

    def in_words(self) -> str:
        """Whether each station has a shortcut, and where its norm stands."""
        return "; ".join(
            f"{name} has {'a' if shortcut else 'no'} shortcut, and norm{station + 1} {self.place_of_norm(station)}"
            for station, (name, shortcut) in enumerate(zip(("attention", "feed-forward"), self.shortcuts))
        )

    def place_of_norm(self, station: int) -> str:
        if not self.used[station]:
            return "is not used"
        if not self.on_the_road[station]:
            return "stands at the entrance of the workshop"
        return f"stands on the road, {'before the branch' if self.before_the_branch[station] else 'behind the plus'}"

    @staticmethod
    def differ(a: Tensor, b: Tensor) -> bool:
        return not torch.allclose(a, b, atol=1e-5)


def post_norm_diagram(student) -> tuple[Figure, str]:
    """Drawn from your block: the road runs from x to the output, both workshops hang on it by a shortcut,
    and in a post-norm block the two norms stand on the road itself."""
    figure = Figure(figsize=(8.4, 3.3), layout="constrained")
    found = draw_block(figure.subplots(), student.TransformerEncoderBlock(12, 3, 31), "Your TransformerEncoderBlock")
    return figure, pictured.sentence(found.in_words())


def both_diagrams(student) -> tuple[Figure, str]:
    """Drawn from your two blocks: above, the norms stand on the road; below, they stand at the entrance of
    the workshops and the road is free from x to the output."""
    figure = Figure(figsize=(8.4, 6.2), layout="constrained")
    above, below = figure.subplots(2, 1)
    first = draw_block(above, student.TransformerEncoderBlock(12, 3, 31), "Your TransformerEncoderBlock")
    second = draw_block(below, student.PreNormBlock(12, 3, 31), "Your PreNormBlock")
    return figure, pictured.sentence(f"Above, {first.in_words()}", f"Below, {second.in_words()}")


def draw_block(axes: Axes, block, title: str) -> Findings:
    """Two stations on one road; what is missing in the student's block is drawn as an alarm."""
    found = Findings(block)
    axes.set_xlim(-0.6, 14.6)
    axes.set_ylim(-1.1, 3.3)
    axes.axis("off")
    axes.set_title(title, loc="left", fontsize=11)
    axes.text(-0.1, 0, "x", ha="right", va="center", fontsize=12)
    for station, (name, words) in enumerate((("attention", "attention"), ("ff", "feed-forward"))):
        left = 1.3 + 6.9 * station
        draw_workshop(axes, left, f"{words}\n{count(block, name)} numbers")
        draw_road(axes, left, found.shortcuts[station])
        draw_norm(axes, left, f"norm{station + 1}", found, station)
    axes.text(13.9, 0, "out", va="center", fontsize=12)
    return found


def draw_norm(axes: Axes, left: float, name: str, found: Findings, station: int) -> None:
    """The norm where it was found: behind the plus, before the branch, at the entrance, nowhere."""
    if not found.used[station]:
        axes.text(left + 4.85, -0.85, f"{name} is not used", ha="center", color=ALARM, fontsize=9)
    elif not found.on_the_road[station]:
        draw_box(axes, left, 1.1, 1.1, 0.7, name, WARM)
    else:
        place = left - 0.65 if found.before_the_branch[station] else left + 4.85
        draw_box(axes, place, 0, 1.1, 0.7, name, WARM)


def count(block, part: str) -> str:
    return f"{sum(p.numel() for name, p in block.named_parameters() if name.startswith(part + '.')):,}"


def draw_workshop(axes: Axes, left: float, label: str) -> None:
    """The way off the road, up to the sublayer, and back to the place where its answer is added."""
    axes.plot([left, left, left + 3.9], [0, 2.2, 2.2], color=INK, lw=1.5, zorder=1)
    arrow = {"arrowstyle": "-|>", "color": INK, "lw": 1.5}
    axes.annotate("", (left + 3.9, 0.27), (left + 3.9, 2.25), arrowprops=arrow, zorder=1)
    draw_box(axes, left + 2.3, 2.2, 2.4, 1.3, label, COOL)


def draw_road(axes: Axes, left: float, shortcut: bool) -> None:
    """The road of one station: to the branch, along the shortcut to the plus sign, on to the next station."""
    plus = left + 3.9
    stretches = [(left - 1.3, left), (plus, left + 5.6)]
    if shortcut:
        stretches.append((left, plus))
    else:
        axes.text(left + 1.95, 0, "no shortcut", ha="center", va="center", color=ALARM, fontsize=10)
    for start, end in stretches:
        axes.plot([start, end], [0, 0], color=INK, lw=3, solid_capstyle="butt", zorder=1)
    axes.plot(plus, 0, "o", ms=16, mfc="white", mec=INK, mew=1.5, zorder=3)
    axes.text(plus, 0, "+", ha="center", va="center", fontsize=13, zorder=4)


def draw_box(axes: Axes, x: float, y: float, width: float, height: float, label: str, color: str) -> None:
    corner = (x - width / 2, y - height / 2)
    box = FancyBboxPatch(corner, width, height, boxstyle="round,pad=0.06", fc=color, ec=INK, zorder=2)
    axes.add_patch(box)
    ink = "black" if color == WARM else "white"
    axes.text(x, y, label, ha="center", va="center", color=ink, fontsize=9, zorder=3)


def arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float]) -> None:
    axes.annotate("", end, start, arrowprops={"arrowstyle": "-|>", "color": INK, "lw": 1.5}, zorder=1)


def stream_through_24_blocks(student) -> tuple[Figure, str]:
    """Left: the size of a token stays near 1 in a post-norm stack and climbs block by block in a pre-norm
    stack. Right, read from the end: post-norm loses most of its gradient within a few blocks, pre-norm
    loses none of it."""
    figure = Figure(figsize=(8.4, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    for name, make, color, marker in (
        ("post-norm", student.TransformerEncoderBlock, COOL, "o"),
        ("pre-norm", student.PreNormBlock, WARM, "s"),
    ):
        sizes, gradients = run_a_stack(make, depth=24)
        left.plot(range(25), sizes, color=color, marker=marker, ms=4, label=name)
        right.plot(range(25), gradients, color=color, marker=marker, ms=4, label=name)
    left.set_ylim(0, 1.08 * left.get_ylim()[1])
    left.set_ylabel("typical size of a number (RMS)")
    left.set_title("The stream on its way up", loc="left", fontsize=10)
    right.set_yscale("log")
    right.set_yticks([0.1, 0.2, 0.5, 1, 2, 5], ["0.1", "0.2", "0.5", "1", "2", "5"])
    right.minorticks_off()
    right.set_ylabel("size of the gradient, at the end = 1")
    right.set_title("The gradient on its way back", loc="left", fontsize=10)
    for axes in (left, right):
        axes.set_xlabel("after block")
        axes.set_xticks(range(0, 25, 6))
        axes.legend(frameon=False)
    return figure, pictured.sentence(pictured.lines(left, "the stream"), pictured.lines(right, "the gradient"))


def run_a_stack(make_block, depth: int) -> tuple[list[float], list[float]]:
    """Sizes of the stream and of its gradient before the first block and after each."""
    dice = torch.Generator().manual_seed(5)
    x = torch.randn(2, 11, 24, generator=dice, requires_grad=True)  # (B, T, C)
    stream = [x]
    for depth_here in range(depth):
        block = make_block(24, 4, 96)
        fill(block, seed=depth_here)
        block.eval()
        stream.append(block(stream[-1]))
    direction = torch.randn(x.shape, generator=dice)
    gradients = torch.autograd.grad((stream[-1] * direction).sum(), stream)
    sizes = [rms(numbers) for numbers in stream]
    return sizes, [rms(gradient) / rms(gradients[-1]) for gradient in gradients]


def rms(numbers: Tensor) -> float:
    return numbers.detach().square().mean().sqrt().item()


# -- encoder ------------------------------------------------------------------------------------

SENTENCE = ["the", "cat", "sat", "down", "PAD", "PAD", "PAD"]


def banana_test(student) -> tuple[Figure, str]:
    """Each column: one token is replaced by "banana". The columns of real words light up in every row, the
    columns of the three PADs stay empty in the rows of the real words."""
    change = banana_changes(student)  # (T, T)
    T, real = len(SENTENCE), SENTENCE.index("PAD")
    figure = Figure(figsize=(6.4, 3.8), layout="constrained")
    axes = figure.subplots()
    image = axes.imshow(change[:real], cmap="cividis", vmin=0)
    for row in range(real):
        for column in range(T):
            number = change[row, column].item()
            words = "0" if number < 1e-5 else f"{number:.1f}"
            shade = "black" if number > 0.5 * change[:real].max() else "white"
            axes.text(column, row, words, ha="center", va="center", color=shade)
    axes.axvline(real - 0.5, color="white", lw=2)
    axes.set_xticks(range(T), SENTENCE)
    axes.set_yticks(range(real), SENTENCE[:real])
    axes.set_xlabel('when this token becomes "banana" …')
    axes.set_ylabel("… how far does this word's output move?")
    leak = change[:real, real:].max().item()
    verdict = "padding changes nothing" if leak < 1e-5 else "padding changes the output!"
    axes.set_title(f"The banana test: {verdict}", loc="left", fontsize=11)
    figure.colorbar(image, ax=axes, label="distance (0: exactly the same)", shrink=0.8)
    return figure, pictured.sentence(
        pictured.cells(change[:real], SENTENCE, SENTENCE, from_=1e-5),
        f"In the columns of the padding, {pictured.cells(change[:real, real:], SENTENCE, 'PAD', from_=1e-5)}",
    )


def banana_changes(student) -> Tensor:
    """How far output t moves when token s is replaced: (T, T)"""
    T, banana = len(SENTENCE), 6
    ids = torch.tensor([0, 1, 2, 3, 5, 5, 5])  # (T,)
    padding = ids == 5
    encoder = student.TransformerEncoder(7, d_model=24, n_heads=4, n_layers=2, d_ff=48, max_len=16)
    fill(encoder, seed=3)
    encoder.eval()
    replaced = ids.repeat(T, 1)  # (T, T)
    replaced[torch.arange(T), torch.arange(T)] = banana
    batch = torch.cat([ids.unsqueeze(0), replaced])  # (1 + T, T)
    with torch.no_grad():
        outputs = encoder(batch, padding.expand(T + 1, T)).cpu()  # (1 + T, T, C)
    return (outputs[1:] - outputs[:1]).norm(dim=-1).T  # (T, T): row t, column s


PICTURES = {
    "layer_norm": [one_token_normed, three_sizes],
    "feed_forward": [switches_and_a_hat],
    "post_norm": [post_norm_diagram],
    "pre_norm": [both_diagrams, stream_through_24_blocks],
    "encoder": [banana_test],
}
