"""The workflows that `autograder new --ci` writes: right by their schemas, and run step by step with a local forge."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from autograder.authoring import new as making
from autograder.authoring.new import CI, new
from tests.autograder.tiny_course import COURSE, write_tiny_course

SCHEMAS = {"github": "vendor.github-workflows", "gitlab": "vendor.gitlab-ci"}
# ------------------------------------------------------------------ schemas


def complaints(schema: str, *files: Path) -> str:
    """Return what is wrong with workflows by a forge's schema; empty if nothing is."""
    words = ["check_jsonschema", "--no-cache", "--builtin-schema", schema]
    done = subprocess.run(
        [sys.executable, "-m", *words, *map(str, files)], capture_output=True, text=True
    )
    return done.stdout if done.returncode else ""


@pytest.mark.parametrize("forge", sorted(SCHEMAS))
def test_workflows_are_right_by_the_schema_of_their_forge(
    tmp_path: Path, forge: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("check_jsonschema", reason="check-jsonschema needs Python 3.11")
    monkeypatch.setattr(making, "kit", dict)
    due = COURSE.replace("minutes: 10\n", "minutes: 10\n    due: 2026-12-01 08:00\n")
    workflows = []
    for site in (forge, f"{forge}-course"):
        course = write_tiny_course(tmp_path / site)
        (course / "course.yml").write_text(due, "utf-8")
        new(course, "02_mean", ci=site)
        workflows += [course / place for place in CI[site] if place.endswith(".yml")]
    assert len(workflows) >= 4
    assert complaints(SCHEMAS[forge], *workflows) == ""
