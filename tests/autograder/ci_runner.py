"""Runs the jobs of workflows of GitHub and GitLab step by step, with bare repositories as the forge.

Only what the course's own workflows use is understood; anything else fails the test.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.autograder.student_repositories import StudentRepository, git

_SECRET = re.compile(r"\$\{\{ secrets\.(\w+) \}\}")
_SAME = re.compile(r'\$(\w+) == "(\w+)"')


@dataclass
class Machine:
    """A fresh machine of a forge, on which one job runs in a checkout of `repository`.

    `kept` is what the forge keeps between the jobs: caches, and the files that a job hands in.
    """

    folder: Path
    repository: StudentRepository
    kept: Path
    environment: Mapping[str, str]
    secrets: Mapping[str, str] = field(default_factory=dict)
    log: str = ""

    @property
    def workspace(self) -> Path:
        return self.folder / "workspace"

    def clone(self, place: Path, branch: str = "main") -> None:
        words = ("clone", "--quiet", f"--branch={branch}", self.repository.url, str(place))
        git(*words, folder=self.folder)

    def shell(self, script: str, further: Mapping[str, str]) -> None:
        done = subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", script],
            cwd=self.workspace,
            env={**self.environment, "HOME": str(self.folder), "CI": "true", **further},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.log += done.stdout
        assert done.returncode == 0, f"{script}\n{done.stdout}"

    def restore(self, name: str, path: str) -> None:
        cache = self.kept / name
        if cache.is_dir():
            shutil.copytree(cache, self.workspace / path, dirs_exist_ok=True)

    def keep(self, name: str, path: str) -> None:
        shutil.rmtree(self.kept / name, ignore_errors=True)
        if (self.workspace / path).is_dir():
            shutil.copytree(self.workspace / path, self.kept / name)

    # ------------------------------------------------------------------ GitHub

    def github(self, file: str, job: str) -> None:
        """Run a job of a workflow in the repository."""
        self.folder.mkdir()
        text = self.repository.show("main", file)
        workflow = yaml.safe_load(text)
        afterwards: list[tuple[str, str]] = []
        for step in workflow["jobs"][job]["steps"]:
            if "run" in step:
                variables = {k: self._filled(v) for k, v in step.get("env", {}).items()}
                self.shell(step["run"], {"GITHUB_ACTIONS": "true", **variables})
            else:
                self._action(step["uses"], step.get("with", {}), afterwards)
        for name, path in afterwards:
            self.keep(name, path)

    def _action(
        self, name: str, given: Mapping[str, Any], afterwards: list[tuple[str, str]]
    ) -> None:
        if name == "actions/checkout@v4":
            place = self.workspace / given.get("path", "")
            self.clone(place, given.get("ref", "main"))
        elif name == "actions/setup-python@v5":
            assert (self.workspace / given["cache-dependency-path"]).is_file()
        elif name == "actions/cache@v4":
            assert given["key"].startswith(given["restore-keys"])
            self.restore("cache", given["path"])
            afterwards.append(("cache", given["path"]))
        elif name == "actions/upload-artifact@v4":
            self.keep(given["name"], given["path"])
        else:
            raise AssertionError(f"{name} is not known here")

    def _filled(self, value: str) -> str:
        return _SECRET.sub(lambda match: self.secrets[match[1]], value)

    # ------------------------------------------------------------------ GitLab

    def gitlab(self, file: str, source: str) -> list[str]:
        """Run the jobs of a pipeline that a push or a schedule starts; return their names."""
        self.folder.mkdir()
        jobs = yaml.safe_load(self.repository.show("main", file))
        jobs.pop("image", None)
        ran = []
        for name, job in jobs.items():
            variables = {"CI_PIPELINE_SOURCE": source, **self.secrets}
            if not self._applies(job.get("rules"), variables):
                continue
            shutil.rmtree(self.workspace, ignore_errors=True)
            self.clone(self.workspace)
            for key, value in job.get("variables", {}).items():
                whole = value[1:] if value.startswith("$") else ""
                variables[key] = {**self.environment, **variables}[whole] if whole else value
            cached = job.get("cache", {"paths": []})["paths"]
            for path in cached:
                self.restore("cache", path)
            self.shell("\n".join(job["script"]), variables)
            for path in cached:
                self.keep("cache", path)
            for path in job.get("artifacts", {"paths": []})["paths"]:
                self.keep("report", path)
            ran.append(name)
        return ran

    def _applies(self, rules: list[Mapping[str, Any]] | None, variables: Mapping[str, str]) -> bool:
        if rules is None:
            return True
        for rule in rules:
            match = _SAME.fullmatch(rule["if"])
            assert match is not None, rule
            there = all(
                self.repository.git("ls-tree", "main", path) for path in rule.get("exists", [])
            )
            if variables.get(match[1]) == match[2] and there:
                return True
        return False
