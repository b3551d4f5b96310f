"""Bare repositories of students, as a forge holds them, made without a checkout."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

GIT = shutil.which("git")
NEEDS_GIT = pytest.mark.skipif(
    GIT is None, reason="git is not installed, so there are no repositories to collect."
)
FILE, LINK, SUBMODULE = "100644", "120000", "160000"
LONG_AGO = 1_000_000_000
ENVIRONMENT = {
    "PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_TEMPLATE_DIR": "",
}  # fmt: skip


@dataclass(frozen=True)
class StudentRepository:
    """A bare repository; a commit holds exactly the given files."""

    path: Path

    @property
    def url(self) -> str:
        return f"file://{self.path}"

    def commit(
        self, files: Mapping[str, str | tuple[str, str]], branch: str = "main", date: int = LONG_AGO
    ) -> str:
        """Let a branch stand at a commit of these files, a text or a mode and a text; return the commit."""
        lines = [
            f"commit refs/heads/{branch}",
            "mark :1",
            f"committer A Student <ada@school.example> {date} +0000",
        ]
        lines += ["data 4", "work", "deleteall"]
        for name, content in files.items():
            mode, text = (FILE, content) if isinstance(content, str) else content
            if mode == SUBMODULE:
                lines.append(f"M {mode} {text} {name}")
            else:
                lines += [f"M {mode} inline {name}", f"data {len(text.encode())}", text]
        self.git("fast-import", "--force", "--quiet", given="\n".join([*lines, ""]))
        return self.head(branch)

    def head(self, branch: str) -> str:
        """Return the commit of a branch or tag; empty if there is none."""
        found = self.git(
            "for-each-ref", "--format=%(objectname)", f"refs/heads/{branch}", f"refs/tags/{branch}"
        )
        return found.strip()

    def refs(self) -> list[str]:
        return self.git("for-each-ref", "--format=%(refname)").split()

    def move(self, branch: str, commit: str) -> None:
        """Let a branch stand at a commit, as a forced push does."""
        self.git("update-ref", f"refs/heads/{branch}", commit)

    def show(self, branch: str, file: str) -> str:
        return self.git("show", f"{branch}:{file}")

    def names(self, branch: str) -> list[str]:
        return self.git("ls-tree", "-r", "--name-only", branch).splitlines()

    def git(self, *words: str, given: str = "") -> str:
        return git(*words, folder=self.path, given=given)


def git(*words: str, folder: Path, given: str = "") -> str:
    """Run git in a folder, without the settings of this machine, and return what it prints."""
    command = [GIT or "git", *words]
    done = subprocess.run(
        command, cwd=folder, env=ENVIRONMENT, input=given, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def make_repository(
    folder: Path,
    name: str,
    files: Mapping[str, str | tuple[str, str]] | None = None,
    algorithm: str = "sha1",
) -> StudentRepository:
    """Make a bare repository, with a first commit of these files if there are any."""
    path = folder / f"{name}.git"
    path.mkdir(parents=True)
    kind = ("--initial-branch=main", f"--object-format={algorithm}")
    git("init", "--quiet", "--bare", *kind, folder=path)
    repository = StudentRepository(path)
    if files:
        repository.commit(files)
    return repository


def copy_of(repository: StudentRepository, path: Path) -> StudentRepository:
    """Return a copy of a repository, which takes no process of git."""
    return StudentRepository(Path(shutil.copytree(repository.path, path)))


def write_table(
    folder: Path, repositories: Mapping[str, StudentRepository], name: str = "repositories.csv"
) -> Path:
    rows = [f"{student},{repository.url}" for student, repository in repositories.items()]
    table = folder / name
    table.write_text("\n".join(["student,url", *rows, ""]), "utf-8")
    return table
