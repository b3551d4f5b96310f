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
_FENCE = re.compile(r"(^ *```.*?^ *```$)", re.MULTILINE | re.DOTALL)


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
    pieces = _FENCE.split(file.read_text("utf-8"))
    prose = [_LINK.sub(lambda link: _link(link, file, root), piece) for piece in pieces[::2]]
    code = [
        re.sub("^( *```)csv$", r"\1text", block, flags=re.MULTILINE)
        for block in [*pieces[1::2], ""]
    ]  # Pygments knows no csv
    return "".join(f"{text}{block}" for text, block in zip(prose, code, strict=True))


def _link(link: re.Match[str], file: Path, root: Path) -> str:
    """Return the link as the site has it; to a file that the site has not, it leads home, if there is one."""
    text, target = link[1], link[2]
    name, hash_sign, anchor = target.partition("#")
    if not name or "://" in name or name.startswith("mailto:"):
        return link[0]
    path = (file.parent / name).resolve()
    inside = PurePosixPath(path.relative_to(root).as_posix())
    if text == path.name and path.is_file():
        text = _title(path)
    if str(inside) in _PAPERS:
        wanted = _PAPERS[str(inside)]
        return f"[{text}]({wanted}{hash_sign if wanted != 'index.md' else ''}{anchor})"
    if inside.parts[0] == "docs" and inside.suffix in (".md", ".ipynb"):
        return f"[{text}]({inside.with_suffix('.md').name}{hash_sign}{anchor})"
    if inside.parts[0] == "assignments" and len(inside.parts) == 2:
        return f"[{text}]({inside}.md)"
    return f"[{text}]({home(root)}/blob/main/{inside})" if home(root) else text


def _title(file: Path) -> str:
    """Return the first heading of a page, in quotation marks; for other files, their name."""
    heading = re.search(r"^# (.+)", file.read_text("utf-8"), re.MULTILINE)
    return f"“{heading[1]}”" if file.suffix == ".md" and heading else file.name


def _page_of_notebook(file: Path) -> str:
    cells = nbformat.read(file, as_version=4).cells
    blocks = [
        cell.source if cell.cell_type == "markdown" else f"```python\n{cell.source}\n```"
        for cell in cells
    ]
    return "\n\n".join(blocks) + "\n"
