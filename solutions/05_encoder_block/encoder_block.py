# %% [markdown]
# # 05 · The encoder block
#
# ```
#  the next word         07 trained, and writing
#        ↑               18 what it costs
#        ↑               16 taught what people prefer
#        ↑               14 fine-tuned
#        ↑               15 trained well
# ┌──────────────┐       06 all of it, counted
# │              │     ▶ 05 the whole block
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
# Attention lets every token gather information from every other token. Two things are still missing: a place
# where each token can process what it has gathered, and a way to stack such places twelve deep without the
# numbers exploding or vanishing. In the school for words these are the quiet minute after the listening, and the floors.
#
# A Transformer block answers with three small ideas.
#
# 1. **Layer norm** keeps every token's numbers at a healthy size.
# 2. **A feed-forward layer** gives each token a moment alone, to process what attention brought.
# 3. **Residual connections** (the *shortcuts*): a sublayer never replaces a token's vector, it only adds a
#    correction to it. The vector that runs through all blocks is called the **residual stream**.
#
# You write all three, wire them up in the two ways that are in use (*post-norm* in the first
# Transformer and in BERT, *pre-norm* in GPT-2 and most models since; some norm on both sides), and stack the blocks
# into an encoder that reads sentences of different lengths side by side.
#
# Letters for shapes: `B` sentences, `T` tokens in each, `C` numbers for each token (`d_model`), `V` words in the
# vocabulary. Attention itself is given here, as `nn.MultiheadAttention`.
#
# **Not here.** The blocks get no task and no training: vectors go in, vectors of the same shape come out.
#
# The names of functions, classes, attributes and arguments are part of the contract: keep them as they are. All
# modules work in float32 and, after `.double()`, in float64; none of them changes its inputs.
# `nn.LayerNorm`, `F.layer_norm`, `nn.TransformerEncoderLayer` and `nn.TransformerEncoder` are forbidden here,
# because you write them by hand. Compare yours with them in a cell or function of its own.

# %%
import torch
import torch.nn.functional as F
from torch import Tensor, nn

# %% [markdown]
# ## Part 1 · Layer norm
#
# About 20 minutes, ●●○
#
# Every sublayer adds to the residual stream, so after a few of them one token may hold numbers near 0.01 and its
# neighbour numbers near 100. The next layer would have to cope with both. Layer norm brings each token
# to one common size before the next layer reads it. It works like grading on a curve, inside one token: *how
# far above or below this token's own mean is each of its numbers, in units of this token's own standard
# deviation?*
#
# $$\mathrm{LN}(x)_c \;=\; \gamma_c \,\frac{x_c - \mu}{\sqrt{\sigma^2 + \varepsilon}} \;+\; \beta_c ,\qquad
# \mu = \frac1C\sum_c x_c ,\qquad \sigma^2 = \frac1C\sum_c (x_c - \mu)^2 .$$
#
# Four details decide whether it is right.
#
# - $\mu$ and $\sigma^2$ belong to **one token**: `B` times `T` tokens, as many means.
# - $\sigma^2$ is the plain average of the squares. It describes these `C` numbers and estimates nothing, so we
#   divide by `C`.
# - The tiny $\varepsilon$ is added to the variance **before** the root is taken. It matters for a token whose
#   numbers are all nearly the same. (You will meet `x.std() + eps` in well-known code. It is another function
#   twice over: the root comes first, and PyTorch's `std` divides by `C - 1`.)
# - The mean may be large. For float32 numbers near 4096 that differ by about 1, the result must still be right to
#   0.02. (Two formulas for the variance that are equal on paper differ here.)
#
# Then every feature is multiplied by its own learned $\gamma_c$ and shifted by its own learned $\beta_c$: the layer
# may undo the normalising wherever that helps. They start as 1 and 0, so a new layer norm only normalises. Mean and
# variance depend on $x$, too, and gradients flow through them.
#
# **And batch norm?** It came first (2015) and does the same sum the other way: mean and variance of one *feature*
# over all tokens of the batch. Then a sentence comes out differently in other company, padding takes part, and a
# model that writes one sentence alone has no batch to measure. Layer norm looks at one token and nothing else.
#
# The paper on batch norm explained its success by *internal covariate shift*: while the layers before it learn,
# each layer's inputs drift. Later measurements (2018) found that batch norm hardly reduces this drift; what it
# does is make the loss surface smoother. You will still meet the old reason in many texts.
#
# **One number by hand.** The token `[2, 2, 6, 6]` has mean 4; its distances from it are −2, −2, 2, 2; their
# squares average to 4; so with $\varepsilon = 0$ the token becomes `[-1, -1, 1, 1]`. With $\gamma = 10$
# and $\beta = 1$ everywhere: `[-9, -9, 11, 11]`.
#
# **To think about.** Which two numbers about a token does layer norm discard, and could a later layer
# ever need them?


# %%
def layer_norm(x: Tensor, gamma: Tensor, beta: Tensor, eps: float = 1e-5) -> Tensor:
    """Bring every token to mean 0 and standard deviation 1, then multiply by gamma and add beta.

    x (..., C) with any leading shape, gamma (C,), beta (C,) -> (..., C)

    Example: x = [2, 2, 6, 6], gamma = 10, beta = 1, eps = 0 -> [-9, -9, 11, 11]
    """
    # TODO: the mean of each token                                                      # (..., 1)
    # TODO: the variance of each token: the average squared distance from it            # (..., 1)
    # TODO: centre, divide by the root of variance plus eps, multiply, add              # (..., C)
    ### BEGIN SOLUTION
    mean = x.mean(dim=-1, keepdim=True)                                                 # (..., 1)
    variance = ((x - mean) ** 2).mean(dim=-1, keepdim=True)                             # (..., 1)
    normed = (x - mean) / torch.sqrt(variance + eps)                                    # (..., C)
    return gamma * normed + beta                                                        # (..., C)
    ### END SOLUTION


class LayerNorm(nn.Module):
    """Layer norm with its own `gamma` and `beta`, both (d_model,): learned, starting as ones and zeros.

    forward: x (..., C) -> (..., C)
    """

    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        # TODO: keep eps; make gamma and beta parameters, so that they are learned      # (C,), (C,)
        ### BEGIN SOLUTION
        self.eps = eps
        self.gamma = nn.Parameter(torch.ones(d_model))                                  # (C,)
        self.beta = nn.Parameter(torch.zeros(d_model))                                  # (C,)
        ### END SOLUTION

    def forward(self, x: Tensor) -> Tensor:
        # TODO: your function above, with this layer's own gamma, beta and eps          # (..., C)
        ### BEGIN SOLUTION
        return layer_norm(x, self.gamma, self.beta, self.eps)                           # (..., C)
        ### END SOLUTION


# %% part="layer_norm"

# %% [markdown]
# In the first picture, follow one token's numbers downwards through the steps of your function. In the second,
# compare what becomes of three tokens of very different sizes.

# %% picture="layer_norm"

# %% [markdown]
# ## Part 2 · Feed-forward
#
# About 13 minutes, ●○○
#
# Attention *mixes*: its output for a token is a weighted average of values. The feed-forward layer is where a
# token's own numbers interact. It expands the token's `C` numbers to `d_ff` **hidden** numbers (often four times
# as many), applies an **activation** that switches some of them off, and projects the rest back to `C`:
#
# $$\mathrm{FFN}(x) \;=\; W_2\;\phi(W_1 x + b_1) + b_2 .$$
#
# This is the third teacher of the school for words, the one who said very little: she gave every word a quiet minute to
# think about what it had heard. Nobody hears the others' thoughts, so the same two matrices serve every seat.
#
# The activation $\phi$ is what makes it more than one matrix. The first Transformer used **ReLU**, max(0, z).
# BERT and GPT use **GELU**, z·Φ(z), where Φ(z) is the probability that a standard normal number is below z: a
# ReLU with a soft bend. We use the exact one, not its tanh approximation.
#
# **One number by hand.** ReLU(−2) = 0 and ReLU(3) = 3. GELU(1) = 1·Φ(1) = 0.8413, GELU(−1) = −0.1587.
#
# **To think about.** Leave $\phi$ out. Which single matrix would then do the work of $W_1$ and $W_2$
# together?


# %%
class FeedForward(nn.Module):
    """Two linear layers, `linear1` (C -> d_ff) and `linear2` (d_ff -> C), with an activation between them.

    activation: "relu" or "gelu" (the exact one).
    Raises ValueError that names activation and its value if it is any other name ("GELU", say).
    No shortcut and no dropout in here: those belong to the block.

    forward: x (..., C) -> (..., C), the same for every position, in training and in evaluation
    """

    def __init__(self, d_model: int, d_ff: int, activation: str = "relu") -> None:
        super().__init__()
        # TODO: refuse an unknown activation, keep the known one
        # TODO: linear1 expands, linear2 projects back                                  # C -> d_ff -> C
        ### BEGIN SOLUTION
        if activation not in ("relu", "gelu"):
            raise ValueError(f"activation must be 'relu' or 'gelu', got {activation!r}")
        self.activation = F.relu if activation == "relu" else F.gelu
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
        ### END SOLUTION

    def forward(self, x: Tensor) -> Tensor:
        # TODO: expand and activate, then project back                                  # (..., d_ff), (..., C)
        ### BEGIN SOLUTION
        hidden = self.activation(self.linear1(x))                                       # (..., d_ff)
        return self.linear2(hidden)                                                     # (..., C)
        ### END SOLUTION


# %% part="feed_forward"

# %% [markdown]
# On the left are the two activations, on the right what your layer can make of three hidden numbers. Look at where
# the lines bend.

# %% picture="feed_forward"

# %% [markdown]
# ## Part 3 · The post-norm block
#
# About 15 minutes, ●●○
#
# Now the wiring. A block has two sublayers, attention first, feed-forward second. Around each of them
# runs a shortcut: the sublayer's output is *added* to its input. Picture a road with two workshops
# beside it. Traffic keeps to the road, the residual stream; each workshop only adds something to it. Even if a
# workshop is closed, everything arrives, and so does the gradient on its way back.
#
# In the original Transformer, and in BERT, a layer norm stands **on the stream**, after each addition:
#
# $$h = \mathrm{LN}_1\bigl(x + \mathrm{Attention}(x)\bigr), \qquad
# \mathrm{out} = \mathrm{LN}_2\bigl(h + \mathrm{FFN}(h)\bigr).$$
#
# This is **post-norm**. Dropout, in training, acts on each sublayer's output before it is added, never
# on the stream.
#
# Two masks can be passed in, in training and in evaluation, and both are passed on to attention.
#
# - `padding_mask` (B, T): `True` marks padding (the sentences of a batch differ in length,
#   and the shorter ones are filled up). No token may attend *to* padding. What comes out at a padded
#   position itself does not matter.
# - `attn_mask` (T, T): `True` in row t, column s means that token t may **not** attend to token s. This is
#   PyTorch's convention.
#
# Attention is given. `nn.MultiheadAttention` takes three tensors, from which queries, keys and values are
# computed; in self-attention all three are the same. It calls the masks `key_padding_mask` and
# `attn_mask`, and it returns a pair: the output (B, T, C), and the attention weights, which we don't need here.
#
# **One number by hand.** Silence both sublayers, so that the output of each is 0. What is left of a post-norm block
# is LN₂(LN₁(x)): for x = `[2, 2, 6, 6]` and new norms that is `[-1, -1, 1, 1]`.
#
# **To think about.** Every post-norm block ends with a norm. What does that say about the size of a token
# after 1, 12 or 100 blocks, and about the shortcut that was meant to run straight through?


# %%
class TransformerEncoderBlock(nn.Module):
    """Post-norm: attention, add, norm, feed-forward, add, norm.

    `attention` (given), `ff` (FeedForward), `norm1` and `norm2` (LayerNorm), `dropout` (nn.Dropout with the
    given probability; acts on each sublayer's output, before it is added).

    forward: x (B, T, C) -> (B, T, C)
        padding_mask (B, T), True marks padding, which no token attends to; no sentence is all padding
        attn_mask (T, T), True in row t and column s: token t may not attend to token s
    """

    def __init__(
        self, d_model: int, n_heads: int, d_ff: int, dropout: float = 0.1, activation: str = "relu"
    ) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(d_model, n_heads, dropout=dropout, batch_first=True)
        # TODO: the second sublayer, one norm for each of the two, one dropout
        ### BEGIN SOLUTION
        self.ff = FeedForward(d_model, d_ff, activation)
        self.norm1 = LayerNorm(d_model)
        self.norm2 = LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)
        ### END SOLUTION

    def forward(
        self, x: Tensor, padding_mask: Tensor | None = None, attn_mask: Tensor | None = None
    ) -> Tensor:
        # TODO: the output of attention, added to x, then the first norm                # (B, T, C)
        # TODO: the same once more with the feed-forward layer and the second norm      # (B, T, C)
        ### BEGIN SOLUTION
        attended, _ = self.attention(
            x, x, x, key_padding_mask=padding_mask, attn_mask=attn_mask, need_weights=False
        )                                                                               # (B, T, C)
        x = self.norm1(x + self.dropout(attended))                                      # (B, T, C)
        return self.norm2(x + self.dropout(self.ff(x)))                                 # (B, T, C)
        ### END SOLUTION


# %% part="post_norm"

# %% [markdown]
# The diagram is drawn from your block. Look at where the two norms stand: on the road, or beside it?

# %% picture="post_norm"

# %% [markdown]
# ## Part 4 · The pre-norm block
#
# About 11 minutes, ●●○
#
# Post-norm interrupts the residual stream at every block, and deep stacks of it are hard to train without a careful
# warm-up of the learning rate. In **pre-norm** the norm moves off the stream, to the entrance of each sublayer:
#
# $$h = x + \mathrm{Attention}\bigl(\mathrm{LN}_1(x)\bigr), \qquad
# \mathrm{out} = h + \mathrm{FFN}\bigl(\mathrm{LN}_2(h)\bigr).$$
#
# From the first block to the last, nothing interrupts the stream now. The price: every block
# adds and none of them shrinks, so the stream grows with depth (the picture below shows it), and a
# pre-norm model needs one more norm after its last block.
#
# The parts are the same as before, under the same names, so your class inherits them. Only `forward` is
# new.
#
# **One number by hand.** Silence both sublayers again. A pre-norm block then returns x itself, `[2, 2, 6,
# 6]` for `[2, 2, 6, 6]`, to the last digit.
#
# **To think about.** From which tensor exactly are queries, keys and values computed here, and to which is the
# output of attention added?


# %%
class PreNormBlock(TransformerEncoderBlock):
    """Pre-norm: norm, attention, add, norm, feed-forward, add.

    The parts and their names are those of TransformerEncoderBlock.

    forward: x (B, T, C) -> (B, T, C), with the same two masks
    """

    def forward(
        self, x: Tensor, padding_mask: Tensor | None = None, attn_mask: Tensor | None = None
    ) -> Tensor:
        # TODO: attention reads a normed copy of x; its output is added to x itself     # (B, T, C)
        # TODO: the same once more with the feed-forward layer and the second norm      # (B, T, C)
        ### BEGIN SOLUTION
        normed = self.norm1(x)                                                          # (B, T, C)
        attended, _ = self.attention(
            normed, normed, normed, key_padding_mask=padding_mask, attn_mask=attn_mask, need_weights=False
        )                                                                               # (B, T, C)
        x = x + self.dropout(attended)                                                  # (B, T, C)
        return x + self.dropout(self.ff(self.norm2(x)))                                 # (B, T, C)
        ### END SOLUTION


# %% part="pre_norm"

# %% [markdown]
# Compare your two blocks in the first picture: what has moved? The second picture sends a token through 24 blocks of
# each kind. Look at its size on the way up, and at its gradient on the way back.

# %% picture="pre_norm"

# %% [markdown]
# ## Part 5 · The encoder
#
# About 18 minutes, ●●●
#
# A block takes vectors and returns vectors of the same shape, so blocks stack like bricks. An encoder is:
# look up each token's vector, add its position, run through N blocks, one last norm.
#
# Our encoder is of BERT's kind: **post-norm blocks**. The positions are the sinusoidal table, given as a
# function. The table is not learned, but it must follow the module: to the graphics card, into
# float64, into the saved `state_dict`. Such a tensor is called a *buffer*, and `register_buffer` keeps it.
#
# Every block has to know what is padding, not only the first. Otherwise block 1 turns the padding into something that
# looks like a token, and block 2 attends to it.
#
# **One number by hand.** With `d_model=128` and `d_ff=256`, one block has 4·128² + 4·128 parameters in
# attention, 2·128·256 + 256 + 128 in the feed-forward layer and 4·128 in its norms: 132,480. How many
# do six such blocks have, and how many would it be if all six were the same block, used six times?
#
# **To think about.** Replace every padding token by "banana". Which outputs may change, and which must not?


# %%
def sinusoidal_table(max_len: int, d_model: int) -> Tensor:
    """Given: row p is the sinusoidal encoding of position p.  -> (max_len, d_model)"""
    speeds = 10000.0 ** (-torch.arange(0, d_model, 2).double() / d_model)               # (C / 2,)
    angles = torch.outer(torch.arange(max_len).double(), speeds)                        # (max_len, C / 2)
    table = torch.zeros(max_len, d_model)                                               # (max_len, d_model)
    table[:, 0::2] = angles.sin()
    table[:, 1::2] = angles[:, : d_model // 2].cos()
    return table


class TransformerEncoder(nn.Module):
    """Token ids in, one context-aware vector for each token out.

    1. `embedding` (nn.Embedding) plus the first T rows of the buffer `pe` (max_len, d_model), which is
       sinusoidal_table; both as they are, without any scaling; then dropout
       (`padding_idx=0` in the embedding is allowed)
    2. `layers` (nn.ModuleList): n_layers post-norm TransformerEncoderBlocks with the default activation
    3. `norm`: a final LayerNorm

    forward: token_ids (B, T) -> (B, T, C)
        padding_mask (B, T), True marks padding, in every layer; token_ids and padding_mask keep their values
        Raises ValueError that names max_len, its value and T's if T > max_len, in training and in evaluation.
    """

    def __init__(
        self,
        vocab_size: int,
        d_model: int = 128,
        n_heads: int = 4,
        n_layers: int = 2,
        d_ff: int = 256,
        max_len: int = 64,
        dropout: float = 0.1,
    ) -> None:
        super().__init__()
        # TODO: embedding, the buffer pe, dropout, n_layers blocks that share nothing, the final norm
        ### BEGIN SOLUTION
        self.max_len = max_len
        self.embedding = nn.Embedding(vocab_size, d_model)
        self.register_buffer("pe", sinusoidal_table(max_len, d_model))                  # (max_len, C)
        self.dropout = nn.Dropout(dropout)
        self.layers = nn.ModuleList(
            TransformerEncoderBlock(d_model, n_heads, d_ff, dropout) for _ in range(n_layers)
        )
        self.norm = LayerNorm(d_model)
        ### END SOLUTION

    def forward(self, token_ids: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        # TODO: refuse a sentence that is too long
        # TODO: tokens plus positions, through every layer, one last norm               # (B, T, C)
        ### BEGIN SOLUTION
        T = token_ids.shape[1]
        if T > self.max_len:
            raise ValueError(f"a sentence of T={T} tokens is longer than max_len={self.max_len}")
        x = self.dropout(self.embedding(token_ids) + self.pe[:T])                       # (B, T, C)
        for layer in self.layers:
            x = layer(x, padding_mask)                                                  # (B, T, C)
        return self.norm(x)                                                             # (B, T, C)
        ### END SOLUTION


# %% part="encoder"

# %% [markdown]
# The picture replaces one token after the other by *banana*. Look at the columns of the padding: no real word may
# notice that anything changed.

# %% picture="encoder"

# %% [markdown]
# ## Harder: layer norm, backwards
#
# Not graded; about 45 minutes, ●●●.
# The gradient of a layer norm fits into one line, if you derive it. The file
# `harder.py` beside this one asks for that line without autograd, and shows what a layer norm cannot feel. Run
# `python harder.py`: it checks what you write there and says in sentences what is missing.
#
# ## Look back
#
# Change the numbers to 12 blocks, 12 heads, 768 features and 3072 hidden ones, take GELU, let positions be
# learned, add a table for the two segments that BERT reads, and move the last norm from the end of the encoder to
# its entrance, right after the embeddings: *that* is BERT's encoder. (It needs no norm at the end. Each post-norm
# block already ends with one, so ours normalises a second time, with a $\gamma$ and a $\beta$ of its own.) Swap
# in the pre-norm block and a causal `attn_mask`, keep the last norm where it is, and you have the body of GPT-2.
# What the model does not have yet is a task. Counting its parameters comes next, training it after that.
#
# ## Read on
#
# - Ba, Kiros and Hinton, *Layer Normalization* (2016). Look for the difference from batch normalisation, and for
#   the table of what each leaves unchanged when weights or data are scaled and shifted.
# - Ioffe and Szegedy, *Batch Normalization: Accelerating Deep Network Training by Reducing Internal Covariate Shift*
#   (2015), and Santurkar et al., *How Does Batch Normalization Help Optimization?* (2018). The reason in the title of
#   the first, and the experiment of the second that adds a shift back and loses hardly anything.
# - He et al., *Deep Residual Learning for Image Recognition* (2015). Where the shortcuts come from. Figure 1 shows
#   the problem they solve: without them, a deeper network has a larger *training* error.
# - Hendrycks and Gimpel, *Gaussian Error Linear Units (GELUs)* (2016). The activation of Part 2, with both of its
#   approximations.
# - Xiong et al., *On Layer Normalization in the Transformer Architecture* (2020). Post-norm against pre-norm: look
#   for the size of the gradients near the output at the start of training, and what it has to do with warm-up.
