"""Harder, and not graded: how good is a translation? (about 35 minutes, ●●○)

The table of results in *Attention Is All You Need* shows one number for each model: **BLEU** (Papineni, Roukos, Ward and
Zhu, 2002). It compares a translation with one that a person wrote, in four steps.

1. An *n-gram* is n words in a row. Of all n-grams of the translation, how many are in the person's text? An n-gram that
   stands there twice can be matched only twice: this is called *clipping*.
2. Add up the matches of **all** sentences, and divide by all n-grams of all translations: the precision p_n.
3. Take the geometric mean of p_1 to p_4: e to the power of the mean of their logarithms. Is one of them 0, so is BLEU.
4. A very short translation has it too easy. Let c be the words of all translations, r those of all texts by people.
   If c < r, multiply by e^(1 - r/c), the *brevity penalty*.

**By hand.** The paper's own example: *the the the the the the the*, where a person wrote *the cat is on the mat*. The
word *the* stands there twice, so 2 of 7 single words match, not 7. And *the cat sat* for *the cat sat down*: all 3 words
and both pairs match, but c = 3 and r = 4. With n-grams up to 2, BLEU is 1 · e^(1 - 4/3) = 0.7165.

Write `matches` and `bleu`, and run `python harder.py`.
Each check stops after a minute of work. Then measure the translator that you have trained.
"""

import math

from autograder import checks


def matches(translation: list[str], person: list[str], n: int) -> tuple[int, int]:
    """How many n-grams of a translation match, clipped, and how many there are in all; 0 of 0 if it is too short."""
    # TODO: count the n-grams of both texts
    # TODO: an n-gram of the translation matches at most as often as it stands in the person's text
    raise NotImplementedError("matches is not written yet.")


def bleu(translations: list[list[str]], persons: list[list[str]], longest: int = 4) -> float:
    """BLEU of many translations, between 0 and 1, with n-grams of 1 to `longest` words; 0 if no n-gram of a length
    matches, or if there are none."""
    # TODO: the precision of each n over all sentences, their geometric mean, the brevity penalty
    raise NotImplementedError("bleu is not written yet.")


def words(*texts: str) -> list[list[str]]:
    return [text.split() for text in texts]


def clipped_by_hand() -> None:
    """Of seven times *the*, two match *the cat is on the mat*."""
    seven, mat = words("the the the the the the the", "the cat is on the mat")
    checks.equal(tuple(matches(seven, mat, 1)), (2, 7), "The matches of single words")


def pairs() -> None:
    """Order counts: of the pairs in *cat the sat down*, only *sat down* matches; a text of one word has no pairs."""
    mixed, right, short = words("cat the sat down", "the cat sat down", "cat")
    checks.equal(tuple(matches(mixed, right, 2)), (1, 3), "The matches of pairs")
    checks.equal(tuple(matches(short, right, 2)), (0, 0), "The matches of pairs in one word")


def same() -> None:
    """A translation that says the same word for word has 1."""
    text = words("we all like the sea", "a word came back to the school")
    checks.true(abs(bleu(text, text) - 1) < 1e-9, f"It has {bleu(text, text)}.")


def brevity_by_hand() -> None:
    """*the cat sat* for *the cat sat down* has 0.7165 with n-grams up to 2."""
    score = bleu(words("the cat sat"), words("the cat sat down"), 2)
    checks.true(abs(score - 0.7165) < 1e-4, f"It has {score:.4f}.")


def too_long() -> None:
    """A translation that is too long loses precision, and nothing else: *a b c d* for *a b c* has √(3/4 · 2/3)."""
    score = bleu(words("a b c d"), words("a b c"), 2)
    checks.true(abs(score - math.sqrt(1 / 2)) < 1e-9, f"It has {score:.4f}; 0.7071 was expected.")


def all_sentences_together() -> None:
    """Matches are added up over all sentences first: a bad short sentence does not make everything 0."""
    score = bleu(words("x", "the cat sat on the mat"), words("y", "the cat sat on the mat"))
    expected = (6 / 7) ** (1 / 4)
    checks.true(abs(score - expected) < 1e-9, f"Two sentences have {score:.4f}; {expected:.4f} was expected.")


def nothing_matches() -> None:
    """If no four words in a row match, BLEU is 0, and not an error."""
    checks.equal(float(bleu(words("the cat sat on a mat"), words("the cat sits on a mat"))), 0.0, "BLEU")
    checks.equal(float(bleu(words("the cat"), words("the cat"))), 0.0, "BLEU of two words, with n-grams up to 4,")


CHECKS = [clipped_by_hand, pairs, same, brevity_by_hand, too_long, all_sentences_together, nothing_matches]


if __name__ == "__main__":
    from autograder.notebook import run_checks

    run_checks(CHECKS)
