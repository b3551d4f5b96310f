# %% [markdown]
# # 00 · Why Transformers
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
#        ↑               01 vectors
#    vectors +           02 positions
#    positions           12 positions that turn
#        ↑               17 the code around it, debugged
# words of a text      ▶ 00 why not one word after the other
#
# ▶ you are here
# ```
#
# Before you build a Transformer, meet what it replaced. Until 2017 the best translation systems read text with a
# **recurrent neural network**, an RNN: one word after another, carrying all they had read in a single vector, the
# **hidden state**. The idea is natural; it is more or less how you are reading this sentence. It also has three
# weaknesses, and the Transformer is an answer to exactly these three. In this assignment you build a small RNN by
# hand and measure all of them.
#
# **A school for words.** One story goes through this course. In a small town by the sea there is a school for words. In
# the morning each word knows its own name and nothing else: *bank* cannot say whether it is a place for money or the
# side of a river. Every word is told the number of its seat. Then it asks a question and looks around the room. It
# listens more to the words that have an answer, and less to those that do not; but never to a word behind it, for that
# one has not been spoken yet. After that it has a quiet minute to think. They listen and think on every floor, up to the
# roof, where the wind asks: *what comes next?* Each word makes a guess, the wind tells it the right word, and they go
# down, move their chairs a little, and try again. That is a Transformer, and how it learns. Each assignment fills in
# one line of the story, 07 trains a model on it, and a table there says what everything in it stands for.
#
# In the old school, the one of this assignment, nobody looked around. The words handed a single slip of paper along the
# row. Each of them read it, wrote its own line over what was there, and passed it on. What is left of the first word's
# line when the slip arrives at the last seat? That is what you will measure.
#
# | part | what you write | the weakness it shows |
# |---|---|---|
# | 1 · One step | the hidden state takes in one word | none yet |
# | 2 · A whole sentence | one step after another | one vector has to hold everything: the **bottleneck** |
# | 3 · Gradient reach | a measuring tool | the learning signal fades or explodes on its way back |
# | 4 · Waiting | a count | the steps cannot run side by side |
#
# Letters for shapes: `B` sentences in a batch, `T` words in a sentence, `C` numbers in a word vector, `H`
# numbers in the hidden state (from assignment 04 on, `H` counts attention heads instead).
#
# **Word or token?** A model reads a text in pieces that the field calls **tokens**: words, parts of words or single
# characters. This course says *word* where nothing depends on how the text was cut, and *token* where something does:
# ids, vocabularies, tokenizers, special markers such as `[MASK]`. `T` words and `T` tokens are the same number.
#
# **Not here.** Nothing is trained: you measure what a recurrent network is able to learn, not what one has learned.
#
# The names of functions, classes, attributes and arguments in this file are part of the contract: the tests use them.
# Where the contract asks for an error that *names* an argument, the message contains the argument's name and its value,
# as in `kind must be "rnn" or "attention", but it is 'lstm'`. How you compute is up to you, with one exception. PyTorch
# has finished recurrent layers (`nn.RNN`, `nn.RNNCell`, `nn.LSTM`, `nn.GRU`). Here you write one by hand, so they and
# the functions behind them do not count where a test calls your code. To compare yours with them, do so in a cell or
# function of its own.

# %%
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

# %% [markdown]
# ## Part 1 · One step
#
# About 6 minutes, ●○○
#
# A recurrent network owns two matrices and a bias. With each word $x_t$ it makes a new hidden state from the word
# and from the state before it:
#
# $$h_t = \tanh\big(x_t W_{xh} + h_{t-1} W_{hh} + b\big)$$
#
# $W_{xh}$ says what the word contributes, and $W_{hh}$ what becomes of the memory so far. The $\tanh$ squashes every
# number into the range from $-1$ to $1$, so the state cannot grow without limit, however long the text is.
# All steps share the same weights: a network that reads 1,000 words has no more parameters than one that reads two.
#
# Vectors are rows here, so they stand to the *left* of the matrices, and a batch of them is a matrix with one row
# for each sentence.
#
# **One number by hand.** Let $C = 1$ and $H = 2$, with $x = (1)$, $h = (1, 0)$ and
#
# $$W_{xh} = \begin{pmatrix} 0.2 & 0 \end{pmatrix} \qquad
#   W_{hh} = \begin{pmatrix} 0 & 0.4 \\ 0.2 & 0 \end{pmatrix} \qquad
#   b = \begin{pmatrix} 0 & 0.1 \end{pmatrix}$$
#
# The word contributes $(0.2,\ 0)$, the old state $(0,\ 0.4)$, the bias $(0,\ 0.1)$. Together that is $(0.2,\ 0.5)$,
# and the new state is $(\tanh 0.2,\ \tanh 0.5) = (0.1974,\ 0.4621)$.
#
# **Large numbers.** $\tanh 1000$ is 1. The textbook formula $(e^z - e^{-z}) / (e^z + e^{-z})$ finds NaN there, because
# $e^{1000}$ fits neither a `float32` nor a `float64`.
#
# **To think about.** If every number in $W_{hh}$ were zero, what would the last state know about the first word?


# %%
def rnn_step(x: Tensor, h: Tensor, W_xh: Tensor, W_hh: Tensor, b: Tensor) -> Tensor:
    """One step of a recurrent network, tanh(x W_xh + h W_hh + b), for B sentences at once (Elman, 1990).

    x: (B, C), the next word of each sentence; h: (B, H), the hidden states before it.
    W_xh: (C, H); W_hh: (H, H); b: (H,).

    Returns the hidden states after the word, (B, H), in the number type of the inputs (float32 or float64).
    The inputs keep their values, and gradients flow to all five of them. However large the numbers are,
    the result lies between -1 and 1 and is never NaN.
    Example: x = [[1.]], h = [[1., 0.]], W_xh = [[0.2, 0.]], W_hh = [[0., 0.4], [0.2, 0.]], b = [0., 0.1]
    give [[0.1974, 0.4621]].
    """
    # TODO: add up what the word, the old state and the bias contribute, and squash the sum  # (B, H)
    ### BEGIN SOLUTION
    return torch.tanh(x @ W_xh + h @ W_hh + b)                                          # (B, H)
    ### END SOLUTION


# %% part="step"

# %% [markdown]
# ## Part 2 · A whole sentence, through one vector
#
# About 11 minutes, ●●○
#
# Reading a sentence is just a loop: the first step starts from a given state $h_0$ (often zeros), and each step hands
# its state to the next. Two things come out: the states after *every* word, and the state after the *last* word, which
# is all that is left when the reading is over.
#
# **One number by hand.** Let $C = H = 1$, $W_{xh} = 1$, $W_{hh} = 0.5$, $b = 0$, $h_0 = 0$, and the three words $1,
# 0, 0$: only the first one says anything. The states are $\tanh 1 = 0.7616$, then $\tanh(0.5 \cdot 0.7616) = 0.3634$,
# then $\tanh(0.5 \cdot 0.3634) = 0.1797$. With every word the trace of the first one shrinks to less than half.
#
# **The bottleneck.** The neural translators of 2014 worked like this: one network read the English sentence, its last
# state went to a second network, and that one wrote the French sentence from this state alone. Let $C = H = 512$. A
# sentence of 50 words is $50 \cdot 512 = 25{,}600$ numbers, and a state has 512, no matter whether the sentence has 5
# words or 500. Everything that the translation needs has to squeeze through it. The effect was plain to see: long
# sentences were translated worse than short ones, and it helped to feed the English sentence in *backwards*, because
# then its first words came closer to the first words of the translation.
#
# **No words at all.** A sentence with $T = 0$ words is an edge case that really occurs (an empty line, an empty
# prompt). There is nothing to read: `outputs` is empty, with shape `(B, 0, H)`, and the last state is $h_0$.
#
# **To think about.** Swap two words of a sentence. Does the last state change? (Keep your answer for assignment 02:
# attention by itself does not notice.)


# %%
def rnn(xs: Tensor, h0: Tensor, W_xh: Tensor, W_hh: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Reads B sentences from left to right, one word after another.

    xs: (B, T, C), the words; h0: (B, H), the hidden states before the first word; the rest as for `rnn_step`.

    Returns (outputs, last): the states after each word, (B, T, H), and the states after the last word, (B, H).
    When T is 0, outputs is an empty tensor of shape (B, 0, H), and last has the values of h0.
    Both have the number type of the inputs, which keep their values. From both, gradients flow to all five inputs,
    through every step back to the first word. Nothing is remembered from one call to the next.
    Example: the words 1, 0, 0 with W_xh = [[1.]], W_hh = [[0.5]], b = [0.] and h0 = [[0.]]
    give the outputs 0.7616, 0.3634, 0.1797.
    """
    # TODO: take one step for each word, and keep every state on the way                # (B, H)
    # TODO: return the states side by side, and the last one; mind the sentence without words  # (B, T, H), (B, H)
    ### BEGIN SOLUTION
    h, outputs = h0, []
    for t in range(xs.shape[1]):
        h = rnn_step(xs[:, t], h, W_xh, W_hh, b)                                        # (B, H)
        outputs.append(h)
    if not outputs:
        return h0.new_empty(h0.shape[0], 0, h0.shape[1]), h0                            # (B, 0, H), (B, H)
    return torch.stack(outputs, dim=1), h                                               # (B, T, H), (B, H)
    ### END SOLUTION


# %% part="network"

# %% [markdown]
# ## Part 3 · How far does a gradient reach?
#
# About 17 minutes, ●●○
#
# Suppose the first word decides how the sentence has to end. To learn that, the network needs a gradient that travels
# from the last state all the way back to the first word: **backpropagation through time**. At each step on the way, it
# is multiplied by the slope of the $\tanh$ and by $W_{hh}$, again and again by the *same* matrix. So it behaves like a
# power of a number:
#
# | factor of one step | after 50 steps | name |
# |---|---|---|
# | 0.9 | $0.9^{50} = 0.0052$ | **vanishing gradient** |
# | 1.1 | $1.1^{50} = 117$ | **exploding gradient** |
#
# Neither side is safe. An exploding gradient can at least be cut down to size (gradient clipping, assignment 15). A
# vanished one cannot be repaired afterwards: it drowns in the gradients of nearby words.
#
# **A measuring tool.** We define the **reach** of position $t$ as the size of the gradient that arrives there:
#
# $$\text{reach}_t = \Big\lVert \frac{\partial}{\partial x_t} \sum \text{last}(x_0, \dots, x_{T-1}) \Big\rVert$$
#
# Here $\text{last}$ is the model's final output for these words, summed to one number, because a gradient starts from
# one number. The norm is taken over everything that stands at position $t$: over the numbers of the word vector and
# over all sentences of the batch. PyTorch computes the gradient; your function only has to ask for it, and to leave
# the caller's tensor unchanged.
#
# **One number by hand.** Let $B = C = H = 1$, $W_{xh} = 1$, $W_{hh} = 0.9$, $b = h_0 = 0$, and four words that are all
# $0$. Every state is $0$, where the slope of $\tanh$ is 1, so each step multiplies the gradient by 0.9. The reach is
# $(0.729,\ 0.81,\ 0.9,\ 1)$. With two such sentences in the batch, it is $\sqrt 2$ times as large.
#
# **To think about.** The slope of $\tanh$ is never above 1. Does a saturated state (all numbers near $\pm 1$) make the
# reach longer or shorter?


# %%
def gradient_reach(last_of: Callable[[Tensor], Tensor], xs: Tensor) -> Tensor:
    """How strongly the result of last_of reacts to each position of xs.

    last_of: any differentiable function of a tensor like xs; its result may have any shape.
    xs: (B, T, C).

    Returns a tensor of shape (T,) in the number type of xs (float32 or float64): at t, the Euclidean norm of the
    gradient of last_of(xs).sum() with respect to xs[:, t], over all sentences and numbers together. A position that
    last_of does not look at has reach 0.
    xs is only read: afterwards it has the values it had, needs no gradient (xs.requires_grad is False), and holds
    none (xs.grad is None).
    Example: for last_of = lambda xs: rnn(xs, h0, W_xh, W_hh, b)[1] with four words 0 and W_hh = [[0.9]], as above,
    the result is [0.7290, 0.8100, 0.9000, 1.0000].
    """
    # TODO: a tensor with the values of xs that wants a gradient, while xs itself stays as it is  # (B, T, C)
    # TODO: the gradient of the summed result with respect to it                        # (B, T, C)
    # TODO: its norm at each position                                                   # (T,)
    ### BEGIN SOLUTION
    words = xs.detach().requires_grad_()                                                # (B, T, C)
    (gradient,) = torch.autograd.grad(last_of(words).sum(), words)                      # (B, T, C)
    return gradient.norm(dim=(0, 2))                                                    # (T,)
    ### END SOLUTION


# %% part="reach"

# %% [markdown]
# **The repair.** The *long short-term memory*, **LSTM** (1997, and in 2000 with the forget gate), keeps a second vector
# beside the hidden state, the **cell state** $c$, and guards it with **gates**: vectors of numbers between 0 and 1,
# computed from the word and the hidden state before it. The forget gate $f$ decides how much of the old cell stays, the
# input gate $i$ how much of the new candidate $g$ is written, and the output gate $o$ how much of the cell is shown:
# $c_t = f \odot c_{t-1} + i \odot g$ and $h_t = o \odot \tanh(c_t)$. The point is the first formula. Along the cell
# state there is no matrix and no $\tanh$: on this path a gradient is multiplied by $f$ and nothing else (the gates read
# the hidden state, so there are other paths, with matrices), and the network can learn to keep $f$ close to 1. With $f
# = 0.99$, $0.99^{50} = 0.605$ of it arrives, where $0.9^{50}$ was 0.0052. (The GRU of 2014 is a simpler relative with
# two gates.) So an LSTM remembers for much longer. But it still squeezes the sentence through vectors of fixed size,
# and it still reads one word after the other.
#
# **The direct line.** In 2014 a neural translator was first allowed to look back at the source, as you do when you
# translate. Instead of the last state alone, it had the states at *all* words. For each word that it wrote, it took
# a weighted mean of them, with large weights for the words that mattered at that moment. These weights are called
# **attention weights**, and the mechanism is **attention**. Attention connects any two words in *one* step, however
# far apart they are. In 2017 the Transformer kept the attention and threw the recurrence away.
#
# Below, the last word attends to all words. (You will write this function yourself in assignment 03; here it is
# given.) It meets three recurrent networks, and your tool measures all four.


# %%
def attention_last(xs: Tensor) -> Tensor:
    """Given: the last word asks, and all words answer. xs: (B, T, C) -> (B, C)."""
    return F.scaled_dot_product_attention(xs[:, -1:], xs, xs)[:, 0]                     # (B, C)


# %%
if __name__ == "__main__":
    dice = torch.Generator().manual_seed(0)
    T, H = 51, 32
    unit = torch.eye(H, dtype=torch.float64)                                            # (H, H)
    turn, _ = torch.linalg.qr(torch.randn(H, H, generator=dice, dtype=torch.float64))  # turns, never stretches (H, H)
    as_pytorch_starts = (2 * torch.rand(H, H, generator=dice, dtype=torch.float64) - 1) / H**0.5  # (H, H)
    xs = 1e-4 * torch.randn(1, T, H, generator=dice, dtype=torch.float64)               # (1, T, H)
    silence = torch.zeros(1, H, dtype=torch.float64)                                    # (1, H)
    memories = {"0.9 x a rotation": 0.9 * turn, "1.1 x a rotation": 1.1 * turn, "PyTorch's start": as_pytorch_starts}
    readers = {
        f"RNN, W_hh = {name}": lambda xs, W_hh=W_hh: rnn(xs, silence, unit, W_hh, silence[0])[1]
        for name, W_hh in memories.items()
    }
    print(f"{'reach at a distance of':34}", *(f"{distance:>9}" for distance in (0, 10, 25, 50)), "words")
    for name, last_of in {**readers, "attention": attention_last}.items():
        reach = gradient_reach(last_of, xs) / H**0.5                                    # (T,)
        print(f"{name:34}", *(f"{reach[T - 1 - distance]:9.2g}" for distance in (0, 10, 25, 50)))

# %% [markdown]
# The words are tiny here, so that $\tanh$ stays in its linear range and you see the effect of $W_{hh}$ alone. The third
# network starts as PyTorch's `nn.RNN` does, with numbers drawn evenly from $-1/\sqrt H$ to $1/\sqrt H$: such a matrix
# shrinks a vector by a factor of about $1/\sqrt 3 = 0.577$, and $0.577^{50}$ is about $10^{-12}$. So before it has
# learned anything, this network cannot see a word 50 steps back, and it has no way to learn to look for a word that it
# cannot see.
#
# Attention is not *louder*. Among 51 words that all match equally well, each one gets $1/51 = 0.0196$, so a recurrent
# network hears its nearest words better. But the line is flat: a word 50 steps back counts as much as the one next
# door. In a trained model some words do get larger weights, because of what they say and not because they are near.

# %% picture="reach"

# %% [markdown]
# ## Part 4 · Steps that must wait
#
# About 10 minutes, ●○○
#
# The third weakness is about time. A graphics card does thousands of multiplications side by side, but only those
# whose inputs are ready. Stack $L$ recurrent layers: the state of layer $l$ after word $t$ needs the state of the
# *same* layer after word $t - 1$, and the state of the layer *below* after word $t$. A step can start as soon as both
# are ready, so the layers work like an assembly line: while the first layer reads word 3, the second can read word 2.
# Still, the last state of the top layer has to wait for $T + L - 1$ steps, one after the other.
#
# In a layer of attention no word waits for its neighbour. All it needs is the layer below, which is finished for all
# words at once. So $L$ layers take $L$ steps, whether the text has 5 words or 5,000.
#
# **One number by hand.** For $T = 5$ words and $L = 3$ layers it is 7 steps against 3; for 1,000 words and 6 layers,
# 1,005 against 6. In training, where the whole text is known from the start, this is the difference between a graphics
# card that waits and one that works.
#
# **The price.** Nothing is free. In every layer and every head, each of the $T$ words compares itself with each of the
# $T$ words: $T^2$ attention scores. For 10 words that is 100, for 1,000 words it is 1,000,000, and twice the text means
# four times the scores. A score takes $H$ multiplications, though, and each of the $T$ steps of a recurrent network
# takes $H^2$. As long as a text has fewer words than a vector has numbers, attention is even the cheaper of the two:
# for $T = 50$ and $H = 512$ it is 1,280,000 multiplications against 13,107,200. In longer texts, the square tells.
# BERT-base reads up to 512 tokens with 12 heads in each of 12 layers: $512^2 \cdot 12 \cdot 12 = 37{,}748{,}736$
# scores. Memory has its price, too. A recurrent network remembers any text in $H$ numbers; a Transformer keeps all
# words in view and needs room for all $T$ of them. That is why long texts are expensive to this day, and why recurrence
# keeps coming back in new forms.
#
# **To think about.** Your function counts the steps for *reading* a text. When a Transformer *writes*, each new word
# has to wait for the one before. What is left of the advantage then? (Assignment 13 is about exactly this.)


# %%
def sequential_steps(T: int, num_layers: int, kind: str) -> int:
    """How many steps must wait for one another until the top layer has read the last of T words.

    T: words, at least 1; num_layers: layers, at least 1.
    kind: "rnn" for recurrent layers, which work as an assembly line (a step is one word in one layer, and all steps
    whose inputs are ready run side by side); "attention" for layers of attention (a step is one layer, all words).

    Returns a whole number (an int). Raises ValueError that names kind and its value if kind is anything else, such
    as "lstm" or "RNN".
    Example: 5 words and 3 layers take 7 steps with "rnn" and 3 with "attention".
    """
    # TODO: the steps that must wait for one another, for each kind; refuse what is neither
    ### BEGIN SOLUTION
    if kind == "rnn":
        return T + num_layers - 1
    if kind == "attention":
        return num_layers
    raise ValueError(f'kind must be "rnn" or "attention", but it is {kind!r}.')
    ### END SOLUTION


# %% part="steps"

# %% [markdown]
# In the picture each circle is one step's work, and the number in it is the earliest moment at which it can begin.
# Circles with the same number can run side by side.

# %% picture="steps"

# %% [markdown]
# ## Harder: an LSTM by hand
#
# Not graded; about 30 minutes, ●●○.
# A gate decides what stays in the state and what is written into it, and the
# gradient no longer fades at each step. The file `harder.py` beside this one asks for an LSTM in two short functions,
# compares it with PyTorch's, and asks how large the bias of a forget gate must be for half of a memory to last for 50
# steps. Run `python harder.py`: it checks what you write there and says in sentences what is missing.
#
# ## Look back
#
# | | recurrent network | attention |
# |---|---|---|
# | what is left of a text of $T$ words | one vector | all $T$ vectors |
# | steps between two words that are $k$ apart | $k$ | 1 |
# | steps that must wait, $L$ layers | $T + L - 1$ | $L$ |
# | work in a layer | $T$ steps of $H^2$ multiplications | $T^2$ scores of $H$ multiplications |
#
# One thing was lost on the way. A recurrent network knows the order of the words because it reads them in order.
# Attention connects every word with every word, and it has no idea which of them came first. How word order comes back
# is the story of assignment 02; first, in 01, words become vectors.
#
# ## Read on
#
# - **Jeffrey Elman, "Finding Structure in Time" (1990).** The network of Part 1. Look for the figure with the context
#   units, which hold a copy of the last hidden state.
# - **Yoshua Bengio, Patrice Simard and Paolo Frasconi, "Learning Long-Term Dependencies with Gradient Descent Is
#   Difficult" (1994).** The trade-off behind Part 3: a network that holds on to information reliably has gradients that
#   vanish.
# - **Sepp Hochreiter and Jürgen Schmidhuber, "Long Short-Term Memory" (1997).** Look for the "constant error carousel",
#   the cell state along which a gradient keeps its size. There is no forget gate yet; it came in 2000, in "Learning to
#   Forget" by Felix Gers, Jürgen Schmidhuber and Fred Cummins.
# - **Ilya Sutskever, Oriol Vinyals and Quoc Le, "Sequence to Sequence Learning with Neural Networks" (2014).** A whole
#   sentence through one vector, and the trick of reading the source backwards.
# - **Dzmitry Bahdanau, Kyunghyun Cho and Yoshua Bengio, "Neural Machine Translation by Jointly Learning to Align and
#   Translate" (2014).** Attention enters. Look for the plot of translation quality against sentence length, and for the
#   matrices that show which source word each French word looked at.
# - **Ashish Vaswani and others, "Attention Is All You Need" (2017).** The Transformer. Read Section 4 and its table: path
#   length, sequential operations and work per layer are Parts 3 and 4 of this assignment.
# - **Albert Gu and Tri Dao, "Mamba: Linear-Time Sequence Modeling with Selective State Spaces" (2023).** Recurrence
#   comes back, without a $\tanh$ between one state and the next, so that in training its steps can run side by side
#   after all.
