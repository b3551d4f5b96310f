"""A student's text in pieces: a script, or the cells of a notebook. Each is parsed and compiled once."""

import __future__

import ast
import functools
import inspect
import operator
import types
from collections.abc import Iterator
from functools import cached_property, lru_cache

from autograder.source.text import cells, leaves_main_out, without_main

_FUTURES = functools.reduce(
    operator.or_, (getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)
)


class Piece:
    """One piece. Its tree and its code are made when they are first needed, with the exceptions of `compile`."""

    def __init__(self, name: str, code: str, leaves_main_out: bool) -> None:
        self.name = name
        self.code = code
        self._leaves_main_out = leaves_main_out

    @property
    def cell(self) -> int:
        """The number of the cell; 0 in a script."""
        return int(self.name.rpartition(" cell ")[2]) if " cell " in self.name else 0

    @property
    def is_valid(self) -> bool:
        """Whether Python can parse it; otherwise it cannot run."""
        try:
            return bool(self.tree)
        except (SyntaxError, ValueError, RecursionError, MemoryError):  # ValueError: null bytes
            return False

    @cached_property
    def tree(self) -> ast.Module:
        """All but what stands below `if __name__ == "__main__":`."""
        return without_main(self.code, self.name, self._leaves_main_out)

    @cached_property
    def nodes(self) -> list[ast.AST]:
        return [*_nodes_of(self.tree)]

    @cached_property
    def statements(self) -> list[types.CodeType]:
        """The code of each statement; if it is an expression, it returns the value."""
        flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        # these two concern other statements
        if "__future__" in self.code or "global" in self.code:
            whole = compile(self.tree, self.name, "exec", flags, dont_inherit=True)
            flags |= whole.co_flags & _FUTURES
        return [_compiled(statement, self.name, flags) for statement in self.tree.body]

    @property
    def waits(self) -> bool:
        """Whether a statement at the top waits for something."""
        return any(code.co_flags & inspect.CO_COROUTINE for code in self.statements)


@lru_cache(maxsize=1)  # a worker reads the names in a text, runs it, and can run it again
def pieces(text: str, filename: str) -> tuple[Piece, ...]:
    """Return the pieces to run. Raises ValueError if a notebook is invalid."""
    skip_main = leaves_main_out(text)
    return tuple(Piece(name, code, skip_main) for name, code in cells(text, filename))


def _compiled(statement: ast.stmt, name: str, flags: int) -> types.CodeType:
    tree: ast.Expression | ast.Module = ast.Module([statement], [])
    mode = "exec"
    if isinstance(statement, ast.Expr):
        tree = ast.Expression(statement.value)
        mode = "eval"
    code: types.CodeType = compile(tree, name, mode, flags, dont_inherit=True)
    return code


def _nodes_of(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield the nodes in the order of the text, all but `ctx`, which only says how a name is used.

    Without recursion: an expression can be thousands of terms long.
    """
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        inside: list[ast.AST] = []
        for name in node._fields:
            field = getattr(node, name, None)
            if isinstance(field, list):
                inside += [part for part in field if isinstance(part, ast.AST)]
            elif isinstance(field, ast.AST) and name != "ctx":
                inside.append(field)
        waiting += reversed(inside)


def names_in_dotted(text: str) -> list[str]:
    """Return the names in a text such as "torch.nn"; none if it is not one name, or names with dots."""
    return text.split(".") if text.replace(".", "_").isidentifier() else []
