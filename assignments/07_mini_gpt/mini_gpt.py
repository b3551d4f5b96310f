# %% [markdown]
# # 07 · Mini GPT
#
# ```
#  the next word       ▶ 07 trained, and writing
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
#        ↑               01 vectors
#    vectors +           02 positions
#    positions           12 positions that turn
#        ↑               17 the code around it, debugged
# words of a text        00 why not one word after the other
#
# ▶ you are here
# ```
#
# You have all the parts: vectors for words, vectors for positions, attention that cannot see the future, blocks
# that can be stacked. What they lack is a **purpose**: nothing has told all these numbers yet what they should
# become.
#
# The purpose of a language model fits into one sentence: *after every word, say how likely each word is to
# come next.* That is all that GPT, GPT-2 and GPT-3 were trained for (what came later is in 16). To do it really well, a
# model has to know a good deal about spelling, grammar and the world. After *the capital of
# France is*, it needs geography.
#
# In this assignment you build one from the first line to the last:
#
# | part | the question it answers |
# |---|---|
# | 1 · Batches | what does it practise on? |
# | 2 · The loss | how wrong is a prediction? |
# | 3 · The model | where does the prediction come from? |
# | 4 · Training | how does it get better? |
# | 5 · Generation | how does a prediction become a text? |
#
# Our words are single characters, so the vocabulary is small and a laptop is fast enough. Whatever works for
# characters works for words. Letters for shapes: `B` pieces of text in a batch, `T` words in a piece,
# `C` numbers in a vector, `V` words in the vocabulary, `L` words in the whole text. The longest piece of text
# that the model can take, `block_size`, is its **context window**.
#
# **Not here.** The model is judged only on the text that it learned from; how well it does on new text is the subject
# of *Spot the cheat* and *Train it well*.
#
# The names of functions, classes, attributes and arguments are part of the contract: the tests use them. All
# layer norms keep PyTorch's default `eps`.

# %%
import math

import torch
from torch import Tensor, nn

# %% [markdown]
# ## Given · A small text
#
# It fits on a page and is the story that you have heard since 00, the whole of it now. `ALPHABET` lists the characters
# that may stand in it; a character's id is its place in that list.

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
# About 14 minutes, ●○○ (difficulty 1 of 3)
#
# Cut a window of `T` characters out of the text, and you have not one exercise but `T` of them: after the
# first character predict the second, after the first two the third, and so on. The causal mask keeps the
# exercises apart. So a window `x` needs an equally long window `y` with the right answers, the **targets**, and
# those are simply the text **one step later**:
#
# | | | | | | |
# |---|---|---|---|---|---|
# | **x** | t | h | e | · | s |
# | **y** | h | e | · | s | e |
#
# It is like reading with a strip of paper over the line: move the strip by one letter, and you see whether
# your guess was right. A batch is `B` such windows, cut at random places.
#
# **One number by hand.** The text is `0 1 2 3 4 5` and the windows are 4 long. There are two of them: `0 1 2 3` with
# the targets `1 2 3 4`, and `1 2 3 4` with the targets `2 3 4 5`. A window that began at 2 would have no
# last target. In general `L - T` windows fit, and each is equally likely.
#
# The random numbers come from the argument `generator`: with the same seed it gives the same batches, so an
# experiment can be repeated. Without a generator, PyTorch's default one is used, and every call draws anew.
#
# **To think about.** What would a model learn if `y` were equal to `x`? Its loss would be wonderful.


# %%
def get_batch(
    data: Tensor, block_size: int, batch_size: int, generator: torch.Generator | None = None
) -> tuple[Tensor, Tensor]:
    """Cut windows out of a text, and the same windows one step later.

    data: (L,) the ids of a text. Returns x and y, both (B, T) with B = batch_size and T = block_size.
    Each row begins at its own random place, drawn with `generator` (None: PyTorch's default generator); all
    L - T windows are equally likely. data keeps its values.
    Example: for the data 0 1 2 3 4 and block_size 4, every row of x is 0 1 2 3 and every row of y 1 2 3 4.
    Raises ValueError that names block_size, its value and L's if the text is too short for one window and its
    last target (L <= block_size).
    """
    # TODO: refuse a text that is too short
    # TODO: draw where each window begins                                               # (B,)
    # TODO: cut the windows, and the same windows one step later                        # (B, T), (B, T)
    raise NotImplementedError("get_batch is not written yet.")


# %% part="batches"
# Written? `autograder check 07_mini_gpt` shows how you are doing.

# %% [markdown]
# The picture cuts windows with your function. In each row, compare the answers, in frames, with what the model
# reads: they stand one step later.

# %% picture="batches"
# The notebook draws a picture of your own code here.

# %% [markdown]
# ## Part 2 · The loss
#
# About 8 minutes, ●○○ (difficulty 1 of 3)
#
# For every position the model returns `V` numbers, the **logits**. A softmax turns them into probabilities $p$.
# How wrong is that? As wrong as the model is surprised by what really came: $-\ln p(\text{right})$. If it gave
# the right word all the probability, it is not surprised at all, $-\ln 1 = 0$. If it gave the right word none,
# it is infinitely surprised. The mean surprise is called the **cross-entropy**:
#
# $$\text{loss} = \frac{1}{B\,T} \sum_{b,t} -\ln p_{b,t}(y_{b,t})
#   \qquad p_{b,t} = \operatorname{softmax}(\text{logits}_{b,t})$$
#
# Weather forecasts are judged in this way, too. "90 % rain" on a rainy day costs $0.105$; on a dry day it
# costs $2.303$.
#
# **Three numbers to keep in mind.** A model that knows nothing gives each of `V` words the probability $1/V$, so
# its loss is exactly $\ln V$: with our 31 characters, $3.434$. If the right words at two positions have the
# probabilities $\tfrac12$ and $\tfrac18$, the loss is $(\ln 2 + \ln 8)/2 = 1.386$. And the loss of a perfect
# model is 0.
#
# Papers often report $e^{\text{loss}}$, the **perplexity**: the number of equally likely words among which the
# model might as well be guessing. It is $V$ for a model that knows nothing, 4 for our two positions, and 1 for
# a perfect model.
#
# **The gradient** is beautifully simple. For the logits of each position it is
# $(p - \text{onehot}(y)) / (B\,T)$: what was predicted minus what should have been predicted.
#
# **To think about.** PyTorch's function for this loss takes logits, not probabilities. What goes wrong for a
# very confident model if the probabilities are computed first and their logarithm afterwards?


# %%
def language_model_loss(logits: Tensor, targets: Tensor) -> Tensor:
    """The cross-entropy: the mean of -ln p(right word), in natural logarithms.

    logits: (B, T, V), any numbers, also as large as 10,000; targets: (B, T), the ids of the right words.
    Returns one number, a tensor of shape () in the logits' number type: the mean over all B times T positions.
    Example: logits of zeros give ln V, whatever the targets are.
    """
    # TODO: line up all positions of all pieces of text, and compare the logits with the targets  # ()
    raise NotImplementedError("language_model_loss is not written yet.")


# %% part="loss"
# Written? `autograder check 07_mini_gpt` shows how you are doing.

# %% [markdown]
# The picture draws your loss against the probability of the right word. Look for the dot: a model that knows
# nothing.

# %% picture="loss"
# The notebook draws a picture of your own code here.

# %% [markdown]
# ## Part 3 · The model
#
# About 30 minutes, ●●● (difficulty 3 of 3)
#
# From bottom to top: a vector for the word plus a vector for its position, then the blocks, then one last layer
# norm, then a linear layer that turns every vector into `V` logits.
#
# The block is **pre-norm**: each sublayer reads a normed copy of the residual stream, and its output is added to
# the stream itself, which is never normed on the way. (That is why one last `ln` is needed at the top.)
#
# $$x \leftarrow x + \text{attention}(\text{ln1}(x)) \qquad x \leftarrow x + \text{ff}(\text{ln2}(x))$$
#
# Its layers are given. One thing is left to you, and everything hangs on it: **no word may see the future**.
# `nn.MultiheadAttention` is called with query, key and value and takes an `attn_mask`. Mind its convention: in a
# boolean mask of PyTorch's, `True` means *blocked*. (`nn.Transformer` has a ready-made mask, too. It is made of
# floating-point numbers, and they must be of the same type as those in `x`: your model works in float32 and in
# float64.) Attention returns a pair; the first item is its output.
#
# **One number by hand.** With `V = 31`, `C = 64`, `block_size = 8` and one block, the model owns
# 1,984 + 512 numbers for words and positions, 49,984 in its block, 128 in `ln` and 2,015 in `fc`: 54,623
# together. GPT-2 is the same thing 2,278 times as large.
#
# **To think about.** Without position vectors, a causal model is *not* blind to order, as a model without a
# mask would be. What can the third word notice that the second cannot?


# %%
class Block(nn.Module):
    """One pre-norm block: (B, T, C) -> (B, T, C). Each word attends to itself and to the words before it."""

    def __init__(self, embed_size: int, num_heads: int) -> None:
        super().__init__()
        if embed_size % num_heads:
            raise ValueError(f"embed_size = {embed_size} cannot be divided by num_heads = {num_heads}")
        self.ln1 = nn.LayerNorm(embed_size)
        self.attention = nn.MultiheadAttention(embed_size, num_heads, batch_first=True)
        self.ln2 = nn.LayerNorm(embed_size)
        self.ff = nn.Sequential(
            nn.Linear(embed_size, 4 * embed_size), nn.GELU(), nn.Linear(4 * embed_size, embed_size)
        )

    def forward(self, x: Tensor) -> Tensor:
        """x (B, T, C) -> (B, T, C), for any length T, in float32 and in float64, in training and in eval."""
        # TODO: a mask that blocks the future                                           # (T, T)
        # TODO: attend, and add the output to the stream                                # (B, T, C)
        # TODO: feed forward, and add the output to the stream                          # (B, T, C)
        raise NotImplementedError("Block.forward is not written yet.")


# %%
class TransformerLanguageModel(nn.Module):
    """After each word, V logits for the next one: (B, T) -> (B, T, V).

    Attributes:
        token_embed, pos_embed   `nn.Embedding`s with a row for each word and a row for each position
        blocks                   num_layers `Block`s, in a container through which `parameters()` finds them; their
                                 names there are their numbers: blocks.0, blocks.1 and so on, the first one first
        ln                       the last `nn.LayerNorm`, with PyTorch's default eps
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
        Raises ValueError that names block_size, its value and T's if T is larger than block_size.
        """
        # TODO: refuse a piece of text that is too long
        # TODO: words plus positions, through the blocks, and out                       # (B, T, V)
        # TODO: with targets, the loss as well                                          # ()
        raise NotImplementedError("TransformerLanguageModel.forward is not written yet.")


# %% part="model"
# Written? `autograder check 07_mini_gpt` shows how you are doing.

# %% [markdown]
# In other people's code the block is often two lines, the two formulas of above:
#
# ```python
# x = x + self.attend(self.ln1(x))
# x = x + self.ff(self.ln2(x))
# ```
#
# Yours is a little longer, because PyTorch's attention is called with three tensors and a mask, and returns a pair.
# Put those into a method `attend`, and the two lines are left.
#
# `draw_model(TransformerLanguageModel(31, num_layers=4))` in a notebook draws all that you have built: a box for each
# module, with the parameters that it owns. Where are most of them?
#
# The picture changes one character after the other and watches which logits move. Nothing may move to
# the left of a change, that is, above the diagonal.

# %% picture="model"
# The notebook draws a picture of your own code here.

# %% [markdown]
# ## Part 4 · Training
#
# About 16 minutes, ●●○ (difficulty 2 of 3)
#
# One training step fits into four sentences. Fetch a batch. Compute the model's loss. Compute for every
# parameter in which direction it should move (`backward`). Let the optimiser move them all a little.
#
# The words on the roof do the same: guess, hear the right word, go down and move the chairs a little, guess again. And
# before you collect a new correction, **forget the last one**: PyTorch *adds* every new gradient to what is there
# already, until you set it to zero.
#
# The optimiser is `torch.optim.AdamW` with the learning rate `lr`, everything else as PyTorch sets it. What is
# reported is the loss of each batch *before* the step that it leads to.
#
# **What should the first loss be?** A model that knows nothing would lose $\ln 31 = 3.434$. A fresh model is not
# quite so modest: its logits are random numbers, not zeros. At the top, `ln` gives each of the `C` features
# variance 1, and PyTorch draws the weights of `fc` uniformly from $-1/\sqrt C$ to $1/\sqrt C$, which is a variance of
# $1/(3C)$. So each logit has a variance of about $C \cdot 1/(3C) = \tfrac13$: the model has opinions before it has
# learned anything, and random opinions cost about half their variance. Expect $3.434 + \tfrac16 \approx 3.6$. (GPT-2
# draws its weights with the standard deviation 0.02, which makes the logits smaller and the first loss almost
# $\ln V$.) A first loss far from this number means that something is wired up wrongly.
#
# **To think about.** The model has 54,623 numbers and our text about 2,000 characters. After enough training,
# what will the loss on this text tell you about how well it writes? What should you measure instead?


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
    with `generator` (None: PyTorch's default one). The model is put into training mode first and stays in it.
    Returns the loss of every batch, before its step, as plain numbers: a list of `steps` floats.
    Example: train(model, data, steps=100, batch_size=16, lr=3e-3, generator=torch.Generator())
    """
    # TODO: one AdamW for all parameters of the model, with the learning rate lr
    # TODO: as often as asked: a batch, its loss, fresh gradients, a step; remember the loss as a float
    raise NotImplementedError("train is not written yet.")


# %% part="training"
# Written? `autograder check 07_mini_gpt` shows how you are doing.

# %% [markdown]
# Train it for real: 1,000 steps take less than a minute on a laptop. Keep an eye on the loss. With the seed below
# it begins at 3.615, close to the 3.6 that we expected, and falls below 2 within the first 200 steps.
#
# The picture then draws a training run of its own, together with two lines to compare it with: $\ln V$, which is
# knowing nothing, and the *bigram line*, the best loss that is possible when only the last character is known.
# Where the curve crosses that line, attention has begun to pay.

# %%
if __name__ == "__main__":
    from autograder.notebook import watch_training

    torch.set_num_threads(1)  # for matrices this small, a second core only costs time
    torch.manual_seed(7)
    model = TransformerLanguageModel(len(ALPHABET), embed_size=64, block_size=32, num_heads=4, num_layers=2)
    generator, losses = torch.Generator().manual_seed(7), []
    watch = watch_training(1000)
    for done in range(50, 1001, 50):
        losses += train(model, encode(TEXT), steps=50, batch_size=16, lr=2e-3, generator=generator)
        watch(done, sum(losses[-50:]) / 50)

# %% [markdown]
# The first picture trains a small model with your code. Look at which lines its loss passes on the way down. The
# second shows where the heads of such a model look afterwards: do they differ?

# %% picture="training"
# The notebook draws a picture of your own code here.

# %% [markdown]
# ## Part 5 · Generation
#
# About 27 minutes, ●●● (difficulty 3 of 3)
#
# The model says how likely each word is. To *write*, take its probabilities after the last word, draw one word
# from them, append it, and ask again. That is all. The text grows word by word, and every word that was drawn
# becomes part of the context from then on. A model that writes in this way is called **autoregressive**.
#
# Four things make a good writer out of this loop.
#
# - **The context is cropped.** The model takes at most `block_size` words. When the text gets longer, it gets
#   the *last* `block_size` of them. What lies further back is forgotten.
# - **The temperature.** The logits are divided by it before the softmax. Below 1 the model becomes more
#   careful, above 1 more adventurous. It never changes which word is the most likely.
# - **top_k.** Only the `k` most likely words can be drawn; all others get a probability of exactly zero. With
#   `k = 1` nothing is left to chance. (When words tie for the last place, you may decide which one gets it.) The
#   temperature acts among those that remain.
# - **Good manners.** Writing is not training: it happens in eval mode and keeps no gradients, and afterwards the
#   model is in the mode that it was in before.
#
# **One number by hand.** A coin shows heads with a probability of 80 %. At temperature $\tfrac12$ the probabilities are
# squared and rescaled to sum to one: $0.64 / (0.64 + 0.04) = 94.1\,\%$. At temperature $\tfrac14$ they are raised
# to the fourth power: $99.6\,\%$. At temperature 2 the square root is taken: $66.7\,\%$.
#
# **How can chance be tested?** With models whose answers are known. `autograder.fakes` has a `Successor`, which
# after $n$ always says $n + 1$: does your text count on, even when it is longer than the context window? And
# it has a `Coin`: toss it 20,000 times, and count. You can use both in this notebook.
#
# **To think about.** The model's most likely text is not found by taking the most likely word every time. Why not?


# %%
def generate(
    model: nn.Module,
    ids: Tensor,
    max_new_tokens: int,
    temperature: float = 1.0,
    top_k: int | None = None,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Continue each row of ids by max_new_tokens words, each drawn from the model's probabilities.

    model: `model(ids)` returns logits (B, T, V) and a loss (None); `model.block_size` is its context window. It
    need not be your own model, so use nothing else of it but its modes.
    ids: (B, T) with T >= 1, any length; they keep their values. Returns (B, T + max_new_tokens): ids, and the
    new words after them. Every row is drawn independently, with `generator` (None: PyTorch's default one).
    temperature: the logits are divided by it. top_k: only the k most likely words of each row can be drawn; None,
    or a k beyond the vocabulary, means all. The model gets the last block_size words, in eval mode, without
    gradients, and is back in its former mode in the end.
    Raises ValueError that names the argument and its value if temperature <= 0 or top_k < 1.
    Example: a model that says n + 1 after n continues 7 8 by 9 10 11.
    """
    # TODO: refuse a bad temperature and a bad top_k
    # TODO: remember the model's mode, and go into eval mode
    # TODO: as often as asked, without gradients: the logits after the last word        # (B, V)
    # TODO: ... with temperature, and without the unlikely words                        # (B, V)
    # TODO: ... draw a word for each row, and append it                                 # (B, T + 1)
    # TODO: restore the mode
    raise NotImplementedError("generate is not written yet.")


# %% part="generation"
# Written? `autograder check 07_mini_gpt` shows how you are doing.

# %%
if __name__ == "__main__":
    for temperature in (0.5, 1.0, 2.0):
        written = generate(model, encode("the word ")[None], 200, temperature, generator=generator)
        print(f"--- temperature {temperature}\n{decode(written[0])}\n")

# %% [markdown]
# The pictures let your code write: first the same beginning after more and more training, then single words, drawn
# at different temperatures and with `top_k`. Look at the order of the towers, which never changes.

# %% picture="generation"
# The notebook draws a picture of your own code here.

# %% [markdown]
# ## My Transformer
#
# Nothing below is graded. It is what all the work was for. Three programs stand beside this file; each uses *your*
# classes and functions, and each can be read in ten minutes.
#
# **Your own layers, all of them: `my_transformer.py`.** This assignment gave you PyTorch's layers. Set the switch below
# to `True`, and your own come back: for each part of *Positional encoding*, *Masked heads*, *Multi-head concat* and
# *The encoder block* that passes its visible tests, your class takes the place of PyTorch's, down to the single head.
# (The folders of those assignments must lie beside this one.) Grading never looks at it.
#
# **A real text: `real_text.py`.** The source code of Python's own library lies on your computer: some megabytes,
# written by people. `python real_text.py` trains your model on it for about ten minutes and shows every 500 steps what
# it writes, and its loss on files that it has never seen. Add `--own` for your own layers.
#
# **GPT-2 itself: `gpt2_weights.py`.** If the model that OpenAI published is on your computer (*Ready-made* can fetch
# it), this program puts its 124,439,808 numbers into your classes, and *your* code writes English. Without it, the
# small model that you have just trained will have to do.

# %%
MY_TRANSFORMER = False

if __name__ == "__main__" and MY_TRANSFORMER:
    import sys

    from gpt2_weights import find_gpt2, write_english
    from my_transformer import own_layers

    layers = own_layers()
    print(write_english(sys.modules[__name__], find_gpt2(), "The word bank looked around the room", layers))

# %% [markdown]
# ## Harder: beam search
#
# Not graded; about 45 minutes, ●●● (difficulty 3 of 3).
# The last question of Part 5 has a practical answer: keep several texts and drop the
# worse ones. The file `harder.py` beside this one asks for beam search in one function of about ten lines. Run `python
# harder.py`: it checks what you write there and says in sentences what is missing.
#
# ## Look back
#
# You have a GPT. It is small, and so is the world that it has read about, but no part of it is a toy. With larger
# numbers and a longer text, it is the real thing. And here is the whole school for words, from the door to the roof
# (`H` heads with `D` numbers each, `N` blocks):
#
# | component | in the school | formula | shape |
# |---|---|---|---|
# | token ids | the register: each name has a number | | `(B, T)` |
# | word vectors | what a word knows when it comes in | $E[\text{id}_t]$ | `(B, T, C)` |
# | positions | a number for its seat | $E[\text{id}_t] + P[t]$ | `(B, T, C)` |
# | queries, keys | ask a question; what I can be asked about | $q = x W_Q,\ k = x W_K$ | `(B, H, T, D)` |
# | attention weights | listen more to those who know | $\operatorname{softmax}(q k^\top / \sqrt D)$ | `(B, H, T, T)` |
# | causal mask | never listen to a word behind you | $s \le t$ | `(T, T)` |
# | values, weighted sum | what is said; what I take away | $\sum_s \text{weight}_{t,s}\, v_s$ | `(B, H, T, D)` |
# | heads, output projection | several listeners, one bundle of notes | $[\text{head}_0, \dots]\, W_O$ | `(B, T, C)` |
# | feed-forward layer | a quiet minute to think | $W_2\, \phi(W_1 x)$ | `(B, T, C)` |
# | residual stream | what a word carries; nothing is taken from it, only added | $x + f(x)$ | `(B, T, C)` |
# | layer norm | everybody speaks up, and nobody shouts | $(x - \mu) / \sigma$ | `(B, T, C)` |
# | blocks | the floors | $N$ times | `(B, T, C)` |
# | logits | a guess on the roof | $\text{fc}(\text{ln}(x))$ | `(B, T, V)` |
# | loss | how much the wind laughs | $-\ln p(\text{right word})$ | `()` |
# | a training step | down again, and move the chairs a little | $\theta \leftarrow \theta - \dots$ | all of $\theta$ |
# | generation | they answer one after another, and it is a story | draw, append, ask again | `(B, T + 1)` |
#
# A word of caution. Much of the beautiful text that your model writes is simply learned by heart; the text is so
# small that it can be. A low loss on the text that was trained on proves little, and it proves nothing at all if
# the model can peek: with a mask that is one step late, the loss becomes *better* than any honest model's. The
# honest question is always the same: how surprised is the model by text that it has never seen, when each
# word is predicted from the words before it alone? An assignment of its own, *Spot the cheat*, is about that.
#
# Your model can only continue its own text; there is no second text for it to respond to. For that, a decoder has
# to attend to an encoder. That is the next assignment.
#
# **One last question.** Your model was trained with windows of 32 characters. Can it ever learn that the wind,
# which laughs in one paragraph, did so in the paragraph before?
#
# ## Read on
#
# - Yoshua Bengio, Réjean Ducharme, Pascal Vincent and Christian Jauvin, *A Neural Probabilistic Language Model*
#   (2003): word vectors and a network that predicts the next word, long before attention. Look for the size of its
#   context, and for what happens to everything before it.
# - Alec Radford, Jeffrey Wu, Rewon Child, David Luan, Dario Amodei and Ilya Sutskever, *Language Models are
#   Unsupervised Multitask Learners* (2019), the GPT-2 paper: look at the table of the four model sizes, and for
#   the sentence that says where its layer norms stand. It describes your `Block` and your `ln`.
# - Ilya Loshchilov and Frank Hutter, *Decoupled Weight Decay Regularization* (2017): where AdamW's W comes from.
#   Look for the one line in which it differs from Adam.
# - Ari Holtzman, Jan Buys, Li Du, Maxwell Forbes and Yejin Choi, *The Curious Case of Neural Text Degeneration*
#   (2019): look at what a good model writes when the most likely word is taken every time, and at the answer, a
#   relative of `top_k`.
