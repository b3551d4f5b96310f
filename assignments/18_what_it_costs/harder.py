"""Harder, and not graded: how large should a model be? (about 25 minutes, ●●○)

Part 1 says what a training takes: about 6 · parameters · tokens operations. GPT-3 has 174.6 billion parameters and
read 300 billion tokens: 3.14 · 10²³ operations. On 1,000 graphics cards with 312 · 10¹² operations a second, of which
40 % can be used, that is 29 days.

**And was that well spent?** With the same budget one could have trained a larger model on fewer tokens, or a smaller
one on more. *Training Compute-Optimal Large Language Models* (Hoffmann and others, 2022) found that about 20 tokens
for each parameter make the best use of a budget; GPT-3 had read fewer than two. With 5.88 · 10²³ operations: 70
billion parameters and 1.4 trillion tokens, which became their model Chinchilla.

A model that many people will use is often trained on far more tokens than that. Part 2 says why: a smaller model
costs less for each word that it writes.

Write the two functions, and run `python harder.py`.
"""

from autograder import checks


def training_days(parameters: float, tokens: float, cards: int, flops_a_second: float, used: float) -> float:
    """The days that a training takes on so many cards, of whose operations a second a share `used` does useful work."""
    # TODO: all the work, divided by all that is done in a day
    raise NotImplementedError("training_days is not written yet.")


def best_size(flops: float) -> tuple[float, float]:
    """The parameters and the tokens that make the best use of so many operations: 20 tokens for each parameter."""
    # TODO: 6 · parameters · tokens is the budget, and tokens is 20 · parameters
    raise NotImplementedError("best_size is not written yet.")


def days_of_gpt3() -> None:
    """GPT-3 takes 29 days on 1,000 cards."""
    days = training_days(174.6e9, 300e9, 1000, 312e12, 0.4)
    checks.true(29 <= days < 29.3, f"It takes {days:.4g} days; 29.1 were expected.")
    twice = training_days(174.6e9, 300e9, 2000, 312e12, 0.4)
    checks.true(abs(twice - days / 2) < 1e-6, f"With twice as many cards it takes {twice:.4g} days, not half as many.")


def chinchilla() -> None:
    """A budget of 5.88e23 operations is best spent on 70e9 parameters and 1.4e12 tokens."""
    parameters, tokens = checks.unpack(best_size(5.88e23), ["the parameters", "the tokens"])
    checks.true(abs(parameters / 70e9 - 1) < 1e-6, f"There are {parameters:.4g} parameters; 7e10 were expected.")
    checks.true(abs(tokens / 1.4e12 - 1) < 1e-6, f"There are {tokens:.4g} tokens; 1.4e12 were expected.")


CHECKS = [days_of_gpt3, chinchilla]


if __name__ == "__main__":
    for check in CHECKS:
        try:
            check()
        except (AssertionError, NotImplementedError) as error:
            print(f"✗ {check.__doc__}\n    {error}")
            break
        print(f"✓ {check.__doc__}")
