"""Whether a text can change what lies outside of its own module, so that reading it anew does not undo that.

This is a cautious reading of names. A text that hides from it what it changes loses only this: its
failing tests are repeated in one worker, not each in one of its own.
"""

import ast
from collections.abc import Iterable, Iterator

from autograder.source.names_used import nodes_of
from autograder.source.text import cells, leaves_main_out, parsed

# they change only their arguments, and random numbers, which every test begins anew
QUIET_MODULES = {
    "__future__", "abc", "autograder", "bisect", "cmath", "collections", "contextlib", "copy", "dataclasses", "einops",
    "enum", "fractions", "functools", "heapq", "itertools", "json", "math", "numbers", "numpy", "operator", "pathlib",
    "random", "re", "statistics", "string", "sysconfig", "textwrap", "time", "torch", "transformers", "types",
    "typing", "typing_extensions",
}  # fmt: skip
SETTERS = ("set_", "use_", "register_module_")
STORE = "setattr"
CHANGING = {
    # modules within other modules
    "backends", "builtins", "distributed", "fx", "hub", "io", "library", "multiprocessing", "os", "sys",
    # files
    "memmap", "mkdir", "open", "rename", "rmdir", "save", "save_pretrained", "savetxt", "savez", "savez_compressed",
    "tofile", "touch", "unlink", "write_bytes", "write_text",
    # attributes, settings, and blocks that are entered without `with`
    STORE, "delattr", "__setattr__", "__delattr__", "register", "seterr", "seterrcall", "__enter__", "enter_context",
    # classes of other objects, code and names that are put together
    "__base__", "__bases__", "__builtins__", "__class__", "__dict__", "__globals__", "__import__", "__mro__",
    "cell_contents", "get_ipython", "import_module", "mro", "resolve_name", "vars",
}  # fmt: skip
RUNNING = {"compile", "eval", "exec"}  # not as methods: `model.eval()`
OF_TENSORS = {"data", "grad", "requires_grad"}


def reaches_outside(text: str, filename: str) -> bool:
    """Whether any piece of a text, a script or a notebook, can change what is not of its own module."""
    trees = [parsed(code) for _, code in cells(text, filename)]
    skip_main = leaves_main_out(text)
    nodes = [node for tree in trees if tree is not None for node in nodes_of(tree, skip_main)]
    return any(name in CHANGING or name.startswith(SETTERS) for name in _names(nodes))


def _names(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Yield the names in a text, and `STORE` where it can reach a module that is not quiet, or a strange object."""
    methods = set[ast.AST]()
    imported = set[str]()
    for node in nodes:
        if isinstance(node, ast.Name):
            yield STORE if node.id in RUNNING else node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            if node.value.replace(".", "_").isidentifier():
                yield from node.value.split(".")
        elif isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                yield from _names_of_import(node, alias)
                imported.add(alias.asname or alias.name)
        elif isinstance(node, ast.ClassDef):
            methods.update(node.body)
        if (
            _makes_self_of_anything(node, methods)
            or _stores_elsewhere(node, imported)
            or _can_stay_in_a_block(node)
        ):
            yield STORE


def _names_of_import(node: ast.Import | ast.ImportFrom, alias: ast.alias) -> Iterator[str]:
    module = alias.name if isinstance(node, ast.Import) else "." * node.level + (node.module or "")
    names = module.split(".")
    yield from names
    yield alias.name
    if names[0] not in QUIET_MODULES or alias.asname == "self":
        yield STORE


def _makes_self_of_anything(node: ast.AST, methods: set[ast.AST]) -> bool:
    """Whether `self` can be another object here than one of the text's own classes."""
    if isinstance(node, ast.Name):
        return node.id == "self" and not isinstance(node.ctx, ast.Load)
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        arguments = [inside.arg for inside in ast.walk(node.args) if isinstance(inside, ast.arg)]
        return "self" in (arguments[1:] if node in methods else arguments)
    return False


def _can_stay_in_a_block(node: ast.AST) -> bool:
    """Whether a generator can wait inside of `with`, whose settings then last."""
    return isinstance(node, ast.With | ast.AsyncWith) and any(
        isinstance(inside, ast.Yield | ast.YieldFrom) for inside in ast.walk(node)
    )


def _stores_elsewhere(node: ast.AST, imported: set[str]) -> bool:
    """Whether this sets an attribute of what hangs on another name than `self`, or an item of a library's."""
    if not isinstance(node, ast.Attribute | ast.Subscript) or isinstance(node.ctx, ast.Load):
        return False
    root: ast.expr = node
    while isinstance(root, ast.Attribute | ast.Subscript):
        root = root.value
    if not isinstance(root, ast.Name) or root.id in imported:
        return True
    is_own = isinstance(node, ast.Subscript) or node.attr in OF_TENSORS
    return not is_own and root.id != "self"
