"""The dotted names used in a text: `torch.nn.LayerNorm` for `nn.LayerNorm`, whatever the alias of `nn`.

A name refers to its last binding in the order of the text; a binding in a branch or loop may not happen, so it adds a
meaning. A function's body runs later, so it is read after the surrounding text. Nothing is executed.

A mention alone is no use: an import, an annotation, the classes of an `isinstance`, the sides of a comparison. Names in
a top-level function or class do not count if the entry points do not reach it, or if a later definition of the same
name replaces it. If a text looks up names at run time, all its definitions count as reached.

Modules are not followed through calls, containers, attributes of objects or computed names: the worker records
forbidden functions that were entered by such roads, and lookups by computed names are listed as `dynamic`.
"""

import ast
from collections import ChainMap
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field

DYNAMIC = {
    "getattr", "getattr_static", "getmembers", "getmodule", "attrgetter", "methodcaller", "get_field", "locate",
    "eval", "exec", "compile", "vars", "globals", "__import__", "import_module", "resolve_name", "_jit_get_operation",
    "__getattribute__", "__getattr__", "__globals__", "__annotations__", "get_annotations", "get_type_hints",
}  # fmt: skip
DYNAMIC_MODULES = {"pickle", "marshal", "ctypes", "gc", "timeit", "runpy", "pydoc", "jit", "_C"}  # or parts of torch
METHODS = {"compile", "eval", "exec"}  # also methods of models and patterns, which look nothing up
NOTHING: frozenset[str] = frozenset()  # bound to a value that was not imported

Place = tuple[int, int]  # the cell and the line
_NAMES = (ast.Name, ast.Attribute, ast.Tuple, ast.List, ast.Subscript, ast.BinOp, ast.BitOr, ast.Constant)
_ROWS = (ast.Tuple, ast.List)
_BLOCKS = (ast.stmt, ast.excepthandler, ast.match_case)


@dataclass(eq=False)
class Definition:
    """A top-level function or class: the names it uses and refers to, and whether it is replaced later."""

    uses: dict[str, Place] = field(default_factory=dict)
    references: set[str] = field(default_factory=set)
    replaced: bool = False


class NameReader:
    """Reads a text, or a notebook's cells in order, and collects names with their places."""

    def __init__(self, trees: Iterable[ast.Module], skip_main: bool = False) -> None:
        """With `skip_main`, the block of `if __name__ == "__main__":` is not read; it must not run, either."""
        self.dynamic: dict[str, Place] = {}
        self._skip_main = skip_main
        self._top = self._owner = Definition()  # the statements outside of definitions
        self._definitions: dict[str, list[Definition]] = {}
        self._aliased: set[str] = set()  # names that the top refers to without calling them
        self._called: set[int] = set()
        self._stars: set[str] = set()
        self._names = self._around = ChainMap[str, frozenset[str]]()  # the scope, and the one that functions in it see
        self._certain = True  # outside of branches and loops
        self._waiting: list[Callable[[], None]] = []  # the bodies of functions
        self._deferred = False
        for self._cell, tree in enumerate(trees):
            self._run(tree.body)
        self._deferred = True
        while self._waiting:
            self._waiting.pop()()

    def uses(self, entry_points: Collection[str] | None = None) -> dict[str, Place]:
        """Return the first place of each name used at the top level or reachable from the entry points.

        Entry points None stand for all definitions that are not replaced.
        """
        alive = {
            name: [each for each in same if self.dynamic or not each.replaced or name in self._aliased]
            for name, same in self._definitions.items()
        }
        waiting = set(alive)
        if entry_points is not None and not self.dynamic:
            waiting &= {*entry_points, *self._top.references}
        found, reached = dict(self._top.uses), set[str]()
        while waiting:
            reached.add(name := waiting.pop())
            for each in alive[name]:
                waiting |= (each.references & alive.keys()) - reached
                for used, place in each.uses.items():
                    _keep_first(found, used, place)
        return found

    def _run(self, body: Iterable[ast.stmt]) -> None:
        """Read statements in order, without recursion for blocks, so that a thousand `elif` do not nest."""
        waiting: list[tuple[ast.AST, bool]] = []
        waiting += [(statement, True) for statement in body][::-1]
        while waiting:
            node, self._certain = waiting.pop()
            getattr(self, f"_read_{type(node).__name__}", self._look_at_head)(node)
            if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                certain = self._certain and isinstance(node, (ast.With, ast.AsyncWith))
                inner = [each for each in ast.iter_child_nodes(node) if isinstance(each, _BLOCKS)]
                if self._skip_main and isinstance(node, ast.If) and asks_for_main(node.test):
                    inner = inner[len(node.body) :]
                waiting += [(each, certain) for each in reversed(inner)]

    def _look_at_head(self, node: ast.AST) -> None:
        for part in _assigned_last(node):
            if not isinstance(part, (*_BLOCKS, ast.pattern)):
                self._look(part)
        if isinstance(node, ast.ExceptHandler) and node.name:
            self._names[node.name] = NOTHING

    def _read_Import(self, node: ast.Import) -> None:
        for name in node.names:
            root = name.name.split(".")[0]
            self._bind(name.asname or root, frozenset([name.name if name.asname else root]))

    def _read_ImportFrom(self, node: ast.ImportFrom) -> None:
        module = "." * node.level + (node.module or "")
        for name in node.names:
            if name.name == "*":
                self._stars.add(module)
            else:
                self._bind(name.asname or name.name, frozenset([f"{module}.{name.name}"]))

    def _read_Assign(self, node: ast.Assign) -> None:
        self._look(node.value)
        for target in node.targets:
            self._assign(target, node.value)

    def _assign(self, target: ast.expr, value: ast.expr) -> None:
        """Bind a name to what a value means, and the names of a tuple to the parts of a literal one."""
        if isinstance(target, ast.Name):
            self._bind(target.id, self._meant(value))
        elif isinstance(target, _ROWS) and isinstance(value, _ROWS) and len(target.elts) == len(value.elts):
            for part, each in zip(target.elts, value.elts):
                self._assign(part, each)
        else:
            self._look(target)

    def _read_For(self, node: ast.For | ast.AsyncFor | ast.comprehension) -> None:
        self._look(node.iter)
        self._look(node.target)
        certain, self._certain = self._certain, False
        for value in getattr(node.iter, "elts", ()):
            self._assign(node.target, value)
        self._certain = certain

    _read_AsyncFor = _read_For

    def _read_Match(self, node: ast.Match) -> None:
        """Read `match nn: case object(LayerNorm=norm)`, which uses `nn.LayerNorm`."""
        self._look(node.subject)
        waiting = [(case.pattern, self._meant(node.subject)) for case in node.cases]
        while waiting:
            pattern, full = waiting.pop()
            self._note(full, pattern.lineno)
            if isinstance(pattern, ast.MatchAs) and pattern.name:
                self._bind(pattern.name, full)
            inside = [each for each in ast.iter_child_nodes(pattern) if isinstance(each, ast.pattern)]
            if isinstance(pattern, ast.MatchClass):
                inside = pattern.patterns
                for attribute, inner in zip(pattern.kwd_attrs, pattern.kwd_patterns):
                    waiting.append((inner, frozenset(f"{name}.{attribute}" for name in full)))
            waiting += [(each, full) for each in inside]

    def _read_AnnAssign(self, node: ast.AnnAssign) -> None:
        self._look_at_annotation(node.annotation)
        if node.value is not None:
            self._read_Assign(ast.Assign([node.target], node.value))

    def _read_ClassDef(self, node: ast.ClassDef) -> None:
        for part in (*node.decorator_list, *node.bases, *(keyword.value for keyword in node.keywords)):
            self._look(part)
        names, owner, certain = self._names, self._owner, self._certain
        self._owner, self._names = self._begin(node), names.new_child()
        self._run(node.body)
        self._owner, self._names, self._certain = owner, names, certain
        self._bind(node.name, NOTHING)

    def _read_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        for part in node.decorator_list:
            self._look(part)
        self._look_at_annotation(node.returns)
        self._bind(node.name, NOTHING)
        self._later(node.args, lambda: self._run(node.body), self._begin(node))

    _read_AsyncFunctionDef = _read_FunctionDef

    def _begin(self, node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> Definition:
        """Return the owner of a definition's contents: the enclosing one, or a new one at the top level."""
        if self._owner is not self._top:
            return self._owner
        same = self._definitions.setdefault(node.name, [])
        for earlier in same if self._certain else ():
            earlier.replaced = True
        same.append(Definition())
        return same[-1]

    def _later(self, arguments: ast.arguments, read_body: Callable[[], None], owner: Definition) -> None:
        """Read a function's body, which belongs to `owner`, after all surrounding text."""
        for part in ast.iter_child_nodes(arguments):
            if isinstance(part, ast.arg):
                self._look_at_annotation(part.annotation)
            else:
                self._look(part)
        names = self._around.new_child(
            {part.arg: NOTHING for part in ast.iter_child_nodes(arguments) if isinstance(part, ast.arg)}
        )
        positional = [*arguments.posonlyargs, *arguments.args]
        pairs = [*zip(positional[::-1], arguments.defaults[::-1]), *zip(arguments.kwonlyargs, arguments.kw_defaults)]
        names.update({part.arg: self._meant(default) for part, default in pairs if default is not None})
        cell = self._cell

        def read() -> None:
            self._cell, self._owner, self._names, self._around = cell, owner, names, names
            read_body()

        self._waiting.append(read)

    def _bind(self, name: str, full: frozenset[str]) -> None:
        self._names[name] = full if self._certain else full | self._names.get(name, NOTHING)

    def _look(self, node: ast.AST) -> None:
        """Collect the names in an expression without recursion, as it can be thousands of terms long."""
        waiting = [node]
        while waiting:
            part = waiting.pop()
            if isinstance(part, (ast.Attribute, ast.Name)):
                waiting += self._look_at_chain(part)
            elif isinstance(part, ast.Lambda):
                self._later(part.args, lambda body=part.body: self._look(body), self._owner)  # type: ignore[misc]
            elif isinstance(part, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)):
                self._look_into(part)
            else:
                if isinstance(part, ast.Call):
                    self._called.add(id(part.func))
                    self._note(self._meant(part), part.lineno)
                elif isinstance(part, ast.Subscript) and "sys.modules" in self._meant(part.value):
                    self._note_dynamic("sys.modules", part.lineno)
                waiting += [each for each in _assigned_last(part)[::-1] if not self._is_mention(part, each)]
                if isinstance(part, ast.NamedExpr):
                    waiting.remove(part.target)
                    self._assign(part.target, part.value)

    def _look_into(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> None:
        names, certain = self._names, self._certain
        self._names, self._certain = names.new_child(), True
        for generator in node.generators:
            self._read_For(generator)
            for part in generator.ifs:
                self._look(part)
        for part in (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,):
            self._look(part)
        self._names, self._certain = names, certain

    def _look_at_annotation(self, node: ast.expr | None) -> None:
        """Read an annotation, which only mentions names unless a part of it is called or bound."""
        if node is not None and not _only_names(node):
            self._look(node)

    def _is_mention(self, around: ast.AST, node: ast.AST) -> bool:
        """Whether a part of an expression is only compared: in a comparison, or as classes of `isinstance`."""
        if isinstance(around, ast.Compare):
            return isinstance(node, ast.Attribute) and _only_names(node) and bool(self._meant(node))
        if isinstance(around, ast.Call) and isinstance(around.func, ast.Name):
            asks = around.func.id in ("isinstance", "issubclass") and around.func.id not in self._names
            return asks and node in around.args[1:] and _only_names(node)
        return False

    def _look_at_chain(self, node: ast.Attribute | ast.Name) -> list[ast.expr]:
        """Record `a.b.c` as one use; return the rest to read if the chain has another beginning."""
        root, parts = _chain(node)
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            self._bind(node.id, NOTHING)
            return []
        names = [root.id, *parts] if isinstance(root, ast.Name) else parts
        self._owner.references.update(names)
        if isinstance(root, ast.Name) and not self._deferred and id(node) not in self._called:
            self._aliased.add(root.id)
        meant = self._meant(node)
        built_in = names[0] == "__builtins__" or any(name.startswith("builtins.") for name in meant)
        for name in names:
            method = name in METHODS and name in parts and not built_in
            if (name in DYNAMIC and not method) or (name == "__dict__" and name in parts):
                self._note_dynamic(name, node.lineno)
        self._note(meant, node.lineno)
        return [] if isinstance(root, ast.Name) else [root]

    def _note(self, names: Iterable[str], line: int) -> None:
        for name in names:
            _keep_first(self._owner.uses, name, (self._cell, line))
            for module in DYNAMIC_MODULES.intersection(name.split(".")):
                self._note_dynamic(module, line)

    def _note_dynamic(self, name: str, line: int) -> None:
        _keep_first(self.dynamic, name, (self._cell, line))

    def _meant(self, node: ast.expr) -> frozenset[str]:
        """Return the dotted names that a chain of names, or a lookup by a literal name, can refer to."""
        found: set[str] = set()
        waiting: list[tuple[ast.expr, list[str]]] = [(node, [])]
        while waiting:
            part, behind = waiting.pop()
            root, parts = _chain(part)
            parts += behind
            if isinstance(root, ast.Name):
                names = self._names.get(root.id, frozenset(f"{star}.{root.id}" for star in self._stars))
            else:
                names = self._meant_by_call(root) if isinstance(root, ast.Call) else NOTHING
            found |= {".".join([name, *parts]) for name in names}
            waiting += [(choice, parts) for choice in _choices(root)]
        return frozenset(found)

    def _meant_by_call(self, node: ast.Call) -> frozenset[str]:
        """Resolve `getattr(nn, "LayerNorm")`, `import_module("torch.nn")` and `__import__("torch.nn")`."""
        root, parts = _chain(node.func)
        called = [getattr(root, "id", ""), *parts][-1]
        texts = [each.value for each in node.args if isinstance(each, ast.Constant) and isinstance(each.value, str)]
        if called == "getattr" and texts:
            return frozenset(f"{name}.{texts[0]}" for name in self._meant(node.args[0]))
        if called in ("import_module", "__import__") and texts:
            return frozenset([texts[0] if called == "import_module" else texts[0].split(".")[0]])
        return NOTHING


def _keep_first(places: dict[str, Place], name: str, place: Place) -> None:
    places[name] = min(place, places.get(name, place))


def _assigned_last(node: ast.AST) -> list[ast.AST]:
    """Return the parts of a node, those that are assigned to behind the values."""
    return sorted(ast.iter_child_nodes(node), key=lambda part: isinstance(getattr(part, "ctx", None), ast.Store))


def _only_names(node: ast.AST) -> bool:
    """Whether an expression consists of names only: `nn.LayerNorm`, `(Linear, nn.LayerNorm)`, `list[int] | None`."""
    return all(isinstance(part, (*_NAMES, ast.expr_context)) for part in ast.walk(node))


def _chain(node: ast.expr) -> tuple[ast.expr, list[str]]:
    """Return the beginning of an attribute chain, and the attributes in order."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return node, parts[::-1]


def _choices(node: ast.expr) -> list[ast.expr]:
    """Return the expressions of which one is the value of this one."""
    if isinstance(node, ast.BoolOp):
        return node.values
    if isinstance(node, ast.IfExp):
        return [node.body, node.orelse]
    return [node.value] if isinstance(node, ast.NamedExpr) else []


def asks_for_main(test: ast.expr) -> bool:
    """Whether this is `__name__ == "__main__"`."""
    if not isinstance(test, ast.Compare) or not isinstance(test.ops[0], ast.Eq) or len(test.ops) > 1:
        return False
    sides = (test.left, test.comparators[0])
    names = {side.id for side in sides if isinstance(side, ast.Name)}
    texts = {side.value for side in sides if isinstance(side, ast.Constant)}
    return names == {"__name__"} and texts == {"__main__"}
