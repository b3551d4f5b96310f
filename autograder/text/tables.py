"""YAML that belongs to the engine or was checked before: read by libyaml where it is installed, ten
times faster.
"""

from pathlib import Path
from typing import Any

import yaml

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_table(module_file: str, name: str) -> Any:
    """Return the content of a YAML file beside a module, which gives its `__file__`."""
    return yaml.load(Path(module_file).with_name(name).read_text("utf-8"), LOADER)
