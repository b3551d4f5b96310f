# %% [markdown]
# # 01 · Word vectors
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
# └──────────────┘       13 with a cache
#        ↑             ▶ 01 vectors
#    vectors +           02 positions
#    positions           12 positions that turn
#        ↑               17 the code around it, debugged
# words of a text        00 why not one word after the other
#
# ▶ you are here
# ```
#
# A computer can add and multiply. It cannot read. Before a Transformer can do anything with a sentence, the sentence
# has to become numbers, and not just any numbers: numbers that *mean* something. This notebook builds the way there.
#
# It takes four steps. Text becomes a list of whole numbers (Part 1). Each number selects a vector from a table
# (Part 2). The table is learned from a guessing game (Parts 3 and 4). And in the end you calculate with words: what
# is *king* minus *man* plus *woman* (Part 5)?
#
# Letters for shapes: `T` tokens in a text, `V` words in the vocabulary, `C` numbers in a vector, `P` pairs in the
# guessing game.
#
# **Not here.** No vector depends on its sentence yet: each word has one vector for all of its meanings, and the last
# section says what that costs.
#
# The names of functions, classes, attributes and arguments are part of the contract: keep them as they are.
# PyTorch has ready-made versions of what you write here: `F.one_hot`, `F.embedding`, `nn.Embedding`, `nn.EmbeddingBag`.
# They are forbidden where you write them; compare yours with them in a cell or function of its own. You may use
# `F.cross_entropy` and PyTorch's functions for softmax and cosine. None of your functions changes its
# arguments: tables, ids and examples keep their values.

# %%
import math

import torch
from torch import Tensor
from torch.nn import functional as F

# %% [markdown]
# ## Part 1 · Text becomes numbers
#
# About 14 minutes, ●○○
#
# A **tokenizer** cuts text into pieces, the **tokens**, and gives each distinct token a number, its **id**. Tokens can
# be words, parts of words or single characters. We take characters: the simplest tokenizer, which can encode
# any text whose characters it has seen.
#
# A school begins with a register. Each name gets a number, no two share one, and the way back must work: the number
# leads to exactly that name. The distinct characters are first *sorted* (as Python sorts them) and then
# numbered from 0, so that everybody gets the same numbers. Together they are the **vocabulary**.
#
# **One number by hand.** In *banana* there are three different characters, sorted: a, b, n. So *banana* is
# `[1, 0, 2, 0, 2, 0]`, and `[2, 0, 1]` is *nab*.
#
# Nobody can be called who is not in the register, and it is better to say so than to call somebody else.
#
# **To think about.** GPT-2 has 50,257 tokens, among them whole words and parts of words. What is gained by longer
# tokens, and what do they cost?


# %%
class CharTokenizer:
    """Characters to ids and back. The ids follow the sorted distinct characters of a text.

    vocab_size is the number of distinct characters.
    Example: CharTokenizer("banana").vocab_size -> 3
    """

    def __init__(self, text: str) -> None:
        # TODO: note which characters there are, which id each of them has, and vocab_size
        ### BEGIN SOLUTION
        self.characters = sorted(set(text))
        self.ids = {character: number for number, character in enumerate(self.characters)}
        self.vocab_size = len(self.characters)
        ### END SOLUTION

    def encode(self, text: str) -> list[int]:
        """The ids of a text's characters. Raises ValueError that names a character which is not in the vocabulary.

        Example: CharTokenizer("banana").encode("nab") -> [2, 0, 1]
        """
        # TODO: refuse a character that has no id, then look all of them up
        ### BEGIN SOLUTION
        for character in text:
            if character not in self.ids:
                raise ValueError(f"The character {character!r} is not in the vocabulary.")
        return [self.ids[character] for character in text]
        ### END SOLUTION

    def decode(self, ids: list[int]) -> str:
        """The text of these ids. Raises ValueError that names an id which is not in the vocabulary (-1, for example).

        Example: CharTokenizer("banana").decode([2, 0, 1]) -> "nab"
        """
        # TODO: refuse an id that no character has, then join the characters
        ### BEGIN SOLUTION
        for number in ids:
            if not 0 <= number < self.vocab_size:
                raise ValueError(f"No character has the id {number}; ids go from 0 to {self.vocab_size - 1}.")
        return "".join(self.characters[number] for number in ids)
        ### END SOLUTION


# %% part="tokens"

# %% [markdown]
# ## Part 2 · Numbers become vectors
#
# About 11 minutes, ●○○
#
# An id is only a name, and that is all a word knows on its first morning in the school for words. Id 7 is not "more"
# than id 3, and the average of *cat* (3) and *sofa* (7) is not *dog* (5).
# A network that calculated with ids would treat them as if all that were true.
#
# The honest way to write down a mere name is **one-hot**: a row with one place for each word of the vocabulary,
# 1 at the word's own place and 0 everywhere else, like a panel of lamps with a single one lit. No word is closer
# to another than to a third; all are equally far apart.
#
# A one-hot row is honest, but long and sparse. So each word gets a row of $C$ numbers in a **table** of shape $(V, C)$,
# its **embedding**:
#
# $$\text{onehot}(\text{id}) \cdot \text{table}$$
#
# **One number by hand.** Let the table have three rows: $(1, 2)$, $(3, 4)$ and $(5, 6)$. Then
# $(0, 0, 1) \cdot \text{table} = 0 \cdot (1,2) + 0 \cdot (3,4) + 1 \cdot (5,6) = (5, 6)$. A whole matrix
# product, and all it does is *fetch row 2*. Nobody would multiply for that: `embed` simply looks the row up.
# Still, the product explains why the table can be learned: it is a linear layer whose input is one-hot.
#
# **To think about.** With 50,257 words of 768 numbers each, how many multiplications does the product need for
# one word, and how many does the lookup need?


# %%
def one_hot(ids: Tensor, vocab_size: int) -> Tensor:
    """One row for each id, 0 everywhere and 1 at the id's place.   ids (T,) -> (T, V), float32

    Example: one_hot(torch.tensor([2, 0]), 3) -> [[0., 0., 1.], [1., 0., 0.]]
    """
    # TODO: start with zeros, then set a single 1 in each row                           # (T, V)
    ### BEGIN SOLUTION
    rows = torch.zeros(len(ids), vocab_size)                                            # (T, V)
    rows[torch.arange(len(ids)), ids] = 1.0
    return rows
    ### END SOLUTION


def embed(ids: Tensor, table: Tensor) -> Tensor:
    """The table's rows with these ids: one_hot(ids) @ table without the multiplication.

    ids: whole numbers of any shape (...); table: (V, C). Returns (..., C), with the number type of the table.
    For ids of any shape, gradients flow back into the rows that were fetched. V may be in the thousands.
    Example: with the rows (1, 2), (3, 4), (5, 6), the id 2 gives (5, 6).
    """
    # TODO: fetch the rows                                                              # (..., C)
    ### BEGIN SOLUTION
    return table[ids]                                                                   # (..., C)
    ### END SOLUTION


# %% part="lookup"

# %% [markdown]
# The picture shows the product for one word: a single 1 selects a single row of the table.

# %% picture="lookup"

# %% [markdown]
# ## Part 3 · The guessing game
#
# About 15 minutes, ●●○
#
# What should the table contain? *You shall know a word by the company it keeps*, the linguist J. R. Firth
# wrote in 1957. Read "she poured the ___ into her cup": you know what fits, and the words that fit are similar. So if
# vectors are good for predicting neighbours, similar words must have similar vectors. That is the idea of
# **word2vec** (2013), and it comes in two forms.
#
# Go through the text word by word. The current word is the **centre**; the words at most `window`
# places to its left and right are its **contexts**. At the ends of the text there are fewer.
#
# - **Skip-gram**: from the centre, predict each context. A training example is a pair (centre, context).
# - **CBOW** (*continuous bag of words*): from all contexts together, predict the centre. An example is
#   (contexts, centre).
#
# **One number by hand.** The text *the cat sat down* has the ids 0 1 2 3. With `window=1`:
#
# | | examples |
# |---|---|
# | skip-gram | (0, 1)  (1, 0)  (1, 2)  (2, 1)  (2, 3)  (3, 2) |
# | CBOW | ([1], 0)  ([0, 2], 1)  ([1, 3], 2)  ([2], 3) |
#
# In *the cat and the dog* the two *the* stand at different places, so with a window of 3 each is a context of
# the other: what is left out is the centre's own *place*, not its word.
#
# **To think about.** A narrow window finds words that can replace each other (*Monday*, *Tuesday*), a wide one
# finds words of the same topic (*Monday*, *office*). Why?


# %%
def skip_gram_pairs(ids: list[int], window: int) -> list[tuple[int, int]]:
    """All pairs (centre, context): centres from left to right, and for each its contexts from left to right.

    A context is another place of the text, at most `window` (1 or more) places away from the centre's.
    Example: skip_gram_pairs([5, 6, 7], 1) -> [(5, 6), (6, 5), (6, 7), (7, 6)]
    """
    # TODO: for every place, a pair with every place nearby that is not itself
    ### BEGIN SOLUTION
    pairs = []
    for here, centre in enumerate(ids):
        for there in range(max(0, here - window), min(len(ids), here + window + 1)):
            if there != here:
                pairs.append((centre, ids[there]))
    return pairs
    ### END SOLUTION


def cbow_examples(ids: list[int], window: int) -> list[tuple[list[int], int]]:
    """For each place from left to right: (the ids of its contexts from left to right, its own id).

    Contexts are the same as in skip_gram_pairs. The text has at least two words.
    Example: cbow_examples([5, 6, 7], 1) -> [([6], 5), ([5, 7], 6), ([6], 7)]
    """
    # TODO: for every place, what stands before it and after it within the window
    ### BEGIN SOLUTION
    examples = []
    for here, centre in enumerate(ids):
        before = ids[max(0, here - window) : here]
        after = ids[here + 1 : here + window + 1]
        examples.append((before + after, centre))
    return examples
    ### END SOLUTION


# %% part="examples"

# %% [markdown]
# In the picture, a filled square means that the word of this row has the word of this column as a context. The
# wider the window, the wider the band; the diagonal stays empty.

# %% picture="examples"

# %% [markdown]
# ## Part 4 · How good is a guess?
#
# About 19 minutes, ●●○
#
# The game uses two tables. A word has one row in the **centre table**, for when it is the centre, and another
# row in the **context table**, for when it is a context. (*Dog* often occurs near *barks* and hardly ever near
# *dog*. With a single table every word would be its own best neighbour.)
#
# Skip-gram takes the centre's row $u$ and computes its dot product with the context row $v_w$ of *every* word $w$. A
# softmax turns these scores (the field calls them **logits**) into probabilities. The loss of a pair is minus the
# logarithm of the probability of the true context $o$, its **cross-entropy**, and the loss of all pairs is the mean:
#
# $$
# P(o \mid c) = \frac{e^{u_c \cdot v_o}}{\sum_{w} e^{u_c \cdot v_w}} \qquad
# \text{loss} = -\frac1P \sum_{(c,\,o)} \log P(o \mid c)
# $$
#
# CBOW does the same in the other direction: the context rows of an example are **averaged**, the dot products of
# this average with the centre row of every word are the scores, and the true centre should get a high probability.
# An example at the end of a text has fewer contexts; its average is taken over those that it has.
#
# **One number by hand.** Let there be three words, and let word 0 have the scores $\ln 2, 0, 0$ with them. The
# exponentials are $2, 1, 1$ and the probabilities $\tfrac12, \tfrac14, \tfrac14$. For the pair (0, 1) the loss is
# $-\ln \tfrac14 = 1.386$. A model that knows nothing gives every word probability $1/V$, and its loss is $\ln V$:
# with three words, $\ln 3 = 1.099$.
#
# `F.cross_entropy(scores, targets)` does softmax, logarithm and mean in one call, and it copes with scores in the
# hundreds, for which $e^x$ written out overflows. Gradients flow into both tables, and the loss has their number type.
#
# **To think about.** The sum runs over the whole vocabulary, for every pair. The real word2vec has millions of
# words and avoids the sum: it compares the true context with a few random words instead (*negative sampling*). What
# does that save?


# %%
def skip_gram_loss(centre_table: Tensor, context_table: Tensor, pairs: Tensor) -> Tensor:
    """The mean loss of guessing each context from its centre, as a tensor of shape ().

    centre_table and context_table: (V, C); pairs: (P, 2) whole numbers, (centre, context) in each row.
    Scores of several hundred are no problem, gradients flow into both tables, and the loss has their number type.
    Example: with tables full of zeros the loss is ln V.
    """
    # TODO: the scores of all words as contexts, for the centre of each pair            # (P, V)
    # TODO: the loss of the true contexts                                               # ()
    ### BEGIN SOLUTION
    centres, contexts = pairs[:, 0], pairs[:, 1]                                        # (P,), (P,)
    scores = centre_table[centres] @ context_table.T                                    # (P, V)
    return F.cross_entropy(scores, contexts)                                            # ()
    ### END SOLUTION


def cbow_loss(context_table: Tensor, centre_table: Tensor, examples: list[tuple[list[int], int]]) -> Tensor:
    """The mean loss of guessing each centre from the average of its contexts, as a tensor of shape ().

    context_table and centre_table: (V, C), in this order; examples: (context ids, centre id), as cbow_examples
    gives them; every example has at least one context, and not all have equally many.
    Scores of several hundred are no problem, gradients flow into both tables, and the loss has their number type.
    Example: with tables full of zeros the loss is ln V.
    """
    # TODO: the average context vector of each example                                  # (P, C)
    # TODO: the scores of all words as centres, then the loss of the true centres       # (P, V), ()
    ### BEGIN SOLUTION
    averages = [context_table[contexts].mean(dim=0) for contexts, _ in examples]        # P times (C,)
    centres = torch.tensor([centre for _, centre in examples])                          # (P,)
    scores = torch.stack(averages) @ centre_table.T                                     # (P, V)
    return F.cross_entropy(scores, centres)                                             # ()
    ### END SOLUTION


# %% part="loss"

# %% [markdown]
# The picture plays the game with your code and draws the loss. It begins near $\ln V$, the loss of a model that
# knows nothing, and falls. It never reaches 0, because nobody can know for certain which neighbour comes next.

# %% picture="loss"

# %% [markdown]
# ### A small world to learn from
#
# Real word vectors are learned from billions of words. Ours come from a world of eight people. All we are told about
# them is what they wear, where they sit and live, and what they do in the evening. Nowhere does it say that a queen
# is a royal woman. Can the game find out?

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
# The training itself is given; all it needs is your pairs and your loss. It takes a few seconds. No window reaches
# from one sentence into the next.


# %%
def show_bar(step: int, steps: int, loss: float) -> None:
    """A bar that grows to the right while the training runs."""
    done = 30 * step // steps
    end = "\n" if step == steps else ""
    print(f"\r|{'█' * done}{' ' * (30 - done)}| step {step} of {steps}, loss {loss:.3f}", end=end, flush=True)


def play_skip_gram(width: int = 16, window: int = 4, steps: int = 200) -> tuple[Tensor, Tensor]:
    """The centre table before and after the game, each (V, width)."""
    numbers = [[ID_OF[word] for word in sentence] for sentence in SENTENCES]
    pairs = torch.tensor([pair for ids in numbers for pair in skip_gram_pairs(ids, window)])  # (P, 2)
    dice = torch.Generator().manual_seed(1)
    tables = [0.3 * torch.randn(len(WORDS), width, generator=dice) for _ in range(2)]   # two of (V, C)
    before = tables[0].clone()                                                          # (V, C)
    optimiser = torch.optim.Adam([table.requires_grad_() for table in tables], lr=0.05)
    for step in range(1, steps + 1):
        loss = skip_gram_loss(*tables, pairs)                                           # ()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        show_bar(step, steps, loss.item())
    return before, tables[0].detach()


# %%
if __name__ == "__main__":
    print(f"{len(SENTENCES)} sentences, {len(WORDS)} words; the loss of knowing nothing is {math.log(len(WORDS)):.3f}")
    untrained, trained = play_skip_gram()

# %% [markdown]
# ## Part 5 · Calculating with words
#
# About 18 minutes, ●●○
#
# Which words are similar? Two vectors are compared by the *direction* in which they point, not by their
# length: frequent words tend to have longer vectors, and that should not make them everybody's best friend. The
# measure is the cosine of the angle between them, the **cosine similarity**:
#
# $$\cos(u, v) = \frac{u \cdot v}{\lVert u \rVert\, \lVert v \rVert}$$
#
# It is 1 for the same direction, 0 for a right angle, −1 for opposite directions. The nearest neighbour of a word is
# always the word itself, which is not interesting, so it is left out.
#
# Now the famous part. If *king* and *man* differ only in being royal, and so do *queen* and *woman*, then
# the two differences should be the same vector:
#
# $$\text{king} - \text{man} \approx \text{queen} - \text{woman}
#   \qquad\text{so}\qquad \text{king} - \text{man} + \text{woman} \approx \text{queen}$$
#
# Take the step from *man* to *king*, and take the same step from *woman*: where do you arrive? The question has three
# words, and none of them may be the answer. (With real vectors the nearest word is very often *king* itself. Demos
# leave the three out, too; they just don't always say so.)
#
# **One number by hand.** Let man $= (1, 0)$, king $= (1, 3)$, woman $= (3, 0)$, queen $= (4, 5)$. Then
# king − man + woman $= (3, 3)$. Its cosine with queen is
# $(12 + 15) / (\sqrt{18}\,\sqrt{41}) = 0.994$: almost the same direction, although queen is longer.
#
# **To think about.** To which two other words of our small world should *prince − boy + girl* and
# *boy − man + king* take you?


# %%
def nearest(token_id: int, table: Tensor, k: int) -> list[int]:
    """The ids of the k rows most similar to row token_id, the most similar first, without token_id itself.

    Similarity is the cosine. table: (V, C); k is at most V - 1. The ids are Python ints.
    Another word with the very same vector is a neighbour like any other. The table keeps its values.
    """
    # TODO: the cosine of every row with this one                                       # (V,)
    # TODO: the ids from the most to the least similar, without the word itself
    ### BEGIN SOLUTION
    directions = F.normalize(table)                                                     # (V, C), each of length 1
    similarity = directions @ directions[token_id]                                      # (V,)
    order = similarity.argsort(descending=True).tolist()
    return [other for other in order if other != token_id][:k]
    ### END SOLUTION


def analogy(a: int, b: int, c: int, table: Tensor) -> int:
    """The word that is to c as b is to a: the id of the row nearest to table[b] - table[a] + table[c].

    Nearest means the largest cosine with that vector; a, b and c themselves are never the answer.
    The rows are added as they are: only the comparison ignores lengths. The answer is a Python int, and the
    table keeps its values.
    Example: a = man, b = king, c = woman -> queen.
    """
    # TODO: where do you arrive?                                                        # (C,)
    # TODO: the most similar row that is none of the three
    ### BEGIN SOLUTION
    goal = table[b] - table[a] + table[c]                                               # (C,)
    similarity = F.cosine_similarity(table, goal)                                       # (V,)
    similarity[[a, b, c]] = -math.inf
    return int(similarity.argmax())
    ### END SOLUTION


# %% part="neighbours"

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
# The picture projects the vectors of the eight people onto paper, before and after the game. The thin lines join
# people who differ in one respect only: royal or not, old or young, male or female. Before the game, they
# cross in a tangle. After it, they are the edges of a box: the same step leads from *man* to *woman*
# and from *king* to *queen*.

# %% picture="neighbours"

# %% [markdown]
# ## Harder: word vectors without training
#
# Not graded; about 40 minutes, ●●○.
# What skip-gram finds with many thousand guesses can also be counted and compressed.
# The file `harder.py` beside this one asks for both: a table of neighbours, and the vectors that a singular value
# decomposition makes of it. Run `python harder.py`: it checks what you write there and says in sentences what is
# missing.
#
# ## Look back
#
# **Counting instead of guessing.** Go through the text once, count how often each two words occur near each other, and
# look for vectors whose dot products are the logarithms of the counts: that is **GloVe** (2014). It arrives at much
# the same place, since the guessing game, too, depends on nothing but these counts. What it lacks is the sentence: in
# the end it is a table as well.
#
# **What a table cannot do.** *She sat down on the bank of the river. She took the money to the bank.* A table has a
# single row for *bank*, fetched in both sentences, a mixture of water and money. However good the table, the vector is
# **static**: it was fixed before the sentence was read. But what a word means is decided by the sentence.
#
# So vectors must be computed *from* the sentence. **ELMo** (2018) runs recurrent networks over the sentence in both
# directions and takes their internal states at each word. What it lacks is a direct line: the networks read one word
# after the other, with the three weaknesses of assignment 00, and neither direction sees the other half of the
# sentence before the two are joined. **Transformers** make the table's row a mere starting point: layer by layer, each
# word gathers information from the others and its vector becomes **contextual**. How they do that is what the rest of
# this course is about.
#
# **One question to take along:** in our game, *the dog bites the man* and *the man bites the dog* give nearly the same
# pairs. What do word vectors know nothing about? The next assignment, positional encoding, adds it.
#
# ## Read on
#
# - Mikolov, Chen, Corrado and Dean, *Efficient Estimation of Word Representations in Vector Space* (2013). The paper
#   of skip-gram and CBOW: Figure 1 shows both side by side, and Table 1 lists the kinds of analogies that are asked.
# - Mikolov, Sutskever, Chen, Corrado and Dean, *Distributed Representations of Words and Phrases and their
#   Compositionality* (2013). Look for negative sampling, and for why frequent words such as *the* are left out at
#   random.
# - Pennington, Socher and Manning, *GloVe: Global Vectors for Word Representation* (2014). Counting instead of
#   guessing, with the argument for why ratios of counts carry meaning (*ice*, *steam*, *solid*, *gas*).
# - Peters et al., *Deep contextualized word representations* (2018), the ELMo paper. Look for the table with the
#   nearest neighbours of *play* in different sentences.
