# %% [markdown]
# # 18 · What it costs
#
# ```
#  the next word         07 trained, and writing
#        ↑             ▶ 18 what it costs
#        ↑               16 taught what people prefer
#        ↑               14 fine-tuned
#        ↑               15 trained well
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
# You can build a Transformer, train it, teach it manners and let it write. What is left is the question of everybody
# who runs one: what does it cost? How long does a word take, why does it take that long, and what can be done about
# it?
#
# The answer is not "buy a faster chip". A chip that computes twenty times as fast would hardly write one more word a
# second for you; by the end of Part 2 you will have worked out why. Once you know *what* you are waiting for, two
# methods suggest themselves, and many models that you can talk to today use both. One makes the numbers of the model
# smaller; it costs a little accuracy, and you will see how much (Part 3). The other lets a small model write ahead
# and the large one correct it; it costs no accuracy at all, and you will prove that (Part 4).
#
# **Not here.** No model is trained or downloaded, and nothing is measured with a stopwatch: all costs are calculated.
# A real machine is slower than that, because it also waits for other things.
#
# The names of functions, classes, fields and arguments are part of the contract: keep them as they are. No argument
# is modified. Where tensors of numbers come in, they are float32 or float64, and what comes out has the same number
# type.
#
# Letters for shapes: $V$ words in the vocabulary, $P$ positions, $C$ the width of a vector, $N$ layers, $H$ heads,
# $T$ tokens; $M$ rows and $K$ columns of a table of weights, in Part 3 in groups of $G$ numbers; in Part 4 $R$ guesses.
# $D$ is the number of parameters here.

# %%
import math
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class GPT2Config:
    """Given: the sizes of a GPT-2, as in 06; the defaults are those of the small one."""

    vocab_size: int = 50257                                                             # V
    n_positions: int = 1024                                                             # P
    n_embd: int = 768                                                                   # C
    n_layer: int = 12                                                                   # N
    n_head: int = 12                                                                    # H


# %% [markdown]
# ## Part 1 · Counting operations
#
# About 17 minutes, ●●○
#
# We count multiplications and additions, and each of them is one **FLOP**, a *floating-point operation*. A dot
# product of $K$ numbers multiplies $K$ times and adds $K$ times (adding to 0 at the beginning counts, too): $2K$. So
# a product of $(T, K)$ and $(K, M)$, which is $T \cdot M$ dot products, takes $2TKM$ operations. Put differently,
# each token pays **two operations for each weight** that it meets.
#
# Nothing else is counted. Looking up a vector, adding biases and positions, LayerNorm, softmax, GELU: these take a
# few operations for each number that comes out, where a product takes hundreds. Together they are small change.
#
# One layer reads $T$ tokens. Its feed-forward part is $4C$ wide inside, and its causal mask saves nothing: most
# programs compute all $T \times T$ scores and then throw nearly half of them away, so all of them count.
#
# | in one layer | products | operations |
# |---|---|---|
# | queries, keys and values | three times $(T, C) \cdot (C, C)$ | $6TC^2$ |
# | scores, all heads together | $(T, C) \cdot (C, T)$ | $2T^2C$ |
# | weighted sums of the values | $(T, T) \cdot (T, C)$ | $2T^2C$ |
# | output projection | $(T, C) \cdot (C, C)$ | $2TC^2$ |
# | feed-forward, wider | $(T, C) \cdot (C, 4C)$ | $8TC^2$ |
# | feed-forward, narrower again | $(T, 4C) \cdot (4C, C)$ | $8TC^2$ |
#
# After the last layer, each token gets its logits, a product of $(T, C)$ and $(C, V)$. This table of words is tied:
# it is not counted twice as a parameter, but here it works for its living.
#
# $$\text{operations} = N \left( 24TC^2 + 4T^2C \right) + 2TCV$$
#
# **One number by hand.** A toy has $N = 2$, $C = 3$, $V = 5$ and reads $T = 4$ tokens. One layer takes
# $24 \cdot 4 \cdot 9 = 864$ and $4 \cdot 16 \cdot 3 = 192$, the logits take $2 \cdot 4 \cdot 3 \cdot 5 = 120$.
# Together: $2 \cdot 1056 + 120 = 2232$. Of the 1,056 in a layer, attention has $8 \cdot 4 \cdot 9 + 192 = 480$, a
# share of 0.4545, and feed-forward has 576, a share of 0.5455.
#
# **A shorter way.** Two operations for each weight means about $2D$ for a model with $D$ parameters and one token.
# The way back through the model computes two gradients for each product, one for the inputs and one for the weights,
# and each of them is as much work as the product itself. That makes $2D + 4D$ for each token of a training run. GPT-3
# has $174.6 \cdot 10^9$ parameters and has read $300 \cdot 10^9$ tokens: $3.14 \cdot 10^{23}$ operations, as its
# paper says. It is an estimate, and a good one.
#
# **To think about.** How good? For GPT-2 small, with its 124,439,808 parameters, $2D$ for each token is 0.988 of the
# exact number when it reads 128 tokens, and 0.874 when it reads 1,024. What is missing in $2D$? From how many tokens
# on is it more than 10 % short?


# %%
def forward_flops(config: GPT2Config, T: int) -> int:
    """The operations of all products when the model reads one text of T >= 1 tokens, with the logits of every token.

    The feed-forward part is 4C wide; the whole table of T × T scores is computed; nothing else is counted.
    Example: forward_flops(GPT2Config(vocab_size=5, n_embd=3, n_layer=2, n_head=3), 4) is 2232.
    """
    # TODO: the layers, each with its products of size C × C and T × T, and once the logits
    ### BEGIN SOLUTION
    C = config.n_embd
    layer = 24 * T * C**2 + 4 * T**2 * C
    logits = 2 * T * C * config.vocab_size
    return config.n_layer * layer + logits
    ### END SOLUTION


def shares(config: GPT2Config, T: int) -> tuple[float, float]:
    """Which shares of the operations of one layer are attention and feed-forward: (attention, feed_forward).

    Attention includes its four projections. Logits belong to no layer. Both shares add up to 1.
    Example: shares(GPT2Config(n_embd=3, n_head=3), 4) is (0.4545…, 0.5454…).
    """
    # TODO: the operations of attention, those of feed-forward, and each divided by their sum
    ### BEGIN SOLUTION
    C = config.n_embd
    attention = 8 * T * C**2 + 4 * T**2 * C
    feed_forward = 16 * T * C**2
    layer = attention + feed_forward
    return attention / layer, feed_forward / layer
    ### END SOLUTION


def training_flops(parameters: int, tokens: int) -> int:
    """About how many operations a training takes, there and back: an estimate from two numbers alone.

    Example: training_flops(1000, 7) is 42000.
    """
    # TODO: two operations for each parameter and token on the way there, and how many on the way back?
    ### BEGIN SOLUTION
    return 6 * parameters * tokens
    ### END SOLUTION


# %% part="flops"

# %% [markdown]
# The picture draws your shares for GPT-2 small and XL. Where do both halves of a layer cost the same? In a short
# text, most of the work is feed-forward, however famous attention may be.

# %% picture="flops"

# %% [markdown]
# ## Part 2 · Bytes or operations
#
# About 15 minutes, ●●○
#
# A graphics card does two things at the same time. It **computes**, up to `peak` operations in a second. And it
# **moves** numbers from its memory to where they are computed with, up to `bw` bytes in a second (its *bandwidth*). A
# step is over when both are done, so it takes as long as the slower of the two:
#
# $$\text{seconds} = \max\left(\frac{\text{bytes}}{\mathtt{bw}},\ \frac{\text{operations}}{\mathtt{peak}}\right)$$
#
# A model that writes gets one new word at a time, with the key–value cache of 13. For that one word **every** weight
# has to be fetched from memory, and so has the whole cache. With each weight, once it has come, there is next to
# nothing to do: one multiplication and one addition.
#
# **One number by hand.** A model has 7 billion weights of two bytes each, and needs 14 billion operations for a word.
# A card moves $2 \cdot 10^{12}$ bytes and computes $312 \cdot 10^{12}$ operations in a second. Moving takes
# $14 \cdot 10^9 / (2 \cdot 10^{12}) = 7$ milliseconds, computing takes 0.045. So a word takes 7 milliseconds, and the
# part of the card that computes is idle for 99 % of the time. If it computed twenty times as fast, you would still
# wait for 7 milliseconds.
#
# **Many at once.** What could it do in the meantime? Write for somebody else. Weights that have come for one user can
# be used for all. So let $B$ users be served in one step, a *batch*. The weights are moved once, whatever $B$ is. The
# operations grow with $B$, and so do the caches: each user has a text of their own. The step takes hardly longer, up
# to the batch where computing has caught up with moving:
#
# $$\frac{B \cdot \text{operations}}{\mathtt{peak}} \ge \frac{\text{weights} + B \cdot \text{cache}}{\mathtt{bw}}$$
#
# In our example, with a cache of 64 million bytes for each user, this happens at $B = 544$. With 128 million bytes it
# never happens: for each further user, moving the cache alone takes longer (0.064 milliseconds) than computing
# (0.045).
#
# **To think about.** 13 calculated that 1,000 words of Llama 2 7B leave 524 MB in the cache, and those of Llama 3.1
# 8B 131 MB, since its heads share. What does that mean for a company that serves long conversations?


# %%
def decode_seconds(bytes_of_weights: int, bytes_of_cache: int, flops: int, bw: float, peak: float) -> float:
    """How long one step of writing takes: all weights and all of the cache are moved while flops are computed.

    bytes_of_cache, flops: of everything that is done in this step. bw: bytes a second. peak: operations a second.
    Example: decode_seconds(14 * 10**9, 0, 14 * 10**9, 2e12, 312e12) is 0.007.
    """
    # TODO: the time to move, the time to compute, and which of the two one waits for
    ### BEGIN SOLUTION
    moving = (bytes_of_weights + bytes_of_cache) / bw
    computing = flops / peak
    return max(moving, computing)
    ### END SOLUTION


def batch_where_it_turns(bytes_of_weights: int, bytes_of_cache: int, flops: int, bw: float, peak: float) -> int:
    """The smallest batch B >= 1 for which computing takes at least as long as moving, an int.

    bytes_of_cache, flops: of ONE sequence of the batch. bytes_of_weights, flops: at least 1.
    Example: batch_where_it_turns(14 * 10**9, 64 * 10**6, 14 * 10**9, 2e12, 312e12) is 544.
    Raises ValueError that names bytes_of_cache and its value if there is no such batch.
    """
    # TODO: what each sequence adds to computing and to moving; when can the first never catch up?
    # TODO: solve the inequality for B, and round in the right direction
    ### BEGIN SOLUTION
    gained = flops * bw - bytes_of_cache * peak  # by each sequence, in units of 1 / (bw · peak) seconds
    if gained <= 0:
        raise ValueError(f"With bytes_of_cache = {bytes_of_cache}, moving takes longer than computing in any batch.")
    return int(-(-bytes_of_weights * peak // gained))
    ### END SOLUTION


# %% part="decode"

# %% [markdown]
# The next picture is known as a **roofline**. It shows how many words in a second the card of our example writes, all
# users together. The roof rises as long as the card waits for its memory, and is flat where it computes all the time.
# Find your turning points. (The words that *one* user gets in a second never grow with the batch.)

# %% picture="decode"

# %% [markdown]
# ## Part 3 · Numbers in a few bits
#
# About 27 minutes, ●●○
#
# If one waits for bytes, the remedy is fewer bytes. A weight that was trained in 32 or 16 bits is stored in 8, or
# even 4. That is **quantisation**: the numbers are rounded to a grid that is coarse enough to need a few bits only.
#
# We take a *symmetric* grid: whole numbers from $-L$ to $L$, times a **scale**. With `bits` bits,
# $L = 2^{\text{bits} - 1} - 1$: 127 for 8 bits, 7 for 4, 1 for 2. (One pattern of bits is left over, and nobody
# misses it.) The largest number should just fit:
#
# $$\text{scale} = \frac{\max |x|}{L} \qquad q = \operatorname{round}\left(\frac{x}{\text{scale}}\right) \qquad
# \hat x = q \cdot \text{scale}$$
#
# No number moves by more than half a scale, because rounding moves nothing by more than a half.
#
# **One outlier ruins its neighbours.** The scale depends on the largest number, and all others have to live with it.
# In 4 bits, a row of small numbers with a single 60 among them becomes that 60 and zeros. So a row is cut into
# **groups** of `group` neighbours, each with a scale of its own, and an outlier ruins its own group only. That costs
# bytes again: 4 bits for a number and 16 for the scale of 64 numbers are 4.25 bits a number. Our model of 7 billion
# weights shrinks from 14 to 3.72 billion bytes, and its words come after 1.86 milliseconds instead of 7.
#
# **One number by hand.** The row 0.6, −1.4, 0.1, 7 in 4 bits, so $L = 7$. In groups of two, the scales are 0.2 and 1.
# The whole numbers are 3, −7 and 0, 7, which stand for 0.6, −1.4 and 0, 7. As one group of four, the scale is 1, and
# the whole numbers are 1, −1, 0, 7: 0.6 has become 1, and −1.4 has become −1.
#
# **Calculating with it.** It would be silly to turn the whole table back into long numbers before each product: then
# those would have to be moved. In each group, all numbers have the same scale, so it can be taken out of the sum:
#
# $$y_m = \sum_{\text{groups } g} \text{scale}_{m,g} \sum_{k \in g} q_{m,k}\, x_k$$
#
# With $x = (1, 2, 3, 4)$ and the row above in groups of two,
# $y = 0.2 \cdot (3 \cdot 1 - 7 \cdot 2) + 1 \cdot (0 \cdot 3 + 7 \cdot 4) = 25.8$. The row itself would have given
# 26.1. Turn one group of columns after the other into long numbers, use it, and forget it: at no time is there a
# table of $(M, K)$ long numbers. (`@` wants two tensors of the same number type, so convert a group with
# `.to(x.dtype)`. For simplicity we keep 4 bits in a whole byte, too, in an `int8`. Real programs pack two into one
# byte.)
#
# **To think about.** Groups of one number have no error at all. Why does nobody use them?


# %%
def quantise(x: Tensor, bits: int, group: int) -> tuple[Tensor, Tensor]:
    """Round each row of x (M, K) to whole numbers, in groups of `group` neighbours with one scale each.

    Returns q (M, K), int8, and scale (M, K // group), of x's number type:
    scale = (the largest absolute number of the group) / (2^(bits - 1) - 1), and q = x / scale, rounded to the nearest.
    A group of zeros has scale 1. (How halves are rounded does not matter.)
    Example: quantise(tensor([[0.6, -1.4, 0.1, 7.0]]), 4, 2) is ([[3, -7, 0, 7]], [[0.2, 1.0]]).
    Raises ValueError that names bits and its value if bits is not from 2 to 8, and ValueError that names group and its
    value if group does not divide K.
    """
    # TODO: refuse wrong bits and groups
    # TODO: the groups, and the largest absolute number in each                         # (M, K // G, G), (M, K // G)
    # TODO: the scales, with 1 for zeros; and the whole numbers, each with the scale of its group
    ### BEGIN SOLUTION
    M, K = x.shape
    if not 2 <= bits <= 8:
        raise ValueError(f"bits must be from 2 to 8, but it is {bits}.")
    if K % group != 0:
        raise ValueError(f"group = {group} does not divide {K} columns.")
    groups = x.reshape(M, K // group, group)                                            # (M, K // G, G)
    largest = groups.abs().amax(dim=-1)                                                 # (M, K // G)
    scale = largest / (2 ** (bits - 1) - 1)                                             # (M, K // G)
    scale = torch.where(largest == 0, torch.ones_like(scale), scale)                    # (M, K // G)
    q = (groups / scale[:, :, None]).round().to(torch.int8)                             # (M, K // G, G)
    return q.reshape(M, K), scale
    ### END SOLUTION


def dequantise(q: Tensor, scale: Tensor) -> Tensor:
    """The numbers that q (M, K) and scale (M, K // G) stand for: (M, K), of scale's number type.

    Example: dequantise(tensor([[3, -7, 0, 7]], dtype=torch.int8), tensor([[0.2, 1.0]])) is [[0.6, -1.4, 0.0, 7.0]].
    """
    # TODO: each whole number times the scale of its group                              # (M, K)
    ### BEGIN SOLUTION
    group = q.shape[1] // scale.shape[1]
    return q * scale.repeat_interleave(group, dim=1)                                    # (M, K)
    ### END SOLUTION


def quantised_matmul(x: Tensor, q: Tensor, scale: Tensor) -> Tensor:
    """The products of x (..., K) and the rows that q (M, K) and scale (M, K // G) stand for: (..., M).

    Equal to x @ dequantise(q, scale).T up to rounding, but no tensor of (M, K) numbers is made. x and scale have the
    same number type, and so has the result.
    Example: x = [1, 2, 3, 4] with q and scale of `dequantise`'s example gives [25.8].
    """
    # TODO: for one group of columns after the other: its part of the sums, times its scales  # (..., M)
    ### BEGIN SOLUTION
    group = q.shape[1] // scale.shape[1]
    y = x.new_zeros(*x.shape[:-1], q.shape[0])                                          # (..., M)
    for g in range(scale.shape[1]):
        columns = slice(g * group, (g + 1) * group)
        part = x[..., columns] @ q[:, columns].to(x.dtype).T                            # (..., M)
        y = y + part * scale[:, g]                                                      # (..., M)
    return y
    ### END SOLUTION


# %% part="quantise"

# %% [markdown]
# The picture quantises a table of random numbers in which one of 200 is an outlier, with your code. Each bit that is
# saved about doubles the error, until little but zeros is left; smaller groups take some of that back.

# %% picture="quantise"

# %% [markdown]
# ## Part 4 · Guessing ahead
#
# About 25 minutes, ●●●
#
# Part 2 left the card idle for 99 % of the time. If only one user is there, who could fill it? **The same user's next
# words.** A model that reads five words at once waits hardly longer than for one: the weights come once. But it
# cannot *write* five words at once, because each depends on the one before.
#
# So let a pupil write ahead. A small model, the **draft**, guesses the next $R$ words, one by one and fast. The large
# model, the **target**, reads text and guesses in a single step. At each of these places the teacher knows what it
# would have written: it has probabilities for each of the $R$ places, and for one more after them. It keeps the
# beginning with which it can agree, and corrects the first word with which it cannot. This is **speculative
# decoding**.
#
# When can it agree? "When the guess is the teacher's most likely word" would change what is written: unlikely words
# would die out. The rule must leave the probabilities exactly as they are, those of the target alone. Here it is, for
# one place with target $p$ and draft $q$, where the draft has drawn the word $g$ from $q$:
#
# - Accept $g$ with probability $\min(1, p_g / q_g)$. A word that the draft says too often is refused now and then.
# - After a refusal, draw from what the draft says too *rarely*: from $\max(0, p - q)$, divided by its sum.
#
# **Why that is exact.** The word $v$ comes out if it was guessed and accepted, with probability
# $q_v \min(1, p_v / q_v) = \min(q_v, p_v)$, or after a refusal. Some word is refused with probability
# $\sum \max(0, q - p)$. As $p$ and $q$ both sum to 1, this is the same as $\sum \max(0, p - q)$, the sum by which the
# second draw was divided. It cancels, and what is left is $\max(0, p_v - q_v)$. Together:
# $\min(q_v, p_v) + \max(0, p_v - q_v) = p_v$. However bad the pupil is, the text is the teacher's. A bad pupil only
# makes it slower.
#
# **One number by hand.** $p = (0.5, 0.3, 0.2)$ and $q = (0.2, 0.5, 0.3)$. The guess 0 is always accepted, since
# $p_0 > q_0$; the guess 1 with 0.6, the guess 2 with 2/3. After a refusal it is always word 0, since
# $\max(0, p - q) = (0.3, 0, 0)$. Word 0 comes out with $0.2 + 0.5 \cdot 0.4 + 0.3 \cdot \frac13 = 0.5$, word 1 with
# $0.5 \cdot 0.6 = 0.3$, word 2 with $0.3 \cdot \frac23 = 0.2$. That is $p$.
#
# **A whole step.** Go through the guesses from left to right. At the first refusal, one word is drawn for that place,
# and the step is over: the later guesses continued a text that does not exist any more. If all are accepted, one more
# word is drawn from the target's probabilities for the place after them; they have been computed anyway. So a step
# with $R$ guesses writes between 1 and $R + 1$ words.
#
# **Without a die.** To be testable, your function does not draw by itself. It gets **uniforms**, numbers from 0 up to
# but not including 1: one for each guess, which is accepted when `uniforms[i] < p[i, g] / q[i, g]`, and a last one
# for the draw. To draw from probabilities with a uniform $u$, add them up from id 0 on, and take the first id at
# which the sum exceeds $u$. With (0.1, 0.6, 0.3), the sums are 0.1, 0.7 and 1, so $u = 0.5$ draws id 1.
#
# **How many words a step?** Let each guess be accepted with probability $a$, whatever came before. A step always
# writes one word, a second one if the first guess was accepted ($a$), a third one if two were ($a^2$), and so on:
#
# $$1 + a + a^2 + \dots + a^R = \frac{1 - a^{R+1}}{1 - a}$$
#
# With $a = 0.8$ and four guesses, that is 3.36 words for one step of the target.
#
# **To think about.** The draft takes a tenth of the target's time for each guess, and $a = 0.8$. By which factor does
# writing become faster with 4 guesses, and with 20? And why do servers with many users switch all of this off?


# %%
def speculative_step(p: Tensor, q: Tensor, guesses: Tensor, uniforms: Tensor) -> list[int]:
    """The words that one step writes: the accepted guesses, and one more word.

    p (R + 1, V): the target's probabilities for the places of the guesses, and for the one after them.
    q (R, V): the draft's for the guesses; each guess has a probability above 0 there. guesses (R,): ids, R >= 0.
    uniforms (R + 1,): guess i is accepted when uniforms[i] < p[i, g] / q[i, g], where g is guesses[i].
    At the first refusal, place i, the LAST uniform draws from max(0, p[i] - q[i]), made to sum to 1. (Should rounding
    have left only zeros there, it draws from p[i].) If all are accepted, the last uniform draws from p[R].
    A draw is the lowest id at which the sum of the probabilities from id 0 on exceeds the uniform. (Divide the sums by
    the last one, so that rounding cannot leave all of them below it.)
    Returns 1 to R + 1 ids, as ints.
    Example: p = [[0.5, 0.3, 0.2], [0.1, 0.6, 0.3]], q = [[0.2, 0.5, 0.3]] and the guess 1 give [1, 1] with the uniforms
    0.55 and 0.5, and [0] with 0.65 and 0.5.
    """
    # TODO: guess by guess, as long as they are accepted
    # TODO: which probabilities does the last uniform draw from?                        # (V,)
    # TODO: draw, and return the accepted guesses and the drawn word
    ### BEGIN SOLUTION
    written = []
    R = len(guesses)
    final = p[R]                                                                        # (V,)
    for i in range(R):
        g = int(guesses[i])
        if uniforms[i] >= p[i, g] / q[i, g]:
            left = (p[i] - q[i]).clamp(min=0)                                           # (V,)
            final = left if left.sum() > 0 else p[i]                                    # (V,)
            break
        written.append(g)
    sums = final.cumsum(dim=0)                                                          # (V,)
    drawn = int((sums / sums[-1] <= uniforms[R]).sum())
    return [*written, drawn]
    ### END SOLUTION


def expected_tokens(a: float, R: int) -> float:
    """How many words a step with R >= 0 guesses writes on average if each guess is accepted with probability a.

    Example: expected_tokens(0.8, 4) is 3.3616, and expected_tokens(1.0, 4) is 5.
    Raises ValueError that names a and its value if a is not from 0 to 1.
    """
    # TODO: the sum above; what is it where the formula divides by 0?
    ### BEGIN SOLUTION
    if not 0 <= a <= 1:
        raise ValueError(f"a must be from 0 to 1, but it is {a}.")
    return math.fsum(a**i for i in range(R + 1))
    ### END SOLUTION


# %% part="speculate"

# %% [markdown]
# The lines are your `expected_tokens`. The dots are what your `speculative_step` really wrote, with drafts that were
# more and less like the target; a draft agrees with the target with probability $\sum \min(p, q)$. On the right, what
# it wrote is counted: with every draft, the words come as often as the target wants them.

# %% picture="speculate"

# %% [markdown]
# ## Harder: how large should a model be?
#
# Not graded; about 25 minutes, ●●○.
# With a budget of operations, you can train a large model on a short text or a
# small one on a long text. The file `harder.py` beside this one asks for the days that GPT-3 takes on 1,000 graphics
# cards, and for the best size of a model for a given budget. Run `python harder.py`: it checks what you write there
# and says in sentences what is missing.
#
# ## Look back
#
# Four short formulas explain a good deal of what companies do with language models: why they serve many users at
# once, why they dread long conversations, why the same model is offered in 16, 8 and 4 bits, and why a large model is
# accompanied by a small one. None of them needed a graphics card, only the question what one is waiting for.
#
# ## Read on
#
# - Jared Kaplan and others, *Scaling Laws for Neural Language Models* (2020). Its Table 1 is the table of Part 1, and
#   the text beside it derives 6 operations for each parameter and token.
# - Jordan Hoffmann and others, *Training Compute-Optimal Large Language Models* (2022): how large a model should be,
#   and how much it should read. Look at the figure in which GPT-3 is too large for what it has read.
# - Samuel Williams, Andrew Waterman and David Patterson, *Roofline: An Insightful Visual Performance Model for
#   Multicore Architectures* (2009): where the picture of Part 2 comes from, years before anybody thought of
#   Transformers.
# - Tim Dettmers and others, *LLM.int8(): 8-bit Matrix Multiplication for Transformers at Scale* (2022): the outliers
#   of real models. Look for how few features have them, and for what happens when these are set to 0.
# - Yaniv Leviathan, Matan Kalman and Yossi Matias, *Fast Inference from Transformers via Speculative Decoding*
#   (2023), and Charlie Chen and others, *Accelerating Large Language Model Decoding with Speculative Sampling*
#   (2023). Two groups found Part 4 at nearly the same time. Read both proofs, and see that they are yours.
