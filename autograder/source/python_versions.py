"""Text that only a newer Python than the present one can read, or that only a newer one's library has."""

import ast
import io
import re
import sys
import tokenize
from dataclasses import dataclass

OLDEST = (3, 10)  # that a course's grader may run
MOST_LETTERS = 300  # of a line that is searched: not all of the expressions take linear time


@dataclass(frozen=True)
class Newer:
    """A piece of a text, in one of its lines, and the first version of Python that reads it."""

    what: str
    version: tuple[int, int]
    line: int = 0

    @property
    def needs(self) -> str:
        return f"{self.what} Python {dotted(self.version)} or later"


_F_STRINGS = "an f-string with its own quotes, a backslash or a comment inside the braces needs"
_SYNTAX = (
    (
        r"^\s*(?:async\s+def|def|class)\s+\w+\s*\[",
        "type parameters in square brackets need",
        (3, 12),
    ),
    (r"^\s*type\s+\w+\s*(?:\[.*\]\s*)?=", "the statement `type` needs", (3, 12)),
    (r"""\b[rR]?[fF][rR]?(["']).*?\{[^}]*(?:\1[^}]*\}|\\|#)""", _F_STRINGS, (3, 12)),
    (r"^\s*except\s*\*", "`except*` needs", (3, 11)),
    (r"\w\[[^\]#]*(?<![\w)*\s])\s*\*\s*\w", "a star inside square brackets needs", (3, 11)),
    (
        r"^\s*except\s+[\w.]+\s*,\s*[\w.]+",
        "`except` with several types without parentheses needs",
        (3, 14),
    ),
    (r"""(?<![\w"'])(?:[tT][rR]?|[rR][tT])["']""", "a t-string needs", (3, 14)),
)

MODULES = {
    "tomllib": (3, 11),
    "annotationlib": (3, 14),
    "compression": (3, 14),
    "string.templatelib": (3, 14),
    "concurrent.interpreters": (3, 14),
}
NAMES = {
    "typing.Self": (3, 11),
    "typing.Never": (3, 11),
    "typing.LiteralString": (3, 11),
    "typing.Required": (3, 11),
    "typing.NotRequired": (3, 11),
    "typing.Unpack": (3, 11),
    "typing.TypeVarTuple": (3, 11),
    "typing.assert_never": (3, 11),
    "typing.assert_type": (3, 11),
    "typing.reveal_type": (3, 11),
    "typing.dataclass_transform": (3, 11),
    "typing.override": (3, 12),
    "typing.TypeAliasType": (3, 12),
    "typing.TypeIs": (3, 13),
    "typing.ReadOnly": (3, 13),
    "typing.NoDefault": (3, 13),
    "enum.StrEnum": (3, 11),
    "enum.ReprEnum": (3, 11),
    "enum.member": (3, 11),
    "enum.nonmember": (3, 11),
    "math.cbrt": (3, 11),
    "math.exp2": (3, 11),
    "math.sumprod": (3, 12),
    "math.fma": (3, 13),
    "itertools.batched": (3, 12),
    "datetime.UTC": (3, 11),
    "operator.call": (3, 11),
    "contextlib.chdir": (3, 11),
    "copy.replace": (3, 13),
    "warnings.deprecated": (3, 13),
    "collections.abc.Buffer": (3, 12),
    "functools.Placeholder": (3, 14),
}


def for_students() -> str:
    """Return `a Python from 3.10 to 3.11`: the versions whose text a grader with the present one reads."""
    oldest = dotted(OLDEST)
    here = dotted(present())
    return f"Python {oldest}" if oldest == here else f"a Python from {oldest} to {here}"


def dotted(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))


def present() -> tuple[int, int]:
    """The version of the Python that runs this."""
    return sys.version_info[:2]


def newer_syntax(line: str, python: tuple[int, int] | None = None) -> Newer | None:
    """Return what only a newer Python reads in a line that this one cannot read, or None."""
    python = python or present()
    for pattern, what, version in _SYNTAX:
        if version > python and re.search(pattern, line[:MOST_LETTERS]):
            return Newer(what, version)
    return None


def newer_name(name: str, python: tuple[int, int] | None = None) -> Newer | None:
    """Return the version that brought a module or a name of the standard library, if it is newer; or None."""
    version = NAMES.get(name) or MODULES.get(name)
    if version is None or version <= (python or present()):
        return None
    return Newer(f"`{name}` needs", version)


def newer_than_oldest(code: str) -> Newer | None:
    """Return the first piece of a text, which this Python can read, that the oldest Python of graders cannot."""
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    uses = [*_named(tree), *_nested_f_strings(code)]
    try:
        ast.parse(code, feature_version=OLDEST)
    except SyntaxError as error:
        uses.append(_of_error(code, error.lineno or 1))
    return min(uses, key=lambda use: use.line, default=None)


def _of_error(code: str, last: int) -> Newer:
    """Return what is newer in the last line of these that shows it: Python can point to the end of a statement."""
    lines = code.splitlines()[:last]
    for number in range(len(lines), 0, -1):
        if syntax := newer_syntax(lines[number - 1], OLDEST):
            return Newer(syntax.what, syntax.version, number)
    return Newer("this needs", present(), last)


def _named(tree: ast.Module) -> list[Newer]:
    uses = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            names.append(node.module)
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        newer = [newer_name(name, OLDEST) for name in names]
        uses += [Newer(use.what, use.version, node.lineno) for use in newer if use]
    return uses


def _nested_f_strings(code: str) -> list[Newer]:
    """Return the f-strings whose braces hold what Python reads there since 3.12; needs 3.12 itself."""
    start = getattr(tokenize, "FSTRING_START", None)
    end = getattr(tokenize, "FSTRING_END", None)
    if start is None:
        return []
    uses = []
    outside = list[tokenize.TokenInfo]()
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        if token.type == end:
            outside.pop()
        elif outside and _is_new_inside(token, outside[-1], start):
            uses.append(Newer(_F_STRINGS, (3, 12), token.start[0]))
        if token.type == start:
            outside.append(token)
    return uses


def _is_new_inside(token: tokenize.TokenInfo, outside: tokenize.TokenInfo, start: int) -> bool:
    if token.type == tokenize.COMMENT:
        return True
    if token.type not in (start, tokenize.STRING):
        return False
    return _quotes(token) == _quotes(outside) or "\\" in token.string


def _quotes(token: tokenize.TokenInfo) -> str:
    text = token.string.lstrip("rRbBuUfFtT")
    return text[:3] if text[:3] in ('"""', "'''") else text[:1]
