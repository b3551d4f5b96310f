"""Losses from PyTorch's cross-entropy, softplus, and sums over flat lists of tokens."""

import itertools
import random

import torch
import torch.nn.functional as F
from torch import Tensor, nn

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
WORDS = ["[PAD]", "/", "[END]", *sorted({word for line in guest_book() for part in line for word in part.split()})]
ID = {word: place for place, word in enumerate(WORDS)}


def encode(lines: list[tuple[str, str]]) -> Tensor:
    """Lines as rows of ids, each with END, filled up with PAD on the right: (B, T)."""
    rows = [torch.tensor([ID[word] for word in f"{card} / {reply} [END]".split()]) for card, reply in lines]
    return nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=PAD)


def answer_places(ids: Tensor) -> Tensor:
    """Where a row holds its answer, END included: booleans (B, T), False at the prompt and at padding."""
    return (ids != PAD) & (torch.arange(ids.shape[1]) >= PROMPT)


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


def answer_log_probs(logits: Tensor, ids: Tensor, answer: Tensor) -> Tensor:
    """How likely each row's answer is, as a logarithm: logits (B, T, V), ids (B, T), answer (B, T) -> (B,).

    answer: booleans, True at the tokens that belong to the answer, wherever in the row they stand. The logits at
    position t - 1 predict the token at t; those at the last position predict nothing.
    A row without an answer gives 0. Tokens outside of the answer may even be impossible (a logit of -inf): they change
    neither the result nor the gradients.
    The result has the dtype of logits (float32, float64). No argument is modified.
    Nothing predicts the first token: raises ValueError that names answer and the number of the first row in which it is
    True at position 0.
    Example: two tokens with the probabilities 1/2 and 1/4 give ln 1/8 = -2.079.
    """
    if bool(answer[:, 0].any()):
        rows = torch.where(answer[:, 0])[0]
        raise ValueError(f"answer[{int(rows[0])}, 0] must be False")
    where = answer[:, 1:]
    rows, places = torch.where(where)
    costs = F.cross_entropy(logits[rows, places], ids[rows, places + 1], reduction="none")
    return logits.new_zeros(len(ids)).index_add(0, rows, -costs)


def sft_loss(logits: Tensor, ids: Tensor, answer: Tensor) -> Tensor:
    """The mean surprise of an answer's token: logits (B, T, V), ids (B, T), answer (B, T) -> a scalar.

    The negative log-probabilities of all answer tokens of the batch, divided by their number: each token counts the
    same, whichever answer it belongs to. Without any answer token the loss is 0, and so are all gradients (not NaN).
    Raises ValueError as `answer_log_probs` does. No argument is modified.
    Example: answers with the probabilities 1/2, 1/4 and with 1/2 alone give 4/3 · ln 2 = 0.924.
    """
    if answer.any() and not answer[:, 0].any():
        return F.cross_entropy(logits[:, :-1][answer[:, 1:]], ids[:, 1:][answer[:, 1:]])
    return -answer_log_probs(logits, ids, answer).sum()


def bradley_terry_loss(chosen: Tensor, rejected: Tensor) -> Tensor:
    """How surprising the comparisons are: the scores chosen (B,) and rejected (B,) -> a scalar.

    The mean of -log σ(chosen - rejected). It is finite, and its gradients are right, also where the scores are 10,000
    apart, in either direction, in float32 and in float64. No argument is modified.
    Example: the scores 2 and 1 give 0.313.
    """
    return F.softplus(rejected - chosen).mean()


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
    if not beta > 0:
        raise ValueError(f"beta must be positive, not {beta}")
    with torch.no_grad():
        before = reference_chosen - reference_rejected
    margins = beta * (policy_chosen - policy_rejected - before)
    return F.softplus(-margins).mean(), margins


def group_advantages(rewards: Tensor, eps: float = 1e-4) -> Tensor:
    """How good each answer is, compared with the other answers to its prompt: rewards (G, K) -> (G, K).

    In each row: less the row's mean, divided by its standard deviation (the root of the mean square, divided by K) plus
    eps. Equal rewards give zeros, and so does K = 1. The result has the dtype of rewards (float32, float64), which keep
    their values.
    Example: 0, 0, 4, 4 give -1, -1, 1, 1, but for a trifle that is due to eps.
    """
    deviation = rewards.std(dim=1, unbiased=False, keepdim=True)
    return (rewards - rewards.mean(1, True)) / (deviation + eps)


def clipped_loss(log_probs: Tensor, old_log_probs: Tensor, advantages: Tensor, epsilon: float = 0.2) -> Tensor:
    """The clipped objective, with a minus: log_probs (N,), old_log_probs (N,), advantages (N,) -> a scalar.

    Minus the mean of min(ratio · A, clip(ratio, 1 - epsilon, 1 + epsilon) · A), with ratio = exp(log_probs -
    old_log_probs). Gradients flow back to log_probs alone; none reaches old_log_probs or advantages, even if they ask
    for one. No argument is modified.
    Example: a ratio of 1.5 gives -1.2 for an advantage of 1, and 1.5 for an advantage of -1.
    """
    old, A = old_log_probs.data, advantages.data
    ratio = torch.exp(log_probs - old)
    return torch.max(-A * ratio, -A * torch.clamp(ratio, 1 - epsilon, 1 + epsilon)).mean()


def token_clipped_loss(log_probs, old_log_probs, advantages, answer, epsilon=0.2):
    rows, places = answer.nonzero(as_tuple=True)
    ratio = torch.exp(log_probs[rows, places] - old_log_probs.data[rows, places])
    A = advantages.data[rows]
    worth = torch.max(-A * ratio, -A * ratio.clip(1 - epsilon, 1 + epsilon))
    lengths = torch.bincount(rows, minlength=len(answer)).to(worth.dtype)
    return (worth / lengths[rows]).sum() / max(int((lengths > 0).sum()), 1)


def kl_penalty(log_probs: Tensor, reference_log_probs: Tensor) -> Tensor:
    """How far the policy has gone from the reference: log_probs (N,), reference_log_probs (N,) -> a scalar.

    The mean of exp(d) - d - 1 with d = reference_log_probs - log_probs, for answers that the policy wrote. Gradients
    flow back to log_probs; none reaches the reference, even if it asks for one. No argument is modified.
    Example: ln 1/2 and ln 1/2 with the reference's ln 1/4 and ln 3/4 give 0.144.
    """
    with torch.no_grad():
        fixed = reference_log_probs.clone()
    d = fixed - log_probs
    return torch.mean(torch.expm1(d) - d)
