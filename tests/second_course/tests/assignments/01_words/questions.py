"""Small tables of what the code gives, for questions about a student's own code."""

import random


def counts(student, dice, times: int = 1, capitals: bool = False):
    """How often words of a short list occur, in the order of the alphabet."""
    draw = random.Random(dice.initial_seed())
    words = [draw.choice(["salt", "milk", "rice"]) for _ in range(5)] + ["egg"]
    text = " ".join(word for word in words for _ in range(times))
    counted = student.count_words(text.upper() + " egg egg" if capitals else text)
    return [counted[word] for word in sorted(counted)]
