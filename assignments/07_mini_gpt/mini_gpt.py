# %% [markdown]
# # 07 · Mini GPT
#
# You have all the parts: vectors for words, vectors for seats, heads that hear only the past, blocks that
# can be stacked. What was missing so far is a **purpose**. Nothing has told all these numbers yet what they
# should become.
#
# The purpose of a language model fits into one sentence: *after every word, say how likely each word is to
# come next.* That is all GPT was ever trained for. Somebody who can really do it has to know a good deal
# about spelling, grammar and the world. After *the capital of France is* it takes geography.
#
# Today you build one from the first line to the last:
#
# | part | the question it answers |
# |---|---|
# | 1 · Batches | what does it practise on? |
# | 2 · The loss | how wrong is a guess? |
# | 3 · The model | who makes the guess? |
# | 4 · Training | how does it get better? |
# | 5 · Writing | how does a guess become a text? |
#
# Our words are single characters, so the vocabulary is small and a laptop is fast enough. Whatever works for
# characters works for words. Letters for shapes: `B` pieces of text in a batch, `T` words in a piece,
# `C` numbers in a vector, `V` words in the vocabulary, `L` words in the whole text.

# %%
import math

import torch
from torch import Tensor, nn

# %% [markdown]
# ## Given · A small text
#
# It fits on a page and was written for this course. `ALPHABET` lists the characters that may stand in it; a
# character's id is its place in that list.

# %%
ALPHABET = "\n ',.abcdefghijklmnopqrstuvwxyz"

TEXT = """\
in a small town by the sea there was a school for words. every morning the words came in, sat down in their
rows, and waited for the bell.

they were quiet words at first. each of them knew its own name and nothing else. the word bank did not know
whether it was a place for money or the side of a river. the word light did not know whether it was a lamp or
a feather.

the first teacher gave every word a number for its seat. now you know where you are, she said. remember it,
for the same word in another seat may mean another thing.

the second teacher taught them to listen. ask a question, he said, and look around the room. some words will
have an answer for you, and some will not. listen more to those who do, and less to those who do not. but
never listen to a word behind you, for it has not been spoken yet.

so the word bank looked around the room, and it saw the word river, and it was glad. the word light looked
around the room, and it saw the word feather, and it felt less heavy than before.

the third teacher said very little. she gave every word a quiet minute to think about what it had heard. then
she rang the bell, and they began again, listening and thinking, listening and thinking, row by row and floor
by floor, until they came to the roof of the school.

on the roof there was a wide view over the sea. what comes next, asked the wind. and every word, who had once
known only its own name, made a guess. the guess was wrong, and the wind laughed, and told them the right
word. so they went down again and moved their chairs a little, and came back to the roof, and guessed again.

day after day they came a little closer. one evening the wind asked its question, and the words answered, one
after another, and what they said was a story. it was a small story, about a small town by the sea. the wind
listened to the end, and did not laugh, and asked them to tell it once more.
"""


def encode(text: str) -> Tensor:
    """The ids of a text's characters: (L,)."""
    return torch.tensor([ALPHABET.index(character) for character in text])


def decode(ids: Tensor) -> str:
    """The text of a row of ids."""
    return "".join(ALPHABET[i] for i in ids.tolist())


if __name__ == "__main__":
    print(f"{len(TEXT)} characters of an alphabet of {len(ALPHABET)}. It begins with {TEXT[:15]!r}:")
    print(encode(TEXT[:15]).tolist())

# %% [markdown]
# ## Part 1 · Batches
#
# Cut a window of `T` characters out of the text, and you have not one exercise but `T` of them: after the
# first character guess the second, after the first two the third, and so on. The causal mask keeps the
# exercises apart. So a window `x` needs an equally long window `y` with the right answers, and those are
# simply the text **one step later**:
#
# | | | | | | |
# |---|---|---|---|---|---|
# | **x** | t | h | e | · | s |
# | **y** | h | e | · | s | e |
#
# It is like reading with a strip of paper over the line: move the strip by one letter, and you see whether
# your guess was right. A batch is `B` such windows, cut at random places.
#
# **In numbers.** The text is `0 1 2 3 4 5` and the windows are 4 long. There are two of them: `0 1 2 3` with
# the answers `1 2 3 4`, and `1 2 3 4` with the answers `2 3 4 5`. A window that began at 2 would have no
# last answer. In general `L - T` windows fit, and each has the same chance.
#
# Chance comes from the `generator` that is handed in: whoever starts it with the same seed gets the same
# batches, and an experiment can be repeated. Where no generator is handed in, PyTorch's own chance decides, and
# every call draws anew.
#
# **To think about.** What would a model learn that got `y = x`? Its loss would be wonderful.


# %%
def get_batch(
    data: Tensor, block_size: int, batch_size: int, generator: torch.Generator | None = None
) -> tuple[Tensor, Tensor]:
    """Cut windows out of a text, and the same windows one step later.

    data: (L,) the ids of a text. Returns x and y, both (B, T) with B = batch_size and T = block_size.
    Each row begins at its own random place, drawn by `generator` (None: by PyTorch's own chance); all L - T
    windows have the same chance.
    Example: for the data 0 1 2 3 4 and block_size 4, every row of x is 0 1 2 3 and every row of y 1 2 3 4.
    Raises ValueError, naming both lengths (L and block_size, as numbers), if the text is too short for one
    window and its last answer (L <= block_size).
    """
    # TODO: refuse a text that is too short
    # TODO: draw where each window begins                                                   # (B,)
    # TODO: cut the windows, and the same windows one step later                            # (B, T), (B, T)
    raise NotImplementedError("get_batch is not written yet.")


# %% part="batches"
# Written? `autograder check 07_mini_gpt` tells how this part stands.

# %% picture="batches"
# The notebook draws a picture of your own code here.

# %% [markdown]
# ## Part 2 · The loss
#
# The model answers with `V` numbers for every place, the **logits**. A softmax makes them into shares $p$. How
# wrong is that? As wrong as it was surprised by what really came: $-\ln p(\text{right})$. Who gave the right
# word everything is not surprised at all, $-\ln 1 = 0$. Who gave it nothing would be infinitely surprised.
#
# $$\text{loss} = \frac{1}{B\,T} \sum_{b,t} -\ln p_{b,t}(y_{b,t})
#   \qquad p_{b,t} = \operatorname{softmax}(\text{logits}_{b,t})$$
#
# Weather forecasts are judged in this way, too. "90 % rain" on a rainy day costs $0.105$; on a dry day it
# costs $2.303$.
#
# **Three numbers to keep in mind.** A model that knows nothing gives each of `V` words the share $1/V$, so
# its loss is exactly $\ln V$: with our 31 characters, $3.434$. That is where every training should
# begin, and a first look at whether all is wired up well. Two places with the right word's share at
# $\tfrac12$ and at $\tfrac18$ give $(\ln 2 + \ln 8)/2 = 1.386$. And the loss of a perfect model is 0.
#
# **What flows back** is beautifully simple. At every place the gradient of the logits is
# $(p - \text{onehot}(y)) / (B\,T)$: what was said minus what should have been said.
#
# **To think about.** PyTorch's function for this loss takes logits, not shares. What goes wrong for a model
# that is very sure of itself if the shares are computed first and their logarithm afterwards?


# %%
def language_model_loss(logits: Tensor, targets: Tensor) -> Tensor:
    """The mean surprise at the right words, in natural logarithms.

    logits: (B, T, V), any numbers, also as large as 10,000; targets: (B, T), the ids of the right words.
    Returns one number, a tensor of shape (): the mean over all B times T places.
    Example: logits of zeros give ln V, whatever the targets are.
    """
    # TODO: line up all places of all pieces of text, and compare what was said with what was right     # ()
    raise NotImplementedError("language_model_loss is not written yet.")


# %% part="loss"
# Written? `autograder check 07_mini_gpt` tells how this part stands.

# %% picture="loss"
# The notebook draws a picture of your own code here.

# %% [markdown]
# ## Part 3 · The model
#
# From bottom to top: a vector for the word plus a vector for its seat, then blocks, then one last layer norm,
# then a layer that reads `V` logits off every vector.
#
# The block is **pre-norm**: each sublayer reads a normed copy of the stream, and what it finds is added to
# the stream itself, which nobody ever norms. (That is why one last `ln` is needed at the top.)
#
# $$x \leftarrow x + \text{attention}(\text{ln1}(x)) \qquad x \leftarrow x + \text{ff}(\text{ln2}(x))$$
#
# Its layers are given. One thing is left to you, and it is the one that everything hangs on: **nobody hears
# the future**. `nn.MultiheadAttention` is called with query, key and value and takes an `attn_mask`. Mind its
# convention: in a boolean mask of PyTorch's, `True` means *blocked*. (`nn.Transformer` has a ready-made mask,
# too. It is made of numbers, and they must be of the same type as those in `x`: your model works in float32
# and in float64.) Attention returns two things; the first one is what the words took home.
#
# **In numbers.** With `V = 31`, `C = 64`, `block_size = 8` and one block, the model owns
# 1,984 + 512 numbers for words and seats, 49,984 in its block, 128 in `ln` and 2,015 in `fc`: 54,623
# together. GPT-2 is the same thing 2,278 times as large.
#
# **To think about.** Take the seats away, and a causal model is *not* blind to order, as a model without a
# mask would be. What can the third word notice that the second cannot?


# %%
class Block(nn.Module):
    """One pre-norm block: (B, T, C) -> (B, T, C). Each word hears itself and the words before it."""

    def __init__(self, embed_size: int, num_heads: int) -> None:
        super().__init__()
        if embed_size % num_heads:
            raise ValueError(f"embed_size = {embed_size} cannot be shared by num_heads = {num_heads}")
        self.ln1 = nn.LayerNorm(embed_size)
        self.attention = nn.MultiheadAttention(embed_size, num_heads, batch_first=True)
        self.ln2 = nn.LayerNorm(embed_size)
        self.ff = nn.Sequential(
            nn.Linear(embed_size, 4 * embed_size), nn.GELU(), nn.Linear(4 * embed_size, embed_size)
        )

    def forward(self, x: Tensor) -> Tensor:
        """x (B, T, C) -> (B, T, C), for any length T, in float32 and in float64."""
        # TODO: a mask that blocks the words to come                                        # (T, T)
        # TODO: listen, and add what was heard to the stream                                # (B, T, C)
        # TODO: think, and add what was thought to the stream                               # (B, T, C)
        raise NotImplementedError("Block.forward is not written yet.")


class TransformerLanguageModel(nn.Module):
    """After each word, V logits for the next one: (B, T) -> (B, T, V).

    Attributes:
        token_embed, pos_embed   `nn.Embedding`s with a row for each word and a row for each seat
        blocks                   num_layers `Block`s, in a container through which `parameters()` finds them; their
                                 names there are their numbers: blocks.0, blocks.1 and so on, the first one first
        ln                       the last `nn.LayerNorm`
        fc                       the `nn.Linear` from C to V, with a bias
        block_size               the longest piece of text it can take; a plain number

    Example: TransformerLanguageModel(31) owns 54,623 parameters.
    """

    def __init__(
        self, vocab_size: int, embed_size: int = 64, block_size: int = 8, num_heads: int = 4, num_layers: int = 1
    ) -> None:
        super().__init__()
        # TODO: the attributes above, under these names
        raise NotImplementedError("TransformerLanguageModel.__init__ is not written yet.")

    def forward(self, ids: Tensor, targets: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        """ids (B, T), targets (B, T) or None -> the logits (B, T, V) and the loss.

        The loss is that of Part 2, or None if there are no targets.
        Raises ValueError, naming block_size and the length T as a number, if T is larger than block_size.
        """
        # TODO: refuse a piece of text that is too long
        # TODO: words plus seats, up through the blocks, and out                            # (B, T, V)
        # TODO: with targets, the loss as well                                              # ()
        raise NotImplementedError("TransformerLanguageModel.forward is not written yet.")


# %% part="model"
# Written? `autograder check 07_mini_gpt` tells how this part stands.

# %% [markdown]
# The picture changes one character after the other and watches where the logits move. Nothing may move to
# the left of a change, that is, above the staircase.

# %% picture="model"
# The notebook draws a picture of your own code here.

# %% [markdown]
# ## Part 4 · Training
#
# One step of training is four sentences long. Fetch a batch. Ask the model for its loss. Ask every
# parameter in which direction it should move (`backward`). Let the optimiser move them all a little.
#
# A choir rehearses like this: sing, listen to what was off, everybody adjusts a little, sing again. One more
# thing belongs to it: **forget the last correction before you collect a new one**. PyTorch *adds* every new
# gradient to what is there already, until somebody sets it to zero.
#
# The optimiser is `torch.optim.AdamW` with the learning rate `lr`, everything else as PyTorch sets it. What is
# reported is the loss of each batch *before* the step that it leads to. So with our 31 characters, the first
# number should lie near $\ln 31 = 3.434$.
#
# **To think about.** The model has 54,623 numbers and our text about 2,000 characters. After long enough, what
# will the loss on this text tell you about how well it writes? What should you measure instead?


# %%
def train(
    model: TransformerLanguageModel,
    data: Tensor,
    steps: int,
    batch_size: int,
    lr: float,
    generator: torch.Generator | None = None,
) -> list[float]:
    """Train the model in place, with one fresh batch from `get_batch` and one step of AdamW each time.

    data: (L,) the ids of a text. The batches have batch_size rows of model.block_size words and are drawn
    by `generator` (None: by PyTorch's own chance). The model is put into training mode first and stays in it.
    Returns the loss of every batch, before its step, as plain numbers: a list of `steps` floats.
    Example: train(model, data, steps=100, batch_size=16, lr=3e-3, generator=torch.Generator())
    """
    # TODO: one AdamW for all parameters of the model, with the learning rate lr
    # TODO: as often as asked: a batch, its loss, fresh gradients, a step; remember the loss as a float
    raise NotImplementedError("train is not written yet.")


# %% part="training"
# Written? `autograder check 07_mini_gpt` tells how this part stands.

# %% [markdown]
# Train it for real: 1,000 steps take less than a minute on a laptop. Keep an eye on the loss. It should begin near 3.434
# and fall below 2.
#
# The picture then draws a training of its own, together with two lines to compare it with: $\ln V$, which is
# knowing nothing, and the *bigram line*, which is the best that anybody can do who looks at the last
# character only. Where the curve crosses that line, attention has begun to pay.


# %%
def progress(done: int, total: int, loss: float) -> None:
    """A bar that grows: how much is done, and the loss so far."""
    filled = round(30 * done / total)
    bar = "█" * filled + "░" * (30 - filled)
    print(f"\r{bar} {done:5d} of {total} steps, loss {loss:.3f}", end="\n" if done == total else "", flush=True)


if __name__ == "__main__":
    torch.manual_seed(7)
    model = TransformerLanguageModel(len(ALPHABET), embed_size=64, block_size=32, num_heads=4, num_layers=2)
    dice, losses = torch.Generator().manual_seed(7), []
    for done in range(50, 1001, 50):
        losses += train(model, encode(TEXT), steps=50, batch_size=16, lr=2e-3, generator=dice)
        progress(done, 1000, sum(losses[-50:]) / 50)

# %% picture="training"
# The notebook draws a picture of your own code here.

# %% [markdown]
# ## Part 5 · Writing
#
# The model says how likely each word is. To *write*, let it say so after the last word, draw one word by these
# shares, append it, and ask again. That is all. A text grows word by word, and every word that was drawn
# becomes part of what the model hears from then on.
#
# Four things make a good writer out of this loop.
#
# - **The context is cropped.** The model takes at most `block_size` words. When the text gets longer, it hears
#   the *last* `block_size` of them. What lies further back is forgotten.
# - **The temperature.** The logits are divided by it before the softmax. Below 1 the model becomes more
#   careful, above 1 more adventurous. It never changes which word is the likeliest.
# - **top_k.** Only the `k` likeliest words stay in the game, the others get a share of exactly zero. With
#   `k = 1` nothing is left to chance. (Where words tie for the last seat, it is yours to say who gets it.) The
#   temperature acts among those that stayed.
# - **Good manners.** Writing is not training: it happens in eval mode and keeps no gradients, and afterwards the
#   model is in the mode that it was in before.
#
# **In numbers.** A coin shows heads with a share of 80 %. At temperature $\tfrac12$ the shares are squared and
# made whole again: $0.64 / (0.64 + 0.04) = 94.1\,\%$. At temperature $\tfrac14$ they are taken to the
# fourth power: $99.6\,\%$. At temperature 2 the root is taken: $66.7\,\%$.
#
# **How can chance be tested?** With models whose answers are known. `autograder.fakes` has a `Successor`, which
# after $n$ always says $n + 1$: does your text count on, even when it is longer than the context? And
# it has a `Coin`: toss it 20,000 times, and count. You can use both in this notebook.
#
# **To think about.** The model's likeliest text is not found by drawing the likeliest word every time. Why not?


# %%
def generate(
    model: nn.Module,
    ids: Tensor,
    max_new_tokens: int,
    temperature: float = 1.0,
    top_k: int | None = None,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Continue each row of ids by max_new_tokens words, each drawn by the model's shares.

    model: `model(ids)` returns logits (B, T, V) and a loss (None); `model.block_size` is the longest context
    that it takes. It need not be your own model, so nothing else of it should be used but its modes.
    ids: (B, T) with T >= 1, any length; they keep their values. Returns (B, T + max_new_tokens): ids, and
    what was written after them. Every row is drawn for itself, by `generator` (None: by PyTorch's own chance).
    temperature: the logits are divided by it. top_k: only the k likeliest words of each row can be drawn, None
    or a k beyond the vocabulary means all. The model hears the last block_size words, in eval mode, without
    gradients, and is back in its former mode in the end.
    Raises ValueError, naming the argument and its value, if temperature <= 0 or top_k < 1.
    Example: a model that says n + 1 after n continues 7 8 by 9 10 11.
    """
    # TODO: refuse a bad temperature and a bad top_k
    # TODO: go into eval mode, and remember which mode the model was in
    # TODO: as often as asked, without gradients: the logits after the last word             # (B, V)
    # TODO: ... with temperature, and without the unlikely words                             # (B, V)
    # TODO: ... draw a word for each row, and append it                                      # (B, T + 1)
    # TODO: go back into the former mode
    raise NotImplementedError("generate is not written yet.")


# %% part="generation"
# Written? `autograder check 07_mini_gpt` tells how this part stands.

# %%
if __name__ == "__main__":
    for temperature in (0.5, 1.0, 2.0):
        written = generate(model, encode("the word ")[None], 200, temperature, generator=dice)
        print(f"--- temperature {temperature}\n{decode(written[0])}\n")

# %% picture="generation"
# The notebook draws a picture of your own code here.

# %% [markdown]
# ## Look back
#
# You have a GPT. It is small, and so is the world that it has read about, but no part of it is a toy: make the
# numbers larger and the text longer, and it is the real thing.
#
# A word of caution. Much of the beautiful text that your model writes is simply learnt by heart; the text is so
# small that it can be. A low loss on the text that was trained on proves little, and it proves nothing at all if
# the model can peek: with a mask that is one step late, the loss becomes *better* than any honest model's. The
# honest question is always the same: how surprised is the model by text that it has never seen, when each
# word is guessed from the words before it alone? An assignment of its own, *Spot the cheat*, is about that.
#
# Your model speaks, but it does not listen to anybody: there is no second text that it could answer to. For
# that, a decoder has to hear an encoder. That is the next assignment.
#
# **One last question.** Your model was trained with windows of 32 characters. Can it ever learn that the wind,
# which laughs in one paragraph, did so in the paragraph before?
