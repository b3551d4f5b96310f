# %% [markdown]
# # 15 · Train it well
#
# ```
#  the next word         07 trained, and writing
#        ↑               18 what it costs
#        ↑               16 taught what people prefer
#        ↑               14 fine-tuned
#        ↑             ▶ 15 trained well
# ┌──────────────┐       06 all of it, counted
# │              │       05 the whole block
# │ feed-forward │       08 one that reads a second text
# │      ↑       │       09 the same, with gaps to fill
# │      ↑       │       10 ready-made
# │  attention   │ × N   03 one head
# │              │       04 many heads
# │              │       11 tested
# └──────────────┘       13 with a cache
#        ↑               01 vectors
#    vectors +           02 positions
#    positions           12 positions that turn
#        ↑               17 the code around it, debugged
# words of a text        00 why not one word after the other
#
# ▶ you are here
# ```
#
# Every line of a language model can be right, and it may still learn badly. A handful of habits separates a run that
# works from one that crawls, or diverges after an hour: how the weights begin, how far the chairs are moved in one
# step, what happens when one batch has a huge gradient. Each habit is about ten lines of code, and papers on large
# models spend a single paragraph on all of them together. Today you write those lines, one habit at a time, with no
# ready-made optimiser in sight. At the end you take one away again and watch what breaks, or does not.
#
# | part | the question it answers |
# |---|---|
# | 1 · Initialisation | what should the loss be *before* the first step? |
# | 2 · The learning-rate schedule | how long should a step be, and when? |
# | 3 · Gradient clipping | what if one batch has a huge gradient? |
# | 4 · AdamW | how does a gradient become a step? |
# | 5 · Perplexity and top-p | how unsure is the model, and how do we let it write? |
# | 6 · RMSNorm and SwiGLU | what has changed inside the block since GPT-2? |
# | 7 · The run | does each habit earn its place? (Your own experiment: no points, all the fun.) |
#
# The text to learn from is already on your machine: the source code of Python's own standard library, some four million
# characters. Tokens are single characters. Letters for shapes: `B` windows in a batch, `T` tokens in a window, `C`
# numbers for each token (`d_model`), `V` tokens in the vocabulary.
#
# **Not here.** Everything runs in float32 on one processor: several machines, small number types and weeks of data are
# left out.
#
# The names of functions, classes, attributes *and arguments* are part of the contract: the tests call them by name.

# %%
import math
import re
import sysconfig
from collections.abc import Iterable
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

# %% [markdown]
# ## Given · A text and a model
#
# `ALPHABET` holds the newline and the 95 printable characters of ASCII; a character's id is its place in that list.
# `read_texts` reads the standard library, or any folder of your own. It replaces each four spaces of an indentation by
# one: a window of 64 characters is short, and it should hold code, not blanks.
#
# The model is a GPT as you know it: token embeddings plus position embeddings, pre-norm blocks, a last norm, logits.
# One detail matters today: its last layer `head` is **tied** to `token_embed`, as in GPT-2. One and the same table
# reads tokens in and scores them on the way out. With `modern=True`, the blocks are made of what you write in Part 6.

# %% tags=["hide-input"]
ALPHABET = "\n" + "".join(chr(code) for code in range(32, 127))
ID = {character: place for place, character in enumerate(ALPHABET)}


def encode(text: str) -> Tensor:
    """The ids of a text's characters: (L,)."""
    return torch.tensor([ID[character] for character in text])


def decode(ids: Tensor) -> str:
    """The text of a row of ids."""
    return "".join(ALPHABET[i] for i in ids.tolist())


def read_texts(folder: Path | None = None, pattern: str = "*.py") -> list[str]:
    """The texts of the files that lie directly in a folder: left out, that of Python's standard library."""
    folder = folder or Path(sysconfig.get_path("stdlib"))
    texts = []
    for file in sorted(folder.glob(pattern)):
        text = file.read_text("utf-8", errors="ignore").expandtabs(4)
        text = re.sub("^(    )+", lambda blanks: " " * (len(blanks[0]) // 4), text, flags=re.MULTILINE)
        texts.append("".join(character for character in text if character in ID))
    return texts


class CausalAttention(nn.Module):
    """Every token attends to itself and to the tokens before it: (B, T, C) -> (B, T, C)."""

    def __init__(self, d_model: int, n_heads: int) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model, bias=False)
        self.proj = nn.Linear(d_model, d_model, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        parts = self.qkv(x).unflatten(-1, (3, self.n_heads, -1)).movedim(1, -2)         # (B, 3, H, T, D)
        attended = F.scaled_dot_product_attention(*parts.unbind(1), is_causal=True)     # (B, H, T, D)
        return self.proj(attended.movedim(1, 2).flatten(2))                             # (B, T, C)


class Block(nn.Module):
    """A pre-norm block, (B, T, C) -> (B, T, C); `modern` builds it with RMSNorm and SwiGLU."""

    def __init__(self, d_model: int, n_heads: int, modern: bool) -> None:
        super().__init__()
        norm = RMSNorm if modern else nn.LayerNorm
        self.norm1, self.norm2 = norm(d_model), norm(d_model)
        self.attention = CausalAttention(d_model, n_heads)
        if modern:
            self.ff = SwiGLU(d_model, 8 * d_model // 3)
        else:
            inward, outward = nn.Linear(d_model, 4 * d_model), nn.Linear(4 * d_model, d_model)
            self.ff = nn.Sequential(inward, nn.GELU(), outward)

    def forward(self, x: Tensor) -> Tensor:
        for norm, sublayer in ((self.norm1, self.attention), (self.norm2, self.ff)):
            x = x + sublayer(norm(x))
        return x


class LanguageModel(nn.Module):
    """ids (B, T), targets (B, T) or None -> logits (B, T, V) and the loss, or None without targets."""

    def __init__(
        self,
        vocab_size: int,
        d_model: int = 96,
        n_heads: int = 4,
        n_layers: int = 3,
        block_size: int = 64,
        modern: bool = False,
    ) -> None:
        super().__init__()
        self.block_size = block_size
        self.token_embed = nn.Embedding(vocab_size, d_model)
        self.position_embed = nn.Embedding(block_size, d_model)
        self.blocks = nn.Sequential(*(Block(d_model, n_heads, modern) for _ in range(n_layers)))
        self.norm = (RMSNorm if modern else nn.LayerNorm)(d_model)
        self.head = nn.Linear(d_model, vocab_size, bias=False)
        self.head.weight = self.token_embed.weight  # tied

    def forward(self, ids: Tensor, targets: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        x = self.token_embed(ids) + self.position_embed.weight[: ids.shape[1]]          # (B, T, C)
        logits = self.head(self.norm(self.blocks(x)))                                   # (B, T, V)
        if targets is None:
            return logits, None
        return logits, F.cross_entropy(logits.flatten(0, 1), targets.flatten())


# %% [markdown]
# ## Part 1 · Initialisation
#
# About 10 minutes, ●○○ (difficulty 1 of 3)
#
# A model that knows nothing should give every token probability $1/V$, and its loss is then $\ln V$. With our 96
# characters that is $\ln 96 = 4.564$. Hence the cheapest test in deep learning: **look at the first loss**. Far above
# $\ln V$, the model is not ignorant but confidently wrong, and its first few hundred steps go into unlearning opinions
# that nobody taught it.
#
# Ours is such a model. PyTorch draws an `nn.Embedding` from a normal distribution with standard deviation 1. A logit
# is a dot product of 96 numbers that the last norm has brought to size 1 with 96 numbers of that table.
#
# **One number by hand.** The logits therefore spread with a standard deviation of $\sqrt{96} \cdot 1 = 9.80$: between
# two tokens that are one standard deviation apart, the softmax decides $e^{9.80} : 1$, about 18,000 to one. With a
# table drawn at 0.02 the spread is $\sqrt{96} \cdot 0.02 = 0.196$, and the same two tokens stand $1.22 : 1$.
#
# The authors of GPT found that normal(0, 0.02) is enough for all weights, since layer norm forgives the rest; BERT and
# GPT-2 kept the number. Biases begin as 0; a layer norm begins with weight 1 and bias 0, so that it only normalises.
#
# **To think about.** Why draw at random at all? Could two hidden units that begin equal ever become different?


# %%
def init_weights(model: nn.Module, std: float = 0.02) -> None:
    """Initialise a model in place.

    Everything of these kinds counts, at any depth, the model itself included:
        nn.Linear      weight drawn from normal(0, std), bias (where there is one) 0
        nn.Embedding   weight drawn from normal(0, std)
        nn.LayerNorm   weight 1, bias 0
    Every other tensor stays as it is. The numbers are overwritten, the tensors are not replaced: a tied weight
    stays tied, a frozen one frozen, and a float64 model stays a float64 model. The draws come from PyTorch's own
    random generator: each tensor gets its own, and so does each call.
    """
    # TODO: walk through all modules of the model; overwrite what the table above names
    raise NotImplementedError("init_weights is not written yet.")


# %% part="init"
# Written? `autograder check 15_train_it_well` shows how you are doing.

# %% [markdown]
# The picture compares a model before its first step, with your initialisation and with PyTorch's defaults. Look at
# the dashed line, $\ln V$: which of the two reaches it?

# %% picture="init"
# The notebook draws a picture of your own code here.

# %% [markdown]
# ## Part 2 · The learning-rate schedule
#
# About 14 minutes, ●●○ (difficulty 2 of 3)
#
# No single learning rate is right for a whole run. At the beginning all batches pull in the same direction: the
# gradients of two batches have a cosine of about 0.9 before the first step, and of about 0.5 after 150. So for nearly
# every number Adam's ratio (Part 4) is about ±1, the longest step that it can take, at a time when its averages have
# seen next to nothing. Such steps do damage that the rest of the run has to repair. That is why the rate **warms up**
# from almost nothing to its peak. At the end the model circles around a good place that its long steps keep
# overshooting, so the rate comes down again, on half a **cosine**: slowly at first, then quickly, then slowly.
#
# $$\text{rate}(s) = \text{floor} + (\text{peak} - \text{floor}) \cdot \tfrac12\left(1 + \cos(\pi q)\right)$$
#
# after the warm-up, where $q$ goes from 0 at the step that has the peak to 1 at the last step.
#
# **One number by hand.** With `warmup=4`, `total=8` and `peak=0.008`, the eight steps have the rates 0.002, 0.004,
# 0.006, 0.008, then 0.00683, 0.004, 0.00117, and 0. All later steps have 0.
#
# **To think about.** You stop a run halfway through its cosine, content with what you have. Why is the same number of
# steps with a schedule made for it likely to end better?


# %%
def learning_rate(step: int, warmup: int, total: int, peak: float, floor: float = 0.0) -> float:
    """The learning rate of one step of a run, a plain number; steps are counted from 0.

    Warm-up: peak / warmup at step 0, then in equal steps up to peak at step warmup - 1.
    So no step has a rate of 0 on the way up. (Many schedules begin with 0 and reach the peak one step later, at step
    warmup: theirs throw the first batch away. Ours does not.)
    Then half a cosine, from peak down to floor, which it reaches at step total - 1. Every later step has floor.
    warmup=0 is no warm-up: step 0 has peak, as with warmup=1.
    Given 0 <= warmup < total and total >= 2.

    Example: with warmup=4, total=8, peak=0.008 step 0 has 0.002, step 3 has 0.008, step 5 has 0.004.
    """
    # TODO: the rate while it warms up
    # TODO: the rate when everything is over
    # TODO: in between, how far along the cosine is this step?
    raise NotImplementedError("learning_rate is not written yet.")


# %% part="schedule"
# Written? `autograder check 15_train_it_well` shows how you are doing.

# %% [markdown]
# The picture draws your schedule: on the left whole runs, on the right the example of the text. Does every dot sit
# in its ring?

# %% picture="schedule"
# The notebook draws a picture of your own code here.

# %% [markdown]
# ## Part 3 · Gradient clipping
#
# About 14 minutes, ●●○ (difficulty 2 of 3)
#
# Now and then comes a batch with a gradient twenty times as large as usual: a file of nothing but digits, a steep
# place on the loss surface. One step along it can throw away an hour. Clipping sets a speed limit. All gradients
# together are one long vector; if its length, their **common norm**, is above the limit, *all* of them are scaled down
# by the same factor, so that the vector keeps its direction and only loses length.
#
# $$\lVert g \rVert = \sqrt{\textstyle\sum_i g_i^2} \quad\text{over every number of every gradient},\qquad
# g \leftarrow g \cdot \frac{\text{limit}}{\lVert g \rVert} \quad\text{if } \lVert g \rVert > \text{limit}$$
#
# **One number by hand.** Two parameters have the gradients `[3]` and `[4]`. Their common norm is 5. With `max_norm=1`
# they become `[0.6]` and `[0.8]`; with `max_norm=10` they stay. (Clipped each on its own they would become `[1]` and
# `[1]`, which points somewhere else.)
#
# The norm before clipping is the best thermometer a run has, so it is returned. With `max_norm=math.inf` the function
# only measures.
#
# **Given** for experiments: `Knobs`, a module of a few parameters whose gradients you choose. Try
#
# ```python
# knobs = Knobs(torch.tensor([1.0]), torch.tensor([2.0]))
# knobs.set_gradients(torch.tensor([3.0]), torch.tensor([4.0]))
# print(clip_gradients(knobs.parameters(), 1.0), knobs.gradients())
# ```
#
# **To think about.** Most parameters have a gradient every time, but not all: which parameters of a model have none
# (`grad is None`) after `backward()`, and what would it mean to treat theirs as zeros?


# %%
class Knobs(nn.Module):
    """Given: parameters that begin with these values, and gradients that you choose."""

    def __init__(self, *values: Tensor) -> None:
        super().__init__()
        self.knobs = nn.ParameterList(value.clone() for value in values)

    def set_gradients(self, *gradients: Tensor | None) -> None:
        """One gradient for each knob, as if `backward()` had been called; None for a knob without one."""
        for knob, gradient in zip(self.knobs, gradients):
            knob.grad = None if gradient is None else gradient.clone()

    def gradients(self) -> list[Tensor | None]:
        return [None if knob.grad is None else knob.grad.clone() for knob in self.knobs]

    def values(self) -> list[Tensor]:
        return [knob.detach().clone() for knob in self.knobs]

    def clip(self, max_norm: float) -> float:
        """`clip_gradients`, called as in a training loop: `parameters()` is a generator."""
        return clip_gradients(self.parameters(), max_norm)

    def adamw(self, **settings: object) -> "AdamW":
        """An `AdamW` for the knobs, made as for any module."""
        return AdamW(self.parameters(), **settings)


# %%
def clip_gradients(parameters: Iterable[nn.Parameter], max_norm: float) -> float:
    """Scale all gradients down together when their common norm is larger than max_norm.

    parameters: a list, or any other iterable of parameters; also a generator such as `model.parameters()`,
    which can be walked through only once.
    Returns the common norm before clipping, as a plain float; 0.0 where there is no gradient at all. A norm that
    is not larger than max_norm changes nothing. Parameters without a gradient are passed over and stay without one.
    The parameters' own values are not touched, and gradients keep their dtype. Gradients of zeros stay zeros.
    A gradient that holds inf makes the norm inf, and one that holds NaN makes it NaN: return it, so that the run
    can see it. (What the gradients are then is up to you.)
    By hand: none of the clipping functions of `torch.nn.utils`.

    Example: gradients [3] and [4] with max_norm=1 become [0.6] and [0.8], and 5.0 is returned.
    """
    # TODO: collect the gradients that there are
    # TODO: their common norm
    # TODO: where it is too large, scale all of them by one factor
    raise NotImplementedError("clip_gradients is not written yet.")


# %% part="clipping"
# Written? `autograder check 15_train_it_well` shows how you are doing.

# %% [markdown]
# Each arrow of the picture is a gradient, before and after your clipping. Look at the directions: none of them may
# change.

# %% picture="clipping"
# The notebook draws a picture of your own code here.

# %% [markdown]
# ## Part 4 · AdamW
#
# About 21 minutes, ●●● (difficulty 3 of 3)
#
# Plain gradient descent steps by *rate × gradient*. That is awkward, because gradients of different parameters differ
# in size by orders of magnitude: what is a good rate for one is far too much, or next to nothing, for another.
#
# **Adam** keeps two running averages for every single number: $m$, of its gradient, and $v$, of its gradient squared.
# It steps by their ratio $m / \sqrt v$, which has no unit: about ±1 where the gradient always agrees with itself, near
# 0 where it keeps changing its sign. A gradient that is a thousand times larger makes the *same* step. Both averages
# begin as 0 and are too small at first. So each is divided by the fraction of its full size that it would have reached
# by now under a constant gradient (**bias correction**). For a parameter in its step $t = 1, 2, 3, \ldots$ with
# gradient $g$:
#
# $$m \leftarrow \beta_1 m + (1 - \beta_1)\, g \qquad v \leftarrow \beta_2 v + (1 - \beta_2)\, g^2 \qquad
# \hat m = \frac{m}{1 - \beta_1^t} \qquad \hat v = \frac{v}{1 - \beta_2^t}$$
#
# $$\theta \;\leftarrow\; \theta \;-\; \text{lr} \cdot \lambda\, \theta \;-\;
# \text{lr} \cdot \frac{\hat m}{\sqrt{\hat v} + \varepsilon}$$
#
# The middle term is the **W**: *weight decay*, $\lambda$, pulls every weight a little towards 0. It acts on the weight
# itself (*decoupled*). The older way adds $\lambda\theta$ to the gradient, where Adam promptly divides it by $\sqrt v$
# again: weights with large gradients then hardly decay at all.
#
# **One number by hand.** A parameter is 1.0, its gradient 0.5; `lr=0.1`, `weight_decay=0.01`, the rest as usual. In
# the first step $m = 0.05$ and $v = 0.00025$, corrected $\hat m = 0.5$ and $\hat v = 0.25$, so the ratio is 1: the
# parameter becomes $1 - 0.1 \cdot 0.01 \cdot 1 - 0.1 \cdot 1 = 0.899$. With a gradient of 500 it would be 0.899 as
# well.
#
# If the gradient stays 0.5, the averages creep up, and the corrected ones are right from the first step on:
#
# | $t$ | $m$ | $v$ | $\hat m$ | $\hat v$ |
# |---|---|---|---|---|
# | 1 | 0.05 | 0.00025 | 0.5 | 0.25 |
# | 2 | 0.095 | 0.00049975 | 0.5 | 0.25 |
# | 3 | 0.1355 | 0.00074925 | 0.5 | 0.25 |
#
# Your class must give the numbers of `torch.optim.AdamW`, step by step, without it. (To compare the two yourself, do
# so in a cell or function of its own, which your answer does not call.)
#
# **To think about.** How much memory does Adam need for a model of $N$ parameters, beyond the model and its gradients?


# %%
class AdamW:
    """Adam with decoupled weight decay; equals `torch.optim.AdamW`.

    parameters: a list, or any other iterable of parameters; also a generator such as `model.parameters()`.
    lr: an attribute, which may be set between steps; the next step uses what it is then.

    step(): one step for every parameter that has a gradient, by the formulas above. Where `grad` is None, nothing
        happens: the parameter stays as it is, weight decay included, and does not count the step. So each parameter
        counts its own steps. A gradient of zeros *is* a gradient.
        Parameters change in place and keep their dtype; gradients stay as they are.
    zero_grad(): forgets all gradients: every `grad` is None afterwards.

    What an optimiser remembers belongs to it alone: two of them do not disturb each other.
    By hand: no optimiser of `torch.optim`. Its base class `torch.optim.Optimizer`, which has no step, may be yours.
    """

    def __init__(
        self,
        parameters: Iterable[nn.Parameter],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.01,
    ) -> None:
        # TODO: remember the settings and the parameters; two averages and a count for each of them, all 0
        raise NotImplementedError("AdamW.__init__ is not written yet.")

    @torch.no_grad()
    def step(self) -> None:
        # TODO: for every parameter with a gradient: count, update both averages, correct them, decay, step
        raise NotImplementedError("AdamW.step is not written yet.")

    def zero_grad(self) -> None:
        # TODO: no parameter has a gradient any more
        raise NotImplementedError("AdamW.zero_grad is not written yet.")


# %% part="adamw"
# Written? `autograder check 15_train_it_well` shows how you are doing.

# %% [markdown]
# The picture sends plain gradient descent and your AdamW down the same steep valley. Compare how far along it each
# of them comes.

# %% picture="adamw"
# The notebook draws a picture of your own code here.

# %% [markdown]
# ## Part 5 · Perplexity and top-p
#
# About 17 minutes, ●●○ (difficulty 2 of 3)
#
# **Perplexity** is the loss in a unit that you can picture: $e^{\text{loss}}$. A model with perplexity $k$ is, on
# average, as unsure as if it had to choose among $k$ equally likely tokens. Knowing nothing among 96 characters is
# perplexity 96. A loss of 1.5 is perplexity 4.48; at 1.4 it is 4.06.
#
# **Top-p**, or *nucleus sampling*, answers a question: how many tokens may be drawn when the model writes? Among all 96
# characters there are always some bad ones, each very unlikely, but together likely enough that one comes up in every
# other line. A fixed `top_k` keeps too many where the model is sure and too few where it is not. So let the model
# decide: keep the most likely tokens, **as few as it takes for their probabilities to reach p together**, and drop all
# others.
#
# **One number by hand.** The probabilities are 0.5, 0.25, 0.15 and 0.1. For `p=0.7` the first one is not enough, the
# first two reach 0.75: two tokens stay, and after the next softmax they have 2/3 and 1/3. For `p=0.4` the first alone
# is enough. Four equally likely tokens with `p=0.5`: ids 0 and 1 stay.
#
# **To think about.** Two models have perplexity 4 on the same text, one with single characters as tokens, one with
# whole words. Are they equally good?


# %%
def perplexity(loss: float) -> float:
    """The perplexity of a mean cross-entropy in natural logarithms, a plain float. Example: ln 96 gives 96."""
    # TODO: how many equally likely tokens is that?
    raise NotImplementedError("perplexity is not written yet.")


def top_p(logits: Tensor, p: float) -> Tensor:
    """Keep the nucleus: the smallest set of most likely tokens whose probabilities together reach p.

    logits (V,), any numbers, also as large as 10,000, and -inf for tokens that are out already; 0 <= p <= 1.
    Returns new logits (V,): those of the nucleus as they are, -inf everywhere else; the logits that came in stay.
    At least one token stays, whatever p is. Of equal logits the lower ids come first. p = 1 keeps every token.

    Example: the logarithms of 0.5, 0.25, 0.15, 0.1 with p=0.7 keep the first two.
    """
    # TODO: the tokens from the most to the least likely, and their probabilities       # (V,)
    # TODO: which of them are needed to reach p?                                        # (V,)
    # TODO: -inf for the others, each token at its own place                            # (V,)
    raise NotImplementedError("top_p is not written yet.")


# %% part="writing"
# Written? `autograder check 15_train_it_well` shows how you are doing.

# %% [markdown]
# The picture shows what your `top_p` keeps of three distributions, from sure to unsure. Compare how many tokens are
# left.

# %% picture="writing"
# The notebook draws a picture of your own code here.

# %% [markdown]
# ## Part 6 · RMSNorm and SwiGLU
#
# About 18 minutes, ●●○ (difficulty 2 of 3)
#
# Open the code of almost any recent language model, and inside its blocks you find two changes since GPT-2. (A third,
# rotary positions, has an assignment of its own. By now many also norm each head's queries and keys, QK-norm for short.)
#
# **RMSNorm** is layer norm without the mean. It divides a token's numbers by their *root mean square* and scales them
# by a learned `weight`; nothing is subtracted, and there is no bias. It is simpler and a little faster, and models
# trained with it are about as good.
#
# $$\mathrm{RMSNorm}(x)_c = w_c \cdot \frac{x_c}{\sqrt{\frac1C \sum_{c'} x_{c'}^2 + \varepsilon}}$$
#
# **SwiGLU** is a feed-forward layer with a gate. Two layers read the same token: `up` says what could be passed on,
# `gate`, passed through $\mathrm{silu}(z) = z \cdot \mathrm{sigmoid}(z)$, says how much of it: next to nothing where
# $z$ is far below 0, and $z$ times as much where it is far above. Their product, number by number, goes `down` again.
#
# $$\mathrm{SwiGLU}(x) = W_{\text{down}} \bigl(\mathrm{silu}(W_{\text{gate}}\, x) \odot W_{\text{up}}\, x\bigr)$$
#
# **One number by hand.** The token `[1, 7]` has the mean square $(1 + 49)/2 = 25$, so RMSNorm makes it `[0.2, 1.4]`.
# Layer norm would make it `[-1, 1]`, whatever two numbers stood there. And three matrices instead of two: for the
# same number of parameters, the hidden width shrinks from $4C$ to $\tfrac83 C$. With $C = 96$ that is 256, and $3
# \cdot 96 \cdot 256 = 2 \cdot 96 \cdot 384 = 73{,}728$.
#
# **To think about.** Add 100 to every number of a token. What does layer norm make of that, and what does RMSNorm?
# Could the layers before the norm learn to keep the mean at 0 by themselves?


# %%
class RMSNorm(nn.Module):
    """Divide every token by its root mean square, then scale by `weight` (d_model,): learned, starting as ones.

    forward: x (..., C) with any leading shape -> (..., C). eps is added to the mean square, inside the root.
    x and weight have one dtype (float64, float32, or float16 after `.half()`), and the output has it, too.
    Training and eval give the same output. Gradients flow back to x and to weight.
    By hand: neither `nn.RMSNorm` nor `F.rms_norm`.

    Example: with eps=0, [1, 7] becomes [0.2, 1.4].
    """

    def __init__(self, d_model: int, eps: float = 1e-6) -> None:
        super().__init__()
        # TODO: remember eps; `weight` is something that the optimiser may change       # (C,)
        raise NotImplementedError("RMSNorm.__init__ is not written yet.")

    def forward(self, x: Tensor) -> Tensor:
        # TODO: the mean square of every token                                          # (..., 1)
        # TODO: divide by its root, scale                                               # (..., C)
        raise NotImplementedError("RMSNorm.forward is not written yet.")


# %%
class SwiGLU(nn.Module):
    """A gated feed-forward layer: `gate` and `up` (C -> d_ff), `down` (d_ff -> C), `nn.Linear`s without bias.

    forward: x (..., C) -> (..., C), the same in training and in eval. Gradients flow back to x and to all three layers.
    """

    def __init__(self, d_model: int, d_ff: int) -> None:
        super().__init__()
        # TODO: the three layers
        raise NotImplementedError("SwiGLU.__init__ is not written yet.")

    def forward(self, x: Tensor) -> Tensor:
        # TODO: gate times up, and down again                                           # (..., d_ff), (..., C)
        raise NotImplementedError("SwiGLU.forward is not written yet.")


# %% part="modern"
# Written? `autograder check 15_train_it_well` shows how you are doing.

# %% [markdown]
# ## Part 7 · The run
#
# About 7 minutes, ●○○ (difficulty 1 of 3)
#
# Now everything at once, on a real text. The loop is given, and every line of it calls something of yours. Each
# tenth file is **held out**: the model never trains on it, so its loss there cannot come from learning by heart.
#
# A loss curve on text has steps, and it is worth knowing them by name, because each says what has been learned:
#
# | step of the curve | what the model knows there |
# |---|---|
# | uniform, $\ln V$ | nothing |
# | unigram | how frequent each character is |
# | bigram | which character follows which |
# | below | **context**: only attention leads here |


# %%
class Trainer:
    """Given: one training run, a few steps at a time. `run(100)` takes the next 100 steps and returns their losses."""

    def __init__(
        self,
        model: LanguageModel,
        data: Tensor,
        total: int,
        warmup: int = 50,
        peak: float = 5e-3,
        floor: float = 0.0,
        max_norm: float = 1.0,
        weight_decay: float = 0.1,
        batch_size: int = 32,
        seed: int = 0,
    ) -> None:
        self.model, self.data, self.batch_size, self.max_norm = model, data, batch_size, max_norm
        self.schedule = {"warmup": warmup, "total": total, "peak": peak, "floor": floor}
        self.adamw = AdamW(model.parameters(), betas=(0.9, 0.99), weight_decay=weight_decay)
        self.generator = torch.Generator().manual_seed(seed)
        self.done = 0

    def run(self, steps: int) -> list[float]:
        return [self.one_step() for _ in range(steps)]

    def one_step(self) -> float:
        self.adamw.lr = learning_rate(self.done, **self.schedule)
        _, loss = self.model(*windows(self.data, self.model.block_size, self.batch_size, self.generator))
        self.adamw.zero_grad()
        loss.backward()
        clip_gradients(self.model.parameters(), self.max_norm)
        self.adamw.step()
        self.done += 1
        return float(loss.detach())


def windows(data: Tensor, T: int, B: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Given: B windows of a text, and the same windows one character later: (B, T), (B, T)."""
    places = torch.randint(len(data) - T, (B, 1), generator=generator) + torch.arange(T + 1)  # (B, T + 1)
    return data[places[:, :-1]], data[places[:, 1:]]


@torch.no_grad()
def held_out_loss(model: LanguageModel, data: Tensor, batches: int = 8) -> float:
    """Given: the loss on a text that the model has not been trained on; always the same windows."""
    generator = torch.Generator().manual_seed(1)
    losses = [model(*windows(data, model.block_size, 64, generator))[1] for _ in range(batches)]
    return float(torch.stack(losses).mean())


@torch.no_grad()
def write(model: LanguageModel, start: str, length: int, p: float = 0.9, seed: int = 0) -> str:
    """Given: continue a text, character by character, each drawn from its nucleus."""
    generator, ids = torch.Generator().manual_seed(seed), encode(start)
    for _ in range(length):
        logits, _ = model(ids[None, -model.block_size :])                               # (1, T, V)
        nucleus = top_p(logits[0, -1], p).softmax(dim=-1)                               # (V,)
        ids = torch.cat([ids, torch.multinomial(nucleus, 1, generator=generator)])
    return decode(ids)


# %% [markdown]
# It takes about three minutes on a laptop. Watch the first number, watch the curve pass its steps, and read the
# samples: they begin as noise and become something that looks like Python from a distance. (To train on a text of
# your own, name its folder: `read_texts(Path("my_texts"), "*.txt")`.)
#
# The first number is about 4.5, a little *below* $\ln 96 = 4.564$. Has the model learned something before its first
# step? No, but it has been built with an opinion. The table that reads a token also scores it, so a fresh model finds
# the token that it has just read slightly more likely than all others. In source code, with its double letters,
# dashes and indentations, that is right for one character in twelve.

# %%
if __name__ == "__main__":
    from autograder.notebook import watch_training

    torch.set_num_threads(1)  # for matrices this small, a second core only costs time
    STEPS, EVERY = 1500, 250
    watch = watch_training(STEPS)
    texts = read_texts()
    held_out = encode("".join(texts[::10]))
    data = encode("".join(text for number, text in enumerate(texts) if number % 10))
    print(f"{len(texts)} files, {len(data):,} characters to learn from, {len(held_out):,} held out")

    torch.manual_seed(0)
    model = LanguageModel(len(ALPHABET), modern=True)
    init_weights(model)
    trainer = Trainer(model, data, total=STEPS)
    RUN = {"losses": [], "held_out": {}, "samples": {}, "data": data}
    for done in range(0, STEPS + 1, 50):
        if done:
            RUN["losses"] += trainer.run(50)
            watch(done, sum(RUN["losses"][-50:]) / 50)
        if done % EVERY == 0:
            RUN["held_out"][done] = held_out_loss(model, held_out)
            RUN["samples"][done] = write(model, " def ", 240)
            loss = RUN["held_out"][done]
            print(f"\n--- {done} steps, held-out loss {loss:.3f}, perplexity {perplexity(loss):.2f}")
            print(RUN["samples"][done])

# %% [markdown]
# The picture draws the loss of the run, and some of its samples below. Look at which lines the curve crosses, and at
# what the samples have learned by then.

# %% picture="modern"
# The notebook draws a picture of your own code here.

# %% [markdown]
# ### The ablation
#
# You have six habits and a model that works. Which of them did the work? There is only one way to find out, and it is
# how every table in every paper is made: leave **one** thing out, change nothing else, train again, compare on the
# held-out text. That is an *ablation*.
#
# Choose one below, and **write down your guess before you run the cell**: how much worse will the loss be, and where
# will you see it first, at the beginning of the run or at its end? Two short runs of 300 steps take about a minute.

# %%
LEFT_OUT = {
    "nothing": {},
    "init_weights": {"init": False},
    "warm-up": {"warmup": 0},
    "cosine": {"floor": 5e-3},
    "clipping": {"max_norm": math.inf},
    "weight decay": {"weight_decay": 0.0},
    "modern block": {"modern": False},
}


def ablate(without: str, data: Tensor, held_out: Tensor, steps: int = 300, seed: int = 0) -> list[float]:
    """Given: train a fresh model without one habit; the held-out loss at the start and after each 50 steps."""
    from autograder.notebook import watch_training

    watch = watch_training(steps, f"without {without}")
    settings: dict = {"init": True, "modern": True, **LEFT_OUT[without]}
    init, modern = settings.pop("init"), settings.pop("modern")
    torch.manual_seed(seed)
    model = LanguageModel(len(ALPHABET), modern=modern)
    if init:
        init_weights(model)
    trainer = Trainer(model, data, total=steps, seed=seed, **settings)
    found = [held_out_loss(model, held_out)]
    for done in range(50, steps + 1, 50):
        losses = trainer.run(50)
        found.append(held_out_loss(model, held_out))
        watch(done, sum(losses) / len(losses))
    return found


if __name__ == "__main__":
    CHOICE = "warm-up"
    for without in ("nothing", CHOICE):
        print("held-out loss " + "  ".join(f"{loss:.2f}" for loss in ablate(without, data, held_out)))

# %% [markdown]
# **To think about.** Take two of the six away, one at a time. Two of the six habits do not earn their place in 300 steps:
# without them the loss is as low as before, or lower. Which two, and why? What would have to be different for them to
# pay?
#
# One seed is one throw of the dice. Before you believe a difference of 0.05, run both again with `seed=1` and
# `seed=2`: how far do two runs of the *same* recipe differ?
#
# ## Harder: a mixture of experts
#
# Not graded; about 40 minutes, ●●● (difficulty 3 of 3).
# Most of a model's parameters are in its feed-forward layers, and every token passes
# through all of them. The file `harder.py` beside this one asks for a layer that knows more than a token has to pay
# for: a router sends each token to a few of many experts. Run `python harder.py`: it checks what you write there and
# says in sentences what is missing.
#
# Another 45 minutes, ●●● (difficulty 3 of 3):
# AdamW treats a matrix as a bag of numbers. `muon.py` asks for *Muon*, an optimiser that treats
# it as a matrix, and in which rare directions count as much as frequent ones.
#
# ## Look back
#
# You have written every habit of a modern training run, and you know what one of them is worth. The recipe scales:
# LLaMA's largest model, with 65 billion parameters, was trained by AdamW with a warm-up and a cosine, weight decay 0.1
# and clipping at 1.0, on blocks with RMSNorm and SwiGLU. Yours has 347,808 parameters. The rest is the same.
#
# **One last question.** Your model writes code that nearly parses. Is that knowledge of Python, or of how Python looks?
# What would you ask it to find out?
#
# **Go further** (no points). GPT-2 draws the weights of the layers that end a residual branch (here `proj` and the last
# layer of `ff`) smaller by a factor of $1/\sqrt{N}$, with $N$ such layers in the model. Add it, ablate it, and look at
# the size of the residual stream after the last block.
#
# ## Read on
#
# - **Glorot and Bengio, *Understanding the difficulty of training deep feedforward neural networks* (2010).** How wide
#   should random weights be? Look at the plots of activations and gradients layer by layer, before and after.
# - **Radford et al., *Improving Language Understanding by Generative Pre-Training* (2018)** is GPT. Find the half
#   sentence in its section on model specifications that says why N(0, 0.02) is enough.
# - **Press and Wolf, *Using the Output Embedding to Improve Language Models* (2016).** Why the table that reads tokens
#   and the table that scores them may be one.
# - **Loshchilov and Hutter, *SGDR: Stochastic Gradient Descent with Warm Restarts* (2016).** Where the cosine comes from;
#   the restarts have gone out of use, the cosine has stayed.
# - **Ma and Yarats, *On the adequacy of untuned warmup for adaptive optimization* (2019).** Why Adam needs a warm-up.
#   Look for the size of the first steps.
# - **Pascanu, Mikolov and Bengio, *On the difficulty of training recurrent neural networks* (2013).** Look at the drawing
#   of the cliff in the loss surface, and at Algorithm 1, which is your Part 3.
# - **Kingma and Ba, *Adam: A Method for Stochastic Optimization* (2014).** Algorithm 1 is your Part 4 without the W;
#   section 3 derives the bias correction in half a page.
# - **Loshchilov and Hutter, *Decoupled Weight Decay Regularization* (2017).** Algorithm 2 shows both kinds of decay in
#   two colours, in one and the same algorithm. The difference is where the coloured term stands.
# - **Holtzman et al., *The Curious Case of Neural Text Degeneration* (2019).** Look at the plot of how probable human
#   text is, word by word, next to what beam search writes: people are far more surprising.
# - **Zhang and Sennrich, *Root Mean Square Layer Normalization* (2019).** What is lost without the mean? Look at the
#   tables with the running times.
# - **Shazeer, *GLU Variants Improve Transformer* (2020).** A short paper. Its conclusion ends with the most honest
#   explanation of a result that this field has seen.
# - **Touvron et al., *LLaMA: Open and Efficient Foundation Language Models* (2023).** Sections 2.2 and 2.3 are this
#   assignment, in a page.
