# %% [markdown]
# # 02 · Positional encoding
#
# Every word is a vector by now, and attention lets the vectors listen to each other. Something is
# missing, though, and it is easy to overlook: **attention has no idea of order.** It compares every word
# with every other word, and nowhere in that comparison does it say who came first. *Dog bites man* and
# *man bites dog* contain the same three vectors.
#
# To be exact: self-attention without positions is **permutation-equivariant**. Shuffle the words going in,
# and the same outputs come out, shuffled in the same way:
#
# $$\text{attention}(x_{\pi}) = \text{attention}(x)_{\pi} \qquad\text{for every order } \pi$$
#
# You will often read "invariant" here. That would mean that the output does not change at all under a
# shuffle, and it is not what happens: the outputs move along with their words. (Average them over the
# sentence, and *then* you get something invariant: a bag of words.) See for yourself:

# %%
import torch
from torch import Tensor, nn

# %%
if __name__ == "__main__":
    sentence = torch.randn(1, 5, 8)                                                     # (B, T, C)
    shuffle = torch.tensor([3, 0, 4, 1, 2])                                             # (T,)
    listen = nn.MultiheadAttention(embed_dim=8, num_heads=2, batch_first=True)

    straight = listen(sentence, sentence, sentence)[0]                                  # (B, T, C)
    mixed = sentence[:, shuffle]                                                        # (B, T, C)
    mixed = listen(mixed, mixed, mixed)[0]                                              # (B, T, C)

    moved = torch.allclose(mixed, straight[:, shuffle], atol=1e-5)
    stayed = torch.allclose(mixed, straight, atol=1e-5)
    print("equivariant, the outputs move with their words:", moved)
    print("invariant, the outputs stay where they are:    ", stayed)

# %% [markdown]
# So each word needs a second piece of information: its *seat*. The simplest way to hand it over is to add
# a vector to the word's vector, a different one for every position. This notebook builds both classic ways
# to get such vectors: computing them (Part 1 and 2) and learning them (Part 3).
#
# **Think about it first.** Why not just add the number of the position, 0, 1, 2, …, to the word? And why not
# the number divided by the sentence's length, so that it stays small? (Look at position 500 in the first
# case; compare a short and a long sentence in the second.)
#
# The alphabet of shapes: `B` sentences in a batch, `T` positions in a sentence, `C` numbers in a vector.

# %% [markdown]
# ## Part 1 · The table of waves
#
# How does a clock tell thousands of moments apart with three hands? One hand is fast and one is slow. The
# fast hand tells neighbours apart, the slow one tells morning from evening, and each hand alone never shows
# a number outside its circle.
#
# The sinusoidal encoding is a clock with $d/2$ hands. Position $p$ is the time, and hand number $i$ turns by
# the angle $p \cdot \omega_i$. A hand is written down as the place of its tip, which takes two numbers,
# a sine and a cosine:
#
# $$
# PE_{p,\,2i} = \sin\!\left(\frac{p}{10000^{2i/d}}\right), \qquad
# PE_{p,\,2i+1} = \cos\!\left(\frac{p}{10000^{2i/d}}\right)
# $$
#
# So column 0 and column 1 belong to the fastest hand ($i = 0$), columns 2 and 3 to the next one, and so on;
# the slowest would need almost $10000 \cdot 2\pi \approx 63{,}000$ positions for one round.
#
# **A worked number.** For $d = 4$ there are two hands. The first turns by 1 radian a step, the second by
# $1/10000^{2/4} = 0.01$. Positions 0, 1 and 2 get the rows
#
# | $p$ | $\sin p$ | $\cos p$ | $\sin 0.01p$ | $\cos 0.01p$ |
# |---|---|---|---|---|
# | 0 | 0.0000 | 1.0000 | 0.0000 | 1.0000 |
# | 1 | 0.8415 | 0.5403 | 0.0100 | 1.0000 |
# | 2 | 0.9093 | −0.4161 | 0.0200 | 0.9998 |
#
# Three things follow from the picture of the clock, and the tests will look for all of them:
#
# - every hand has length 1, so for even $d$ every row has the squared length $d/2$;
# - the product of two rows is $PE_p \cdot PE_{p+k} = \sum_i \cos(\omega_i k)$: it depends on the *distance*
#   $k$ and not on the place $p$. Going $k$ seats further turns every hand by a fixed angle, wherever you
#   start;
# - all rows are different.
#
# When $d$ is odd, the last sine simply has no cosine beside it. And mind the far end: at position 5000 a
# tiny error in $\omega$ is multiplied by 5000.
#
# **Think about it.** Two sentences, one with 10 words and one with 50. Which rows do they share? Could a
# model that has only seen 50 positions make sense of row 60?


# %%
def positional_encoding(max_len: int, d_model: int) -> Tensor:
    """The table of sines and cosines, one row for each position.             -> (max_len, d_model)

        PE[p, 2i]     = sin(p / 10000^(2i / d_model))
        PE[p, 2i + 1] = cos(p / 10000^(2i / d_model))

    The table is made of ordinary float32 numbers. An odd `d_model` ends with a sine.
    `max_len` or `d_model` below 1: ValueError that names the argument and its value.

    Example: positional_encoding(2, 4) -> [[0.0000, 1.0000, 0.0000, 1.0000],
                                           [0.8415, 0.5403, 0.0100, 1.0000]]
    """
    # TODO: refuse sizes below 1; then one angle for each position and hand             # (max_len, hands)
    # TODO: lay sines and cosines side by side, hand by hand                            # (max_len, d_model)
    ### BEGIN SOLUTION
    if max_len < 1:
        raise ValueError(f"max_len must be at least 1, but it is {max_len}.")
    if d_model < 1:
        raise ValueError(f"d_model must be at least 1, but it is {d_model}.")
    positions = torch.arange(max_len, dtype=torch.float64).unsqueeze(1)                 # (max_len, 1)
    evens = torch.arange(0, d_model, 2, dtype=torch.float64)                            # (hands,)
    angles = positions / 10000 ** (evens / d_model)                                     # (max_len, hands)
    waves = torch.zeros(max_len, d_model)                                               # (max_len, d_model)
    waves[:, 0::2] = torch.sin(angles)
    waves[:, 1::2] = torch.cos(angles[:, : d_model // 2])
    return waves
    ### END SOLUTION


# %% part="table"

# %% [markdown]
# Look at the pictures of your own table. In the **heatmap**, each line is a position; the left columns
# flicker, the right ones hardly move. On the **clocks**, the positions walk around the circle clockwise,
# beginning at twelve. In the **ridge**, each row is compared with every other row: bright along the
# diagonal, and the same hill around every position, because only the distance counts.

# %% picture="table"

# %% [markdown]
# ## Part 2 · A module that adds the table
#
# The table is computed once and then only read. In PyTorch, such a tensor is a **buffer**: it belongs to the
# module and follows it to another device or number type, but the optimiser never touches it. (Whether it
# is also saved with the module's state is up to you; it can always be computed again.) Think of the seat
# numbers screwed to the chairs of a theatre: they travel with the theatre, and no performance changes them.
#
# $$\text{output}_{b,t} = \text{dropout}\left(x_{b,t} + PE_t\right)$$
#
# The same row $t$ is added in every sentence $b$ of the batch. A sentence with $T$ words needs the first $T$
# rows and no more; for a sentence longer than the table there is nothing sensible to add, so we say so.
#
# **A worked number.** If the word at position 1 is $(10, 10, 10, 10)$, it leaves as
# $(10.8415, 10.5403, 10.0100, 11.0000)$. The word at position 0 leaves as $(10, 11, 10, 11)$.
#
# **Think about it.** After the addition, word and seat are mixed in one vector. Why does the model usually
# manage to tell them apart again? (How many directions does a vector with 512 numbers offer?)


# %%
class SinusoidalPositionalEncoding(nn.Module):
    """Adds row t of the table to the word at position t, then applies dropout.

    The table is the buffer `pe`, (max_len, d_model) or (1, max_len, d_model); nothing here is trained.
    """

    def __init__(self, d_model: int, max_len: int = 5000, dropout: float = 0.0):
        super().__init__()
        # TODO: keep the table as a buffer, make a dropout layer, remember what forward needs
        ### BEGIN SOLUTION
        self.max_len = max_len
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("pe", positional_encoding(max_len, d_model))               # (max_len, C)
        ### END SOLUTION

    def forward(self, x: Tensor) -> Tensor:
        """x (B, T, C) -> (B, T, C); x itself keeps its values.

        More than `max_len` positions: ValueError naming both numbers.
        """
        # TODO: refuse sentences that are too long; add as many rows as there are words # (B, T, C)
        ### BEGIN SOLUTION
        T = x.shape[1]
        if T > self.max_len:
            raise ValueError(f"x has T = {T} positions, but the table ends at max_len = {self.max_len}.")
        return self.dropout(x + self.pe[:T])                                            # (B, T, C)
        ### END SOLUTION


# %% part="module"

# %% [markdown]
# The first picture subtracts your module's input from its output: what remains must be the table, the same
# for both sentences. The second repeats the experiment from the beginning, with your positions added.
# Without them every word says the same wherever it sits; with them the order is heard.

# %% picture="module"

# %% [markdown]
# ## Part 3 · Positions that are learned
#
# Why compute what can be learned? Keep a second lookup table beside the words' one: row $t$ is the vector for
# position $t$ and is trained like everything else, wherever it begins (most begin at random). A ticket in the
# cinema has two numbers, the film and the seat; each is looked up in its own list:
#
# $$\text{output}_{b,t} = E_{\text{token}}[\text{id}_{b,t}] + E_{\text{position}}[t]$$
#
# **A worked number.** Let word 7 have the vector $(5, 0)$, seat 0 the vector $(0.1, 0.2)$ and seat 1 the
# vector $(0.3, 0.4)$. The sentence `7 7` becomes $(5.1, 0.2), (5.3, 0.4)$: the same word twice, and yet two
# different vectors.
#
# The price: the table has exactly `block_size` rows. There is no vector for the next seat, and none that
# could be computed.
#
# | who | how positions come in | rows |
# |---|---|---|
# | the original Transformer (2017) | sinusoidal table, added once | as many as you like |
# | GPT, GPT-2, GPT-3 | learned, added once | 512, 1024, 2048 |
# | BERT | learned, added once | 512 |
# | T5 | learned number for each *distance*, added to the attention scores | no table of positions |
# | BLOOM (ALiBi) | a penalty that grows with the distance, added to the scores | no table of positions |
# | Llama and many since | rotary: queries and keys turn like our clock hands | no table of positions |
#
# **Think about it.** If nearly all training sentences are shorter than 100 words, how well trained is
# row 400?


# %%
class TokenAndPositionEmbedding(nn.Module):
    """Vector of the word plus vector of the seat, both learned.

    `token_embedding` is an `nn.Embedding` with a row for each word,   (vocab_size, embed_size);
    `position_embedding` is one with a row for each seat,              (block_size, embed_size).
    """

    def __init__(self, vocab_size: int, block_size: int, embed_size: int):
        super().__init__()
        # TODO: the two lookup tables, under the names above
        ### BEGIN SOLUTION
        self.block_size = block_size
        self.token_embedding = nn.Embedding(vocab_size, embed_size)                     # (V, C)
        self.position_embedding = nn.Embedding(block_size, embed_size)                  # (block_size, C)
        ### END SOLUTION

    def forward(self, ids: Tensor) -> Tensor:
        """ids (B, T) -> (B, T, C). More than `block_size` positions: ValueError naming both numbers."""
        # TODO: refuse sentences that are too long; look up words and seats and add     # (B, T, C)
        ### BEGIN SOLUTION
        T = ids.shape[1]
        if T > self.block_size:
            raise ValueError(f"ids has T = {T} positions, more than block_size = {self.block_size}.")
        seats = torch.arange(T, device=ids.device)                                      # (T,)
        return self.token_embedding(ids) + self.position_embedding(seats)               # (B, T, C)
        ### END SOLUTION


# %% part="learned"

# %% [markdown]
# The picture trains your layer for a moment, on a task in which a guess one seat beside the truth is nearly
# right. Before: every seat resembles only itself. After: neighbours have found each other, and the ridge of
# Part 1 appears again, although nobody wrote a sine.

# %% picture="learned"

# %% [markdown]
# ## What you have now
#
# Vectors that know which word they are *and* where they sit. What is still missing is the listening itself:
# who may hear whom, and how much. That is the next assignment, masked heads. And in *Rotary positions* the
# clock hands return, this time turning the questions and answers themselves.
