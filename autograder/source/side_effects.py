"""Whether a text can change what lies outside of its own module, so that reading it anew does not undo that.

This is a cautious reading of names: what it does not know counts as a change. A text that hides
from it what it changes loses only this: its failing tests are repeated in one worker, not each in
one of its own. Tests that fail there with the solution in place of a part are tried in another one.
"""

import ast
from collections import defaultdict
from collections.abc import Iterator
from itertools import chain
from typing import Any

from autograder.source.pieces import names_in_dotted, pieces

# they change little but their arguments, and random numbers, which every test begins anew
QUIET_MODULES = {
    "__future__", "abc", "autograder", "bisect", "cmath", "collections", "contextlib", "copy", "dataclasses", "einops",
    "enum", "fractions", "functools", "heapq", "itertools", "json", "math", "numbers", "numpy", "operator", "pathlib",
    "random", "re", "statistics", "string", "sysconfig", "textwrap", "time", "torch", "types", "typing",
    "typing_extensions",
}  # fmt: skip
QUIET_PARTS = {  # of these modules
    "abc", "autograd", "chain", "cuda", "data", "fft", "functional", "init", "linalg", "lr_scheduler", "modules", "nn",
    "notebook", "optim", "parameter", "random", "rnn", "special", "utils",
}  # fmt: skip
SETTERS = ("set_", "use_", "register_", "enable", "disable")
OF_MODELS = {
    "register_buffer", "register_parameter", "register_module", "register_hook", "register_forward_hook",
    "register_forward_pre_hook", "register_full_backward_hook",
}  # fmt: skip
CHANGING = {
    # modules within other modules
    "backends", "builtins", "distributed", "fx", "hub", "io", "library", "multiprocessing", "os", "profiler", "sys",
    "warnings",
    # files
    "chmod", "dump", "from_file", "hardlink_to", "memmap", "mkdir", "open", "rename", "rmdir", "save", "savetxt",
    "savez", "savez_compressed", "symlink_to", "tofile", "touch", "unlink", "write_bytes", "write_text",
    # attributes, settings, and blocks that are entered without `with`
    "__delattr__", "__enter__", "__setattr__", "delattr", "enter_context", "register", "setattr",
    # classes of other objects, code and names that are put together
    "__base__", "__bases__", "__builtins__", "__class__", "__dict__", "__globals__", "__import__", "__mro__",
    "cell_contents", "get_ipython", "import_module", "mro", "resolve_name", "vars",
}  # fmt: skip
# the special attributes of objects that lead to no class and to no table
ORDINARY = {
    "__call__",
    "__doc__",
    "__init__",
    "__iter__",
    "__len__",
    "__name__",
    "__next__",
    "__version__",
}
RUNNING = {"compile", "eval", "exec"}  # not as methods: `model.eval()`
FILLING = {
    "add", "append", "clear", "discard", "extend", "insert", "pop", "popitem", "remove", "setdefault", "sort", "update",
}  # fmt: skip
READING = {"items", "keys", "values"}
# attributes that are set from outside: of tensors, layers and optimisers, which are a test's own
SET_FROM_OUTSIDE = {"data", "grad", "requires_grad"}
SET_ON_PARTS = {"bias", "lr", "weight"}


def reaches_outside(text: str, filename: str) -> bool:
    """Whether any piece of a text, a script or a notebook, can change what is not of its own module."""
    by_kind = defaultdict[type[ast.AST], list[Any]](list)
    for piece in pieces(text, filename):
        if piece.is_valid:
            for node in piece.nodes:
                by_kind[type(node)].append(node)
    imports = by_kind[ast.Import] + by_kind[ast.ImportFrom]
    imported = set(chain.from_iterable(map(_names_bound_by_import, imports)))
    reading = set(
        chain.from_iterable(_vars_that_reads(call, imported) for call in by_kind[ast.Call])
    )
    methods = set(chain.from_iterable(kind.body for kind in by_kind[ast.ClassDef]))
    names = by_kind[ast.Name]
    attributes = by_kind[ast.Attribute]
    functions = by_kind[ast.FunctionDef] + by_kind[ast.AsyncFunctionDef] + by_kind[ast.Lambda]
    return (
        any(map(_imports_more, imports))
        or any(map(_imports_a_change, by_kind[ast.alias]))
        or any(_names_a_change(name.id) and name not in reading for name in names)
        or any(_is_special(node.attr) or _can_change(node.attr) for node in attributes)
        or any(map(_spells_a_change, by_kind[ast.Constant]))
        or any(name.id == "self" and not isinstance(name.ctx, ast.Load) for name in names)
        or any(_makes_self_of_anything(node, methods) for node in functions)
        or any(_stores_elsewhere(node, imported) for node in attributes + by_kind[ast.Subscript])
        or any(_reaches_into_library(node, imported) for node in attributes)
        or bool(by_kind[ast.AsyncWith])
        or any(map(_can_stay_in_a_block, by_kind[ast.With]))
    )


def _names_a_change(name: str) -> bool:
    return name in RUNNING or _can_change(name)


def _imports_a_change(alias: ast.alias) -> bool:
    return (
        alias.asname == "self"
        or alias.name.startswith("set")
        or any(map(_can_change, alias.name.split(".")))
    )


def _spells_a_change(constant: ast.Constant) -> bool:
    """Whether a text such as "torch.backends" names what can lead outside."""
    value = constant.value
    return isinstance(value, str) and any(map(_can_change, names_in_dotted(value)))


def _vars_that_reads(call: ast.Call, imported: set[str]) -> Iterator[ast.Name]:
    """Yield `vars` in `vars(config).items()`, which reads the fields of an object that is no library."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in READING:
        return
    called = call.func.value
    if isinstance(called, ast.Call):
        of_an_object = [isinstance(of, ast.Name) and of.id not in imported for of in called.args]
        name = called.func
        if isinstance(name, ast.Name) and name.id == "vars" and of_an_object == [True]:
            yield name


def _can_change(name: str) -> bool:
    return name in CHANGING or (name.startswith(SETTERS) and name not in OF_MODELS)


def _is_special(attribute: str) -> bool:
    is_dunder = attribute.startswith("__") and attribute.endswith("__")
    return is_dunder and attribute not in ORDINARY


def _names_bound_by_import(node: ast.Import | ast.ImportFrom) -> list[str]:
    return [alias.asname or alias.name.partition(".")[0] for alias in node.names]


def _imports_more(node: ast.Import | ast.ImportFrom) -> bool:
    """Whether this imports a module that is not known to be quiet."""
    if isinstance(node, ast.Import):
        modules = [alias.name for alias in node.names]
    else:
        modules = ["." * node.level + (node.module or "")]
    for root, *parts in (module.split(".") for module in modules):
        if root not in QUIET_MODULES or not QUIET_PARTS.issuperset(parts):
            return True
    return False


def _makes_self_of_anything(
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, methods: set[ast.stmt]
) -> bool:
    """Whether `self` can be another object here than one of the text's own classes."""
    arguments = [inside.arg for inside in ast.walk(node.args) if isinstance(inside, ast.arg)]
    return "self" in (arguments[1:] if node in methods else arguments)


def _stores_elsewhere(node: ast.Attribute | ast.Subscript, imported: set[str]) -> bool:
    """Whether this sets an attribute of another object than `self`, or an item of what may be a library's."""
    if isinstance(node.ctx, ast.Load):
        return False
    root, parts = _chain(node)
    if not isinstance(root, ast.Name) or root.id in imported:
        return True
    if isinstance(node, ast.Subscript) or node.attr in SET_FROM_OUTSIDE:
        return False
    return root.id != "self" or (len(parts) > 1 and node.attr not in SET_ON_PARTS)


def _reaches_into_library(node: ast.Attribute, imported: set[str]) -> bool:
    """Whether this names an inner part of a library that is not known to be quiet, or fills what it holds."""
    root, parts = _chain(node)
    if not isinstance(root, ast.Name) or root.id not in imported:
        return False
    *inner, last = parts
    if not all(part in QUIET_PARTS or part[0].isupper() for part in inner):
        return True
    is_private = last.startswith("_") and not last.startswith("__")
    is_table = bool(inner) or root.id[0].isupper()  # and no function such as `torch.add`
    return is_private or last.startswith("set") or (is_table and last in FILLING)


def _can_stay_in_a_block(block: ast.With) -> bool:
    """Whether a generator or a coroutine can wait inside of `with`, whose settings then last."""
    waits = ast.Yield | ast.YieldFrom | ast.Await
    return any(isinstance(inside, waits) for inside in ast.walk(block))


def _chain(node: ast.expr) -> tuple[ast.expr, list[str]]:
    """Return the object that attributes and items hang on, and the attributes' names in their order."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute | ast.Subscript):
        if isinstance(node, ast.Attribute):
            parts.append(node.attr)
        node = node.value
    return node, parts[::-1]
