"""What adopters rely on: no program downloads what nobody asked for, and the pages count the assignments."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

FOR_DOWNLOADS = {
    *("aiohttp", "datasets", "ftplib", "gdown", "http.client", "httpx", "huggingface_hub"),
    *("requests", "torch.hub", "torchtext", "torchvision", "urllib.request", "urllib3", "wget"),
}
DOWNLOADS = {
    *("cached_path", "from_pretrained", "hf_hub_download", "load_dataset", "load_url"),
    *("load_state_dict_from_url", "snapshot_download", "urlopen", "urlretrieve"),
}
LAST_WORDS = {module.rpartition(".")[2] for module in FOR_DOWNLOADS}
SET_UP = "autograder/installation/"  # installs, and runs before anything else does
FOLDERS = ("autograder", "solutions", "assignments", "tests/assignments")


def downloads_in(text: str) -> set[str]:
    """Return the names in a program that belong to packages or functions that download."""
    modules: set[str] = set()
    names: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {alias.name for alias in node.names}
            modules |= {node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Attribute):
            names.add(node.attr)
            if node.attr in LAST_WORDS:
                modules.add(ast.unparse(node))
    return (modules & FOR_DOWNLOADS) | (names & DOWNLOADS)


@pytest.mark.slow
def test_nothing_is_downloaded_at_run_time():
    """No program of the engine or of the course downloads, but for the set-up, and GPT-2 if the student asks for it."""
    programs = [file for folder in FOLDERS for file in (ROOT / folder).rglob("*.py")]
    assert len(programs) > 300
    found = {}
    for file in programs:
        name = file.relative_to(ROOT).as_posix()
        downloads = downloads_in(file.read_text("utf-8"))
        if downloads and not name.startswith(SET_UP):
            found[name] = downloads
    by_choice = [f"{folder}/10_ready_made/ready_made.py" for folder in ("assignments", "solutions")]
    assert found == dict.fromkeys(by_choice, {"from_pretrained"})
    for name in by_choice:
        before, switch, after = (
            (ROOT / name)
            .read_text("utf-8")
            .partition('DOWNLOAD_GPT2 = False\n\nif __name__ == "__main__" and DOWNLOAD_GPT2:\n')
        )
        block = after.partition("\n# %%")[0]
        assert switch and not downloads_in(before)
        assert after.count("from_pretrained(") == block.count("from_pretrained(")


NUMBERS = (
    "ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen",
    "eighteen", "nineteen", "twenty",
)  # fmt: skip


def test_the_course_has_as_many_assignments_as_the_pages_say():
    pages = [ROOT / "README.md", ROOT / "scripts/book/index.md", *(ROOT / "docs").glob("*.md")]
    text = " ".join(page.read_text("utf-8") for page in pages)
    said = re.findall(rf"\b({'|'.join(NUMBERS)})\s+assignments", text)
    assert said and {NUMBERS.index(word) + 10 for word in said} == {
        len(list((ROOT / "solutions").glob("[0-9]*")))
    }
