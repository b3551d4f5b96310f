"""The further modules of a submission: files beside the student's module, which it can import."""

import sys
from collections.abc import Iterable
from importlib.abc import InspectLoader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from linecache import cache
from types import CodeType
from typing import Any


class _Modules(MetaPathFinder, InspectLoader):
    """Finds and loads modules by their texts; each module is executed when it is first imported."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        return spec_from_loader(fullname, self, origin=f"{fullname}.py") if fullname in self.texts else None

    def get_source(self, fullname: str) -> str:
        return self.texts[fullname]

    def get_code(self, fullname: str) -> CodeType:
        name, text = f"{fullname}.py", self.texts[fullname]
        cache[name] = (len(text), None, text.splitlines(keepends=True), name)
        return compile(text, name, "exec", dont_inherit=True)


_modules = _Modules()


def provide(modules: Iterable[tuple[str, str]]) -> None:
    """Make the modules of one submission importable, by (file name, text), in place of those of an earlier one."""
    earlier, _modules.texts = _modules.texts, {name.removesuffix(".py"): text for name, text in modules}
    for name in {*earlier, *_modules.texts}:
        sys.modules.pop(name, None)
    if _modules.texts and _modules not in sys.meta_path:
        sys.meta_path.insert(0, _modules)
