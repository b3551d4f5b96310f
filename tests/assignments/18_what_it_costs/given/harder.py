"""Harder, and not graded: what does it cost? (about 35 minutes, ●●○)

Parameters can be counted, and so can the work. Count one multiplication and one addition as two *floating-point
operations* (FLOPs). A matrix of a × b numbers costs 2 · a · b for each word that goes through it: **two for each
weight**. Look-ups, norms and activations are small change and are left out.

For one word in one layer of width C that attends to T words, this is

    query, key and value, three C × C       6 C²          what each word asks, offers and says
    scores, and the weighted sum            4 T C         2 T C for the T dot products, 2 T C for the sum of T values
    output projection                       2 C²
    feed-forward, C × 4C and 4C × C        16 C²

and at the end once 2 · C · V for the logits (yes: the tied table is not counted twice as a parameter, but it works).

**By hand.** GPT-2 small has 12 layers, C = 768, V = 50,257. With T = 1,024, a layer costs 24 · 768² + 4 · 1024 · 768 =
17,301,504, twelve of them 207,618,048, the logits 77,194,752: about 285 million FLOPs for a word. The part that grows
with T overtakes the rest of the layer at T = 6 C = 4,608 words.

**Training** costs three times as much: the way back computes two gradients for each product. For long training, all is
well described by 6 · parameters · words. GPT-3 has 174.6 thousand million parameters and read 300 thousand million words:
3.14 · 10²³ FLOPs, as its paper says. On 1,000 graphics cards with 312 · 10¹² FLOPs a second, of which 40 % can be used,
that is 29 days.

**And how large should a model be?** *Training Compute-Optimal Large Language Models* (Hoffmann and others, 2022) found
that about 20 words for each parameter make the best use of a given budget. With 5.88 · 10²³ FLOPs: 70 thousand million
parameters and 1.4 million million words, which became their model Chinchilla.

Write the four functions, and run `python harder.py`.
"""

from autograder import checks


def flops_per_word(layers: int, width: int, vocab_size: int, T: int) -> int:
    """The FLOPs for the logits after one word that attends to T words, itself included."""
    # TODO: the layers, and the logits
    raise NotImplementedError("flops_per_word is not written yet.")


def turning_point(width: int) -> int:
    """How many words a word must attend to for scores and weighted sum to cost as much as the layer's matrices."""
    # TODO: for which T are both parts of a layer equal?
    raise NotImplementedError("turning_point is not written yet.")


def training_days(parameters: float, words: float, cards: int, flops_a_second: float, used: float) -> float:
    """The days that a training takes on so many cards, of whose FLOPs a second a share `used` does useful work."""
    # TODO: all the work, divided by all that is done in a day
    raise NotImplementedError("training_days is not written yet.")


def best_size(flops: float) -> tuple[float, float]:
    """The parameters and the words that make the best use of so many FLOPs: 20 words for each parameter."""
    # TODO: 6 · parameters · words is the budget, and words is 20 · parameters
    raise NotImplementedError("best_size is not written yet.")


def gpt2_by_hand() -> None:
    """GPT-2 small needs 284,812,800 FLOPs for a word that attends to 1,024 words."""
    checks.equal(flops_per_word(12, 768, 50_257, 1024), 284_812_800, "flops_per_word(12, 768, 50257, 1024)")


def grows_in_a_line() -> None:
    """Each further word of context costs 4 · layers · width."""
    steps = [flops_per_word(5, 12, 31, T + 1) - flops_per_word(5, 12, 31, T) for T in (1, 10, 500)]
    checks.equal(steps, [240, 240, 240], "The cost of one more word for 5 layers of width 12")


def logits_are_paid_once() -> None:
    """The logits are paid once, however many layers there are."""
    one_more = flops_per_word(3, 8, 11, 2) - flops_per_word(3, 8, 10, 2)
    checks.equal(one_more, 16, "The cost of one more word to choose from")
    ten, twenty = (flops_per_word(layers, 8, 11, 2) - 2 * 8 * 11 for layers in (10, 20))
    checks.equal(twenty, 2 * ten, "The cost of 20 layers without the logits")


def where_it_turns() -> None:
    """At the turning point, half of a layer's work is scores and weighted sum: 4,608 words for a width of 768."""
    checks.equal(turning_point(768), 4608, "turning_point(768)")
    matrices = flops_per_word(1, 20, 0, 0)
    checks.equal(flops_per_word(1, 20, 0, turning_point(20)), 2 * matrices, "The work of a layer at its turning point")


def days_of_gpt3() -> None:
    """GPT-3 takes 29 days on 1,000 cards."""
    days = training_days(174.6e9, 300e9, 1000, 312e12, 0.4)
    checks.true(29 <= days < 29.3, f"It takes {days:.4g} days; 29.1 were expected.")
    twice = training_days(174.6e9, 300e9, 2000, 312e12, 0.4)
    checks.true(abs(twice - days / 2) < 1e-6, f"With twice as many cards it takes {twice:.4g} days, not half as many.")


def chinchilla() -> None:
    """A budget of 5.88e23 FLOPs is best spent on 70e9 parameters and 1.4e12 words."""
    parameters, words = checks.unpack(best_size(5.88e23), ["the parameters", "the words"])
    checks.true(abs(parameters / 70e9 - 1) < 1e-6, f"There are {parameters:.4g} parameters; 7e10 were expected.")
    checks.true(abs(words / 1.4e12 - 1) < 1e-6, f"There are {words:.4g} words; 1.4e12 were expected.")


CHECKS = [gpt2_by_hand, grows_in_a_line, logits_are_paid_once, where_it_turns, days_of_gpt3, chinchilla]


if __name__ == "__main__":
    for check in CHECKS:
        try:
            check()
        except (AssertionError, NotImplementedError) as error:
            print(f"✗ {check.__doc__}\n    {error}")
            break
        print(f"✓ {check.__doc__}")
