"""Build the site: the guides, the assignments as a book, the commands, the API and the messages.

python scripts/make_site.py [--output build/site] [--no-pictures]

The pages are collected in a folder beside the output, built by Sphinx, for which every warning is an
error, and searched for lines of solutions and names of hidden tests.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from book.accessibility import accessibility_page
from book.assignments import assignment_pages
from book.commands import command_pages
from book.guides import guide_pages
from book.interface import interface_pages
from book.leaked import leaks_of
from book.messages import messages_page

from autograder.course.reading import load_course
from autograder.text.files import write_whole

ROOT = Path(__file__).resolve().parents[1]


def main() -> int:
    """Build the site, and return 1 if Sphinx warns or if a page gives an answer away."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "site")
    parser.add_argument("--no-pictures", action="store_true", help="draw no picture")
    options = parser.parse_args()
    output: Path = options.output
    source = output.with_name(f"{output.name}-source")
    write_pages(source, with_pictures=not options.no_pictures)
    if code := run_sphinx(source, output):
        return code
    problems = leaks_of(load_course(ROOT), output)
    print(*problems, sep="\n", end="\n" if problems else "")
    if not problems:
        print(f"{output / 'index.html'}: no page contains a solution or names a hidden test.")
    return 1 if problems else 0


def write_pages(source: Path, *, with_pictures: bool) -> None:
    """Write the pages for Sphinx into a folder, and remove pages of before."""
    course = load_course(ROOT)
    pages: dict[str, str | bytes] = {
        **guide_pages(ROOT),
        **assignment_pages(course, source.with_name("site-pictures") if with_pictures else None),
        **command_pages(),
        **interface_pages(),
        **messages_page(ROOT / "autograder"),
        **accessibility_page(ROOT),
    }
    for old in sorted(source.rglob("*")) if source.is_dir() else ():
        if old.is_file() and old.relative_to(source).as_posix() not in pages:
            old.unlink()
    for name, content in pages.items():
        file = source / name
        wanted = content.encode() if isinstance(content, str) else content
        if not file.is_file() or file.read_bytes() != wanted:  # Sphinx reads what has changed
            file.parent.mkdir(parents=True, exist_ok=True)
            write_whole(file, wanted)


def run_sphinx(source: Path, output: Path) -> int:
    """Run Sphinx, with every warning as an error, and return its exit code."""
    command = [sys.executable, "-m", "sphinx", "-b", "html", "-W", "--keep-going", "-n", "-q", "-E"]
    places = ["-c", ROOT / "docs", "-d", output.with_name(f"{output.name}-doctrees")]
    return subprocess.run([*command, *map(str, [*places, source, output])], cwd=ROOT).returncode


if __name__ == "__main__":
    sys.exit(main())
