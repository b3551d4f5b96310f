"""Harder, and not graded: the best policy there is (about 40 minutes, ●●○).

Suppose that a prompt has only M answers, and that you know the reward r of each and its probability under the
reference. Then no training is needed: the policy that has the largest *mean reward less β times the divergence from the
reference* can be written down. It **tilts** the reference towards the rewards:

    p(a) = reference(a) · exp(r(a) / β) / Z        Z makes the probabilities add up to 1

A small β trusts the rewards, a large one trusts the reference.

**By hand.** Two answers have the reference's probabilities ½ and ½, and the rewards ln 3 and 0. With β = 1 the tilted
probabilities are ¾ and ¼; with β = ½ they are 9/10 and 1/10.

Now read the formula backwards: r(a) = β (log p(a) - log reference(a)) + β log Z. A policy *is* a reward, up to a number
that is the same for all answers to a prompt. In a difference of two answers that number is gone. That is where DPO comes
from: put this reward into the loss of Bradley and Terry, and there is your Part 3.

There is a poor man's way to a better policy as well: draw n answers and keep the one with the best reward. What does
**best-of-n** gain? Draw K answers, at least n. Every n of them are equally likely to be drawn, so take the mean of the
best reward over all choices of n out of K. Sort the rewards, the smallest first: number i (from 1) is the best of those
choices that consist of it and of n - 1 smaller ones,

    gain = Σ_i r_(i) · C(i - 1, n - 1) / C(K, n)

and the divergence from the reference is at most ln n - (n - 1) / n.

**By hand.** The rewards 1, 2 and 5: the pairs have the best rewards 2, 5 and 5, so best-of-2 is worth 4. It costs at most
ln 2 - ½ = 0.193.

Write `tilted`, `implied_rewards`, `best_of` and `price`, and run `python harder.py`.
Each check stops after a minute of work. Then compare both ways for a list of
rewards of your own: how much reward does each give for the same divergence?
"""

import itertools
import math

import torch
from torch import Tensor

from autograder import checks


def tilted(log_reference: Tensor, rewards: Tensor, beta: float) -> Tensor:
    """The log-probabilities of the best policy: log_reference (M,), rewards (M,) -> (M,).

    Rewards may be as large as 10,000, and some answers may be impossible (-inf).
    """
    # TODO: tilt, and make it add up to 1                                         # (M,)
    raise NotImplementedError("tilted is not written yet.")


def implied_rewards(log_policy: Tensor, log_reference: Tensor, beta: float) -> Tensor:
    """The rewards for which this policy is the best one, with the mean 0 over the reference: (M,), (M,) -> (M,)."""
    # TODO: the formula, read backwards                                           # (M,)
    # TODO: less the mean, each answer weighted with the reference's probability  # (M,)
    raise NotImplementedError("implied_rewards is not written yet.")


def best_of(rewards: Tensor, n: int) -> float:
    """What best-of-n is worth, from rewards (K,) with K >= n: the mean of the best over all choices of n."""
    # TODO: sort; how many choices is each reward the best of?
    raise NotImplementedError("best_of is not written yet.")


def price(n: int) -> float:
    """The most that best-of-n can cost in divergence from the reference."""
    # TODO: the formula above
    raise NotImplementedError("price is not written yet.")


def numbers(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def some(count: int, seed: int) -> tuple[Tensor, Tensor]:
    dice = torch.Generator().manual_seed(seed)
    logits = torch.randn(count, generator=dice, dtype=torch.float64)
    return logits.log_softmax(dim=0), torch.randn(count, generator=dice, dtype=torch.float64)


def by_hand() -> None:
    """Two equally likely answers with the rewards ln 3 and 0 get 3/4 and 1/4, and 9/10 and 1/10 with β = 1/2."""
    for beta, first in ((1.0, 0.75), (0.5, 0.9)):
        found = tilted(numbers(0.5, 0.5).log(), numbers(math.log(3), 0.0), beta)
        checks.close(found.exp(), numbers(first, 1 - first), f"The tilted probabilities with beta = {beta}")


def nothing_is_better() -> None:
    """No policy has more reward less β times its divergence than the tilted one."""
    reference, rewards = some(7, 1)
    for beta in (0.3, 2.0):
        best = tilted(reference, rewards, beta)
        checks.close(best.exp().sum(), torch.ones((), dtype=torch.float64), "The sum of the tilted probabilities")
        value = (best.exp() * (rewards - beta * (best - reference))).sum()
        for seed in range(50):
            other = (best + 0.3 * some(7, seed)[1]).log_softmax(dim=0)
            theirs = (other.exp() * (rewards - beta * (other - reference))).sum()
            checks.true(theirs <= value + 1e-9, f"With beta = {beta}, another policy is better than the tilted one.")


def large_rewards() -> None:
    """Rewards of 10,000 and answers with the probability 0 leave finite probabilities."""
    found = tilted(numbers(0.5, 0.5, 0.0).log(), numbers(10_000.0, 0.0, 20_000.0), 1.0)
    checks.close(found.exp(), numbers(1.0, 0.0, 0.0), "The tilted probabilities")


def there_and_back() -> None:
    """The rewards of a tilted policy come back, less their mean over the reference."""
    reference, rewards = some(7, 3)
    for beta in (0.3, 2.0):
        found = implied_rewards(tilted(reference, rewards, beta), reference, beta)
        checks.close(found, rewards - (reference.exp() * rewards).sum(), f"The rewards with beta = {beta}")


def best_of_two() -> None:
    """Of the rewards 1, 2 and 5, best-of-1 is worth 8/3, best-of-2 is worth 4, and best-of-3 is worth 5."""
    for n, worth in ((1, 8 / 3), (2, 4.0), (3, 5.0)):
        checks.close(best_of(numbers(5.0, 1.0, 2.0), n), worth, f"best_of([5, 1, 2], {n})")


def every_choice() -> None:
    """For any rewards, best-of-n is the mean of the best over all choices."""
    _, rewards = some(8, 5)
    for n in (2, 3, 5):
        every = [max(choice) for choice in itertools.combinations(rewards.tolist(), n)]
        checks.close(best_of(rewards, n), sum(every) / len(every), f"best-of-{n} of eight rewards")


def what_it_costs() -> None:
    """Best-of-1 costs nothing, best-of-2 costs 0.193, and best-of-16 costs 1.835."""
    for n, cost in ((1, 0.0), (2, math.log(2) - 0.5), (16, math.log(16) - 15 / 16)):
        checks.close(price(n), cost, f"price({n})")


CHECKS = [by_hand, nothing_is_better, large_rewards, there_and_back, best_of_two, every_choice, what_it_costs]


if __name__ == "__main__":
    from autograder.notebook import run_checks

    run_checks(CHECKS)
