"""A failed check, and its sentence without what is secret in hidden tests: inputs and expected values."""

import re

_QUOTED = r"""(?<!\[)"[^"]*" | (?<![\w\[])'[^']*'(?!\w)"""
_LIST = r"(?<![\w\])])\[[^\[\]\d]*\d[^\[\]]*\]"  # [1, 2, 3], not table[3]
# -0.5, not norm2 or GPT-2
_NUMBER = r"(?<![\w-])[-+−]?\d(?:[\d,]*\d)?(?:\.\d+)?(?:e[-+]?\d+)?(?![\w])"
_DOMAIN = r"\bfrom\ \d+\ (?:to\ [A-Z]\w*(?:\ [-+]\ \d+)?|on)\b"  # from 0 to V - 1, from 2 on
_LITERAL = re.compile(f"{_LIST} | {_QUOTED} | {_NUMBER}", re.VERBOSE)
_DOMAIN_OR_LITERAL = re.compile(f"(?P<domain>{_DOMAIN}) | {_LITERAL.pattern}", re.VERBOSE)
_INPUT = re.compile(rf"{_LIST} | {_QUOTED} | (?<==){_NUMBER} | (?<==\ ){_NUMBER}", re.VERBOSE)


class CheckFailed(AssertionError):
    """A failed check; `str(error)` is the sentence for the student.

    `error.public` is the sentence for hidden tests, without inputs and expected values. By default,
    it is the full sentence with every literal (number, quoted text, list) replaced by an ellipsis.
    `could_be_rounding` if a number type with few digits explains the failure. `telling` is
    what says by itself which mistake it is, whatever chance and the student's own names are: known
    mistakes with the same text are recognised by it, and not by all answers.
    """

    def __init__(
        self,
        sentence: str,
        public: str | None = None,
        could_be_rounding: bool = False,
        telling: str = "",
    ) -> None:
        super().__init__(sentence)
        self.public = without_literals(sentence) if public is None else public
        self.could_be_rounding = could_be_rounding
        self.telling = telling


def without_literals(sentence: str) -> str:
    """Replace numbers, quoted texts and lists by an ellipsis: 'T = 9 is long' -> 'T = … is long'.

    What an argument may be stays: 'ids are whole numbers from 0 to V - 1'.
    """
    return _DOMAIN_OR_LITERAL.sub(lambda match: match["domain"] or "…", sentence)


def without_inputs(what: str) -> str:
    """Replace the inputs in a description by an ellipsis; shapes and positions stay.

    'causal_mask(5)' -> 'causal_mask(…)', 'row 2 for T = 9' -> 'row 2 for T = …'.
    """
    start = what.find("(")
    while start >= 0:
        end = _closing(what, start)
        if _LITERAL.search(what[start + 1 : end]) and not what[:start].endswith("shape "):
            what = what[: start + 1] + "…" + what[end:]
            end = start + 2
        start = what.find("(", end)
    return _INPUT.sub("…", what)


def _closing(text: str, start: int) -> int:
    depth = 0
    for at in range(start, len(text)):
        depth += (text[at] == "(") - (text[at] == ")")
        if depth == 0:
            return at
    return len(text)
