# %% [markdown]
# # 06 · Counting BERT by hand
#
# You have met every piece of a Transformer: tables of vectors, attention, feed-forward layers, LayerNorm.
# What was missing so far is a feeling for **where the numbers live**. "BERT-base has 110 million
# parameters" stands in every article. Is that mostly attention? Mostly vocabulary? And is it 110 million at
# all?
#
# We are going to count every single one, with nothing but multiplication and addition. No model is built:
# `torch` and `transformers` stay outside, and the answer must still agree with theirs to the last digit.
#
# Think of moving house. Nobody weighs the lorry to learn what is in it; you walk from room to room with a
# list, write down what stands there, and add up at the end. A good list also shows what you forgot: when
# the sum is off by exactly one bookshelf, you know which room to visit again.
#
# **The only two rules**
#
# - A table, or a matrix from $n$ inputs to $m$ outputs, holds $n \cdot m$ numbers.
# - A *linear layer* is a matrix and one bias for each **output**: $n \cdot m + m$.
#
# For example, a linear layer from 4 to 3 numbers holds $4 \cdot 3 + 3 = 15$ parameters.
#
# **Letters.** $V$ words in the vocabulary, $P$ positions, $S$ kinds of segments, $C$ the width of a vector,
# $F$ the width inside the feed-forward layer, $N$ layers, $H$ heads.

# %%
from dataclasses import dataclass


@dataclass(frozen=True)
class BertConfig:
    """The sizes of a BERT; the defaults are those of `bert-base-uncased`."""

    vocab_size: int = 30522                # V
    hidden_size: int = 768                 # C
    num_hidden_layers: int = 12            # N
    num_attention_heads: int = 12          # H
    intermediate_size: int = 3072          # F
    max_position_embeddings: int = 512     # P
    type_vocab_size: int = 2               # S


@dataclass(frozen=True)
class GPT2Config:
    """The sizes of a GPT-2; the defaults are those of the small one."""

    vocab_size: int = 50257                # V
    n_positions: int = 1024                # P
    n_embd: int = 768                      # C
    n_layer: int = 12                      # N
    n_head: int = 12                       # H


# %% [markdown]
# ## Before we start · Sizes that cannot be
#
# A model with −3 layers does not exist, and neither does one whose vector of 10 numbers is shared out
# evenly among 4 heads. Arithmetic does not mind: it would happily return a number. So the first thing every
# counting function does is to refuse such a config with a `ValueError` that names the field and its value.
# Write that once, here, and call it from everywhere.
#
# Zero is no mistake where a model can do without the thing: no segments, no layers. They just count
# nothing. Only zero heads are refused, for nothing can be shared among nobody.

# %%
def refuse_bad_sizes(config: BertConfig | GPT2Config, width: str, heads: str) -> None:
    """Raise `ValueError` when `config` describes a model that cannot exist; otherwise do nothing.

    `width` and `heads` are the names of two fields, because BERT and GPT-2 call theirs differently:
    `refuse_bad_sizes(BertConfig(), "hidden_size", "num_attention_heads")`.

    Refused are a negative size in any field, zero heads, and a width that is no multiple of the number of
    heads (768 is shared by 12 heads, 64 for each; 770 is not). The sentence names the field and its value;
    where width and heads do not fit together, one of the two will do.
    """
    # TODO: look at every field (`vars(config)` gives names and values), then at width and heads together
    raise NotImplementedError("refuse_bad_sizes is not written yet.")


# %% [markdown]
# ## Part 1 · The tables at the entrance
#
# A word enters BERT through three tables. The first says *which word* it is, the second *where it stands*,
# the third *which of the two sentences* it belongs to (BERT reads pairs of sentences). Each is a plain list
# of vectors of width $C$: a telephone book, not a computation. The three vectors are added, and a
# **LayerNorm** tidies the sum.
#
# A LayerNorm has two learned vectors of width $C$: a gain $\gamma$ that stretches every feature, and a
# shift $\beta$ that moves it. It has no matrix.
#
# **A worked number.** A toy model goes with us through all rooms: 10 words, 4 positions, 3 segments, width
# $C = 2$. Its tables hold 20, 8 and 6 numbers; with the LayerNorm there are 38.
#
# *Think about it:* BERT-base can read 512 words at once. How many parameters would it cost to let it read
# 1024? How does that compare with adding one more word to the vocabulary?

# %%
def count_embeddings(config: BertConfig) -> int:
    """All parameters between a word's number and the first layer: three tables and a LayerNorm.

    BERT-base: 23,837,184. Raises `ValueError` for sizes that cannot be.
    """
    # TODO: the three tables, (V, C), (P, C) and (S, C), and the gain and shift of one LayerNorm
    raise NotImplementedError("count_embeddings is not written yet.")


# %% part="embeddings"
# Written? `autograder check 06_bert_param_count` tells how this part stands.

# %% [markdown]
# ## Part 2 · Attention
#
# In BERT, queries, keys and values come from three linear layers, **each with its bias**, and what the
# heads have found goes through a fourth one, the output projection. All four lead from $C$ to $C$ numbers.
#
# And the heads? They are a way of *cutting*: each head gets $D = C / H$ of the $C$ columns. Cut a cake into
# 12 pieces or into 4, it remains one cake.
#
# The sublayer closes with its own LayerNorm after the residual. In our list it belongs to attention.
#
# **A worked number.** In the toy model ($C = 2$) one linear layer holds $2 \cdot 2 + 2 = 6$ numbers, four
# of them 24, and with the LayerNorm there are 28, whether there is one head or two.
#
# *Think about it:* more heads cost no parameters. So why not take 768 heads of width one?

# %%
def count_attention(config: BertConfig) -> int:
    """The parameters of one layer's self-attention, with its output projection and its LayerNorm.

    BERT-base: 2,363,904. Raises `ValueError` for sizes that cannot be, such as 770 numbers for 12 heads.
    """
    # TODO: query, key, value and output projection, each (C, C) with a bias (C,), and one LayerNorm
    raise NotImplementedError("count_attention is not written yet.")


# %% part="attention"
# Written? `autograder check 06_bert_param_count` tells how this part stands.

# %% [markdown]
# ## Part 3 · Feed-forward, and the whole layer
#
# After the words have talked to each other, each one thinks for itself: a linear layer makes its vector
# wide, from $C$ to $F$; another makes it narrow again. Between them stands the activation, which learns
# nothing. Again a LayerNorm closes the sublayer.
#
# Look twice at the biases: the two layers have *different* numbers of outputs.
#
# **A worked number.** The toy model has $F = 5$: the way out costs $2 \cdot 5 + 5 = 15$, the way back $5
# \cdot 2 + 2 = 12$. With the LayerNorm that makes 31.
#
# A **layer** of BERT is attention and feed-forward, and nothing else: both bring their LayerNorm along.
#
# *Think about it:* in BERT-base, $F = 4C$. Leave the small terms aside: which of the two sublayers is
# bigger, and by what factor?

# %%
def count_feed_forward(config: BertConfig) -> int:
    """The parameters of one layer's feed-forward part, with its LayerNorm.

    BERT-base: 4,723,968. Raises `ValueError` for sizes that cannot be.
    """
    # TODO: a linear layer C -> F, a linear layer F -> C, and one LayerNorm of width C
    raise NotImplementedError("count_feed_forward is not written yet.")


def count_layer(config: BertConfig) -> int:
    """The parameters of one layer of the encoder.

    BERT-base: 7,087,872. Raises `ValueError` for sizes that cannot be.
    """
    # TODO: put together what you have already counted
    raise NotImplementedError("count_layer is not written yet.")


# %% part="feed_forward"
# Written? `autograder check 06_bert_param_count` tells how this part stands.

# %% [markdown]
# ## Part 4 · All of BERT
#
# Every layer has the same shape but its own numbers, so $N$ layers cost $N$ times as much. On top sits the
# **pooler**: one linear layer from $C$ to $C$ that looks at the first position only and sums up the text
# for classifiers. Not everybody needs it; that is why the same model is quoted with two different totals.
# (And "110 million" is neither of them, just rounded.)
#
# Return the whole list, not only the sum. A wrong total alone is a riddle: forget the segment table or
# forget the first LayerNorm, both times exactly 1,536 are missing. With a list, everybody sees which room
# you have not visited.
#
# **A worked number.** Embeddings 38, two layers of 59, a pooler of 6: $38 + 2 \cdot 59 + 6 = 162$.
#
# *Think about it:* be careful with the sum. Is every entry of the list a thing of its own, or are some of
# them already inside another one?

# %%
def count_pooler(config: BertConfig) -> int:
    """The parameters of the pooler, one linear layer.

    BERT-base: 590,592. Raises `ValueError` for sizes that cannot be.
    """
    # TODO: a linear layer C -> C
    raise NotImplementedError("count_pooler is not written yet.")


def count_bert(config: BertConfig, pooler: bool = True) -> dict[str, int]:
    """What stands in every room of BERT, and the total.

    word_embeddings, position_embeddings, token_type_embeddings    the three tables
    embedding_layer_norm                                           the LayerNorm behind them
    attention, feed_forward                                        in ONE layer, each with its LayerNorm
    encoder                                                        all layers together
    pooler                                                         0 when `pooler` is False
    total                                                          the whole model

    BERT-base: the total is 109,482,240, without pooler 108,891,648.
    Raises `ValueError` for sizes that cannot be.
    """
    # TODO: fill the list from top to bottom with the functions above, then add up
    raise NotImplementedError("count_bert is not written yet.")


# %% part="bert"
# Written? `autograder check 06_bert_param_count` tells how this part stands.

# %% picture="bert"
# The notebook draws a picture of your own code here.

# %% [markdown]
# ## Part 5 · GPT-2
#
# The younger sister is built from the same bricks. Walk through her rooms and look for what is different:
#
# - There are words and positions, but no segments, and no LayerNorm at the entrance.
# - Query, key and value live in *one* wide linear layer from $C$ to $3C$. Does that change the number?
# - The feed-forward layer is always four times as wide: $F = 4C$.
# - Each block has two LayerNorms, one *before* each sublayer; and one last LayerNorm stands after all the
#   blocks.
# - The output layer that scores all words is **tied**: it is the very same matrix as the table of words,
#   read the other way round. What is owned once is counted once.
# - The causal mask is a rule, not a parameter. Nobody learns it.
#
# **A worked number.** One block of width 2: attention $4 + (2 \cdot 6 + 6) + (2 \cdot 2 + 2) = 28$;
# feed-forward $4 + (2 \cdot 8 + 8) + (8 \cdot 2 + 2) = 46$.
#
# | | layers | heads | width | parameters |
# |---|---|---|---|---|
# | GPT-2 small | 12 | 12 | 768 | 124,439,808 |
# | GPT-2 medium | 24 | 16 | 1024 | 354,823,168 |
# | GPT-2 large | 36 | 20 | 1280 | 774,030,080 |
# | GPT-2 XL | 48 | 25 | 1600 | 1,557,611,200 |
#
# *Think about it:* from small to XL the vocabulary stays the same. What share of the parameters are word
# vectors in each? What does a company buy when it buys a bigger model?

# %%
def count_gpt2(config: GPT2Config) -> dict[str, int]:
    """What stands in every room of GPT-2, and the total. The tied output layer is not counted again.

    token_embeddings, position_embeddings    the two tables
    attention, feed_forward                  in ONE block, each with its LayerNorm
    blocks                                   all blocks together
    final_layer_norm                         the LayerNorm after the last block
    total                                    the whole model

    GPT-2 small: the total is 124,439,808. Raises `ValueError` for sizes that cannot be.
    """
    # TODO: refuse bad sizes, count one block, then fill the list from top to bottom and add up
    raise NotImplementedError("count_gpt2 is not written yet.")


# %% part="gpt2"
# Written? `autograder check 06_bert_param_count` tells how this part stands.

# %% picture="gpt2"
# The notebook draws a picture of your own code here.

# %% [markdown]
# ## What you can do now
#
# You can read a model's config and say, within a minute and without a GPU, how big it is and why. At four
# bytes a number, BERT-base takes 438 MB: you know which rooms to empty when that is too much.
