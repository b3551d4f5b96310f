# %% [markdown]
# # 03 · Masked heads
#
# So far every word has a vector, and every vector knows its place in the sentence. But the words
# are still alone. *bank* carries the same numbers beside a river as beside a cash machine, because
# nothing lets it hear its neighbours. **Attention** is how words hear each other.
#
# Picture a round of people, one for every word. Each of them holds three notes:
#
# | note | symbol | what it says |
# |---|---|---|
# | **query** | $q$ | what I would like to know |
# | **key** | $k$ | what I can be asked about |
# | **value** | $v$ | what I say when somebody listens to me |
#
# Everybody compares their query with everybody's key, listens more to those who match and less to
# the others, and takes home the blend of what was said. There is one rule when a model learns to
# write: *nobody hears a word that has not been spoken yet.*
#
# You build this in three steps: the rule (Part 1), the listening (Part 2), and a layer that learns
# which notes to write (Part 3). When you are done you have the heart of GPT in about twenty lines.
#
# Letters used for shapes: `B` sentences in a batch, `T` words that listen, `S` words that speak,
# `C` numbers in a word vector, `D` numbers in a query or key, `E` numbers in a value.
# PyTorch has finished attention layers. Here you write it by hand, so they do not count; to compare
# yours with them, do so below `if __name__ == "__main__":`.

# %%
import math

import torch
from torch import Tensor, nn

# %% [markdown]
# ## Part 1 · The causal mask
#
# A language model is trained to guess the next word. While it trains, the whole sentence lies on the
# table, the next word included. A model that may look at it gets splendid marks and learns nothing:
# the exam with the answers on the desk.
#
# So we draw a table with one **row** for each listener and one **column** for each speaker, and
# write down who may hear whom. Word $t$ may hear word $s$ when $s$ comes no later than $t$. Yes, a
# word may hear itself.
#
# For the three words *the cat sat* (✓ is `True`):
#
# | listener ↓, speaker → | the | cat | sat |
# |---|---|---|---|
# | **the** | ✓ | · | · |
# | **cat** | ✓ | ✓ | · |
# | **sat** | ✓ | ✓ | ✓ |
#
# **To think about:** a sentence of 4 words has 10 ticks. How many has one of 100 words? Which share
# of the table is that?


# %%
def causal_mask(T: int) -> Tensor:
    """Who may hear whom in a sentence of T words, as a boolean table of shape (T, T).

    Row t is the listener, column s the speaker; True means "t may hear s".
    Example: for T = 2 the first row is True, False and the second row is True, True.
    """
    # TODO: a (T, T) table of booleans, True where the row's word may hear the column's word       (T, T)
    ### BEGIN SOLUTION
    return torch.ones(T, T, dtype=torch.bool).tril()  # (T, T)
    ### END SOLUTION


# %% part="mask"

# %% picture="mask"

# %% [markdown]
# ## Part 2 · Scaled dot-product attention
#
# How well do a question and an answer match? Multiply them number by number and add up: the dot
# product $q \cdot k$. It is large when both point the same way. All listeners and speakers at once:
#
# $$\text{scores} = \frac{Q K^\top}{\sqrt{D}} \qquad
#   \text{weights} = \operatorname{softmax}(\text{scores}) \qquad
#   \text{output} = \text{weights}\; V$$
#
# The softmax makes each listener's scores into shares: none negative, all together 1. The output
# is then a blend of what the speakers said, in these shares.
#
# **Why divide by $\sqrt{D}$?** A dot product of $D$ random numbers is a sum of $D$ random terms, and
# such a sum spreads like $\sqrt{D}$. With $D = 64$ the scores would lie around $\pm 8$; a
# softmax of such scores hands nearly everything to one speaker, and what cannot change its mind
# cannot learn. Dividing brings the scores back to about $\pm 1$.
#
# **One number by hand.** Let $D = 4$, one listener with $q = (2\ln 3,\ 0,\ 0,\ 0)$, two speakers with
# $k_0 = (1, 0, 0, 0)$ and $k_1 = (0, 1, 0, 0)$, who say $v_0 = (10, 8, 0)$ and $v_1 = (20, 0, 4)$. The
# scores are $2\ln 3 / \sqrt{4} = \ln 3$ and $0$. Their exponentials are $3$ and $1$, so the shares are
# $\tfrac34$ and $\tfrac14$. The output begins with $\tfrac34 \cdot 10 + \tfrac14 \cdot 20 = 12.5$; the
# whole of it is $(12.5,\ 6,\ 1)$.
#
# **The mask.** A speaker who may not be heard gets a share of exactly zero, and the others share the
# whole. Somebody may be alone with nobody to hear (think of a sentence that is nothing but padding).
# Then there is nothing to share out: weights and output are zero. Careful: the obvious code gives
# 0/0 here, and a single NaN spreads through the whole model, forwards through the numbers and
# backwards through the gradients. Neither may hold one.
#
# **Large numbers.** $e^{89}$ does not fit a `float32`. Your shares must survive scores of
# $\pm 10\,000$. Adding the same number to all scores of a row does not change the shares: PyTorch's
# softmax knows this trick.
#
# **To think about:** the scores of a row are all equal. What does the listener take home?


# %%
def attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Each of T listeners takes home a blend of what S speakers say.

    q: (..., T, D) questions; k: (..., S, D) keys; v: (..., S, E) values. The dots stand for any
    leading dimensions: none, a batch, or a batch and heads.
    mask: booleans that broadcast to (..., T, S), True where t may hear s; None when all hear all.

    Returns the output (..., T, E) and the weights (..., T, S). A listener who may hear nobody gets
    zeros in both. The inputs keep their values, and both answers have their number type (float32, float64).
    Example: scores of ln 3 and 0 give weights 0.75 and 0.25; values 10 and 20 then give 12.5.
    """
    # TODO: how well does each question match each key, on a calm scale?                      (..., T, S)
    # TODO: make each listener's matches into shares; who may not be heard has no share       (..., T, S)
    # TODO: blend what is said by these shares, and return the blend and the shares           (..., T, E)
    ### BEGIN SOLUTION
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # (..., T, S)
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)  # e^-inf is exactly 0
    weights = torch.softmax(scores, dim=-1)  # (..., T, S)
    if mask is not None:
        weights = weights.masked_fill(~mask, 0.0)  # a row with nobody to hear was 0/0
    return weights @ v, weights  # (..., T, E), (..., T, S)
    ### END SOLUTION


# %% part="attention"

# %% picture="attention"

# %% [markdown]
# ## Part 3 · One masked head
#
# Up to here somebody handed you the notes. A **head** learns to write them. It owns three matrices
# and reads the query, the key and the value of a word off the word's own vector:
#
# $$Q = X W_Q \qquad K = X W_K \qquad V = X W_V$$
#
# Three different matrices, because asking, being found and answering are three different jobs: *it*
# asks for a noun, is found as a pronoun, and says something else again.
#
# Three things make it a good PyTorch citizen:
#
# - The three layers are called `key`, `query` and `value`: `nn.Linear` without bias.
# - The mask is part of the head, but nothing to be learnt: a **buffer**. It moves along with
#   `.to(device)`, and the optimiser never sees it.
# - `block_size` is the longest sentence that the head can take. A shorter one uses a corner of
#   the mask; a longer one is an error that says so (`ValueError`, naming `block_size` and the length).
#
# Many heads also have dropout. Yours has none: asked twice, it answers the same, in training as well.
#
# **One number by hand.** With `embed_size = 20` and `head_size = 5` the head owns
# $3 \cdot 20 \cdot 5 = 300$ numbers to learn, no matter how long the sentences are.
#
# **To think about:** the first word hears only itself. What are its weights, and what is its output?
# (One of the tests asks exactly this.)


# %%
class Head(nn.Module):
    """One head of causal self-attention: every word hears itself and the words before it.

    embed_size: numbers in a word vector (C); head_size: numbers in what it gives back (D);
    block_size: the longest sentence it can take.
    Example: Head(20, 5, 7) turns a tensor of shape (3, 6, 20) into one of shape (3, 6, 5).
    """

    def __init__(self, embed_size: int, head_size: int, block_size: int) -> None:
        super().__init__()
        # TODO: the three layers key, query and value                                 (B, T, C) -> (B, T, D)
        # TODO: the mask for the longest sentence, as a buffer                        (block_size, block_size)
        ### BEGIN SOLUTION
        self.key = nn.Linear(embed_size, head_size, bias=False)  # (B, T, C) -> (B, T, D)
        self.query = nn.Linear(embed_size, head_size, bias=False)  # (B, T, C) -> (B, T, D)
        self.value = nn.Linear(embed_size, head_size, bias=False)  # (B, T, C) -> (B, T, D)
        self.register_buffer("mask", causal_mask(block_size))  # (block_size, block_size)
        ### END SOLUTION

    def forward(self, x: Tensor) -> Tensor:
        """x: (B, T, C) word vectors. Returns (B, T, D). ValueError when T is larger than block_size."""
        # TODO: refuse a sentence that is too long, saying how long it is and what fits
        # TODO: let the words write their notes and listen, each only to itself and its past     (B, T, D)
        ### BEGIN SOLUTION
        T, block_size = x.shape[1], self.mask.shape[0]
        if T > block_size:
            raise ValueError(f"The sentence has T = {T} words, but block_size = {block_size}.")
        output, _ = attention(self.query(x), self.key(x), self.value(x), self.mask[:T, :T])  # (B, T, D)
        return output
        ### END SOLUTION


# %% part="head"

# %% picture="head"

# %% [markdown]
# ## Look back
#
# The picture above is an X-ray of your head. The cell in row $t$ and column $s$ shows how strongly the output
# of word $t$ reacts when word $s$ changes. Nobody told the picture about your mask; it only asked
# your code for gradients. When the head is right, the X-ray *is* the causal mask.
#
# What you have is one opinion about who should listen to whom. A sentence has many such relations at
# once (who did it, what came before, what does *it* mean), so a Transformer runs several heads
# side by side. That is the next assignment.
