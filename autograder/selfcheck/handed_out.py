"""What the `hints.json` of an assignment says, which students receive beside their file."""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from autograder.source.stub import UNKNOWN, ReleasedStub

FILE_NAME = "hints.json"


@dataclass(frozen=True)
class HandedOut:
    """The contents of a `hints.json`; what is missing or damaged in it is empty.

    `packages` are those beside the kit's own that the assignment needs, `stub` tells an answer from
    the unchanged file, and `record` is all of it, with the locked hints.
    """

    packages: tuple[str, ...] = ()
    stub: ReleasedStub = UNKNOWN
    record: Mapping[str, Any] = field(default_factory=dict)


def handed_out(folder: Path) -> HandedOut:
    """Return what the `hints.json` in an assignment's folder says; nothing if there is none."""
    record: Any = None
    with suppress(OSError, ValueError):
        record = json.loads((folder / FILE_NAME).read_text("utf-8"))
    if not isinstance(record, dict):
        return HandedOut()
    packages: tuple[str, ...] = ()
    with suppress(KeyError, TypeError):
        packages = tuple(map(str, record["packages"]))
    stub = UNKNOWN
    with suppress(KeyError, TypeError, ValueError):
        stub = ReleasedStub.from_record(record["stub"])
    return HandedOut(packages, stub, record)
