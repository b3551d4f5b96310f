"""Mutation operators: small changes of correct code on Python's syntax tree.

Each operator inspects one node and yields the node to change with its replacement. Operators are
independent of files, gaps and suites; the new code can behave like the old. Strings (messages,
format strings) are never changed.
"""

import ast
import builtins
from collections.abc import Callable, Iterator

Step = tuple[str, ast.AST, ast.AST]  # the operator's name, the node, and its replacement
Operator = Callable[[ast.AST], Iterator[Step]]

# a class of Python's syntax tree: its name in a mutant's id, and what it becomes
_ARITHMETIC: dict[type[ast.operator], tuple[str, list[type[ast.operator]]]] = {
    ast.Add: ("plus", [ast.Sub]),
    ast.Sub: ("minus", [ast.Add]),
    ast.Mult: ("times", [ast.Div, ast.Add]),
    ast.Div: ("divided", [ast.Mult]),
    ast.FloorDiv: ("floor_divided", [ast.Div]),
    ast.Mod: ("modulo", [ast.FloorDiv]),
    ast.Pow: ("power", [ast.Mult]),
    ast.MatMult: ("matrix_product", [ast.Mult]),
    ast.BitAnd: ("and", [ast.BitOr]),
    ast.BitOr: ("or", [ast.BitAnd]),
    ast.BitXor: ("xor", [ast.BitOr]),
}
_COMPARISONS: dict[type[ast.cmpop], tuple[str, type[ast.cmpop]]] = {
    ast.Lt: ("less", ast.LtE),
    ast.LtE: ("less_or_equal", ast.Lt),
    ast.Gt: ("greater", ast.GtE),
    ast.GtE: ("greater_or_equal", ast.Gt),
    ast.Eq: ("equal", ast.NotEq),
    ast.NotEq: ("not_equal", ast.Eq),
    ast.Is: ("is", ast.IsNot),
    ast.IsNot: ("is_not", ast.Is),
    ast.In: ("in", ast.NotIn),
    ast.NotIn: ("not_in", ast.In),
}
_UNARY: dict[type[ast.unaryop], str] = {ast.USub: "minus", ast.Not: "not", ast.Invert: "invert"}
# functions and methods, each of which becomes the other
_PAIRS = (
    ("sum", "mean"),
    ("tril", "triu"),
    ("sin", "cos"),
    ("max", "min"),
    ("amax", "amin"),
    ("argmax", "argmin"),
    ("any", "all"),
    ("zeros", "ones"),
    ("zeros_like", "ones_like"),
    ("cat", "stack"),
    ("exp", "log"),
    ("var", "std"),
    ("softmax", "log_softmax"),
    ("eval", "train"),
    ("floor", "ceil"),
    ("rand", "randn"),
    ("add", "sub"),
    ("append", "extend"),
    ("relu", "gelu"),
    ("sin_", "cos_"),
    ("tril_", "triu_"),
)
_COUNTERPARTS = {**dict(_PAIRS), **{second: first for first, second in _PAIRS}}
# functions and methods that are left out, so that their argument or owner remains
_DROPPED = {
    "abs", "bool", "clamp", "clone", "detach", "double", "exp", "flatten", "flip", "float",
    "log", "long", "lower", "masked_fill", "masked_fill_", "mean", "permute", "relu", "round",
    "sigmoid", "softmax", "sqrt", "squeeze", "sum", "swapaxes", "t", "tanh", "transpose",
    "tril", "triu", "unsqueeze",
}  # fmt: skip
# functions and methods whose arguments can be swapped without an effect
_SYMMETRIC = {"transpose", "swapaxes", "swapdims", "transpose_", "gcd", "allclose", "equal"}
_DROPPED_ATTRIBUTES = {"T", "mT"}
_DEFAULTS = {"encoding='utf-8'", "encoding='utf8'"}  # where code is graded
_LIBRARIES = {"torch", "math", "np", "numpy"}


def arithmetic(node: ast.AST) -> Iterator[Step]:
    """`a + b` becomes `a - b`, `a += b` becomes `a -= b`; string concatenation is unchanged."""
    if not isinstance(node, ast.BinOp | ast.AugAssign) or type(node.op) not in _ARITHMETIC:
        return
    if isinstance(node, ast.BinOp) and (_is_text(node.left) or _is_text(node.right)):
        return
    name, others = _ARITHMETIC[type(node.op)]
    for other in others:
        step = f"{name}_becomes_{_ARITHMETIC[other][0]}"
        if isinstance(node, ast.BinOp):
            yield step, node, ast.BinOp(node.left, other(), node.right)
        else:
            yield step, node, ast.AugAssign(node.target, other(), node.value)


def comparison(node: ast.AST) -> Iterator[Step]:
    """`a < b` becomes `a <= b`, `a == b` becomes `a != b`; in a chain each link by itself."""
    if not isinstance(node, ast.Compare):
        return
    for place, old in enumerate(node.ops):
        if type(old) in _COMPARISONS:
            name, other = _COMPARISONS[type(old)]
            ops = [*node.ops[:place], other(), *node.ops[place + 1 :]]
            yield (
                f"{name}_becomes_{_COMPARISONS[other][0]}",
                node,
                ast.Compare(node.left, ops, node.comparators),
            )


def constant(node: ast.AST) -> Iterator[Step]:
    """`-1` becomes `-2` and `0`, `0.5` becomes `1.0` and `0.25`, `True` becomes `False`."""
    if not isinstance(node, ast.Constant):
        return
    value = node.value
    if isinstance(value, bool):
        yield (
            f"{str(value).lower()}_becomes_{str(not value).lower()}",
            node,
            ast.Constant(not value),
        )
    elif isinstance(value, int):
        yield "constant_plus_one", node, _number(value + 1)
        yield "constant_minus_one", node, _number(value - 1)
    elif isinstance(value, float):
        yield "constant_doubled", node, _number(2 * value if value else 1.0)
        yield "constant_halved", node, _number(value / 2 if value else -1.0)


def unary(node: ast.AST) -> Iterator[Step]:
    """A minus, a `not` or a `~` is dropped."""
    if isinstance(node, ast.UnaryOp) and type(node.op) in _UNARY:
        yield f"{_UNARY[type(node.op)]}_dropped", node, node.operand


def condition(node: ast.AST) -> Iterator[Step]:
    """`and` becomes `or`, one operand is dropped, an `if` is inverted or always true."""
    if isinstance(node, ast.BoolOp):
        is_and = isinstance(node.op, ast.And)
        name, other = ("and_becomes_or", ast.Or()) if is_and else ("or_becomes_and", ast.And())
        yield name, node, ast.BoolOp(other, node.values)
        for place in range(len(node.values)):
            rest = [*node.values[:place], *node.values[place + 1 :]]
            yield (
                "condition_dropped",
                node,
                rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest),
            )
    elif isinstance(node, ast.If) and not _is_turned_elsewhere(node.test):
        yield "condition_negated", node.test, ast.UnaryOp(ast.Not(), node.test)
    elif isinstance(node, ast.IfExp):
        yield "branches_swapped", node, ast.IfExp(node.test, node.orelse, node.body)
    elif isinstance(node, ast.comprehension):
        for test in node.ifs:
            yield "condition_dropped", test, ast.Constant(True)


def arguments(node: ast.AST) -> Iterator[Step]:
    """Two adjacent names or numbers in a call are swapped; a keyword argument is dropped."""
    if not isinstance(node, ast.Call):
        return
    for place, (first, second) in enumerate(zip(node.args, node.args[1:], strict=False)):
        if _are_alike(first, second) and _called(node) not in _SYMMETRIC:
            args = [*node.args[:place], second, first, *node.args[place + 2 :]]
            yield "arguments_swapped", node, ast.Call(node.func, args, node.keywords)
    for place, keyword in enumerate(node.keywords):
        if keyword.arg is not None and ast.unparse(keyword) not in _DEFAULTS:
            keywords = [*node.keywords[:place], *node.keywords[place + 1 :]]
            yield "argument_dropped", node, ast.Call(node.func, node.args, keywords)


def method(node: ast.AST) -> Iterator[Step]:
    """A method or function becomes its counterpart: `sum` `mean`, `tril` `triu`, `sin` `cos`, `max` `min`."""
    if not isinstance(node, ast.Call):
        return
    other = _COUNTERPARTS.get(_called(node))
    if other and isinstance(node.func, ast.Attribute):
        func = ast.Attribute(node.func.value, other, ast.Load())
        yield f"{node.func.attr}_becomes_{other}", node, ast.Call(func, node.args, node.keywords)
    elif other and isinstance(node.func, ast.Name) and hasattr(builtins, other):
        yield (
            f"{node.func.id}_becomes_{other}",
            node,
            ast.Call(ast.Name(other), node.args, node.keywords),
        )


def dropped_call(node: ast.AST) -> Iterator[Step]:
    """`x.transpose(1, 2)` becomes `x`, and so do `self.norm(x)`, `torch.tanh(x)`, `F.gelu(x)` and `x.T`."""
    if isinstance(node, ast.Attribute) and node.attr in _DROPPED_ATTRIBUTES:
        yield f"{node.attr}_dropped", node, node.value
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return
    name = node.func.attr
    owner = node.func.value
    of = owner.id if isinstance(owner, ast.Name) else ""
    if of in _LIBRARIES or of in ("self", "F"):
        is_layer = of in ("self", "F") and not name.startswith("register_")
        if (
            node.args
            and (is_layer or name in _DROPPED)
            and not isinstance(node.args[0], ast.Starred)
        ):
            yield f"{name}_dropped", node, node.args[0]
    elif name in _DROPPED:
        yield f"{name}_dropped", node, owner


def bounds(node: ast.AST) -> Iterator[Step]:
    """One end of a slice is left open: `x[:T]` becomes `x[:]`."""
    if not isinstance(node, ast.Slice):
        return
    if node.lower is not None:
        yield "lower_bound_dropped", node, ast.Slice(None, node.upper, node.step)
    if node.upper is not None:
        yield "upper_bound_dropped", node, ast.Slice(node.lower, None, node.step)


def statement(node: ast.AST) -> Iterator[Step]:
    """An assignment, a call or a guard is deleted; a `with` block runs without its context manager."""
    if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
        yield "assignment_deleted", node, ast.Pass()
    elif isinstance(node, ast.Expr) and not isinstance(node.value, ast.Constant):
        yield "call_deleted", node, ast.Pass()
    elif isinstance(node, ast.If) and not node.orelse and isinstance(node.body[-1], ast.Raise):
        yield "guard_deleted", node, ast.Pass()
    elif isinstance(node, ast.With):
        yield "with_dropped", node, ast.If(ast.Constant(True), node.body, [])


def error(node: ast.AST) -> Iterator[Step]:
    """`raise ValueError(...)` becomes `raise RuntimeError(...)`, any other error a ValueError."""
    raised = (
        node.exc.func if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) else None
    )
    if isinstance(raised, ast.Name):
        other = "RuntimeError" if raised.id == "ValueError" else "ValueError"
        yield "error_of_another_type", raised, ast.Name(other)


OPERATORS: tuple[Operator, ...] = (
    arithmetic, comparison, constant, unary, condition, arguments, method, dropped_call, bounds, statement,
    error,
)  # fmt: skip


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def _is_turned_elsewhere(test: ast.expr) -> bool:
    """Whether another operator inverts this test: `not x`, `a == b` and `a is b`."""
    if isinstance(test, ast.Compare):
        return len(test.ops) == 1 and not isinstance(
            test.ops[0], ast.Lt | ast.LtE | ast.Gt | ast.GtE
        )
    return isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)


def _number(value: float) -> ast.expr:
    return ast.Constant(value) if value >= 0 else ast.UnaryOp(ast.USub(), ast.Constant(-value))


def _called(node: ast.Call) -> str:
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    return node.func.id if isinstance(node.func, ast.Name) else ""


def _are_alike(first: ast.AST, second: ast.AST) -> bool:
    """Whether these are two different names, or two different numbers."""
    if isinstance(first, ast.Name) and isinstance(second, ast.Name):
        return first.id != second.id
    if isinstance(first, ast.Constant) and isinstance(second, ast.Constant):
        return type(first.value) is type(second.value) is int and first.value != second.value
    return False
