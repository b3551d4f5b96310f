# %% [markdown]
# # Words
#
# A telegram was paid by the word, so people counted before they wrote. Which word of a letter cost most in the
# end, because it came again and again? A dictionary finds out.

# %%
from __future__ import annotations

MARKS = ".,;:!?"


# %% [markdown]
# ## Part 1 · How often each word occurs
#
# `"Stop. Do not stop!"` has the word *stop* twice: capital letters and the marks at the edge of a word do not
# count. What consists of marks alone is no word.


# %%
def count_words(text: str) -> dict[str, int]:
    """How often each word occurs: count_words("Stop. Do not stop!") is {"stop": 2, "do": 1, "not": 1}."""
    # TODO: split the text at its white space, remove MARKS at the edges, and count the words in small letters
    ### BEGIN SOLUTION
    counts: dict[str, int] = {}
    for piece in text.split():
        word = piece.strip(MARKS).lower()
        if word:
            counts[word] = counts.get(word, 0) + 1
    return counts
    ### END SOLUTION


# %% part="count"

# %% [markdown]
# ## Part 2 · Where each word stands
#
# The index of a book lists the pages of each word. Ours lists lines, which are counted from 1. A line in which
# a word occurs twice is listed once. To think about: why do people count lines from 1, and Python from 0?


# %%
def make_index(lines: list[str]) -> dict[str, list[int]]:
    """The numbers of the lines with each word, in order: make_index(["a b", "b b"]) is {"a": [1], "b": [1, 2]}."""
    # TODO: for each line and its number, append the number to the list of each of its words
    ### BEGIN SOLUTION
    index: dict[str, list[int]] = {}
    for number, line in enumerate(lines, start=1):
        for word in count_words(line):
            index.setdefault(word, []).append(number)
    return index
    ### END SOLUTION


# %% part="index"

# %% [markdown]
# ## Part 3 · A table on the screen
#
# The most frequent word comes first; words that are equally frequent come in the order of the alphabet.


# %%
def print_table(text: str) -> None:
    """Prints a line for each word: print_table("no no yes") prints `2 no` and then `1 yes`."""
    # TODO: sort the words by how often they occur, then by the alphabet, and print each with its count before it
    ### BEGIN SOLUTION
    counts = count_words(text)
    for word in sorted(counts, key=lambda word: (-counts[word], word)):
        print(counts[word], word)
    ### END SOLUTION


# %% part="table"
