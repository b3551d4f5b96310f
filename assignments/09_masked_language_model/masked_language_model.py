# %% [markdown]
# # 09 · Masked language model
#
# A language model that writes reads from left to right. It has to: at every word it must guess the next one,
# and a glance to the right would be cheating. What was missing so far is the other half of the sentence. Take
#
# > the ▢ barked at the cat
#
# From the left you know only *the*, and half the dictionary fits. One look to the right, and everybody says
# *dog*. Somebody who wants to *understand* a text, and need not write it, should be allowed that look.
#
# But what is there to guess when all words can be seen? Teachers of foreign languages have known for a long
# time: take a text, **blank out some words**, and let the class fill the gaps. That is how BERT learnt, an
# encoder with 109,482,240 numbers, from nothing but books and an encyclopedia with holes in them.
#
# | part | the question it answers |
# |---|---|
# | 1 · Making the gaps | what is the exercise? |
# | 2 · The loss | what does a wrong guess cost, and who is asked at all? |
# | 3 · The model | who makes the guess? |
#
# At the end you train a small BERT on small sentences, in less than a minute, and ask it where the cat sat.
# Letters for shapes: `B` sentences in a batch, `T` words in a sentence, `C` numbers in a word vector
# (`d_model`), `V` words in the vocabulary. What earlier assignments taught is given by PyTorch's own layers.

# %%
import torch
import torch.nn.functional as F
from torch import Tensor, nn

# %% [markdown]
# ## Given · A small world
#
# Eighty sentences about a house, a garden, a farm and a sea, and every word that stands in them. The first
# four words of the vocabulary are **special**: they are signs, not words of the language.
#
# | id | sign | what it says |
# |---|---|---|
# | 0 | `[PAD]` | nothing stands here, the row was only filled up |
# | 1 | `[CLS]` | here the sentence begins |
# | 2 | `[SEP]` | here it ends |
# | 3 | `[MASK]` | a word was here; guess which |

# %%
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
# Every ordinary word is chosen with a chance of 15 %, each for itself, as if a die were thrown for it.
# Special words are never chosen; there is nothing to learn from guessing a `[PAD]`. So far, so simple. But
# BERT does not put `[MASK]` at every chosen place. A second die decides:
#
# | share of the chosen words | what the model gets to see | for *the cat sat* |
# |---|---|---|
# | 80 % | `[MASK]` | the `[MASK]` sat |
# | 10 % | a random ordinary word, each with the same chance, also the one that stood there | the *river* sat |
# | 10 % | the word itself | the *cat* sat |
#
# And in **all three cases** the model is asked for the original word, *cat*.
#
# **Why so complicated?** Because of the day after school. A trained BERT is *fine-tuned* for a task, say,
# telling a friendly letter from an angry one, and the texts of that task have no `[MASK]` in them. A model
# that had learnt "wherever there is no `[MASK]`, nobody asks me anything" would have learnt to be lazy at
# exactly the places that count from now on. With 80/10/10 no word is safe. A word that can be seen may be an
# impostor (so look at its neighbours), or it may be right and asked for all the same (so do not distrust it
# altogether). The model has to have an opinion about *every* word, masked or not.
#
# It is like a proof-reader who has been told that there are gaps in the text, and a few wrong words as well, and
# that some right words will be asked for just to see whether everybody is awake.
#
# **What comes back** are two tables of the same shape. `inputs` is what the model sees. `labels` holds the
# right answer at every chosen place and **−100** everywhere else, which is PyTorch's sign for "nobody is
# asked here". The text itself stays as it was: tomorrow it gets other gaps.
#
# **In numbers.** In a text of 200,000 ordinary words about 30,000 are chosen. About 24,000 of them become
# `[MASK]`, 3,000 become a random word and 3,000 stay. With a sentence of six words it happens in 38 of 100
# cases ($0.85^6$) that none is chosen at all. Keep that in mind for Part 2.
#
# The two steps of the second die hold a trap that many have fallen into. Who first takes 80 % for `[MASK]`
# and then takes 10 % *of the rest* for random words gets 2 % instead of 10. Who draws random words over
# places where a `[MASK]` already stands is left with 72 % of them. So count.
#
# **To think about.** In each round the model is asked for only one word in seven. A model that writes is
# asked at every word. What does that mean for the time that each of the two has to go to school?


# %%
def mask_tokens(
    ids: Tensor,
    vocab_size: int,
    mask_id: int,
    special_ids: list[int],
    generator: torch.Generator,
    p: float = 0.15,
) -> tuple[Tensor, Tensor]:
    """Choose words to ask for, and disguise them: ids (B, T) -> inputs (B, T), labels (B, T).

    Each ordinary word is chosen with chance p, for itself: how many are chosen is a matter of chance, too, and
    in a short sentence it may be none. Of the chosen ones 80 % become mask_id, 10 % a
    random ordinary word (each equally likely, by chance the same one again), and 10 % stay. The labels are
    the original ids where a word was chosen, and -100 elsewhere.
    special_ids: the ids that are not ordinary words, wherever in the vocabulary they stand; mask_id counts as
    one of them in any case. Special words are never chosen and never drawn as a random word.
    All chance comes from `generator`: whoever starts it with the same seed gets the same tables. ids and
    special_ids keep their values.
    Raises ValueError that names p and its value if p is below 0 or above 1.
    Example: with p = 0 nothing happens, inputs are the ids and all labels -100. With p = 1 all ordinary words
    are chosen.
    """
    # TODO: refuse an impossible p
    # TODO: which words of the vocabulary are ordinary?                                     # (V - specials,)
    # TODO: the first die, for every word: is it chosen?                                    # (B, T)
    # TODO: the second die: mask, another word, or itself?                                  # (B, T)
    # TODO: the right answers where somebody is asked, and the sign for "nobody" elsewhere  # (B, T)
    raise NotImplementedError("mask_tokens is not written yet.")


# %% part="corruption"
# Written? `autograder check 09_masked_language_model` tells how this part stands.

# %% [markdown]
# The picture runs your function over our text. Above, a strip of it: white words were not chosen, coloured
# ones were, and where the model sees something else, the original stands small beneath. Below, the count over
# many rounds.

# %% picture="corruption"
# The notebook draws a picture of your own code here.

# %% [markdown]
# ## Part 2 · The loss
#
# The model answers at every place with `V` numbers, the logits, but it is asked only where a label stands.
# The loss is the mean surprise at those places:
#
# $$\text{loss} = \frac{1}{n} \sum_{(b,t)\ \text{chosen}} -\ln p_{b,t}(\text{label}_{b,t})
#   \qquad p_{b,t} = \operatorname{softmax}(\text{logits}_{b,t})$$
#
# and $n$ is the number of chosen places **in the whole batch**, wherever they are. Think of marking a pile of
# exams: points are given for the gaps, and nobody gets marks for copying the printed words between them.
#
# **And if there is no gap at all?** Then $n = 0$, the sum is $0$, and $0/0$ is NaN. With small batches it
# does happen, and a single NaN in the loss turns, one `backward()` later, every number of the model into NaN:
# weeks of training, gone. So a batch that asks nothing shall cost nothing: the loss is 0, and what flows back
# from it is 0, too. (Beware of repairing the *loss* only. A NaN that was painted over may still stand
# in the gradients.)
#
# **In numbers.** Three places, of which two are asked. Their right words got the shares $\tfrac12$ and
# $\tfrac18$, so the loss is $(\ln 2 + \ln 8)/2 = 1.386$. What was said at the third place does not matter. A
# model that knows nothing has the loss $\ln V$, as ever.
#
# **To think about.** Why may the loss of a batch with one gap jump up and down so much more than that of a
# batch with fifty? What would you do about it?


# %%
def masked_language_model_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """The mean surprise at the places that are asked, in natural logarithms.

    logits: (B, T, V), any finite numbers, also as large as 10,000; labels: (B, T), the id of the right word,
    or -100 where nobody is asked. Every other label is a word, 0 as well.
    Returns one number, a tensor of shape (): the mean over all asked places of the batch. If there are none,
    it is 0, and `backward()` still works: all gradients are 0.
    Example: logits of zeros cost ln V, whether one place is asked or all of them.
    """
    # TODO: the surprise at each place that is asked, all together, shared by how many there are     # ()
    raise NotImplementedError("masked_language_model_loss is not written yet.")


# %% part="loss"
# Written? `autograder check 09_masked_language_model` tells how this part stands.

# %% [markdown]
# The picture asks at four places of a small batch and looks at the gradient of your loss: how loudly is each
# place told to do better? Only the four may light up, and all the same, wherever they stand.

# %% picture="loss"
# The notebook draws a picture of your own code here.

# %% [markdown]
# ## Part 3 · The model
#
# The encoder is given: word vectors plus learned seats, then post-norm blocks without any staircase.
# Everybody hears everybody, to the left and to the right, except the padding. It turns words into vectors,
# (B, T) into (B, T, C). What is missing is the way back, from a vector to a word. BERT's way has three steps:
#
# $$h' = \operatorname{LayerNorm}\bigl(\operatorname{GELU}(h\,W + b)\bigr)
#   \qquad \text{logits}_v = h' \cdot E_v + \beta_v$$
#
# First the vector is turned over once more in the mind (`dense`, GELU, `norm`). Then it is compared with
# **the vector of every word**, the very table $E$ at which the sentence came in: the more alike, the larger
# the logit. Only a `bias` for each word is new, for some words are simply more frequent than others.
#
# That the table at the entrance is also the table at the exit is called **weight tying**. A dictionary works
# in the same way: one book, to be read in both directions. It saves a second table (in BERT-base 23,440,896
# numbers), and what the table learns at one door is at once known at the other. Tied means *the same
# parameter*, not a copy that was equal on the first day.
#
# **In numbers.** With $C = 2$, let $h' = (2, 1)$. The word vectors $(1, 0)$, $(0, 3)$ and $(1, 1)$ with
# biases 0, 0 and $\tfrac12$ get the logits 2, 3 and 3.5. In BERT-base the way back has 768 · 768 + 768 for
# `dense`, 2 · 768 for `norm` and 30,522 for `bias`: 622,650 numbers of its own.
#
# **To think about.** Nobody tells the model which places are asked. Where would it show up in its behaviour
# if you did?


# %%
class Encoder(nn.Module):
    """Given. Words become vectors that know their sentence: (B, T) -> (B, T, C).

    Attributes: the tables `token_embedding` (V, C) and `position_embedding` (max_len, C), `norm`, `layers`.
    padding_mask (B, T), True marks padding, which nobody hears.
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
        x = self.token_embedding(ids) + self.position_embedding.weight[:T]                  # (B, T, C)
        x = self.dropout(self.norm(x))                                                      # (B, T, C)
        for layer in self.layers:
            x = layer(x, src_key_padding_mask=padding_mask)                                 # (B, T, C)
        return x


class MaskedLanguageModel(nn.Module):
    """At each place, V logits for the word that belongs there: (B, T) -> (B, T, V).

    Attributes:
        encoder   the `Encoder` above (given); `encoder.token_embedding.weight` (V, C) is the table
        dense     an `nn.Linear` from C to C, with bias, followed by GELU (the exact one)
        norm      an `nn.LayerNorm`
        bias      an `nn.Parameter` (V,), one number for each word, which starts at 0
    Nothing else has parameters: the way back to the words goes through the encoder's own table.

    forward: ids (B, T) -> logits (B, T, V)
        padding_mask (B, T), True marks padding, which no other word hears; no sentence is all padding
        What the logits are at padded places does not matter: nobody is asked there.
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
        # TODO: vectors that know their sentence                                            # (B, T, C)
        # TODO: think once more: dense, GELU, norm                                          # (B, T, C)
        # TODO: how alike is each of them to each word of the table? add the bias           # (B, T, V)
        raise NotImplementedError("MaskedLanguageModel.forward is not written yet.")


# %% part="model"
# Written? `autograder check 09_masked_language_model` tells how this part stands.

# %% [markdown]
# ## Let it learn
#
# Now all three parts work together. A lesson is short: make gaps, guess, mark, correct. The gaps are new in
# every lesson, so the same sentence asks another question each time.
#
# Three of our eighty sentences stay hidden from the model. With their help we can see whether it only
# learns by heart.

# %%
HIDDEN = ["the cat slept on the sofa all day", "the bird flew over the river", "the girl drank the milk"]


def lesson(
    model: nn.Module, optimizer: torch.optim.Optimizer, ids: Tensor, generator: torch.Generator
) -> float:
    """One step of training on all sentences, with fresh gaps; returns the loss before the step."""
    inputs, labels = mask_tokens(ids, len(WORDS), MASK, SPECIAL, generator)                 # (B, T), (B, T)
    loss = masked_language_model_loss(model(inputs, ids == PAD), labels)                    # ()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def exam(model: nn.Module, sentences: list[str]) -> float:
    """The loss when every word of every sentence is covered once, alone: no chance in it."""
    ids = encode(sentences)                                                                 # (B, T)
    rows, places = (ids > MASK).nonzero(as_tuple=True)                                      # (n,), (n,)
    inputs, labels = ids[rows], torch.full_like(ids[rows], -100)                            # (n, T), (n, T)
    each = torch.arange(len(rows))                                                          # (n,)
    labels[each, places] = inputs[each, places]
    inputs[each, places] = MASK
    model.eval()
    with torch.no_grad():
        loss = masked_language_model_loss(model(inputs, inputs == PAD), labels)
    model.train()
    return loss.item()


def top_guesses(model: nn.Module, sentence: str, k: int = 5) -> list[tuple[str, float]]:
    """The k likeliest words for the first [MASK] of a sentence, with their chances, the likeliest first."""
    ids = encode([sentence])                                                                # (1, T)
    place = ids[0].tolist().index(MASK)
    model.eval()
    with torch.no_grad():
        chances = model(ids)[0, place].softmax(dim=-1)                                      # (V,)
    best = chances.topk(k)
    return [(WORDS[i], chance) for chance, i in zip(best.values.tolist(), best.indices.tolist())]


# %%
if __name__ == "__main__":
    torch.set_num_threads(1)  # for matrices this small a second core is more talk than help
    torch.manual_seed(0)
    dice = torch.Generator().manual_seed(1)
    seen = [sentence for sentence in TEXT.splitlines() if sentence not in HIDDEN]
    model = MaskedLanguageModel(len(WORDS), d_model=64, n_heads=4, n_layers=2, d_ff=128, max_len=16)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    lessons, losses, exams = 900, [], {}
    for step in range(1, lessons + 1):
        losses.append(lesson(model, optimizer, encode(seen), dice))
        if step % 20 == 0:
            exams[step] = exam(model, HIDDEN)
            bar = "█" * (30 * step // lessons)
            print(f"\r{bar:·<30} lesson {step} of {lessons}, loss {losses[-1]:.3f}", end="", flush=True)
    print()

# %% [markdown]
# The thin line jumps because every lesson asks other questions, and not many. It begins near $\ln V$, or
# somewhat above. The thick line is the exam: every word of the three sentences that the model has never seen.
# Watch where it turns round. Up to there the model learnt something about the world; from there on it learns
# the other sentences by heart.

# %%
if __name__ == "__main__":
    import math

    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6.4, 4), layout="constrained")
    axes.plot(range(1, lessons + 1), losses, color="#0072B2", lw=0.8, label="each lesson")
    axes.plot(list(exams), list(exams.values()), color="#D55E00", lw=2, label="hidden sentences")
    axes.axhline(math.log(len(WORDS)), color="#555555", ls="--", label=f"ln {len(WORDS)}: knows nothing")
    axes.set(title="How surprised the model is", xlabel="lesson", ylabel="loss")
    axes.legend(frameon=False, loc="upper right", bbox_to_anchor=(1, 0.92))
    plt.show()

# %% [markdown]
# And now the question that we began with. In the second sentence everything that helps stands on the
# right of the gap; a model that reads from left to right would have to guess blindly.

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
        print(f"{question:42}", "  ".join(f"{word} {100 * chance:.0f} %" for word, chance in guesses))

# %% [markdown]
# The pictures train a small model of their own with your three parts and draw its five best guesses. The
# first picture shows how strongly the answer at each place depends on each word. There is no staircase here:
# light on both sides.

# %% picture="model"
# The notebook draws a picture of your own code here.

# %% [markdown]
# ## Look back
#
# This is BERT. The real one is larger (12 layers, 768 numbers in a vector, 30,522 pieces of words) and has
# read more, and it had a second exercise besides: to say whether two passages belong together, which was
# later found to help little. Its gaps were drawn when the data was prepared, and seen several times; its
# successor RoBERTa draws them anew each time, as you did.
#
# A word of honesty. Our world is so small that the model learns most of it by heart, so the hidden sentences
# are the ones to watch. And the percentages after a guess are what the model *believes*; whether a model that
# says 80 % is right in 80 of 100 cases is a question of its own.
#
# What BERT cannot do is write. Nothing in its training ever asked it to continue a text, and its answer for a
# word changes with every word that comes later.
#
# **One last question.** Put two gaps into one sentence: *the [MASK] drank the [MASK]*. Your model answers for
# each gap alone. How could it happen that both answers are likely and the two together are nonsense?
