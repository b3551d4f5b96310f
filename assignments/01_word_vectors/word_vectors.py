# %% [markdown]
# # 01 · Word vectors
#
# A computer can add and multiply. It cannot read. Between a sentence and everything that a Transformer does with
# it, something is missing, and this notebook builds it: a way from text to numbers, and from mere numbers to
# numbers that *mean* something.
#
# The way has four steps. Text becomes a list of whole numbers (Part 1). Each number picks a vector from a table
# (Part 2). The table is filled by a guessing game (Parts 3 and 4). And in the end you calculate with words: what
# is *king* minus *man* plus *woman* (Part 5)?
#
# The alphabet of shapes: `T` tokens in a text, `V` words in the vocabulary, `C` numbers in a vector, `P` pairs in
# the guessing game. What you write here, PyTorch has ready-made: `F.one_hot`, `F.embedding`, `nn.Embedding`. They
# are for later; today they do not count (to compare yours with them, do so below `if __name__ == "__main__":`).
# `F.cross_entropy` and what deals with softmax and cosine you may use. And none of your functions changes what it
# is handed: tables, ids and examples keep their values.

# %%
import math

import torch
from torch import Tensor
from torch.nn import functional as F

# %% [markdown]
# ## Part 1 · Text becomes numbers
#
# A **tokenizer** cuts text into pieces, the tokens, and gives each kind of piece a number, its **id**. Pieces can
# be words, parts of words or single characters. We take characters: it is the simplest tokenizer that can write
# down any text it has seen the letters of.
#
# Think of a coat check. Each coat gets a number, nobody gets two, and the way back must work: with the number
# you receive exactly your coat. So that everybody gives out the same numbers, the distinct characters are
# *sorted* first (as Python sorts them), and numbered from 0.
#
# **A worked example.** In *banana* there are three different characters, sorted: a, b, n. So *banana* is
# `[1, 0, 2, 0, 2, 0]`, and `[2, 0, 1]` is *nab*.
#
# A coat that was never handed in cannot be returned. Better say so than hand out the wrong one.
#
# **To think about:** GPT-2 has 50,257 tokens, among them whole words and pieces of words. What is gained by longer
# pieces, and what do they cost?


# %%
class CharTokenizer:
    """Characters to ids and back. The ids follow the sorted distinct characters of a text.

    vocab_size is the number of distinct characters.
    Example: CharTokenizer("banana").vocab_size -> 3
    """

    def __init__(self, text: str) -> None:
        # TODO: note which characters there are, which id each of them has, and vocab_size
        raise NotImplementedError("CharTokenizer.__init__ is not written yet.")

    def encode(self, text: str) -> list[int]:
        """The ids of a text's characters. ValueError that names a character which is not in the vocabulary.

        Example: CharTokenizer("banana").encode("nab") -> [2, 0, 1]
        """
        # TODO: refuse a character that has no id, then look all of them up
        raise NotImplementedError("CharTokenizer.encode is not written yet.")

    def decode(self, ids: list[int]) -> str:
        """The text of these ids. ValueError that names an id which no character has (-1, for example).

        Example: CharTokenizer("banana").decode([2, 0, 1]) -> "nab"
        """
        # TODO: refuse an id that nobody has, then put the characters together
        raise NotImplementedError("CharTokenizer.decode is not written yet.")


# %% part="tokens"
# Written? `autograder check 01_word_vectors` tells how this part stands.

# %% [markdown]
# ## Part 2 · Numbers become vectors
#
# An id is only a name. Id 7 is not "more" than id 3, and the average of *cat* (3) and *sofa* (7) is not *dog* (5).
# A network that calculates with ids would believe all that.
#
# The honest way to write down a mere name is **one-hot**: a row with a place for each word of the vocabulary, all
# 0 but a single 1. It is a light panel with one lamp lit. No word is nearer to another one, all are equally
# far apart.
#
# Honest, but long and empty. So each word gets a row of $C$ numbers in a **table** of shape $(V, C)$, and the word's
# vector is
#
# $$\text{onehot}(\text{id}) \cdot \text{table}$$
#
# **A worked example.** Let the table have three rows: $(1, 2)$, $(3, 4)$ and $(5, 6)$. Then
# $(0, 0, 1) \cdot \text{table} = 0 \cdot (1,2) + 0 \cdot (3,4) + 1 \cdot (5,6) = (5, 6)$. A whole matrix
# product, and all it does is to *fetch row 2*. Nobody would multiply for that: `embed` only looks the row up.
# Still, the product explains why the table can be learnt: it is a linear layer whose input is one-hot.
#
# **To think about:** with 50,257 words and 768 numbers each, how many multiplications does the product need for
# one word, and how many does the lookup need?


# %%
def one_hot(ids: Tensor, vocab_size: int) -> Tensor:
    """One row for each id, 0 everywhere and 1 at the id's place.   ids (T,) -> (T, V), float32

    Example: one_hot(torch.tensor([2, 0]), 3) -> [[0., 0., 1.], [1., 0., 0.]]
    """
    # TODO: begin with zeros, then light one lamp in each row                                  # (T, V)
    raise NotImplementedError("one_hot is not written yet.")


def embed(ids: Tensor, table: Tensor) -> Tensor:
    """The table's rows with these ids: one_hot(ids) @ table without the multiplication.

    ids: whole numbers of any shape (...); table: (V, C). Returns (..., C), with the number type of the table.
    Gradients flow back into the rows that were fetched.
    Example: with the rows (1, 2), (3, 4), (5, 6), the id 2 gives (5, 6).
    """
    # TODO: fetch the rows                                                                     # (..., C)
    raise NotImplementedError("embed is not written yet.")


# %% part="lookup"
# Written? `autograder check 01_word_vectors` tells how this part stands.

# %% [markdown]
# The picture shows the product for one word: one lamp is lit, and one row of the table comes through.

# %% picture="lookup"
# The notebook draws a picture of your own code here.

# %% [markdown]
# ## Part 3 · The guessing game
#
# What should stand in the table? *You shall know a word by the company it keeps*, the linguist J. R. Firth
# wrote in 1957. Read "she poured the ___ into her cup": you know what fits, and all that fits is alike. So if
# vectors are good for guessing neighbours, similar words must have similar vectors. That is the whole trick of
# **word2vec** (2013), and it comes in two forms.
#
# Walk through the text word by word. The word at which you stand is the **centre**; the words at most `window`
# places to the left and to the right are its **contexts**. At the ends of the text there are fewer.
#
# - **Skip-gram**: from the centre, guess each context. A training example is a pair (centre, context).
# - **CBOW** (*continuous bag of words*): from all contexts together, guess the centre. An example is
#   (contexts, centre).
#
# **A worked example.** The text *the cat sat down* has the ids 0 1 2 3. With `window=1`:
#
# | | examples |
# |---|---|
# | skip-gram | (0, 1)  (1, 0)  (1, 2)  (2, 1)  (2, 3)  (3, 2) |
# | CBOW | ([1], 0)  ([0, 2], 1)  ([1, 3], 2)  ([2], 3) |
#
# In *the cat and the dog* the two *the* stand at different places, so with a window of 3 they are each other's
# context: what is left out is the centre's own *place*, not its word.
#
# **To think about:** a narrow window finds words that can stand in for each other (*Monday*, *Tuesday*), a wide one
# finds words of one topic (*Monday*, *office*). Why?


# %%
def skip_gram_pairs(ids: list[int], window: int) -> list[tuple[int, int]]:
    """All pairs (centre, context): centres from left to right, and for each its contexts from left to right.

    A context is another place of the text, at most `window` (1 or more) places away from the centre's.
    Example: skip_gram_pairs([5, 6, 7], 1) -> [(5, 6), (6, 5), (6, 7), (7, 6)]
    """
    # TODO: for every place, a pair with every place nearby that is not itself
    raise NotImplementedError("skip_gram_pairs is not written yet.")


def cbow_examples(ids: list[int], window: int) -> list[tuple[list[int], int]]:
    """For each place from left to right: (the ids of its contexts from left to right, its own id).

    Contexts are the same as in skip_gram_pairs. The text has at least two words.
    Example: cbow_examples([5, 6, 7], 1) -> [([6], 5), ([5, 7], 6), ([6], 7)]
    """
    # TODO: for every place, what stands before it and after it within the window
    raise NotImplementedError("cbow_examples is not written yet.")


# %% part="examples"
# Written? `autograder check 01_word_vectors` tells how this part stands.

# %% [markdown]
# In the picture, a filled square says: the word of this row has the word of this column as a context. The wider the
# window, the wider the band; the diagonal stays empty.

# %% picture="examples"
# The notebook draws a picture of your own code here.

# %% [markdown]
# ## Part 4 · How good is a guess?
#
# Two tables take part. A word has one row in the **centre table**, for when it stands in the middle, and another
# row in the **context table**, for when it stands beside. (*Dog* often stands near *barks* and hardly ever near
# *dog*. With a single table every word would be its own best neighbour.)
#
# Skip-gram takes the centre's row $u$, multiplies it with the context row $v_w$ of *every* word $w$, and a
# softmax makes shares of these scores. The loss of the pair is minus the logarithm of the share that the true
# context $o$ got, and the loss of all pairs is the mean:
#
# $$
# P(o \mid c) = \frac{e^{u_c \cdot v_o}}{\sum_{w} e^{u_c \cdot v_w}} \qquad
# \text{loss} = -\frac1P \sum_{(c,\,o)} \log P(o \mid c)
# $$
#
# CBOW does the same in the other direction: the context rows of an example are **averaged**, the average is
# multiplied with the centre row of every word, and the true centre should get a large share. An example at the end
# of a text has fewer contexts; it is averaged over those it has.
#
# **One number by hand.** Let there be three words, and let word 0 have the scores $\ln 2, 0, 0$ with them. The
# exponentials are $2, 1, 1$ and the shares $\tfrac12, \tfrac14, \tfrac14$. For the pair (0, 1) the loss is
# $-\ln \tfrac14 = 1.386$. Who knows nothing gives every word the share $1/V$ and pays $\ln V$: with three
# words, $\ln 3 = 1.099$.
#
# `F.cross_entropy(scores, targets)` does softmax, logarithm and mean in one go, and survives scores in the
# hundreds, at which $e^x$ written out does not fit any more.
#
# **To think about:** the sum runs over the whole vocabulary, for every pair. The real word2vec has millions of
# words and avoids the sum (it plays against a few random words instead: *negative sampling*). What would you
# save?


# %%
def skip_gram_loss(centre_table: Tensor, context_table: Tensor, pairs: Tensor) -> Tensor:
    """The mean loss of guessing each context from its centre, as a tensor of shape ().

    centre_table and context_table: (V, C); pairs: (P, 2) whole numbers, (centre, context) in each row.
    Scores of several hundred are no problem, and gradients flow into both tables.
    Example: with tables full of zeros the loss is ln V.
    """
    # TODO: the score of every word as a context, for each pair's centre                       # (P, V)
    # TODO: the loss of the true contexts                                                      # ()
    raise NotImplementedError("skip_gram_loss is not written yet.")


def cbow_loss(context_table: Tensor, centre_table: Tensor, examples: list[tuple[list[int], int]]) -> Tensor:
    """The mean loss of guessing each centre from the average of its contexts, as a tensor of shape ().

    context_table and centre_table: (V, C), in this order; examples: (context ids, centre id), as cbow_examples
    gives them; every example has at least one context, and not all have equally many.
    Scores of several hundred are no problem, and gradients flow into both tables.
    Example: with tables full of zeros the loss is ln V.
    """
    # TODO: the average context vector of each example                                         # (P, C)
    # TODO: the score of every word as the centre, and the loss of the true centres            # (P, V), ()
    raise NotImplementedError("cbow_loss is not written yet.")


# %% part="loss"
# Written? `autograder check 01_word_vectors` tells how this part stands.

# %% [markdown]
# The picture plays the game with your code and draws the loss. It begins near $\ln V$, the price of knowing
# nothing, and falls. It never reaches 0: nobody can know which neighbour comes.

# %% picture="loss"
# The notebook draws a picture of your own code here.

# %% [markdown]
# ### A small world to learn from
#
# Real word vectors are made from billions of words. Ours live in a world of eight people, of whom we only hear what
# they wear, where they sit and live, and what they do in the evening. Nowhere does it say that a queen is a royal
# woman. Can the game find out?

# %%
STORY = """
the king wears his crown . the king sits on his throne . the king lives in his castle
the old king sings and he dances . he is the old king
the queen wears her crown . the queen sits on her throne . the queen lives in her castle
the old queen sings and she dances . she is the old queen
the prince wears his crown . the prince sits on his throne . the prince lives in his castle
the young prince sings and he dances . he is the young prince
the princess wears her crown . the princess sits on her throne . the princess lives in her castle
the young princess sings and she dances . she is the young princess
the man wears his hat . the man sits on his bench . the man lives in his cottage
the old man sings and he dances . he is the old man
the woman wears her hat . the woman sits on her bench . the woman lives in her cottage
the old woman sings and she dances . she is the old woman
the boy wears his hat . the boy sits on his bench . the boy lives in his cottage
the young boy sings and he dances . he is the young boy
the girl wears her hat . the girl sits on her bench . the girl lives in her cottage
the young girl sings and she dances . she is the young girl
"""

SENTENCES = [sentence.split() for sentence in STORY.strip().replace(" . ", "\n").split("\n")]
WORDS = list(dict.fromkeys(word for sentence in SENTENCES for word in sentence))
ID_OF = dict(zip(WORDS, range(len(WORDS))))


# %% [markdown]
# The guessing game itself is given; all it needs is your pairs and your loss. It takes a few seconds. Windows do not
# reach from one sentence into the next.


# %%
def progress(step: int, steps: int, loss: float) -> None:
    """A bar that grows to the right while the training runs."""
    done = 30 * step // steps
    end = "\n" if step == steps else ""
    print(f"\r|{'█' * done}{' ' * (30 - done)}| step {step} of {steps}, loss {loss:.3f}", end=end, flush=True)


def play_skip_gram(width: int = 16, window: int = 4, steps: int = 200) -> tuple[Tensor, Tensor]:
    """The centre table before and after the game, each (V, width)."""
    numbers = [[ID_OF[word] for word in sentence] for sentence in SENTENCES]
    pairs = torch.tensor([pair for ids in numbers for pair in skip_gram_pairs(ids, window)])   # (P, 2)
    dice = torch.Generator().manual_seed(1)
    tables = [0.3 * torch.randn(len(WORDS), width, generator=dice) for _ in range(2)]          # two of (V, C)
    before = tables[0].clone()                                                                 # (V, C)
    optimiser = torch.optim.Adam([table.requires_grad_() for table in tables], lr=0.05)
    for step in range(1, steps + 1):
        loss = skip_gram_loss(*tables, pairs)                                                  # ()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        progress(step, steps, loss.item())
    return before, tables[0].detach()


# %%
if __name__ == "__main__":
    print(f"{len(SENTENCES)} sentences, {len(WORDS)} words; knowing nothing costs {math.log(len(WORDS)):.3f}")
    untrained, trained = play_skip_gram()

# %% [markdown]
# ## Part 5 · Calculating with words
#
# Which words are alike? Two vectors are compared by the *direction* in which they point, not by their
# length: frequent words tend to have longer vectors, and that should not make them everybody's best friend. The
# measure is the **cosine** of the angle between them:
#
# $$\cos(u, v) = \frac{u \cdot v}{\lVert u \rVert\, \lVert v \rVert}$$
#
# It is 1 for the same direction, 0 for a right angle, −1 for opposite directions. The nearest neighbour of a word is
# always the word itself, which is not interesting, so it is left out.
#
# Now the famous part. If *king* and *man* differ in "royal" alone, and so do *queen* and *woman*, then
# the two differences should be the same vector:
#
# $$\text{king} - \text{man} \approx \text{queen} - \text{woman}
#   \qquad\text{so}\qquad \text{king} - \text{man} + \text{woman} \approx \text{queen}$$
#
# Walk from *man* to *king*, and walk the same way from *woman*: where do you arrive? The question has three
# words, and none of them may be the answer. (In real vectors the nearest word is very often *king* itself. Demos do
# leave the three out, they only do not always say so.)
#
# **One number by hand.** Let man $= (1, 0)$, king $= (1, 3)$, woman $= (3, 0)$, queen $= (4, 5)$. Then
# king − man + woman $= (3, 3)$. Its cosine with queen is
# $(12 + 15) / (\sqrt{18}\,\sqrt{41}) = 0.994$: almost the same direction, although queen is longer.
#
# **To think about:** which other two words of our small world should *prince − boy + girl* and
# *boy − man + king* bring you to?


# %%
def nearest(token_id: int, table: Tensor, k: int) -> list[int]:
    """The ids of the k rows most like row token_id, the most similar first, without token_id itself.

    Similar is what has a large cosine. table: (V, C); k is at most V - 1. Python's whole numbers come back.
    Another word with the very same vector is a neighbour like any other. The table keeps its values.
    """
    # TODO: the cosine of every row with this one                                              # (V,)
    # TODO: the ids from the most to the least similar, without the word itself
    raise NotImplementedError("nearest is not written yet.")


def analogy(a: int, b: int, c: int, table: Tensor) -> int:
    """The word that is to c as b is to a: the id of the row nearest to table[b] - table[a] + table[c].

    Nearest is what has the largest cosine with that vector; a, b and c themselves are never the answer.
    The rows are taken as they are: only the comparison ignores lengths. A Python whole number comes back, and the
    table keeps its values.
    Example: a = man, b = king, c = woman -> queen.
    """
    # TODO: where do you arrive?                                                               # (C,)
    # TODO: the most similar row that is none of the three
    raise NotImplementedError("analogy is not written yet.")


# %% part="neighbours"
# Written? `autograder check 01_word_vectors` tells how this part stands.

# %%
if __name__ == "__main__":
    for word in ("king", "girl", "crown"):
        friends = [WORDS[other] for other in nearest(ID_OF[word], trained, 3)]
        print(f"most like {word}: {', '.join(friends)}")
    for b, a, c in (("king", "man", "woman"), ("prince", "boy", "girl"), ("boy", "man", "king")):
        ids = ID_OF[a], ID_OF[b], ID_OF[c]
        answers = [WORDS[analogy(*ids, table)] for table in (untrained, trained)]
        print(f"{b} - {a} + {c} = {answers[1]} (before the game: {answers[0]})")

# %% [markdown]
# The picture brings the vectors of the eight people onto paper, before and after the game. Before, they are
# scattered anywhere. After, they are the corners of a box that nobody drew: the same step leads from *man* to *woman*
# and from *king* to *queen*.

# %% picture="neighbours"
# The notebook draws a picture of your own code here.

# %% [markdown]
# ## Where this road leads
#
# **Counting instead of guessing.** Walk through the text once, count for each two words how often they stand near
# each other, and look for vectors whose products give the logarithms of the counts: that is **GloVe** (2014). It
# arrives at much the same place, since the guessing game, too, lives on nothing but these counts.
#
# **What a table cannot do.** *She sat down on the bank of the river. She took the money to the bank.* A table has a
# single row for *bank*, fetched in both sentences, a blend of water and money. However good the table, the vector is
# **static**: it was fixed before the sentence was read. But what a word means is decided by the sentence.
#
# So vectors must be made *in* the sentence. **ELMo** (2018) let a recurrent network read the sentence in both directions
# and took what it had in mind at each word. **Transformers** make the table's row a mere beginning: layer by layer,
# each word listens to the others and its vector becomes *contextual*. How they do that is what the rest of this course
# is about.
#
# **One question to take along:** in our game, *the dog bites the man* and *the man bites the dog* give nearly the same
# pairs. What have word vectors no idea of? The next assignment, positional encoding, adds it.
