"""The dotted names in a text: `torch.nn.LayerNorm` for `nn.LayerNorm`, whatever the alias of `nn`.

They are notes for a person: what ran in a test decides (see `autograder.bridge.inside.entries`). A
name has all meanings that imports and assignments anywhere in the text give it; nothing else is
followed, and nothing is executed.
"""

import ast
import builtins
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from autograder.source.pieces import names_in_dotted, pieces

DYNAMIC = {
    "getattr", "getattr_static", "getmembers", "getmodule", "attrgetter", "methodcaller", "get_field", "locate",
    "eval", "exec", "compile", "vars", "globals", "__import__", "import_module", "resolve_name", "_jit_get_operation",
    "__getattribute__", "__getattr__", "__globals__", "__annotations__", "get_annotations", "get_type_hints",
    "__closure__", "cell_contents", "setprofile", "_getframe",
}  # fmt: skip
DYNAMIC_MODULES = {  # or parts of torch
    "pickle", "marshal", "ctypes", "gc", "timeit", "runpy", "pydoc", "jit", "_C", "overrides",
}  # fmt: skip
# Code without these words reaches only what it names: neither modules by their names in a table, nor
# PyTorch's operators past its functions.
LEADING_ELSEWHERE = {
    "ops", "_ops", "_VF", "__dict__", "modules", "get_ipython", "builtins", "__builtins__", "f_builtins", "f_globals",
    "__self__", "__code__", "weights_only", "allow_pickle",
}  # fmt: skip
LEADING_ELSEWHERE |= DYNAMIC | DYNAMIC_MODULES
GIVEN = {*vars(builtins), "__builtins__", "get_ipython"}  # names that a text need not bind
METHODS = {"compile", "eval", "exec"}  # also methods of models and patterns, which look nothing up
RUN_AS_PYTHON = {
    "torch.jit",
    "torch.jit.script",
    "torch.jit.trace",
    "torch.jit.ignore",
    "torch.jit.unused",
}
_NAMING = (ast.Name, ast.Attribute, ast.Call)
MOST_MEANINGS = 20  # of a name
LONGEST_MEANING = 20  # components

Place = tuple[int, int]  # the cell and the line


def names_used(
    text: str, filename: str, wanted: Collection[str] | None = None
) -> dict[str, list[Any]]:
    """Return the dotted names in the text with their first places, as notes for a person.

    `uses` lists [name, line, cell], cell 0 for a `.py`; aliases are followed, so `from torch import
    nn as n; n.LayerNorm()` gives `torch.nn.LayerNorm`. `dynamic` lists what looks other names up in
    the same form. Both are empty if the text has no word that can lead to one of the `wanted` names.
    """
    if wanted is not None and not words_in(text, filename).lead_to(wanted):
        return {"uses": [], "dynamic": []}
    valid = [piece for piece in pieces(text, filename) if piece.is_valid]
    reader = NameReader([piece.nodes for piece in valid])
    numbers = [piece.cell for piece in valid]
    return {
        kind: [[name, line, numbers[cell]] for name, (cell, line) in places.items()]
        for kind, places in (("uses", reader.uses), ("dynamic", reader.dynamic))
    }


@lru_cache(maxsize=1)  # as for `pieces`
def words_in(text: str, filename: str) -> "Words":
    """Return the words of all pieces that Python can parse. Raises ValueError if a notebook is invalid."""
    words = Words()
    for piece in pieces(text, filename):
        if piece.is_valid:
            words.add(piece.nodes)
    return words


class Words:
    """The words of a text with which it can reach what is not its own."""

    def __init__(self) -> None:
        self._names = set[str]()
        self._attributes = set[str]()
        self._others = set[str]()  # imports, patterns, and texts such as "sys.modules"
        self._has_star = False

    def add(self, nodes: Iterable[ast.AST]) -> None:
        for node in nodes:
            if isinstance(node, ast.Name):
                self._names.add(node.id)
            elif isinstance(node, ast.Attribute):
                self._attributes.add(node.attr)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                self._others.update(names_in_dotted(node.value))
            elif isinstance(node, ast.Import | ast.ImportFrom):
                self._add_import(node)
            elif isinstance(node, ast.MatchClass):
                self._others.update(node.kwd_attrs)
            elif isinstance(node, ast.keyword) and node.arg in LEADING_ELSEWHERE:
                self._others.add(node.arg)

    def _add_import(self, node: ast.Import | ast.ImportFrom) -> None:
        imported = [alias.name for alias in node.names]
        self._has_star |= "*" in imported
        if isinstance(node, ast.ImportFrom):
            imported.append(node.module or "")
        for name in imported:
            self._others.update(name.split("."))

    def lead_to(self, names: Iterable[str]) -> bool:
        """Whether the text can reach one of these dotted names, or what it does not name."""
        last = {name.rpartition(".")[2] for name in names}
        return not LEADING_ELSEWHERE.union(last).isdisjoint(self.all())

    def all(self) -> set[str]:
        """Return them, without names that only the text can bind, and without methods such as `model.eval()`."""
        named = self._others | (self._names if self._has_star else self._names & GIVEN)
        words = named | (self._attributes - METHODS)
        if not any(word.endswith("sys") for word in words):
            words.discard("modules")
        return words


class NameReader:
    """Reads a text, or a notebook's cells in order: `uses` and `dynamic` are the first places of names."""

    def __init__(self, cells: Sequence[Sequence[ast.AST]]) -> None:
        self.uses: dict[str, Place] = {}
        self.dynamic: dict[str, Place] = {}
        self._meanings = defaultdict[str, dict[str, None]](dict)  # sets that keep their order
        self._stars: dict[str, None] = {}
        for nodes in cells:
            for node in nodes:
                self._bind(node)
        for cell, nodes in enumerate(cells):
            self._read(cell, nodes)

    def _bind(self, node: ast.AST) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                root = alias.name.split(".")[0]
                self._add(alias.asname or root, alias.name if alias.asname else root)
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            for alias in node.names:
                if alias.name == "*":
                    self._stars[module] = None
                else:
                    self._add(alias.asname or alias.name, f"{module}.{alias.name}")
        elif (
            isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr) and node.value is not None
        ):
            meanings = self._meant(node.value)
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if isinstance(target, ast.Name):
                    self._add(target.id, *meanings)

    def _add(self, name: str, *meanings: str) -> None:
        earlier = self._meanings[name]
        for meaning in meanings:
            if len(earlier) < MOST_MEANINGS and meaning.count(".") < LONGEST_MEANING:
                earlier[meaning] = None

    def _read(self, cell: int, nodes: Iterable[ast.AST]) -> None:
        inside = set[int]()  # the parts of chains that were read
        for node in nodes:
            if not isinstance(node, _NAMING) or id(node) in inside:
                continue
            root, names, links = _chain(node)
            inside.update(map(id, links))
            place = (cell, node.lineno)
            meanings = self._meanings_of(root, names)
            for name in meanings:
                self.uses.setdefault(name, place)
            first = root.id if isinstance(root, ast.Name) else ""
            for word in _looking_up([first, *names], meanings):
                self.dynamic.setdefault(word, place)

    def _meant(self, node: ast.expr) -> list[str]:
        """Return the dotted names that a chain of names can stand for."""
        root, names, _ = _chain(node)
        return self._meanings_of(root, names)

    def _meanings_of(self, root: ast.expr, names: Sequence[str]) -> list[str]:
        if not isinstance(root, ast.Name):
            return []
        meanings = self._meanings.get(root.id) or [f"{star}.{root.id}" for star in self._stars]
        return [".".join([meaning, *names]) for meaning in meanings]


def _chain(node: ast.expr) -> tuple[ast.expr, list[str], list[ast.expr]]:
    """Return the beginning of a chain of attributes, the attributes in order, and all nodes that name something in it.

    `getattr(thing, "name")` is an attribute, too.
    """
    names: list[str] = []
    links: list[ast.expr] = []
    while True:
        if isinstance(node, ast.Attribute):
            names.append(node.attr)
            node = node.value
        elif isinstance(node, ast.Call) and (name := _literal_name(node)):
            names.append(name)
            links.append(node.func)
            node = node.args[0]
        else:
            return node, names[::-1], links
        links.append(node)


def _literal_name(node: ast.Call) -> str:
    """Return the name in `getattr(thing, "name")`; "" for another call."""
    literal = node.args[1] if len(node.args) > 1 else None
    if (
        not isinstance(node.func, ast.Name)
        or node.func.id != "getattr"
        or not isinstance(literal, ast.Constant)
    ):
        return ""
    return literal.value if isinstance(literal.value, str) else ""


def _looking_up(words: list[str], meanings: Iterable[str]) -> Iterator[str]:
    """Yield what looks other names up: words of a chain, and modules among what it can stand for."""
    built_in = words[:1] == ["__builtins__"] or any(
        name.startswith("builtins.") for name in meanings
    )
    for number, word in enumerate(words):
        method = number > 0 and word in METHODS and not built_in
        if (word in DYNAMIC and not method) or (word == "__dict__" and number > 0):
            yield word
    for name in meanings:
        if name == "sys.modules" or name.startswith("sys.modules."):
            yield "sys.modules"
        if name not in RUN_AS_PYTHON:
            yield from DYNAMIC_MODULES.intersection(name.split("."))
