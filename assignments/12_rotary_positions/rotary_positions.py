# %% [markdown]
# # 12 · Rotary positions
#
# ```
#  the next word         07 trained, and writing
#        ↑               18 what it costs
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
#    positions         ▶ 12 positions that turn
#        ↑               17 the code around it, debugged
# words of a text        00 why not one word after the other
#
# ▶ you are here
# ```
#
# So far a word was told its position once, at the entrance: a vector for the position was added to the vector of
# the word, and both went through the whole model as one sum. That works, but it asks a lot of the model. Whether
# *cat* stands two positions before *sat* is the same question at position 3 and at position 300. In a *learned*
# table those are different rows that know nothing of each other, so each pair of positions has to be learned anew.
# The sinusoidal table does contain the distance (the dot product of two rows depends on it alone), but attention
# never sees the rows by themselves. It sees sums of word and position, which the layers for queries and keys have
# to learn to take apart.
#
# Attention does not need to know *where am I* but **how far apart are we**. There is a way to answer this exactly
# where the question comes up, in the product of query and key, and it needs no table, no learned number and no sum:
# the queries and keys are *rotated*.
#
# In the school for words, each word now gets a clock hand. The word in seat $p$ turns it by $p$ notches. When two of
# them compare their hands, the angle between the hands is one notch for each *seat* from one to the other; whether they
# sit at the front or at the back of the room makes no difference. This is the idea of **rotary position embedding**,
# RoPE for short (2021). Llama, Mistral, Qwen and most open language models of today use it.
#
# Letters for shapes: `B` sentences, `H` heads, `T` positions, `D` numbers in a query or a key.
#
# **Not here.** No model is trained: you build the rotation and check what it promises, and the harder exercise asks
# about texts longer than those in training.
#
# The names of functions and arguments are part of the contract: the tests use them.

# %%
import torch
from torch import Tensor
from torch.nn import functional as F

# %% [markdown]
# ## Part 1 · Turning pairs
#
# About 20 minutes, ●●● (difficulty 3 of 3)
#
# A clock hand is a point in the plane, so it takes two numbers, $(a, b)$. Turning it by the angle $\theta$,
# counter-clockwise, gives
#
# $$
# \begin{pmatrix} a' \\ b' \end{pmatrix} =
# \begin{pmatrix} \cos\theta & -\sin\theta \\ \sin\theta & \cos\theta \end{pmatrix}
# \begin{pmatrix} a \\ b \end{pmatrix}
# $$
#
# A query with $D$ numbers carries $D/2$ such hands. Neighbours share a hand: numbers 0 and 1 are hand 0,
# numbers 2 and 3 are hand 1, and so on. As in the sinusoidal table, hand $i$ has a speed of its own, and at
# position $p$ it is turned by
#
# $$\theta_{p,i} = p \cdot \text{base}^{-2i/D} \qquad \text{base} = 10000 \text{ unless you are told otherwise}$$
#
# The first hand turns by 1 radian per position, the last one hardly moves. The sinusoidal table *added* the hands to
# the word; here the word's own numbers *are* the hands.
#
# **One number by hand.** Let $D = 4$. The speeds are $1$ and $10000^{-2/4} = 0.01$. At position 1 the vector
# $(1, 0, 1, 0)$ becomes
# $(\cos 1,\ \sin 1,\ \cos 0.01,\ \sin 0.01) = (0.5403,\ 0.8415,\ 1.0000,\ 0.0100)$, and $(0, 1, 0, 1)$
# becomes $(-0.8415,\ 0.5403,\ -0.0100,\ 1.0000)$. At position 0 nothing happens at all.
#
# A rotation keeps lengths: at whatever position a word stands, its query is as long as before. A number without a
# partner cannot be rotated, so an odd $D$ is refused.
#
# **Angles need digits.** Large models keep their queries in `bfloat16`, a small number type that cannot tell
# position 257 from position 256; an angle that is off by 1 turns the first hand by a whole radian too many. So
# compute the angles in float32 or float64, whatever the number type of the queries. Only the rotated numbers go back
# to that type.
#
# Write the function now. In Parts 1 and 2 it is almost always called with `interleaved=True`; you come back to it
# in Part 3.
#
# **To think about.** 44 radians are almost exactly seven full turns, so hand 0 looks at position 44 as it did at
# position 0. Why does a model with several hands still tell the two positions apart?


# %%
def rope(
    x: Tensor, positions: Tensor | None = None, base: float = 10000.0, interleaved: bool = True
) -> Tensor:
    """Rotates each pair of numbers of x by an angle that grows with the position.

    x: (..., T, D), queries or keys. The dots stand for any leading dimensions: none, a batch, or a batch and
    heads; all of them have the same positions.
    positions: (T,) whole numbers, the position of each row; None means 0, 1, …, T-1. They need not begin at 0, nor
    differ from each other, nor be in order, and there is no last position.
    Pair i at position p is rotated counter-clockwise by p * base^(-2i / D).
    interleaved: True pairs the numbers 0 and 1, 2 and 3, …; False pairs i with i + D/2 (see Part 3).

    Returns (..., T, D) with the number type of x: float64, float32, float16 or bfloat16 (see "Angles need
    digits"); every number comes back in its own place. x and positions keep their values, and gradients flow
    through.
    Raises ValueError that names D and its value if D is odd, in either pairing.
    Example: rope of two rows (1, 0, 1, 0) -> [[1.0000, 0.0000, 1.0000, 0.0000],
                                               [0.5403, 0.8415, 1.0000, 0.0100]]
    """
    # TODO: refuse what cannot be paired; then one angle for each position and pair     # (T, D/2)
    # TODO: split x into the first and the second numbers of the pairs, by either pairing  # (..., T, D/2)
    # TODO: rotate every pair, and put both numbers back where they came from           # (..., T, D)
    raise NotImplementedError("rope is not written yet.")


# %% part="rotation"
# Written? `autograder check 12_rotary_positions` shows how you are doing.

# %% [markdown]
# The picture puts one vector at positions 0 to 7 and lets your function turn its hands. All tips stay on their
# circles, and each clock runs more slowly than the one before.

# %% picture="rotation"
# The notebook draws a picture of your own code here.

# %% [markdown]
# ## Part 2 · Only the distance counts
#
# About 5 minutes, ●●○ (difficulty 2 of 3)
#
# Let a query stand at position $m$ and a key at position $n$. Write $R_m$ for "turn all hands as at position
# $m$". The score that attention computes is then
#
# $$(R_m q) \cdot (R_n k) \;=\; q \cdot (R_{n-m}\, k)$$
#
# since turning both by the same angle changes nothing between them. The absolute positions are gone: only $n - m$
# is left. In the table of all scores, with one query and one key repeated at every position, each **diagonal**
# holds one number. And the diagonals *differ* from each other: if they did not, near and far could not be told apart.
#
# **One number by hand.** Let $D = 2$ and $q = k = (1, 0)$. The score of positions $m$ and $n$ is
# $\cos m \cos n + \sin m \sin n = \cos(m - n)$: for the positions 3 and 5 it is $\cos 2 = -0.4161$, and for
# the positions 103 and 105 as well.
#
# Two things follow for attention:
#
# - **Values are not rotated.** The rotation is there to decide the attention weights. What a word contributes should
#   be the same wherever it stands.
# - **Sentences need not begin at 0.** A model that writes keeps its old keys and only computes the next word, at
#   position 5, say. Hence the argument `positions`.
#
# There is nothing to write in this part: if the rotation is right, this follows. Here is how attention would use
# your function:


# %%
def attention_with_rotary_positions(q: Tensor, k: Tensor, v: Tensor, positions: Tensor) -> Tensor:
    """q, k and v: (B, H, T, D) -> (B, H, T, D). Queries and keys are rotated, values are not."""
    return F.scaled_dot_product_attention(rope(q, positions), rope(k, positions), v)    # (B, H, T, D)


# %%
if __name__ == "__main__":
    q, k, v = torch.randn(3, 1, 2, 5, 8, dtype=torch.float64)                           # (B, H, T, D)
    front = attention_with_rotary_positions(q, k, v, torch.arange(5))                   # (B, H, T, D)
    back = attention_with_rotary_positions(q, k, v, torch.arange(5) + 1000)             # (B, H, T, D)
    stretched = attention_with_rotary_positions(q, k, v, 2 * torch.arange(5))           # (B, H, T, D)
    print("the same sentence a thousand positions later changes by    ", f"{(back - front).abs().max():.1e}")
    print("the same words with a gap between each two of them change by", f"{(stretched - front).abs().max():.1e}")

# %% part="distance"
# Written? `autograder check 12_rotary_positions` shows how you are doing.

# %% [markdown]
# The picture shows the scores of one query and one key at all pairs of positions. Look for stripes along the
# diagonal, and for three curves that lie exactly on each other.
#
# You will read that the score *falls* with the distance. It does not have to: it depends on the words, and it
# swings, as you see. What the paper proves is that a certain upper *bound* on it falls.

# %% picture="distance"
# The notebook draws a picture of your own code here.

# %% [markdown]
# ## Part 3 · The other pairing
#
# About 4 minutes, ●●○ (difficulty 2 of 3)
#
# Which two numbers share a hand? We took neighbours, as the original paper did: $(0, 1), (2, 3), \dots$ That is
# called **interleaved**. There is a second convention, and half of the world's code follows it: cut the vector in
# the middle and pair number $i$ with number $i + D/2$. In both, pair $i$ turns with speed
# $\text{base}^{-2i/D}$, and every number stays in its own place.
#
# | pairing | $D = 6$ | used by |
# |---|---|---|
# | `interleaved=True` | (0, 1) (2, 3) (4, 5) | the paper, GPT-J, Llama as Meta published it |
# | `interleaved=False` | (0, 3) (1, 4) (2, 5) | GPT-NeoX, Llama in the `transformers` library |
#
# Llama on both lists? Its weights were reordered when they moved from one to the other. For a learned matrix the
# order of its outputs does not matter, so both pairings are equally good. But they must not be mixed: all
# properties of Part 2 hold for either, no error appears, and a model that was trained with one talks nonsense
# with the other.
#
# **One number by hand.** Let $D = 4$ and $x = (1, 2, 3, 4)$ at position 1. With `interleaved=False` the pair
# $(1, 3)$ is rotated by 1 and the pair $(2, 4)$ by 0.01: the result is
# $(1\cos 1 - 3\sin 1,\ \ 2\cos 0.01 - 4\sin 0.01,\ \ 1\sin 1 + 3\cos 1,\ \ 2\sin 0.01 + 4\cos 0.01)
# = (-1.9841,\ 1.9599,\ 2.4624,\ 4.0198)$.
#
# Go back to your function and give it the second pairing.

# %% part="halves"
# Written? `autograder check 12_rotary_positions` shows how you are doing.

# %% [markdown]
# The last picture shows which number of the result depends on which number of the input. A dark cell in row $j$ and
# column $i$ means: number $j$ of the result changes with number $i$ of the input. Little blocks along the diagonal
# are neighbours; three stripes are halves.

# %% picture="halves"
# The notebook draws a picture of your own code here.

# %% [markdown]
# ## Harder: a longer text than in training
#
# Not graded; about 35 minutes, ●●○ (difficulty 2 of 3).
# Which hands point where they never pointed in training, and which should turn
# more slowly? The file `harder.py` beside this one asks for the answers that long models of today are built on, in
# four short functions. Run `python harder.py`: it checks what you write there and says in sentences what is missing.
#
# ## Look back
#
# Ten lines of code, nothing to learn, and no limit to the length of a text: in principle the hands turn for ever. In
# practice a model that has been trained on 4,000 positions is lost at position 40,000, because the slow hands then
# point where they never pointed before. Much of today's work on long texts is about slowing the hands down, and a
# larger `base` is the simplest way to do it.
#
# **One question to take along:** if a model was trained with `base = 10000` on sentences of 4,000 words, and
# you want it to read 8,000 words, which hands would you slow down, and which would you rather leave as they
# are?
#
# ## Read on
#
# - Peter Shaw, Jakob Uszkoreit and Ashish Vaswani, *Self-Attention with Relative Position Representations* (2018):
#   distances in attention before RoPE. Look for where the distance enters the score, and for what is learned.
# - Jianlin Su and others, *RoFormer: Enhanced Transformer with Rotary Position Embedding* (2021): the paper. Look for
#   the derivation in two dimensions first, then for the bound that falls with the distance.
# - Ofir Press, Noah A. Smith and Mike Lewis, *Train Short, Test Long: Attention with Linear Biases Enables Input
#   Length Extrapolation* (2021): a rival without any rotation. Look at the plot of the loss on texts that are longer
#   than those in training.
# - Shouyuan Chen, Sherman Wong, Liangjian Chen and Yuandong Tian, *Extending Context Window of Large Language Models
#   via Positional Interpolation* (2023): an answer to the question above. Which hands do they slow down?
