# %% [markdown]
# # 13 · Key–value cache
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
# └──────────────┘     ▶ 13 with a cache
#        ↑               01 vectors
#    vectors +           02 positions
#    positions           12 positions that turn
#        ↑               17 the code around it, debugged
# words of a text        00 why not one word after the other
#
# ▶ you are here
# ```
#
# Your mini GPT writes, but it works far too hard. For each new word it reads the **whole** text again: it turns every
# old word into a query, a key and a value once more, lets all of them attend to each other once more, and then uses
# only the last of all these outputs. After a thousand words that means a thousand words projected and a million
# scores in each head, just to find out which word comes next.
#
# It is as if the whole school for words went back to the ground floor whenever a new word comes in, to ask the same
# questions and hear the same answers. You would rather keep what was said. That is the whole idea of this assignment,
# and every language model you have ever chatted with uses it.
#
# What is worth keeping? Think of each word as leaving an **index card** in a box. The front of the card, the *key*,
# says how the word can be found; the back, the *value*, says what it contributes. A later word comes with its query,
# compares it with all the keys and gets a weighted sum of the values. Its query is then of no further use, so
# queries are not kept. The box is called the **key–value cache**.
#
# May the cards stay as they are when the text goes on? Yes, because of the causal mask: no word attends to a later
# one, so when a new word arrives, nothing about the old ones changes, in any layer of the model. A card that was
# right once stays right for ever.
#
# Letters for shapes: `B` sentences, `H` heads, `T` new words, `S` words in the cache once the new ones are in it, `D`
# numbers in a head, `C = H · D` numbers in a word; in Part 4 also `G` heads whose keys and values are kept, in Part 5
# `E` numbers in a value.
#
# Scores, softmax and weighted sum are given: `F.scaled_dot_product_attention(q, k, v, attn_mask=…)` takes
# `(B, H, T, D)`, `(B, H, S, D)`, `(B, H, S, D)` and a boolean mask, True where attending is allowed.
# (`nn.MultiheadAttention` cannot help here: it has no cache.)
#
# **Not here.** The model is not trained, so what it writes means nothing, and the cache is never shortened or
# rounded.
#
# The names of functions, classes, attributes and arguments are part of the contract: the tests use them.

# %%
import math
import time

import torch
import torch.nn.functional as F
from torch import Tensor, nn

# %% [markdown]
# ## Part 1 · The mask becomes a rectangle
#
# About 6 minutes, ●●○ (difficulty 2 of 3)
#
# When a text is read as a whole, the causal mask is a square whose lower triangle is True: word 0 attends to
# itself, word 1 to two words, and so on. Now let the text arrive in pieces. There are `past` words in the cache,
# and `T` new ones come in. Only the new ones have queries (`T` rows), but they may attend to old and new ones
# (`past + T` columns). The mask has become a **rectangle**, and it is simply the last `T` rows of the square for
# the whole text.
#
# **One number by hand.** Two words are in the cache, three come in:
#
# ```
#              cache       new
#             ┌──────┐ ┌─────────┐
# new word 0    ✓  ✓    ✓  ·  ·
# new word 1    ✓  ✓    ✓  ✓  ·
# new word 2    ✓  ✓    ✓  ✓  ✓
# ```
#
# **To think about.** A model that writes feeds one new word at a time. What does its rectangle look like? Why
# will code with a wrong mask seem to work there, and when will the error show?


# %%
def causal_mask(T: int, past: int = 0) -> Tensor:
    """What T new words after past old ones may attend to: booleans (T, past + T), for any T >= 1 and past >= 0.

    Row t is the new word t; the columns are first the old words, then the new ones. True means "may attend to".
    Example: causal_mask(2, past=1) is [[True, True, False], [True, True, True]]. With past = 0 it is the square
    that you know.
    """
    # TODO: which columns may new word t attend to?                                     # (T, past + T)
    raise NotImplementedError("causal_mask is not written yet.")


# %% part="mask"
# Written? `autograder check 13_key_value_cache` shows how you are doing.

# %% [markdown]
# On the left stands your mask for a whole text, on the right your mask for its last words. The framed rows
# should be the rectangle.

# %% picture="mask"
# The notebook draws a picture of your own code here.

# %% [markdown]
# ## Part 2 · Attention with a cache
#
# About 26 minutes, ●●● (difficulty 3 of 3)
#
# $$
# q = x W_Q \qquad
# K = \begin{pmatrix} K_{\text{old}} \\ x W_K \end{pmatrix} \qquad
# V = \begin{pmatrix} V_{\text{old}} \\ x W_V \end{pmatrix} \qquad
# \text{output} = \operatorname{softmax}\!\left(\frac{q K^\top}{\sqrt{D}}\right) V
# $$
#
# Here $x$ holds the new words **only**. The layers `key` and `value` never see an old word again; its key and value
# come out of the cache, and the new ones are appended behind them. Then everything is as usual: the new words
# attend under the mask of Part 1, the heads' outputs are concatenated, and a last layer mixes them.
#
# We agree on one form of the cache: a tuple `(keys, values)`, both `(B, H, S, D)`, words in the order of the text.
# The layer does not remember anything by itself. It takes a cache and **returns a new, longer one**; the one that
# came in stays as it was, and so does every cache that it has returned. So a text can be continued in two ways from
# the same point, and two conversations never get mixed up. (Fast libraries reserve room for later words behind the
# last one. When two continuations write into the same room, the second one overwrites the first.)
#
# **One number by hand.** With `d_model = 20` and `n_heads = 4`, five words leave keys and values of shape `(1, 4, 5,
# 5)` each, 200 numbers together. Two more words come in: `x` is `(1, 2, 20)`, the mask `(2, 7)`, the output `(1, 2,
# 20)`, and the new cache holds `(1, 4, 7, 5)` twice, 280 numbers.
#
# **Is it right?** One test covers everything: cut a text into pieces anywhere, pass them in one after another,
# and you must get the outputs of the whole text at once. Not nearly the same outputs: the same, up to rounding.
#
# **To think about.** BERT reads without a causal mask. Why would a cache give it wrong outputs?


# %%
class CachedAttention(nn.Module):
    """Causal attention with several heads that never computes a key or a value twice.

    `query`, `key`, `value`, `proj`: four `nn.Linear(d_model, d_model, bias=False)`. Head h works with the features
    h·D up to (h+1)·D - 1 of queries, keys and values, and its output takes the same place before `proj`.
    Raises ValueError that names d_model and n_heads and their values if n_heads does not divide d_model.

    forward: x (B, T, C), the T >= 1 new words; cache None, or what an earlier call returned, of any length
        -> out (B, T, C), the outputs for the new words
        -> cache (keys, values), both (B, H, S, D): the old entries exactly as they were, then the new ones
        x and the old cache keep their values. Nothing is detached: gradients also reach the words of earlier
        pieces. All is the same in training and in eval, and out and cache have the module's number type.
    Example: out, cache = attention(x[:, :5]) and then out, cache = attention(x[:, 5:], cache)
    """

    def __init__(self, d_model: int, n_heads: int) -> None:
        super().__init__()
        # TODO: refuse a width that the heads do not divide; store the number of heads; the four layers
        raise NotImplementedError("CachedAttention.__init__ is not written yet.")

    def forward(
        self, x: Tensor, cache: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        # TODO: queries, keys and values of the new words: split the features, heads to the front  # (B, H, T, D)
        # TODO: the old keys and values, if there are any, and the new ones behind them  # (B, H, S, D)
        # TODO: the new words attend, each to the past and up to itself                 # (B, H, T, D)
        # TODO: concatenate the heads, the last layer; and return the longer cache      # (B, T, C)
        raise NotImplementedError("CachedAttention.forward is not written yet.")


# %% [markdown]
# The next function is given. It reads a beginning piece by piece, and then every ending from that same point. Each
# ending should find its own words in its own cache, whatever was read after it.


# %%
@torch.no_grad()
def all_endings(attention: nn.Module, pieces: list[Tensor], endings: list[Tensor]) -> list[tuple[Tensor, Tensor]]:
    """Given: the caches after pieces + [ending], one for each ending."""
    cache = None
    for piece in pieces:
        _, cache = attention(piece, cache)
    return [attention(ending, cache)[1] for ending in endings]


# %% part="attention"
# Written? `autograder check 13_key_value_cache` shows how you are doing.

# %% [markdown]
# The picture reads one text of twelve words in pieces of 1, 2, 3, … words and compares each output with the
# output for the whole text. It should be dark everywhere. Where it glows, look at which pieces are wrong: the
# first, all later ones, or only those of more than one word?

# %% picture="attention"
# The notebook draws a picture of your own code here.

# %% [markdown]
# ## Part 3 · Writing without looking back
#
# About 14 minutes, ●●○ (difficulty 2 of 3)
#
# Now the cache earns its keep. The first call reads the prompt as a whole and fills the cache (*prefill*). From
# then on, the model gets **one word at a time**, the one that it has just written, together with the cache.
#
# Here is a small language model made of your attention. Read it; there is nothing to write. Notice two things. Each
# layer has a cache of its own, since a word has a different vector in each layer. And the **positions keep
# counting**: the new word is not at position 0, although it comes alone, but at position `past`. (With rotary
# positions it is the same: the new query and key are rotated by their true position, and the keys in the cache were
# rotated when they went in.) Forget this, and every shape is still right, but the text is a different one.


# %%
class SmallGPT(nn.Module):
    """model(ids (B, T), cache) -> the logits (B, T, V) and the new cache. Given; it is not trained."""

    def __init__(self, vocab_size: int, d_model: int, n_heads: int, n_layers: int, max_len: int) -> None:
        super().__init__()
        self.token_embed = nn.Embedding(vocab_size, d_model)
        self.pos_embed = nn.Embedding(max_len, d_model)
        self.attentions = nn.ModuleList(CachedAttention(d_model, n_heads) for _ in range(n_layers))
        self.norms = nn.ModuleList(nn.LayerNorm(d_model) for _ in range(n_layers))
        self.fc = nn.Linear(d_model, vocab_size)

    def forward(self, ids: Tensor, cache: list | None = None) -> tuple[Tensor, list]:
        past = 0 if cache is None else cache[0][0].shape[2]
        positions = torch.arange(past, past + ids.shape[1])                             # (T,)
        x = self.token_embed(ids) + self.pos_embed(positions)                           # (B, T, C)
        new_cache = []
        for layer, (norm, attention) in enumerate(zip(self.norms, self.attentions, strict=True)):
            attended, kept = attention(norm(x), None if cache is None else cache[layer])
            x = x + attended                                                            # (B, T, C)
            new_cache.append(kept)
        return self.fc(x), new_cache


# %% [markdown]
# To keep chance out of it, we always take the most likely word (*greedy* decoding). Your function works for any
# model that is called like this one, and what its cache looks like inside is the model's own business: take it,
# and hand it back.
#
# **One number by hand.** Suppose a model always predicts the last digit of the sum of all words so far. The prompt is
# `1 2 3`. The calls are `model([1 2 3], None)`, which predicts 6; `model([6], cache)`, which predicts 2, since
# $1+2+3+6 = 12$; `model([2], cache)`, which predicts 4. With three new words the result is `1 2 3 6 2 4`.
#
# **To think about.** What would the same model predict if it got `1 2 3 6` *and* the cache?


# %%
@torch.no_grad()
def generate(model: nn.Module, ids: Tensor, max_new_tokens: int) -> Tensor:
    """Continue each row of ids by max_new_tokens words, always taking the most likely one.

    model: `model(ids, cache)` returns logits (B, T, V) and the cache for the next call. There is no cache at the first
    call: pass None, or nothing. It need not be your own model, so use nothing inside its cache.
    Its mode, training or eval, is the caller's business: afterwards it is what it was before.
    ids: (B, T), T >= 1; they keep their values. Returns (B, T + max_new_tokens): ids, and the new words after them.
    The model reads every word once: first the prompt, however long, then the newest word alone, with the newest
    cache. (The very last word need not be read, as nothing follows it; it does no harm if it is.)
    Nothing is kept from one call of generate to the next.
    Example: a model that predicts the last digit of the sum of all words so far continues 1 2 3 by 6 2 4.
    """
    # TODO: as often as asked: pass what the model has not read yet, and its cache      # (B, T or 1, V)
    # TODO: ... the most likely word after the last one, for each row; append it        # (B, T + 1)
    raise NotImplementedError("generate is not written yet.")


# %% part="writing"
# Written? `autograder check 13_key_value_cache` shows how you are doing.

# %% [markdown]
# Is it worth it? We let the same model write the same text twice. The second time your function is asked for one word
# at a time, each time with the whole text as its prompt; so every call begins with an empty cache and has to read
# everything again, as the mini GPT did.


# %%
def generate_and_forget(model: nn.Module, ids: Tensor, max_new_tokens: int) -> Tensor:
    """The same text, but the cache is thrown away after each word."""
    for _ in range(max_new_tokens):
        ids = generate(model, ids, 1)                                                   # (B, T + 1)
    return ids


if __name__ == "__main__":
    torch.manual_seed(7)
    model = SmallGPT(vocab_size=1000, d_model=128, n_heads=4, n_layers=2, max_len=128)
    model.double()  # so that no word depends on the last digit
    prompt, texts = torch.randint(1000, (1, 8)), []                                     # (1, 8)
    for write in (generate, generate_and_forget):
        begin = time.perf_counter()
        texts.append(write(model, prompt, 120))                                         # (1, 128)
        print(f"{write.__name__:>19}: 120 words in {time.perf_counter() - begin:5.2f} seconds")
    print("The same text:", "yes" if torch.equal(*texts) else "NO")

# %% [markdown]
# The last picture measures your attention live, on this machine. On the left is the time for one more word, with
# and without the cache: one curve climbs more and more steeply, the other hardly leaves the ground. (It does rise,
# because the new word still attends to the whole cache.) On the right is the price.

# %% picture="writing"
# The notebook draws a picture of your own code here.

# %% [markdown]
# ## Part 4 · Heads that share
#
# About 34 minutes, ●●○ (difficulty 2 of 3)
#
# Nothing is free. The time that we save is paid for in memory. Each of $L$ layers keeps, for each of $S$ words, one
# key and one value in each of $G$ heads, $D$ numbers each:
#
# $$\text{bytes} = 2 \cdot L \cdot G \cdot D \cdot S \cdot \text{bytes per number}$$
#
# **One number by hand.** Llama 2 in its size of 7 billion has 32 layers and 32 heads of 128 numbers, and keeps them
# in 2 bytes each. A text of 4,096 words costs $2 \cdot 32 \cdot 32 \cdot 128 \cdot 4096 \cdot 2 =
# 2{,}147{,}483{,}648$ bytes: two gibibytes, for one user. Seven users at a time need more memory for their caches
# than the model does for all its weights.
#
# Which factor of this product could be smaller? Layers, width and length are what we want a model for. That leaves
# the number of heads that are *kept*. Every head needs a query of its own, since heads exist to ask different
# questions, and queries are not kept, so they cost nothing here. But must each head have a key and a value of its
# own, too? In **grouped-query attention** the `H` heads that ask are divided into `G` groups of neighbours, and the
# heads of a group search the same keys and read the same values:
#
# ```
#  head that asks      0   1   2   3   4   5
#                      └─┬─┘   └─┬─┘   └─┬─┘
#  key and value         0       1       2        H = 6, G = 3
# ```
#
# With $G = H$ this is the attention of Part 2. With $G = 1$ all heads share one key and one value: *multi-query
# attention*, the smallest cache of all, which cost some models a little quality. Most models choose a number between.
#
# | model | layers | heads that ask, $H$ | heads that are kept, $G$ | $D$ | cache of 1,000 words |
# |---|---|---|---|---|---|
# | GPT-2 small | 12 | 12 | 12 | 64 | 37 MB |
# | Falcon 7B | 32 | 71 | 1 | 64 | 8 MB |
# | Llama 2 7B | 32 | 32 | 32 | 128 | 524 MB |
# | Llama 2 70B | 80 | 64 | 8 | 128 | 328 MB |
# | Llama 3.1 8B | 32 | 32 | 8 | 128 | 131 MB |
#
# The largest of these models has a smaller cache than one a tenth of its size. (A megabyte, MB, is a million bytes;
# all numbers are kept in 2 bytes.)
#
# **What changes in the code?** Three things. The layers `key` and `value` become narrower: they make `G · D` numbers of
# each word, and `D` is still `d_model / n_heads`. The cache holds `G` heads, not `H`. And just before the scores, each
# kept head is lent to all heads of its group. *After* it has gone into the cache: if you keep the copies, you have saved
# nothing.
#
# **One number by hand.** With `d_model = 20`, `n_heads = 4` and `n_kv_heads = 2`, `key.weight` is `(10, 20)`. Five
# words leave keys and values of shape `(1, 2, 5, 5)` each, 100 numbers together and not 200. Heads 0 and 1 use kept
# head 0, heads 2 and 3 use kept head 1.
#
# (Recent versions of PyTorch lend the heads by themselves if you ask for it, with `enable_gqa=True`. Write the line
# yourself first, then see whether both agree.)
#
# **To think about.** The second text in a batch begins with the same thousand words as the first, word for word. What
# else could be shared?


# %%
def cache_bytes(n_layers: int, n_kv_heads: int, d_head: int, length: int, bytes_per_number: int) -> int:
    """How many bytes the keys and values of one text of `length` words take in all layers, a whole number.

    n_kv_heads: the heads that are kept in each layer, G. d_head: the numbers in a head, D.
    Example: cache_bytes(32, 32, 128, 4096, 2) is 2,147,483,648.
    """
    # TODO: the formula above
    raise NotImplementedError("cache_bytes is not written yet.")


class GroupedQueryAttention(nn.Module):
    """Causal attention with a cache, in which n_heads heads ask and n_kv_heads keys and values are kept.

    `query`, `proj`: two `nn.Linear(d_model, d_model, bias=False)`, as in `CachedAttention`.
    `key`, `value`: two `nn.Linear(d_model, n_kv_heads · D, bias=False)`, D = d_model / n_heads.
    Kept head g works with the features g·D up to (g+1)·D - 1 of keys and values; head h of the queries uses kept head
    h // (n_heads / n_kv_heads).
    Raises ValueError that names d_model and n_heads and their values if n_heads does not divide d_model, and
    ValueError that names n_heads and n_kv_heads and their values if n_kv_heads does not divide n_heads.

    forward: as in `CachedAttention`, but both parts of the cache are (B, n_kv_heads, S, D).
        The old entries stay exactly as they were, and the cache that comes in keeps its values. Scores are divided by
        √D. Nothing is detached, all is the same in training and in eval, and out and cache have the module's number
        type.
    Example: GroupedQueryAttention(20, 4, 4) computes what CachedAttention(20, 4) with the same weights computes.
    """

    def __init__(self, d_model: int, n_heads: int, n_kv_heads: int) -> None:
        super().__init__()
        # TODO: refuse what does not divide; store what forward needs; the four layers, two of them narrow
        raise NotImplementedError("GroupedQueryAttention.__init__ is not written yet.")

    def forward(
        self, x: Tensor, cache: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        # TODO: queries in n_heads heads, keys and values in n_kv_heads                 # (B, H, T, D), (B, G, T, D)
        # TODO: the old keys and values and the new ones behind them, as in Part 2      # (B, G, S, D)
        # TODO: lend each kept head to all heads of its group, and attend               # (B, H, T, D)
        # TODO: concatenate the heads, the last layer; and return what is kept          # (B, T, C)
        raise NotImplementedError("GroupedQueryAttention.forward is not written yet.")


# %% part="groups"
# Written? `autograder check 13_key_value_cache` shows how you are doing.

# %% [markdown]
# The first picture shows whose keys each head searches, found out by changing one kept head after the other in a cache.
# The rows of a group should be filled in one column. The second draws your `cache_bytes` for the models of the table,
# each up to the longest text that it was made for.

# %% picture="groups"
# The notebook draws a picture of your own code here.

# %% [markdown]
# There are more ways to a smaller cache: keep the numbers in one byte, forget what lies too far back, or keep one
# short vector for each word, from which the keys and values of all heads are computed again (*latent attention*). And
# a model that was trained without groups can be converted: 04's `harder.py` asks how.
#
# ## Part 5 · Attention in blocks
#
# About 31 minutes, ●●● (difficulty 3 of 3)
#
# A cache saves work, and groups make it small. One thing still grows with the *square* of the text: the table of
# scores. A prompt of 100,000 words has ten billion of them in each head. No machine keeps such a table, and none has
# to. **FlashAttention** and its relatives read the keys in **blocks** of a few at a time, and forget the scores of a
# block before they read the next.
#
# The difficulty is the softmax: it divides by a sum over *all* keys, and you see them block by block. So keep three
# things for each query while the blocks go by:
#
# | | what it is | at the start |
# |---|---|---|
# | $m$ | the largest score so far | $-\infty$ |
# | $l$ | the sum of $e^{\text{score} - m}$ so far | 0 |
# | $o$ | the sum of $e^{\text{score} - m} \cdot$ value so far | 0 |
#
# When a block brings a larger score, $m$ grows, and what lies in $l$ and $o$ was computed with the old $m$. That is
# mended with one factor: multiply both by $e^{m_\text{old} - m_\text{new}}$, and then add what the block brings. At the
# end, $o / l$ is the output, exactly that of the whole table. This is the **online softmax**. The largest score is
# subtracted for the same reason as in every softmax: $e^{100}$ is more than float32 can hold, and scores of thousands
# do occur.
#
# **One number by hand.** One query has the scores ln 1, ln 3 and ln 6, and the values are 10, 20 and 30. In blocks of
# two, the first brings $m = \ln 3$, $l = 1/3 + 1 = 4/3$ and $o = 10/3 + 20 = 70/3$. The second has $m = \ln 6$, so both
# are halved, to $l = 2/3$ and $o = 35/3$; then it adds 1 and 30, which makes $l = 5/3$ and $o = 125/3$. The output is
# 25, as it should be: $(1 \cdot 10 + 3 \cdot 20 + 6 \cdot 30) / 10$.
#
# Masks need care in two places. A query may be forbidden **every key of its first block**: then $m$ is still $-\infty$,
# and $-\infty - (-\infty)$ is no number. And a query that may attend to **nothing at all** ends with $l = 0$; its
# output is zeros, not $0 / 0$.
#
# **What is saved?** First of all memory: only $T \cdot \text{block}$ scores exist at any time. And time as well: a
# processor computes so fast that it mostly waits for numbers to travel between it and the large, slow memory, so
# those journeys are worth counting. The whole table: read $Q$ and $K$, write the scores; read them, write the
# weights; read these and $V$, write the output. In blocks: read $K$ and $V$ once; and for each block, read $Q$, and
# read and write $o$, $m$ and $l$. With values as wide as keys, that is
#
# $$(2TD + 2SD + 4TS) \cdot b \qquad\text{and}\qquad
#   \left(2SD + \lceil S / \text{block} \rceil \cdot (3TD + 4T)\right) \cdot b$$
#
# bytes for $b$ bytes a number. (The scores of one block fit into the small, fast memory beside the processor. How many
# do decides the size of a block.)
#
# **One number by hand.** With $T = 4$, $S = 6$, $D = 2$, $b = 2$ and blocks of 3, the whole table moves
# $(16 + 24 + 96) \cdot 2 = 272$ bytes, and two blocks move $(24 + 2 \cdot (24 + 16)) \cdot 2 = 208$. In a real size,
# $T = S = 4096$, $D = 128$, blocks of 512 and 2 bytes a number, it is 138 million bytes against 28 million.
#
# **To think about.** In that real size, blocks of 64 move *more* than the whole table does. Why, and why would one
# still want them?


# %%
def blockwise_attention(q: Tensor, k: Tensor, v: Tensor, block: int, mask: Tensor | None = None) -> Tensor:
    """Attention that reads its keys and values in blocks of `block`, from the first to the last; the last may be shorter.

    q: (..., T, D) queries; k: (..., S, D) keys; v: (..., S, E) values, with the same leading dimensions: none, a batch,
    or a batch and heads. Scores are divided by √D.
    mask: booleans that broadcast to (..., T, S), such as (T, S), (S,) or (T, 1), True where t may attend to s; None
    allows everything.

    Returns the output (..., T, E), the same for every block size. A query that may attend to nothing gets zeros, and so
    does every query if S is 0. Scores of ±10,000 do no harm, and gradients flow back to q, k and v. The inputs keep
    their values, and the output has their number type (float32, float64).
    No tensor that is made on the way is larger than the largest of the inputs, the output and (..., T, block).
    Raises ValueError that names block and its value if it is below 1.
    Example: scores of ln 1, ln 3 and ln 6 and values of 10, 20 and 30 give 25.
    """
    # TODO: refuse a block below 1
    # TODO: m, l and o for every query, as in the table                                 # (..., T, 1) and (..., T, E)
    # TODO: for each block: its scores, and its columns of the mask, or the only one    # (..., T, block)
    # TODO: ... the new m; l and o brought to it; and what the block adds to both
    # TODO: the output; zeros where nothing was added                                   # (..., T, E)
    raise NotImplementedError("blockwise_attention is not written yet.")


def bytes_moved(T: int, S: int, D: int, block: int, bytes_per_number: int) -> tuple[int, int]:
    """The bytes that go from and to the large memory: with the whole table, and in blocks. Two whole numbers.

    Values have D numbers, as keys do.
    Example: bytes_moved(4, 6, 2, 3, 2) -> (272, 208)
    """
    # TODO: both formulas; a last block that is shorter is a block, too
    raise NotImplementedError("bytes_moved is not written yet.")


# %% part="blocks"
# Written? `autograder check 13_key_value_cache` shows how you are doing.

# %% [markdown]
# On the left, the output of one query while your function reads more and more keys: it wanders, and ends on the dashed
# line, where attention with the whole table is. On the right, what your `bytes_moved` says about the size of the block.

# %% picture="blocks"
# The notebook draws a picture of your own code here.

# %% [markdown]
# ## Look back
#
# A dozen lines of code have made writing faster, by a factor that grows with the text. Nothing is approximated: the
# outputs are the same. It works because of three things that you have met before: the causal mask, which makes the
# past unchangeable; attention, which works for any number of keys and values; and positions that are added once
# and never change. Another dozen have removed the largest table of all, and again nothing is approximated.
#
# **One question to take along:** the cache is full, and you throw away the key and value of the very first word to
# make room. Are the others still what they would be had that word never been there? (Think of a model with more
# than one layer.)
#
# ## Read on
#
# - Noam Shazeer, *Fast Transformer Decoding: One Write-Head is All You Need* (2019): why writing one word at a time
#   is slow even with a cache (look for "memory bandwidth"), and what happens when all heads share one key and value.
#   The "one write-head" of its title is our $G = 1$.
# - Joshua Ainslie and others, *GQA: Training Generalized Multi-Query Transformer Models from Multi-Head Checkpoints*
#   (2023): the compromise. Look at the drawing of multi-head, grouped-query and multi-query attention side by side,
#   and at how little training turns a finished model into a grouped one.
# - Woosuk Kwon and others, *Efficient Memory Management for Large Language Model Serving with PagedAttention* (2023):
#   look at the figure that shows where a GPU's memory goes, and at how two continuations share one beginning.
# - Guangxuan Xiao and others, *Efficient Streaming Language Models with Attention Sinks* (2023): an answer to the last
#   question. Look for what happens when the very first words are thrown away.
# - Maxim Milakov and Natalia Gimelshein, *Online normalizer calculation for softmax* (2018): four pages about $m$ and
#   $l$. Look for the algorithm with one pass fewer, and compare it with your loop.
# - Markus Rabe and Charles Staats, *Self-attention Does Not Need O(n²) Memory* (2021): the same with $o$. Look for the
#   short program, and find your three lines in it.
# - Tri Dao and others, *FlashAttention: Fast and Memory-Efficient Exact Attention with IO-Awareness* (2022): why moving
#   fewer bytes is what makes it fast. Look for the drawing of the memories and their speeds.
