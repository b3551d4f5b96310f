"""A student's notebook whose cells try to run a script in the browser of whoever reads them."""

from __future__ import annotations

from typing import Any

from nbformat import NotebookNode

FLAG = "executedByStudent"
SCRIPTS = (
    f"<script>window.{FLAG} = 1</script>",
    f"<img src='x:' onerror='window.{FLAG} = 1'>",
    f"<svg onload='window.{FLAG} = 1'></svg>",
    f"<iframe srcdoc='<script>parent.{FLAG} = 1</script>'></iframe>",
    f"<style onload='window.{FLAG} = 1'></style>",
)
LINE_ENDS = ("\n", "\r", "\r\n", "\v", "\f", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029")


def make_hostile(notebook: NotebookNode) -> None:
    """Put such cells of all kinds before those of the notebook."""
    cells: list[dict[str, Any]] = []
    for kind in ("raw", "markdown", "code", "heading", "widget"):
        for end in LINE_ENDS:
            text = f"note{end}{end}" + f"{end}{end}".join(SCRIPTS)
            cells.append(
                {"cell_type": kind, "metadata": {}, "source": text, "id": f"{kind}{len(cells)}"}
            )
    pictures = "![x](attachment:missing.png) ![y](attachment:\u00e9.png)"
    cells.append({"cell_type": "markdown", "metadata": {}, "source": pictures, "id": "pictures"})
    outputs = [{"output_type": "display_data", "metadata": {}, "data": {"text/html": SCRIPTS[0]}}]
    cells.append(
        {
            "cell_type": "code", "metadata": {}, "source": "x = 1", "outputs": outputs,
            "execution_count": 1,
        }
    )  # fmt: skip
    for cell in reversed(cells):
        if cell["cell_type"] == "code":
            cell = {
                "outputs": [],
                "execution_count": None,
                **cell,
                "source": f"'''{cell['source']}'''",
            }
        notebook.cells.insert(0, NotebookNode(cell))
