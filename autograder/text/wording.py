"""Format numbers and lists of names, the beginnings of sentences, and what messages have in common."""

import re
from collections.abc import Sequence

LISTED = 8
LONGEST = 200  # letters of a line
_BETWEEN = re.compile(r"['’-]|[,:;]$")  # may stand in a word, or behind it
_QUOTED = re.compile(r"^ {4}.*$|\"[^\"\n]*\"|“[^”\n]*”|`[^`\n]*[^`\w.\n][^`\n]*`", re.MULTILINE)
_GROUP = re.compile(r"\([^()\[\]]*\)|\[[^()\[\]]*\]")
_NUMBER = re.compile(r"(?<![\w`])-?\d[\w.,+-]*(?<![.,])|\b(?:nan|inf)\b", re.IGNORECASE)


MOST_QUESTIONS = 3
UNDECIDED = (
    "Different mistakes give these answers; one of these questions leads to yours. {questions}"
)
MANY_CAUSES = "Many different mistakes give these answers. Follow the numbers of this test through your code by hand."


def counted(number: int, thing: str) -> str:
    """`1 score` or `12 scores`."""
    return f"{number} {thing}{'' if number == 1 else 's'}"


def counted_points(points: float) -> str:
    """`1 point` or `2.5 points`."""
    return f"{round(points, 2):g} point{'' if points == 1 else 's'}"


def counted_are(number: int, thing: str) -> str:
    """`1 score is` or `12 scores are`."""
    return f"{counted(number, thing)} {'is' if number == 1 else 'are'}"


def listed(names: Sequence[str]) -> str:
    """Join the first names, by semicolons if one holds a comma, and the number of further ones."""
    between = "; " if any("," in name for name in names) else ", "
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return between.join(names[:LISTED]) + more


def joined(names: Sequence[str], most: int) -> str:
    """Join names as in a sentence: 'a', 'a and b', 'a, b, c, d and 3 more'."""
    rest = [f"{len(names) - most} more"] if len(names) > most else []
    *first, last = [*names[:most], *rest]
    return f"{', '.join(first)} and {last}" if first else last


def begun(sentence: str) -> str:
    """Capitalize the first letter of a sentence, unless its first word can only be a name in code.

    'the output is …' begins with 'The', 'vocab_size is …', 'k.T is …' and 'x is …' are unchanged.
    """
    word = _BETWEEN.sub("", sentence.split(" ", 1)[0])
    if not (word.isalpha() and word.islower()) or (len(word) == 1 and word != "a"):
        return sentence
    return sentence[:1].upper() + sentence[1:]


def message_skeleton(message: str) -> str:
    """The message without what differs between students who make the same error: numbers, quoted
    code, and groups in brackets such as arguments, shapes and lines of their file.

    Example: "The result of add(2, 3) is -1; 5 was expected." -> "The result of add… is …; … was
    expected."
    """
    text = _QUOTED.sub("…", message)
    count = 1
    while count:  # from the innermost brackets outwards
        text, count = _GROUP.subn("…", text)
    return " ".join(re.sub(r"…(\s*…)+", "…", _NUMBER.sub("…", text)).split())


def question_of(questions: Sequence[str]) -> str:
    """Return one question for mistakes that cannot be told apart, from the question of each."""
    different = list(dict.fromkeys(questions))
    if len(different) == 1:
        return different[0]
    if len(different) > MOST_QUESTIONS:
        return MANY_CAUSES
    return UNDECIDED.format(questions=" Or: ".join(different))


def article(name: str) -> str:
    """Return a name with its article: 'an IndexError', 'a tuple'."""
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


def cut(text: str, longest: int = LONGEST) -> str:
    """Cut text to one printable line of at most `longest` characters."""
    line = "".join(c if c.isprintable() else " " for c in text[: longest + 1])
    return line if len(line) <= longest else line[: longest - 1] + "…"
