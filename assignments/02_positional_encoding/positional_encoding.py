# %% [markdown]
# # 02 · Positional encoding
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
#    vectors +         ▶ 02 positions
#    positions           12 positions that turn
#        ↑               17 the code around it, debugged
# words of a text        00 why not one word after the other
#
# ▶ you are here
# ```
#
# By now every word is a vector, and attention will let these vectors exchange information. There is one gap, and it
# is easy to overlook: **attention has no notion of order.** It compares every word with every other word, and nothing
# in that comparison depends on which came first. *Dog bites man* and *man bites dog* contain the same three vectors.
# So in the school for words, the first teacher gives every word a number for its seat. Remember it, she says, for the
# same word in another seat may mean another thing. This notebook is about those numbers.
#
# To be precise, self-attention without positions is **permutation-equivariant**: shuffle its inputs, and its
# outputs are shuffled in the same way.
#
# $$\text{attention}(x_{\pi}) = \text{attention}(x)_{\pi} \qquad\text{for every order } \pi$$
#
# You will often read "invariant" here. Invariant would mean that a shuffle does not change the output at all,
# and that is not what happens: each output moves along with its word. (Average the outputs over the sentence,
# and *then* the result is invariant: a bag of words.) See for yourself:

# %%
import torch
from torch import Tensor, nn

# %%
if __name__ == "__main__":
    sentence = torch.randn(1, 5, 8)                                                     # (B, T, C)
    shuffle = torch.tensor([3, 0, 4, 1, 2])                                             # (T,)
    attend = nn.MultiheadAttention(embed_dim=8, num_heads=2, batch_first=True)

    original = attend(sentence, sentence, sentence)[0]                                  # (B, T, C)
    shuffled = sentence[:, shuffle]                                                     # (B, T, C)
    shuffled = attend(shuffled, shuffled, shuffled)[0]                                  # (B, T, C)

    moved = torch.allclose(shuffled, original[:, shuffle], atol=1e-5)
    stayed = torch.allclose(shuffled, original, atol=1e-5)
    print("equivariant, the outputs move with their words:", moved)
    print("invariant, the outputs stay where they are:    ", stayed)

# %% [markdown]
# So each word needs a second piece of information: its seat in the sentence, or in the field's own term, its
# **position**. The simplest way to supply it is to add a vector to the word's vector, a different one for
# every position. That vector is called a **positional encoding** when it is computed and a **positional
# embedding** when it is learned. You will build both: the computed one in Parts 1 and 2, the learned one in
# Part 3.
#
# **One number by hand.** Why not just add the number of the position, 0, 1, 2, …, to the word? Take two words that
# are as different as can be, $(1, -1)$ and $(-1, 1)$: their cosine is $-1$. At position 500 they have become $(501,
# 499)$ and $(499, 501)$, and their cosine is 0.999992. The position has drowned the words.
#
# **To think about.** And why not that number divided by the sentence's length, so that it stays small? (Compare a
# short and a long sentence.)
#
# Letters for shapes: `B` sentences in a batch, `T` positions in a sentence, `C` numbers in a vector.
#
# **Not here.** You do not write attention yet: PyTorch's layer shows in the pictures what your positions change.
#
# The names of functions, classes, attributes and arguments are part of the contract: keep them as they are.
# How you get there is up to you. Speed is not scored. Each call may take two seconds of processor time, and two
# plain loops fill any table that the tests ask for well within that.

# %% [markdown]
# ## Part 1 · The table of waves
#
# About 15 minutes, ●●○ (difficulty 2 of 3)
#
# How does a clock tell thousands of moments apart with only three hands? They turn at different speeds. The
# fast hand tells neighbouring moments apart, the slow one tells morning from evening, and no hand ever leaves
# its circle.
#
# The sinusoidal encoding is a clock with $d/2$ hands. Position $p$ is the time, and hand number $i$ has turned by
# the angle $p \cdot \omega_i$, where $\omega_i$ is its **frequency**. A hand is recorded as the coordinates of its
# tip, a sine and a cosine:
#
# $$
# PE_{p,\,2i} = \sin\!\left(\frac{p}{10000^{2i/d}}\right), \qquad
# PE_{p,\,2i+1} = \cos\!\left(\frac{p}{10000^{2i/d}}\right)
# $$
#
# Columns 0 and 1 belong to the fastest hand ($i = 0$), columns 2 and 3 to the next one, and so on. For large
# $d$ the slowest needs almost $10000 \cdot 2\pi \approx 63{,}000$ positions for one full turn: its **wavelength**.
#
# **One number by hand.** For $d = 4$ there are two hands. The first turns by 1 radian per position, the second by
# $1/10000^{2/4} = 0.01$. Positions 0, 1 and 2 get the rows
#
# | $p$ | $\sin p$ | $\cos p$ | $\sin 0.01p$ | $\cos 0.01p$ |
# |---|---|---|---|---|
# | 0 | 0.0000 | 1.0000 | 0.0000 | 1.0000 |
# | 1 | 0.8415 | 0.5403 | 0.0100 | 1.0000 |
# | 2 | 0.9093 | −0.4161 | 0.0200 | 0.9998 |
#
# Three facts follow from the picture of the clock, and the tests check all of them:
#
# - every hand has length 1, so for even $d$ every row has the squared length $d/2$;
# - the dot product of two rows is $PE_p \cdot PE_{p+k} = \sum_i \cos(\omega_i k)$: it depends on the *distance*
#   $k$ and not on the position $p$. Moving $k$ positions along turns every hand by a fixed angle, wherever you
#   start;
# - all rows are different.
#
# A row depends on its position and on $d$ alone, not on how many rows the table has. When $d$ is odd, the last
# sine simply has no cosine beside it. And watch the far end: around position 5000, a tiny error in $\omega$ is
# multiplied by 5000. Your table must still be right to 0.002 there.
#
# **To think about.** Take two sentences, one of 10 words and one of 50. Which rows do they share? Could a
# model that has only seen 50 positions make sense of row 60?


# %%
def positional_encoding(max_len: int, d_model: int) -> Tensor:
    """The table of sines and cosines, one row for each position.             -> (max_len, d_model)

        PE[p, 2i]     = sin(p / 10000^(2i / d_model))
        PE[p, 2i + 1] = cos(p / 10000^(2i / d_model))

    The table is made of ordinary float32 numbers. An odd `d_model` ends with a sine.
    Raises ValueError that names the argument and its value if `max_len` or `d_model` is below 1.

    Example: positional_encoding(2, 4) -> [[0.0000, 1.0000, 0.0000, 1.0000],
                                           [0.8415, 0.5403, 0.0100, 1.0000]]
    """
    # TODO: refuse sizes below 1; then compute one angle for each position and hand     # (max_len, hands)
    # TODO: place sines and cosines side by side, hand by hand                          # (max_len, d_model)
    raise NotImplementedError("positional_encoding is not written yet.")


# %% part="table"
# Written? `autograder check 02_positional_encoding` shows how you are doing.

# %% [markdown]
# Look at the pictures of your own table. In the **heatmap**, each row is a position; the columns on the left
# flicker, those on the right hardly change. On the **clocks**, the positions go around the circle clockwise,
# starting at twelve. In the **ridge**, each row is compared with every other row: bright along the
# diagonal, with the same hill around every position, because only the distance counts.

# %% picture="table"
# The notebook draws a picture of your own code here.

# %% [markdown]
# ## Part 2 · A module that adds the table
#
# About 12 minutes, ●●○ (difficulty 2 of 3)
#
# The table is computed once and then only read. In PyTorch, such a tensor is a **buffer**: it belongs to the
# module and follows it to another device or number type, but the optimiser never changes it. (Whether it
# is also saved in the module's `state_dict` is up to you; it can always be computed again.) Each module has a
# table of its own. Think of the seat numbers screwed to the chairs of the school: when it moves, they move with it,
# and no lesson changes them.
#
# $$\text{output}_{b,t} = \text{dropout}\left(x_{b,t} + PE_t\right)$$
#
# The same row $t$ is added in every sentence $b$ of the batch, in training and in evaluation alike; only the
# dropout differs between the two. A sentence of $T$ words needs the first $T$ rows and no more. For a sentence
# longer than the table there is nothing sensible to add, so the module refuses it.
#
# **One number by hand.** If the word at position 1 is $(10, 10, 10, 10)$, it leaves as
# $(10.8415, 10.5403, 10.0100, 11.0000)$. The same vector at position 0 leaves as $(10, 11, 10, 11)$.
#
# **To think about.** After the addition, word and position are mixed in one vector. Why can a model usually
# tell them apart again? (How many directions does a vector of 512 numbers offer?)


# %%
class SinusoidalPositionalEncoding(nn.Module):
    """Adds row t of the table to the word at position t, then applies dropout.

    The table is the buffer `pe`, (max_len, d_model) or (1, max_len, d_model); nothing here is trained.
    After `module.double()` the table and the answers are float64.
    """

    def __init__(self, d_model: int, max_len: int = 5000, dropout: float = 0.0):
        super().__init__()
        # TODO: register the table as a buffer, make a dropout layer, keep what forward needs
        raise NotImplementedError("SinusoidalPositionalEncoding.__init__ is not written yet.")

    def forward(self, x: Tensor) -> Tensor:
        """x (B, T, C) -> (B, T, C); x itself keeps its values, and gradients flow back to it.

        Raises ValueError that names max_len, its value and x's length if x has more than `max_len` positions.
        """
        # TODO: refuse sentences that are too long; add as many rows as there are words  # (B, T, C)
        raise NotImplementedError("SinusoidalPositionalEncoding.forward is not written yet.")


# %% part="module"
# Written? `autograder check 02_positional_encoding` shows how you are doing.

# %% [markdown]
# The first picture subtracts your module's input from its output: what remains must be the table, the same
# for both sentences. The second repeats the experiment from the beginning, now with your positions added.
# Without them, a word's output is the same wherever the word stands; with them, order makes a difference.

# %% picture="module"
# The notebook draws a picture of your own code here.

# %% [markdown]
# ## Part 3 · Positions that are learned
#
# About 13 minutes, ●○○ (difficulty 1 of 3)
#
# Why compute what can be learned? Keep a second lookup table beside the one for words, or **tokens**, as models
# call the pieces of text that they read. Row $t$ of it is the vector for position $t$, and it is trained like every
# other parameter, whatever its initial values (usually random). A word comes in with a name and a seat, and each is
# looked up in its own list:
#
# $$\text{output}_{b,t} = E_{\text{token}}[\text{id}_{b,t}] + E_{\text{position}}[t]$$
#
# **One number by hand.** Let token 7 have the vector $(5, 0)$, position 0 the vector $(0.1, 0.2)$ and position 1 the
# vector $(0.3, 0.4)$. The sentence `7 7` becomes $(5.1, 0.2), (5.3, 0.4)$: the same token twice, and yet two
# different vectors.
#
# The price: the table has exactly `block_size` rows. There is no vector for the next position, and no formula
# to compute one.
#
# | model | how positions come in | rows |
# |---|---|---|
# | the original Transformer (2017) | sinusoidal table, added once | as many as you like |
# | GPT, GPT-2, GPT-3 | learned, added once | 512, 1024, 2048 |
# | BERT | learned, added once | 512 |
# | T5 | learned number for each *distance*, added to the attention scores | no table of positions |
# | BLOOM (ALiBi) | a penalty that grows with the distance, added to the scores | no table of positions |
# | Llama and many since | rotary: queries and keys turn like our clock hands | no table of positions |
#
# **To think about.** If nearly all training sentences are shorter than 100 tokens, how well trained is
# row 400?


# %%
class TokenAndPositionEmbedding(nn.Module):
    """Vector of the token plus vector of its position, both learned.

    `token_embedding` is an `nn.Embedding` with a row for each token,        (vocab_size, embed_size);
    `position_embedding` is one with a row for each position,                (block_size, embed_size).
    It gives the same answer in training and in evaluation; after `module.double()` the answer is float64.
    """

    def __init__(self, vocab_size: int, block_size: int, embed_size: int):
        super().__init__()
        # TODO: the two lookup tables, under the names above
        raise NotImplementedError("TokenAndPositionEmbedding.__init__ is not written yet.")

    def forward(self, ids: Tensor) -> Tensor:
        """ids (B, T) -> (B, T, C).

        Raises ValueError that names block_size, its value and ids' length if ids has more than `block_size` positions.
        """
        # TODO: refuse sentences that are too long; look up tokens and positions, add   # (B, T, C)
        raise NotImplementedError("TokenAndPositionEmbedding.forward is not written yet.")


# %% part="learned"
# Written? `autograder check 02_positional_encoding` shows how you are doing.

# %% [markdown]
# The picture trains your layer for a moment, on a task in which a guess one position beside the truth is nearly
# right. Before training, every position resembles only itself. Afterwards neighbours have become similar, and the
# ridge of Part 1 appears again, although nobody wrote a sine.

# %% picture="learned"
# The notebook draws a picture of your own code here.

# %% [markdown]
# ## Harder: a step is a matrix
#
# Not graded; about 30 minutes, ●●○ (difficulty 2 of 3).
# One matrix takes each row of the sinusoidal table *k* positions further, and this
# is the reason that the authors gave for sines. The file `harder.py` beside this one asks for the matrix, and for a
# measurement: do learned positions have one, too? Run `python harder.py`: it checks what you write there and says in
# sentences what is missing.
#
# ## Look back
#
# Vectors that say which token they are *and* where it stands. Attention itself is still missing: which
# token may attend to which, and how strongly. The next assignment, masked heads, is about that. And in
# *Rotary positions* the clock hands return, this time turning queries and keys themselves.
#
# ## Read on
#
# - Vaswani et al., *Attention Is All You Need* (2017). Section 3.5 is Part 1 in half a page. Look for the two
#   reasons the authors give for sines, and for how learned positions did in comparison (Table 3, row E).
# - Press, Smith and Lewis, *Train Short, Test Long: Attention with Linear Biases Enables Input Length
#   Extrapolation* (2021). Look at what happens to sinusoidal positions beyond the lengths seen in training: it
#   answers the last question of Part 1 with measurements.
# - Su et al., *RoFormer: Enhanced Transformer with Rotary Position Embedding* (2021). The clock hands again,
#   multiplied instead of added; the assignment *Rotary positions* builds them.
