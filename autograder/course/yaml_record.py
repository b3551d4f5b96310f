"""What all records of YAML files have in common."""

from typing import ClassVar

from pydantic import BaseModel, ConfigDict


class YamlRecord(BaseModel):
    """Base class of the records in a YAML file: unknown names and values of another type are errors.

    `GONE` holds the settings that there were once, each with a sentence that says what to do.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
    GONE: ClassVar[dict[str, str]] = {}
