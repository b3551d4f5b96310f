"""Find pairs of submissions that are unusually alike: a starting point for review, not a verdict.

Short answers to the same task are naturally alike. Therefore code shared by most of the class has a
low weight, code that occurs in a right answer of the course a lower weight than other code, and
code shared by only two students the highest.
"""

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from autograder.extras.similar.tokens import Code
from autograder.installation.distribution import install_extra
from autograder.records import InfrastructureError

# Calibrated on sample classes of thirty with planted copies that differ in names, order and
# comments.
GRAM = 6  # tokens in a gram, and the minimum length of a reported passage
KNOWN = 0.3  # weight of an unusual passage that occurs in one of the course's own answers
WORD = 0.02  # weight of each name, comment or string shared by only these two
MOST_WORDS = 10
LOOKED_AT = 10  # pairs compared in full for each listed one

Gram = tuple[str, ...]


@dataclass(frozen=True)
class Passage:
    """A shared passage: its lines in both submissions, and its tokens."""

    one: tuple[int, int]
    other: tuple[int, int]
    length: int


@dataclass(frozen=True)
class Pair:
    """Two submissions: `common` is the share of the shorter one that the other contains, `unusual`
    the same share weighted by rarity; `words` are names, comments and strings that only these two
    contain.
    """

    one: str
    other: str
    common: float
    unusual: float
    words: tuple[str, ...]
    passages: tuple[Passage, ...]

    @property
    def likeness(self) -> float:
        return min(1.0, self.unusual + WORD * min(len(self.words), MOST_WORDS))

    def as_record(self) -> dict[str, Any]:
        """Return the pair as a JSON-serializable dict."""
        return {
            "students": [self.one, self.other],
            "likeness": round(self.likeness, 3),
            "unusual": round(self.unusual, 3),
            "common": round(self.common, 3),
            "words": list(self.words),
            "passages": [
                {"lines": [list(p.one), list(p.other)], "tokens": p.length} for p in self.passages
            ],
        }


def alike(
    codes: Mapping[str, Code], known_answers: Iterable[Code], most: int, least: float
) -> list[Pair]:
    """Return the most similar pairs of these students' codes first, given the course's own answers."""
    known_answers = list(known_answers)
    weigh = _Weights(codes, known_answers)
    rare_words = _shared_by_two(codes, frozenset().union(*(code.words for code in known_answers)))
    candidates = _candidates(codes, weigh, rare_words)[: most * LOOKED_AT]
    pairs = [
        _pair(first, second, codes, weigh, rare_words.get((first, second), ()))
        for first, second in candidates
    ]
    listed = [pair for pair in pairs if pair.likeness >= least and pair.passages]
    return sorted(listed, key=lambda pair: (-pair.likeness, pair.one, pair.other))[:most]


def contained(answer: Code, code: Code) -> float:
    """Return the share of an answer's tokens that stand in a code in the same order, at least GRAM in a row.

    The order of functions and what else the code contains make no difference.
    """
    grams = frozenset(_grams(code.tokens))
    shared: set[int] = set()
    for start, gram in enumerate(_grams(answer.tokens)):
        if gram in grams:
            shared.update(range(start, start + len(gram)))
    return len(shared) / len(answer.tokens)


class _Weights:
    """The rarity of token sequences in a class, from 0 (in every submission) to 1 (in at most two)."""

    def __init__(self, codes: Mapping[str, Code], known_answers: Iterable[Code]) -> None:
        self.grams = {student: frozenset(_grams(code.tokens)) for student, code in codes.items()}
        self._count: Counter[Gram] = Counter()
        for grams in self.grams.values():
            self._count.update(grams)
        self._known = frozenset().union(*(_grams(code.tokens) for code in known_answers))

    def __call__(self, gram: Gram) -> float:
        students = len(self.grams)
        rarity = 1.0
        if students > 2:
            rarity = min(1.0, math.log(students / self._count[gram]) / math.log(students / 2))
        return rarity * (KNOWN if gram in self._known else 1.0)

    def of(self, tokens: Sequence[str]) -> float:
        """Return the weight of a passage: each token has the weight of the gram that begins with it.

        The last tokens have the weight of the last gram.
        """
        weights = [self(gram) for gram in _grams(tokens)]
        return sum(weights) + (len(tokens) - len(weights)) * weights[-1]


def _grams(tokens: Sequence[str]) -> list[Gram]:
    return [tuple(tokens[i : i + GRAM]) for i in range(max(1, len(tokens) - GRAM + 1))]


def _shared_by_two(
    codes: Mapping[str, Code], common: frozenset[str]
) -> dict[tuple[str, str], tuple[str, ...]]:
    users: dict[str, list[str]] = defaultdict(list)
    for student in sorted(codes):
        for word in codes[student].words - common:
            users[word].append(student)
    shared: dict[tuple[str, str], list[str]] = defaultdict(list)
    for word in sorted(users):
        if len(users[word]) == 2:
            shared[users[word][0], users[word][1]].append(word)
    return {pair: tuple(words) for pair, words in shared.items()}


def _candidates(
    codes: Mapping[str, Code], weigh: _Weights, words: Mapping[tuple[str, str], Sequence[str]]
) -> list[tuple[str, str]]:
    """Return all pairs that share unusual code, most similar first by a rough estimate."""
    users: dict[Gram, list[str]] = defaultdict(list)
    for student in sorted(codes):
        for gram in weigh.grams[student]:
            users[gram].append(student)
    shared: dict[tuple[str, str], float] = defaultdict(float)
    for gram, students in users.items():
        if len(students) > 1 and (weight := weigh(gram)) > 0:
            for pair in itertools.combinations(students, 2):
                shared[pair] += weight
    for pair, shared_words in words.items():
        shared[pair] += WORD * len(shared_words) * _shorter(codes, pair)
    return sorted(shared, key=lambda pair: (-shared[pair] / _shorter(codes, pair), pair))


def _shorter(codes: Mapping[str, Code], pair: tuple[str, str]) -> int:
    return min(len(codes[student].tokens) for student in pair)


def _pair(
    first_student: str, other: str, codes: Mapping[str, Code], weigh: _Weights, words: Sequence[str]
) -> Pair:
    first = codes[first_student]
    second = codes[other]
    passages = []
    common = 0
    unusual = 0.0
    for begin, at, length in _matches(first, second):
        common += length
        unusual += weigh.of(first.tokens[begin : begin + length])
        passages.append(Passage(_lines(first, begin, length), _lines(second, at, length), length))
    shorter = _shorter(codes, (first_student, other))
    return Pair(
        first_student,
        other,
        min(1.0, common / shorter),
        min(1.0, unusual / shorter),
        tuple(words),
        tuple(passages),
    )


def _matches(first: Code, second: Code) -> Iterable[tuple[int, int, int]]:
    """Yield equal passages; each function is compared with the most similar one, independent of position."""
    try:
        from rapidfuzz.distance import LCSseq
    except ModuleNotFoundError:
        missing = "Comparing submissions needs rapidfuzz."
        raise InfrastructureError(f"{missing} Install it: {install_extra('similar')}") from None
    theirs = [(begin, second.tokens[begin:end]) for begin, end in second.spans()]
    for begin, end in first.spans():
        tokens = first.tokens[begin:end]
        start, most_similar = max(
            theirs, key=lambda function: LCSseq.similarity(tokens, function[1])
        )
        for block in LCSseq.opcodes(tokens, most_similar):
            length = block.src_end - block.src_start
            if block.tag == "equal" and length >= GRAM:
                yield begin + block.src_start, start + block.dest_start, length


def _lines(code: Code, begin: int, length: int) -> tuple[int, int]:
    return code.lines[begin], code.lines[begin + length - 1]
