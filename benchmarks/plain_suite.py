"""The suite of masked heads without an engine: plain functions that take a student's names as they are.

This is what the peers run, and the floor: no sandbox, no proxy, no diagnosis.
"""

from __future__ import annotations

import functools
import importlib.util
import inspect
import random
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import torch

ROOT = Path(__file__).resolve().parents[1]
NAME, STEM = "03_masked_heads", "masked_heads"
SEED = 2026


def load(path: Path, name: str) -> ModuleType:
    """A file as a fresh module."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Suite:
    """The visible and hidden tests, and the solution that hidden ones compare with."""

    def __init__(self) -> None:
        self.reference = load(ROOT / "solutions" / NAME / f"{STEM}.py", "reference")
        folder = ROOT / "tests" / "assignments" / NAME
        modules = [
            load(folder / f"test_{kind}.py", f"plain_{kind}") for kind in ("visible", "hidden")
        ]
        self.tests: dict[str, Callable[..., object]] = {
            name: value
            for m in modules
            for name, value in vars(m).items()
            if name.startswith("test_")
        }

    @classmethod
    @functools.cache
    def once(cls) -> Suite:
        """The one that a process shares."""
        return cls()

    def take(self, test: str, names: Mapping[str, Any]) -> None:
        """One test with the names that a student defined; raises what the test raises."""
        torch.manual_seed(SEED)
        np.random.seed(SEED)
        random.seed(SEED)
        offered = {"student": SimpleNamespace(**names), "reference": self.reference, "seed": SEED}
        function = self.tests[test]
        function(**{name: offered[name] for name in inspect.signature(function).parameters})


def take_all(files: list[Path]) -> int:
    """Every test for every file, in this process; how many tests were passed."""
    suite = Suite()
    for file in files:
        names = vars(load(file, STEM))
        for test in suite.tests:
            suite.take(test, names)
    return len(files) * len(suite.tests)


if __name__ == "__main__":
    torch.set_num_threads(1)
    print(take_all([Path(name) for name in sys.argv[1:]]), "tests passed")
