"""The dotted names used in a text: `torch.nn.LayerNorm` for `nn.LayerNorm`, whatever the alias of `nn`.

A name refers to its last binding; after a branch, to all its possible bindings. A function's body runs later, so it is
read after the surrounding text: in it, an outer name refers to its binding at the definition and to all later ones.
Nothing is executed.

A mention alone is no use: an import, an annotation, the classes of an `isinstance`, the sides of a comparison. Names in
a function or class do not count if the entry points do not reach it, or if a later definition of the same name replaces
it. If a text looks up names at run time, all its definitions count as reached.

Modules are not followed through a function's arguments, containers or lookups by computed names; the latter are listed
as `dynamic`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager

from autograder.source.reachable import Definitions, Owner, Place, keep_first

DYNAMIC = {
    "getattr", "getattr_static", "getmembers", "getmodule", "attrgetter", "methodcaller", "get_field", "locate",
    "eval", "exec", "compile", "vars", "globals", "__import__", "import_module", "resolve_name", "_jit_get_operation",
    "__getattribute__", "__globals__", "__annotations__", "get_annotations", "get_type_hints",
}  # fmt: skip
DYNAMIC_MODULES = ("pickle", "marshal", "ctypes", "gc", "timeit", "runpy", "pydoc")
METHODS = {"compile", "eval", "exec"}  # also methods of models and patterns, which look nothing up
NOTHING: frozenset[str] = frozenset()  # bound to a value that was not imported
ROUNDS = 10  # maximum number of passes over a loop

Names = dict[str, frozenset[str]]
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)
_NAMES = (ast.Name, ast.Attribute, ast.Tuple, ast.List, ast.Subscript, ast.BinOp, ast.BitOr, ast.Constant)


class _Scope:
    """The names of a module, a class or a function during reading."""

    def __init__(self, outside: Callable[[str], frozenset[str] | None], around_class: _Scope | None = None) -> None:
        self.outside = outside
        self.around_class = around_class  # the scope that a class's methods see
        self.now: Names = {}
        self.history: list[tuple[str, frozenset[str]]] = []
        self.declared: set[str] = set()  # global or nonlocal

    def find(self, name: str) -> frozenset[str] | None:
        """Return the possible meanings of a name; None if it is unbound."""
        return self.now[name] if name in self.now else self.outside(name)

    def join(self, *others: Names) -> None:
        """Merge the bindings of other branches."""
        for other in others:
            for name in {*self.now, *other}:
                either = (names.get(name, self.outside(name)) or NOTHING for names in (self.now, other))
                self.now[name] = NOTHING.union(*either)


class NameReader:
    """Reads one text, or a notebook's cells in order, and collects names with their lines."""

    def __init__(self) -> None:
        self.dynamic: dict[str, Place] = {}
        self.definitions = Definitions()
        self.owner: Owner | None = None
        self.called: set[int] = set()
        self.branches = 0  # number of enclosing branches and loops
        self.deferred = False
        self.cell = 0
        self.stars: set[str] = set()
        self.attributes: Names = {}  # `self.f = functional` makes `.f` stand for it, on whatever object
        self.declared: Names = {}  # bound by functions that say `global`
        self.waiting: list[Callable[[], None]] = []
        self.skip_main = False

    def read(self, trees: list[ast.Module], skip_main: bool = False) -> None:
        """Read the trees twice, as the first half of a text can use declarations of the second.

        With `skip_main`, the block of `if __name__ == "__main__":` is not read; it must not run, either.
        """
        self.skip_main = skip_main
        for _ in range(2):
            self.scope = _Scope(self.declared.get)
            self.definitions.latest.clear()
            for self.cell, tree in enumerate(trees):
                self.run(tree.body)
            self.deferred = True
            while self.waiting:
                self.waiting.pop()()
            self.deferred = False

    def uses(self, entry_points: Collection[str] | None = None) -> dict[str, Place]:
        """Return the first place of each name used at the top level or reachable from the entry points."""
        return self.definitions.uses(entry_points, all_count=bool(self.dynamic))

    def begin(self, node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> Owner:
        """Return the owner of a definition's contents: the enclosing one, or the definition itself at top level."""
        if self.owner is not None:
            return self.owner
        return self.definitions.begin((node.name, self.cell, node.lineno), certain=not self.branches)

    @contextmanager
    def branch(self, ends: list[Names]) -> Iterator[None]:
        """Read one of several branches: its bindings are added to `ends`, and the names are as before again."""
        before = dict(self.scope.now)
        self.branches += 1
        yield
        self.branches -= 1
        ends.append(self.scope.now)
        self.scope.now = before

    def run(self, body: Iterable[ast.stmt]) -> None:
        for statement in body:
            read = getattr(self, f"read_{type(statement).__name__}", None)
            if read is not None:
                read(statement)
            else:
                self.look(statement)

    def read_Import(self, node: ast.Import) -> None:
        for name in node.names:
            root = name.name.split(".")[0]
            self.bind(name.asname or root, frozenset([name.name if name.asname else root]))

    def read_ImportFrom(self, node: ast.ImportFrom) -> None:
        module = "." * node.level + (node.module or "")
        for name in node.names:
            if name.name == "*":
                self.stars.add(module)
            else:
                self.bind(name.asname or name.name, frozenset([f"{module}.{name.name}"]))

    def read_Assign(self, node: ast.Assign) -> None:
        self.look(node.value)
        for target in node.targets:
            self.assign(target, node.value)

    def read_AnnAssign(self, node: ast.AnnAssign) -> None:
        self.look_at_annotation(node.annotation)
        if node.value is not None:
            self.look(node.value)
            self.assign(node.target, node.value)

    def read_AugAssign(self, node: ast.AugAssign) -> None:
        self.look(node.value)
        self.look(node.target)
        self.assign(node.target, None)

    def read_Delete(self, node: ast.Delete) -> None:
        for target in node.targets:
            self.assign(target, None)

    def read_Global(self, node: ast.Global | ast.Nonlocal) -> None:
        self.scope.declared.update(node.names)

    read_Nonlocal = read_Global

    def read_If(self, node: ast.If) -> None:
        """Read an `if` without recursion for `elif`, so that a thousand of them do not nest."""
        ends: list[Names] = []
        rest: list[ast.stmt] = [node]
        while len(rest) == 1 and isinstance(choice := rest[0], ast.If):
            self.look(choice.test)
            with self.branch(ends):
                if not (self.skip_main and asks_for_main(choice.test)):
                    self.run(choice.body)
            rest = choice.orelse
        with self.branch(ends):
            self.run(rest)
        self.scope.now = ends.pop()
        self.scope.join(*ends)

    def read_For(self, node: ast.For | ast.AsyncFor) -> None:
        self.look(node.iter)
        self.repeat(node.body, lambda: self.assign_each(node.target, node.iter))
        self.run(node.orelse)

    read_AsyncFor = read_For

    def read_While(self, node: ast.While) -> None:
        self.repeat(node.body, lambda: self.look(node.test))
        self.run(node.orelse)

    def repeat(self, body: list[ast.stmt], begin: Callable[[], None]) -> None:
        self.branches += 1
        for _ in range(ROUNDS):
            before = dict(self.scope.now)
            begin()
            self.run(body)
            self.scope.join(before)
            if self.scope.now == before:
                break
        self.branches -= 1

    def read_With(self, node: ast.With | ast.AsyncWith) -> None:
        for item in node.items:
            self.look(item.context_expr)
            if item.optional_vars is not None:
                self.assign(item.optional_vars, None)
        self.run(node.body)

    read_AsyncWith = read_With

    def read_Try(self, node: ast.Try) -> None:
        """Read a `try`; a handler can start after any statement of its block."""
        before, position = dict(self.scope.now), len(self.scope.history)
        ends: list[Names] = []
        with self.branch(ends):
            self.run([*node.body, *node.orelse])
        for handler in node.handlers:
            with self.branch(ends):
                self.scope.join(_all_of(self.scope.history[position:]))
                if handler.type is not None:
                    self.look(handler.type)
                if handler.name is not None:
                    self.bind(handler.name, NOTHING)
                self.run(handler.body)
        self.scope.now = ends.pop()
        self.scope.join(*ends)
        if node.finalbody:
            self.scope.join(before)
            self.run(node.finalbody)

    read_TryStar = read_Try

    def read_Match(self, node: ast.Match) -> None:
        self.look(node.subject)
        ends: list[Names] = []
        for case in node.cases:
            with self.branch(ends):
                self.capture(case.pattern, self.meant(node.subject))
                if case.guard is not None:
                    self.look(case.guard)
                self.run(case.body)
        self.scope.join(*ends)

    def capture(self, pattern: ast.pattern, matched: frozenset[str]) -> None:
        """Bind the names of a pattern. `case object(relu=f)` looks up `relu`."""
        waiting = [(pattern, matched)]
        while waiting:
            part, full = waiting.pop()
            name = getattr(part, "name", None) or getattr(part, "rest", None)
            if isinstance(name, str):
                self.bind(name, full)
            inside = [each for each in ast.iter_child_nodes(part) if isinstance(each, ast.pattern)]
            if isinstance(part, ast.MatchClass):
                inside = part.patterns
                for attribute, inner in zip(part.kwd_attrs, part.kwd_patterns):
                    found = frozenset(f"{each}.{attribute}" for each in full)
                    self.note(found, part.lineno)
                    if attribute == "__dict__" or attribute in DYNAMIC - METHODS:
                        self.note_dynamic(attribute, part.lineno)
                    waiting.append((inner, found))
            waiting += [(inner, full) for inner in inside]

    def read_ClassDef(self, node: ast.ClassDef) -> None:
        for part in (*node.decorator_list, *node.bases, *(keyword.value for keyword in node.keywords)):
            self.look(part)
        outer, owner = self.scope, self.owner
        self.owner = self.begin(node)
        self.scope = _Scope(outer.find, outer)
        self.run(node.body)
        self.scope, self.owner = outer, owner
        self.bind(node.name, NOTHING)

    def read_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        for part in node.decorator_list:
            self.look(part)
        if node.returns is not None:
            self.look_at_annotation(node.returns)
        self.bind(node.name, NOTHING)
        self.later(node.args, lambda: self.run(node.body), self.begin(node))

    read_AsyncFunctionDef = read_FunctionDef

    def later(self, arguments: ast.arguments, read_body: Callable[[], None], owner: Owner | None) -> None:
        """Read a function's body, which belongs to `owner`, after all surrounding text."""
        parameters = {name: self.meant(default) for name, default in _parameters(arguments).items()}
        for part in ast.iter_child_nodes(arguments):
            if isinstance(part, ast.arg):
                self.look_at_annotation(part.annotation)
            else:
                self.look(part)
        around = self.scope
        while around.around_class is not None:
            around = around.around_class
        known, position, cell = dict(around.now), len(around.history), self.cell

        def read() -> None:
            self.cell, self.owner = cell, owner
            for name, full in _all_of(around.history[position:]).items():
                known[name] = known.get(name, NOTHING) | full
            self.scope = _Scope(lambda name: known[name] if name in known else around.outside(name))
            self.scope.now.update(parameters)
            read_body()
            self.owner = None

        self.waiting.append(read)

    def bind(self, name: str, full: frozenset[str]) -> None:
        if name in self.scope.declared:
            full = self.declared[name] = self.declared.get(name, NOTHING) | full
        self.scope.now[name] = full
        self.scope.history.append((name, full))

    def assign(self, target: ast.expr, value: ast.expr | None) -> None:
        if isinstance(target, ast.Name):
            self.bind(target.id, self.meant(value))
        elif isinstance(target, (ast.Tuple, ast.List)):
            values = value.elts if isinstance(value, (ast.Tuple, ast.List)) else []
            pairwise = len(values) == len(target.elts) and not any(isinstance(v, ast.Starred) for v in values)
            for position, part in enumerate(target.elts):
                self.assign(part, values[position] if pairwise else None)
        elif isinstance(target, ast.Starred):
            self.assign(target.value, None)
        else:
            self.look(target)
            if isinstance(target, ast.Attribute) and self.meant(value):
                self.attributes[target.attr] = self.attributes.get(target.attr, NOTHING) | self.meant(value)

    def assign_each(self, target: ast.expr, values: ast.expr) -> None:
        """Bind a loop's target to each of its literal values."""
        written = values.elts if isinstance(values, (ast.Tuple, ast.List, ast.Set)) else []
        ends: list[Names] = []
        for value in (None, *written):
            with self.branch(ends):
                self.assign(target, value)
        self.scope.now = ends.pop()
        self.scope.join(*ends)

    def look(self, node: ast.AST) -> None:
        """Collect the names in an expression without recursion, as it can be thousands of terms long."""
        waiting = [node]
        while waiting:
            part = waiting.pop()
            if isinstance(part, (ast.Attribute, ast.Name)):
                waiting.extend(self.look_at_chain(part))
                continue
            if isinstance(part, ast.Lambda):
                self.later(part.args, lambda body=part.body: self.look(body), self.owner)  # type: ignore[misc]
                continue
            if isinstance(part, _COMPREHENSIONS):
                self.look_into(part)
                continue
            if isinstance(part, ast.NamedExpr):
                self.bind(part.target.id, self.meant(part.value))
            elif isinstance(part, (ast.Call, ast.Subscript)):
                self.note(self.meant(part), part.lineno)
                if isinstance(part, ast.Subscript) and "sys.modules" in self.meant(part.value):
                    self.note_dynamic("sys.modules", part.lineno)
            if isinstance(part, ast.Call):
                self.called.add(id(part.func))
            waiting.extend(each for each in ast.iter_child_nodes(part) if not self.is_mention(part, each))

    def look_at_annotation(self, node: ast.expr | None) -> None:
        """Read an annotation, which only mentions names unless a part of it is called or bound."""
        if node is not None and not _is_mention(node):
            self.look(node)

    def is_mention(self, around: ast.AST, node: ast.AST) -> bool:
        """Whether a part of an expression is only compared: in a comparison, or as classes of `isinstance`."""
        if isinstance(around, ast.Compare):
            return isinstance(node, ast.Attribute) and _is_mention(node) and bool(self.meant(node))
        if isinstance(around, ast.Call) and isinstance(around.func, ast.Name):
            asks = around.func.id in ("isinstance", "issubclass") and self.scope.find(around.func.id) is None
            return asks and node in around.args[1:] and _is_mention(node)
        return False

    def look_at_chain(self, node: ast.Attribute | ast.Name) -> list[ast.expr]:
        """Record `a.b.c` as one use; return the rest to read if the chain has another beginning."""
        root, parts = _chain(node)
        names = [root.id, *parts] if isinstance(root, ast.Name) else parts
        self.definitions.of(self.owner).references.update(names)
        if isinstance(root, ast.Name) and not self.deferred and id(node) not in self.called:
            self.definitions.aliased.add(root.id)
        for name in names:
            method = name in METHODS and name in parts and not self.is_built_in(node, root)
            if (name in DYNAMIC and not method) or (name == "__dict__" and name in parts):
                self.note_dynamic(name, node.lineno)
        self.note(self.meant(node), node.lineno)
        return [] if isinstance(root, ast.Name) else [root]

    def is_built_in(self, node: ast.expr, root: ast.expr) -> bool:
        """Whether a chain refers to Python's built-in function of that name."""
        own = isinstance(root, ast.Name) and root.id == "__builtins__"
        return own or any(name.startswith("builtins.") for name in self.meant(node) or ())

    def look_into(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> None:
        before = dict(self.scope.now)
        for generator in node.generators:
            self.look(generator.iter)
            self.assign_each(generator.target, generator.iter)
            for test in generator.ifs:
                self.look(test)
        for part in (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,):
            self.look(part)
        inside = {n.id for g in node.generators for n in ast.walk(g.target) if isinstance(n, ast.Name)}
        after = {name: full for name, full in self.scope.now.items() if name not in inside}
        self.scope.now = after | {name: before[name] for name in inside & before.keys()}

    def note(self, names: Iterable[str], line: int) -> None:
        for name in names:
            keep_first(self.definitions.of(self.owner).uses, name, (self.cell, line))
            if name.split(".")[0] in DYNAMIC_MODULES:
                self.note_dynamic(name.split(".")[0], line)

    def note_dynamic(self, name: str, line: int) -> None:
        keep_first(self.dynamic, name, (self.cell, line))

    def meant(self, node: ast.expr | None) -> frozenset[str]:
        """Return the dotted names that an expression can refer to."""
        if isinstance(node, (ast.Attribute, ast.Name)):
            return self.meant_by_chain(node)
        if isinstance(node, ast.NamedExpr):
            return self.meant(node.value)
        if isinstance(node, ast.IfExp):
            return self.meant(node.body) | self.meant(node.orelse)
        if isinstance(node, ast.BoolOp):
            return NOTHING.union(*map(self.meant, node.values))
        if isinstance(node, ast.Call):
            return self.meant_by_call(node)
        if isinstance(node, ast.Subscript):
            return self.meant_by_look_up(node)
        return NOTHING

    def meant_by_chain(self, node: ast.Attribute | ast.Name) -> frozenset[str]:
        root, parts = _chain(node)
        if isinstance(root, ast.Name):
            found = self.scope.find(root.id)
            if found is None:
                found = frozenset(f"{star}.{root.id}" for star in self.stars)
        else:
            found = self.meant(root)
        full = {".".join([name, *parts]) for name in found}
        for position, part in enumerate(parts if not found else [], start=1):
            full |= {".".join([name, *parts[position:]]) for name in self.attributes.get(part, NOTHING)}
        return frozenset(full)

    def meant_by_call(self, node: ast.Call) -> frozenset[str]:
        """Resolve `getattr(nn, "LayerNorm")`, `import_module("torch.nn")` and the like with literal names."""
        _, parts = _chain(node.func)
        called = parts[-1] if parts else getattr(node.func, "id", "")
        texts = [argument.value for argument in node.args if isinstance(argument, ast.Constant)]
        if called == "getattr" and len(node.args) > 1 and texts and isinstance(texts[0], str):
            return frozenset(f"{name}.{texts[0]}" for name in self.meant(node.args[0]))
        if called in ("import_module", "__import__") and texts and isinstance(texts[0], str):
            return frozenset([texts[0] if called == "import_module" else texts[0].split(".")[0]])
        if called == "vars" and len(node.args) == 1:
            return frozenset(f"{name}.__dict__" for name in self.meant(node.args[0]))
        return NOTHING

    def meant_by_look_up(self, node: ast.Subscript) -> frozenset[str]:
        """Resolve `nn.__dict__["LayerNorm"]` and `sys.modules["torch.nn"]`."""
        key = node.slice.value if isinstance(node.slice, ast.Constant) else None
        if not isinstance(key, str):
            return NOTHING
        tables = self.meant(node.value)
        found = {f"{name.removesuffix('.__dict__')}.{key}" for name in tables if name.endswith(".__dict__")}
        return frozenset(found | ({key} if "sys.modules" in tables else set()))


def _is_mention(node: ast.AST) -> bool:
    """Whether an expression consists of names only: `nn.LayerNorm`, `(Linear, nn.LayerNorm)`, `list[int] | None`."""
    return all(isinstance(part, (*_NAMES, ast.expr_context)) for part in ast.walk(node))


def _chain(node: ast.expr) -> tuple[ast.expr, list[str]]:
    """Return the beginning of an attribute chain, and the attributes in order."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return node, parts[::-1]


def _parameters(arguments: ast.arguments) -> dict[str, ast.expr | None]:
    """Return each parameter with its default or None."""
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults: dict[ast.arg, ast.expr | None] = dict(zip(arguments.kwonlyargs, arguments.kw_defaults))
    defaults |= zip(reversed(positional), reversed(arguments.defaults))
    rest = filter(None, (arguments.vararg, arguments.kwarg))
    return {part.arg: defaults.get(part) for part in (*positional, *arguments.kwonlyargs, *rest)}


def _all_of(history: list[tuple[str, frozenset[str]]]) -> Names:
    found: Names = {}
    for name, full in history:
        found[name] = found.get(name, NOTHING) | full
    return found


def asks_for_main(test: ast.expr) -> bool:
    """Whether this is `__name__ == "__main__"`."""
    if not isinstance(test, ast.Compare) or not isinstance(test.ops[0], ast.Eq) or len(test.ops) > 1:
        return False
    sides = (test.left, test.comparators[0])
    names = {side.id for side in sides if isinstance(side, ast.Name)}
    texts = {side.value for side in sides if isinstance(side, ast.Constant)}
    return names == {"__name__"} and texts == {"__main__"}
