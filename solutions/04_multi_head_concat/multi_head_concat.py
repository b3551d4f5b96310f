# %% [markdown]
# # 04 · Many heads, side by side
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
# │              │     ▶ 04 many heads
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
# One head has one query per word. Its attention weights for a word add up to 1, so whatever weight it gives
# to one neighbour it takes away from all the others. In *"the suitcase was too small for the trophy, so it
# stayed at home"*, the word *it* needs the noun that it stands for **and** the verb that it
# belongs to. One head has to choose, or mix the two into something that is neither.
#
# The remedy is simple: let several heads attend at the same time, each with queries, keys and values of its
# own. This is **multi-head attention**. You build it twice. First the readable way, heads side by side in a
# list. Then the fast way, all heads inside one large matrix. At the end you prove, with numbers, that the two
# are the same function.
#
# Letters for shapes:
#
# | letter | meaning |
# |---|---|
# | `B` | sentences in a batch |
# | `T` | words in a sentence |
# | `C` | numbers in a word's vector (`embed_size`, `d_model`) |
# | `H` | heads (`num_heads`, `n_heads`) |
# | `D` | numbers that one head works with, `C / H` |
#
# **Not here.** Nothing is trained, and no head learns a job of its own: that the heads *can* differ is all that is
# shown.
#
# The names of functions, classes, attributes and arguments are part of the contract: keep them as they are.
# `nn.MultiheadAttention` is what you are building, so it is forbidden here. Compare yours with it in a cell or
# function of its own, which your answer does not call. `F.scaled_dot_product_attention` is allowed.

# %%
import torch
import torch.nn.functional as F
from torch import Tensor, nn

# %% [markdown]
# ## Given · One causal head
#
# This is the head of the previous assignment, built on PyTorch's own attention. It reads `C` numbers per
# word and returns `D`. Word `t` attends to the words up to and including itself. Use it as it is.


# %%
class Head(nn.Module):
    """One causal attention head: (B, T, C) -> (B, T, D). A sentence longer than `block_size` is refused."""

    def __init__(self, embed_size: int, head_size: int, block_size: int):
        super().__init__()
        self.key = nn.Linear(embed_size, head_size, bias=False)
        self.query = nn.Linear(embed_size, head_size, bias=False)
        self.value = nn.Linear(embed_size, head_size, bias=False)
        self.block_size = block_size

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[1] > self.block_size:
            raise ValueError(f"the sentence has T={x.shape[1]} words, but block_size={self.block_size}")
        queries, keys, values = self.query(x), self.key(x), self.value(x)               # 3 times (B, T, D)
        return F.scaled_dot_product_attention(queries, keys, values, is_causal=True)    # (B, T, D)


# %% [markdown]
# ## Part 1 · Heads side by side
#
# About 13 minutes, ●●○
#
# In the school for words, one pair of ears was not enough. Now each word has four listeners, who go around the room at
# the same time. One listens for names, one for numbers, one for what was decided, one for who disagreed, and each
# brings back a short note. Nobody averages the notes; they are **stapled together**, and the word reads the whole
# bundle. In the field's terms, the outputs of the heads are **concatenated**, and an **output projection** reads them.
#
# $$\text{MultiHead}(x) = \big[\,\text{head}_0(x)\;\|\;\dots\;\|\;\text{head}_{H-1}(x)\,\big]\,W^\top + b$$
#
# The bars join vectors end to end. For the result to be as wide as the word was, every head has an output of
# `D = C / H` numbers. If that division leaves a remainder, the heads cannot all have the same width, and the module
# should say so at once. The projection is one linear layer, `proj`. Without it, the findings of head 0 could never
# be combined with those of head 3.
#
# Every head starts with random weights of its own. Heads that start as copies of one another would do
# the same work, at least at first; all of them, and the projection, must be trainable.
#
# **One number by hand.** With `C = 20` and `H = 4`, a head is `D = 5` wide and owns 3 · 20 · 5 = 300 weights. Four
# heads own 1200 = 3 · 20², and the projection owns 20² + 20. Together 4 · 20² + 20 = 1620. With two heads, or
# with one: 1620 again.
#
# **To think about.** More heads cost no additional weights. What do they cost instead?


# %%
class MultiHeadAttention(nn.Module):
    """H causal heads side by side, then one projection: (B, T, C) -> (B, T, C).

    Attributes:
        heads  the `Head`s, in a container through which `parameters()` finds their weights; each starts with
               random weights of its own
        proj   the linear layer from C to C that reads the concatenated outputs; it has a bias if `bias` is true

    The outputs are concatenated along the features in the order of the heads: head 0 fills the first D columns.
    The result is the same in training and in evaluation, and float64 after `.double()`.
    Example: `MultiHeadAttention(20, 4, block_size=11)` owns 1620 parameters.
    Raises ValueError that names embed_size and num_heads and their values if `embed_size` is not divisible by
    `num_heads`, and ValueError, as a Head does, for more than `block_size` words.
    """

    def __init__(self, embed_size: int, num_heads: int, block_size: int, bias: bool = True):
        super().__init__()
        # TODO: refuse a width that does not divide evenly, then make `heads` (H heads of width D) and `proj`
        ### BEGIN SOLUTION
        if num_heads < 1 or embed_size % num_heads != 0:
            raise ValueError(f"embed_size={embed_size} is not divisible by num_heads={num_heads}")
        head_size = embed_size // num_heads
        self.heads = nn.ModuleList([Head(embed_size, head_size, block_size) for _ in range(num_heads)])
        self.proj = nn.Linear(embed_size, embed_size, bias=bias)
        ### END SOLUTION

    def forward(self, x: Tensor) -> Tensor:
        # TODO: let every head read x, concatenate the H outputs, apply `proj`          # (B, T, C)
        ### BEGIN SOLUTION
        outputs = [head(x) for head in self.heads]                                      # H times (B, T, D)
        joined = torch.cat(outputs, dim=-1)                                             # (B, T, C)
        return self.proj(joined)                                                        # (B, T, C)
        ### END SOLUTION


# %% part="heads"

# %% [markdown]
# The picture touches one head at a time. Which columns of the output move, and does each head keep to its own?

# %% picture="heads"

# %% [markdown]
# ## Part 2 · Splitting vectors into heads, and merging them again
#
# About 12 minutes, ●●○
#
# A list of heads reads well, but the machine works through it one head after the other. If one tensor held
# all heads, with the heads as an axis of their own, a single call could serve them all. So we need a way to
# split a word's `C` numbers into `H` strips of `D`, and a way to merge the strips again. No number changes,
# and neither does the number type:
#
# $$\text{split}: (B, T, C) \to (B, H, T, D) \qquad\qquad \text{merge}: (B, H, T, D) \to (B, T, C)$$
#
# Picture a sheet of paper with one word per line. Splitting cuts the sheet **from top to bottom** into `H`
# narrow columns: every column still has all the words, one per line. Cutting it **from left to right**
# gives pieces of the very same size, but each piece then holds only some of the words.
#
# **One number by hand.** Two words, `C = 6`, `H = 3`, so `D = 2`. The tens count the word, the ones count the
# feature:
#
# ```
# x[0]  =  10 11 12 13 14 15        split(x)[0]  =  head 0:  10 11    head 1:  12 13    head 2:  14 15
#          20 21 22 23 24 25                                 20 21             22 23             24 25
# ```
#
# **To think about.** `x.view(B, H, T, D)` has a shape that looks right, and raises no error. For the
# sheet above, which word's numbers would then stand in head 1's first line?


# %%
def split_heads(x: Tensor, num_heads: int) -> Tensor:
    """Split every word's vector into one strip per head: (B, T, C) -> (B, H, T, D).

    Head h receives the features h·D up to (h+1)·D - 1 of every word, words in their old order.
    Example: with two heads, the word [10, 11, 12, 13] gives [10, 11] to head 0 and [12, 13] to head 1.
    """
    # TODO: first split the features into (head, strip), then bring the heads to the front  # (B, H, T, D)
    ### BEGIN SOLUTION
    B, T, C = x.shape
    if num_heads < 1 or C % num_heads != 0:
        raise ValueError(f"C={C} features is not divisible by num_heads={num_heads}")
    strips = x.reshape(B, T, num_heads, C // num_heads)                                 # (B, T, H, D)
    return strips.transpose(1, 2)                                                       # (B, H, T, D)
    ### END SOLUTION


def merge_heads(x: Tensor) -> Tensor:
    """Merge the strips of every word again: (B, H, T, D) -> (B, T, C). Undoes `split_heads`.

    Example: the strips [10, 11] of head 0 and [12, 13] of head 1 become the word [10, 11, 12, 13].
    """
    # TODO: bring each word's strips next to one another before you join them           # (B, T, C)
    ### BEGIN SOLUTION
    B, H, T, D = x.shape
    strips = x.transpose(1, 2)                                                          # (B, T, H, D)
    return strips.reshape(B, T, H * D)                                                  # (B, T, C)
    ### END SOLUTION


# %% part="reshape"

# %% [markdown]
# In the two pictures you follow one word through your functions. Look for its numbers: do they stay together and in
# order?

# %% picture="reshape"

# %% [markdown]
# ## Part 3 · All heads in one matrix
#
# About 14 minutes, ●●●
#
# A linear layer without bias is a matrix with one row per output number. The rows are independent of one
# another, so the rows of many small matrices may just as well be stacked in a large one. Queries, keys and
# values of all heads fit into a single layer `W_qkv`, and one multiplication computes them all:
#
# ```
#                   head 0    head 1    …    head H-1
# rows of W_qkv     └ D rows ┘└ D rows ┘     └ D rows ┘
#    0 …  C-1       queries
#    C … 2C-1       keys
#   2C … 3C-1       values
# ```
#
# Then split, let all heads attend at once, merge, and apply the output projection `W_out`:
#
# $$\text{Fused}(x) = \text{merge}\Big(\text{softmax}\Big(\frac{QK^\top}{\sqrt{D}}\Big)V\Big)\,W_{out}^\top$$
#
# `F.scaled_dot_product_attention` treats all axes before the last two as batch axes, so an axis of
# heads is welcome there.
#
# **One number by hand.** With `C = 20` and `H = 4`, `W_qkv` has 60 rows. Head 2's values are the rows 50 to 54.
#
# This module is not causal by itself. It takes a `mask` of booleans that is **True where attending is
# allowed**, of any shape that broadcasts to `(B, H, T, T)`: `(T, T)` for a causal mask, `(B, 1, 1, T)` to
# hide padding, `(H, T, T)` when every head has a mask of its own. A mask applies to the call that it is passed
# to, and to no later one; it works alike in training and in evaluation. Scores may be large.
#
# **To think about.** Without a mask, shuffle the words of a sentence. What happens to the outputs?


# %%
class FusedMultiHeadAttention(nn.Module):
    """All heads in one matrix: (B, T, C) -> (B, T, C).

    Attributes:
        W_qkv  linear from C to 3·C without bias; its rows are first all queries, then all keys, then all
               values, and inside each third head by head
        W_out  linear from C to C without bias

    `mask` holds booleans that broadcast to (B, H, T, T), True where attending is allowed; None allows all.
    x and the mask keep their values. The result is the same in training and in evaluation, and float64 after
    `.double()`.
    Example: `FusedMultiHeadAttention(20, 4)` owns 4 · 20² = 1600 parameters.
    Raises ValueError that names d_model and n_heads and their values if `d_model` is not divisible by `n_heads`.
    """

    def __init__(self, d_model: int, n_heads: int):
        super().__init__()
        # TODO: refuse a width that does not divide evenly, make `W_qkv` and `W_out`, remember the heads
        ### BEGIN SOLUTION
        if n_heads < 1 or d_model % n_heads != 0:
            raise ValueError(f"d_model={d_model} is not divisible by n_heads={n_heads}")
        self.n_heads = n_heads
        self.W_qkv = nn.Linear(d_model, 3 * d_model, bias=False)
        self.W_out = nn.Linear(d_model, d_model, bias=False)
        ### END SOLUTION

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        # TODO: one multiplication for all; split; attend under the mask; merge; `W_out`  # (B, T, C)
        ### BEGIN SOLUTION
        q, k, v = self.W_qkv(x).chunk(3, dim=-1)                                        # 3 times (B, T, C)
        q = split_heads(q, self.n_heads)                                                # (B, H, T, D)
        k = split_heads(k, self.n_heads)                                                # (B, H, T, D)
        v = split_heads(v, self.n_heads)                                                # (B, H, T, D)
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)                 # (B, H, T, D)
        return self.W_out(merge_heads(mixed))                                           # (B, T, C)
        ### END SOLUTION


# %% part="fused"

# %% [markdown]
# The picture gives your four heads four jobs, by weights that were chosen by hand. Does each map show the job of its
# own head?

# %% picture="fused"

# %% [markdown]
# ## Part 4 · The proof
#
# About 11 minutes, ●●●
#
# Are the list of heads and the large matrix really the same function? An argument on paper is good;
# copying the weights over and getting the same numbers is better. If every weight of one
# model has its place in the other, and the outputs agree for *any* sentence, the two can differ only in speed.
#
# Every number has its place, none is left over, and the old model looks as it did before. The numbers must be
# *copied*, though. If both models shared one tensor, training one of them would change the other.
#
# **One number by hand.** For `C = 20` and `H = 4`, twelve small matrices of 5 × 20 find their place in the 60 × 20
# matrix. 1200 numbers in, 1200 numbers out.
#
# **To think about.** Which of the two would you show to a friend who wants to understand attention, and
# which would you train for a week?


# %%
def fuse(per_head: MultiHeadAttention, fused: FusedMultiHeadAttention) -> None:
    """Give `fused` a copy of every weight of `per_head`, each in its place; `per_head` stays as it is.

    Afterwards, if `per_head` was made with `bias=False`, `fused(x, causal_mask)` equals `per_head(x)`.
    (A bias of `proj` has no place in `fused` and is not copied.) Later changes of one do not reach the other.
    Raises ValueError if the two differ in width or in the number of heads.
    """
    # TODO: refuse different sizes; then copy each head's three matrices to their rows in W_qkv, and fill W_out
    ### BEGIN SOLUTION
    old = (per_head.proj.in_features, len(per_head.heads))
    new = (fused.W_out.in_features, fused.n_heads)
    if old != new:
        raise ValueError(f"(width, number of heads) is {old} in per_head, but {new} in fused")
    queries = [head.query.weight for head in per_head.heads]                            # H times (D, C)
    keys = [head.key.weight for head in per_head.heads]                                 # H times (D, C)
    values = [head.value.weight for head in per_head.heads]                             # H times (D, C)
    with torch.no_grad():
        fused.W_qkv.weight.copy_(torch.cat(queries + keys + values))                    # (3C, C)
        fused.W_out.weight.copy_(per_head.proj.weight)                                  # (C, C)
    ### END SOLUTION


# %% part="proof"

# %% [markdown]
# The picture shows the outputs of both forms, and below them their difference. Look at the lowest table: it should
# stay dark.

# %% picture="proof"

# %% [markdown]
# ## Harder: heads that share their keys
#
# Not graded; about 35 minutes, ●●○.
# In today's large models several heads ask, but share one key and one value. The
# file `harder.py` beside this one asks for grouped-query attention, for a way to convert a model that was trained
# without it, and for the memory that it saves. Run `python harder.py`: it checks what you write there and says in
# sentences what is missing.
#
# ## Look back
#
# You have the attention layer of every Transformer in both of its forms: the one that explains itself, and the
# one that runs in production. Three ideas to keep:
#
# - Heads are narrow, so many of them have as many weights as one.
# - A correct shape proves little. Follow one word through a reshape and see where its numbers land.
# - Two programs are equal when the weights of one give the outputs of the other.
#
# Next, this layer gets company: a normalisation, a feed-forward network, and two shortcuts.
#
# ## Read on
#
# - Vaswani et al., *Attention Is All You Need* (2017), Section 3.2.2. Look for the sizes of the original (8 heads
#   of width 64 in a model of width 512) and for what row A of Table 3 says about one head and about too many.
# - Michel, Levy and Neubig, *Are Sixteen Heads Really Better than One?* (2019). Heads are removed from trained
#   models. How many can go before the translation suffers, and where are they still needed?
# - Clark, Khandelwal, Levy and Manning, *What Does BERT Look At? An Analysis of BERT's Attention* (2019). BERT-base
#   has 12 layers of 12 heads, 144 attention patterns. Look for heads that follow grammar, and for the many that
#   attend to full stops, commas and `[SEP]`.
