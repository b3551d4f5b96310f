"""A student's own code as tokens, independent of names, comments, formatting and the stub.

Two texts that differ only in variable names, spacing of annotations, comments or line breaks give
the same tokens. Nothing is executed, and a text that is not valid Python is tokenized as well.
"""

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pygments.lexers.python import PythonLexer
from pygments.token import Token

from autograder.course.definitions import Definition

NAME = "name"
TEXT = "text"  # placeholders for every own name, and for every string
_WORD = re.compile(r"[^\W\d]\w*")
_NAMED_BY: dict[type[ast.AST], str] = {  # the attributes with a name that a text defines
    **{ast.FunctionDef: "name", ast.AsyncFunctionDef: "name", ast.ClassDef: "name", ast.arg: "arg"},
    **{ast.Name: "id", ast.Attribute: "attr", ast.alias: "asname"},
}


@dataclass(frozen=True)
class Code:
    """The tokens of one text's own code, each with its line and the index of its function.

    `words` are features that a copy keeps unless they are edited: own names, comments and strings.
    """

    text: str
    tokens: tuple[str, ...]
    lines: tuple[int, ...]
    functions: tuple[int, ...]
    words: frozenset[str]

    def spans(self) -> list[tuple[int, int]]:
        """The range of each function's tokens."""
        starts = [i for i, at in enumerate(self.functions) if i == 0 or at != self.functions[i - 1]]
        return list(zip(starts, [*starts[1:], len(self.tokens)]))


@dataclass(frozen=True)
class Stub:
    """The given code: names that no student changes, and lines that belong to no student."""

    names: frozenset[str]
    lines: frozenset[tuple[str, ...]]
    words: frozenset[str]

    def has(self, line: Sequence[str]) -> bool:
        """Whether a line was given: unchanged, or the header of a given function without its annotations."""
        return tuple(line) in self.lines or (
            line[0] in ("def", "class") and not self.names.isdisjoint(line[1:2])
        )

    @classmethod
    def of(cls, text: str) -> "Stub":
        """Create the record of a stub, which must be valid Python."""
        names = frozenset(n.name for n in ast.walk(ast.parse(text)) if isinstance(n, Definition))
        tokens, words = _read(text, names)
        return cls(names, frozenset(tuple(line) for line in tokens.values()), frozenset(words))


def own_code(text: str, stub: Stub) -> Code:
    """Return the tokens of a text without the lines of the stub."""
    by_line, words = _read(text, stub.names)
    rows: list[tuple[str, int, int]] = []
    function = 0
    for line, tokens in sorted(by_line.items()):
        function += tokens[0] in ("def", "class")
        if not stub.has(tokens):
            rows += [(token, line, function) for token in tokens]
    columns = tuple(zip(*rows)) or ((), (), ())
    return Code(text, columns[0], columns[1], columns[2], frozenset(words) - stub.words)


def _read(text: str, given: frozenset[str]) -> tuple[dict[int, list[str]], set[str]]:
    own_names = _own_names(text)
    lines: dict[int, list[str]] = {}
    words: set[str] = set(own_names or ()) - given
    before = previous = ""
    for kind, value, line in _lexed(text):
        if kind in Token.Comment:
            words.add(" ".join(value.strip("#% ").split()))
            continue
        tokens = lines.setdefault(line, [])
        if kind in Token.Literal.String:
            words |= {value.strip()} if kind not in Token.Literal.String.Affix else set()
            token = TEXT
        else:
            token = (
                NAME
                if (before, previous) == ("self", ".")
                else _token(kind, value, previous, own_names, given)
            )
        if token != TEXT or tokens[-1:] != [TEXT]:  # adjacent string tokens are merged
            tokens.append(token)
        before = previous
        previous = value
    return {line: tokens for line, tokens in lines.items() if tokens}, {
        word for word in words if len(word) > 3
    }


def _lexed(text: str) -> Iterator[tuple[Token, str, int]]:
    """Yield all tokens with their lines, except spaces and docstrings."""
    line = 1
    for kind, value in PythonLexer(stripnl=False).get_tokens(text):
        if value.strip() and kind not in Token.Literal.String.Doc:
            yield kind, value.strip(), line
        line += value.count("\n")


def _token(
    kind: Token, value: str, previous: str, own_names: set[str] | None, given: frozenset[str]
) -> str:
    """Replace own names by a placeholder; names of libraries and given names are kept."""
    if (
        value in given
        or not _WORD.fullmatch(value)
        or kind in Token.Keyword
        or kind in Token.Operator
    ):
        return value
    if own_names is None:
        return value if previous == "." else NAME
    return NAME if value in own_names or value == "self" else value


def _own_names(text: str) -> set[str] | None:
    """Return the names defined in a text; None if it is not valid Python."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    nodes = ast.walk(tree)  # without recursion: a hostile text can be nested deeply
    defining = (
        node for node in nodes if not isinstance(getattr(node, "ctx", None), (ast.Load, ast.Del))
    )
    return {
        getattr(node, _NAMED_BY[type(node)]) for node in defining if type(node) in _NAMED_BY
    } - {None}
