"""Words of texts that are drawn anew."""

import random

from autograder import checks, task

WORDS = ("salt", "pepper", "sugar", "flour", "milk", "egg", "oil", "rice")


def some_words(count):
    return [random.choice(WORDS) for _ in range(count)]


def shout(word):
    """The word as it may stand in a sentence."""
    return (
        random.choice(("{}", "{},", "{}!", "«{}»"))
        .format(random.choice((word, word.upper())))
        .strip("«»")
    )


@task(
    "count",
    2,
    needs="test_word_that_occurs_twice",
    promise="capital letters and the marks at the edge",
)
def test_counts_of_any_text(student, reference, seed):
    """Words are counted whatever their capital letters and the marks at their edges."""
    text = "\n".join(map(shout, some_words(20)))
    checks.equal(
        student.count_words(text), reference.count_words(text), "the result of count_words(…)"
    )


@task("count", 1, promise="What consists of marks alone is no word.")
def test_marks_alone_are_no_word(student, reference, seed):
    """Marks that stand alone are not counted."""
    text = f"{random.choice(WORDS)} ... !? {random.choice(WORDS)}"
    checks.equal(
        student.count_words(text), reference.count_words(text), "the result of count_words(…)"
    )


@task(
    "index",
    3,
    needs="test_index_of_two_lines",
    promise="A line in which a word occurs twice is listed once.",
)
def test_index_of_any_lines(student, reference, seed):
    """Each word has the numbers of its lines, each once and in order."""
    lines = [" ".join(some_words(6)) for _ in range(5)]
    checks.equal(
        student.make_index(lines), reference.make_index(lines), "the result of make_index(…)"
    )


@task("table", 1, promise="words that are equally frequent come in the order of the alphabet")
def test_equally_frequent_words_come_in_order(student, reference, seed, capsys):
    """Words that are equally frequent come in the order of the alphabet."""
    text = " ".join(some_words(12) + list(WORDS))
    student.print_table(text)
    mine = capsys.readouterr().out
    reference.print_table(text)
    checks.equal(mine, capsys.readouterr().out, "the printed text")
