# %% [markdown]
# # 14 · Fine-tuning
#
# ```
#  the next word         07 trained, and writing
#        ↑               18 what it costs
#        ↑               16 taught what people prefer
#        ↑             ▶ 14 fine-tuned
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
# An encoder that has filled in thousands of gaps has been to school, but it has no job. It turns
# words into vectors, and nobody has asked for vectors. People ask for decisions: is this letter urgent, is this
# review friendly, is this message spam?
#
# The recipe that made BERT famous is short. **Pre-train** once on plenty of text without labels. Then put one
# small layer on top, show the model a few labelled examples, and train a little more. The second step is called
# **fine-tuning**, and it is what you build here.
#
# | part | the question it answers |
# |---|---|
# | 1 · Pooling | how do many vectors become one? |
# | 2 · The classifier | how does one vector become a decision? |
# | 3 · LoRA | how few numbers have to move? |
# | 4 · An honest split | which examples may be used to judge the model? |
# | 5 · The confusion matrix and macro F1 | what goes wrong, and how often? |
#
# At the end you train three classifiers, in about a minute, and see what pre-training was worth.
#
# **Not here.** The world is made up and has no rare words or typing errors, and no setting is tuned: what is left out
# is most of the work on real letters.
#
# Letters for shapes: `B` sentences in a batch, `T` positions in a sentence, `C` numbers in a vector (`d_model`),
# `K` classes (`num_classes`), `N` examples. The names of functions, classes, attributes **and arguments** are
# part of the contract, because the tests use them; everything else is yours. Some of this exists ready-made:
# `torch.utils.data.random_split`, and the confusion matrix and F1 score of `sklearn` and `torchmetrics`.
# Here you write it by hand. To compare your results with theirs, do so in a cell or function of its own.

# %%
import copy
import itertools
import random

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

# %% [markdown]
# ## Given · A small restaurant
#
# A restaurant serves 24 dishes, twelve of them hot and twelve cold. It has two piles of paper.
#
# **The kitchen's notes** say how dishes are served. Nobody has labelled them: *our soup is best when it is very
# hot*, *how cool was my lemonade*. There are 2,304 of them, and this is what the encoder reads first.
#
# The restaurant cares about **the guests' cards**. Each belongs to one of three classes:
#
# | id | class | for example |
# |---|---|---|
# | 0 | praise | *the soup was very hot*, *my lemonade was cold* |
# | 1 | complaint | *the soup was cold*, *my lemonade was quite warm when it came* |
# | 2 | question | *was the soup very hot*, *was my lemonade quite warm when it came* |
#
# There are 2,304 cards as well: 576 praise, 576 complain and 1,152 ask. We made them so that there are no cheap
# shortcuts. *Warm* is praise for soup and a complaint about lemonade, so **no single word gives the class away**:
# among the cards that contain any given word, one quarter praise, one quarter complain and one half ask. Even
# the whole bag of words cannot tell a question from a statement, since every statement also exists as a question
# with the same words in another order. (There are no question marks; our guests are in a hurry.)

# %%
HOT = "soup stew tea coffee curry pie pizza porridge toast goulash lasagne cocoa"
COLD = "lemonade beer salad sorbet juice melon yoghurt milkshake gazpacho cider champagne sushi"
SERVED = {"hot": HOT.split(), "cold": COLD.split()}
DISHES = [*SERVED["hot"], *SERVED["cold"]]
TEMPERATURES = {"hot": ["hot", "warm"], "cold": ["cold", "cool"]}
CLASSES = ["praise", "complaint", "question"]
PRAISE, COMPLAINT, QUESTION = range(3)


def kitchen_notes() -> list[str]:
    """Every note of the kitchen: dishes as they should be, without labels."""
    notes = []
    for how, dishes in SERVED.items():
        every = itertools.product(dishes, ["the", "my", "our"], ["very ", "quite ", "rather ", ""], TEMPERATURES[how])
        for dish, whose, very, warm in every:
            notes.append(f"we serve {whose} {dish} {very}{warm}")
            notes.append(f"{whose} {dish} is best when it is {very}{warm}")
            notes.append(f"{whose} {dish} came {very}{warm} as it should")
            notes.append(f"how {very}{warm} was {whose} {dish}")
    return notes


def cards(dishes: list[str]) -> list[tuple[str, int]]:
    """Every card about these dishes, with its class: a list of (sentence, class), sorted by class."""
    found = []
    for dish in dishes:
        served = "hot" if dish in SERVED["hot"] else "cold"
        every = itertools.product(["the", "my"], ["", "very ", "quite "], ["hot", "cold"], ["", " when it came"])
        for whose, very, how, end in every:
            for warm in TEMPERATURES[how]:
                found.append((f"{whose} {dish} was {very}{warm}{end}", PRAISE if how == served else COMPLAINT))
                found.append((f"was {whose} {dish} {very}{warm}{end}", QUESTION))
    return sorted(found, key=lambda card: card[1])


PAD, CLS, MASK = 0, 1, 2
WORDS = ["[PAD]", "[CLS]", "[MASK]", *sorted({word for note in kitchen_notes() for word in note.split()})]


def encode(sentences: list[str]) -> Tensor:
    """Sentences as rows of ids, each after a CLS, filled up with PAD on the right: (B, T)."""
    rows = [torch.tensor([CLS, *(WORDS.index(word) for word in sentence.split())]) for sentence in sentences]
    return nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=PAD)


if __name__ == "__main__":
    every_card = cards(DISHES)
    print(f"{len(kitchen_notes())} notes, {len(every_card)} cards, {len(WORDS)} words. Three cards:")
    for sentence, label in (every_card[0], every_card[600], every_card[-1]):
        print(f"{CLASSES[label]:>10}: {sentence}")

# %% [markdown]
# ## Given · The encoder and its pre-training
#
# The encoder is the one from assignment 09: token and position embeddings, then post-norm blocks without a causal
# mask. Its pre-training is a simplified version of what you wrote there. In every note one word is hidden
# behind `[MASK]`, and a linear layer that is thrown away afterwards has to name it. To find the missing word in
# *our soup is best when it is very* ▢, the encoder must learn that soup goes with *hot* and *warm*. Nobody ever
# tells it so.
#
# Run this cell now. It takes ten to twenty seconds, and the training at the end starts from its result.


# %% tags=["hide-input"]
class Encoder(nn.Module):
    """Given. Words become vectors that know their sentence: ids (B, T) -> (B, T, C).

    padding_mask (B, T), True marks padding, which no word attends to.
    """

    def __init__(
        self,
        vocab_size: int,
        d_model: int = 64,
        n_heads: int = 4,
        n_layers: int = 2,
        d_ff: int = 128,
        max_len: int = 16,
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
        for layer in self.layers:
            layer.activation_relu_or_gelu = 0  # no fast path in eval mode, which reads weights without calling layers

    def forward(self, ids: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        T, max_len = ids.shape[1], self.position_embedding.num_embeddings
        if T > max_len:
            raise ValueError(f"A sentence of {T} words is longer than max_len = {max_len}.")
        x = self.token_embedding(ids) + self.position_embedding.weight[:T]              # (B, T, C)
        x = self.dropout(self.norm(x))                                                  # (B, T, C)
        for layer in self.layers:
            x = layer(x, src_key_padding_mask=padding_mask)                             # (B, T, C)
        return x


def pretrain(encoder: nn.Module, notes: list[str], steps: int, batch_size: int = 64, lr: float = 2e-3) -> None:
    """Train the encoder in place: one word of each note is hidden and has to be predicted from the others."""
    from autograder.notebook import watch_training

    watch = watch_training(steps, "pre-training")
    ids = encode(notes)                                                                 # (notes, T)
    C, V = encoder.token_embedding.embedding_dim, encoder.token_embedding.num_embeddings
    to_words = nn.Linear(C, V)  # thrown away afterwards
    optimizer = torch.optim.Adam([*encoder.parameters(), *to_words.parameters()], lr=lr)
    encoder.train()
    for step in range(1, steps + 1):
        batch = ids[torch.randint(len(ids), (batch_size,))]                             # (B, T)
        place = torch.multinomial((batch > MASK).float(), 1)                            # (B, 1)
        answers = batch.gather(1, place)[:, 0]                                          # (B,)
        vectors = encoder(batch.scatter(1, place, MASK), batch == PAD)                  # (B, T, C)
        logits = to_words(vectors[torch.arange(batch_size), place[:, 0]])               # (B, V)
        loss = F.cross_entropy(logits, answers)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            watch(step, loss.item())


if __name__ == "__main__":
    torch.set_num_threads(1)  # for matrices this small, a second thread costs more than it brings
    torch.manual_seed(0)
    pretrained = Encoder(len(WORDS))
    pretrain(pretrained, kitchen_notes(), steps=600)

# %% [markdown]
# ## Part 1 · Pooling
#
# About 15 minutes, ●●○
#
# The encoder returns one vector for each position. A decision about the sentence needs **one vector for the
# sentence**. There are two usual ways to get it.
#
# **`"first"`** takes the vector at position 0, where `[CLS]` stands. `[CLS]` means nothing by itself, but it attends
# to every word, so its vector can learn to collect whatever the decision needs. BERT does this.
#
# **`"mean"`** averages the vectors of the sentence. The padding must not take part, or a short sentence in a batch of
# long ones would be watered down. With $n_b$ the number of positions of sentence $b$ that are not padding:
#
# $$\text{pooled}_b = \frac{1}{n_b} \sum_{t \text{ not padding}} h_{b,t}$$
#
# **One number by hand.** A sentence has two real positions with the vectors $(2, 4)$ and $(4, 8)$, and one padded
# position that holds $(90, 90)$. Its mean is $(3, 6)$. If you forget the mask you get $(32, 34)$. If you only set
# the padding to zero and still divide by three, you get $(2, 4)$.
#
# Two things can go wrong here that no loss curve will show you.
#
# - **A sentence that is nothing but padding** (an empty row that fills up a batch) has $n_b = 0$. Its mean would be
#   0/0, and a single NaN soon spreads through the whole model. We agree that it pools to zeros, and that only zeros
#   flow back from it.
# - **The vectors at padded positions are arbitrary**, and may even be NaN: that is what PyTorch's attention
#   can return for a row without a single real word. They must reach neither the result nor the gradients. Note
#   that 0 · NaN is NaN.
#
# **To think about.** During pre-training `[CLS]` was never hidden, so no loss ever asked its vector for
# anything. What do you expect of `"first"` if the encoder is used as it is, without any further training?


# %%
def pool(hidden: Tensor, padding_mask: Tensor, kind: str) -> Tensor:
    """One vector for each sentence: hidden (B, T, C), padding_mask (B, T) -> (B, C).

    padding_mask: booleans, True marks padding, wherever in the row it stands.
    kind: "first" is the vector at position 0, where [CLS] stands, padding or not; "mean" is the mean over all
    positions that are not padding, [CLS] among them.
    Raises ValueError that names kind and its value if it is any other kind.
    With "mean", a sentence that is nothing but padding becomes zeros, and whatever stands at padded positions
    (NaN and infinity included) changes neither the result nor the gradients: exactly 0 flows back to padding.
    The result has the dtype of hidden (float32, float64). hidden and padding_mask keep their values.
    Example: the vectors (2, 4) and (4, 8) and one padded position have the mean (3, 6).
    """
    # TODO: "first": the vector at position 0                                           # (B, C)
    # TODO: "mean": the sum over real positions, divided by how many there are          # (B, C)
    # TODO: refuse any other kind
    ### BEGIN SOLUTION
    if kind == "first":
        return hidden[:, 0]                                                             # (B, C)
    if kind == "mean":
        total = hidden.masked_fill(padding_mask[..., None], 0.0).sum(dim=1)             # (B, C)
        count = (~padding_mask).sum(dim=1, keepdim=True)                                # (B, 1)
        return total / count.clamp(min=1)                                               # (B, C)
    raise ValueError(f'kind must be "first" or "mean", but it is {kind!r}.')
    ### END SOLUTION


# %% part="pooling"

# %% [markdown]
# The picture measures, by gradient, how much each position contributes to the pooled vector. With `"first"`, it is
# position 0 alone. With `"mean"`, all real positions of a row contribute equally, and padding does not at all.

# %% picture="pooling"

# %% [markdown]
# ## Part 2 · The classifier
#
# About 16 minutes, ●○○
#
# All that is missing now is the **head**: one linear layer from a sentence's vector to $K$ numbers, one for each
# class. These are **logits**: any real numbers, the largest wins. They are not probabilities yet, and should not
# be, because `F.cross_entropy` applies the softmax itself.
#
# $$\text{pooled} = \operatorname{pool}(\operatorname{encoder}(\text{ids})) \qquad
#   \text{logits} = \operatorname{head}(\operatorname{dropout}(\text{pooled}))$$
#
# Dropout acts on the pooled vector and, as always, only in training. The encoder is **used, not copied**: training
# the classifier trains the very encoder that it was given.
#
# **One number by hand.** On top of BERT-base, whose vectors have 768 numbers, a head for three classes has
# $768 \cdot 3 + 3 = 2{,}307$ numbers. That is all that starts from scratch. (BERT's own recipe has one more layer
# between pooling and head, the *pooler* that you counted in assignment 06. We leave it out.)
#
# **To think about.** Suppose the head starts with all weights and biases at zero. What is the loss before
# the first step, with three classes? Why does that not depend on the encoder?


# %%
class Classifier(nn.Module):
    """A class for each sentence: ids (B, T), padding_mask (B, T) -> logits (B, K).

    Attributes:
        encoder   the module that was passed in (itself, not a copy); it is called as encoder(ids, padding_mask)
                  and returns (B, T, C). Making a classifier changes nothing in it.
        head      an `nn.Linear` from C to K, with bias
    Nothing else has parameters. pooling is the kind for your `pool`. dropout is the probability with which each number
    of the pooled vector becomes 0 in training; the others are scaled by 1 / (1 - dropout), as in `nn.Dropout`. There is
    no other dropout here: with dropout=0, and an encoder without dropout, training and eval give the same logits.

    forward: padding_mask (B, T), True marks padding. Returns logits, without a softmax. ids and padding_mask keep
    their values, every part keeps its mode (training or eval), and no call depends on an earlier one.
    Example: Classifier(Encoder(48), d_model=64, num_classes=3) turns ids of shape (5, 7) into logits (5, 3).
    """

    def __init__(
        self, encoder: nn.Module, d_model: int, num_classes: int, pooling: str = "first", dropout: float = 0.1
    ) -> None:
        super().__init__()
        # TODO: the two attributes above, and what else you need
        ### BEGIN SOLUTION
        self.encoder = encoder
        self.pooling = pooling
        self.dropout = nn.Dropout(dropout)
        self.head = nn.Linear(d_model, num_classes)                                     # C -> K
        ### END SOLUTION

    def forward(self, ids: Tensor, padding_mask: Tensor) -> Tensor:
        # TODO: vectors that know their sentence                                        # (B, T, C)
        # TODO: one vector for each sentence                                            # (B, C)
        # TODO: with dropout, through the head                                          # (B, K)
        ### BEGIN SOLUTION
        hidden = self.encoder(ids, padding_mask)                                        # (B, T, C)
        pooled = pool(hidden, padding_mask, self.pooling)                               # (B, C)
        return self.head(self.dropout(pooled))                                          # (B, K)
        ### END SOLUTION


# %% part="classifier"

# %% [markdown]
# The picture pre-trains a small encoder, fine-tunes your classifier on cards about half of the dishes, and
# draws the pooled vectors of cards about the *other* half in two dimensions, before and after. Before, the
# classes lie on top of each other. Afterwards there should be three groups.

# %% picture="classifier"

# %% [markdown]
# ## Part 3 · LoRA: a few numbers beside many
#
# About 31 minutes, ●●○
#
# There are three ways to use a pre-trained encoder.
#
# - **Feature extraction.** The encoder is *frozen*: its numbers stay as pre-training left them, and only the
#   head learns. This is cheap (no gradients for the encoder, and its vectors could even be computed once and stored),
#   and the encoder cannot forget anything. But the head has to make do with the features that are there.
# - **Fine-tuning.** Everything learns. The features adapt to the task, usually with a small learning rate, so
#   that a few hundred labelled examples do not wipe out what thousands of sentences taught.
# - **LoRA**, *low-rank adaptation*: everything is frozen, and beside some of its matrices two thin ones learn. Most large
#   models are fine-tuned in this way today.
#
# In PyTorch each parameter carries a flag, `requires_grad`. Where it is False, no gradient is computed, and the
# optimizer leaves the parameter alone. The flag belongs to the **parameters**: a module is only a box, and a flag
# on the box changes nothing. Two functions for it are given below.
#
# **One number by hand.** BERT-base without its pooler has 108,891,648 numbers. With a frozen encoder and three classes
# the classifier trains 2,307 of 108,893,955, about one in 47,200. In this notebook it is 195 of 71,363.
#
# Now LoRA. Take a linear layer with a frozen weight $W$ (out, in). Beside it stand $A$ (rank, in) and $B$ (out, rank),
# and what they say is added:
#
# $$\text{output} = W x + \text{bias} + \frac{\alpha}{\text{rank}} \, B A x$$
#
# The rank is small, 8 for example: $A$ asks `rank` questions about $x$, and $B$ says what follows from the answers.
# Adding $B A$ is adding a matrix to $W$, but one with few numbers. At the start $B$ is **zero**, so the model begins as
# exactly what pre-training has left. $A$ is **not**: the gradient of each is multiplied by the other, so if both were
# zero, both would stay zero for ever. After training, $W$ and $\frac{\alpha}{\text{rank}} B A$ can be *merged* into one
# ordinary matrix, their sum, and the model is as fast as before. For the next task, keep $W$ and train another $A$ and
# $B$: a few megabytes a task.
#
# **One number by hand.** A layer of 768 inputs and outputs has 768 · 768 + 768 = 590,592 numbers. With rank 8, A and B
# have 8 · 768 + 768 · 8 = 12,288, one in 48. And a product: with A = (1 2), B = (3), rank 1, α = 2 and x = (10, 100),
# A x is 210, B A x is 630, and 1,260 is added to the output.
#
# **To think about.** A frozen encoder that is in training mode still applies its dropout. What does that do to
# the features that the head sees? When would you rather put the encoder into eval mode?
#
# **To think about.** Why does nobody compute B A first, in training, and multiply x with the product?


# %%
def freeze(module: nn.Module) -> int:
    """Given: no parameter in the module, however deeply nested, is trained any more; how many numbers they hold."""
    module.requires_grad_(False)
    return sum(parameter.numel() for parameter in module.parameters())


def trainable(module: nn.Module) -> int:
    """Given: how many numbers of a module are still trained. An `nn.Linear(4, 3)` has 15."""
    return sum(parameter.numel() for parameter in module.parameters() if parameter.requires_grad)


class LoRALinear(nn.Module):
    """A linear layer, frozen, with two thin matrices beside it: x (..., in) -> (..., out).

    `linear`: the layer that was passed in; none of its parameters is trained any more.
    `A` (rank, in) and `B` (out, rank): parameters that are trained, with the number type and on the device of the layer's
    weight. At the start, B is zero and A is not, so the output is that of the layer alone.
    forward: linear(x) + alpha / rank · x Aᵀ Bᵀ, the same in training and in eval; x keeps its values.
    Raises ValueError that names rank and its value if it is below 1 or above the smaller of in and out.
    Example: LoRALinear(nn.Linear(768, 768), rank=8, alpha=16) trains 12,288 numbers.
    """

    def __init__(self, linear: nn.Linear, rank: int, alpha: float) -> None:
        super().__init__()
        # TODO: refuse a rank that does not fit
        # TODO: the three attributes, and what forward needs beside them
        ### BEGIN SOLUTION
        if not 1 <= rank <= min(linear.in_features, linear.out_features):
            sizes = f"{linear.in_features} inputs and {linear.out_features} outputs"
            raise ValueError(f"rank = {rank} does not fit a layer with {sizes}.")
        self.linear = linear
        freeze(linear)
        self.scale = alpha / rank
        weight = linear.weight                                                          # (out, in)
        self.A = nn.Parameter(torch.randn_like(weight[:rank]) / linear.in_features**0.5)  # (rank, in)
        self.B = nn.Parameter(torch.zeros_like(weight[:, :rank]))                       # (out, rank)
        ### END SOLUTION

    def forward(self, x: Tensor) -> Tensor:
        # TODO: the layer's output, and what A and B add                                # (..., out)
        ### BEGIN SOLUTION
        return self.linear(x) + self.scale * (x @ self.A.T @ self.B.T)                  # (..., out)
        ### END SOLUTION

    def merged(self) -> nn.Linear:
        """A new, ordinary linear layer with the same answers, in the same number type. This one stays as it was.

        Both are independent from then on: whatever happens to one of them does not change the other. Whether the
        numbers of the new layer are frozen is up to you.
        """
        # TODO: a copy of the layer, with B A added to its weight on the right scale    # (out, in)
        ### BEGIN SOLUTION
        layer = copy.deepcopy(self.linear)
        with torch.no_grad():
            layer.weight += self.scale * self.B @ self.A                                # (out, in)
        return layer
        ### END SOLUTION


def add_lora(model: nn.Module, names: list[str], rank: int, alpha: float) -> int:
    """Put a LoRALinear in the place of each linear layer that is named, and freeze everything else, in place.

    names: full names, as `model.named_modules()` gives them, for example "layers.0.linear1".
    Returns how many numbers the A and B of all these layers hold: the sum of rank · (in + out), as a plain int.
    Raises ValueError that names the name if there is no such module, if it is no plain `nn.Linear` but another class, or
    if it lies inside an `nn.MultiheadAttention`, which uses the weights of its layers without calling them.
    Example: add_lora(encoder, ["layers.0.linear1"], 4, 8.0) returns 4 · (64 + 128) = 768 for the encoder above.
    """
    # TODO: find and check the layers; freeze the model; put the new layers into the places of the old ones; count
    ### BEGIN SOLUTION
    modules = dict(model.named_modules())
    attentions = [name for name, module in modules.items() if isinstance(module, nn.MultiheadAttention)]
    for full_name in names:
        if type(modules.get(full_name)) is not nn.Linear:
            raise ValueError(f"{full_name} is no nn.Linear of this model.")
        if any(full_name.startswith(f"{attention}.") for attention in attentions):
            raise ValueError(f"{full_name} lies inside an attention that never calls it.")
    freeze(model)
    for full_name in names:
        parent, _, own_name = full_name.rpartition(".")
        setattr(modules[parent], own_name, LoRALinear(modules[full_name], rank, alpha))
    return trainable(model)
    ### END SOLUTION


# %% part="lora"

# %% [markdown]
# The picture trains three classifiers from the same pre-trained encoder: one frozen, one with your LoRA beside four of
# its layers, and one not frozen. It plots their accuracy on cards about dishes that no labelled card mentions. The
# dashed line is what you get by spotting every question and tossing a coin for the rest.

# %% picture="lora"

# %% [markdown]
# ## Part 4 · An honest split
#
# About 14 minutes, ●○○
#
# A model must be judged on examples that it has not been trained on, so the data is split before anything
# else happens. Three things make a split honest.
#
# - **Shuffle first.** Our cards come sorted by class, as data often does. Cut off the last fifth without
#   shuffling, and it contains nothing but questions.
# - **Be repeatable.** The same seed must give the same split, tomorrow and on another computer. Otherwise you train
#   tomorrow on what you hold out today, and no two results can be compared. But seed a generator of your own.
#   Seeding Python's or PyTorch's *global* generator also decides, unnoticed, how the next layer is initialised.
# - **Split the right things.** *The soup was cold* and *my soup was cold* are two cards, but if the model trains on one,
#   the other no longer tests much. We want to know how it judges dishes **without a single labelled card**, so we split
#   the *dishes*, not the cards: twelve dishes may appear in labelled cards, twelve are held out.
#
# **One number by hand.** Ten items and a share of 0.8 make lists of 8 and 2. A share of 0.29 of 100 items is 29,
# although Python computes `0.29 * 100` as 28.999999999999996: so round, do not truncate.
#
# **Given** for experiments: `next_draws()` says what Python, NumPy and PyTorch would draw next. Call it before and
# after your `split`: the same three numbers should come back.
#
# **To think about.** A hospital has five X-ray images of each of a thousand patients. What should it split?


# %%
def next_draws() -> dict[str, float]:
    """Given: the number that each of the three global generators would draw next; their states stay as they are."""
    python, numpy, pytorch = random.getstate(), np.random.get_state(), torch.get_rng_state()
    draws = {"Python": random.random(), "NumPy": np.random.random(), "PyTorch": torch.rand(()).item()}
    random.setstate(python)
    np.random.set_state(numpy)
    torch.set_rng_state(pytorch)
    return draws


def split(items: list, share: float, seed: int) -> tuple[list, list]:
    """Shuffle items and cut them into two lists: each item goes into exactly one of them.

    The first list gets share · len(items) items, rounded to the nearest whole number (exact halves may go either way),
    the second list gets the rest. Both are in random order. items may be empty, may hold anything, and may hold equal
    things more than once; it keeps its order.
    The same items, share and seed give the same two lists, another seed gives others. All randomness comes from
    seed: the global random states of Python, NumPy and PyTorch are the same after the call as before.
    Raises ValueError that names share and its value if share is below 0 or above 1.
    Example: ten items with share=0.8 give lists of 8 and 2.
    """
    # TODO: refuse an impossible share
    # TODO: shuffle a copy, with a random generator of your own that starts from seed
    # TODO: cut the copy in two
    ### BEGIN SOLUTION
    if not 0 <= share <= 1:
        raise ValueError(f"share must lie between 0 and 1, but it is {share}.")
    shuffled = list(items)
    random.Random(seed).shuffle(shuffled)
    cut = round(share * len(shuffled))
    return shuffled[:cut], shuffled[cut:]
    ### END SOLUTION


# %% part="split"

# %% [markdown]
# The picture splits thirty cards that come sorted by class. In both lists all three colours should appear,
# well mixed.

# %% picture="split"

# %% [markdown]
# ## Part 5 · The confusion matrix and macro F1
#
# About 20 minutes, ●●○
#
# *Accuracy*, the share of correct guesses, is a single number, and it can flatter. Half of our cards are questions,
# and they are easy. A model that spots every question and calls everything else praise has an accuracy of 75 %, and the
# restaurant never hears of a complaint.
#
# The **confusion matrix** shows what happened. Its rows are the true classes, its columns the guesses, and each
# cell counts examples. Correct guesses lie on the diagonal; every other cell shows which class was mistaken for
# which.
#
# **F1** grades one class. In the matrix $M$, class $k$ is guessed correctly $M_{kk}$ times; its row adds up to how
# often it occurs, its column to how often it is guessed:
#
# $$F_1(k) = \frac{2\, M_{kk}}{\sum_j M_{kj} + \sum_i M_{ik}}$$
#
# (This is the harmonic mean of *precision*, $M_{kk}$ over the column, and *recall*, $M_{kk}$ over the row.) It is 1 if
# every example of the class is found and nothing else is taken for it, and 0 if none is found. **Macro F1** is the
# plain mean over the classes: a rare class weighs as much as a frequent one. One exception: a class that neither occurs
# nor is guessed does not count. Its F1 would be 0/0, and there was nothing to get right.
#
# **One number by hand.** Of eight cards, two are praise, two are complaints and four are questions. The model above
# gets all of them right except the complaints, which it takes for praise:
#
# | truth ↓, guess → | praise | complaint | question |
# |---|---|---|---|
# | **praise** | 2 | 0 | 0 |
# | **complaint** | 2 | 0 | 0 |
# | **question** | 0 | 0 | 4 |
#
# Its accuracy is $6/8 = 75\,\%$. Praise has $F_1 = 2 \cdot 2/(2 + 4) = \tfrac23$, complaint 0 and question 1, so its
# macro F1 is $\tfrac59 \approx 0.556$.
#
# **To think about.** Suppose you swap rows and columns. What happens to macro F1? And to what you read off the matrix?


# %%
def confusion(labels: Tensor, predictions: Tensor, num_classes: int) -> Tensor:
    """Count what was taken for what: labels (N,), predictions (N,) -> whole numbers (K, K), dtype torch.int64.

    Row i, column j: how many examples of class i were guessed to be class j. The matrix has num_classes rows and
    columns, whichever classes occur. N may be 0, and K need not be 3. labels and predictions keep their values.
    Raises ValueError that names labels or predictions, and the value, if a class is below 0 or above K - 1.
    Example: labels 0 0 1 with predictions 0 1 1 and two classes give [[1, 1], [0, 1]].
    """
    # TODO: refuse classes that do not exist
    # TODO: for every example, one more in row label, column prediction                 # (K, K)
    ### BEGIN SOLUTION
    for name, classes in (("labels", labels), ("predictions", predictions)):
        outside = classes[(classes < 0) | (classes >= num_classes)]
        if len(outside):
            raise ValueError(f"{name} holds {outside[0].item()}, but the classes are 0 to {num_classes - 1}.")
    cells = labels * num_classes + predictions                                          # (N,)
    return torch.bincount(cells, minlength=num_classes**2).reshape(num_classes, num_classes)
    ### END SOLUTION


def macro_f1(confusion: Tensor) -> float:
    """The mean of F1 over the classes, as a plain float between 0 and 1: confusion (K, K) -> float.

    confusion: rows are the truth, columns the guesses; it keeps its values. A class that neither occurs nor is guessed
    does not count. A class that occurs and is never guessed, or is guessed and never occurs, counts as 0.
    A matrix of zeros has no class that counts, and gives 0.0.
    Example: [[2, 0, 0], [2, 0, 0], [0, 0, 4]] gives 5/9.
    """
    # TODO: how often each class is right, occurs, and is guessed                       # (K,)
    # TODO: the F1 of the classes that count, and their mean
    ### BEGIN SOLUTION
    right = confusion.diagonal()                                                        # (K,)
    seen = confusion.sum(dim=0) + confusion.sum(dim=1)                                  # (K,)
    counted = seen > 0
    if not counted.any():
        return 0.0
    return (2 * right[counted] / seen[counted]).mean().item()
    ### END SOLUTION


# %% part="scores"

# %% [markdown]
# The picture shows your matrix and your macro F1 for a frozen encoder whose head has not learned for long. Each row
# should add up to how often its class occurs: 96, 96 and 192. Which classes get mixed up?

# %% picture="scores"

# %% [markdown]
# ## Put it together
#
# Twelve dishes may be labelled. Of the 1,152 cards about them, we label one in five: 230 cards. Then four
# classifiers learn from the same 230 cards:
#
# - **frozen**: the pre-trained encoder stays as it is, the head learns;
# - **LoRA**: the head learns, and 3,072 numbers beside four of the encoder's layers;
# - **fine-tuned**: everything learns;
# - **from scratch**: everything learns, but the encoder has never read a note.
#
# All four are judged on the 1,152 cards about the other twelve dishes. Before you run it, write down your guess.
# Consider the last one: no amount of labelled cards about other dishes can tell it whether sushi should be hot. It can
# spot questions by their word order, but for the rest it can only toss a coin, and so it should end near 75 %.


# %%
def guesses(model: nn.Module, sentences: list[str]) -> Tensor:
    """The likeliest class of each sentence, in eval mode: (N,)."""
    ids = encode(sentences)                                                             # (N, T)
    model.eval()
    with torch.no_grad():
        return model(ids, ids == PAD).argmax(dim=-1)                                    # (N,)


def fit(
    name: str, model: nn.Module, examples: list, held_out: list, epochs: int, lr: float, batch_size: int = 16
) -> list[float]:
    """Train on labelled examples; returns the accuracy on the held-out ones after each epoch."""
    from autograder.notebook import watch_training

    watch = watch_training(epochs, name, "accuracy", step="epoch")
    sentences, labels = [sentence for sentence, _ in held_out], torch.tensor([label for _, label in held_out])
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=lr)
    accuracies = []
    for epoch in range(1, epochs + 1):
        model.train()
        for chosen in torch.randperm(len(examples)).split(batch_size):
            batch = [examples[i] for i in chosen.tolist()]
            ids = encode([sentence for sentence, _ in batch])                           # (B, T)
            loss = F.cross_entropy(model(ids, ids == PAD), torch.tensor([label for _, label in batch]))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        accuracies.append((guesses(model, sentences) == labels).double().mean().item())
        watch(epoch, accuracies[-1])
    return accuracies


if __name__ == "__main__":
    taught, untaught = split(DISHES, 0.5, seed=1)
    labelled, _ = split(cards(taught), 0.2, seed=1)
    held_out = cards(untaught)
    print(f"{len(labelled)} labelled cards about {', '.join(taught)}.")
    print(f"{len(held_out)} held-out cards about {', '.join(untaught)}.")

    torch.manual_seed(1)
    models = {
        "frozen": Classifier(copy.deepcopy(pretrained), 64, 3, pooling="mean"),
        "LoRA": Classifier(copy.deepcopy(pretrained), 64, 3, pooling="mean"),
        "fine-tuned": Classifier(copy.deepcopy(pretrained), 64, 3, pooling="mean"),
        "from scratch": Classifier(Encoder(len(WORDS)), 64, 3, pooling="mean"),
    }
    freeze(models["frozen"].encoder)
    beside = [f"layers.{layer}.linear{which}" for layer in (0, 1) for which in (1, 2)]
    add_lora(models["LoRA"].encoder, beside, rank=4, alpha=8.0)
    for name, model in models.items():
        print(f"{name}: {trainable(model):,} numbers to train")
    curves = {
        name: fit(name, model, labelled, held_out, epochs=12, lr=1e-2 if name in ("frozen", "LoRA") else 1e-3)
        for name, model in models.items()
    }

# %%
if __name__ == "__main__":
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6.4, 4), layout="constrained")
    for (name, curve), (color, style) in zip(
        curves.items(), (("#0072B2", "--"), ("#009E73", "-."), ("#D55E00", "-"), ("#555555", ":")), strict=True
    ):
        axes.plot(range(1, len(curve) + 1), [100 * a for a in curve], style, color=color, lw=2, label=name)
    axes.axhline(75, color="#BBBBBB", lw=1, zorder=0)
    axes.set(title="Dishes without a labelled card", xlabel="epoch", ylabel="accuracy in %", ylim=(40, 102))
    axes.legend(frameon=False, loc="lower right")
    plt.show()

# %%
if __name__ == "__main__":
    sentences, labels = [sentence for sentence, _ in held_out], torch.tensor([label for _, label in held_out])
    for name, model in models.items():
        table = confusion(labels, guesses(model, sentences), 3)                         # (3, 3)
        print(f"\n{name}: macro F1 {macro_f1(table):.3f}\n{'':12}" + "".join(f"{c:>11}" for c in CLASSES))
        for truth, row in zip(CLASSES, table.tolist(), strict=True):
            print(f"{truth:>12}" + "".join(f"{count:11d}" for count in row))

# %% [markdown]
# ## Look back
#
# What did pre-training contribute? Not the task: nobody told the encoder what a complaint is. It contributed the
# knowledge that soup goes with stew, and lemonade with beer. The labelled cards only had to teach what to do with that
# knowledge, and what they taught about one hot dish held for the others. The model from scratch can learn its 230 cards
# just as well, but for the other dishes it has nothing to go on.
#
# Three caveats. Our world is so regular that fine-tuning may well reach 100 %; on real text it will not. One run with
# one seed is an anecdote: change the seeds and see which of your conclusions survive. And if you try ten learning
# rates and report the best result on the held-out cards, you have trained on them too, if only a little. A third
# list, the *validation* set, is for such choices. Your `split` can make one: use it twice.
#
# **One last question.** A guest writes *the soup was not hot*, and your encoder has never seen *not*. What does the
# model need in order to understand it: more notes, more labelled cards, or both?
#
# ## Read on
#
# - Jeremy Howard and Sebastian Ruder, *Universal Language Model Fine-tuning for Text Classification* (2018). Look for
#   gradual unfreezing, a middle way between frozen and not, and for how far 100 labelled examples can go.
# - Jacob Devlin, Ming-Wei Chang, Kenton Lee and Kristina Toutanova, *BERT: Pre-training of Deep Bidirectional
#   Transformers for Language Understanding* (2018). Look for the section on fine-tuning for GLUE (how large is the
#   head?) and for the feature-based experiment near the end: which layers does it take, and how much does it lose?
# - Matthew Peters, Sebastian Ruder and Noah Smith, *To Tune or Not to Tune? Adapting Pretrained Representations to
#   Diverse Tasks* (2019). Frozen or not? Look for the answer: it depends on how similar the two tasks are.
# - Edward Hu and others, *LoRA: Low-Rank Adaptation of Large Language Models* (2021). Look for the table that says which
#   matrices are worth adapting, and how small the rank may be.
# - Nils Reimers and Iryna Gurevych, *Sentence-BERT: Sentence Embeddings using Siamese BERT-Networks* (2019). Look for
#   the comparison of `[CLS]` and mean pooling, and for how poorly both do before any fine-tuning.
# - Suchin Gururangan and others, *Annotation Artifacts in Natural Language Inference Data* (2018). Look for what
#   a classifier can score on a famous data set without reading half of each example. Then look at your own data again.
# - Juri Opitz and Sebastian Burst, *Macro F1 and Macro F1* (2019). Two formulas go by that name. Look for which of
#   them you wrote, and for how far apart they can be.
