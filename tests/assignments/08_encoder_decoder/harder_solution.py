"""For instructors: a solution of `given/harder.py`. Students do not receive it."""

import math
from collections import Counter


def ngrams(text: list[str], n: int) -> Counter:
    return Counter(tuple(text[start : start + n]) for start in range(len(text) - n + 1))


def matches(translation: list[str], person: list[str], n: int) -> tuple[int, int]:
    ours, theirs = ngrams(translation, n), ngrams(person, n)
    return (ours & theirs).total(), ours.total()


def bleu(translations: list[list[str]], persons: list[list[str]], longest: int = 4) -> float:
    logarithms = []
    for n in range(1, longest + 1):
        matched, total = map(sum, zip(*(matches(a, b, n) for a, b in zip(translations, persons))))
        if not matched:
            return 0.0
        logarithms.append(math.log(matched / total))
    c, r = (sum(map(len, texts)) for texts in (translations, persons))
    return math.exp(sum(logarithms) / longest + min(0.0, 1 - r / c))
