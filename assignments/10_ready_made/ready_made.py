# %% [markdown]
# # 10 · Ready-made
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
# │      ↑       │     ▶ 10 ready-made
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
# You have built attention, blocks and whole models by hand, and you know what every number in them is for. In the
# world outside, attention is rarely written from scratch. There are ready-made parts, good and fast ones, and there
# are models whose training has cost a fortune that somebody else has already paid.
#
# There are three ways to a Transformer:
#
# | | what you write | when to take it |
# |---|---|---|
# | **by hand** | every matrix product | to understand; to change what happens *inside* attention; research |
# | **PyTorch's parts** | which layers, in which order | your own architecture, from parts known to be right and fast |
# | **Hugging Face** | a configuration, or only a name | a known architecture; above all, weights already trained |
#
# All three compute the same thing. Here you prove it: you take models written by hand, build the ready-made
# counterpart, and copy the weights over. If both then give the same numbers, to ten digits, you have
# understood every switch of the ready-made one. If they do not, one of the switches is not where you thought.
#
# The school for words moves into a building that somebody else has put up. Every chair has its place there, but the
# rooms have other names, one table has to be turned, and some light switches work the other way round. And what you move
# are copies: if you later paint a chair in the new building, the one in the old building keeps its colour.
#
# Letters for shapes: `B` batch, `T` length of what is written, `S` length of what was read, `C` width of a
# vector, `H` heads, `V` words in the vocabulary.
#
# Part 4 needs one more package, `transformers`. It is among those that the course's `requirements.txt` names; without
# it, all the rest works. Part 5 needs none: there you build, by hand, what turns a text into tokens.
#
# **Not here.** Nothing is downloaded unless you ask for it, and what makes the ready-made parts fast inside stays
# their own business.
#
# The names of functions, classes, attributes and arguments are part of the contract: the tests use them.

# %%
import itertools
import re
from collections import Counter

import torch
import torch.nn.functional as F
from torch import Tensor, nn

# %% [markdown]
# ## Given · Four promises
#
# Four promises hold for every `to_…` function of this assignment. The new module
#
# - gives the **same outputs** as the old one,
# - owns **copies** of the weights: whatever happens to one of the two later, the other does not change,
# - has the old one's **number type**, and is in the old one's **mode**, training or eval,
# - and the old module is left exactly as it was: its numbers, its mode, and which of its parameters are trained.
#
# `matched` does the third of them for you. Call it before you copy: numbers that pass through a smaller type lose
# their last digits on the way.


# %%
def matched(new: nn.Module, old: nn.Module) -> nn.Module:
    """Given: the new module in the number type, on the device and in the mode of the old one."""
    weight = next(old.parameters())
    return new.to(device=weight.device, dtype=weight.dtype).train(old.training)


# %% [markdown]
# ## Part 1 · Attention
#
# About 12 minutes, ●●○ (difficulty 2 of 3)
#
# Here is attention by hand, all heads in one multiplication. `W_qkv` holds the weights for queries, keys and
# values, one below the other, and inside each of them head by head.


# %%
class FusedMultiHeadAttention(nn.Module):
    """Given: (B, T, C) -> (B, T, C). mask (T, T), True where word t may attend to word s; None: everywhere."""

    def __init__(self, d_model: int, n_heads: int) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.W_qkv = nn.Linear(d_model, d_model * 3, bias=False)
        self.W_out = nn.Linear(d_model, d_model, bias=False)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        split = self.W_qkv(x).unflatten(-1, (3, self.n_heads, -1))                      # (B, T, 3, H, C / H)
        q, k, v = split.permute(2, 0, 3, 1, 4)                                          # each (B, H, T, C / H)
        attended = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)              # (B, H, T, C / H)
        return self.W_out(attended.transpose(1, 2).flatten(2))                          # (B, T, C)


# %% [markdown]
# PyTorch's counterpart is `nn.MultiheadAttention`. It owns `in_proj_weight` (3C, C) and `out_proj`, and it
# comes with three switches that catch everybody once:
#
# | switch | PyTorch's default | what we have |
# |---|---|---|
# | `batch_first` | `False`: it expects (T, B, C) | (B, T, C) |
# | `bias` | `True` | no biases |
# | `attn_mask` | `True` means *blocked* | `True` means *allowed* |
#
# The first is the nastiest: give it (B, T, C) without `batch_first=True`, and nothing crashes. Your sentences
# then attend to each other, and the words of a sentence do not. The third is not set when the layer is built: every
# call has to invert the mask, `attn_mask=~mask`. The call returns a pair, the output and the attention weights.
#
# **One number by hand.** With C = 1 and H = 1, `W_qkv` is a column of three numbers. Take 1, 1, 5 for them
# and 2 for `W_out`: a single word $x = 3$ attends only to itself, and the output is $2 \cdot 5 \cdot 3 = 30$, in
# both models. If queries and values were swapped, it would be 6.
#
# **To think about.** A batch with a single sentence, and `batch_first` forgotten. What does each word attend to?


# %%
def to_torch_attention(fused: FusedMultiHeadAttention) -> nn.MultiheadAttention:
    """PyTorch's own attention with the weights of `fused`; takes (B, T, C).

    For x (B, T, C) and mask (T, T), `layer(x, x, x, attn_mask=~mask)[0]` equals `fused(x, mask)`, and
    `layer(x, x, x)[0]` equals `fused(x)`. The four promises hold.
    """
    # TODO: PyTorch's layer with the right sizes and switches, matched to the old one
    # TODO: each weight to its place                                                    # (3C, C) and (C, C)
    raise NotImplementedError("to_torch_attention is not written yet.")


# %% part="attention"
# Written? `autograder check 10_ready_made` shows how you are doing.

# %% [markdown]
# Every dot is one number of the output: yours by hand on the horizontal axis, PyTorch's on the vertical one. If the
# weights were copied correctly, all dots lie on the line. In the second panel both models have a causal mask.

# %% picture="attention"
# The notebook draws a picture of your own code here.

# %% [markdown]
# ## Part 2 · The encoder layer
#
# About 17 minutes, ●●○ (difficulty 2 of 3)
#
# A whole block now, in both wirings. Post-norm, as in the first Transformer, norms after each addition: attend,
# add, *norm*; feed forward, add, *norm*. Pre-norm norms the input of each sublayer: *norm*, attend, add.


# %%
class LayerNorm(nn.Module):
    """Given: normalises each vector, then multiplies by `gamma` and adds `beta`."""

    def __init__(self, d_model: int, eps: float) -> None:
        super().__init__()
        self.gamma, self.beta = nn.Parameter(torch.ones(d_model)), nn.Parameter(torch.zeros(d_model))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, self.gamma.shape, self.gamma, self.beta, self.eps)


class FeedForward(nn.Module):
    """Given: two linear layers with an activation between them, "relu" or "gelu"."""

    def __init__(self, d_model: int, d_ff: int, activation: str) -> None:
        super().__init__()
        self.linear1, self.linear2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        self.activation = activation

    def forward(self, x: Tensor) -> Tensor:
        return self.linear2(getattr(F, self.activation)(self.linear1(x)))


class TransformerEncoderBlock(nn.Module):
    """Given: post-norm, (B, T, C) -> (B, T, C). padding_mask (B, T), True marks padding, which gets no attention."""

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        d_ff: int,
        dropout: float = 0.1,
        activation: str = "relu",
        eps: float = 1e-5,
    ) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(d_model, n_heads, dropout=dropout, batch_first=True)
        self.ff = FeedForward(d_model, d_ff, activation)
        self.norm1, self.norm2 = LayerNorm(d_model, eps), LayerNorm(d_model, eps)
        self.dropout = nn.Dropout(dropout)

    def attend(self, x: Tensor, padding_mask: Tensor | None) -> Tensor:
        return self.dropout(self.attention(x, x, x, key_padding_mask=padding_mask, need_weights=False)[0])

    def feed_forward(self, x: Tensor) -> Tensor:
        return self.dropout(self.ff(x))

    def forward(self, x: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        x = self.norm1(x + self.attend(x, padding_mask))
        return self.norm2(x + self.feed_forward(x))


class PreNormBlock(TransformerEncoderBlock):
    """Given: the same parts under the same names, in the other wiring."""

    def forward(self, x: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        x = x + self.attend(self.norm1(x), padding_mask)
        return x + self.feed_forward(self.norm2(x))


# %% [markdown]
# PyTorch has both wirings in one class, `nn.TransformerEncoderLayer`. Its parts are called `self_attn`,
# `linear1`, `linear2`, `norm1` and `norm2`, and a norm's two vectors `weight` and `bias`. The switches, with
# what you get when you do not touch them:
#
# | switch | default | where our block says it |
# |---|---|---|
# | `dim_feedforward` | 2048 | the size of `ff.linear1` |
# | `dropout` | 0.1 | `dropout.p` |
# | `activation` | `"relu"` | `ff.activation`, `"relu"` or `"gelu"` |
# | `layer_norm_eps` | 1e-5 | `norm1.eps` (BERT, for example, takes 1e-12) |
# | `batch_first` | `False` | (B, T, C) |
# | `norm_first` | `False`, post-norm | whether it is a `PreNormBlock` |
#
# A wrong width at least fails loudly. All other mistakes run without an error and make the result a little wrong.
#
# `weights = layer.state_dict()` shows all names and shapes; `layer.load_state_dict(weights)` fills a module
# by name, copies the numbers, and reports every name that is missing or unknown.
#
# **One number by hand.** A word whose numbers are 1, 1, 1, 1.02 has the variance 0.000075. With eps = 1e-5 the
# last number of its norm is 1.63, with eps = 1e-3 it is 0.46. For ordinary vectors, whose variance is about 1,
# the two differ by one part in two thousand. This is how a wrong eps stays hidden.
#
# **To think about.** Which of the six switches could you find out from the weights alone?


# %%
def to_torch_encoder_layer(block: TransformerEncoderBlock) -> nn.TransformerEncoderLayer:
    """PyTorch's own encoder layer with the weights of `block`, which is post-norm or a PreNormBlock.

    For x (B, T, C) and padding_mask (B, T), `layer(x, src_key_padding_mask=padding_mask)` equals
    `block(x, padding_mask)`. Dropout is as strong as in the block. The four promises hold.
    """
    # TODO: PyTorch's layer with the right sizes and switches, matched to the block
    # TODO: each weight under its new name, into the layer
    raise NotImplementedError("to_torch_encoder_layer is not written yet.")


# %% part="encoder"
# Written? `autograder check 10_ready_made` shows how you are doing.

# %% [markdown]
# Both wirings with both activations, the same dots as above. Look at the range of the axes, too: post-norm keeps
# the numbers small, pre-norm lets the residual stream grow.

# %% picture="encoder"
# The notebook draws a picture of your own code here.

# %% [markdown]
# ## Part 3 · The decoder layer
#
# About 18 minutes, ●●○ (difficulty 2 of 3)
#
# The decoder's block looks back at what is written (self-attention), across at what was read (cross-attention), and
# then feeds forward. Here its cross-attention has **four separate layers**, with biases, and the block hides the
# future by itself.


# %%
class CrossAttention(nn.Module):
    """Given: queries from the written words (B, T, C), keys and values from the memory (B, S, C) -> (B, T, C)."""

    def __init__(self, d_model: int, n_heads: int) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.query, self.key, self.value, self.proj = (nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, y: Tensor, memory: Tensor, memory_padding_mask: Tensor | None = None) -> Tensor:
        wide = self.query(y), self.key(memory), self.value(memory)
        heads = [one.unflatten(2, (self.n_heads, -1)).movedim(2, 1) for one in wide]    # (B, H, …, C / H)
        allowed = None if memory_padding_mask is None else ~memory_padding_mask[:, None, None]
        attended = F.scaled_dot_product_attention(*heads, attn_mask=allowed)            # (B, H, T, C / H)
        return self.proj(attended.movedim(1, 2).flatten(2))                             # (B, T, C)


class DecoderBlock(nn.Module):
    """Given: post-norm, y (B, T, C) and memory (B, S, C) -> (B, T, C); hides the future by itself."""

    def __init__(self, d_model: int, n_heads: int, d_ff: int, dropout: float = 0.1) -> None:
        super().__init__()
        self.self_attention = nn.MultiheadAttention(d_model, n_heads, dropout=dropout, batch_first=True)
        self.cross_attention = CrossAttention(d_model, n_heads=n_heads)
        self.ff = nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model))
        self.norm1, self.norm2, self.norm3 = (nn.LayerNorm(d_model) for _ in range(3))
        self.dropout = nn.Dropout(dropout)

    def forward(self, y: Tensor, memory: Tensor, memory_padding_mask: Tensor | None = None) -> Tensor:
        def look_back(y: Tensor) -> Tensor:
            return self.self_attention(y, y, y, attn_mask=future(y.shape[1]))[0]

        def look_across(y: Tensor) -> Tensor:
            return self.cross_attention(y, memory, memory_padding_mask)

        steps = look_back, look_across, self.ff
        for step, norm in zip(steps, (self.norm1, self.norm2, self.norm3)):
            y = norm(y + self.dropout(step(y)))                                         # (B, T, C)
        return y


def future(T: int) -> Tensor:
    """Given: (T, T), True where column s comes after row t; PyTorch's way round, True means blocked."""
    positions = torch.arange(T)
    return positions[None, :] > positions[:, None]


# %% [markdown]
# `nn.TransformerDecoderLayer` has two attentions, `self_attn` and `multihead_attn` (the cross-attention), then
# `linear1`, `linear2` and three norms. Two things are different from before:
#
# - its cross-attention keeps query, key and value in **one** matrix `in_proj_weight` (3C, C) and one
#   `in_proj_bias` (3C,), stacked in this order, while ours has three separate layers;
# - it does **not** hide the future by itself. Every call must say `tgt_mask=future(T)`. Forget it, and the model
#   cheats in training and fails in the exam.
#
# **One number by hand.** With C = 20, cross-attention owns four layers of 20 · 20 + 20 numbers by hand: 1,680.
# PyTorch's has 60 · 20 + 60 in front and 420 behind: 1,680 again. Counting is a good first check.
#
# **To think about.** Could the three layers be stored in the order key, value, query? What would have to change,
# and in how many places?


# %%
def to_torch_decoder_layer(block: DecoderBlock) -> nn.TransformerDecoderLayer:
    """PyTorch's own decoder layer with the weights of `block`.

    For y (B, T, C), memory (B, S, C) and memory_padding_mask (B, S),
    `layer(y, memory, tgt_mask=future(T), memory_key_padding_mask=memory_padding_mask)` equals
    `block(y, memory, memory_padding_mask)`. Dropout is as strong as in the block. The four promises hold.
    """
    # TODO: PyTorch's layer with the right sizes and switches, matched to the block
    # TODO: self-attention, the feed-forward layers and the norms under their new names
    # TODO: cross-attention: three layers on top of each other, weights and biases      # (3C, C) and (3C,)
    raise NotImplementedError("to_torch_decoder_layer is not written yet.")


# %% part="decoder"
# Written? `autograder check 10_ready_made` shows how you are doing.

# %% [markdown]
# How strongly does each output react to each written word? On the left your PyTorch layer with
# `tgt_mask=future(T)`, on the right without: the leak, made visible.

# %% picture="decoder"
# The notebook draws a picture of your own code here.

# %% [markdown]
# ## Part 4 · GPT-2 from Hugging Face
#
# About 27 minutes, ●●● (difficulty 3 of 3)
#
# Hugging Face's library `transformers` does not offer parts but whole models. You fill in a configuration, and
# `GPT2LMHeadModel(config)` builds the model, with random weights and without downloading anything. Its inner
# names are those of the file that OpenAI published, so they are fixed.
#
# Here is the small model by hand. As in GPT-2, its head `fc` is **tied**: it *is* the table of word vectors,
# one matrix with two jobs.


# %%
class Block(nn.Module):
    """Given: pre-norm with causal attention, (B, T, C) -> (B, T, C)."""

    def __init__(self, embed_size: int, num_heads: int, eps: float) -> None:
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(embed_size, eps), nn.LayerNorm(embed_size, eps)
        self.attention = FusedMultiHeadAttention(embed_size, num_heads)
        layers = nn.Linear(embed_size, 4 * embed_size), nn.GELU(), nn.Linear(4 * embed_size, embed_size)
        self.ff = nn.Sequential(*layers)

    def forward(self, x: Tensor) -> Tensor:
        for norm, step in ((self.ln1, self.look_back), (self.ln2, self.ff)):
            x = x + step(norm(x))
        return x

    def look_back(self, x: Tensor) -> Tensor:
        return self.attention(x, ~future(x.shape[1]))


class TransformerLanguageModel(nn.Module):
    """Given: ids (B, T) -> logits (B, T, V). No dropout anywhere; `fc` is tied to `token_embed`."""

    def __init__(
        self,
        vocab_size: int,
        embed_size: int = 64,
        block_size: int = 8,
        num_heads: int = 4,
        num_layers: int = 1,
        eps: float = 1e-5,
    ) -> None:
        super().__init__()
        self.block_size = block_size
        tables = (nn.Embedding(rows, embed_size) for rows in (vocab_size, block_size))
        self.token_embed, self.pos_embed = tables
        self.blocks = nn.ModuleList(Block(embed_size, num_heads, eps) for _ in range(num_layers))
        self.ln = nn.LayerNorm(embed_size, eps)
        self.fc = nn.Linear(embed_size, vocab_size, bias=False)
        self.fc.weight = self.token_embed.weight

    def forward(self, ids: Tensor) -> Tensor:
        positions = self.pos_embed.weight[: ids.shape[1]]                               # (T, C)
        layers = nn.Sequential(*self.blocks, self.ln, self.fc)
        return layers(self.token_embed(ids) + positions)                                # (B, T, V)


# %% [markdown]
# The plan of the new flat. `h` holds the blocks; everything but `lm_head` is inside `transformer`:
#
# | by hand | in `GPT2LMHeadModel` | shape there | mind |
# |---|---|---|---|
# | `token_embed` | `transformer.wte` | (V, C) | |
# | `pos_embed` | `transformer.wpe` | (`n_positions`, C) | |
# | `blocks[n].ln1`, `ln2` | `transformer.h[n].ln_1`, `ln_2` | (C,) | |
# | `blocks[n].attention.W_qkv` | `transformer.h[n].attn.c_attn` | (C, 3C) | transposed! |
# | `blocks[n].attention.W_out` | `transformer.h[n].attn.c_proj` | (C, C) | transposed! has a bias |
# | `blocks[n].ff[0]`, `ff[2]` | `transformer.h[n].mlp.c_fc`, `c_proj` | (C, 4C), (4C, C) | transposed! |
# | `ln` | `transformer.ln_f` | (C,) | |
# | `fc` | `lm_head` | (V, C) | tied to `wte`, comes along by itself |
#
# **Transposed.** `nn.Linear` keeps its weight as (out, in). GPT-2's layers, called `Conv1D` for historical
# reasons, keep it as (in, out). For `c_attn` a forgotten transpose crashes. For the square `c_proj` of attention
# nothing crashes, and everything is wrong.
#
# **Biases.** `c_attn` and the `c_proj` of attention have a bias where ours has none. Which bias does nothing?
#
# **Switches** of `GPT2Config`, with their defaults: `vocab_size=50257`, `n_positions=1024`, `n_embd=768`,
# `n_layer=12`, `n_head=12`; three dropouts `resid_pdrop=0.1`, `embd_pdrop=0.1`, `attn_pdrop=0.1`, of which our
# model has none; `layer_norm_epsilon=1e-5`; and `activation_function="gelu_new"`, the fast approximation with
# a tanh that OpenAI used. Ours is the exact one, which Hugging Face calls `"gelu"`. (Two more, `bos_token_id`
# and `eos_token_id`, name words that our vocabulary does not have: set them to `None`, or live with a warning.)
#
# **One number by hand.** The exact GELU of 1 is 0.841345, the approximation gives 0.841192. The difference of
# 0.00015 is invisible in a picture. But it changes every logit a little, and where the two most likely words are
# nearly tied, it can change which of them is written.
#
# **To think about.** Why can the head be left out when you carry the weights over?


# %%
def to_hugging_face_gpt2(model: TransformerLanguageModel) -> nn.Module:
    """Hugging Face's GPT2LMHeadModel with the weights of `model`. Nothing is downloaded.

    For ids (B, T), `gpt2(ids).logits` equals `model(ids)`, in training mode, too: there is no dropout. Its
    head is tied to its table of word vectors, as ours is. The four promises hold.
    """
    from transformers import GPT2Config, GPT2LMHeadModel  # here, and not above: it takes a few seconds

    # TODO: a configuration with the sizes and switches of `model`, and the model that it describes
    # TODO: tables, norms and blocks, each weight to its place; transpose where necessary
    raise NotImplementedError("to_hugging_face_gpt2 is not written yet.")


# %% part="gpt2"
# Written? `autograder check 10_ready_made` shows how you are doing.

# %% [markdown]
# Left, the same weight in both models: one is the transpose of the other. Right, what both models predict after the
# same beginning. The bars must be equal.

# %% picture="gpt2"
# The notebook draws a picture of your own code here.

# %% [markdown]
# ## Part 5 · Byte pair encoding
#
# About 33 minutes, ●●○ (difficulty 2 of 3)
#
# One piece of GPT-2 is still missing, and it comes before the model: its tokenizer. With characters, a text has too
# many tokens; with whole words, the vocabulary has too many entries, and every new name is unknown. GPT-2 takes the
# middle road, **byte pair encoding**, and so do most models today. You need neither a library nor a matrix for it:
#
# 1. A text is cut into **words**, before each space and nowhere else. So a space belongs to the word after it, `tea`
#    and `␣tea` are two different things (`␣` is how we print a space here), and the end of a line is a character like
#    any other. No token will ever reach across such a cut.
# 2. Each word begins as a list of single **bytes**, as UTF-8 writes it. There are only 256 of them, so nothing is ever
#    unknown: `é` is two bytes, and 🙂 is four.
# 3. Then, again and again: count how often two tokens stand **side by side** in a word, over the whole text. Take the
#    most frequent pair, and join it in all words, from left to right. What was joined is a token from now on, and can
#    become half of the next pair.
#
# The pairs, in the order in which they were learned, are all that has to be kept. They are called the **merges**. To
# encode a text means to go through this list once, in its order: each pair is joined wherever it stands in the new
# text, from left to right, however rare it is there. Take `an island and a land` and its first merges, (a, n), (an, d),
# (l, and) and (␣, a): `␣and` becomes `␣` and `and`, although `␣a` is a token, too. The older merge came first.
#
# Two rules leave nothing to chance. **Every** pair counts, also where two of them overlap: `aaa` holds the pair (a, a)
# twice, although only one of the two can be joined. And of several pairs that are equally frequent, the **smallest** is
# taken, in the order in which Python sorts pairs of bytes.
#
# The way back is short: put the bytes of all tokens together, and read them as UTF-8. One token alone may be half a
# letter, so this has to be done with all of them at once. And a model can write bytes that are no letter at all; for
# these, Python puts the sign `�`, U+FFFD, if it is asked to with `errors="replace"`.
#
# **One number by hand.** The words of `tea no tea sea tea` are `tea`, `␣no`, `␣tea`, `␣sea` and `␣tea`. The pair (e, a)
# stands there 4 times, (t, e) 3 times, every other pair less often. So (e, a) is joined first. Now (t, ea) stands there
# 3 times and becomes `tea`; after that, (␣, tea) stands there twice. With these three merges, the 18 bytes of the text
# have become 9 tokens: `tea`, `␣`, `n`, `o`, `␣tea`, `␣`, `s`, `ea`, `␣tea`.
#
# **One number by hand.** In `aaab aaab`, the pair (a, a) stands 4 times, (a, b) twice, (␣, a) once. Once (a, a) is
# joined, the words are `aa a b` and `␣ aa a b`, and (aa, a) and (a, b) both stand there twice. The smaller is (a, b),
# because `a` comes before `aa`.
#
# **To think about.** Train on the English story below, then encode an English sentence and its translation into
# another language that you know. How many tokens does each have for a hundred letters? Why, and who pays for it?


# %%
def words(text: str) -> list[list[bytes]]:
    r"""Given: the words of a text, cut before each space; each is a list of single bytes.

    Example: words("a bé") -> [[b"a"], [b" ", b"b", b"\xc3", b"\xa9"]]
    """
    return [[bytes([byte]) for byte in word.encode()] for word in re.split("(?= )", text) if word]


def joined(word: list[bytes], pair: tuple[bytes, bytes]) -> list[bytes]:
    """The word with each such pair joined to one token, from left to right.

    A step that training and encoding share; tests see it only through them.
    Example: joined([b"a", b"a", b"a", b"b"], (b"a", b"a")) -> [b"aa", b"a", b"b"]
    """
    # TODO: a new list: two tokens that are the pair become one, all others stay
    raise NotImplementedError("joined is not written yet.")


def train_bpe(text: str, n_merges: int) -> list[tuple[bytes, bytes]]:
    """The merges of a text in the order in which they are learned, n_merges of them.

    Most frequent pair first, within words and over the whole text; of equally frequent ones, the smallest. A pair that
    stands in the text once still counts. There are fewer merges only if no word has two tokens left: none for "".
    Raises ValueError that names n_merges and its value if it is below 0; n_merges = 0 gives [].

    Example: train_bpe("tea no tea sea tea", 2) -> [(b"e", b"a"), (b"t", b"ea")]
    """
    # TODO: refuse a number of merges below 0
    # TODO: as often as asked: count the pairs as the words are now, choose one, join it in all words
    raise NotImplementedError("train_bpe is not written yet.")


def encode(text: str, merges: list[tuple[bytes, bytes]]) -> list[bytes]:
    """The tokens of any text, by the merges that train_bpe has learned, perhaps from another text.

    Joined, the tokens are the bytes of the text: `b"".join(encode(text, merges)) == text.encode()`. Letters and bytes
    that training never saw stay single bytes. Without merges, every token is one byte.

    Example: encode("the tea", [(b"e", b"a"), (b"t", b"ea")]) -> [b"t", b"h", b"e", b" ", b"tea"]
    """
    # TODO: for each merge, in its order: join it in all words
    # TODO: the tokens of all words in one list
    raise NotImplementedError("encode is not written yet.")


def decode(tokens: list[bytes]) -> str:
    """The text of the tokens, of all their bytes together; what is no UTF-8 becomes U+FFFD, as `errors="replace"` says.

    For each text that UTF-8 can hold, `decode(encode(text, merges))` is the text. decode([]) is "".
    """
    # TODO: one text from all bytes
    raise NotImplementedError("decode is not written yet.")


# %% part="bpe"
# Written? `autograder check 10_ready_made` shows how you are doing.

# %% [markdown]
# How many tokens do a hundred letters have, when more and more merges are learned from a short English text? One curve
# is an English sentence, the other its German translation. Both begin where every byte is a token.

# %% picture="bpe"
# The notebook draws a picture of your own code here.

# %% [markdown]
# ## All of it together
#
# Here are a text, your merges trained on it, and a model that was written by hand and moved to Hugging Face. A
# vocabulary is a list: the 256 bytes, then one token for each merge, and a token's id is its place in it. The model is
# one of theirs from now on: it computes its own loss, writes with `generate`, and can be saved and shared.
#
# One more switch that works the other way round. When a language model is trained, the targets are the text one
# step later. Hugging Face **shifts for you**: `gpt2(ids, labels=ids)`. If you shift them too, out of habit, the model
# learns to predict the token after next, and nothing crashes. (A line about `loss_type` may appear. It only says that
# the usual loss is used.)

# %%
STORY = """\
The little model lived in a box under the window. Every morning the sun came in and counted the words on the
floor. One word, two words, three words, said the sun, and the little model listened.
I know what comes next, said the little model. Four words, said the sun. I knew it, said the little model.
One evening the moon came in. The moon did not count. The moon told a story about the sea, and the words came
in waves, and no word came alone. What comes next, asked the moon. The little model did not know. It listened
to the first word, and it listened to the last word, and it listened to all the words between.
The sea comes next, said the little model. I knew it, said the moon.
Every evening the moon came in and told a story about the sea, and every morning the sun came in and counted
the words on the floor, and the little model listened, and listened, and knew what comes next.
"""

# %%
if __name__ == "__main__":
    from autograder.notebook import watch_training

    torch.manual_seed(0)
    torch.set_num_threads(1)  # for matrices this small, a second core only costs time
    merges = train_bpe(STORY, 64)
    vocabulary = [bytes([byte]) for byte in range(256)] + [first + second for first, second in merges]
    number = {token: place for place, token in enumerate(vocabulary)}
    ids = torch.tensor([number[token] for token in encode(STORY, merges)])              # (L,)
    print(f"{len(STORY)} characters have become {len(ids)} tokens.")

    by_hand = TransformerLanguageModel(len(vocabulary), 64, 32, num_heads=4, num_layers=2)
    gpt2 = to_hugging_face_gpt2(by_hand)
    with torch.no_grad():
        apart = (gpt2(ids[None, :32]).logits - by_hand(ids[None, :32])).abs().max()
    print(f"By hand and ready-made differ by at most {apart:.0e}.")

    optimizer, steps = torch.optim.AdamW(gpt2.parameters(), lr=3e-3), 300
    watch = watch_training(steps)
    for step in range(1, steps + 1):
        starts = torch.randint(len(ids) - 32, (16,))
        batch = torch.stack([ids[start : start + 32] for start in starts.tolist()])     # (B, T)
        loss = gpt2(batch, labels=batch).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            watch(step, loss.item())

    gpt2.eval()
    beginning = torch.tensor([[number[token] for token in encode("One evening", merges)]])
    written = gpt2.generate(beginning, max_new_tokens=20, do_sample=False, pad_token_id=0)
    print(decode([vocabulary[place] for place in written[0].tolist()]))

# %% [markdown]
# ## The real one
#
# The very same two classes give you a model that no laptop can train: GPT-2 as OpenAI published it. The cell
# below is skipped until you say so, because it needs the Internet once (about 550 MB, kept for later) and 1 GB
# of memory. Nothing in this assignment depends on it.

# %%
DOWNLOAD_GPT2 = False

if __name__ == "__main__" and DOWNLOAD_GPT2:
    from transformers import AutoTokenizer, GPT2LMHeadModel

    words, real = AutoTokenizer.from_pretrained("gpt2"), GPT2LMHeadModel.from_pretrained("gpt2").eval()
    beginning = words("Attention is", return_tensors="pt")
    written = real.generate(**beginning, max_new_tokens=20, do_sample=False, pad_token_id=words.eos_token_id)
    print(words.decode(written[0]))

# %% [markdown]
# ## A sheet for the wall
#
# | | by hand | PyTorch | Hugging Face (GPT-2) |
# |---|---|---|---|
# | word vectors go in as | (B, T, C) | (T, B, C); (B, T, C) with `batch_first=True` | ids (B, T) |
# | weight of a linear layer | (out, in) | (out, in) | `Conv1D`: (in, out) |
# | Q, K and V | one (3C, C), or three (C, C) | one (3C, C) | one (C, 3C) |
# | scores of attention | (B, H, T, S) | (B, H, T, S), shown as their mean (B, T, S) | (B, H, T, S) |
# | mask of attention | `True` = allowed | `attn_mask`, `tgt_mask`: `True` = blocked | by itself |
# | the same in `F.scaled_dot_product_attention` | | `True` = allowed | |
# | padding | `True` = padding | `key_padding_mask`: `True` = padding | `attention_mask`: 1 = real, 0 = padding |
# | eps of a norm | yours | 1e-5 | 1e-5; BERT 1e-12 |
# | GELU | exact | exact | GPT-2 `gelu_new`; BERT exact |
# | dropout | yours | 0.1 | 0.1, in three places |
# | a fresh model is in | training mode | training mode | training mode; `from_pretrained`: eval mode |
# | what comes out | a tensor | a tensor; attention: a pair | an object with `.logits` and `.loss` |
# | targets | you shift | you shift | `labels=ids`, it shifts |
#
# ## Look back
#
# You can now read any of the three, and say where a number is found in the others. One question to take along:
# of all the switches you have met here, most were silent when they were wrong. Which check would you run first
# after converting a model that you did *not* write, and on which input?
#
# ## Read on
#
# - Philip Gage, *A New Algorithm for Data Compression* (1994): byte pairs before anybody thought of language models.
# - Rico Sennrich, Barry Haddow and Alexandra Birch, *Neural Machine Translation of Rare Words with Subword Units*
#   (2015): byte pairs for words. Look for the algorithm, a page of Python, and compare it with Part 5.
# - Alec Radford and others, *Language Models are Unsupervised Multitask Learners* (2019), the GPT-2 paper: look for
#   the section on the input representation. Which merges do they forbid, and why?
# - Dan Hendrycks and Kevin Gimpel, *Gaussian Error Linear Units (GELUs)* (2016): both formulas of Part 4 are in it.
# - Thomas Wolf and others, *Transformers: State-of-the-Art Natural Language Processing* (2020): the library of Part 4.
#   Look for the three building blocks of every model in it.
