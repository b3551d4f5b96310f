# %% [markdown]
# # 16 · Preferences
#
# ```
#  the next word         07 trained, and writing
#        ↑               18 what it costs
#        ↑             ▶ 16 taught what people prefer
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
# A language model has read everything and wants nothing. The wind on the roof only ever asked what comes next, and so
# the model writes what probably comes next, which is not the same as what anybody would like to read. Ask it a
# question, and it may well go on with three more questions: in its books, questions come in lists.
#
# What turns such a model into an assistant is a second training, short and on little data. It has three forms, each
# of which asks less of the people who teach:
#
# - **demonstrations**: somebody writes the answer that they would like to read;
# - **comparisons**: somebody reads two answers and says which one is better;
# - **rewards**: a program gives each answer a number, and the model may try as often as it likes.
#
# All three are a few lines of code, and today you write them. At the end a small model of a restaurant's letters
# learns manners in all three ways. Then you take one term away and watch it cheat.
#
# | part | the question it answers |
# |---|---|
# | 1 · The log-probability of an answer | how likely is this answer, to this model? |
# | 2 · Which answer is better? | how do comparisons become a number? |
# | 3 · Preferences without a judge | can a model learn from comparisons directly? |
# | 4 · Compared with the group | when is a reward a good one? |
# | 5 · A step that is not too long | how much may it learn from what it has just tried? |
# | 6 · Token by token | and with each single word of it? |
# | 7 · The leash | how far has it gone from where it began? |
# | 8 · The run | does it work, and how does it cheat? (Your own experiment: no points, all the fun.) |
#
# **Not here.** No human being compares anything: a rule of ours decides which answer is polite. Nor does an answer take
# more than twelve words, and no method is tuned until it wins. What is left out is most of the work on real assistants.
#
# Letters for shapes: `B` rows in a batch or pairs of answers, `T` tokens in a row, `V` tokens in the vocabulary, `G`
# prompts, `K` answers to each prompt, `N` answers in one list. A *prompt* is what the model is given, an *answer* what
# it writes after it. The model that learns is called the **policy**; a copy of it that does not learn is the
# **reference**. The names of functions **and arguments** are part of the contract, because the tests use them. So is the
# number type: what a function returns is float32 for float32 and float64 for float64.

# %%
import copy
import itertools
import random
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

# %% [markdown]
# ## Given · A restaurant and its letters
#
# A restaurant serves 24 dishes, twelve of them hot and twelve cold. Some reach the table at the wrong temperature, and
# then a guest leaves a **card**: *my soup was very cold*, *the lemonade was rather warm*. There are 432 such cards, all
# of five words. Waiters answer them, each in their own manner:
#
# | polite | rude |
# |---|---|
# | *sorry we will bring you a new soup* | *your soup was fine when we served it* |
# | *sorry the next soup is on the house* | *nobody else minds cold soup* |
# | *we are so sorry about your soup* | *then eat your soup at home* |
# | *thank you and sorry about the cold soup* | *so what it is only soup* |
#
# The model's only book is the restaurant's **guest book**, 6,912 lines long. In half of them a card is followed by an
# answer, polite as often as rude. In the other half it is followed by another card, since guests write below one
# another. Tokens are words. A line of the book is the card, a slash, what follows, and `[END]`; so the prompt is always
# the first six tokens, and what follows begins at position 6.

# %% tags=["hide-input"]
HOT = "soup stew tea coffee curry pie pizza porridge toast goulash lasagne cocoa"
COLD = "lemonade beer salad sorbet juice melon yoghurt milkshake gazpacho cider champagne sushi"
WRONG = {**dict.fromkeys(HOT.split(), ("cold", "cool")), **dict.fromkeys(COLD.split(), ("hot", "warm"))}
POLITE = [
    "sorry we will bring you a new {dish}",
    "sorry the next {dish} is on the house",
    "we are so sorry about your {dish}",
    "thank you and sorry about the {warm} {dish}",
]
RUDE = [
    "your {dish} was fine when we served it",
    "nobody else minds {warm} {dish}",
    "then eat your {dish} at home",
    "so what it is only {dish}",
]
PROMPT = 6  # tokens of every prompt: a card of five words, and a slash
LONGEST = 12  # tokens of the longest answer


def cards() -> list[str]:
    """Every card that complains about a dish."""
    found = []
    for dish, temperatures in WRONG.items():
        for whose, very, warm in itertools.product(("the", "my", "our"), ("very", "quite", "rather"), temperatures):
            found.append(f"{whose} {dish} was {very} {warm}")
    return found


def replies_to(card: str, manner: list[str]) -> list[str]:
    """The four answers to a card in one manner, POLITE or RUDE."""
    _, dish, _, _, warm = card.split()
    return [answer.format(dish=dish, warm=warm) for answer in manner]


def guest_book() -> list[tuple[str, str]]:
    """Every line of the guest book: a card, and the answer or the other card that follows."""
    every_card = cards()
    lines, dice = [], random.Random(0)
    for card in every_card:
        replies = replies_to(card, POLITE + RUDE)
        lines += [(card, reply) for reply in replies]
        lines += [(card, other) for other in dice.sample(every_card, len(replies))]
    return lines


PAD, SLASH, END = 0, 1, 2
WORDS = ["[PAD]", "/", "[END]", *sorted({*" ".join([*cards(), *POLITE, *RUDE]).split()} - {"{dish}", "{warm}"})]
ID = {word: place for place, word in enumerate(WORDS)}


def encode(lines: list[tuple[str, str]]) -> Tensor:
    """Lines as rows of ids, each with END, filled up with PAD on the right: (B, T)."""
    rows = [torch.tensor([ID[word] for word in f"{card} / {reply} [END]".split()]) for card, reply in lines]
    return nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=PAD)


def answer_places(ids: Tensor) -> Tensor:
    """Where a row holds its answer, END included: booleans (B, T), False at the prompt and at padding."""
    return (ids != PAD) & (torch.arange(ids.shape[1]) >= PROMPT)


if __name__ == "__main__":
    print(f"{len(cards())} cards, {len(guest_book()):,} lines in the book, {len(WORDS)} words. Four lines:")
    for card, reply in guest_book()[::1800]:
        print(f"    {card} / {reply}")

# %% [markdown]
# ## Given · The model, and what it has read
#
# The model is the GPT of assignment 07, with two blocks. Its pre-training is the loss that you know, on every token of
# the guest book. `write` continues prompts until END, each word drawn with the probability that the model gives it.
#
# Run the cell now; it takes about ten seconds. Then read what the model answers. It has learned the book well, and
# that is the trouble: to a guest who complains, it replies with another complaint half of the time, and half of the
# rest is rude. Both *are* what probably comes next. (It is a small model: now and then it brings the wrong dish.)


# %% tags=["hide-input"]
class Block(nn.Module):
    """A pre-norm block with causal attention: (B, T, C) -> (B, T, C)."""

    def __init__(self, d_model: int, n_heads: int) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.qkv, self.proj = nn.Linear(d_model, 3 * d_model), nn.Linear(d_model, d_model)
        self.ff = nn.Sequential(nn.Linear(d_model, 4 * d_model), nn.GELU(), nn.Linear(4 * d_model, d_model))

    def forward(self, x: Tensor) -> Tensor:
        parts = self.qkv(self.norm1(x)).unflatten(-1, (3, self.n_heads, -1)).movedim(1, -2)  # (B, 3, H, T, D)
        attended = F.scaled_dot_product_attention(*parts.unbind(1), is_causal=True)     # (B, H, T, D)
        x = x + self.proj(attended.movedim(1, 2).flatten(2))                            # (B, T, C)
        return x + self.ff(self.norm2(x))                                               # (B, T, C)


class LanguageModel(nn.Module):
    """ids (B, T) -> logits (B, T, V): those at position t are for the token at t + 1."""

    def __init__(self, vocab_size: int, d_model: int = 48, n_heads: int = 4, n_layers: int = 2) -> None:
        super().__init__()
        self.token_embed = nn.Embedding(vocab_size, d_model)
        self.position_embed = nn.Embedding(PROMPT + LONGEST, d_model)
        for table in (self.token_embed, self.position_embed):
            nn.init.normal_(table.weight, std=0.5)
        self.blocks = nn.Sequential(*(Block(d_model, n_heads) for _ in range(n_layers)))
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, vocab_size)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.token_embed(ids) + self.position_embed.weight[: ids.shape[1]]          # (B, T, C)
        return self.head(self.norm(self.blocks(x)))                                     # (B, T, V)


@torch.no_grad()
def write(model: nn.Module, prompts: list[str], generator: torch.Generator) -> Tensor:
    """Answer each card, word by word, each drawn from the model's probabilities: ids (B, T), PAD after END."""
    ids = encode([(card, "") for card in prompts])[:, :PROMPT]                          # (B, PROMPT)
    going = torch.ones(len(prompts), dtype=torch.bool)
    for _ in range(LONGEST):
        probabilities = model(ids)[:, -1].softmax(dim=-1)                               # (B, V)
        drawn = torch.multinomial(probabilities, 1, generator=generator)[:, 0]          # (B,)
        ids = torch.cat([ids, torch.where(going, drawn, PAD)[:, None]], dim=1)          # (B, t + 1)
        going &= (drawn != END) & (drawn != PAD)
    return ids


def words_of(row: Tensor) -> str:
    """What follows the prompt in a row of ids, without END."""
    return " ".join(WORDS[i] for i in row[PROMPT:].tolist() if i not in (PAD, END))


def kinds(model: nn.Module) -> dict[str, float]:
    """Answer every card once; the share of the answers of each kind."""
    every_card = cards()
    replies = [words_of(row) for row in write(model, every_card, torch.Generator().manual_seed(1))]
    count = {"polite": 0, "rude": 0, "another card": 0, "no sentence of the book": 0}
    for card, reply in zip(every_card, replies, strict=True):
        if reply in replies_to(card, POLITE):
            count["polite"] += 1
        elif reply in replies_to(card, RUDE):
            count["rude"] += 1
        elif reply in every_card:
            count["another card"] += 1
        else:
            count["no sentence of the book"] += 1
    return {kind: number / len(every_card) for kind, number in count.items()}


SHOWN = ["my soup was very cold", "the lemonade was rather warm", "our pizza was quite cool", "the sushi was very hot"]


def show(name: str, model: nn.Module) -> None:
    """Print the shares of all kinds of answers, and what the model writes to four guests."""
    shares = ", ".join(f"{100 * share:.0f} % {kind}" for kind, share in kinds(model).items())
    print(f"--- {name}: {shares}")
    for card, row in zip(SHOWN, write(model, SHOWN, torch.Generator().manual_seed(2)), strict=True):
        print(f"    {card} / {words_of(row)}")


def pretrain(model: nn.Module, steps: int = 500, batch_size: int = 64, peak: float = 5e-3) -> None:
    """Train the model in place on every token of the guest book."""
    from autograder.notebook import watch_training

    watch = watch_training(steps, "pre-training")
    ids = encode(guest_book())                                                          # (lines, T)
    optimizer = torch.optim.Adam(model.parameters(), lr=peak)
    for step in range(steps):
        optimizer.param_groups[0]["lr"] = peak * (1 - step / steps)
        batch = ids[torch.randint(len(ids), (batch_size,))]                             # (B, T)
        logits = model(batch)[:, :-1]                                                   # (B, T - 1, V)
        loss = F.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten(), ignore_index=PAD)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 19:
            watch(step + 1, loss.item())


if __name__ == "__main__":
    torch.set_num_threads(1)  # for matrices this small, a second thread costs more than it brings
    torch.manual_seed(0)
    pretrained = LanguageModel(len(WORDS))
    pretrain(pretrained)
    show("pre-trained", pretrained)

# %% [markdown]
# ## Part 1 · The log-probability of an answer
#
# About 18 minutes, ●●○
#
# All three ways ask the model one question: how likely is *this* answer, after *this* prompt? The probability of a
# text is the product of the probabilities of its tokens, each given everything before it, so its logarithm is a sum:
#
# $$\log p(\text{answer} \mid \text{prompt}) = \sum_{t \text{ in the answer}} \log p(\text{ids}_t \mid
# \text{ids}_{<t})$$
#
# Three things decide whether your sum is the right one.
#
# - **The shift.** The logits at position $t - 1$ are the model's guess for the token at $t$. The logits at the last
#   position guess a token that is not there, and nothing guesses the token at position 0.
# - **The prompt does not count.** The model did not write it. Nobody wants it to learn to complain like a guest.
# - **A sum, not a mean.** Twice as many tokens, each as likely, are a less likely answer.
#
# **One number by hand.** An answer has two tokens. The model gave the first one probability ½, and the second one ¼
# when it came. Together that is ⅛, and the log-probability is $\ln \tfrac12 + \ln \tfrac14 = -2.079$.
#
# **Supervised fine-tuning**, SFT for short, is the first way to teach: take demonstrations and make them likelier. Its
# loss is the mean surprise of an answer's *token*: add up the negative log-probabilities of all answer tokens in the
# batch, and divide by how many there are. So a long answer counts for more than a short one. Let a second answer in
# the batch have one token, with probability ½. The three tokens cost $(\ln 2 + \ln 4 + \ln 2)/3 = 0.924$. (The mean of
# the two answers' own means would be 0.866.)
#
# A batch without a single answer token costs 0, as in assignment 09: 0/0 is NaN, and one NaN spoils every weight.
#
# **To think about.** Why would it be a bad idea to compare two answers by the *sum*, if one is much longer than the
# other? And why might the mean be no better?


# %%
def answer_log_probs(logits: Tensor, ids: Tensor, answer: Tensor) -> Tensor:
    """How likely each row's answer is, as a logarithm: logits (B, T, V), ids (B, T), answer (B, T) -> (B,).

    answer: booleans, True at the tokens that belong to the answer, wherever in the row they stand. The logits at
    position t - 1 predict the token at t; those at the last position predict nothing.
    A row without an answer gives 0. Tokens outside of the answer may even be impossible (a logit of -inf): they change
    neither the result nor the gradients.
    The result has the dtype of logits (float32, float64), which may be as large as 10,000, in both directions. No
    argument is modified.
    Nothing predicts the first token: raises ValueError that names answer and the number of the first row in which it is
    True at position 0.
    Example: two tokens with the probabilities 1/2 and 1/4 give ln 1/8 = -2.079.
    """
    # TODO: refuse an answer that includes the first token
    # TODO: the log-probability of every token but the first, from the logits before it  # (B, T - 1)
    # TODO: the sum over the tokens of the answer                                       # (B,)
    ### BEGIN SOLUTION
    first = answer[:, 0].nonzero()
    if len(first) > 0:
        raise ValueError(f"answer is True at position 0 of row {first[0].item()}, and nothing predicts that token.")
    guesses = logits[:, :-1].log_softmax(dim=-1)                                        # (B, T - 1, V)
    each = guesses.gather(-1, ids[:, 1:, None]).squeeze(-1)                             # (B, T - 1)
    return each.masked_fill(~answer[:, 1:], 0.0).sum(dim=-1)                            # (B,)
    ### END SOLUTION


def sft_loss(logits: Tensor, ids: Tensor, answer: Tensor) -> Tensor:
    """The mean surprise of an answer's token: logits (B, T, V), ids (B, T), answer (B, T) -> a scalar.

    The negative log-probabilities of all answer tokens of the batch, divided by their number: each token counts the
    same, whichever answer it belongs to. Without any answer token the loss is 0, and so are all gradients (not NaN).
    Raises ValueError as `answer_log_probs` does. No argument is modified.
    Example: answers with the probabilities 1/2, 1/4 and with 1/2 alone give 4/3 · ln 2 = 0.924.
    """
    # TODO: the sum over all answers, and the number of tokens that it comes from
    ### BEGIN SOLUTION
    total = answer_log_probs(logits, ids, answer).sum()
    return -total / answer.sum().clamp(min=1)
    ### END SOLUTION


# %% part="answers"

# %% [markdown]
# The picture shows, by gradient, which logits the log-probability of an answer depends on. Each dark field should stand
# one place *before* a token of the answer: there, the model guessed it.

# %% picture="answers"

# %% [markdown]
# ## Part 2 · Which answer is better?
#
# About 7 minutes, ●○○
#
# To write a good answer takes time and talent. To read two and point at the better one takes seconds, and people agree
# about it far more often. But what do you do with a pile of *this one, not that one*?
#
# In 1952 Bradley and Terry had the same pile, from tastings. Suppose that every answer has a hidden score, and that
# the better one wins more often the further the scores are apart:
#
# $$P(\text{chosen beats rejected}) = \sigma(s_{\text{chosen}} - s_{\text{rejected}}), \qquad
# \sigma(z) = \frac{1}{1 + e^{-z}}$$
#
# Then find the scores that make the comparisons likely. The loss of a pair is its surprise,
# $-\log \sigma(s_{\text{chosen}} - s_{\text{rejected}})$, and the loss of a batch is the mean. A model that gives an
# answer such a score is called a **reward model**. Here we say *judge*.
#
# **One number by hand.** With the scores 2 and 1 the chosen answer wins with $\sigma(1) = 0.731$, which costs
# $-\ln 0.731 = 0.313$. The scores 102 and 101 cost the same: only the difference counts. Equal scores cost $\ln 2 =
# 0.693$.
#
# **Mind the ends.** With the scores −5,000 and 5,000 the right loss is 10,000: the judge is as wrong as can be, and
# the gradient says so. But $\sigma(-10{,}000)$ is 0 in every number format, and $\log 0$ is −∞, whose gradient is NaN.
# PyTorch has $\log\sigma$ as *one* function, which takes care of that.
#
# **To think about.** Add 7 to every score of a trained judge. Is it a worse judge? What does that mean if you want to
# read its score of a single answer?


# %%
def bradley_terry_loss(chosen: Tensor, rejected: Tensor) -> Tensor:
    """How surprising the comparisons are: the scores chosen (B,) and rejected (B,) -> a scalar.

    The mean of -log σ(chosen - rejected). It is finite, and its gradients are right, also where the scores are 10,000
    apart, in either direction, in float32 and in float64. No argument is modified.
    Example: the scores 2 and 1 give 0.313.
    """
    # TODO: -log σ of the differences, in a form that survives large ones; the mean
    ### BEGIN SOLUTION
    return -F.logsigmoid(chosen - rejected).mean()
    ### END SOLUTION


# %% part="comparisons"

# %% [markdown]
# The picture draws your loss and its slope against the difference of the scores. Where the judge is right by far, the
# curve is flat and nothing is left to learn. Where it is wrong, the slope is −1 and no more: one absurd comparison cannot
# shout down all the others.

# %% picture="comparisons"

# %% [markdown]
# ## Part 3 · Preferences without a judge
#
# About 14 minutes, ●●○
#
# With a judge, one can train the model to please it; that is Parts 4 to 6. In 2023 Rafailov and others noticed that the
# judge can be left out. A language model already gives answers a number: their log-probability. Take as an answer's
# score **how much likelier it has become** since a reference, a frozen copy of the model from before the training:
#
# $$s = \beta \, \bigl(\log p_{\text{policy}}(\text{answer}) - \log p_{\text{reference}}(\text{answer})\bigr)$$
#
# Put these scores into the loss of Part 2. That is all of **direct preference optimisation**, DPO. The difference of the
# two scores of a pair is its **margin**:
#
# $$\text{margin} = \beta \, \bigl((\log p_{\text{policy}}(c) - \log p_{\text{reference}}(c)) - (\log
# p_{\text{policy}}(r) - \log p_{\text{reference}}(r))\bigr), \qquad \text{loss} = -\log\sigma(\text{margin})$$
#
# with $c$ the chosen answer and $r$ the rejected one. Why a reference? Without it, a short and common answer would have
# a better score than a long and rare one, whatever people prefer. With it, each answer competes with its own past, and
# what counts is the *change*. And a pair whose margin is large enough stops pulling, so the policy has no reason to
# wander off any further. The smaller β is, the further it must go for the same margin: a small β is a long leash.
#
# **One number by hand.** The policy gives the chosen answer −10 and the rejected one −11; the reference gave them −12
# and −9. One has gained 2, the other has lost 2. With β = 0.1 the margin is $0.1 \cdot (2 - (-2)) = 0.4$, and the loss
# $-\ln \sigma(0.4) = 0.513$. Before the first step policy and reference are the same model, so every margin is 0 and
# the loss is $\ln 2 = 0.693$, whatever the answers are. Check that number whenever you start such a run.
#
# **To think about.** The loss asks only for a difference. Can it fall while the *chosen* answer becomes less likely?
# Where does the probability go then?


# %%
def dpo_loss(
    policy_chosen: Tensor,
    policy_rejected: Tensor,
    reference_chosen: Tensor,
    reference_rejected: Tensor,
    beta: float = 0.1,
) -> tuple[Tensor, Tensor]:
    """The loss of direct preference optimisation, a scalar, and the margins (B,).

    The four arguments (B,) are log-probabilities of answers, from the policy and from the reference.
    margins = beta · ((policy_chosen - reference_chosen) - (policy_rejected - reference_rejected)); the loss is the mean
    of -log σ(margins), finite and with right gradients for margins of ±10,000 as well. Gradients flow back to the
    policy; none reaches the reference, even if its log-probabilities ask for one. No argument is modified.
    Raises ValueError that names beta and its value if it is not above 0.
    Example: -10, -11, -12, -9 with beta=0.1 have the margin 0.4 and the loss 0.513.
    """
    # TODO: refuse a beta that is not positive
    # TODO: how much likelier each answer has become                                    # (B,)
    # TODO: the margins, and the loss                                                   # (B,)
    ### BEGIN SOLUTION
    if beta <= 0:
        raise ValueError(f"beta = {beta} must be above 0.")
    gained = policy_chosen - reference_chosen.detach()                                  # (B,)
    lost = policy_rejected - reference_rejected.detach()                                # (B,)
    margins = beta * (gained - lost)                                                    # (B,)
    return -F.logsigmoid(margins).mean(), margins
    ### END SOLUTION


# %% part="dpo"

# %% [markdown]
# The picture trains a tiny policy, which only has a number for each word, with your loss on 200 pairs; in twenty of
# them, somebody pointed at the wrong answer. Before, all margins are 0. Afterwards most pairs lie on the right. Which
# twenty do you expect on the left?

# %% picture="dpo"

# %% [markdown]
# ## Part 4 · Compared with the group
#
# About 10 minutes, ●○○
#
# Now the third way. Nobody says any more what to write: the model answers, a judge gives a number, and answers with
# good numbers become likelier. But when is a number good? A reward of 3 is splendid for an answer to a hopeless card
# and poor for one to an easy card. So each answer is compared with what the same model makes of the **same prompt**.
# Draw $K$ answers to each prompt, and measure each in standard deviations from its group's mean:
#
# $$A_{g,k} = \frac{r_{g,k} - \text{mean}_k\, r_{g,k}}{\text{std}_k\, r_{g,k} + \varepsilon}$$
#
# These are the **advantages**. What is above 0 should become more likely, what is below 0 less likely. The standard
# deviation is that of the group itself, so the sum of squares is divided by $K$, not by $K - 1$; ε keeps a group of
# equals from dividing by zero. Where all answers are equally good there is nothing to learn, and all advantages are 0.
# The same holds for a group of one.
#
# **One number by hand.** The rewards 0, 0, 4, 4 have the mean 2 and the standard deviation 2, so the advantages are −1,
# −1, 1, 1. (With $K - 1$ instead of $K$ they would be ±0.866.) A second group with 10, 10, 14, 14 has the same ones.
#
# **To think about.** In one group all rewards are 0 but one, which is 0.001. How large are the advantages, and what do
# you think of that?


# %%
def group_advantages(rewards: Tensor, eps: float = 1e-4) -> Tensor:
    """How good each answer is, compared with the other answers to its prompt: rewards (G, K) -> (G, K).

    In each row: less the row's mean, divided by its standard deviation (the root of the mean square, divided by K) plus
    eps. Equal rewards give zeros, up to rounding, and so does K = 1. The result has the dtype of
    rewards (float32, float64), which keep their values.
    Example: 0, 0, 4, 4 give -1, -1, 1, 1, up to eps.
    """
    # TODO: less the mean of each group                                                 # (G, K)
    # TODO: divided by the group's standard deviation and eps                           # (G, K)
    ### BEGIN SOLUTION
    centred = rewards - rewards.mean(dim=1, keepdim=True)                               # (G, K)
    spread = centred.square().mean(dim=1, keepdim=True).sqrt()                          # (G, 1)
    return centred / (spread + eps)                                                     # (G, K)
    ### END SOLUTION


# %% part="advantages"

# %% [markdown]
# The picture draws six groups of eight rewards each, on the left as the judge gave them, on the right as your
# advantages. The groups should have come to the same height and to the same width. One group has no spread at all.

# %% picture="advantages"

# %% [markdown]
# ## Part 5 · A step that is not too long
#
# About 11 minutes, ●●○
#
# Trying is expensive: every answer is written word by word. So one would like to take more than one step of gradient
# descent with the same answers. But after the first step they are second-hand: an older policy wrote them, and what was
# an advantage for that policy need not be one for this. The **ratio** says how far the two have come apart,
#
# $$\rho = \frac{p_{\text{policy}}(\text{answer})}{p_{\text{old}}(\text{answer})} = e^{\log p_{\text{policy}} - \log
# p_{\text{old}}}$$
#
# (This is the ratio of the whole answer; PPO and GRPO take one for each token, and GSPO takes the $T$-th root of this
# one for an answer of $T$ tokens.) The objective that is to grow is $\rho A$: more of what was good, less of what was
# bad. Schulman and others (2017) cut it off where it has gone far enough. Take the *smaller* of two values, with and
# without the cut:
#
# $$\text{loss} = -\text{mean}\, \min\bigl(\rho A,\ \text{clip}(\rho,\, 1 - \varepsilon,\, 1 + \varepsilon)\, A\bigr)$$
#
# **One number by hand.** With ε = 0.2 there are four cases.
#
# | | ρ = 0.5 | ρ = 1.5 |
# |---|---|---|
# | **A = 1** | min(0.5, 0.8) = 0.5 | min(1.5, 1.2) = **1.2** |
# | **A = −1** | min(−0.5, −0.8) = **−0.8** | min(−1.5, −1.2) = −1.5 |
#
# The bold ones are cut off. A good answer is already half as likely again: enough, its gradient is 0. A bad one is only
# half as likely as it was: enough as well. The other two went the *wrong* way, and there is no limit to being pulled
# back. That is what the minimum is for; cut without it, and a bad answer that has become likelier is let go.
#
# When the policy has not moved yet, all ratios are 1. Nothing is cut, the loss is minus the mean advantage, and its
# gradient is that of $-A \log p$: plain policy gradient. Only the *gradient* is interesting then, so what counts as old,
# and the advantages, must not carry one of their own.
#
# **To think about.** The mean of a group's advantages is 0, and so is the loss in the first step. Why does the model
# learn all the same?


# %%
def clipped_loss(log_probs: Tensor, old_log_probs: Tensor, advantages: Tensor, epsilon: float = 0.2) -> Tensor:
    """The clipped objective, with a minus: log_probs (N,), old_log_probs (N,), advantages (N,) -> a scalar.

    Minus the mean of min(ratio · A, clip(ratio, 1 - epsilon, 1 + epsilon) · A), with ratio = exp(log_probs -
    old_log_probs). Gradients flow back to log_probs alone; none reaches old_log_probs or advantages, even if they ask
    for one. No argument is modified.
    Example: a ratio of 1.5 gives -1.2 for an advantage of 1, and 1.5 for an advantage of -1.
    """
    # TODO: the ratios                                                                  # (N,)
    # TODO: the smaller of both products, and minus their mean                          # (N,)
    ### BEGIN SOLUTION
    fixed = advantages.detach()                                                         # (N,)
    ratio = (log_probs - old_log_probs.detach()).exp()                                  # (N,)
    cut = ratio.clamp(1 - epsilon, 1 + epsilon)                                         # (N,)
    return -torch.minimum(ratio * fixed, cut * fixed).mean()
    ### END SOLUTION


# %% part="clipping"

# %% [markdown]
# The picture draws your objective (without the minus) against the ratio, once for a good and once for a bad answer. It
# should be flat on the right for A > 0 and flat on the left for A < 0, and nowhere else.

# %% picture="clipping"

# %% [markdown]
# ## Part 6 · Token by token
#
# About 16 minutes, ●●○
#
# An answer is not written in one piece. Part 5 took one ratio for the whole of it, which is the *product* of the ratios
# of its tokens. (GSPO, 2025, takes one ratio, too: for $T$ tokens, the $T$-th root of this product.) PPO and GRPO look
# closer: they have **a ratio for each token**, and cut each on its own. The advantage is still that of the whole answer,
# and the same for all its tokens:
#
# $$\text{loss} = -\operatorname*{mean}_{\text{answers}}\ \operatorname*{mean}_{\text{tokens } t}\ \min\bigl(\rho_t A,\
# \text{clip}(\rho_t,\, 1 - \varepsilon,\, 1 + \varepsilon)\, A\bigr)$$
#
# The difference grows with the length. If each of 12 tokens has become 2 % likelier, the answer has become 27 %
# likelier: with ε = 0.2, Part 5 cuts it off, and no token learns anything any more. Token by token, every ratio is 1.02,
# and all of them keep learning. Conversely, an answer may stand still as a whole while one token has doubled and
# another has halved; only the ratios of the tokens notice.
#
# Mind the **two means**. First over the tokens of an answer, then over the answers, so that a long answer counts as much
# as a short one. A row without an answer is no answer, and counts in neither.
#
# **One number by hand.** With ε = 0.2, an answer of two tokens has A = 1 and the ratios 1.5 and 1. Its tokens count 1.2
# and 1, in the mean 1.1. An answer of three tokens has A = −1 and the ratios 0.5, 1 and 1. Its tokens count −0.8, −1 and
# −1, in the mean −0.933. The loss is $-(1.1 - 0.933)/2 = -0.083$. (One mean over all five tokens would give 0.12, with
# the other sign, since the longer answer has more to say in it.)
#
# **To think about.** Two answers are equally bad, A = −1, one of 2 tokens and one of 12. How strongly is a single token
# of each pushed down in the first step? What will a model learn about the length of its wrong answers? And what does
# Part 5's loss do in this case?


# %%
def token_clipped_loss(
    log_probs: Tensor, old_log_probs: Tensor, advantages: Tensor, answer: Tensor, epsilon: float = 0.2
) -> Tensor:
    """The clipped objective with a ratio for each token, with a minus: a scalar.

    log_probs (B, T), old_log_probs (B, T): the log-probability of each token; advantages (B,): one for each answer;
    answer (B, T): booleans, True at the tokens of the answer. Whatever stands outside of it, even inf or NaN, matters
    neither to the loss nor to a gradient.
    For each token, min(ratio · A, clip(ratio, 1 - epsilon, 1 + epsilon) · A); the mean over the tokens of each answer,
    then over the answers that have any; and a minus. If no row has an answer: 0, with gradients of 0.
    Gradients flow back to log_probs alone; none reaches old_log_probs or advantages, even if they ask for one. No
    argument is modified.
    Example: ratios of 1.5 and 1 with A = 1, and of 0.5, 1 and 1 with A = -1, give -0.083.
    """
    # TODO: the ratio of each token; 1 outside of the answers                           # (B, T)
    # TODO: the smaller of both products                                                # (B, T)
    # TODO: the mean of each answer, and minus the mean of those that have a token      # (B,)
    ### BEGIN SOLUTION
    before = old_log_probs.detach()                                                     # (B, T)
    ratio = (log_probs - before).masked_fill(~answer, 0.0).exp()                        # (B, T)
    fixed = advantages.detach()[:, None]                                                # (B, 1)
    cut = ratio.clamp(1 - epsilon, 1 + epsilon)                                         # (B, T)
    counts = torch.minimum(ratio * fixed, cut * fixed).masked_fill(~answer, 0.0)        # (B, T)
    lengths = answer.sum(dim=1)                                                         # (B,)
    means = counts.sum(dim=1) / lengths.clamp(min=1)                                    # (B,)
    return -means.sum() / (lengths > 0).sum().clamp(min=1)
    ### END SOLUTION


# %% part="tokens"

# %% [markdown]
# The picture gives each token of an answer the same small gain, and asks for which length its gradient is gone. On the
# left with your `clipped_loss` of Part 5, on the right token by token.

# %% picture="tokens"

# %% [markdown]
# ## Part 7 · The leash
#
# About 10 minutes, ●○○
#
# A judge is no oracle. It is a model, it has seen a few hundred comparisons, and far from those its numbers mean nothing.
# A policy that is trained to please it will find out where the numbers are high and mean nothing. This is called
# **reward hacking**, or over-optimisation. The remedy is a leash, a **KL penalty**: a term in the loss that grows
# as the policy moves away from the reference, which has read what people write.
#
# The distance is the Kullback–Leibler divergence, the mean over the *policy's own* answers of $\log p_{\text{policy}} -
# \log p_{\text{reference}}$. Taken literally, that is noisy, and negative for many an answer. There is a quieter way to
# estimate the same mean. With $d = \log p_{\text{reference}} - \log p_{\text{policy}}$, each answer counts
#
# $$e^{d} - d - 1$$
#
# which is never negative, and 0 only for $d = 0$.
#
# **One number by hand.** There are two answers. The policy gives each ½, the reference ¼ and ¾. The first has $d = \ln
# \tfrac12$ and counts $0.5 + 0.693 - 1 = 0.193$. The second has $d = \ln \tfrac32$ and counts $1.5 - 0.405 - 1 =
# 0.095$. Their mean is 0.144, and the divergence itself, $\tfrac12 \ln 2 + \tfrac12 \ln \tfrac23$, is 0.144 as well.
#
# As a *value*, that is right. As a *loss*, it does not quite do what its name says. The answers are drawn from the
# policy, and a gradient does not go through the drawing. In the example, raise the logit of the first answer a little:
# the divergence grows by 0.2747 for each unit, but the gradient of this penalty is 0.25. That is exactly the gradient of
# the *other* divergence, the mean over the **reference's** answers of $\log p_{\text{reference}} - \log
# p_{\text{policy}}$. Near the reference, both pull in the same direction and almost equally hard, so the leash holds.
# Others take $\log p_{\text{policy}} - \log p_{\text{reference}}$ off the reward, and get the first gradient.
#
# **To think about.** Why is the mean of $e^{d} - 1$ over the policy's own answers 0? Then why is it added?


# %%
def kl_penalty(log_probs: Tensor, reference_log_probs: Tensor) -> Tensor:
    """How far the policy has gone from the reference: log_probs (N,), reference_log_probs (N,) -> a scalar.

    The mean of exp(d) - d - 1 with d = reference_log_probs - log_probs, for answers that the policy wrote. Gradients
    flow back to log_probs; none reaches the reference, even if it asks for one. No argument is modified.
    Example: ln 1/2 and ln 1/2 with the reference's ln 1/4 and ln 3/4 give 0.144.
    """
    # TODO: the differences, reference less policy                                      # (N,)
    # TODO: the mean of what each counts
    ### BEGIN SOLUTION
    d = reference_log_probs.detach() - log_probs                                        # (N,)
    return (d.exp() - d - 1).mean()
    ### END SOLUTION


# %% part="kl"

# %% [markdown]
# The picture lets a tiny policy choose among six answers. The judge likes one of them far too well, which the reference
# hardly ever writes. Each dot is one training with your `clipped_loss` and your `kl_penalty`, with a leash of another
# length: the looser it is, the more reward, and the further from the reference.

# %% picture="kl"

# %% [markdown]
# ## Part 8 · The run
#
# About 9 minutes, ●○○
#
# The restaurant wants manners. Before you run the cells, write down two guesses. How many of the answers will be polite
# after the demonstrations, and how many after the comparisons? And what will a model write that may do *anything* to
# please the judge?
#
# **Demonstrations first.** Two hundred letters from the files, as the waiters wrote them: about half of them
# polite, the others rude. They cannot teach manners. They teach something else: that a card is followed by an answer,
# not by a card.


# %%
def demonstrate(model: nn.Module, steps: int = 40, batch_size: int = 32, lr: float = 5e-4) -> nn.Module:
    """Given: a copy of the model, fine-tuned on two hundred answers with your `sft_loss`."""
    dice = random.Random(1)
    letters = [(card, dice.choice(replies_to(card, POLITE + RUDE))) for card in dice.sample(cards(), 200)]
    ids = encode(letters)                                                               # (200, T)
    student = copy.deepcopy(model)
    optimizer = torch.optim.Adam(student.parameters(), lr=lr)
    for _ in range(steps):
        batch = ids[torch.randint(len(ids), (batch_size,))]                             # (B, T)
        loss = sft_loss(student(batch), batch, answer_places(batch))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return student


if __name__ == "__main__":
    torch.manual_seed(1)
    reference = demonstrate(pretrained).requires_grad_(False)
    show("demonstrations", reference)

# %% [markdown]
# **Then comparisons.** Two hundred cards, to each a polite and a rude answer, and the polite one is chosen. The policy
# starts as a copy of the model above, which becomes the reference. Watch the margins. Watch also what happens to the
# chosen answers themselves: the second curve is how much likelier they have become.


# %%
def some_pairs(seed: int = 2, count: int = 200) -> tuple[Tensor, Tensor]:
    """Given: a polite and a rude answer to the same cards, as ids (count, T) and (count, T)."""
    dice = random.Random(seed)
    chosen_cards = dice.sample(cards(), count)
    polite = [(card, dice.choice(replies_to(card, POLITE))) for card in chosen_cards]
    rude = [(card, dice.choice(replies_to(card, RUDE))) for card in chosen_cards]
    return encode(polite), encode(rude)


def compare(reference: nn.Module, steps: int = 60, batch_size: int = 32, lr: float = 5e-5, beta: float = 0.1) -> tuple:
    """Given: a copy of the reference, trained with your `dpo_loss`; its margins and the chosen answers' gains."""
    polite, rude = some_pairs()
    policy = copy.deepcopy(reference).requires_grad_(True)
    optimizer = torch.optim.Adam(policy.parameters(), lr=lr)
    margins_seen, gains = [], []
    for _ in range(steps):
        picked = torch.randint(len(polite), (batch_size,))                              # (B,)
        chosen, rejected = polite[picked], rude[picked]                                 # (B, T), (B, T)
        ours = [answer_log_probs(policy(ids), ids, answer_places(ids)) for ids in (chosen, rejected)]
        theirs = [answer_log_probs(reference(ids), ids, answer_places(ids)) for ids in (chosen, rejected)]
        loss, margins = dpo_loss(*ours, *theirs, beta=beta)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        margins_seen.append(margins.mean().item())
        gains.append((ours[0] - theirs[0]).mean().item())
    return policy, margins_seen, gains


if __name__ == "__main__":
    torch.manual_seed(2)
    compared, margins_seen, gains = compare(reference)
    show("comparisons", compared)

# %% [markdown]
# **Then rewards.** The judge is as simple as a judge can be: one number for each word, and an answer's score is their
# sum. It learns from the same pairs, by your `bradley_terry_loss`, and on pairs that it has never seen it is right every
# time. What more could one ask of a judge?
#
# Two policies are trained to please it, both from the same reference, with the same random numbers. One has the leash
# of Part 7, the other has none. Read what they write.


# %% tags=["hide-input"]
class Judge(nn.Module):
    """Given. A number for each word; the score of an answer is their sum: ids (B, T), answer (B, T) -> (B,)."""

    def __init__(self) -> None:
        super().__init__()
        self.numbers = nn.Parameter(torch.zeros(len(WORDS)))

    def forward(self, ids: Tensor, answer: Tensor) -> Tensor:
        return (self.numbers[ids] * answer).sum(dim=-1)                                 # (B,)

    def favourites(self, count: int = 5) -> list[str]:
        """The words with the largest numbers."""
        return [WORDS[i] for i in self.numbers.topk(count).indices.tolist()]


def taught_judge(steps: int = 100, lr: float = 0.3) -> Judge:
    """Given: a judge that has learned from two hundred pairs."""
    judge, (polite, rude) = Judge(), some_pairs()
    optimizer = torch.optim.SGD(judge.parameters(), lr=lr)
    for _ in range(steps):
        loss = bradley_terry_loss(judge(polite, answer_places(polite)), judge(rude, answer_places(rude)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return judge.requires_grad_(False)


def token_log_probs(logits: Tensor, ids: Tensor, answer: Tensor) -> Tensor:
    """Given: your `answer_log_probs` for one place at a time: the log-probability of each token of the answers (N, T)."""
    places = torch.eye(ids.shape[1], dtype=torch.bool)                                  # (T, T)
    return torch.stack([answer_log_probs(logits, ids, answer & place) for place in places], dim=1)


def please(
    judge: Callable[[Tensor, Tensor], Tensor],
    reference: nn.Module,
    leash: float,
    steps: int = 60,
    G: int = 8,
    K: int = 8,
    lr: float = 5e-4,
    name: str = "",
    by_tokens: bool = False,
) -> tuple:
    """Given: a copy of the reference, trained to please the judge; rewards and distances, step by step.

    by_tokens: with your loss of Part 6, and otherwise with that of Part 5.
    """
    from autograder.notebook import watch_training

    watch = watch_training(steps, name, "reward")
    policy = copy.deepcopy(reference).requires_grad_(True)
    optimizer = torch.optim.Adam(policy.parameters(), lr=lr)
    dice, generator = random.Random(3), torch.Generator().manual_seed(3)
    rewards_seen, distances = [], []
    for step in range(steps):
        prompts = [card for card in dice.sample(cards(), G) for _ in range(K)]
        ids = write(policy, prompts, generator)                                         # (N, T)
        answer = answer_places(ids)                                                     # (N, T)
        rewards = judge(ids, answer)                                                    # (N,)
        advantages = group_advantages(rewards.view(G, K)).flatten()                     # (N,)
        with torch.no_grad():
            old_tokens = token_log_probs(policy(ids), ids, answer) if by_tokens else None  # (N, T)
            old = answer_log_probs(policy(ids), ids, answer)                            # (N,)
            theirs = answer_log_probs(reference(ids), ids, answer)                      # (N,)
        for _ in range(2):
            logits = policy(ids)                                                        # (N, T, V)
            ours = answer_log_probs(logits, ids, answer)                                # (N,)
            if by_tokens:
                tokens = token_log_probs(logits, ids, answer)                           # (N, T)
                loss = token_clipped_loss(tokens, old_tokens, advantages, answer)
            else:
                loss = clipped_loss(ours, old, advantages)
            loss = loss + leash * kl_penalty(ours, theirs)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
            optimizer.step()
        rewards_seen.append(rewards.mean().item())
        distances.append(kl_penalty(old, theirs).item())
        if step % 5 == 4:
            watch(step + 1, rewards_seen[-1])
    return policy, rewards_seen, distances


if __name__ == "__main__":
    judge = taught_judge()
    polite, rude = some_pairs(seed=4)
    right = judge(polite, answer_places(polite)) > judge(rude, answer_places(rude))
    print(f"The judge is right in {100 * right.double().mean():.0f} % of new pairs. It likes {judge.favourites()}.")
    runs = {}
    for name, leash in (("with a leash", 1.0), ("without", 0.0)):
        runs[name] = please(judge, reference, leash, name=name)
        show(f"rewards, {name}", runs[name][0])

# %%
if __name__ == "__main__":
    import matplotlib.pyplot as plt

    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(9.6, 3.2), layout="constrained")
    left.plot(margins_seen, color="#0072B2", label="margin")
    left.plot(gains, "--", color="#D55E00", label="gain of the chosen answer")
    left.set(title="Comparisons", xlabel="step")
    left.legend(frameon=False, fontsize=8)
    for (name, (_, rewards_seen, distances)), (color, style) in zip(
        runs.items(), (("#0072B2", "-"), ("#D55E00", "--")), strict=True
    ):
        middle.plot(rewards_seen, style, color=color, label=name)
        right.plot(distances, style, color=color, label=name)
    middle.set(title="Reward, by the judge", xlabel="step")
    middle.legend(frameon=False, fontsize=8)
    right.set(title="Distance from the reference", xlabel="step", yscale="log")
    plt.show()

# %% [markdown]
# By the judge's numbers, the policy without a leash is by far the best model on this page. That is the whole problem:
# **the reward went up all the time**, and nothing in the run itself told you that anything was wrong. Only reading did,
# and the distance from the reference.
#
# **To think about.** Who is to blame, the judge or the policy? Could you write a judge that the policy cannot cheat?
#
# **A reward that can be checked.** Where a program can tell right from wrong, as in arithmetic or in code that has tests,
# no judge has to be learned, and none can be cheated in the same way. Here is the smallest such reward: 1 if the answer
# names the dish that the guest's card names, and 0 if not. The training is the same, this time token by token, and it
# begins with the model that has seen no demonstrations, which replies with another card half of the time.


# %%
def names_the_dish(ids: Tensor, answer: Tensor) -> Tensor:
    """Given: 1.0 for each answer in which the guest's dish occurs, else 0.0: ids (N, T), answer (N, T) -> (N,)."""
    dish = ids[:, 1:2]  # my SOUP was very cold                                         # (N, 1)
    return ((ids == dish) & answer).any(dim=1).float()                                  # (N,)


if __name__ == "__main__":
    checked, rewards_seen, _ = please(names_the_dish, pretrained, 0.1, name="a check", by_tokens=True)
    first, last = sum(rewards_seen[:5]) / 5, sum(rewards_seen[-5:]) / 5
    print(f"{100 * first:.0f} % of the first answers named the guest's dish, and {100 * last:.0f} % of the last.")
    show("a reward that can be checked", checked)

# %% [markdown]
# The number is honest now: what it counts is what happens. This model has not seen a single demonstration, and yet it
# hardly replies with cards any more, because another guest's card seldom names the same dish. But look at the shares of
# polite and rude: both have grown. Nobody asked for manners this time. A check never measures more than what it checks.
#
# Take the leash to 0.3 and to 3, one at a time, and look at shares and samples. Then give `compare` 200 steps in the
# place of 60: the margins go on growing. Do the answers get better?
#
# ## Harder: the best policy there is
#
# Not graded; about 40 minutes, ●●○.
# If all answers could be listed, the best policy with a leash could be written down
# without any training. The file `harder.py` beside this one asks for it, for the way back, which is where DPO comes from,
# and for what it is worth to draw sixteen answers and keep the best. Run `python harder.py`: it checks what you write
# there and says in sentences what is missing.
#
# ## Look back
#
# Three ways to teach, and each needs less from people than the one before: an answer, a comparison, a number. And each
# needs more care. Demonstrations can only be copied. Comparisons need a reference, or the model learns that short is
# good. Rewards need a leash, because a model that is paid by a number will find the number.
#
# The recipe is the one of the large assistants. InstructGPT (2022) was trained with demonstrations, with a judge that
# had learned from comparisons by Bradley and Terry, and with the clipped objective and a leash. Yours has two blocks
# and 68 words; the formulas are the same.
#
# **One last question.** Your judge had never seen *sorry sorry sorry*. Real judges have read far more. Which properties
# of an answer might they, too, have mistaken for quality, because good answers usually have them?
#
# ## Read on
#
# - **Bradley and Terry, *Rank Analysis of Incomplete Block Designs: I. The Method of Paired Comparisons* (1952).** Your
#   Part 2, for tastings: the example has pork from pigs that were fed in three ways.
# - **Christiano et al., *Deep Reinforcement Learning from Human Preferences* (2017).** Look for the backflip,
#   learned from about 900 comparisons, and for what nobody could have written down as a reward.
# - **Schulman, Wolski, Dhariwal, Radford and Klimov, *Proximal Policy Optimization Algorithms* (2017).** Figure 1 is the
#   picture of Part 5.
# - **Ouyang et al., *Training Language Models to Follow Instructions with Human Feedback* (2022).** InstructGPT. Look for
#   the figure with the three steps, and for how small a model with it was preferred to how large a one without.
# - **Rafailov et al., *Direct Preference Optimization: Your Language Model Is Secretly a Reward Model* (2023).**
#   Section 4 derives Part 3 in a page. Look for what the gradient weights each pair by.
# - **Shao et al., *DeepSeekMath: Pushing the Limits of Mathematical Reasoning in Open Language Models* (2024).** Parts 4
#   to 7 together, under the name GRPO, with Part 6 in place of Part 5. Look for the drawing that shows which of PPO's
#   four models it saves.
