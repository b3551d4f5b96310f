"""Suggest the word that was meant, and list the words that there are."""

import difflib
from collections.abc import Iterable


def did_you_mean(word: object, candidates: Iterable[str]) -> str:
    """Return `; did you mean `minutes`?` if a known word is similar or the only one with this prefix, else ""."""
    candidates = list(candidates)
    longer = [name for name in candidates if word and name.startswith(str(word))]
    close = longer[0] if len(longer) == 1 else closest(word, candidates)
    return f"; did you mean `{close}`?" if close else ""


def closest(word: object, candidates: Iterable[str]) -> str | None:
    """Return the known word most similar to `word`, or None."""
    return next(iter(difflib.get_close_matches(str(word), list(candidates), n=1, cutoff=0.6)), None)


def one_of(words: Iterable[str]) -> str:
    """Format words as `a`, `b` or `c`."""
    quoted = [f"`{word}`" for word in words]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} or {quoted[-1]}"
