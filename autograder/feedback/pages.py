"""Shared code of all pages: templates, filters and paths."""

import re
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from autograder.feedback.causes import STATES
from autograder.gradebook.final_scores import number
from autograder.installation.distribution import install_extra
from autograder.records import Grade, InfrastructureError, Submission
from autograder.text.files import write_whole
from autograder.text.names import folder_name
from autograder.text.wording import begun

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

TEMPLATES = Path(__file__).parent / "templates"
_CODE = re.compile(r"`([^`\n]+)`")
_STRESSED = re.compile(r"\*([^*\s][^*\n]*)\*")


def feedback_path(of: Grade | Submission) -> PurePosixPath:
    """Return the path of the page of a grade, or of a submission's grade, relative to the report's folder."""
    return PurePosixPath("feedback", folder_name(of.student), f"{folder_name(of.assignment)}.html")


def write_page(path: Path, template: str, folder: Path = TEMPLATES, **values: Any) -> Path:
    """Write a template of this folder with every value escaped; an equal page is kept.

    Raises InfrastructureError without jinja2.
    """
    page = rendered(template, folder, **values)
    if path.is_file() and path.read_bytes() == page:  # replacing a file takes longer than all else
        return path
    return write_whole(path, page)


def rendered(template: str, folder: Path = TEMPLATES, **values: Any) -> bytes:
    """Return a page: a template of this folder with every value escaped.

    Raises InfrastructureError without jinja2.
    """
    return templates(folder).get_template(template).render(**values).encode("utf-8", "replace")


@lru_cache(maxsize=10_000)
def prose(text: str) -> "Markup":
    """Convert a message to HTML: escaped, with `names` as code and indented lines as code blocks."""
    from markupsafe import Markup

    return Markup("\n").join(_line(line) for line in text.split("\n"))


@lru_cache(maxsize=1_000)
def list_items(texts: tuple[str, ...]) -> "Markup":
    """Convert texts to the items of an HTML list as `prose` does."""
    from markupsafe import Markup

    return Markup("").join(Markup("<li>{}</li>\n").format(prose(printable(text))) for text in texts)


def heading(text: str) -> "Markup":
    """Convert a title to HTML as `prose` does, with a capital first letter."""
    return prose(begun(text))


def caption(text: str) -> "Markup":
    """Convert a picture's caption to HTML as `prose` does, with *emphasis*."""
    from markupsafe import Markup

    return Markup(_STRESSED.sub(r"<em>\1</em>", str(prose(text))))


def plain(text: str) -> str:
    """Return the same sentence without markup."""
    return _CODE.sub(r"\1", _STRESSED.sub(r"\1", text))


def _line(line: str) -> "Markup":
    from markupsafe import Markup, escape

    if line.startswith("    "):
        return Markup('<code class="line">{}</code>').format(line[4:])
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(line))))


@lru_cache(maxsize=8)
def templates(folder: Path = TEMPLATES) -> "Environment":
    """Return the templates of a folder, which can extend those of all pages.

    Raises InfrastructureError without jinja2.
    """
    try:
        import jinja2
    except ModuleNotFoundError:
        raise InfrastructureError(
            f"The HTML pages need jinja2. Install it: {install_extra('report')}"
        ) from None
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader([folder, TEMPLATES]),
        autoescape=True,
        auto_reload=False,
        undefined=jinja2.StrictUndefined,
        finalize=printable,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        number=number,
        prose=prose,
        heading=heading,
        caption=caption,
        plain=plain,
        list_items=list_items,
    )
    environment.globals["states"] = STATES
    environment.globals["script"] = _raw("report.js")
    environment.globals["style"] = _raw("style.css")
    return environment


def _raw(name: str) -> "Markup":
    from markupsafe import Markup

    return Markup((TEMPLATES / name).read_text(encoding="utf-8"))


def printable(value: Any) -> Any:
    """Replace characters that hide or reorder the text around them; return other values unchanged."""
    if not isinstance(value, str):
        return value
    # the common case
    if value.isprintable() or str(value).replace("\n", "").replace("\t", "").isprintable():
        return value
    shown = "".join(
        c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in value
    )
    return value.__class__(shown)
