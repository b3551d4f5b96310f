# %% [markdown]
# # 03 · Masked heads
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
# │  attention   │ × N ▶ 03 one head
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
# So far every word has a vector, and every vector carries its position in the sentence. But the words
# are still isolated. *bank* carries the same numbers beside a river as beside a cash machine, because
# nothing lets it see its neighbours. **Attention** is how words exchange information.
#
# This is the lesson of the second teacher in the school for words: ask a question, and look around the room. Each
# word holds three notes:
#
# | note | symbol | what it says |
# |---|---|---|
# | **query** | $q$ | what I would like to know |
# | **key** | $k$ | what I can be asked about |
# | **value** | $v$ | what I say when somebody listens to me |
#
# Every word compares its query with all the keys, listens more to those whose key matches and less to
# the others, and takes away a mixture of what was said. The notes are vectors, and the field's words are
# these: a word **attends to** another; how much it does is its **attention weight**; the mixture is the
# **weighted sum** of the values. One rule applies when a model learns to write: *no word attends to a word that
# comes after it.* Never listen to a word behind you, the teacher says, for it has not been spoken yet.
#
# You build this in three steps: the rule (Part 1), attention itself (Part 2), and a layer that learns
# which queries, keys and values to produce (Part 3). When you are done you have the heart of GPT in about
# twenty lines.
#
# Letters for shapes: `B` sentences in a batch, `T` words that attend (the queries), `S` words that are attended
# to (the keys), `C` numbers in a word vector, `D` numbers in a query or key, `E` numbers in a value.
#
# **Not here.** The head gets the means to attend, and no language to learn: that comes in assignment 07. Only the last
# cell trains something, for a minute: a single head learns to copy.
#
# The names of functions, classes, attributes and arguments are part of the contract: keep them as they are.
# PyTorch's own attention (`F.scaled_dot_product_attention`, `nn.MultiheadAttention`) is forbidden here, because
# you write it by hand. Compare yours with it in a cell or function of its own, which your answer does not call.

# %%
import math

import torch
from torch import Tensor, nn

# %% [markdown]
# ## Part 1 · The causal mask
#
# About 6 minutes, ●○○
#
# A language model is trained to predict the next word. During training the whole sentence lies on the
# table, the next word included. A model that may look at it gets top marks and learns nothing, like a student
# who sits an exam with the answers on the desk.
#
# So we draw a table with one **row** for each query and one **column** for each key, and mark which word may
# attend to which: the **causal mask**. Word $t$ may attend to word $s$ when $s$ comes no later than $t$. Yes, a
# word may attend to itself.
#
# For the three words *the cat sat* (✓ is `True`):
#
# | query ↓, key → | the | cat | sat |
# |---|---|---|---|
# | **the** | ✓ | · | · |
# | **cat** | ✓ | ✓ | · |
# | **sat** | ✓ | ✓ | ✓ |
#
# **To think about.** A sentence of 4 words has 10 ticks. How many does one of 100 words have? What fraction
# of the table is that?


# %%
def causal_mask(T: int) -> Tensor:
    """Which word may attend to which in a sentence of T words, as a boolean table of shape (T, T).

    Row t is the query, column s the key; True means "t may attend to s".
    Example: for T = 2 the first row is True, False and the second row is True, True.
    """
    # TODO: a table of booleans, True where the row's word may attend to the column's word  # (T, T)
    ### BEGIN SOLUTION
    return torch.ones(T, T, dtype=torch.bool).tril()                                    # (T, T)
    ### END SOLUTION


# %% part="mask"

# %% [markdown]
# The picture draws your mask. Look for a triangle whose diagonal is filled, too.

# %% picture="mask"

# %% [markdown]
# ## Part 2 · Scaled dot-product attention
#
# About 16 minutes, ●●●
#
# How well does a key match a query? Multiply them number by number and add up: the dot product $q \cdot k$.
# It is large when both point the same way. For all queries and keys at once:
#
# $$\text{scores} = \frac{Q K^\top}{\sqrt{D}} \qquad
#   \text{weights} = \operatorname{softmax}(\text{scores}) \qquad
#   \text{output} = \text{weights}\; V$$
#
# The softmax turns each query's scores into attention weights: none negative, and they sum to 1, like
# probabilities. The output is the sum of the values, weighted by them.
#
# **Why divide by $\sqrt{D}$?** Let the numbers of a query and a key be independent, with mean 0 and variance 1.
# Their dot product is a sum of $D$ such terms, and has a standard deviation of $\sqrt{D}$. With $D = 64$ the scores
# would be around $\pm 8$; a softmax of such scores gives nearly all the weight to a single key. It is **saturated**,
# and a saturated softmax has almost no gradient, so hardly anything is learned. Dividing brings the scores back to
# about $\pm 1$. (You will meet `C ** -0.5` in code that is often copied. `C` is the width of the word's vector; the
# sum has `D` terms, the numbers in a query.)
#
# **One number by hand.** Let $D = 4$, one query $q = (2\ln 3,\ 0,\ 0,\ 0)$, two keys
# $k_0 = (1, 0, 0, 0)$ and $k_1 = (0, 1, 0, 0)$, with the values $v_0 = (10, 8, 0)$ and $v_1 = (20, 0, 4)$. The
# scores are $2\ln 3 / \sqrt{4} = \ln 3$ and $0$. Their exponentials are $3$ and $1$, so the weights are
# $\tfrac34$ and $\tfrac14$. The output begins with $\tfrac34 \cdot 10 + \tfrac14 \cdot 20 = 12.5$; the
# whole of it is $(12.5,\ 6,\ 1)$.
#
# **The mask.** A key that is masked gets a weight of exactly zero, and the weights of the others add up to 1.
# A query may have nothing left to attend to (think of a sentence that is nothing but padding).
# Then its weights and its output are zero. Careful: the obvious code computes
# 0/0 here, and a single NaN spreads through the whole model, forwards through the numbers and
# backwards through the gradients. Neither may contain one.
#
# **Large numbers.** $e^{89}$ does not fit into a `float32`. Your weights must survive scores of
# $\pm 10\,000$. Adding the same number to all scores of a row does not change its weights: PyTorch's
# softmax uses this trick.
#
# **Gradients.** Queries, keys and values are all learned, so gradients must flow back to all three.
#
# **To think about.** All scores of a row are equal. What is the output?


# %%
def attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """For each of T queries, the sum of S values, weighted by how well their keys match.

    q: (..., T, D) queries; k: (..., S, D) keys; v: (..., S, E) values. The dots stand for any
    leading dimensions: none, a batch, or a batch and heads.
    mask: booleans that broadcast to (..., T, S), such as (T, S) or (S,), True where t may attend to s;
    None allows everything.

    Returns the output (..., T, E) and the weights (..., T, S). A query that may attend to nothing gets
    zeros in both. The inputs keep their values, and both results have their number type (float32, float64).
    Example: scores of ln 3 and 0 give weights 0.75 and 0.25; values 10 and 20 then give 12.5.
    """
    # TODO: scores: how well does each query match each key, on the right scale?        # (..., T, S)
    # TODO: turn each query's scores into weights; a masked key has weight 0            # (..., T, S)
    # TODO: sum the values by these weights; return that sum and the weights            # (..., T, E)
    ### BEGIN SOLUTION
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])                           # (..., T, S)
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)  # e^-inf is exactly 0
    weights = torch.softmax(scores, dim=-1)                                             # (..., T, S)
    if mask is not None:
        weights = weights.masked_fill(~mask, 0.0)  # a row without a single True was 0/0
    return weights @ v, weights                                                         # (..., T, E), (..., T, S)
    ### END SOLUTION


# %% part="attention"

# %% [markdown]
# The first picture shows who attends to whom, without the mask and with it. The other two show what the division by
# $\sqrt{D}$ is for: look at how much weight a single key takes when the vectors get longer.

# %% picture="attention"

# %% [markdown]
# ## Part 3 · One masked head
#
# About 17 minutes, ●●○
#
# So far, queries, keys and values were given. A **head** learns to produce them. It owns three matrices
# and computes a word's query, key and value from the word's own vector:
#
# $$Q = X W_Q \qquad K = X W_K \qquad V = X W_V$$
#
# The matrices are different because asking, being found and answering are different jobs: the word *it*
# looks for a noun, can be found as a pronoun, and contributes something else again.
#
# Three things make the head a good PyTorch module:
#
# - The three layers are called `key`, `query` and `value`: `nn.Linear` without bias. All three learn.
# - The mask belongs to the head, but it is not learned: it is a **buffer**. It follows the head in
#   `.to(device)`, and the optimiser never sees it. After `head.double()` the answers are float64.
# - `block_size` is the longest sentence that the head can take, often called the **context length** or **context
#   window**. A shorter sentence uses a corner of the mask, whatever came before it; a longer one is a
#   `ValueError` that names `block_size`, its value and the length `T`, in training and in evaluation.
#
# Many implementations also apply dropout here. Yours has none: called twice, it gives the same answer, in training
# as well.
#
# **One number by hand.** With `embed_size = 20` and `head_size = 5` the head owns
# $3 \cdot 20 \cdot 5 = 300$ parameters, no matter how long the sentences are.
#
# **To think about.** The first word attends only to itself. What are its weights, and what is its output?
# (One of the tests asks exactly this.)


# %%
class Head(nn.Module):
    """One head of causal self-attention: every word attends to itself and to the words before it.

    embed_size: numbers in a word vector (C); head_size: numbers in each output vector (D);
    block_size: the longest sentence it can take.
    Example: Head(20, 5, 7) turns a tensor of shape (3, 6, 20) into one of shape (3, 6, 5).
    """

    def __init__(self, embed_size: int, head_size: int, block_size: int) -> None:
        super().__init__()
        # TODO: the three layers key, query and value                                   # (B, T, C) -> (B, T, D)
        # TODO: the mask for the longest sentence, as a buffer                          # (block_size, block_size)
        ### BEGIN SOLUTION
        self.key = nn.Linear(embed_size, head_size, bias=False)                         # (B, T, C) -> (B, T, D)
        self.query = nn.Linear(embed_size, head_size, bias=False)                       # (B, T, C) -> (B, T, D)
        self.value = nn.Linear(embed_size, head_size, bias=False)                       # (B, T, C) -> (B, T, D)
        self.register_buffer("mask", causal_mask(block_size))                           # (block_size, block_size)
        ### END SOLUTION

    def forward(self, x: Tensor) -> Tensor:
        """x: (B, T, C) word vectors. Returns (B, T, D).

        Raises ValueError that names block_size, its value and the number of words if these are more than block_size.
        """
        # TODO: refuse a sentence that is too long, saying how long it is and what fits
        # TODO: queries, keys and values of all words, then attention under the mask    # (B, T, D)
        ### BEGIN SOLUTION
        T, block_size = x.shape[1], self.mask.shape[0]
        if T > block_size:
            raise ValueError(f"The sentence has T = {T} words, but block_size = {block_size}.")
        output, _ = attention(self.query(x), self.key(x), self.value(x), self.mask[:T, :T])  # (B, T, D)
        return output
        ### END SOLUTION


# %% part="head"

# %% [markdown]
# The picture is an X-ray of your head: how strongly each output reacts to each word. Look above the diagonal, where
# nothing may glow.

# %% picture="head"

# %% [markdown]
# ## One head learns to copy
#
# Not graded; two minutes, and no line to write. Your head has not learned anything yet, so let it. The texts are random
# letters, and the task is as small as can be: at each place, say which letter stands *before* it. No letter can be
# guessed from the others, so the only way is to look at the right place. A word of this text is the sum of two vectors,
# one for its letter and one for its seat, as in assignment 02. The head's output has 26 numbers, a score for each
# letter, and the loss is small when the right letter has the highest score.
#
# Before you run it: what must the query of seat 5 ask for, and where should its attention weights lie afterwards?

# %%
if __name__ == "__main__":
    torch.set_num_threads(1)  # for matrices this small, a second core only costs time
    torch.manual_seed(3)
    T, C, V = 12, 64, 26
    letters, seats, head = nn.Embedding(V, C), nn.Embedding(T, C), Head(C, V, T)
    learned = [*letters.parameters(), *seats.parameters(), *head.parameters()]
    optimiser = torch.optim.Adam(learned, lr=0.01)
    for step in range(61):
        ids = torch.randint(V, (64, T))                                                 # (B, T)
        logits = head(letters(ids) + seats.weight)                                      # (B, T, V)
        guesses, before = logits[:, 1:], ids[:, :-1]                                    # (B, T - 1, V), (B, T - 1)
        loss = nn.functional.cross_entropy(guesses.flatten(0, 1), before.flatten())     # ()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        if step % 10 == 0:
            print(f"after {step:2} steps the loss is {loss.item():.3f}")

    text = "wordsinarow"
    x = letters(torch.tensor([[ord(letter) - ord("a") for letter in text]])) + seats.weight[: len(text)]  # (1, T, C)
    _, weights = attention(head.query(x), head.key(x), head.value(x), causal_mask(len(text)))  # (1, T, T)
    print("\nhow much each row attends to each letter, in per cent:\n      " + "    ".join(text))
    for letter, row in zip(text, weights[0].tolist(), strict=True):
        print(f"{letter}  " + " ".join(f"{100 * weight:4.0f}" for weight in row))

# %% [markdown]
# A stripe just below the diagonal: each seat has learned to ask for the seat before it. (The first letter has nobody
# before it and can only attend to itself. Its guess is not counted.) Nobody wrote this rule down. The gradient found it,
# and with it the queries and keys that say *I am in seat 5 and look for seat 4*. Large language models learn such
# heads, too. They are called *previous-token heads*, and other heads build on them.

# %% [markdown]
# ## Harder: windows and distances
#
# Not graded; about 40 minutes, ●●○.
# A word need not attend to everything before it. The file `harder.py` beside
# this one asks for a mask with a window, for the distance that information travels through many layers of it, and
# for ALiBi, which needs no vectors for positions. Run `python harder.py`: it checks what you write there and says
# in sentences what is missing.
#
# ## Look back
#
# The picture above is an X-ray of your head. The cell in row $t$ and column $s$ shows how strongly the output
# of word $t$ reacts when word $s$ changes. Nobody told the picture about your mask; it only asked
# your code for gradients. When the head is right, the X-ray *is* the causal mask.
#
# One head holds one opinion about which word should attend to which. A sentence has many such relations at
# once (who did it, what came before, what does *it* mean), so a Transformer runs several heads
# side by side. That is the next assignment.
#
# ## Read on
#
# - Bahdanau, Cho and Bengio, *Neural Machine Translation by Jointly Learning to Align and Translate* (2014). The
#   paper that brought attention into translation. Look for how it scores a match without a dot product, and for
#   the figures of which source word each translated word attends to.
# - Vaswani et al., *Attention Is All You Need* (2017), Section 3.2. Find your formula, the footnote that explains
#   the $\sqrt{D}$, and the sentence about masking with $-\infty$.
