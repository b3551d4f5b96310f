# %% [markdown]
# # 08 · Encoder and decoder
#
# ```
#  the next word         07 trained, and writing
#        ↑               18 what it costs
#        ↑               16 taught what people prefer
#        ↑               14 fine-tuned
#        ↑               15 trained well
# ┌──────────────┐       06 all of it, counted
# │              │       05 the whole block
# │ feed-forward │     ▶ 08 one that reads a second text
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
# So far there was only one sentence at a time. An encoder reads it and understands each word among its
# neighbours; a language model continues it word by word. To translate, a model has to read **one** sentence and
# write **another**. Neither half can do that alone: the encoder cannot write, and the decoder has not seen the
# letter it is supposed to answer.
#
# The first Transformer was built for exactly this. Here is its plan, for a sentence we will follow all the way:
#
# | | | |
# |---|---|---|
# | the **encoder** reads | *I love you* | all at once; every word attends to every word |
# | it leaves a **memory** | three vectors, one for each word it read | computed once, then only looked up |
# | the **decoder** writes | *Je*, *t'*, *aime* | one word after the other, looking back at the memory |
#
# Note the crossing: *aime* is written last but belongs to *love*, and *t'* is written before it but belongs
# to *you*. The decoder must be able to look anywhere in the memory, and somewhere else for each word. That
# look is called **cross-attention**, and it is the one new part of this assignment.
#
# You build it (Part 1), put it into a decoder block (Part 2), join encoder and decoder into a translator
# (Part 3) and let it write (Part 4). At the end you train your translator to spell words backwards, which
# takes less than a minute, and watch it find out where to look.
#
# Letters for shapes: `B` sentences in a batch, `T` words that are written (the target), `S` words that were read
# (the source), `C` numbers in a word vector (`d_model`), `H` heads with `D = C / H` numbers each, `V` words in
# the vocabulary. `T` and `S` may be any lengths. What earlier assignments taught is given here by PyTorch's own
# layers; `nn.LayerNorm` keeps PyTorch's default `eps`.
#
# **Not here.** No real language is translated, because that takes millions of sentences; your translator learns
# to spell words backwards.
#
# The names of functions, classes, attributes and arguments are part of the contract: the tests use them.

# %%
import torch
import torch.nn.functional as F
from torch import Tensor, nn

# %% [markdown]
# ## Part 1 · Cross-attention
#
# About 22 minutes, ●●●
#
# In self-attention, query, key and value all come from the same sentence. In cross-attention two sentences
# meet. In the school for words, a door opens to the room next door: the *questions* (queries) are asked by the words that
# are being written here, and the *answers* (keys and values) come from the words that were read over there. Those have
# all been spoken, so a word may listen to any of them.
#
# $$Q = Y W_Q + b_Q \qquad K = M W_K + b_K \qquad V = M W_V + b_V$$
#
# $Y$ is the decoder's stream, one vector for each word that is **written**. $M$ is the memory, one vector for
# each word that was **read**. Everything after that is multi-head attention as you know it: head $h$ works
# with the features from $hD$ up to $(h+1)D$, the heads' outputs are concatenated, and a last layer mixes
# them:
#
# $$\text{out} = \text{concat}_h\Bigl(\operatorname{softmax}\bigl(Q_h K_h^\top / \sqrt{D}\bigr)\,
# V_h\Bigr)\, W_P + b_P$$
#
# Look at the shapes. $Q_h$ is `(T, D)` and $K_h$ is `(S, D)`, so the attention weights form a table with a
# **row for each written** and a **column for each read** word, `(T, S)`. The two lengths have nothing to do
# with each other.
#
# **What must be masked?** Nothing in the memory lies in the future: the original is there as a whole, so there
# is no causal mask here. But the sentences of a batch have different lengths, and the shorter ones are padded.
# `memory_padding_mask` (B, S) is `True` where a slot of the memory is padding, and no query may attend to it.
#
# Scores, softmax and weighted sum are given: `F.scaled_dot_product_attention(q, k, v, attn_mask=…)` takes
# tensors `(B, H, T, D)`, `(B, H, S, D)`, `(B, H, S, D)`. Mind its mask: there, `True` means *may be attended
# to*, and its shape must be broadcastable to `(B, H, T, S)`.
#
# **One number by hand.** Take one head of width 1 whose four layers pass their input on unchanged. The query is
# $q = 1$; the memory holds $\ln 3$ and $0$. The scores are $\ln 3$ and $0$, their exponentials 3 and 1, so
# the output is $\tfrac34 \ln 3 + \tfrac14 \cdot 0 = 0.8240$. With the first slot padded, it is 0.
#
# **To think about.** Shuffle the words of the memory. What happens to the output, and why is the decoder still
# not blind to the order of the sentence that was read?


# %%
class CrossAttention(nn.Module):
    """Queries come from the written words, keys and values from the memory.

    `query`, `key`, `value`, `proj`: four `nn.Linear(d_model, d_model)`, with bias.
    By hand: neither `nn.MultiheadAttention` nor `F.multi_head_attention_forward`.
    Raises ValueError that names d_model and n_heads and their values if n_heads does not divide d_model.

    forward: y (B, T, C), memory (B, S, C) -> (B, T, C), in the number type of the module
        memory_padding_mask (B, S), True marks padding, which gets no attention; no sentence is all padding
        in training and in eval alike; none of the inputs is changed
    """

    def __init__(self, d_model: int, n_heads: int) -> None:
        super().__init__()
        # TODO: refuse a width that the heads do not divide; store the number of heads; the four layers
        ### BEGIN SOLUTION
        if d_model % n_heads != 0:
            raise ValueError(f"d_model = {d_model} cannot be shared by n_heads = {n_heads} heads.")
        self.n_heads = n_heads
        self.query = nn.Linear(d_model, d_model)
        self.key = nn.Linear(d_model, d_model)
        self.value = nn.Linear(d_model, d_model)
        self.proj = nn.Linear(d_model, d_model)
        ### END SOLUTION

    def forward(self, y: Tensor, memory: Tensor, memory_padding_mask: Tensor | None = None) -> Tensor:
        # TODO: queries, keys and values, each split into heads                         # (B, H, T or S, D)
        # TODO: the mask as F.scaled_dot_product_attention wants it                     # broadcastable to (B, H, T, S)
        # TODO: attend; concatenate the heads; the last layer                           # (B, T, C)
        ### BEGIN SOLUTION
        heads = (self.n_heads, -1)                                                      # C becomes H times D
        q = self.query(y).unflatten(-1, heads).transpose(1, 2)                          # (B, H, T, D)
        k = self.key(memory).unflatten(-1, heads).transpose(1, 2)                       # (B, H, S, D)
        v = self.value(memory).unflatten(-1, heads).transpose(1, 2)                     # (B, H, S, D)
        allowed = None
        if memory_padding_mask is not None:
            allowed = ~memory_padding_mask[:, None, None, :]                            # (B, 1, 1, S)
        attended = F.scaled_dot_product_attention(q, k, v, attn_mask=allowed)           # (B, H, T, D)
        return self.proj(attended.transpose(1, 2).flatten(-2))                          # (B, T, C)
        ### END SOLUTION


# %% part="cross"

# %% [markdown]
# The picture gives your layer our sentence, with weights chosen by hand so that each French word attends to its
# English partner. Reading French from top to bottom, the bright squares do not follow the diagonal: *t'* and
# *aime* cross. On the right the last slot of the memory is padding.

# %% picture="cross"

# %% [markdown]
# ## Part 2 · The decoder block
#
# About 17 minutes, ●●○
#
# A decoder block is an encoder block with one more sublayer. To find the next word, it
#
# 1. looks back at **what is already written** (self-attention; the future is hidden, it does not exist yet),
# 2. looks across at **what was read** (cross-attention; the memory, all of it),
# 3. and thinks about it, **each word on its own** (feed-forward).
#
# Each of the three has a residual connection around it and a layer norm behind it: post-norm, as in the first
# Transformer.
#
# $$a = \mathrm{LN}_1\bigl(y + \mathrm{SelfAttention}(y)\bigr)$$
# $$b = \mathrm{LN}_2\bigl(a + \mathrm{CrossAttention}(a, \text{memory})\bigr)$$
# $$\text{out} = \mathrm{LN}_3\bigl(b + \mathrm{FFN}(b)\bigr)$$
#
# The vectors that flow through these lines, from $y$ to the output, are the **residual stream**. The memory is
# not part of it and is never changed: it is a book on the desk. And look at the query in the second line: it
# is made from $a$, which has already looked back. First recall what you wrote, then decide what to look up.
#
# Self-attention is given, `nn.MultiheadAttention`. Its `attn_mask` (T, T) is the other way round than the
# mask in Part 1: here `True` in row t, column s means that word t may **not** attend to word s. (PyTorch has
# both conventions, side by side. Read the fine print each time.) It returns a pair, the output and the attention
# weights. Dropout acts on the output of each of the three sublayers before it is added, and only in training.
#
# **One number by hand.** Silence all three sublayers, so that each returns 0. What is left is
# LN₃(LN₂(LN₁(y))): for y = `[2, 2, 6, 6]` and fresh norms that is `[-1, -1, 1, 1]`.
#
# **To think about.** The block can read the whole memory from its very first word on. Why is that not
# cheating, while seeing the next *written* word would be?


# %%
class DecoderBlock(nn.Module):
    """Post-norm: self-attention, add, norm; cross-attention, add, norm; feed-forward, add, norm.

    `self_attention` and `ff` (given), `cross_attention` (CrossAttention), `norm1`, `norm2`, `norm3`
    (nn.LayerNorm with PyTorch's default eps), `dropout` (nn.Dropout; acts on each sublayer's output, before
    it is added). By hand, here and in the translator: neither `nn.TransformerDecoderLayer` nor
    `nn.TransformerDecoder`.

    forward: y (B, T, C), memory (B, S, C) -> (B, T, C), for any T and S, in the number type of the module
        memory_padding_mask (B, S), True marks padding in the memory
        written word t attends to the written words up to and including t, and to the whole memory,
        in training and in eval alike; none of the inputs is changed
    """

    def __init__(self, d_model: int, n_heads: int, d_ff: int, dropout: float = 0.1) -> None:
        super().__init__()
        self.self_attention = nn.MultiheadAttention(d_model, n_heads, dropout=dropout, batch_first=True)
        self.ff = nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model))
        # TODO: the cross-attention, one norm for each of the three sublayers, one dropout
        ### BEGIN SOLUTION
        self.cross_attention = CrossAttention(d_model, n_heads)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.norm3 = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)
        ### END SOLUTION

    def forward(self, y: Tensor, memory: Tensor, memory_padding_mask: Tensor | None = None) -> Tensor:
        # TODO: the causal mask, True where attending is forbidden                      # (T, T)
        # TODO: look back, then across, then feed forward: each time add, then norm     # (B, T, C)
        ### BEGIN SOLUTION
        T = y.shape[1]
        future = torch.ones(T, T, dtype=torch.bool, device=y.device).triu(1)            # (T, T)
        back, _ = self.self_attention(y, y, y, attn_mask=future, need_weights=False)    # (B, T, C)
        y = self.norm1(y + self.dropout(back))                                          # (B, T, C)
        across = self.cross_attention(y, memory, memory_padding_mask)                   # (B, T, C)
        y = self.norm2(y + self.dropout(across))                                        # (B, T, C)
        return self.norm3(y + self.dropout(self.ff(y)))                                 # (B, T, C)
        ### END SOLUTION


# %% part="block"

# %% [markdown]
# Two X-rays of your block. Left, how strongly each output reacts to the written words: the causal mask. Right,
# how strongly it reacts to the memory: everything is lit, from the first row on, except the padded slots.

# %% picture="block"

# %% [markdown]
# ## Part 3 · The translator
#
# About 21 minutes, ●●●
#
# Now both halves come together. The encoder is given, made of PyTorch's own layers. Both sides share one
# vocabulary and one table of word vectors, and both get learned positions; the method `embed` (given) does that.
#
# $$\text{memory} = \mathrm{Encoder}\bigl(\text{embed}(\text{src})\bigr) \qquad
# \text{logits} = \mathrm{Head}\Bigl(\mathrm{Block}_N\bigl(\dots\mathrm{Block}_1(\text{embed}(y), \text{memory})
# \dots, \text{memory}\bigr)\Bigr)$$
#
# Every block of the decoder gets the *same* memory, the output of the encoder's last layer. And the padding of
# the source matters twice: to every encoder layer while reading, to every decoder block while writing.
#
# **How it is trained.** The decoder predicts the next word from the words before it. During training we know
# them all, so we do not let it stumble over its own early mistakes: at each position it gets the *right* words
# so far and is asked for the next one. This is **teacher forcing**, and thanks to the causal mask all positions
# are asked at once. So the decoder's input is the target, moved one place to the right, with a special word in
# front that says *begin*:
#
# | | | | | |
# |---|---|---|---|---|
# | the decoder reads | `BOS` | *Je* | *t'* | *aime* |
# | it should predict | *Je* | *t'* | *aime* | `EOS` |
#
# `BOS` marks the beginning, `EOS` the end, and `PAD` fills up short rows. Forget the shift, and the decoder
# finds the answer in its own input: a splendid loss, and a model that can only repeat.
#
# **One number by hand.** With BOS = 1, the target row `[7, 8, 9, 2]` is read as `[1, 7, 8, 9]`.
#
# **To think about.** In training all T positions are computed at once, in writing one after the other. Which
# part of your block makes both give the same numbers?


# %%
def shift_right(targets: Tensor, bos_id: int) -> Tensor:
    """The decoder's input while it learns to predict the targets: BOS first, each word one place later.

    targets (B, T) whole numbers -> (B, T) of the same number type; the targets keep their values

    Example: shift_right([[7, 8, 9, 2], [5, 2, 0, 0]], bos_id=1) -> [[1, 7, 8, 9], [1, 5, 2, 0]]
    """
    # TODO: BOS in front; the last word drops out                                       # (B, T)
    ### BEGIN SOLUTION
    begin = torch.full_like(targets[:, :1], bos_id)                                     # (B, 1)
    return torch.cat([begin, targets[:, :-1]], dim=1)                                   # (B, T)
    ### END SOLUTION


class Translator(nn.Module):
    """Reads one sentence, writes another.

    Given: `token_embedding` and `position_embedding`, shared by both sides, and `encoder`, an nn.ModuleList
    of n_layers post-norm layers. Yours: `decoder`, an nn.ModuleList of n_layers DecoderBlocks that share
    no parameters, and `head`, an nn.Linear (with bias) from d_model to vocab_size. Nothing else has
    parameters. Padding gets no attention, in training and in eval alike.
    """

    def __init__(
        self,
        vocab_size: int,
        d_model: int,
        n_heads: int,
        n_layers: int,
        d_ff: int,
        max_len: int,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.token_embedding = nn.Embedding(vocab_size, d_model)
        self.position_embedding = nn.Embedding(max_len, d_model)
        self.encoder = nn.ModuleList(
            nn.TransformerEncoderLayer(d_model, n_heads, d_ff, dropout, batch_first=True)
            for _ in range(n_layers)
        )
        # TODO: the decoder's blocks, with the same dropout, and the head
        ### BEGIN SOLUTION
        self.decoder = nn.ModuleList(
            DecoderBlock(d_model, n_heads, d_ff, dropout) for _ in range(n_layers)
        )
        self.head = nn.Linear(d_model, vocab_size)
        ### END SOLUTION

    def embed(self, ids: Tensor) -> Tensor:
        """Given: ids (B, T) -> word plus position (B, T, C). Raises ValueError if T > max_len."""
        T, max_len = ids.shape[1], self.position_embedding.num_embeddings
        if T > max_len:
            raise ValueError(f"A sentence of {T} words is longer than max_len = {max_len}.")
        return self.token_embedding(ids) + self.position_embedding.weight[:T]

    def encode(self, src: Tensor, src_padding_mask: Tensor | None = None) -> Tensor:
        """src (B, S) ids, src_padding_mask (B, S) with True for padding -> memory (B, S, C).

        An encoder layer takes the mask as `layer(x, src_key_padding_mask=…)`, the same way round.
        """
        # TODO: embed, then every encoder layer in turn                                 # (B, S, C)
        ### BEGIN SOLUTION
        x = self.embed(src)                                                             # (B, S, C)
        for layer in self.encoder:
            x = layer(x, src_key_padding_mask=src_padding_mask)                         # (B, S, C)
        return x
        ### END SOLUTION

    def decode(self, y: Tensor, memory: Tensor, memory_padding_mask: Tensor | None = None) -> Tensor:
        """y (B, T) ids, BOS first, and memory (B, S, C) -> logits (B, T, V) for the word after each position."""
        # TODO: embed, then every block in turn, each with the memory; the head         # (B, T, V)
        ### BEGIN SOLUTION
        x = self.embed(y)                                                               # (B, T, C)
        for block in self.decoder:
            x = block(x, memory, memory_padding_mask)                                   # (B, T, C)
        return self.head(x)                                                             # (B, T, V)
        ### END SOLUTION

    def forward(self, src: Tensor, y: Tensor, src_padding_mask: Tensor | None = None) -> Tensor:
        """Given: both in one go, for training.  (B, S), (B, T) -> logits (B, T, V)"""
        memory = self.encode(src, src_padding_mask)
        return self.decode(y, memory, src_padding_mask)


# %% part="translator"

# %% [markdown]
# The picture trains a tiny copy of your translator for a moment, on words of five letters that must come out
# backwards, and asks in between: *when I cover this letter of the source with my thumb, how much does the
# probability of the right letter fall?* At first nothing matters. Then the anti-diagonal appears: the first
# written letter depends on the last one read.

# %% picture="translator"

# %% [markdown]
# ## Part 4 · Greedy decoding
#
# About 20 minutes, ●●●
#
# When the model writes on its own, there are no right words to give it. It must use its own output: begin with
# BOS, take the most likely next word, append it, ask again. Taking the single most likely word each time is
# called **greedy** decoding.
#
# | the decoder reads | the most likely next word |
# |---|---|
# | `BOS` | *Je* |
# | `BOS` *Je* | *t'* |
# | `BOS` *Je* *t'* | *aime* |
# | `BOS` *Je* *t'* *aime* | `EOS`, the end |
#
# The model returns logits for every position of `y`; only those of the last one are new. Four things need care.
#
# - **The encoder runs once.** The source does not change while we write, so neither does the memory.
# - **Every row ends on its own.** In a batch one row may be done after two words and its neighbour after
#   nine. A row that has said EOS gets PAD from then on, whatever the model predicts; when all are done, or each
#   has `max_len` words, we stop. Nothing but EOS ends a row: should the model predict PAD or BOS before it, that
#   is a word like any other.
# - **The source's padding** is where `src` is `pad_id`. Encoder and decoder both need to know.
# - **This is an exam, not a lesson.** The model is in eval mode, without gradients, and afterwards it is
#   back in the mode it came in.
#
# **One number by hand.** Two rows are written, `7 EOS` and `4 5 6 EOS`, with EOS = 2 and PAD = 0. The
# result is `[[7, 2, 0, 0], [4, 5, 6, 2]]`: no BOS, every EOS, no column more than the longest row needs.
# With `max_len=3` it is `[[7, 2, 0], [4, 5, 6]]`.
#
# **To think about.** The most likely first word need not begin the most likely *sentence*. How could you
# search for a better one? (The usual answer is called beam search.)


# %%
def greedy_decode(
    model: nn.Module, src: Tensor, bos_id: int, eos_id: int, pad_id: int, max_len: int
) -> Tensor:
    """Writes an output for each row of src, always taking the most likely next word.

    model: anything with `encode(src, src_padding_mask)` and `decode(y, memory, memory_padding_mask)`, as
        Translator has them; encode is called once. It runs in eval mode and without gradients; afterwards
        it is back in the mode it came in.
    src (B, S), filled up with pad_id -> (B, L) whole numbers: each row is what was written, its EOS, then PAD.
        The BOS in front is not part of it. L is the length of the longest row with its EOS, and never more
        than max_len. Only EOS, that is eos_id, ends a row. src keeps its values.
    Raises ValueError that names max_len and its value if it is below 1.
    """
    # TODO: refuse; remember the model's mode and change it; encode once                # (B, S, C)
    # TODO: decode, take the best word of the last position, append; until all are done  # (B, 1 + L)
    # TODO: restore the mode; what was written, without BOS                             # (B, L)
    ### BEGIN SOLUTION
    if max_len < 1:
        raise ValueError(f"max_len must be at least 1, but it is {max_len}.")
    was_training = model.training
    model.eval()
    with torch.no_grad():
        padding = src == pad_id                                                         # (B, S)
        memory = model.encode(src, padding)                                             # (B, S, C)
        y = torch.full_like(src[:, :1], bos_id)                                         # (B, 1)
        done = torch.zeros_like(y, dtype=torch.bool)                                    # (B, 1)
        for _ in range(max_len):
            logits = model.decode(y, memory, padding)                                   # (B, T, V)
            best = logits[:, -1:].argmax(dim=-1).masked_fill(done, pad_id)              # (B, 1)
            y = torch.cat([y, best], dim=1)                                             # (B, T + 1)
            done = done | (best == eos_id)                                              # (B, 1)
            if done.all():
                break
    model.train(was_training)
    return y[:, 1:]                                                                     # (B, L)
    ### END SOLUTION


# %% part="greedy"

# %% [markdown]
# Your decoder at work, with a made-up translator that is never quite sure. Each column is one step: the words that
# the model has read, the probability of each next word, and the word that was taken.

# %% picture="greedy"

# %% [markdown]
# ## Let it learn
#
# All parts are there, so let us train a translator. French needs millions of sentences; spelling words backwards
# needs only an alphabet, and it is a translation all the same: another order, another length (an EOS is added),
# and the decoder has to look at the right place each time. We train on random letters, 2 to 10 at a time, so the
# model cannot know a single English word. Then we ask it for some.

# %% tags=["hide-input"]
PAD, BOS, EOS = 0, 1, 2
LETTERS = "abcdefghijklmnopqrstuvwxyz"
LONGEST = 10


def to_ids(words: list[str]) -> Tensor:
    """Words as rows of ids, filled up with PAD.  -> (B, S)"""
    rows = [torch.tensor([3 + LETTERS.index(letter) for letter in word]) for word in words]
    return nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=PAD)


def to_words(ids: Tensor) -> list[str]:
    """Rows of ids as words; everything that is not a letter is left out."""
    return ["".join(LETTERS[i - 3] for i in row if i >= 3) for row in ids.tolist()]


def random_letters(B: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """B words of random letters, and each spelled backwards with an EOS.  -> (B, S), (B, S + 1)"""
    lengths = torch.randint(2, LONGEST + 1, (B, 1), generator=generator)                # (B, 1)
    columns = torch.arange(LONGEST)                                                     # (S,)
    letters = torch.randint(3, 3 + len(LETTERS), (B, LONGEST), generator=generator)     # (B, S)
    src = letters.masked_fill(columns >= lengths, PAD)                                  # (B, S)
    backwards = src.gather(1, (lengths - 1 - columns).clamp(min=0))                     # (B, S)
    backwards = backwards.masked_fill(columns >= lengths, PAD)
    targets = F.pad(backwards, (0, 1), value=PAD).scatter(1, lengths, EOS)              # (B, S + 1)
    return src, targets


# %% [markdown]
# One training step: letters are drawn, the decoder reads the targets shifted to the right, and every position is
# asked for its next letter. Padding does not count (`ignore_index`).


# %% tags=["hide-input"]
def training_step(model: nn.Module, optimizer: torch.optim.Optimizer, generator: torch.Generator) -> float:
    """One step of training on 128 fresh words; returns the loss."""
    src, targets = random_letters(128, generator)                                       # (B, S), (B, T)
    logits = model(src, shift_right(targets, BOS), src == PAD)                          # (B, T, V)
    loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=PAD)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def thumb_test(model: nn.Module, word: str) -> Tensor:
    """How much the probability of the right letter t falls when letter s of the word is covered.  -> (T, S)"""
    src = to_ids([word])                                                                # (1, S)
    S = src.shape[1]
    targets = torch.cat([src.flip(1), torch.tensor([[EOS]])], dim=1)                    # (1, T)
    with torch.no_grad():
        memory = model.encode(src).expand(S + 1, -1, -1)                                # (S + 1, S, C)
        covered = torch.eye(S, dtype=torch.bool)                                        # (S, S)
        covered = torch.cat([torch.zeros(1, S, dtype=torch.bool), covered])             # (S + 1, S)
        y = shift_right(targets, BOS).expand(S + 1, -1)                                 # (S + 1, T)
        probabilities = model.decode(y, memory, covered).softmax(dim=-1)                # (S + 1, T, V)
    expected = targets.expand(S + 1, -1).unsqueeze(-1)                                  # (S + 1, T, 1)
    right = probabilities.gather(-1, expected).squeeze(-1)                              # (S + 1, T)
    return (right[:1] - right[1:]).T[:S]                                                # (S, S)


# %%
if __name__ == "__main__":
    from autograder.notebook import watch_training

    torch.set_num_threads(1)  # for matrices this small, a second core only costs time
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(1)
    translator = Translator(
        vocab_size=3 + len(LETTERS), d_model=64, n_heads=4, n_layers=1, d_ff=128, max_len=LONGEST + 1
    )
    optimizer = torch.optim.Adam(translator.parameters(), lr=2e-3)
    steps, losses, alignments = 600, [], {}
    watch = watch_training(steps)
    for step in range(steps):
        if step in (0, 60, 150):
            alignments[step] = thumb_test(translator, "attention")
        losses.append(training_step(translator, optimizer, generator))
        if (step + 1) % 20 == 0:
            watch(step + 1, losses[-1])
    alignments[steps] = thumb_test(translator, "attention")

# %% [markdown]
# It has never seen an English word. Does it spell these backwards?

# %%
if __name__ == "__main__":
    words = ["je", "love", "memory", "decoder", "attention", "crossroads"]
    written = greedy_decode(translator, to_ids(words), BOS, EOS, PAD, max_len=LONGEST + 1)
    for word, backwards in zip(words, to_words(written)):
        print(f"{word:>12} → {backwards:<12} {'✓' if backwards == word[::-1] else '✗'}")

    src, targets = random_letters(1000, generator)
    written = greedy_decode(translator, src, BOS, EOS, PAD, max_len=LONGEST + 1)
    written = F.pad(written, (0, targets.shape[1] - written.shape[1]), value=PAD)
    print(f"of 1000 new words {(written == targets).all(dim=1).sum()} are right to the last letter")

# %% [markdown]
# The loss, and how the translator found out where to look. Nobody told it that the first letter to write is
# the last one it read. It found the anti-diagonal because that is where the answers were. (Two squares stay
# pale: cover one *t* of the double *t*, and its twin beside it still gives the answer away.)

# %%
if __name__ == "__main__":
    import matplotlib.pyplot as plt

    figure, (curve, *maps) = plt.subplots(1, 1 + len(alignments), figsize=(11, 3.2), layout="constrained")
    curve.plot(losses, color="#0072B2")
    curve.set(title="The loss", xlabel="step", ylabel="cross-entropy")
    for axes, (step, alignment) in zip(maps, alignments.items()):
        axes.imshow(alignment, cmap="Blues", vmin=0, vmax=1)
        axes.set_xticks(range(9), "attention")
        axes.set_yticks(range(9), "noitnetta")
        axes.set(title=f"after {step} steps", xlabel="letter covered")
    maps[0].set_ylabel("letter written")
    plt.show()

# %% [markdown]
# ## Harder: how good is a translation?
#
# Not graded; about 35 minutes, ●●○.
# The table of results in *Attention Is All You Need* measures translations with
# BLEU. The file `harder.py` beside this one asks for it, by hand, in two functions of about ten lines each. Run
# `python harder.py`: it checks what you write there and says in sentences what is missing.
#
# ## Look back
#
# You now know all three families. They are made of the same few parts; what differs is *which words may attend
# to which*, and from that follows what each of them is good for:
#
# | family | who attends to whom | made for | examples |
# |---|---|---|---|
# | encoder only | every word to every word | understanding a text: gaps, classes, search | BERT, RoBERTa |
# | decoder only | every word to itself and all before it | continuing a text | GPT, Llama |
# | both | as above; and written words to all read ones | turning a text into another | T5, BART |
#
# One question to take along: GPT translates as well, and it has no encoder and no cross-attention. It simply
# finds *I love you, in French:* at the beginning of its own text. Which of its parts does the work of
# cross-attention, and what does your memory have that its past has not?
#
# ## Read on
#
# - Ilya Sutskever, Oriol Vinyals and Quoc V. Le, *Sequence to Sequence Learning with Neural Networks* (2014):
#   a whole sentence squeezed into one vector. Look for what reversing the words of the source does for it, and
#   ask yourself why cross-attention does not need that.
# - Dzmitry Bahdanau, Kyunghyun Cho and Yoshua Bengio, *Neural Machine Translation by Jointly Learning to Align
#   and Translate* (2014): attention before the Transformer. Look at its alignment matrices for English and
#   French: the crossings are our *t'* and *aime*.
# - Ashish Vaswani and others, *Attention Is All You Need* (2017): your model. Look for the paragraph that lists
#   the three uses of attention, and find each in your code; then for how they decode (it is not greedy).
# - Colin Raffel and others, *Exploring the Limits of Transfer Learning with a Unified Text-to-Text Transformer*
#   (2019), the T5 paper: look for its comparison of encoder-decoder and decoder-only models, and for the
#   drawing of who may attend to whom in each.
