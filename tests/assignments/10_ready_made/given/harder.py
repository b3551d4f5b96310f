"""Harder, and not graded: byte-pair encoding by hand (about 40 minutes, ●●○).

In Part 5 a library learned your tokens. Here you do it, in two functions of about ten lines each.

A text is cut into *words* first, before each space (a space belongs to the word behind it), and each word into its
bytes. Then, again and again: count how often two tokens stand side by side within a word, in the whole text; take the
pair that occurs most often; make it a token everywhere, from left to right. The list of pairs, in the order in which
they were learned, is all that has to be kept: a text is encoded by going through the same list in the same order.

If two pairs are equally frequent, take the one that comes first when pairs are sorted: `min` of the two.

**By hand.** `aaab aaab` is cut into `aaab` and `␣aaab`. The pair (a, a) occurs twice in each, 4 times in all; (a, b)
twice; (␣, a) once. So (a, a) becomes the token `aa`, and the words are `aa a b` and `␣ aa a b`: from the left, two of
the three a's are taken. Now (a, b) and (aa, a) occur twice; (a, b) comes first in order.

Write `words`, `learn_merges` and `encode`, and run `python harder.py`.
Each check stops after a minute of work.
"""

from collections import Counter
from itertools import pairwise

from autograder import checks

Pair = tuple[bytes, bytes]


def words(text: str) -> list[list[bytes]]:
    """The words of a text, each a list of single bytes: "a bé" gives [[b"a"], [b" ", b"b", b"\\xc3", b"\\xa9"]]."""
    pieces = text.replace(" ", "\0 ").split("\0")
    return [[bytes([byte]) for byte in piece.encode("utf-8")] for piece in pieces if piece]


def learn_merges(text: str, number: int) -> list[Pair]:
    """The first `number` pairs that become tokens (fewer if no two tokens are left side by side in a word)."""
    # TODO: as often as asked: count the pairs in all words, choose one, merge it in all words
    raise NotImplementedError("learn_merges is not written yet.")


def encode(text: str, merges: list[Pair]) -> list[bytes]:
    """The tokens of a text: its bytes, with the merges made one after the other; joined, they are the text again."""
    # TODO: for each merge in its order, join this pair in all words, from left to right
    raise NotImplementedError("encode is not written yet.")


def worked_example() -> None:
    """`aaab aaab` learns aa first, then ab."""
    checks.equal(learn_merges("aaab aaab", 2), [(b"a", b"a"), (b"a", b"b")], 'learn_merges("aaab aaab", 2)')


def encoded_by_hand() -> None:
    """With the tokens aa and ab, `aaaab` becomes aa, aa, b: the merges are made in their order."""
    checks.equal(encode("aaaab", [(b"a", b"a"), (b"a", b"b")]), [b"aa", b"aa", b"b"], 'encode("aaaab")')


def comes_back() -> None:
    """Joined, the tokens of any text are the text, with its spaces, accents and 🙂."""
    for text in ("  two  spaces ", "naïve 🙂 café", "", "\nline\n\n"):
        tokens = encode(text, learn_merges("the cat and the hat and the naïve café", 12))
        checks.equal(b"".join(tokens).decode("utf-8"), text, "The tokens, joined,")


def each_was_the_most_frequent() -> None:
    """Each learned pair is the most frequent one at its turn, and the first of those that are equally frequent."""
    text = "the moon told the sea a story and the sea told the moon a story and no word came alone " * 2
    merges = learn_merges(text, 25)
    assert len(merges) == 25, f"{len(merges)} pairs were learned; 25 were asked for, and the text has more."
    for turn, merge in enumerate(merges):
        counts: Counter[Pair] = Counter()
        for word in words(text):
            tokens = encode(b"".join(word).decode("utf-8"), merges[:turn])
            counts.update(pairwise(tokens))
        best = min(pair for pair, count in counts.items() if count == max(counts.values()))
        assert merge == best, f"Merge {turn + 1} is {merge}, but {best} occurs {counts[best]} times ({counts[merge]})."


def stops() -> None:
    """When each word is one token, there is nothing more to learn."""
    checks.equal(learn_merges("ab ab", 9), [(b"a", b"b"), (b" ", b"ab")], 'learn_merges("ab ab", 9)')


CHECKS = [worked_example, encoded_by_hand, comes_back, each_was_the_most_frequent, stops]


if __name__ == "__main__":
    from autograder.notebook import run_checks

    run_checks(CHECKS)
