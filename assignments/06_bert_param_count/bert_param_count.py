# %% [markdown]
# # 06 · Counting BERT by hand
#
# ```
#  the next word         07 trained, and writing
#        ↑               18 what it costs
#        ↑               16 taught what people prefer
#        ↑               14 fine-tuned
#        ↑               15 trained well
# ┌──────────────┐     ▶ 06 all of it, counted
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
# You have met every piece of a Transformer: tables of vectors, attention, feed-forward layers, LayerNorm.
# Now you get a feeling for **where the parameters are**. Every article says that BERT-base has 110 million
# parameters. Are most of them in attention? In the vocabulary? And are there really 110 million?
#
# We are going to count every single one, with nothing but multiplication and addition. No model is built:
# `torch` and `transformers` are forbidden here (compare with them in a cell or function of its own), and the
# answer must still agree with theirs to the last digit.
#
# Think of it as the inventory of the school for words: you walk from room to room, floor by floor, write down what is
# there, and add up at the end. A good list also shows what you forgot: when the sum is off by exactly one room, you
# know where to count again.
#
# **Not here.** No model is built or run, and a number of parameters says neither how good a model is nor how fast.
#
# The names of functions, classes, fields and arguments are part of the contract: keep them as they are. Every
# count is an `int`; a division with `/` would make it a float.
#
# **The only two rules**
#
# - A table, or a matrix from $n$ inputs to $m$ outputs, has $n \cdot m$ parameters.
# - A *linear layer* is a matrix and one bias for each **output**: $n \cdot m + m$.
#
# For example, a linear layer from 4 to 3 numbers has $4 \cdot 3 + 3 = 15$ parameters.
#
# Letters for shapes: $V$ words in the vocabulary, $P$ positions, $S$ kinds of segments, $C$ the width of a vector,
# $F$ the width inside the feed-forward layer, $N$ layers, $H$ heads.

# %%
from dataclasses import dataclass


@dataclass(frozen=True)
class BertConfig:
    """The sizes of a BERT; the defaults are those of `bert-base-uncased`."""

    vocab_size: int = 30522                                                             # V
    hidden_size: int = 768                                                              # C
    num_hidden_layers: int = 12                                                         # N
    num_attention_heads: int = 12                                                       # H
    intermediate_size: int = 3072                                                       # F
    max_position_embeddings: int = 512                                                  # P
    type_vocab_size: int = 2                                                            # S


@dataclass(frozen=True)
class GPT2Config:
    """The sizes of a GPT-2; the defaults are those of the small one."""

    vocab_size: int = 50257                                                             # V
    n_positions: int = 1024                                                             # P
    n_embd: int = 768                                                                   # C
    n_layer: int = 12                                                                   # N
    n_head: int = 12                                                                    # H


# %% [markdown]
# ## Before we start · Impossible sizes
#
# There is no model with −3 layers, and none that divides a vector of 10 numbers evenly among 4 heads. Arithmetic
# does not mind: it would happily return a number. So the first thing every counting function does is to refuse such a
# config with a `ValueError` that names the field and its value. Write that check once, here, and call it everywhere.
#
# Zero is allowed where a model can do without the thing: no segments, no layers. They simply count
# nothing. Only zero heads are refused, because a width cannot be divided among them.


# %%
def refuse_bad_sizes(config: BertConfig | GPT2Config, width: str, heads: str) -> None:
    """Raise `ValueError` when `config` describes a model that cannot exist; otherwise do nothing.

    `width` and `heads` are the names of two fields, because BERT and GPT-2 call theirs differently:
    `refuse_bad_sizes(BertConfig(), "hidden_size", "num_attention_heads")`.

    Refused are a negative size in any field, zero heads, and a width that is not a multiple of the number of
    heads (768 numbers make 12 heads of 64; 770 do not). The sentence names the field and its value;
    where width and heads do not fit together, one of the two is enough.
    """
    # TODO: look at every field (`vars(config)` gives names and values), then at width and heads together
    raise NotImplementedError("refuse_bad_sizes is not written yet.")


# %% [markdown]
# ## Part 1 · The tables at the entrance
#
# About 8 minutes, ●○○ (difficulty 1 of 3)
#
# A token enters BERT through three **embedding** tables. The first says *which token* it is, the second *at which
# position* it stands, the third *in which of two sentences* (BERT reads pairs of sentences, called
# **segments**). Each is a plain list of vectors of width $C$: a register, not a computation. The three
# vectors are added, and a **LayerNorm** normalises the sum.
#
# A LayerNorm has two learned vectors of width $C$: a gain $\gamma$ by which every feature is multiplied, and a
# shift $\beta$ that is added. It has no matrix.
#
# **One number by hand.** We use one toy model in all parts: 10 words, 4 positions, 3 segments, width $C = 2$.
# Its tables have 20, 8 and 6 parameters; with the LayerNorm there are 38.
#
# **To think about.** BERT-base can read 512 tokens at once. How many parameters would it cost to let it read
# 1024? How does that compare with adding one more word to the vocabulary?


# %%
def count_embeddings(config: BertConfig) -> int:
    """All parameters between a token's id and the first layer: three tables and a LayerNorm.

    BERT-base: 23,837,184. Raises `ValueError` for impossible sizes.
    """
    # TODO: the three tables, (V, C), (P, C) and (S, C), and the gain and shift of one LayerNorm
    raise NotImplementedError("count_embeddings is not written yet.")


# %% part="embeddings"
# Written? `autograder check 06_bert_param_count` shows how you are doing.

# %% [markdown]
# ## Part 2 · Attention
#
# About 7 minutes, ●●○ (difficulty 2 of 3)
#
# In BERT, queries, keys and values come from three linear layers, **each with its bias**, and the
# concatenated outputs of the heads go through a fourth one, the output projection. All four lead from $C$ to $C$
# numbers.
#
# And the heads? They are a way of *dividing*: each head gets $D = C / H$ of the $C$ columns. Whether you cut a cake
# into 12 pieces or into 4, it is the same cake.
#
# The sublayer ends with its own LayerNorm after the residual connection. In our list it belongs to attention.
#
# **One number by hand.** In the toy model ($C = 2$) one linear layer has $2 \cdot 2 + 2 = 6$ parameters, four
# of them 24, and with the LayerNorm there are 28, whether there is one head or two.
#
# **To think about.** More heads cost no parameters. So why not take 768 heads of width one?


# %%
def count_attention(config: BertConfig) -> int:
    """The parameters of one layer's self-attention, with its output projection and its LayerNorm.

    BERT-base: 2,363,904. Raises `ValueError` for impossible sizes, such as 770 numbers for 12 heads.
    """
    # TODO: query, key, value and output projection, each (C, C) with a bias (C,), and one LayerNorm
    raise NotImplementedError("count_attention is not written yet.")


# %% part="attention"
# Written? `autograder check 06_bert_param_count` shows how you are doing.

# %% [markdown]
# ## Part 3 · Feed-forward, and the whole layer
#
# About 10 minutes, ●○○ (difficulty 1 of 3)
#
# After attention, each token is processed on its own: one linear layer makes its vector
# wide, from $C$ to $F$; another makes it narrow again. Between them is the activation, which has no
# parameters. Again a LayerNorm ends the sublayer.
#
# Look twice at the biases: the two layers have *different* numbers of outputs.
#
# **One number by hand.** The toy model has $F = 5$: the first layer costs $2 \cdot 5 + 5 = 15$, the second $5
# \cdot 2 + 2 = 12$. With the LayerNorm that makes 31.
#
# A **layer** of BERT is attention and feed-forward, and nothing else: each already includes its LayerNorm.
#
# **To think about.** In BERT-base, $F = 4C$. Leave the small terms aside: which of the two sublayers is
# bigger, and by what factor?


# %%
def count_feed_forward(config: BertConfig) -> int:
    """The parameters of one layer's feed-forward part, with its LayerNorm.

    BERT-base: 4,723,968. Raises `ValueError` for impossible sizes.
    """
    # TODO: a linear layer C -> F, a linear layer F -> C, and one LayerNorm of width C
    raise NotImplementedError("count_feed_forward is not written yet.")


def count_layer(config: BertConfig) -> int:
    """The parameters of one layer of the encoder.

    BERT-base: 7,087,872. Raises `ValueError` for impossible sizes.
    """
    # TODO: add up what you have already counted
    raise NotImplementedError("count_layer is not written yet.")


# %% part="feed_forward"
# Written? `autograder check 06_bert_param_count` shows how you are doing.

# %% [markdown]
# ## Part 4 · All of BERT
#
# About 16 minutes, ●●○ (difficulty 2 of 3)
#
# Every layer has the same shape but its own parameters, so $N$ layers cost $N$ times as much. On top is the
# **pooler**: one linear layer from $C$ to $C$ that reads only the first position, where a summary of the text
# is learned for classifiers. Not everybody needs it; that is why the same model is quoted with two different totals.
# ("110 million" is neither of them. It is rounded.)
#
# Return the whole list, not only the sum. A wrong total alone is a riddle: whether you forget the segment table or
# the first LayerNorm, the total is short by exactly 1,536. The list shows which part is missing.
#
# **One number by hand.** Embeddings 38, two layers of 59, a pooler of 6: $38 + 2 \cdot 59 + 6 = 162$.
#
# **To think about.** Be careful with the sum. Is every entry of the list separate, or are some of
# them already included in another one?


# %%
def count_pooler(config: BertConfig) -> int:
    """The parameters of the pooler, one linear layer.

    BERT-base: 590,592. Raises `ValueError` for impossible sizes.
    """
    # TODO: a linear layer C -> C
    raise NotImplementedError("count_pooler is not written yet.")


def count_bert(config: BertConfig, pooler: bool = True) -> dict[str, int]:
    """The parameters of every part of BERT, and the total.

    word_embeddings, position_embeddings, token_type_embeddings    the three tables
    embedding_layer_norm                                           the LayerNorm after them
    attention, feed_forward                                        in ONE layer, each with its LayerNorm
    encoder                                                        all layers together
    pooler                                                         0 when `pooler` is False
    total                                                          the whole model

    BERT-base: the total is 109,482,240, without pooler 108,891,648.
    Raises `ValueError` for impossible sizes.
    """
    # TODO: fill the list from top to bottom with the functions above, then add up
    raise NotImplementedError("count_bert is not written yet.")


# %% part="bert"
# Written? `autograder check 06_bert_param_count` shows how you are doing.

# %% [markdown]
# The picture is a floor plan of BERT-base, drawn from your numbers: the larger a room, the more parameters live in
# it. Where are most of them?

# %% picture="bert"
# The notebook draws a picture of your own code here.

# %% [markdown]
# ## Part 5 · GPT-2
#
# About 16 minutes, ●●○ (difficulty 2 of 3)
#
# GPT-2 is built from the same parts. Go through them again and look for the differences:
#
# - There are tables of words and positions, but no segments, and no LayerNorm after them.
# - Query, key and value share *one* wide linear layer from $C$ to $3C$. Does that change the number?
# - The feed-forward layer is always four times as wide: $F = 4C$.
# - Each block has two LayerNorms, one *before* each sublayer (pre-norm), and one last LayerNorm follows all the
#   blocks.
# - The output layer, which computes a score (a **logit**) for every word, is **tied**: it is the very same matrix as
#   the table of words, used the other way round. Shared parameters are counted once.
# - The causal mask is a rule, not a parameter. It is not learned.
#
# **One number by hand.** One block of width 2: attention $4 + (2 \cdot 6 + 6) + (2 \cdot 2 + 2) = 28$;
# feed-forward $4 + (2 \cdot 8 + 8) + (8 \cdot 2 + 2) = 46$.
#
# | | layers | heads | width | parameters |
# |---|---|---|---|---|
# | GPT-2 small | 12 | 12 | 768 | 124,439,808 |
# | GPT-2 medium | 24 | 16 | 1024 | 354,823,168 |
# | GPT-2 large | 36 | 20 | 1280 | 774,030,080 |
# | GPT-2 XL | 48 | 25 | 1600 | 1,557,611,200 |
#
# **To think about.** From small to XL the vocabulary stays the same. What fraction of the parameters are word
# vectors in each? Where do the additional parameters of a bigger model go?


# %%
def count_gpt2(config: GPT2Config) -> dict[str, int]:
    """The parameters of every part of GPT-2, and the total. The tied output layer is not counted again.

    token_embeddings, position_embeddings    the two tables
    attention, feed_forward                  in ONE block, each with its LayerNorm
    blocks                                   all blocks together
    final_layer_norm                         the LayerNorm after the last block
    total                                    the whole model

    GPT-2 small: the total is 124,439,808. Raises `ValueError` for impossible sizes.
    """
    # TODO: refuse bad sizes, count one block, then fill the list from top to bottom and add up
    raise NotImplementedError("count_gpt2 is not written yet.")


# %% part="gpt2"
# Written? `autograder check 06_bert_param_count` shows how you are doing.

# %% [markdown]
# The picture draws the four GPT-2s on one scale, from your numbers. Look at the table of words: what becomes of its
# share when the model grows?

# %% picture="gpt2"
# The notebook draws a picture of your own code here.

# %% [markdown]
# ## Look back
#
# You can read a model's config and say, within a minute and without a GPU, how big the model is and why. At four
# bytes a number, BERT-base takes 438 MB: you know which parts to shrink when that is too much. How much
# *work* it is to run a model, and how many seconds, is counted in 18.
#
# ## Read on
#
# - Devlin et al., *BERT: Pre-training of Deep Bidirectional Transformers for Language Understanding* (2018).
#   Section 3 gives the sizes and the rounded totals, 110 and 340 million. Figure 2 shows the three tables of Part 1.
# - Radford et al., *Language Models are Unsupervised Multitask Learners* (2019), the GPT-2 paper. Compare the
#   parameters in its Table 2 with yours: all four are a little smaller. (The authors have said since that theirs
#   were miscounted, so the small model is still often called "117M".)
# - Press and Wolf, *Using the Output Embedding to Improve Language Models* (2016). Why the output layer may share
#   the table of words, and what that saves.
# - Lan et al., *ALBERT: A Lite BERT for Self-supervised Learning of Language Representations* (2019). What if all
#   layers did share their parameters? Look for how small the model becomes, and for what that costs.
