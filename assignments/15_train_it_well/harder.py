"""Harder, and not graded: a mixture of experts (about 40 minutes, ●●●).

Most of a model's parameters are in its feed-forward layers, and every token passes through all of them. Must it? In a
**mixture of experts** a block has E feed-forward layers, the experts, and a small linear layer, the **router**, that
chooses k of them for each token. So a layer can know E times as much, while a token costs as much as k experts. Mixtral
(2024) has E = 8 and k = 2: 46.7 billion parameters, of which a token uses 12.9 billion.

**The router.** It scores each token x (C,) for each expert, and the softmax over all E scores gives p (E,). The k experts
with the largest p run, and the output is their sum, each weighted by its p:

    y = Σ p_i · expert_i(x)        over the k chosen i

Why weighted? The choice itself has no gradient. Through p, the router still learns whether its choice was good.

**The trouble.** An expert that is chosen often learns more, becomes better, and is chosen more often still, until one
does everything. The Switch Transformer (Fedus and others, 2021) adds a loss against that. Let f_i be the share of all
choices that fell on expert i, and P_i the mean of p_i over all tokens (both sum to 1 over the experts):

    balance = E · Σ f_i · P_i        over all i

It is 1 if both are even, and E if everything goes to one expert. f counts, so it has no gradient; P has one, and pushes
probability away from experts in proportion to how often they were chosen. In training, the loss is the usual one plus
0.01 · balance.

**By hand.** Four tokens, E = 2, k = 1, and the first expert's p is 0.8, 0.6, 0.7 and 0.1. Three of four choices fall on
it, so f = (0.75, 0.25). Its mean is P = (0.55, 0.45), and balance = 2 · (0.75 · 0.55 + 0.25 · 0.45) = 1.05.

What this leaves out: large models give each expert room for only so many tokens (its *capacity*) and pass over the rest,
and put the experts on different machines. Here each expert takes all who come, one expert after the other.

Write `route`, `balance_loss` and `MixtureOfExperts`, and run `python harder.py`.
Each check stops after a minute of work. Then put one into your `Block`.
"""

import math

import torch
from torch import Tensor, nn

from autograder import checks


class Expert(nn.Module):
    """Given: one feed-forward layer, (..., C) -> (..., C)."""

    def __init__(self, d_model: int, d_ff: int) -> None:
        super().__init__()
        self.up = nn.Linear(d_model, d_ff)
        self.down = nn.Linear(d_ff, d_model)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(torch.relu(self.up(x)))                                # (..., C)


def route(scores: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The weights and the numbers of the k experts for each token, the best first: scores (N, E) -> (N, k), (N, k)."""
    # TODO: a softmax over all experts, and its k largest                       # (N, E), (N, k)
    raise NotImplementedError("route is not written yet.")


def balance_loss(scores: Tensor, chosen: Tensor) -> Tensor:
    """E · Σ f_i · P_i of scores (N, E) and the chosen experts (N, k): a scalar with a gradient for the scores."""
    # TODO: f, the share of the choices that fell on each expert                # (E,)
    # TODO: P, the mean probability of each expert                              # (E,)
    raise NotImplementedError("balance_loss is not written yet.")


class MixtureOfExperts(nn.Module):
    """E experts, of which each token passes through k: x (..., C) -> (..., C).

    `router` (C -> E) is an `nn.Linear` without bias, `experts` an `nn.ModuleList` of `Expert`s. After each call,
    `balance` is the balance loss of its tokens. An expert runs at most once in a call, on the tokens that chose it; one
    that no token chose does not run.
    """

    def __init__(self, d_model: int, d_ff: int, num_experts: int, k: int) -> None:
        super().__init__()
        # TODO: the router, the experts, and k
        raise NotImplementedError("MixtureOfExperts is not written yet.")

    def forward(self, x: Tensor) -> Tensor:
        # TODO: all tokens of the batch in one column                           # (N, C)
        # TODO: the router's scores; who is chosen, with which weight           # (N, E), (N, k)
        # TODO: for each expert, its tokens through it, weighted, to their places
        raise NotImplementedError("MixtureOfExperts.forward is not written yet.")


FIRST = (0.8, 0.6, 0.7, 0.1)  # of the example by hand


def scores_by_hand() -> Tensor:
    return torch.tensor([[math.log(p), math.log(1 - p)] for p in FIRST], dtype=torch.float64)


def some_layer(k: int = 2) -> tuple[MixtureOfExperts, Tensor]:
    torch.manual_seed(0)
    return MixtureOfExperts(6, 8, num_experts=4, k=k).double(), torch.randn(2, 5, 6, dtype=torch.float64)


def choices() -> None:
    """The best expert comes first, with its share of the softmax over all experts."""
    weights, chosen = route(scores_by_hand(), 1)
    checks.equal(chosen.flatten().tolist(), [0, 0, 0, 1], "The chosen experts of the example")
    checks.close(weights.flatten(), torch.tensor([0.8, 0.6, 0.7, 0.9], dtype=torch.float64), "Their weights")
    weights, chosen = route(torch.tensor([[1.0, 3.0, 2.0, -1.0]]), 2)
    checks.equal(chosen.tolist(), [[1, 2]], "The two best of four experts")
    checks.close(weights, torch.tensor([[1.0, 3.0, 2.0, -1.0]]).softmax(dim=-1)[:, [1, 2]], "Their weights")


def balance_by_hand() -> None:
    """The four tokens of the example have the balance 1.05."""
    got = balance_loss(scores_by_hand(), torch.tensor([[0], [0], [0], [1]]))
    checks.close(got, torch.tensor(1.05, dtype=torch.float64), "The balance")


def even_and_not() -> None:
    """The balance is 1 if all experts are alike, also for k = 2, and nearly E if one does everything."""
    turns = torch.arange(8).remainder(4)
    checks.close(balance_loss(torch.zeros(8, 4), turns[:, None]), torch.tensor(1.0), "The balance of even choices")
    pairs = torch.stack([turns, (turns + 1).remainder(4)], dim=1)
    checks.close(balance_loss(torch.zeros(8, 4), pairs), torch.tensor(1.0), "The balance of even pairs")
    one = torch.tensor([[20.0, 0.0, 0.0, 0.0]]).repeat(8, 1)
    got = balance_loss(one, torch.zeros(8, 1, dtype=torch.long))
    checks.close(got, torch.tensor(4.0), "The balance if one of four experts does everything")


def which_way() -> None:
    """A step against the gradient of the balance lowers the probability of an expert that is chosen too often."""
    scores = scores_by_hand().requires_grad_()
    balance_loss(scores, torch.tensor([[0], [0], [0], [1]])).backward()
    checks.true(bool((scores.grad[:, 0] > 0).all()), "The balance does not push the first expert's scores down.")


def each_by_its_own() -> None:
    """The output is the weighted sum of the k chosen experts, as if each token were alone."""
    for k in (1, 2, 4):
        layer, x = some_layer(k)
        got = layer(x)
        checks.shape(got, (2, 5, 6), "The output")
        for b in range(2):
            for t in range(5):
                p = layer.router(x[b, t]).softmax(dim=-1)
                best = p.argsort(descending=True)[:k].tolist()
                expected = sum(p[i] * layer.experts[i](x[b, t]) for i in best)
                checks.close(got[b, t], expected, f"The output of token {t} of sentence {b} with k = {k}")


def only_the_chosen() -> None:
    """Each expert runs at most once, on its own tokens; one that no token chose does not run."""
    layer, x = some_layer()
    seen = [[] for _ in layer.experts]
    for expert, rows in zip(layer.experts, seen):
        expert.register_forward_hook(lambda module, inputs, output, rows=rows: rows.append(inputs[0].shape[:-1].numel()))
    layer(x)
    chosen = layer.router(x).argsort(dim=-1, descending=True)[..., :2]
    wanted = [[int((chosen == i).sum())] if (chosen == i).any() else [] for i in range(4)]
    checks.equal(seen, wanted, "The numbers of tokens that the experts saw")
    layer, x = some_layer(1)
    with torch.no_grad():
        layer.router.weight.zero_()
        layer.router.weight[2] = x[0, 0]
    layer.experts[3].register_forward_hook(lambda *given: checks.true(False, "An expert ran that no token chose."))
    layer(x[:1, :1])


def learns() -> None:
    """The balance belongs to the call, and the router learns from the output and from the balance."""
    layer, x = some_layer(1)
    output = layer(x)
    scores = layer.router(x.reshape(-1, 6))
    checks.close(layer.balance, balance_loss(scores, scores.argmax(dim=-1, keepdim=True)), "The balance of the call")
    for loss, name in ((output.square().sum(), "output"), (layer.balance, "balance")):
        (gradient,) = torch.autograd.grad(loss, layer.router.weight, retain_graph=True, allow_unused=True)
        checks.true(gradient is not None and bool(gradient.any()), f"The router has no gradient from the {name}.")


def from_one_to_all() -> None:
    """With the balance alone, a router that sends everything to one expert comes to use all four."""
    layer, _ = some_layer(1)
    x = 1 + torch.randn(64, 4, 6, dtype=torch.float64)
    with torch.no_grad():
        layer.router.weight *= 0.1
        layer.router.weight[0] += 1
    layer(x)
    checks.between(float(layer.balance.detach()), 2.0, 4.0, "The balance at first")
    for _ in range(120):
        (gradient,) = torch.autograd.grad(layer.balance, layer.router.weight)
        with torch.no_grad():
            layer.router.weight -= 0.05 * gradient
        layer(x)
    checks.between(float(layer.balance.detach()), 0.9, 1.1, "The balance after 120 steps")


CHECKS = [
    choices, balance_by_hand, even_and_not, which_way, each_by_its_own, only_the_chosen, learns, from_one_to_all
]


if __name__ == "__main__":
    from autograder.notebook import run_checks

    run_checks(CHECKS)
