"""Sphinx's configuration of the site, which `make site` builds (scripts/make_site.py)."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "scripts"))

from book.parameters import add_help_of_parameters  # noqa: E402
from book.project import home  # noqa: E402

from autograder.version import __version__  # noqa: E402

project = "Attention by Hand"
author = "The autograder authors"
project_copyright = "2026, The autograder authors"
release = version = __version__
language = "en"

extensions = ["myst_parser", "sphinx.ext.autodoc", "book.mathml"]
myst_enable_extensions = ["colon_fence", "dollarmath", "deflist"]
myst_heading_anchors = 4
myst_links_external_new_tab = False
html_math_renderer = "mathml"
default_role = "code"
nitpicky = True
autodoc_typehints = "none"
autodoc_preserve_defaults = True
autodoc_member_order = "bysource"
add_module_names = False
highlight_language = "text"
smartquotes_action = "qe"  # `--record` stays an option

html_theme = "furo"
html_title = f"Attention by Hand {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_show_search_summary = False  # it fetches pages, which a browser refuses without a server
html_copy_source = False
html_show_sourcelink = False
html_theme_options = (
    {"source_repository": home(ROOT), "source_branch": "main"} if home(ROOT) else {}
)


def setup(app):
    """Add the help of command-line options to the parameters of the API's functions."""
    app.connect("autodoc-process-docstring", add_help_of_parameters)
