"""Extensions: classes of this or another package that are registered in one of its entry-point groups.

An extension needs no change here: a package names its class in its own `pyproject.toml`, as
docs/authoring.md shows.
"""

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from autograder.installation.distribution import install_again
from autograder.records import InfrastructureError


@cache
def extensions(group: str) -> dict[str, EntryPoint]:
    """Return the extensions of a group by name, those of this package first."""
    entries = sorted(
        entry_points(group=group), key=lambda entry: not entry.value.startswith("autograder.")
    )
    by_name: dict[str, EntryPoint] = {}
    for entry in entries:
        by_name.setdefault(entry.name, entry)
    return by_name


def load_extension(group: str, name: str) -> Any:
    """Return the class of an extension; raises InfrastructureError if it is not registered or cannot be imported."""
    entry = extensions(group).get(name)
    if entry is None:
        missing = f"`{name}` is not among the extensions `{group}` of this installation, which may be an older one."
        raise InfrastructureError(f"{missing} Install it again: {install_again()}.")
    try:
        return entry.load()
    except (ImportError, AttributeError) as error:
        raise InfrastructureError(
            f"The extension `{name}` ({entry.value}) cannot be imported: {error}."
        ) from None
