"""Extensions: classes of this or another package that are registered in one of its entry-point groups.

An extension needs no change here: a package names its class in its own `pyproject.toml`, as
docs/exports.md shows.
"""

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from typing import Any

from autograder.installation.distribution import install_again
from autograder.records import InfrastructureError


@cache
def extensions(group: str) -> dict[str, EntryPoint]:
    """Return the extensions of a group by name, those of this package first.

    One whose module is not there counts as not installed.
    """
    entries = sorted(
        entry_points(group=group), key=lambda entry: not entry.value.startswith("autograder.")
    )
    by_name: dict[str, EntryPoint] = {}
    for entry in entries:
        if entry.name not in by_name and _is_installed(entry):
            by_name[entry.name] = entry
    return by_name


def _is_installed(entry: EntryPoint) -> bool:
    """Whether the module is there; one that cannot be imported is, and says so when it is loaded."""
    module, _, _ = entry.value.partition(":")
    try:
        return find_spec(module.strip()) is not None
    except ModuleNotFoundError as error:  # of a package around it
        return not f"{module}.".startswith(f"{error.name}.")
    except Exception:  # a package around it is broken
        return True


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
