"""For instructors: a solution of `given/harder.py`. Students do not receive it."""

from collections import Counter
from itertools import pairwise

Pair = tuple[bytes, bytes]


def words(text: str) -> list[list[bytes]]:
    pieces = text.replace(" ", "\0 ").split("\0")
    return [[bytes([byte]) for byte in piece.encode("utf-8")] for piece in pieces if piece]


def merged(word: list[bytes], pair: Pair) -> list[bytes]:
    """The word with each such pair joined, from left to right."""
    joined: list[bytes] = []
    for token in word:
        if joined and (joined[-1], token) == pair:
            joined[-1] += token  # longer than pair[0], so it begins no second pair
        else:
            joined.append(token)
    return joined


def learn_merges(text: str, number: int) -> list[Pair]:
    parts, merges = words(text), []
    for _ in range(number):
        counts = Counter(pair for word in parts for pair in pairwise(word))
        if not counts:
            break
        merges.append(min(counts, key=lambda pair: (-counts[pair], pair)))
        parts = [merged(word, merges[-1]) for word in parts]
    return merges


def encode(text: str, merges: list[Pair]) -> list[bytes]:
    parts = words(text)
    for pair in merges:
        parts = [merged(word, pair) for word in parts]
    return [token for word in parts for token in word]
