"""YAML, read by libyaml where it is installed: ten times faster."""

import yaml

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
DEEPEST = 50
MOST_ALIASES = 100


def check_shape(text: str) -> None:
    """Raise RecursionError for YAML that would crash what reads it, or grow without end.

    Lists in lists are read by functions of C that call each other, and an alias of what holds
    aliases can stand for more than fits into memory. Raises yaml.YAMLError for what is no YAML.
    """
    anchors: list[str | None] = []  # of the lists and mappings around
    aliases = 0
    for event in yaml.parse(text, Loader=LOADER):
        if isinstance(event, yaml.CollectionStartEvent):
            anchors.append(event.anchor)
        elif isinstance(event, yaml.CollectionEndEvent):
            anchors.pop()
        elif isinstance(event, yaml.AliasEvent):
            aliases += 1
            holds_aliases = (
                any(anchors) and event.anchor not in anchors
            )  # one of itself has its own sentence
            if aliases > MOST_ALIASES or holds_aliases:
                raise RecursionError(
                    "the lines repeat each other by aliases (`*name`); write them out"
                )
        if len(anchors) > DEEPEST:
            raise RecursionError("the lines are nested too deeply to be read")
