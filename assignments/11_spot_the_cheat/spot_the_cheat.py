# %% [markdown]
# # 11 · Spot the cheat
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
# │              │     ▶ 11 tested
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
# So far a smaller loss meant a better model. You could build everything, train it and watch the curve fall. It is
# time for some **doubt**. A model that has found a way to look at the answers has an excellent loss, too, and
# nothing crashes: the shapes are right, the curve falls, and the number in the report is the best you ever had.
#
# Here are four language models. One is honest, and the others have three of the most frequent bugs of the
# trade, all of which *improve* the number that is reported:
#
# | verdict | what went wrong |
# |---|---|
# | `honest` | nothing |
# | `mask late by one` | every word also attends to the next one, the very word that it should predict |
# | `heads merged with view` | the heads' outputs are joined in a wrong order: words get outputs of other words |
# | `targets not shifted` | the "next" word in training was the word itself: the model learned to repeat |
#
# You are the detective. You cannot look inside: a model is a black box that answers questions. Five kinds of tools:
#
# | part | the question it answers |
# |---|---|
# | 1 · The honest loss | how good is the model if it *cannot* look? |
# | 2 · The leak map | which future word has an influence where? |
# | 3 · The verdict | honest, or which of the three bugs? |
# | 4 · Silence | and another kind of doubt: does every head do something? |
# | 5 · A fair test | was the test new to the model, and is the better one better? |
#
# Letters for shapes: `B` pieces of text in a batch, `T` words in a piece, `C` numbers in a vector, `V` words in the
# vocabulary, `L` words in the whole text, `H` heads of a layer, `N` examples of a test, `R` draws of them.
#
# **Not here.** No model is repaired: you find out from outside which one cheats, and how.
#
# The names of functions, classes, attributes and arguments are part of the contract: the tests use them.

# %%
import random

import torch
import torch.nn.functional as F
from torch import Tensor, nn

# %% [markdown]
# ## What a model offers
#
# All models of this assignment are called in the same way, whatever is inside:
#
# - `model(ids)` takes ids (B, T), at most `model.block_size` in a row. It returns a pair: the logits (B, T, V), in
#   which position `t` holds the prediction for the word *after* word `t`, and a loss, which is `None` here.
# - `model.vocab_size` and `model.block_size` are plain numbers.
# - `model.eval()`, `model.train(mode)` and `model.training` work as always. Call the model in **eval mode**, and
#   leave it in the mode in which you found it.
#
# Use nothing else. The tests bring models of their own that have no parameters to look at, and ids have no
# gradients. That leaves the oldest method of science: **change one thing, and watch what moves.**
#
# Below is a class that builds all four, for your own experiments. It is a tiny model with one layer of attention.
# Two of the bugs are one short expression each. The third is not in the model at all: it is in the targets that the
# model was trained on.

# %%
VERDICTS = ("honest", "mask late by one", "heads merged with view", "targets not shifted")


class Suspect(nn.Module):
    """A small language model, honest or with a bug: (B, T) -> logits (B, T, V) and the loss, if there are targets.

    nature: one of VERDICTS. A model whose targets are not shifted is built like an honest one; see `reported_loss`.
    """

    def __init__(
        self, vocab_size: int, block_size: int, nature: str = "honest", embed_size: int = 48, num_heads: int = 4
    ) -> None:
        super().__init__()
        if nature not in VERDICTS:
            raise ValueError(f"nature must be one of {VERDICTS}, but it is {nature!r}.")
        self.vocab_size, self.block_size, self.nature = vocab_size, block_size, nature
        C, D = embed_size, embed_size // num_heads
        self.token_embed, self.pos_embed = nn.Embedding(vocab_size, C), nn.Embedding(block_size, C)
        self.qkv = nn.Parameter(torch.randn(3, num_heads, C, D) / C**0.5)  # query, key and value of each head
        self.out = nn.Parameter(torch.randn(num_heads, D, C) / C**0.5)
        self.mlp = nn.Sequential(nn.Linear(2 * C, 4 * C), nn.GELU(), nn.Linear(4 * C, vocab_size))

    def forward(self, ids: Tensor, targets: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        B, T = ids.shape
        if T > self.block_size:
            raise ValueError(f"{T} words are more than block_size = {self.block_size}.")
        x = self.token_embed(ids) + self.pos_embed.weight[:T]                           # (B, T, C)
        q, k, v = torch.einsum("btc,nhcd->nbhtd", x, self.qkv)                          # each (B, H, T, D)
        late = 1 if self.nature == "mask late by one" else 0  # an empty query in front
        q = F.pad(q, (0, 0, late, 0))                                                   # (B, H, late + T, D)
        heads = F.scaled_dot_product_attention(q, k, v, is_causal=True)[:, :, late:]    # (B, H, T, D)
        if self.nature == "heads merged with view":
            heads = heads.reshape(B, T, *self.out.shape[:2])                            # (B, T, H, D)?
            attended = torch.einsum("bthd,hdc->btc", heads, self.out)                   # (B, T, C)
        else:
            attended = torch.einsum("bhtd,hdc->btc", heads, self.out)                   # (B, T, C)
        logits = self.mlp(torch.cat([x, attended], dim=-1))                             # (B, T, V)
        return logits, None if targets is None else F.cross_entropy(logits.transpose(1, 2), targets)


# %% [markdown]
# The text they are trained on is put together at random from a few words, as much of it as we like. So there is
# always text that no model has ever seen.

# %%
WHO = ["the cat", "a dog", "my aunt", "the old teacher", "one of the birds", "nobody"]
DOES = ["sees", "hears", "likes", "looks for", "runs away from", "sings to"]
ALPHABET = " .abcdefghijklmnopqrstuvwxyz"


def random_text(sentences: int, rng: random.Random) -> str:
    """So many sentences such as `my aunt sings to a dog. `"""
    return "".join(f"{rng.choice(WHO)} {rng.choice(DOES)} {rng.choice(WHO)}. " for _ in range(sentences))


def encode(text: str) -> Tensor:
    """The ids of a text's characters: (L,)."""
    return torch.tensor([ALPHABET.index(character) for character in text])


def reported_loss(model: Suspect, pieces: Tensor) -> Tensor:
    """The loss as the model's own author measures it, bug included. pieces: (B, T + 1) ids."""
    ids, right = pieces[:, :-1], pieces[:, 1:]                                          # (B, T), (B, T)
    return model(ids, ids if model.nature == "targets not shifted" else right)[1]       # ()


if __name__ == "__main__":
    rng = random.Random(7)
    print(random_text(4, rng))

# %% [markdown]
# Train all four. It takes less than two minutes. Their names are shuffled anew each time, so that you do not know which
# is which. What is printed at the end is what each author proudly reports: the loss on text that the model has
# *not* been trained on. It is measured on fresh text, and still it is worth nothing, as you will see.


# %%
def show_bar(done: int, total: int, name: str) -> None:
    """A progress bar."""
    filled = round(30 * done / total)
    print(f"\r{'█' * filled}{'░' * (30 - filled)} {name}", end="\n" if done == total else "", flush=True)


def train(model: Suspect, data: Tensor, steps: int, name: str) -> None:
    """Train the model on pieces of the text."""
    pieces = data.unfold(0, model.block_size + 1, 1)                                    # (L - T, T + 1)
    optimiser = torch.optim.Adam(model.parameters(), lr=3e-3)
    for step in range(1, steps + 1):
        loss = reported_loss(model, pieces[torch.randint(len(pieces), (32,))])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        if step % 20 == 0:
            show_bar(step, steps, f"{name} is trained")


if __name__ == "__main__":
    torch.set_num_threads(1)  # for matrices this small, a second core only costs time
    data, unseen = encode(random_text(1000, rng)), encode(random_text(30, rng)).unfold(0, 17, 17)
    natures = random.sample(VERDICTS, 4)
    suspects = {name: Suspect(len(ALPHABET), 16, nature) for name, nature in zip("ABCD", natures)}
    reported = {}
    for name, suspect in suspects.items():
        train(suspect, data, 800, name)
        with torch.no_grad():
            reported[name] = reported_loss(suspect, unseen).item()
    for name, loss in sorted(reported.items(), key=lambda report: report[1]):
        print(f"{name} reports a loss of {loss:.3f}")

# %% [markdown]
# ## Part 1 · The honest loss
#
# About 23 minutes, ●●○ (difficulty 2 of 3)
#
# An exam is honest when the answers are not in the room. The usual measurement is not like that: the model gets
# a whole piece of text at once, and we *trust* it to look only to the left at every position. If you do not want to
# trust it, take the future away. To find out how well character `t` is predicted, pass the characters before it **and
# nothing else**, and look at the prediction after the last of them:
#
# $$\text{honest loss} = \frac1{|P|}\sum_{t \in P} -\ln p\big(x_t \mid x_0 \dots x_{t-1}\big)$$
#
# Words that are not there cannot leak. The method is slow, one call for every position, so `positions` says which
# positions $P$ to use. A model takes at most `block_size` characters, its context window: when more lie before `t`,
# it gets the last `block_size` of them.
#
# **One number by hand.** A model that guesses blindly among 28 characters has the honest loss $\ln 28 = 3.332$. A
# model that gives the right character a probability of $\tfrac12$ at one position and of $\tfrac18$ at the other has
# $(\ln 2 + \ln 8)/2 = 1.386$.
#
# **To think about.** Position 0 has no past. What could the model predict there from, and why do we refuse it?


# %%
def honest_loss(model: nn.Module, data: Tensor, positions: list[int]) -> float:
    """The mean cross-entropy of the words at these positions, each predicted from the words before it alone.

    model: see "What a model offers"; called in eval mode, and in its former mode afterwards.
    data: (L,) the ids of a text. positions: positions t with 1 <= t < L, in any order; one that is named twice
    counts twice. data and positions keep their values and their order.
    For each t the model gets data[:t], or only the last block_size words of it; the loss is -ln of the
    probability that its last prediction gives to word t. Returns the mean, a plain float.
    Example: a model that predicts n + 1 after n, and is sure, loses nothing on the text 0 1 2 3 at 1, 2 and 3.
    Raises ValueError that names positions if there are none, and ValueError that names positions and the value
    if one is below 1 or beyond the text.
    """
    # TODO: refuse positions without a past, positions beyond the text, and an empty list
    # TODO: remember the model's mode, and go into eval mode
    # TODO: for each position: pass what lies before it, and take the last logits       # (V,)
    # TODO: ... -ln of the probability of the word that really stands there
    # TODO: restore the mode, and return the mean as a float
    raise NotImplementedError("honest_loss is not written yet.")


# %% part="honest"
# Written? `autograder check 11_spot_the_cheat` shows how you are doing.

# %% [markdown]
# The picture has four simple models that were made by counting instead of training, one of each kind: what each reports
# about itself, and what your honest loss finds.

# %% picture="honest"
# The notebook draws a picture of your own code here.

# %% [markdown]
# And the four that you trained? We measure the same characters of the same pieces of text as their authors did. So if
# a model's two numbers differ, it has not earned the first one.

# %%
if __name__ == "__main__":
    honest = {}
    for name, suspect in suspects.items():
        losses = [honest_loss(suspect, piece, list(range(1, 17))) for piece in unseen]
        honest[name] = sum(losses) / len(losses)
        print(f"{name}: reported {reported[name]:.3f}, honest {honest[name]:.3f}")

# %% [markdown]
# ## Part 2 · The leak map
#
# About 18 minutes, ●●● (difficulty 3 of 3)
#
# The honest loss says *that* something is wrong. The leak map says *where*. Think of a plumber who pours red dye into
# one pipe after the other and looks which taps run red. The dye is another word: put a different one at position
# `s`, leave all others as they are, and see at which positions `t` the logits move. Where they move with `t < s`, word
# `s` had an influence **before it was spoken**.
#
# As in all our tables of attention, the row is the output and the column is the word that it depends on. For a model
# whose mask is one step late, and `T = 4`:
#
# | output ↓, changed word → | 0 | 1 | 2 | 3 |
# |---|---|---|---|---|
# | **0** | · | ✓ | · | · |
# | **1** | · | · | ✓ | · |
# | **2** | · | · | · | ✓ |
# | **3** | · | · | · | · |
#
# The past and the word itself *should* have an influence. That is no leak, so on and below the diagonal the map is
# always `False`.
#
# Two traps. For a model *cat* and *dog* may be all the same, and *fire* not: if you only ever exchange *cat* for
# *dog*, you miss that leak. So try **every** word of the vocabulary at every position. And computers round: when a
# batch is larger, the seventh digit may differ. What moves by no more than `0.0001` counts as not moved. Anything
# above that is a leak, however faint: the layers of a model can amplify it.
#
# **One number by hand.** With `T = 16` and `V = 28` that is 448 changed pieces of text. They fit into one batch.
#
# **To think about.** A model in training mode with dropout seems to leak everywhere. Why?


# %%
def leaks(model: nn.Module, T: int, V: int) -> Tensor:
    """Which words have an influence before they are spoken: booleans of shape (T, T).

    Row t is the output, column s the changed word. True where s > t, and where putting some word of the V instead
    of another one at position s moves at least one logit of position t by more than 0.0001. All other words of
    the text stay as they are; which of the V words these are is up to you. False on and below the diagonal.

    model: see "What a model offers"; called in eval mode, and in its former mode afterwards.
    T: the length of the text, at most model.block_size. V: the ids are below V; the model may know more.
    Example: a mask that is one step late leaks on one diagonal, at (0, 1), (1, 2), (2, 3) and so on.
    """
    # TODO: a text of T words, and copies of it: for each position, one copy with each of the V words there  # (…, T)
    # TODO: the model's logits for all of them, in eval mode; leave it in its former mode  # (…, T, V)
    # TODO: for each position, how far do the logits at each output move from one copy to another?  # (T, T)
    # TODO: keep what moves too early
    raise NotImplementedError("leaks is not written yet.")


# %% part="leaks"
# Written? `autograder check 11_spot_the_cheat` shows how you are doing.

# %% [markdown]
# The picture draws your map for the four simple models. Which maps stay empty, and what pattern do the others have?

# %% picture="leaks"
# The notebook draws a picture of your own code here.

# %% [markdown]
# ## Part 3 · The verdict
#
# About 20 minutes, ●●● (difficulty 3 of 3)
#
# Now put the evidence together.
#
# - **A late mask leaks evenly.** Every word attends to the next one; the whole diagonal is lit. In a model with two
#   blocks the next word has already attended to its own next one, so two full diagonals are lit, with `N` blocks `N`.
#   The leak is the same everywhere: whether output `t` depends on word `t + 2` does not depend on `t`.
# - **Heads merged with view leak in jumps.** The outputs of `H` heads are stored head by head: first those of head 0
#   for all words, then those of head 1, and so on. The bug cuts this long strip into `T` rows as though it were stored
#   word by word. Output 0 then gets the outputs of words 0, 1, 2 …, output 1 the next ones, and after a while the strip
#   starts over. So some positions see far ahead and others not at all, and whether `t` depends on `t + 2` *does* depend
#   on `t`.
# - **Targets that were not shifted do not leak.** Nothing is wrong with the model, only with its training: its first
#   guess for the next word is the word it has just read. Show it a few hundred random words and count. We call it
#   `targets not shifted` if **more than half** of its first guesses repeat. (An honest model that has seen
#   *ll* and *ee* may repeat some words, too.)
# - **Honest** is a model that does none of that.
#
# A leak weighs more than anything else: a model that leaks is named after the leak, whatever it predicts. Look at texts
# that are as long as the model can take; in very short ones all leaks look alike.
#
# **One number by hand.** `H = 2`, `T = 8`: the strip is 0 1 2 3 4 5 6 7 0 1 2 3 4 5 6 7. Output 0 gets numbers 0 and
# 1 of it, output 1 gets 2 and 3, output 3 gets 6 and 7, and output 4 gets 0 and 1 again. Each of them knows all the
# words up to its own.
#
# **To think about.** A model with *one* head whose outputs are merged with view: what do you find?


# %%
def verdict(models: dict[str, nn.Module]) -> dict[str, str]:
    """For each name, what its model is: one of VERDICTS.

    models: by name, any number of them, possibly several of a kind; see "What a model offers". Each has its own
    vocab_size and block_size; block_size is at least 8 and at least twice the number of heads (2 or more).
    They are called in eval mode, and are in their former mode afterwards. A leak decides first; without one, the
    first guesses after a few hundred random words do. models keeps its entries.
    Example: {"A": a model that leaks one full diagonal} gives {"A": "mask late by one"}.
    """
    # TODO: for each model, the leak map of a text of block_size words                  # (T, T)
    # TODO: if it leaks: is it the same all along each diagonal, or not?
    # TODO: if it does not: how often is its first guess after a random word that very word?
    raise NotImplementedError("verdict is not written yet.")


# %% part="verdict"
# Written? `autograder check 11_spot_the_cheat` shows how you are doing.

# %%
if __name__ == "__main__":
    for name, sentence in verdict(suspects).items():
        right = "✓" if sentence == suspects[name].nature else f"✗ it is: {suspects[name].nature}"
        print(f"{name}: reported {reported[name]:.3f}, honest {honest[name]:.3f}, {sentence} {right}")

# %% [markdown]
# All the evidence about your four in one figure. Sort them by the grey numbers, and then by the coloured ones.

# %%
if __name__ == "__main__":
    import matplotlib.pyplot as plt

    evidence = {name: leaks(suspect, 16, len(ALPHABET)) for name, suspect in suspects.items()}
    figure, (bars, *maps) = plt.subplots(1, 5, figsize=(13, 3), width_ratios=[2, 1, 1, 1, 1], layout="constrained")
    columns = torch.arange(4)
    for side, losses, color, label in ((-0.2, reported, "#B0B0B0", "reported"), (0.2, honest, "#D55E00", "honest")):
        found = [losses.get(name, float("nan")) for name in suspects]
        heights = bars.bar(columns + side, found, 0.4, color=color, label=label)
        bars.bar_label(heights, fmt="%.2f", fontsize=8)
    bars.set_xticks(columns, list(suspects))
    bars.set_ylabel("loss")
    bars.legend(frameon=False)
    for axes, (name, suspect) in zip(maps, suspects.items()):
        axes.imshow(evidence[name], cmap="Oranges", vmin=0, vmax=1)
        axes.set_title(f"{name}: {suspect.nature}", fontsize=9)
        axes.set_xlabel("changed word")
    maps[0].set_ylabel("output")
    plt.show()

# %% [markdown]
# ## Part 4 · Silence
#
# About 30 minutes, ●●○ (difficulty 2 of 3)
#
# The last doubt is about our own design. We gave the layer many heads because one was not enough. Does each of them
# *do* something? Ask one of the listeners to stay at home for a day. If no word notices, that listener has some
# explaining to do. Removing a part in order to see what it was good for is called an **ablation**.
#
# The layer is PyTorch's own, `nn.MultiheadAttention`. It concatenates the outputs of its heads, `D` numbers of head 0
# first, then `D` of head 1, and so on, and passes the whole to a linear layer called `out_proj`. So every column
# of `out_proj.weight` reads one number of one head: head `h` is read by `D` neighbouring columns. Set them to zero,
# and the head is silent.
#
# How large a change is depends on how large the output was, so we measure it **relative** to the output:
#
# $$\text{change}_h = \frac{\lVert \text{output} - \text{output without head } h \rVert}{\lVert \text{output} \rVert}
#   \qquad \lVert a \rVert = \sqrt{\textstyle\sum a^2} \text{ over all numbers of the batch}$$
#
# **One number by hand.** The output is $(3, 4)$, without head 0 it is $(3, 3.9)$. The change is $0.1 / 5 = 0.02$. With
# a tolerance of 0.05 head 0 is redundant, with 0.01 it is not.
#
# In 2019 a study put this question to trained Transformers, and found that most heads could be silenced one at a
# time with hardly any loss. That does not mean that all of them could be silenced together.
#
# **Heads or layers?** BERT-base has 12 layers of 12 heads, 144 tables of attention weights for every sentence. The
# two twelves are not the same kind of thing. The heads of one layer work *side by side*: all of them read the same
# vectors, and none knows what the others find. Layers work *one after the other*: a head in layer 2 reads vectors in
# which the heads of layer 1 have already left what they found. So heads give one step more to look at, and layers
# give more steps. A task of two steps (*find where this word stood before, then copy the word after it*) needs two
# layers; no number of heads in a single layer replaces the second one.
#
# **How do heads become different?** They begin with different random numbers, and that is all that keeps them apart:
# if all their numbers were equal, their gradients would be equal, too, and they would stay equal for ever. Later,
# nothing in the loss asks them to differ. What people have tried: a term in the loss that rewards disagreement between
# heads, switching whole heads off at random in training so that none can rely on another, or giving each head a gate
# and letting the loss close the gates of those that are not needed.
#
# Whether they *are* different can be measured. Called with `average_attn_weights=False`, the layer returns the
# attention weights of every head, (B, H, T, T). Take all weights of a head as one long vector, and the **cosine** of
# two such vectors says how alike two heads are: 1 if they attend in the same way. (Weights are never negative, so it is
# never below 0.) Silence asks whether a head is missed, the cosine whether it does what another does.
#
# **One number by hand.** In a text of two words, head 0 attends to $(1, 0)$ and $(0.5, 0.5)$, head 1 to $(0.5, 0.5)$
# and $(0, 1)$. As vectors these are $(1, 0, 0.5, 0.5)$ and $(0.5, 0.5, 0, 1)$: both have the square length 1.5, their
# product is 1, and the cosine is $1 / 1.5 = 0.667$.
#
# **To think about.** Two heads are exactly alike. Is either of them redundant by our measure? And should one go?


# %%
def attention_layer(embed_size: int, num_heads: int) -> nn.MultiheadAttention:
    """A fresh layer, given. `layer(x, x, x)` returns a pair: the output (B, T, C), and weights that we do not need."""
    return nn.MultiheadAttention(embed_size, num_heads, batch_first=True)


def redundant_heads(mha: nn.MultiheadAttention, x: Tensor, tolerance: float) -> list[int]:
    """The heads that are not missed: silencing one changes the output by at most `tolerance`, relative to its norm.

    mha: a layer such as `attention_layer` makes; mha.num_heads is H. Its parameters and its mode are as before
    afterwards. x: (B, T, C), used as query, key and value, without a mask. The output is never zero everywhere.
    Each head is silenced alone, while all others work and the bias of `out_proj` stays. The change is the norm of the
    difference over all numbers, divided by the norm of the whole output. Returns the heads, in ascending order.
    Example: a head whose columns of `out_proj.weight` are zero is redundant even with tolerance 0.
    Raises ValueError that names tolerance and its value if it is below 0.
    """
    # TODO: refuse a tolerance below 0
    # TODO: the output of all heads together                                            # (B, T, C)
    # TODO: for each head: silence it, compute the output, and restore it               # (B, T, C)
    # TODO: keep those whose silence changes too little, relative to the output
    raise NotImplementedError("redundant_heads is not written yet.")


def head_similarity(mha: nn.MultiheadAttention, x: Tensor) -> Tensor:
    """How alike the attention weights of each two heads are: the cosine of both, a symmetric table (H, H).

    mha: as above; its parameters and its mode are as before afterwards. x: (B, T, C), used as query, key and value,
    without a mask. All weights of a head, over the whole batch, form one long vector; the table holds the cosine of the
    vectors of each two heads, 1 on its diagonal. No gradient is needed. The table has the number type of x (float32,
    float64).
    Example: for a layer whose head 1 is a copy of head 0, the entries (0, 1) and (1, 0) are 1.
    """
    # TODO: the weights of every head, by themselves                                    # (B, H, T, T)
    # TODO: one vector of length 1 for each head; the products of all pairs             # (H, H)
    raise NotImplementedError("head_similarity is not written yet.")


# %% part="heads"
# Written? `autograder check 11_spot_the_cheat` shows how you are doing.

# %% [markdown]
# The picture raises the tolerance until your code calls a head redundant. Look at where each bar ends: it should be
# at the ring.

# %% picture="heads"
# The notebook draws a picture of your own code here.

# %% [markdown]
# ## Part 5 · A fair test
#
# About 19 minutes, ●●○ (difficulty 2 of 3)
#
# Your tools take the future away from a model. Two doubts about a good number remain, and both are about the test.
#
# **Was the test new?** Models read much of the internet, and test questions stand there, too. A model that has seen
# them need not understand anything; it only has to remember. This is called **contamination**, and it is looked for by
# comparing the texts themselves: cut the test text into all its *n-grams*, runs of $n$ words that overlap, and count
# how many of them also stand in the training text. Every occurrence counts: an n-gram that stands in the test twice
# counts twice. With small $n$ everything occurs everywhere; the authors of GPT-3 took 13 words.
#
# **One number by hand.** The training text is `1 2 3 4`, the test text `2 3 4 3 2 3`, and $n = 2$. The test has five
# pairs: (2, 3), (3, 4), (4, 3), (3, 2) and (2, 3) again. The first two and the last stand in the training text, in this
# order, so the overlap is $3/5 = 0.6$.
#
# **Is the better one better?** Model A answers 160 of 200 questions, model B 154. With other questions, an accuracy of
# 80 % could easily have come out 2.8 points higher or lower: that is its standard deviation,
# $\sqrt{0.8 \cdot 0.2 / 200}$. But both have answered the *same* questions, hard ones and easy ones, and only those
# count on which they differ. So do not compare two accuracies: look at the difference on each question, and ask how
# much their mean would move with other questions. We have no others. But we can draw 200 of ours **with replacement**,
# so that some come twice and some not at all, and look at the difference again; and we can do that a thousand times.
# The range that holds the middle 95 % of these differences is a *bootstrap interval*. If 0 lies inside, the two may be
# equally good.
#
# The drawn questions are an argument of your function: row $r$ of `rows` holds the numbers of the questions in draw
# $r$, and both models are judged on these. So your function has no luck of its own, and two people who use the same
# rows get the same interval.
#
# **One number by hand.** Of four questions, A answers the first three and B the first and the last. The difference is
# $0.75 - 0.5 = 0.25$. The draws `0 1 2 3`, `0 0 0 0` and `1 1 2 2` give 0.25, 0 and 1. Sorted, they are 0, 0.25 and 1;
# the 2.5 % point lies one twentieth of the way from the first to the second, at 0.0125, and the 97.5 % point at 0.9625.
#
# **To think about.** You compare twenty models with yours, each on the same 200 questions, and three of the intervals
# exclude 0. Are these three different from yours?


# %%
def overlap(train: list[int], test: list[int], n: int) -> float:
    """The share of the test text's n-grams that also stand in the training text, from 0.0 to 1.0.

    An n-gram is a run of n neighbouring words. Every occurrence in the test text counts, also where two overlap; how
    often an n-gram stands in the training text does not matter. A training text of fewer than n words has none, which
    gives 0.0.
    Raises ValueError that names n and its value if it is below 1 or above the number of words in the test text.
    Example: overlap([1, 2, 3, 4], [2, 3, 4, 3, 2, 3], 2) is 0.6.
    """
    # TODO: refuse an n that does not fit
    # TODO: the n-grams of both texts; the share of the test's that the training text has
    raise NotImplementedError("overlap is not written yet.")


def difference(right_a: Tensor, right_b: Tensor, rows: Tensor) -> tuple[float, float, float]:
    """How much better model a is than model b on the same N examples, and between which bounds that lies.

    right_a (N,), right_b (N,): booleans, True where the model's answer is right. rows (R, N): whole numbers, the examples
    of each draw.
    Returns three plain floats: the accuracy of a less that of b on all examples; and the 2.5 % and the 97.5 % point of
    the R differences on the drawn examples, as `torch.quantile` finds them (linear between neighbours). The arguments
    keep their values.
    Example: True True True False and True False False True differ by 0.25.
    """
    # TODO: the difference on each example, and its mean                                # (N,)
    # TODO: the mean difference of each draw, and two points of these                   # (R,)
    raise NotImplementedError("difference is not written yet.")


# %% part="evaluation"
# Written? `autograder check 11_spot_the_cheat` shows how you are doing.

# %% [markdown]
# On the left, a text with a copied passage and one without, n-gram by n-gram. On the right, two models of which one is
# three points better, judged on more and more questions: from when on does the interval exclude 0?

# %% picture="evaluation"
# The notebook draws a picture of your own code here.

# %% [markdown]
# ## Harder: find an induction head
#
# Not graded; about 30 minutes, ●●○ (difficulty 2 of 3).
# Some heads copy: they look for the place where the present word stood before, and
# attend to the word after it. The file `harder.py` beside this one asks for the measure that finds such a head among
# many, and for a function that silences it. Write both there and run `python harder.py`: it checks them and says in
# sentences what is missing. Then run `python induction.py`: in a few seconds, a small model learns to copy before
# your eyes, and your functions find the heads that do it.
#
# ## Look back
#
# You can now doubt a number, and you have tools to settle the doubt. None of them needs to look into the code, so
# they work for a model of a hundred lines as well as for one of a hundred billion parameters that you did not build.
#
# Bugs like these three can live for years, because a number that is too good makes nobody suspicious.
# The sentence to keep is this: **if a result is too good, it is evidence, and mostly not of what you hoped.**
# Ask what the model would have needed to know, and then make sure that it could not.
#
# **One last question.** A test question stands in the training text, but in another language, or in other words. What
# does your `overlap` say, and what would you do about it?
#
# ## Read on
#
# - Paul Michel, Omer Levy and Graham Neubig, *Are Sixteen Heads Really Better than One?* (2019): the study of Part 4.
#   Look at the table with one head removed at a time, then for what happens when many go together.
# - Elena Voita, David Talbot, Fedor Moiseev, Rico Sennrich and Ivan Titov, *Analyzing Multi-Head Self-Attention:
#   Specialized Heads Do the Heavy Lifting, the Rest Can Be Pruned* (2019): heads with gates. Look for which kinds of
#   heads are the last to go.
# - Jian Li, Zhaopeng Tu, Baosong Yang, Michael R. Lyu and Tong Zhang, *Multi-Head Attention with Disagreement
#   Regularization* (2018): look for the three places at which two heads can be told to disagree.
# - Catherine Olsson and others, *In-context Learning and Induction Heads* (2022): the task of two steps from Part 4.
#   Look for what one-layer models cannot do.
# - Yanai Elazar and others, *What's In My Big Data?* (2023): how much of well-known test sets stands in the training
#   text. It belongs to Part 5.
# - Tom Brown and others, *Language Models are Few-Shot Learners* (2020), the GPT-3 paper: look for the appendix on
#   contamination, and for what a mistake in the search had made impossible.
# - Taylor Berg-Kirkpatrick, David Burkett and Dan Klein, *An Empirical Investigation of Statistical Significance in
#   NLP* (2012): how large a gain has to be, and why that depends on how alike two systems are. Look for the bootstrap.
