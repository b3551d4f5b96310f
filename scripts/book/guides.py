"""The guides of docs/ and the papers of the root, with links that lead somewhere on the site."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath

import nbformat

from book.project import home

_PAPERS = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "CODE_OF_CONDUCT.md": "code-of-conduct.md",
    "SECURITY.md": "security-policy.md",
    "README.md": "index.md",
}
_LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])+)\]\(([^)\s]+)\)")
_FENCE = re.compile(r"(^```.*?^```)", re.MULTILINE | re.DOTALL)


def guide_pages(root: Path) -> dict[str, str | bytes]:
    """Return the pages and pictures that people have written, by their names on the site."""
    pages: dict[str, str | bytes] = {}
    for file in sorted((root / "docs").glob("*.md")):
        pages[file.name] = with_links_of_the_site(file, root)
    for name, on_the_site in _PAPERS.items():
        if on_the_site != "index.md":
            pages[on_the_site] = with_links_of_the_site(root / name, root)
    for picture in sorted((root / "docs" / "images").glob("*.*")):
        if picture.suffix in (".png", ".svg", ".gif"):
            pages[f"images/{picture.name}"] = picture.read_bytes()
    pages["index.md"] = Path(__file__).with_name("index.md").read_text("utf-8")
    pages["python.md"] = _page_of_notebook(root / "docs" / "python.ipynb")
    return pages


def with_links_of_the_site(file: Path, root: Path) -> str:
    """Return the text of a page with its links as the site has them."""
    text = re.sub(
        "^( *```)csv$", r"\1text", file.read_text("utf-8"), flags=re.MULTILINE
    )  # unknown to Pygments
    pieces = _FENCE.split(text)
    prose = [_LINK.sub(lambda link: _link(link, file, root), piece) for piece in pieces[::2]]
    code = [*pieces[1::2], ""]
    return "\n\n".join(blocks) + "\n"
