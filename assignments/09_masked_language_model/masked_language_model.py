# %% [markdown]
# # 09 · Masked language model
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
# │      ↑       │     ▶ 09 the same, with gaps to fill
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
# A language model that writes has to read from left to right: after every word it must predict the next one,
# and a glance to the right would be cheating. So it never uses the other half of the sentence. Take
#
# > the ▢ barked at the cat
#
# From the left you know only *the*, and half the dictionary fits. One look to the right, and the word is clearly
# *dog*. A model that only has to *understand* a text, and never writes one, should be allowed that look. So in this
# wing of the school for words, everybody has been spoken, and everybody may listen to those behind them, too.
#
# But what is there to predict when all words can be seen? Teachers of foreign languages have known for a long
# time: take a text, **blank out some words**, and let the class fill the gaps. That is how BERT learned, an
# encoder with 109,482,240 numbers, from nothing but books and an encyclopedia with holes in them.
#
# | part | the question it answers |
# |---|---|
# | 1 · Making the gaps | what is the exercise? |
# | 2 · The loss | what does a wrong prediction cost, and where does it count? |
# | 3 · The model | where does the prediction come from? |
#
# At the end you train a small BERT on small sentences, in less than a minute, and ask it where the cat sat.
# Letters for shapes: `B` sentences in a batch, `T` words in a sentence, `C` numbers in a word vector
# (`d_model`), `V` words in the vocabulary. What earlier assignments taught is given by PyTorch's own layers.
#
# **Not here.** BERT's second exercise, to say whether two passages belong together, is left out, and so are pieces of
# words: here a token is a whole word.
#
# The names of functions, classes, attributes and arguments are part of the contract: the tests use them.

# %%
import torch
import torch.nn.functional as F
from torch import Tensor, nn

# %% [markdown]
# ## Given · A small world
#
# Eighty sentences about a house, a garden, a farm and a sea, and every word that stands in them. The first
# four words of the vocabulary are **special**: they are markers, not words of the language.
#
# | id | marker | what it means |
# |---|---|---|
# | 0 | `[PAD]` | padding: the row was only filled up |
# | 1 | `[CLS]` | the sentence begins |
# | 2 | `[SEP]` | the sentence ends |
# | 3 | `[MASK]` | a word was here; which one? |

# %% tags=["hide-input"]
TEXT = """\
the cat sat on the mat
the cat sat on the sofa
the cat sat on the chair by the window
the cat slept on the mat
the cat slept on the sofa all day
the old cat slept on the warm sofa
the cat drank the milk
the cat ran after the mouse
the cat ran after the bird
the small cat sat under the table
the cat looked at the bird in the tree
the cat ate the fish
the dog sat on the mat
the dog slept on the mat by the door
the dog slept under the table
the dog barked at the cat
the dog barked at the horse
the old dog barked at the door
the dog barked all day
the dog barked in the garden
the dog ran after the cat
the dog ran in the garden
the dog ate the bone
the dog drank the water
the dog swam in the river
the mouse ate the cheese
the mouse ate the bread on the table
the mouse ran under the sofa
the mouse ran under the chair
the small mouse slept in the house
the bird sat in the tree
the bird sang in the tree
the bird sang in the garden
the bird sang all day
the small bird sang by the window
the bird flew over the house
the bird flew over the river
the bird flew over the sea
the bird ate the corn
the cow ate the grass
the cow ate the grass by the river
the cow drank the water
the cow gave us milk
the old cow gave us milk all year
the cow slept in the barn
the cow stood in the field
the horse ate the grass in the field
the horse ran in the field
the horse stood in the barn
the horse drank the water
the old horse slept in the barn
the hen gave us eggs
the hen gave us eggs all year
the hen ate the corn
the hen sat in the barn
the hen ran in the garden
the fish swam in the river
the fish swam in the sea
the small fish swam under the boat
the boat sailed over the sea
the old boat sailed in the sea
the boat stood by the river
the girl sat on the chair
the girl sat by the window
the girl drank the milk
the girl ate the bread and the cheese
the girl ate the eggs
the girl sang in the garden
the girl looked at the sea
the girl looked at the moon
the boy sat on the chair by the table
the boy sat under the tree
the boy drank the water
the boy ate the bread and the eggs
the boy ran in the garden
the boy swam in the sea
the boy swam in the river
the boy looked at the boat
the moon stood over the house
the moon stood over the sea
"""

PAD, CLS, SEP, MASK = 0, 1, 2, 3
SPECIAL = [PAD, CLS, SEP, MASK]
WORDS = ["[PAD]", "[CLS]", "[SEP]", "[MASK]", *sorted(set(TEXT.split()))]


def encode(sentences: list[str]) -> Tensor:
    """Sentences as rows of ids, each between CLS and SEP, filled up with PAD: (B, T)."""
    rows = [torch.tensor([CLS, *(WORDS.index(word) for word in s.split()), SEP]) for s in sentences]
    return nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=PAD)


def decode(ids: Tensor) -> str:
    """The words of one row of ids; padding is left out."""
    return " ".join(WORDS[i] for i in ids.tolist() if i != PAD)


if __name__ == "__main__":
    first = encode(TEXT.splitlines()[:1])
    print(f"{len(TEXT.splitlines())} sentences, {len(WORDS)} words. The first sentence:")
    print(first[0].tolist(), "which says", decode(first[0]))

# %% [markdown]
# ## Part 1 · Making the gaps
#
# About 23 minutes, ●●● (difficulty 3 of 3)
#
# Every ordinary word is chosen with a probability of 15 %, independently of all others, as if a die were rolled for
# it. Special words are never chosen; there is nothing to learn from predicting a `[PAD]`. So far, so simple. But
# BERT does not put `[MASK]` at every chosen position. A second die decides:
#
# | of the chosen words | the model sees | for *the cat sat* |
# |---|---|---|
# | 80 % | `[MASK]` | the `[MASK]` sat |
# | 10 % | a random ordinary word, all equally likely, the original one included | the *river* sat |
# | 10 % | the word itself | the *cat* sat |
#
# And in **all three cases** the model is asked for the original word, *cat*.
#
# **Why so complicated?** Because of what comes after this training. A trained BERT is *fine-tuned* for a task, say,
# telling a friendly letter from an angry one, and the texts of that task contain no `[MASK]`. A model
# that had learned "where there is no `[MASK]`, nothing is asked of me" would have learned to be lazy at
# exactly the positions that count from now on. With 80/10/10 no word is safe. A word that can be seen may be an
# impostor (so look at its neighbours), or it may be right and asked for all the same (so do not distrust it
# altogether). The model has to have an opinion about *every* word, masked or not.
#
# It is like proofreading a text that has gaps and a few wrong words as well, while now and then you are asked about
# a right word, just to see whether you are awake.
#
# **The result** is two tables of the same shape. `inputs` is what the model sees. `labels` holds the original word at
# every chosen position and **−100** everywhere else, which is PyTorch's sign for "this position does not count".
# The text itself stays as it was: tomorrow it gets other gaps.
#
# **One number by hand.** In a text of 200,000 ordinary words about 30,000 are chosen. About 24,000 of them become
# `[MASK]`, 3,000 become a random word and 3,000 stay. In a sentence of six words it happens in 38 of 100
# cases ($0.85^6$) that none is chosen at all. Keep that in mind for Part 2.
#
# The second die holds a trap that many have fallen into. If you first take 80 % for `[MASK]` and then 10 % *of the
# rest* for random words, you get 2 % random words instead of 10. If you draw random words over positions where a
# `[MASK]` already stands, you are left with 72 % of the masks. So count.
#
# **To think about.** In each pass the model is asked for only one word in seven. A model that writes is
# asked at every word. What does that mean for the time that each of the two needs to learn?


# %%
def mask_tokens(
    ids: Tensor,
    vocab_size: int,
    mask_id: int,
    special_ids: list[int],
    generator: torch.Generator,
    p: float = 0.15,
) -> tuple[Tensor, Tensor]:
    """Choose words to ask for, and hide them: ids (B, T) -> inputs (B, T), labels (B, T).

    Each ordinary word is chosen with probability p, independently: how many are chosen is random, too, and in a
    short sentence it may be none. Of the chosen ones 80 % become mask_id, 10 % a random ordinary word (all
    equally likely, the original one included), and 10 % stay. The labels are the original ids where a word was
    chosen, and -100 elsewhere.
    special_ids: the ids that are not ordinary words, wherever in the vocabulary they stand; mask_id counts as
    one of them in any case. Special words are never chosen and never drawn as a random word.
    All random numbers come from `generator`: the same seed gives the same tables. ids and special_ids keep
    their values and their order.
    Raises ValueError that names p and its value if p is below 0 or above 1.
    Example: with p = 0 nothing happens, inputs are the ids and all labels -100. With p = 1 all ordinary words
    are chosen.
    """
    # TODO: refuse an impossible p
    # TODO: which words of the vocabulary are ordinary?                                 # (V - specials,)
    # TODO: the first die, for every word: is it chosen?                                # (B, T)
    # TODO: the second die: mask, random word, or itself?                               # (B, T)
    # TODO: the original ids where a word was chosen, and -100 elsewhere                # (B, T)
    raise NotImplementedError("mask_tokens is not written yet.")


# %% part="corruption"
# Written? `autograder check 09_masked_language_model` shows how you are doing.

# %% [markdown]
# The picture runs your function over our text. Above is a strip of it: white words were not chosen, coloured
# ones were, and where the model sees something else, the original word is written below it in small letters. Below
# are the counts over many rounds.

# %% picture="corruption"
# The notebook draws a picture of your own code here.

# %% [markdown]
# ## Part 2 · The loss
#
# About 9 minutes, ●●○ (difficulty 2 of 3)
#
# At every position the model returns `V` numbers, the logits, but only the chosen positions count. The loss is the
# cross-entropy at those positions:
#
# $$\text{loss} = \frac{1}{n} \sum_{(b,t)\ \text{chosen}} -\ln p_{b,t}(\text{label}_{b,t})
#   \qquad p_{b,t} = \operatorname{softmax}(\text{logits}_{b,t})$$
#
# and $n$ is the number of chosen positions **in the whole batch**, wherever they are. Think of marking a pile of
# exams: there are points for the gaps, and none for copying the printed words between them.
#
# **And if there is no gap at all?** Then $n = 0$, the sum is $0$, and $0/0$ is NaN. With small batches it does
# happen, and one `backward()` later a single NaN in the loss has turned every number of the model into NaN: weeks
# of training, gone. So a batch without gaps costs nothing: the loss is 0, and all its gradients are 0, too.
# (Repairing only the *loss* is not enough: a NaN that you replace there may still be in the gradients.)
#
# **One number by hand.** Three positions, of which two were chosen. Their right words got the probabilities
# $\tfrac12$ and $\tfrac18$, so the loss is $(\ln 2 + \ln 8)/2 = 1.386$. The logits of the third position do not
# matter. A model that knows nothing has the loss $\ln V$, as ever.
#
# **To think about.** Why may the loss of a batch with one gap jump up and down so much more than that of a
# batch with fifty? What would you do about it?


# %%
def masked_language_model_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """The mean cross-entropy at the chosen positions, in natural logarithms.

    logits: (B, T, V), any finite numbers, also as large as 10,000; labels: (B, T), the id of the right word,
    or -100 where the position does not count. Every other label is a word, 0 as well.
    Returns one number, a tensor of shape () in the logits' number type: the mean over all chosen positions of the
    batch. If there are none, it is 0, and `backward()` still works: all gradients are 0.
    Example: logits of zeros cost ln V, whether one position counts or all of them.
    """
    # TODO: the sum of -ln p over the chosen positions, divided by how many they are    # ()
    raise NotImplementedError("masked_language_model_loss is not written yet.")


# %% part="loss"
# Written? `autograder check 09_masked_language_model` shows how you are doing.

# %% [markdown]
# The picture chooses four positions of a small batch and looks at the gradient of your loss: how strongly is each
# position pushed to do better? Only the four may light up, and all equally, wherever they stand.

# %% picture="loss"
# The notebook draws a picture of your own code here.

# %% [markdown]
# ## Part 3 · The model
#
# About 15 minutes, ●●○ (difficulty 2 of 3)
#
# The encoder is given: word vectors plus learned positions, then post-norm blocks without a causal mask. Every word
# attends to every word, to the left and to the right, except the padding. It turns words into vectors,
# (B, T) into (B, T, C). What is missing is the way back, from a vector to a word. BERT's way has three steps:
#
# $$h' = \operatorname{LayerNorm}\bigl(\operatorname{GELU}(h\,W + b)\bigr)
#   \qquad \text{logits}_v = h' \cdot E_v + \beta_v$$
#
# First the vector goes through one more small network (`dense`, GELU, `norm`). Then it is compared with **the vector
# of every word**, from the very table $E$ with which the sentence came in: the more alike, the larger the logit.
# Only a `bias` for each word is new, because some words are simply more frequent than others.
#
# Using one table at the entrance and at the exit is called **weight tying**. It saves a second table (in BERT-base
# 23,440,896 numbers), and what the table learns at one door is at once known at the other. Tied means *the same
# parameter*, not a copy that was equal on the first day.
#
# **One number by hand.** With $C = 2$, let $h' = (2, 1)$. The word vectors $(1, 0)$, $(0, 3)$ and $(1, 1)$ with
# biases 0, 0 and $\tfrac12$ get the logits 2, 3 and 3.5. In BERT-base the way back has 768 · 768 + 768 for
# `dense`, 2 · 768 for `norm` and 30,522 for `bias`: 622,650 numbers of its own.
#
# **To think about.** The model is not told which positions were chosen. What would change in its behaviour
# if it were?


# %%
class Encoder(nn.Module):
    """Given. Words become vectors that know their sentence: (B, T) -> (B, T, C).

    Attributes: the tables `token_embedding` (V, C) and `position_embedding` (max_len, C), `norm`, `layers`.
    padding_mask (B, T), True marks padding, which gets no attention.
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
        self.token_embedding = nn.Embedding(vocab_size, d_model)
        self.position_embedding = nn.Embedding(max_len, d_model)
        for table in (self.token_embedding, self.position_embedding):
            nn.init.normal_(table.weight, std=d_model**-0.5)
        self.norm = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(d_model, n_heads, d_ff, dropout, activation="gelu", batch_first=True)
            for _ in range(n_layers)
        )

    def forward(self, ids: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        T, max_len = ids.shape[1], self.position_embedding.num_embeddings
        if T > max_len:
            raise ValueError(f"A sentence of {T} words is longer than max_len = {max_len}.")
        x = self.token_embedding(ids) + self.position_embedding.weight[:T]              # (B, T, C)
        x = self.dropout(self.norm(x))                                                  # (B, T, C)
        for layer in self.layers:
            x = layer(x, src_key_padding_mask=padding_mask)                             # (B, T, C)
        return x


# %%
class MaskedLanguageModel(nn.Module):
    """At each position, V logits for the word that belongs there: (B, T) -> (B, T, V).

    Attributes:
        encoder   the `Encoder` above (given); `encoder.token_embedding.weight` (V, C) is the table
        dense     an `nn.Linear` from C to C, with bias, followed by GELU (the exact one)
        norm      an `nn.LayerNorm`, with PyTorch's default eps
        bias      an `nn.Parameter` (V,), one number for each word, which starts at 0
    Nothing else has parameters: the way back to the words goes through the encoder's own table.

    forward: ids (B, T) -> logits (B, T, V), in the number type of the module
        padding_mask (B, T), True marks padding, which gets no attention, in training and in eval alike; no
        sentence is all padding, and the mask keeps its values
        The logits at padded positions do not matter: they do not count in the loss.
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
        self.encoder = Encoder(vocab_size, d_model, n_heads, n_layers, d_ff, max_len, dropout)
        # TODO: the other three attributes above, under these names
        raise NotImplementedError("MaskedLanguageModel.__init__ is not written yet.")

    def forward(self, ids: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        # TODO: vectors that know their sentence                                        # (B, T, C)
        # TODO: one more small network: dense, GELU, norm                               # (B, T, C)
        # TODO: how alike is each of them to each word of the table? add the bias       # (B, T, V)
        raise NotImplementedError("MaskedLanguageModel.forward is not written yet.")


# %% part="model"
# Written? `autograder check 09_masked_language_model` shows how you are doing.

# %% [markdown]
# ## Let it learn
#
# Now all three parts work together. A training step is short: make gaps, predict, compute the loss, correct. The
# gaps are new in every step, so the same sentence asks another question each time.
#
# Three of our eighty sentences stay hidden from the model. They will show whether it only learns by heart.

# %%
HIDDEN = ["the cat slept on the sofa all day", "the bird flew over the river", "the girl drank the milk"]


def training_step(
    model: nn.Module, optimizer: torch.optim.Optimizer, ids: Tensor, generator: torch.Generator
) -> float:
    """One step of training on all sentences, with fresh gaps; returns the loss before the step."""
    inputs, labels = mask_tokens(ids, len(WORDS), MASK, SPECIAL, generator)             # (B, T), (B, T)
    loss = masked_language_model_loss(model(inputs, ids == PAD), labels)                # ()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def exam(model: nn.Module, sentences: list[str]) -> float:
    """The loss when every word of every sentence is masked once, alone: nothing in it is random."""
    ids = encode(sentences)                                                             # (B, T)
    rows, columns = (ids > MASK).nonzero(as_tuple=True)                                 # (n,), (n,)
    inputs, labels = ids[rows], torch.full_like(ids[rows], -100)                        # (n, T), (n, T)
    each = torch.arange(len(rows))                                                      # (n,)
    labels[each, columns] = inputs[each, columns]
    inputs[each, columns] = MASK
    model.eval()
    with torch.no_grad():
        loss = masked_language_model_loss(model(inputs, inputs == PAD), labels)
    model.train()
    return loss.item()


def top_guesses(model: nn.Module, sentence: str, k: int = 5) -> list[tuple[str, float]]:
    """The k most likely words for the first [MASK] of a sentence, with their probabilities, the best first."""
    ids = encode([sentence])                                                            # (1, T)
    position = ids[0].tolist().index(MASK)
    model.eval()
    with torch.no_grad():
        probabilities = model(ids)[0, position].softmax(dim=-1)                         # (V,)
    best = probabilities.topk(k)
    return [(WORDS[i], p) for p, i in zip(best.values.tolist(), best.indices.tolist())]


# %%
if __name__ == "__main__":
    from autograder.notebook import watch_training

    torch.set_num_threads(1)  # for matrices this small, a second core only costs time
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(1)
    seen = [sentence for sentence in TEXT.splitlines() if sentence not in HIDDEN]
    model = MaskedLanguageModel(len(WORDS), d_model=64, n_heads=4, n_layers=2, d_ff=128, max_len=16)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    steps, losses, exams = 900, [], {}
    watch = watch_training(steps)
    for step in range(1, steps + 1):
        losses.append(training_step(model, optimizer, encode(seen), generator))
        if step % 20 == 0:
            exams[step] = exam(model, HIDDEN)
            watch(step, losses[-1])

# %% [markdown]
# The thin line jumps because every step asks a few new questions. It begins near $\ln V$, or somewhat above. The
# thick line is the exam: every word of the three sentences that the model has never seen. Watch where it turns. Up
# to that point the model learns something about the world; from there on it learns the other sentences by heart.

# %%
if __name__ == "__main__":
    import math

    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6.4, 4), layout="constrained")
    axes.plot(range(1, steps + 1), losses, color="#0072B2", lw=0.8, label="each step")
    axes.plot(list(exams), list(exams.values()), color="#D55E00", lw=2, label="hidden sentences")
    axes.axhline(math.log(len(WORDS)), color="#555555", ls="--", label=f"ln {len(WORDS)}: knows nothing")
    axes.set(title="The loss", xlabel="step", ylabel="cross-entropy")
    axes.legend(frameon=False, loc="upper right", bbox_to_anchor=(1, 0.92))
    plt.show()

# %% [markdown]
# And now the question that we began with. In the second sentence, every word that helps comes after the gap; a
# model that reads from left to right would have to guess blindly.

# %%
if __name__ == "__main__":
    questions = [
        "the cat sat on the [MASK]",
        "the [MASK] barked at the cat",
        "the [MASK] gave us milk",
        "the boat sailed [MASK] the sea",
        "the girl [MASK] the bread and the cheese",
    ]
    for question in questions:
        guesses = top_guesses(model, question)
        print(f"{question:42}", "  ".join(f"{word} {100 * p:.0f} %" for word, p in guesses))

# %% [markdown]
# The pictures train a small model of their own with your three parts and draw its five best guesses. The
# first picture shows how strongly the logits at each position depend on each word. There is no causal mask here:
# light on both sides.

# %% picture="model"
# The notebook draws a picture of your own code here.

# %% [markdown]
# ## Harder: whole sentences
#
# Not graded; about 40 minutes, ●●○ (difficulty 2 of 3).
# A model that fills gaps can also judge a sentence, and write one. The file
# `harder.py` beside this one asks for both: a score for whole sentences, and a function that fills many gaps, the
# surest one first. Run `python harder.py`: it checks what you write there and says in sentences what is missing.
#
# ## Look back
#
# This is BERT. The real one is larger (12 layers, 768 numbers in a vector, 30,522 pieces of words) and has
# read more, and it had a second exercise besides: to say whether two passages belong together, which was
# later found to help little. Its gaps were drawn when the data was prepared, and seen several times; its
# successor RoBERTa draws them anew each time, as you did.
#
# A caveat. Our world is so small that the model learns most of it by heart, so the hidden sentences are the
# ones to watch. And the percentages after a guess are what the model *believes*; whether a model that says 80
# % is right in 80 of 100 cases is another question.
#
# What BERT cannot do is write. Nothing in its training ever asked it to continue a text, and its vector for a
# word changes with every word that comes later.
#
# **One last question.** Put two gaps into one sentence: *the [MASK] drank the [MASK]*. Your model predicts each
# gap on its own. How could it happen that both words are likely and the two together are nonsense?
#
# ## Read on
#
# - Wilson L. Taylor, *"Cloze Procedure": A New Tool for Measuring Readability* (1953): gaps in a text as an exam, 65
#   years before BERT. Look for what was measured with them.
# - Jacob Devlin, Ming-Wei Chang, Kenton Lee and Kristina Toutanova, *BERT: Pre-training of Deep Bidirectional
#   Transformers for Language Understanding* (2018): look for the 80/10/10 rule and the reason they give, then, in the
#   appendix, for the table of what happens with other shares.
# - Yinhan Liu and others, *RoBERTa: A Robustly Optimized BERT Pretraining Approach* (2019): look for static against
#   dynamic masking, and for what became of BERT's second exercise.
# - Alexander Wettig, Tianyu Gao, Zexuan Zhong and Danqi Chen, *Should You Mask 15% in Masked Language Modeling?*
#   (2022): look for their answer.
# - Ofir Press and Lior Wolf, *Using the Output Embedding to Improve Language Models* (2016): weight tying, and why it
#   does more than save memory.
