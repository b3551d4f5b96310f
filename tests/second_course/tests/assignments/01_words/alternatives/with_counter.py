"""With collections.Counter and a set for each line."""

from collections import Counter, defaultdict

MARKS = ".,;:!?"


def words(text):
    return [word for word in (piece.strip(MARKS).lower() for piece in text.split()) if word]


def count_words(text):
    return dict(Counter(words(text)))


def make_index(lines):
    index = defaultdict(list)
    for number in range(len(lines)):
        for word in sorted(set(words(lines[number]))):
            index[word] += [number + 1]
    return dict(index)


def print_table(text):
    rows = sorted(count_words(text).items())
    rows.sort(key=lambda row: row[1], reverse=True)
    print("\n".join(f"{count} {word}" for word, count in rows))
