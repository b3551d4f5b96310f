"""What a student's code leaves behind outside of its own module, where a second reading of the text does not undo it."""

import os
import sys
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch import nn

MOST_FILES = 1000
_CLASSES = (torch.Tensor, nn.Module, nn.Parameter)


class Traces:
    """What the libraries hold, the environment, the files here, and settings that a program makes once."""

    def __init__(self) -> None:
        self._libraries = {
            name: _content(module)
            for name, module in [*sys.modules.items()]
            if isinstance(module, ModuleType)
        }
        self._classes = [_content(kind) for kind in _CLASSES]
        self._settings = _settings()

    def are_left(self, text_module: str) -> bool:
        """Whether anything is different now; a module that was imported since is no trace."""
        now = Traces()
        libraries = self._libraries.keys() - {text_module}
        return (
            self._settings != now._settings
            or self._classes != now._classes
            or any(self._libraries[name] != now._libraries.get(name) for name in libraries)
        )


def _content(holder: Any) -> int:
    """Return what tells apart what a module or a class holds; a submodule that was imported since is no part of it."""
    held = vars(holder)
    return hash(
        tuple((name, id(thing)) for name, thing in held.items() if not _is_part(thing, name))
    )


def _is_part(thing: Any, name: str) -> bool:
    return isinstance(thing, ModuleType) or name == "__warningregistry__"


def _files_here() -> tuple[str, list[str]]:
    try:
        here = os.getcwd()
        return here, sorted(os.listdir(here))[:MOST_FILES]
    except OSError:  # the code has removed the folder
        return "", []


def _settings() -> list[Any]:
    return [
        _files_here(),
        dict(os.environ),
        list(sys.path),
        sys.getrecursionlimit(),
        torch.get_default_dtype(),
        torch.is_grad_enabled(),
        np.geterr(),
    ]
