"""`scripts/everywhere`: which machines it chooses, and what it says of rows whose grades differ."""

from __future__ import annotations

import importlib.util
import itertools
import subprocess
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def everywhere() -> ModuleType:
    loader = SourceFileLoader("scripts_everywhere", str(ROOT / "scripts" / "everywhere"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    sys.modules[loader.name] = module  # dataclasses look their module up
    loader.exec_module(module)
    return module


def test_every_two_values_appear_together(everywhere):
    builds = [*itertools.product(["cuda"], ["3.10", "3.11", "3.12"]), ("cpu", "3.11")]
    rest = list(
        itertools.product(
            ["root", "ordinary"], ["installed", "missing"], ["plain", "odd"], ["usual", "bare"]
        )
    )
    machines = [everywhere.Machine(*build, *properties) for build in builds for properties in rest]
    rows = everywhere.covering_rows(machines)
    together = set().union(*(row.pairs() for row in rows))
    assert together == set().union(*(machine.pairs() for machine in machines))
    assert len(rows) < 12


def row_of(everywhere, **grades: str):
    machine = everywhere.Machine("cuda", "3.12", "root", "installed", "plain", "usual")
    return everywhere.Row(
        machine, grades={(student, "03"): grade for student, grade in grades.items()}
    )


def test_a_row_with_other_grades_is_named(everywhere):
    rows = [
        row_of(everywhere, ada="graded 15"),
        row_of(everywhere, ada="graded 15"),
        row_of(everywhere, ada="graded 14"),
    ]
    everywhere.compare(rows)
    assert [bool(row.problem) for row in rows] == [False, False, True]
    assert "ada" in rows[2].problem and "1 equal" in everywhere.table(rows)


def test_rows_without_grades_are_a_failure(everywhere):
    rows = [row_of(everywhere), row_of(everywhere)]
    everywhere.compare(rows)
    assert all(row.problem for row in rows)


def test_the_audit_before_a_change_lands_has_at_least_three_assignments():
    done = subprocess.run(
        [ROOT / "scripts" / "assignments-to-audit"], capture_output=True, text=True, check=True
    )
    names = done.stdout.split()
    assert len(names) >= 3
    assert all((ROOT / "solutions" / name).is_dir() for name in names)


def test_before_a_change_lands_one_machine_is_tried(everywhere):
    here, newcomer = everywhere.short_rows()
    assert here.pytorch == everywhere.HERE
    assert (newcomer.pytorch, newcomer.user) == ("cuda", "ordinary")
