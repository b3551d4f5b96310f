"""Whether a text can change what lies outside of its own module, so that reading it anew does not undo that.

This is a cautious reading of names: what it does not know counts as a change. A text that hides
from it what it changes loses only this: its failing tests are repeated in one worker, not each in
one of its own. Tests that fail there with the solution in place of a part are tried in another one.
"""

import ast
from collections.abc import Iterator

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
    nodes: list[ast.AST] = []
    for piece in pieces(text, filename):
        if piece.is_valid:
            nodes += piece.nodes
    imported = set[str]()
    methods = set[ast.stmt]()
    for node in nodes:
        imported.update(_names_bound_by_import(node))
        if isinstance(node, ast.ClassDef):
            methods.update(node.body)
    reading = set[ast.AST]()
    for node in nodes:
        reading.update(_vars_that_reads(node, imported))
    return any(
        (_names_a_change(node) and node not in reading)
        or _imports_more(node)
        or _makes_self_of_anything(node, methods)
        or _stores_elsewhere(node, imported)
        or _reaches_into_library(node, imported)
        or _can_stay_in_a_block(node)
        for node in nodes
    )


def _names_a_change(node: ast.AST) -> bool:
    """Whether a name stands here that can lead outside, also in a text such as "torch.backends"."""
    if isinstance(node, ast.Name):
        return node.id in RUNNING or _can_change(node.id)
    if isinstance(node, ast.Attribute):
        return _is_special(node.attr) or _can_change(node.attr)
    if isinstance(node, ast.alias):
        return node.name.startswith("set") or any(map(_can_change, node.name.split(".")))
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return any(map(_can_change, names_in_dotted(node.value)))
    return False


def _vars_that_reads(node: ast.AST, imported: set[str]) -> Iterator[ast.Name]:
    """Yield `vars` in `vars(config).items()`, which reads the fields of an object that is no library."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        called = node.func.value
        if node.func.attr in READING and isinstance(called, ast.Call):
            of_an_object = [
                isinstance(of, ast.Name) and of.id not in imported for of in called.args
            ]
            name = called.func
            if isinstance(name, ast.Name) and name.id == "vars" and of_an_object == [True]:
                yield name


def _can_change(name: str) -> bool:
    return name in CHANGING or (name.startswith(SETTERS) and name not in OF_MODELS)


def _is_special(attribute: str) -> bool:
    is_dunder = attribute.startswith("__") and attribute.endswith("__")
    return is_dunder and attribute not in ORDINARY


def _names_bound_by_import(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import | ast.ImportFrom):
        for alias in node.names:
            yield alias.asname or alias.name.partition(".")[0]


def _imports_more(node: ast.AST) -> bool:
    """Whether this imports a module that is not known to be quiet."""
    modules: list[str] = []
    if isinstance(node, ast.Import):
        modules = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
        modules = ["." * node.level + (node.module or "")]
    for root, *parts in (module.split(".") for module in modules):
        if root not in QUIET_MODULES or not QUIET_PARTS.issuperset(parts):
            return True
    return False


def _makes_self_of_anything(node: ast.AST, methods: set[ast.stmt]) -> bool:
    """Whether `self` can be another object here than one of the text's own classes."""
    if isinstance(node, ast.Name):
        return node.id == "self" and not isinstance(node.ctx, ast.Load)
    if isinstance(node, ast.alias):
        return node.asname == "self"
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        arguments = [inside.arg for inside in ast.walk(node.args) if isinstance(inside, ast.arg)]
        return "self" in (arguments[1:] if node in methods else arguments)
    return False


def _stores_elsewhere(node: ast.AST, imported: set[str]) -> bool:
    """Whether this sets an attribute of another object than `self`, or an item of what may be a library's."""
    if not isinstance(node, ast.Attribute | ast.Subscript) or isinstance(node.ctx, ast.Load):
        return False
    root, parts = _chain(node)
    if not isinstance(root, ast.Name) or root.id in imported:
        return True
    if isinstance(node, ast.Subscript) or node.attr in SET_FROM_OUTSIDE:
        return False
    return root.id != "self" or (len(parts) > 1 and node.attr not in SET_ON_PARTS)


def _reaches_into_library(node: ast.AST, imported: set[str]) -> bool:
    """Whether this names an inner part of a library that is not known to be quiet, or fills what it holds."""
    if not isinstance(node, ast.Attribute):
        return False
    root, parts = _chain(node)
    if not isinstance(root, ast.Name) or root.id not in imported:
        return False
    *inner, last = parts
    if not all(part in QUIET_PARTS or part[0].isupper() for part in inner):
        return True
    is_private = last.startswith("_") and not last.startswith("__")
    is_table = bool(inner) or root.id[0].isupper()  # and no function such as `torch.add`
    return is_private or last.startswith("set") or (is_table and last in FILLING)


def _can_stay_in_a_block(node: ast.AST) -> bool:
    """Whether a generator or a coroutine can wait inside of `with`, whose settings then last."""
    waits = ast.Yield | ast.YieldFrom | ast.Await
    return isinstance(node, ast.AsyncWith) or (
        isinstance(node, ast.With) and any(isinstance(inside, waits) for inside in ast.walk(node))
    )


def _chain(node: ast.expr) -> tuple[ast.expr, list[str]]:
    """Return the object that attributes and items hang on, and the attributes' names in their order."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute | ast.Subscript):
        if isinstance(node, ast.Attribute):
            parts.append(node.attr)
        node = node.value
    return node, parts[::-1]
